//! Inspection of a dispatcher's kernels: the code as strings, and the code's resource usage.
//!
//! Strings are created on first use, by compiling once more: a launch creates none. They are for the GPU that is the
//! device or that the CPU emulates, so that a machine without one shows PTX too. A device function's strings are those
//! of its C ABI function.

use pyo3::{exceptions::PyRuntimeError, prelude::*, types::PyDict};
use weft_artifact::{ArgType, Factors};
use weft_compiler::{
    frontend::Instance,
    request::{Abi, Entry, Foreign, Keep, Role, Target},
    source::SourceFile,
};
use weft_runtime::LoadedKernel;

use super::{Dispatcher, answers, overload::Found, resolve::Lookups, variants::coarsened::FactorChoice};
use crate::{
    capture::Capturer,
    devices,
    engine::{self, Compiled, Definition, options, timing::Timing},
    errors,
    types::{Type, tuple_of_types},
};

/// A function for one tuple of argument types: its file, the line that its text begins in, the types.
pub(crate) type InstanceRow = (String, u32, Vec<Option<String>>);

/// An expression: its function's number, where it begins and ends, its type, whether that is weak, the name that gets it.
pub(crate) type ExprRow = (usize, (u32, u32), (u32, u32), Type, bool, Option<String>);

/// The line in the user's file, and the column in bytes from 0, of a byte of a text.
fn place(file: &SourceFile, offset: u32) -> (u32, u32) {
    let head = file.text.get(..offset as usize).unwrap_or(&file.text);
    let start = head.rfind('\n').map_or(0, |newline| newline + 1);
    (file.first_line + head.matches('\n').count() as u32, file.cut_columns + (head.len() - start) as u32)
}

/// The error for a device function's code on the CPU.
fn no_host_code(name: &str) -> PyErr {
    PyRuntimeError::new_err(format!(
        "device function `{name}` has no separate code on the CPU: inspect a kernel that calls it"
    ))
}

