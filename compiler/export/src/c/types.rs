//! The types of parameters in C.

use weft_artifact::{ArgType, ArrayType, Complex, DType, Number, Param, Scalar};

use crate::refusal::RESERVED;

/// The type of a number.
pub(super) const fn number(number: Number) -> &'static str {
    match number {
        Number::Real(scalar) => match scalar {
            Scalar::Bool => "bool",
            Scalar::I8 => "int8_t",
            Scalar::I16 => "int16_t",
            Scalar::I32 => "int32_t",
            Scalar::I64 => "int64_t",
            Scalar::U8 => "uint8_t",
            Scalar::U16 => "uint16_t",
            Scalar::U32 => "uint32_t",
            Scalar::U64 => "uint64_t",
            Scalar::F16 => "weft_float16",
            Scalar::BF16 => "weft_bfloat16",
            Scalar::F32 => "float",
            Scalar::F64 => "double",
        },
        Number::Complex(Complex::C64) => "weft_complex64",
        Number::Complex(Complex::C128) => "weft_complex128",
    }
}

/// A parameter that the package can export.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CParam {
    Number(Number),
    Array(ArrayType, Number),
}

impl CParam {
    /// `None` for a parameter that [the check](crate::Package::check) rejects.
    pub(super) fn of(param: &Param) -> Option<Self> {
        match &param.ty {
            ArgType::Value(DType::Number(number)) => Some(Self::Number(*number)),
            ArgType::Array(array) => array.dtype.number().map(|number| Self::Array(*array, number)),
            ArgType::Value(DType::Compound(_))
            | ArgType::Tuple(_)
            | ArgType::None
            | ArgType::Struct(..)
            | ArgType::Enum(..)
            | ArgType::Record(_)
            | ArgType::Class(_)
            | ArgType::Pointer(_)
            | ArgType::Optional(_) => None,
        }
    }

    /// Its type in C.
    pub(super) fn ty(self) -> String {
        match self {
            Self::Number(of) => number(of).to_owned(),
            Self::Array(array, of) => format!("weft_{}_{}d", of.name(), array.ndim),
        }
    }
}

/// The name of a parameter in C: reserved words, and names of the functions' own, get an underscore.
pub(super) fn name(param: &Param) -> String {
    const OWN: [&str; 7] = ["where", "grid", "block", "shared_bytes", "shape", "cells", "error"];
    let name = param.name.as_str();
    if RESERVED.contains(&name) || OWN.contains(&name) { format!("{name}_") } else { name.to_owned() }
}
