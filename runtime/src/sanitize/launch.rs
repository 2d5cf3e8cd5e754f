//! One launch, and what it is told.

use std::sync::Arc;

use weft_artifact::{AccessBits, EventKind, HostChecks, Site, SiteKind, Sites, Tools};

use super::{
    argument::Argument,
    clock::{Bad, Released, Step, Thread},
    finding::{Finding, Findings, Place, between, triple},
    meet::Meeting,
    memory::{self, Bytes},
    races::{Now, Race},
    shadow::{ATOMIC, ByAddress, OF_BLOCK, STEP, Shadow, When},
};

/// So far from [`HostChecks::NOWHERE`] lies what an index out of bounds led to.
const NOWHERE_ROOM: u64 = 1 << 61;

/// The extents of a launch.
#[derive(Clone, Copy, Debug, Default)]
pub struct Shape {
    /// `gridDim`.
    pub grid: [u32; 3],
    /// `blockDim`.
    pub block: [u32; 3],
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
    /// The number of the value that is copied; 0 for none.
    pub copy: u32,
}

/// What is to become of an access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It goes where it would.
    Goes,
    /// It must touch no memory of the program's.
    Nowhere,
}

/// A block that lives.
#[derive(Debug, Default)]
pub(super) struct Block {
    /// Its number; `None` if the slot is free.
    number: Option<u64>,
    /// Barriers that it has passed.
    pub(super) epoch: u32,
    pub(super) threads: Vec<Thread>,
    /// Its scratch memory.
    scratch: Option<Bytes>,
    start: u64,
    len: u64,
    /// Where dynamic shared memory begins in it.
    dynamic: u64,
}

/// What is known of a launch.
#[derive(Debug)]
pub struct Launch {
    sites: Arc<Sites>,
    pub(super) kernel: String,
    /// The kernel's end, as a place.
    shape: Shape,
    arguments: Vec<Argument>,
    pub(super) blocks: Vec<Block>,
    pub(super) shadow: Shadow,
    released: ByAddress<Released>,
    /// A thread has released something.
    orders: bool,
    memory: Vec<Arc<Bytes>>,
    pub(super) findings: Findings,
    /// Goes on whenever something is not as it was.
    pub(super) changes: u64,
    /// What atomic steps last saw.
    seen: ByAddress<u64>,
}

impl Launch {
    /// A launch that begins.
    pub fn new(sites: Arc<Sites>, kernel: &str, shape: Shape, arguments: Vec<Argument>) -> Self {
        Self {
            sites,
            kernel: kernel.to_owned(),
            shape,
            arguments,
            blocks: Vec::new(),
            shadow: Shadow::default(),
            released: ByAddress::default(),
            orders: false,
            memory: memory::now(),
            findings: Findings::default(),
            changes: 0,
            seen: ByAddress::default(),
        }
    }

    /// A block begins in a piece of scratch memory, in which dynamic shared memory begins at `dynamic`; gives its slot.
    pub fn begin(&mut self, number: u64, scratch: u64, bytes: u64, dynamic: u64) -> usize {
        self.changes += 1;
        let n_threads = self.shape.block.iter().map(|&extent| extent as usize).product();
        let threads = (0..n_threads).map(|_| Thread { clock: 1, ..Thread::default() }).collect();
        self.shadow.forget(scratch, bytes);
        let block = Block {
            number: Some(number),
            epoch: 0,
            threads,
            scratch: self.has(Tools::INITCHECK).then(|| Bytes::unwritten(scratch, bytes)),
            start: scratch,
            len: bytes,
            dynamic,
        };
        match self.blocks.iter_mut().enumerate().find(|(_, block)| block.number.is_none()) {
            Some((slot, free)) => {
                *free = block;
                slot
            }
            None => {
                self.blocks.push(block);
                self.blocks.len() - 1
            }
        }
    }

    /// A block has ended.
    pub fn end(&mut self, slot: usize) {
        self.changes += 1;
        if let Some(block) = self.blocks.get_mut(slot) {
            *block = Block::default();
        }
    }

    /// A thread lets others go on, in a loop: one that looks at no memory gets on by itself.
    pub fn paused(&mut self, who: Who) {
        let Some(thread) = self.thread(who) else { return };
        if std::mem::take(&mut thread.since) == 0 {
            self.changes += 1;
        }
    }

