//! The devices of this process: the executor in use, the current device, and the functions that implement
//! `weft.cuda.gpus` and similar names.
//!
//! Nothing here touches a driver before the first call that needs a device. The choice between GPU and CPU is made
//! once, from `WEFT_DEVICE`. The current device is a thread's own, as in CUDA.

pub(crate) mod fork;
pub(crate) mod manager;
mod output;
pub(crate) mod recording;
pub(crate) mod stream;

use std::{
    cell::Cell,
    path::PathBuf,
    sync::{
        Arc, Mutex, OnceLock, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
};

use pyo3::{
    exceptions::PyIndexError,
    prelude::*,
    types::{PyDict, PyString},
};
use weft_cli::Loader;
use weft_compiler::diagnostic::closest;
use weft_runtime::{
    DeviceChoice, Error, ErrorKind, Executor, Libdevice, ProfileChoice, Settings, Toolkit, cpu, cuda,
    progress::{self, ProgressOutput},
    sanitize,
};

use crate::errors;

/// The devices on which this process computes.
struct Devices {
    settings: &'static Settings,
    /// The GPUs, or the CPU as the only device.
    cuda: bool,
    /// The settings say so.
    is_chosen: bool,
    /// One for each device, opened at its first use.
    executors: Vec<Mutex<Option<Arc<dyn Executor>>>>,
}

static SETTINGS: OnceLock<Result<Settings, Error>> = OnceLock::new();
static DEVICES: OnceLock<Result<Devices, Error>> = OnceLock::new();
/// The CPU where the devices are GPUs.
static HOST: Mutex<Option<Arc<dyn Executor>>> = Mutex::new(None);
static LIBDEVICE: OnceLock<Libdevice> = OnceLock::new();
static TOOLKIT: OnceLock<Toolkit> = OnceLock::new();
static ANNOUNCED: AtomicBool = AtomicBool::new(false);

/// Environment variables that are nearly settings were looked for.
static MISSPELT: AtomicBool = AtomicBool::new(false);

/// This process was forked off one that had opened a GPU.
static FORKED: AtomicBool = AtomicBool::new(false);

thread_local! {
    static CURRENT: Cell<u32> = const { Cell::new(0) };
}

/// The current device's number.
pub(crate) fn current_id() -> u32 {
    CURRENT.get()
}

/// The current device.
pub(crate) fn current(py: Python<'_>) -> PyResult<Arc<dyn Executor>> {
    by_id(py, current_id())
}

/// A device by its number.
pub(crate) fn by_id(py: Python<'_>, id: u32) -> PyResult<Arc<dyn Executor>> {
    check_fork(py)?;
    // Release the GIL first: a thread that holds the lock may be waiting for the GIL.
    let opened = py.detach(|| {
        let _work = fork::at_work();
        let devices = devices()?;
        let Some(entry) = devices.executors.get(id as usize) else {
            return Ok(None);
        };
        let mut entry = entry.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(executor) = &*entry {
            return Ok(Some(Arc::clone(executor)));
        }
        output::set_up();
        let executor = if devices.cuda {
            cuda::open(devices.settings, id)?
        } else {
            cpu::open(devices.settings, Arc::new(Loader))?
        };
        manager::set_up(devices.settings, &*executor, id);
        *entry = Some(Arc::clone(&executor));
        Ok(Some(executor))
    });
    match opened {
        Ok(Some(executor)) => Ok(executor),
        Ok(None) => Err(PyIndexError::new_err(format!("there is no device {id}"))),
        Err(error) => Err(errors::runtime(py, &error)),
    }
}

/// The CPU, also beside GPUs, for operators of other libraries: their arrays say where they are.
pub(crate) fn host(py: Python<'_>) -> PyResult<Arc<dyn Executor>> {
    if !is_cuda(py)? {
        return current(py);
    }
    let opened = py.detach(|| {
        let _work = fork::at_work();
        let mut host = HOST.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(executor) = &*host {
            return Ok(Arc::clone(executor));
        }
        output::set_up();
        let executor = cpu::open(devices()?.settings, Arc::new(Loader))?;
        *host = Some(Arc::clone(&executor));
        Ok(executor)
    });
    opened.map_err(|error| errors::runtime(py, &error))
}

/// A driver does not survive a fork; the CPU executor does.
pub(crate) fn check_fork(py: Python<'_>) -> PyResult<()> {
    if FORKED.load(Ordering::Relaxed) {
        let text = "CUDA initialized before forking: start processes with the method `spawn` or `forkserver`, or do \
                    not use a device before the fork";
        return Err(errors::exception(py, "DriverError", (text,)));
    }
    Ok(())
}

/// Resets the devices in the child of a fork.
pub(crate) fn after_fork() {
    cpu::after_fork();
    if let Some(Ok(devices)) = DEVICES.get()
        && devices.cuda
    {
        FORKED.store(true, Ordering::Relaxed);
    }
}

/// The devices. Called without the GIL by a thread that is at work: a fork waits for the choice to end.
fn devices() -> Result<&'static Devices, Error> {
    DEVICES.get_or_init(choose).as_ref().map_err(Clone::clone)
}

