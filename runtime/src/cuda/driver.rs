//! The CUDA driver's functions, opened at run time, as a table that either has all of them or is an error.
//!
//! cudarc gives the library and the types. Its own functions are not called: they panic where the driver lacks one,
//! and they return a Rust enum, which a newer driver's error number would make undefined behavior. Here a result is a
//! number until it is an [`Error`] that names the call.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    env,
    ffi::{CStr, OsStr, c_char, c_int, c_uchar, c_uint, c_void},
    fmt, fs,
    os::unix::ffi::OsStrExt as _,
    path::PathBuf,
    process, ptr,
    sync::OnceLock,
};

use cudarc::driver::sys;

use super::{Library, clusters};
use crate::error::{Error, ErrorKind};

/// The oldest driver that has every function of the table, and stream-ordered memory.
const OLDEST_DRIVER: (u32, u32) = (11, 4);

/// An object of the driver.
pub(super) struct Handle<T>(pub(super) *mut T);

impl<T> Clone for Handle<T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Handle<T> {}

impl<T> fmt::Debug for Handle<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

// SAFETY: the driver's handles are opaque, mean the same on every thread, and its functions are thread-safe.
unsafe impl<T> Send for Handle<T> {}
// SAFETY: as above; a shared handle is only ever passed to the driver.
unsafe impl<T> Sync for Handle<T> {}

/// `CUmemAccessDesc`, whose fields have other names in each version of the header: what a device may do with a pool's memory.
#[repr(C)]
pub(super) struct PoolAccess {
    /// `CU_MEM_LOCATION_TYPE_DEVICE` is 1.
    pub(super) kind: c_uint,
    /// The device.
    pub(super) device: c_int,
    /// `CU_MEM_ACCESS_FLAGS_PROT_READWRITE` is 3.
    pub(super) flags: c_uint,
}

macro_rules! driver_table {
    ($($name:ident = $symbol:literal ($($arg:ident: $ty:ty),*);)*) => {
        /// Every driver function that weft calls.
        #[expect(non_snake_case, reason = "the functions have the driver's names")]
        pub(super) struct Driver {
            $($name: unsafe extern "C" fn($($ty),*) -> c_uint,)*
        }

        #[expect(non_snake_case, reason = "the functions have the driver's names")]
        #[expect(clippy::too_many_arguments, reason = "so has cuLaunchKernel")]
        #[expect(dead_code, reason = "the two that explain errors are only called through their fields")]
        impl Driver {
            fn load() -> Result<Self, Error> {
                Ok(Self { $($name: find($symbol)?,)* })
            }

            $(
                /// The driver's function of this name.
                ///
                /// # Safety
                ///
                /// As the driver's manual specifies: pointers are valid for its reads and writes, handles are live.
                #[inline]
                pub(super) unsafe fn $name(&self, $($arg: $ty),*) -> Result<(), Error> {
                    // SAFETY: the caller promises it.
                    let code = unsafe { (self.$name)($($arg),*) };
                    if code == 0 { Ok(()) } else { Err(self.error(stringify!($name), code)) }
                }
            )*
        }
    };
}

