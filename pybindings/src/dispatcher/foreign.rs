//! A function's code for programs that are not weft's: `cuda.compile` and its relatives.

use pyo3::{exceptions::PyValueError, prelude::*};
use weft_artifact::ArgType;
use weft_compiler::request::{Abi, Entry, Foreign, Keep, Role};

use super::{Dispatcher, answers, overload::Found};
use crate::{
    capture::Capturer,
    devices,
    engine::{Compiled, Definition, options},
    types::Type,
};

impl Dispatcher {
    /// PTX for arguments of these types, and the type of what it returns. `role` is "kernel", or the ABI of a device
    /// function: "c" or "numba". The target is the device's compute capability unless one is named.
    pub(crate) fn foreign(
        slf: &Bound<'_, Self>,
        args: &[ArgType],
        role: &str,
        symbol: Option<String>,
        target: Option<&str>,
    ) -> PyResult<(String, Type)> {
        let py = slf.py();
        let role = match role {
            "kernel" => Role::Kernel,
            "c" => Role::Function(Abi::C),
            "numba" => Role::Function(Abi::Numba),
            other => return Err(PyValueError::new_err(format!("there is no role {other:?}"))),
        };
        let target = match target {
            Some(target) => options::target(py, target)?,
            None => {
                let (major, minor) = devices::current(py)?.attributes().compute_capability;
                options::of_capability(major, minor)
            }
        };
        if !matches!(target, weft_compiler::request::Target::Sm(..)) {
            return Err(PyValueError::new_err(format!("code for other programs must be PTX, not code for {target}")));
        }
        let mut jit = slf.get().jit.clone();
        jit.code.entry = Entry::Foreign(Foreign { role, symbol });
        let mut of = Definition::of(Capturer::new(py).dispatcher(slf)?);
        let Compiled { output, .. } =
            answers::compile(py, &mut of, &mut Found::default(), args, &target, &jit, Keep::default())?;
        let code = String::from_utf8_lossy(&output.artifact.code).into_owned();
        Ok((code, Type::of(output.returns.clone().unwrap_or(ArgType::None))))
    }
}
