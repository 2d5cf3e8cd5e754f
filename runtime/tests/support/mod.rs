//! Shared code of the CPU executor's tests: a loader whose code consists of functions of the test, and accessors for
//! the arguments of those functions.
#![allow(dead_code, reason = "each test binary uses its part")]
#![expect(unsafe_code, reason = "plays the part of compiled code, and of other libraries of the process")]

pub(crate) mod fake;

use std::{slice, sync::Arc};

use weft_artifact::{
    Artifact, Assumptions, Coarsening, CodeFormat, HostConfig, HostContext, HostEntry, HostWatch, Kernel, Scalar, Slot,
    SlotField, SlotSource, SlotType,
};
use weft_runtime::{Error, Executor, HostCode, HostLoader, LaunchConfig, LoadedKernel, Settings, cpu};

/// The entry of a host kernel.
pub(crate) type Entry = unsafe extern "C" fn(*mut HostContext);

/// A loader that interprets the eight bytes of an "object file" as the address of an [`Entry`] with the symbol
/// `probe_symbol`.
#[derive(Debug)]
pub(crate) struct AddressLoader;

#[derive(Debug)]
struct AddressCode(usize);

impl HostCode for AddressCode {
    fn symbol(&self, name: &str) -> Option<usize> {
        (name == "probe_symbol").then_some(self.0)
    }
}

impl HostLoader for AddressLoader {
    fn load(&self, object: &[u8]) -> Result<Arc<dyn HostCode>, String> {
        let bytes = object.try_into().map_err(|_| "this is no object".to_owned())?;
        Ok(Arc::new(AddressCode(usize::from_le_bytes(bytes))))
    }
}

/// The CPU device with one thread per core.
pub(crate) fn cpu() -> Arc<dyn Executor> {
    cpu::open(&Settings::default(), Arc::new(AddressLoader)).expect("the settings are good")
}

/// The CPU device with this number of threads.
pub(crate) fn cpu_with(threads: usize) -> Arc<dyn Executor> {
    let settings = Settings { cpu_threads: threads.try_into().ok(), ..Settings::default() };
    cpu::open(&settings, Arc::new(AddressLoader)).expect("the settings are good")
}

/// A kernel `probe` with this number of slots.
pub(crate) fn probe(n_slots: usize, dynamic_offset: u64, shared_bytes: u64) -> Kernel {
    let source = SlotSource::Argument { param: 0, path: Vec::new(), field: SlotField::Value };
    let slot = Slot { source, ty: SlotType::Scalar(Scalar::U64) };
    Kernel {
        name: "probe".into(),
        symbol: "probe_symbol".into(),
        params: Vec::new(),
        slots: vec![slot; n_slots],
        shared_bytes,
        local_bytes: 0,
        const_bytes: 0,
        max_threads: None,
        dynamic_shared: false,
        cooperative: false,
        calls_itself: false,
        can_bound_stores: false,
        coarsening: Coarsening::default(),
        gains: Assumptions::NONE,
        faults: None,
        prints: false,
        sanitize: None,
        host: Some(HostEntry {
            stack_bytes: None,
            call_bytes: 0,
            below_bytes: 0,
            dynamic_offset,
            x_axis: 0,
            may_split_blocks: false,
            calls_runtime: false,
        }),
    }
}

/// An artifact whose code is `entry`.
pub(crate) fn artifact(entry: Entry, kernel: Kernel) -> Artifact {
    let code = (entry as usize).to_le_bytes().to_vec();
    Artifact { format: CodeFormat::HostObject, target: "host".into(), code, kernels: vec![kernel] }
}

/// `entry` as a kernel without shared memory.
pub(crate) fn load(device: &Arc<dyn Executor>, entry: Entry, n_slots: usize) -> Arc<dyn LoadedKernel> {
    load_with(device, entry, n_slots, 0, 0)
}

/// `entry` as a kernel with a layout.
pub(crate) fn load_with(
    device: &Arc<dyn Executor>,
    entry: Entry,
    n_slots: usize,
    dynamic_offset: u64,
    shared_bytes: u64,
) -> Arc<dyn LoadedKernel> {
    let artifact = artifact(entry, probe(n_slots, dynamic_offset, shared_bytes));
    let module = device.load(&artifact).expect("the loader takes it");
    module.kernel(&artifact.kernels[0]).expect("the symbol is known")
}

/// A launch without dynamic shared memory.
pub(crate) fn config(grid: [u32; 3], block: [u32; 3]) -> LaunchConfig {
    LaunchConfig { grid, block, shared_bytes: 0, cluster: LaunchConfig::ALONE }
}

/// The error of a call that should fail.
pub(crate) fn expect_error<T>(result: Result<T, Error>) -> Error {
    result.err().expect("it should fail")
}

/// The context of a call of a test's kernel.
pub(crate) fn given(context: *mut HostContext) -> HostContext {
    // SAFETY: the device calls kernels with a context.
    unsafe { *context }
}

