//! What the lanes of a warp find out together and nobody reads is left out, before ptxas does it by halves.
//!
//! Votes, matches and `redux.sync` take a mask that may differ from lane to lane, so ptxas (13.0 and 13.5) splits the warp
//! by it (`WARPSYNC.EXCLUSIVE`) and joins it again behind the instruction. Of one whose result is not used it drops the
//! instruction and the joining, and leaves the split: the parts then come to the next barrier of the block one after the
//! other, each counts as a warp, and the barrier opens before the others are there. None of these instructions orders
//! memory (PTX ISA 9.7.13, "vote.sync", "match.sync", "redux.sync"), so that one whose result is not used does nothing.

use inkwell::module::Module;

use super::calls::calls;

/// How the names of these intrinsics begin.
const ACROSS: [&[u8]; 3] = [b"llvm.nvvm.vote.", b"llvm.nvvm.match.", b"llvm.nvvm.redux.sync."];

/// Takes the calls without uses out of a module, and those that only these used.
pub(super) fn remove(module: &Module<'_>) {
    loop {
        let unread = calls(module, |call, name| {
            call.get_first_use().is_none() && ACROSS.iter().any(|across| name.starts_with(across))
        });
        if unread.is_empty() {
            return;
        }
        for call in unread {
            call.erase_from_basic_block();
        }
    }
}
