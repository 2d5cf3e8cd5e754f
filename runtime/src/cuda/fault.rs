//! The record that the first faulting thread fills, in host memory: checking for a fault takes no driver call.
//!
//! A module that reports faults has a record of its own, and two words in device memory: the claim, which that thread
//! acquires, and the record's address. After a fault is reported the claim is released, so that the next fault is
//! reported, too.
//!
//! The lock of the list is held while records are checked: each fault is reported once, and a module whose record is
//! being read is not unloaded meanwhile.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    ffi::{CStr, c_void},
    ptr,
    sync::{Arc, MutexGuard, PoisonError, atomic::Ordering},
};

use cudarc::driver::sys;
use weft_artifact::{FaultRecord, Faults, Raised};

use super::{
    context::Context,
    driver::{self, Handle},
};
use crate::error::Error;

/// The symbols of the words in device memory. The compiler knows them, too.
const CLAIM: &CStr = c"weft$fault_claim";
const PAGE: &CStr = c"weft$fault_page";
/// `CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP`.
const FLAGS: u32 = 3;
const BYTES: usize = FaultRecord::LEN * 8;

/// A record.
#[derive(Debug)]
pub(super) struct Page {
    words: Handle<u64>,
    claim: sys::CUdeviceptr,
    faults: Arc<Faults>,
    context: Arc<Context>,
}

impl Page {
    /// Gives a module its record. The context is current.
    pub(super) fn new(context: &Arc<Context>, module: sys::CUmodule, faults: Arc<Faults>) -> Result<Arc<Self>, Error> {
        let driver = context.driver;
        let global = |name: &CStr| {
            let (mut address, mut bytes) = (0, 0);
            // SAFETY: it writes an address and a size; the module is live and the name ends with a NUL.
            unsafe { driver.cuModuleGetGlobal(&raw mut address, &raw mut bytes, module, name.as_ptr()) }?;
            Ok::<_, Error>(address)
        };
        let (claim, page) = (global(CLAIM)?, global(PAGE)?);
        let mut words = ptr::null_mut();
        // SAFETY: it writes one pointer.
        unsafe { driver.cuMemHostAlloc(&raw mut words, BYTES, FLAGS) }?;
        let this = Arc::new(Self { words: Handle(words.cast()), claim, faults, context: Arc::clone(context) });
        // SAFETY: the memory was just allocated with this many bytes.
        unsafe { ptr::write_bytes(words.cast::<u8>(), 0, BYTES) };
        let mut address: sys::CUdeviceptr = 0;
        // SAFETY: it writes one address; the memory is the host's, and mapped.
        unsafe { driver.cuMemHostGetDevicePointer(&raw mut address, words, 0) }?;
        // SAFETY: the module's word has eight bytes.
        unsafe { driver.cuMemcpyHtoD(page, (&raw const address).cast::<c_void>(), size_of_val(&address)) }?;
        context.pages().list.push(Arc::clone(&this));
        context.has_pages.store(true, Ordering::Release);
        Ok(this)
    }

    fn word(&self, word: usize) -> u64 {
        // SAFETY: the record has the word; a thread of the GPU may write it meanwhile.
        unsafe { self.words.0.wrapping_add(word).read_volatile() }
    }

    /// The fault that came, if one has.
    fn raised(&self) -> Option<Raised> {
        self.faults.raised(|word| self.word(word))
    }

    /// Takes it. The module is loaded.
    fn take(&self) -> Result<Option<Raised>, Error> {
        let Some(raised) = self.raised() else { return Ok(None) };
        for word in [FaultRecord::DONE, FaultRecord::N_CALLS] {
            // SAFETY: the record has the word, and no thread writes it before the claim is free.
            unsafe { self.words.0.wrapping_add(word).write_volatile(0) };
        }
        let free = 0_u32;
        let _entered = self.context.enter()?;
        // SAFETY: the module's word has four bytes.
        unsafe {
            self.context.driver.cuMemcpyHtoD(self.claim, (&raw const free).cast::<c_void>(), size_of_val(&free))
        }?;
        Ok(Some(raised))
    }
}

impl Drop for Page {
    fn drop(&mut self) {
        if driver::is_forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            // SAFETY: the memory is ours; the module that writes to it is unloaded before.
            let _: Result<(), Error> = unsafe { self.context.driver.cuMemFreeHost(self.words.0.cast()) };
        }
    }
}

/// The records of the modules that are loaded.
#[derive(Debug, Default)]
pub(super) struct Pages {
    list: Vec<Arc<Page>>,
    /// A fault that was not reported before its module was unloaded.
    untold: Option<Raised>,
}

impl Context {
    fn pages(&self) -> MutexGuard<'_, Pages> {
        self.pages.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Whether there may be faults to report.
    pub(super) fn has_pages(&self) -> bool {
        self.has_pages.load(Ordering::Acquire)
    }

    /// Waits for a stream, in the context, and reports the faults of its kernels.
    #[cold]
    pub(super) fn wait_and_check(&self, stream: sys::CUstream) -> Result<(), Error> {
        // SAFETY: the stream is live.
        self.blame(unsafe { self.driver.cuStreamSynchronize(stream) })?;
        self.look()
    }

    /// The error of a fault that a kernel has reported, once; called after a wait.
    pub(super) fn check_faults(&self) -> Result<(), Error> {
        if !self.has_pages() {
            return Ok(());
        }
        let mut pages = self.pages();
        if let Some(raised) = pages.untold.take() {
            return Err(Error::raised(raised));
        }
        for page in &pages.list {
            if let Some(raised) = page.take()? {
                return Err(Error::raised(raised));
            }
        }
        Ok(())
    }

    /// Unloads a module with a record, when its kernels have ended, and saves a fault that was not reported. The
    /// context is current.
    pub(super) fn unload_with(&self, page: &Arc<Page>, unload: impl FnOnce()) {
        // SAFETY: it takes no pointer.
        let _: Result<(), Error> = unsafe { self.driver.cuCtxSynchronize() };
        let mut pages = self.pages();
        pages.list.retain(|listed| !Arc::ptr_eq(listed, page));
        if pages.untold.is_none() {
            pages.untold = page.raised();
        }
        unload();
    }
}
