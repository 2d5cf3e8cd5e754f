//! Loops, and counters that must not pass the end of their type.
//!
//! In a loop's step an addition to a counter saturates. Saturation costs instructions; if the loop starts with a
//! comparison of the counter, the next iteration's comparison comes before the addition instead, with a bound that is
//! lower by the step, which LLVM hoists:
//!
//! ```text
//! loop { if not $c < $stop { break }; … } step { $c = saturated($c + $s) }
//! if $c < $stop { do { … } while $c < max($stop, least + $s) - $s, and then $c = $c + $s }
//! ```

use inkwell::{
    basic_block::BasicBlock,
    values::{BasicValueEnum, IntValue},
};

use super::{
    FunctionEmitter, Result,
    function::{LoopTargets, int},
    shim,
};
use crate::ir::{
    Arith, BinaryOp, Block, Class, CompareOp, ExprId, ExprKind, LocalId, Stmt, StmtKind, UnaryOp, for_each_expr,
};

/// A loop whose counter must not pass the end of its type.
struct Counted<'a> {
    counter: LocalId,
    /// The step.
    by: ExprId,
    /// True if there is another iteration.
    test: ExprId,
    /// The statements that exit the loop.
    leave: &'a Block,
    /// The body after the test.
    iteration: &'a [Stmt],
}

