//! Loaded code and launches.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    any::Any,
    ffi::{CStr, CString, c_int, c_uint, c_void},
    fmt,
    mem::MaybeUninit,
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute};
use weft_artifact::{Artifact, CodeFormat, Factors, Kernel};

use super::{
    capture::{self, Aside},
    clusters,
    context::Context,
    driver::{self, Handle, Libraries},
    fault::Page,
    function::CudaFunction,
    image,
    link_logs::{JitLogs, explain_no_image, explain_no_load},
    stream::raw_stream,
};
use crate::{
    error::{Error, ErrorKind},
    executor::{LaunchConfig, LoadedKernel, Module, Poll, Stream},
    foreign::Function,
    launch::{self, KernelLimits, LastLaunch},
    occupancy::{USUAL_BLOCK, best_block},
    profiler_ranges,
};

/// Slots whose addresses a launch keeps on the stack.
const SLOTS_ON_STACK: usize = 64;
/// `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE`.
const TOO_MANY_AT_ONCE: u32 = 720;

/// A loaded library: code for other libraries' functions, which take its handle and no module's.
struct Library {
    functions: &'static Libraries,
    handle: Handle<sys::CUlib_st>,
    /// A driver that loads lazily may write to them until the library is unloaded.
    _logs: JitLogs,
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.handle.fmt(f)
    }
}

/// A loaded module.
#[derive(Debug)]
struct ModuleInner {
    context: Arc<Context>,
    handle: Handle<sys::CUmod_st>,
    /// The library that contains it; the driver unloads a module with its library.
    library: Option<Library>,
    /// The page to which it reports faults. Freed after the module, which writes to it.
    page: Option<Arc<Page>>,
}

impl Drop for ModuleInner {
    fn drop(&mut self) {
        if driver::is_forked() {
            return;
        }
        if let Ok(_entered) = self.context.enter() {
            let _aside = Aside::new(self.context.driver);
            match &self.page {
                Some(page) => self.context.unload_with(page, || self.unload()),
                None => self.unload(),
            }
        }
    }
}

impl ModuleInner {
    /// Once, when nothing has it any more.
    fn unload(&self) {
        if let Some(Library { functions, handle, .. }) = &self.library {
            // SAFETY: the handle is live; every kernel of the library's module keeps `self` alive.
            unsafe { functions.unload(handle.0) };
            return;
        }
        // SAFETY: the handle is live; every kernel of the module keeps `self` alive.
        let _: Result<(), Error> = unsafe { self.context.driver.cuModuleUnload(self.handle.0) };
    }
}

/// A loaded module, shared with its kernels.
#[derive(Debug)]
pub(super) struct CudaModule(Arc<ModuleInner>);

impl CudaModule {
    /// Has the driver compile and load PTX.
    pub(super) fn load(context: &Arc<Context>, artifact: &Artifact) -> Result<Self, Error> {
        if artifact.format != CodeFormat::Ptx {
            return Err(Error::new(
                ErrorKind::Value,
                format!("code for {} cannot be loaded on {}", artifact.target, context.attributes.name),
            ));
        }
        Self::load_image(context, artifact, artifact.code.clone())
    }

    /// Has the driver load code.
    pub(super) fn load_image(context: &Arc<Context>, artifact: &Artifact, image: Vec<u8>) -> Result<Self, Error> {
        let explain = |logs: &JitLogs, error| explain_no_load(context, artifact, logs, error);
        Self::ready(context, artifact, as_module(context, image, &explain)?, None)
    }

    /// Has the driver load code that was linked, as a library if it has these.
    pub(super) fn load_linked(context: &Arc<Context>, artifact: &Artifact, image: Vec<u8>) -> Result<Self, Error> {
        let Some(functions) = Libraries::find() else { return Self::load_image(context, artifact, image) };
        let explain = |logs: &JitLogs, error| explain_no_load(context, artifact, logs, error);
        let (handle, library) = as_library(context, functions, image, &explain)?;
        Self::ready(context, artifact, handle, Some(library))
    }

