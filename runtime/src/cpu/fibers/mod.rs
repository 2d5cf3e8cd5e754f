//! Runs the threads of a block as fibers: each has a stack of its own, and one system thread resumes them in order.
//!
//! A fiber yields where the code calls back: at a barrier, and in loops after a number of iterations, so that a thread
//! that polls for another thread's write lets it proceed. Threads are resumed in order, repeatedly; those at a barrier,
//! when all its participants have arrived. If all threads wait, further blocks begin. `docs/design/cpu-fibers.md` has
//! the design.
#![expect(
    unsafe_code,
    reason = "calls code that was compiled at run time, on stacks that it may leave at any call back"
)]

mod clusters;
mod worker;

use std::{cell::Cell, ops::Range, ptr, rc::Rc, sync::PoisonError, time::Duration};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::Stack};
use weft_artifact::{HostChecks, HostConfig, HostContext, HostWatch};

use super::{
    async_copies,
    block_memory::{BlockMemories, BlockMemory, MAX_CACHED},
    checks::{self, CHECKS, Checked, Patience, SanitizedContext, Watched},
    fault::{self, Record},
    interrupt::{is_raised, leaves},
    invalid_access::{self, Culprit, InvalidAccess, ThreadSlot},
    launch_state::LaunchState,
    machine, matrix,
    module::Entry,
    print,
    stacks::BlockStack,
    thread_states::{ThreadState, WARP, go_on, release, threads_in},
};
use crate::{
    progress::Progress,
    sanitize::{FIRST_ITERATIONS, Launch, LiveThread},
};
use worker::Worker;

/// Loop iterations between two yields of a thread that reaches no barrier.
const ITERATIONS: u64 = 64;
/// Bytes at the end of a stack, including its guard, for signal handlers and callbacks.
const RESERVE: usize = 96 << 10;
/// The estimated use of a thread's stack in bytes, besides local arrays, and of its context.
const USED_BYTES: u64 = 9 << 10;
/// A loop that is not known to wait, and in which no thread has reached a barrier or its end for this long, may wait.
const SLOW: Duration = Duration::from_millis(50);
/// The most threads that are live for these.
const MOST_SLOW: usize = 16 << 10;
/// A launch fails if all threads have waited for this long, and there is no memory for more of them.
const PATIENCE: Duration = Duration::from_secs(10);

/// Memory that a block takes while it is alive.
fn block_bytes(n_threads: u64, stack_bytes: u64, scratch_bytes: u64) -> u64 {
    let each = USED_BYTES + stack_bytes.saturating_sub(64 << 10);
    each.saturating_mul(n_threads).saturating_add(scratch_bytes)
}

/// How many blocks may be alive at a time, as far as there is memory now.
pub(super) fn blocks_in_memory(n_threads: u32, stack_bytes: u64, scratch_bytes: u64) -> u64 {
    machine::memory_info().0 / 2 / block_bytes(n_threads as u64, stack_bytes, scratch_bytes).max(1)
}

/// Why a thread stops.
enum Stop {
    /// It yields to others; in a loop that waits for them, or in one that may end by itself.
    Pause { waits: bool },
    /// At the block's barrier.
    Block,
    /// At a barrier of the threads of its warp in a mask.
    Warp(u32),
    /// At a site where it queries the active lanes of its warp.
    Site(u32),
    /// At a phase of a barrier in shared memory.
    Phase,
    /// At a barrier of the cluster.
    Cluster,
    /// At a barrier of the grid.
    Grid,
    /// At the end of its stack.
    Deep,
    /// It has left its code for this.
    InvalidAccess(InvalidAccess),
}

/// A thread as its code sees it. The context comes first, so that a call back finds the rest.
#[repr(C)]
struct Thread {
    telling: SanitizedContext,
    yielder: *const Yielder<(), Stop>,
    /// The system thread's slot, or null.
    seat: *const ThreadSlot,
}

