//! Offsets memory of a block: block-shared arrays, then what threads carry from segment to segment, then dynamic
//! shared memory, whose size only the launch knows.

use crate::{
    backend::host::plan::{MAX_THREADS, MaskId, Plan},
    ir::{LocalArrayId, LocalId, Module, SharedId},
};

/// A cache line.
const LINE: u64 = 64;

/// So much longer than they need be are arrays of one element a thread. What 256 threads have in one of them does not fall into the same
/// cache sets as what they have in the next ones, and where a row stores to one and the next row loads from another, the addresses do
/// not end in the same twelve bits, by which CPUs first compare loads with the stores before them.
const GAP: u64 = 1024 + LINE;

/// Offsets into scratch memory, in bytes.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Offsets {
    shared: Vec<u64>,
    locals: Vec<(LocalId, u64)>,
    arrays: Vec<(LocalArrayId, ArrayPlace)>,
    masks: Vec<u64>,
    /// Where dynamic shared memory begins.
    pub(crate) dynamic_offset: u64,
}

/// Thread-local arrays of one variable: those of the threads lie one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ArrayPlace {
    /// The first thread's.
    pub offset: u64,
    /// From one thread's to the next.
    pub stride: u64,
}

impl Offsets {
    /// Lays out what a block shares, for threads that keep the rest on their stacks.
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

    /// Lays out the memory that a plan needs.
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
        for &local in &plan.crossing.locals {
            let bytes = MAX_THREADS * function.locals[local].ty.host_bytes() + GAP;
            this.locals.push((local, take(bytes, LINE)));
        }
        for &id in &plan.crossing.arrays {
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

    /// A block-shared array.
    pub(crate) fn shared(&self, array: SharedId) -> Option<u64> {
        self.shared.get(array.index()).copied()
    }

    /// The first thread's element of a crossing local.
    pub(crate) fn local(&self, local: LocalId) -> Option<u64> {
        self.locals.iter().find(|(id, _)| *id == local).map(|&(_, offset)| offset)
    }

    /// A crossing array.
    pub(crate) fn array(&self, array: LocalArrayId) -> Option<ArrayPlace> {
        self.arrays.iter().find(|(id, _)| *id == array).map(|&(_, place)| place)
    }

    /// The first thread's byte of a mask.
    pub(crate) fn mask(&self, mask: MaskId) -> Option<u64> {
        self.masks.get(mask as usize).copied()
    }
}
