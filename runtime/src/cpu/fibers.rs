//! Threads of a block on stacks of their own, one after the other on this thread, each until it waits.
//!
//! A fiber stops where the code calls back: at a barrier, and in loops every so many turns, so that a thread that
//! waits for another one's write lets it go on. Threads are resumed in order, again and again; those at a barrier when
//! all that wait together are there. `docs/design/cpu-fibers.md` has the design.
#![expect(
    unsafe_code,
    reason = "calls code that was compiled at run time, on stacks that it may leave at any call back"
)]

use std::{cell::RefCell, mem, ops::Range, ptr, thread};

use corosensei::{Coroutine, CoroutineResult, Yielder, stack::DefaultStack};
use weft_artifact::{HostConfig, HostContext, HostWatch};

use super::{interrupt::leaves, module::Entry, scratch::with_scratch};

/// Turns of loops between two stops of a thread that meets no barrier.
const TURNS: u64 = 64;
/// Threads of a warp.
const WARP: usize = 32;

/// Why a thread stops.
enum Stop {
    /// To let others go on.
    Pause,
    /// At the block's barrier.
    Block,
    /// At a barrier of the threads of its warp in a mask.
    Warp(u32),
}

/// A thread as its code sees it. The context comes first, so that a call back finds the rest.
#[repr(C)]
struct Thread {
    context: HostContext,
    yielder: *const Yielder<(), Stop>,
}

extern "C" fn wait(context: *mut HostContext, mask: u32, warp: u32) {
    suspend(context, if warp == 0 { Stop::Block } else { Stop::Warp(mask) });
}

extern "C" fn pause(context: *mut HostContext) {
    // SAFETY: the running code got this context, which nobody else uses meanwhile.
    unsafe { (*context).turns = TURNS };
    suspend(context, Stop::Pause);
}

fn suspend(context: *mut HostContext, stop: Stop) {
    // SAFETY: the context of a fiber is the first field of its `Thread`, which outlives the fiber.
    let yielder = unsafe { (*context.cast::<Thread>()).yielder };
    // SAFETY: the fiber stored its yielder before it called the code that calls back.
    unsafe { &*yielder }.suspend(stop);
}

/// Where a thread stands.
#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    Ready,
    AtBlock,
    AtWarp(u32),
    Done,
}

type Fiber = Coroutine<(), Stop, (), DefaultStack>;

thread_local! {
    /// Stacks of one size that wait for the next block.
    static STACKS: RefCell<(usize, Vec<DefaultStack>)> = const { RefCell::new((0, Vec::new())) };
}

/// So many stacks, if there is the memory for them; kept ones first.
fn take_stacks(n_stacks: usize, bytes: usize) -> Option<Vec<DefaultStack>> {
    let kept = STACKS.try_with(|kept| mem::take(&mut *kept.borrow_mut()));
    let mut stacks = kept.ok().filter(|(size, _)| *size == bytes).map(|(_, stacks)| stacks).unwrap_or_default();
    while stacks.len() < n_stacks {
        stacks.push(DefaultStack::new(bytes).ok()?);
    }
    Some(stacks)
}

fn keep_stacks(bytes: usize, stacks: Vec<DefaultStack>) {
    // A thread that ends has no place for them any more.
    let _ends = STACKS.try_with(|kept| *kept.borrow_mut() = (bytes, stacks));
}

/// A launch whose threads have stacks.
pub(super) struct Fibers<'a> {
    pub(super) entry: Entry,
    pub(super) slots: &'a [u64],
    pub(super) config: &'a [u32; 8],
    /// Of a block.
    pub(super) scratch_bytes: usize,
    /// Of a thread.
    pub(super) stack_bytes: usize,
}

