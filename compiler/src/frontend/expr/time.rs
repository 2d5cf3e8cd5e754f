//! Dates and durations: NumPy's operators on counts of units. Operands of two units are converted to the finer unit, if
//! the coarser one is a multiple of it; a date in years or months is converted as its first day.

use weft_artifact::{Scalar, Time, TimeUnit};

use crate::{
    frontend::{lowerer::FnLowerer, object::ObjectKind, value::Value},
    source::Span,
    syntax::ast::{BinOp, CmpOp},
};

impl FnLowerer<'_> {
    /// An operator with a time as an operand; `None` if there is none, or NumPy does not define the operator.
    pub(super) fn time_binary(&mut self, op: BinOp, left: &Value, right: &Value, span: Span) -> Option<Value> {
        match (count_of(left), count_of(right)) {
            (Some((a, x)), Some((b, y))) => {
                let name = match (op, a.is_span, b.is_span) {
                    (BinOp::Add, true, _) | (BinOp::Add, false, true) => "time_add",
                    (BinOp::Sub, false, _) | (BinOp::Sub, true, true) => "time_sub",
                    (BinOp::Div, true, true) => "time_ratio",
                    (BinOp::FloorDiv, true, true) => "time_whole_ratio",
                    (BinOp::Mod, true, true) => "time_mod",
                    _ => return None,
                };
                let unit = shorter(a, b);
                let x = self.in_unit(x.clone(), a, unit, span)?;
                let y = self.in_unit(y.clone(), b, unit, span)?;
                let result = self.prelude(name, vec![x, y], span);
                let is_span = (a.is_span == b.is_span) && (a.is_span || op == BinOp::Sub);
                let is_number = matches!(op, BinOp::Div | BinOp::FloorDiv);
                Some(if is_number { result } else { time(Time { is_span, unit }, result) })
            }
            (Some((a, x)), None) if a.is_span => {
                let is_float = right.ty().scalar()?.is_float();
                let name = match (op, is_float) {
                    (BinOp::Mul, false) => "time_mul",
                    (BinOp::Mul, true) => "time_mul_float",
                    // NumPy truncates both.
                    (BinOp::Div | BinOp::FloorDiv, false) => "time_div",
                    (BinOp::Div | BinOp::FloorDiv, true) => "time_div_float",
                    _ => return None,
                };
                let ty = if is_float { Scalar::F64 } else { Scalar::I64 };
                let by = Value::Scalar(self.number(right, ty, span)?, ty);
                Some(time(a, self.prelude(name, vec![x.clone(), by], span)))
            }
            (None, Some((b, _))) if b.is_span && op == BinOp::Mul => self.time_binary(op, right, left, span),
            (Some(_) | None, Some(_) | None) => None,
        }
    }

    /// A comparison of two dates or two durations.
    pub(super) fn time_compare(&mut self, op: CmpOp, left: &Value, right: &Value, span: Span) -> Option<Value> {
        let ((a, x), (b, y)) = (count_of(left)?, count_of(right)?);
        if a.is_span != b.is_span {
            return None;
        }
        let unit = shorter(a, b);
        let x = self.in_unit(x.clone(), a, unit, span)?;
        let y = self.in_unit(y.clone(), b, unit, span)?;
        let (name, args) = match op {
            CmpOp::Eq | CmpOp::Is => ("time_eq", vec![x, y]),
            CmpOp::NotEq | CmpOp::IsNot => ("time_ne", vec![x, y]),
            CmpOp::Lt => ("time_lt", vec![x, y]),
            CmpOp::LtE => ("time_le", vec![x, y]),
            CmpOp::Gt => ("time_lt", vec![y, x]),
            CmpOp::GtE => ("time_le", vec![y, x]),
            CmpOp::In | CmpOp::NotIn => return None,
        };
        Some(self.prelude(name, args, span))
    }

    /// A function of the prelude on one count.
    pub(in crate::frontend) fn time_prelude(&mut self, name: &'static str, count: Value, span: Span) -> Value {
        self.prelude(name, vec![count], span)
    }

    /// Selects one of two dates or durations, by a function of the prelude; `None` if they are of different kinds.
    pub(in crate::frontend) fn time_choice(
        &mut self,
        name: &'static str,
        left: &Value,
        right: &Value,
        span: Span,
    ) -> Option<Value> {
        let ((a, x), (b, y)) = (count_of(left)?, count_of(right)?);
        if a.is_span != b.is_span {
            return None;
        }
        let unit = shorter(a, b);
        let x = self.in_unit(x.clone(), a, unit, span)?;
        let y = self.in_unit(y.clone(), b, unit, span)?;
        Some(time(Time { unit, ..a }, self.prelude(name, vec![x, y], span)))
    }

    /// The count of a time, converted to a time type; `None` if it is not of this kind, or its unit is finer.
    pub(in crate::frontend) fn time_as(&mut self, value: &Value, to: Time, span: Span) -> Option<Value> {
        let (from, count) = count_of(value).filter(|(from, _)| from.is_span == to.is_span)?;
        self.in_unit(count.clone(), from, to.unit, span)
    }

    /// A count, converted to a unit that is the same or finer.
    fn in_unit(&mut self, count: Value, of: Time, unit: Option<TimeUnit>, span: Span) -> Option<Value> {
        let factor = match (of.unit, unit) {
            (Some(from @ (TimeUnit::Year | TimeUnit::Month)), Some(to)) if !of.is_span && to > TimeUnit::Month => {
                return self.date_in_unit(count, from, to, span);
            }
            (Some(from), Some(to)) => from.count_in(to)?,
            (None, _) => 1,
            (Some(_), None) => return None,
        };
        if factor == 1 {
            return Some(count);
        }
        Some(self.prelude("time_mul", vec![count, Value::Int(factor.into())], span))
    }
}

impl FnLowerer<'_> {
    /// The first day of a year or month, in a unit of days or finer, or the week that contains it. A duration in
    /// months, unlike a date, has no fixed number of days.
    fn date_in_unit(&mut self, count: Value, of: TimeUnit, unit: TimeUnit, span: Span) -> Option<Value> {
        let months = of.count_in(TimeUnit::Month)?;
        let days = self.prelude("time_days", vec![count, Value::Int(months.into())], span);
        if unit == TimeUnit::Week {
            return Some(self.prelude("time_weeks", vec![days], span));
        }
        let factor = TimeUnit::Day.count_in(unit)?;
        if factor == 1 {
            return Some(days);
        }
        Some(self.prelude("time_mul", vec![days, Value::Int(factor.into())], span))
    }
}

fn time(ty: Time, count: Value) -> Value {
    Value::Object(ObjectKind::Time(ty), vec![count])
}

fn count_of(value: &Value) -> Option<(Time, &Value)> {
    if let Value::Object(ObjectKind::Time(time), items) = value { Some((*time, items.first()?)) } else { None }
}

/// The finer of two units.
fn shorter(a: Time, b: Time) -> Option<TimeUnit> {
    a.unit.max(b.unit)
}
