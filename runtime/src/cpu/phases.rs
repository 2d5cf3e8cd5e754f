//! Barriers in shared memory, and the copies that they count. A phase of a barrier completes when all its arrivals and
//! all its bytes have come.
//!
//! A copy is made as late as possible: where a thread waits for a phase in which only bytes are missing. A program that
//! reads without waiting thus reads what was there before.
#![expect(unsafe_code, reason = "compiled code passes addresses")]

use std::{collections::VecDeque, ptr};

use weft_artifact::{BoxMap, MAP_BYTES, MAP_DIMS};

/// The bytes whose order a swizzle changes.
const PART: usize = 16;
/// The bytes of all banks of shared memory.
const BANKS: usize = 128;

/// A copy that is not made yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum BulkCopy {
    /// Of contiguous bytes.
    Bytes {
        /// The address to copy to.
        to: u64,
        /// The address to copy from.
        from: u64,
        /// The number of bytes.
        bytes: u64,
    },
    /// Of a box of an array.
    Box {
        /// The address to copy to.
        to: u64,
        /// The address of a [`BoxMap`].
        map: u64,
        /// The box's first indices.
        indices: [i64; MAP_DIMS],
    },
}

/// A barrier.
#[derive(Debug, Default)]
pub(super) struct Barrier {
    /// The number of completed phases.
    phase: u64,
    /// The number of arrivals in each phase.
    arrivals: u64,
    /// The number of arrivals that the current phase still waits for.
    missing: u64,
    /// The number of bytes that it still waits for. Negative if copies have been made before they were expected.
    bytes: i64,
    /// The copies that are not made yet, the oldest first.
    copies: VecDeque<BulkCopy>,
}

impl Barrier {
    /// A barrier for a number of arrivals in each phase.
    pub(super) fn new(arrivals: u64) -> Self {
        Self { arrivals, missing: arrivals, ..Self::default() }
    }

    /// A thread arrives, and the phase waits for further bytes.
    pub(super) fn arrive(&mut self, bytes: u64) {
        // An arrival follows a wait for the phase before, unless the program has too many arrivals. Then only the
        // copies may be missing.
        if self.missing == 0 {
            self.complete_by_copies();
        }
        self.bytes = self.bytes.saturating_add_unsigned(bytes);
        self.missing = self.missing.saturating_sub(1);
        self.complete();
    }

    /// A thread begins a copy.
    pub(super) fn begin(&mut self, copy: BulkCopy) {
        self.copies.push_back(copy);
    }

    /// Makes the copies for which alone the phase waits. Returns whether it has completed.
    pub(super) fn complete_by_copies(&mut self) -> bool {
        if self.missing > 0 || self.bytes <= 0 {
            return false;
        }
        while self.bytes > 0 {
            let Some(copy) = self.copies.pop_front() else { return false };
            let bytes = copy.make();
            self.bytes = self.bytes.saturating_sub_unsigned(bytes);
        }
        self.complete()
    }

    fn complete(&mut self) -> bool {
        let is_complete = self.arrivals > 0 && self.missing == 0 && self.bytes == 0;
        if is_complete {
            self.phase += 1;
            self.missing = self.arrivals;
        }
        is_complete
    }

    /// Whether the latest phase of this parity has completed.
    pub(super) fn has_completed(&self, parity: u64) -> bool {
        self.phase & 1 != parity & 1
    }
}

impl BulkCopy {
    /// Copies. Returns the number of bytes.
    fn make(self) -> u64 {
        match self {
            Self::Bytes { to, from, bytes } => {
                copy(to, from, bytes as usize);
                bytes
            }
            Self::Box { to, map, indices } => {
                // SAFETY: the launch has the address of a map as an argument, which lives until the launch has ended.
                let words = unsafe { ptr::read_unaligned(at(map).cast::<[u64; MAP_BYTES / 8]>()) };
                let map = BoxMap::read(&words);
                copy_box(to, &map, indices);
                map.box_bytes()
            }
        }
    }
}

fn at(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or_default())
}

fn copy(to: u64, from: u64, bytes: usize) {
    // SAFETY: the program passes memory of the block, and memory of the device.
    unsafe { ptr::copy(at(from).cast_const(), at(to), bytes) };
}

/// Copies a box, row by row. Elements outside of the array are zero.
fn copy_box(to: u64, map: &BoxMap, first: [i64; MAP_DIMS]) {
    let Some(last) = map.dims.checked_sub(1) else { return };
    let columns = u64::from(map.sizes[last]);
    let row_bytes = columns as usize * map.element;
    let rows: u64 = map.sizes[..last].iter().map(|&size| u64::from(size)).product();
    let inside = |dim: usize, index: i64| u64::try_from(index).is_ok_and(|index| index < map.extents[dim]);
    let mut bytes = vec![0_u8; row_bytes];
    for row in 0..rows {
        bytes.fill(0);
        let (mut rest, mut from, mut is_inside) = (row, map.data, true);
        for dim in (0..last).rev() {
            let size = u64::from(map.sizes[dim]);
            let index = first[dim].saturating_add_unsigned(rest % size);
            rest /= size;
            is_inside &= inside(dim, index);
            from = from.wrapping_add((index.cast_unsigned()).wrapping_mul(map.strides[dim]));
        }
        for column in (0..columns).filter(|_| is_inside) {
            let index = first[last].saturating_add_unsigned(column);
            if inside(last, index) {
                let from = from.wrapping_add(index.cast_unsigned().wrapping_mul(map.strides[last]));
                let place = &mut bytes[column as usize * map.element..][..map.element];
                // SAFETY: the element is in the array, which lives until the launch has ended.
                unsafe { ptr::copy(at(from).cast_const(), place.as_mut_ptr(), place.len()) };
            }
        }
        let to = to + row * row_bytes as u64;
        if map.swizzle == 0 {
            copy(to, bytes.as_ptr().expose_provenance() as u64, row_bytes);
            continue;
        }
        // As the swizzle of shared arrays (`frontend/swizzle.rs`): rows have its width.
        let order = row as usize / (BANKS / map.swizzle).max(1) % (map.swizzle / PART).max(1);
        for (part, bytes) in bytes.chunks(PART).enumerate() {
            let place = to + ((part ^ order) * PART) as u64;
            copy(place, bytes.as_ptr().expose_provenance() as u64, bytes.len());
        }
    }
}