impl<'ctx> FunctionEmitter<'_, 'ctx> {
    /// Emits a loop; `before` are the statements before it in its block.
    pub(super) fn emit_loop(&mut self, before: &[Stmt], body: &Block, step: &Block) -> Result<()> {
        if let Some(counted) = self.counted(body, step) {
            return self.emit_counted(&counted, body, step);
        }
        let unrolled = if self.cx.ptx { self.unrolled_counter(&self.unrolled, before, body, step) } else { None };
        self.unrolled.extend(unrolled);
        let head = self.block("loop");
        let step_block = self.block("step");
        let end = self.block("endloop");
        self.go(head)?;
        self.builder.position_at_end(head);
        self.emit_iteration(body, LoopTargets { break_to: end, continue_to: step_block })?;
        self.go(step_block)?;
        self.builder.position_at_end(step_block);
        let outside = std::mem::replace(&mut self.in_step, true);
        self.emit_block(step)?;
        self.in_step = outside;
        if !self.ended()? {
            self.hooks.iteration(self, body, step)?;
        }
        if unrolled.is_some() {
            self.unrolled.pop();
        }
        self.go_back(head, unrolled.is_some())?;
        self.builder.position_at_end(end);
        Ok(())
    }

    /// Branches from a loop's end to its head.
    fn go_back(&mut self, head: BasicBlock<'ctx>, unroll: bool) -> Result<()> {
        if self.ended()? {
            return Ok(());
        }
        let last = self.builder.get_insert_block();
        self.go(head)?;
        if let Some(back) = last.and_then(BasicBlock::get_terminator) {
            if unroll {
                shim::unroll(back);
            } else if !self.cx.ptx {
                shim::of_program(back);
            }
        }
        Ok(())
    }

    fn emit_iteration(&mut self, block: &[Stmt], targets: LoopTargets<'ctx>) -> Result<()> {
        let outside = std::mem::replace(&mut self.in_step, false);
        self.loops.push(targets);
        self.emit_block(block)?;
        self.loops.pop();
        self.in_step = outside;
        Ok(())
    }

    fn emit_counted(&mut self, counted: &Counted<'_>, body: &[Stmt], step: &[Stmt]) -> Result<()> {
        let [iteration, step_block, next, leave, end] =
            ["loop", "step", "next", "leave", "endloop"].map(|n| self.block(n));
        let targets = LoopTargets { break_to: end, continue_to: step_block };
        let first = self.emit_int(counted.test)?;
        self.builder.build_conditional_branch(first, iteration, leave)?;
        self.builder.position_at_end(leave);
        self.emit_iteration(counted.leave, targets)?;
        self.go(end)?;
        self.builder.position_at_end(iteration);
        self.emit_iteration(counted.iteration, targets)?;
        self.go(step_block)?;
        self.builder.position_at_end(step_block);
        let more = self.next_test(counted, counted.test)?;
        self.builder.build_conditional_branch(more, next, leave)?;
        self.builder.position_at_end(next);
        let now = int(self.get_local(counted.counter)?)?;
        let by = self.emit_int(counted.by)?;
        // Because of the test, the sum is between the counter and the bound.
        let sum = if self.is_signed(counted.counter) {
            self.builder.build_int_nsw_add(now, by, "")?
        } else {
            self.builder.build_int_nuw_add(now, by, "")?
        };
        self.set_local(counted.counter, sum.into())?;
        self.hooks.iteration(self, body, step)?;
        self.go_back(iteration, false)?;
        self.builder.position_at_end(end);
        Ok(())
    }

    fn counted<'s>(&self, body: &'s Block, step: &Block) -> Option<Counted<'s>> {
        let [Stmt { kind: StmtKind::Assign(counter, sum), .. }] = step.as_slice() else { return None };
        let (counter, by) = (*counter, self.counter_step(*counter, *sum)?);
        let (head, iteration) = body.split_first()?;
        let StmtKind::If { cond, then: leave, otherwise } = &head.kind else { return None };
        let ExprKind::Unary(UnaryOp::Not, test) = self.function.exprs[*cond].kind else { return None };
        let leaves = matches!(leave.last(), Some(Stmt { kind: StmtKind::Break, .. })) && otherwise.is_empty();
        (leaves && self.compares(counter, test)).then_some(Counted { counter, by, test, leave, iteration })
    }

    /// The step, if the value assigned to a counter is itself plus something.
    fn counter_step(&self, counter: LocalId, sum: ExprId) -> Option<ExprId> {
        let ExprKind::Binary(BinaryOp::Add, now, by) = self.function.exprs[sum].kind else { return None };
        let counts = self.function.locals[counter].counts && self.function.exprs[now].kind == ExprKind::Local(counter);
        counts.then_some(by)
    }

    /// Whether a test uses the counter only as the left side of `<` and `>`, under `&` and in arms of selections.
    fn compares(&self, counter: LocalId, test: ExprId) -> bool {
        let is_counter = |id: ExprId| self.function.exprs[id].kind == ExprKind::Local(counter);
        let mentioned = |id: ExprId| {
            let mut found = false;
            for_each_expr(self.function, id, &mut |part| found |= is_counter(part));
            found
        };
        match self.function.class(test) {
            Class::Arith(Arith::Compare(CompareOp::Lt | CompareOp::Gt, a, b)) if is_counter(a) => !mentioned(b),
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => self.compares(counter, a) && self.compares(counter, b),
            Class::Arith(Arith::Select(a, b, c)) => [a, b, c].into_iter().all(|part| self.compares(counter, part)),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => !mentioned(test),
        }
    }

    /// Emits a test accepted by [`Self::compares`] for the counter after its step. `<` assumes a positive step and `>`
    /// a negative one, as in the test of a range.
    fn next_test(&self, counted: &Counted<'_>, test: ExprId) -> Result<IntValue<'ctx>> {
        match self.function.class(test) {
            Class::Arith(Arith::Compare(op, a, b))
                if self.function.exprs[a].kind == ExprKind::Local(counted.counter) =>
            {
                let now = self.emit_int(a)?;
                let (bound, by) = (self.emit_int(b)?, self.emit_int(counted.by)?);
                let signed = self.is_signed(counted.counter);
                let (least, most) = ends(now, signed);
                let (end, nearer, predicate) = match (op, signed) {
                    (CompareOp::Lt, true) => (least, "llvm.smax", inkwell::IntPredicate::SLT),
                    (CompareOp::Lt, false) => (least, "llvm.umax", inkwell::IntPredicate::ULT),
                    (_, true) => (most, "llvm.smin", inkwell::IntPredicate::SGT),
                    (_, false) => (most, "llvm.umin", inkwell::IntPredicate::UGT),
                };
                let limit = self.builder.build_int_add(end, by, "")?;
                let bound = int(self.call_intrinsic(nearer, &[bound.into(), limit.into()])?)?;
                let bound = self.builder.build_int_sub(bound, by, "")?;
                Ok(self.builder.build_int_compare(predicate, now, bound, "")?)
            }
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => {
                let (a, b) = (self.next_test(counted, a)?, self.next_test(counted, b)?);
                Ok(self.builder.build_and(a, b, "")?)
            }
            Class::Arith(Arith::Select(a, b, c)) => {
                let (a, b) = (self.next_test(counted, a)?, self.next_test(counted, b)?);
                let c = self.next_test(counted, c)?;
                int(self.builder.build_select(a, b, c, "")?)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => self.emit_int(test),
        }
    }

    /// The value of an assignment in a loop's step, if it is an addition that saturates.
    pub(super) fn saturated_step(&self, local: LocalId, value: ExprId) -> Result<Option<BasicValueEnum<'ctx>>> {
        let Some(by) = self.counter_step(local, value) else { return Ok(None) };
        let now = self.get_local(local)?;
        let by = self.emit_int(by)?;
        let signed = self.is_signed(local);
        if signed {
            return Ok(Some(self.call_intrinsic("llvm.sadd.sat", &[now, by.into()])?));
        }
        Ok(Some(self.call_intrinsic("llvm.uadd.sat", &[now, by.into()])?))
    }

    fn is_signed(&self, local: LocalId) -> bool {
        self.function.locals[local].ty.scalar().is_some_and(weft_artifact::Scalar::is_signed_int)
    }
}

/// The minimum and maximum of an integer's type.
fn ends(like: IntValue<'_>, signed: bool) -> (IntValue<'_>, IntValue<'_>) {
    let ty = like.get_type();
    if signed {
        let least = ty.const_int(1 << (ty.get_bit_width() - 1), false);
        (least, least.const_not())
    } else {
        (ty.const_zero(), ty.const_all_ones())
    }
}