extern "C" fn wait(context: *mut HostContext, which: u32, for_whom: u32) {
    let stop = match for_whom {
        HostContext::OF_BLOCK => Stop::Block,
        HostContext::AT_SITE => Stop::Site(which),
        HostContext::AT_PHASE => Stop::Phase,
        HostContext::OF_CLUSTER => Stop::Cluster,
        HostContext::OF_GRID => Stop::Grid,
        _ => Stop::Warp(which),
    };
    suspend(context, stop);
}

extern "C" fn pause(context: *mut HostContext, waits: u32) {
    // SAFETY: the running code received this context, which no other thread uses concurrently.
    unsafe { (*context).iterations = ITERATIONS };
    suspend(context, Stop::Pause { waits: waits != 0 });
}

extern "C" fn deep(context: *mut HostContext) {
    suspend(context, Stop::Deep);
}

fn suspend(context: *mut HostContext, stop: Stop) {
    // SAFETY: the context of a fiber is the first field of its `Thread`, which outlives the fiber.
    let yielder = unsafe { (*context.cast::<Thread>()).yielder };
    // SAFETY: as above.
    let seat = unsafe { (*context.cast::<Thread>()).seat };
    // SAFETY: it is null, or lives as long as the launch runs on this thread of the system.
    let seat = unsafe { seat.as_ref() };
    let left = seat.map(ThreadSlot::leave);
    // SAFETY: the fiber stored its yielder before it called the code that calls back.
    unsafe { &*yielder }.suspend(stop);
    if let (Some(seat), Some(frame)) = (seat, left) {
        seat.come_back(frame);
    }
}

type Fiber = Coroutine<(), Stop, (), BlockStack>;

/// The threads of a block, for the fibers that run them: one after the other on one fiber, as long as none waits.
struct Queue {
    /// The first of them.
    first: *mut Thread,
    n_threads: usize,
    /// The next that has not begun.
    next: Cell<usize>,
    /// The one that runs, or ran last.
    current: Cell<usize>,
}

/// The runner of a fiber's threads.
#[derive(Clone, Copy)]
struct Runner {
    queue: *const Queue,
    entry: Entry,
    kernel: *const str,
    seat: *const ThreadSlot,
    watch: *const HostWatch,
    /// The stack that recursive functions use below the lowest address, if there are some.
    below_bytes: Option<usize>,
}

impl Runner {
    /// A fiber that runs the next thread, and those after it, until one waits.
    fn fiber(self, stack: BlockStack) -> Fiber {
        let lowest = self.below_bytes.map_or(0, |below| (stack.limit().get() + RESERVE + below) as u64);
        Coroutine::with_stack(stack, move |yielder: &Yielder<(), Stop>, ()| {
            // SAFETY: the queue outlives the fibers.
            let queue = unsafe { &*self.queue };
            // SAFETY: it is null, or lives as long as the launch runs on this thread of the system.
            let seat = unsafe { self.seat.as_ref() };
            // SAFETY: the kernel outlives the launch, and the launch this fiber.
            let kernel = unsafe { &*self.kernel };
            loop {
                let index = queue.next.get();
                if index >= queue.n_threads {
                    break;
                }
                queue.next.set(index + 1);
                queue.current.set(index);
                let thread = queue.first.wrapping_add(index);
                // SAFETY: the threads outlive the fibers, and each is used by its own alone.
                unsafe { (*thread).yielder = ptr::from_ref(yielder) };
                // SAFETY: as above.
                unsafe { (*thread).telling.context.lowest = lowest };
                // SAFETY: the entry has this signature; the context is as the artifact says; the caller of the launch
                // holds the memory that the slots point to.
                let called = unsafe { invalid_access::call(seat, self.entry, thread.cast::<HostContext>(), kernel) };
                if let Err(invalid) = called {
                    // It is not resumed.
                    yielder.suspend(Stop::InvalidAccess(invalid));
                }
                // SAFETY: the watch is this launch's.
                if unsafe { is_raised(self.watch) } {
                    break;
                }
            }
        })
    }
}

