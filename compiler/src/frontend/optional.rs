//! Optional values: a flag that there is a value, and the value, which is zero if there is none.
//!
//! The join of `None` with another type is an optional. A test for `None` runs at run time; in the code dominated by
//! the test the variable has the narrowed type. An operation on an optional uses its value; a thread in which it is
//! `None` ends there, as if an assertion failed.

use weft_artifact::Scalar;

use super::{
    expr::binds,
    lowerer::{FnLowerer, Truth},
    object::{Exception, ObjectKind, Static},
    ty::Ty,
    value::Value,
};
use crate::{
    ir::{BinaryOp, ExprId, UnaryOp},
    request::Typing,
    source::Span,
    syntax::{
        OWN_BUILTIN,
        ast::{CmpOp, Constant, Expr, ExprKind},
    },
};

/// A test's implication for a variable.
#[derive(Clone, Debug)]
pub(super) struct Narrowing {
    name: String,
    /// Whether it is `None`, or is not.
    is_none: bool,
}

impl Ty {
    /// The type of the value of an optional.
    pub(super) fn optional(&self) -> Option<&Self> {
        match self {
            Self::Object(ObjectKind::Optional, items) => items.get(1),
            Self::Object(..)
            | Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Array(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison => None,
        }
    }

    /// This type, or `None`.
    pub(super) fn or_none(&self, typing: Typing) -> Self {
        Self::Object(ObjectKind::Optional, vec![Self::Scalar(Scalar::Bool), self.widened(typing)])
    }
}

/// The parts of an optional: the flag and the value.
fn parts(value: Value) -> Result<(Value, Value), Value> {
    match value {
        Value::Object(ObjectKind::Optional, items) => match <[Value; 2]>::try_from(items) {
            Ok([given, inner]) => Ok((given, inner)),
            Err(_) => Err(Value::Poison),
        },
        other @ (Value::Object(..)
        | Value::Scalar(..)
        | Value::Complex(..)
        | Value::Int(_)
        | Value::Bool(_)
        | Value::Array(_)
        | Value::Static(_)
        | Value::Poison) => Err(other),
    }
}

impl FnLowerer<'_> {
    /// The value of an expression, for an operation; the thread ends if it is `None`.
    pub(super) fn expr(&mut self, expr: &Expr) -> Value {
        let value = self.expr_or_none(expr);
        self.not_none(value, expr.span)
    }

    /// A value that is not `None`; the thread ends if it is.
    pub(super) fn not_none(&mut self, value: Value, span: Span) -> Value {
        let (given, inner) = match parts(value) {
            Ok(parts) => parts,
            Err(value) => return value,
        };
        // Its parts are evaluated here.
        let inner = self.settle(inner, span);
        if let Some(given) = self.number(&given, Scalar::Bool, span) {
            let missing = self.b.unary(UnaryOp::Not, given, span);
            let what = "a value is used that is None";
            self.end_thread_if(missing, Exception::builtin("TypeError", what), span);
        }
        inner
    }

    /// `None` as an optional of this type.
    pub(super) fn missing(&mut self, of: &Ty, span: Span) -> Value {
        let inner = self.zeros(of, span);
        self.optional(false, inner, span)
    }

    /// A value of this type with all parts zero.
    pub(super) fn zeros(&mut self, of: &Ty, span: Span) -> Value {
        let zeros: Vec<_> = of
            .parts()
            .into_iter()
            .map(|(_, part)| {
                let zero = self.b.zero(part, span);
                self.b.temp(zero, span)
            })
            .collect();
        self.rebuild(of, &mut zeros.into_iter(), span)
    }

    /// An optional with or without a value.
    pub(super) fn optional(&mut self, given: bool, inner: Value, span: Span) -> Value {
        let given = Value::Scalar(self.b.bool(given, span), Scalar::Bool);
        Value::Object(ObjectKind::Optional, vec![given, inner])
    }