driver_table! {
    cuInit = "cuInit" (flags: c_uint);
    cuDeviceGet = "cuDeviceGet" (device: *mut sys::CUdevice, ordinal: c_int);
    cuDeviceGetCount = "cuDeviceGetCount" (count: *mut c_int);
    cuDeviceGetName = "cuDeviceGetName" (name: *mut c_char, len: c_int, device: sys::CUdevice);
    cuDeviceTotalMem = "cuDeviceTotalMem_v2" (bytes: *mut usize, device: sys::CUdevice);
    cuDeviceGetAttribute = "cuDeviceGetAttribute" (value: *mut c_int, attribute: c_uint, device: sys::CUdevice);
    cuDeviceGetUuid = "cuDeviceGetUuid_v2" (uuid: *mut [u8; 16], device: sys::CUdevice);
    cuDeviceGetPCIBusId = "cuDeviceGetPCIBusId" (id: *mut c_char, len: c_int, device: sys::CUdevice);
    cuDevicePrimaryCtxRetain = "cuDevicePrimaryCtxRetain" (context: *mut sys::CUcontext, device: sys::CUdevice);
    cuDevicePrimaryCtxRelease = "cuDevicePrimaryCtxRelease_v2" (device: sys::CUdevice);
    cuCtxGetCurrent = "cuCtxGetCurrent" (context: *mut sys::CUcontext);
    cuCtxSetCurrent = "cuCtxSetCurrent" (context: sys::CUcontext);
    cuCtxPushCurrent = "cuCtxPushCurrent_v2" (context: sys::CUcontext);
    cuCtxPopCurrent = "cuCtxPopCurrent_v2" (context: *mut sys::CUcontext);
    cuCtxSynchronize = "cuCtxSynchronize" ();
    cuProfilerStart = "cuProfilerStart" ();
    cuProfilerStop = "cuProfilerStop" ();
    cuCtxGetLimit = "cuCtxGetLimit" (value: *mut usize, limit: c_uint);
    cuCtxSetLimit = "cuCtxSetLimit" (limit: c_uint, value: usize);
    cuMemGetInfo = "cuMemGetInfo_v2" (free: *mut usize, total: *mut usize);
    cuDeviceGetDefaultMemPool = "cuDeviceGetDefaultMemPool" (pool: *mut sys::CUmemoryPool, device: sys::CUdevice);
    cuMemPoolGetAttribute = "cuMemPoolGetAttribute" (pool: sys::CUmemoryPool, attribute: c_uint, value: *mut c_void);
    cuMemPoolSetAttribute = "cuMemPoolSetAttribute" (pool: sys::CUmemoryPool, attribute: c_uint, value: *mut c_void);
    cuMemAllocAsync = "cuMemAllocAsync" (address: *mut sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    cuMemFreeAsync = "cuMemFreeAsync" (address: sys::CUdeviceptr, stream: sys::CUstream);
    cuMemAlloc = "cuMemAlloc_v2" (address: *mut sys::CUdeviceptr, bytes: usize);
    cuMemFree = "cuMemFree_v2" (address: sys::CUdeviceptr);
    cuMemPoolTrimTo = "cuMemPoolTrimTo" (pool: sys::CUmemoryPool, keep: usize);
    cuMemPoolSetAccess = "cuMemPoolSetAccess" (pool: sys::CUmemoryPool, access: *const PoolAccess, count: usize);
    cuMemGetAddressRange = "cuMemGetAddressRange_v2" (base: *mut sys::CUdeviceptr, bytes: *mut usize, address: sys::CUdeviceptr);
    cuIpcGetMemHandle = "cuIpcGetMemHandle" (handle: *mut sys::CUipcMemHandle, address: sys::CUdeviceptr);
    cuIpcOpenMemHandle = "cuIpcOpenMemHandle_v2" (address: *mut sys::CUdeviceptr, handle: sys::CUipcMemHandle, flags: c_uint);
    cuIpcCloseMemHandle = "cuIpcCloseMemHandle" (address: sys::CUdeviceptr);
    cuDeviceCanAccessPeer = "cuDeviceCanAccessPeer" (can: *mut c_int, device: sys::CUdevice, peer: sys::CUdevice);
    cuCtxEnablePeerAccess = "cuCtxEnablePeerAccess" (peer: sys::CUcontext, flags: c_uint);
    cuMemHostAlloc = "cuMemHostAlloc" (memory: *mut *mut c_void, bytes: usize, flags: c_uint);
    cuMemFreeHost = "cuMemFreeHost" (memory: *mut c_void);
    cuMemAllocManaged = "cuMemAllocManaged" (address: *mut sys::CUdeviceptr, bytes: usize, flags: c_uint);
    cuMemHostRegister = "cuMemHostRegister_v2" (memory: *mut c_void, bytes: usize, flags: c_uint);
    cuMemHostUnregister = "cuMemHostUnregister" (memory: *mut c_void);
    cuMemHostGetDevicePointer = "cuMemHostGetDevicePointer_v2" (address: *mut sys::CUdeviceptr, memory: *mut c_void, flags: c_uint);
    cuMemcpyHtoD = "cuMemcpyHtoD_v2" (to: sys::CUdeviceptr, from: *const c_void, bytes: usize);
    cuMemcpyHtoDAsync = "cuMemcpyHtoDAsync_v2" (to: sys::CUdeviceptr, from: *const c_void, bytes: usize, stream: sys::CUstream);
    cuMemcpyDtoH = "cuMemcpyDtoH_v2" (to: *mut c_void, from: sys::CUdeviceptr, bytes: usize);
    cuMemcpyDtoHAsync = "cuMemcpyDtoHAsync_v2" (to: *mut c_void, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    cuMemcpyDtoDAsync = "cuMemcpyDtoDAsync_v2" (to: sys::CUdeviceptr, from: sys::CUdeviceptr, bytes: usize, stream: sys::CUstream);
    cuMemsetD8Async = "cuMemsetD8Async" (to: sys::CUdeviceptr, value: c_uchar, bytes: usize, stream: sys::CUstream);
    cuMemcpy2DAsync = "cuMemcpy2DAsync_v2" (copy: *const sys::CUDA_MEMCPY2D, stream: sys::CUstream);
    cuMemcpy3DAsync = "cuMemcpy3DAsync_v2" (copy: *const sys::CUDA_MEMCPY3D, stream: sys::CUstream);
    cuPointerGetAttribute = "cuPointerGetAttribute" (data: *mut c_void, attribute: c_uint, address: sys::CUdeviceptr);
    cuStreamCreate = "cuStreamCreate" (stream: *mut sys::CUstream, flags: c_uint);
    cuStreamDestroy = "cuStreamDestroy_v2" (stream: sys::CUstream);
    cuStreamSynchronize = "cuStreamSynchronize" (stream: sys::CUstream);
    cuStreamQuery = "cuStreamQuery" (stream: sys::CUstream);
    cuStreamGetCtx = "cuStreamGetCtx" (stream: sys::CUstream, context: *mut sys::CUcontext);
    cuStreamIsCapturing = "cuStreamIsCapturing" (stream: sys::CUstream, status: *mut c_uint);
    cuThreadExchangeStreamCaptureMode = "cuThreadExchangeStreamCaptureMode" (mode: *mut c_uint);
    cuStreamWaitEvent = "cuStreamWaitEvent" (stream: sys::CUstream, event: sys::CUevent, flags: c_uint);
    cuEventCreate = "cuEventCreate" (event: *mut sys::CUevent, flags: c_uint);
    cuEventDestroy = "cuEventDestroy_v2" (event: sys::CUevent);
    cuEventRecord = "cuEventRecord" (event: sys::CUevent, stream: sys::CUstream);
    cuEventQuery = "cuEventQuery" (event: sys::CUevent);
    cuEventSynchronize = "cuEventSynchronize" (event: sys::CUevent);
    cuEventElapsedTime = "cuEventElapsedTime" (ms: *mut f32, start: sys::CUevent, end: sys::CUevent);
    cuModuleLoadDataEx = "cuModuleLoadDataEx" (module: *mut sys::CUmodule, image: *const c_void, n_options: c_uint, options: *mut c_uint, values: *mut *mut c_void);
    cuLinkCreate = "cuLinkCreate_v2" (n_options: c_uint, options: *mut c_uint, values: *mut *mut c_void, state: *mut sys::CUlinkState);
    cuLinkAddData = "cuLinkAddData_v2" (state: sys::CUlinkState, kind: c_uint, data: *mut c_void, bytes: usize, name: *const c_char, n_options: c_uint, options: *mut c_uint, values: *mut *mut c_void);
    cuLinkComplete = "cuLinkComplete" (state: sys::CUlinkState, cubin: *mut *mut c_void, bytes: *mut usize);
    cuLinkDestroy = "cuLinkDestroy" (state: sys::CUlinkState);
    cuModuleUnload = "cuModuleUnload" (module: sys::CUmodule);
    cuModuleGetGlobal = "cuModuleGetGlobal_v2" (address: *mut sys::CUdeviceptr, bytes: *mut usize, module: sys::CUmodule, name: *const c_char);
    cuModuleGetFunction = "cuModuleGetFunction" (function: *mut sys::CUfunction, module: sys::CUmodule, name: *const c_char);
    cuFuncGetAttribute = "cuFuncGetAttribute" (value: *mut c_int, attribute: c_uint, function: sys::CUfunction);
    cuFuncSetCacheConfig = "cuFuncSetCacheConfig" (function: sys::CUfunction, preference: c_uint);
    cuFuncSetAttribute = "cuFuncSetAttribute" (function: sys::CUfunction, attribute: c_uint, value: c_int);
    cuLaunchKernel = "cuLaunchKernel" (function: sys::CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: sys::CUstream, params: *mut *mut c_void, extra: *mut *mut c_void);
    cuLaunchCooperativeKernel = "cuLaunchCooperativeKernel" (function: sys::CUfunction, grid_x: c_uint, grid_y: c_uint, grid_z: c_uint, block_x: c_uint, block_y: c_uint, block_z: c_uint, shared_bytes: c_uint, stream: sys::CUstream, params: *mut *mut c_void);
    cuOccupancyMaxActiveBlocksPerMultiprocessor = "cuOccupancyMaxActiveBlocksPerMultiprocessor" (blocks: *mut c_int, function: sys::CUfunction, block_threads: c_int, shared_bytes: usize);
    cuGetErrorName = "cuGetErrorName" (code: c_uint, text: *mut *const c_char);
    cuGetErrorString = "cuGetErrorString" (code: c_uint, text: *mut *const c_char);
}

impl fmt::Debug for Driver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Driver").finish_non_exhaustive()
    }
}

