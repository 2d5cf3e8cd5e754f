//! Structurization: replaces `continue` by a branch around the statements that it skips.
//!
//! ```text
//! loop {                        loop {
//!     if $a { continue }            if $a { } else { … }
//!     …
//! }                             }
//! ```
//!
//! Legal if no statements have to be duplicated: if both arms of a branch can reach the statements after it and one of
//! them contains a `continue`, the loop is left unchanged. Loops that contain a barrier are left unchanged, too: a branch
//! around the barrier needs as many masks as the `continue`.
//!
//! Profitable because a divergent `continue` prevents the loop's interchange with the thread loop, while a divergent
//! branch does not.

use crate::{
    analysis::escapes,
    backend::host::plan::analysis::structure::{holds_barrier, induction_variable},
    ir::{Block, Function, StmtKind},
    normalize::jumps::branched,
};

/// Makes the last statement of a loop's body the loop's step, if the loop then has an induction variable, as in
/// `while i < n: …; i += 1`. Legal for loops without a step and without a `continue`: each iteration that does not leave
/// the loop ends with the last statement of its body.
pub(crate) fn with_steps(function: &Function, list: &mut Block) {
    for stmt in list {
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            with_steps(function, inner);
        }
        if let StmtKind::Loop { body, step } = &mut stmt.kind
            && step.is_empty()
            && legal!("while_induction.no-continue", !escapes(body).continues)
            && let Some((last, rest)) = body.split_last()
            && induction_variable(function, rest, std::slice::from_ref(last)).is_some()
        {
            step.extend(body.pop());
        }
    }
}

/// Structurizes the loops of a body that contain a `continue` and no barrier.
pub(crate) fn without_continue(list: &mut Block) {
    for stmt in list {
        let waits = holds_barrier(stmt);
        for inner in stmt.kind.blocks_mut().into_iter().flatten() {
            without_continue(inner);
        }
        if let StmtKind::Loop { body, .. } = &mut stmt.kind
            && !waits
            && escapes(body).continues
            && let Some(branches) = branched(body, None)
        {
            *body = branches;
        }
    }
}
