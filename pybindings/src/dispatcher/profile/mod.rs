//! Counts what a launch does on a GPU: compiles its kernel for the GPU, and runs the PTX in the simulator on copies of
//! the arrays. The launch itself is not made.

mod report;

use std::{
    ops::Range,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyTuple},
};
use weft_artifact::{ArgType, Assumptions, Slot};
use weft_compiler::{
    request::{JitOptions, Target},
    target::gpus::{GPUS, Gpu},
};
use weft_runtime::LaunchConfig;
use weft_simulator::{Error, Launch, Memory, Module, Region, Sample};

use self::report::Report;
use super::{
    Dispatcher,
    launch::{make_slots, settle_cells},
    overload::{Found, Overload, Resolved},
    staging::{self, Staging},
    tensors,
    variants::coarsened::FactorChoice,
};
use crate::{
    args::{Arguments, convert::Cast},
    arrays::strides,
    capture::Capturer,
    devices,
    engine::{Definition, options},
    errors,
    types::key,
};

/// Memory after an array up to a multiple of this can be accessed, as on a GPU, where allocations are rounded up.
const GRANULE: u64 = 512;

/// Dimensions of a grid or a block.
type Dims = (u32, u32, u32);

/// Counts what a launch does on a GPU of a name such as `h100`, within a time in seconds: larger launches are sampled.
/// The arguments are one for each parameter.
///
/// # Errors
///
/// `ValueError` for a GPU that is not known; `LaunchError` where the device is a GPU, or where the simulator cannot run the kernel; those of a launch.
#[pyfunction]
#[pyo3(signature = (dispatcher, griddim, blockdim, sharedmem, args, gpu, seconds))]
pub(crate) fn profile_launch<'py>(
    dispatcher: &Bound<'py, Dispatcher>,
    griddim: Dims,
    blockdim: Dims,
    sharedmem: u32,
    args: &Bound<'py, PyTuple>,
    gpu: &str,
    seconds: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let py = dispatcher.py();
    let config = LaunchConfig {
        grid: griddim.into(),
        block: blockdim.into(),
        shared_bytes: sharedmem,
        cluster: LaunchConfig::ALONE,
    };
    if devices::current(py)?.kind() != "cpu" {
        let message = "profiles are counted on the CPU: set WEFT_DEVICE=cpu before the first use of weft";
        return Err(errors::launch(py, message));
    }
    let gpu = Gpu::parse(gpu).map_err(|unknown| PyValueError::new_err(unknown.to_string()))?;
    let target = options::target(py, gpu.sm)?;
    let mut arguments = Arguments::default();
    arguments.stream = Some(0);
    arguments.push_all(args).map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
    let mut kernel = Variant::new(dispatcher, &arguments, &target)?;
    let mut resolved = kernel.compile(dispatcher, &arguments)?;
    staging::check_elements(dispatcher.get(), &resolved, &arguments)?;
    let mut staging = Staging::holding(tensors::settle(py, &resolved, &mut arguments)?);
    if !arguments.hosts.is_empty() {
        let plan = staging::plan(dispatcher, &resolved, &arguments)?.copying();
        let executor = Arc::clone(&resolved.overload.executor);
        plan.stage(dispatcher, &*executor, None, &mut arguments, false, &mut staging)?;
    }
    let arrays = arrays(&resolved, &arguments).map_err(|error| errors::runtime(py, &error))?;
    settle_cells(&resolved, &mut arguments);
    if let Some(assumptions) = resolved.assumptions_for(&config, &arguments) {
        kernel.jit.code.assumptions = assumptions;
        resolved = kernel.compile(dispatcher, &arguments)?;
    }
    let mut slots = Vec::new();
    make_slots(&resolved, &arguments, &mut slots);
    let mut launch = Launch {
        params: params(&resolved, &slots),
        dynamic_shared: sharedmem,
        ..Launch::new(config.grid, config.block)
    };
    let code = resolved.overload.code_bytes().unwrap_or_default().to_vec();
    let ptx = String::from_utf8_lossy(&code).into_owned();
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let symbol = &resolved.overload.kernel.symbol;
    let is_whole = resolved.overload.kernel.cooperative;
    let simulated = py
        .detach(|| {
            let _work = devices::fork::at_work();
            simulate(&ptx, symbol, &mut launch, &arrays, if is_whole { None } else { Some(time) })
        })
        .map_err(|(error, place)| fault(dispatcher, &error, place.as_ref()))?;
    drop(staging);
    Report { py, gpu, config: &config, resolved: &resolved, ptx: &ptx, simulated: &simulated }.dict()
}