/// Looks a function up. `F` is a function pointer type of the symbol.
pub(super) fn find<F: Copy>(symbol: &str) -> Result<F, Error> {
    // SAFETY: only called once the library is known to be there.
    let library = unsafe { sys::culib() };
    // SAFETY: the table gives each symbol the type that the driver's header gives it.
    match unsafe { library.get::<F>(symbol.as_bytes()) } {
        Ok(function) => Ok(*function),
        Err(_) => Err(no_device(&format!("the CUDA driver is too old: it has no {symbol}; {}", needed()))),
    }
}

fn needed() -> String {
    let (major, minor) = OLDEST_DRIVER;
    format!("weft needs a driver for CUDA {major}.{minor} or newer")
}

/// The error of a machine without a GPU that can be used.
pub(super) fn no_device(what: &str) -> Error {
    Error::new(ErrorKind::NoDevice, what.to_owned())
}

/// A driver that is there and initialized, with the process that did so.
#[derive(Debug)]
struct Opened {
    driver: Driver,
    n_devices: u32,
    version: (u32, u32),
    process: u32,
}

/// Opens the driver at the first call; later calls return the same result.
fn opened() -> Result<&'static Opened, Error> {
    static OPENED: OnceLock<Result<Opened, Error>> = OnceLock::new();
    OPENED.get_or_init(open_driver).as_ref().map_err(Clone::clone)
}

