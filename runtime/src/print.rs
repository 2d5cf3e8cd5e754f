//! Kernels' output: collected while a launch runs on the CPU, or read from a GPU's
//! [`PrintRing`](weft_artifact::PrintRing), and written when a launch or a wait ends, or when its caller polls: to the
//! program's output ([`set_output`]), or else to the process's standard output.
//!
//! C's `snprintf` formats a conversion, so the text equals that of a GPU's driver. A call's text is added as a whole:
//! output of other threads does not interleave with it.
//!
//! A lock is held while text is written to the standard output, which takes as long as the reader blocks it. So a
//! forked process has locks of its own, and pending text of its own: the parent writes the output of its own kernels.
//! The child does not lock the standard library's output either, which its parent may have held.
#![expect(unsafe_code, reason = "compiled code passes pointers, and C's library formats and writes")]

use std::{
    ffi::{c_char, c_int, c_void},
    io, mem, process, ptr, slice,
    sync::{
        Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicBool, AtomicPtr, Ordering},
    },
};

use weft_artifact::{FormatPart, format_parts};

/// Text that waits is written when it is so long.
const ENOUGH: usize = 1 << 16;
/// A conversion's text that needs no memory of its own.
const USUAL: usize = 512;
/// The file that it is in every process.
const STANDARD_OUTPUT: c_int = 1;

/// Takes what kernels have printed, on the thread that has launched one or waits for some. `false`: it is to be written to the process's
/// standard output.
pub type Output = fn(&[u8]) -> bool;

/// Where text goes first.
static OUTPUT: OnceLock<Output> = OnceLock::new();
/// There is text that waits.
static SOME: AtomicBool = AtomicBool::new(false);
/// From `Box::into_raw`, or null before the first text.
static PRINTER: AtomicPtr<Printer> = AtomicPtr::new(ptr::null_mut());

/// The pending output of one process.
struct Printer {
    process: u32,
    waiting: Mutex<Vec<u8>>,
    /// Held by the thread that writes to the standard output, and locked before the other one.
    writing: Mutex<()>,
}

impl Printer {
    /// The printer of this process. A printer of the parent process is leaked: a thread that does not exist here may
    /// hold its locks.
    fn of_process() -> &'static Self {
        let process = process::id();
        let mut known = PRINTER.load(Ordering::Acquire);
        loop {
            // SAFETY: it is null, or from `Box::into_raw` and never freed.
            if let Some(printer) = unsafe { known.as_ref() }
                && printer.process == process
            {
                return printer;
            }
            let ours = Box::into_raw(Box::new(Self { process, waiting: Mutex::default(), writing: Mutex::default() }));
            match PRINTER.compare_exchange(known, ours, Ordering::AcqRel, Ordering::Acquire) {
                Ok(_) => known = ours,
                Err(other) => {
                    // Another thread of this process was quicker.
                    // SAFETY: it was just made by `into_raw` and no one else has it.
                    drop(unsafe { Box::from_raw(ours) });
                    known = other;
                }
            }
        }
    }

    fn waiting(&self) -> MutexGuard<'_, Vec<u8>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Takes all text that waits.
    fn take(&self) -> Vec<u8> {
        let mut waiting = self.waiting();
        SOME.store(false, Ordering::Relaxed);
        mem::take(&mut *waiting)
    }

    /// Writes all text that waits to the standard output.
    fn write(&self) {
        let _writing = self.writing.lock().unwrap_or_else(PoisonError::into_inner);
        write_all(&self.take());
    }
}

/// Redirects kernels' output. Only the first call has an effect.
pub fn set_output(output: Output) {
    let _known = OUTPUT.set(output);
}

unsafe extern "C" {
    fn snprintf(to: *mut c_char, size: usize, format: *const c_char, ...) -> c_int;
    fn write(file: c_int, bytes: *const c_void, size: usize) -> isize;
}

/// Adds what a call of `print` prints: a format, and the address of a word for each of its conversions. That of a text is its
/// address, and a zero ends it.
pub(crate) fn add(format: &[u8], args: *const u64) {
    let mut text = Vec::with_capacity(format.len() + 32);
    let mut next = args;
    for part in format_parts(format) {
        match part {
            FormatPart::Text(bytes) => text.extend_from_slice(bytes),
            FormatPart::Percent => text.push(b'%'),
            FormatPart::Conversion(conversion) => {
                let count = part.words();
                // SAFETY: the verifier counted the words, which the code has stored, or who read them has.
                let words = unsafe { slice::from_raw_parts(next, count) };
                next = next.wrapping_add(count);
                convert(conversion, words, &mut text);
            }
        }
    }
    put(&text);
}

/// Adds a text.
pub(crate) fn put(text: &[u8]) {
    let printer = Printer::of_process();
    let mut waiting = printer.waiting();
    waiting.extend_from_slice(text);
    SOME.store(true, Ordering::Relaxed);
    // Elsewhere it goes on the thread that has launched, which is not to be waited for here.
    if waiting.len() > ENOUGH && OUTPUT.get().is_none() {
        drop(waiting);
        printer.write();
    }
}

/// Writes the pending output.
pub(crate) fn flush() {
    if !SOME.load(Ordering::Relaxed) {
        return;
    }
    let printer = Printer::of_process();
    let Some(output) = OUTPUT.get() else { return printer.write() };
    // No lock is held meanwhile: it may run Python.
    let text = printer.take();
    if !text.is_empty() && !output(&text) {
        let _writing = printer.writing.lock().unwrap_or_else(PoisonError::into_inner);
        write_all(&text);
    }
}

fn write_all(mut left: &[u8]) {
    while !left.is_empty() {
        // SAFETY: the slice has this many bytes.
        let written = unsafe { write(STANDARD_OUTPUT, left.as_ptr().cast(), left.len()) };
        match usize::try_from(written) {
            Ok(written) => left = left.get(written..).unwrap_or_default(),
            Err(_) if io::Error::last_os_error().kind() == io::ErrorKind::Interrupted => {}
            // A closed output is ignored: it is not a kernel's error.
            Err(_) => break,
        }
    }
}

/// Adds the text of an argument; a width may precede it.
fn convert(conversion: &[u8], words: &[u64], text: &mut Vec<u8>) {
    let [width @ .., word] = words else { return };
    let word = *word;
    let width = width.first().map(u64::to_string).unwrap_or_default();
    let mut format = Vec::with_capacity(conversion.len() + width.len());
    for letter in conversion {
        match letter {
            b'*' => format.extend_from_slice(width.as_bytes()),
            letter => format.push(*letter),
        }
    }
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
        convert(conversion.as_bytes(), &[word], &mut text);
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
        let mut wide = Vec::new();
        convert(b"%0*.1f", &[7, 2.5_f64.to_bits()], &mut wide);
        convert(b"%0*.1f", &[0, 2.5_f64.to_bits()], &mut wide);
        assert_eq!(wide, b"00002.52.5");
    }

    #[test]
    fn texts_end_with_a_zero() {
        let bytes = b"abc\0";
        assert_eq!(text("%5s", bytes.as_ptr().expose_provenance() as u64), "  abc");
    }
}