/// The devices, for a thread with the GIL.
fn chosen_devices(py: Python<'_>) -> Result<&'static Devices, Error> {
    // Once chosen, there is no need to release the GIL.
    if let Some(known) = DEVICES.get() {
        return known.as_ref().map_err(Clone::clone);
    }
    py.detach(|| {
        let _work = fork::at_work();
        devices()
    })
}

fn choose() -> Result<Devices, Error> {
    let settings = read_settings()?;
    sanitize::report_benign_races(settings.sanitize_benign_races);
    if !settings.sanitize.is_empty() {
        sanitize::memory::watch();
    }
    if settings.device == DeviceChoice::None {
        let text = "CUDA is disabled by WEFT_DEVICE=none, which NUMBA_DISABLE_CUDA=1 also sets: no device can be used";
        return Err(Error::new(ErrorKind::NoDevice, text));
    }
    let is_profiled = settings.profile != ProfileChoice::Off;
    if settings.device == DeviceChoice::Cuda && is_profiled {
        let text = "WEFT_PROFILE profiles kernels on the CPU, and WEFT_DEVICE=cuda requires a GPU: unset one of them";
        return Err(Error::new(ErrorKind::Value, text));
    }
    let on_the_cpu = settings.device == DeviceChoice::Auto && (is_profiled || !settings.sanitize.is_empty());
    let count = if settings.device.is_host() || on_the_cpu { 0 } else { cuda::device_count() };
    if settings.device == DeviceChoice::Cuda && count == 0 {
        // Opening says what is missing: the driver or a device.
        cuda::open(settings, 0).map_err(|error| Error {
            message: format!("{}. WEFT_DEVICE=cuda requires a GPU: unset it to run kernels on the CPU", error.message),
            ..error
        })?;
    }
    let executors = (0..count.max(1)).map(|_| Mutex::new(None)).collect();
    Ok(Devices { settings, cuda: count > 0, is_chosen: settings.device.is_host() || on_the_cpu, executors })
}

fn read_settings() -> Result<&'static Settings, Error> {
    let read = || {
        let variable = |name: &str| std::env::var_os(name);
        let settings = Settings::from_env(variable)?;
        cuda::attach_profiler(&settings, variable);
        progress::set_up(ProgressOutput { choice: settings.progress, is_terminal, write });
        Ok(settings)
    };
    SETTINGS.get_or_init(read).as_ref().map_err(Clone::clone)
}

/// Whether Python's standard error is the process's, and that is a terminal that can draw: a notebook's is not, even where its
/// server was started in one.
fn is_terminal() -> bool {
    let asked = |py: Python<'_>| -> PyResult<bool> {
        let stderr = py.import(intern!(py, "sys"))?.getattr(intern!(py, "stderr"))?;
        Ok(stderr.call_method0(intern!(py, "isatty"))?.is_truthy()?
            && stderr.call_method0(intern!(py, "fileno"))?.extract::<i32>()? == 2)
    };
    let can_draw = std::env::var("TERM").is_ok_and(|name| name != "dumb");
    can_draw && Python::try_attach(asked).is_some_and(|asked| asked.unwrap_or(false))
}

