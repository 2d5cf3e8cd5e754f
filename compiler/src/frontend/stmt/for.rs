//! `for target in iter: … else: …`, over `range`, a tuple, or an array's first dimension.

use weft_artifact::Scalar;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        iterate::Sequence,
        lowerer::{FnLowerer, wrap_int},
        object::{ObjectKind, Site},
        state,
        value::{Atom, Value},
    },
    ir::{BinaryOp, CompareOp, Const, ExprId, ExprKind, LocalId, StmtKind as Ir, Type},
    source::Span,
    syntax::ast::{Expr, Stmt},
};

/// The maximum number of bodies of a loop over items of different types. LLVM needs about ten seconds for this number;
/// its time is quadratic.
const MOST_BODIES: i64 = 2048;

/// Up to this number of items of different types, a chain of tests selects the item; beyond it, a binary search.
const MOST_IN_CHAIN: i64 = 16;

/// A counted loop: its start, stop and step.
struct Range {
    ty: Scalar,
    start: ExprId,
    stop: LocalId,
    step: Step,
    /// Whether the variable never becomes negative.
    nonneg: bool,
    /// Whether the variable may overflow its type in the last step, so that the loop must end before it.
    may_overflow: bool,
}

#[derive(Clone, Copy)]
enum Step {
    Known(i128),
    Local(LocalId),
}

