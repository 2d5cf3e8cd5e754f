//! A memory manager in Python (`cuda.set_memory_manager`) as the allocator of the devices' executors.
//!
//! The Python side (`weft/cuda/_memory/manager.py`) has the managers and calls them; here are the functions that
//! executors call. A manager's pointer is dropped when no work uses its memory any more: its finalizer frees the
//! memory.

use std::{
    mem,
    sync::{
        Arc, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
};

use pyo3::prelude::*;
use weft_runtime::{Allocator, Error, Executor, Lent, Settings};

use super::{DEVICES, fork};
use crate::errors;

/// The allocator in use: the one of the setting, a manager, or weft.
static MANAGED: AtomicU8 = AtomicU8::new(AS_SET);
const AS_SET: u8 = 0;
const MANAGER: u8 = 1;
const WEFT: u8 = 2;

/// The manager of a device.
#[derive(Debug)]
struct Manager {
    device: u32,
}

/// Memory that a Python memory manager has allocated.
#[derive(Debug)]
struct ManagerMemory {
    address: u64,
    pointer: Option<Py<PyAny>>,
}

impl Allocator for Manager {
    fn allocate(&self, bytes: u64) -> Result<Box<dyn Lent>, Error> {
        let given = Python::attach(|py| {
            let given = py.import("weft.cuda._memory.manager")?.call_method1("allocate", (self.device, bytes))?;
            let (address, pointer): (u64, Bound<'_, PyAny>) = given.extract()?;
            Ok((address, pointer.unbind()))
        });
        match given {
            Ok((address, pointer)) => Ok(Box::new(ManagerMemory { address, pointer: Some(pointer) })),
            Err(raised) => Err(errors::of_allocator(raised)),
        }
    }
}

impl Lent for ManagerMemory {
    fn address(&self) -> u64 {
        self.address
    }
}

impl Drop for ManagerMemory {
    fn drop(&mut self) {
        let Some(pointer) = self.pointer.take() else { return };
        let mut pointer = Some(pointer);
        // An interpreter that is ending frees nothing any more.
        if Python::try_attach(|_| drop(pointer.take())).is_none() {
            mem::forget(pointer);
        }
    }
}

fn is_managed(settings: &Settings) -> bool {
    match MANAGED.load(Ordering::Relaxed) {
        MANAGER => true,
        WEFT => false,
        _ => settings.memory_manager.is_some(),
    }
}

/// Has a device's memory come from where it should.
pub(super) fn set_up(settings: &Settings, executor: &dyn Executor, device: u32) {
    let allocator = is_managed(settings).then(|| Arc::new(Manager { device }) as Arc<dyn Allocator>);
    executor.set_allocator(allocator);
}

/// Has the memory of all devices come from managers from now on, or from weft.
#[pyfunction]
pub(crate) fn use_memory_managers(py: Python<'_>, on: bool) {
    MANAGED.store(if on { MANAGER } else { WEFT }, Ordering::Relaxed);
    py.detach(|| {
        let _work = fork::at_work();
        let Some(Ok(devices)) = DEVICES.get() else { return };
        for (id, entry) in devices.executors.iter().enumerate() {
            if let Some(executor) = &*entry.lock().unwrap_or_else(PoisonError::into_inner) {
                set_up(devices.settings, &**executor, id as u32);
            }
        }
    });
}

/// Whether memory comes from managers, and the module that the setting names.
#[pyfunction]
pub(crate) fn memory_managers(py: Python<'_>) -> PyResult<(bool, Option<&'static str>)> {
    let settings = super::settings(py)?;
    Ok((is_managed(settings), settings.memory_manager.as_deref()))
}
