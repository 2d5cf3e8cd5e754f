//! Indices: the expressions between square brackets.

use weft_artifact::Scalar;

use super::has_effect;
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        prelude::is_own,
        promote, refusals,
        value::Value,
    },
    ir::{BinaryOp, Built, Const, ExprId},
    source::Span,
    syntax::ast::{Constant, Expr, ExprKind},
};

/// One index.
#[derive(Clone, Debug)]
pub(in crate::frontend) enum Index {
    /// An `I64`, for a single use.
    At {
        /// The index.
        expr: ExprId,
        /// Whether it may be negative, and then counts from the end.
        wraps: bool,
        /// Its value, if constant.
        known: Option<i64>,
    },
    /// `lower:upper:step`; each an `I64` for a single use and, if constant, its value.
    Slice { lower: Option<Bound>, upper: Option<Bound>, step: Option<Bound> },
    /// `...`.
    Ellipsis,
    /// `None`: a new dimension of extent 1.
    NewAxis,
    /// A string: the name of a record's field.
    Name(String),
}

/// A bound of a slice.
#[derive(Clone, Copy, Debug)]
pub(in crate::frontend) struct Bound {
    pub(in crate::frontend) expr: ExprId,
    pub(in crate::frontend) known: Option<i64>,
    pub(in crate::frontend) wraps: bool,
}

impl Index {
    /// An index that is known to be non-negative.
    pub(in crate::frontend) fn at(expr: ExprId) -> Self {
        Self::At { expr, wraps: false, known: None }
    }
}