    /// Has the driver load code of any compiler, as a library if it has these.
    pub(super) fn load_foreign(context: &Arc<Context>, image: &[u8]) -> Result<Self, Error> {
        image::check(image)?;
        let explain = |logs: &JitLogs, error| explain_no_image(context, logs, error);
        let (handle, library) = match Libraries::find() {
            Some(functions) => {
                let (handle, library) = as_library(context, functions, image.to_vec(), &explain)?;
                (handle, Some(library))
            }
            None => (as_module(context, image.to_vec(), &explain)?, None),
        };
        let context = Arc::clone(context);
        Ok(Self(Arc::new(ModuleInner { context, handle: Handle(handle), library, page: None })))
    }

    /// A module with the state that its kernels need.
    fn ready(
        context: &Arc<Context>,
        artifact: &Artifact,
        handle: sys::CUmodule,
        library: Option<Library>,
    ) -> Result<Self, Error> {
        let mut module = ModuleInner { context: Arc::clone(context), handle: Handle(handle), library, page: None };
        if let Some(faults) = artifact.kernels.iter().find_map(|kernel| kernel.faults.clone()) {
            let _entered = context.enter()?;
            module.page = Some(Page::new(context, handle, faults)?);
        }
        if artifact.kernels.iter().any(|kernel| kernel.prints) {
            let _entered = context.enter()?;
            context.set_print_page(handle)?;
        }
        Ok(Self(Arc::new(module)))
    }

    /// The same, if it contains all of the artifact's kernels: a driver that loads lazily may refuse code only when a
    /// kernel is requested.
    pub(super) fn with_kernels(self, artifact: &Artifact) -> Result<Self, Error> {
        artifact.kernels.iter().try_for_each(|kernel| self.function(kernel).map(drop))?;
        Ok(self)
    }

    /// The driver's handle of a kernel.
    fn function(&self, kernel: &Kernel) -> Result<sys::CUfunction, Error> {
        let symbol = CString::new(kernel.symbol.as_str()).map_err(|_| {
            Error::new(ErrorKind::Internal, format!("the symbol of kernel `{}` holds a NUL byte", kernel.name))
        })?;
        self.symbol(&symbol).map_err(|mut error| {
            error.message = format!(
                "kernel `{}` is not in the loaded code under its symbol {}: {}",
                kernel.name, kernel.symbol, error.message
            );
            error
        })
    }

    /// The driver's handle of the kernel with a symbol.
    pub(super) fn symbol(&self, symbol: &CStr) -> Result<sys::CUfunction, Error> {
        let context = &self.0.context;
        let _entered = context.enter()?;
        let mut function = ptr::null_mut();
        // SAFETY: it writes one handle; the module is live and the symbol ends with a NUL.
        unsafe { context.driver.cuModuleGetFunction(&raw mut function, self.0.handle.0, symbol.as_ptr()) }?;
        Ok(function)
    }

    /// The handle of the same kernel in the library; `None` if the module is in none.
    pub(super) fn library_kernel(&self, symbol: &CStr) -> Option<u64> {
        let Library { functions, handle, .. } = self.0.library.as_ref()?;
        // SAFETY: the library is live and the symbol ends with a NUL.
        unsafe { functions.kernel(handle.0, symbol) }.map(|kernel| kernel.addr() as u64)
    }

    /// The context that it is loaded in.
    pub(super) fn context(&self) -> &Context {
        &self.0.context
    }

    /// A kernel without slots, with what the driver reports about it. The context is current.
    pub(super) fn loaded(&self, function: sys::CUfunction, name: &str) -> Result<CudaKernel, Error> {
        let context = &self.0.context;
        let read = |which: Attribute| {
            let mut value = 0;
            // SAFETY: it writes one int; the function is live.
            unsafe { context.driver.cuFuncGetAttribute(&raw mut value, which as c_uint, function) }?;
            Ok::<_, Error>(value as u32)
        };
        Ok(CudaKernel {
            limits: KernelLimits {
                name: name.to_owned(),
                shared_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES)?,
                max_threads_per_block: read(Attribute::CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK)?,
                factors: Factors::NONE,
                registers: read(Attribute::CU_FUNC_ATTRIBUTE_NUM_REGS)?,
                cells: 0,
            },
            first_cells: Box::default(),
            local_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES)?,
            const_bytes: read(Attribute::CU_FUNC_ATTRIBUTE_CONST_SIZE_BYTES)?,
            last_launch: LastLaunch::default(),
            good_block: Mutex::new(None),
            takes_large_clusters: AtomicBool::new(false),
            dynamic_limit: AtomicU32::new(read(Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES)?),
            number: context.register_kernel(name),
            cooperative: false,
            waits: false,
            function: Handle(function),
            module: Arc::clone(&self.0),
        })
    }
}

