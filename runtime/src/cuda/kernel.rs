//! Kernels of loaded code, and their launches.
#![expect(unsafe_code, reason = "calls into the CUDA driver")]

use std::{
    any::Any,
    ffi::{c_int, c_uint, c_void},
    mem::MaybeUninit,
    ptr,
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, AtomicU32, Ordering},
    },
};

use cudarc::driver::sys::{self, CUfunction_attribute_enum as Attribute};
use weft_artifact::{Factors, Kernel};

use super::{
    capture, clusters,
    context::Context,
    driver::{self, Handle},
    module::ModuleInner,
    stream::raw_stream,
};
use crate::{
    error::Error,
    executor::{LaunchConfig, LoadedKernel, Poll, Stream},
    launch::{self, KernelLimits, LastLaunch},
    occupancy::{USUAL_BLOCK, best_block},
    profiler_ranges,
};

/// Slots whose addresses a launch keeps on the stack.
const SLOTS_ON_STACK: usize = 64;
/// `CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE`.
const TOO_MANY_AT_ONCE: u32 = 720;

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
    /// A kernel without slots, with what the driver reports about it. The module's context is current.
    pub(super) fn new(module: &Arc<ModuleInner>, function: sys::CUfunction, name: &str) -> Result<Self, Error> {
        let context = &module.context;
        let read = |which: Attribute| {
            let mut value = 0;
            // SAFETY: it writes one int; the function is live.
            unsafe { context.driver.cuFuncGetAttribute(&raw mut value, which as c_uint, function) }?;
            Ok::<_, Error>(value as u32)
        };
        Ok(Self {
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
            module: Arc::clone(module),
        })
    }

    /// Gives it the slots and the bounds of the program's kernel.
    pub(super) fn set_slots(&mut self, kernel: &Kernel) {
        let limits = &mut self.limits;
        // The attribute knows the threads of the device, the program's bound those that it sees.
        limits.max_threads_per_block = limits
            .max_threads_per_block
            .saturating_mul(kernel.coarsening.factors.threads_in_one())
            .min(kernel.max_threads.unwrap_or(u32::MAX));
        limits.factors = kernel.coarsening.factors;
        limits.cells = kernel.n_cells();
        self.first_cells = kernel.first_cells().map(|cell| cell as u32).collect();
        self.cooperative = kernel.cooperative;
        self.waits = kernel.faults.as_ref().is_some_and(|faults| faults.at_launch);
    }

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
