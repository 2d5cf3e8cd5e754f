//! The ring buffer in host memory that kernels print into ([`PrintRing`]). Testing it for output makes no driver call.
//!
//! Each device has one ring, created with its first module that prints, so that output keeps the order of the kernels'
//! calls. It is read where the host waits, before a launch, and after a fault that ends the context, so output before
//! the fault is not lost.
#![expect(unsafe_code, reason = "calls into the CUDA driver, and memory that kernels write")]

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::{
        Mutex, PoisonError,
        atomic::{Ordering, fence},
    },
};

use cudarc::driver::sys::{self, CUlimit_enum as Limit};
use weft_artifact::{FormatPart, PrintRing, format_parts};

use super::{
    context::Context,
    driver::{self, Driver, Handle},
};
use crate::{error::Error, print};

/// [`PrintRing::SYMBOL`].
const SYMBOL: &CStr = c"weft$print_page";
/// The flags `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
const FLAGS: u32 = 3;
/// The default size of the driver's own buffer.
const USUAL: usize = 1 << 20;
/// A ring's size as a multiple of the driver's buffer. It is larger because its records contain their formats.
const TIMES: usize = 4;
/// The maximum size of a ring, whatever size a program requests.
const MOST: usize = 1 << 30;

/// The print ring of a device's kernels.
#[derive(Debug)]
pub(super) struct Ring {
    /// The header words and the ring, in host memory.
    words: Handle<u64>,
    /// The address of the same memory for kernels.
    address: sys::CUdeviceptr,
    /// Two words in device memory.
    head: sys::CUdeviceptr,
    /// The size of the ring in words, a power of two.
    room: usize,
    reader: Mutex<Reader>,
}

/// The state of reading the ring.
#[derive(Debug, Default)]
struct Reader {
    /// The number of words read since the beginning.
    read: usize,
    /// The number of reported calls whose output did not fit.
    lost: u64,
    /// Whether the ring contains something other than a record. Nothing more can be read then.
    is_broken: bool,
}

impl Ring {
    /// Allocates a ring. The context must be current.
    fn new(driver: &Driver) -> Result<Self, Error> {
        let mut size = 0;
        // SAFETY: it writes one size.
        let known = unsafe { driver.cuCtxGetLimit(&raw mut size, Limit::CU_LIMIT_PRINTF_FIFO_SIZE as u32) };
        let size = if known.is_ok() { size.max(USUAL) } else { USUAL };
        let bytes = size.saturating_mul(TIMES).min(MOST).next_power_of_two();
        let room = bytes / size_of::<u64>();
        let all = bytes + PrintRing::FIRST * size_of::<u64>();
        let mut words = ptr::null_mut();
        // SAFETY: it writes one pointer.
        unsafe { driver.cuMemHostAlloc(&raw mut words, all, FLAGS) }?;
        // SAFETY: the memory was just allocated with this many bytes.
        unsafe { ptr::write_bytes(words.cast::<u8>(), 0, all) };
        let mut this =
            Self { words: Handle(words.cast()), address: 0, head: 0, room, reader: Mutex::new(Reader::default()) };
        match this.set_up(driver) {
            Ok(()) => Ok(this),
            Err(error) => {
                this.free(driver);
                Err(error)
            }
        }
    }

    fn set_up(&mut self, driver: &Driver) -> Result<(), Error> {
        // SAFETY: it writes one address; the memory is the host's, and mapped.
        unsafe { driver.cuMemHostGetDevicePointer(&raw mut self.address, self.words.0.cast(), 0) }?;
        let none = [0_u64; 2];
        // SAFETY: it writes one address.
        unsafe { driver.cuMemAlloc(&raw mut self.head, size_of_val(&none)) }?;
        // SAFETY: the destination has this many bytes.
        unsafe { driver.cuMemcpyHtoD(self.head, (&raw const none).cast::<c_void>(), size_of_val(&none)) }?;
        self.set(PrintRing::HEAD, self.head);
        self.set(PrintRing::ROOM, (self.room * size_of::<u64>()) as u64);
        Ok(())
    }

