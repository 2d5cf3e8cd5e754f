//! `for target in iter: … else: …`, over `range`, a tuple, or an array's first dimension.

use weft_artifact::Scalar;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::{FnLowerer, wrap_int},
        promote,
        ty::Ty,
        value::{ArrayValue, Value},
    },
    ir::{BinaryOp, CompareOp, Const, ExprId, ExprKind, LocalId, Type},
    source::Span,
    syntax::ast::{self, Expr, Stmt},
};

/// A counted loop: where it starts, stops, and its step.
struct Range {
    ty: Scalar,
    start: ExprId,
    stop: LocalId,
    step: Step,
    /// The variable never goes below zero.
    nonneg: bool,
    /// The variable could pass the end of its type in its last step, where the loop must end.
    may_overflow: bool,
}

#[derive(Clone, Copy)]
enum Step {
    Known(i128),
    Local(LocalId),
}

impl FnLowerer<'_> {
    pub(super) fn for_statement(&mut self, target: &Expr, iter: &Expr, body: &[Stmt], orelse: &[Stmt], span: Span) {
        if let Some((args, call)) = self.range_call(iter) {
            let Some(range) = self.range(&args, call) else {
                self.poison_body(target, body, span);
                return;
            };
            let nonneg = range.nonneg;
            self.counted(range, orelse, span, |this, counter| {
                let ty = this.b.function.locals[counter].ty;
                let turn = this.b.read(counter, target.span);
                let now = this.b.temp(turn, target.span);
                this.b.function.locals[now].nonneg = nonneg;
                let value = this.b.read(now, target.span);
                let scalar = ty.scalar().unwrap_or(Scalar::I64);
                this.assign_to(target, Value::Scalar(value, scalar), target.span);
                this.stmts(body);
            });
            return;
        }
        let value = self.expr(iter);
        match value {
            Value::Array(array) if array.ty.ndim > 0 => self.for_array(target, array, body, orelse, span),
            Value::Tuple(items) => self.for_tuple(target, items, iter.span, body, orelse, span),
            Value::Poison => self.poison_body(target, body, span),
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::None
            | Value::Str(_)
            | Value::Array(_)
            | Value::DType(_)
            | Value::Known(_)
            | Value::Module(..)
            | Value::Function(_)) => {
                let diagnostic = Diagnostic::error(
                    Code::UnsupportedStatement,
                    iter.span,
                    format!("a `for` loop cannot go over {}", other.ty()),
                )
                .help("loop over `range(…)`, an array or a tuple");
                self.report(diagnostic);
                self.poison_body(target, body, span);
            }
        }
    }

    /// Lowers a body whose iterator was reported, for the errors in it.
    fn poison_body(&mut self, target: &Expr, body: &[Stmt], span: Span) {
        self.loop_statement(
            span,
            &[],
            |this, _| {
                let never = this.b.bool(false, span);
                this.leave_unless(never, None, span);
                this.assign_to(target, Value::Poison, target.span);
                this.stmts(body);
            },
            |_| {},
        );
    }

    /// The arguments of a call of Python's `range`.
    fn range_call<'e>(&mut self, iter: &'e Expr) -> Option<(Vec<&'e Expr>, Span)> {
        let ast::ExprKind::Call { func, args, keywords } = &iter.kind else { return None };
        if !keywords.is_empty() || !self.is_known(func, "builtins.range") {
            return None;
        }
        Some((args.iter().collect(), iter.span))
    }

    fn range(&mut self, args: &[&Expr], span: Span) -> Option<Range> {
        if args.is_empty() || args.len() > 3 {
            let message = format!("range takes 1 to 3 arguments, not {}", args.len());
            self.error(Code::ArgumentCount, span, message);
            return None;
        }
        let mut values = Vec::new();
        for arg in args {
            let value = self.expr(arg);
            let value = self.settle(value, arg.span);
            match value.ty().scalar() {
                Some(scalar) => values.push((value, scalar, arg.span)),
                _ => {
                    if !value.ty().is_poison() {
                        let message = format!("range takes integers, not {}", value.ty());
                        self.error(Code::NoMatchingOverload, arg.span, message);
                    }
                    return None;
                }
            }
        }
        let ty = range_type(&values.iter().map(|(_, scalar, _)| *scalar).collect::<Vec<_>>());
        // What a literal is in the range's type: from 2^63 on, a negative `int64`.
        let literal = |value: &Value| if let Value::Int(known) = value { Some(wrap_int(*known, ty)) } else { None };
        let (start, stop, step) = match values.as_slice() {
            [(stop, _, at)] => ((Value::Int(0), *at), (stop.clone(), *at), None),
            [(start, _, a), (stop, _, b)] => ((start.clone(), *a), (stop.clone(), *b), None),
            [(start, _, a), (stop, _, b), (step, _, c)] => {
                ((start.clone(), *a), (stop.clone(), *b), Some((step.clone(), *c)))
            }
            _ => return None,
        };
        let down_to_zero = literal(&stop.0).is_some_and(|stop| stop >= -1);
        let up_from_zero = literal(&start.0).is_some_and(|start| start >= 0);
        let start = self.number(&start.0, ty, start.1)?;
        let stop_known = literal(&stop.0);
        let stop = self.number(&stop.0, ty, stop.1)?;
        let step = match step {
            None => Step::Known(1),
            Some((Value::Int(0), at)) => {
                self.error(Code::NoMatchingOverload, at, "the step of a range cannot be zero");
                return None;
            }
            Some((Value::Int(known), _)) => Step::Known(wrap_int(known, ty)),
            Some((value, at)) => {
                let step = self.number(&value, ty, at)?;
                Step::Local(self.b.temp(step, at))
            }
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

    /// Whether the counter could pass the end of its type in its last step.
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

    /// A counted loop; `body` gets the counter and lowers a turn.
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
                this.leave_unless(cond, exhausted, span);
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

    /// Whether there is a next turn. A step of zero, which Python rejects, gives none.
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

    /// Over an array: its elements, or the views of its rows.
    fn for_array(&mut self, target: &Expr, array: ArrayValue, body: &[Stmt], orelse: &[Stmt], span: Span) {
        let Value::Array(array) = self.settle(Value::Array(array), span) else { return };
        let Some(extent) = array.shape.first().copied() else { return };
        let stop = self.use_atom(extent, span);
        let stop = self.b.temp(stop, span);
        let start = self.b.i64(0, span);
        let range = Range { ty: Scalar::I64, start, stop, step: Step::Known(1), nonneg: true, may_overflow: false };
        self.counted(range, orelse, span, |this, counter| {
            let now = this.b.read(counter, target.span);
            let now = this.b.temp(now, target.span);
            this.b.function.locals[now].nonneg = true;
            let index = this.b.read(now, target.span);
            let element =
                this.subscript(Value::Array(array.clone()), &[super::super::expr::Index::at(index)], target.span);
            this.assign_to(target, element, target.span);
            this.stmts(body);
        });
    }

    /// Over a tuple: the body once for each item. `break`, `continue` and `else` would need a loop.
    fn for_tuple(&mut self, target: &Expr, items: Vec<Value>, at: Span, body: &[Stmt], orelse: &[Stmt], span: Span) {
        let mut types = items.iter().map(|item| item.ty().widened()).filter(|ty| !ty.is_poison());
        let same = types.next().is_none_or(|first| types.all(|ty| ty == first));
        if !same {
            let ty = Ty::Tuple(items.iter().map(Value::ty).collect());
            let diagnostic = Diagnostic::error(
                Code::UnsupportedStatement,
                at,
                format!("a `for` loop cannot go over {ty}: its items have different types"),
            )
            .help("index the tuple with constants instead");
            self.report(diagnostic);
            return;
        }
        let items: Vec<Value> = items.into_iter().map(|item| self.settle(item, at)).collect();
        let start = self.b.i64(0, span);
        let stop = self.b.i64(items.len() as i64, span);
        let stop = self.b.temp(stop, span);
        let range = Range { ty: Scalar::I64, start, stop, step: Step::Known(1), nonneg: true, may_overflow: false };
        let tuple = Value::Tuple(items);
        self.counted(range, orelse, span, |this, counter| {
            let now = this.b.read(counter, target.span);
            let now = this.b.temp(now, target.span);
            this.b.function.locals[now].nonneg = true;
            let index = this.b.read(now, target.span);
            let tuple = this.reread(&tuple, at);
            let item = this.subscript(tuple, &[super::super::expr::Index::at(index)], target.span);
            this.assign_to(target, item, target.span);
            this.stmts(body);
        });
    }
}

/// The type of a range's values: Numba's rule. Floats are truncated to integers.
fn range_type(args: &[Scalar]) -> Scalar {
    let narrow = |scalar: &Scalar| match scalar {
        Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::Bool => Scalar::I32,
        Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => Scalar::U64,
        Scalar::I64 | Scalar::F32 | Scalar::F64 => Scalar::I64,
    };
    let mut types = args.iter().map(narrow);
    let Some(first) = types.next() else { return Scalar::I64 };
    let ty = types.fold(first, |a, b| if a == b { a } else { Scalar::I64 });
    debug_assert!(promote::is_integral(ty));
    ty
}
