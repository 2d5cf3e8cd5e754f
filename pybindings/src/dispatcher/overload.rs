//! Compiled kernels: one [`Overload`] for each tuple of argument types and device, and how a launch's arguments reach
//! its slots ([`Resolved`]).
//!
//! Of a kernel for which [other factors](coarsened) are estimated to be quicker there is the ABI first, and its [`Code`] when
//! somebody needs it: a large launch runs the variant.

use std::{
    path::PathBuf,
    sync::{Arc, OnceLock},
};

use pyo3::{
    gc::{PyTraverseError, PyVisit},
    prelude::*,
    types::{PyBytes, PyList, PyString, PyTuple},
};
use weft_artifact::{Addresses, ArgType, Artifact, Facts, Kernel};
use weft_compiler::{
    pipeline::Output,
    request::{self, JitOptions, Keep},
};
use weft_runtime::{
    BlockSize, Buffer, CodeKeeper, Executor, Linked, LinkedKind, Linking, LoadedKernel, Module, best_block,
};

use super::{
    Dispatcher, answers, around,
    coarsened::{self, Wanted},
    confined::{self, Later},
    launcher::launch_config,
    small,
    tune::Tunings,
};
use crate::{
    args::convert::Cast,
    arrays::device_array::DeviceArray,
    devices,
    engine::{
        Compiled, Definition,
        code::Keeper,
        options,
        timing::{self, Timing},
    },
    errors,
    types::{
        Signature,
        key::{self, BoundCell},
        tuple_of_types,
    },
};

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
    /// What it was compiled for: `"sm_90"` or `"host"`.
    target: String,
    /// Its code, if somebody has needed it.
    code: OnceLock<Code>,
    /// It was not compiled now, but kept from another time.
    pub(crate) was_kept: bool,
    /// What it was compiled of: texts that are asked for later are of the same constants.
    pub(crate) definition: Definition,
    /// The options that it was compiled with.
    pub(super) jit: JitOptions,
    /// The device arrays whose addresses are in the code.
    pub(super) kept: Vec<Py<PyAny>>,
    /// What was linked with it.
    pub(super) links: Vec<Py<PyAny>>,
    /// The variant that writes nothing beside its arrays.
    pub(super) confined: Later<Overload>,
    /// The most that a variant of it may take for granted of a launch.
    pub(super) most: Facts,
    /// The variants for launches of which other facts hold.
    pub(super) variants: small::Variants<Overload>,
    /// The variants of which a thread does the work of several.
    pub(super) coarsened: coarsened::Variants<Overload>,
    /// Which of them launches are to have.
    pub(super) wanted: Wanted,
    /// What was measured for that.
    pub(super) tunings: Tunings,
    /// Another process may find it: no address of this one is in it.
    pub(super) is_lasting: bool,
    /// Memory of them, if work in streams whose number is not this must be noted.
    pub(crate) lent: Vec<(u64, Arc<dyn Buffer>)>,
}

/// A kernel's code, loaded on its device.
#[derive(Debug)]
pub(crate) struct Code {
    /// It can be launched.
    pub(crate) loaded: Arc<dyn LoadedKernel>,
    /// Holds the code as long as the kernel is used.
    _module: Arc<dyn Module>,
    /// When it ends, the code that was linked is told so.
    _life: Option<Py<PyAny>>,
    /// Code and ABI as compiled.
    output: Arc<Output>,
}

/// An overload for arguments of certain types.
#[derive(Debug)]
pub(crate) struct Resolved {
    /// The arguments' types.
    pub(crate) key: Box<[u32]>,
    /// The kernel.
    pub(crate) overload: Arc<Overload>,
    /// For each cell of the launch the argument's cell that it is taken from.
    pub(crate) cells: Box<[u32]>,
    /// Conversions to declared types.
    pub(crate) casts: Box<[Cast]>,
    /// The cells of the launch that say where the kernel may write.
    pub(super) bounds: Box<[BoundCell]>,
    /// The same for the kernel's confined variant.
    pub(super) confined: Later<Resolved>,
    /// What the kernel takes for granted of a launch.
    pub(super) granted: Facts,
    /// The integers that are to be small.
    pub(super) words: Box<[small::Word]>,
    /// The arrays that are to be small, where those do not say it.
    pub(super) arrays: Box<[small::Array]>,
    /// The integers that are not to be negative.
    pub(super) signs: Box<[small::Sign]>,
    /// Where the addresses of its arrays are.
    pub(super) addresses: Addresses,
    /// The same for the kernel's variants for launches of which other facts hold.
    pub(super) variants: small::Variants<Resolved>,
    /// The same for the variants of which a thread does the work of several.
    pub(super) coarsened: coarsened::Variants<Resolved>,
}