    /// Frees the memory. The context must be current, and no kernel may print any more.
    pub(super) fn free(&self, driver: &Driver) {
        // SAFETY: the memory is ours.
        let _: Result<(), Error> = unsafe { driver.cuMemFreeHost(self.words.0.cast()) };
        if self.head != 0 {
            // SAFETY: as above.
            let _: Result<(), Error> = unsafe { driver.cuMemFree(self.head) };
        }
    }

    fn get(&self, word: usize) -> u64 {
        // SAFETY: the word is in the header or the ring; a kernel may write it concurrently.
        unsafe { self.words.0.wrapping_add(word).read_volatile() }
    }

    fn set(&self, word: usize, value: u64) {
        // SAFETY: as above; only the host writes it now.
        unsafe { self.words.0.wrapping_add(word).write_volatile(value) };
    }

    /// The position in the ring of a word that is numbered from the beginning of the output.
    fn location(&self, word: usize) -> usize {
        PrintRing::FIRST + (word & (self.room - 1))
    }

    /// Appends all records in the ring to the pending output.
    fn read(&self) {
        let mut reader = self.reader.lock().unwrap_or_else(PoisonError::into_inner);
        while !reader.is_broken {
            let bytes = self.get(self.location(reader.read)) as usize;
            if bytes == 0 {
                break;
            }
            // The rest of the record was written before its first word.
            fence(Ordering::Acquire);
            let count = bytes / size_of::<u64>();
            let record: Vec<u64> =
                (0..count.min(self.room)).map(|i| self.get(self.location(reader.read + i))).collect();
            if !bytes.is_multiple_of(size_of::<u64>()) || count > self.room || add(&record).is_none() {
                reader.is_broken = true;
                print::put(
                    b"[weft: output of kernels is lost from here on: a kernel has overwritten the print buffer]\n",
                );
                break;
            }
            for i in 0..count {
                self.set(self.location(reader.read + i), 0);
            }
            reader.read += count;
            // The record's words must be cleared before its space is released.
            fence(Ordering::Release);
            self.set(PrintRing::READ, (reader.read * size_of::<u64>()) as u64);
        }
        let lost = self.get(PrintRing::LOST);
        if lost > reader.lost {
            let more = lost - reader.lost;
            reader.lost = lost;
            let mib = (self.room * size_of::<u64>()) >> 20;
            let text = format!(
                "[weft: about {more} calls of print were lost: the print buffer of {mib} MiB was full; synchronize \
                 more often, or print less]\n"
            );
            print::put(text.as_bytes());
        }
    }

    /// Whether there are records to read.
    fn has_some(&self) -> bool {
        // A thread that holds the lock is reading the ring.
        let Ok(reader) = self.reader.try_lock() else { return true };
        !reader.is_broken && self.get(self.location(reader.read)) != 0 || self.get(PrintRing::LOST) > reader.lost
    }
}

/// Appends a record's text to the pending output; `None` if it is not a record.
fn add(record: &[u64]) -> Option<()> {
    let &[_, counts, ..] = record else { return None };
    let (n_format, n_args) = ((counts as u32) as usize, (counts >> PrintRing::COUNT_SHIFT) as usize);
    let mut rest = record.get(PrintRing::BEFORE_FORMAT..)?;
    let format = bytes(&mut rest, n_format)?;
    let (mut words, mut rest) = (rest.get(..n_args)?.to_vec(), rest.get(n_args..)?);
    let mut next = words.iter_mut();
    // The strings, each followed by a zero.
    let mut strings = Vec::new();
    for part in format_parts(&format) {
        match part {
            FormatPart::Text(_) | FormatPart::Percent => continue,
            FormatPart::Conversion(_) => {}
        }
        let word = next.nth(part.words().checked_sub(1)?)?;
        match part.letter()? {
            b's' => {
                let mut text = bytes(&mut rest, usize::try_from(*word).ok()?)?;
                text.push(0);
                *word = text.as_ptr().expose_provenance() as u64;
                strings.push(text);
            }
            b'd' | b'i' | b'u' | b'x' | b'X' | b'o' | b'c' | b'e' | b'E' | b'f' | b'F' | b'g' | b'G' => {}
            _ => return None,
        }
    }
    if next.next().is_some() || !rest.is_empty() {
        return None;
    }
    print::add(&format, words.as_ptr());
    Some(())
}

