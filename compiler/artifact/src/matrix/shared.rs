//! Matrices in swizzled shared memory, which products of a warpgroup read.
//!
//! Such a matrix has rows of exactly the swizzle's width, and starts at a multiple of eight of these rows. Longer rows are
//! divided into *panels* with a constant distance.

use std::fmt;

use super::{MatrixPart, MatrixTile};

/// The bytes along `k` of an instruction.
const STEP: u32 = 32;
/// The rows after which the order of a swizzle repeats.
const ROWS: u32 = 8;
/// The bytes of all banks, and of a part.
const BANKS: u32 = 128;
const PART: u32 = 16;

/// The layout of a matrix in swizzled shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct SharedMatrix {
    /// The bytes of a row of a panel: 32, 64 or 128, the width of the swizzle.
    pub width: u8,
    /// Elements along `k` are in different rows, so that a row has elements of several rows of A or columns of B.
    pub transposed: bool,
    /// The bytes from one panel to the next; 0 if there is only one.
    pub panel: u32,
}

/// A product of matrices: its tile, and for each operand that is in shared memory its layout there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct MatrixProduct {
    /// The tile.
    pub tile: MatrixTile,
    /// The layout of A; `None` if it is in registers.
    pub a: Option<SharedMatrix>,
    /// The layout of B; `None` if it is in registers.
    pub b: Option<SharedMatrix>,
    /// The results are in flight: a later wait completes them. Only a product of a warpgroup is.
    pub in_flight: bool,
}

impl MatrixProduct {
    /// A product of operands in registers.
    pub const fn of_registers(tile: MatrixTile) -> Self {
        Self { tile, a: None, b: None, in_flight: false }
    }

    /// The layouts of A and B.
    pub const fn operands(self) -> [(MatrixPart, Option<SharedMatrix>); 2] {
        [(MatrixPart::A, self.a), (MatrixPart::B, self.b)]
    }

    /// Whether an operand is in shared memory.
    pub const fn reads_memory(self) -> bool {
        self.a.is_some() || self.b.is_some()
    }
}

impl fmt::Display for MatrixProduct {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.tile.fmt(f)?;
        for (part, shared) in self.operands() {
            let Some(SharedMatrix { width, transposed, panel }) = shared else { continue };
            write!(f, ".{part:?}{width}{}", if transposed { "t" } else { "" })?;
            if panel > 0 {
                write!(f, "+{panel}")?;
            }
        }
        if self.in_flight { f.write_str(".in_flight") } else { Ok(()) }
    }
}

impl SharedMatrix {
    /// A number that has all of it, for calls of the runtime. It is not 0.
    pub fn code(self) -> u64 {
        u64::from(self.panel) << 16 | u64::from(self.transposed) << 8 | u64::from(self.width)
    }

    /// The layout of a number; `None` for 0.
    pub fn of_code(code: u64) -> Option<Self> {
        let [width, transposed] = [code as u8, (code >> 8) as u8];
        (width != 0).then_some(Self { width, transposed: transposed != 0, panel: (code >> 16) as u32 })
    }

    /// The distance in bytes from the first row to an element of `size` bytes in a row and a column of memory. The first
    /// row is a multiple of eight.
    pub const fn offset(self, size: u32, (row, column): (u32, u32)) -> u32 {
        let (width, bytes) = (self.width as u32, column * size);
        let order = row / (BANKS / width) % (width / PART) * PART;
        bytes / width * self.panel + row * width + ((bytes % width) ^ order)
    }

