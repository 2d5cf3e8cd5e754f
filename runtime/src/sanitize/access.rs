//! Accesses: the sanitizer's decision about each, and its record in the shadow memory.

use std::sync::Arc;

use weft_artifact::{AccessBits, HostChecks, Tools};

use super::{
    clock::{Copied, Step},
    launch::{AccessRecord, HAS_FREED, Launch, LiveThread, NOWHERE_ROOM, Plan, Verdict},
    memory::{self, Bytes, CopiedBy},
    page::PAGE,
    races::Now,
    record::{ATOMIC, OF_BLOCK, STEP, Spot, When},
    shadow::Shadow,
};

impl Launch {
    /// An access of any kind; `now` reads the current value there. Compiled code handles most accesses by itself in the
    /// same way.
    pub fn access(&mut self, caller: LiveThread, record: AccessRecord, now: impl Fn() -> u64) -> Verdict {
        self.wake(caller);
        if self.claims.is_some() && !self.claim(caller, record) {
            return Verdict::Nowhere;
        }
        let verdict = self.take_access(caller, record, now);
        self.show_changes(caller);
        verdict
    }

    #[inline]
    fn take_access(&mut self, caller: LiveThread, record: AccessRecord, now: impl Fn() -> u64) -> Verdict {
        let AccessRecord { site, address, bits, .. } = record;
        let bytes = u64::from(bits & AccessBits::SIZE);
        let tools = self.plan.sites.tools;
        if address.abs_diff(HostChecks::NOWHERE) < NOWHERE_ROOM {
            self.found_bounds(caller, site);
            return Verdict::Nowhere;
        }
        if bits & AccessBits::NATURAL != 0 && address & (bytes.wrapping_sub(1)) != 0 && tools.has(Tools::MEMCHECK) {
            self.found_misaligned(caller, record, bytes);
        }
        let owner = self.owner(caller.slot, address);
        let Some(block) = self.blocks.get_mut(caller.slot) else { return Verdict::Goes };
        let Some(thread) = block.threads.get_mut(caller.thread) else { return Verdict::Goes };
        let spot = Spot::new(site, thread.depth.chain);
        let mut verdict = Verdict::Goes;
        if bits & AccessBits::LOCAL != 0 {
            if tools.has(Tools::INITCHECK)
                && let Some(memory) = thread.locals.iter().rev().find(|local| local.contains(address, bytes))
            {
                let through = through(memory, &mut thread.copies, (spot, record), bytes);
                thread.seen.copies = thread.copies.len() as u32;
                if through.used != 0 {
                    verdict = self.found_read(caller, spot, record);
                }
            }
            return verdict;
        }
        if owner != caller.slot {
            return self.access_remote(caller, owner, (spot, record), now);
        }
        let begun = || block.phases.find((address, bytes), caller.slot, thread, &self.released);
        let in_flight = block.in_flight.find(address, bytes).map(|copy| (copy, caller.slot));
        if let Some(copy) = in_flight.or_else(begun) {
            self.found_in_flight(caller, (spot, record), copy);
            return Verdict::Goes;
        }
        if let Some(copy) = self.stores.find((address, bytes), bits & AccessBits::WRITES != 0) {
            self.found_in_flight(caller, (spot, record), copy);
            return Verdict::Goes;
        }
        let in_scratch = address.checked_sub(block.start).filter(|offset| *offset < block.len);
        let is_cell = |offset: u64| {
            let mut shared = self.plan.sites.shared.iter();
            shared.any(|shared| !shared.is_program && offset.wrapping_sub(shared.offset) < shared.bytes)
        };
        if self.has_cells
            && let Some(offset) = in_scratch
            && offset < block.dynamic
            && is_cell(offset)
        {
            return verdict;
        }
        thread.seen.last = spot.bits().saturating_add(1);
        let clean = (self.shadow.launch, 0);
        let Some(page) = self.shadow.page(address, bytes) else { return verdict };
        if in_scratch.is_some() {
            page.bits = block.scratch.as_ref().and_then(|scratch| scratch.page(address)).unwrap_or(0);
            if let Some(memory) = block.scratch.as_ref().filter(|_| tools.has(Tools::INITCHECK))
                && memory.contains(address, bytes)
            {
                let through = through(memory, &mut thread.copies, (spot, record), bytes);
                thread.seen.copies = thread.copies.len() as u32;
                if through.carried.is_some() {
                    page.carried = clean.0;
                }
                if through.used != 0 {
                    verdict = self.found_read(caller, spot, record);
                }
            }
        } else if page.unwritten != clean || (!thread.copies.is_empty() && is_copied(record.copy)) {
            verdict = self.check_memory(caller, spot, record, bytes);
            if verdict == Verdict::Nowhere {
                return verdict;
            }
        }
        if !self.plan.shape.loops {
            self.record_poll(caller, record, &now);
        }
        if tools.has(Tools::RACECHECK) {
            self.check_races(caller, spot, record, (bytes, in_scratch.is_some()), now);
        }
        if bits & AccessBits::ATOMIC != 0 {
            self.order(caller, address, bits);
        }
        self.show(caller, address, in_scratch.is_some());
        verdict
    }