/// Whether there is a driver on this machine.
pub(super) fn is_there() -> bool {
    static THERE: OnceLock<bool> = OnceLock::new();
    // SAFETY: it opens and closes the library, whose constructors do nothing that matters here.
    *THERE.get_or_init(|| unsafe { sys::is_culib_present() })
}

/// The driver's library as it was found, whether or not it can be used: the version of CUDA that it is for, and its file.
pub(super) fn found() -> Option<Library> {
    if !is_there() {
        return None;
    }
    Some(match find::<VersionOf>("cuDriverGetVersion") {
        Ok(version_of) => Library { version: version_by(version_of), file: file_of(version_of as *const c_void) },
        Err(_) => Library { version: None, file: None },
    })
}

/// `cuDriverGetVersion`.
type VersionOf = unsafe extern "C" fn(*mut c_int) -> c_uint;

/// The CUDA version of a driver; `None` for a stub library, which is only for linking.
fn version_by(version_of: VersionOf) -> Option<(u32, u32)> {
    let mut version = 0;
    // SAFETY: it may be called before cuInit and writes one int.
    let code = unsafe { version_of(&raw mut version) };
    (code == 0).then_some((version as u32 / 1000, version as u32 % 1000 / 10))
}

fn open_driver() -> Result<Opened, Error> {
    if !is_there() {
        return Err(no_device(
            "no CUDA driver: libcuda.so was not found (it comes with NVIDIA's driver, not with the CUDA toolkit)",
        ));
    }
    // A stub has its own error in cuInit.
    let version = version_by(find("cuDriverGetVersion")?);
    if let Some((major, minor)) = version.filter(|version| *version < OLDEST_DRIVER) {
        return Err(no_device(&format!("the CUDA driver is too old: it is for CUDA {major}.{minor}; {}", needed())));
    }
    let driver = Driver::load()?;
    // SAFETY: it takes no pointer.
    unsafe { driver.cuInit(0) }.map_err(|error| no_init(&error))?;
    let mut n_devices = 0;
    // SAFETY: it writes one int.
    unsafe { driver.cuDeviceGetCount(&raw mut n_devices) }.map_err(|error| no_init(&error))?;
    if n_devices <= 0 {
        return Err(no_device(&format!("the CUDA driver found no device{}", visible_devices())));
    }
    Ok(Opened { driver, n_devices: n_devices as u32, version: version.unwrap_or_default(), process: process::id() })
}