    /// The truth of an optional: that of the value, and `False` for `None`.
    pub(super) fn truth_or_none(&mut self, items: Vec<Value>, span: Span) -> Truth {
        let Ok((given, inner)) = parts(Value::Object(ObjectKind::Optional, items)) else { return Truth::Poison };
        let Some(given) = self.number(&given, Scalar::Bool, span) else { return Truth::Poison };
        match self.truth(inner, span) {
            Truth::Known(true) => Truth::Expr(given),
            Truth::Known(false) => Truth::Known(false),
            Truth::Expr(inner) => Truth::Expr(self.b.binary(BinaryOp::And, given, inner, span)),
            Truth::Poison => Truth::Poison,
        }
    }

    /// A comparison in which an operand is an optional; `None` if neither is.
    pub(super) fn compare_or_none(&mut self, op: CmpOp, left: &Value, right: &Value, span: Span) -> Option<Value> {
        let negated = match op {
            CmpOp::Eq | CmpOp::Is => false,
            CmpOp::NotEq | CmpOp::IsNot => true,
            CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE | CmpOp::In | CmpOp::NotIn => return None,
        };
        let (a, b) = (parts(left.clone()), parts(right.clone()));
        if a.is_err() && b.is_err() {
            return None;
        }
        let is_none = |side: &Result<_, Value>| matches!(side, Err(Value::Static(Static::None)));
        let same = if is_none(&a) || is_none(&b) {
            let ((Ok((given, _)), _) | (_, Ok((given, _)))) = (a, b) else { return Some(Value::Poison) };
            let given = self.number(&given, Scalar::Bool, span)?;
            self.b.unary(UnaryOp::Not, given, span)
        } else {
            let mut flags = Vec::new();
            let mut values = Vec::new();
            for side in [a, b] {
                let (given, value) = side.unwrap_or_else(|value| (Value::Bool(true), value));
                let given = self.number(&given, Scalar::Bool, span)?;
                flags.push(self.b.temp(given, span));
                values.push(self.settle(value, span));
            }
            let [x, y] = <[Value; 2]>::try_from(values).ok()?;
            let [one, other] = <[_; 2]>::try_from(flags).ok()?;
            let read = |this: &mut Self, first| this.b.read(first, span);
            let (p, q) = (read(self, one), read(self, other));
            let both = self.b.binary(BinaryOp::And, p, q, span);
            let (p, q) = (read(self, one), read(self, other));
            let any = self.b.binary(BinaryOp::Or, p, q, span);
            let equal = if op == CmpOp::NotEq || op == CmpOp::Eq { CmpOp::Eq } else { CmpOp::Is };
            // The value must not be read if it is missing: it may be an address.
            let equal = self.if_given(both, |this| this.compare(equal, x, y, span), span);
            let equal = self.number(&equal, Scalar::Bool, span)?;
            let neither = self.b.unary(UnaryOp::Not, any, span);
            self.b.binary(BinaryOp::Or, equal, neither, span)
        };
        let result = if negated { self.b.unary(UnaryOp::Not, same, span) } else { same };
        Some(Value::Scalar(result, Scalar::Bool))
    }

    fn if_given(&mut self, given: ExprId, then: impl FnOnce(&mut Self) -> Value, span: Span) -> Value {
        self.and_then(Value::Scalar(given, Scalar::Bool), span, then)
    }

    /// Narrows the variables' types as a test implies.
    pub(super) fn narrow(&mut self, narrowings: &[Narrowing]) {
        for Narrowing { name, is_none } in narrowings {
            // A call of an inner function may have assigned the variable after the test.
            let writes = |name: &String| self.cx.closures.iter().any(|closure| closure.writes.contains(name));
            if writes(name) {
                continue;
            }
            let Some(var) = self.env.as_mut().and_then(|env| env.get_mut(name)) else { continue };
            let Some(inner) = var.ty.optional().cloned() else { continue };
            if *is_none {
                var.ty = Ty::Static(Static::None);
            } else {
                // It shares the locals of the optional.
                var.ty = inner;
                var.maybe_undefined = false;
            }
        }
    }

