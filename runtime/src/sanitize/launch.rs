//! One launch, and its recorded accesses.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{EventKind, HostSeen, Site, Sites, Tools};

use super::{
    argument::Argument,
    barriers::CollectiveCall,
    calls::Calls,
    claims::Claims,
    clock::{Bad, Thread},
    finding::{Finding, Findings},
    in_flight::InFlight,
    memory::{self, Bytes},
    numbers::Numbers,
    page::PAGE,
    phases::Phases,
    products::Products,
    record::Spot,
    release_logs::Logs,
    shadow::{ByAddress, Shadow},
    stores::Stores,
};

/// Addresses within this distance of [`HostChecks::NOWHERE`] result from an index out of bounds.
pub(super) const NOWHERE_ROOM: u64 = 1 << 61;

/// The kind of a finding about threads that wait forever.
pub(super) const DEADLOCK: &str = "deadlock";

/// Of a page: it has memory that was freed.
pub(super) const HAS_FREED: u32 = 1 << 31;

/// The extents of a launch, and its properties.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// `gridDim`.
    pub grid: [u32; 3],
    /// `blockDim`.
    pub block: [u32; 3],
    /// Benign races are reported: those in which both threads write the same value.
    pub benign_races: bool,
    /// The threads of a block are iterations of work-item loops, which reach its barriers together.
    pub loops: bool,
}

/// A thread of a block that has not ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LiveThread {
    /// The slot of its block among the live ones, as [`Launch::begin`] says.
    pub slot: usize,
    /// The thread's number in it.
    pub thread: usize,
}

/// An access that sanitized code records.
#[derive(Clone, Copy, Debug)]
pub struct AccessRecord {
    /// Which site.
    pub site: u32,
    /// Where.
    pub address: u64,
    /// [`AccessBits`].
    pub bits: u32,
    /// The stored value.
    pub value: u64,
    /// The number of the value that is copied; 0 for none, or [`HostChecks::FOLLOWED`].
    pub copy: u32,
}

/// The sanitizer's decision about an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It proceeds.
    Goes,
    /// The same, and the value that it reads is unwritten: the number by which the thread will report its use.
    Unwritten(u32),
    /// It must not access memory of the program.
    Nowhere,
}

/// A block that lives.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Its number; `None` if the slot is free.
    pub(super) number: Option<u64>,
    /// Barriers that it has passed.
    pub(super) epoch: u32,
    pub(super) threads: Vec<Thread>,
    /// Its scratch memory.
    pub(super) scratch: Option<Bytes>,
    pub(super) start: u64,
    pub(super) len: u64,
    /// Where dynamic shared memory begins in it.
    pub(super) dynamic: u64,
    /// Its unique number.
    pub(super) id: u32,
    /// The values that the code of all its threads compares with, if they are iterations of a work-item loop.
    pub(super) seen: Option<Box<HostSeen>>,
    /// The asynchronous copies to its memory for which no thread has waited.
    pub(super) in_flight: InFlight,
    /// Its barriers in shared memory, and the copies that they count.
    pub(super) phases: Phases,
    /// Its cluster, if that has several blocks.
    pub(super) cluster: Option<u64>,
    /// The products of its warpgroups.
    pub(super) products: Products,
}

/// The static information about a launch.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub(super) sites: Arc<Sites>,
    pub(super) kernel: String,
    pub(super) shape: Shape,
    pub(super) arguments: Arc<[Argument]>,
    pub(super) numbers: Numbers,
    pub(super) memory: Arc<[Arc<Bytes>]>,
    pub(super) freed: Arc<BTreeMap<u64, u64>>,
    /// A bit for each parameter: accesses to its array need no state, and it is written.
    pub(super) unrecorded: u64,
}

/// The state of a launch, or of the part of a launch that one system thread runs.
#[derive(Debug)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct Launch {
    pub(super) plan: Plan,
    pub(super) blocks: Vec<Block>,
    pub(super) calls: Calls,
    pub(super) shadow: Shadow,
    /// Some cells of scratch memory do not belong to the program.
    pub(super) has_cells: bool,
    pub(super) released: Logs,
    /// The blocks are in clusters of several.
    pub(super) has_clusters: bool,
    /// The copies to global memory for which no thread has waited.
    pub(super) stores: Stores,
    /// A thread has released something.
    pub(super) orders: bool,
    pub(super) findings: Findings,
    /// A counter that advances with every change.
    pub(super) changes: u64,
    /// All accesses are inspected for changes; otherwise only threads that reach a barrier or an end count.
    pub(super) looks: bool,
    /// The last values that atomic operations saw, if all accesses are inspected.
    pub(super) seen: ByAddress<u64>,
    /// The pages that a part has claimed.
    pub(super) claims: Option<Claims>,
}

