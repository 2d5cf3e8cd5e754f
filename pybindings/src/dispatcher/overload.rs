//! Compiled kernels: one [`Overload`] for each tuple of argument types and device, and how a launch's arguments reach
//! its slots ([`Resolved`]).

use std::{path::PathBuf, sync::Arc};

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
use weft_runtime::{Buffer, CodeKeeper, Executor, Linked, LinkedKind, Linking, LoadedKernel, Module};

use super::{
    Dispatcher, answers,
    coarsened::{self, Wanted},
    confined::{self, Later},
    small,
    tune::Tunings,
};
use crate::{
    args::convert::Cast,
    arrays::device_array::DeviceArray,
    devices,
    engine::{Compiled, Definition, code::Keeper, options, timing},
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
    /// Its code on the device.
    pub(crate) loaded: Arc<dyn LoadedKernel>,
    /// When it ends, the code that was linked is told so.
    _life: Option<Py<PyAny>>,
    /// It was not compiled now, but kept from another time.
    pub(crate) was_kept: bool,
    /// Holds the code as long as the kernel is used.
    _module: Arc<dyn Module>,
    /// Code and ABI as compiled.
    output: Arc<Output>,
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

impl Overload {
    /// Compiles for the current device and loads the code.
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
        let compiled = answers::compile(py, &mut definition, &mut found, args, &target, jit, Keep::default())?;
        let Compiled { output, was_kept, is_lasting } = compiled;
        let Found { kept, links } = found;
        let Some(kernel) = output.artifact.kernels.first().cloned() else {
            return Err(errors::internal(py, "the compiler gave no kernel"));
        };
        timing::begin("load");
        let keeper = Keeper::of(jit, is_lasting, &kernel, args, &output.artifact.target);
        let keeper = keeper.as_ref();
        // Linked code is the linker's anyway; of PTX alone the driver's compiler makes the better code.
        let links_alone = devices::settings(py)?.cache_machine_code;
        let linked =
            if links.is_empty() { None } else { Some(link(py, &links, &*executor, &output.artifact, jit, keeper)?) };
        let loaded = py.detach(|| {
            let _work = devices::fork::at_work();
            let module = match (&linked, keeper.filter(|_| links_alone)) {
                (Some(module), _) => Arc::clone(module),
                (None, Some(keeper)) => executor.load_kept(&output.artifact, keeper)?,
                (None, None) => executor.load(&output.artifact)?,
            };
            let loaded = module.kernel(&kernel)?;
            Ok((module, loaded))
        });
        let (module, loaded) = loaded.map_err(|error| errors::runtime(py, &error))?;
        // A CPU has linked nothing.
        let told = !links.is_empty() && executor.kind() == "cuda";
        let life = if told { set_up(owner, &links, &module)? } else { None };
        Ok(Self {
            args: args.to_vec(),
            device: devices::current_id(),
            executor,
            kernel,
            loaded,
            _module: module,
            output,
            was_kept,
            definition,
            jit: jit.clone(),
            lent: kept
                .iter()
                .filter_map(|array| {
                    array.bind(py).cast::<DeviceArray>().ok().and_then(|array| array.get().lent.clone())
                })
                .collect(),
            _life: life,
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

    /// The code as it was loaded.
    pub(super) fn code(&self) -> &[u8] {
        &self.output.artifact.code
    }

    /// What it was compiled for.
    pub(super) fn target(&self) -> &str {
        &self.output.artifact.target
    }

    /// Its name with the types of its arguments, and what it is for.
    pub(crate) fn shown(&self) -> String {
        let args: Vec<String> = self.args.iter().map(ToString::to_string).collect();
        format!("{}({}) for {}", self.kernel.name, args.join(", "), self.output.artifact.target)
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
    /// The jitted function.
    pub(super) dispatcher: Py<Dispatcher>,
    pub(crate) overload: Arc<Overload>,
}

impl CompiledKernel {
    /// The kernel compiled for GPUs of a compute capability, the device's unless one is given.
    fn compiled_for(&self, py: Python<'_>, cc: Option<(u32, u32)>, keep: Keep) -> PyResult<Arc<Output>> {
        let (major, minor) = cc.unwrap_or(self.overload.executor.attributes().compute_capability);
        let Overload { definition, args, jit, .. } = &*self.overload;
        let target = options::of_capability(major, minor);
        let found = &mut Found::default();
        Ok(answers::compile(py, &mut definition.clone(), found, args, &target, jit, keep)?.output)
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
        &self.overload.output.artifact.target
    }

    fn __traverse__(&self, visit: PyVisit<'_>) -> Result<(), PyTraverseError> {
        visit.call(&self.dispatcher)
    }

    /// Another process compiles it for the GPU that it has, or finds it where the cache of compilations keeps it.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<(Bound<'py, PyAny>, Bound<'py, PyTuple>)> {
        let rebuild = py.import("weft._pickle")?.getattr("rebuild_kernel")?;
        Ok((rebuild, (&self.dispatcher, self.signature()).into_pyobject(py)?))
    }

    /// The code as it was loaded: PTX text, or an object file.
    #[getter]
    fn code(&self) -> &[u8] {
        &self.overload.output.artifact.code
    }

    /// Registers a thread; 0 on the CPU.
    #[getter]
    fn regs_per_thread(&self) -> u32 {
        self.overload.loaded.registers()
    }

    /// Static shared memory of a block in bytes.
    #[getter]
    fn shared_mem_per_block(&self) -> u32 {
        self.overload.loaded.shared_bytes()
    }

    /// Local memory of a thread in bytes; on the CPU that of its arrays.
    #[getter]
    fn local_mem_per_thread(&self) -> u32 {
        self.overload.loaded.local_bytes()
    }

    /// Constant memory in bytes; on the CPU the constants in the code, captured arrays and texts.
    #[getter]
    fn const_mem_size(&self) -> u32 {
        self.overload.loaded.const_bytes()
    }

    /// Threads that a block of this kernel can have.
    #[getter]
    fn max_threads_per_block(&self) -> u32 {
        self.overload.loaded.max_threads_per_block()
    }

    /// Its launches are cooperative: all blocks of the grid run at a time.
    #[getter]
    fn cooperative(&self) -> bool {
        self.overload.kernel.cooperative
    }

    /// How many blocks of a size a cooperative launch can have.
    #[pyo3(signature = (blockdim, dynsmemsize=0))]
    fn max_cooperative_grid_blocks(
        &self,
        py: Python<'_>,
        blockdim: &Bound<'_, PyAny>,
        dynsmemsize: u32,
    ) -> PyResult<u64> {
        let threads = match blockdim.extract::<Vec<u32>>() {
            Ok(extents) => extents.iter().fold(1_u32, |product, extent| product.saturating_mul(*extent)),
            Err(_) => blockdim.extract::<u32>()?,
        };
        let most = self.overload.loaded.most_blocks_at_once(threads, dynsmemsize);
        most.map_err(|error| errors::runtime(py, &error))
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