/// Whether launches call [`OBSERVER`].
static IS_OBSERVED: AtomicBool = AtomicBool::new(false);

/// The callable that profiles launches.
static OBSERVER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Calls an object before each launch from now on: with the kernel, the grid, the block, the bytes of shared memory,
/// the arguments and their types. None ends it.
#[pyfunction]
#[pyo3(signature = (observer))]
pub(crate) fn profile_launches(observer: Option<Py<PyAny>>) {
    IS_OBSERVED.store(observer.is_some(), Ordering::Relaxed);
    let old = std::mem::replace(&mut *OBSERVER.lock().unwrap_or_else(PoisonError::into_inner), observer);
    // After the lock is released: dropping it may run Python.
    drop(old);
}

/// The names of the GPUs that launches are profiled for.
#[pyfunction]
pub(crate) fn gpu_names() -> Vec<&'static str> {
    GPUS.iter().map(|gpu| gpu.name).collect()
}

/// Profiles a launch that is about to be made, if launches are [observed](profile_launches).
///
/// # Errors
///
/// The exception of the observer.
#[inline]
pub(super) fn note(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    arguments: &Arguments,
    args: &Bound<'_, PyTuple>,
) -> PyResult<()> {
    if IS_OBSERVED.load(Ordering::Relaxed) { observe(dispatcher, config, arguments, args) } else { Ok(()) }
}

#[cold]
fn observe(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    arguments: &Arguments,
    args: &Bound<'_, PyTuple>,
) -> PyResult<()> {
    let py = dispatcher.py();
    let observer = OBSERVER.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|own| own.clone_ref(py));
    let Some(observer) = observer else { return Ok(()) };
    let types: Vec<String> = key::decode(&arguments.key).iter().map(ToString::to_string).collect();
    let (grid, block) = (Dims::from(config.grid), Dims::from(config.block));
    observer.call1(py, (dispatcher, grid, block, config.shared_bytes, args, types.join(", "))).map(drop)
}

/// A kernel for a launch and a target, before it is compiled.
struct Variant {
    definition: Definition,
    types: Vec<ArgType>,
    casts: Vec<Cast>,
    jit: JitOptions,
    most: Assumptions,
    target: Target,
    kept: Vec<Py<PyAny>>,
}

impl Variant {
    fn new(dispatcher: &Bound<'_, Dispatcher>, arguments: &Arguments, target: &Target) -> PyResult<Self> {
        let (py, this) = (dispatcher.py(), dispatcher.get());
        let given = key::decode(&arguments.key);
        this.check_count(given.len())?;
        if this.jit.device {
            return Err(this.no_kernel());
        }
        let (types, casts) = this.types_for(given.clone())?;
        let mut capturer = Capturer::new(py);
        let function = capturer.dispatcher(dispatcher)?;
        if !capturer.links.is_empty() {
            let message =
                "a kernel with linked code cannot be profiled: the simulator runs only PTX that weft generates";
            return Err(errors::launch(py, message));
        }
        let (mut jit, wanted) = this.plain(py)?;
        if let FactorChoice::Factors(factors) = wanted {
            jit.code.coarsen = factors;
        }
        jit.code.choose = false;
        jit.code.lineinfo = true;
        // A launch under the debugger's options checks errors; its optimized code is profiled.
        (jit.code.debug, jit.code.opt) = (false, true);
        let most = jit.code.assumptions;
        let nonneg = weft_artifact::are_nonneg(&given, &arguments.cells);
        jit.code.assumptions = Assumptions::likeliest(arguments.likely(nonneg)).and(most);
        let target = target.clone();
        Ok(Self { definition: Definition::of(function), types, casts, jit, most, target, kept: capturer.kept })
    }

