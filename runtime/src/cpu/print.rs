//! What kernels print: collected while a launch runs, written to the process's standard output when it ends.
//!
//! C's `snprintf` makes a conversion's text, so that it is what the GPU's driver makes. A call's text is added as a whole:
//! no other thread's comes between.
#![expect(unsafe_code, reason = "compiled code passes pointers, and C's library formats")]

use std::{
    ffi::{c_char, c_int},
    io::Write,
    ptr, slice,
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use weft_artifact::{FormatPart, format_parts};

/// Text that waits is written when it is so long.
const ENOUGH: usize = 1 << 16;
/// A conversion's text that needs no memory of its own.
const USUAL: usize = 512;

static WAITING: Mutex<Vec<u8>> = Mutex::new(Vec::new());
/// There is text that waits.
static SOME: AtomicBool = AtomicBool::new(false);

unsafe extern "C" {
    fn snprintf(to: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
}

/// Called by compiled code: `len` bytes of a format, and a word for each of its conversions.
pub(super) extern "C" fn print(format: *const u8, len: u64, args: *const u64) {
    // SAFETY: the code passes a constant of so many bytes.
    let format = unsafe { slice::from_raw_parts(format, len as usize) };
    let mut text = Vec::with_capacity(format.len() + 32);
    let mut next = args;
    for part in format_parts(format) {
        match part {
            FormatPart::Text(bytes) => text.extend_from_slice(bytes),
            FormatPart::Percent => text.push(b'%'),
            FormatPart::Conversion(conversion) => {
                // SAFETY: the verifier counted the words, which the code has stored.
                let word = unsafe { *next };
                next = next.wrapping_add(1);
                convert(conversion, word, &mut text);
            }
        }
    }
    let mut waiting = WAITING.lock().unwrap_or_else(PoisonError::into_inner);
    waiting.extend_from_slice(&text);
    SOME.store(true, Ordering::Relaxed);
    if waiting.len() > ENOUGH {
        write(&mut waiting);
    }
}

/// Writes what waits.
pub(super) fn flush() {
    if SOME.load(Ordering::Relaxed) {
        write(&mut WAITING.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

fn write(waiting: &mut Vec<u8>) {
    let mut out = std::io::stdout().lock();
    // Where nobody reads, nothing is to be done: no kernel is wrong because of that.
    let _: std::io::Result<()> = out.write_all(waiting).and_then(|()| out.flush());
    waiting.clear();
    SOME.store(false, Ordering::Relaxed);
}

/// Adds the text of an argument.
fn convert(conversion: &[u8], word: u64, text: &mut Vec<u8>) {
    let mut format = conversion.to_vec();
    format.push(0);
    let format = format.as_ptr().cast::<c_char>();
    let number = f64::from_bits(word);
    // A NaN has no sign here.
    let number = if number.is_nan() { f64::NAN } else { number };
    let letter = conversion.last().copied().unwrap_or_default();
    let into = |to: *mut c_char, size: usize| match letter {
        b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => {
            // SAFETY: `to` has room for `size` bytes, and the conversion takes one `double`.
            unsafe { snprintf(to, size, format, number) }
        }
        b's' => {
            let letters = ptr::with_exposed_provenance::<c_char>(word as usize);
            // SAFETY: as above, and the argument is the address of bytes that end with a zero.
            unsafe { snprintf(to, size, format, letters) }
        }
        b'c' => {
            // SAFETY: as above, and the conversion takes one `int`.
            unsafe { snprintf(to, size, format, word as c_int) }
        }
        _ => {
            // SAFETY: as above, and the conversion takes one `long long`.
            unsafe { snprintf(to, size, format, word) }
        }
    };
    let mut usual = [0_u8; USUAL];
    let len = usize::try_from(into(usual.as_mut_ptr().cast(), USUAL)).unwrap_or(0);
    if len < USUAL {
        text.extend_from_slice(&usual[..len]);
        return;
    }
    let mut long = vec![0_u8; len + 1];
    into(long.as_mut_ptr().cast(), len + 1);
    text.extend_from_slice(&long[..len]);
}

#[cfg(test)]
mod tests {
    use super::convert;

    fn text(conversion: &str, word: u64) -> String {
        let mut text = Vec::new();
        convert(conversion.as_bytes(), word, &mut text);
        String::from_utf8(text).expect("ASCII")
    }

    #[test]
    fn numbers_are_as_in_c() {
        assert_eq!(text("%lld", (-7_i64).cast_unsigned()), "-7");
        assert_eq!(text("%05llu", 42), "00042");
        assert_eq!(text("%f", 34.75_f64.to_bits()), "34.750000");
        assert_eq!(text("%f", (-f64::NAN).to_bits()), "nan");
        assert_eq!(text("%c", 0), "\0");
        assert_eq!(text("%f", 1e300_f64.to_bits()).len(), 308);
        assert_eq!(text("%600lld", 1).len(), 600);
    }

    #[test]
    fn texts_end_with_a_zero() {
        let bytes = b"abc\0";
        assert_eq!(text("%5s", bytes.as_ptr().expose_provenance() as u64), "  abc");
    }
}
