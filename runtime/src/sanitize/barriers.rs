//! Barriers, and operations on the lanes of a warp.

use weft_artifact::{Site, SiteKind};

use super::{
    clock::{Thread, WARP, join},
    finding::{self, Finding, ThreadLocation},
    launch::{DEADLOCK, Launch, LiveThread},
    record::Spot,
    release_logs::Logs,
};

/// The collective operation that a thread waits at.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct CollectiveCall {
    /// The source location, if it waits for other threads.
    pub(super) spot: Option<Spot>,
    pub(super) mask: u32,
    /// Of a shuffle: how, by how much, and the width.
    pub(super) how: (u8, u8, u32),
}

impl Launch {
    /// All threads of a block that have not ended were at its barrier.
    pub fn block_met(&mut self, slot: usize, threads: &[usize], ended: &[usize]) {
        self.changes += 1;
        let Some(block) = self.blocks.get_mut(slot) else { return };
        block.epoch += 1;
        let (epoch, id) = (block.epoch, block.id);
        if self.orders {
            share(&mut block.threads, &self.released, threads);
        }
        for &at in threads {
            if let Some(thread) = block.threads.get_mut(at) {
                thread.epoch = epoch;
                if self.orders {
                    thread.see(id, at);
                } else {
                    thread.seen.epoch = epoch;
                }
            }
        }
        if !self.checks_collectives() {
            return;
        }
        let first = threads.iter().find_map(|&thread| Some((thread, self.collective(slot, thread)?.spot?)));
        let Some((one, site)) = first else { return };
        let at = self.line_of(site);
        let other = threads.iter().find_map(|&thread| {
            let there = self.collective(slot, thread)?.spot?;
            (there != site && self.line_of(there) != at).then_some((thread, there))
        });
        if let Some((two, there)) = other {
            self.found_mismatch(
                "barrier divergence",
                &[(LiveThread { slot, thread: one }, site), (LiveThread { slot, thread: two }, there)],
                |a, b| format!("threads of a block wait at different barriers: {a} at one, {b} at the other"),
                "make all threads of the block reach the same barrier",
            );
        }
        let left = ended.iter().copied().find(|&thread| self.has_left(slot, thread));
        if let Some(left) = left {
            let end = self.end_site();
            self.found_missing(LiveThread { slot, thread: one }, site, LiveThread { slot, thread: left }, end);
        }
        self.forget_collectives(slot, threads);
    }

    /// All blocks reached the grid's barrier: later accesses happen after earlier ones.
    pub fn grid_met(&mut self) {
        self.changes += 1;
        self.take_numbers();
    }

    /// The lanes of a mask reached a barrier of their warp, or an operation that is split into several; `here` are the
    /// lanes that were there.
    pub fn warp_met(&mut self, slot: usize, warp: usize, mask: u32, here: u32, ended: u32) {
        self.changes += 1;
        let threads: Vec<usize> = lanes_of(here).map(|lane| warp * WARP + lane).collect();
        let Some(&one) = threads.first() else { return };
        let Some(CollectiveCall { spot: Some(site), .. }) = self.collective(slot, one) else { return };
        let Some(kind) = self.site(site.site()).map(|site| site.kind) else { return };
        if kind == SiteKind::WarpBarrier {
            self.lanes_known(slot, &threads);
        }
        if self.checks_collectives() {
            self.check_lanes(slot, (warp, mask, here, ended), &threads, (one, site, kind));
        }
        self.forget_collectives(slot, &threads);
    }

    /// Lanes that were at a `syncwarp` know of each other.
    fn lanes_known(&mut self, slot: usize, threads: &[usize]) {
        let Some(block) = self.blocks.get_mut(slot) else { return };
        let (mut lanes, id) = ([0_u32; WARP], block.id);
        if self.orders {
            share(&mut block.threads, &self.released, threads);
        }
        for &thread in threads {
            let Some(state) = block.threads.get_mut(thread) else { continue };
            for (clock, own) in lanes.iter_mut().zip(state.lanes.iter().flat_map(|lanes| lanes.iter())) {
                *clock = (*clock).max(*own);
            }
            if let Some(clock) = lanes.get_mut(thread % WARP) {
                *clock = (*clock).max(state.clock);
            }
        }
        for &thread in threads {
            let Some(state) = block.threads.get_mut(thread) else { continue };
            match &mut state.lanes {
                Some(own) => **own = lanes,
                none => *none = Some(Box::new(lanes)),
            }
            state.tick();
            state.see(id, thread);
        }
    }

