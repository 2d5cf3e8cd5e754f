//! Records which part of a launch accesses which page, where several system threads run one launch, and saves the
//! pages' previous contents.
//!
//! A part claims a page before it changes anything there. The first part that claims a page saves its contents, so that
//! all changes can be undone.

use std::{
    fmt,
    sync::{
        LazyLock, Mutex, MutexGuard, PoisonError,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
};

use weft_artifact::Tools;

use super::{launch::Plan, memory, page::PAGE, page_pool::shard_of, shadow::ByAddress};

/// The bytes of a page.
pub type Lines = [u8; PAGE as usize];

/// Reads a page of the program's memory at an address, which may be memory that the device has given out; `false` if it cannot.
pub type Read = fn(u64, bool, &mut Lines) -> bool;

/// The number of maps over which pages are distributed, to reduce lock contention.
pub(super) const SHARDS: u64 = 256;

/// The number of pages saved in one allocation.
const PIECE: usize = 32;

/// The limit of the memory for several parts' state, or [`MOST_PER_BYTE`].
const FREE: u64 = 64 << 20;

/// The limit of state bytes per byte of accessed memory. The saved contents are one more.
const MOST_PER_BYTE: u64 = 15;

/// The contents of a page before the launch.
pub(super) struct Before {
    /// Which page.
    pub(super) page: u64,
    pub(super) bytes: Lines,
    /// A bit for each byte that was never written; `None` if all were written.
    pub(super) unwritten: Option<Box<[u8; PAGE as usize / 8]>>,
}

impl fmt::Debug for Before {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Before").field("page", &self.page).finish_non_exhaustive()
    }
}

/// The parts that claimed a page.
#[derive(Debug, Default)]
struct Met {
    /// In which launch.
    launch: u32,
    /// The first.
    first: usize,
    others: Vec<usize>,
}

/// Some of the pages.
#[derive(Debug, Default)]
struct Shard {
    met: ByAddress<Met>,
    /// Those that several parts have met.
    shared: Vec<u64>,
}

/// The pages of the current launch.
#[derive(Debug)]
pub(super) struct ClaimTable {
    shards: Box<[Mutex<Shard>]>,
    /// How many pages were met.
    pages: AtomicU64,
    /// How often another part has met one of them.
    again: AtomicU64,
    /// There is no use in going on: something was found, or too much would have to be remembered.
    over: AtomicBool,
    n_parts: AtomicUsize,
}

static TABLE: LazyLock<ClaimTable> = LazyLock::new(|| ClaimTable {
    shards: (0..SHARDS).map(|_| Mutex::default()).collect(),
    pages: AtomicU64::new(0),
    again: AtomicU64::new(0),
    over: AtomicBool::new(false),
    n_parts: AtomicUsize::new(0),
});
static ACTIVE: Mutex<()> = Mutex::new(());

impl ClaimTable {
    /// The table, for one launch; `None` if another one has it.
    pub(super) fn begin() -> Option<(&'static Self, MutexGuard<'static, ()>)> {
        let guard = ACTIVE.try_lock().ok()?;
        let table = &*TABLE;
        for shard in &table.shards {
            shard.lock().unwrap_or_else(PoisonError::into_inner).shared.clear();
        }
        table.pages.store(0, Ordering::Relaxed);
        table.again.store(0, Ordering::Relaxed);
        table.over.store(false, Ordering::Relaxed);
        table.n_parts.store(0, Ordering::Relaxed);
        Some((table, guard))
    }

    fn shard(&self, number: u64) -> MutexGuard<'_, Shard> {
        self.shards[shard_of(number, self.shards.len())].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    pub(super) fn end(&self) {
        self.over.store(true, Ordering::Relaxed);
    }

    /// Whether a page was met by several parts.
    pub(super) fn has_shared(&self) -> bool {
        self.again.load(Ordering::Relaxed) > 0
    }