/// A block that has begun and not ended.
struct Block {
    /// Its linear number.
    number: u64,
    /// The number of its cluster.
    cluster: u64,
    /// The memory of the blocks of its cluster, by their ranks.
    _cluster_memory: Rc<[*mut u8]>,
    /// Its slot in the launch's sanitizer.
    slot: usize,
    /// The stack of each thread that waits.
    fibers: Vec<Option<Fiber>>,
    runner: Runner,
    queue: Box<Queue>,
    /// The targets of the fibers' pointers.
    _threads: Vec<Thread>,
    states: Vec<ThreadState>,
    n_ready: usize,
    /// The phase of the grid's barrier at which all its live threads wait.
    at_grid: Option<u64>,
    /// Its memory has been overwritten, because it has ended.
    is_overwritten: bool,
    room: BlockMemory,
}

/// The result of resuming all ready threads of a block.
#[derive(Clone, Copy, Default)]
struct ResumeResult {
    /// Some came to a barrier or to their end.
    moved: bool,
    /// Some are in a loop that is not known to wait.
    busy: bool,
    /// Some wait for a phase of a barrier in shared memory.
    waits: bool,
    /// The number of changes that they have made to barriers in shared memory.
    changes: u64,
}

impl ResumeResult {
    fn and(self, other: Self) -> Self {
        Self {
            moved: self.moved || other.moved,
            busy: self.busy || other.busy,
            waits: self.waits || other.waits,
            changes: self.changes + other.changes,
        }
    }
}

/// A launch whose threads have stacks.
pub(super) struct Fibers<'a> {
    /// The kernel's name.
    pub(super) kernel: &'a str,
    pub(super) entry: Entry,
    pub(super) record: Option<&'a Record>,
    pub(super) slots: &'a [u64],
    pub(super) config: &'a [u32; 8],
    /// The blocks of a cluster along each axis.
    pub(super) cluster: [u32; 3],
    /// Of a block.
    pub(super) scratch_bytes: usize,
    /// Of a thread.
    pub(super) stack_bytes: usize,
    /// The part of that which recursive functions use below the lowest address, if there are some.
    pub(super) below_bytes: Option<usize>,
    pub(super) together: &'a LaunchState,
    /// The sanitizer's callbacks.
    pub(super) checks: Option<&'a Checked>,
    /// Where dynamic shared memory begins.
    pub(super) dynamic: usize,
}