    /// The elements of an operand that a warp of a warpgroup needs: of A the warp's rows, of B all columns. `load` returns
    /// the bits of the element in a row and a column of memory; `first` is the operand's first column in memory.
    pub fn elements(
        self,
        tile: MatrixTile,
        part: MatrixPart,
        warp: usize,
        first: u32,
        load: impl Fn(u32, u32) -> u64,
    ) -> Vec<u64> {
        let [m, n, k] = tile.of_warp().shape().map(usize::from);
        let rows: Vec<usize> = match part {
            MatrixPart::A => (0..m).map(|row| tile.row_of_warp(warp, row)).collect(),
            MatrixPart::B => (0..n).collect(),
        };
        let element = |row: usize, at: usize| {
            let (row, column) = if self.transposed { (at, row) } else { (row, at) };
            load(row as u32, first + column as u32)
        };
        rows.iter().flat_map(|&row| (0..k).map(move |at| (row, at))).map(|(row, at)| element(row, at)).collect()
    }

    /// The distance in bytes from the first element of an operand to that of the block `block` of 64 rows and the step
    /// `step` along `k`, without the swizzle; `size` is that of an element.
    pub const fn block_offset(self, size: u32, block: u32, step: u32) -> u32 {
        let width = self.width as u32;
        let (row, bytes) =
            if self.transposed { (step * STEP / size, block * 64 * size) } else { (block * 64, step * STEP) };
        bytes / width * self.panel + row * width + bytes % width
    }

    /// The descriptor of the PTX ISA ("Matrix Descriptor Format") for the address 0.
    pub const fn descriptor(self) -> u64 {
        let mode = match self.width {
            128 => 1,
            64 => 2,
            _ => 3,
        };
        // A matrix that is not transposed has no second panel within an instruction.
        let leading = if self.transposed && self.panel > 0 { self.panel / 16 } else { 1 };
        let stride = ROWS * self.width as u32 / 16;
        (leading as u64 & 0x3FFF) << 16 | (stride as u64 & 0x3FFF) << 32 | mode << 62
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;

    #[test]
    fn each_element_has_its_own_address() {
        for width in [32_u8, 64, 128] {
            let columns = u32::from(width);
            let matrix = SharedMatrix { width, transposed: false, panel: 32 * columns };
            let all = (0..32).flat_map(|row| (0..columns).map(move |column| (row, column)));
            let seen: HashSet<u32> = all.map(|at| matrix.offset(2, at)).collect();
            assert_eq!(seen.len() as u32, 32 * columns, "{width}");
            assert!(seen.into_iter().all(|at| at % 2 == 0 && at < 64 * columns), "{width}");
        }
    }

    #[test]
    fn the_order_is_that_of_the_ptx_isa() {
        let matrix = |width| SharedMatrix { width, transposed: false, panel: 0 };
        assert_eq!([0, 1, 7, 8].map(|row| matrix(128).offset(2, (row, 0))), [0, 128 + 16, 7 * 128 + 112, 1024]);
        assert_eq!([1, 2, 6].map(|row| matrix(64).offset(2, (row, 0))), [64, 128 + 16, 6 * 64 + 48]);
        assert_eq!([3, 4].map(|row| matrix(32).offset(2, (row, 0))), [96, 128 + 16]);
    }

    #[test]
    fn blocks_begin_at_unswizzled_addresses() {
        let rows = SharedMatrix { width: 128, transposed: false, panel: 0x4000 };
        assert_eq!([0, 1, 3, 4].map(|step| rows.block_offset(2, 0, step)), [0, 32, 96, 0x4000]);
        assert_eq!(rows.block_offset(2, 1, 1), 64 * 128 + 32);
        let columns = SharedMatrix { width: 128, transposed: true, panel: 0x4000 };
        assert_eq!([0, 1, 3].map(|step| columns.block_offset(2, 0, step)), [0, 2048, 6144]);
        assert_eq!(columns.block_offset(2, 1, 0), 0x4000);
    }

    #[test]
    fn codes_are_those_of_the_layout() {
        for (width, transposed, panel) in [(128, true, 8192), (64, false, 0), (32, false, 1 << 17)] {
            let matrix = SharedMatrix { width, transposed, panel };
            assert_eq!(SharedMatrix::of_code(matrix.code()), Some(matrix));
        }
        assert_eq!(SharedMatrix::of_code(0), None);
    }
}
