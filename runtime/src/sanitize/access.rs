//! Accesses: what is to become of each, and what is remembered of it.

use std::collections::BTreeMap;

use weft_artifact::{AccessBits, HostChecks, Tools};

use super::{
    clock::Step,
    launch::{HAS_FREED, Launch, NOWHERE_ROOM, Told, Verdict, Who},
    memory::{self, Bytes},
    races::Now,
    shadow::{ATOMIC, OF_BLOCK, PAGE, STEP, Shadow, Spot, When},
};

impl Launch {
    /// An access; `now` reads what lies there.
    #[inline]
    pub fn access(&mut self, who: Who, told: Told, now: impl Fn() -> u64) -> Verdict {
        if self.is_plain(who, told) { Verdict::Goes } else { self.look_at(who, told, now) }
    }

    /// Whether it is one of those that most are, and remembers it then: what is accessed is written and was accessed by nobody
    /// else since what orders the two. Nothing is done about any other.
    #[inline]
    fn is_plain(&mut self, who: Who, told: Told) -> bool {
        const OTHER: u32 = AccessBits::LOCAL | AccessBits::ATOMIC;
        let Told { site, address, bits, copy, .. } = told;
        let bytes = bits & AccessBits::SIZE;
        let is_odd = bits & OTHER != 0 || !bytes.is_power_of_two() || address & u64::from(bytes - 1) != 0;
        if is_odd || !self.is_quick {
            return false;
        }
        let Self { blocks, shadow, numbers, has_cells, .. } = self;
        let Some(block) = blocks.get_mut(who.slot) else { return false };
        let Some(thread) = block.threads.get_mut(who.thread) else { return false };
        let launch = shadow.launch;
        let Some(page) = shadow.near(address) else { return false };
        let writes = bits & AccessBits::WRITES != 0;
        let in_scratch = address.wrapping_sub(block.start) < block.len;
        if !thread.copies.is_empty() && is_copied(copy) {
            return false;
        }
        if in_scratch {
            let is_written = block.scratch.as_ref().is_none_or(|scratch| scratch.is_written(address, u64::from(bytes)));
            if *has_cells || !is_written {
                return false;
            }
        } else if page.unwritten != (launch, 0) {
            return false;
        }
        let Some(cell) = page.cell(address, bytes) else { return false };
        let number = block.id;
        let spot = Spot::new(site, thread.depth.chain);
        let (epoch, clock) = (thread.epoch, thread.clock);
        let when = When { block: number, thread: who.thread as u32, epoch, clock, how: 0, spot };
        let now = Now { thread, when, blocks: if in_scratch { (number, 1) } else { *numbers } };
        if !(if writes { now.writes_plainly(page, cell) } else { now.reads_plainly(page, cell) }) {
            return false;
        }
        thread.last = Some(spot);
        thread.has_looked = true;
        true
    }

    /// An access of any kind.
    #[inline(never)]
    fn look_at(&mut self, who: Who, told: Told, now: impl Fn() -> u64) -> Verdict {
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
