//! Exported kernels: code for several targets, and the files with which programs without Python launch it.

use std::{path::Path, sync::Arc};

use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError, PyValueError},
    prelude::*,
    types::{PyBytes, PyDict},
};
use weft_artifact::{ArgType, Assumptions, CodeFormat, Factors};
use weft_compiler::{
    cpu_for_export,
    request::{FunctionDef, Options, Target},
    syntax::ast,
    target,
};
use weft_export::{ExportedKernel, Image, ImageFormat, Package, Rules};
use weft_runtime::ptxas::{self, NotAssembled};

use super::{
    Dispatcher, answers,
    overload::Found,
    rules::{LaunchRule, OutputRule},
};
use crate::{
    capture::Capturer,
    devices,
    engine::{self, Definition},
    errors,
};

/// A kernel to export: the dispatcher, a signature, the name in the package, and the rules.
type ToExport<'py> =
    (Bound<'py, Dispatcher>, Bound<'py, PyAny>, String, Option<Bound<'py, LaunchRule>>, Vec<Bound<'py, OutputRule>>);

/// The targets of a package.
struct Targets<'a> {
    all: Vec<Target>,
    /// The name of the CPU.
    host_cpu: &'a str,
    /// Makes cubins.
    ptxas: Option<std::path::PathBuf>,
}

/// The files of a package of kernels, by name.
#[pyfunction]
pub(crate) fn export_files<'py>(
    py: Python<'py>,
    name: String,
    kernels: Vec<ToExport<'py>>,
    targets: Vec<String>,
    host_cpu: &str,
    cubin: bool,
) -> PyResult<Bound<'py, PyDict>> {
    let cpu = cpu_for_export(host_cpu).map_err(PyValueError::new_err)?;
    let parsed = targets.into_iter().map(|name| {
        target::parse(&name, || Arc::clone(&cpu)).map_err(|unknown| PyValueError::new_err(unknown.to_string()))
    });
    let targets = parsed.collect::<PyResult<Vec<_>>>()?;
    let ptxas = if cubin { Some(find_ptxas(py)?) } else { None };
    let targets = Targets { all: targets, host_cpu, ptxas };
    let mut package = Package { name, kernels: Vec::new() };
    for kernel in kernels {
        package.kernels.push(exported(&package.name, &kernel, &targets)?);
    }
    let files = package.files().map_err(PyTypeError::new_err)?;
    let dict = PyDict::new(py);
    for file in files {
        dict.set_item(file.name, PyBytes::new(py, &file.bytes))?;
    }
    Ok(dict)
}

fn find_ptxas(py: Python<'_>) -> PyResult<std::path::PathBuf> {
    let found = devices::toolkit(py)?.ptxas(std::env::var_os("PATH").as_deref());
    found.ok_or_else(|| {
        PyRuntimeError::new_err("cubin=True needs NVIDIA's `ptxas`, which was not found: pip install nvidia-cuda-nvcc")
    })
}

/// Compiles a kernel for all targets.
fn exported(package: &str, kernel: &ToExport<'_>, targets: &Targets<'_>) -> PyResult<ExportedKernel> {
    let (dispatcher, signature, name, launch, outputs) = kernel;
    let this = dispatcher.get();
    if this.jit.device {
        return Err(PyTypeError::new_err(format!("`{}` is a device function: only kernels are exported", this.name)));
    }
    if !Dispatcher::linked(dispatcher)?.is_empty() {
        let message = format!("`{}` is linked with other code, which the package does not contain", this.name);
        return Err(PyTypeError::new_err(message));
    }
    let args = this.types(signature)?;
    let mut images = Vec::new();
    for target in &targets.all {
        for assumptions in weft_export::VARIANTS {
            let symbol = weft_export::symbol(package, name, assumptions);
            images.extend(compiled(dispatcher, &args, target, assumptions, &symbol, targets)?);
        }
    }
    let rules = Rules {
        launch: launch.as_ref().map(|launch| launch.get().rule.clone()),
        outputs: outputs.iter().map(|output| output.get().rule.clone()).collect(),
    };
    ExportedKernel::new(name.clone(), &rules, images).map_err(PyTypeError::new_err)
}

/// Compiles a kernel for a target, under assumptions.
fn compiled(
    dispatcher: &Bound<'_, Dispatcher>,
    args: &[ArgType],
    target: &Target,
    assumptions: Assumptions,
    symbol: &str,
    targets: &Targets<'_>,
) -> PyResult<Vec<Image>> {
    let (py, this) = (dispatcher.py(), dispatcher.get());
    // Code that depends on no setting of the process.
    let options =
        Options { libdevice: None, assumptions, coarsen: Factors::NONE, choose: false, ..this.jit.code.clone() };
    let mut definition = Definition::of(Capturer::new(py).dispatcher(dispatcher)?);
    // The messages of the check have the kernel's own name; the exported symbol has the package's, too.
    answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
        engine::params(py, definition, args, &this.jit)
    })?;
    let ast = ast::Function { name: symbol.to_owned(), ..definition.function.ast.clone() };
    definition.function = Arc::new(FunctionDef { ast, ..FunctionDef::clone(&definition.function) });
    let made = answers::with_answers(py, &mut definition, &mut Found::default(), |definition| {
        engine::compile_for_export(py, definition, args, target.clone(), options.clone(), !this.jit.no_cache)
    })?;
    if !made.is_lasting {
        return Err(PyTypeError::new_err(format!(
            "`{}` uses an array of this process as a global: pass it as an argument",
            this.name
        )));
    }
    let artifact = &made.output.artifact;
    let Some(kernel) = artifact.kernels.first() else { return Ok(Vec::new()) };
    let name = match target {
        Target::Sm(..) => target.to_string(),
        Target::Host(_) => targets.host_cpu.to_owned(),
    };
    let image = |format, code| Image::new(name.clone(), format, code, kernel.clone(), assumptions);
    Ok(match artifact.format {
        CodeFormat::HostObject => vec![image(ImageFormat::HostObject, artifact.code.clone())],
        CodeFormat::Ptx | CodeFormat::NvvmIr => {
            let mut images = Vec::new();
            if let Some(ptxas) = &targets.ptxas {
                let cubin = assemble(py, ptxas, &artifact.code, &name, this.jit.code.lineinfo)?;
                images.push(image(ImageFormat::Cubin, cubin));
            }
            images.push(image(ImageFormat::Ptx, artifact.code.clone()));
            images
        }
    })
}

fn assemble(py: Python<'_>, ptxas: &Path, ptx: &[u8], target: &str, lineinfo: bool) -> PyResult<Vec<u8>> {
    py.detach(|| ptxas::assemble(ptxas, ptx, target, lineinfo)).map_err(|error| match error {
        NotAssembled::Failed(message) => PyRuntimeError::new_err(message),
        NotAssembled::Rejected(said) => errors::internal(py, &format!("`ptxas` rejects the PTX for {target}: {said}")),
    })
}
