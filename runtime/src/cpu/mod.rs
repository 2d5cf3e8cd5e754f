//! The CPU executor.

use std::sync::Arc;

use crate::{
    error::{Error, ErrorKind},
    executor::{Executor, HostLoader},
    settings::Settings,
};

/// Opens the CPU as a device.
///
/// # Errors
///
/// The settings make no sense.
pub fn open(_settings: &Settings, _loader: Arc<dyn HostLoader>) -> Result<Arc<dyn Executor>, Error> {
    Err(Error::new(ErrorKind::Internal, "not built"))
}