impl Fibers<'_> {
    fn n_threads(&self) -> usize {
        self.config[3..6].iter().map(|&extent| extent as usize).product()
    }

    fn n_blocks(&self) -> u64 {
        self.config[..3].iter().map(|&extent| u64::from(extent)).product()
    }

    /// Runs the clusters of blocks that `next` gives: one after the other, and more at a time where all threads wait.
    /// `false` if there is not the memory for one; none was then taken.
    pub(super) fn run(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, watch: *const HostWatch) -> bool {
        let config = HostConfig { words: *self.config, watch };
        let mut checks = self.checks.map(|checks| checks.lock().unwrap_or_else(PoisonError::into_inner));
        let checks: *mut Launch = checks.as_deref_mut().map_or(ptr::null_mut(), ptr::from_mut);
        let mut patience = Patience::default();
        let mut progress = if checks.is_null() {
            None
        } else {
            Progress::of_blocks(|| format!("sanitizing {}", self.kernel), self.n_blocks())
        };
        let mut n_done = 0;
        let seat = invalid_access::seat();
        // A signal handler may launch inside of another launch.
        let outer = seat.as_deref().map(ThreadSlot::leave);
        let mut rooms = BlockMemories::of((self.n_threads(), self.stack_bytes, self.scratch_bytes));
        let mut taken = 0..0;
        let mut next = || {
            if taken.is_empty() {
                taken = next()?;
            }
            taken.next()
        };
        let mut live: Vec<Block> = Vec::new();
        let mut results: Vec<ResumeResult> = Vec::new();
        let mut worker = Worker::default();
        let mut had_room = true;
        let mut backwards = true;
        'launch: while !self.together.is_full() {
            if live.is_empty() {
                let Some(room) = self.take(&mut rooms) else {
                    had_room = false;
                    break;
                };
                let Some(cluster) = next() else {
                    rooms.free.extend(room);
                    break;
                };
                live.extend(self.begin_cluster(cluster, room, &config, seat.as_deref(), checks));
            }
            results.clear();
            results.resize(live.len(), ResumeResult::default());
            // A block may wait for the one after it, or before it.
            backwards = !backwards && !checks.is_null();
            let n_live = live.len();
            for at in 0..n_live {
                let at = if backwards { n_live - 1 - at } else { at };
                let Some(resumed) = live[at].resume_once(watch, self.together, checks) else { break 'launch };
                results[at] = resumed;
            }
            // SAFETY: it is null, or this launch's, and no fiber runs now.
            let mut all = clusters::settle(&mut live, &results, self.scratch_bytes, unsafe { checks.as_mut() });
            for index in clusters::ended(&live).into_iter().rev() {
                // SAFETY: it is null, or this launch's, and no fiber runs now.
                let checks = unsafe { checks.as_mut() };
                let generation = self.together.grid_generation();
                self.together.block_ended();
                let block = live.remove(index);
                n_done += 1;
                if let Some(checks) = checks {
                    checks.end(block.slot);
                    if generation != self.together.grid_generation() {
                        checks.grid_met();
                    }
                }
                async_copies::end_block(block.room.scratch.start());
                rooms.free.push(block.end());
            }
            if let Some(progress) = &mut progress {
                progress.done_blocks(n_done);
            }
            // SAFETY: as above.
            if let Some(checks) = unsafe { checks.as_mut() } {
                patience.look(checks);
                all.busy &= !patience.waits();
                if patience.is_over() && worker.all_begun && !live.is_empty() {
                    for block in &live {
                        checks.stuck(block.slot, &threads_in(&block.states, |state| state != ThreadState::Done));
                    }
                    break 'launch;
                }
            }
            let more = worker.look(self.together, all, live.len(), live.len() * self.n_threads());
            let mut begun = 0;
            while begun < more && self.has_memory(live.len(), more - begun) {
                let Some(room) = self.take(&mut rooms) else { break };
                let Some(cluster) = next() else {
                    rooms.free.extend(room);
                    worker.all_begun = true;
                    break;
                };
                live.extend(self.begin_cluster(cluster, room, &config, seat.as_deref(), checks));
                begun += self.cluster_size();
            }
            worker.began(self.together, begun, more);
        }
        for block in live {
            rooms.free.push(block.end());
        }
        rooms.keep();
        if let (Some(seat), Some(frame)) = (seat, outer) {
            seat.come_back(frame);
        }
        had_room
    }

    /// Whether there is memory for the threads of further blocks; pages are committed on first use.
    fn has_memory(&self, n_live: usize, n_blocks: usize) -> bool {
        // There is always memory for a few.
        if (n_live + n_blocks) * self.n_threads() <= MAX_CACHED {
            return true;
        }
        let wanted = block_bytes(self.n_threads() as u64, self.stack_bytes as u64, self.scratch_bytes as u64);
        wanted.saturating_mul(n_blocks as u64) <= machine::memory_info().0 / 2
    }

    /// Makes the threads of a block, which has a rank in a cluster.
    fn begin(
        &self,
        (block, cluster, rank): (u64, u64, u32),
        cluster_memory: Rc<[*mut u8]>,
        room: BlockMemory,
        config: &HostConfig,
        seat: Option<&ThreadSlot>,
        checks: *mut Launch,
    ) -> Block {
        let n_threads = self.n_threads();
        // SAFETY: it is null, or this launch's, and no fiber runs now.
        let slot = unsafe { checks.as_mut() }.map_or(0, |checks| {
            let scratch = room.scratch.start().addr() as u64;
            let slot = checks.begin(block, scratch, self.scratch_bytes as u64, self.dynamic as u64);
            if cluster_memory.len() > 1 {
                checks.joins_cluster(slot, cluster);
            }
            slot
        });
        async_copies::discard(room.scratch.start());
        let context = |thread: usize| HostContext {
            slots: self.slots.as_ptr(),
            config: ptr::from_ref(config),
            first_block: block,
            last_block: block + 1,
            scratch: room.scratch.start(),
            thread: thread as u64,
            iterations: if checks.is_null() { ITERATIONS } else { FIRST_ITERATIONS },
            wait,
            pause,
            lowest: 0,
            deep,
            print: print::print,
            lanes: 0,
            fault: fault::fault,
            called: fault::called,
            record: Record::pointer(self.record),
            checks: if checks.is_null() { HostChecks::NONE } else { CHECKS },
            unwritten: 0,
            // SAFETY: it is null, or this launch's, and no fiber runs now.
            seen: unsafe { checks.as_ref() }.map_or(ptr::null(), |checks| checks.seen(LiveThread { slot, thread })),
            multiply: matrix::multiply,
            copy: async_copies::copy,
            cluster_rank: rank,
            cluster_size: cluster_memory.len() as u32,
            cluster: cluster_memory.as_ptr(),
        };
        let seat = seat.map_or(ptr::null(), ptr::from_ref);
        let thread = |number: usize| Thread {
            telling: SanitizedContext {
                context: context(number),
                watched: if checks.is_null() { Watched::none() } else { Watched::new(checks, slot) },
            },
            yielder: ptr::null(),
            seat,
        };
        let mut threads: Vec<Thread> = (0..n_threads).map(thread).collect();
        let first = threads.as_mut_ptr();
        let queue = Box::new(Queue { first, n_threads, next: Cell::new(0), current: Cell::new(0) });
        let runner = Runner {
            queue: &raw const *queue,
            entry: self.entry,
            kernel: ptr::from_ref(self.kernel),
            seat,
            watch: config.watch,
            below_bytes: self.below_bytes,
        };
        Block {
            number: block,
            cluster,
            _cluster_memory: cluster_memory,
            slot,
            fibers: (0..n_threads).map(|_| None).collect(),
            runner,
            queue,
            _threads: threads,
            states: vec![ThreadState::Ready; n_threads],
            n_ready: n_threads,
            at_grid: None,
            is_overwritten: false,
            room,
        }
    }
}