impl FnLowerer<'_> {
    /// The indices of a subscript; `None` if an error was reported.
    pub(in crate::frontend) fn indices(&mut self, index: &Expr) -> Option<Vec<Index>> {
        if let ExprKind::Tuple(items) = &index.kind {
            let mut out = Vec::new();
            let mut good = true;
            for (at, item) in items.iter().enumerate() {
                match self.index(item) {
                    Some(index) if items[at + 1..].iter().any(has_effect) => {
                        out.extend(self.settle_indices(index, item.span));
                    }
                    Some(index) => out.extend(index),
                    None => good = false,
                }
            }
            good.then_some(out)
        } else {
            self.index(index)
        }
    }

    /// One index, or the indices of a tuple value such as `cuda.grid(2)`.
    fn index(&mut self, index: &Expr) -> Option<Vec<Index>> {
        if let ExprKind::Slice { lower, upper, step } = &index.kind {
            let parts = [lower.as_deref(), upper.as_deref(), step.as_deref()];
            let mut bounds = [None; 3];
            for (at, part) in parts.into_iter().enumerate() {
                bounds[at] = self.bound(part, parts[at + 1..].iter().flatten().any(|part| has_effect(part)))?;
            }
            return self.slice_index(bounds, step.as_ref().map_or(index.span, |step| step.span));
        }
        if let ExprKind::Constant(Constant::Ellipsis) = &index.kind {
            return Some(vec![Index::Ellipsis]);
        }
        let value = self.expr(index);
        self.index_values(value, index.span)
    }

    /// The indices of a value: an integer, or a tuple of integers.
    pub(in crate::frontend) fn index_values(&mut self, value: Value, span: Span) -> Option<Vec<Index>> {
        if let Value::Object(ObjectKind::Slice, items) = value {
            let mut bounds = [None; 3];
            for (place, item) in bounds.iter_mut().zip(items) {
                if !matches!(item, Value::Static(Static::None)) {
                    let item = self.clipped_to_signed(item, span);
                    *place = Some(self.integer(item, span)?);
                }
            }
            return self.slice_index(bounds, span);
        }
        if let Value::Object(ObjectKind::Tuple | ObjectKind::Unrolled, items) = value {
            let mut out = Vec::new();
            for item in items {
                out.extend(self.index_values(item, span)?);
            }
            return Some(out);
        }
        match &value {
            Value::Static(Static::None) => return Some(vec![Index::NewAxis]),
            Value::Static(Static::Str(name)) => return Some(vec![Index::Name(name.clone())]),
            Value::Static(Static::Known(known)) if known.path() == "builtins.Ellipsis" => {
                return Some(vec![Index::Ellipsis]);
            }
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => {}
        }
        let value = self.element_of_none(value, span);
        let bound = self.integer(value, span)?;
        Some(vec![Index::At { expr: bound.expr, wraps: bound.wraps, known: bound.known }])
    }

    /// A slice whose step is not the constant zero.
    fn slice_index(&mut self, [lower, upper, step]: [Option<Bound>; 3], span: Span) -> Option<Vec<Index>> {
        if step.is_some_and(|step| self.is_zero(step.expr)) {
            self.error(Code::BadIndex, span, "the step of a slice must not be zero");
            return None;
        }
        Some(vec![Index::Slice { lower, upper, step }])
    }

    /// Whether an expression is the constant zero, after conversions.
    pub(in crate::frontend) fn is_zero(&self, expr: ExprId) -> bool {
        match self.b.built(expr) {
            Built::Const(Const::Int(value)) => value == 0,
            Built::Const(Const::Bool(value)) => !value,
            Built::Const(Const::Float(value)) => value == 0.0,
            Built::Convert(inner) => self.is_zero(inner),
            Built::Const(Const::Null | Const::Address(_)) | Built::Local(_) | Built::Other => false,
        }
    }

    /// A bound of a slice; with `settled`, materialized before the effects of the later bounds.
    fn bound(&mut self, part: Option<&Expr>, settled: bool) -> Option<Option<Bound>> {
        let Some(part) = part else { return Some(None) };
        let value = self.expr_or_none(part);
        if value.ty().optional().is_some() {
            let message = "a bound of a slice may be `None`, which is known only at run time";
            let diagnostic = Diagnostic::error(Code::NotConstant, part.span, message);
            self.report(diagnostic.help("test it first: `if x is not None:`"));
            return None;
        }
        let value = if settled { self.settle(value, part.span) } else { value };
        if matches!(value, Value::Static(Static::None)) {
            return Some(None);
        }
        let value = self.clipped_to_signed(value, part.span);
        self.integer(value, part.span).map(Some)
    }

    /// A bound or step of a slice that exceeds `int64` is clamped to it: no array is that long.
    fn clipped_to_signed(&mut self, value: Value, span: Span) -> Value {
        let most = i128::from(i64::MAX);
        match value {
            Value::Int(known) => Value::Int(known.clamp(i128::from(i64::MIN), most)),
            Value::Scalar(expr, Scalar::U64) => {
                let most = self.b.int(Scalar::U64, most, span);
                Value::Scalar(self.b.binary(BinaryOp::Min, expr, most, span), Scalar::U64)
            }
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => other,
        }
    }

    /// An integer as an `I64`.
    fn integer(&mut self, value: Value, span: Span) -> Option<Bound> {
        let ty = value.ty();
        if ty.is_poison() {
            return None;
        }
        let scalar = ty.scalar().filter(|scalar| promote::is_integral(*scalar) && *scalar != Scalar::Bool);
        let Some(scalar) = scalar else {
            let mut diagnostic = Diagnostic::error(Code::BadIndex, span, format!("{ty} cannot be an index"));
            if ty.scalar().is_some_and(Scalar::is_float) {
                diagnostic =
                    diagnostic.help("convert it: `int(…)` truncates; `//` divides integers and returns an integer");
            } else if ty.scalar() == Some(Scalar::Bool) {
                diagnostic = diagnostic.help("convert it: `int(…)`");
            } else {
                diagnostic = diagnostic.help_if(refusals::instead_of_parts(&ty));
            }
            self.report(diagnostic);
            return None;
        };
        let known = if let Value::Int(known) = value { i64::try_from(known).ok() } else { None };
        let wraps = known.map_or(scalar.is_signed_int(), |known| known < 0);
        let expr = self.number(&value, Scalar::I64, span)?;
        Some(Bound { expr, known, wraps })
    }

    /// The indices of an array, if the request promises that none is negative: without wraps; `None` if one is a
    /// negative constant, which is reported. Indices in the prelude may be negative.
    pub(super) fn without_wraps(&mut self, mut indices: Vec<Index>, span: Span) -> Option<Vec<Index>> {
        if !self.cx.no_wraparound || is_own(&self.def) {
            return Some(indices);
        }
        for (axis, index) in indices.iter_mut().filter(|index| !matches!(index, Index::NewAxis)).enumerate() {
            if let Index::At { wraps, known, .. } = index {
                if let Some(known) = known.filter(|known| *known < 0) {
                    let message =
                        format!("the index {known} is negative, and `wraparound=False` promises that none is");
                    let help = format!("count from the start, `a.shape[{axis}] - {}`", known.unsigned_abs());
                    let help = format!("{help}, or remove `wraparound=False`");
                    self.report(Diagnostic::error(Code::BadIndex, span, message).help(help));
                    return None;
                }
                *wraps = false;
            }
        }
        Some(indices)
    }

    /// Materializes indices; [`Self::reread_indices`] returns them for each use.
    pub(in crate::frontend) fn settle_indices(&mut self, indices: Vec<Index>, span: Span) -> Vec<Index> {
        indices.into_iter().map(|index| self.map_index(index, span, &mut Self::settle_bound)).collect()
    }

    /// Rereads materialized indices for another use.
    pub(in crate::frontend) fn reread_indices(&mut self, indices: &[Index], span: Span) -> Vec<Index> {
        indices.iter().map(|index| self.map_index(index.clone(), span, &mut Self::reread_bound)).collect()
    }

    fn map_index(&mut self, index: Index, span: Span, map: &mut dyn FnMut(&mut Self, Bound, Span) -> Bound) -> Index {
        match index {
            Index::At { expr, wraps, known } => {
                let bound = map(self, Bound { expr, known, wraps }, span);
                Index::At { expr: bound.expr, wraps, known }
            }
            Index::Slice { lower, upper, step } => {
                let mut each = |bound: Option<Bound>| bound.map(|bound| map(self, bound, span));
                Index::Slice { lower: each(lower), upper: each(upper), step: each(step) }
            }
            same @ (Index::Ellipsis | Index::NewAxis | Index::Name(_)) => same,
        }
    }

    fn settle_bound(&mut self, bound: Bound, span: Span) -> Bound {
        if bound.known.is_some() {
            return bound;
        }
        let local = self.b.temp(bound.expr, span);
        Bound { expr: self.b.read(local, span), ..bound }
    }

    fn reread_bound(&mut self, bound: Bound, span: Span) -> Bound {
        Bound { expr: self.b.again(bound.expr, span), ..bound }
    }
}