/// A kernel's slot.
pub(crate) fn slot(slots: *const u64, i: usize) -> u64 {
    // SAFETY: the tests' kernels use only slots that they declare.
    unsafe { *slots.wrapping_add(i) }
}

/// Reads a 32-bit word from a kernel's configuration.
pub(crate) fn config_word(config: *const HostConfig, i: usize) -> u32 {
    // SAFETY: the device calls kernels with a configuration.
    unsafe { (*config).words[i] }
}

/// Whether a kernel should leave, determined as in compiled code.
pub(crate) fn leaves(config: *const HostConfig) -> bool {
    // SAFETY: the device calls kernels with a configuration.
    let watch = unsafe { (*config).watch };
    // SAFETY: it lives as long as the kernel runs.
    let HostWatch { flag, look, .. } = unsafe { *watch };
    // SAFETY: as above; it is only written atomically.
    let flag = unsafe { &*flag.cast::<std::sync::atomic::AtomicU32>() };
    // SAFETY: it is called on the thread's own stack.
    flag.load(std::sync::atomic::Ordering::Relaxed) != 0 && unsafe { look(watch) } != 0
}

/// The target of a slot that contains an address.
pub(crate) fn reference<'a, T>(slots: *const u64, i: usize) -> &'a T {
    // SAFETY: the test passed a reference to a `T` that outlives the launch.
    unsafe { &*(slot(slots, i) as usize as *const T) }
}

/// The scratch memory of a kernel.
pub(crate) fn scratch<'a>(start: *mut u8, bytes: usize) -> &'a mut [u8] {
    // SAFETY: the executor gave this many bytes to this thread alone.
    unsafe { slice::from_raw_parts_mut(start, bytes) }
}

/// Atomically adds one to a cell of the array in slot 0.
pub(crate) fn bump(slots: *const u64, cell: u64) {
    let cells = slot(slots, 0) as usize as *mut u64;
    // SAFETY: the test passed an array with such a cell.
    let cell = unsafe { std::sync::atomic::AtomicU64::from_ptr(cells.wrapping_add(cell as usize)) };
    cell.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
}

/// Writes a cell of the array in slot 0.
pub(crate) fn store(slots: *const u64, cell: usize, value: u64) {
    let cells = slot(slots, 0) as usize as *mut u64;
    // SAFETY: the test passed an array with such a cell.
    unsafe { *cells.wrapping_add(cell) = value };
}

/// Runs `child` in a forked process and returns its result; `false` if that process hangs for ten seconds.
#[cfg(target_os = "linux")]
pub(crate) fn in_fork(child: impl FnOnce() -> bool) -> bool {
    unsafe extern "C" {
        fn fork() -> i32;
        fn alarm(seconds: u32) -> u32;
        fn _exit(status: i32) -> !;
        fn waitpid(process: i32, status: *mut i32, options: i32) -> i32;
    }
    // SAFETY: the child runs only code that takes no lock of the threads that it has lost, and leaves by `_exit`.
    match unsafe { fork() } {
        0 => {
            // SAFETY: it takes no pointer; its signal ends this process.
            unsafe { alarm(10) };
            let good = child();
            // SAFETY: it ends this process.
            unsafe { _exit(i32::from(!good)) }
        }
        process => {
            let mut status = -1;
            // SAFETY: it writes one int.
            unsafe { waitpid(process, &raw mut status, 0) };
            status == 0
        }
    }
}

/// The address of a function of the fake driver.
fn driver_function(name: &std::ffi::CStr) -> *mut std::ffi::c_void {
    unsafe extern "C" {
        fn dlopen(name: *const std::ffi::c_char, flags: i32) -> *mut std::ffi::c_void;
        fn dlsym(library: *mut std::ffi::c_void, name: *const std::ffi::c_char) -> *mut std::ffi::c_void;
    }
    const RTLD_NOW: i32 = 2;
    // SAFETY: the name ends with a NUL; the library is open already.
    let library = unsafe { dlopen(c"libcuda.so".as_ptr(), RTLD_NOW) };
    // SAFETY: the name ends with a NUL.
    let function = unsafe { dlsym(library, name.as_ptr()) };
    assert!(!function.is_null());
    function
}

/// Makes allocations of the fake driver fail, beginning with the one of this number, counted from 1.
pub(crate) fn fail_allocations(at: i32, times: i32) {
    let fail = driver_function(c"fake_no_memory");
    // SAFETY: this is the function's type.
    let fail = unsafe { std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn(i32, i32)>(fail) };
    // SAFETY: it takes any numbers.
    unsafe { fail(at, times) };
}

/// Makes a foreign context current on this thread, without weft's knowledge, in the fake driver.
pub(crate) fn make_foreign_context_current() {
    let set_current = driver_function(c"cuCtxSetCurrent");
    // SAFETY: this is the function's type.
    let set_current =
        unsafe { std::mem::transmute::<*mut std::ffi::c_void, unsafe extern "C" fn(usize) -> u32>(set_current) };
    // SAFETY: the fake driver accepts any number as a context.
    assert_eq!(unsafe { set_current(0xBEEF) }, 0);
}