/// A failure of `cuInit`, with its usual cause.
fn no_init(error: &Error) -> Error {
    let what = match error.driver_code {
        Some(34) => format!("{error}: this libcuda.so is a stub for linking, not NVIDIA's driver"),
        Some(100) => format!("the CUDA driver found no device: {error}{}", visible_devices()),
        _ => format!("the CUDA driver does not start: {error}"),
    };
    Error { driver_code: error.driver_code, ..no_device(&what) }
}

/// `CUDA_VISIBLE_DEVICES`, which can hide every device.
fn visible_devices() -> String {
    match env::var("CUDA_VISIBLE_DEVICES") {
        Ok(value) => format!(" (CUDA_VISIBLE_DEVICES is \"{value}\")"),
        Err(_) => String::new(),
    }
}

/// The driver.
pub(super) fn driver() -> Result<&'static Driver, Error> {
    Ok(&opened()?.driver)
}

/// How many devices it has, at least one.
pub(super) fn device_count() -> Result<u32, Error> {
    Ok(opened()?.n_devices)
}

/// The CUDA version that it is for.
pub(super) fn version() -> Result<(u32, u32), Error> {
    Ok(opened()?.version)
}

/// `Dl_info` of `dlfcn.h`: the file and the address of a symbol.
#[repr(C)]
struct SymbolInfo {
    file: *const c_char,
    base: *const c_void,
    symbol: *const c_char,
    address: *const c_void,
}

unsafe extern "C" {
    fn dladdr(address: *const c_void, place: *mut SymbolInfo) -> c_int;
}

/// Which driver it is. The version of CUDA that it is for is that of many drivers, whose compilers may differ: the name of its
/// file has the version of the driver itself, and two builds seldom have one size.
pub(super) fn identity() -> Result<&'static str, Error> {
    static IDENTITY: OnceLock<String> = OnceLock::new();
    let Opened { driver, version: (major, minor), .. } = opened()?;
    Ok(IDENTITY.get_or_init(|| {
        let mut text = format!("{major}.{minor}");
        if let Some(path) = file_of(driver.cuInit as *const c_void).and_then(|path| path.canonicalize().ok()) {
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            let bytes = fs::metadata(&path).map_or(0, |known| known.len());
            text = format!("{text} {name} {bytes}");
        }
        text
    }))
}

