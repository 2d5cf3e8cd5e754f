//! `and`, `or` and `a if c else b`: only the selected operand is evaluated.
//!
//! If the operands need no statements (no loads, no calls), both are evaluated and one is selected.

use weft_artifact::Scalar;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::{FnLowerer, Truth},
        object::ObjectKind,
        optional::narrowings,
        promote,
        state::{self, Env},
        ty::Ty,
        value::Value,
    },
    ir::{BinaryOp, Block, ExprId, StmtKind as Ir},
    request::Typing,
    source::Span,
    syntax::ast::Expr,
};

impl FnLowerer<'_> {
    pub(super) fn bool_op(&mut self, and: bool, values: &[Expr], span: Span) -> Value {
        let Some((first, rest)) = values.split_first() else { return Value::Poison };
        let left = self.expr_or_none(first);
        self.where_true.clear();
        let value = self.bool_rest(and, left, first, rest, span);
        if !and {
            self.where_true.clear();
        }
        value
    }

    /// The rest of a chain, after the operand `of` with the value `left`.
    fn bool_rest(&mut self, and: bool, left: Value, of: &Expr, rest: &[Expr], span: Span) -> Value {
        let Some((right, more)) = rest.split_first() else { return left };
        let at = of.span;
        let narrowings = narrowings(of, and);
        let code: Vec<&Expr> = rest.iter().collect();
        if let Some(cond) = left.condition() {
            // The common case: the operands are bools.
            return self.short_circuit(and, cond, span, |this| {
                this.narrowed(&narrowings, &code, |this| this.operand_and_rest(and, right, more, span))
            });
        }
        // In Python the result is the operand itself.
        let left = self.settle(left, at);
        let test = self.reread(&left, at);
        match self.truth(test, at) {
            Truth::Poison => Value::Poison,
            Truth::Known(known) if known == and => self.operand_and_rest(and, right, more, span),
            Truth::Known(_) => left,
            Truth::Expr(cond) => {
                let other = |this: &mut Self| {
                    this.narrowed(&narrowings, &code, |this| this.operand_and_rest(and, right, more, span))
                };
                let value = if and {
                    self.choose(cond, other, |_| left.clone(), span)
                } else {
                    self.choose(cond, |_| left.clone(), other, span)
                };
                self.where_true.clear();
                value
            }
        }
    }

    /// An operand of a chain and the operands after it.
    fn operand_and_rest(&mut self, and: bool, operand: &Expr, rest: &[Expr], span: Span) -> Value {
        let value = self.expr_or_none(operand);
        self.where_true.clear();
        self.bool_rest(and, value, operand, rest, span)
    }

    /// `left and right()` for the links of a chained comparison.
    pub(in crate::frontend) fn and_then(
        &mut self,
        left: Value,
        span: Span,
        right: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        if let Some(cond) = left.condition() {
            return self.short_circuit(true, cond, span, right);
        }
        let left = self.settle(left, span);
        let test = self.reread(&left, span);
        match self.truth(test, span) {
            Truth::Poison => Value::Poison,
            Truth::Known(true) => right(self),
            Truth::Known(false) => left,
            Truth::Expr(cond) => self.choose(cond, right, |_| left, span),
        }
    }

    /// `cond and right()` or `cond or right()` for a `Bool` expression, and whether it is weak.
    fn short_circuit(
        &mut self,
        and: bool,
        (cond, weak): (ExprId, bool),
        span: Span,
        right: impl FnOnce(&mut Self) -> Value,
    ) -> Value {
        let before = self.env.clone();
        self.b.open();
        let value = right(self);
        let mut block = self.b.close();
        let mut after = self.env.take();
        let joined = state::join(&[&before, &after], self.typing());
        // A `:=` in the right operand may change a variable's type or constant value.
        if and && let Some(bound) = self.bound_where_true(&after, &joined) {
            block.extend(self.conversions(after, &bound, span));
            after = bound;
        }
        block.extend(self.conversions(after, &joined, span));
        let unchanged = self.conversions(before, &joined, span);
        self.env = joined;
        let known = if let Value::Bool(known) = value { Some(known) } else { None };
        if block.is_empty() && unchanged.is_empty() {
            if let Some(known) = known {
                // `cond and True` is cond; `cond and False` is False.
                return match (known == and, weak || self.typing() == Typing::Numba) {
                    (true, _) => bool_of(cond, weak),
                    (false, true) => Value::Bool(known),
                    // With NumPy's typing rules it is a NumPy bool: `~(typed and False)` is True, `~False` is -1.
                    (false, false) => bool_of(self.b.bool(known, span), false),
                };
            }
            if let Some((expr, other)) = value.condition() {
                let op = if and { BinaryOp::And } else { BinaryOp::Or };
                return bool_of(self.b.binary(op, cond, expr, span), weak && other);
            }
        }
        // The condition is evaluated before the right operand's statements.
        let left = |this: &mut Self| bool_of(this.b.bool(!and, span), weak);
        if and {
            self.merge(cond, (block, value), unchanged, left, span)
        } else {
            let right = (block, value);
            self.merge_swapped(cond, right, unchanged, left, span)
        }
    }

    /// Records the variables whose type differs between the true path of an `and` and the code after it: on the true
    /// path they have the type that the right operand gave them. Returns the environment of the true path.
    fn bound_where_true(&mut self, after: &Env, joined: &Env) -> Option<Env> {
        let (Some(after), Some(joined)) = (after, joined) else { return None };
        let mut bound = after.clone();
        let mut found = false;
        for (name, var) in &mut bound {
            let ty = var.ty.widened(self.typing());
            let usual = joined.get(name).is_none_or(|joined| joined.ty == ty || joined.ty == var.ty);
            let noted = self.where_true.iter().any(|(known, _)| known == name);
            match var.ty {
                Ty::Conflict(_) | Ty::Bottom | Ty::Poison => continue,
                Ty::Scalar(_)
                | Ty::Complex(_)
                | Ty::Int(_)
                | Ty::Bool(_)
                | Ty::Array(_)
                | Ty::Object(..)
                | Ty::Static(_) => {}
            }
            if !usual && !noted && !var.maybe_undefined {
                var.ty = ty;
                self.where_true.push((name.clone(), var.clone()));
                found = true;
            }
        }
        found.then_some(Some(bound))
    }

    /// The statements that convert variables to the joined types.
    fn conversions(&mut self, env: Env, joined: &Env, span: Span) -> Block {
        self.b.open();
        self.close_arm(env, joined, span)
    }

    /// `if cond: right else: left`.
    fn merge(
        &mut self,
        cond: ExprId,
        (then, value): (Block, Value),
        mut otherwise: Block,
        left: impl FnOnce(&mut Self) -> Value,
        span: Span,
    ) -> Value {
        self.b.open();
        let other = left(self);
        otherwise.extend(self.b.close());
        self.select_blocks(cond, (then, value), (otherwise, other), span)
    }

    fn merge_swapped(
        &mut self,
        cond: ExprId,
        right: (Block, Value),
        mut then: Block,
        left: impl FnOnce(&mut Self) -> Value,
        span: Span,
    ) -> Value {
        self.b.open();
        let value = left(self);
        then.extend(self.b.close());
        self.select_blocks(cond, (then, value), right, span)
    }

    pub(super) fn if_exp(&mut self, test: &Expr, body: &Expr, orelse: &Expr, span: Span) -> Value {
        let value = self.expr_or_none(test);
        match self.truth(value, test.span) {
            Truth::Known(true) => self.expr_or_none(body),
            Truth::Known(false) => self.expr_or_none(orelse),
            Truth::Poison => {
                self.expr_or_none(body);
                self.expr_or_none(orelse);
                Value::Poison
            }
            Truth::Expr(cond) => {
                let arm = |this: &mut Self, arm: &Expr, holds| {
                    this.narrowed(&narrowings(test, holds), &[arm], |this| this.expr_or_none(arm))
                };
                self.choose(cond, |this| arm(this, body, true), |this| arm(this, orelse, false), span)
            }
        }
    }

    /// The value of one of two branches, of which only the selected one is evaluated.
    pub(in crate::frontend) fn choose(
        &mut self,
        cond: ExprId,
        then: impl FnOnce(&mut Self) -> Value,
        otherwise: impl FnOnce(&mut Self) -> Value,
        span: Span,
    ) -> Value {
        let before = self.env.clone();
        self.b.open();
        let a = then(self);
        let mut then = self.b.close();
        let then_end = std::mem::replace(&mut self.env, before);
        self.b.open();
        let b = otherwise(self);
        let mut otherwise = self.b.close();
        let else_end = self.env.take();
        let joined = state::join(&[&then_end, &else_end], self.typing());
        then.extend(self.conversions(then_end, &joined, span));
        otherwise.extend(self.conversions(else_end, &joined, span));
        self.env = joined;
        self.select_blocks(cond, (then, a), (otherwise, b), span)
    }

    /// The value of the block that `cond` selects, converted to the unified type.
    fn select_blocks(
        &mut self,
        cond: ExprId,
        (mut then, a): (Block, Value),
        (mut otherwise, b): (Block, Value),
        span: Span,
    ) -> Value {
        let ty = promote::join(&self.ty_of(&a), span, &self.ty_of(&b), span, self.typing());
        match &ty {
            Ty::Bottom | Ty::Poison => return Value::Poison,
            Ty::Conflict(conflict) => {
                let diagnostic = Diagnostic::error(
                    Code::CannotJoin,
                    span,
                    format!("the value is {} on one path and {} on the other", conflict.first, conflict.second),
                );
                return self.report(diagnostic);
            }
            Ty::Scalar(_)
            | Ty::Complex(_)
            | Ty::Int(_)
            | Ty::Bool(_)
            | Ty::Array(_)
            | Ty::Object(..)
            | Ty::Static(_) => {}
        }
        // In a dry run the type of one of the two may be unknown; then the other one decides.
        let known = !matches!((&a, &b), (Value::Poison, _) | (_, Value::Poison));
        let real = match &ty {
            Ty::Scalar(scalar) => Some((*scalar, false)),
            Ty::Object(ObjectKind::Weak, items) => items.first().and_then(Ty::scalar).map(|scalar| (scalar, true)),
            Ty::Complex(_)
            | Ty::Int(_)
            | Ty::Bool(_)
            | Ty::Array(_)
            | Ty::Object(..)
            | Ty::Static(_)
            | Ty::Conflict(_)
            | Ty::Bottom
            | Ty::Poison => None,
        };
        if known
            && then.is_empty()
            && otherwise.is_empty()
            && let Some((scalar, weak)) = real
        {
            let (Some(a), Some(b)) = (self.number(&a, scalar, span), self.number(&b, scalar, span)) else {
                return Value::Poison;
            };
            let value = Value::Scalar(self.b.select(cond, a, b, span), scalar);
            return if weak { value.weak() } else { value };
        }
        let locals: Vec<_> = ty.parts().into_iter().map(|(_, part)| self.b.new_temp(part)).collect();
        for (block, value) in [(&mut then, a), (&mut otherwise, b)] {
            self.b.open();
            let is_known = !self.is_dry() && !value.ty().is_poison();
            match self.try_convert(value, &ty, span) {
                Some(value) => self.store_parts(&locals, value, span),
                None if is_known => {
                    self.cx.fault(self.at(span), "a branch has a type that its joined type does not hold");
                }
                None => {}
            }
            block.extend(self.b.close());
        }
        self.stmt(Ir::If { cond, then, otherwise }, span);
        self.rebuild(&ty, &mut locals.into_iter(), span)
    }
}

/// A `Bool` expression as a value. It is weak if both operands are, as Python's `and` and `or` return one of them.
fn bool_of(expr: ExprId, weak: bool) -> Value {
    let value = Value::Scalar(expr, Scalar::Bool);
    if weak { value.weak() } else { value }
}