    fn check_lanes(
        &mut self,
        slot: usize,
        (warp, mask, here, ended): (usize, u32, u32, u32),
        threads: &[usize],
        (one, site, kind): (usize, Spot, SiteKind),
    ) {
        let caller = |thread: usize| LiveThread { slot, thread };
        let at = self.line_of(site);
        let other = threads.iter().find_map(|&thread| {
            let there = self.collective(slot, thread)?.spot?;
            (there != site && self.line_of(there) != at).then_some((thread, there))
        });
        if let Some((two, there)) = other {
            // `syncwarp` may be met at several places, as long as all of them are one.
            let both_barriers =
                kind == SiteKind::WarpBarrier && self.site(there.site()).is_some_and(|site| site.kind == kind);
            if !both_barriers {
                self.found_mismatch(
                    "warp divergence",
                    &[(caller(one), site), (caller(two), there)],
                    |a, b| format!("lanes of one mask are at different calls: {a} at one, {b} at the other"),
                    "make all lanes of the mask reach the same call, or pass the mask of the lanes that do",
                );
            }
        }
        // A lane that has fallen off the kernel's end was named by a mask, and did not come.
        let gone = lanes_of(mask & ended).map(|lane| warp * WARP + lane).find(|&thread| self.has_left(slot, thread));
        if let Some(gone) = gone {
            let end = self.end_site();
            self.found_absent((caller(one), site), (caller(gone), end), mask);
        }
        // weft's own functions do not use the values of absent lanes.
        if kind != SiteKind::Shuffle || self.site(site.site()).is_some_and(|site| site.is_own) {
            return;
        }
        for &thread in threads {
            let Some(CollectiveCall { how, spot: Some(site), .. }) = self.collective(slot, thread) else { continue };
            let Some(source) = source(thread % WARP, how) else { continue };
            if here >> source & 1 == 0 {
                let named = if mask >> source & 1 == 0 { "which is not in the mask" } else { "which does not exist" };
                self.found_shuffle(caller(thread), site, source, named);
                break;
            }
        }
    }

    /// Lanes wait at a barrier of their warp for others that do not arrive: reports them, and lets them continue.
    pub fn warp_given_up(&mut self, slot: usize, warp: usize, waiting: &[(usize, u32)], elsewhere: &[usize]) {
        let threads: Vec<usize> = waiting.iter().map(|&(thread, _)| thread).collect();
        if !self.checks_collectives() {
            self.forget_collectives(slot, &threads);
            return;
        }
        for &(thread, mask) in waiting {
            let Some(CollectiveCall { spot: Some(site), .. }) = self.collective(slot, thread) else { continue };
            // The lane that it waits for: a lane of the mask at another location, or at this one with another mask.
            let other = waiting
                .iter()
                .copied()
                .filter(|&(other, others)| other != thread && mask >> (other % WARP) & 1 == 1 && others != mask);
            let other = other.map(|(other, _)| other).next().or_else(|| {
                let named = |other: &&usize| **other / WARP == warp && mask >> (**other % WARP) & 1 == 1;
                elsewhere.iter().find(named).copied()
            });
            let Some(other) = other else { continue };
            let Some(CollectiveCall { spot: Some(there), mask: others, .. }) = self.collective(slot, other) else {
                continue;
            };
            let locations = [(LiveThread { slot, thread }, site), (LiveThread { slot, thread: other }, there)];
            if self.line_of(there) == self.line_of(site) {
                self.found_mismatch(
                    "mask mismatch",
                    &locations,
                    |a, b| format!("lanes pass different masks: {a} passes {mask:#x}, {b} passes {others:#x}"),
                    "pass the same mask in all lanes",
                );
            } else {
                let lane = other % WARP;
                self.found_mismatch(
                    "lane missing",
                    &locations,
                    |a, b| {
                        format!(
                            "{a} waits for lane {lane} of its warp, which is in the mask {mask:#x}, but {b} \
                        does not reach the call"
                        )
                    },
                    "pass the mask of the lanes that reach the call",
                );
            }
            break;
        }
        self.forget_collectives(slot, &threads);
    }

