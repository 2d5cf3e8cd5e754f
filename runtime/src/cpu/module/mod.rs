//! Loaded code and launches.
#![expect(unsafe_code, reason = "calls code that was compiled at run time")]

mod checked;
mod split;

use std::{
    any::Any,
    ops::Range,
    sync::{Arc, atomic::AtomicBool},
};

use weft_artifact::{Artifact, CodeFormat, Factors, Faults, HostConfig, HostContext, HostWatch, Kernel, Sites};

use super::{
    async_copies,
    checks::{Checks, SanitizedContext, Watched},
    depth::{self, lowest},
    fault::{self, Pending, Record},
    fibers::{Fibers, blocks_in_memory},
    invalid_access::{self, Culprit},
    launch_state::LaunchState,
    matrix,
    pool::{Cost, Pool, Work},
    print as compiled,
    scratch::with_scratch,
    stream::check_stream,
};
use crate::{
    error::{Error, ErrorKind},
    executor::{DeviceAttributes, HostCode, HostLoader, LaunchConfig, LoadedKernel, Module, Poll, Stream},
    launch::{self, KernelLimits},
    occupancy::USUAL_BLOCK,
    print, profiler_ranges,
    sanitize::memory,
};

/// The entry of a kernel; see `weft_artifact`.
pub(super) type Entry = unsafe extern "C" fn(*mut HostContext);

/// A launch of up to this many threads with stacks runs on one system thread: waking others takes longer.
const MOST_ALONE: u64 = 4096;

/// Calls that use at most this many bytes of stack are made without checking the remaining stack.
const LITTLE: usize = 16 << 10;

/// The executor's state that launches use.
#[derive(Debug)]
pub(super) struct Shared {
    pub(super) attributes: DeviceAttributes,
    /// A fault that is reported at the next wait.
    pub(super) pending: Pending,
    pub(super) pool: Pool,
}

/// A loaded object.
#[derive(Debug)]
pub(super) struct CpuModule {
    shared: Arc<Shared>,
    code: Arc<dyn HostCode>,
}

impl CpuModule {
    /// Loads an object with the loader.
    pub(super) fn load(shared: &Arc<Shared>, loader: &dyn HostLoader, artifact: &Artifact) -> Result<Self, Error> {
        if artifact.format != CodeFormat::HostObject {
            return Err(Error::new(
                ErrorKind::Value,
                format!("code for {} cannot be loaded on the CPU", artifact.target),
            ));
        }
        let failed =
            |message| Error::new(ErrorKind::Internal, format!("the compiled code cannot be loaded: {message}"));
        Ok(Self { shared: Arc::clone(shared), code: loader.load(&artifact.code).map_err(failed)? })
    }
}

impl Module for CpuModule {
    fn handle(&self) -> u64 {
        0
    }

    fn library(&self) -> Option<u64> {
        None
    }

    fn global(&self, name: &str) -> Result<(u64, u64), Error> {
        Err(Error::new(
            ErrorKind::Value,
            format!("there is no variable {name}: code for the CPU has no module variables"),
        ))
    }

    fn kernel(&self, kernel: &Kernel) -> Result<Arc<dyn LoadedKernel>, Error> {
        let broken = |what: &str| {
            Error::new(ErrorKind::Internal, format!("kernel `{}` cannot be launched on the CPU: {what}", kernel.name))
        };
        let address = self.code.symbol(&kernel.symbol).filter(|address| *address != 0);
        let address = address.ok_or_else(|| broken(&format!("its symbol {} is not in the code", kernel.symbol)))?;
        let layout = kernel.host.ok_or_else(|| broken("its layout is missing"))?;
        if layout.dynamic_offset % 64 != 0 {
            return Err(broken("its dynamic shared memory is not aligned"));
        }
        if layout.x_axis > 2 {
            return Err(broken("it has no such axis"));
        }
        let most_threads = self.shared.attributes.max_threads_per_block;
        // SAFETY: the address is not zero, and the artifact says that it is an entry.
        let entry = unsafe { std::mem::transmute::<usize, Entry>(address) };
        Ok(Arc::new(CpuKernel {
            entry,
            stack_bytes: layout.stack_bytes.map(|bytes| usize::try_from(bytes).unwrap_or(usize::MAX)),
            fixed_scratch: usize::try_from(layout.dynamic_offset).map_err(|_| broken("it needs too much memory"))?,
            limits: KernelLimits {
                name: kernel.name.clone(),
                shared_bytes: u32::try_from(kernel.shared_bytes).unwrap_or(u32::MAX),
                max_threads_per_block: kernel.max_threads.map_or(most_threads, |bound| bound.min(most_threads)),
                registers: 0,
                factors: kernel.coarsening.factors,
                cells: kernel.n_cells(),
            },
            local_bytes: u32::try_from(kernel.local_bytes).unwrap_or(u32::MAX),
            const_bytes: u32::try_from(kernel.const_bytes).unwrap_or(u32::MAX),
            call_bytes: usize::try_from(layout.call_bytes).unwrap_or(usize::MAX),
            below_bytes: usize::try_from(layout.below_bytes).unwrap_or(usize::MAX),
            x_axis: usize::from(layout.x_axis),
            may_split_blocks: layout.may_split_blocks && kernel.sanitize.is_none(),
            faults: kernel.faults.clone(),
            sanitized: kernel.sanitize.as_ref().map(|sites| Box::new((Arc::clone(sites), kernel.clone()))),
            cost: Cost::default(),
            in_parts: AtomicBool::new(true),
            shared: Arc::clone(&self.shared),
            _code: Arc::clone(&self.code),
        }))
    }
}