    /// How often something has changed that a thread may wait for.
    pub fn changes(&self) -> u64 {
        self.changes
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
        let Some(thread) = self.thread(who) else { return };
        match kind & 0xff {
            EventKind::BOUNDS => {
                let (index, extent) = (a.cast_signed(), b.cast_signed());
                thread.bad = Some(Bad { site, axis: kind >> 8, index, extent });
            }
            EventKind::FENCE => {
                thread.fence(number as u32, who.thread as u16, a == 1);
                self.orders = true;
            }
            EventKind::LOCAL => {
                thread.locals.retain(|local| !local.meets(a, b));
                if tools.has(Tools::INITCHECK) {
                    thread.locals.push(Bytes::unwritten(a, b));
                }
            }
            EventKind::MEETS | EventKind::LANES => {
                let mask = a as u32;
                let how =
                    if kind == EventKind::LANES { (b as u8, (b >> 8) as u8, (b >> 16) as u32) } else { (0, 0, 32) };
                thread.meeting = Meeting { site: Some(site), mask, how };
                let is_of_warp = self.site(site).is_some_and(|site| site.kind.is_of_warp());
                if is_of_warp && mask >> (who.thread % 32) & 1 == 0 {
                    self.found_not_in_mask(who, site, mask);
                }
            }
            EventKind::RETURNS => thread.returned = true,
            _ => {}
        }
    }

    fn thread(&mut self, who: Who) -> Option<&mut Thread> {
        self.blocks.get_mut(who.slot)?.threads.get_mut(who.thread)
    }

    fn number(&self, slot: usize) -> u64 {
        self.blocks.get(slot).and_then(|block| block.number).unwrap_or(0)
    }

    /// An access; `now` reads what lies there.
    pub fn access(&mut self, who: Who, told: Told, now: impl FnOnce() -> u64) -> Verdict {
        let Told { site, address, bits, value, .. } = told;
        let bytes = u64::from(bits & AccessBits::SIZE);
        if address.abs_diff(HostChecks::NOWHERE) < NOWHERE_ROOM {
            self.found_bounds(who, site);
            return Verdict::Nowhere;
        }
        let Some(block) = self.blocks.get(who.slot) else { return Verdict::Goes };
        let in_scratch = address.checked_sub(block.start).filter(|offset| *offset < block.len);
        if let Some(offset) = in_scratch
            && offset < block.dynamic
            && self
                .sites
                .shared
                .iter()
                .any(|shared| !shared.is_program && offset.wrapping_sub(shared.offset) < shared.bytes)
        {
            return Verdict::Goes;
        }
        if bits & AccessBits::NATURAL != 0 && !address.is_multiple_of(bytes.max(1)) && self.has(Tools::MEMCHECK) {
            self.found_misaligned(who, told, bytes);
        }
        if self.has(Tools::INITCHECK) {
            self.check_written(who, told, bytes, in_scratch.is_some());
        }
        if bits & AccessBits::LOCAL != 0 {
            return Verdict::Goes;
        }
        let before = now();
        if let Some(thread) = self.thread(who) {
            thread.last = Some(site);
            thread.since += 1;
            if !thread.recent.contains(&address) {
                thread.recent.rotate_right(1);
                thread.recent[0] = address;
                self.changes += 1;
            }
        }
        if bits & AccessBits::ATOMIC != 0 {
            self.changes += u64::from(self.seen.insert(address, before) != Some(before));
        } else if bits & AccessBits::WRITES != 0 {
            self.changes += u64::from(before != value);
        }
        if self.has(Tools::RACECHECK) {
            let same = bits & AccessBits::ATOMIC == 0 && before == value;
            self.check_races(who, told, bytes, same);
        }
        if bits & AccessBits::ATOMIC != 0 {
            self.order(who, address, bits);
        }
        Verdict::Goes
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
        let Some(block) = self.blocks.get_mut(who.slot) else { return };
        let number = (block.number.unwrap_or(0) as u32, who.thread as u16);
        if let Some(thread) = block.threads.get_mut(who.thread) {
            self.released.entry(address).or_default().step(thread, number, step);
        }
    }

    fn check_written(&mut self, who: Who, told: Told, bytes: u64, in_scratch: bool) {
        let Told { site, address, bits, copy, .. } = told;
        let Some(block) = self.blocks.get_mut(who.slot) else { return };
        let Some(thread) = block.threads.get_mut(who.thread) else { return };
        let memory = if bits & AccessBits::LOCAL != 0 {
            thread.locals.iter().rev().find(|local| local.contains(address, bytes))
        } else if in_scratch {
            block.scratch.as_ref().filter(|scratch| scratch.contains(address, bytes))
        } else {
            memory::find(&self.memory, address, bytes).map(AsRef::as_ref)
        };
        let (mut unwritten, mut is_used) = (0, false);
        if bits & AccessBits::READS != 0 {
            unwritten = memory.map_or(0, |memory| memory.read(address, bytes));
            is_used = unwritten != 0 && copy == 0;
        }
        if bits & AccessBits::WRITES != 0 {
            let carried = if copy == 0 { None } else { thread.copies.iter().find(|(known, _)| *known == copy) };
            if let Some(memory) = memory {
                memory.write(address, bytes, carried.map_or(0, |(_, unwritten)| *unwritten));
            }
        } else if copy != 0 {
            match thread.copies.iter_mut().find(|(known, _)| *known == copy) {
                Some((_, known)) => *known = unwritten,
                None => thread.copies.push((copy, unwritten)),
            }
        }
        if is_used {
            self.found_unwritten(who, site, address);
        }
    }