    /// All threads wait. `waiting` are those of one block.
    pub fn stuck(&mut self, slot: usize, waiting: &[usize]) {
        if !self.checks_collectives() {
            return;
        }
        let mut locations: Vec<(LiveThread, Spot)> = Vec::new();
        for &thread in waiting {
            let Some(state) = self.blocks.get(slot).and_then(|block| block.threads.get(thread)) else { continue };
            let Some(site) = state.collective.spot.or(state.last()) else { continue };
            if locations.len() < 2 && !locations.iter().any(|(_, known)| *known == site) {
                locations.push((LiveThread { slot, thread }, site));
            }
        }
        if locations.is_empty() {
            return;
        }
        self.found_mismatch(
            DEADLOCK,
            &locations,
            |a, b| {
                if b.is_empty() {
                    format!("{a} waits forever: no thread writes the value that it waits for")
                } else {
                    format!("threads wait for each other forever: {a} at one line, {b} at the other")
                }
            },
            "write the value from a thread that does not wait",
        );
    }

    /// The key that distinguishes barrier locations: the line, and the calling line only if the function is weft's own.
    fn line_of(&self, spot: Spot) -> (u32, Option<u32>) {
        let is_own = |site: u32| self.site(site).is_some_and(|site| site.is_own);
        let mut calls = is_own(spot.site()).then(|| self.calls.sites(spot.chain())).into_iter().flatten();
        (spot.site(), calls.find(|&call| !is_own(call)))
    }

    fn checks_collectives(&self) -> bool {
        self.has(weft_artifact::Tools::SYNCCHECK)
    }

    pub(super) fn collective(&self, slot: usize, thread: usize) -> Option<CollectiveCall> {
        Some(self.blocks.get(slot)?.threads.get(thread)?.collective)
    }

    pub(super) fn forget_collectives(&mut self, slot: usize, threads: &[usize]) {
        let Some(block) = self.blocks.get_mut(slot) else { return };
        for &thread in threads {
            if let Some(thread) = block.threads.get_mut(thread) {
                thread.collective.spot = None;
            }
        }
    }

    /// It has accessed memory or passed a barrier, and then reached the kernel's end without a `return`. A barrier waits for the
    /// threads that have not exited, so a `return` before it is no fault, nor is a guard around all that the kernel does.
    fn has_left(&self, slot: usize, thread: usize) -> bool {
        self.blocks
            .get(slot)
            .and_then(|block| block.threads.get(thread))
            .is_some_and(|thread| !thread.returned && (thread.last().is_some() || thread.epoch > 0))
    }

    fn found_mismatch(
        &mut self,
        kind: &'static str,
        locations: &[(LiveThread, Spot)],
        message: impl FnOnce(&str, &str) -> String,
        help: &str,
    ) {
        let reported: Vec<ThreadLocation> =
            locations.iter().filter_map(|&(caller, site)| self.location(caller, site, None)).collect();
        let name = |at: usize| reported.get(at).map_or_else(String::new, thread_name);
        let message = message(&name(0), &name(1));
        let kernel = self.plan.kernel.clone();
        let sites: Vec<&Site> = reported.iter().map(|location| &location.site).collect();
        let made = reported.clone();
        self.findings.add(kind, &sites, || Finding {
            tool: "synccheck",
            kind,
            kernel,
            message,
            help: help.to_owned(),
            count: 1,
            accesses: made,
        });
    }

    fn found_missing(&mut self, one: LiveThread, site: Spot, left: LiveThread, end: Option<Site>) {
        let Some(location) = self.location(one, site, None) else { return };
        let mut locations = vec![location];
        let gone = self.coordinates(left);
        if let Some(end) = end {
            locations.push(ThreadLocation {
                what: "end",
                site: end,
                index: None,
                thread: gone.0,
                block: gone.1,
                calls: Vec::new(),
            });
        }
        let message = format!(
            "{} waits at a barrier that thread {} of its block skipped",
            thread_name(&locations[0]),
            finding::triple(gone.0),
        );
        self.add_mismatch(
            "barrier not reached",
            message,
            "move the barrier out of the branch, so that all threads of the block reach it; a thread may also `return` before it",
            locations,
        );
    }

    fn found_absent(&mut self, (one, site): (LiveThread, Spot), (gone, end): (LiveThread, Option<Site>), mask: u32) {
        let Some(location) = self.location(one, site, None) else { return };
        let mut locations = vec![location];
        let (thread, block) = self.coordinates(gone);
        if let Some(end) = end {
            locations.push(ThreadLocation { what: "end", site: end, index: None, thread, block, calls: Vec::new() });
        }
        let message = format!(
            "{} waits for lane {} of the mask {mask:#x}, which does not reach the call",
            thread_name(&locations[0]),
            gone.thread % WARP,
        );
        self.add_mismatch("lane missing", message, "pass the mask of the lanes that reach the call", locations);
    }

