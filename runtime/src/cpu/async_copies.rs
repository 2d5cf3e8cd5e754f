//! Asynchronous copies: a copy is made where its thread waits for its group, so that a program that does not wait reads
//! what was there before. A copy that its thread does not wait for is never made, except one to global memory for whose
//! source the thread has waited: it is made when the block ends. Copies that a barrier counts are made where a thread waits
//! for the barrier's phase ([`phases`]).
#![expect(unsafe_code, reason = "compiled code passes addresses")]

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    ptr, slice,
};

use weft_artifact::{AsyncCopyRecord, HostContext, MAP_DIMS};

use super::{
    boxes::{self, BoxAt},
    checks, fault,
    phases::{Barrier, BulkCopy},
};

/// The alignment in bytes of copies that barriers count, and of the memory that receives a box.
const BULK_ALIGN: u64 = 16;
const BOX_ALIGN: u64 = 128;

/// A copy that is not made yet.
#[derive(Clone, Copy, Debug)]
struct Copy {
    to: *mut u8,
    from: *const u8,
    bytes: usize,
}

/// A copy to global memory that is not made yet.
#[derive(Debug)]
struct Store {
    /// What the sanitizer identifies it by.
    number: u64,
    target: Target,
    /// The address in shared memory, and the number of bytes.
    source: (u64, u64),
    /// The source, if it has been read.
    read: Option<Vec<u8>>,
}

#[derive(Clone, Copy, Debug)]
enum Target {
    Bytes(u64),
    Box(BoxAt),
}

impl Store {
    /// Reads the source.
    fn read(&mut self) {
        let (from, bytes) = self.source;
        let read = self.read.get_or_insert_with(|| vec![0; bytes as usize]);
        boxes::copy(read.as_mut_ptr().expose_provenance() as u64, from, read.len());
    }

    /// Writes what has been read, or else the source.
    fn write(&self) {
        let read = self.read.as_ref().map(|read| read.as_ptr().expose_provenance() as u64);
        let (from, bytes) = (read.unwrap_or(self.source.0), self.source.1);
        match self.target {
            Target::Bytes(to) => boxes::copy(to, from, bytes as usize),
            Target::Box(to) => boxes::store(&to.map(), to.indices, from),
        }
    }
}

/// Copies of a thread.
#[derive(Debug, Default)]
struct Group {
    elements: Vec<Copy>,
    stores: Vec<Store>,
}

/// All copies of a thread.
#[derive(Debug, Default)]
struct Pending {
    /// Since the latest group.
    open: Group,
    /// The groups, the oldest first.
    groups: VecDeque<Group>,
}

/// The copies of a block that this thread of the system runs.
#[derive(Debug)]
struct BlockCopies {
    /// The block's scratch memory, which identifies it.
    scratch: usize,
    /// Its index. Blocks that run one after another share scratch memory.
    block: [u64; 3],
    /// By `threadIdx`.
    threads: HashMap<[u64; 3], Pending>,
    /// By their addresses.
    barriers: HashMap<u64, Barrier>,
}

thread_local! {
    static BLOCKS: RefCell<Vec<BlockCopies>> = const { RefCell::new(Vec::new()) };
    static CHANGES: Cell<u64> = const { Cell::new(0) };
    static STORES: Cell<u64> = const { Cell::new(0) };
}

/// The number of changes of barriers that this system thread has made. If it is the same after all threads of a block
/// have run, none of them let others continue.
pub(super) fn changes() -> u64 {
    CHANGES.get()
}

/// Discards the copies to some scratch memory: another block or another launch has it now.
pub(super) fn discard(scratch: *const u8) {
    BLOCKS.with_borrow_mut(|blocks| blocks.retain(|block| block.scratch != scratch.addr()));
}

/// Ends the block that has some scratch memory: makes the copies to global memory whose sources have been read.
pub(super) fn end_block(scratch: *const u8) {
    BLOCKS.with_borrow_mut(|blocks| {
        blocks.iter().filter(|block| block.scratch == scratch.addr()).for_each(BlockCopies::end);
        blocks.retain(|block| block.scratch != scratch.addr());
    });
}

/// The block that has some scratch memory has synchronized with the other blocks of its cluster.
pub(super) fn synchronized(scratch: *const u8) {
    BLOCKS.with_borrow_mut(|blocks| {
        blocks.iter_mut().filter(|block| block.scratch == scratch.addr()).for_each(BlockCopies::synchronize);
    });
}