impl Block {
    /// Resumes each ready thread once. `None` if the launch was stopped.
    fn resume_once(
        &mut self,
        watch: *const HostWatch,
        together: &LaunchState,
        checks: *mut Launch,
    ) -> Option<ResumeResult> {
        let mut resumed = ResumeResult::default();
        let mut polled = false;
        let changes = async_copies::changes();
        if self.at_grid.is_some_and(|generation| together.grid_generation() != generation) {
            self.at_grid = None;
            go_on(&mut self.states, ThreadState::AtGrid);
            async_copies::synchronized(self.room.scratch.start());
            self.count_ready();
        }
        if self.n_ready == 0 {
            return Some(resumed);
        }
        let mut index = 0;
        while index < self.states.len() {
            if self.states[index] != ThreadState::Ready {
                index += 1;
                continue;
            }
            let (thread, stop) = self.resume(index)?;
            // The threads before `thread` ran to their end: none of them had begun, because all threads after one that
            // begins have not begun.
            self.states[index..thread].fill(ThreadState::Done);
            resumed.moved |= thread > index;
            index = thread + 1;
            let state = &mut self.states[thread];
            match stop {
                Some(Stop::Pause { waits }) => {
                    let pause = checks::paused(checks, self.slot, thread);
                    resumed.busy |= !(waits || pause.is_some_and(|pause| pause.waits));
                    if let Some(pause) = pause {
                        // SAFETY: the block's vector has a thread for each state, and this one's fiber does not run.
                        unsafe {
                            (*self.queue.first.wrapping_add(thread)).telling.context.iterations = pause.iterations;
                        };
                    }
                }
                Some(Stop::Block) => *state = ThreadState::AtBlock,
                Some(Stop::Warp(mask)) => *state = ThreadState::AtWarp(mask),
                Some(Stop::Site(site)) => *state = ThreadState::AtSite(site),
                Some(Stop::Phase) => *state = ThreadState::AtPhase,
                Some(Stop::Cluster) => *state = ThreadState::AtCluster,
                Some(Stop::Grid) => *state = ThreadState::AtGrid,
                Some(Stop::Deep) => {
                    together.give_up(watch);
                    return None;
                }
                Some(Stop::InvalidAccess(invalid)) => {
                    let blocks = (self.number, self.number + 1);
                    together.found_invalid(watch, Culprit { invalid, blocks, thread: Some(thread as u64) });
                    return None;
                }
                None => *state = ThreadState::Done,
            }
            match state {
                ThreadState::Ready => {}
                ThreadState::AtPhase => resumed.waits = true,
                ThreadState::AtBlock
                | ThreadState::AtWarp(_)
                | ThreadState::AtCluster
                | ThreadState::AtGrid
                | ThreadState::Done => resumed.moved = true,
                ThreadState::AtSite(_) => {
                    resumed.busy = true;
                    polled = true;
                }
            }
            // SAFETY: the watch is this launch's, and no fiber runs now.
            if unsafe { leaves(watch) } {
                return None;
            }
        }
        resumed.changes = async_copies::changes() - changes;
        if polled {
            self.answer();
        }
        if resumed.moved {
            // SAFETY: it is null, or this launch's, and no fiber runs now.
            let mut checks = unsafe { checks.as_mut() };
            release(&mut self.states, checks.as_deref_mut().map(|checks| (checks, self.slot)));
            let at_grid = self.states.contains(&ThreadState::AtGrid);
            if at_grid && self.states.iter().all(|state| matches!(state, ThreadState::AtGrid | ThreadState::Done)) {
                let generation = together.come_to_grid();
                self.at_grid = Some(generation);
                if let Some(checks) = checks.filter(|_| together.grid_generation() != generation) {
                    checks.grid_met();
                }
            }
            self.count_ready();
        }
        Some(resumed)
    }