/// Takes the first `len` bytes from a slice of words. Strings are padded to whole words.
fn bytes(words: &mut &[u64], len: usize) -> Option<Vec<u8>> {
    let (now, later) = words.split_at_checked(len.div_ceil(size_of::<u64>()))?;
    *words = later;
    let mut bytes: Vec<u8> = now.iter().flat_map(|word| word.to_le_bytes()).collect();
    bytes.truncate(len);
    Some(bytes)
}

impl Context {
    /// Sets the address of the ring for a module's kernels. The context must be current.
    pub(super) fn set_print_page(&self, module: sys::CUmodule) -> Result<(), Error> {
        let (mut page, mut bytes) = (0, 0);
        // SAFETY: it writes an address and a size; the module is live and the name ends with a NUL.
        unsafe { self.driver.cuModuleGetGlobal(&raw mut page, &raw mut bytes, module, SYMBOL.as_ptr()) }?;
        let address = self.ring()?.address;
        // SAFETY: the module's word has eight bytes.
        unsafe { self.driver.cuMemcpyHtoD(page, (&raw const address).cast::<c_void>(), size_of_val(&address)) }
    }

    /// The device's ring, created on first use.
    fn ring(&self) -> Result<&Ring, Error> {
        let _making = self.makes_ring.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(ring) = self.ring.get() {
            return Ok(ring);
        }
        let made = Ring::new(self.driver)?;
        Ok(self.ring.get_or_init(|| made))
    }

    /// Writes the kernels' output, if there is any.
    #[inline]
    pub(super) fn poll_prints(&self) {
        // The ring's memory does not exist in a forked process.
        if let Some(ring) = self.ring.get()
            && !driver::is_forked()
            && ring.has_some()
        {
            write(ring);
        }
    }

    /// Called after waiting for kernels: writes their output, and returns the error of a fault once.
    pub(super) fn look(&self) -> Result<(), Error> {
        self.poll_prints();
        self.check_faults()
    }
}

#[cold]
fn write(ring: &Ring) {
    ring.read();
    print::flush();
}

#[cfg(test)]
mod tests {
    use super::add;

    /// A record of a format, arguments and strings, with the layout of `print.ll`.
    fn record(format: &str, args: &[u64], strings: &[&str]) -> Vec<u64> {
        let words = |text: &str| {
            text.as_bytes()
                .chunks(8)
                .map(|part| {
                    let mut word = [0; 8];
                    word[..part.len()].copy_from_slice(part);
                    u64::from_le_bytes(word)
                })
                .collect::<Vec<_>>()
        };
        let mut record = vec![0, (args.len() as u64) << 32 | format.len() as u64];
        record.extend(words(format));
        record.extend(args);
        record.extend(strings.iter().flat_map(|text| words(text)));
        record[0] = record.len() as u64 * 8;
        record
    }

    #[test]
    fn what_is_no_record_is_refused() {
        let good = record("%s is %0*lld\n", &[11, 5, 7], &["hello world"]);
        assert!(add(&good).is_some());
        assert!(add(&good[..good.len() - 1]).is_none());
        assert!(add(&record("%n", &[7], &[])).is_none());
        assert!(add(&record("%lld", &[], &[])).is_none());
        assert!(add(&record("%lld", &[1, 2], &[])).is_none());
        assert!(add(&record("%s", &[u64::MAX], &["a"])).is_none());
        assert!(add(&[8]).is_none());
    }
}