impl BlockCopies {
    fn synchronize(&mut self) {
        self.barriers.values_mut().for_each(|barrier| barrier.is_synchronized = true);
    }

    /// Whether other blocks may use a barrier.
    fn is_synchronized(&self, barrier: u64) -> bool {
        self.barriers.get(&barrier).is_some_and(|barrier| barrier.is_synchronized)
    }

    fn end(&self) {
        for pending in self.threads.values() {
            let stores = pending.groups.iter().flat_map(|group| &group.stores);
            stores.filter(|store| store.read.is_some()).for_each(Store::write);
        }
    }
}

/// See [`copy`](HostContext::copy).
///
/// # Safety
///
/// The context is that of the running code, and there are [`AsyncCopyRecord::LEN`] words. The addresses are those of
/// memory that is valid as long as the block runs.
pub(super) unsafe extern "C" fn copy(context: *mut HostContext, words: *const u64) -> u32 {
    // SAFETY: the code passes this number of words.
    let words = unsafe { slice::from_raw_parts(words, AsyncCopyRecord::LEN) };
    // SAFETY: the code passes its context.
    let scratch = unsafe { (*context).scratch }.addr();
    // SAFETY: as above.
    let mut checked = unsafe { checks::Checking::of(context) };
    match words[AsyncCopyRecord::WHAT] {
        AsyncCopyRecord::ELEMENT | AsyncCopyRecord::COMMIT | AsyncCopyRecord::WAIT | AsyncCopyRecord::WAIT_READ => {
            // SAFETY: the caller's promise.
            unsafe { of_groups(context, scratch, words) };
            1
        }
        AsyncCopyRecord::BARRIER_WAIT => {
            while !with_block(scratch, words, |block| of_barrier(block, words, &mut checked)) {
                // SAFETY: the code passes its context.
                let wait = unsafe { (*context).wait };
                wait(context, 0, HostContext::AT_PHASE);
                // SAFETY: as above.
                if unsafe { (*context).lanes } != 0 {
                    // SAFETY: as above.
                    let raised = unsafe { fault::is_raised(context) };
                    with_block(scratch, words, |block| is_stuck(block, words, &mut checked, raised));
                    return 0;
                }
            }
            1
        }
        _ if !is_aligned(scratch as u64, words) => 0,
        AsyncCopyRecord::BULK_STORE | AsyncCopyRecord::BOX_STORE => {
            with_block(scratch, words, |block| block.begin_store(words, &mut checked));
            1
        }
        _ => {
            // SAFETY: the code passes its context.
            let cluster = unsafe { cluster_of(context) };
            u32::from(of_cluster(scratch, cluster, words, &mut checked))
        }
    }
}

/// The memory of the blocks of the cluster; none if threads have no stacks.
///
/// # Safety
///
/// The context is that of the running code.
unsafe fn cluster_of<'a>(context: *const HostContext) -> &'a [*mut u8] {
    // SAFETY: the caller's promise.
    let context = unsafe { &*context };
    if context.cluster.is_null() {
        return &[];
    }
    // SAFETY: it has this number of blocks.
    unsafe { slice::from_raw_parts(context.cluster, context.cluster_size as usize) }
}

/// An operation of a barrier that may be that of another block of the cluster, or of copies that several blocks receive.
/// `false` if it is not possible.
fn of_cluster(scratch: usize, cluster: &[*mut u8], words: &[u64], checked: &mut checks::Checking) -> bool {
    let what = words[AsyncCopyRecord::WHAT];
    if what >= AsyncCopyRecord::MULTICAST {
        return multicast(scratch, cluster, words, checked);
    }
    let barrier = words[AsyncCopyRecord::TO];
    let is_arrival = matches!(what, AsyncCopyRecord::BARRIER_ARRIVE | AsyncCopyRecord::BARRIER_EXPECT);
    // The memory of a block begins at the highest address that is not above that of its barrier.
    let owner = cluster.iter().map(|block| block.addr()).filter(|block| *block as u64 <= barrier).max();
    match owner.filter(|owner| is_arrival && *owner != scratch) {
        None => with_block(scratch, words, |block| of_barrier(block, words, checked)),
        Some(owner) => BLOCKS.with_borrow_mut(|blocks| {
            // What the block has done before is ordered before what follows a wait of the other block.
            blocks.iter_mut().filter(|block| block.scratch == scratch).for_each(BlockCopies::synchronize);
            let owner = blocks.iter_mut().find(|block| block.scratch == owner);
            owner.is_some_and(|owner| owner.is_synchronized(barrier) && of_barrier(owner, words, checked))
        }),
    }
}

