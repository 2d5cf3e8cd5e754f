//! Errors at run time. Every message is self-contained: it names the object, the limit or the call.

use std::fmt;

use weft_artifact::Raised;

use crate::sanitize::Finding;

/// Which exception a caller should make of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ErrorKind {
    /// No GPU, no driver, or a driver that is too old.
    NoDevice,
    /// A driver call failed; the message names the call and the driver's error.
    Driver,
    /// A launch that cannot be: too many threads, too much shared memory, an empty grid, ….
    Launch,
    /// Out of device memory.
    Memory,
    /// The allocator that was set has failed; its author's error has details.
    Allocator,
    /// The time between events that have none: not recorded, not reached yet, or made without timing.
    Event,
    /// An argument or a setting that makes no sense.
    Value,
    /// Code that cannot be linked; the message has the linker's log.
    Link,
    /// CUDA C++ with errors; the message has the compiler's log.
    Compile,
    /// A tool of the CUDA toolkit is needed that is not there.
    NoTool,
    /// The caller gave up.
    Interrupted,
    /// A kernel has raised an exception.
    Raised,
    /// The sanitizer has found something.
    Sanitizer,
    /// A fault of weft's own.
    Internal,
}

/// An error of the runtime.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    /// Its kind.
    pub kind: ErrorKind,
    /// One sentence or more, naming the thing.
    pub message: String,
    /// The driver's error number, if a driver call failed; of a launch that was refused, the one that it would have given.
    pub driver_code: Option<u32>,
    /// The exception, if a kernel has raised one.
    pub raised: Option<Box<Raised>>,
    /// The sanitizer's findings.
    pub findings: Vec<Finding>,
}

impl Error {
    /// An error that is not from a driver call.
    pub fn new(kind: ErrorKind, message: impl Into<String>) -> Self {
        Self { kind, message: message.into(), driver_code: None, raised: None, findings: Vec::new() }
    }

    /// The error for the sanitizer's findings in a launch of a kernel.
    pub(crate) fn found(kernel: &str, findings: Vec<Finding>) -> Self {
        let message = format!("the sanitizer found {} in `{kernel}`", findings.len());
        Self { findings, ..Self::new(ErrorKind::Sanitizer, message) }
    }

    /// The exception that a kernel has raised.
    pub(crate) fn raised(raised: Raised) -> Self {
        let message = format!("a kernel raised {}", raised.fault.class);
        Self { raised: Some(Box::new(raised)), ..Self::new(ErrorKind::Raised, message) }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
