//! Loads objects into this process. LLVM's LLJIT is only used as a linker.
//!
//! Symbols that an object does not define (`memcpy`, `memset`) are resolved in the process.

#![expect(unsafe_code, reason = "LLVM's ORC interface, which inkwell has not")]

use std::{
    ffi::{CStr, CString, c_char, c_int},
    ptr,
    sync::atomic::{AtomicBool, Ordering},
};

use inkwell::llvm_sys::{
    core::LLVMCreateMemoryBufferWithMemoryRangeCopy,
    error::{LLVMConsumeError, LLVMDisposeErrorMessage, LLVMErrorRef, LLVMGetErrorMessage},
    orc2::{
        LLVMOrcJITDylibRef,
        lljit::{LLVMOrcCreateLLJIT, LLVMOrcDisposeLLJIT, LLVMOrcLLJITGetMainJITDylib, LLVMOrcLLJITRef},
    },
    prelude::LLVMMemoryBufferRef,
};

use crate::backend::llvm::shim;

unsafe extern "C" {
    fn weft_shim_jit_add(
        jit: LLVMOrcLLJITRef,
        library: LLVMOrcJITDylibRef,
        object: LLVMMemoryBufferRef,
        error: *mut LLVMErrorRef,
    ) -> c_int;
    fn weft_shim_jit_find(
        jit: LLVMOrcLLJITRef,
        address: *mut u64,
        name: *const c_char,
        error: *mut LLVMErrorRef,
    ) -> c_int;
}

/// A loaded object. Its code is unloaded when this is dropped.
#[derive(Debug)]
pub struct HostModule {
    jit: LLVMOrcLLJITRef,
    /// LLVM had a fatal error. Its objects are in an unknown state and are never freed.
    broken: AtomicBool,
}

// SAFETY: an LLJIT is not bound to the thread that created it, and its session locks its own state.
unsafe impl Send for HostModule {}
// SAFETY: `&HostModule` only looks up symbols, under the session's lock.
unsafe impl Sync for HostModule {}

/// Loads a relocatable object for this machine.
///
/// # Errors
///
/// LLVM's message, if it cannot load the object.
pub fn load(object: &[u8]) -> Result<HostModule, String> {
    shim::initialize();
    // LLVM's object reader does not validate its input, so data without the magic number does not reach it.
    if !object.starts_with(b"\x7fELF") {
        return Err("the code is no ELF object".to_owned());
    }
    let mut jit = ptr::null_mut();
    // SAFETY: without a builder LLVM creates an LLJIT for this machine, and writes it if there is no error.
    check(unsafe { LLVMOrcCreateLLJIT(&raw mut jit, ptr::null_mut()) })?;
    let module = HostModule { jit, broken: AtomicBool::new(false) };
    // SAFETY: the range is alive during the call, which copies it.
    let buffer =
        unsafe { LLVMCreateMemoryBufferWithMemoryRangeCopy(object.as_ptr().cast(), object.len(), c"kernel".as_ptr()) };
    // SAFETY: the LLJIT is alive.
    let library = unsafe { LLVMOrcLLJITGetMainJITDylib(jit) };
    let mut error = ptr::null_mut();
    // SAFETY: LLJIT and library are alive; the call takes ownership of the buffer.
    let fatal = unsafe { weft_shim_jit_add(jit, library, buffer, &raw mut error) };
    module.outcome(fatal, error)?;
    Ok(module)
}

impl HostModule {
    /// The address of a symbol. The first lookup links the object.
    pub fn symbol(&self, name: &str) -> Option<usize> {
        self.find(name).ok()
    }

    /// Like [`HostModule::symbol`], with LLVM's message on failure.
    ///
    /// # Errors
    ///
    /// LLVM's message, if the object has no such symbol or does not link.
    pub fn find(&self, name: &str) -> Result<usize, String> {
        let symbol = CString::new(name).map_err(|_| format!("a NUL in the symbol {name:?}"))?;
        if self.broken.load(Ordering::Acquire) {
            return Err("LLVM failed on this object before".to_owned());
        }
        let (mut address, mut error) = (0, ptr::null_mut());
        // SAFETY: the LLJIT is alive; the address is written if there is no error.
        let fatal = unsafe { weft_shim_jit_find(self.jit, &raw mut address, symbol.as_ptr(), &raw mut error) };
        self.outcome(fatal, error)?;
        usize::try_from(address).map_err(|_| format!("the address of {name} does not fit into a `usize`"))
    }

    fn outcome(&self, fatal: c_int, error: LLVMErrorRef) -> Result<(), String> {
        if fatal != 0 {
            self.broken.store(true, Ordering::Release);
        }
        shim::outcome("LLVM's loader", fatal).map_err(|error| error.to_string())?;
        check(error)
    }
}

impl Drop for HostModule {
    fn drop(&mut self) {
        if *self.broken.get_mut() {
            return;
        }
        // SAFETY: the LLJIT is alive and is not used after this; no thread runs its code any more.
        let error = unsafe { LLVMOrcDisposeLLJIT(self.jit) };
        if !error.is_null() {
            // SAFETY: the error is consumed once.
            unsafe { LLVMConsumeError(error) };
        }
    }
}

/// Consumes an LLVM error and returns its message.
fn check(error: LLVMErrorRef) -> Result<(), String> {
    if error.is_null() {
        return Ok(());
    }
    // SAFETY: the error is not null, and is consumed by this call.
    let text = unsafe { LLVMGetErrorMessage(error) };
    // SAFETY: the message ends with a NUL and is alive until its disposal.
    let owned = unsafe { CStr::from_ptr(text) }.to_string_lossy().into_owned();
    // SAFETY: the message came from LLVMGetErrorMessage and is not used after this.
    unsafe { LLVMDisposeErrorMessage(text) };
    Err(owned)
}

#[cfg(test)]
mod tests {
    use super::load;

    #[test]
    fn what_is_no_object_is_refused() {
        assert!(load(b"").is_err());
        assert!(load(b"neither is this").is_err());
        let header = load(b"\x7fELF and then nothing that makes sense, for quite some length of bytes");
        assert!(header.and_then(|module| module.find("kernel")).is_err());
    }
}