/// Begins a copy in each block of a mask. `false`, and no copy, if one of them is not there, or has not synchronized since it made the
/// barrier.
fn multicast(scratch: usize, cluster: &[*mut u8], words: &[u64], checked: &mut checks::Checking) -> bool {
    let number = words[AsyncCopyRecord::NUMBER] as usize;
    let mask = words[AsyncCopyRecord::INDICES + number] as u32;
    let (counter, copy) = (words[AsyncCopyRecord::BARRIER], copy_of(words, number));
    if mask == 0 || u64::from(mask) >> cluster.len() != 0 {
        return false;
    }
    let ranks = (0..cluster.len()).filter(|rank| mask >> rank & 1 == 1);
    let receivers: Vec<usize> = ranks.map(|rank| cluster[rank].addr()).collect();
    let distance = |receiver: usize| (receiver as u64).wrapping_sub(scratch as u64);
    BLOCKS.with_borrow_mut(|blocks| {
        let has_barrier = |receiver: &usize| {
            let (block, counter) =
                (blocks.iter().find(|block| block.scratch == *receiver), counter.wrapping_add(distance(*receiver)));
            let is_own = *receiver == scratch;
            block.is_some_and(|block| block.is_synchronized(counter) || is_own && block.barriers.contains_key(&counter))
        };
        if !receivers.iter().all(has_barrier) {
            return false;
        }
        CHANGES.set(changes() + 1);
        for block in blocks.iter_mut().filter(|block| receivers.contains(&block.scratch)) {
            let distance = distance(block.scratch);
            let (counter, copy) = (counter.wrapping_add(distance), copy.at_distance(distance));
            checked.tell(|launch, caller| {
                let (written, read) = copy.ranges();
                let sites = words[AsyncCopyRecord::SITE];
                let sites = (sites as u32, (sites >> 32) as u32);
                launch.bulk_begins(caller, sites, counter, written, read.into_iter());
            });
            if let Some(barrier) = block.barriers.get_mut(&counter) {
                barrier.begin(copy);
            }
        }
        true
    })
}

/// A copy to shared memory, of a box if `dims` is not 0.
fn copy_of(words: &[u64], dims: usize) -> BulkCopy {
    let [to, from] = [AsyncCopyRecord::TO, AsyncCopyRecord::FROM].map(|word| words[word]);
    if is_box(words) {
        BulkCopy::Box { to, from: BoxAt { map: from, indices: indices(words, AsyncCopyRecord::INDICES, dims) } }
    } else {
        BulkCopy::Bytes { to, from, bytes: words[AsyncCopyRecord::INDICES] }
    }
}

fn is_box(words: &[u64]) -> bool {
    words[AsyncCopyRecord::WHAT] & !AsyncCopyRecord::MULTICAST == AsyncCopyRecord::BOX
}

fn indices(words: &[u64], first: usize, dims: usize) -> [i64; MAP_DIMS] {
    std::array::from_fn(|dim| if dim < dims { words[first + dim].cast_signed() } else { 0 })
}

/// Whether the addresses and the size of a copy are aligned. Shared memory is aligned relative to the block's scratch
/// memory.
fn is_aligned(scratch: u64, words: &[u64]) -> bool {
    let [to, from, bytes] =
        [AsyncCopyRecord::TO, AsyncCopyRecord::FROM, AsyncCopyRecord::INDICES].map(|word| words[word]);
    let shared = |address: u64| address.wrapping_sub(scratch);
    match words[AsyncCopyRecord::WHAT] & !AsyncCopyRecord::MULTICAST {
        AsyncCopyRecord::BULK => (shared(to) | from | bytes).is_multiple_of(BULK_ALIGN),
        AsyncCopyRecord::BOX => shared(to).is_multiple_of(BOX_ALIGN),
        AsyncCopyRecord::BULK_STORE => {
            (to | shared(from) | words[AsyncCopyRecord::STORE_INDICES]).is_multiple_of(BULK_ALIGN)
        }
        AsyncCopyRecord::BOX_STORE => shared(from).is_multiple_of(BOX_ALIGN),
        _ => true,
    }
}