    fn found_shuffle(&mut self, caller: LiveThread, site: Spot, source: usize, named: &str) {
        let Some(location) = self.location(caller, site, None) else { return };
        let message = format!("{} takes the value of lane {source}, {named}", thread_name(&location));
        let help = "read values only from lanes that are in the mask and reach the call";
        self.add_mismatch("shuffle from a missing lane", message, help, vec![location]);
    }

    /// The mask of a call does not include the calling lane.
    pub(super) fn found_not_in_mask(&mut self, caller: LiveThread, site: Spot, mask: u32) {
        if !self.checks_collectives() {
            return;
        }
        let Some(location) = self.location(caller, site, None) else { return };
        let lane = caller.thread % WARP;
        let message = format!("{}, lane {lane}, is not in its own mask {mask:#x}", thread_name(&location));
        self.add_mismatch(
            "caller not in mask",
            message,
            "add the calling lane to the mask, or skip the call in that lane",
            vec![location],
        );
    }

    fn add_mismatch(&mut self, kind: &'static str, message: String, help: &str, locations: Vec<ThreadLocation>) {
        let kernel = self.plan.kernel.clone();
        let first = locations.first().map(|location| location.site.clone());
        let sites: Vec<&Site> = first.iter().collect();
        self.findings.add(kind, &sites, || Finding {
            tool: "synccheck",
            kind,
            kernel,
            message,
            help: help.to_owned(),
            count: 1,
            accesses: locations,
        });
    }
}

/// Threads that meet at a barrier share what each has acquired and what each has released: a thread may fence its
/// writes and leave the atomic operation to another thread. The barrier also counts as the fence after an atomic
/// operation, as is common practice.
pub(super) fn share(all: &mut [Thread], logs: &Logs, threads: &[usize]) {
    let (mut known, mut released, mut to_block) = (None, None, None);
    for &thread in threads {
        let Some(thread) = all.get_mut(thread) else { continue };
        thread.acquire(logs, false);
        let own = [&thread.known, &thread.released, &thread.released_to_block];
        for (shared, own) in [&mut known, &mut released, &mut to_block].into_iter().zip(own) {
            if let Some(own) = own {
                join(shared, own);
            }
        }
    }
    if known.is_none() && to_block.is_none() {
        return;
    }
    for &thread in threads {
        let Some(thread) = all.get_mut(thread) else { continue };
        thread.known.clone_from(&known);
        thread.released.clone_from(&released);
        thread.released_to_block.clone_from(&to_block);
        thread.left = None;
    }
}

fn thread_name(location: &ThreadLocation) -> String {
    format!("thread {} of block {}", finding::triple(location.thread), finding::triple(location.block))
}

fn lanes_of(mask: u32) -> impl Iterator<Item = usize> {
    (0..WARP).filter(move |lane| mask >> lane & 1 == 1)
}

/// The lane whose value a shuffle gives; `None` where it is the lane's own.
fn source(lane: usize, (how, by, width): (u8, u8, u32)) -> Option<usize> {
    let (by, within) = (usize::from(by & 31), (width.max(1) as usize - 1) & 31);
    let (first, last) = (lane & !within, lane | within);
    let other = match how {
        1 => first | by & within,
        2 => lane.checked_sub(by).filter(|other| *other >= first)?,
        3 => Some(lane + by).filter(|other| *other <= last)?,
        4 => Some(lane ^ by).filter(|other| *other <= last)?,
        _ => return None,
    };
    (other != lane).then_some(other)
}

#[cfg(test)]
mod tests {
    use super::source;

    #[test]
    fn shuffles_have_sources() {
        assert_eq!(source(5, (1, 3, 32)), Some(3));
        assert_eq!(source(13, (1, 3, 8)), Some(11));
        assert_eq!(source(5, (2, 3, 32)), Some(2));
        assert_eq!(source(2, (2, 3, 32)), None);
        assert_eq!(source(30, (3, 4, 32)), None);
        assert_eq!(source(6, (3, 1, 8)), Some(7));
        assert_eq!(source(7, (3, 1, 8)), None);
        assert_eq!(source(6, (4, 16, 32)), Some(22));
    }
}
