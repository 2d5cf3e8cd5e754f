//! Counts what a launch does on a GPU: compiles its kernel for the GPU, and runs the PTX in the simulator on copies of
//! the arrays. The launch itself is not made.

mod prepare;
mod report;
mod run;

use std::{
    sync::{
        Mutex, PoisonError,
        atomic::{AtomicU8, Ordering},
    },
    time::Duration,
};

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyDict, PyTuple},
};
use weft_compiler::target::gpus::Gpu;
use weft_runtime::{LaunchConfig, ProfileChoice, Stream, check_clusters};

use self::{prepare::Prepared, report::Report, run::Simulated};
use super::Dispatcher;
use crate::{args::Arguments, devices, engine::options, errors, types::key};

/// Dimensions of a grid, a block or a cluster.
type Dims = (u32, u32, u32);

/// The grid, the block, the bytes of dynamic shared memory, and the cluster of a launch.
type Shape = (Dims, Dims, u32, Option<Dims>);

/// Counts what a launch does on a GPU of a name such as `h100`, within a time in seconds: larger launches are sampled.
/// The arguments are one for each parameter.
///
/// # Errors
///
/// `ValueError` for a GPU that is not known; `LaunchError` where the device is a GPU, or where the simulator cannot run
/// the kernel; those of a launch.
#[pyfunction]
#[pyo3(signature = (dispatcher, shape, args, gpu, seconds))]
pub(crate) fn profile_launch<'py>(
    dispatcher: &Bound<'py, Dispatcher>,
    shape: Shape,
    args: &Bound<'py, PyTuple>,
    gpu: &str,
    seconds: f64,
) -> PyResult<Bound<'py, PyDict>> {
    let py = dispatcher.py();
    let (grid, block, shared_bytes, cluster) = shape;
    let cluster = cluster.map_or(LaunchConfig::ALONE, Into::into);
    let config = LaunchConfig { grid: grid.into(), block: block.into(), shared_bytes, cluster };
    if devices::current(py)?.kind() != "cpu" {
        let message = "profiles are counted on the CPU: set WEFT_DEVICE=cpu before the first use of weft";
        return Err(errors::launch(py, message));
    }
    let gpu = gpu_of(gpu)?;
    let target = options::target(py, gpu.sm)?;
    let mut arguments = Arguments::default();
    arguments.stream = Some(0);
    arguments.push_all(args).map_err(|(index, error)| dispatcher.get().explain(py, index, &error))?;
    let (mut prepared, _staging) = Prepared::new(dispatcher, &config, &mut arguments, &target)?;
    let time = Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX);
    let simulated = Simulated::run(dispatcher, &mut prepared, Some(time), Some(gpu))?;
    Report { py, gpu, config: &config, prepared: &prepared, simulated: &simulated }.dict()
}

/// Makes a launch in the simulator: with the device `ptx`, for tests of the code for GPUs. Its arguments were read.
///
/// # Errors
///
/// As those of a launch; `LaunchError` where the simulator cannot run the kernel.
pub(super) fn launch(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    stream: Option<&dyn Stream>,
    arguments: &mut Arguments,
) -> PyResult<()> {
    let py = dispatcher.py();
    let executor = devices::current(py)?;
    if config.has_clusters() {
        check_clusters(config, executor.attributes()).map_err(|error| errors::launch(py, &error))?;
    }
    let (major, minor) = executor.attributes().compute_capability;
    let target = options::of_capability(major, minor);
    let (mut prepared, staging) = Prepared::new(dispatcher, config, arguments, &target)?;
    let simulated = Simulated::run(dispatcher, &mut prepared, None, None)?;
    for array in &prepared.arrays {
        let bytes = simulated.bytes(array);
        if bytes != array.bytes {
            let inside = &bytes[..(array.span.end - array.span.start) as usize];
            let copied = py.detach(|| executor.copy_to_device(array.span.start, inside, None));
            copied.map_err(|error| errors::runtime(py, &error))?;
        }
    }
    let mut staged = staging.staged.into_iter();
    staged.try_for_each(|item| item.finish(py, stream, &mut arguments.hosts, &*executor))
}

