//! Compiled kernels: one [`Overload`] for each tuple of argument types and device, and the mapping from a launch's
//! arguments to its slots ([`Resolved`]).
//!
//! The [`Code`] of a kernel is loaded on demand: launches may run a [variant](super::variants) that another process has
//! measured.

mod compiled;

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use pyo3::{
    prelude::*,
    types::{PyBytes, PyList, PyString},
};
use weft_artifact::{Addresses, ArgType, Artifact, Assumptions, Kernel};
use weft_compiler::{
    pipeline::Output,
    request::{JitOptions, Keep, Target},
};
use weft_runtime::{Buffer, CodeCache, Executor, Linked, LinkedKind, Linking, LoadedKernel, Module};

use super::{
    Dispatcher, answers,
    variants::{
        Variants, assumptions,
        background::Jobs,
        coarsened::{FactorChoice, LastChoice},
        in_place,
        measured::Tunings,
    },
};
use crate::{
    args::convert::Cast,
    arrays::device_array::DeviceArray,
    devices,
    engine::{
        self, Compiled, Definition, Unattended,
        code::KernelCodeCache,
        options,
        timing::{self, Timing},
    },
    errors,
    types::key::{self, BoundCell},
};

pub(crate) use self::compiled::CompiledKernel;
pub(super) use self::compiled::{best_size, within};

/// One kernel, compiled for one tuple of argument types and loaded on one device.
#[derive(Debug)]
pub(crate) struct Overload {
    /// The types that it was compiled for.
    pub(crate) args: Vec<ArgType>,
    /// The number of its device.
    pub(crate) device: u32,
    /// Its device.
    pub(crate) executor: Arc<dyn Executor>,
    /// Its ABI.
    pub(crate) kernel: Kernel,
    /// The target: `"sm_90"` or `"host"`.
    target: String,
    /// The compilation, which may have stopped at the ABI (see
    /// [`Options::choose`](weft_compiler::request::Options::choose)).
    pub(super) compiled: Compiled,
    /// Its code, loaded on demand.
    code: OnceLock<Code>,
    /// The definition that it was compiled from. Listings that are requested later use the same constants.
    pub(crate) definition: Definition,
    /// The options that it was compiled with.
    pub(super) jit: JitOptions,
    /// The device arrays whose addresses are in the code.
    pub(super) kept: Vec<Py<PyAny>>,
    /// The code linked with it.
    pub(super) links: Vec<Py<PyAny>>,
    /// The union of the assumptions that its variants may make about a launch.
    pub(super) most: Assumptions,
    /// The variants that are compiled.
    pub(super) variants: Variants<Overload>,
    /// The requested factors for its launches.
    pub(super) wanted: FactorChoice,
    /// The measurements for that choice.
    pub(super) tunings: Tunings,
    /// The variants that are compiled in the background.
    pub(super) jobs: Jobs,
    /// The buffers of `kept`, each with the number of its stream. Uses in other streams must be recorded.
    pub(crate) lent: Vec<(u64, Arc<dyn Buffer>)>,
}

/// A kernel's code, loaded on its device.
#[derive(Debug)]
pub(crate) struct Code {
    /// The kernel, ready to launch.
    pub(crate) loaded: Arc<dyn LoadedKernel>,
    /// Keeps the code loaded while the kernel is in use.
    _module: Arc<dyn Module>,
    /// An object whose finalizer notifies linked code.
    _life: Option<Py<PyAny>>,
    /// Code and ABI as compiled.
    output: Arc<Output>,
}

/// A kernel that was compiled and loaded without Python.
#[derive(Debug)]
pub(super) struct Built {
    compiled: Compiled,
    kernel: Kernel,
    code: Code,
}

