//! Barriers where some of the copies of a thread have returned.
//!
//! ```text
//! if $i >= $n { return }      $g = not ($i >= $n); $g' = not ($i' >= $n)
//! $a = 1                      if $g or $g' {
//! barrier                         if $g and $g' { $a = 1; $a' = 1 } else { if $g { $a = 1 }; if $g' { $a' = 1 } }
//! …                               barrier
//!                                 …
//!                             }
//! ```
//!
//! Consecutive statements without a barrier form a run, which each copy executes under its guard. Uniform statements
//! are executed once if any copy is active; copies that have returned no longer read their values.

use super::{
    emit::{Emitter, branch, is_free},
    vary::{guarded_arm, is_worth_jamming, mentions},
};
use crate::{
    ir::{BinaryOp, Block, ExprId, LocalId, Stmt, StmtKind, for_each_stmt},
    source::Span,
};

impl Emitter<'_> {
    /// Emits a branch at the kernel's end with barriers in one arm.
    pub(super) fn guard(
        &mut self,
        cond: ExprId,
        then: &[Stmt],
        otherwise: &[Stmt],
        guards: Option<&[LocalId]>,
        span: Span,
        out: &mut Block,
    ) {
        let in_then = guarded_arm(then, otherwise) == Some(true);
        // A copy that has returned takes neither arm.
        let takes = self.flags(cond, guards.map(|guards| (guards, !in_then)), span, out);
        let (arm, other) = if in_then { (then, otherwise) } else { (otherwise, then) };
        let inner: Vec<LocalId> = if in_then {
            takes
        } else {
            let negate = |this: &mut Self, out: &mut Block, take: &LocalId| {
                let flag = this.flag();
                let value = this.read(*take, span);
                let value = this.not(value, span);
                out.push(Stmt { kind: StmtKind::Assign(flag, value), span });
                flag
            };
            takes.iter().map(|take| negate(self, out, take)).collect()
        };
        // The other arm comes first: the arm with barriers may assign locals that all copies share.
        if !other.is_empty() {
            for copy in self.all() {
                let inside = self.read(inner[copy], span);
                let mut cond = self.not(inside, span);
                let mut body = self.clone(other, copy);
                if let Some(guards) = guards {
                    body = vec![branch(cond, body, Block::new(), span)];
                    cond = self.read(guards[copy], span);
                }
                out.push(branch(cond, body, Block::new(), span));
            }
        }
        let any = self.together(BinaryOp::Or, &inner, span);
        let mut body = Block::new();
        self.jam(arm, Some(&inner), &mut body);
        out.push(branch(any, body, Block::new(), span));
    }

    /// Emits statements for the copies whose guard is set.
    pub(super) fn jam_guarded(&mut self, block: &[Stmt], guards: &[LocalId], out: &mut Block) {
        let mut rest = block;
        while let Some((first, after)) = rest.split_first() {
            let run = rest.iter().take_while(|stmt| is_free(stmt)).count();
            if run > 0 {
                self.run(&rest[..run], guards, out);
                rest = &rest[run..];
            } else {
                self.jam_one(first, Some(guards), out);
                rest = after;
            }
        }
    }

    /// Emits a run: statements without a barrier and without jumps out of it.
    fn run(&mut self, run: &[Stmt], guards: &[LocalId], out: &mut Block) {
        let shared = self.shared_by_copies(run);
        let here = mentions(self.function, run);
        // A parameter has a value that no statement assigns.
        let leaks = |local: &LocalId| {
            self.vary.mentioned_beside(*local, here[local.index()]) || self.function.params.contains(local)
        };
        let leaking: Vec<LocalId> = shared.iter().copied().filter(leaks).collect();
        if leaking.is_empty() {
            self.under_guards(run, shared, guards, out);
            return;
        }
        // Assignments to locals that are read outside of the run are emitted once, between the runs.
        let mut rest = run;
        while let Some((first, after)) = rest.split_first() {
            let assigns = |stmt: &Stmt| {
                let mut found = false;
                for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
                    found |= inner.kind.assigned().iter().any(|local| leaking.contains(local));
                });
                found
            };
            let free = rest.iter().take_while(|stmt| !assigns(stmt)).count();
            if free > 0 {
                self.run(&rest[..free], guards, out);
                rest = &rest[free..];
            } else {
                self.jam_one(first, Some(guards), out);
                rest = after;
            }
        }
    }

    /// The locals that a run assigns and that are uniform over the copies.
    fn shared_by_copies(&self, run: &[Stmt]) -> Vec<LocalId> {
        let mut shared = Vec::new();
        for_each_stmt(run, &mut |stmt| {
            for local in stmt.kind.assigned() {
                if !self.vary.local(local) && !shared.contains(&local) {
                    shared.push(local);
                }
            }
        });
        shared
    }

    /// Emits statements without a barrier and without jumps out of them, for each copy whose guard is set.
    pub(super) fn under_guards(&mut self, run: &[Stmt], private: Vec<LocalId>, guards: &[LocalId], out: &mut Block) {
        let Some(Stmt { span, .. }) = run.first() else { return };
        let span = *span;
        let before = std::mem::replace(&mut self.private, private);
        let mut divergent = Block::new();
        for copy in self.all() {
            let cond = self.read(guards[copy], span);
            let body = self.clone(run, copy);
            divergent.push(branch(cond, body, Block::new(), span));
        }
        self.private = before;
        if is_worth_jamming(self.function, run) {
            let mut jammed = Block::new();
            self.jam(run, None, &mut jammed);
            let all = self.together(BinaryOp::And, guards, span);
            out.push(branch(all, jammed, divergent, span));
        } else {
            out.extend(divergent);
        }
    }
}
