//! A function's code for programs that are not weft's: `cuda.compile` and its relatives.

use pyo3::{
    exceptions::{PyNotImplementedError, PyValueError},
    prelude::*,
    types::{PyBytes, PyString},
};
use weft_artifact::ArgType;
use weft_compiler::request::{Abi, Entry, Foreign, GpuCode, Keep, Options, Role, Target};
use weft_runtime::{
    ErrorKind,
    cuda::{self, LtoOptions},
};

use super::{Dispatcher, answers, overload::Found};
use crate::{
    capture::Capturer,
    devices,
    engine::{Compiled, Definition, options},
    errors,
    types::Type,
};

/// The caller and the form of the code.
#[derive(Debug)]
pub(crate) struct ForeignCode<'a> {
    /// "kernel", or the ABI of a device function: "c" or "numba".
    pub(crate) role: &'a str,
    /// The symbol; by default the function's name.
    pub(crate) symbol: Option<String>,
    /// The target; by default the device's compute capability.
    pub(crate) target: Option<&'a str>,
    /// PTX, or NVVM IR for LTO-IR.
    pub(crate) form: GpuCode,
}

impl Dispatcher {
    /// PTX or LTO-IR for arguments of these types, and the type of what it returns.
    pub(crate) fn foreign<'py>(
        slf: &Bound<'py, Self>,
        args: &[ArgType],
        wanted: ForeignCode<'_>,
    ) -> PyResult<(Bound<'py, PyAny>, Type)> {
        let py = slf.py();
        let role = match wanted.role {
            "kernel" => Role::Kernel,
            "c" => Role::Function(Abi::C),
            "numba" => Role::Function(Abi::Numba),
            other => return Err(PyValueError::new_err(format!("there is no role {other:?}"))),
        };
        let target = match wanted.target {
            Some(target) => options::target(py, target)?,
            None => {
                let (major, minor) = devices::current(py)?.attributes().compute_capability;
                options::of_capability(major, minor)
            }
        };
        if !matches!(target, Target::Sm(..)) {
            return Err(PyValueError::new_err(format!("code for other programs must be PTX, not code for {target}")));
        }
        let mut jit = slf.get().jit.clone();
        jit.code.entry = Entry::Foreign(Foreign { role, symbol: wanted.symbol });
        jit.code.gpu_code = wanted.form;
        let mut of = Definition::of(Capturer::new(py).dispatcher(slf)?);
        let Compiled { output, .. } =
            answers::compile(py, &mut of, &mut Found::default(), args, &target, &jit, Keep::default())?;
        let code = match wanted.form {
            GpuCode::Ptx => PyString::new(py, &String::from_utf8_lossy(&output.artifact.code)).into_any(),
            GpuCode::NvvmIr { .. } => {
                PyBytes::new(py, &lto_ir(py, &output.artifact.code, &output.artifact.target, &jit.code)?).into_any()
            }
        };
        Ok((code, Type::of(output.returns.clone().unwrap_or(ArgType::None))))
    }
}

/// Makes LTO-IR of NVVM IR.
fn lto_ir(py: Python<'_>, nvvm_ir: &[u8], target: &str, options: &Options) -> PyResult<Vec<u8>> {
    let toolkit = devices::toolkit(py)?;
    let options = LtoOptions { opt: options.opt, fastmath: options.fastmath };
    py.detach(|| cuda::lto_ir(toolkit, nvvm_ir, target, options)).map_err(|error| {
        if error.kind != ErrorKind::NoTool {
            return errors::runtime(py, &error);
        }
        PyNotImplementedError::new_err(format!(
            "only NVIDIA's compilers can produce LTO-IR. {error}; or compile to PTX (output='ptx'), which nvJitLink \
             can link, too"
        ))
    })
}