    fn check_races(&mut self, who: Who, told: Told, bytes: u64, same: bool) {
        let Told { site, address, bits, .. } = told;
        let Some(block) = self.blocks.get(who.slot) else { return };
        let Some(thread) = block.threads.get(who.thread) else { return };
        let mut how = 0;
        if bits & AccessBits::ATOMIC != 0 {
            how |= ATOMIC;
            if bits & AccessBits::WRITES != 0 {
                how |= STEP;
            }
        }
        if bits & AccessBits::BLOCK_SCOPE != 0 {
            how |= OF_BLOCK;
        }
        let when = When {
            block: block.number.unwrap_or(0) as u32,
            thread: who.thread as u16,
            epoch: thread.epoch,
            clock: thread.clock,
            how,
            site,
        };
        let writes = bits & AccessBits::WRITES != 0;
        let now = Now { thread, when };
        let mut found = [None; 2];
        let (mut at, end) = (address, address.saturating_add(bytes));
        while at < end {
            let part = Shadow::in_page(at, end - at);
            for cell in self.shadow.cells(at, part) {
                let [write, other] = now.meet(cell, writes);
                found = [found[0].or(write), found[1].or(other)];
            }
            at += part;
        }
        for race in found.into_iter().flatten() {
            self.found_race(who, told, race, same && race.was_write && writes);
        }
    }

    /// `threadIdx` and `blockIdx`.
    pub(super) fn coordinates(&self, who: Who) -> ([u32; 3], [u32; 3]) {
        (split(who.thread as u64, self.shape.block), split(self.number(who.slot), self.shape.grid))
    }

    /// A thread at a site, for a finding.
    pub(super) fn place(&self, who: Who, site: u32, address: Option<u64>) -> Option<Place> {
        let (thread, block) = self.coordinates(who);
        self.place_of(site, (thread, block), address.and_then(|address| self.element(who.slot, address)))
    }

    fn place_of(
        &self,
        site: u32,
        (thread, block): ([u32; 3], [u32; 3]),
        element: Option<(String, Vec<i64>)>,
    ) -> Option<Place> {
        let mut site = self.site(site)?.clone();
        let what = site.kind.name();
        let (name, index) = element.unzip();
        if site.array.is_empty() {
            site.array = name.unwrap_or_default();
        }
        Some(Place { site, what, index, thread, block })
    }

    /// The kernel's end, as a place; nothing if no site is in the kernel.
    pub(super) fn end_site(&self) -> Option<Site> {
        self.sites.sites.iter().rev().find(|site| site.kind == SiteKind::End).cloned()
    }

    /// Which element of which array an address is.
    fn element(&self, slot: usize, address: u64) -> Option<(String, Vec<i64>)> {
        let block = self.blocks.get(slot)?;
        if let Some(offset) = address.checked_sub(block.start).filter(|offset| *offset < block.len) {
            let shared = self.sites.shared.iter().find(|shared| offset.wrapping_sub(shared.offset) < shared.bytes);
            return Some(match shared {
                Some(shared) => {
                    (shared.name.clone(), vec![((offset - shared.offset) / shared.item.max(1)).cast_signed()])
                }
                None => return None,
            });
        }
        self.arguments.iter().find_map(|argument| Some((argument.name.clone(), argument.index(address)?)))
    }

    fn found_bounds(&mut self, who: Who, site: u32) {
        if !self.has(Tools::MEMCHECK) {
            return;
        }
        let Some(bad) = self.thread(who).and_then(|thread| thread.bad) else { return };
        let Some(mut place) = self.place(who, site, None) else { return };
        let mut places = Vec::new();
        let Some(index_site) = self.site(bad.site).cloned() else { return };
        let array =
            if index_site.array.is_empty() { "the array".to_owned() } else { format!("`{}`", index_site.array) };
        let message = format!(
            "index {} is out of bounds for axis {} of {array}, which has {}",
            bad.index,
            bad.axis,
            if bad.extent == 1 { "1 element".to_owned() } else { format!("{} elements", bad.extent) },
        );
        let mut index = vec![bad.index];
        if (index_site.line, index_site.column) != (place.site.line, place.site.column) {
            let (thread, block) = (place.thread, place.block);
            places.push(Place {
                site: index_site.clone(),
                what: "index",
                index: Some(std::mem::take(&mut index)),
                thread,
                block,
            });
        }
        place.index = Some(index).filter(|index| !index.is_empty());
        places.insert(0, place);
        let kernel = self.kernel.clone();
        self.findings.add("out of bounds", &[&places[0].site.clone(), &index_site], || Finding {
            tool: "memcheck",
            kind: "out of bounds",
            kernel,
            message,
            help: format!("keep the index below {}: guard the access by a condition", bad.extent),
            count: 1,
            accesses: places,
        });
    }

