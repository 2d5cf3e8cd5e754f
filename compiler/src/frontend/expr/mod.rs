//! Expressions: one file per family.

mod attribute;
mod backward;
mod binary;
mod call;
mod closure;
mod compare;
mod comprehension;
mod constant;
mod decided;
mod flat;
mod index;
mod logic;
mod matmul;
mod name;
mod numpy;
mod object;
mod overloaded;
mod power;
mod range;
mod scope;
mod store;
mod subscript;
mod text;
mod time;
mod within;

pub(super) use call::{Args, shown_types};
pub(super) use index::Index;
pub use name::no_builtin;
pub(super) use name::used_before;
pub(super) use object::FieldIndex;
pub(super) use text::{Text, by_letters};

use weft_artifact::{Complex, MAX_LEAVES, Scalar};

use super::{
    lowerer::FnLowerer,
    object::{ObjectKind, Static},
    refusals,
    value::{LibraryName, Value},
    weak::Operand,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::UnaryOp as IrUnary,
    request::Captured,
    source::Span,
    stop,
    syntax::{
        ast::{BinOp, Constant, Expr, ExprKind, UnaryOp},
        is_too_long,
    },
};

impl FnLowerer<'_> {
    /// Lowers an expression: side effects become statements, in Python's order of evaluation. The value may be an
    /// optional.
    pub(super) fn expr_or_none(&mut self, expr: &Expr) -> Value {
        let value = self.expr_value(expr);
        if matches!(value, Value::Poison) && !self.is_dry() && !self.cx.explained() {
            self.cx.fault(self.at(expr.span), "an expression has no value, and no error was reported");
        }
        value
    }

    fn expr_value(&mut self, expr: &Expr) -> Value {
        let value = self.kind_of_expr(expr);
        if !matches!(expr.kind, ExprKind::Constant(_)) {
            self.note_type(&value.ty(), expr.span, None);
        }
        value
    }

    fn kind_of_expr(&mut self, expr: &Expr) -> Value {
        stop::check();
        let span = expr.span;
        match &expr.kind {
            ExprKind::Name(name) => {
                let value = self.name(name, span);
                self.record_type(name, &value.ty(), span);
                value
            }
            ExprKind::Constant(constant) => self.constant(constant, span),
            ExprKind::Binary { op, left, right } if is_too_long(*op, left, right) => {
                let what = format!("`{}` of these integers", op.symbol());
                self.too_long(&what, span)
            }
            ExprKind::Binary { op, left, right } => {
                let left_value = self.expr(left);
                let left_value = self.before(left_value, left.span, [&**right]);
                let right = self.expr(right);
                self.binary(*op, left_value, right, span)
            }
            ExprKind::Unary { op, operand } => {
                let value = self.expr_or_none(operand);
                self.unary(*op, value, span)
            }
            ExprKind::Bool { and, values } => self.bool_op(*and, values, span),
            ExprKind::Compare { left, rest } => self.compare_chain(left, rest, span),
            ExprKind::IfExp { test, body, orelse } => self.if_exp(test, body, orelse, span),
            ExprKind::Call { func, args, keywords } => self.call(func, args, keywords, span),
            ExprKind::Attribute { value, attr } => self.attribute(value, attr, span),
            ExprKind::Subscript { value, index } => {
                let base = self.expr(value);
                let base = self.before(base, value.span, [&**index]);
                match self.indices(index) {
                    Some(indices) => match self.not_an_array(value, &base.ty(), Code::BadIndex, span) {
                        Some(diagnostic) => self.report(diagnostic),
                        None => self.subscript(base, &indices, span),
                    },
                    None => Value::Poison,
                }
            }
            ExprKind::Tuple(items) => {
                let mut values = Vec::new();
                let mut known = true;
                for (at, item) in items.iter().enumerate() {
                    let ExprKind::Starred(inner) = &item.kind else {
                        let value = self.expr_or_none(item);
                        values.push(self.before(value, item.span, &items[at + 1..]));
                        continue;
                    };
                    let value = self.expr(inner);
                    let value = self.gathered(value, item.span);
                    let value = self.before(value, item.span, &items[at + 1..]);
                    match value.as_tuple() {
                        Some(inner) => values.extend(inner.iter().cloned()),
                        None => {
                            // The number of items is unknown, so operations on the tuple report no further errors.
                            known = false;
                            if !value.ty().is_poison() {
                                let message = format!("`*` unpacks tuples, not {}", value.ty());
                                self.error(Code::UnsupportedExpression, item.span, message);
                            }
                        }
                    }
                }
                if known { self.tuple(values, span) } else { Value::Poison }
            }
            ExprKind::Named { target, value } => {
                let value = self.expr_or_none(value);
                let value = self.settle(value, span);
                let again = self.reread(&value, span);
                self.assign_to(target, again, span);
                value
            }
            ExprKind::Lambda(function) => self.closure(function),
            ExprKind::Comprehension { element, loops } => self.comprehension(element, loops, span),
            ExprKind::Slice { .. } => self.error(Code::UnsupportedExpression, span, "a slice can only be an index"),
            ExprKind::List(_) => {
                let diagnostic = Diagnostic::error(Code::UnsupportedExpression, span, "a kernel cannot make a list")
                    .help("use a tuple, or `cuda.local.array(shape, dtype)`");
                self.report(diagnostic)
            }
            ExprKind::Starred(_) => {
                self.error(Code::UnsupportedExpression, span, "a kernel cannot unpack with `*` here")
            }
            ExprKind::Unsupported(what) => {
                let message = format!("a kernel cannot have {} {what}", weft_artifact::article(what));
                let diagnostic = Diagnostic::error(Code::UnsupportedExpression, span, message);
                self.report(diagnostic.help(refusals::suggestion(what)))
            }
        }
    }

    /// A tuple; reports one with too many items to compile.
    pub(in crate::frontend) fn tuple(&mut self, items: Vec<Value>, span: Span) -> Value {
        fn leaves(items: &[Value]) -> usize {
            items.iter().map(|item| if let Value::Object(_, items) = item { leaves(items) } else { 1 }).sum()
        }
        if leaves(&items) > MAX_LEAVES {
            let message = format!("a tuple of more than {MAX_LEAVES} values, including those in its items");
            let diagnostic = Diagnostic::error(Code::UnsupportedValue, span, message);
            return self.report(diagnostic.help("use an array: each value of a tuple is a separate variable"));
        }
        Value::tuple(items)
    }

    /// A value that is read before `later` is evaluated, so that its assignments and stores do not change it.
    pub(super) fn before<'e>(&mut self, value: Value, span: Span, later: impl IntoIterator<Item = &'e Expr>) -> Value {
        let later: Vec<&Expr> = later.into_iter().collect();
        for expr in &later {
            self.check_held(&value, expr.span, span);
        }
        // A call may store, but assigns no name except by `nonlocal`.
        let rebinds = if matches!(value, Value::Array(_)) && !self.names.calls_bind { binds } else { has_effect };
        let changes = later.into_iter().any(rebinds);
        if !changes {
            return value;
        }
        let value = self.with_own_strings(value, span);
        self.settle(value, span)
    }

    pub(super) fn constant(&mut self, constant: &Constant, span: Span) -> Value {
        match constant {
            Constant::None => Value::Static(Static::None),
            Constant::Bool(value) => Value::Bool(*value),
            Constant::Int(value) => match i128::try_from(value).map(Captured::of_int) {
                Ok(captured @ (Captured::Int(_) | Captured::NumpyInt(..))) => self.captured(&captured, "", span),
                _ => self.too_long(&value.to_string(), span),
            },
            Constant::Float(value) => {
                let value = self.b.float(Scalar::F64, *value, span);
                self.python(Value::Scalar(value, Scalar::F64), span)
            }
            Constant::Complex(real, imag) => {
                let real = self.b.float(Scalar::F64, *real, span);
                let imag = self.b.float(Scalar::F64, *imag, span);
                self.python(Value::Complex(real, imag, Complex::C128), span)
            }
            Constant::Str(text) => Value::Static(Static::Str(text.clone())),
            Constant::Bytes(text) => Value::Static(Static::Bytes(text.clone())),
            Constant::Ellipsis => Value::Static(Static::Known(LibraryName::Path("builtins.Ellipsis".to_owned()))),
        }
    }

    fn too_long(&mut self, what: &str, span: Span) -> Value {
        let message = format!("{what} does not fit 64 bits");
        let diagnostic = Diagnostic::error(Code::UnsupportedExpression, span, message);
        self.report(diagnostic.help("the integers of a kernel go from -9223372036854775808 to 18446744073709551615"))
    }

    pub(super) fn unary(&mut self, op: UnaryOp, value: Value, span: Span) -> Value {
        if op == UnaryOp::Not {
            return match self.truth(value, span) {
                super::lowerer::Truth::Known(known) => Value::Bool(!known),
                super::lowerer::Truth::Expr(expr) => {
                    let expr = self.b.unary(IrUnary::Not, expr, span);
                    self.python(Value::Scalar(expr, Scalar::Bool), span)
                }
                super::lowerer::Truth::Poison => Value::Poison,
            };
        }
        let value = self.not_none(value, span);
        if self.is_numpy()
            && !matches!(value, Value::Int(_))
            && let Some(operand) = Operand::of(&value.ty())
        {
            return self.numpy_unary(op, value, operand, span);
        }
        self.numba_unary(op, value, span)
    }

    fn numba_unary(&mut self, op: UnaryOp, value: Value, span: Span) -> Value {
        match (op, &value) {
            (_, Value::Poison) => Value::Poison,
            (UnaryOp::Plus, Value::Int(known)) => Value::Int(*known),
            (UnaryOp::Minus, Value::Int(known)) => self.folded(*known, -known, span),
            (UnaryOp::Invert, Value::Int(known)) => self.folded(*known, !known, span),
            (UnaryOp::Plus | UnaryOp::Minus, Value::Complex(real, imag, ty)) => {
                if op == UnaryOp::Plus {
                    return value;
                }
                let real = self.b.unary(IrUnary::Neg, *real, span);
                let imag = self.b.unary(IrUnary::Neg, *imag, span);
                Value::Complex(real, imag, *ty)
            }
            // `NaT`, the lowest count, is its own negative.
            (UnaryOp::Plus | UnaryOp::Minus, Value::Object(ObjectKind::Time(time), items)) if time.is_span => {
                let counts = items.iter().map(|count| self.unary(op, count.clone(), span)).collect();
                Value::Object(ObjectKind::Time(*time), counts)
            }
            (UnaryOp::Plus | UnaryOp::Minus, _) if value.ty().scalar().is_some() => {
                let from = value.ty().scalar().unwrap_or(Scalar::I64);
                // Integers are widened to 64 bits, a bool to int64.
                let ty = if from.is_float() { from } else { super::promote::arith_real(from, from) };
                let Some(expr) = self.number(&value, ty, span) else { return Value::Poison };
                let expr = if op == UnaryOp::Minus { self.b.unary(IrUnary::Neg, expr, span) } else { expr };
                Value::Scalar(expr, ty)
            }
            (UnaryOp::Invert, _) if value.ty().scalar().is_some_and(super::promote::is_integral) => {
                let from = value.ty().scalar().unwrap_or(Scalar::I64);
                let ty = if from == Scalar::Bool { from } else { super::promote::arith_real(from, from) };
                let Some(expr) = self.number(&value, ty, span) else { return Value::Poison };
                Value::Scalar(self.b.unary(IrUnary::Not, expr, span), ty)
            }
            _ => {
                let symbol = match op {
                    UnaryOp::Plus => "+",
                    UnaryOp::Minus => "-",
                    UnaryOp::Invert => "~",
                    UnaryOp::Not => "not",
                };
                let message = format!("unary `{symbol}` does not take {}", value.ty());
                let help = refusals::instead_of_operand(&value).filter(|_| !matches!(value, Value::Array(_)));
                self.report(Diagnostic::error(Code::BadOperand, span, message).help_if(help))
            }
        }
    }

    /// The result of an operation on a constant int, wrapped to the type of the int.
    pub(super) fn folded(&mut self, operand: i128, result: i128, span: Span) -> Value {
        if i64::try_from(result).is_ok() {
            // The smallest `int64` is written as the negation of a `uint64` literal.
            return Value::Int(result);
        }
        let ty = super::ty::int_scalar(operand);
        match super::lowerer::wrap_int(result, ty) {
            wrapped if ty == Scalar::I64 => Value::Int(wrapped),
            wrapped => Value::Scalar(self.b.int(ty, wrapped, span), ty),
        }
    }

    /// Rereads a materialized value for another use.
    pub(super) fn reread(&mut self, value: &Value, span: Span) -> Value {
        match value {
            Value::Scalar(expr, ty) => Value::Scalar(self.b.again(*expr, span), *ty),
            Value::Complex(real, imag, ty) => Value::Complex(self.b.again(*real, span), self.b.again(*imag, span), *ty),
            Value::Object(kind, items) => {
                Value::Object(kind.clone(), items.iter().map(|item| self.reread(item, span)).collect())
            }
            other @ (Value::Int(_) | Value::Bool(_) | Value::Array(_) | Value::Static(_) | Value::Poison) => {
                other.clone()
            }
        }
    }
}

/// Whether evaluating an expression may assign, store or call.
fn has_effect(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Call { .. } | ExprKind::Named { .. }) || expr.children().into_iter().any(has_effect)
}

/// Whether evaluating an expression may assign to a name.
pub(super) fn binds(expr: &Expr) -> bool {
    matches!(expr.kind, ExprKind::Named { .. }) || expr.children().into_iter().any(binds)
}

/// Python's symbol of an augmented or plain operator, for messages.
pub(super) fn symbol(op: BinOp) -> &'static str {
    op.symbol()
}