/// A kernel.
#[derive(Debug)]
struct CpuKernel {
    entry: Entry,
    /// Bytes of a thread's stack, if each has one.
    stack_bytes: Option<usize>,
    /// Scratch before the dynamic shared memory, in bytes.
    fixed_scratch: usize,
    limits: KernelLimits,
    local_bytes: u32,
    const_bytes: u32,
    /// The stack bytes that a call of the entry uses.
    call_bytes: usize,
    /// The stack bytes that recursive functions use below the lowest address; 0 if there is none.
    below_bytes: usize,
    /// The axis that is exchanged with `x`.
    x_axis: usize,
    /// A block may run as several along `x`.
    may_split_blocks: bool,
    /// The faults that it reports.
    faults: Option<Arc<Faults>>,
    /// The sites of sanitized code, and its callbacks.
    sanitized: Option<Box<(Arc<Sites>, Kernel)>>,
    cost: Cost,
    /// Sanitized code may run in parts: no launch has shown that this is useless.
    in_parts: AtomicBool,
    shared: Arc<Shared>,
    /// Keeps the code loaded.
    _code: Arc<dyn HostCode>,
}

impl LoadedKernel for CpuKernel {
    fn registers(&self) -> u32 {
        0
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

    fn last_launch(&self) -> Option<(u32, u32)> {
        None
    }

    fn active_blocks(&self, block_threads: u32, shared_bytes: u32) -> Result<u32, Error> {
        let most = self.shared.attributes.max_shared_memory_per_block_optin;
        let fits = self.limits.shared_bytes.saturating_add(shared_bytes) <= most;
        Ok(u32::from(fits && (1..=self.limits.max_threads_per_block).contains(&block_threads)))
    }

    fn good_block(&self, _shared_bytes: u32) -> Result<u32, Error> {
        Ok(self.limits.max_threads_per_block.clamp(1, USUAL_BLOCK))
    }

    /// The number of live threads is limited by memory: the used parts of their stacks count.
    fn most_blocks_at_once(&self, block_threads: u32, shared_bytes: u32) -> Result<u64, Error> {
        let stack_bytes = self.stack_bytes.map_or(0, |bytes| bytes as u64);
        let scratch_bytes = (self.fixed_scratch as u64).saturating_add(shared_bytes as u64);
        let most: u64 = self.shared.attributes.max_grid_dim.iter().map(|&extent| extent as u64).max().unwrap_or(1);
        Ok(blocks_in_memory(block_threads, stack_bytes, scratch_bytes).clamp(1, most))
    }

    fn prefer_shared(&self, _percent: i8) -> Result<(), Error> {
        Ok(())
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn check(&self, config: &LaunchConfig, n_cells: usize) -> Result<(), Error> {
        launch::check(config, n_cells, &self.shared.attributes, &self.limits)
    }

    /// Runs the whole launch before it returns.
    fn launch_polled(
        &self,
        config: &LaunchConfig,
        stream: Option<&dyn Stream>,
        cells: &mut [u64],
        poll: Option<Poll<'_>>,
    ) -> Result<(), Error> {
        self.check(config, cells.len())?;
        check_stream(stream)?;
        let _range = profiler_ranges::launch(&self.limits.name);
        let LaunchConfig { mut grid, mut block, shared_bytes, mut cluster } = self.limits.on_device(config);
        for extents in [&mut grid, &mut block, &mut cluster] {
            extents.swap(0, self.x_axis);
        }
        // Code that does not give threads stacks has no operations of clusters.
        if self.stack_bytes.is_none() {
            cluster = LaunchConfig::ALONE;
        }
        // Three extents that were checked against the device's limits: at most 2^63.
        let n_blocks = |grid: [u32; 3]| grid.into_iter().map(u64::from).product::<u64>();
        let parts = if self.may_split_blocks {
            split::parts_of_block(n_blocks(grid), block[0], self.shared.pool.n_threads())
        } else {
            1
        };
        // No overflow: a launch that is split has few blocks.
        (grid[0], block[0]) = (grid[0] * parts, block[0] / parts);
        let n_blocks = n_blocks(grid);
        let ([grid_x, grid_y, grid_z], [block_x, block_y, block_z]) = (grid, block);
        let record = self.faults.as_ref().map(|_| Box::new(Record::new()));
        let capability = HostConfig::capability_word(self.shared.attributes.compute_capability);
        let config = [grid_x, grid_y, grid_z, block_x, block_y, block_z, shared_bytes, capability];
        let start = Start { config, cluster, n_blocks, is_split: parts > 1, cells, record: record.as_deref() };
        if let Some((sites, kernel)) = self.sanitized.as_deref() {
            return self.launch_checked(sites, kernel, &start, poll);
        }
        memory::written_by_unchecked(cells);
        let launch = self.begin(&start, Checks::Off);
        let n_threads = n_blocks.saturating_mul(block_x as u64 * block_y as u64 * block_z as u64);
        let pool = &self.shared.pool;
        let n_clusters = n_blocks / cluster.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let ran = match self.stack_bytes {
            Some(_) if n_threads <= MOST_ALONE => {
                pool.run(&Alone { launch: &launch, n_clusters }, 1, &Cost::default(), poll)
            }
            // Blocks may wait for later ones: a thread may not stop after some, whatever the last launch has cost.
            Some(_) => pool.run(&launch, n_clusters, &Cost::default(), poll),
            None => pool.run(&launch, n_blocks, &self.cost, poll),
        };
        self.conclude(&launch, &start, &ran)?;
        self.named(ran)
    }
}

/// The initial state of a launch.
struct Start<'a> {
    config: [u32; 8],
    cluster: [u32; 3],
    n_blocks: u64,
    /// Its blocks are parts of the program's.
    is_split: bool,
    cells: &'a [u64],
    record: Option<&'a Record>,
}

impl CpuKernel {
    fn begin<'a>(&'a self, start: &Start<'a>, checks: Checks<'a>) -> Launch<'a> {
        Launch {
            checks,
            dynamic: self.fixed_scratch,
            kernel: &self.limits.name,
            entry: self.entry,
            record: start.record,
            slots: start.cells,
            config: start.config,
            cluster: start.cluster,
            n_blocks: start.n_blocks,
            scratch_bytes: self.fixed_scratch.saturating_add(start.config[6] as usize),
            stack_bytes: self.stack_bytes,
            together: LaunchState::of(start.n_blocks),
            call_bytes: self.call_bytes,
            below_bytes: self.below_bytes,
        }
    }

    /// The result of a launch's threads.
    fn conclude(&self, launch: &Launch<'_>, start: &Start<'_>, ran: &Result<(), Error>) -> Result<(), Error> {
        print::flush();
        if let Some(culprit) = launch.together.invalid() {
            // One thread of a coarsened kernel does the work of several, exchanged axes have other linear numbers, and so do
            // parts of blocks: these are none that the program knows.
            let is_plain = self.limits.factors == Factors::NONE && self.x_axis == 0 && !start.is_split;
            let config = is_plain.then_some(&launch.config);
            let message = culprit.message(&self.limits.name, config);
            return Err(Error::new(ErrorKind::Launch, message));
        }
        if launch.together.is_deep() {
            let name = &self.limits.name;
            let of = match self.stack_bytes {
                Some(bytes) => format!(", which has {} KiB", bytes >> 10),
                None => String::new(),
            };
            let message = format!("the calls of `{name}` go deeper than the stack of a thread{of}");
            return Err(Error::new(ErrorKind::Launch, message));
        }
        if launch.together.is_full() {
            let name = &self.limits.name;
            return Err(Error::new(
                ErrorKind::Memory,
                format!(
                    "the blocks of `{name}` wait for each other, but there is not enough memory to run all of them at \
                     the same time"
                ),
            ));
        }
        if let (Ok(()), Some(faults), Some(record)) = (ran, &self.faults, start.record)
            && let Some(raised) = record.raised(faults)
        {
            let at_launch = raised.at_launch;
            let error = Error::raised(raised);
            if at_launch {
                return Err(error);
            }
            self.shared.pending.keep(error);
        }
        Ok(())
    }

    /// An error of the pool, with the kernel's name where that is reported.
    fn named(&self, ran: Result<(), Error>) -> Result<(), Error> {
        ran.map_err(|mut error| {
            if error.kind == ErrorKind::Interrupted {
                error.message = format!("the launch of `{}` was interrupted", self.limits.name);
            }
            error
        })
    }
}

