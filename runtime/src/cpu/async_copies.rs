//! Asynchronous copies: a copy is made where its thread waits for its group, so that a program that does not wait reads
//! what was there before. A copy that its thread does not wait for is never made.
#![expect(unsafe_code, reason = "compiled code passes addresses")]

use std::{
    cell::RefCell,
    collections::{HashMap, VecDeque},
    ptr, slice,
};

use weft_artifact::{AsyncCopyRecord, HostContext};

use super::checks;

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
}

thread_local! {
    static BLOCKS: RefCell<Vec<BlockCopies>> = const { RefCell::new(Vec::new()) };
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
pub(super) unsafe extern "C" fn copy(context: *const HostContext, words: *const u64) {
    // SAFETY: the code passes this number of words.
    let words = unsafe { slice::from_raw_parts(words, AsyncCopyRecord::LEN) };
    // SAFETY: the code passes its context.
    let scratch = unsafe { (*context).scratch }.addr();
    let three = |first: usize| [words[first], words[first + 1], words[first + 2]];
    let (thread, block) = (three(AsyncCopyRecord::THREAD), three(AsyncCopyRecord::BLOCK));
    let number = words[AsyncCopyRecord::NUMBER] as usize;
    let mut complete: Vec<Copy> = Vec::new();
    BLOCKS.with_borrow_mut(|blocks| {
        let at = blocks.iter().position(|known| known.scratch == scratch).unwrap_or_else(|| {
            blocks.push(BlockCopies { scratch, block, threads: HashMap::new() });
            blocks.len() - 1
        });
        let known = &mut blocks[at];
        if known.block != block {
            (known.block, known.threads) = (block, HashMap::new());
        }
        let pending = known.threads.entry(thread).or_default();
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
