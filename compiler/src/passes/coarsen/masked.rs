//! Barriers in divergent branches, and in loops that copies exit in different iterations: all copies run in lockstep,
//! under masks of the active ones.
//!
//! ```text
//! loop {                          $live = true; $live' = true
//!     if not $k < $n { break }    loop {
//!     …                               if not ($live | $live') { break }
//!     barrier                         $turn = $live; $turn' = $live'
//! }                                   $t = $turn and not $k < $n; …
//!                                     if $t { $live = false; $turn = false }; …
//!                                     if $turn { … }; if $turn' { … }
//!                                     if $turn | $turn' { barrier }
//!                                 }
//! ```
//!
//! CUDA requires all threads of a block at a barrier, so mostly all masks are equal, and the statements of all copies
//! run. Values assigned here vary ([`super::vary`]). A jump clears the masks of its loop, and the enclosing statements
//! test the masks again.

use super::emit::{Emitter, branch, is_free, leaves};
use crate::{
    ir::{BinaryOp, Block, ExprId, ExprKind, LocalId, Op, Stmt, StmtKind},
    source::Span,
};

/// A flag for each copy: whether it is active.
type Mask = Vec<LocalId>;

/// The masks of a loop.
struct LoopMasks {
    /// The copies that have not exited the loop.
    live: Mask,
    /// The copies that run the rest of the iteration.
    iteration: Mask,
}

impl Emitter<'_> {
    /// Emits a branch with a barrier.
    pub(super) fn part(
        &mut self,
        cond: ExprId,
        arms: [&[Stmt]; 2],
        guards: Option<&[LocalId]>,
        span: Span,
        out: &mut Block,
    ) {
        let mask = self.mask(guards, span, out);
        self.part_masked(cond, arms, &mask, None, span, out);
    }

    /// Emits a loop with a barrier that copies exit in different iterations.
    pub(super) fn jam_masked_loop(
        &mut self,
        parts: [&[Stmt]; 2],
        guards: Option<&[LocalId]>,
        span: Span,
        out: &mut Block,
    ) {
        let mask = self.mask(guards, span, out);
        self.masked_loop(parts, &mask, span, out);
    }

    /// A new mask: of all copies, or of the copies whose guard is set.
    fn mask(&mut self, guards: Option<&[LocalId]>, span: Span, out: &mut Block) -> Mask {
        let mut mask = Mask::new();
        for copy in self.all() {
            let value = match guards {
                None => self.constant(true, span),
                Some(guards) => self.read(guards[copy], span),
            };
            let flag = self.flag();
            out.push(Stmt { kind: StmtKind::Assign(flag, value), span });
            mask.push(flag);
        }
        mask
    }

    /// Emits statements for the copies in a mask.
    fn masked(&mut self, block: &[Stmt], mask: &[LocalId], masks: Option<&LoopMasks>, out: &mut Block) {
        let mut rest = block;
        while let Some((stmt, after)) = rest.split_first() {
            let run = rest.iter().take_while(|stmt| is_free(stmt)).count();
            if run > 0 {
                self.under_guards(&rest[..run], Vec::new(), mask, out);
                rest = &rest[run..];
                continue;
            }
            self.masked_one(stmt, mask, masks, out);
            if leaves(std::slice::from_ref(stmt))
                && let Some(masks) = masks
            {
                self.clear(mask, &masks.iteration, false, stmt.span, out);
            }
            rest = after;
        }
    }

    fn masked_one(&mut self, stmt: &Stmt, mask: &[LocalId], masks: Option<&LoopMasks>, out: &mut Block) {
        let span = stmt.span;
        match &stmt.kind {
            StmtKind::If { cond, then, otherwise } => {
                self.part_masked(*cond, [then, otherwise], mask, masks, span, out);
            }
            StmtKind::Loop { body, step } => self.masked_loop([body, step], mask, span, out),
            StmtKind::Break | StmtKind::Continue => {
                if let Some(masks) = masks {
                    self.clear(&masks.iteration, mask, true, span, out);
                    if matches!(stmt.kind, StmtKind::Break) {
                        self.clear(&masks.live, mask, true, span, out);
                    }
                }
            }
            StmtKind::Op { op: Op::BarrierReduce(reduction), results, args } => {
                let mut body = Block::new();
                self.reduce(*reduction, results.first().copied(), args, Some(mask), span, &mut body);
                self.if_any(mask, body, span, out);
            }
            StmtKind::Op { .. }
            | StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Call { .. }
            | StmtKind::Return(_) => {
                // A barrier: any other statement without a jump is part of a run.
                let body = self.clone(std::slice::from_ref(stmt), 0);
                self.if_any(mask, body, span, out);
            }
        }
    }

    fn if_any(&mut self, mask: &[LocalId], body: Block, span: Span, out: &mut Block) {
        let any = self.together(BinaryOp::Or, mask, span);
        out.push(branch(any, body, Block::new(), span));
    }

    fn part_masked(
        &mut self,
        cond: ExprId,
        [then, otherwise]: [&[Stmt]; 2],
        mask: &[LocalId],
        masks: Option<&LoopMasks>,
        span: Span,
        out: &mut Block,
    ) {
        let yes = self.flags(cond, Some((mask, false)), span, out);
        // Both masks are computed before the first arm runs, since it may change operands of the condition.
        let no = self.mask(Some(mask), span, out);
        self.clear(&no, &yes, true, span, out);
        for (arm, mask) in [(then, &yes), (otherwise, &no)] {
            if !arm.is_empty() {
                let mut body = Block::new();
                self.masked(arm, mask, masks, &mut body);
                self.if_any(mask, body, span, out);
            }
        }
    }

    fn masked_loop(&mut self, [body, step]: [&[Stmt]; 2], mask: &[LocalId], span: Span, out: &mut Block) {
        let live = self.mask(Some(mask), span, out);
        let mut jammed = Block::new();
        let any = self.together(BinaryOp::Or, &live, span);
        let none = self.not(any, span);
        jammed.push(branch(none, vec![Stmt { kind: StmtKind::Break, span }], Block::new(), span));
        let iteration = self.mask(Some(&live), span, &mut jammed);
        let masks = LoopMasks { live, iteration };
        // A jump clears the mask of the iteration; statements under it have a mask that depends on it.
        let inside = self.mask(Some(&masks.iteration), span, &mut jammed);
        self.masked(body, &inside, Some(&masks), &mut jammed);
        let mut jammed_step = Block::new();
        self.masked(step, &masks.live, None, &mut jammed_step);
        out.push(Stmt { kind: StmtKind::Loop { body: jammed, step: jammed_step }, span });
    }

    /// Clears the flags of a mask whose flag in another mask is set; with `set` false, those whose flag is not set.
    fn clear(&mut self, mask: &[LocalId], others: &[LocalId], set: bool, span: Span, out: &mut Block) {
        for (flag, other) in mask.iter().zip(others) {
            let mut remains = self.read(*other, span);
            if set {
                remains = self.not(remains, span);
            }
            let own = self.read(*flag, span);
            let value = self.bool(ExprKind::Binary(BinaryOp::And, own, remains), span);
            out.push(Stmt { kind: StmtKind::Assign(*flag, value), span });
        }
    }
}
