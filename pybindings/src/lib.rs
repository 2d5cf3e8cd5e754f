//! The extension module `weft._weft`: types, devices, memory, jitted functions and their launches.
//!
//! Python code is in `python/weft`; here is what must be quick or must reach the compiler and the runtime.

mod args;
mod capture;
mod command;
mod convert;
mod device_array;
mod devices;
mod dispatcher;
mod engine;
mod errors;
mod host_array;
mod host_code;
mod interface;
mod key;
mod launch;
mod numpy;
mod signature;
mod stream;
mod strides;
mod types;
mod values;

use pyo3::prelude::*;

/// The native part of weft.
#[pymodule(gil_used = false)]
mod _weft {
    #[pymodule_export]
    use crate::{
        args::CopyHint,
        capture::{free_names, intrinsics},
        command::run_command,
        device_array::{DeviceArray, Memory, copy_on_device, copy_to_device, copy_to_host, typeof_value},
        devices::{
            config, current_device_id, device_attributes, device_count, device_kind, memory_info, select_device,
            synchronize,
        },
        dispatcher::{Dispatcher, forall::ForAll, launcher::Launcher, overload::CompiledKernel},
        engine::{after_fork_in_child, after_fork_in_parent, before_fork},
        interface::read_array_interface,
        signature::parse_signature,
        stream::{Event, Stream},
        strides::{contiguous_strides, dense_strides},
        types::{Signature, Type, as_dtype, from_dtype},
    };

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