    /// Compiles the kernel, and maps the arguments to its parameters.
    fn compile(&mut self, dispatcher: &Bound<'_, Dispatcher>, arguments: &Arguments) -> PyResult<Arc<Resolved>> {
        let py = dispatcher.py();
        let kept = self.kept.iter().map(|array| array.clone_ref(py)).collect();
        let found = Found { kept, links: Vec::new() };
        let mut overload =
            Overload::compile_for(dispatcher, &self.definition, &self.types, (&self.jit, &self.target), found)?;
        overload.most = self.most;
        let casts = self.casts.clone();
        Ok(Arc::new(Arc::new(overload).resolve(py, &arguments.key, casts)?))
    }
}

/// An array that the launch may access, and a copy of its bytes.
struct Array {
    name: String,
    span: Range<u64>,
    bytes: Vec<u8>,
}

/// The arrays among the arguments, and those whose addresses are in the code, by address. Arrays that share memory are
/// one.
fn arrays(resolved: &Resolved, arguments: &Arguments) -> Result<Vec<Array>, weft_runtime::Error> {
    let kernel = &resolved.overload.kernel;
    let name = |param: usize| kernel.params.get(param).map_or_else(String::new, |param| param.name.clone());
    let cells = arguments.cells.as_slice();
    let mut found: Vec<(String, Range<u64>)> = Vec::new();
    for place in arguments.in_place.iter().chain(arguments.tensors.iter().map(|tensor| &tensor.place)) {
        found.push((name(place.param), place.span(cells)));
    }
    for host in &arguments.hosts {
        let ndim = host.array.shape().len();
        let Some((address, rest)) = cells.get(host.cell..).and_then(<[u64]>::split_first) else { continue };
        let (shape, steps) = if host.is_array {
            (rest.iter().take(ndim).copied().collect(), rest.iter().skip(ndim).take(ndim).copied().collect())
        } else {
            (Vec::new(), Vec::new())
        };
        let (shape, steps): (Vec<u64>, Vec<u64>) = (shape, steps);
        let item = host.array.dtype.size_bytes();
        let (low, high) = strides::span(shape.into_iter(), steps.into_iter().map(u64::cast_signed), item);
        let span = address.wrapping_add_signed(low)..address.wrapping_add_signed(high);
        found.push((name(host.param), span));
    }
    for (_, buffer) in &resolved.overload.lent {
        let span = buffer.address()..buffer.address() + buffer.len();
        found.push(("captured array".to_owned(), span));
    }
    found.retain(|(_, span)| !span.is_empty());
    found.sort_by_key(|(_, span)| span.start);
    let mut merged: Vec<(String, Range<u64>)> = Vec::new();
    for (name, span) in found {
        match merged.last_mut() {
            Some((names, last)) if span.start < last.end => {
                last.end = last.end.max(span.end);
                if !names.split(", ").any(|known| known == name) {
                    *names = format!("{names}, {name}");
                }
            }
            Some(_) | None => merged.push((name, span)),
        }
    }
    let executor = &resolved.overload.executor;
    let copy = |(name, span): (String, Range<u64>)| {
        let mut bytes = vec![0; (span.end - span.start) as usize];
        executor.copy_to_host(&mut bytes, span.start, None)?;
        Ok(Array { name, span, bytes })
    };
    merged.into_iter().map(copy).collect()
}

