//! The selection of a row's overload, and the error if none fits.

use weft_artifact::{Compound, Conversion, DType, Number, Rank, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        float8,
        function::count,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        promote, refusals,
        ty::{Ty, shown_path},
        value::Value,
        weak::{self, Operand},
    },
    intrinsics::{Arg, Intrinsic, Lowering, Returns, Signature},
    ir::ExprId,
    source::Span,
};

impl FnLowerer<'_> {
    /// The overload that fits best; `None` if there is none, which is reported.
    pub(super) fn choose_overload(
        &mut self,
        row: &'static Intrinsic,
        values: &[Value],
        span: Span,
    ) -> Option<&'static Signature> {
        let types: Vec<Ty> = values.iter().map(Value::ty).collect();
        let arity = row.signatures.first().map_or(0, |sig| sig.args.len());
        if row.signatures.iter().all(|sig| sig.args.len() != values.len()) {
            let message =
                format!("`{}` takes {}, not {}", shown_path(row.path), count(arity, "argument"), values.len());
            self.error(Code::ArgumentCount, span, message);
            return None;
        }
        let given = types.clone();
        let types = if self.is_numpy() { self.numpy_types(row, values, span)? } else { types };
        let small = takes_small_ints(row);
        let ufunc = matches!(row.lowering, Lowering::Ufunc(_));
        if ufunc && row.refuses_bools() && types.iter().all(|ty| ty.scalar() == Some(Scalar::Bool)) {
            self.no_overload(row, &given, span);
            return None;
        }
        let fitting = row.signatures.iter().filter(|sig| sig.args.len() == types.len()).filter_map(|sig| {
            if ufunc && !sig.args.iter().zip(&types).all(|(arg, ty)| is_safe(*arg, ty)) {
                return None;
            }
            let conversions = sig.args.iter().zip(&types).map(|(arg, ty)| conversion(*arg, ty, small));
            Some((conversions.collect::<Option<Rank>>()?, sig))
        });
        let chosen = weft_artifact::choose(fitting).first();
        if chosen.is_none() {
            self.no_overload(row, &given, span);
        }
        chosen
    }

    /// The types of the arguments with NumPy's typing rules, as in the ufunc of the same name: all numbers are promoted
    /// to one type if the overloads have one type, and to a float if the overloads have floats.
    fn numpy_types(&mut self, row: &Intrinsic, values: &[Value], span: Span) -> Option<Vec<Ty>> {
        let mut types: Vec<Ty> = values.iter().map(|value| value.ty().strong()).collect();
        let overloads: Vec<&Signature> = row.signatures.iter().filter(|sig| sig.args.len() == types.len()).collect();
        let number = |arg: &Arg| match arg {
            Arg::Scalar(scalar) => Some(Number::Real(*scalar)),
            Arg::Complex(complex) => Some(Number::Complex(*complex)),
            Arg::Array(_) | Arg::Records(_) | Arg::Index | Arg::Const(_) | Arg::DType(_) | Arg::Text(_) => None,
        };
        // Only the parameters in which the overloads differ decide.
        let chosen_by = |place: &usize| {
            let mut numbers = overloads.iter().filter_map(|sig| number(sig.args.get(*place)?));
            numbers.next().is_some_and(|first| numbers.any(|other| other != first))
        };
        let places: Vec<usize> = (0..types.len()).filter(chosen_by).collect();
        let of_places =
            |sig: &&Signature| places.iter().filter_map(|place| number(sig.args.get(*place)?)).collect::<Vec<_>>();
        let alike = overloads.iter().all(|sig| of_places(sig).windows(2).all(|pair| pair.first() == pair.last()));
        let inexact = |number: &Number| !number.real().is_some_and(promote::is_integral);
        let floats = row.path == "math.pow" || overloads.iter().all(|sig| of_places(sig).iter().all(inexact));
        let operands: Vec<Operand> = places.iter().filter_map(|place| Operand::of(&values.get(*place)?.ty())).collect();
        let Some(common) = operands.iter().copied().reduce(Operand::with) else { return Some(types) };
        let number = match common.number {
            // Each integer is converted to a float before the promotion.
            Number::Real(scalar) if floats && promote::is_integral(scalar) => {
                let typed = operands.iter().filter(|operand| !operand.weak);
                let typed = typed.filter_map(|operand| operand.number.real().map(weak::float_of));
                typed.reduce(promote::unify_real).map_or(Number::F64, Number::Real)
            }
            other @ (Number::Real(_) | Number::Complex(_)) => other,
        };
        for place in places {
            let (Some(value), Some(ty)) = (values.get(place), types.get_mut(place)) else { continue };
            let Some(operand) = Operand::of(&value.ty()) else { continue };
            if alike || floats || operand.weak {
                if let Value::Int(known) = value
                    && !weak::holds(number, *known)
                {
                    self.out_of_range(*known, number, span);
                    return None;
                }
                *ty = Ty::of(number);
            }
        }
        Some(types)
    }

    /// The numbers among the arguments, converted to the overload that fits best, and its result.
    pub(super) fn overload(
        &mut self,
        row: &'static Intrinsic,
        values: &[Value],
        span: Span,
    ) -> Option<(Vec<ExprId>, Returns)> {
        let sig = self.choose_overload(row, values, span)?;
        let mut exprs = Vec::new();
        for (value, arg) in values.iter().zip(sig.args) {
            let Arg::Scalar(scalar) = arg else { continue };
            exprs.push(self.number(value, *scalar, span)?);
        }
        Some((exprs, sig.returns))
    }

    /// All arguments, converted to an overload's parameters.
    pub(super) fn passed(&mut self, sig: &Signature, values: Vec<Value>, span: Span) -> Option<Vec<Value>> {
        values
            .into_iter()
            .zip(sig.args)
            .map(|(value, arg)| match arg {
                Arg::Scalar(scalar) => Some(Value::Scalar(self.number(&value, *scalar, span)?, *scalar)),
                Arg::Complex(complex) => {
                    let (real, imag) = self.complex(&value, *complex, span)?;
                    Some(Value::Complex(real, imag, *complex))
                }
                Arg::Array(_) | Arg::Records(_) | Arg::Index | Arg::Const(_) | Arg::DType(_) | Arg::Text(_) => {
                    Some(value)
                }
            })
            .collect()
    }

    /// Reports that no overload accepts these types, with the list of overloads.
    pub(in crate::frontend) fn no_overload(&mut self, row: &Intrinsic, types: &[Ty], span: Span) -> Value {
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
        let small = takes_small_ints(row);
        let closest = row.signatures.iter().max_by_key(|sig| {
            let fitting = sig.args.iter().zip(types).filter(|(arg, ty)| conversion(**arg, ty, small).is_some()).count();
            (fitting, sig.args.len() == types.len())
        });
        if let Some(sig) = closest {
            diagnostic = diagnostic.note(format!("the closest is {name}({})", shown_args(sig)));
        }
        let computes = matches!(row.lowering, Lowering::Math(_) | Lowering::MathOr(..) | Lowering::Ufunc(_));
        if types.iter().any(|ty| matches!(ty, Ty::Array(_))) && computes {
            diagnostic = diagnostic.help(refusals::ELEMENTS);
        } else if matches!(row.lowering, Lowering::Math(_)) && types.iter().any(|ty| matches!(ty, Ty::Complex(_))) {
            diagnostic =
                diagnostic.note("the functions of `math` take real numbers; those of `cmath` take complex ones");
        } else if types.iter().any(|ty| matches!(ty, Ty::Object(ObjectKind::Formatted(_), _))) {
            diagnostic = diagnostic.help("f-strings and strings made with `%` can only be printed");
        } else if types.iter().any(|ty| matches!(ty, Ty::Object(ObjectKind::Float8(_), _))) {
            diagnostic = diagnostic.help(float8::HELP);
        } else if types.iter().any(holds_times) {
            diagnostic = diagnostic.help("use `a.view(np.int64)`: the counts of an array's dates and durations");
        }
        self.report(diagnostic)
    }
}

