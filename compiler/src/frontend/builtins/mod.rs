//! What a call of a row of the intrinsic table becomes.

mod arrays;
mod cast;
mod iterators;
mod numbers;

use weft_artifact::{Conversion, Number, Rank, Scalar};

use super::{
    expr::Args,
    function::count,
    lowerer::FnLowerer,
    object::{ObjectKind, Static},
    promote,
    ty::{Ty, shown_path},
    value::Value,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    intrinsics::{Arg, Custom, Intrinsic, Lowering, Returns, Signature},
    ir::{ExprId, LocalId, MathFn, Op, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    pub(super) fn intrinsic(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        match row.lowering {
            Lowering::Register(_) => {
                let message = format!("`{}` is a value, not a function", shown_path(row.path));
                self.error(Code::NotCallable, span, message)
            }
            Lowering::Math(function) => self.math(row, function, args, span),
            Lowering::Op(op) => self.operation(row, op, args, span),
            Lowering::Custom(custom) => self.custom(row, custom, args, span),
        }
    }

    fn custom(&mut self, row: &'static Intrinsic, custom: Custom, args: Args, span: Span) -> Value {
        match custom {
            Custom::Grid => self.grid(row, false, args, span),
            Custom::GridSize => self.grid(row, true, args, span),
            Custom::SharedArray => self.make_array(row, true, args, span),
            Custom::LocalArray => self.make_array(row, false, args, span),
            Custom::Abs => self.abs(row, args, span),
            Custom::Bool => self.cast_bool(row, args, span),
            Custom::Complex => self.cast_complex(row, args, span),
            Custom::Degrees => self.scaled(row, 180.0 / std::f64::consts::PI, args, span),
            Custom::Radians => self.scaled(row, std::f64::consts::PI / 180.0, args, span),
            Custom::Float => self.cast_float(row, args, span),
            Custom::Int => self.cast_int(row, args, span),
            Custom::Frexp => self.frexp(row, args, span),
            Custom::Modf => self.modf(row, args, span),
            Custom::Len => self.len(row, args, span),
            Custom::Max => self.extremum(row, true, args, span),
            Custom::Min => self.extremum(row, false, args, span),
            Custom::Pow => {
                let Some([a, b]) = self.exactly(row, args, span) else { return Value::Poison };
                self.binary(crate::syntax::ast::BinOp::Pow, a, b, span)
            }
            Custom::Round => self.round(row, args, span),
            Custom::SyncWarp => self.syncwarp(row, args, span),
            Custom::Range => self.range_value(row, args, span),
            Custom::Enumerate => self.enumerate_value(row, args, span),
            Custom::Zip => self.side_by_side(row, ObjectKind::Zip, args, span),
            Custom::Reversed => self.side_by_side(row, ObjectKind::Reversed, args, span),
            Custom::LiteralUnroll => self.unrolled(row, args, span),
        }
    }

    /// The arguments, by position only and exactly `N`.
    pub(super) fn exactly<const N: usize>(&mut self, row: &Intrinsic, args: Args, span: Span) -> Option<[Value; N]> {
        self.no_keywords(row, &args)?;
        let given = args.positional.len();
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        match <[Value; N]>::try_from(values) {
            Ok(values) => Some(values),
            Err(_) => {
                let message = format!("`{}` takes {}, not {given}", shown_path(row.path), count(N, "argument"));
                self.error(Code::ArgumentCount, span, message);
                None
            }
        }
    }

    /// Reports keyword arguments where there are none.
    pub(super) fn no_keywords(&mut self, row: &Intrinsic, args: &Args) -> Option<()> {
        if let Some((name, _, span)) = args.keywords.first() {
            let message = format!("`{}` has no parameter `{name}`", shown_path(row.path));
            self.error(Code::ArgumentCount, *span, message);
            return None;
        }
        Some(())
    }

    /// An operation on what its arguments are.
    fn operation(&mut self, row: &'static Intrinsic, op: Op, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        let found = match row.signatures.first().map(|sig| sig.args) {
            Some([Arg::Array(_), Arg::Index, ..]) => self.element_operands(row, values, span),
            Some(_) | None => self.overload(row, &values, span),
        };
        let Some((operands, returns)) = found else { return Value::Poison };
        let given: &[Scalar] = match &returns {
            Returns::Nothing => &[],
            Returns::Scalar(scalar) => std::slice::from_ref(scalar),
            Returns::Tuple(scalars) => scalars,
            Returns::Complex(_) | Returns::Array(_) => return Value::Poison,
        };
        let locals: Vec<_> = given.iter().map(|scalar| self.b.new_temp(Type::Scalar(*scalar))).collect();
        self.stmt(Ir::Op { op, results: locals.clone(), args: operands }, span);
        let mut read = |local: LocalId, scalar: Scalar| Value::Scalar(self.b.read(local, span), scalar);
        match (returns, locals.as_slice()) {
            (Returns::Scalar(scalar), [local]) => read(*local, scalar),
            (Returns::Tuple(scalars), locals) => Value::Object(
                ObjectKind::Tuple,
                locals.iter().zip(scalars).map(|(local, scalar)| read(*local, *scalar)).collect(),
            ),
            (Returns::Nothing | Returns::Scalar(_) | Returns::Complex(_) | Returns::Array(_), _) => Value::NONE,
        }
    }

    fn syncwarp(&mut self, row: &Intrinsic, mut args: Args, span: Span) -> Value {
        if args.positional.is_empty()
            && let Some(index) = args.keywords.iter().position(|(name, ..)| name == "mask")
        {
            let (_, value, at) = args.keywords.remove(index);
            args.positional.push((value, at));
        }
        let mask = if args.positional.is_empty() {
            self.no_keywords(row, &args);
            Value::Int(0xFFFF_FFFF)
        } else {
            let Some([mask]) = self.exactly(row, args, span) else { return Value::Poison };
            mask
        };
        match mask.ty().scalar() {
            Some(scalar) if promote::is_integral(scalar) => {
                let Some(mask) = self.number(&mask, Scalar::I32, span) else { return Value::Poison };
                self.stmt(Ir::Op { op: Op::WarpBarrier, results: Vec::new(), args: vec![mask] }, span);
                Value::NONE
            }
            _ => self.no_overload(row, &[mask.ty()], span),
        }
    }

    /// A function of floats, by the overload that fits best.
    fn math(&mut self, row: &'static Intrinsic, function: MathFn, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        let Some((exprs, returns)) = self.overload(row, &values, span) else { return Value::Poison };
        let scalar = match returns {
            Returns::Scalar(scalar) => scalar,
            Returns::Nothing | Returns::Complex(_) | Returns::Tuple(_) | Returns::Array(_) => return Value::Poison,
        };
        let mut exprs = exprs;
        // `pow` of a float32 and an int: the exponent becomes a float32.
        if function == MathFn::Pow
            && let Some(exponent) = exprs.get_mut(1)
        {
            *exponent = self.b.convert(*exponent, Type::Scalar(scalar), span);
        }
        Value::Scalar(self.b.math(function, exprs, Type::Scalar(scalar), span), scalar)
    }

    /// The arguments converted to the overload that fits best, and what it returns.
    pub(super) fn overload(
        &mut self,
        row: &'static Intrinsic,
        values: &[Value],
        span: Span,
    ) -> Option<(Vec<ExprId>, Returns)> {
        let types: Vec<Ty> = values.iter().map(Value::ty).collect();
        let arity = row.signatures.first().map_or(0, |sig| sig.args.len());
        if row.signatures.iter().all(|sig| sig.args.len() != values.len()) {
            let message =
                format!("`{}` takes {}, not {}", shown_path(row.path), count(arity, "argument"), values.len());
            self.error(Code::ArgumentCount, span, message);
            return None;
        }
        let fitting = row.signatures.iter().filter(|sig| sig.args.len() == types.len()).filter_map(|sig| {
            let conversions = sig.args.iter().zip(&types).map(|(arg, ty)| conversion(*arg, ty));
            Some((conversions.collect::<Option<Rank>>()?, sig))
        });
        let Some(sig) = weft_artifact::choose(fitting).first() else {
            self.no_overload(row, &types, span);
            return None;
        };
        let mut exprs = Vec::new();
        for (value, arg) in values.iter().zip(sig.args) {
            let Arg::Scalar(scalar) = arg else { continue };
            exprs.push(self.number(value, *scalar, span)?);
        }
        Some((exprs, sig.returns))
    }

    /// No overload takes these types: the overloads that there are.
    pub(super) fn no_overload(&mut self, row: &Intrinsic, types: &[Ty], span: Span) -> Value {
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let given: Vec<String> = types.iter().map(ToString::to_string).collect();
        let name = shown_path(row.path);
        let mut diagnostic = Diagnostic::error(
            Code::NoMatchingOverload,
            span,
            format!("no overload of `{name}` takes ({})", given.join(", ")),
        );
        let closest = row.signatures.iter().max_by_key(|sig| {
            let fitting = sig.args.iter().zip(types).filter(|(arg, ty)| conversion(**arg, ty).is_some()).count();
            (fitting, sig.args.len() == types.len())
        });
        if let Some(sig) = closest {
            diagnostic = diagnostic.note(format!("the closest is {name}({})", shown_args(sig)));
        }
        if types.iter().any(|ty| matches!(ty, Ty::Array(_))) && matches!(row.lowering, Lowering::Math(_)) {
            diagnostic = diagnostic.help("kernels compute on elements: index the array");
        } else if matches!(row.lowering, Lowering::Math(_)) && types.iter().any(|ty| matches!(ty, Ty::Complex(_))) {
            diagnostic = diagnostic.note("functions of `math` take real numbers");
        }
        self.report(diagnostic)
    }

    /// A pointer to `array[index]` and the other arguments, as the overload for the array's elements has them.
    fn element_operands(
        &mut self,
        row: &'static Intrinsic,
        values: Vec<Value>,
        span: Span,
    ) -> Option<(Vec<ExprId>, Returns)> {
        let arity = row.signatures.first().map_or(0, |sig| sig.args.len());
        let types: Vec<Ty> = values.iter().map(Value::ty).collect();
        let mut values = values.into_iter();
        let (Some(array), Some(index), true) = (values.next(), values.next(), types.len() == arity) else {
            let message = format!("`{}` takes {}, not {}", shown_path(row.path), count(arity, "argument"), types.len());
            self.error(Code::ArgumentCount, span, message);
            return None;
        };
        let Value::Array(array) = array else {
            self.no_overload(row, &types, span);
            return None;
        };
        let elements = array.ty.dtype.real().map(Arg::Array);
        let known = elements.and_then(|of| row.signatures.iter().find(|sig| sig.args.first() == Some(&of)));
        let Some(sig) = known.filter(|_| types.iter().skip(2).all(|ty| ty.scalar().is_some())) else {
            self.no_overload(row, &types, span);
            return None;
        };
        if array.ty.readonly {
            let message = format!("{} is read-only", Ty::Array(array.ty));
            self.error(Code::ReadonlyArray, span, message);
            return None;
        }
        let index = self.truncated(index, span);
        let indices = self.index_values(index, span)?;
        let mut operands = vec![self.element(&array, &indices, span)?];
        for (value, arg) in values.zip(sig.args.iter().skip(2)) {
            let Arg::Scalar(scalar) = arg else { continue };
            operands.push(self.number(&value, *scalar, span)?);
        }
        Some((operands, sig.returns))
    }

    /// As in Numba, the floats in an atomic's index are truncated.
    fn truncated(&mut self, index: Value, span: Span) -> Value {
        match index {
            Value::Object(ObjectKind::Tuple, items) => {
                Value::Object(ObjectKind::Tuple, items.into_iter().map(|item| self.truncated(item, span)).collect())
            }
            Value::Scalar(_, scalar) if scalar.is_float() => {
                self.number(&index, Scalar::I64, span).map_or(Value::Poison, |expr| Value::Scalar(expr, Scalar::I64))
            }
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => other,
        }
    }

    fn len(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        if let Value::Static(Static::Str(text)) = &value {
            return Value::Int(text.chars().count() as i128);
        }
        let sized = match &value {
            Value::Array(array) => array.ty.ndim > 0,
            Value::Object(kind, _) => kind.is_tuple() || matches!(kind, ObjectKind::Range(_)),
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Static(_)
            | Value::Poison => false,
        };
        if !sized {
            return self.no_overload(row, &[value.ty()], span);
        }
        let value = self.settle(value, span);
        match self.length(&value, span) {
            Some(super::value::Atom::Int(known)) => Value::Int(i128::from(known)),
            Some(atom) => Value::Scalar(self.use_atom(atom, span), Scalar::I64),
            None => Value::Poison,
        }
    }
}

