//! Products of matrices of a warp: between the cells of its lanes, which compiled code passes, and whole matrices.
#![expect(unsafe_code, reason = "compiled code passes addresses")]

use std::{cell::RefCell, slice};

use weft_artifact::{
    HostContext, MatrixPart, MatrixProduct, MatrixRules, MatrixTile, Scalar, SharedMatrix, matrix_product as product,
};

use super::checks::Checking;

/// Lanes of a warp.
const LANES: usize = 32;

/// See [`multiply`](weft_artifact::HostContext::multiply).
///
/// # Safety
///
/// The context is that of the running code, the code that of a tile, there is an address for each word and accumulator, and each is that of 32 values of the
/// type of the word or the accumulator, which no other thread accesses meanwhile. The matrices of a warpgroup that are in
/// shared memory are those of its layouts, and no thread writes them meanwhile.
pub(super) unsafe extern "C" fn multiply(context: *const HostContext, code: u64, site: u32, cells: *const *mut u8) {
    let Some(tile) = MatrixTile::of_code(code) else { return };
    if tile.is_of_warpgroup() {
        // SAFETY: the code passes its context.
        let checked = unsafe { Checking::of(context) };
        // SAFETY: the caller says so.
        return unsafe { multiply_shared(tile, cells, (checked, site)) };
    }
    let (n_a, n_b, n_c) = (tile.registers(MatrixPart::A), tile.registers(MatrixPart::B), tile.values());
    // SAFETY: the caller passes this number of addresses.
    let cells = unsafe { slice::from_raw_parts(cells, n_a + n_b + n_c) };
    let (register, accumulator) = (tile.kind().register(), tile.kind().accumulator());
    // SAFETY: the caller's cells are of these types.
    let read =
        |cells: &[*mut u8], scalar| cells.iter().map(|cells| unsafe { read(*cells, scalar) }).collect::<Vec<_>>();
    let (a, b) = (read(&cells[..n_a], register), read(&cells[n_a..n_a + n_b], register));
    let mut c = read(&cells[n_a + n_b..], accumulator);
    // SAFETY: the context of running code has the configuration of its launch.
    let rules = MatrixRules::of(unsafe { (*(*context).config).compute_capability() });
    tile.multiply(&a, &b, &mut c, |tile, a, b, c| compute(rules, tile, a, b, c));
    for (values, &cells) in c.iter().zip(&cells[n_a + n_b..]) {
        // SAFETY: the caller's cells are of this type.
        unsafe { write(cells, accumulator, values) };
    }
}

/// One warp's rows of the product of a warpgroup.
///
/// # Safety
///
/// As for [`multiply`].
unsafe fn multiply_shared(tile: MatrixTile, mut cells: *const *mut u8, (mut checked, site): (Checking, u32)) {
    let mut next = || {
        // SAFETY: the caller passes the words that the layouts require.
        let cell = unsafe { *cells };
        // SAFETY: as above.
        cells = unsafe { cells.add(1) };
        cell
    };
    let [a, b] = [next(), next()].map(|code| SharedMatrix::of_code(code.addr() as u64));
    let (of_warp, kind) = (tile.of_warp(), tile.kind());
    let mut registers = Vec::new();
    let mut shared = Vec::new();
    for (part, layout) in (MatrixProduct { tile, a, b, in_flight: false }).operands() {
        if let Some(layout) = layout {
            // SAFETY: the first values of two cells of 64 bits.
            let [address, column] = [next(), next()].map(|cell| unsafe { cell.cast::<u64>().read_unaligned() });
            shared.push((part, layout, address, column as u32));
        } else {
            for _ in 0..tile.registers(part) {
                // SAFETY: the caller's cells are of this type.
                registers.push(unsafe { read(next(), kind.register()) });
            }
        }
    }
    // SAFETY: a cell of 64 bits.
    let warp = unsafe { next().cast::<u64>().read_unaligned() } as usize;
    let accumulators: Vec<*mut u8> = (0..tile.values()).map(|_| next()).collect();
    let is_checked = checked.is_on();
    let reads = RefCell::new(Vec::new());
    let mut matrices = [of_warp.matrix(MatrixPart::A, &registers), Vec::new()];
    for (part, layout, address, column) in shared {
        let size = kind.element(part).size_bytes() as u32;
        matrices[usize::from(part == MatrixPart::B)] = layout.elements(tile, part, warp, column, |row, column| {
            let at = (address as usize + layout.offset(size, (row, column)) as usize) as *const u8;
            if is_checked {
                reads.borrow_mut().push((at.addr() as u64, size.into()));
            }
            // SAFETY: the caller says that the matrix is there.
            unsafe { element(at, size) }
        });
    }
    checked.tell(|launch, caller| launch.product_reads(caller, site, &reads.borrow()));
    // SAFETY: the caller's cells are of this type.
    let mut c: Vec<_> = accumulators.iter().map(|&cells| unsafe { read(cells, kind.accumulator()) }).collect();
    // Only 9.0 has such products.
    let rules = MatrixRules::Cc9;
    tile.multiply_matrices(&matrices[0], &matrices[1], &mut c, |tile, a, b, c| compute(rules, tile, a, b, c));
    for (values, &cells) in c.iter().zip(&accumulators) {
        // SAFETY: the caller's cells are of this type.
        unsafe { write(cells, kind.accumulator(), values) };
    }
}

/// The bits of an element of 1, 2 or 4 bytes.
///
/// # Safety
///
/// It is at the address.
unsafe fn element(at: *const u8, size: u32) -> u64 {
    // SAFETY: the caller says so.
    unsafe {
        match size {
            1 => at.read().into(),
            2 => at.cast::<u16>().read_unaligned().into(),
            _ => at.cast::<u32>().read_unaligned().into(),
        }
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
fn compute(rules: MatrixRules, tile: MatrixTile, a: &[u64], b: &[u64], c: &mut [u64]) {
    #[cfg(target_arch = "x86_64")]
    {
        #[target_feature(enable = "avx2,fma")]
        fn of_vectors(rules: MatrixRules, tile: MatrixTile, a: &[u64], b: &[u64], c: &mut [u64]) {
            product(rules, tile, a, b, c);
        }
        if std::arch::is_x86_feature_detected!("avx2") && std::arch::is_x86_feature_detected!("fma") {
            // SAFETY: the machine has these features.
            return unsafe { of_vectors(rules, tile, a, b, c) };
        }
    }
    product(rules, tile, a, b, c);
}
