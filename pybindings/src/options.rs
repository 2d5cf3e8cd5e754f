//! What `cuda.jit` was told, checked in Python (`weft/cuda/_jit.py`), as the compiler takes it.

use pyo3::{exceptions::PyValueError, prelude::*};
use weft_compiler::request::{Options, Target};

/// The options of one dispatcher that change code.
#[expect(clippy::struct_excessive_bools, reason = "each is an option that users give as a bool")]
#[derive(Clone, Debug, Default)]
pub(crate) struct JitOptions {
    pub(crate) fastmath: bool,
    pub(crate) lineinfo: bool,
    pub(crate) opt: bool,
    pub(crate) launch_bounds: Option<(u32, Option<u32>)>,
    pub(crate) max_registers: Option<u32>,
    pub(crate) inline: bool,
    pub(crate) device: bool,
}

impl JitOptions {
    /// Reads the keyword arguments of `Dispatcher`.
    pub(crate) fn read(options: &Bound<'_, PyAny>) -> PyResult<Self> {
        Ok(Self {
            fastmath: options.get_item("fastmath")?.extract()?,
            lineinfo: options.get_item("lineinfo")?.extract()?,
            opt: options.get_item("opt")?.extract()?,
            launch_bounds: options.get_item("launch_bounds")?.extract()?,
            max_registers: options.get_item("max_registers")?.extract()?,
            inline: options.get_item("inline")?.extract()?,
            device: options.get_item("device")?.extract()?,
        })
    }

    /// The compiler's options, but for libdevice.
    pub(crate) fn compiler(&self) -> Options {
        Options {
            fastmath: self.fastmath,
            lineinfo: self.lineinfo,
            opt: self.opt,
            launch_bounds: self.launch_bounds,
            max_registers: self.max_registers,
            ..Options::default()
        }
    }
}

/// The compiler's target of a text such as `sm_90`, `sm_90a` or `host`.
pub(crate) fn target(text: &str) -> PyResult<Target> {
    let unknown =
        || PyValueError::new_err(format!("there is no target `{text}`; targets are `host` and `sm_90` and its like"));
    if text == "host" {
        return Ok(Target::Host(weft_compiler::host_cpu()));
    }
    let sm = text.strip_prefix("sm_").ok_or_else(unknown)?;
    let digits = sm.trim_end_matches(['a', 'f']);
    let suffix = match sm.get(digits.len()..) {
        Some("") => "",
        Some("a") => "a",
        Some("f") => "f",
        _ => return Err(unknown()),
    };
    Ok(Target::Sm(digits.parse().map_err(|_| unknown())?, suffix))
}