impl Plan {
    pub(super) fn new(sites: Arc<Sites>, kernel: &str, shape: Shape, arguments: Vec<Argument>) -> Self {
        let n_blocks = shape.grid.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let numbers = Numbers::next(u32::try_from(n_blocks).unwrap_or(u32::MAX >> 1));
        let (memory, freed) = (memory::now().into(), Arc::new(memory::freed()));
        let kernel = kernel.to_owned();
        let mut plan =
            Self { sites, kernel, shape, arguments: arguments.into(), numbers, memory, freed, unrecorded: 0 };
        plan.unrecorded = plan.find_unrecorded();
        plan
    }

    pub(super) fn has(&self, tools: Tools) -> bool {
        self.sites.tools.has(tools)
    }

    /// The arrays that the kernel only reads, which share no memory with what it may write and lie in none that was freed, and of
    /// which all bytes are written.
    fn find_unrecorded(&self) -> u64 {
        let is_read = |argument: &Argument| self.sites.only_read.contains(&argument.parameter);
        let others: Vec<_> = self.arguments.iter().filter(|argument| !is_read(argument)).collect();
        if !others.iter().all(|argument| argument.is_whole) {
            return 0;
        }
        let ranges: Vec<_> = others.into_iter().map(Argument::range).collect();
        let is_unrecorded = |argument: &&Argument| {
            let (start, end) = argument.range();
            let is_freed = || self.has(Tools::MEMCHECK) && memory::has(&self.freed, start, end - start);
            let has_unwritten =
                || self.has(Tools::INITCHECK) && memory::unwritten(&self.memory, start, end - start) > 0;
            // Compiled code assumes this for elements that are parts of items.
            let align = 1_u64 << argument.item.trailing_zeros().min(3);
            let is_aligned = start.is_multiple_of(align)
                && argument.strides.iter().all(|stride| stride.unsigned_abs().is_multiple_of(align));
            argument.parameter < u64::BITS
                && is_aligned
                && argument.is_whole
                && is_read(argument)
                && !ranges.iter().any(|&(from, to)| from < end && start < to)
                && !is_freed()
                && !has_unwritten()
        };
        self.arguments.iter().filter(is_unrecorded).fold(0, |unrecorded, argument| unrecorded | 1 << argument.parameter)
    }
}

impl Launch {
    /// A launch that begins.
    pub fn new(sites: Arc<Sites>, kernel: &str, shape: Shape, arguments: Vec<Argument>) -> Self {
        Self::of(Plan::new(sites, kernel, shape, arguments), None)
    }

    /// A launch, or a part of it, that a thread of the system runs.
    pub(super) fn of(plan: Plan, claims: Option<Claims>) -> Self {
        Self {
            shadow: Shadow::of(&plan.numbers),
            has_cells: plan.sites.shared.iter().any(|shared| !shared.is_program),
            plan,
            blocks: Vec::new(),
            calls: Calls::default(),
            released: Logs::default(),
            has_clusters: false,
            stores: Stores::default(),
            orders: false,
            findings: Findings::default(),
            changes: 0,
            looks: false,
            seen: ByAddress::default(),
            claims,
        }
    }

    /// Sets the values that the code of a block's threads compares with.
    pub(super) fn show_block(&mut self, slot: usize) {
        let calls_runtime = self.looks || self.has_clusters || !self.has(Tools::RACECHECK);
        let (near, first) = (self.shadow.near(calls_runtime), self.plan.numbers.blocks.0);
        let unrecorded = if self.looks { 0 } else { self.plan.unrecorded };
        let Some(block) = self.blocks.get_mut(slot) else { return };
        let (scratch, scratch_bytes, number) = (block.start, block.len, block.id);
        let bits = block.scratch.as_ref().and_then(|bytes| bytes.page(scratch)).unwrap_or(0);
        if let Some(seen) = &mut block.seen {
            let (epoch, block) = (block.epoch, number);
            **seen = HostSeen { block, epoch, first, unrecorded, near, scratch, scratch_bytes, bits, ..HostSeen::NONE };
            return;
        }
        for (at, thread) in block.threads.iter_mut().enumerate() {
            thread.seen = HostSeen { first, unrecorded, near, scratch, scratch_bytes, ..thread.seen };
            thread.see(number, at);
        }
    }

