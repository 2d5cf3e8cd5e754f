//! The error of the crate: a message, the line of the PTX, and the lane.

use std::fmt;

/// Why PTX is not accepted, or why a launch ended early.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// The line of the PTX, counted from 1; 0 where no line is at fault.
    pub line: u32,
    /// The lane of the warp, for errors of a launch.
    pub lane: Option<u32>,
    /// The message, without the line and the lane.
    pub message: String,
}

impl Error {
    pub(crate) fn at(line: u32, message: impl Into<String>) -> Self {
        Self { line, lane: None, message: message.into() }
    }

    pub(crate) fn in_lane(lane: u32, message: impl Into<String>) -> Self {
        Self { line: 0, lane: Some(lane), message: message.into() }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.line > 0 {
            write!(f, "line {}: ", self.line)?;
        }
        if let Some(lane) = self.lane {
            write!(f, "lane {lane}: ")?;
        }
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