/// How an argument is passed to an overload. Stricter than for functions of the user's: no float becomes an integer. An
/// integer that becomes a float counts as `int64`, so that it computes as `float64`, however small its type.
fn conversion(arg: Arg, ty: &Ty) -> Option<Conversion> {
    match (arg, ty) {
        (Arg::Scalar(to), ty) => {
            let from = ty.scalar()?;
            let whole = promote::is_integral(from);
            match (whole, to.is_float()) {
                (false, false) if to != Scalar::Bool => None,
                (true, true) => Conversion::of(Number::I64, to.into()),
                _ => Conversion::of(from.into(), to.into()),
            }
        }
        (Arg::Array(dtype), Ty::Array(array)) if array.dtype == dtype.into() => Some(Conversion::Exact),
        (Arg::Complex(to), Ty::Complex(from)) if to == *from => Some(Conversion::Exact),
        (Arg::Index, ty) if ty.number().is_some() || matches!(ty, Ty::Object(ObjectKind::Tuple, _)) => {
            Some(Conversion::Exact)
        }
        (Arg::Array(_) | Arg::Complex(_) | Arg::Index | Arg::Const(_) | Arg::DType(_), _) => None,
    }
}

/// An overload's arguments as Numba writes types.
fn shown_args(sig: &Signature) -> String {
    let shown: Vec<String> = sig
        .args
        .iter()
        .map(|arg| match arg {
            Arg::Scalar(scalar) => scalar.to_string(),
            Arg::Complex(complex) => complex.to_string(),
            Arg::Array(scalar) => format!("array({scalar})"),
            Arg::Index => "index".to_owned(),
            Arg::Const(_) => "constant".to_owned(),
            Arg::DType(_) => "dtype".to_owned(),
        })
        .collect();
    shown.join(", ")
}