/// What capturing a kernel's functions has found besides their definitions.
#[derive(Debug, Default)]
pub(crate) struct Found {
    /// Device arrays whose addresses are in the code.
    pub(crate) kept: Vec<Py<PyAny>>,
    /// What is linked with it: paths and `LinkableCode`.
    pub(crate) links: Vec<Py<PyAny>>,
}

/// Links a kernel's code with what its functions name, and loads it.
fn link(
    py: Python<'_>,
    links: &[Py<PyAny>],
    executor: &dyn Executor,
    artifact: &Artifact,
    jit: &JitOptions,
    keeper: Option<&Keeper>,
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
        keeper: keeper.map(|keeper| keeper as &dyn CodeKeeper),
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

/// Tells what was linked that the code is loaded. What it gives is to be kept as long as the code.
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

    /// Loads what was compiled on a device.
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
        let keeper = Keeper::of(jit, *is_lasting, kernel, args, &output.artifact.target);
        let keeper = keeper.as_ref();
        // Linked code is the linker's anyway; of PTX alone the driver's compiler makes the better code.
        let links_alone = devices::settings(py)?.cache_machine_code;
        let linked =
            if links.is_empty() { None } else { Some(link(py, links, executor, &output.artifact, jit, keeper)?) };
        let loaded = py.detach(|| {
            let _work = devices::fork::at_work();
            let module = match (&linked, keeper.filter(|_| links_alone)) {
                (Some(module), _) => Arc::clone(module),
                (None, Some(keeper)) => executor.load_kept(&output.artifact, keeper)?,
                (None, None) => executor.load(&output.artifact)?,
            };
            let loaded = module.kernel(kernel)?;
            if let Some(percent) = jit.carveout {
                loaded.prefer_shared(percent)?;
            }
            Ok((module, loaded))
        });
        let (module, loaded) = loaded.map_err(|error| errors::runtime(py, &error))?;
        // A CPU has linked nothing.
        let told = owner.filter(|_| !links.is_empty() && executor.kind() == "cuda");
        let life = told.map_or(Ok(None), |owner| set_up(owner, links, &module))?;
        Ok(Self { loaded, _module: module, _life: life, output: Arc::clone(output) })
    }
}

impl Overload {
    /// Compiles for the current device and loads the code, if there is [any](weft_compiler::request::Options::choose) yet.
    pub(crate) fn compile(
        owner: &Bound<'_, Dispatcher>,
        mut definition: Definition,
        args: &[ArgType],
        jit: &JitOptions,
        mut found: Found,
    ) -> PyResult<Self> {
        let py = owner.py();
        let executor = devices::current(py)?;
        let target = options::target(py, &executor.target())?;
        let mut compiled = answers::compile(py, &mut definition, &mut found, args, &target, jit, Keep::default())?;
        let Found { kept, links } = found;
        let Some(kernel) = compiled.output.artifact.kernels.first().cloned() else {
            return Err(errors::internal(py, "the compiler gave no kernel"));
        };
        // What is linked is told of its owner.
        if !links.is_empty() && !compiled.output.artifact.has_code() {
            compiled = answers::code(py, &definition, args, &target, jit, Keep::default())?;
        }
        let code = OnceLock::new();
        if compiled.output.artifact.has_code() {
            let loaded = Code::load(Some(owner), py, &*executor, (&compiled, &kernel, args), jit, &links)?;
            let _new = code.set(loaded);
        }
        let Compiled { output, was_kept, is_lasting } = compiled;
        Ok(Self {
            args: args.to_vec(),
            device: devices::current_id(),
            executor,
            kernel,
            target: output.artifact.target.clone(),
            code,
            was_kept,
            definition,
            jit: jit.clone(),
            lent: kept
                .iter()
                .filter_map(|array| {
                    array.bind(py).cast::<DeviceArray>().ok().and_then(|array| array.get().lent.clone())
                })
                .collect(),
            kept,
            links,
            confined: Later::default(),
            most: jit.code.facts,
            variants: small::Variants::default(),
            coarsened: coarsened::Variants::default(),
            wanted: Wanted::default(),
            tunings: Tunings::default(),
            is_lasting,
        })
    }

