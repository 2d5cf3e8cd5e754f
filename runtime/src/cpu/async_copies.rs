//! Asynchronous copies: a copy is made where its thread waits for its group, so that a program that does not wait reads
//! what was there before. A copy that its thread does not wait for is never made. Copies that a barrier counts are made
//! where a thread waits for the barrier's phase ([`phases`]).
#![expect(unsafe_code, reason = "compiled code passes addresses")]

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, VecDeque},
    ptr, slice,
};

use weft_artifact::{AsyncCopyRecord, HostContext};

use super::{
    checks,
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

/// The copies of a thread.
#[derive(Debug, Default)]
struct Pending {
    /// Since the latest group.
    open: Vec<Copy>,
    /// The groups, the oldest first.
    groups: VecDeque<Vec<Copy>>,
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
    match words[AsyncCopyRecord::WHAT] {
        AsyncCopyRecord::ELEMENT | AsyncCopyRecord::COMMIT | AsyncCopyRecord::WAIT => {
            // SAFETY: the caller's promise.
            unsafe { of_groups(context, scratch, words) };
            1
        }
        AsyncCopyRecord::BARRIER_WAIT => {
            while !with_block(scratch, words, |block| of_barrier(block, words)) {
                // SAFETY: the code passes its context.
                let wait = unsafe { (*context).wait };
                wait(context, 0, HostContext::AT_PHASE);
                // SAFETY: as above.
                if unsafe { (*context).lanes } != 0 {
                    return 0;
                }
            }
            1
        }
        _ if !is_aligned(scratch as u64, words) => 0,
        _ => u32::from(with_block(scratch, words, |block| of_barrier(block, words))),
    }
}

/// Whether the addresses and the size of a copy are aligned. Shared memory is aligned relative to the block's scratch
/// memory.
fn is_aligned(scratch: u64, words: &[u64]) -> bool {
    let [to, from, bytes] =
        [AsyncCopyRecord::TO, AsyncCopyRecord::FROM, AsyncCopyRecord::INDICES].map(|word| words[word]);
    let to = to.wrapping_sub(scratch);
    match words[AsyncCopyRecord::WHAT] {
        AsyncCopyRecord::BULK => (to | from | bytes).is_multiple_of(BULK_ALIGN),
        AsyncCopyRecord::BOX => to.is_multiple_of(BOX_ALIGN),
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
            (known.block, known.threads, known.barriers) = (block, HashMap::new(), HashMap::new());
        }
        call(known)
    })
}

/// An operation of a barrier. Returns whether the phase that a thread waits for has completed.
fn of_barrier(block: &mut BlockCopies, words: &[u64]) -> bool {
    let [to, from, counter] =
        [AsyncCopyRecord::TO, AsyncCopyRecord::FROM, AsyncCopyRecord::BARRIER].map(|word| words[word]);
    let barriers = &mut block.barriers;
    let mut done = true;
    let before = changes();
    CHANGES.set(before + 1);
    match words[AsyncCopyRecord::WHAT] {
        AsyncCopyRecord::BARRIER_INIT => {
            let places = (0..words[AsyncCopyRecord::NUMBER]).map(|number| to + 8 * number);
            barriers.extend(places.map(|place| (place, Barrier::new(from))));
        }
        AsyncCopyRecord::BARRIER_ARRIVE => barriers.entry(to).or_default().arrive(0),
        AsyncCopyRecord::BARRIER_EXPECT => barriers.entry(to).or_default().arrive(from),
        AsyncCopyRecord::BARRIER_WAIT => {
            let barrier = barriers.entry(to).or_default();
            let changed = barrier.complete_by_copies();
            done = barrier.has_completed(from);
            if !changed {
                CHANGES.set(before);
            }
        }
        AsyncCopyRecord::BULK => {
            let bytes = words[AsyncCopyRecord::INDICES];
            barriers.entry(counter).or_default().begin(BulkCopy::Bytes { to, from, bytes });
        }
        _ => {
            let indices = std::array::from_fn(|dim| words[AsyncCopyRecord::INDICES + dim].cast_signed());
            barriers.entry(counter).or_default().begin(BulkCopy::Box { to, map: from, indices });
        }
    }
    done
}

/// An operation of copies in groups.
///
/// # Safety
///
/// As for [`copy`].
unsafe fn of_groups(context: *const HostContext, scratch: usize, words: &[u64]) {
    let thread: [u64; 3] = std::array::from_fn(|axis| words[AsyncCopyRecord::THREAD + axis]);
    let number = words[AsyncCopyRecord::NUMBER] as usize;
    let mut complete: Vec<Copy> = Vec::new();
    with_block(scratch, words, |block| {
        let pending = block.threads.entry(thread).or_default();
        match words[AsyncCopyRecord::WHAT] {
            AsyncCopyRecord::ELEMENT => {
                let address = |word: usize| usize::try_from(words[word]).unwrap_or_default();
                let to = ptr::with_exposed_provenance_mut(address(AsyncCopyRecord::TO));
                let from = ptr::with_exposed_provenance(address(AsyncCopyRecord::FROM));
                pending.open.push(Copy { to, from, bytes: number });
            }
            AsyncCopyRecord::COMMIT => {
                let group = std::mem::take(&mut pending.open);
                pending.groups.push_back(group);
            }
            _ => {
                while pending.groups.len() > number {
                    complete.extend(pending.groups.pop_front().into_iter().flatten());
                }
            }
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
