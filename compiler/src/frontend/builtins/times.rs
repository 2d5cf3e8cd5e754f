//! Functions of dates and durations: NumPy's ufuncs and functions of whole arrays, Python's `abs`, `min`, `max` and
//! `int`.
//!
//! They compute with counts of units. A function of two times converts both to the finer unit, as operators do. `NaT`
//! is the lowest count; each function treats it as NumPy does.

use weft_artifact::{Compound, DType, Number, Scalar, Time};

use super::super::{
    expr::Args,
    lowerer::FnLowerer,
    object::ObjectKind,
    prelude,
    ty::{ArrayTy, Ty},
    value::{ArrayValue, Value},
};
use crate::{
    intrinsics::{Intrinsic, Lowering, More, Returns, Whole},
    source::Span,
    syntax::ast::{BinOp, CmpOp, UnaryOp},
};

/// The kind of result of a function of times.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Gives {
    /// A time of the same type.
    Time,
    /// A duration in their unit.
    Span,
    /// An integer.
    Number,
}

/// A function of one or two times.
#[derive(Clone, Copy)]
enum OfTimes {
    Binary(BinOp),
    Compare(CmpOp),
    Unary(UnaryOp),
    /// The absolute value of a duration.
    Abs,
    /// A function of the prelude that returns a bool.
    Test(&'static str),
    /// Whether it is not `NaT`.
    IsFinite,
    /// Always false: no time is infinite.
    Never,
    /// A function of the prelude from a duration to a duration.
    Span(&'static str),
    /// A function of the prelude that selects one of two times of the same kind.
    Choice(&'static str),
    /// The count of a duration.
    Count,
}

impl OfTimes {
    /// The function of a row; `None` if it is not a function of times.
    fn of(path: &str) -> Option<Self> {
        Some(match path {
            "builtins.abs" | "numpy.abs" | "numpy.absolute" => Self::Abs,
            "builtins.int" => Self::Count,
            "builtins.max" => Self::Choice("time_larger"),
            "builtins.min" => Self::Choice("time_smaller"),
            "numpy.add" => Self::Binary(BinOp::Add),
            "numpy.divide" | "numpy.true_divide" => Self::Binary(BinOp::Div),
            "numpy.equal" => Self::Compare(CmpOp::Eq),
            "numpy.floor_divide" => Self::Binary(BinOp::FloorDiv),
            "numpy.fmax" => Self::Choice("time_fmax"),
            "numpy.fmin" => Self::Choice("time_fmin"),
            "numpy.greater" => Self::Compare(CmpOp::Gt),
            "numpy.greater_equal" => Self::Compare(CmpOp::GtE),
            "numpy.isfinite" => Self::IsFinite,
            "numpy.isinf" => Self::Never,
            "numpy.isnan" | "numpy.isnat" => Self::Test("time_isnat"),
            "numpy.less" => Self::Compare(CmpOp::Lt),
            "numpy.less_equal" => Self::Compare(CmpOp::LtE),
            "numpy.maximum" => Self::Choice("time_maximum"),
            "numpy.minimum" => Self::Choice("time_minimum"),
            "numpy.mod" | "numpy.remainder" => Self::Binary(BinOp::Mod),
            "numpy.multiply" => Self::Binary(BinOp::Mul),
            "numpy.negative" => Self::Unary(UnaryOp::Minus),
            "numpy.not_equal" => Self::Compare(CmpOp::NotEq),
            "numpy.positive" => Self::Unary(UnaryOp::Plus),
            "numpy.sign" => Self::Span("time_sign"),
            "numpy.subtract" => Self::Binary(BinOp::Sub),
            _ => return None,
        })
    }
}

impl FnLowerer<'_> {
    /// A call with a time, or an array of times, among its arguments; `None` if there is none, or the function handles
    /// times itself.
    pub(super) fn of_times(&mut self, row: &'static Intrinsic, args: &Args, span: Span) -> Option<Value> {
        let values: Vec<Value> = args.positional.iter().map(|(value, _)| value.clone()).collect();
        if let [Value::Array(array), ..] = values.as_slice()
            && let Some(time) = time_of(array.ty.dtype)
        {
            if let Lowering::Whole(of) = row.lowering {
                return Some(self.whole_of_times(row, of, time, args, span));
            }
            let name = match row.path {
                "builtins.max" => "time_largest",
                "builtins.min" => "time_smallest",
                _ => return None,
            };
            if values.len() > 1 || array.ty.ndim != 1 {
                return None;
            }
            let counts = Value::Array(counts(array));
            return Some(made(Gives::Time, time, self.own_of_array(row, name, vec![counts], span)));
        }
        if let [one] = values.as_slice()
            && matches!(row.path, "builtins.max" | "builtins.min")
            && let Some(items) = one.as_tuple()
            && items.iter().any(is_time)
        {
            return Some(self.chosen_time(row, OfTimes::of(row.path)?, items.to_vec(), span));
        }
        if !values.iter().any(is_time) || values.iter().any(|value| matches!(value, Value::Array(_))) {
            return None;
        }
        let of = OfTimes::of(row.path)?;
        self.no_keywords(row, args).map_or(Some(Value::Poison), |()| Some(self.chosen_time(row, of, values, span)))
    }

    /// A function of times.
    fn chosen_time(&mut self, row: &'static Intrinsic, of: OfTimes, values: Vec<Value>, span: Span) -> Value {
        let types: Vec<Ty> = values.iter().map(Value::ty).collect();
        let found = match (of, values.as_slice()) {
            (OfTimes::Binary(op), [a, b]) => Some(self.binary(op, a.clone(), b.clone(), span)),
            (OfTimes::Compare(op), [a, b]) => Some(self.compare(op, a.clone(), b.clone(), span)),
            (OfTimes::Unary(op), [a]) => Some(self.unary(op, a.clone(), span)),
            (OfTimes::Choice(name), [first, rest @ ..]) if !rest.is_empty() => {
                let one_kind = row.path.starts_with("builtins.") || rest.len() == 1;
                let pairs = rest.iter().try_fold(first.clone(), |a, b| self.time_choice(name, &a, b, span));
                pairs.filter(|_| one_kind)
            }
            (of, [Value::Object(ObjectKind::Time(time), items)]) => {
                let count = items.first().cloned().unwrap_or(Value::Poison);
                self.of_count(of, *time, count, span)
            }
            _ => None,
        };
        found.unwrap_or_else(|| self.no_overload(row, &types, span))
    }

    /// A function of the count of one time.
    fn of_count(&mut self, of: OfTimes, time: Time, count: Value, span: Span) -> Option<Value> {
        match of {
            OfTimes::Abs if time.is_span => {
                let size = self.time_prelude("time_abs", count, span);
                Some(made(Gives::Time, time, size))
            }
            OfTimes::Span(name) if time.is_span => Some(made(Gives::Time, time, self.time_prelude(name, count, span))),
            OfTimes::Test(name) => Some(self.time_prelude(name, count, span)),
            OfTimes::IsFinite => {
                let test = self.time_prelude("time_isnat", count, span);
                Some(self.unary(UnaryOp::Not, test, span))
            }
            OfTimes::Never => Some(Value::Bool(false)),
            OfTimes::Count if time.is_span => Some(self.python(count, span)),
            OfTimes::Abs
            | OfTimes::Span(_)
            | OfTimes::Count
            | OfTimes::Binary(_)
            | OfTimes::Compare(_)
            | OfTimes::Unary(_)
            | OfTimes::Choice(_) => None,
        }
    }

    /// A function of a whole array of times.
    fn whole_of_times(
        &mut self,
        row: &'static Intrinsic,
        of: &'static Whole,
        time: Time,
        args: &Args,
        span: Span,
    ) -> Value {
        let args = Args { positional: args.positional.clone(), keywords: args.keywords.clone() };
        let Some((array, given)) = self.given(row, of, args, span) else { return Value::Poison };
        let (name, gives, spans_only) = match row.path {
            "numpy.sum" => ("time_np_sum", Gives::Time, true),
            "numpy.mean" => ("time_np_mean", Gives::Time, true),
            "numpy.cumsum" => ("time_np_cumsum", Gives::Time, true),
            "numpy.min" | "numpy.amin" => ("time_np_min", Gives::Time, false),
            "numpy.max" | "numpy.amax" => ("time_np_max", Gives::Time, false),
            "numpy.nanmin" => ("time_np_nanmin", Gives::Time, false),
            "numpy.nanmax" => ("time_np_nanmax", Gives::Time, false),
            "numpy.ptp" => ("time_np_ptp", Gives::Span, false),
            "numpy.argmin" => ("time_np_argmin", Gives::Number, false),
            "numpy.argmax" => ("time_np_argmax", Gives::Number, false),
            _ => return self.no_overload(row, &[Ty::Array(array.ty)], span),
        };
        if given.is_general() || (spans_only && !time.is_span) {
            return self.no_overload(row, &[Ty::Array(array.ty)], span);
        }
        let Some(function) = prelude::function(name) else {
            self.cx.fault(self.at(span), &format!("the prelude lacks `{name}`"));
            return Value::Poison;
        };
        let running = matches!(of.more, More::Running(_));
        let Some(out) = given.out.clone() else {
            if running || given.axis.is_some_and(|_| array.ty.ndim > 1) {
                return self.needs_out(row, given.axis, span);
            }
            let returns = Returns::Scalar(Scalar::I64);
            let found = self.own_result(row, &function, vec![Value::Array(counts(&array))], returns, span);
            return made(gives, time, found);
        };
        let holds = match gives {
            Gives::Number => out.ty.dtype == Number::I64.into(),
            Gives::Time | Gives::Span => time_of(out.ty.dtype) == Some(result_of(gives, time)),
        };
        if !holds {
            return self.no_overload(row, &[Ty::Array(array.ty), Ty::Array(out.ty)], span);
        }
        let results = if gives == Gives::Number { out.clone() } else { counts(&out) };
        match self.stored_results(row, &function, counts(&array), given.axis, results, running, Vec::new(), span) {
            Some(()) => Value::Array(out),
            None => Value::Poison,
        }
    }
}

fn result_of(gives: Gives, time: Time) -> Time {
    match gives {
        Gives::Span => Time { is_span: true, ..time },
        Gives::Time | Gives::Number => time,
    }
}

/// Converts a count to a function's result.
fn made(gives: Gives, time: Time, count: Value) -> Value {
    match (gives, count) {
        (_, Value::Poison) => Value::Poison,
        (Gives::Number, count) => count,
        (Gives::Time | Gives::Span, count) => Value::Object(ObjectKind::Time(result_of(gives, time)), vec![count]),
    }
}

fn is_time(value: &Value) -> bool {
    matches!(value, Value::Object(ObjectKind::Time(_), _))
}

/// The time type of a dtype.
pub(in crate::frontend) fn time_of(dtype: DType) -> Option<Time> {
    let DType::Compound(id) = dtype else { return None };
    if let Compound::Time(time) = id.get() { Some(*time) } else { None }
}

/// An array of times as an array of their counts.
fn counts(array: &ArrayValue) -> ArrayValue {
    ArrayValue { ty: ArrayTy { dtype: Number::I64.into(), ..array.ty }, ..array.clone() }
}