    /// Evaluates code that a test guards, with narrowed variables; then restores their types.
    pub(super) fn narrowed<T>(
        &mut self,
        narrowings: &[Narrowing],
        code: &[&Expr],
        run: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let may_be_none = |narrowing: &Narrowing| {
            let var = self.env.as_ref().and_then(|env| env.get(&narrowing.name));
            var.is_some_and(|var| var.ty.optional().is_some())
        };
        if !narrowings.iter().any(may_be_none) {
            return run(self);
        }
        let before = self.env.clone();
        self.narrow(narrowings);
        let narrow = self.env.clone();
        let result = run(self);
        if code.iter().any(|expr| binds(expr)) {
            return result;
        }
        let (Some(before), Some(narrow), Some(env)) = (before, narrow, &mut self.env) else { return result };
        for Narrowing { name, .. } in narrowings {
            if let (Some(old), Some(narrow), Some(now)) = (before.get(name), narrow.get(name), env.get_mut(name))
                && now.ty == narrow.ty
            {
                *now = old.clone();
            }
        }
        result
    }
}

fn is_own_isinstance(func: &Expr) -> bool {
    let ExprKind::Name(name) = &func.kind else { return false };
    name.strip_suffix(OWN_BUILTIN) == Some("isinstance")
}

/// The narrowings that hold if a test has the result `holds`.
pub(super) fn narrowings(test: &Expr, holds: bool) -> Vec<Narrowing> {
    let of_name = |expr: &Expr, is_none| {
        let name = if let ExprKind::Named { target, .. } = &expr.kind { &target.kind } else { &expr.kind };
        let narrowing = |name: &String| Narrowing { name: name.clone(), is_none };
        if let ExprKind::Name(name) = name { vec![narrowing(name)] } else { Vec::new() }
    };
    let is_none = |expr: &Expr| matches!(expr.kind, ExprKind::Constant(Constant::None));
    match &test.kind {
        ExprKind::Unary { op: crate::syntax::ast::UnaryOp::Not, operand } => narrowings(operand, !holds),
        ExprKind::Bool { and, values } if *and == holds => {
            let mut all: Vec<Narrowing> = Vec::new();
            for value in values {
                let mut own = narrowings(value, holds);
                // The name that it binds may be one that was narrowed before.
                if binds(value) {
                    all.clear();
                }
                all.append(&mut own);
            }
            all
        }
        ExprKind::Compare { left, rest } => match rest.as_slice() {
            [(op @ (CmpOp::Is | CmpOp::Eq | CmpOp::IsNot | CmpOp::NotEq), right)] => {
                let says_none = matches!(op, CmpOp::Is | CmpOp::Eq) == holds;
                if is_none(right) {
                    of_name(left, says_none)
                } else if is_none(left) {
                    of_name(right, says_none)
                } else {
                    Vec::new()
                }
            }
            _ => Vec::new(),
        },
        ExprKind::Name(_) | ExprKind::Named { .. } if holds => of_name(test, false),
        // The test of a sequence pattern, which uses a name of its own.
        ExprKind::Call { func, args, .. } if holds && is_own_isinstance(func) => {
            args.first().map_or_else(Vec::new, |subject| of_name(subject, false))
        }
        ExprKind::Name(_)
        | ExprKind::Named { .. }
        | ExprKind::Call { .. }
        | ExprKind::Bool { .. }
        | ExprKind::Unary { .. }
        | ExprKind::Constant(_)
        | ExprKind::Binary { .. }
        | ExprKind::IfExp { .. }
        | ExprKind::Attribute { .. }
        | ExprKind::Subscript { .. }
        | ExprKind::Slice { .. }
        | ExprKind::Tuple(_)
        | ExprKind::List(_)
        | ExprKind::Starred(_)
        | ExprKind::Lambda(_)
        | ExprKind::Comprehension { .. }
        | ExprKind::Unsupported(_) => Vec::new(),
    }
}