    /// A part of the launch may meet a page for the first time; `false` if it must not.
    fn claim(&mut self, caller: LiveThread, record: AccessRecord) -> bool {
        let Self { plan, shadow, claims: Some(claims), blocks, .. } = self else { return true };
        let AccessRecord { address, bits, .. } = record;
        let is_scratch = blocks.get(caller.slot).is_some_and(|block| address.wrapping_sub(block.start) < block.len);
        if is_scratch || bits & AccessBits::LOCAL != 0 || address.abs_diff(HostChecks::NOWHERE) < NOWHERE_ROOM {
            return true;
        }
        let (mut at, end) = (address, address.saturating_add(u64::from(bits & AccessBits::SIZE)));
        while at < end {
            let part = Shadow::in_page(at, end - at);
            let launch = shadow.launch;
            if let Some(page) = shadow.page(at, part)
                && page.claimed != launch
            {
                match claims.claim(at / PAGE, plan) {
                    None => return false,
                    Some(is_shared) => {
                        page.claimed = launch;
                        if is_shared {
                            claims.look_at_room(|| shadow.page_size());
                        }
                    }
                }
            }
            at += part;
        }
        true
    }

    /// Lets compiled code inspect the page of an address by itself, if the page has no other state than compiled code
    /// checks.
    fn show(&mut self, caller: LiveThread, address: u64, in_scratch: bool) {
        let launch = self.shadow.launch;
        let is_copied = self
            .blocks
            .get(caller.slot)
            .is_some_and(|block| block.in_flight.is_in_page(address) || block.phases.is_in_page(address))
            || self.stores.is_in_page(address);
        let Some(page) = self.shadow.page(address, 1) else { return };
        let is_known = page.unwritten.0 == launch && (page.unwritten.1 == 0 || page.bits != 0);
        let is_checked =
            (in_scratch || (is_known && page.unwritten.1 & HAS_FREED == 0)) && page.carried != launch && !is_copied;
        self.shadow.show(address, is_checked);
    }

    /// The ordering effect of an atomic operation.
    pub(super) fn order(&mut self, caller: LiveThread, address: u64, bits: u32) {
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
        let number = (self.number(caller.slot), caller.thread as u16);
        let Self { blocks, released, .. } = self;
        if let Some(thread) = blocks.get_mut(caller.slot).and_then(|block| block.threads.get_mut(caller.thread)) {
            thread.step(released, address, number, step);
            thread.see(number.0, caller.thread);
        }
    }

    /// An access to device memory in a page that has bytes which were freed, or may have bytes which were never
    /// written.
    #[cold]
    fn check_memory(&mut self, caller: LiveThread, spot: Spot, record: AccessRecord, bytes: u64) -> Verdict {
        let launch = self.shadow.launch;
        let start = record.address / PAGE * PAGE;
        let Self { plan: Plan { memory, freed, sites, .. }, blocks, shadow, .. } = self;
        let Some(page) = shadow.page(record.address, bytes) else { return Verdict::Goes };
        if page.unwritten.0 != launch {
            let has_freed = sites.tools.has(Tools::MEMCHECK) && memory::has(freed, start, PAGE);
            let unwritten = if sites.tools.has(Tools::INITCHECK) { memory::unwritten(memory, start, PAGE) } else { 0 };
            page.unwritten = (launch, unwritten | if has_freed { HAS_FREED } else { 0 });
            page.bits = if unwritten > 0 { memory::page(memory, start).unwrap_or(0) } else { 0 };
        }
        if page.unwritten.1 & HAS_FREED != 0 && memory::has(freed, record.address, bytes) {
            self.found_freed(caller, spot, record.address);
            return Verdict::Nowhere;
        }
        if !sites.tools.has(Tools::INITCHECK) {
            return Verdict::Goes;
        }
        let crosses = Shadow::in_page(record.address, bytes) != bytes;
        if page.unwritten.1 & !HAS_FREED == 0 && !is_copied(record.copy) && !crosses {
            return Verdict::Goes;
        }
        let Some(thread) = blocks.get_mut(caller.slot).and_then(|block| block.threads.get_mut(caller.thread)) else {
            return Verdict::Goes;
        };
        let writes = record.bits & AccessBits::WRITES != 0;
        let Some(memory) = memory::find(memory, record.address, bytes) else {
            // Memory of the host, or that was allocated before anything was sanitized.
            if let Some(copied) = copied_unwritten(&thread.copies, record.copy).filter(|_| writes) {
                self.found_copied(caller, (spot, record.address), copied);
            }
            return Verdict::Goes;
        };
        let memory = Arc::clone(memory);
        let through = through(&memory, &mut thread.copies, (spot, record), bytes);
        thread.seen.copies = thread.copies.len() as u32;
        if through.carried.is_some() {
            page.carried = launch;
        }
        let count = i64::from(page.unwritten.1 & !HAS_FREED) + i64::from(through.more);
        // An access that extends into the next page is not counted exactly: the page is inspected again.
        let count = if crosses { 1 } else { count.clamp(0, PAGE.cast_signed()) as u32 };
        page.unwritten.1 = page.unwritten.1 & HAS_FREED | count;
        if let Some(copied) = through.carried {
            if memory.is_of_host() {
                // Later writes there by the host are not known.
                memory.write(record.address, bytes, 0);
                self.found_copied(caller, (spot, record.address), copied);
            } else {
                let by = CopiedBy { launch, block: self.in_grid(self.number(caller.slot)) };
                memory.carry(record.address, (copied.unwritten, bytes as u32), by, || {
                    self.copied_finding(caller, (spot, record.address), copied)
                });
            }
        }
        if through.used == 0 { Verdict::Goes } else { self.found_read(caller, spot, record) }
    }