/// `WEFT_PROFILE` was not read.
const UNKNOWN: u8 = 0;
/// Launches are not observed.
const OFF: u8 = 1;
/// Launches call [`OBSERVER`].
const ON: u8 = 2;

/// Whether launches are observed.
static STATE: AtomicU8 = AtomicU8::new(UNKNOWN);

/// The callable that profiles launches.
static OBSERVER: Mutex<Option<Py<PyAny>>> = Mutex::new(None);

/// Calls an object before each launch from now on: with the kernel, the [`Shape`], the arguments and their types. None ends it.
#[pyfunction]
#[pyo3(signature = (observer))]
pub(crate) fn profile_launches(observer: Option<Py<PyAny>>) {
    STATE.store(if observer.is_some() { ON } else { OFF }, Ordering::Relaxed);
    let old = std::mem::replace(&mut *OBSERVER.lock().unwrap_or_else(PoisonError::into_inner), observer);
    // After the lock is released: dropping it may run Python.
    drop(old);
}

/// Finds the GPU of a name.
///
/// # Errors
///
/// `ValueError`, which lists the names.
fn gpu_of(name: &str) -> PyResult<&'static Gpu> {
    Gpu::parse(name).map_err(|unknown| PyValueError::new_err(unknown.to_string()))
}

/// Raises the `ValueError` of a GPU that is not known, before a program runs.
#[pyfunction]
pub(crate) fn check_gpu(name: &str) -> PyResult<()> {
    gpu_of(name).map(drop)
}

/// Profiles a launch that is about to be made, if launches are [observed](profile_launches).
///
/// # Errors
///
/// The exception of the observer; a wrong `WEFT_PROFILE_GPU`.
#[inline]
pub(super) fn note(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    arguments: &Arguments,
    args: &Bound<'_, PyTuple>,
) -> PyResult<()> {
    if STATE.load(Ordering::Relaxed) == OFF { Ok(()) } else { observe(dispatcher, config, arguments, args) }
}

#[cold]
fn observe(
    dispatcher: &Bound<'_, Dispatcher>,
    config: &LaunchConfig,
    arguments: &Arguments,
    args: &Bound<'_, PyTuple>,
) -> PyResult<()> {
    let py = dispatcher.py();
    if STATE.load(Ordering::Relaxed) == UNKNOWN {
        start(py)?;
    }
    let observer = OBSERVER.lock().unwrap_or_else(PoisonError::into_inner).as_ref().map(|own| own.clone_ref(py));
    let Some(observer) = observer else { return Ok(()) };
    let types: Vec<String> = key::decode(&arguments.key).iter().map(ToString::to_string).collect();
    let cluster = config.has_clusters().then(|| Dims::from(config.cluster));
    let shape: Shape = (config.grid.into(), config.block.into(), config.shared_bytes, cluster);
    observer.call1(py, (dispatcher, shape, args, types.join(", "))).map(drop)
}

/// Follows `WEFT_PROFILE`, at the first launch, unless an observer was set before it. Several threads may call this at
/// once. None waits for another one: in the child of a fork, that one might not exist.
fn start(py: Python<'_>) -> PyResult<()> {
    let settings = devices::settings(py)?;
    let file = match &settings.profile {
        ProfileChoice::Off => {
            STATE.store(OFF, Ordering::Relaxed);
            return Ok(());
        }
        ProfileChoice::Print => None,
        ProfileChoice::File(file) => Some(file),
    };
    gpu_of(&settings.profile_gpu)?;
    devices::current(py)?;
    py.import("weft._profile_program")?.call_method1("start", (&settings.profile_gpu, file)).map(drop)
}
