//! Boxes of arrays: copies between a box, by its tensor map, and its elements in shared memory.
#![expect(unsafe_code, reason = "compiled code passes addresses")]

use std::ptr;

use weft_artifact::{BoxMap, MAP_BYTES, MAP_DIMS};

/// A box.
#[derive(Clone, Copy, Debug)]
pub(super) struct BoxAt {
    /// The address of a [`BoxMap`].
    pub(super) map: u64,
    /// The first indices.
    pub(super) indices: [i64; MAP_DIMS],
}

impl BoxAt {
    /// Its map.
    pub(super) fn map(&self) -> BoxMap {
        // SAFETY: the launch has the address of a map as an argument, which lives until the launch has ended.
        let words = unsafe { ptr::read_unaligned(at(self.map).cast::<[u64; MAP_BYTES / 8]>()) };
        BoxMap::read(&words)
    }
}

pub(super) fn at(address: u64) -> *mut u8 {
    ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or_default())
}

/// Copies bytes.
pub(super) fn copy(to: u64, from: u64, bytes: usize) {
    // SAFETY: the program passes memory of the block, and memory of the device.
    unsafe { ptr::copy(at(from).cast_const(), at(to), bytes) };
}

/// Copies a box to shared memory. Elements outside of the array are zero. Swizzled arrays are aligned to the period of the
/// swizzle in the block's shared memory, so that the order is that of an address 0.
pub(super) fn load(to: u64, map: &BoxMap, first: [i64; MAP_DIMS]) {
    let mut bytes = Vec::new();
    map.for_each_row(first, &mut |row, elements| {
        bytes.clear();
        bytes.resize(row.bytes, 0);
        for (number, address) in elements {
            // SAFETY: the element is in the array, which lives until the launch has ended.
            unsafe { ptr::copy(at(*address).cast_const(), bytes[number * map.element..].as_mut_ptr(), map.element) };
        }
        row.for_each_part(0, &mut |from, place, n| {
            copy(to + place, bytes[from..].as_ptr().expose_provenance() as u64, n);
        });
    });
}

/// Copies shared memory to a box. Elements outside of the array are not written.
pub(super) fn store(map: &BoxMap, first: [i64; MAP_DIMS], source: u64) {
    let mut bytes = Vec::new();
    map.for_each_row(first, &mut |row, elements| {
        bytes.clear();
        bytes.resize(row.bytes, 0);
        row.for_each_part(0, &mut |to, place, n| {
            copy(bytes[to..].as_mut_ptr().expose_provenance() as u64, source + place, n);
        });
        for (number, address) in elements {
            // SAFETY: as for a load.
            unsafe { ptr::copy(bytes[number * map.element..].as_ptr(), at(*address), map.element) };
        }
    });
}
