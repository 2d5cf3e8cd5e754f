//! A launch in parts: a system thread runs each part and reports its accesses separately.
//!
//! Each part has shadow memory of its own, so that none waits for another. In the end the parts are compared. If two
//! have accessed the same bytes, and not all accesses were reads, or all were atomic operations, there may be a race.
//! If so, or if a part has a finding of its own, all is undone, and one thread runs the launch again: so the findings,
//! and how they are reported, never depend on which thread ran which blocks.
//!
//! This requires that memory is the kernel's only effect, and that nothing orders its blocks: kernels whose threads are
//! work-item loops.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, ThreadId},
};

use weft_artifact::{Sites, Tools};

use super::{
    argument::Argument,
    claims::{ClaimTable, Claims, Read, SHARDS},
    kinds::Kinds,
    launch::{Launch, Plan, Shape},
    memory,
    page::PAGE,
};

/// A launch that several system threads run in parts.
#[derive(Debug)]
pub struct LaunchParts {
    plan: Plan,
    table: &'static ClaimTable,
    read: Read,
    caller: ThreadId,
    /// By thread.
    running: Mutex<HashMap<ThreadId, Launch>>,
    _guard: MutexGuard<'static, ()>,
}

impl LaunchParts {
    /// Whether a launch can be run in parts, as far as that is known before it is.
    pub fn fit(sites: &Sites, shape: &Shape) -> bool {
        // The race check detects whether bytes were written by another block, before or after.
        shape.loops && sites.tools.has(Tools::RACECHECK)
    }

    /// A launch that begins; `None` if another one is run in parts now. `read` reads the program's memory.
    pub fn begin(sites: Arc<Sites>, kernel: &str, shape: Shape, arguments: Vec<Argument>, read: Read) -> Option<Self> {
        let (table, guard) = ClaimTable::begin()?;
        Some(Self {
            plan: Plan::new(sites, kernel, shape, arguments),
            table,
            read,
            caller: thread::current().id(),
            running: Mutex::default(),
            _guard: guard,
        })
    }

    /// Whether there is no use in going on.
    pub fn is_over(&self) -> bool {
        self.table.is_over()
    }

    /// Whether this is the thread that launches.
    pub fn is_caller(&self) -> bool {
        thread::current().id() == self.caller
    }

    /// Calls `run` with this thread's part of the launch, which records the accesses of the blocks that `run` runs.
    pub fn with<R>(&self, run: impl FnOnce(&mut Launch) -> R) -> R {
        self.with_part(thread::current().id(), run)
    }

    pub(super) fn with_part<R>(&self, thread: ThreadId, run: impl FnOnce(&mut Launch) -> R) -> R {
        let known = self.running.lock().unwrap_or_else(PoisonError::into_inner).remove(&thread);
        let mut part = known.unwrap_or_else(|| {
            let claims = Claims::new(self.table, self.plan.numbers.launch, self.read);
            Launch::of(self.plan.clone(), Some(claims))
        });
        let ran = run(&mut part);
        if part.has_found() || part.orders {
            self.table.end();
        }
        self.running.lock().unwrap_or_else(PoisonError::into_inner).insert(thread, part);
        ran
    }

    /// Whether it is sure that nothing is to be found. `in_parallel` calls [`Overlaps::look`] with each number below that which it
    /// is given; `false` if it could not.
    pub fn is_clean(&mut self, in_parallel: impl FnOnce(&Overlaps<'_>, u64) -> bool) -> bool {
        if self.table.is_over() {
            return false;
        }
        if !self.table.has_shared() {
            return true;
        }
        let parts = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        let overlaps = Overlaps::of(parts, self.table);
        in_parallel(&overlaps, SHARDS) && !overlaps.found.load(Ordering::Relaxed)
    }

    /// The parts' state is no longer needed; `in_parallel` calls [`FinishedParts::leave`] with each number below the
    /// given one.
    pub fn leave(self, in_parallel: impl FnOnce(&FinishedParts, u64)) {
        let parts = self.running.into_inner().unwrap_or_else(PoisonError::into_inner);
        let leaving = FinishedParts(parts.into_values().map(|part| Mutex::new(Some(part))).collect());
        in_parallel(&leaving, leaving.0.len() as u64);
    }

    /// Undoes the stores of all parts. `write` writes bytes of the program's memory.
    pub fn undo(&mut self, write: impl Fn(u64, &[u8])) {
        let parts = self.running.get_mut().unwrap_or_else(PoisonError::into_inner);
        let overlaps = Overlaps::of(parts, self.table);
        for before in parts.values().filter_map(|part| part.claims.as_ref()).flat_map(Claims::before) {
            let start = before.page * PAGE;
            let mut met = Kinds::none();
            for part in parts.values() {
                overlaps.add(part, before.page, &mut met);
            }
            let mut at = 0;
            while let Some(range) = met.next_range(at) {
                write(start + range.start as u64, before.bytes.get(range.clone()).unwrap_or_default());
                if let Some(bits) = &before.unwritten {
                    for byte in range.clone() {
                        let bit = bits.get(byte / 8).map_or(0, |bits| bits >> (byte % 8) & 1);
                        memory::set_bit(&self.plan.memory, start + byte as u64, bit);
                    }
                }
                at = range.end;
            }
        }
    }
}

/// Finished parts of a launch.
#[derive(Debug)]
pub struct FinishedParts(Vec<Mutex<Option<Launch>>>);

impl FinishedParts {
    /// Lets one of them go.
    pub fn leave(&self, number: u64) {
        let part = self.0.get(number as usize).map(|part| part.lock().unwrap_or_else(PoisonError::into_inner).take());
        drop(part);
    }
}

/// Looks whether parts have met the same bytes.
#[derive(Debug)]
pub struct Overlaps<'a> {
    /// By number.
    parts: Vec<Option<&'a Launch>>,
    table: &'static ClaimTable,
    launch: u32,
    blocks: (u32, u32),
    found: AtomicBool,
}

impl<'a> Overlaps<'a> {
    fn of(parts: &'a HashMap<ThreadId, Launch>, table: &'static ClaimTable) -> Self {
        let mut by_number = Vec::new();
        let (mut launch, mut blocks) = (0, (0, 0));
        for part in parts.values() {
            let number = part.claims.as_ref().map_or(0, |claims| claims.number);
            if by_number.len() <= number {
                by_number.resize(number + 1, None);
            }
            by_number[number] = Some(part);
            (launch, blocks) = (part.plan.numbers.launch, part.plan.numbers.blocks);
        }
        Self { parts: by_number, table, launch, blocks, found: AtomicBool::new(false) }
    }

    /// Adds the accesses of a part to a page.
    fn add(&self, part: &Launch, page: u64, kinds: &mut Kinds) {
        if let Some(page) = part.shadow.known(page).filter(|page| page.claimed == self.launch) {
            page.add_kinds(self.blocks, kinds);
        }
    }

    /// Inspects some of the pages.
    pub fn look(&self, number: u64) {
        self.table.each_shared(number, |page, parts| {
            if self.found.load(Ordering::Relaxed) {
                return;
            }
            let mut all = Kinds::none();
            for part in parts.iter().filter_map(|&part| *self.parts.get(part)?) {
                let mut own = Kinds::none();
                self.add(part, page, &mut own);
                if all.conflict_with(&own) {
                    self.found.store(true, Ordering::Relaxed);
                    return;
                }
                all.join(&own);
            }
        });
    }
}
