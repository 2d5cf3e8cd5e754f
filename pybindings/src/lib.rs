//! The extension module `weft._weft`: types, devices, memory, jitted functions and their launches.
//!
//! Python code is in `python/weft`; here is what must be quick or must reach the compiler and the runtime.

#![expect(clippy::doc_markdown, clippy::doc_lazy_continuation, reason = "docstrings for Python, as numpydoc has them")]

#[macro_use]
mod once;

mod args;
mod arrays;
mod capture;
mod command;
mod devices;
mod dispatcher;
mod engine;
mod errors;
mod types;

use pyo3::prelude::*;

/// The native part of weft. It rests on the interpreter's lock: a fork must find no other thread between two of its steps.
#[pymodule(gil_used = true)]
mod _weft {
    #[pymodule_export]
    use crate::{
        args::{CopyHint, typeof_value},
        arrays::{
            device_array::{DeviceArray, Memory, copy_on_device, copy_to_device, copy_to_host},
            dlpack::{
                export::export_dlpack,
                import::{Tensor, read_dlpack},
            },
            fresh::new_array,
            host_memory::HostMemory,
            interface::read_array_interface,
            pointers::{
                can_access_peer, enable_peer_access, fill, free_pending, mapped_address, memory_extents, n_pending,
                share_memory,
            },
            random::xoroshiro128p_states,
            recorded::record_host_copy,
            strides::{contiguous_strides, dense_strides},
            tensor_maps::tensor_map,
        },
        capture::{free_names, intrinsics, name_hint},
        command::run_command,
        devices::{
            config, current_device_id, device_attribute, device_attributes, device_count, device_kind,
            device_of_address, interprets_kernels, is_chosen,
            manager::{memory_managers, use_memory_managers},
            memory_info, profile, progress_limits,
            recording::is_recording,
            select_device, shares_arrays,
            stream::{Event, Stream, stream_handle},
            synchronize,
        },
        dispatcher::{
            Dispatcher,
            around::{current_launch_config, launch_config_was_read},
            explain::{plan_features, printed_plans},
            export::export_files,
            forall::ForAll,
            graph::{Graph, RecordedLaunch},
            inspect::expression_types,
            launcher::Launcher,
            modules::{LoadedFunction, LoadedModule},
            observer::observe_launches,
            operators::{Operator, direct::DirectCall, torch_lacks, xla_handlers},
            overload::{CompiledKernel, LoadedCode},
            prepared::Prepared,
            profile::{check_gpu, profile_launch, profile_launches},
            rules::{LaunchRule, OutputRule, access, bind_rules, constant_launch, translate_launch, translate_shape},
        },
        engine::{
            after_fork_in_child, after_fork_in_parent,
            background::stop_background,
            before_fork,
            options::{check_options, jit_options, passes, skip_passes},
        },
        types::{
            Signature, Type, as_dtype, from_dtype,
            matrix::{matrix_layout, matrix_product, matrix_tile},
            signature::parse_signature,
        },
    };

    use super::{Bound, PyModule, PyModuleMethods, PyResult};

    #[pymodule_init]
    fn init(module: &Bound<'_, PyModule>) -> PyResult<()> {
        module.add("__version__", env!("CARGO_PKG_VERSION"))
    }
}
