//! `np.iinfo(T)` and `np.finfo(T)`: their attributes are compile-time constants.
//!
//! The result of a call is the path of the function followed by the type's name, so that a variable can hold it.

use weft_artifact::{Number, Scalar};

use super::super::{
    expr::Args,
    lowerer::FnLowerer,
    object::Static,
    value::{LibraryName, Value},
};
use crate::{intrinsics::Intrinsic, source::Span};

impl FnLowerer<'_> {
    /// A call with a type, or with a number, whose type is used.
    pub(super) fn limits(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([of]) = self.exactly(row, args, span) else { return Value::Poison };
        let number = if let Value::Static(known) = &of {
            match known {
                Static::DType(dtype) => dtype.number(),
                Static::Known(known) if known.path() == "builtins.int" => Some(Number::I64),
                Static::Known(known) if known.path() == "builtins.float" => Some(Number::F64),
                Static::Str(name) => Number::from_name(name),
                Static::None
                | Static::Bytes(_)
                | Static::Exception(_)
                | Static::Class(..)
                | Static::Known(_)
                | Static::Module(..)
                | Static::Function(_)
                | Static::Overloaded(_) => None,
            }
        } else {
            of.ty().number()
        };
        let floats = row.path == "numpy.finfo";
        // Of a complex type, the limits are those of its parts.
        let part = number.map(Number::part).filter(|part| if floats { part.is_float() } else { part.is_int() });
        match part {
            Some(part) => Value::Static(Static::Known(LibraryName::Path(format!("{}.{}", row.path, part.name())))),
            None => self.no_overload(row, &[of.ty()], span),
        }
    }

    /// An attribute of the result of a call, such as `numpy.finfo.float32.max`.
    pub(in crate::frontend) fn limit(&mut self, path: &str, span: Span) -> Option<Value> {
        let (rest, attribute) = path.rsplit_once('.')?;
        let (function, name) = rest.rsplit_once('.')?;
        let scalar = Number::from_name(name)?.real()?;
        if attribute == "dtype" {
            return Some(Value::Static(Static::DType(scalar.into())));
        }
        let bits = i128::from(scalar.size_bytes()) * 8;
        if attribute == "bits" {
            return Some(Value::Int(bits));
        }
        match function {
            "numpy.iinfo" => {
                let signed = u32::from(scalar.is_signed_int());
                match attribute {
                    "max" => Some(Value::Int((1 << (bits as u32 - signed)) - 1)),
                    "min" if signed == 1 => Some(Value::Int(-(1 << (bits as u32 - 1)))),
                    "min" => Some(Value::Int(0)),
                    _ => None,
                }
            }
            "numpy.finfo" => {
                let format = Format::of(scalar)?;
                if let Some(whole) = format.whole(attribute) {
                    return Some(Value::Int(i128::from(whole)));
                }
                let value = format.float(attribute)?;
                Some(Value::Scalar(self.b.float(scalar, value, span), scalar))
            }
            _ => None,
        }
    }
}

/// A binary floating-point format.
#[derive(Clone, Copy, Debug)]
struct Format {
    /// Bits of the fraction.
    fraction: i32,
    /// Bits of the exponent.
    exponent: i32,
}

impl Format {
    fn of(scalar: Scalar) -> Option<Self> {
        let (fraction, exponent) = match scalar {
            Scalar::F16 => (10, 5),
            Scalar::BF16 => (7, 8),
            Scalar::F32 => (23, 8),
            Scalar::F64 => (52, 11),
            Scalar::Bool
            | Scalar::I8
            | Scalar::U8
            | Scalar::I16
            | Scalar::U16
            | Scalar::I32
            | Scalar::U32
            | Scalar::I64
            | Scalar::U64 => return None,
        };
        Some(Self { fraction, exponent })
    }

    /// The exponent of the smallest normal number.
    fn least_exponent(self) -> i32 {
        2 - (1 << (self.exponent - 1))
    }

    /// The number of decimal digits that the type represents exactly.
    fn precision(self) -> i32 {
        (f64::from(self.fraction) * std::f64::consts::LOG10_2) as i32
    }

    fn whole(self, attribute: &str) -> Option<i32> {
        Some(match attribute {
            "nmant" => self.fraction,
            "nexp" | "iexp" => self.exponent,
            "machep" => -self.fraction,
            "negep" => -self.fraction - 1,
            "minexp" => self.least_exponent(),
            "maxexp" => 1 << (self.exponent - 1),
            "precision" => self.precision(),
            _ => return None,
        })
    }

    fn float(self, attribute: &str) -> Option<f64> {
        // The last factor is the largest significand; no intermediate result exceeds the range of float64.
        let largest = 2_f64.powi((1 << (self.exponent - 1)) - 1) * (2.0 - 2_f64.powi(-self.fraction));
        Some(match attribute {
            "max" => largest,
            "min" => -largest,
            "eps" => 2_f64.powi(-self.fraction),
            "epsneg" => 2_f64.powi(-self.fraction - 1),
            "tiny" | "smallest_normal" => 2_f64.powi(self.least_exponent()),
            // Two factors: the power for a subnormal number is not exact on every platform.
            "smallest_subnormal" => 2_f64.powi(self.least_exponent()) * 2_f64.powi(-self.fraction),
            "resolution" => format!("1e-{}", self.precision()).parse().ok()?,
            _ => return None,
        })
    }
}