impl Fibers<'_> {
    fn n_threads(&self) -> usize {
        self.config[3..6].iter().map(|&extent| extent as usize).product()
    }

    /// Runs the ranges of blocks that `next` gives, block after block. `false` if there is not the memory for it.
    pub(super) fn one_by_one(&self, next: &mut dyn FnMut() -> Option<Range<u64>>, watch: *const HostWatch) -> bool {
        let ran = with_scratch(self.scratch_bytes, |scratch| {
            let Some(mut stacks) = take_stacks(self.n_threads(), self.stack_bytes) else { return false };
            while let Some(range) = next() {
                for block in range {
                    if !self.run(block..block + 1, scratch, 0, &mut stacks, watch) {
                        break;
                    }
                }
            }
            keep_stacks(self.stack_bytes, stacks);
            true
        });
        ran.unwrap_or(false)
    }

    /// Runs all blocks of the launch at a time, so that they may wait for each other in any order.
    pub(super) fn together(&self, n_blocks: usize, watch: *const HostWatch) -> bool {
        let stride = self.scratch_bytes.next_multiple_of(64);
        let ran = with_scratch(stride.saturating_mul(n_blocks), |scratch| {
            let Some(mut stacks) = take_stacks(self.n_threads() * n_blocks, self.stack_bytes) else { return false };
            self.run(0..n_blocks as u64, scratch, stride, &mut stacks, watch);
            keep_stacks(self.stack_bytes, stacks);
            true
        });
        ran.unwrap_or(false)
    }

    /// Runs some blocks to their end; there is a stack for each thread. `false` if the launch was given up.
    fn run(
        &self,
        blocks: Range<u64>,
        scratch: *mut u8,
        stride: usize,
        stacks: &mut Vec<DefaultStack>,
        watch: *const HostWatch,
    ) -> bool {
        let config = HostConfig { words: *self.config, watch };
        let n_threads = self.n_threads();
        let mut threads: Vec<Thread> = Vec::new();
        for (at, block) in blocks.enumerate() {
            threads.extend((0..n_threads).map(|thread| Thread {
                context: HostContext {
                    slots: self.slots.as_ptr(),
                    config: &raw const config,
                    first_block: block,
                    last_block: block + 1,
                    scratch: scratch.wrapping_add(at * stride),
                    thread: thread as u64,
                    turns: TURNS,
                    wait,
                    pause,
                },
                yielder: ptr::null(),
            }));
        }
        let start = threads.as_mut_ptr();
        let entry = self.entry;
        let mut fibers: Vec<Fiber> = Vec::with_capacity(threads.len());
        while fibers.len() < threads.len() {
            let Some(stack) = stacks.pop() else { return false };
            let thread = start.wrapping_add(fibers.len());
            fibers.push(Coroutine::with_stack(stack, move |yielder: &Yielder<(), Stop>, ()| {
                // SAFETY: the threads outlive the fibers, and each is used by its own alone.
                unsafe { (*thread).yielder = ptr::from_ref(yielder) };
                // SAFETY: the entry has this signature; the context is as the artifact says; the caller of the launch
                // holds the memory that the slots point to.
                unsafe { entry(thread.cast::<HostContext>()) };
            }));
        }
        let mut states = vec![State::Ready; fibers.len()];
        'launch: while states.iter().any(|state| *state != State::Done) {
            let mut moved = false;
            for (fiber, state) in fibers.iter_mut().zip(&mut states).filter(|(_, state)| **state == State::Ready) {
                *state = match fiber.resume(()) {
                    CoroutineResult::Yield(Stop::Pause) => State::Ready,
                    CoroutineResult::Yield(Stop::Block) => State::AtBlock,
                    CoroutineResult::Yield(Stop::Warp(mask)) => State::AtWarp(mask),
                    CoroutineResult::Return(()) => State::Done,
                };
                moved |= *state != State::Ready;
                // SAFETY: the watch is this launch's, and no fiber runs now.
                if unsafe { leaves(watch) } {
                    break 'launch;
                }
            }
            moved |= states.chunks_mut(n_threads).fold(false, |moved, block| release(block) | moved);
            if !moved {
                // All wait for what another thread of the system writes.
                thread::yield_now();
            }
        }
        let mut finished = true;
        for mut fiber in fibers {
            if !fiber.done() {
                finished = false;
                // SAFETY: nothing on its stack is to be dropped: compiled code, and a call back that holds nothing.
                unsafe { fiber.force_reset() };
            }
            stacks.push(fiber.into_stack());
        }
        drop(threads);
        finished
    }
}

/// Lets the threads of a block go on that wait together and are all there; `true` if there are some.
fn release(block: &mut [State]) -> bool {
    let mut released = false;
    for warp in block.chunks_mut(WARP) {
        let in_mask = |mask: u32, lane: usize| mask >> lane & 1 == 1;
        let masks: Vec<u32> =
            warp.iter().filter_map(|s| if let State::AtWarp(mask) = s { Some(*mask) } else { None }).collect();
        for mask in masks {
            let here = |(lane, state): (usize, &State)| {
                !in_mask(mask, lane) || *state == State::AtWarp(mask) || *state == State::Done
            };
            if warp.iter().enumerate().all(here) {
                released |= go_on(warp, State::AtWarp(mask));
            }
        }
    }
    if block.iter().all(|state| matches!(state, State::AtBlock | State::Done)) {
        released |= go_on(block, State::AtBlock);
    }
    // Threads that wait for each other at different barriers would do so for ever, and mean nothing: those of warps,
    // whose mask may name threads that are elsewhere, go on.
    if !released && block.iter().all(|state| *state != State::Ready) {
        for state in block.iter_mut().filter(|state| matches!(state, State::AtWarp(_))) {
            *state = State::Ready;
            released = true;
        }
    }
    released
}

fn go_on(threads: &mut [State], from: State) -> bool {
    let mut some = false;
    for state in threads.iter_mut().filter(|state| **state == from) {
        *state = State::Ready;
        some = true;
    }
    some
}