/// Calls a function with the copies of the block that the words name.
fn with_block<R>(scratch: usize, words: &[u64], call: impl FnOnce(&mut BlockCopies) -> R) -> R {
    let block: [u64; 3] = std::array::from_fn(|axis| words[AsyncCopyRecord::BLOCK + axis]);
    BLOCKS.with_borrow_mut(|blocks| {
        let at = blocks.iter().position(|known| known.scratch == scratch).unwrap_or_else(|| {
            blocks.push(BlockCopies { scratch, block, threads: HashMap::new(), barriers: HashMap::new() });
            blocks.len() - 1
        });
        let known = &mut blocks[at];
        if known.block != block {
            known.end();
            (known.block, known.threads, known.barriers) = (block, HashMap::new(), HashMap::new());
        }
        call(known)
    })
}

/// An operation of a barrier. Returns whether the phase that a thread waits for has completed.
fn of_barrier(block: &mut BlockCopies, words: &[u64], checked: &mut checks::Checking) -> bool {
    let [to, from, counter] =
        [AsyncCopyRecord::TO, AsyncCopyRecord::FROM, AsyncCopyRecord::BARRIER].map(|word| words[word]);
    let site = words[AsyncCopyRecord::SITE] as u32;
    let barriers = &mut block.barriers;
    let mut done = true;
    let before = changes();
    CHANGES.set(before + 1);
    match words[AsyncCopyRecord::WHAT] {
        AsyncCopyRecord::BARRIER_INIT => {
            let count = words[AsyncCopyRecord::NUMBER];
            barriers.extend((0..count).map(|number| (to + 8 * number, Barrier::new(from))));
            checked.tell(|launch, caller| launch.barriers_made(caller, site, (to, count)));
        }
        AsyncCopyRecord::BARRIER_ARRIVE | AsyncCopyRecord::BARRIER_EXPECT => {
            let barrier = barriers.entry(to).or_default();
            let expected = if words[AsyncCopyRecord::WHAT] == AsyncCopyRecord::BARRIER_EXPECT { from } else { 0 };
            observed(to, barrier, checked, Barrier::complete_before_arrival);
            let state = barrier.state();
            checked.tell(|launch, caller| launch.arrives(caller, site, to, state));
            observed(to, barrier, checked, |barrier| barrier.arrive(expected));
        }
        AsyncCopyRecord::BARRIER_WAIT => {
            let barrier = barriers.entry(to).or_default();
            // A wait for an old phase makes no copies.
            let changed = !barrier.has_completed(from) && observed(to, barrier, checked, Barrier::complete_by_copies);
            done = barrier.has_completed(from);
            if !changed {
                CHANGES.set(before);
            }
            let state = barrier.state();
            checked.tell(|launch, caller| {
                if done {
                    launch.phase_passed(caller, site, to, state);
                }
            });
        }
        _ => {
            let copy = copy_of(words, words[AsyncCopyRecord::NUMBER] as usize);
            checked.tell(|launch, caller| {
                let (written, read) = copy.ranges();
                let sites = (site, (words[AsyncCopyRecord::SITE] >> 32) as u32);
                launch.bulk_begins(caller, sites, counter, written, read.into_iter());
            });
            barriers.entry(counter).or_default().begin(copy);
        }
    }
    done
}

impl BlockCopies {
    /// A thread begins a copy to global memory.
    fn begin_store(&mut self, words: &[u64], checked: &mut checks::Checking) {
        let [to, from] = [AsyncCopyRecord::TO, AsyncCopyRecord::FROM].map(|word| words[word]);
        let first = AsyncCopyRecord::STORE_INDICES;
        let number = STORES.get();
        STORES.set(number + 1);
        let store = if words[AsyncCopyRecord::WHAT] == AsyncCopyRecord::BOX_STORE {
            let dims = words[AsyncCopyRecord::NUMBER] as usize;
            let target = BoxAt { map: to, indices: indices(words, first, dims) };
            Store { number, target: Target::Box(target), source: (from, target.map().box_bytes()), read: None }
        } else {
            Store { number, target: Target::Bytes(to), source: (from, words[first]), read: None }
        };
        checked.tell(|launch, caller| {
            let targets = match store.target {
                Target::Bytes(to) => vec![(to, store.source.1)],
                Target::Box(to) => to.map().ranges(to.indices),
            };
            let sites = words[AsyncCopyRecord::SITE];
            launch.store_begins(caller, (sites as u32, (sites >> 32) as u32), number, store.source, targets);
        });
        self.threads.entry(thread_of(words)).or_default().open.stores.push(store);
    }
}

