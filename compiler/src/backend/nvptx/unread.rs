//! Removes unused warp-level operations, because ptxas removes them only in part.
//!
//! Votes, matches and `redux.sync` take a mask that may differ between lanes, so ptxas (13.0 and 13.5) splits the warp
//! by the mask (`WARPSYNC.EXCLUSIVE`) and reconverges it after the instruction. If the result is not used, ptxas
//! removes the instruction and the reconvergence, but not the split. The parts of the warp then arrive at the next
//! block barrier one after the other, each counts as a warp, and the barrier opens before all threads have arrived.
//! None of these instructions orders memory (PTX ISA 9.7.13, "vote.sync", "match.sync", "redux.sync"), so one without
//! uses has no effect.

use inkwell::module::Module;

use super::calls::calls;

/// Prefixes of the names of these intrinsics.
const ACROSS: [&[u8]; 3] = [b"llvm.nvvm.vote.", b"llvm.nvvm.match.", b"llvm.nvvm.redux.sync."];

/// Removes the calls without uses from a module, and then those that only they used.
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
