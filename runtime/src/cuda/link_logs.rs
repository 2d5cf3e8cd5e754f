//! Logs of the driver's compiler and linker.

use std::{
    ffi::{c_uint, c_void},
    ptr,
};

use cudarc::driver::sys::CUjit_option_enum as JitOption;
use weft_artifact::Artifact;

use super::context::Context;
use crate::{
    error::{Error, ErrorKind},
    executor::DeviceAttributes,
};

/// Bytes of each of the JIT's logs.
const LOG_BYTES: usize = 8192;
/// Lines of the JIT's log that an error shows.
const LOG_LINES: usize = 12;

/// The logs of the driver's compiler and linker.
pub(super) struct JitLogs {
    info: Box<[u8; LOG_BYTES]>,
    errors: Box<[u8; LOG_BYTES]>,
}

impl JitLogs {
    pub(super) fn new() -> Self {
        Self { info: Box::new([0; LOG_BYTES]), errors: Box::new([0; LOG_BYTES]) }
    }

    /// Options that make the driver write to them, and their values.
    pub(super) fn options(&mut self) -> (Vec<c_uint>, Vec<*mut c_void>) {
        // A number is passed in the pointer's bits.
        let size: *mut c_void = ptr::without_provenance_mut(LOG_BYTES);
        let options = [
            (JitOption::CU_JIT_INFO_LOG_BUFFER, self.info.as_mut_ptr().cast()),
            (JitOption::CU_JIT_INFO_LOG_BUFFER_SIZE_BYTES, size),
            (JitOption::CU_JIT_ERROR_LOG_BUFFER, self.errors.as_mut_ptr().cast()),
            (JitOption::CU_JIT_ERROR_LOG_BUFFER_SIZE_BYTES, size),
        ];
        options.into_iter().map(|(option, value)| (option as c_uint, value)).unzip()
    }

    /// The start of the errors, or of what else was said, each line with a line break before it.
    pub(super) fn lines(&self) -> String {
        first_lines(&*self.errors).or_else(|| first_lines(&*self.info)).unwrap_or_default()
    }
}

/// The start of a log of the JIT, each line with a line break before it; `None` if the log is empty.
fn first_lines(log: &[u8]) -> Option<String> {
    let log = log.split(|&byte| byte == 0).next().unwrap_or_default();
    let text = String::from_utf8_lossy(log);
    let lines: Vec<_> = text.lines().filter(|line| !line.trim().is_empty()).collect();
    let mut shown: String = lines.iter().take(LOG_LINES).flat_map(|line| ["\n", line]).collect();
    if lines.len() > LOG_LINES {
        shown = format!("{shown}\n… and {} more lines", lines.len() - LOG_LINES);
    }
    (!lines.is_empty()).then_some(shown)
}

/// Adds the JIT's log to a failure.
#[cold]
pub(super) fn explain_no_load(context: &Context, artifact: &Artifact, logs: &JitLogs, mut error: Error) -> Error {
    let DeviceAttributes { name, .. } = &context.attributes;
    let hint = hint(context, &error);
    let log = logs.lines();
    if log.contains("Unresolved extern function") {
        error.kind = ErrorKind::Link;
        let hint = ". No linked code defines a declared function: pass its file with `link=`";
        error.message = format!("{name} cannot load the kernel: {}{hint}{log}", error.message);
        return error;
    }
    error.message = format!("{name} cannot load code for {}: {}{hint}{log}", artifact.target, error.message);
    error
}

/// The same for code of another compiler.
#[cold]
pub(super) fn explain_no_image(context: &Context, logs: &JitLogs, mut error: Error) -> Error {
    let hint = hint(context, &error);
    let log = logs.lines();
    let hint = if log.contains("Unresolved extern function") {
        error.kind = ErrorKind::Link;
        ". A module must contain all functions that it calls: link its code before, or call the function from a kernel \
         that declares it with `cuda.declare_device`"
    } else {
        &hint
    };
    error.message = format!("{} cannot load the module: {}{hint}{log}", context.attributes.name, error.message);
    error
}

/// What an error says about the code.
fn hint(context: &Context, error: &Error) -> String {
    let (major, minor) = context.attributes.driver_version;
    match error.driver_code {
        Some(209) => ". The code is for another kind of GPU".to_owned(),
        Some(222) => format!(". The driver is for CUDA {major}.{minor}, which is older than this PTX"),
        _ => String::new(),
    }
}