impl Dispatcher {
    /// How often kernels were found on the disk: a `CompileStats`.
    pub(super) fn statistics<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let folder = engine::cache(&self.jit).map(|cache| cache.folder().as_os_str().to_owned());
        let mut counts = Vec::new();
        let lookups = self.state().lookups.clone();
        for Lookups { args, hits, misses } in lookups {
            counts.push((tuple_of_types(py, &args)?, hits, misses));
        }
        py.import("weft.cuda._code.stats")?.call_method1("of_counts", (folder, counts))
    }

    /// A text of one specialization: `what` is `asm`, `llvm` or `ir`; the target is the device's compute capability
    /// unless one is named.
    pub(crate) fn text(slf: &Bound<'_, Self>, args: &[ArgType], what: &str, target: Option<&str>) -> PyResult<String> {
        let (py, this) = (slf.py(), slf.get());
        let target = match target {
            Some(target) => options::target(py, target)?,
            None => {
                let (major, minor) = devices::current(py)?.attributes().compute_capability;
                options::of_capability(major, minor)
            }
        };
        let host = matches!(target, Target::Host(_));
        let keep = Keep { ir: what == "ir", llvm: what == "llvm", asm: what == "asm" && host, unoptimized: false };
        let timing = Timing::start(py, "capture")?;
        let mut definition = match this.compiled(args) {
            Some(overload) => overload.definition.clone(),
            None => Definition::of(Capturer::new(py).dispatcher(slf)?),
        };
        let (mut jit, wanted) = this.plain(py, &*devices::current(py)?)?;
        jit.code.coarsen = match (wanted, this.compiled(args)) {
            (FactorChoice::Factors(factors), _) => factors,
            (FactorChoice::Measure(_), Some(overload)) => overload.tunings.last().unwrap_or(Factors::NONE),
            (FactorChoice::Measure(_), None) => Factors::NONE,
        };
        if jit.device {
            if host {
                return Err(no_host_code(&this.name));
            }
            jit.code.entry = Entry::Foreign(Foreign { role: Role::Function(Abi::C), symbol: None });
        }
        let Compiled { output, .. } = answers::compile_whole(py, &mut definition, args, &target, &jit, keep)?;
        timing.print(py, || {
            let args: Vec<String> = args.iter().map(ToString::to_string).collect();
            format!("{}({}) for {target}, {what}", this.name, args.join(", "))
        })?;
        let text = match what {
            "ir" => output.ir.clone(),
            "llvm" => output.llvm.clone(),
            _ if host => output.asm.clone(),
            _ => Some(String::from_utf8_lossy(&output.artifact.code).into_owned()),
        };
        text.ok_or_else(|| errors::internal(py, &format!("the compiler returned no {what} text")))
    }

    /// The type of what the function returns to kernels that call it with arguments of these types.
    pub(crate) fn result(slf: &Bound<'_, Self>, args: &[ArgType]) -> PyResult<Option<ArgType>> {
        let py = slf.py();
        let mut definition = Definition::of(Capturer::new(py).dispatcher(slf)?);
        let jit = &slf.get().jit;
        answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
            engine::result_type(py, definition, args, jit)
        })
    }

    /// Strings by argument types, or the one of a signature.
    pub(crate) fn representations<'py>(
        slf: &Bound<'py, Self>,
        what: &str,
        signature: Option<&Bound<'py, PyAny>>,
        target: Option<&str>,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(signature) = signature.filter(|signature| !signature.is_none()) {
            let text = Self::text(slf, &this.types(signature)?, what, target)?;
            return Ok(text.into_pyobject(py)?.into_any());
        }
        let dict = PyDict::new(py);
        let known: Vec<Vec<ArgType>> = if this.jit.device {
            Self::overloads(slf)?.keys().iter().map(|types| this.types(&types)).collect::<PyResult<_>>()?
        } else {
            this.state().overloads.iter().map(|overload| overload.args.clone()).collect()
        };
        for args in known {
            dict.set_item(tuple_of_types(py, &args)?, Self::text(slf, &args, what, target)?)?;
        }
        Ok(dict.into_any())
    }

    /// A number of one kernel: of the signature, of the only one of a specialized dispatcher, or of each.
    pub(crate) fn resource<'py>(
        slf: &Bound<'py, Self>,
        signature: Option<&Bound<'py, PyAny>>,
        number: impl Fn(&dyn LoadedKernel) -> u32,
    ) -> PyResult<Bound<'py, PyAny>> {
        let (py, this) = (slf.py(), slf.get());
        let overloads = this.state().overloads.clone();
        if let Some(signature) = signature.filter(|signature| !signature.is_none()) {
            let overload = Self::overload(slf, &this.types(signature)?)?;
            return Ok(number(&**overload.loaded(py)?).into_pyobject(py)?.into_any());
        }
        if let ([only], true) = (overloads.as_slice(), this.specialized()) {
            return Ok(number(&**only.loaded(py)?).into_pyobject(py)?.into_any());
        }
        let dict = PyDict::new(py);
        for overload in overloads {
            dict.set_item(tuple_of_types(py, &overload.args)?, number(&**overload.loaded(py)?))?;
        }
        Ok(dict.into_any())
    }
}

/// The functions that a launch with arguments of these types runs, and their expressions, as far as their types are
/// found. A function is its file, the line at which its source begins, and the types of its arguments; an expression is
/// the number of its function, its location (lines and columns as in Python's trees), its type, whether it is a weakly
/// typed literal, and the name that it is assigned to. For the Python interpreter of kernels.
#[pyfunction]
pub(crate) fn expression_types(
    dispatcher: &Bound<'_, Dispatcher>,
    signature: &Bound<'_, PyAny>,
) -> PyResult<(Vec<InstanceRow>, Vec<ExprRow>)> {
    let (py, this) = (dispatcher.py(), dispatcher.get());
    let args = this.types(signature)?;
    let mut definition = Definition::of(Capturer::new(py).dispatcher(dispatcher)?);
    let (types, sources) = answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
        engine::expression_types(py, definition, &args, &this.jit)
    })?;
    let instances = types.instances.into_iter().map(|Instance { name, args, .. }| {
        let file = sources.file(name);
        let args = args.iter().map(|arg| arg.as_ref().map(ToString::to_string)).collect();
        (file.map(|file| file.name.clone()).unwrap_or_default(), file.map_or(0, |file| file.first_line), args)
    });
    let mut rows = Vec::with_capacity(types.rows.len());
    for row in types.rows {
        let Some(file) = sources.file(row.span) else { continue };
        let place = (place(file, row.span.start), place(file, row.span.end));
        rows.push((row.instance, place.0, place.1, Type::of(row.ty), row.weak, row.assigned));
    }
    Ok((instances.collect(), rows))
}