    /// Its code, compiled and loaded if nobody has needed it before.
    ///
    /// # Errors
    ///
    /// As a launch that compiles.
    pub(crate) fn code(&self, py: Python<'_>) -> PyResult<&Code> {
        if let Some(code) = self.code.get() {
            return Ok(code);
        }
        let timing = Timing::start(py, "look up")?;
        let target = options::target(py, &self.executor.target())?;
        let compiled = answers::code(py, &self.definition, &self.args, &target, &self.jit, Keep::default())?;
        let of = (&compiled, &self.kernel, self.args.as_slice());
        let code = Code::load(None, py, &*self.executor, of, &self.jit, &self.links)?;
        let kept = if compiled.was_kept { ", kept" } else { "" };
        timing.print(py, || format!("{}, as it is{kept}", self.shown()))?;
        // Another thread may have been quicker.
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

    /// Its code, if somebody has needed it.
    pub(super) fn made(&self) -> Option<&Code> {
        self.code.get()
    }

    /// What it was compiled for.
    pub(super) fn target(&self) -> &str {
        &self.target
    }

    /// Its name with the types of its arguments, and what it is for.
    pub(crate) fn shown(&self) -> String {
        let args: Vec<String> = self.args.iter().map(ToString::to_string).collect();
        format!("{}({}) for {}", self.kernel.name, args.join(", "), self.target)
    }

    /// What it takes for granted of a launch.
    pub(super) fn granted(&self) -> Facts {
        self.jit.code.facts.and(self.kernel.gains)
    }

    /// How arguments of the types of `key` reach this kernel.
    pub(crate) fn resolve(self: &Arc<Self>, py: Python<'_>, words: &[u32], casts: Vec<Cast>) -> PyResult<Resolved> {
        let given = key::decode(words);
        let cells = key::cells_of(&given, &self.args, &self.kernel.slots);
        let cells = cells.ok_or_else(|| {
            errors::internal(py, &format!("kernel `{}` has a slot that fits none of its arguments", self.kernel.name))
        })?;
        let bounds = confined::bounds(words, self);
        let integers = small::words(&self.kernel.slots, &cells);
        Ok(Resolved {
            key: words.into(),
            overload: Arc::clone(self),
            granted: self.granted(),
            arrays: small::arrays(&given, self, &integers),
            words: integers,
            signs: small::signs(&self.kernel.slots, &cells),
            addresses: Addresses::of(&self.kernel, &given, &cells),
            cells,
            casts: casts.into(),
            bounds,
            confined: Later::default(),
            variants: small::Variants::default(),
            coarsened: coarsened::Variants::default(),
        })
    }
}

/// A kernel's code as it was loaded, for the callbacks of what is linked with it.
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

    /// The handle of its code in the present context, a `CUmodule`.
    fn get_module(&self) -> u64 {
        self.module.handle()
    }

    /// The address and the bytes of a global variable.
    fn get_global(&self, py: Python<'_>, name: &str) -> PyResult<(u64, u64)> {
        self.module.global(name).map_err(|error| errors::runtime(py, &error))
    }
}

/// A compiled kernel, as `dispatcher.overloads` has it.
#[pyclass(frozen, module = "weft._weft", name = "Kernel")]
#[derive(Debug)]
pub(crate) struct CompiledKernel {
    owner: Py<Dispatcher>,
    pub(crate) overload: Arc<Overload>,
}

impl CompiledKernel {
    /// One of a dispatcher's kernels.
    pub(super) fn new(owner: &Bound<'_, Dispatcher>, overload: &Arc<Overload>) -> Self {
        Self { owner: owner.clone().unbind(), overload: Arc::clone(overload) }
    }

    /// The kernel compiled for GPUs of a compute capability, the device's unless one is given.
    fn compiled_for(&self, py: Python<'_>, cc: Option<(u32, u32)>, keep: Keep) -> PyResult<Arc<Output>> {
        let (major, minor) = cc.unwrap_or(self.overload.executor.attributes().compute_capability);
        let Overload { definition, args, jit, .. } = &*self.overload;
        let target = options::of_capability(major, minor);
        Ok(answers::compile_whole(py, &mut definition.clone(), args, &target, jit, keep)?.output)
    }
}