/// The file that a function was loaded from.
pub(super) fn file_of(function: *const c_void) -> Option<PathBuf> {
    let mut place = SymbolInfo { file: ptr::null(), base: ptr::null(), symbol: ptr::null(), address: ptr::null() };
    // SAFETY: any address may be queried; it writes the structure.
    let found = unsafe { dladdr(function, &raw mut place) };
    if found == 0 || place.file.is_null() {
        return None;
    }
    // SAFETY: the loader gave a text that ends with a NUL, which is there as long as the library: for ever.
    let file = unsafe { CStr::from_ptr(place.file) };
    Some(PathBuf::from(OsStr::from_bytes(file.to_bytes())))
}

/// `true` in a process that was forked off the one that opened the driver. The driver does not work there, and what
/// the parent owns must not be freed.
pub(super) fn is_forked() -> bool {
    opened().is_ok_and(|opened| opened.process != process::id())
}

impl Driver {
    /// The error of a failed call. Slow; only for errors.
    #[cold]
    pub(super) fn error(&self, call: &str, code: c_uint) -> Error {
        let name = error_text(self.cuGetErrorName, code).unwrap_or_else(|| format!("error {code}"));
        let words = error_text(self.cuGetErrorString, code).map(|words| format!(" ({words})")).unwrap_or_default();
        let mut message = format!("{call} failed: {name}{words}");
        if let Some(fault) = fault(code) {
            message =
                format!("{fault}, reported by {call}: {name}{words}. The CUDA context is lost: start a new process");
        } else if code == 3 && is_forked() {
            message += ". This process was forked from one that had used CUDA, which CUDA does not support: use the \
                        start method \"spawn\" or \"forkserver\"";
        }
        message += capture_suggestion(code);
        let kind = match code {
            2 => ErrorKind::Memory,
            100 | 101 => ErrorKind::NoDevice,
            701 | 720 | clusters::INVALID_SIZE => ErrorKind::Launch,
            _ => ErrorKind::Driver,
        };
        Error { kind, message, driver_code: Some(code), raised: None, findings: Vec::new() }
    }
}

/// The driver's name or description of an error, by one of its two functions for that.
fn error_text(of: unsafe extern "C" fn(c_uint, *mut *const c_char) -> c_uint, code: c_uint) -> Option<String> {
    let mut text = ptr::null();
    // SAFETY: it writes one pointer.
    let result = unsafe { of(code, &raw mut text) };
    if result != 0 || text.is_null() {
        return None;
    }
    // SAFETY: the driver gave a pointer to a constant with a NUL at its end.
    let text = unsafe { CStr::from_ptr(text) };
    Some(text.to_string_lossy().into_owned())
}

/// The faults of a kernel that end the context: every later call returns the same error.
fn fault(code: c_uint) -> Option<&'static str> {
    Some(match code {
        214 => "the device's memory has an uncorrectable error",
        700 => "invalid memory access: a kernel read or wrote outside its arrays",
        702 => "a kernel ran for too long and was stopped",
        710 => "an assertion in a kernel failed",
        714 | 715 | 717..=719 => "a kernel faulted",
        716 => "misaligned address: a kernel used an address that is not aligned for its type",
        _ => return None,
    })
}

/// The suggestion for a call that a stream capture does not allow, appended to the driver's text.
fn capture_suggestion(code: c_uint) -> &'static str {
    match code {
        900 => {
            ". The call is not allowed while a stream is being captured for a graph. Launch each kernel once before \
             the capture, which compiles and loads it; allocate, wait, and copy from and to the host before or after \
             the capture"
        }
        901 => {
            ". An earlier call that is not allowed during a capture has invalidated the capture of this stream: end \
             it, and capture again without that call"
        }
        905 => {
            ". A captured stream cannot wait for work outside the capture: wait for that work before the capture begins"
        }
        906 => {
            ". The captured stream waits for the default stream, which cannot be used during the capture: launch in \
             the captured stream (`kernel[blocks, threads, stream]`), or capture a stream that does not wait for the \
             default stream"
        }
        907 => {
            ". The event was recorded in a captured stream, and only completes when the graph runs: only that stream \
             can wait for it"
        }
        _ => "",
    }
}

