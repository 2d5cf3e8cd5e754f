//! One launch, and what it is told.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex, PoisonError},
};

use weft_artifact::{AccessBits, EventKind, HostChecks, Site, Sites, Tools};

use super::{
    argument::Argument,
    calls::Calls,
    clock::{Bad, Released, Step, Thread},
    finding::{Finding, Findings},
    meet::Meeting,
    memory::{self, Bytes},
    races::Now,
    shadow::{ATOMIC, ByAddress, OF_BLOCK, PAGE, STEP, Shadow, Spot, When},
};

/// So far from [`HostChecks::NOWHERE`] lies what an index out of bounds led to.
const NOWHERE_ROOM: u64 = 1 << 61;

/// What is remembered of memory is kept for the next launch, if it takes no more than so many bytes.
const MOST_KEPT: usize = 512 << 20;
static KEPT: Mutex<Option<Box<Shadow>>> = Mutex::new(None);

/// Of a page: it has memory that was freed.
const HAS_FREED: u32 = 1 << 31;

/// The extents of a launch, and what is told of it.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// `gridDim`.
    pub grid: [u32; 3],
    /// `blockDim`.
    pub block: [u32; 3],
    /// Races are told of in which both write what is there already.
    pub same_values: bool,
}

/// A thread of a block that lives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Who {
    /// Which of the blocks that live, as [`Launch::begin`] says.
    pub slot: usize,
    /// The thread's number in it.
    pub thread: usize,
}

/// An access.
#[derive(Clone, Copy, Debug)]
pub struct Told {
    /// Which site.
    pub site: u32,
    /// Where.
    pub address: u64,
    /// [`AccessBits`].
    pub bits: u32,
    /// What is written.
    pub value: u64,
    /// The number of the value that is copied; 0 for none, or [`HostChecks::FOLLOWED`].
    pub copy: u32,
}

/// What is to become of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes where it would.
    Goes,
    /// The same, and what it reads is unwritten: the number by which the thread will say that it is used.
    Unwritten(u32),
    /// It must touch no memory of the program's.
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
    scratch: Option<Bytes>,
    pub(super) start: u64,
    pub(super) len: u64,
    /// Where dynamic shared memory begins in it.
    dynamic: u64,
}

/// What is known of a launch.
#[derive(Debug)]
pub struct Launch {
    pub(super) sites: Arc<Sites>,
    pub(super) kernel: String,
    pub(super) shape: Shape,
    pub(super) arguments: Vec<Argument>,
    pub(super) blocks: Vec<Block>,
    pub(super) calls: Calls,
    shadow: Box<Shadow>,
    /// The number of its first block among all that there were, and how many it has.
    numbers: (u32, u32),
    /// Some of the scratch memory is not the program's.
    has_cells: bool,
    released: ByAddress<Released>,
    /// A thread has released something.
    orders: bool,
    memory: Vec<Arc<Bytes>>,
    freed: BTreeMap<u64, u64>,
    pub(super) findings: Findings,
    /// Goes on whenever something is not as it was.
    pub(super) changes: u64,
    /// All accesses are looked at for that; else only threads that come to a barrier or an end count.
    looks: bool,
    /// What atomic steps last saw.
    seen: ByAddress<u64>,
}

impl Drop for Launch {
    fn drop(&mut self) {
        if self.shadow.size() > MOST_KEPT {
            return;
        }
        let mut kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner);
        let before = kept.replace(std::mem::take(&mut self.shadow));
        drop(kept);
        drop(before);
    }
}

impl Launch {
    /// A launch that begins.
    pub fn new(sites: Arc<Sites>, kernel: &str, shape: Shape, arguments: Vec<Argument>) -> Self {
        let kept = KEPT.lock().unwrap_or_else(PoisonError::into_inner).take();
        let mut launch = Self {
            has_cells: sites.shared.iter().any(|shared| !shared.is_program),
            sites,
            kernel: kernel.to_owned(),
            shape,
            arguments,
            blocks: Vec::new(),
            calls: Calls::default(),
            shadow: kept.unwrap_or_default(),
            numbers: (0, 0),
            released: ByAddress::default(),
            orders: false,
            memory: memory::now(),
            freed: memory::freed(),
            findings: Findings::default(),
            changes: 0,
            looks: false,
            seen: ByAddress::default(),
        };
        launch.shadow.launch = launch.shadow.launch.wrapping_add(1);
        if launch.shadow.launch == 0 {
            launch.shadow.forget();
            launch.shadow.launch = 1;
        }
        launch.take_numbers();
        launch
    }