/// A launch on one thread of the system.
struct Alone<'a> {
    launch: &'a Launch<'a>,
    n_clusters: u64,
}

impl Work for Alone<'_> {
    fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, watch: *const HostWatch) -> bool {
        let mut all = next().map(|_| 0..self.n_clusters);
        self.launch.run(&mut || all.take(), watch)
    }
}

/// One launch, shared by the threads that run it.
struct Launch<'a> {
    /// The sanitizer's callbacks.
    checks: Checks<'a>,
    /// Where dynamic shared memory begins.
    dynamic: usize,
    /// Its name.
    kernel: &'a str,
    entry: Entry,
    /// The record of the first fault, if the kernel reports faults.
    record: Option<&'a Record>,
    slots: &'a [u64],
    config: [u32; 8],
    /// The blocks of a cluster along each axis.
    cluster: [u32; 3],
    n_blocks: u64,
    scratch_bytes: usize,
    stack_bytes: Option<usize>,
    together: LaunchState,
    call_bytes: usize,
    below_bytes: usize,
}

/// A context as the code of blocks sees it: it comes first, so that a call back finds the rest.
#[repr(C)]
struct Running<'a> {
    telling: SanitizedContext,
    together: &'a LaunchState,
}

extern "C" fn deep(context: *mut HostContext) {
    // SAFETY: the running code got the first field of a `Running`, which lives as long as it runs.
    let running = unsafe { &*context.cast::<Running<'_>>() };
    // SAFETY: the configuration is that of this launch.
    let watch = unsafe { (*running.telling.context.config).watch };
    running.together.give_up(watch);
}

impl Launch<'_> {
    fn fibers(&self) -> Option<Fibers<'_>> {
        let Self {
            checks,
            dynamic,
            kernel,
            entry,
            record,
            slots,
            config,
            cluster,
            n_blocks: _,
            scratch_bytes,
            stack_bytes,
            together,
            call_bytes: _,
            below_bytes,
        } = self;
        let stack_bytes = (*stack_bytes)?;
        Some(Fibers {
            checks: checks.alone(),
            dynamic: *dynamic,
            kernel,
            entry: *entry,
            record: *record,
            slots,
            config,
            cluster: *cluster,
            scratch_bytes: *scratch_bytes,
            stack_bytes,
            below_bytes: (*below_bytes > 0).then_some(*below_bytes),
            together,
        })
    }
}