impl FnLowerer<'_> {
    pub(super) fn for_statement(&mut self, target: &Expr, iter: &Expr, body: &[Stmt], orelse: &[Stmt], span: Span) {
        let value = self.expr(iter);
        if let (Some(first), Some(last)) = (body.first(), body.last()) {
            self.check_held(&value, Span { end: last.span.end, ..first.span }, iter.span);
        }
        if let Some(generated) = self.generated(&value) {
            return self.for_generated(target, generated, body, orelse, span);
        }
        if let Value::Object(ObjectKind::Iterator(site), items) = value {
            return self.for_rest(target, &site, items, body, orelse, span);
        }
        let value = crate::frontend::expr::by_letters(value);
        if !self.is_iterable(&value, iter.span) {
            self.poison_body(target, body, span);
            return;
        }
        match value {
            Value::Object(ObjectKind::Range(ty), items) => {
                let Some(range) = self.range(ty, &items, iter.span) else { return };
                let nonneg = range.nonneg;
                self.counted(range, orelse, span, |this, counter| {
                    let current = this.b.read(counter, target.span);
                    let now = this.b.temp(current, target.span);
                    this.b.function.locals[now].nonneg = nonneg;
                    let value = this.b.read(now, target.span);
                    let value = this.python(Value::Scalar(value, ty), target.span);
                    this.assign_to(target, value, target.span);
                    this.stmts(body);
                });
            }
            value @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => {
                let value = self.settle(value, span);
                if value.as_tuple().is_some_and(<[Value]>::is_empty) {
                    // There are no iterations: the body has no types.
                    self.skipped(body);
                    return self.stmts(orelse);
                }
                if !Sequence::of(&value).is_some_and(|over| over.is_mixed(self.typing())) {
                    return self.for_positions(target, value, body, orelse, span);
                }
                let Some(Atom::Int(length)) = self.length(&value, span) else {
                    let message = format!("a `for` loop cannot iterate over {}", value.ty());
                    let diagnostic = Diagnostic::error(Code::UnsupportedStatement, iter.span, message)
                        .note("a tuple has items of different types, so the body is compiled for each of them")
                        .help(
                            "the number of iterations must then be a compile-time constant: loop over the tuple alone",
                        );
                    self.report(diagnostic);
                    return;
                };
                if length > MOST_BODIES {
                    let message = format!("a `for` loop iterates over {length} items of different types");
                    let diagnostic = Diagnostic::error(Code::UnsupportedStatement, iter.span, message)
                        .note(format!("the body is compiled for each of them; the limit is {MOST_BODIES}"))
                        .help("use items of one type, such as an array of constants");
                    self.report(diagnostic);
                    return;
                }
                self.for_each_item(target, (&value, iter.span), length, body, orelse, span);
            }
        }
    }

    /// Lowers the body after an error in its iterable, for the errors in it.
    fn poison_body(&mut self, target: &Expr, body: &[Stmt], span: Span) {
        self.loop_statement(
            span,
            &[],
            |this, _| {
                let never = this.b.bool(false, span);
                this.leave_unless(never, &[], None, span);
                this.assign_to(target, Value::Poison, target.span);
                this.stmts(body);
            },
            |_| {},
        );
    }

    /// A loop over the values of a `range`.
    fn range(&mut self, ty: Scalar, items: &[Value], span: Span) -> Option<Range> {
        let [start, stop, step] = items else { return None };
        let literal = |value: &Value| if let Value::Int(known) = value { Some(wrap_int(*known, ty)) } else { None };
        let down_to_zero = literal(stop).is_some_and(|stop| stop >= -1);
        let up_from_zero = literal(start).is_some_and(|start| start >= 0);
        let start = self.number(start, ty, span)?;
        let stop_known = literal(stop);
        let stop = self.number(stop, ty, span)?;
        let step = if let Some(known) = literal(step) {
            Step::Known(known)
        } else {
            let step = self.number(step, ty, span)?;
            Step::Local(self.b.temp(step, span))
        };
        let stop = self.b.temp(stop, span);
        let may_overflow = Self::may_overflow(ty, stop_known, step);
        let nonneg = match step {
            _ if ty.is_unsigned_int() => true,
            Step::Known(known) if known < 0 => down_to_zero,
            Step::Known(_) => up_from_zero,
            Step::Local(_) => false,
        };
        Some(Range { ty, start, stop, step, nonneg, may_overflow })
    }

    /// Whether the counter may overflow its type in its last step.
    fn may_overflow(ty: Scalar, stop: Option<i128>, step: Step) -> bool {
        let bits = ty.size_bytes() * 8;
        let (least, most) = if ty.is_signed_int() {
            (-(1_i128 << (bits - 1)), (1_i128 << (bits - 1)) - 1)
        } else {
            (0, (1 << bits) - 1)
        };
        match (step, stop) {
            (Step::Known(1 | -1), _) => false,
            (Step::Known(step), Some(stop)) if step > 0 => stop - 1 + step > most,
            (Step::Known(step), Some(stop)) => stop + 1 + step < least,
            _ => true,
        }
    }

    /// A counted loop; `body` gets the counter and lowers an iteration.
    fn counted(&mut self, range: Range, orelse: &[Stmt], span: Span, body: impl Fn(&mut Self, LocalId)) {
        let Range { ty, start, stop, step, may_overflow, .. } = range;
        let counter = self.b.local("counter", Type::Scalar(ty));
        self.b.function.locals[counter].counts = may_overflow;
        self.b.assign(counter, start, span);
        self.loop_statement(
            span,
            orelse,
            |this, exhausted| {
                let cond = this.range_test(ty, counter, stop, step, span);
                this.leave_unless(cond, &[], exhausted, span);
                body(this, counter);
            },
            |this| {
                let now = this.b.read(counter, span);
                let by = match step {
                    Step::Known(known) => this.b.expr(ExprKind::Const(Const::Int(known)), Type::Scalar(ty), span),
                    Step::Local(local) => this.b.read(local, span),
                };
                let next = this.b.binary(BinaryOp::Add, now, by, span);
                this.b.assign(counter, next, span);
            },
        );
    }

    /// Whether there is a next iteration. A step of zero, which Python rejects, gives none.
    fn range_test(&mut self, ty: Scalar, counter: LocalId, stop: LocalId, step: Step, span: Span) -> ExprId {
        let compare = |this: &mut Self, op: CompareOp| {
            let now = this.b.read(counter, span);
            let stop = this.b.read(stop, span);
            this.b.compare(op, now, stop, span)
        };
        match step {
            Step::Known(known) if known > 0 => compare(self, CompareOp::Lt),
            Step::Known(_) => compare(self, CompareOp::Gt),
            Step::Local(step) => {
                let sign = |this: &mut Self, op: CompareOp| {
                    let step = this.b.read(step, span);
                    let zero = this.b.int(ty, 0, span);
                    this.b.compare(op, step, zero, span)
                };
                let up = sign(self, CompareOp::Gt);
                let below = compare(self, CompareOp::Lt);
                if ty.is_unsigned_int() {
                    return self.b.binary(BinaryOp::And, up, below, span);
                }
                let down = sign(self, CompareOp::Lt);
                let above = compare(self, CompareOp::Gt);
                let downwards = self.b.binary(BinaryOp::And, down, above, span);
                self.b.select(up, below, downwards, span)
            }
        }
    }

    /// A loop over a sequence with a length and an item at each position.
    fn for_positions(&mut self, target: &Expr, value: Value, body: &[Stmt], orelse: &[Stmt], span: Span) {
        let Some(length) = self.length(&value, span) else { return };
        let stop = self.use_atom(length, span);
        let stop = self.b.temp(stop, span);
        let start = self.b.i64(0, span);
        let range = Range { ty: Scalar::I64, start, stop, step: Step::Known(1), nonneg: true, may_overflow: false };
        self.counted(range, orelse, span, |this, counter| {
            let now = this.b.read(counter, target.span);
            let now = this.b.temp(now, target.span);
            this.b.function.locals[now].nonneg = true;
            let item = this.item_at(&value, Atom::Local(now), target.span);
            this.assign_to(target, item, target.span);
            this.stmts(body);
        });
    }

    /// A loop over the remaining items of an iterator.
    fn for_rest(&mut self, target: &Expr, site: &Site, items: Vec<Value>, body: &[Stmt], orelse: &[Stmt], span: Span) {
        let (Some(over), Some(position)) = (items.into_iter().next(), self.iterators.position(site)) else { return };
        let over = self.settle(over, span);
        let Some(length) = self.length(&over, span) else { return };
        let stop = self.use_atom(length, span);
        let stop = self.b.temp(stop, span);
        self.loop_statement(
            span,
            orelse,
            |this, exhausted| {
                let (now, stop) = (this.b.read(position, span), this.b.read(stop, span));
                let some = this.b.compare(CompareOp::Lt, now, stop, span);
                this.leave_unless(some, &[], exhausted, span);
                let item = this.next_item(&over, position, target.span);
                this.assign_to(target, item, target.span);
                this.stmts(body);
            },
            |_| {},
        );
    }

    /// A loop over items of different types: an iteration selects among the bodies for each item.
    fn for_each_item(
        &mut self,
        target: &Expr,
        over: (&Value, Span),
        length: i64,
        body: &[Stmt],
        orelse: &[Stmt],
        span: Span,
    ) {
        let start = self.b.i64(0, span);
        let stop = self.b.i64(length, span);
        let stop = self.b.temp(stop, span);
        let range = Range { ty: Scalar::I64, start, stop, step: Step::Known(1), nonneg: true, may_overflow: false };
        self.counted(range, orelse, span, |this, counter| {
            let now = this.b.read(counter, target.span);
            let now = this.b.temp(now, target.span);
            this.b.function.locals[now].nonneg = true;
            this.iteration_of_item(target, over, (0, length), now, body, span);
        });
    }

    /// Selects the code of the item with the index `now`, among those from `first` up to `end`, by a chain of tests.
    /// For many items, the tests form a binary search, so that their depth is logarithmic.
    fn iteration_of_item(
        &mut self,
        target: &Expr,
        over: (&Value, Span),
        (first, end): (i64, i64),
        now: LocalId,
        body: &[Stmt],
        span: Span,
    ) {
        let many = end - first > MOST_IN_CHAIN;
        let middle = if many { i64::midpoint(first, end) } else { first + 1 };
        let here = |this: &mut Self| {
            if many {
                return this.iteration_of_item(target, over, (first, middle), now, body, span);
            }
            let item = this.item_at(over.0, Atom::Int(first), over.1);
            this.loops.unrolled.push(first as usize);
            this.assign_to(target, item, target.span);
            this.stmts(body);
            this.loops.unrolled.pop();
        };
        if middle >= end {
            here(self);
            return;
        }
        let (op, number) = if many { (CompareOp::Lt, middle) } else { (CompareOp::Eq, first) };
        let (at, number) = (self.b.read(now, span), self.b.i64(number, span));
        let cond = self.b.compare(op, at, number, span);
        let cond = self.b.temp(cond, span);
        let entry = self.env.clone();
        let then_end = self.in_block(entry.clone(), here);
        let mut then = self.b.close();
        let else_end =
            self.in_block(entry, |this| this.iteration_of_item(target, over, (middle, end), now, body, span));
        let mut otherwise = self.b.close();
        let joined = state::join(&[&then_end, &else_end], self.typing());
        self.b.open();
        then.extend(self.close_arm(then_end, &joined, span));
        self.b.open();
        otherwise.extend(self.close_arm(else_end, &joined, span));
        self.env = joined;
        let cond = self.b.read(cond, span);
        self.stmt(Ir::If { cond, then, otherwise }, span);
    }
}