/// Writes to Python's standard error, if it has one.
fn write(text: &str) {
    let written = |py: Python<'_>| -> PyResult<()> {
        let stderr = py.import(intern!(py, "sys"))?.getattr(intern!(py, "stderr"))?;
        if !stderr.is_none() {
            stderr.call_method1(intern!(py, "write"), (text,))?;
        }
        Ok(())
    };
    // An error while writing is ignored.
    let _ = Python::try_attach(written);
}

/// Sets what counts as long, in milliseconds, and as large, in bytes, where progress is shown: for tests.
#[pyfunction]
pub(crate) fn progress_limits(after_ms: u64, from_bytes: u64) {
    progress::set_limits(after_ms, from_bytes);
}

/// The settings of this process, as its environment has them at their first use.
pub(crate) fn settings(py: Python<'_>) -> PyResult<&'static Settings> {
    read_settings().map_err(|error| errors::runtime(py, &error))
}

/// The handling of the sanitizer's findings, as the settings say.
pub(crate) fn findings(py: Python<'_>) -> PyResult<errors::Findings> {
    let settings = settings(py)?;
    Ok(errors::Findings { raise: settings.sanitize_raises, folder: settings.sanitize_report.clone() })
}

/// The folder of the disk cache, and about its largest size in bytes; `None` if there is no cache, or the settings are
/// invalid, which a compilation reports.
pub(crate) fn cache() -> Option<(PathBuf, u64)> {
    let settings = read_settings().ok()?;
    Some((settings.cache_folder(|name| std::env::var_os(name))?, settings.cache_bytes))
}

/// The file for digests of LLVM IR, if it is set.
pub(crate) fn ir_digests() -> Option<PathBuf> {
    read_settings().ok()?.ir_digests.clone()
}

/// The settings that Python's side reads: those of `weft.config`.
#[pyfunction]
pub(crate) fn config(py: Python<'_>) -> PyResult<Bound<'_, PyDict>> {
    let settings = settings(py)?;
    let dict = PyDict::new(py);
    for (name, value) in [
        ("CUDA_WARN_ON_IMPLICIT_COPY", settings.warn_on_implicit_copy),
        ("CUDA_LOW_OCCUPANCY_WARNINGS", settings.low_occupancy_warnings),
        ("CUDA_ARRAY_INTERFACE_SYNC", settings.array_interface_sync),
        ("DEBUG", settings.debug),
        ("BOUNDSCHECK", settings.boundscheck),
        ("REPRODUCIBLE", settings.reproducible),
    ] {
        dict.set_item(name, u8::from(value))?;
    }
    dict.set_item("DEBUG_THREAD", settings.debug_thread)?;
    dict.set_item("DEBUG_BLOCK", settings.debug_block)?;
    dict.set_item("CUDA_DEFAULT_PTX_CC", settings.default_ptx_cc)?;
    dict.set_item("CUDA_NVRTC_EXTRA_SEARCH_PATHS", &settings.nvrtc_extra_search_paths)?;
    Ok(dict)
}

/// NVIDIA's math library, if this machine has it and the settings want it.
pub(crate) fn libdevice(py: Python<'_>) -> PyResult<Option<Arc<Vec<u8>>>> {
    let settings = settings(py)?;
    if LIBDEVICE.get().is_none() {
        let roots: Vec<PathBuf> = py.import("weft._source")?.call_method0("site_packages")?.extract()?;
        LIBDEVICE.get_or_init(|| Libdevice::new(settings, |name| std::env::var_os(name), &roots));
    }
    let bytes = py.detach(|| {
        let _work = fork::at_work();
        LIBDEVICE.get().map_or(Ok(None), Libdevice::bytes)
    });
    bytes.map_err(|error| errors::runtime(py, &error))
}

/// Where the CUDA toolkit's compilers and linkers are looked for.
pub(crate) fn toolkit(py: Python<'_>) -> PyResult<&'static Toolkit> {
    let settings = settings(py)?;
    if let Some(toolkit) = TOOLKIT.get() {
        return Ok(toolkit);
    }
    let roots: Vec<PathBuf> = py.import("weft._source")?.call_method0("site_packages")?.extract()?;
    Ok(TOOLKIT.get_or_init(|| Toolkit::new(settings, |name| std::env::var_os(name), &roots)))
}

/// Says once that kernels run on the CPU because no GPU was found, where the user did not choose the CPU, and which
/// environment variables are likely settings that are misspelt.
pub(crate) fn announce(py: Python<'_>) -> PyResult<()> {
    if !MISSPELT.swap(true, Ordering::Relaxed) {
        // A variable whose name is no text is no setting.
        let variables = std::env::vars_os().filter_map(|(name, _)| name.into_string().ok());
        for (name, setting) in Settings::misspelt(variables, |word, known| closest(word, known.iter().copied())) {
            let message = format!("{name} is set, but weft has no such setting; did you mean {setting}?");
            errors::advise(py, "InvalidConfigWarning", &message)?;
        }
    }
    let chosen = chosen_devices(py).is_ok_and(|devices| devices.cuda || devices.is_chosen);
    if chosen || ANNOUNCED.swap(true, Ordering::Relaxed) {
        return Ok(());
    }
    errors::advise(py, "DeviceWarning", "no CUDA device was found: kernels run on the CPU")
}

/// Whether this process has found out what it computes on.
#[pyfunction]
#[pyo3(name = "is_device_chosen")]
pub(crate) fn is_chosen() -> bool {
    DEVICES.get().is_some()
}

/// `cuda` or `cpu`.
#[pyfunction]
pub(crate) fn device_kind(py: Python<'_>) -> PyResult<&'static str> {
    Ok(if is_cuda(py)? { "cuda" } else { "cpu" })
}

/// Whether this process computes on GPUs.
pub(crate) fn is_cuda(py: Python<'_>) -> PyResult<bool> {
    chosen_devices(py).map(|devices| devices.cuda).map_err(|error| errors::runtime(py, &error))
}

/// Whether `__cuda_array_interface__` is of memory that kernels reach. On a machine without a driver there is no other
/// memory, so that programs which hand their own arrays on by it run on the CPU.
#[pyfunction]
pub(crate) fn shares_arrays(py: Python<'_>) -> PyResult<bool> {
    Ok(is_cuda(py)? || !cuda::has_driver())
}

/// Where kernels run by the settings, whether or not a device was opened. `Auto` for settings that cannot be read: they
/// are an error of the call that opens a device.
pub(crate) fn choice() -> DeviceChoice {
    read_settings().map_or(DeviceChoice::Auto, |settings| settings.device)
}

/// Whether Python's interpreter runs the kernels of this process, by the settings.
pub(crate) fn interprets() -> bool {
    choice() == DeviceChoice::Python
}

/// Whether Python's interpreter runs the kernels of this process.
#[pyfunction]
pub(crate) fn interprets_kernels(py: Python<'_>) -> PyResult<bool> {
    Ok(settings(py)?.device == DeviceChoice::Python)
}

/// How many devices there are; the CPU is one.
#[pyfunction]
pub(crate) fn device_count(py: Python<'_>) -> PyResult<usize> {
    let count = chosen_devices(py).map(|devices| devices.executors.len());
    count.map_err(|error| errors::runtime(py, &error))
}

/// The current device's number.
#[pyfunction]
pub(crate) fn current_device_id() -> u32 {
    current_id()
}

/// Makes a device the calling thread's current one, opening it.
#[pyfunction]
pub(crate) fn select_device(py: Python<'_>, id: u32) -> PyResult<()> {
    by_id(py, id)?;
    CURRENT.set(id);
    Ok(())
}

/// The device whose memory contains an address of another library's, if it is not the current one and its memory is not
/// accessible to the current one's kernels: such an access would end all work on the device.
pub(crate) fn out_of_reach(py: Python<'_>, address: u64) -> PyResult<Option<u32>> {
    // Most machines have one device, and need no check.
    let several = matches!(DEVICES.get(), Some(Ok(devices)) if devices.executors.len() > 1);
    Ok(if several && address != 0 { current(py)?.out_of_reach(address) } else { None })
}

/// The device that an array at an address counts as being on.
#[pyfunction]
pub(crate) fn device_of_address(py: Python<'_>, address: u64) -> PyResult<u32> {
    current(py)?;
    Ok(out_of_reach(py, address)?.unwrap_or_else(current_id))
}

/// Free and total memory of a device in bytes.
#[pyfunction]
pub(crate) fn memory_info(py: Python<'_>, id: u32) -> PyResult<(u64, u64)> {
    let executor = by_id(py, id)?;
    py.detach(|| executor.memory_info()).map_err(|error| errors::runtime(py, &error))
}

/// Waits for everything on the current device.
#[pyfunction]
pub(crate) fn synchronize(py: Python<'_>) -> PyResult<()> {
    recording::refuse("wait for the device")?;
    let executor = current(py)?;
    errors::waited(py, py.detach(|| executor.synchronize()))
}

/// Has a profiler take down what the current device does, or no longer.
#[pyfunction]
pub(crate) fn profile(py: Python<'_>, on: bool) -> PyResult<()> {
    let executor = current(py)?;
    py.detach(|| executor.profile(on)).map_err(|error| errors::runtime(py, &error))
}

/// One of the driver's attributes of a device, by its number in `cuda.h`.
#[pyfunction]
pub(crate) fn device_attribute(py: Python<'_>, id: u32, number: u32) -> PyResult<i32> {
    by_id(py, id)?.attribute(number).map_err(|error| errors::runtime(py, &error))
}

/// A device's properties and limits: the fields of `DeviceAttributes`, with CUDA's names where CUDA has one.
#[pyfunction]
pub(crate) fn device_attributes(py: Python<'_>, id: u32) -> PyResult<Bound<'_, PyDict>> {
    let executor = by_id(py, id)?;
    let attributes = executor.attributes();
    let dict = PyDict::new(py);
    dict.set_item("id", attributes.id)?;
    dict.set_item("name", &attributes.name)?;
    dict.set_item("compute_capability", attributes.compute_capability)?;
    dict.set_item("uuid", &attributes.uuid)?;
    dict.set_item("pci_bus_id", &attributes.pci_bus_id)?;
    dict.set_item("total_memory", attributes.total_memory)?;
    dict.set_item("driver_version", attributes.driver_version)?;
    dict.set_item("kind", executor.kind())?;
    dict.set_item("target", executor.target())?;
    let (major, minor) = attributes.compute_capability;
    let [block_x, block_y, block_z] = attributes.max_block_dim;
    let [grid_x, grid_y, grid_z] = attributes.max_grid_dim;
    let rows = [
        ("COMPUTE_CAPABILITY_MAJOR", major),
        ("COMPUTE_CAPABILITY_MINOR", minor),
        ("MAX_THREADS_PER_BLOCK", attributes.max_threads_per_block),
        ("MAX_BLOCK_DIM_X", block_x),
        ("MAX_BLOCK_DIM_Y", block_y),
        ("MAX_BLOCK_DIM_Z", block_z),
        ("MAX_GRID_DIM_X", grid_x),
        ("MAX_GRID_DIM_Y", grid_y),
        ("MAX_GRID_DIM_Z", grid_z),
        ("MAX_SHARED_MEMORY_PER_BLOCK", attributes.max_shared_memory_per_block),
        ("MAX_SHARED_MEMORY_PER_BLOCK_OPTIN", attributes.max_shared_memory_per_block_optin),
        ("MULTIPROCESSOR_COUNT", attributes.multiprocessor_count),
        ("WARP_SIZE", attributes.warp_size),
    ];
    for (name, value) in rows {
        dict.set_item(PyString::new(py, name), value)?;
    }
    Ok(dict)
}
