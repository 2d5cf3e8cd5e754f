//! What `cuda.jit` was told, checked in Python (`weft/cuda/_jit.py`), as the compiler takes it.

use pyo3::{exceptions::PyValueError, prelude::*};
use weft_compiler::{
    host_cpu, host_cpu_named,
    request::{Abi, CpuThreads, Entry, External, GpuBody, LaunchBounds, Options, PtxBody, Target},
    target::{self, SMS, Sm},
};

use crate::devices;

/// The options of one dispatcher.
#[derive(Clone, Debug)]
pub(crate) struct JitOptions {
    /// Those that change code, but for libdevice.
    pub(crate) code: Options,
    pub(crate) inline: bool,
    pub(crate) device: bool,
    /// Code that is linked is optimized together with the kernel.
    pub(crate) lto: bool,
    /// What stands for a device function on GPUs.
    pub(crate) gpu: Option<GpuBody>,
}

impl JitOptions {
    /// Reads the keyword arguments of `Dispatcher`.
    pub(crate) fn read(options: &Bound<'_, PyAny>) -> PyResult<Self> {
        let code = Options {
            fastmath: options.get_item("fastmath")?.extract()?,
            lineinfo: options.get_item("lineinfo")?.extract()?,
            exceptions: options.get_item("exceptions")?.extract()?,
            debug: options.get_item("debug")?.extract()?,
            boundscheck: options.get_item("boundscheck")?.extract()?,
            opt: options.get_item("opt")?.extract()?,
            launch_bounds: options
                .get_item("launch_bounds")?
                .extract::<Option<(u32, Option<u32>, Option<u32>)>>()?
                .map(|(threads, blocks, cluster)| LaunchBounds { threads, blocks, cluster }),
            max_registers: options.get_item("max_registers")?.extract()?,
            cpu_threads: CpuThreads::Auto,
            libdevice: None,
            entry: Entry::Launch,
        };
        Ok(Self {
            code,
            inline: options.get_item("inline")?.extract()?,
            device: options.get_item("device")?.extract()?,
            lto: options.get_item("lto")?.extract::<Option<bool>>()?.unwrap_or(false),
            gpu: gpu_body(options)?,
        })
    }
}

/// What a device function is on GPUs, if it is something else than its statements.
fn gpu_body(options: &Bound<'_, PyAny>) -> PyResult<Option<GpuBody>> {
    if let Some((text, pure)) = options.get_item("ptx")?.extract::<Option<(String, bool)>>()? {
        return Ok(Some(GpuBody::Ptx(PtxBody { text, pure })));
    }
    let external = options.get_item("external")?.extract::<Option<(String, String, bool, bool)>>()?;
    Ok(external.map(|(symbol, abi, cooperative, python)| {
        let abi = if abi == "c" { Abi::C } else { Abi::Numba };
        GpuBody::External(External { symbol, abi, cooperative, python })
    }))
}

/// The compiler's target of a text such as `sm_90`, `sm_90a` or `host`.
pub(crate) fn target(py: Python<'_>, text: &str) -> PyResult<Target> {
    let cpu = match &devices::settings(py)?.host_cpu {
        Some(name) if text == target::HOST => host_cpu_named(name)
            .map_err(|message| PyValueError::new_err(format!("WEFT_HOST_CPU is \"{name}\": {message}")))?,
        Some(_) | None => host_cpu(),
    };
    target::parse(text, || cpu).map_err(|unknown| PyValueError::new_err(unknown.to_string()))
}

/// The target whose code a GPU of a compute capability runs; for one that is older than all of them, the oldest.
pub(crate) fn of_capability(major: u32, minor: u32) -> Target {
    Sm::of_capability(major, minor).or(SMS.first()).map_or(Target::Sm(75, ""), Sm::target)
}
