//! The rows of a box of an array: their elements in the array, and the order of their parts in shared memory.

use crate::box_map::{BoxMap, MAP_DIMS};

/// The bytes whose order a swizzle changes.
const PART: u64 = 16;
/// The bytes of all banks of shared memory.
const BANKS: u64 = 128;

/// A row of a box in shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BoxRow {
    /// The number of the row in the box.
    pub number: u64,
    /// The bytes of the row.
    pub bytes: usize,
    swizzle: u64,
}

/// The number of an element in its row, and its address in the array.
pub type BoxElement = (usize, u64);

impl BoxRow {
    /// Calls a function with the first byte of each part of the row, the distance of the part from the address `first` of
    /// the box in shared memory, and the bytes of the part. The swizzle is a function of the address, as that of a GPU.
    pub fn for_each_part(&self, first: u64, call: &mut dyn FnMut(usize, u64, usize)) {
        let start = self.number * self.bytes as u64;
        if self.swizzle == 0 {
            return call(0, start, self.bytes);
        }
        for part in (0..self.bytes as u64).step_by(PART as usize) {
            let address = first + start + part;
            let swizzled = address ^ (address / BANKS % (self.swizzle / PART).max(1) * PART);
            call(part as usize, swizzled.wrapping_sub(first), PART as usize);
        }
    }
}

impl BoxMap {
    /// Calls a function with each row of the box at the first indices, and the numbers in the row and the addresses of its
    /// elements inside of the array. The other elements are zero where the box is loaded, and are not stored.
    pub fn for_each_row(&self, first: [i64; MAP_DIMS], call: &mut dyn FnMut(BoxRow, &[BoxElement])) {
        let Some(last) = self.dims.checked_sub(1) else { return };
        let columns = u64::from(self.sizes[last]);
        let rows: u64 = self.sizes[..last].iter().map(|&size| u64::from(size)).product();
        let inside = |dim: usize, index: i64| u64::try_from(index).is_ok_and(|index| index < self.extents[dim]);
        let mut elements = Vec::new();
        for number in 0..rows {
            let (mut rest, mut start, mut is_inside) = (number, self.data, true);
            for dim in (0..last).rev() {
                let size = u64::from(self.sizes[dim]);
                let index = first[dim].saturating_add_unsigned(rest % size);
                rest /= size;
                is_inside &= inside(dim, index);
                start = start.wrapping_add((index.cast_unsigned()).wrapping_mul(self.strides[dim]));
            }
            elements.clear();
            for column in (0..columns).filter(|_| is_inside) {
                let index = first[last].saturating_add_unsigned(column);
                if inside(last, index) {
                    let address = start.wrapping_add(index.cast_unsigned().wrapping_mul(self.strides[last]));
                    elements.push((column as usize, address));
                }
            }
            let bytes = columns as usize * self.element;
            call(BoxRow { number, bytes, swizzle: self.swizzle as u64 }, &elements);
        }
    }

    /// The ranges of the array's memory that a box has: addresses and numbers of bytes.
    pub fn ranges(&self, first: [i64; MAP_DIMS]) -> Vec<(u64, u64)> {
        let bytes = self.element as u64;
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        self.for_each_row(first, &mut |_, elements| {
            for (_, address) in elements {
                match ranges.last_mut() {
                    Some((start, length)) if *start + *length == *address => *length += bytes,
                    Some(_) | None => ranges.push((*address, bytes)),
                }
            }
        });
        ranges
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(swizzle: usize) -> BoxMap {
        BoxMap {
            data: 0x1000,
            dims: 2,
            element: 4,
            swizzle,
            extents: [3, 10, 0, 0, 0],
            strides: [64, 4, 0, 0, 0],
            sizes: [2, 8, 0, 0, 0],
        }
    }

    #[test]
    fn elements_outside_of_the_array_are_left_out() {
        assert_eq!(map(0).ranges([2, 4, 0, 0, 0]), [(0x1000 + 128 + 16, 24)]);
        assert_eq!(map(0).ranges([-1, -2, 0, 0, 0]), [(0x1000, 24)]);
        assert_eq!(map(0).ranges([0, 0, 0, 0, 0]), [(0x1000, 32), (0x1040, 32)]);
    }

    #[test]
    fn the_swizzle_is_that_of_the_address() {
        let parts = |first: u64| {
            let mut found = Vec::new();
            map(32).for_each_row([0; MAP_DIMS], &mut |row, _| {
                row.for_each_part(first, &mut |from, place, bytes| found.push((from, place, bytes)));
            });
            found
        };
        assert_eq!(parts(0), [(0, 0, 16), (16, 16, 16), (0, 32, 16), (16, 48, 16)]);
        assert_eq!(parts(128), [(0, 16, 16), (16, 0, 16), (0, 48, 16), (16, 32, 16)]);
    }
}
