//! The record that the first thread with a fault fills, for each launch of a kernel that reports faults.
#![expect(unsafe_code, reason = "compiled code passes pointers")]

use std::{
    ptr, slice,
    sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering},
};

use weft_artifact::{FaultRecord, Faults, HostContext, Raised};

use crate::error::Error;

/// Bits of a function's result: the thread has ended, and its fault is the one that is reported.
const ENDED: u32 = 1;
const REPORTED: u32 = 2;
/// The words that the code passes: the fault's number and all up to the extent.
const PASSED: usize = FaultRecord::N_CALLS - FaultRecord::FAULT;

/// A record in the process's memory.
#[derive(Debug)]
pub(super) struct Record {
    claim: AtomicU32,
    words: [AtomicU64; FaultRecord::LEN],
}

impl Record {
    pub(super) fn new() -> Self {
        Self { claim: AtomicU32::new(0), words: [const { AtomicU64::new(0) }; FaultRecord::LEN] }
    }

    /// The pointer to it for a context.
    pub(super) fn pointer(record: Option<&Self>) -> *const () {
        record.map_or(ptr::null(), |record| ptr::from_ref(record).cast())
    }

    /// The fault that came, after the launch.
    pub(super) fn raised(&self, faults: &Faults) -> Option<Raised> {
        let claimed = self.claim.load(Ordering::Relaxed);
        faults.raised(|word| match word {
            FaultRecord::DONE => claimed.into(),
            word => self.words[word].load(Ordering::Relaxed),
        })
    }

    /// The record of a context.
    ///
    /// # Safety
    ///
    /// The context is that of a launch that runs.
    unsafe fn of<'a>(context: *const HostContext) -> Option<&'a Self> {
        // SAFETY: the caller's promise.
        let record = unsafe { (*context).record };
        // SAFETY: it is null, or made by `pointer` of a record that lives as long as the launch.
        unsafe { record.cast::<Self>().as_ref() }
    }
}

/// An error that is reported at the next wait: the first since the last wait. Without a lock, which a thread could hold
/// when the process is forked.
#[derive(Debug, Default)]
pub(super) struct Pending(AtomicPtr<Error>);

impl Pending {
    pub(super) fn keep(&self, error: Error) {
        let error = Box::into_raw(Box::new(error));
        if self.0.compare_exchange(ptr::null_mut(), error, Ordering::AcqRel, Ordering::Relaxed).is_err() {
            // SAFETY: it was just made by `into_raw` and no one else has it.
            drop(unsafe { Box::from_raw(error) });
        }
    }

    /// Reports it, once.
    pub(super) fn report(&self) -> Result<(), Error> {
        if self.0.load(Ordering::Relaxed).is_null() {
            return Ok(());
        }
        let error = self.0.swap(ptr::null_mut(), Ordering::AcqRel);
        if error.is_null() {
            return Ok(());
        }
        // SAFETY: it is from `into_raw`, and the thread that swaps it out owns it.
        Err(*unsafe { Box::from_raw(error) })
    }
}

impl Drop for Pending {
    fn drop(&mut self) {
        let _unreported: Result<(), Error> = self.report();
    }
}

/// Whether a thread of the launch has ended with an exception.
///
/// # Safety
///
/// The context is that of a launch that runs.
pub(super) unsafe fn is_raised(context: *const HostContext) -> bool {
    // SAFETY: the caller's promise.
    unsafe { Record::of(context) }.is_some_and(|record| record.claim.load(Ordering::Relaxed) != 0)
}

/// Called by compiled code with the words of a fault; returns the bits of the function's result.
pub(super) extern "C" fn fault(context: *const HostContext, words: *const u64) -> u32 {
    // SAFETY: the code passes the context that it got.
    let Some(record) = (unsafe { Record::of(context) }) else { return ENDED };
    if record.claim.compare_exchange(0, 1, Ordering::Relaxed, Ordering::Relaxed).is_err() {
        return ENDED;
    }
    // SAFETY: the code passes this many words.
    let words = unsafe { slice::from_raw_parts(words, PASSED) };
    // The launching thread reads them after the end of the launch.
    for (place, word) in record.words.iter().skip(FaultRecord::FAULT).zip(words) {
        place.store(*word, Ordering::Relaxed);
    }
    REPORTED
}

/// Called by compiled code where the fault that is reported comes out of a call.
pub(super) extern "C" fn called(context: *const HostContext, place: u32) {
    // SAFETY: the code passes the context that it got.
    let Some(record) = (unsafe { Record::of(context) }) else { return };
    let count = record.words[FaultRecord::N_CALLS].fetch_add(1, Ordering::Relaxed) as usize;
    if let Some(word) = record.words.get(FaultRecord::CALLS + count) {
        word.store(place.into(), Ordering::Relaxed);
    }
}