/// The `threadIdx` of the thread that the words name.
fn thread_of(words: &[u64]) -> [u64; 3] {
    std::array::from_fn(|axis| words[AsyncCopyRecord::THREAD + axis])
}

/// Changes a barrier, and reports to the sanitizer the copies that are made and the phases that complete.
fn observed<R>(
    address: u64,
    barrier: &mut Barrier,
    checked: &mut checks::Checking,
    change: impl FnOnce(&mut Barrier) -> R,
) -> R {
    let before = barrier.state().completed;
    let result = change(barrier);
    let (completed, made) = (barrier.state().completed, barrier.take_made());
    checked.tell(|launch, caller| {
        for to in made {
            launch.bulk_made(caller.slot, address, to);
        }
        for _ in before..completed {
            launch.phase_completed(caller.slot, address);
        }
    });
    result
}

/// A thread waits for a phase that no thread can complete; `raised`: some thread has ended with an exception.
fn is_stuck(block: &mut BlockCopies, words: &[u64], checked: &mut checks::Checking, raised: bool) {
    let (address, site) = (words[AsyncCopyRecord::TO], words[AsyncCopyRecord::SITE] as u32);
    let state = block.barriers.entry(address).or_default().state();
    checked.tell(|launch, caller| launch.phase_is_stuck(caller, site, address, (state, raised)));
}

/// An operation of copies in groups.
///
/// # Safety
///
/// As for [`copy`].
unsafe fn of_groups(context: *const HostContext, scratch: usize, words: &[u64]) {
    let number = words[AsyncCopyRecord::NUMBER] as usize;
    let mut complete: Vec<Copy> = Vec::new();
    let (mut read, mut written) = (Vec::new(), Vec::new());
    with_block(scratch, words, |block| {
        let pending = block.threads.entry(thread_of(words)).or_default();
        match words[AsyncCopyRecord::WHAT] {
            AsyncCopyRecord::ELEMENT => {
                let address = |word: usize| usize::try_from(words[word]).unwrap_or_default();
                let to = ptr::with_exposed_provenance_mut(address(AsyncCopyRecord::TO));
                let from = ptr::with_exposed_provenance(address(AsyncCopyRecord::FROM));
                pending.open.elements.push(Copy { to, from, bytes: number });
            }
            AsyncCopyRecord::COMMIT => {
                let group = std::mem::take(&mut pending.open);
                pending.groups.push_back(group);
            }
            AsyncCopyRecord::WAIT_READ => {
                let n_complete = pending.groups.len().saturating_sub(number);
                for group in pending.groups.iter_mut().take(n_complete) {
                    complete.append(&mut group.elements);
                    group.stores.iter_mut().filter(|store| store.read.is_none()).for_each(Store::read);
                    read.extend(group.stores.iter().map(|store| store.number));
                }
            }
            _ => {
                while pending.groups.len() > number {
                    let Some(group) = pending.groups.pop_front() else { break };
                    complete.extend(group.elements);
                    group.stores.iter().for_each(Store::write);
                    written.extend(group.stores.iter().map(|store| store.number));
                }
            }
        }
    });
    // SAFETY: the code passes its context.
    unsafe { checks::Checking::of(context) }.tell(|launch, _| {
        for number in read {
            launch.store_is_read(number);
        }
        for number in written {
            launch.store_ends(number);
        }
    });
    if words[AsyncCopyRecord::WHAT] == AsyncCopyRecord::ELEMENT {
        let range = (words[AsyncCopyRecord::TO], words[AsyncCopyRecord::NUMBER]);
        // SAFETY: the code passes its context.
        unsafe { checks::copy_begins(context, words[AsyncCopyRecord::SITE] as u32, range) };
    }
    for Copy { to, from, bytes } in complete {
        // SAFETY: both are valid, and the code read them when it began the copy.
        unsafe { ptr::copy(from, to, bytes) };
        // SAFETY: the code passes its context.
        unsafe { checks::copy_ends(context, (to.addr() as u64, bytes as u64)) };
    }
}
