//! The states of a block's threads that have stacks, and the barriers at which they are resumed together.

use crate::sanitize::Launch;

/// Threads of a warp.
pub(super) const WARP: usize = 32;

/// The state of a thread of a block.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum ThreadState {
    Ready,
    AtBlock,
    AtWarp(u32),
    AtSite(u32),
    AtPhase,
    AtCluster,
    AtGrid,
    Done,
}

/// Lets the threads of a block go on that wait together and are all there; `true` if there are some.
pub(super) fn release(block: &mut [ThreadState], mut checks: Option<(&mut Launch, usize)>) -> bool {
    let mut released = false;
    for (number, warp) in block.chunks_mut(WARP).enumerate() {
        let in_mask = |mask: u32, lane: usize| mask >> lane & 1 == 1;
        let masks: Vec<u32> =
            warp.iter().filter_map(|s| if let ThreadState::AtWarp(mask) = s { Some(*mask) } else { None }).collect();
        for mask in masks {
            let here = |(lane, state): (usize, &ThreadState)| {
                !in_mask(mask, lane) || *state == ThreadState::AtWarp(mask) || *state == ThreadState::Done
            };
            if warp.iter().enumerate().all(here) {
                if let Some((checks, slot)) = &mut checks {
                    let lanes = |is: ThreadState| {
                        threads_in(warp, |state| state == is).iter().fold(0, |all, lane| all | 1 << lane)
                    };
                    let met = lanes(ThreadState::AtWarp(mask));
                    if met != 0 {
                        checks.warp_met(*slot, number, mask, met, lanes(ThreadState::Done));
                    }
                }
                released |= go_on(warp, ThreadState::AtWarp(mask));
            }
        }
    }
    if block.iter().all(|state| matches!(state, ThreadState::AtBlock | ThreadState::Done)) {
        let met = threads_in(block, |state| state == ThreadState::AtBlock);
        if let Some((checks, slot)) = checks.as_mut().filter(|_| !met.is_empty()) {
            checks.block_met(*slot, &met, &threads_in(block, |state| state == ThreadState::Done));
        }
        released |= go_on(block, ThreadState::AtBlock);
    }
    // Threads that wait for each other at different barriers would do so for ever, and mean nothing: those of warps,
    // whose mask may name threads that are elsewhere, go on.
    if !released && block.iter().all(|state| !matches!(state, ThreadState::Ready | ThreadState::AtPhase)) {
        if let Some((checks, slot)) = &mut checks {
            give_up(block, checks, *slot);
        }
        for state in block.iter_mut().filter(|state| matches!(state, ThreadState::AtWarp(_))) {
            *state = ThreadState::Ready;
            released = true;
        }
    }
    released
}

/// Reports lanes that wait for others which do not arrive.
fn give_up(block: &[ThreadState], checks: &mut Launch, slot: usize) {
    let elsewhere = threads_in(block, |state| !matches!(state, ThreadState::AtWarp(_) | ThreadState::Done));
    for (number, warp) in block.chunks(WARP).enumerate() {
        let mask = |lane: usize| if let ThreadState::AtWarp(mask) = warp[lane] { mask } else { 0 };
        let waiting = threads_in(warp, |state| matches!(state, ThreadState::AtWarp(_)));
        let waiting: Vec<_> = waiting.into_iter().map(|lane| (number * WARP + lane, mask(lane))).collect();
        if !waiting.is_empty() {
            checks.warp_given_up(slot, number, &waiting, &elsewhere);
        }
    }
}

/// The threads of a block whose states are some.
pub(super) fn threads_in(block: &[ThreadState], is: impl Fn(ThreadState) -> bool) -> Vec<usize> {
    block.iter().enumerate().filter(|(_, state)| is(**state)).map(|(thread, _)| thread).collect()
}

/// Resumes threads in the given state; `true` if there are some.
pub(super) fn go_on(threads: &mut [ThreadState], from: ThreadState) -> bool {
    let mut some = false;
    for state in threads.iter_mut().filter(|state| **state == from) {
        *state = ThreadState::Ready;
        some = true;
    }
    some
}
