//! Floats of 8 bits: elements of arrays, which kernels convert, copy and multiply by matrix tiles. They have no arithmetic.

use weft_artifact::{Float8, MatrixPart, MatrixTile, Scalar};

use super::{expr::Args, function::count, lowerer::FnLowerer, object::ObjectKind, swizzle, value::Value};
use crate::{
    diagnostic::Code,
    intrinsics::Intrinsic,
    ir::{ExprId, MathFn, Type},
    source::Span,
};

/// What to write instead of arithmetic.
pub(super) const HELP: &str = "a float of 8 bits has no arithmetic: convert it, `np.float32(x)`";

impl FnLowerer<'_> {
    /// `float8_e4m3fn(x)`: the nearest number, ties to even; one beyond the largest becomes the largest.
    pub(super) fn float8(&mut self, format: Float8, args: Args, span: Span) -> Value {
        let given = args.positional.len() + args.keywords.len();
        let mut values = args.positional.into_iter().map(|(value, _)| value);
        let (Some(value), true) = (values.next(), given == 1) else {
            let message = format!("`{format}` takes {}, not {given}", count(1, "argument"));
            return self.error(Code::ArgumentCount, span, message);
        };
        let ty = value.ty();
        if ty.is_poison() {
            return Value::Poison;
        }
        let value = self.of_float8(&value, span).unwrap_or(value);
        match self.float8_bits(&value, format, span) {
            Some(bits) => Value::Object(ObjectKind::Float8(format), vec![Value::Scalar(bits, Scalar::U8)]),
            None => self.error(Code::NoMatchingOverload, span, format!("{ty} cannot be converted to {format}")),
        }
    }

    /// The bits of a value as a float of 8 bits; `None` if it is neither one of this format nor a real number.
    pub(super) fn float8_bits(&mut self, value: &Value, format: Float8, span: Span) -> Option<ExprId> {
        if let Value::Object(ObjectKind::Float8(of), items) = value {
            return self.number(items.first()?, Scalar::U8, span).filter(|_| *of == format);
        }
        let scalar = value.ty().scalar()?;
        let wide = if matches!(scalar, Scalar::F16 | Scalar::BF16 | Scalar::F32) { Scalar::F32 } else { Scalar::F64 };
        let number = Value::Scalar(self.number(value, wide, span)?, wide);
        let name = match format {
            Float8::E4M3 => "fp8_to_e4m3",
            Float8::E5M2 => "fp8_to_e5m2",
        };
        let bits = self.prelude(name, vec![number], span);
        self.number(&bits, Scalar::U8, span)
    }

    /// The arguments of a call: of Python's `float` and `int`, a float of 8 bits as its `float32`.
    pub(super) fn widened_float8(&mut self, row: &Intrinsic, mut args: Args, span: Span) -> Args {
        if matches!(row.path, "builtins.float" | "builtins.int") {
            for (value, _) in &mut args.positional {
                if let Some(number) = self.of_float8(value, span) {
                    *value = number;
                }
            }
        }
        args
    }

    /// The `float32` of a float of 8 bits, exactly; `None` for other values.
    pub(super) fn of_float8(&mut self, value: &Value, span: Span) -> Option<Value> {
        let Value::Object(ObjectKind::Float8(format), items) = value else { return None };
        let bits = items.first()?;
        Some(match format {
            Float8::E4M3 => {
                let bits = self.number(bits, Scalar::U8, span)?;
                let number = self.b.math(MathFn::OfE4M3, vec![bits], Type::Scalar(Scalar::F32), span);
                Value::Scalar(number, Scalar::F32)
            }
            Float8::E5M2 => self.prelude("fp8_from_e5m2", vec![bits.clone()], span),
        })
    }

    /// An array of floats of 8 bits as one of their bits, if the tile has them; another array as it is.
    pub(super) fn bits_of_float8(&mut self, (tile, part): (MatrixTile, MatrixPart), array: Value, span: Span) -> Value {
        let [of_a, of_b, _] = tile.kind().names();
        let name = if part == MatrixPart::A { of_a } else { of_b };
        match swizzle::array_of(array) {
            Ok((array, swizzle)) => {
                let fits = array.ty.dtype.float8().is_some_and(|format| format.short_name() == name);
                let array = Value::Array(if fits { self.viewed_as(&array, Scalar::U8, span) } else { array });
                match swizzle {
                    Some(swizzle) => Value::Object(ObjectKind::Swizzled(swizzle), vec![array]),
                    None => array,
                }
            }
            Err(other) => other,
        }
    }
}