/// `true` for an error after which the context is dead.
pub(super) fn is_fault(error: &Error) -> bool {
    error.driver_code.is_some_and(|code| fault(code).is_some())
}

/// Loads code as a library, which is in all contexts: the functions of drivers for CUDA 12.0 and newer.
pub(super) struct Libraries {
    load: unsafe extern "C" fn(
        *mut sys::CUlibrary,
        *const c_void,
        *mut c_uint,
        *mut *mut c_void,
        c_uint,
        *mut c_uint,
        *mut *mut c_void,
        c_uint,
    ) -> c_uint,
    module: unsafe extern "C" fn(*mut sys::CUmodule, sys::CUlibrary) -> c_uint,
    kernel: unsafe extern "C" fn(*mut sys::CUkernel, sys::CUlibrary, *const c_char) -> c_uint,
    unload: unsafe extern "C" fn(sys::CUlibrary) -> c_uint,
}

impl Libraries {
    /// Those of the driver, if it has them.
    pub(super) fn find() -> Option<&'static Self> {
        static FOUND: OnceLock<Option<Libraries>> = OnceLock::new();
        let found = || {
            let (load, module) = (find("cuLibraryLoadData").ok()?, find("cuLibraryGetModule").ok()?);
            let (kernel, unload) = (find("cuLibraryGetKernel").ok()?, find("cuLibraryUnload").ok()?);
            Some(Self { load, module, kernel, unload })
        };
        opened().ok()?;
        FOUND.get_or_init(found).as_ref()
    }

    /// `cuLibraryLoadData` of code for the driver's JIT, with options.
    ///
    /// # Safety
    ///
    /// The code ends with a NUL where it is text; each option has its value, which means what the driver's manual says.
    pub(super) unsafe fn load(
        &self,
        driver: &Driver,
        code: *const c_void,
        options: &mut [c_uint],
        values: &mut [*mut c_void],
    ) -> Result<sys::CUlibrary, Error> {
        let mut library = ptr::null_mut();
        let (n, own, none) = (options.len() as c_uint, ptr::null_mut(), ptr::null_mut());
        // SAFETY: the caller promises it; it writes one handle.
        let done =
            unsafe { (self.load)(&raw mut library, code, options.as_mut_ptr(), values.as_mut_ptr(), n, own, none, 0) };
        if done == 0 { Ok(library) } else { Err(driver.error("cuLibraryLoadData", done)) }
    }

    /// `cuLibraryGetModule`: the library's code in the present context, as long as the library.
    ///
    /// # Safety
    ///
    /// The library is live.
    pub(super) unsafe fn module(&self, driver: &Driver, library: sys::CUlibrary) -> Result<sys::CUmodule, Error> {
        let mut module = ptr::null_mut();
        // SAFETY: the caller promises it; it writes one handle.
        let done = unsafe { (self.module)(&raw mut module, library) };
        if done == 0 { Ok(module) } else { Err(driver.error("cuLibraryGetModule", done)) }
    }

    /// `cuLibraryGetKernel`: the handle of a kernel in all contexts.
    ///
    /// # Safety
    ///
    /// The library is live.
    pub(super) unsafe fn kernel(&self, library: sys::CUlibrary, name: &CStr) -> Option<sys::CUkernel> {
        let mut kernel = ptr::null_mut();
        // SAFETY: the caller promises it; the name ends with a NUL; it writes one handle.
        let done = unsafe { (self.kernel)(&raw mut kernel, library, name.as_ptr()) };
        (done == 0).then_some(kernel)
    }

    /// `cuLibraryUnload`.
    ///
    /// # Safety
    ///
    /// The library is live, and nothing of it is used any more.
    pub(super) unsafe fn unload(&self, library: sys::CUlibrary) {
        // SAFETY: the caller promises it. A context that is broken has lost its code already.
        unsafe { (self.unload)(library) };
    }
}