    /// A thread has read bytes that were never written: it uses them now, or may later.
    #[cold]
    pub(super) fn found_read(&mut self, caller: LiveThread, spot: Spot, record: AccessRecord) -> Verdict {
        if record.copy != HostChecks::FOLLOWED {
            self.found_unwritten(caller, spot, record.address);
            return Verdict::Goes;
        }
        let Some(thread) = self.thread(caller) else { return Verdict::Goes };
        let read = (spot, record.address);
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
    pub(super) fn check_races(
        &mut self,
        caller: LiveThread,
        spot: Spot,
        record: AccessRecord,
        (bytes, in_scratch): (u64, bool),
        before: impl Fn() -> u64,
    ) {
        let AccessRecord { address, bits, .. } = record;
        let (block, has_clusters) = (self.number(caller.slot), self.has_clusters);
        let Self { blocks, shadow, plan, released, .. } = self;
        let numbers = plan.numbers.blocks;
        let Some(thread) = blocks.get(caller.slot).and_then(|block| block.threads.get(caller.thread)) else { return };
        let writes = bits & AccessBits::WRITES != 0;
        let mut how = 0;
        if bits & AccessBits::ATOMIC != 0 {
            how =
                ATOMIC | if writes { STEP } else { 0 } | if bits & AccessBits::BLOCK_SCOPE != 0 { OF_BLOCK } else { 0 };
        }
        let (epoch, clock) = (thread.epoch, thread.clock);
        let when = When { block, thread: caller.thread as u32, epoch, clock, how, spot };
        // Scratch memory is another block's, later.
        let now = Now {
            thread,
            logs: released,
            when,
            blocks: if in_scratch && !has_clusters { (block, 1) } else { numbers },
            first: numbers.0,
        };
        let mut found = [None; 2];
        let (mut at, end) = (address, address.saturating_add(bytes));
        while at < end {
            let part = Shadow::in_page(at, end - at);
            let Some(page) = shadow.page(at, part) else { return };
            let mut cells = page.cells(at, part);
            while !cells.is_empty() {
                let alike = page.alike(cells.clone());
                if let Some([write, other]) = now.meet(page, alike.start, writes) {
                    found = [found[0].or(write), found[1].or(other)];
                }
                cells.start = alike.end;
                page.copy_first(alike);
            }
            if at != address {
                // Code may know cells that it has no more.
                shadow.forget_page(at);
            }
            at += part;
        }
        for race in found.into_iter().flatten() {
            let same = race.was_write && writes && bits & AccessBits::ATOMIC == 0 && before() == record.value;
            self.found_race(caller, (spot, record), race, same);
        }
    }
}

/// Whether it is the number of a value that is only copied.
const fn is_copied(copy: u32) -> bool {
    copy != 0 && copy != HostChecks::FOLLOWED
}

/// The effect of an access on bytes that it may write, a bit each.
pub(super) struct Through {
    /// They were never written, and are used.
    pub(super) used: u8,
    /// The stored value has bytes that were never written.
    carried: Option<Copied>,
    /// The change of the number of bytes that were never written.
    more: i32,
}

#[inline]
pub(super) fn through(
    memory: &Bytes,
    copies: &mut Vec<Copied>,
    (spot, record): (Spot, AccessRecord),
    bytes: u64,
) -> Through {
    let AccessRecord { address, bits, copy: number, .. } = record;
    let is_copied = is_copied(number);
    let reads = bits & AccessBits::READS != 0;
    let unwritten = if reads { memory.read(address, bytes) } else { 0 };
    let (mut more, mut carried) = (0, None);
    if bits & AccessBits::WRITES != 0 {
        carried = copied_unwritten(copies, number);
        let carried = carried.map_or(0, |copied| copied.unwritten);
        let before = memory.write(address, bytes, carried);
        more = carried.count_ones().cast_signed() - before.count_ones().cast_signed();
    } else if is_copied {
        let now = Copied { number, unwritten, spot, address };
        match copies.iter_mut().find(|known| known.number == number) {
            Some(known) => *known = now,
            None if unwritten != 0 => copies.push(now),
            None => {}
        }
    }
    Through { used: if is_copied { 0 } else { unwritten }, carried, more }
}

/// The value of a number, if it is a copied one with bytes that were never written.
fn copied_unwritten(copies: &[Copied], number: u32) -> Option<Copied> {
    let known = copies.iter().find(|known| is_copied(number) && known.number == number);
    known.copied().filter(|known| known.unwritten != 0)
}
