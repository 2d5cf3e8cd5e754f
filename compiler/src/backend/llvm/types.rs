//! The LLVM types of the IR's types.
//!
//! `Bool` is `i1` in registers and `i8` (0 or 1) in memory, in a local's slot and in a kernel's parameter. [`Halves`]
//! selects the representation of 16-bit floats.

use inkwell::{
    AddressSpace,
    context::Context,
    types::{BasicType, BasicTypeEnum, FloatType, FunctionType, IntType, PointerType},
};
use weft_artifact::Scalar;

use super::{
    half::Halves,
    shim::{Result, internal},
};
use crate::ir::{Space, Type};

/// LLVM's address spaces on a target, for the IR's spaces.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AddressSpaces {
    /// [`Space::Global`].
    pub global: u16,
    /// [`Space::Shared`].
    pub shared: u16,
    /// [`Space::Constant`].
    pub constant: u16,
    /// [`Space::Local`].
    pub local: u16,
    /// [`Space::Generic`].
    pub generic: u16,
}

/// The types of one context.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Types<'ctx> {
    /// The context that owns the types.
    pub context: &'ctx Context,
    /// The target's address spaces.
    pub spaces: AddressSpaces,
    /// The target's representation of 16-bit floats.
    pub halves: Halves,
}

impl<'ctx> Types<'ctx> {
    /// The pointer type of a space.
    pub(crate) fn pointer(&self, space: Space) -> PointerType<'ctx> {
        let number = match space {
            Space::Global => self.spaces.global,
            Space::Shared => self.spaces.shared,
            Space::Local => self.spaces.local,
            Space::Constant => self.spaces.constant,
            Space::Generic => self.spaces.generic,
        };
        self.context.ptr_type(AddressSpace::from(number))
    }

    /// The integer type of an integer or `Bool` in registers.
    pub(crate) fn int(&self, scalar: Scalar) -> Result<IntType<'ctx>> {
        Ok(match scalar {
            Scalar::Bool => self.context.bool_type(),
            Scalar::I8 | Scalar::U8 => self.context.i8_type(),
            Scalar::I16 | Scalar::U16 => self.context.i16_type(),
            Scalar::I32 | Scalar::U32 => self.context.i32_type(),
            Scalar::I64 | Scalar::U64 => self.context.i64_type(),
            Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64 => {
                return internal(format!("{scalar} instead of an integer"));
            }
        })
    }

    /// The type of a float. A 16-bit float must be represented by an LLVM type.
    pub(crate) fn float(&self, scalar: Scalar) -> Result<FloatType<'ctx>> {
        match scalar {
            Scalar::F16 | Scalar::BF16 if matches!(self.halves, Halves::Bits { .. }) => {
                internal(format!("{scalar} is its bits"))
            }
            Scalar::F16 => Ok(self.context.f16_type()),
            Scalar::BF16 => Ok(self.context.bf16_type()),
            Scalar::F32 => Ok(self.context.f32_type()),
            Scalar::F64 => Ok(self.context.f64_type()),
            Scalar::Bool
            | Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => internal(format!("{scalar} instead of a float")),
        }
    }

    /// The type of a value in registers.
    pub(crate) fn value(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>> {
        match ty {
            Type::Scalar(scalar) if scalar.is_half() && matches!(self.halves, Halves::Bits { .. }) => {
                Ok(self.context.i16_type().into())
            }
            Type::Scalar(scalar) if scalar.is_float() => Ok(self.float(scalar)?.into()),
            Type::Scalar(scalar) => Ok(self.int(scalar)?.into()),
            Type::Ptr(_, space) => Ok(self.pointer(space).into()),
        }
    }

    /// The type of a value in memory.
    pub(crate) fn memory(&self, ty: Type) -> Result<BasicTypeEnum<'ctx>> {
        if ty == Type::BOOL { Ok(self.context.i8_type().into()) } else { self.value(ty) }
    }

    /// The type of a device function: hidden parameters first; the results are void, a value or a struct.
    pub(crate) fn function(
        &self,
        hidden: &[BasicTypeEnum<'ctx>],
        params: impl Iterator<Item = Type>,
        results: &[Type],
    ) -> Result<FunctionType<'ctx>> {
        let mut all: Vec<_> = hidden.iter().map(|&ty| ty.into()).collect();
        for param in params {
            all.push(self.value(param)?.into());
        }
        Ok(match results {
            [] => self.context.void_type().fn_type(&all, false),
            [one] => self.value(*one)?.fn_type(&all, false),
            many => {
                let fields = many.iter().map(|&ty| self.value(ty)).collect::<Result<Vec<_>>>()?;
                self.context.struct_type(&fields, false).fn_type(&all, false)
            }
        })
    }
}
