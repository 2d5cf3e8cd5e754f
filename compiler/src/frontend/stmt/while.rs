//! `while test: … else: …`, and the code that all loops share: the types at the head and at the exit.

use crate::{
    frontend::{
        lowerer::{FnLowerer, Truth},
        optional::{Narrowing, narrowings},
        state::{self, Env, LoopState, LoopTypes},
    },
    ir::{LocalId, StmtKind as Ir, Type, UnaryOp},
    source::Span,
    syntax::ast::{Expr, Stmt},
};

impl FnLowerer<'_> {
    pub(super) fn while_statement(&mut self, test: &Expr, body: &[Stmt], orelse: &[Stmt], span: Span) {
        self.loop_statement(
            span,
            orelse,
            |this, exhausted| {
                let value = this.expr_or_none(test);
                match this.truth(value, test.span) {
                    Truth::Known(true) | Truth::Poison => {}
                    Truth::Known(false) => {
                        this.skipped(body);
                        this.exhausted(exhausted, span);
                        return;
                    }
                    Truth::Expr(cond) => {
                        this.leave_unless(cond, &narrowings(test, false), exhausted, span);
                        this.narrow(&narrowings(test, true));
                    }
                }
                this.stmts(body);
            },
            |_| {},
        );
    }

    /// Emits `if !cond`: exit the loop as exhausted, with `narrowings` applied.
    pub(super) fn leave_unless(
        &mut self,
        cond: crate::ir::ExprId,
        narrowings: &[Narrowing],
        exhausted: Option<LocalId>,
        span: Span,
    ) {
        let stop = self.b.unary(UnaryOp::Not, cond, span);
        let here = self.env.clone();
        let _ = self.in_block(here.clone(), |this| {
            this.narrow(narrowings);
            this.exhausted(exhausted, span);
        });
        let then = self.b.close();
        self.env = here;
        self.stmt(Ir::If { cond: stop, then, otherwise: Vec::new() }, span);
    }

    /// Leaves the loop because there is no next iteration.
    pub(super) fn exhausted(&mut self, exhausted: Option<LocalId>, span: Span) {
        if let Some(flag) = exhausted {
            let yes = self.b.bool(true, span);
            self.b.assign(flag, yes, span);
        }
        let env = self.env.clone();
        let mut exit = None;
        if let Some(state) = self.loops.open.last_mut() {
            if exhausted.is_some() {
                // The `else` follows, with the types at this point: not those of the `break`s.
                state.exhausted = env;
            } else {
                state.breaks.push(env);
                exit.clone_from(&state.exit);
            }
        }
        self.convert_env(&exit, span);
        self.stmt(Ir::Break, span);
        self.env = None;
    }

    /// A loop: `body` lowers one iteration, its test first; `step` is the code between iterations. With an `orelse`,
    /// `body` gets a flag to set on exhaustion. A dry run repeats the body until the types at the loop's head reach a
    /// fixpoint.
    pub(super) fn loop_statement(
        &mut self,
        span: Span,
        orelse: &[Stmt],
        body: impl Fn(&mut Self, Option<LocalId>),
        step: impl Fn(&mut Self),
    ) {
        let entry = self.env.clone();
        let mut known = self.loop_types(span, &entry);
        let exhausted = (!orelse.is_empty()).then(|| {
            let flag = self.b.local("exhausted", Type::BOOL);
            let no = self.b.bool(false, span);
            self.b.assign(flag, no, span);
            flag
        });
        for traversals in 1.. {
            let returns = self.returns.as_ref().map_or(0, |returns| returns.found.len());
            let ends_thread = self.ends_thread;
            self.env.clone_from(&entry);
            self.convert_env(&known.header, span);
            self.loops.open.push(LoopState {
                header: known.header.clone(),
                exit: known.exit.clone(),
                continues: Vec::new(),
                breaks: Vec::new(),
                exhausted: None,
            });
            let end = self.in_block(known.header.clone(), |this| body(this, exhausted));
            self.env.clone_from(&end);
            self.convert_env(&known.header, span);
            let block = self.b.close();
            self.b.open();
            self.env.clone_from(&known.header);
            step(self);
            let step_block = self.b.close();
            let state = self.loops.open.pop();
            let (continues, breaks, exhausted_env) =
                state.map(|state| (state.continues, state.breaks, state.exhausted)).unwrap_or_default();
            let mut heads: Vec<&Env> = vec![&entry, &end];
            heads.extend(&continues);
            let header = state::join(&heads, self.typing());
            let exit = state::join(&breaks.iter().collect::<Vec<_>>(), self.typing());
            let found = LoopTypes { entry: entry.clone(), header, exit: exit.clone() };
            if let Some(next) = self.next_types(span, traversals, &known, found) {
                known = next;
                self.ends_thread = ends_thread;
                if let Some(known) = &mut self.returns {
                    known.found.truncate(returns);
                }
                continue;
            }
            self.stmt(Ir::Loop { body: block, step: step_block }, span);
            self.env = exit;
            if let (Some(flag), Some(_)) = (exhausted, &exhausted_env) {
                self.else_branch(flag, exhausted_env, orelse, span);
            }
            return;
        }
    }

    /// The `else` of a loop, at its exhaustion exit: it runs if the loop did not exit by `break`.
    fn else_branch(&mut self, flag: LocalId, exhausted_env: Env, orelse: &[Stmt], span: Span) {
        let left = self.env.take();
        if left.is_none() {
            self.env = exhausted_env;
            self.stmts(orelse);
            return;
        }
        let end = self.in_block(exhausted_env, |this| this.stmts(orelse));
        let mut then = self.b.close();
        let joined = state::join(&[&end, &left], self.typing());
        self.b.open();
        then.extend(self.close_arm(end, &joined, span));
        self.b.open();
        let otherwise = self.close_arm(left, &joined, span);
        self.env = joined;
        let cond = self.b.read(flag, span);
        self.stmt(Ir::If { cond, then, otherwise }, span);
    }
}