    /// The values that a thread's code compares with, valid as long as its block lives.
    pub fn seen(&self, caller: LiveThread) -> *const HostSeen {
        let Some(block) = self.blocks.get(caller.slot) else { return std::ptr::null() };
        if let Some(seen) = &block.seen {
            return &raw const **seen;
        }
        block.threads.get(caller.thread).map_or(std::ptr::null(), |thread| &raw const thread.seen)
    }

    /// Starts a thread that is an iteration of a work-item loop: it began with its block, and passed all its barriers.
    #[inline]
    pub(super) fn wake(&mut self, caller: LiveThread) {
        let orders = self.orders;
        let Some(block) = self.blocks.get_mut(caller.slot).filter(|block| block.seen.is_some()) else { return };
        let Some(thread) = block.threads.get_mut(caller.thread) else { return };
        if thread.block != block.id {
            thread.begin(orders);
            thread.block = block.id;
        }
        thread.epoch = block.epoch;
    }

    /// Refreshes the values that the code of the block's threads, which are iterations of a work-item loop, compares
    /// with after a change of one of them.
    #[inline]
    pub(super) fn show_changes(&mut self, caller: LiveThread) {
        let Some(block) = self.blocks.get_mut(caller.slot) else { return };
        if let (Some(seen), Some(thread)) = (&mut block.seen, block.threads.get(caller.thread)) {
            (seen.chain, seen.chain_too) = (thread.seen.chain, thread.seen.chain_too);
            seen.copies |= thread.seen.copies;
        }
    }

    /// Assigns its blocks new numbers.
    pub(super) fn take_numbers(&mut self) {
        self.plan.numbers = self.plan.numbers.of_blocks_anew();
        self.shadow.go_on(&self.plan.numbers);
        let first = self.plan.numbers.blocks.0;
        for block in &mut self.blocks {
            block.id = first.wrapping_add(block.number.unwrap_or(0) as u32);
        }
        (0..self.blocks.len()).for_each(|slot| self.show_block(slot));
    }

    /// A block begins with a piece of scratch memory, in which dynamic shared memory begins at `dynamic`; returns its
    /// slot.
    pub fn begin(&mut self, number: u64, scratch: u64, bytes: u64, dynamic: u64) -> usize {
        self.changes += 1;
        let n_threads = self.plan.shape.block.iter().map(|&extent| extent as usize).product();
        let is_checked = self.has(Tools::INITCHECK);
        let free = self.blocks.iter().position(|block| block.number.is_none());
        let slot = free.unwrap_or_else(|| {
            self.blocks.push(Block::default());
            self.blocks.len() - 1
        });
        let (orders, loops) = (self.orders, self.plan.shape.loops);
        let Some(block) = self.blocks.get_mut(slot) else { return slot };
        block.threads.resize_with(n_threads, Thread::default);
        block.in_flight.clear();
        block.phases.clear();
        block.products.clear();
        block.cluster = None;
        if loops {
            block.seen.get_or_insert_with(|| Box::new(HostSeen::NONE));
        } else {
            block.threads.iter_mut().for_each(|thread| thread.begin(orders));
        }
        match block.scratch.as_mut().filter(|known| known.is(scratch, bytes)) {
            Some(known) => known.clear(),
            None => block.scratch = is_checked.then(|| Bytes::unwritten(scratch, bytes)),
        }
        (block.number, block.epoch, block.id) =
            (Some(number), 0, self.plan.numbers.blocks.0.wrapping_add(number as u32));
        (block.start, block.len, block.dynamic) = (scratch, bytes, dynamic);
        // Compiled code may have the page with the accesses of another block.
        for page in scratch / PAGE..(scratch.saturating_add(bytes)).div_ceil(PAGE) {
            self.shadow.forget_page(page * PAGE);
        }
        self.show_block(slot);
        slot
    }

    /// A block has ended.
    pub fn end(&mut self, slot: usize) {
        self.changes += 1;
        self.check_copies_at_end(slot);
        self.check_stores_at_end(slot);
        if let Some(block) = self.blocks.get_mut(slot) {
            block.number = None;
        }
    }

    /// Whether something was found.
    pub fn has_found(&self) -> bool {
        !self.findings.is_empty()
    }

    /// Whether a finding says more than the exception of a thread that waited forever.
    pub fn explains_exceptions(&self) -> bool {
        self.findings.has(DEADLOCK)
    }

