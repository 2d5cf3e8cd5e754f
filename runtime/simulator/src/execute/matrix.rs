//! Products of matrices on tensor cores, and loads of their operands. All lanes of the warp execute them together.

use weft_artifact::matrix_product;

use super::{Context, access, convert, lanes::set, warp::Frame};
use crate::{
    count::{self, NO_REGION},
    decode::{LoadMatrix, Multiply},
    error::Error,
    parse::Space,
};

/// The bytes of a row of a matrix that [`load`] loads, and the number of its rows.
const ROW: u32 = 16;
const ROWS: usize = 8;

/// Fails if not all lanes of the warp are active.
pub(super) fn check(mask: u32) -> Result<(), Error> {
    if mask == u32::MAX {
        return Ok(());
    }
    Err(Error::in_lane(mask.leading_ones(), "not all lanes of the warp execute an instruction for matrices"))
}

/// `mma.sync`
pub(super) fn multiply(frame: &mut Frame, multiply: &Multiply, mask: u32) -> Result<(), Error> {
    check(mask)?;
    let read = |registers: &[u32]| -> Vec<_> {
        registers.iter().map(|register| convert::read(frame, (multiply.bank, *register))).collect()
    };
    let (a, b, mut c) = (read(&multiply.a), read(&multiply.b), read(&multiply.c));
    multiply.tile.multiply(&a, &b, &mut c, |tile, a, b, c| matrix_product(multiply.rules, tile, a, b, c));
    for (register, values) in multiply.d.iter().zip(&c) {
        convert::write(frame, (multiply.bank, *register), mask, values);
    }
    Ok(())
}

/// `ldmatrix`
pub(super) fn load(context: &mut Context, frame: &mut Frame, load: &LoadMatrix, mask: u32) -> Result<(), Error> {
    check(mask)?;
    let addresses = access::addresses(frame, load.address);
    // The addresses of the other lanes are not used.
    let used = u32::MAX >> (32 - ROWS * load.d.len());
    access::check_alignment(&addresses, used, ROW)?;
    for (matrix, register) in load.d.iter().enumerate() {
        let mut elements = [[0_u16; ROWS]; ROWS];
        for (row, elements) in elements.iter_mut().enumerate() {
            let lane = ROWS * matrix + row;
            let bytes = context.private(Space::Shared, lane, addresses[lane], ROW)?;
            for (element, bytes) in elements.iter_mut().zip(bytes.as_chunks::<2>().0) {
                *element = u16::from_le_bytes(*bytes);
            }
        }
        let values = std::array::from_fn(|lane| {
            let (line, at) = (lane / 4, lane % 4 * 2);
            let [low, high] = if load.transposed {
                [elements[at][line], elements[at + 1][line]]
            } else {
                [elements[line][at], elements[line][at + 1]]
            };
            u32::from(low) | u32::from(high) << 16
        });
        set(&mut frame.words, *register, mask, &values);
    }
    let lanes = count::Lanes::new(&addresses, used, ROW);
    context.record(Space::Shared, NO_REGION, lanes);
    context.count(Space::Shared, NO_REGION, count::matrices(lanes));
    Ok(())
}
