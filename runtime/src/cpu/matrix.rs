//! Products of matrices of a warp: between the cells of its lanes, which compiled code passes, and whole matrices.
#![expect(unsafe_code, reason = "compiled code passes addresses")]

use std::slice;

use weft_artifact::{MatrixPart, MatrixTile, Scalar, matrix_product as product};

/// Lanes of a warp.
const LANES: usize = 32;

/// See [`multiply`](weft_artifact::HostContext::multiply).
///
/// # Safety
///
/// The code is that of a tile, there is an address for each word and accumulator, and each is that of 32 values of the
/// type of the word or the accumulator, which no other thread accesses meanwhile.
pub(super) unsafe extern "C" fn multiply(code: u64, cells: *const *mut u8) {
    let Some(tile) = MatrixTile::of_code(code) else { return };
    let (n_a, n_b, n_c) = (tile.registers(MatrixPart::A), tile.registers(MatrixPart::B), tile.values());
    // SAFETY: the caller passes this number of addresses.
    let cells = unsafe { slice::from_raw_parts(cells, n_a + n_b + n_c) };
    let (register, accumulator) = (tile.kind().register(), tile.kind().accumulator());
    // SAFETY: the caller's cells are of these types.
    let read =
        |cells: &[*mut u8], scalar| cells.iter().map(|cells| unsafe { read(*cells, scalar) }).collect::<Vec<_>>();
    let (a, b) = (read(&cells[..n_a], register), read(&cells[n_a..n_a + n_b], register));
    let mut c = read(&cells[n_a + n_b..], accumulator);
    tile.multiply(&a, &b, &mut c, compute);
    for (values, &cells) in c.iter().zip(&cells[n_a + n_b..]) {
        // SAFETY: the caller's cells are of this type.
        unsafe { write(cells, accumulator, values) };
    }
}

/// The values of 32 cells, as bits.
///
/// # Safety
///
/// There are 32 values of 4 or 8 bytes at the address.
unsafe fn read(cells: *const u8, scalar: Scalar) -> [u64; LANES] {
    if scalar.size_bytes() == 8 {
        // SAFETY: the caller says so.
        return unsafe { cells.cast::<[u64; LANES]>().read_unaligned() };
    }
    // SAFETY: the caller says so.
    unsafe { cells.cast::<[u32; LANES]>().read_unaligned() }.map(u64::from)
}

/// Stores the values of 32 cells.
///
/// # Safety
///
/// There is room for 32 values of 4 or 8 bytes at the address.
unsafe fn write(cells: *mut u8, scalar: Scalar, values: &[u64; LANES]) {
    if scalar.size_bytes() == 8 {
        // SAFETY: the caller says so.
        unsafe { cells.cast::<[u64; LANES]>().write_unaligned(*values) };
        return;
    }
    // SAFETY: the caller says so.
    unsafe { cells.cast::<[u32; LANES]>().write_unaligned(values.map(|value| value as u32)) };
}

/// The product of matrices, compiled for this machine's vectors.
fn compute(tile: MatrixTile, a: &[u64], b: &[u64], c: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn of_vectors(tile: MatrixTile, a: &[u64], b: &[u64], c: &mut [u64]) {
            product(tile, a, b, c);
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the machine has these features.
            return unsafe { of_vectors(tile, a, b, c) };
        }
    }
    product(tile, a, b, c);
}
