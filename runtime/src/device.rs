//! Which executor a process gets.

use std::sync::Arc;

use crate::{
    cpu, cuda,
    error::Error,
    executor::{Executor, HostLoader},
    settings::{DeviceChoice, Settings},
};

/// Opens the device that the settings choose: of several GPUs the first.
///
/// `auto` falls back to the CPU only where there is no GPU at all; a GPU that cannot be opened is an error.
///
/// # Errors
///
/// `NoDevice` if a GPU is demanded and there is none, saying what was looked for and the way out.
pub fn open(settings: &Settings, loader: Arc<dyn HostLoader>) -> Result<Arc<dyn Executor>, Error> {
    match settings.device {
        DeviceChoice::Cpu => cpu::open(settings, loader),
        DeviceChoice::Cuda => cuda::open(settings, 0),
        DeviceChoice::Auto if cuda::device_count() > 0 => cuda::open(settings, 0),
        DeviceChoice::Auto => cpu::open(settings, loader),
    }
}