    /// Takes the findings, and leaves none.
    pub fn take(&mut self) -> Vec<Finding> {
        let mut findings = std::mem::take(&mut self.findings);
        findings.advise(|pairs| self.advice(pairs));
        let races = findings.races();
        for memory in self.plan.memory.iter() {
            memory.forget_origins(self.shadow.launch, |finding| races.explain(finding));
        }
        findings.take()
    }

    pub(super) fn has(&self, tools: Tools) -> bool {
        self.plan.has(tools)
    }

    pub(super) fn site(&self, site: u32) -> Option<&Site> {
        self.plan.sites.sites.get(site as usize)
    }

    /// Something that is no access.
    pub fn event(&mut self, caller: LiveThread, site: u32, kind: u32, a: u64, b: u64) {
        if kind == EventKind::MET {
            if let Some(block) = self.blocks.get_mut(caller.slot) {
                block.epoch += 1;
                block.seen.iter_mut().for_each(|seen| seen.epoch = block.epoch);
            }
            return;
        }
        self.wake(caller);
        self.take_event(caller, site, kind, (a, b));
        self.show_changes(caller);
    }

    fn take_event(&mut self, caller: LiveThread, site: u32, kind: u32, (a, b): (u64, u64)) {
        let (tools, number) = (self.plan.sites.tools, self.number(caller.slot));
        let Self { blocks, calls, shadow, released, .. } = self;
        let Some(thread) = blocks.get_mut(caller.slot).and_then(|block| block.threads.get_mut(caller.thread)) else {
            return;
        };
        match kind & 0xff {
            EventKind::BOUNDS => {
                let (index, extent) = (a.cast_signed(), b.cast_signed());
                let spot = Spot::new(site, thread.depth.chain);
                thread.bad = Some(Bad { spot, axis: kind >> 8, index, extent });
            }
            EventKind::FENCE => {
                thread.fence(released, (number, caller.thread as u16), a == 1);
                thread.see(number, caller.thread);
                self.orders = true;
            }
            EventKind::LOCAL => {
                // A thread of an earlier block had something else there, and may have reached it by a pointer that does not
                // say whose memory it is.
                shadow.forget_bytes(a, b);
                if !tools.has(Tools::INITCHECK) {
                    return;
                }
                match thread.locals.iter().position(|local| local.is(a, b)) {
                    Some(known) => {
                        // The innermost comes last.
                        let known = thread.locals.remove(known);
                        known.clear();
                        thread.locals.push(known);
                    }
                    None => {
                        thread.locals.retain(|local| !local.meets(a, b));
                        thread.locals.push(Bytes::unwritten(a, b));
                    }
                }
            }
            EventKind::MEETS | EventKind::LANES => {
                let mask = a as u32;
                let how =
                    if kind == EventKind::LANES { (b as u8, (b >> 8) as u8, (b >> 16) as u32) } else { (0, 0, 32) };
                let spot = Spot::new(site, thread.depth.chain);
                thread.collective = CollectiveCall { spot: Some(spot), mask, how };
                let is_named = mask >> (caller.thread % 32) & 1 == 1;
                if !is_named && self.site(site).is_some_and(|site| site.kind.is_of_warp()) {
                    self.found_not_in_mask(caller, spot, mask);
                }
            }
            EventKind::RETURNS => thread.returned = true,
            EventKind::ENTERS => {
                calls.enter(&mut thread.depth, site);
                thread.see_calls();
            }
            EventKind::LEAVES => {
                calls.leave(&mut thread.depth);
                thread.see_calls();
            }
            EventKind::USED => {
                let read = (a as usize).checked_sub(1).and_then(|at| thread.unwritten.get(at).copied());
                if let Some((spot, address)) = read {
                    self.found_unwritten(caller, spot, address);
                }
            }
            _ => {}
        }
    }

    pub(super) fn thread(&mut self, caller: LiveThread) -> Option<&mut Thread> {
        self.blocks.get_mut(caller.slot)?.threads.get_mut(caller.thread)
    }

    /// The unique number of a block.
    pub(super) fn number(&self, slot: usize) -> u32 {
        self.blocks.get(slot).map_or(self.plan.numbers.blocks.0, |block| block.id)
    }

    /// The number of a block in the grid.
    pub(super) fn in_grid(&self, number: u32) -> u64 {
        u64::from(number.wrapping_sub(self.plan.numbers.blocks.0))
    }
}