#[pymethods]
impl CompiledKernel {
    /// The types that it was compiled for.
    #[getter]
    fn argument_types<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        tuple_of_types(py, &self.overload.args)
    }

    /// The same as a signature.
    #[getter]
    fn signature(&self) -> Signature {
        let args = self.overload.args.clone();
        Signature::from_request(&request::Signature { args, returns: None })
    }

    /// How its threads are coarsened, or why they are not, for people: as for the last launch that had another variant. Empty
    /// where nobody has asked for it, or no launch could be divided so.
    #[getter]
    fn coarsening(&self) -> String {
        let last = self.overload.coarsened.last();
        last.as_ref().unwrap_or(&self.overload).kernel.coarsening.note.clone()
    }

    /// Factors that its threads can be coarsened by, as texts that `coarsen` takes, those first that are estimated to be
    /// quicker, each with its time in thousandths of the kernel's and a line for people; empty where nobody asked for a choice.
    #[getter]
    fn coarsening_candidates(&self) -> Vec<(String, u32, &str)> {
        let candidates = self.overload.kernel.coarsening.candidates.iter();
        candidates.map(|one| (one.factors.to_string(), one.time, one.note.as_str())).collect()
    }

    /// For itself and each variant of it for launches of which other facts hold, in no order: what is taken for granted of
    /// a launch, of `"small"`, `"nonneg"`, `"disjoint"` and `"aligned"`.
    #[getter]
    fn facts(&self) -> Vec<Vec<&'static str>> {
        let variants = self.overload.variants.iter().map(|variant| variant.granted().names().collect());
        std::iter::once(self.overload.granted().names().collect()).chain(variants).collect()
    }

    /// It has line tables and is not optimized, and raises what Python does.
    #[getter]
    fn debug(&self) -> bool {
        self.overload.jit.code.debug
    }

    /// It has line tables.
    #[getter]
    fn lineinfo(&self) -> bool {
        self.overload.jit.code.lineinfo
    }

    /// Its PTX for GPUs of a compute capability, the device's unless one is given.
    #[pyo3(signature = (cc=None))]
    fn inspect_asm(&self, py: Python<'_>, cc: Option<(u32, u32)>) -> PyResult<String> {
        let output = self.compiled_for(py, cc, Keep::default())?;
        Ok(String::from_utf8_lossy(&output.artifact.code).into_owned())
    }

    /// Its LLVM IR for those.
    #[pyo3(signature = (cc=None))]
    fn inspect_llvm(&self, py: Python<'_>, cc: Option<(u32, u32)>) -> PyResult<String> {
        let output = self.compiled_for(py, cc, Keep { llvm: true, ..Keep::default() })?;
        output.llvm.clone().ok_or_else(|| errors::internal(py, "the compiler gave no LLVM IR"))
    }

    /// The symbol in the code.
    #[getter]
    fn entry_name(&self) -> &str {
        &self.overload.kernel.symbol
    }

    /// What it was compiled for: `"sm_90"` or `"host"`.
    #[getter]
    fn target(&self) -> &str {
        self.overload.target()
    }

    /// Another process compiles it for the GPU that it has, or finds it where the cache of compilations keeps it.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rebuild = py.import("weft._pickle")?.getattr("rebuild_kernel")?;
        Ok((rebuild, (&self.owner, self.signature()).into_pyobject(py)?))
    }

    /// The code as it was loaded: PTX text, or an object file.
    #[getter]
    fn code(&self, py: Python<'_>) -> PyResult<&[u8]> {
        Ok(self.overload.code(py)?.bytes())
    }

    /// Registers a thread; 0 on the CPU.
    #[getter]
    fn regs_per_thread(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.registers())
    }

    /// Static shared memory of a block in bytes.
    #[getter]
    fn shared_mem_per_block(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.shared_bytes())
    }

    /// Local memory of a thread in bytes; on the CPU that of its arrays.
    #[getter]
    fn local_mem_per_thread(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.local_bytes())
    }

    /// Constant memory in bytes; on the CPU the constants in the code, captured arrays and texts.
    #[getter]
    fn const_mem_size(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.const_bytes())
    }

    /// Threads that a block of this kernel can have.
    #[getter]
    fn max_threads_per_block(&self, py: Python<'_>) -> PyResult<u32> {
        Ok(self.overload.loaded(py)?.max_threads_per_block())
    }

    /// Its launches are cooperative: all blocks of the grid run at a time.
    #[getter]
    fn cooperative(&self) -> bool {
        self.overload.kernel.cooperative
    }

    /// How many blocks of a size a multiprocessor runs at a time, a core on the CPU; 0 for a block that cannot be launched.
    #[pyo3(signature = (blockdim, dynsmemsize=0))]
    fn active_blocks_per_multiprocessor(
        &self,
        py: Python<'_>,
        blockdim: &Bound<'_, PyAny>,
        dynsmemsize: u32,
    ) -> PyResult<u32> {
        let active = self.overload.loaded(py)?.active_blocks(threads(blockdim)?, dynsmemsize);
        active.map_err(|error| errors::runtime(py, &error))
    }

    /// The block size with which a multiprocessor runs the most threads, and the fewest such blocks that fill the device; both
    /// are 0 if no block can be launched. `dynsmemsize` is a number of bytes or gives it for a block size; no block has more
    /// than `limit` threads unless that is 0.
    #[pyo3(signature = (dynsmemsize=None, limit=0))]
    fn max_potential_block_size(
        &self,
        py: Python<'_>,
        dynsmemsize: Option<&Bound<'_, PyAny>>,
        limit: u32,
    ) -> PyResult<(u32, u32)> {
        let (loaded, executor) = (self.overload.loaded(py)?, &self.overload.executor);
        let most = loaded.max_threads_per_block();
        let most = if limit == 0 { most } else { most.min(limit) };
        let bytes = |threads: u32| match dynsmemsize {
            None => Ok(0),
            Some(of) if of.is_callable() => of.call1((threads,))?.extract::<u32>(),
            Some(bytes) => bytes.extract::<u32>(),
        };
        let active = |threads: u32| {
            let active = loaded.active_blocks(threads, bytes(threads)?);
            active.map_err(|error| errors::runtime(py, &error))
        };
        let BlockSize { threads, grid } = best_block(executor.attributes(), most, active)?;
        Ok((grid, threads))
    }

    /// How many blocks of a size a cooperative launch can have.
    #[pyo3(signature = (blockdim, dynsmemsize=0))]
    fn max_cooperative_grid_blocks(
        &self,
        py: Python<'_>,
        blockdim: &Bound<'_, PyAny>,
        dynsmemsize: u32,
    ) -> PyResult<u64> {
        let most = self.overload.loaded(py)?.most_blocks_at_once(threads(blockdim)?, dynsmemsize);
        most.map_err(|error| errors::runtime(py, &error))
    }

    /// Whether there is such a kernel for each launch configuration.
    #[getter]
    fn launch_config_sensitive(&self) -> bool {
        self.owner.get().is_sensitive()
    }

    /// Its code, as texts.
    #[getter]
    fn library<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        let library = py.import("weft.cuda._code.results")?.getattr("CodeLibrary")?;
        library.call1((self.entry_name(), &self.owner, self.argument_types(py)?))
    }

    /// Loads the code on the current device, as it already is.
    fn bind(&self, py: Python<'_>) -> PyResult<()> {
        let current = devices::current_id();
        if self.overload.device == current {
            return Ok(());
        }
        let message = format!(
            "this kernel is loaded on device {}, and the current one is {current}: its dispatcher's `compile` gives the \
             one for this device",
            self.overload.device
        );
        Err(errors::launch(py, &message))
    }

    /// Launches this kernel, whatever else its dispatcher has for such arguments. They are converted to its types.
    #[pyo3(signature = (args, griddim, blockdim, stream=None, sharedmem=None))]
    fn launch(
        &self,
        args: &Bound<'_, PyAny>,
        griddim: &Bound<'_, PyAny>,
        blockdim: &Bound<'_, PyAny>,
        stream: Option<&Bound<'_, PyAny>>,
        sharedmem: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let py = args.py();
        self.bind(py)?;
        let owner = self.owner.bind(py);
        let launcher = Dispatcher::launcher(owner, launch_config(griddim, blockdim, sharedmem, None)?, stream, false)?;
        let args = PyTuple::new(py, args.try_iter()?.collect::<PyResult<Vec<_>>>()?)?;
        let extended = around::extend(owner, &owner.get().complete(&args, None)?, stream.map(Bound::as_unbound))?;
        around::launch_kernel(&launcher, &extended, &self.overload)
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.owner)
    }

    /// For each parameter: its name, whether the kernel reads the arrays in it, and whether it writes them.
    #[getter]
    fn access(&self) -> Vec<(&str, bool, bool)> {
        self.overload.kernel.params.iter().map(|p| (p.name.as_str(), p.access.reads, p.access.writes)).collect()
    }

    fn __repr__(&self) -> String {
        format!("<weft kernel {}>", self.overload.shown())
    }
}

/// Threads of a block with such extents.
fn threads(blockdim: &Bound<'_, PyAny>) -> PyResult<u32> {
    match blockdim.extract::<Vec<u32>>() {
        Ok(extents) => Ok(extents.iter().fold(1, |product: u32, extent| product.saturating_mul(*extent))),
        Err(_) => blockdim.extract(),
    }
}
