//! Functions that compiled code calls to print.
#![expect(unsafe_code, reason = "compiled code passes pointers")]

use std::slice;

use super::invalid_access;
use crate::print;

/// Called by compiled code: `len` bytes of a format, and a word for each of its conversions.
pub(super) extern "C" fn print(format: *const u8, len: u64, args: *const u64) {
    // SAFETY: the code passes a constant of this many bytes.
    let format = unsafe { slice::from_raw_parts(format, len as usize) };
    // Allocates, locks and calls C: not to be left in the middle.
    invalid_access::outside(|| print::add(format, args));
}
