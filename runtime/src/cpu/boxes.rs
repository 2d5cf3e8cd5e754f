//! Boxes of arrays: copies between a box, by its tensor map, and its elements in shared memory.
#![expect(unsafe_code, reason = "compiled code passes addresses")]

use std::ptr;

use weft_artifact::{BoxMap, MAP_BYTES, MAP_DIMS};

use crate::sanitize::Range;

/// The bytes whose order a swizzle changes.
const PART: usize = 16;
/// The bytes of all banks of shared memory.
const BANKS: usize = 128;

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

/// Copies a box to shared memory. Elements outside of the array are zero.
pub(super) fn load(to: u64, map: &BoxMap, first: [i64; MAP_DIMS]) {
    let mut bytes = Vec::new();
    for_each_row(map, first, &mut |row, elements| {
        bytes.clear();
        bytes.resize(row.bytes, 0);
        for (number, address) in elements {
            // SAFETY: the element is in the array, which lives until the launch has ended.
            unsafe { ptr::copy(at(*address).cast_const(), bytes[number * map.element..].as_mut_ptr(), map.element) };
        }
        row.for_each_part(&mut |from, place, n| copy(to + place, bytes[from..].as_ptr().expose_provenance() as u64, n));
    });
}

/// Copies shared memory to a box. Elements outside of the array are not written.
pub(super) fn store(map: &BoxMap, first: [i64; MAP_DIMS], source: u64) {
    let mut bytes = Vec::new();
    for_each_row(map, first, &mut |row, elements| {
        bytes.clear();
        bytes.resize(row.bytes, 0);
        row.for_each_part(&mut |to, place, n| {
            copy(bytes[to..].as_mut_ptr().expose_provenance() as u64, source + place, n);
        });
        for (number, address) in elements {
            // SAFETY: as for a load.
            unsafe { ptr::copy(bytes[number * map.element..].as_ptr(), at(*address), map.element) };
        }
    });
}

/// The ranges of the array's memory that a box has.
pub(super) fn ranges(map: &BoxMap, first: [i64; MAP_DIMS]) -> Vec<Range> {
    let bytes = map.element as u64;
    let mut ranges: Vec<Range> = Vec::new();
    for_each_row(map, first, &mut |_, elements| {
        for (_, address) in elements {
            match ranges.last_mut() {
                Some((start, length)) if *start + *length == *address => *length += bytes,
                Some(_) | None => ranges.push((*address, bytes)),
            }
        }
    });
    ranges
}

/// A row of a box in shared memory.
struct Row {
    number: u64,
    bytes: usize,
    swizzle: usize,
}

impl Row {
    /// Calls a function with the first byte of each part of the row, its offset in shared memory, and its bytes.
    fn for_each_part(&self, call: &mut dyn FnMut(usize, u64, usize)) {
        let Self { number, bytes, swizzle } = *self;
        let start = number * bytes as u64;
        if swizzle == 0 {
            return call(0, start, bytes);
        }
        // As the swizzle of shared arrays (`frontend/swizzle.rs`): rows have its width.
        let order = number as usize / (BANKS / swizzle).max(1) % (swizzle / PART).max(1);
        for part in 0..bytes / PART {
            call(part * PART, start + ((part ^ order) * PART) as u64, PART);
        }
    }
}

/// The number of an element in its row, and its address in the array.
type Element = (usize, u64);

/// Calls a function with each row of a box, and the numbers in the row and the addresses of its elements inside of the array.
fn for_each_row(map: &BoxMap, first: [i64; MAP_DIMS], call: &mut dyn FnMut(Row, &[Element])) {
    let Some(last) = map.dims.checked_sub(1) else { return };
    let columns = u64::from(map.sizes[last]);
    let rows: u64 = map.sizes[..last].iter().map(|&size| u64::from(size)).product();
    let inside = |dim: usize, index: i64| u64::try_from(index).is_ok_and(|index| index < map.extents[dim]);
    let mut elements = Vec::new();
    for number in 0..rows {
        let (mut rest, mut start, mut is_inside) = (number, map.data, true);
        for dim in (0..last).rev() {
            let size = u64::from(map.sizes[dim]);
            let index = first[dim].saturating_add_unsigned(rest % size);
            rest /= size;
            is_inside &= inside(dim, index);
            start = start.wrapping_add((index.cast_unsigned()).wrapping_mul(map.strides[dim]));
        }
        elements.clear();
        for column in (0..columns).filter(|_| is_inside) {
            let index = first[last].saturating_add_unsigned(column);
            if inside(last, index) {
                let address = start.wrapping_add(index.cast_unsigned().wrapping_mul(map.strides[last]));
                elements.push((column as usize, address));
            }
        }
        call(Row { number, bytes: columns as usize * map.element, swizzle: map.swizzle }, &elements);
    }
}