/// The bytes of the kernel's parameters.
fn params(resolved: &Resolved, slots: &[u64]) -> Vec<Vec<u8>> {
    let kernel = &resolved.overload.kernel;
    let bytes = |(Slot { ty, .. }, first): (&Slot, usize)| {
        let cells = slots.get(first..first + ty.cells()).unwrap_or_default();
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        bytes.get(..ty.size_bytes() as usize).unwrap_or_default().to_vec()
    };
    kernel.slots.iter().zip(kernel.first_cells()).map(bytes).collect()
}

/// The memory of a launch: copies of the arrays, at their addresses.
fn memory(module: &Module, arrays: &[Array]) -> Memory {
    let mut memory = module.memory();
    for (number, Array { name, span, bytes }) in arrays.iter().enumerate() {
        let limit = arrays.get(number + 1).map_or(u64::MAX, |next| next.span.start);
        let end = span.end.next_multiple_of(GRANULE).min(limit);
        let mut bytes = bytes.clone();
        bytes.resize((end - span.start) as usize, 0);
        memory.add_at(name, span.start, &bytes);
    }
    memory
}

/// The arrays, and the sectors of them that were accessed.
fn touched(memory: &Memory, arrays: &[Array]) -> Vec<(String, u64, u64)> {
    let one = |Array { name, span, .. }: &Array| {
        let sectors = memory.region(span.start).map_or(0, Region::touched_sectors);
        (name.clone(), span.end - span.start, sectors)
    };
    arrays.iter().map(one).collect()
}

/// A launch that ran in the simulator.
struct Simulated {
    module: Module,
    sample: Sample,
    /// The arrays: their names, their bytes, and the sectors of them that the blocks that ran have accessed.
    touched: Vec<(String, u64, u64)>,
}

/// A fault of the simulator, and the file and the line of the source.
type Fault = (Error, Option<(String, u32)>);

/// Runs a launch in the simulator: as a whole if there is no time limit, or if blocks wait for each other.
fn simulate(
    ptx: &str,
    symbol: &str,
    launch: &mut Launch,
    arrays: &[Array],
    time: Option<Duration>,
) -> Result<Simulated, Fault> {
    let module = Module::parse(ptx).map_err(|error| (error, None))?;
    // A parameter may be narrower than its slot: the driver copies as many bytes as the PTX declares.
    if let Some((_, declared)) = module.kernels().find(|(name, _)| *name == symbol) {
        launch.params.iter_mut().zip(declared).for_each(|(bytes, param)| bytes.truncate(param.size as usize));
    }
    let launch = &*launch;
    let run = || -> Result<_, Error> {
        let sampled = memory(&module, arrays);
        if let Some(time) = time
            && let Some(sample) = module.sample(symbol, launch, &sampled, time)?
        {
            return Ok((sample, touched(&sampled, arrays)));
        }
        let whole = memory(&module, arrays);
        let counts = module.launch(symbol, launch, &whole)?;
        Ok((Sample::whole(counts, launch), touched(&whole, arrays)))
    };
    match run() {
        Ok((sample, touched)) => Ok(Simulated { module, sample, touched }),
        Err(error) => {
            let location = module.location(error.line);
            let place = location.and_then(|place| Some((module.file(place.file)?.to_owned(), place.line)));
            Err((error, place))
        }
    }
}

/// The exception for a launch that the simulator cannot run.
fn fault(dispatcher: &Bound<'_, Dispatcher>, error: &Error, location: Option<&(String, u32)>) -> PyErr {
    let name = &dispatcher.get().name;
    let location = match location {
        Some((file, line)) => format!("{file}, line {line}"),
        None => format!("line {} of its PTX", error.line),
    };
    let lane = error.lane.map_or(String::new(), |lane| format!(", lane {lane} of a warp"));
    let message = format!("kernel `{name}` cannot be profiled: {}\n  at {location}{lane}", error.message);
    errors::launch(dispatcher.py(), &message)
}