/// An overload for arguments of certain types.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The arguments' types.
    pub(crate) key: Box<[u32]>,
    /// The kernel.
    pub(crate) overload: Arc<Overload>,
    /// For each cell of the launch, the index of the argument cell that it is copied from.
    pub(crate) cells: Box<[u32]>,
    /// Conversions to declared types.
    pub(crate) casts: Box<[Cast]>,
    /// The cells of the launch that contain the bounds of the memory that the kernel may write.
    pub(super) bounds: Box<[BoundCell]>,
    /// The kernel's assumptions about a launch.
    pub(super) assumed: Assumptions,
    /// The 64-bit integers that must be small.
    pub(super) words: Box<[assumptions::Word]>,
    /// The arrays that must be small, unless `words` implies it.
    pub(super) arrays: Box<[assumptions::Array]>,
    /// The integers that must not be negative.
    pub(super) signs: Box<[assumptions::Sign]>,
    /// The locations of its arrays' addresses in the cells.
    pub(super) addresses: Addresses,
    /// The same for the kernel's variants.
    pub(super) variants: Variants<Resolved>,
    /// The final choice of its last launch that had one.
    pub(super) last_choice: LastChoice,
}

/// Objects found while capturing a kernel's functions, besides their definitions.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Device arrays whose addresses are in the code.
    pub(crate) kept: Vec<Py<PyAny>>,
    /// Files linked with it: paths and `LinkableCode`.
    pub(crate) links: Vec<Py<PyAny>>,
}