/// Adds the driver's log to a failure.
type Explain<'a> = &'a dyn Fn(&JitLogs, Error) -> Error;

/// Has the driver load code as a module.
fn as_module(context: &Context, mut image: Vec<u8>, explain: Explain<'_>) -> Result<sys::CUmodule, Error> {
    image.push(0);
    let mut logs = JitLogs::new();
    let (mut options, mut values) = logs.options();
    let mut handle = ptr::null_mut();
    let entered = context.enter()?;
    // SAFETY: the image ends with a NUL; each option has its value; the logs have the given size.
    let loaded = unsafe {
        context.driver.cuModuleLoadDataEx(
            &raw mut handle,
            image.as_ptr().cast::<c_void>(),
            options.len() as c_uint,
            options.as_mut_ptr(),
            values.as_mut_ptr(),
        )
    };
    drop(entered);
    context.blame(loaded).map_err(|error| explain(&logs, error))?;
    Ok(handle)
}

/// Has the driver load code as a library, and gives its module in the context.
fn as_library(
    context: &Context,
    functions: &'static Libraries,
    mut image: Vec<u8>,
    explain: Explain<'_>,
) -> Result<(sys::CUmodule, Library), Error> {
    image.push(0);
    let mut logs = JitLogs::new();
    let (mut options, mut values) = logs.options();
    let entered = context.enter()?;
    let code = image.as_ptr().cast::<c_void>();
    // SAFETY: the image ends with a NUL; each option has its value; the logs have the given size.
    let loaded = unsafe { functions.load(context.driver, code, &mut options, &mut values) };
    drop(entered);
    let handle = context.blame(loaded).map_err(|error| explain(&logs, error))?;
    let entered = context.enter()?;
    // SAFETY: the library is live.
    let module = unsafe { functions.module(context.driver, handle) };
    drop(entered);
    if module.is_err() {
        // SAFETY: the library is live, and nothing of it is in use.
        unsafe { functions.unload(handle) };
    }
    let module = context.blame(module).map_err(|error| explain(&logs, error))?;
    Ok((module, Library { functions, handle: Handle(handle), _logs: logs }))
}

impl Module for CudaModule {
    fn handle(&self) -> u64 {
        self.0.handle.0.addr() as u64
    }

    fn library(&self) -> Option<u64> {
        self.0.library.as_ref().map(|library| library.handle.0.addr() as u64)
    }

    fn global(&self, name: &str) -> Result<(u64, u64), Error> {
        let context = &self.0.context;
        let symbol = CString::new(name).unwrap_or_default();
        let (mut address, mut bytes) = (0, 0);
        let _entered = context.enter()?;
        // SAFETY: it writes an address and a number; the module is live and the symbol ends with a NUL.
        unsafe { context.driver.cuModuleGetGlobal(&raw mut address, &raw mut bytes, self.0.handle.0, symbol.as_ptr()) }
            .map_err(|error| Error { message: format!("there is no variable {name}: {}", error.message), ..error })?;
        Ok((address, bytes as u64))
    }

    fn kernel(&self, kernel: &Kernel) -> Result<Arc<dyn LoadedKernel>, Error> {
        let context = &self.0.context;
        let function = self.function(kernel)?;
        let _entered = context.enter()?;
        if kernel.calls_itself {
            context.deepen_stacks()?;
        }
        let mut loaded = self.loaded(function, &kernel.name)?;
        let limits = &mut loaded.limits;
        // The attribute knows the threads of the device, the program's bound those that it sees.
        limits.max_threads_per_block = limits
            .max_threads_per_block
            .saturating_mul(kernel.coarsening.factors.threads_in_one())
            .min(kernel.max_threads.unwrap_or(u32::MAX));
        limits.factors = kernel.coarsening.factors;
        limits.cells = kernel.n_cells();
        loaded.first_cells = kernel.first_cells().map(|cell| cell as u32).collect();
        loaded.cooperative = kernel.cooperative;
        loaded.waits = kernel.faults.as_ref().is_some_and(|faults| faults.at_launch);
        Ok(Arc::new(loaded))
    }

