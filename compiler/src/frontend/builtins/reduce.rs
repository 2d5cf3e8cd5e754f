//! `sum`, `any`, `all` and `divmod`, and the methods of arrays and numbers.

use weft_artifact::{Number, Scalar};

use super::super::{
    expr::Args,
    function::count,
    lowerer::{FnLowerer, Truth},
    object::{MatrixObject, ObjectKind, Static},
    prelude, refusals,
    ty::{Ty, shown_path},
    value::Value,
};
use crate::{
    diagnostic::Code,
    intrinsics::{self, Intrinsic},
    ir::{BinaryOp, MathFn, Type},
    source::Span,
    syntax::ast::BinOp,
};

/// Methods of arrays.
pub(in crate::frontend) const ARRAY_METHODS: &[&str] = &[
    "sum",
    "prod",
    "cumsum",
    "cumprod",
    "ptp",
    "mean",
    "std",
    "var",
    "min",
    "max",
    "argmin",
    "argmax",
    "all",
    "any",
    "copy",
    "item",
    "fill",
    "reshape",
    "ravel",
    "view",
    "transpose",
];

impl FnLowerer<'_> {
    /// `sum(t)` and `math.prod(t)` of a tuple or a one-dimensional array, with a start value.
    pub(super) fn folded_items(&mut self, row: &Intrinsic, op: BinOp, mut args: Args, span: Span) -> Value {
        if let Some(index) = args.keywords.iter().position(|(name, ..)| name == "start") {
            let (_, value, at) = args.keywords.remove(index);
            args.positional.push((value, at));
        }
        if args.positional.len() == 1 {
            args.positional.push((Value::Int(i128::from(op == BinOp::Mul)), span));
        }
        let Some([values, start]) = self.exactly(row, args, span) else { return Value::Poison };
        let values = self.gathered(values, span);
        if start.ty().number().is_none() {
            return self.no_overload(row, &[values.ty(), start.ty()], span);
        }
        let name = if op == BinOp::Mul { "product_over" } else { "sum_over" };
        if let Some(found) = self.over_items(row, name, &values, std::slice::from_ref(&start), span) {
            return found;
        }
        let types = [values.ty(), start.ty()];
        let numbers = |items: &[Value]| items.iter().all(|item| item.ty().number().is_some());
        match (values, start) {
            (Value::Object(kind, items), start) if kind.is_tuple() && numbers(&items) => {
                items.into_iter().fold(start, |before, item| self.binary(op, before, item, span))
            }
            (Value::Array(array), start) if array.ty.ndim == 1 => {
                let name = if op == BinOp::Mul { "product_from" } else { "sum_from" };
                self.own_of_array(row, name, vec![Value::Array(array), start], span)
            }
            _ => self.no_overload(row, &types, span),
        }
    }

    /// `any(t)` and `all(t)` of a tuple or a one-dimensional array.
    pub(super) fn any_or_all(&mut self, row: &Intrinsic, all: bool, args: Args, span: Span) -> Value {
        let Some([values]) = self.exactly(row, args, span) else { return Value::Poison };
        if let Some((values, position)) = self.generated(&values) {
            // `all` is true if no item is false.
            let found = self.holds_of_one(values, position, span, &mut |this, item| {
                let truth = this.truth(item, span);
                if all { this.opposite(truth, span) } else { truth }
            });
            return self.negated_if(all, found, span);
        }
        let values = self.gathered(values, span);
        if let Some(found) = self.over_items(row, if all { "all_over" } else { "any_over" }, &values, &[], span) {
            return found;
        }
        let ty = values.ty();
        let items = match (values, all) {
            (Value::Object(kind, items), _) if kind.is_tuple() => items,
            (Value::Array(array), _) if array.ty.ndim == 1 => {
                let name = if all { "all_of" } else { "any_of" };
                return self.own_of_array(row, name, vec![Value::Array(array)], span);
            }
            _ => return self.no_overload(row, &[ty], span),
        };
        let mut found = None;
        for item in items {
            match self.truth(item, span) {
                Truth::Poison => return Value::Poison,
                Truth::Known(known) if known == all => {}
                Truth::Known(_) => return Value::Bool(!all),
                Truth::Expr(expr) => {
                    let op = if all { BinaryOp::And } else { BinaryOp::Or };
                    found = Some(found.map_or(expr, |before| self.b.binary(op, before, expr, span)));
                }
            }
        }
        found.map_or(Value::Bool(all), |expr| Value::Scalar(expr, Scalar::Bool))
    }

    /// `min(a)` or `max(a)` of a one-dimensional array.
    pub(super) fn extremum_of_array(&mut self, row: &Intrinsic, largest: bool, array: Value, span: Span) -> Value {
        let ty = array.ty();
        let fits = matches!(&ty, Ty::Array(of) if of.ndim == 1 && of.dtype.number().is_some_and(|number| number.real().is_some()));
        if !fits {
            return self.no_overload(row, &[ty], span);
        }
        self.own_of_array(row, if largest { "largest" } else { "smallest" }, vec![array], span)
    }

    /// A function of the prelude that infers its own types; if it cannot, the row does not accept the arguments.
    pub(in crate::frontend) fn own_of_array(
        &mut self,
        row: &Intrinsic,
        name: &str,
        values: Vec<Value>,
        span: Span,
    ) -> Value {
        let types: Vec<_> = values.iter().map(Value::ty).collect();
        let Some(def) = prelude::function(name) else {
            self.cx.fault(self.at(span), &format!("the prelude lacks `{name}`"));
            return Value::Poison;
        };
        match self.call_own(&def, values, span) {
            Ok(value) => value,
            Err(_) => self.no_overload(row, &types, span),
        }
    }

    /// `math.dist(p, q)`.
    pub(super) fn dist(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        let Some([p, q]) = self.exactly(row, args, span) else { return Value::Poison };
        let types = [p.ty(), q.ty()];
        let (Value::Object(ObjectKind::Tuple, p), Value::Object(ObjectKind::Tuple, q)) = (p, q) else {
            return self.no_overload(row, &types, span);
        };
        let numbers = |items: &[Value]| items.iter().all(|item| item.ty().scalar().is_some());
        if p.len() != q.len() || p.is_empty() || !numbers(&p) || !numbers(&q) {
            return self.no_overload(row, &types, span);
        }
        let mut found: Option<Value> = None;
        for (x, y) in p.into_iter().zip(q) {
            let side = self.binary(BinOp::Sub, x, y, span);
            found = Some(match (found, intrinsics::lookup("math.hypot"), intrinsics::lookup("math.fabs")) {
                (Some(before), Some(hypot), _) => {
                    let args = Args { positional: vec![(before, span), (side, span)], keywords: Vec::new() };
                    self.intrinsic(hypot, args, span)
                }
                (None, _, Some(fabs)) => {
                    self.intrinsic(fabs, Args { positional: vec![(side, span)], keywords: Vec::new() }, span)
                }
                (_, None, _) | (_, _, None) => Value::Poison,
            });
        }
        found.unwrap_or(Value::Poison)
    }

    /// `divmod(a, b)`: `(a // b, a % b)`.
    pub(super) fn divmod(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([a, b]) = self.exactly(row, args, span) else { return Value::Poison };
        if a.ty().scalar().is_none() || b.ty().scalar().is_none() {
            return self.no_overload(row, &[a.ty(), b.ty()], span);
        }
        let (a, b) = (self.settle(a, span), self.settle(b, span));
        let (again_a, again_b) = (self.reread(&a, span), self.reread(&b, span));
        let quotient = self.binary(BinOp::FloorDiv, a, b, span);
        let rest = self.binary(BinOp::Mod, again_a, again_b, span);
        self.tuple(vec![quotient, rest], span)
    }

    /// The row for a method of a value.
    pub(in crate::frontend) fn method_row(value: &Value, name: &str) -> Option<&'static Intrinsic> {
        let names: &[&str] = if let Value::Array(_) = value {
            ARRAY_METHODS
        } else if matches!(value, Value::Object(ObjectKind::Swizzled(_), _)) {
            &["view"]
        } else if value.as_tuple().is_some() || matches!(value, Value::Object(ObjectKind::Range(_), _)) {
            &["index", "count"]
        } else if matches!(value, Value::Static(Static::Str(_))) {
            &["format"]
        } else if let Value::Object(ObjectKind::Group(group), _) = value {
            return intrinsics::lookup(&format!("weft.cuda.cg.{}.{name}", group.name()));
        } else if let Value::Object(ObjectKind::Matrix(MatrixObject::Tile(_)), _) = value {
            return intrinsics::lookup(&format!("weft.cuda.mma.Tile.{name}"));
        } else if let Value::Object(ObjectKind::Barrier, _) = value {
            return intrinsics::lookup(&format!("weft.cuda.Barrier.{name}"));
        } else if value.ty().number().is_some() {
            &["conjugate", "conj", "item", "bit_count", "view"]
        } else {
            return None;
        };
        if !names.contains(&name) {
            return None;
        }
        let path = match name {
            "view" if value.ty().number().is_some() => "numpy.generic.view".to_owned(),
            "copy" | "item" | "fill" | "reshape" | "ravel" | "view" | "transpose" => format!("numpy.ndarray.{name}"),
            "index" | "count" => format!("builtins.tuple.{name}"),
            "format" => "builtins.str.format".to_owned(),
            "bit_count" => "numpy.bitwise_count".to_owned(),
            other => format!("numpy.{other}"),
        };
        intrinsics::lookup(&path)
    }

    /// `a.item()` of an array with one element, `a.item(k)`, and `x.item()` of a number.
    pub(super) fn item_method(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let given = args.positional.len();
        let mut values = args.positional.into_iter().map(|(value, _)| value);
        match (values.next(), values.next(), values.next()) {
            (Some(value), None, None) if value.ty().number().is_some() => value,
            (Some(array @ Value::Array(_)), number, None) => {
                let number = number.unwrap_or(Value::Int(0));
                if !number.ty().scalar().is_some_and(Scalar::is_int) {
                    return self.no_overload(row, &[array.ty(), number.ty()], span);
                }
                let args = Args { positional: vec![(array, span), (number, span)], keywords: Vec::new() };
                self.primitive("item", args, span)
            }
            _ => {
                let message = format!("`{}` takes {}, not {given}", shown_path(row.path), count(1, "argument"));
                self.error(Code::ArgumentCount, span, message)
            }
        }
    }

    /// `x.view(T)`.
    pub(super) fn view_method(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value, to]) = self.exactly(row, args, span) else { return Value::Poison };
        let types = [value.ty(), to.ty()];
        let bits_of = |scalar: Scalar| match scalar.size_bytes() {
            1 => Scalar::U8,
            2 => Scalar::U16,
            4 => Scalar::U32,
            _ => Scalar::U64,
        };
        let wanted = if let Value::Static(Static::DType(dtype)) = to { dtype.number() } else { None };
        let (Some(from), Some(to)) = (types[0].scalar(), wanted.and_then(Number::real)) else {
            return self.no_overload(row, &types, span);
        };
        let (bits, like) = (bits_of(to), Type::Scalar(bits_of(to)));
        if bits_of(from) != bits || from == Scalar::Bool || to == Scalar::Bool {
            return self.no_overload(row, &types, span);
        }
        let Some(expr) = self.number(&value, from, span) else { return Value::Poison };
        let expr = if from.is_float() {
            self.b.math(MathFn::Bits, vec![expr], like, span)
        } else {
            self.b.convert(expr, like, span)
        };
        let expr = if to.is_float() {
            self.b.math(MathFn::OfBits, vec![expr], Type::Scalar(to), span)
        } else {
            self.b.convert(expr, Type::Scalar(to), span)
        };
        Value::Scalar(expr, to)
    }

    /// `a.fill(x)`.
    pub(super) fn fill_method(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([array, value]) = self.exactly(row, args, span) else { return Value::Poison };
        match (&array, value.ty().number()) {
            (Value::Array(of), _) if of.ty.readonly => self.report(refusals::readonly(array.ty(), span)),
            (Value::Array(of), Some(number))
                if of.ty.dtype.number().is_some_and(Number::is_complex) || !number.is_complex() =>
            {
                // A dry run emits nothing and has no result.
                if !self.is_dry() {
                    self.own_of_array(row, "fill", vec![array, value], span);
                }
                Value::NONE
            }
            _ => self.no_overload(row, &[array.ty(), value.ty()], span),
        }
    }

    /// `x.real` or `x.imag` by `np.real(x)` and `np.imag(x)`.
    pub(super) fn part(&mut self, row: &Intrinsic, name: &str, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        match value.ty().number() {
            Some(Number::Real(_) | Number::Complex(_)) => self.attribute_of(value, name, span),
            None => self.no_overload(row, &[value.ty()], span),
        }
    }

    /// `np.shape(a)`, `np.size(a)`, `np.ndim(a)`; a number counts as a zero-dimensional array.
    pub(super) fn extent_of(&mut self, row: &Intrinsic, name: &str, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        match (&value, name) {
            (Value::Array(_), _) => self.attribute_of(value, name, span),
            (other, _) if other.ty().number().is_none() => self.no_overload(row, &[other.ty()], span),
            (_, "shape") => self.tuple(Vec::new(), span),
            (_, "size") => Value::Int(1),
            _ => Value::Int(0),
        }
    }
}
