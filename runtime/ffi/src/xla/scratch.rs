//! Scratch memory of a call: an adjoint kernel that stores values of its loops needs memory whose size is known only after
//! another call has counted it.
//!
//! The argument for the memory is the count: the most bytes of a thread, for each item of a batch. The handler waits for
//! it, allocates that for all threads, and frees it after the launch. XLA orders the reuse of its memory after the
//! launch, as both are in the stream of the call.

use std::{
    ffi::{CStr, c_void},
    mem::size_of,
    ptr,
};

use weft_artifact::Number;

use super::{
    Failure, RESOURCE_EXHAUSTED,
    abi::{AllocateArgs, Api, Buffer, DestroyArgs, Frame, FreeArgs, MessageArgs},
};
use crate::Tensor;

/// The alignment of the memory: the largest that XLA takes.
const ALIGN: usize = 16;

/// The number of elements of a buffer.
fn elements(buffer: &Buffer) -> u64 {
    if buffer.rank <= 0 {
        return 1;
    }
    // SAFETY: a buffer of XLA has as many extents as its rank.
    let dims = unsafe { std::slice::from_raw_parts(buffer.dims, buffer.rank as usize) };
    dims.iter().product::<i64>().max(0) as u64
}

/// The number of 64-bit integers in a buffer of pairs of 32-bit numbers.
pub(super) fn length(buffer: &Buffer) -> u64 {
    elements(buffer) / 2
}

/// An array of one 64-bit integer for each item of a batch: JAX has it as pairs of 32-bit numbers.
pub(super) fn integers<'a>(buffer: &Buffer, batch: usize, shape: &'a mut Vec<i64>) -> Tensor<'a> {
    if batch > 0 {
        shape.push(length(buffer) as i64);
    }
    shape.push(1);
    Tensor { address: buffer.data as u64, shape, strides: None, number: Number::I64 }
}

/// Memory that lives until it is dropped.
pub(super) struct Memory<'a> {
    data: u64,
    bytes: usize,
    /// This process's memory.
    _host: Vec<u64>,
    /// XLA's functions and the call, for memory of a GPU.
    device: Option<(&'a Api, &'a Frame)>,
}

impl<'a> Memory<'a> {
    /// Allocates memory: this process's, or that of the GPU of a call.
    pub(super) fn allocate(name: &str, bytes: u64, device: Option<(&'a Api, &'a Frame)>) -> Result<Self, Failure> {
        let bytes = (bytes as usize).max(size_of::<u64>());
        let exhausted = |reason: &str| {
            let message = format!(
                "{name}: the gradient needs {bytes} bytes of scratch memory: launch fewer threads, or give the loop a \
                 constant trip count{reason}"
            );
            Failure::Message(RESOURCE_EXHAUSTED, message)
        };
        let Some((api, frame)) = device else {
            let mut host = Vec::new();
            host.try_reserve_exact(bytes.div_ceil(size_of::<u64>())).map_err(|_| exhausted(""))?;
            return Ok(Self { data: host.as_ptr() as u64, bytes, _host: host, device });
        };
        let mut args = AllocateArgs {
            size: size_of::<AllocateArgs>(),
            extension: ptr::null_mut(),
            context: frame.context,
            bytes,
            alignment: ALIGN,
            data: ptr::null_mut(),
        };
        // SAFETY: XLA's function, with the frame's context.
        let error = unsafe { (api.allocate)(&raw mut args) };
        if !error.is_null() {
            return Err(exhausted(&format!(" (XLA: {})", text_of(api, error))));
        }
        Ok(Self { data: args.data as u64, bytes, _host: Vec::new(), device })
    }

    /// The number of 64-bit integers that it has room for.
    pub(super) fn integers(&self) -> i64 {
        (self.bytes / size_of::<u64>()) as i64
    }

    /// The memory as an array of these integers.
    pub(super) fn tensor<'s>(&self, shape: &'s [i64]) -> Tensor<'s> {
        Tensor { address: self.data, shape, strides: None, number: Number::I64 }
    }
}

impl Drop for Memory<'_> {
    fn drop(&mut self) {
        let Some((api, frame)) = self.device else { return };
        let mut args = FreeArgs {
            size: size_of::<FreeArgs>(),
            extension: ptr::null_mut(),
            context: frame.context,
            bytes: self.bytes,
            data: self.data as *mut c_void,
        };
        // SAFETY: XLA's function has allocated the memory in this call.
        let error = unsafe { (api.free)(&raw mut args) };
        if !error.is_null() {
            destroy(api, error);
        }
    }
}

/// The text of an error that is not returned to XLA, which releases it.
fn text_of(api: &Api, error: *mut c_void) -> String {
    let mut args =
        MessageArgs { size: size_of::<MessageArgs>(), extension: ptr::null_mut(), error, message: ptr::null() };
    // SAFETY: XLA's function, with an error that XLA made.
    unsafe { (api.message)(&raw mut args) };
    let text = if args.message.is_null() {
        String::new()
    } else {
        // SAFETY: XLA gives a text that ends with a NUL and lives as long as the error.
        unsafe { CStr::from_ptr(args.message) }.to_string_lossy().into_owned()
    };
    destroy(api, error);
    text
}

/// Releases an error that is not returned to XLA.
fn destroy(api: &Api, error: *mut c_void) {
    let mut args = DestroyArgs { size: size_of::<DestroyArgs>(), extension: ptr::null_mut(), error };
    // SAFETY: XLA's function, with an error that XLA made and that nothing else has.
    unsafe { (api.destroy_error)(&raw mut args) };
}