    fn function(&self, name: &str) -> Result<Arc<dyn Function>, Error> {
        Ok(Arc::new(CudaFunction::new(self, name)?))
    }
}

/// A kernel.
#[derive(Debug)]
pub(super) struct CudaKernel {
    limits: KernelLimits,
    /// The first cell of each slot; the last slot's cells end with the launch's.
    first_cells: Box<[u32]>,
    local_bytes: u32,
    const_bytes: u32,
    /// The dynamic shared memory that the driver allows for a launch at present.
    dynamic_limit: AtomicU32,
    last_launch: LastLaunch,
    /// Dynamic shared memory that a block size was looked for with, and the size.
    good_block: Mutex<Option<(u32, u32)>>,
    /// The driver was configured to accept clusters above the portable size.
    takes_large_clusters: AtomicBool,
    /// Its number in the context, for the text of a fault.
    number: u32,
    /// All blocks of a launch run at a time.
    cooperative: bool,
    /// A launch waits for its end, and reports its faults.
    waits: bool,
    function: Handle<sys::CUfunc_st>,
    module: Arc<ModuleInner>,
}

impl LoadedKernel for CudaKernel {
    fn registers(&self) -> u32 {
        self.limits.registers
    }

    fn shared_bytes(&self) -> u32 {
        self.limits.shared_bytes
    }

    fn local_bytes(&self) -> u32 {
        self.local_bytes
    }

    fn const_bytes(&self) -> u32 {
        self.const_bytes
    }

    fn max_threads_per_block(&self) -> u32 {
        self.limits.max_threads_per_block
    }

    fn prefer_shared(&self, percent: i8) -> Result<(), Error> {
        let which = Attribute::CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT as c_uint;
        let context = &*self.module.context;
        let _entered = context.enter()?;
        // SAFETY: the function is live.
        unsafe { context.driver.cuFuncSetAttribute(self.function.0, which, c_int::from(percent)) }
    }

    fn last_launch(&self) -> Option<(u32, u32)> {
        self.last_launch.get()
    }

    fn active_blocks(&self, block_threads: u32, shared_bytes: u32) -> Result<u32, Error> {
        let context = &*self.module.context;
        let fits = self.limits.shared_bytes.saturating_add(shared_bytes)
            <= context.attributes.max_shared_memory_per_block_optin;
        if !fits || !(1..=self.limits.max_threads_per_block).contains(&block_threads) {
            return Ok(0);
        }
        let _entered = context.enter()?;
        if shared_bytes > self.dynamic_limit.load(Ordering::Relaxed) {
            self.raise_dynamic_limit()?;
        }
        let mut blocks = 0;
        let threads = c_int::try_from(block_threads).unwrap_or(c_int::MAX);
        // SAFETY: it writes one int; the function is live.
        unsafe {
            context.driver.cuOccupancyMaxActiveBlocksPerMultiprocessor(
                &raw mut blocks,
                self.function.0,
                threads,
                shared_bytes as usize,
            )
        }?;
        Ok(u32::try_from(blocks).unwrap_or(0))
    }

    /// The usual block size where it fills a multiprocessor as well as any, else the best.
    fn good_block(&self, shared_bytes: u32) -> Result<u32, Error> {
        let mut known = self.good_block.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((of, threads)) = *known
            && of == shared_bytes
        {
            return Ok(threads);
        }
        let most = self.limits.max_threads_per_block;
        let device = &self.module.context.attributes;
        let best = best_block(device, most, |threads| self.active_blocks(threads, shared_bytes))?;
        let usual = USUAL_BLOCK.min(most);
        let running = |threads| Ok::<_, Error>(self.active_blocks(threads, shared_bytes)?.saturating_mul(threads));
        // A kernel that does not fit at all is refused by its launch, which says why.
        let threads = if running(usual)? >= running(best.threads)? { usual } else { best.threads };
        *known = Some((shared_bytes, threads));
        Ok(threads)
    }