impl Work for Launch<'_> {
    /// A block that others wait for must not be in the share of a thread that has not reached it yet.
    fn at_once(&self) -> u64 {
        if self.stack_bytes.is_some() { 1 } else { u64::MAX }
    }

    fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, watch: *const HostWatch) -> bool {
        if let Some(fibers) = self.fibers() {
            return fibers.run(next, watch);
        }
        let config = HostConfig { words: self.config, watch };
        let looks = self.below_bytes > 0;
        let lowest =
            if looks || self.call_bytes > LITTLE { lowest().saturating_add(self.below_bytes as u64) } else { 0 };
        let has_room = lowest == 0 || depth::here().saturating_sub(self.call_bytes as u64) >= lowest;
        let seat = invalid_access::seat();
        let ran = with_scratch(self.scratch_bytes, |scratch| {
            while let Some(Range { start, end }) = next() {
                if !has_room {
                    self.together.give_up(watch);
                    break;
                }
                let (slots, config) = (self.slots.as_ptr(), &raw const config);
                let context = HostContext::of_blocks(slots, config, (start, end), scratch);
                let record = Record::pointer(self.record);
                let (fault, called) = (fault::fault, fault::called);
                let (print, multiply, copy) = (compiled::print, matrix::multiply, async_copies::copy);
                let context = HostContext { lowest, deep, print, fault, called, record, multiply, copy, ..context };
                async_copies::discard(scratch);
                if let Some(goes_on) = self.run_checked(context, (start, end), seat.as_deref()) {
                    if goes_on {
                        continue;
                    }
                    break;
                }
                let telling = SanitizedContext { context, watched: Watched::none() };
                let mut running = Running { telling, together: &self.together };
                // SAFETY: the entry has this signature, there is a slot for each that it reads, the blocks are the
                // grid's, and the scratch is this thread's and as large as the layout says. The caller of the launch
                // holds the memory that the slots point to.
                let called = unsafe {
                    invalid_access::call(
                        seat.as_deref(),
                        self.entry,
                        (&raw mut running).cast::<HostContext>(),
                        self.kernel,
                    )
                };
                if let Err(invalid) = called {
                    self.together.found_invalid(watch, Culprit { invalid, blocks: (start, end), thread: None });
                    break;
                }
                async_copies::end_block(scratch);
            }
        });
        ran.is_some()
    }
}
