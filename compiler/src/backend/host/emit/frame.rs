//! Layout of a block's scratch memory.
//!
//! In this order: shared arrays, context arrays (one element per thread of each value that is live across a barrier),
//! local arrays that are live across a barrier (one copy per thread), masks (one byte per thread), and dynamic shared
//! memory, whose size only the launch knows.

use crate::{
    backend::host::plan::{MAX_THREADS, MaskId, Plan},
    ir::{LocalArrayId, LocalId, Module, SharedId},
};

/// Bytes of a cache line.
const LINE: u64 = 64;

/// Bytes of padding after a context array. With it, the elements of 256 threads in one array do not map to the same
/// cache sets as those in the next arrays. Also, if a row stores to one array and the next row loads from another, the
/// addresses differ in the low 12 bits, which CPUs compare first to find out whether a load depends on an earlier
/// store.
const GAP: u64 = 1024 + LINE;

/// Offsets into scratch memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offsets {
    shared: Vec<u64>,
    locals: Vec<(LocalId, u64)>,
    arrays: Vec<(LocalArrayId, ArrayPlace)>,
    masks: Vec<u64>,
    /// Offset of dynamic shared memory.
    pub(crate) dynamic_offset: u64,
}

/// Layout of a local array that is live across a barrier: the copies of consecutive threads at equal distances.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayPlace {
    /// Offset of the first thread's copy.
    pub offset: u64,
    /// Distance between the copies of consecutive threads.
    pub stride: u64,
}

impl Offsets {
    /// Lays out shared memory alone, for threads that have all other memory on their stacks.
    pub(crate) fn of_shared(module: &Module) -> Self {
        let mut this = Self::default();
        let mut end = 0_u64;
        for (_, array) in module.shared.iter() {
            let offset = end.next_multiple_of(array.align.max(16));
            end = offset.saturating_add(array.len.saturating_mul(array.elem.size_bytes()));
            this.shared.push(offset);
        }
        this.dynamic_offset = end.next_multiple_of(LINE.max(module.dynamic_shared_align));
        this
    }

    /// Lays out the scratch memory of a plan.
    pub(crate) fn of(plan: &Plan) -> Self {
        let function = &plan.module.functions[plan.kernel];
        let mut this = Self::default();
        let mut end = 0_u64;
        let mut take = |bytes: u64, align: u64| {
            let offset = end.next_multiple_of(align.max(1));
            end = offset.saturating_add(bytes);
            offset
        };
        for (_, array) in plan.module.shared.iter() {
            let bytes = array.len.saturating_mul(array.elem.size_bytes());
            this.shared.push(take(bytes, array.align.max(16)));
        }
        for &local in &plan.live_across.locals {
            let bytes = MAX_THREADS * function.locals[local].ty.host_bytes() + GAP;
            this.locals.push((local, take(bytes, LINE)));
        }
        for &id in &plan.live_across.arrays {
            let array = &function.local_arrays[id];
            let bytes = array.len.saturating_mul(array.elem.size_bytes());
            let stride = bytes.next_multiple_of(array.align.max(16));
            let offset = take(stride.saturating_mul(MAX_THREADS), LINE.max(array.align));
            this.arrays.push((id, ArrayPlace { offset, stride }));
        }
        for _ in 0..plan.cut.masks {
            this.masks.push(take(MAX_THREADS + LINE, LINE));
        }
        this.dynamic_offset = take(0, LINE.max(plan.module.dynamic_shared_align));
        this
    }

    /// The layout for a warp region of the plan with this layout: its other memory is on the stack.
    pub(crate) fn of_region(&self) -> Self {
        Self { shared: self.shared.clone(), dynamic_offset: self.dynamic_offset, ..Self::default() }
    }

    /// Offset of a shared array.
    pub(crate) fn shared(&self, array: SharedId) -> Option<u64> {
        self.shared.get(array.index()).copied()
    }

    /// Offset of the first thread's element in the context array of a local.
    pub(crate) fn local(&self, local: LocalId) -> Option<u64> {
        self.locals.iter().find(|(id, _)| *id == local).map(|&(_, offset)| offset)
    }

    /// Layout of a local array, if it is live across a barrier.
    pub(crate) fn array(&self, array: LocalArrayId) -> Option<ArrayPlace> {
        self.arrays.iter().find(|(id, _)| *id == array).map(|&(_, place)| place)
    }

    /// Offset of the first thread's byte in a mask.
    pub(crate) fn mask(&self, mask: MaskId) -> Option<u64> {
        self.masks.get(mask as usize).copied()
    }
}