/// Links a kernel's code with the files that its functions name, and loads it.
fn link(
    py: Python<'_>,
    links: &[Py<PyAny>],
    executor: &dyn Executor,
    artifact: &Artifact,
    jit: &JitOptions,
    keeper: Option<&KernelCodeCache>,
) -> PyResult<Arc<dyn Module>> {
    let pieces: Vec<(String, String, Bound<'_, PyAny>, Option<PathBuf>)> =
        py.import("weft.cuda._code.link")?.call_method1("pieces", (PyList::new(py, links)?,))?.extract()?;
    let mut code = Vec::with_capacity(pieces.len());
    for (extension, name, data, folder) in pieces {
        let Some(kind) = LinkedKind::from_extension(&extension) else {
            return Err(errors::internal(py, &format!("code of the kind {extension:?}")));
        };
        let data = match data.cast::<PyString>() {
            Ok(text) => text.to_str()?.as_bytes().to_vec(),
            Err(_) => data.cast::<PyBytes>()?.as_bytes().to_vec(),
        };
        code.push(Linked { kind, name, data, folder });
    }
    let paths: String = py.import("weft.config")?.getattr("CUDA_NVRTC_EXTRA_SEARCH_PATHS")?.extract()?;
    let includes: Vec<PathBuf> = paths.split(':').filter(|path| !path.is_empty()).map(PathBuf::from).collect();
    let linking = Linking {
        code: &code,
        lto: jit.lto,
        max_registers: jit.code.max_registers,
        launch_bounds: jit.code.launch_bounds.map(|bounds| (bounds.threads, bounds.blocks.unwrap_or(1))),
        includes: &includes,
        toolkit: devices::toolkit(py)?,
        keeper: keeper.map(|keeper| keeper as &dyn CodeCache),
    };
    let (module, notes) = py
        .detach(|| {
            let _work = devices::fork::at_work();
            executor.link(artifact, &linking)
        })
        .map_err(|error| errors::runtime(py, &error))?;
    for note in notes {
        errors::warn(py, "LinkerWarning", &note)?;
    }
    Ok(module)
}

/// Notifies linked code that the code is loaded. The caller must keep the result alive as long as the code.
fn set_up(owner: &Bound<'_, Dispatcher>, links: &[Py<PyAny>], module: &Arc<dyn Module>) -> PyResult<Option<Py<PyAny>>> {
    let py = owner.py();
    let code = Bound::new(py, LoadedCode { module: Arc::clone(module) })?;
    let life = py.import("weft.cuda._code.link")?.call_method1("set_up", (PyList::new(py, links)?, code, owner))?;
    Ok((!life.is_none()).then(|| life.unbind()))
}

impl Code {
    /// The code as it was loaded: PTX text, or an object file.
    pub(super) fn bytes(&self) -> &[u8] {
        &self.output.artifact.code
    }

    /// Loads compiled code on a device.
    fn load(
        owner: Option<&Bound<'_, Dispatcher>>,
        py: Python<'_>,
        executor: &dyn Executor,
        (compiled, kernel, args): (&Compiled, &Kernel, &[ArgType]),
        jit: &JitOptions,
        links: &[Py<PyAny>],
    ) -> PyResult<Self> {
        let Compiled { output, is_lasting, .. } = compiled;
        timing::begin("load");
        let keeper = KernelCodeCache::of(jit, *is_lasting, kernel, args, &output.artifact.target);
        let keeper = keeper.as_ref();
        // Linked code always comes from the linker. For PTX alone, the driver's compiler generates better code.
        let links_alone = devices::settings(py)?.cache_machine_code;
        let linked =
            if links.is_empty() { None } else { Some(link(py, links, executor, &output.artifact, jit, keeper)?) };
        let loaded = py.detach(|| {
            let _work = devices::fork::at_work();
            match &linked {
                Some(module) => Self::entry(Arc::clone(module), kernel, jit),
                None => Self::entry(load(executor, &output.artifact, keeper.filter(|_| links_alone))?, kernel, jit),
            }
        });
        let (module, loaded) = loaded.map_err(|error| errors::runtime(py, &error))?;
        // On the CPU, no code is linked.
        let linked_owner = owner.filter(|_| !links.is_empty() && executor.kind() == "cuda");
        let life = linked_owner.map_or(Ok(None), |owner| set_up(owner, links, &module))?;
        Ok(Self { loaded, _module: module, _life: life, output: Arc::clone(output) })
    }

    /// The kernel in a loaded module.
    fn entry(module: Arc<dyn Module>, kernel: &Kernel, jit: &JitOptions) -> Result<LoadedParts, weft_runtime::Error> {
        let loaded = module.kernel(kernel)?;
        if let Some(percent) = jit.carveout {
            loaded.prefer_shared(percent)?;
        }
        Ok((module, loaded))
    }

    /// Loads compiled code that is not linked with other code, without Python. `None` if the device rejects it.
    pub(super) fn build(
        executor: &dyn Executor,
        compiled: Compiled,
        args: &[ArgType],
        jit: &JitOptions,
        request: &Unattended,
    ) -> Option<Built> {
        let artifact = &compiled.output.artifact;
        let kernel = artifact.kernels.first()?.clone();
        let keeper = KernelCodeCache::of(jit, compiled.is_lasting, &kernel, args, &artifact.target);
        let _aside = executor.beside_captures();
        let module = load(executor, artifact, keeper.as_ref().filter(|_| request.caches_machine_code)).ok()?;
        let (module, loaded) = Self::entry(module, &kernel, jit).ok()?;
        let code = Self { loaded, _module: module, _life: None, output: Arc::clone(&compiled.output) };
        Some(Built { compiled, kernel, code })
    }
}

/// A module, and the kernel in it.
type LoadedParts = (Arc<dyn Module>, Arc<dyn LoadedKernel>);

/// Loads code that is not linked with other code.
fn load(
    executor: &dyn Executor,
    artifact: &Artifact,
    keeper: Option<&KernelCodeCache>,
) -> Result<Arc<dyn Module>, weft_runtime::Error> {
    match keeper {
        Some(keeper) => executor.load_cached(artifact, keeper),
        None => executor.load(artifact),
    }
}

impl Overload {
    /// Compiles for a device. Nothing is loaded, apart from linked code.
    pub(crate) fn compile(
        owner: &Bound<'_, Dispatcher>,
        (device, executor): (u32, Arc<dyn Executor>),
        mut definition: Definition,
        args: &[ArgType],
        jit: &JitOptions,
        mut found: Found,
    ) -> PyResult<Self> {
        let py = owner.py();
        let target = options::target(py, &executor.target())?;
        let mut compiled = answers::compile(py, &mut definition, &mut found, args, &target, jit, Keep::default())?;
        let Some(kernel) = compiled.output.artifact.kernels.first().cloned() else {
            return Err(errors::internal(py, "the compiler returned no kernel"));
        };
        let code = OnceLock::new();
        // Linked code is notified with its owner, so the code must be loaded now.
        if !found.links.is_empty() {
            if !compiled.output.artifact.has_code() {
                compiled = answers::code(py, &definition, args, &target, jit, Keep::default())?;
            }
            let loaded = Code::load(Some(owner), py, &*executor, (&compiled, &kernel, args), jit, &found.links)?;
            let _new = code.set(loaded);
        }
        Ok(Self::of(py, (device, executor), kernel, (args, jit), (compiled, code, definition), found))
    }

    /// Compiles for another target than the device's. Nothing is loaded, and no warnings are issued.
    pub(super) fn compile_for(
        owner: &Bound<'_, Dispatcher>,
        definition: &Definition,
        args: &[ArgType],
        (jit, target): (&JitOptions, &Target),
        mut found: Found,
    ) -> PyResult<Self> {
        let py = owner.py();
        let mut definition = definition.clone();
        let compiled = answers::with_answers(py, &mut definition, &mut found, |definition| {
            engine::compile(py, definition, args, target.clone(), jit, Keep::default())
        })?;
        let Some(kernel) = compiled.output.artifact.kernels.first().cloned() else {
            return Err(errors::internal(py, "the compiler returned no kernel"));
        };
        let device = (devices::current_id(), devices::current(py)?);
        Ok(Self::of(py, device, kernel, (args, jit), (compiled, OnceLock::new(), definition), found))
    }

    fn of(
        py: Python<'_>,
        (device, executor): (u32, Arc<dyn Executor>),
        kernel: Kernel,
        (args, jit): (&[ArgType], &JitOptions),
        (compiled, code, definition): (Compiled, OnceLock<Code>, Definition),
        found: Found,
    ) -> Self {
        Self {
            args: args.to_vec(),
            device,
            executor,
            kernel,
            target: compiled.output.artifact.target.clone(),
            compiled,
            code,
            definition,
            jit: jit.clone(),
            lent: found
                .kept
                .iter()
                .filter_map(|array| {
                    array.bind(py).cast::<DeviceArray>().ok().and_then(|array| array.get().lent.clone())
                })
                .collect(),
            kept: found.kept,
            links: found.links,
            most: jit.code.assumptions,
            variants: Variants::default(),
            wanted: FactorChoice::default(),
            tunings: Tunings::default(),
            jobs: Jobs::default(),
        }
    }

    /// A variant of it that was compiled in the background with these options.
    pub(super) fn variant_of(&self, py: Python<'_>, jit: JitOptions, built: Built) -> Self {
        let Built { compiled, kernel, code } = built;
        Self {
            args: self.args.clone(),
            device: self.device,
            executor: Arc::clone(&self.executor),
            kernel,
            target: self.target.clone(),
            compiled,
            code: OnceLock::from(code),
            definition: self.definition.clone(),
            jit,
            lent: self.lent.clone(),
            kept: self.kept.iter().map(|array| array.clone_ref(py)).collect(),
            links: self.links.iter().map(|link| link.clone_ref(py)).collect(),
            most: self.most,
            variants: Variants::default(),
            wanted: FactorChoice::default(),
            tunings: Tunings::default(),
            jobs: Jobs::default(),
        }
    }

    /// Its code. Loads it on first use, and compiles it if the compilation stopped at the ABI.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(crate) fn code(&self, py: Python<'_>) -> PyResult<&Code> {
        if let Some(code) = self.code.get() {
            return Ok(code);
        }
        let has_code = self.compiled.output.artifact.has_code();
        let timing = Timing::start(py, if has_code { "load" } else { "look up" })?;
        let target = options::target(py, &self.executor.target())?;
        let compiled = if has_code {
            self.compiled.clone()
        } else {
            answers::code(py, &self.definition, &self.args, &target, &self.jit, Keep::default())?
        };
        let code = self.load(py, &compiled)?;
        timing.print(py, || {
            let what = if has_code { "loaded" } else { "as written" };
            format!("{}, {what}{}", self.shown(), if compiled.was_cached && !has_code { ", cached" } else { "" })
        })?;
        Ok(code)
    }

    /// Loads its code if the compilation did not stop at the ABI, as a part of the measured time of the compilation.
    pub(super) fn load_compiled(&self, py: Python<'_>) -> PyResult<()> {
        if self.code.get().is_none() && self.compiled.output.artifact.has_code() {
            self.load(py, &self.compiled)?;
        }
        Ok(())
    }

    fn load(&self, py: Python<'_>, compiled: &Compiled) -> PyResult<&Code> {
        let of = (compiled, &self.kernel, self.args.as_slice());
        let code = Code::load(None, py, &*self.executor, of, &self.jit, &self.links)?;
        // If another thread has loaded it first, that code is used.
        Ok(self.code.get_or_init(|| code))
    }

    /// Its code on the device.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(crate) fn loaded(&self, py: Python<'_>) -> PyResult<&Arc<dyn LoadedKernel>> {
        Ok(&self.code(py)?.loaded)
    }

    /// Its code as it was compiled, if the compilation did not stop at the ABI.
    pub(super) fn code_bytes(&self) -> Option<&[u8]> {
        let artifact = &self.compiled.output.artifact;
        if artifact.has_code() { Some(&artifact.code) } else { self.made().map(Code::bytes) }
    }

    /// Its code, if it was loaded.
    pub(super) fn made(&self) -> Option<&Code> {
        self.code.get()
    }

    /// Its target.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Its name with the types of its arguments, and its target.
    pub(crate) fn shown(&self) -> String {
        let args: Vec<String> = self.args.iter().map(ToString::to_string).collect();
        format!("{}({}) for {}", self.kernel.name, args.join(", "), self.target)
    }

    /// Its assumptions about a launch.
    pub(super) fn assumed(&self) -> Assumptions {
        self.jit.code.assumptions.and(self.kernel.gains)
    }

    /// Maps arguments of the types of `key` to this kernel's slots.
    pub(crate) fn resolve(self: &Arc<Self>, py: Python<'_>, words: &[u32], casts: Vec<Cast>) -> PyResult<Resolved> {
        let given = key::decode(words);
        let cells = key::cells_of(&given, &self.args, &self.kernel.slots);
        let cells = cells.ok_or_else(|| {
            errors::internal(py, &format!("kernel `{}` has a slot that fits none of its arguments", self.kernel.name))
        })?;
        let bounds = in_place::bounds(words, self);
        let integers = assumptions::words(&self.kernel.slots, &cells);
        Ok(Resolved {
            key: words.into(),
            overload: Arc::clone(self),
            assumed: self.assumed(),
            arrays: assumptions::arrays(&given, self, &integers),
            words: integers,
            signs: assumptions::signs(&self.kernel.slots, &cells),
            addresses: Addresses::of(&self.kernel, &given, &cells),
            cells,
            casts: casts.into(),
            bounds,
            variants: Variants::default(),
            last_choice: LastChoice::default(),
        })
    }
}

/// A kernel's loaded code, for the callbacks of linked code.
#[pyclass(frozen, module = "weft._weft", name = "ObjectCode")]
#[derive(Debug)]
pub(crate) struct LoadedCode {
    module: Arc<dyn Module>,
}

#[pymethods]
impl LoadedCode {
    /// The driver's handle: a `CUlibrary`, or a `CUmodule` where the driver is older than CUDA 12.0.
    #[getter]
    fn handle(&self) -> u64 {
        self.module.library().unwrap_or_else(|| self.module.handle())
    }

    /// The handle of its code in the current context, a `CUmodule`.
    fn get_module(&self) -> u64 {
        self.module.handle()
    }

    /// The address and the bytes of a global variable.
    fn get_global(&self, py: Python<'_>, name: &str) -> PyResult<(u64, u64)> {
        self.module.global(name).map_err(|error| errors::runtime(py, &error))
    }
}