    /// Gives its blocks numbers that none had before.
    pub(super) fn take_numbers(&mut self) {
        let n_blocks = self.shape.grid.iter().map(|&extent| u64::from(extent)).product::<u64>();
        let n_blocks = u32::try_from(n_blocks).unwrap_or(u32::MAX >> 1);
        let first = match self.shadow.next_block.checked_add(n_blocks) {
            Some(_) => self.shadow.next_block,
            None => {
                self.shadow.forget();
                1
            }
        };
        self.shadow.next_block = first.saturating_add(n_blocks);
        self.numbers = (first, n_blocks);
    }

    /// A block begins in a piece of scratch memory, in which dynamic shared memory begins at `dynamic`; gives its slot.
    pub fn begin(&mut self, number: u64, scratch: u64, bytes: u64, dynamic: u64) -> usize {
        self.changes += 1;
        let n_threads = self.shape.block.iter().map(|&extent| extent as usize).product();
        let is_checked = self.has(Tools::INITCHECK);
        let free = self.blocks.iter().position(|block| block.number.is_none());
        let slot = free.unwrap_or_else(|| {
            self.blocks.push(Block::default());
            self.blocks.len() - 1
        });
        let Some(block) = self.blocks.get_mut(slot) else { return slot };
        block.threads.resize_with(n_threads, Thread::default);
        block.threads.iter_mut().for_each(Thread::begin);
        match block.scratch.as_mut().filter(|known| known.is(scratch, bytes)) {
            Some(known) => known.clear(),
            None => block.scratch = is_checked.then(|| Bytes::unwritten(scratch, bytes)),
        }
        (block.number, block.epoch) = (Some(number), 0);
        (block.start, block.len, block.dynamic) = (scratch, bytes, dynamic);
        slot
    }

    /// A block has ended.
    pub fn end(&mut self, slot: usize) {
        self.changes += 1;
        if let Some(block) = self.blocks.get_mut(slot) {
            block.number = None;
        }
    }

    /// A thread lets others go on, in a loop: one that looks at no memory gets on by itself.
    pub fn paused(&mut self, who: Who) {
        let Some(thread) = self.thread(who) else { return };
        if !std::mem::take(&mut thread.has_looked) {
            self.changes += 1;
        }
    }

    /// How often something has changed that a thread may wait for, as far as it was looked at.
    pub fn changes(&self) -> u64 {
        self.changes
    }

    /// From here on accesses are looked at, or no longer: whether they change something that a thread may wait for.
    pub fn look(&mut self, looks: bool) {
        self.looks = looks;
    }

    /// Whether something was found.
    pub fn has_found(&self) -> bool {
        !self.findings.is_empty()
    }

    /// What was found so far, which is nothing from here on.
    pub fn take(&mut self) -> Vec<Finding> {
        std::mem::take(&mut self.findings).take()
    }

    pub(super) fn has(&self, tools: Tools) -> bool {
        self.sites.tools.has(tools)
    }

    pub(super) fn site(&self, site: u32) -> Option<&Site> {
        self.sites.sites.get(site as usize)
    }