    /// Those pages of a shard that several parts have met, with the parts' numbers.
    pub(super) fn each_shared(&self, shard: u64, mut each: impl FnMut(u64, &[usize])) {
        let Some(shard) = self.shards.get(shard as usize) else { return };
        let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
        let mut parts = Vec::new();
        for &page in &shard.shared {
            let Some(met) = shard.met.get(&page) else { continue };
            parts.clear();
            parts.push(met.first);
            parts.extend_from_slice(&met.others);
            each(page, &parts);
        }
    }
}

/// The pages that a part has claimed.
pub(super) struct Claims {
    table: &'static ClaimTable,
    launch: u32,
    /// The part's number.
    pub(super) number: usize,
    read: Read,
    before: Vec<Vec<Before>>,
    /// How often it was not the first.
    again: u64,
    /// Bytes that it remembers of a page.
    page_size: u64,
}

impl fmt::Debug for Claims {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Claims").field("number", &self.number).finish_non_exhaustive()
    }
}

impl Claims {
    /// Those of the next part.
    pub(super) fn new(table: &'static ClaimTable, launch: u32, read: Read) -> Self {
        let number = table.n_parts.fetch_add(1, Ordering::Relaxed);
        Self { table, launch, number, read, before: Vec::new(), again: 0, page_size: 0 }
    }

    /// The saved contents of the pages that it claimed first.
    pub(super) fn before(&self) -> impl Iterator<Item = &Before> {
        self.before.iter().flatten()
    }

    /// Claims a page for the part. Returns whether another part has claimed it, or `None` if the access is refused
    /// because the page's contents cannot be saved.
    pub(super) fn claim(&mut self, page: u64, plan: &Plan) -> Option<bool> {
        let is_met = self.table.shard(page).met.get(&page).is_some_and(|met| met.launch == self.launch);
        // Read without the lock: as long as no other part has claimed the page, it is unchanged.
        if !is_met && !self.keep(page, plan) {
            self.table.end();
            return None;
        }
        let mut shard = self.table.shard(page);
        let Shard { met, shared } = &mut *shard;
        let met = met.entry(page).or_default();
        if met.launch != self.launch {
            *met = Met { launch: self.launch, first: self.number, others: Vec::new() };
            drop(shard);
            self.table.pages.fetch_add(1, Ordering::Relaxed);
            return Some(false);
        }
        if met.others.is_empty() {
            shared.push(page);
        }
        met.others.push(self.number);
        drop(shard);
        if !is_met {
            // Another one was quicker.
            self.before.last_mut().and_then(Vec::pop);
        }
        self.table.again.fetch_add(1, Ordering::Relaxed);
        self.again += 1;
        Some(true)
    }

    fn keep(&mut self, page: u64, plan: &Plan) -> bool {
        let start = page * PAGE;
        let has_unwritten = plan.has(Tools::INITCHECK) && memory::unwritten(&plan.memory, start, PAGE) > 0;
        let unwritten = has_unwritten.then(|| {
            let mut bits = Box::new([0; PAGE as usize / 8]);
            for (at, bits) in (start..).step_by(8).zip(bits.iter_mut()) {
                *bits = memory::bits(&plan.memory, at);
            }
            bits
        });
        if self.before.last().is_none_or(|piece| piece.len() == PIECE) {
            self.before.push(Vec::with_capacity(PIECE));
        }
        let Some(piece) = self.before.last_mut() else { return false };
        piece.push(Before { page, bytes: [0; PAGE as usize], unwritten });
        let is_ours = memory::meets(&plan.memory, start, PAGE);
        let is_read = piece.last_mut().is_some_and(|before| (self.read)(start, is_ours, &mut before.bytes));
        if !is_read {
            piece.pop();
        }
        is_read
    }

    /// A page was met that another part has met: what both remember must not become too much.
    pub(super) fn look_at_room(&mut self, page_size: impl FnOnce() -> usize) {
        if self.again >= 64 && self.again.is_power_of_two() {
            self.page_size = page_size() as u64;
        }
        let pages = self.table.pages.load(Ordering::Relaxed);
        let all = pages + self.table.again.load(Ordering::Relaxed);
        if all * self.page_size > FREE.max(pages * PAGE * MOST_PER_BYTE) {
            self.table.end();
        }
    }
}