    fn count_ready(&mut self) {
        self.n_ready = self.states.iter().filter(|state| **state == ThreadState::Ready).count();
    }

    /// Runs a thread until it stops, and, if it begins and does not stop, those after it: gives the one that has stopped, and
    /// why, or that has ended last. `None` if there is no stack.
    fn resume(&mut self, index: usize) -> Option<(usize, Option<Stop>)> {
        let waiting = self.fibers[index].take();
        self.queue.current.set(index);
        let mut fiber = match waiting {
            Some(fiber) => fiber,
            None => self.runner.fiber(self.room.stacks.pop()?),
        };
        let result = fiber.resume(());
        let current = self.queue.current.get();
        match result {
            CoroutineResult::Yield(stop) => {
                self.fibers[current] = Some(fiber);
                Some((current, Some(stop)))
            }
            CoroutineResult::Return(()) => {
                self.room.stacks.push(fiber.into_stack());
                Some((current, None))
            }
        }
    }

    /// Answers threads that query the active lanes, and resumes them: those of a warp that reached the same site in
    /// this round are converged.
    fn answer(&mut self) {
        for (warp, states) in self.states.chunks_mut(WARP).enumerate() {
            for lane in 0..states.len() {
                let ThreadState::AtSite(site) = states[lane] else { continue };
                let together: Vec<usize> =
                    (lane..states.len()).filter(|&other| states[other] == ThreadState::AtSite(site)).collect();
                let lanes = together.iter().fold(0, |lanes, &lane| lanes | 1 << lane);
                for &other in &together {
                    states[other] = ThreadState::Ready;
                    let thread = self.queue.first.wrapping_add(warp * WARP + other);
                    // SAFETY: the block's vector has a thread for each state, and this one's fiber does not run.
                    unsafe { (*thread).telling.context.lanes = lanes };
                }
            }
        }
    }

    fn is_done(&self) -> bool {
        self.n_ready == 0 && self.states.iter().all(|state| *state == ThreadState::Done)
    }

    /// Ends it, whether its threads have ended or not; frees its memory.
    fn end(mut self) -> BlockMemory {
        for mut fiber in self.fibers.into_iter().flatten() {
            if !fiber.done() {
                // SAFETY: nothing on its stack is to be dropped: compiled code, and a call back that holds nothing.
                unsafe { fiber.force_reset() };
            }
            self.room.stacks.push(fiber.into_stack());
        }
        self.room
    }
}
