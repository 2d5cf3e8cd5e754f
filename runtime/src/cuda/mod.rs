//! The CUDA executor.

use std::sync::Arc;

use crate::{
    error::{Error, ErrorKind},
    executor::Executor,
    settings::Settings,
};

/// How many CUDA devices there are; no driver is 0. Never panics.
pub fn device_count() -> u32 {
    0
}

/// Opens a CUDA device by its ordinal.
///
/// # Errors
///
/// `NoDevice` without a driver or a device, saying which of the two.
pub fn open(_settings: &Settings, _ordinal: u32) -> Result<Arc<dyn Executor>, Error> {
    Err(Error::new(ErrorKind::NoDevice, "not built"))
}