/// Whether a type is a date or a duration, or an array of them.
fn holds_times(ty: &Ty) -> bool {
    match ty {
        Ty::Object(ObjectKind::Time(_), _) => true,
        Ty::Array(array) => super::times::time_of(array.dtype).is_some(),
        Ty::Scalar(_)
        | Ty::Complex(_)
        | Ty::Int(_)
        | Ty::Bool(_)
        | Ty::Object(..)
        | Ty::Static(_)
        | Ty::Conflict(_)
        | Ty::Bottom
        | Ty::Poison => false,
    }
}

/// Whether a row has overloads for small integers, so that these are not widened.
fn takes_small_ints(row: &Intrinsic) -> bool {
    row.signatures.iter().any(|sig| sig.args.contains(&Arg::Scalar(Scalar::I8)))
}

/// The conversion of an argument to an overload's parameter. It is stricter than for the user's functions: a float
/// never becomes an integer. An integer that becomes a float counts as `int64`, so it computes as `float64` even if its
/// type is small, unless the row has overloads for small integers.
fn conversion(arg: Arg, ty: &Ty, small: bool) -> Option<Conversion> {
    match (arg, ty) {
        (Arg::Scalar(to), ty) => {
            let from = ty.scalar()?;
            let whole = promote::is_integral(from);
            match (whole, to.is_float()) {
                (false, false) if to != Scalar::Bool => None,
                (true, true) if !small => Conversion::of(Number::I64, to.into()),
                _ => Conversion::of(from.into(), to.into()),
            }
        }
        (Arg::Complex(to), ty) => match ty.number()? {
            Number::Real(from) if promote::is_integral(from) => Conversion::of(Number::I64, to.into()),
            from @ (Number::Real(_) | Number::Complex(_)) => Conversion::of(from, to.into()),
        },
        (Arg::Array(dtype), Ty::Array(array)) if array.dtype == dtype.into() => Some(Conversion::Exact),
        (Arg::Records(fields), Ty::Array(array)) if array.ndim == 1 && has_fields(array.dtype, fields) => {
            Some(Conversion::Exact)
        }
        (Arg::Records(fields), Ty::Object(ObjectKind::Tuple, items)) if !items.is_empty() => {
            let is_state = |item: &Ty| {
                matches!(item, Ty::Object(ObjectKind::Record, of)
                    if matches!(of.as_slice(), [Ty::Array(place)] if has_fields(place.dtype, fields)))
            };
            items.iter().all(is_state).then_some(Conversion::Exact)
        }
        (Arg::Index, ty) if ty.number().is_some() || matches!(ty, Ty::Object(ObjectKind::Tuple, _)) => {
            Some(Conversion::Exact)
        }
        (Arg::Text(_), Ty::Static(Static::Str(_))) => Some(Conversion::Exact),
        (Arg::Array(_) | Arg::Records(_) | Arg::Index | Arg::Const(_) | Arg::DType(_) | Arg::Text(_), _) => None,
    }
}

