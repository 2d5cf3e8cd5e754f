//! Products of matrices of a warpgroup. A warp computes the 16 rows that it has; the other warps of the warpgroup compute
//! theirs when they execute the instruction. A wait for products ends when all warps have executed them: then none of them reads
//! shared memory any more.

use weft_artifact::{MatrixPart, MatrixRules, matrix_product};

use super::{Context, access, compare, convert, warp::Frame};
use crate::{
    decode::{Bank, Descriptor, MatrixOperand, WarpgroupMultiply},
    error::Error,
};

/// The warps of a warpgroup.
const WARPS: u32 = 4;
/// The bytes of a row of a core matrix, and its rows.
const PART: u64 = 16;
const ROWS: u64 = 8;
/// The bytes of all banks of shared memory.
const BANKS: u64 = 128;

/// A matrix in shared memory: PTX ISA, "Asynchronous Warpgroup Level Matrix Shared Memory Layout".
#[derive(Debug, Clone, Copy)]
struct Matrix {
    start: u64,
    leading: u64,
    stride: u64,
    /// The width of the swizzle; 0 for none.
    width: u64,
    transposed: bool,
}

impl Matrix {
    fn of(descriptor: u64, transposed: bool) -> Result<Self, String> {
        let field = |first: u32| (descriptor >> first & 0x3FFF) << 4;
        if descriptor >> 49 & 7 != 0 {
            return Err("a matrix descriptor with a base offset is not supported".to_owned());
        }
        let width = [0, 128, 64, 32][(descriptor >> 62) as usize];
        Ok(Self { start: field(0), leading: field(16), stride: field(32), width, transposed })
    }

    /// The address of the element of `size` bytes in a row of A (or a column of B) and at a position along `k`.
    fn address(self, size: u64, row: u64, k: u64) -> u64 {
        let Self { start, leading, stride, width, transposed } = self;
        // In memory, lines have consecutive elements: along `k`, or if the matrix is transposed, along its rows.
        let (line, bytes) = if transposed { (k, row * size) } else { (row, k * size) };
        if width == 0 {
            let (of_lines, of_parts) = if transposed { (leading, stride) } else { (stride, leading) };
            return start + line / ROWS * of_lines + line % ROWS * PART + bytes / PART * of_parts + bytes % PART;
        }
        // A line may begin within the width; a longer one continues in the next panel.
        let within = start % width + bytes;
        let address = start - start % width + line / ROWS * stride + line % ROWS * width;
        let address = address + within / width * leading + within % width;
        address ^ (address / BANKS % (width / PART) * PART)
    }
}

/// `wgmma.mma_async`
pub(super) fn multiply(
    context: &mut Context,
    frame: &mut Frame,
    multiply: &WarpgroupMultiply,
    mask: u32,
) -> Result<(), Error> {
    super::matrix::check(mask)?;
    let fault = |message: String| Error::in_lane(0, message);
    let adds = compare::truth(frame, multiply.adds);
    if adds != 0 && adds != u32::MAX {
        return Err(fault("the lanes of a warp differ in whether they add".to_owned()));
    }
    let tile = multiply.tile;
    let [_, n, k] = tile.shape().map(u64::from);
    let rows = tile.of_warp().shape()[0];
    let first = u64::from(context.warp % WARPS * u32::from(rows));
    let matrix = |part: MatrixPart, descriptor: Descriptor| -> Result<Vec<u64>, Error> {
        let values = &frame.longs[descriptor.register as usize];
        if values.iter().any(|value| value != &values[0]) {
            return Err(fault("the lanes of a warp have different matrix descriptors".to_owned()));
        }
        let matrix = Matrix::of(values[0], descriptor.transposed).map_err(fault)?;
        let size = tile.kind().element(part).size_bytes();
        let rows = match part {
            MatrixPart::A => first..first + u64::from(rows),
            MatrixPart::B => 0..n,
        };
        let elements = rows.flat_map(|row| (0..k).map(move |at| matrix.address(size, row, at)));
        let load = |address: u64| {
            let bytes = context.shared.get(address as usize..(address + size) as usize);
            let outside = || fault(format!("an element of a matrix at {address:#x} is outside of shared memory"));
            bytes.map(access::load_bytes).ok_or_else(outside)
        };
        elements.map(load).collect()
    };
    let a = match &multiply.a {
        MatrixOperand::Shared(descriptor) => matrix(MatrixPart::A, *descriptor)?,
        MatrixOperand::Registers(registers) => {
            let words: Vec<_> = registers.iter().map(|own| convert::read(frame, (Bank::Word, *own))).collect();
            tile.of_warp().matrix(MatrixPart::A, &words)
        }
    };
    let b = matrix(MatrixPart::B, multiply.b)?;
    let read = |register: &u32| if adds == 0 { [0; 32] } else { convert::read(frame, (Bank::Word, *register)) };
    let mut d: Vec<_> = multiply.d.iter().map(read).collect();
    tile.multiply_matrices(&a, &b, &mut d, |tile, a, b, d| matrix_product(MatrixRules::Cc9, tile, a, b, d));
    for (register, values) in multiply.d.iter().zip(&d) {
        convert::write(frame, (Bank::Word, *register), mask, values);
    }
    context.machine.cluster.multiplied(context.warp);
    frame.in_flight.begin(multiply);
    Ok(())
}

#[cfg(test)]
mod tests {
    use weft_artifact::SharedMatrix;

    use super::*;

    #[test]
    fn addresses_are_those_of_the_layouts_of_shared_arrays() {
        for (width, size) in [(128, 2), (64, 2), (32, 2), (128, 1), (128, 4)] {
            let layout = SharedMatrix { width, transposed: false, panel: 0 };
            let matrix = Matrix::of(layout.descriptor() | (0x1000 / 16), false).expect("is a matrix");
            let columns = u64::from(width) / size;
            for (row, k) in (0..64).flat_map(|row| (0..columns).map(move |k| (row, k))) {
                let expected = layout.offset(size as u32, (row as u32, k as u32));
                assert_eq!(matrix.address(size, row, k), 0x1000 + u64::from(expected), "{width} {row} {k}");
            }
        }
        for width in [128_u8, 64, 32] {
            let panel = 64 * u32::from(width);
            let layout = SharedMatrix { width, transposed: true, panel };
            let matrix = Matrix::of(layout.descriptor() | (0x1000 / 16), true).expect("is a matrix");
            for (row, k) in (0..64).flat_map(|row| (0..16).map(move |k| (row, k))) {
                let expected = layout.offset(2, (k as u32, row as u32));
                assert_eq!(matrix.address(2, row, k), 0x1000 + u64::from(expected), "{width} {row} {k}");
            }
        }
    }

    #[test]
    fn core_matrices_without_a_swizzle() {
        let matrix = |transposed| Matrix { start: 0x100, leading: 0x80, stride: 0x400, width: 0, transposed };
        assert_eq!(
            [(0, 0), (1, 0), (8, 0), (0, 8)].map(|(row, k)| matrix(false).address(2, row, k)),
            [0x100, 0x110, 0x500, 0x180]
        );
        assert_eq!(
            [(1, 0), (8, 0), (0, 1), (0, 8)].map(|(row, k)| matrix(true).address(2, row, k)),
            [0x102, 0x500, 0x110, 0x180]
        );
        assert!(Matrix::of(1 << 49, false).is_err());
    }
}