    fn found_misaligned(&mut self, who: Who, told: Told, bytes: u64) {
        let Some(place) = self.place(who, told.site, Some(told.address)) else { return };
        let kernel = self.kernel.clone();
        let message = format!("an access of {bytes} bytes is not at a multiple of {bytes}");
        self.findings.add("misaligned", &[&place.site.clone()], || Finding {
            tool: "memcheck",
            kind: "misaligned",
            kernel,
            message,
            help: "let the array begin at a multiple of its elements' size".to_owned(),
            count: 1,
            accesses: vec![place],
        });
    }

    fn found_unwritten(&mut self, who: Who, site: u32, address: u64) {
        let Some(place) = self.place(who, site, Some(address)) else { return };
        let kernel = self.kernel.clone();
        let message = format!("{} is used before anything is written there", element_name(&place));
        self.findings.add("uninitialized", &[&place.site.clone()], || Finding {
            tool: "initcheck",
            kind: "uninitialized",
            kernel,
            message,
            help: "write it first: memory that is allocated holds whatever was there".to_owned(),
            count: 1,
            accesses: vec![place],
        });
    }

    fn found_race(&mut self, who: Who, told: Told, race: Race, same: bool) {
        let Race { other, .. } = race;
        let Some(place) = self.place(who, told.site, Some(told.address)) else { return };
        let element = self.element(who.slot, told.address);
        let at = (split(u64::from(other.thread), self.shape.block), split(u64::from(other.block), self.shape.grid));
        let Some(mut earlier) = self.place_of(other.site, at, element) else { return };
        earlier.what = if race.was_write && earlier.site.kind == SiteKind::Read { "write" } else { earlier.what };
        let within_block = u64::from(other.block) == self.number(who.slot) & u64::from(u32::MAX);
        let (kind, class, help) = if same {
            ("same value written", "same value", "let one of the threads write it".to_owned())
        } else if !within_block {
            let help = "blocks run at any time: use an atomic step, or write in one launch and read in the next";
            ("race between blocks", "race", help.to_owned())
        } else if usize::from(other.thread) / 32 == who.thread / 32 {
            let where_ = between(&earlier.site, &place.site);
            let help = format!("a `cuda.syncwarp()` {where_} would order them; shuffles and votes order no memory");
            ("race within a warp", "race", help)
        } else {
            let where_ = between(&earlier.site, &place.site);
            ("race within a block", "race", format!("a `cuda.syncthreads()` {where_} would order them"))
        };
        let both_atomic = place.site.kind == SiteKind::Atomic && earlier.site.kind == SiteKind::Atomic;
        let help = if both_atomic {
            "a step with `scope=\"block\"` is atomic among the threads of its block only: use the device's scope"
                .to_owned()
        } else {
            help
        };
        let message = format!(
            "{}: {} by thread {} of block {} and {} by thread {} of block {}, and nothing orders them",
            element_name(&place),
            done(earlier.what),
            triple(earlier.thread),
            triple(earlier.block),
            done(place.what),
            triple(place.thread),
            triple(place.block),
        );
        let kernel = self.kernel.clone();
        let sites = [earlier.site.clone(), place.site.clone()];
        self.findings.add(class, &[&sites[0], &sites[1]], || Finding {
            tool: "racecheck",
            kind,
            kernel,
            message,
            help,
            count: 1,
            accesses: vec![place, earlier],
        });
    }
}

/// `a[1, 2]`.
fn element_name(place: &Place) -> String {
    let name = if place.site.array.is_empty() { "an element" } else { &place.site.array };
    match &place.index {
        Some(index) if !index.is_empty() => {
            let index: Vec<String> = index.iter().map(ToString::to_string).collect();
            format!("`{name}[{}]`", index.join(", "))
        }
        Some(_) | None if place.site.array.is_empty() => name.to_owned(),
        Some(_) | None => format!("an element of `{name}`"),
    }
}

/// What was done to an element.
fn done(what: &str) -> &str {
    match what {
        "read" => "read",
        "write" => "written",
        "atomic" => "updated atomically",
        other => other,
    }
}

/// The place of a linear number, in which `x` runs fastest.
fn split(number: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