    fn most_blocks_at_once(&self, block_threads: u32, shared_bytes: u32) -> Result<u64, Error> {
        let n_multiprocessors = self.module.context.attributes.multiprocessor_count;
        Ok(self.active_blocks(block_threads, shared_bytes)? as u64 * n_multiprocessors as u64)
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn check(&self, config: &LaunchConfig, n_cells: usize) -> Result<(), Error> {
        launch::check(config, n_cells, &self.module.context.attributes, &self.limits)
    }

    /// Allocates nothing and takes no lock, up to 64 slots: the price is that of `cuLaunchKernel`.
    fn launch_polled(
        &self,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
        cells: &mut [u64],
        _poll: Option<Poll<'_>>,
    ) -> Result<(), Error> {
        let context = &*self.module.context;
        self.check(config, cells.len())?;
        let stream = raw_stream(context, stream)?;
        let _entered = context.enter()?;
        if self.waits {
            self.check_waits(stream)?;
        }
        self.allow_shared(config)?;
        let _range = profiler_ranges::launch(&self.limits.name);
        // That there are as many cells as the slots take was checked.
        let cells = cells.as_mut_ptr();
        let address = |first: &u32| cells.wrapping_add(*first as usize).cast::<c_void>();
        if self.first_cells.len() > SLOTS_ON_STACK {
            let mut params: Vec<_> = self.first_cells.iter().map(address).collect();
            return self.queue(config, stream, params.as_mut_ptr(), self.cooperative);
        }
        let mut params = [const { MaybeUninit::<*mut c_void>::uninit() }; SLOTS_ON_STACK];
        for (param, first) in params.iter_mut().zip(&self.first_cells) {
            param.write(address(first));
        }
        self.queue(config, stream, params.as_mut_ptr().cast::<*mut c_void>(), self.cooperative)
    }
}

impl CudaKernel {
    /// The context that its module is loaded in.
    pub(super) fn context(&self) -> &Context {
        &self.module.context
    }

    /// All blocks of a launch run at a time.
    pub(super) fn is_cooperative(&self) -> bool {
        self.cooperative
    }

    /// Whether a launch waits for its end.
    pub(super) fn waits(&self) -> bool {
        self.waits
    }

    /// The driver's handle.
    pub(super) fn function(&self) -> sys::CUfunction {
        self.function.0
    }

    /// It was launched last, for the text of a fault.
    pub(super) fn note(&self) {
        self.module.context.note_launch(self.number);
    }

    /// The address of each slot among cells, of which there are as many as the slots take.
    pub(super) fn params(&self, cells: &mut [u64]) -> Vec<*mut c_void> {
        let cells = cells.as_mut_ptr();
        self.first_cells.iter().map(|first| cells.wrapping_add(*first as usize).cast()).collect()
    }

    /// Raises the limit to the dynamic shared memory of a launch, in the context.
    #[inline]
    pub(super) fn allow_shared(&self, config: &LaunchConfig) -> Result<(), Error> {
        if config.shared_bytes > self.dynamic_limit.load(Ordering::Relaxed) {
            self.raise_dynamic_limit()
        } else {
            Ok(())
        }
    }

    /// The launch configuration for the device.
    #[inline]
    pub(super) fn on_device(&self, config: &LaunchConfig) -> LaunchConfig {
        self.limits.on_device(config)
    }

    /// `params` has the address of each slot, or of each argument.
    pub(super) fn queue(
        &self,
        config: &LaunchConfig,
        stream: sys::CUstream,
        params: *mut *mut c_void,
        cooperative: bool,
    ) -> Result<(), Error> {
        let on_device = self.on_device(config);
        self.last_launch.set(&on_device);
        let context = &*self.module.context;
        context.poll_prints();
        if config.has_clusters() {
            let launched = clusters::launch(context, self, &on_device, stream, params);
            return self.launched(config, stream, launched);
        }
        let LaunchConfig {
            grid: [grid_x, grid_y, grid_z],
            block: [block_x, block_y, block_z],
            shared_bytes,
            cluster: _,
        } = on_device;
        if cooperative {
            // SAFETY: as below.
            let launched = unsafe {
                context.driver.cuLaunchCooperativeKernel(
                    self.function.0,
                    grid_x,
                    grid_y,
                    grid_z,
                    block_x,
                    block_y,
                    block_z,
                    shared_bytes,
                    stream,
                    params,
                )
            };
            return self.launched(config, stream, launched);
        }
        // SAFETY: the function is live, and there is one address for each of its parameters, whose values the driver
        // copies before it returns. The caller holds the memory that the values point to. Where the driver does not
        // report the parameters of a function, the program is responsible for the addresses, as in CUDA.
        let launched = unsafe {
            context.driver.cuLaunchKernel(
                self.function.0,
                grid_x,
                grid_y,
                grid_z,
                block_x,
                block_y,
                block_z,
                shared_bytes,
                stream,
                params,
                ptr::null_mut(),
            )
        };
        self.launched(config, stream, launched)
    }