/// Whether NumPy casts an argument of a ufunc to the type of a loop: by a safe cast, or a constant int to a type that
/// holds it, as for Python ints.
fn is_safe(arg: Arg, ty: &Ty) -> bool {
    let to = match arg {
        Arg::Scalar(to) => Number::Real(to),
        Arg::Complex(to) => Number::Complex(to),
        Arg::Array(_) | Arg::Records(_) | Arg::Index | Arg::Const(_) | Arg::DType(_) | Arg::Text(_) => return true,
    };
    match (ty, ty.number()) {
        (Ty::Int(known), _) => to != Number::BOOL && weak::holds(to, *known),
        (_, Some(from)) => weak::casts_safely(from, to),
        (_, None) => false,
    }
}

/// Whether a type is a record with fields of these names and types.
fn has_fields(dtype: DType, fields: &[(&str, Scalar)]) -> bool {
    let DType::Compound(id) = dtype else { return false };
    let Compound::Record(record) = id.get() else { return false };
    fields.iter().all(|(name, scalar)| {
        record.fields().iter().any(|field| field.name == *name && field.dtype == Number::Real(*scalar).into())
    })
}

/// An overload's parameters, as Numba writes types.
fn shown_args(sig: &Signature) -> String {
    let shown: Vec<String> = sig
        .args
        .iter()
        .map(|arg| match arg {
            Arg::Scalar(scalar) => scalar.to_string(),
            Arg::Complex(complex) => complex.to_string(),
            Arg::Array(number) => format!("array({number})"),
            Arg::Records(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, scalar)| format!("{name}: {scalar}")).collect();
                format!("array(record({}))", fields.join(", "))
            }
            Arg::Index => "index".to_owned(),
            Arg::Const(_) => "constant".to_owned(),
            Arg::DType(_) => "dtype".to_owned(),
            Arg::Text(_) => "str".to_owned(),
        })
        .collect();
    shown.join(", ")
}