    /// Something that is no access.
    pub fn event(&mut self, who: Who, site: u32, kind: u32, a: u64, b: u64) {
        let (tools, number) = (self.sites.tools, self.number(who.slot));
        let Self { blocks, calls, .. } = self;
        let Some(thread) = blocks.get_mut(who.slot).and_then(|block| block.threads.get_mut(who.thread)) else { return };
        match kind & 0xff {
            EventKind::BOUNDS => {
                let (index, extent) = (a.cast_signed(), b.cast_signed());
                let spot = Spot::new(site, thread.depth.chain);
                thread.bad = Some(Bad { spot, axis: kind >> 8, index, extent });
            }
            EventKind::FENCE => {
                thread.fence(number, who.thread as u16, a == 1);
                self.orders = true;
            }
            EventKind::LOCAL if tools.has(Tools::INITCHECK) => {
                match thread.locals.iter().position(|local| local.is(a, b)) {
                    Some(known) => {
                        // The innermost comes last.
                        let mut known = thread.locals.remove(known);
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
                thread.meeting = Meeting { spot: Some(spot), mask, how };
                let is_of_warp = self.site(site).is_some_and(|site| site.kind.is_of_warp());
                if is_of_warp && mask >> (who.thread % 32) & 1 == 0 {
                    self.found_not_in_mask(who, spot, mask);
                }
            }
            EventKind::RETURNS => thread.returned = true,
            EventKind::ENTERS => calls.enter(&mut thread.depth, site),
            EventKind::LEAVES => calls.leave(&mut thread.depth),
            EventKind::USED => {
                let read = (a as usize).checked_sub(1).and_then(|at| thread.unwritten.get(at).copied());
                if let Some((spot, address)) = read {
                    self.found_unwritten(who, spot, address);
                }
            }
            _ => {}
        }
    }

    pub(super) fn thread(&mut self, who: Who) -> Option<&mut Thread> {
        self.blocks.get_mut(who.slot)?.threads.get_mut(who.thread)
    }

    /// The number of a block among all that there were.
    pub(super) fn number(&self, slot: usize) -> u32 {
        let number = self.blocks.get(slot).and_then(|block| block.number).unwrap_or(0);
        self.numbers.0.wrapping_add(number as u32)
    }

    /// The number of a block in the grid.
    pub(super) fn in_grid(&self, number: u32) -> u64 {
        u64::from(number.wrapping_sub(self.numbers.0))
    }

    /// An access; `now` reads what lies there.
    pub fn access(&mut self, who: Who, told: Told, now: impl Fn() -> u64) -> Verdict {
        let Told { site, address, bits, .. } = told;
        let bytes = u64::from(bits & AccessBits::SIZE);
        let tools = self.sites.tools;
        if address.abs_diff(HostChecks::NOWHERE) < NOWHERE_ROOM {
            self.found_bounds(who, site);
            return Verdict::Nowhere;
        }
        if bits & AccessBits::NATURAL != 0 && address & (bytes.wrapping_sub(1)) != 0 && tools.has(Tools::MEMCHECK) {
            self.found_misaligned(who, told, bytes);
        }
        let Some(block) = self.blocks.get_mut(who.slot) else { return Verdict::Goes };
        let Some(thread) = block.threads.get_mut(who.thread) else { return Verdict::Goes };
        let spot = Spot::new(site, thread.depth.chain);
        let mut verdict = Verdict::Goes;
        if bits & AccessBits::LOCAL != 0 {
            if tools.has(Tools::INITCHECK)
                && let Some(memory) = thread.locals.iter().rev().find(|local| local.contains(address, bytes))
            {
                let (unwritten, _) = through(memory, &mut thread.copies, told, bytes);
                if unwritten != 0 {
                    verdict = self.found_read(who, spot, told);
                }
            }
            return verdict;
        }
        let in_scratch = address.checked_sub(block.start).filter(|offset| *offset < block.len);
        let is_cell = |offset: u64| {
            let mut shared = self.sites.shared.iter();
            shared.any(|shared| !shared.is_program && offset.wrapping_sub(shared.offset) < shared.bytes)
        };
        if self.has_cells
            && let Some(offset) = in_scratch
            && offset < block.dynamic
            && is_cell(offset)
        {
            return verdict;
        }
        thread.last = Some(spot);
        thread.has_looked = true;
        let clean = (self.shadow.launch, 0);
        let Some(page) = self.shadow.page(address, bytes) else { return verdict };
        if in_scratch.is_some() {
            if let Some(memory) = block.scratch.as_ref().filter(|_| tools.has(Tools::INITCHECK))
                && memory.contains(address, bytes)
            {
                let (unwritten, _) = through(memory, &mut thread.copies, told, bytes);
                if unwritten != 0 {
                    verdict = self.found_read(who, spot, told);
                }
            }
        } else if page.unwritten != clean || (!thread.copies.is_empty() && is_copied(told.copy)) {
            verdict = self.look_at_memory(who, spot, told, bytes);
            if verdict == Verdict::Nowhere {
                return verdict;
            }
        }
        if self.looks {
            self.note_changes(who, told, now());
        }
        if tools.has(Tools::RACECHECK) {
            self.check_races(who, spot, told, (bytes, in_scratch.is_some()), now);
        }
        if bits & AccessBits::ATOMIC != 0 {
            self.order(who, address, bits);
        }
        verdict
    }

    /// Whether an access changes something that a thread may wait for, or its thread looks at another place.
    #[cold]
    fn note_changes(&mut self, who: Who, told: Told, before: u64) {
        let Told { address, bits, value, .. } = told;
        if let Some(thread) = self.thread(who)
            && !thread.recent.contains(&address)
        {
            thread.recent.rotate_right(1);
            thread.recent[0] = address;
            self.changes += 1;
        }
        if bits & AccessBits::ATOMIC != 0 {
            self.changes += u64::from(self.seen.insert(address, before) != Some(before));
        } else if bits & AccessBits::WRITES != 0 {
            self.changes += u64::from(before != value);
        }
    }

    /// What an atomic step orders.
    fn order(&mut self, who: Who, address: u64, bits: u32) {
        let has = |bit: u32| bits & bit != 0;
        self.orders |= has(AccessBits::RELEASES);
        if !self.orders {
            return;
        }
        let step = Step {
            acquires: has(AccessBits::ACQUIRES),
            releases: has(AccessBits::RELEASES),
            of_block: has(AccessBits::BLOCK_SCOPE),
            writes: has(AccessBits::WRITES),
        };
        let number = (self.number(who.slot), who.thread as u16);
        let Self { blocks, released, .. } = self;
        if let Some(thread) = blocks.get_mut(who.slot).and_then(|block| block.threads.get_mut(who.thread)) {
            released.entry(address).or_default().step(thread, number, step);
        }
    }

    /// An access of memory of the device's in a page that has bytes which were freed or which nobody has written, as far as is
    /// known.
    #[cold]
    fn look_at_memory(&mut self, who: Who, spot: Spot, told: Told, bytes: u64) -> Verdict {
        let launch = self.shadow.launch;
        let start = told.address / PAGE * PAGE;
        let Self { memory, freed, blocks, shadow, sites, .. } = self;
        let Some(page) = shadow.page(told.address, bytes) else { return Verdict::Goes };
        if page.unwritten.0 != launch {
            let has_freed = sites.tools.has(Tools::MEMCHECK) && meets(freed, start, PAGE);
            let unwritten = if sites.tools.has(Tools::INITCHECK) { memory::unwritten(memory, start, PAGE) } else { 0 };
            page.unwritten = (launch, unwritten | if has_freed { HAS_FREED } else { 0 });
        }
        if page.unwritten.1 & HAS_FREED != 0 && meets(freed, told.address, bytes) {
            self.found_freed(who, spot, told.address);
            return Verdict::Nowhere;
        }
        if !sites.tools.has(Tools::INITCHECK) {
            return Verdict::Goes;
        }
        let crosses = Shadow::in_page(told.address, bytes) != bytes;
        if page.unwritten.1 & !HAS_FREED == 0 && !is_copied(told.copy) && !crosses {
            return Verdict::Goes;
        }
        let Some(memory) = memory::find(memory, told.address, bytes) else { return Verdict::Goes };
        let Some(thread) = blocks.get_mut(who.slot).and_then(|block| block.threads.get_mut(who.thread)) else {
            return Verdict::Goes;
        };
        let (unwritten, more) = through(memory, &mut thread.copies, told, bytes);
        let count = i64::from(page.unwritten.1 & !HAS_FREED) + i64::from(more);
        // What crosses into the next page is not counted exactly: it is looked at again.
        let count = if crosses { 1 } else { count.clamp(0, PAGE.cast_signed()) as u32 };
        page.unwritten.1 = page.unwritten.1 & HAS_FREED | count;
        if unwritten == 0 { Verdict::Goes } else { self.found_read(who, spot, told) }
    }

    /// A thread has read what nobody has written: it is used now, or may be later.
    #[cold]
    fn found_read(&mut self, who: Who, spot: Spot, told: Told) -> Verdict {
        if told.copy != HostChecks::FOLLOWED {
            self.found_unwritten(who, spot, told.address);
            return Verdict::Goes;
        }
        let Some(thread) = self.thread(who) else { return Verdict::Goes };
        let read = (spot, told.address);
        let number = match thread.unwritten.iter().position(|(known, _)| *known == spot) {
            Some(known) => {
                thread.unwritten[known] = read;
                known
            }
            None => {
                thread.unwritten.push(read);
                thread.unwritten.len() - 1
            }
        };
        Verdict::Unwritten(number as u32 + 1)
    }

    #[inline]
    fn check_races(
        &mut self,
        who: Who,
        spot: Spot,
        told: Told,
        (bytes, in_scratch): (u64, bool),
        before: impl Fn() -> u64,
    ) {
        let Told { address, bits, .. } = told;
        let block = self.number(who.slot);
        let Self { blocks, shadow, numbers, .. } = self;
        let Some(thread) = blocks.get(who.slot).and_then(|block| block.threads.get(who.thread)) else { return };
        let writes = bits & AccessBits::WRITES != 0;
        let mut how = 0;
        if bits & AccessBits::ATOMIC != 0 {
            how =
                ATOMIC | if writes { STEP } else { 0 } | if bits & AccessBits::BLOCK_SCOPE != 0 { OF_BLOCK } else { 0 };
        }
        let (epoch, clock) = (thread.epoch, thread.clock);
        let when = When { block, thread: who.thread as u32, epoch, clock, how, spot };
        // Scratch memory is another block's, later.
        let now = Now { thread, when, blocks: if in_scratch { (block, 1) } else { *numbers } };
        let mut found = [None; 2];
        let (mut at, end) = (address, address.saturating_add(bytes));
        while at < end {
            let part = Shadow::in_page(at, end - at);
            let Some(page) = shadow.page(at, part) else { return };
            for cell in page.cells(at, part) {
                if let Some([write, other]) = now.meet(page, cell, writes) {
                    found = [found[0].or(write), found[1].or(other)];
                }
            }
            at += part;
        }
        for race in found.into_iter().flatten() {
            let same = race.was_write && writes && bits & AccessBits::ATOMIC == 0 && before() == told.value;
            self.found_race(who, (spot, told), race, same);
        }
    }
}

/// Whether it is the number of a value that is only copied.
const fn is_copied(copy: u32) -> bool {
    copy != 0 && copy != HostChecks::FOLLOWED
}

/// What an access makes of bytes that it may write: which of those that it uses nobody has written, and how many more there
/// are of these than before.
#[inline]
fn through(memory: &Bytes, copies: &mut Vec<(u32, u8)>, told: Told, bytes: u64) -> (u8, i32) {
    let Told { address, bits, copy, .. } = told;
    let is_copied = is_copied(copy);
    let reads = bits & AccessBits::READS != 0;
    let unwritten = if reads { memory.read(address, bytes) } else { 0 };
    let mut more = 0;
    if bits & AccessBits::WRITES != 0 {
        let carried = if is_copied { copies.iter().find(|(known, _)| *known == copy) } else { None };
        let after = carried.map_or(0, |(_, unwritten)| *unwritten);
        let before = memory.write(address, bytes, after);
        more = after.count_ones().cast_signed() - before.count_ones().cast_signed();
    } else if is_copied {
        match copies.iter_mut().find(|(known, _)| *known == copy) {
            Some((_, known)) => *known = unwritten,
            None if unwritten != 0 => copies.push((copy, unwritten)),
            None => {}
        }
    }
    (if is_copied { 0 } else { unwritten }, more)
}

/// Whether some of the ranges has a byte of these.
fn meets(ranges: &BTreeMap<u64, u64>, start: u64, bytes: u64) -> bool {
    let before = ranges.range(..start.saturating_add(bytes)).next_back();
    before.is_some_and(|(&at, &len)| at.saturating_add(len) > start)
}
