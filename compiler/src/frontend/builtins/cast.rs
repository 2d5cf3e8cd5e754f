//! Casts: `float32(x)`, `int(x)`, `float(x)`, `bool(x)`, `complex(x, y)`.

use weft_artifact::{Complex, Number, Scalar};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        function::count,
        lowerer::{FnLowerer, Truth, wrap_int},
        object::{ObjectKind, Static},
        value::Value,
        weak,
    },
    intrinsics::Intrinsic,
    source::Span,
};

impl FnLowerer<'_> {
    /// A call of a number type.
    pub(in crate::frontend) fn cast(&mut self, to: Number, args: Args, span: Span) -> Value {
        let given = args.positional.len() + args.keywords.len();
        let mut values = args.positional.into_iter().map(|(value, _)| value);
        let (Some(value), true) = (values.next(), given == 1) else {
            let message = format!("`{to}` takes {}, not {given}", count(1, "argument"));
            return self.error(Code::ArgumentCount, span, message);
        };
        if let Value::Int(known) = value
            && self.is_numpy()
            && !weak::holds(to, known)
        {
            return self.out_of_range(known, to, span);
        }
        if let (Value::Object(ObjectKind::Time(_), items), Number::Real(scalar)) = (&value, to)
            && scalar.is_int()
            && let [count] = items.as_slice()
        {
            let args = Args { positional: vec![(count.clone(), span)], keywords: Vec::new() };
            return self.cast(to, args, span);
        }
        if let Some(number) = self.of_float8(&value, span) {
            return self.cast(to, Args { positional: vec![(number, span)], keywords: Vec::new() }, span);
        }
        let ty = value.ty();
        let cast = match to {
            Number::Real(Scalar::Bool) => return self.truth_value(value, span),
            Number::Complex(to) => self.complex(&value, to, span).map(|(real, imag)| Value::Complex(real, imag, to)),
            Number::Real(to) => self.number(&value, to, span).map(|expr| {
                // A cast of a literal to its own type is still a constant: it can be a shape.
                if to == Scalar::I64
                    && !self.is_numpy()
                    && let Value::Int(known) = value
                {
                    Value::Int(wrap_int(known, to))
                } else {
                    Value::Scalar(expr, to)
                }
            }),
        };
        cast.unwrap_or_else(|| self.cannot_cast(to, &ty, span))
    }

    fn cannot_cast(&mut self, to: Number, from: &crate::frontend::ty::Ty, span: Span) -> Value {
        if from.is_poison() {
            return Value::Poison;
        }
        let mut diagnostic =
            Diagnostic::error(Code::NoMatchingOverload, span, format!("{from} cannot be converted to {to}"));
        if from.number().is_some_and(Number::is_complex) {
            diagnostic = diagnostic.help("use `.real`, `.imag` or `abs(…)`");
        }
        self.report(diagnostic)
    }

    pub(super) fn cast_bool(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        let truth = self.truth_value(value, span);
        self.python(truth, span)
    }

    pub(super) fn truth_value(&mut self, value: Value, span: Span) -> Value {
        match self.truth(value, span) {
            Truth::Known(known) => Value::Bool(known),
            Truth::Expr(expr) => Value::Scalar(expr, Scalar::Bool),
            Truth::Poison => Value::Poison,
        }
    }

    pub(super) fn cast_int(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        match value.ty().scalar() {
            Some(scalar) if scalar.is_int() => self.python(value, span),
            Some(scalar) if scalar.is_float() || scalar == Scalar::Bool => {
                match self.number(&value, Scalar::I64, span) {
                    Some(expr) => self.python(Value::Scalar(expr, Scalar::I64), span),
                    None => Value::Poison,
                }
            }
            Some(_) | None => {
                let text =
                    if let Value::Static(Static::Str(text)) = &value { text.trim().parse::<i64>().ok() } else { None };
                text.map_or_else(|| self.no_overload(row, &[value.ty()], span), |known| Value::Int(known.into()))
            }
        }
    }

    pub(super) fn cast_float(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        match value.ty().scalar() {
            Some(scalar) if scalar.is_float() => self.python(value, span),
            Some(_) => match self.number(&value, Scalar::F64, span) {
                Some(expr) => self.python(Value::Scalar(expr, Scalar::F64), span),
                None => Value::Poison,
            },
            // `float("inf")` and similar calls are constants.
            None => {
                let text = if let Value::Static(Static::Str(text)) = &value { text.trim().parse().ok() } else { None };
                match text {
                    Some(known) => {
                        let known = self.b.float(Scalar::F64, known, span);
                        self.python(Value::Scalar(known, Scalar::F64), span)
                    }
                    None => self.no_overload(row, &[value.ty()], span),
                }
            }
        }
    }

    pub(super) fn cast_complex(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value.strong()).collect();
        let types: Vec<_> = values.iter().map(Value::ty).collect();
        let Some(numbers) = types.iter().map(super::super::ty::Ty::number).collect::<Option<Vec<Number>>>() else {
            return self.no_overload(row, &types, span);
        };
        let single = numbers.iter().all(|number| matches!(number.part(), Scalar::F16 | Scalar::BF16 | Scalar::F32));
        // Python has no smaller complex type.
        let single = single && !numbers.is_empty() && !self.is_numpy();
        let ty = if single { Complex::C64 } else { Complex::C128 };
        match values.as_slice() {
            [value] => match self.complex(value, ty, span) {
                Some((real, imag)) => self.python(Value::Complex(real, imag, ty), span),
                None => self.no_overload(row, &types, span),
            },
            [real, imag] => match (self.number(real, ty.part(), span), self.number(imag, ty.part(), span)) {
                (Some(real), Some(imag)) => self.python(Value::Complex(real, imag, ty), span),
                _ => self.no_overload(row, &types, span),
            },
            _ => {
                let message = format!("`complex` takes 1 or 2 arguments, not {}", values.len());
                self.error(Code::ArgumentCount, span, message)
            }
        }
    }
}
