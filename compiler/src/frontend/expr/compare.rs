//! Comparisons, chained or not: `a < b <= c` evaluates `b` once and stops at the first false comparison.

use weft_artifact::{ClassKind, Complex, Number, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        float8,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        prelude, promote, refusals,
        ty::Ty,
        value::Value,
    },
    ir::{BinaryOp, CompareOp, ExprId, Type},
    source::Span,
    syntax::ast::{self, CmpOp, Expr},
};

impl FnLowerer<'_> {
    pub(super) fn compare_chain(&mut self, left: &Expr, rest: &[(CmpOp, Expr)], span: Span) -> Value {
        let first = self.expr_or_none(left);
        if let [(op, right)] = rest {
            let first = self.before(first, left.span, [right]);
            let right = self.expr_or_none(right);
            return self.compare(*op, first, right, span);
        }
        let first = self.before(first, left.span, rest.iter().map(|(_, later)| later));
        self.compare_links(first, rest, span)
    }

    /// `left op0 c0 and c0 op1 c1 …`, each operand evaluated once.
    fn compare_links(&mut self, left: Value, rest: &[(CmpOp, Expr)], span: Span) -> Value {
        let Some(((op, right), more)) = rest.split_first() else { return Value::Bool(true) };
        let right_value = self.expr_or_none(right);
        if more.is_empty() {
            return self.compare(*op, left, right_value, span);
        }
        // Without statements between the comparisons, both are computed and combined.
        let is_leaf = matches!(right.kind, ast::ExprKind::Name(_) | ast::ExprKind::Constant(_));
        let right_value = if is_leaf {
            self.before(right_value, right.span, more.iter().map(|(_, later)| later))
        } else {
            self.settle(right_value, right.span)
        };
        let again = self.reread(&right_value, right.span);
        let first = self.compare(*op, left, again, span);
        self.and_then(first, span, |this| this.compare_links(right_value, more, span))
    }

    pub(in crate::frontend) fn compare(&mut self, op: CmpOp, left: Value, right: Value, span: Span) -> Value {
        // NumPy's numbers and dates compare to a NumPy bool, everything else to a Python bool.
        let numpys = |ty: &Ty| {
            ty.number().is_some() || ty.optional().is_some() || matches!(ty, Ty::Object(ObjectKind::Time(_), _))
        };
        let identity = matches!(op, CmpOp::Is | CmpOp::IsNot | CmpOp::In | CmpOp::NotIn);
        let is_numpys = !identity && (numpys(&left.ty()) || numpys(&right.ty()));
        let value = self.compare_values(op, left, right, span);
        if is_numpys { value } else { self.python(value, span) }
    }

    fn compare_values(&mut self, op: CmpOp, left: Value, right: Value, span: Span) -> Value {
        if matches!(left, Value::Poison) || matches!(right, Value::Poison) {
            return Value::Poison;
        }
        if let Some(value) = self.compare_or_none(op, &left, &right, span) {
            return value;
        }
        let is_in = matches!(op, CmpOp::In | CmpOp::NotIn);
        let left = if is_in { left } else { self.not_none(left, span) };
        let right = self.not_none(right, span);
        let left = self.element_of_none(left, span);
        if matches!(op, CmpOp::In | CmpOp::NotIn) {
            return self.contains(op, &left, &right, span);
        }
        let right = self.element_of_none(right, span);
        if let Some(value) = self.text_compare(op, &left, &right, span) {
            return value;
        }
        if let Some(known) = known(op, &left, &right) {
            return Value::Bool(known);
        }
        if let (Value::Object(kind, a), Value::Object(other, b)) = (&left, &right) {
            let whole = matches!(op, CmpOp::Eq | CmpOp::NotEq | CmpOp::Is | CmpOp::IsNot);
            if kind.is_tuple() && other.is_tuple() {
                return self.compare_tuples(op, a.clone(), b.clone(), span);
            }
            if let (ObjectKind::Range(_), ObjectKind::Range(_), true) = (kind, other, whole) {
                let same = self.same_ranges(left, right, span);
                return self.negated_if(matches!(op, CmpOp::NotEq | CmpOp::IsNot), same, span);
            }
            if kind == other && whole && matches!(kind, ObjectKind::Enum(_) | ObjectKind::Struct(_)) {
                let op = if matches!(op, CmpOp::Eq | CmpOp::Is) { CmpOp::Eq } else { CmpOp::NotEq };
                // Constant members have constant values.
                return match (kind, a.as_slice(), b.as_slice()) {
                    (ObjectKind::Enum(_), [x], [y]) => self.compare(op, x.clone(), y.clone(), span),
                    (_, x, y) => self.compare_tuples(op, x.to_vec(), y.to_vec(), span),
                };
            }
        }
        if matches!(op, CmpOp::Eq | CmpOp::NotEq | CmpOp::Is | CmpOp::IsNot) && of_other_kinds(&left, &right) {
            return Value::Bool(matches!(op, CmpOp::NotEq | CmpOp::IsNot));
        }
        if let Some(value) = self.time_compare(op, &left, &right, span) {
            return value;
        }
        let types = left.ty().number().zip(right.ty().number());
        let Some((a, b)) = types else {
            let message = format!("`{}` cannot compare {} and {}", op.symbol(), left.ty(), right.ty());
            let diagnostic = Diagnostic::error(Code::BadOperand, span, message);
            let of_arrays = matches!(left, Value::Array(_)) || matches!(right, Value::Array(_));
            let of_float8 =
                [&left, &right].iter().any(|value| matches!(value, Value::Object(ObjectKind::Float8(_), _)));
            let help = of_arrays.then_some(refusals::ELEMENTS).or_else(|| of_float8.then_some(float8::HELP));
            return self.report(diagnostic.help_if(help));
        };
        let ir = match op {
            CmpOp::Eq | CmpOp::Is => CompareOp::Eq,
            CmpOp::NotEq | CmpOp::IsNot => CompareOp::Ne,
            CmpOp::Lt => CompareOp::Lt,
            CmpOp::LtE => CompareOp::Le,
            CmpOp::Gt => CompareOp::Gt,
            CmpOp::GtE | CmpOp::In | CmpOp::NotIn => CompareOp::Ge,
        };
        if self.is_numpy() {
            return self.numpy_compare(op, ir, &left, &right, span);
        }
        let (Number::Real(a), Number::Real(b)) = (a, b) else {
            return self.compare_complex(op, ir, &left, &right, promote::arith_complex(a, b), span);
        };
        if let Some(expr) = self.compare_mixed(ir, &left, a, &right, b, span) {
            return Value::Scalar(expr, Scalar::Bool);
        }
        let ty = promote::arith_real(a, b);
        let (Some(x), Some(y)) = (self.number(&left, ty, span), self.number(&right, ty, span)) else {
            return Value::Poison;
        };
        Value::Scalar(self.b.compare(ir, x, y, span), Scalar::Bool)
    }

    /// Compares `int64` with `uint64` exactly, where Numba compares as float64. A constant int that fits the other type
    /// is not a mixed comparison.
    pub(super) fn compare_mixed(
        &mut self,
        op: CompareOp,
        left: &Value,
        a: Scalar,
        right: &Value,
        b: Scalar,
        span: Span,
    ) -> Option<ExprId> {
        let signed = |s: Scalar| s.is_signed_int() || s == Scalar::Bool;
        let (swapped, small, big) = match (a, b) {
            (Scalar::U64, other) if signed(other) => (true, right, left),
            (other, Scalar::U64) if signed(other) => (false, left, right),
            _ => return None,
        };
        if let Value::Int(known) = small
            && *known >= 0
        {
            let x = self.number(left, Scalar::U64, span)?;
            let y = self.number(right, Scalar::U64, span)?;
            return Some(self.b.compare(op, x, y, span));
        }
        let signed = self.number(small, Scalar::I64, span)?;
        let signed = self.b.temp(signed, span);
        let unsigned = self.number(big, Scalar::U64, span)?;
        let (now, zero) = (self.b.read(signed, span), self.b.i64(0, span));
        let negative = self.b.compare(CompareOp::Lt, now, zero, span);
        let now = self.b.read(signed, span);
        let now = self.b.convert(now, Type::Scalar(Scalar::U64), span);
        let plain =
            if swapped { self.b.compare(op, unsigned, now, span) } else { self.b.compare(op, now, unsigned, span) };
        // A negative number is less than every unsigned one.
        let if_negative = match (op, swapped) {
            (CompareOp::Eq, _) => false,
            (CompareOp::Ne, _) => true,
            (CompareOp::Lt | CompareOp::Le, swapped) => !swapped,
            (CompareOp::Gt | CompareOp::Ge, swapped) => swapped,
        };
        let answer = self.b.bool(if_negative, span);
        Some(self.b.select(negative, answer, plain, span))
    }

    pub(super) fn compare_complex(
        &mut self,
        op: CmpOp,
        ir: CompareOp,
        left: &Value,
        right: &Value,
        ty: Complex,
        span: Span,
    ) -> Value {
        if !matches!(ir, CompareOp::Eq | CompareOp::Ne) {
            let diagnostic = Diagnostic::error(
                Code::BadOperand,
                span,
                format!("`{}` cannot compare {} and {}", op.symbol(), left.ty(), right.ty()),
            )
            .note("complex numbers have no order")
            .help("compare `abs(z)`, `z.real` or `z.imag`");
            return self.report(diagnostic);
        }
        let (Some((ar, ai)), Some((br, bi))) = (self.complex(left, ty, span), self.complex(right, ty, span)) else {
            return Value::Poison;
        };
        let real = self.b.compare(ir, ar, br, span);
        let imag = self.b.compare(ir, ai, bi, span);
        let both = if ir == CompareOp::Eq { BinaryOp::And } else { BinaryOp::Or };
        Value::Scalar(self.b.binary(both, real, imag, span), Scalar::Bool)
    }

    fn compare_tuples(&mut self, op: CmpOp, a: Vec<Value>, b: Vec<Value>, span: Span) -> Value {
        if !matches!(op, CmpOp::Eq | CmpOp::NotEq) {
            let a = a.into_iter().map(|item| self.settle(item, span)).collect();
            let b = b.into_iter().map(|item| self.settle(item, span)).collect();
            return self.order_tuples(op, a, b, span);
        }
        if a.len() != b.len() {
            return Value::Bool(op == CmpOp::NotEq);
        }
        let combine = if op == CmpOp::Eq { BinaryOp::And } else { BinaryOp::Or };
        let mut result: Option<ExprId> = None;
        for (x, y) in a.into_iter().zip(b) {
            let same = self.compare(op, x, y, span);
            let Some(expr) = self.number(&same, Scalar::Bool, span) else { return Value::Poison };
            result = Some(match result {
                None => expr,
                Some(before) => self.b.binary(combine, before, expr, span),
            });
        }
        result.map_or(Value::Bool(op == CmpOp::Eq), |expr| Value::Scalar(expr, Scalar::Bool))
    }

    /// `a < b` and similar comparisons: the first different items decide, or else the lengths.
    fn order_tuples(&mut self, op: CmpOp, a: Vec<Value>, b: Vec<Value>, span: Span) -> Value {
        let (Some(x), Some(y)) = (a.first(), b.first()) else {
            return known(op, &Value::Int(a.len() as i128), &Value::Int(b.len() as i128))
                .map_or(Value::Poison, Value::Bool);
        };
        let pair = |this: &mut Self| (this.reread(x, span), this.reread(y, span));
        let (left, right) = pair(self);
        let equal = self.compare(CmpOp::Eq, left, right, span);
        // For different items, strict and non-strict comparisons are equivalent.
        let (left, right) = pair(self);
        let decided = self.compare(op, left, right, span);
        let rest = self.order_tuples(op, a[1..].to_vec(), b[1..].to_vec(), span);
        if let Value::Bool(equal) = equal {
            return if equal { rest } else { decided };
        }
        let parts = [equal, rest, decided].map(|value| self.number(&value, Scalar::Bool, span));
        let [Some(equal), Some(rest), Some(decided)] = parts else { return Value::Poison };
        Value::Scalar(self.b.select(equal, rest, decided, span), Scalar::Bool)
    }

    /// `x in (a, b, c)`, and `x in a` of an array or a range.
    fn contains(&mut self, op: CmpOp, item: &Value, container: &Value, span: Span) -> Value {
        if let Some((container, position)) = self.generated(container) {
            let item = self.settle(item.clone(), span);
            let found = self.holds_of_one(container, position, span, &mut |this, candidate| {
                let again = this.reread(&item, span);
                let same = this.compare(CmpOp::Eq, again, candidate, span);
                this.truth(same, span)
            });
            return self.negated_if(op == CmpOp::NotIn, found, span);
        }
        if let Some(found) = self.text_contains(item, container, span) {
            return self.negated_if(op == CmpOp::NotIn, found, span);
        }
        let looked_for = if let Value::Array(_) = container {
            Some(("holds", vec![container.clone(), item.clone()]))
        } else if let Value::Object(ObjectKind::Range(ty), parts) = container {
            let parts = parts.iter().map(|part| Some(Value::Scalar(self.number(part, *ty, span)?, *ty)));
            let Some(mut args) = parts.collect::<Option<Vec<_>>>() else { return Value::Poison };
            args.push(item.clone());
            Some(("in_range", args))
        } else {
            None
        };
        if let Some((name, args)) = looked_for
            && let Some(function) = prelude::function(name)
        {
            return match self.call_own(&function, args, span) {
                Ok(found) => self.negated_if(op == CmpOp::NotIn, found, span),
                Err(_) => {
                    let message = format!("`{}` cannot search for {} in {}", op.symbol(), item.ty(), container.ty());
                    self.error(Code::BadOperand, span, message)
                }
            };
        }
        let Some(items) = container.as_tuple() else {
            let message =
                format!("`{}` takes a tuple, an array or a range on the right, not {}", op.symbol(), container.ty());
            return self.error(Code::BadOperand, span, message);
        };
        let item = self.settle(item.clone(), span);
        let mut found: Option<ExprId> = None;
        for candidate in items.iter().cloned() {
            let again = self.reread(&item, span);
            let same = self.compare(CmpOp::Eq, again, candidate, span);
            let Some(expr) = self.number(&same, Scalar::Bool, span) else { return Value::Poison };
            found = Some(match found {
                None => expr,
                Some(before) => self.b.binary(BinaryOp::Or, before, expr, span),
            });
        }
        let found = found.map_or(Value::Bool(false), |expr| Value::Scalar(expr, Scalar::Bool));
        self.negated_if(op == CmpOp::NotIn, found, span)
    }

    /// The truth value, or its negation.
    pub(in crate::frontend) fn negated_if(&mut self, negated: bool, found: Value, span: Span) -> Value {
        if !negated {
            return found;
        }
        match found {
            Value::Scalar(expr, ty) => Value::Scalar(self.b.unary(crate::ir::UnaryOp::Not, expr, span), ty),
            Value::Object(ObjectKind::Weak, _) => self.negated_if(negated, found.strong(), span).weak(),
            Value::Bool(known) => Value::Bool(!known),
            other @ (Value::Complex(..)
            | Value::Int(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => other,
        }
    }
}

/// A comparison that is a compile-time constant: of literals, of `None`, of types and functions.
fn known(op: CmpOp, left: &Value, right: &Value) -> Option<bool> {
    let order = match (left, right) {
        (Value::Int(a), Value::Int(b)) => a.cmp(b),
        (Value::Bool(a), Value::Bool(b)) => a.cmp(b),
        (Value::Int(a), Value::Bool(b)) => a.cmp(&i128::from(*b)),
        (Value::Bool(a), Value::Int(b)) => i128::from(*a).cmp(b),
        _ => {
            let statics = |value: &Value| matches!(value, Value::Static(_));
            // Members of two enums are different, even with equal values; so are a member and a number.
            let class = |value: &Value| match value {
                Value::Object(ObjectKind::Enum(class), _) => Some((*class, class.get().kind)),
                Value::Scalar(..)
                | Value::Complex(..)
                | Value::Int(_)
                | Value::Bool(_)
                | Value::Array(_)
                | Value::Object(..)
                | Value::Static(_)
                | Value::Poison => None,
            };
            let identity = matches!(op, CmpOp::Is | CmpOp::IsNot);
            let distinct = match (class(left), class(right)) {
                (Some((a, x)), Some((b, y))) => a != b && (identity || x == ClassKind::Enum || y == ClassKind::Enum),
                (Some((_, kind)), None) | (None, Some((_, kind))) => identity || kind == ClassKind::Enum,
                (None, None) => false,
            };
            if !statics(left) && !statics(right) && !distinct {
                return None;
            }
            // `type(1.0) is float`: compares the number types of Python types.
            let of = |value: &Value| {
                number_class(value).map_or_else(|| value.ty(), |of| Ty::Static(Static::DType(of.into())))
            };
            let same = !distinct && of(left) == of(right);
            return match op {
                CmpOp::Eq | CmpOp::Is => Some(same),
                CmpOp::NotEq | CmpOp::IsNot => Some(!same),
                CmpOp::Lt | CmpOp::LtE | CmpOp::Gt | CmpOp::GtE | CmpOp::In | CmpOp::NotIn => None,
            };
        }
    };
    Some(match op {
        CmpOp::Eq | CmpOp::Is => order.is_eq(),
        CmpOp::NotEq | CmpOp::IsNot => order.is_ne(),
        CmpOp::Lt => order.is_lt(),
        CmpOp::LtE => order.is_le(),
        CmpOp::Gt => order.is_gt(),
        CmpOp::GtE => order.is_ge(),
        CmpOp::In | CmpOp::NotIn => return None,
    })
}

/// Whether one is a tuple or a range, and the other is of a kind that is never equal to it.
fn of_other_kinds(left: &Value, right: &Value) -> bool {
    let sequence = |value: &Value| {
        let range = matches!(value, Value::Object(ObjectKind::Range(_), _));
        if range { Some(0) } else { value.as_tuple().map(|_| 1) }
    };
    let plain = |value: &Value| {
        value.ty().number().is_some() || matches!(value, Value::Object(ObjectKind::Time(_) | ObjectKind::Enum(_), _))
    };
    match (sequence(left), sequence(right)) {
        (Some(a), Some(b)) => a != b,
        (Some(_), None) => plain(right),
        (None, Some(_)) => plain(left),
        (None, None) => false,
    }
}

/// The number type of a Python type.
fn number_class(value: &Value) -> Option<Number> {
    let Value::Static(Static::Known(known)) = value else { return None };
    match known.path() {
        "builtins.bool" => Some(Number::BOOL),
        "builtins.int" => Some(Number::I64),
        "builtins.float" => Some(Number::F64),
        "builtins.complex" => Some(Number::C128),
        _ => None,
    }
}