    #[inline]
    fn launched(&self, config: &LaunchConfig, stream: sys::CUstream, launched: Result<(), Error>) -> Result<(), Error> {
        let context = &*self.module.context;
        match launched {
            Ok(()) => {
                context.note_launch(self.number);
                if self.waits { self.wait(stream) } else { Ok(()) }
            }
            Err(error) => context.blame(Err(self.explain(config, error))),
        }
    }

    /// Refuses a captured launch: it would run only when the graph is launched.
    #[cold]
    fn check_waits(&self, stream: sys::CUstream) -> Result<(), Error> {
        if !stream.is_null() && capture::is_captured(self.module.context.driver, stream) {
            let what = format!("launch `{}`, which waits for its exceptions, in", self.limits.name);
            return Err(capture::not_allowed(&what));
        }
        Ok(())
    }

    /// Waits for the launch, and reports its faults.
    #[cold]
    fn wait(&self, stream: sys::CUstream) -> Result<(), Error> {
        self.module.context.wait_and_check(stream)
    }

    /// Raises the driver's limit of dynamic shared memory above the default of 48 KiB: to the device's maximum at once,
    /// so that concurrent threads set the same value.
    #[cold]
    fn raise_dynamic_limit(&self) -> Result<(), Error> {
        let which = Attribute::CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES as c_uint;
        let context = &self.module.context;
        let most = context.attributes.max_shared_memory_per_block_optin.saturating_sub(self.limits.shared_bytes);
        // SAFETY: the function is live.
        unsafe { context.driver.cuFuncSetAttribute(self.function.0, which, most as c_int) }?;
        self.dynamic_limit.store(most, Ordering::Relaxed);
        Ok(())
    }

    /// Has the driver take clusters that are larger than every GPU has them.
    pub(super) fn allow_large_clusters(&self) -> Result<(), Error> {
        if self.takes_large_clusters.load(Ordering::Relaxed) {
            return Ok(());
        }
        // SAFETY: the function is live.
        unsafe { self.module.context.driver.cuFuncSetAttribute(self.function.0, clusters::NON_PORTABLE, 1) }?;
        self.takes_large_clusters.store(true, Ordering::Relaxed);
        Ok(())
    }

    /// Names the kernel and the launch in a failure.
    #[cold]
    fn explain(&self, config: &LaunchConfig, error: Error) -> Error {
        let context = &*self.module.context;
        if driver::is_fault(&error) {
            // An earlier launch's fault, so this kernel is not to blame.
            return error;
        }
        let LaunchConfig { grid, block, shared_bytes, cluster } = config;
        let KernelLimits { name, registers, .. } = &self.limits;
        let mut error = error;
        error.message = format!(
            "cannot launch `{name}` with grid {grid:?}, block {block:?} and {shared_bytes} bytes of dynamic shared \
             memory: {}",
            error.message
        );
        if error.driver_code == Some(clusters::INVALID_SIZE) {
            error.message = format!(
                "{}. {} cannot run clusters {cluster:?} of such blocks, or they exceed the kernel's `launch_bounds`: \
                 use smaller clusters, or less shared memory and fewer threads per block",
                error.message, context.attributes.name
            );
        }
        let threads = block.iter().map(|&extent| extent as u64).product::<u64>();
        if error.driver_code == Some(TOO_MANY_AT_ONCE)
            && let Ok(most) = self.most_blocks_at_once(u32::try_from(threads).unwrap_or(u32::MAX), *shared_bytes)
        {
            error.message = format!(
                "{}. All blocks of a cooperative launch must run at the same time: {} can run {most} of this size",
                error.message, context.attributes.name
            );
        }
        if error.driver_code == Some(launch::OUT_OF_RESOURCES) {
            error.message = format!(
                "{}. The block needs {registers} registers for each of {threads} threads; {} has {} registers per \
                 block. Use smaller blocks",
                error.message, context.attributes.name, context.registers_per_block
            );
        }
        error
    }
}
