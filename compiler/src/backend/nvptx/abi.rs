//! The ABIs of code outside of weft: `docs/design/exported-functions.md` as LLVM types.
//!
//! A value is a list of *parts*, each at an offset, in the order of [`ArgType::fields`], with the additional fields of
//! numba-cuda's arrays. The C ABI passes a number as itself and everything else as a struct of its parts. numba-cuda's
//! ABI passes each part as a parameter; so do both ABIs for an array. A struct is an LLVM struct with explicit padding;
//! an attribute specifies its alignment.

use inkwell::types::{BasicTypeEnum, StructType};
use weft_artifact::{ArgItem, ArgType, Compound, DType, Number, Scalar, SlotField, Step};

use crate::{
    backend::llvm::{Result, Types, internal},
    ir::{Space, Type},
    request::Abi,
};

/// A scalar part of a value that an ABI passes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct AbiScalar {
    /// The field that it represents, with its path; `None` if weft does not read it.
    pub(super) field: Option<(Vec<Step>, SlotField)>,
    /// Its type.
    pub(super) ty: Type,
    /// Its offset in bytes.
    pub(super) offset: u64,
}

/// The memory layout of a value.
#[derive(Clone, Debug, Default)]
pub(super) struct Shape {
    pub(super) parts: Vec<AbiScalar>,
    pub(super) size: u64,
    pub(super) align: u64,
    /// The value is a number, which is passed as itself.
    pub(super) alone: bool,
}

/// A parameter of a function.
#[derive(Clone, Debug)]
pub(super) enum Param {
    /// One part.
    Part(AbiScalar),
    /// A struct of several parts.
    Struct(Shape),
}

impl Param {
    /// The same parameter for an item of an aggregate: `step` is prepended to the paths.
    fn in_item(self, step: Step) -> Self {
        let deeper = |part: AbiScalar| AbiScalar {
            field: part.field.map(|(mut steps, field)| {
                steps.insert(0, step);
                (steps, field)
            }),
            ..part
        };
        match self {
            Self::Part(part) => Self::Part(deeper(part)),
            Self::Struct(shape) => {
                Self::Struct(Shape { parts: shape.parts.into_iter().map(deeper).collect(), ..shape })
            }
        }
    }
}

/// The type of the flag that says whether an optional value is present.
const GIVEN: ArgType = ArgType::Value(DType::BOOL);

/// In numba-cuda's array descriptor, two pointers and two counts precede the fields that weft reads.
const DESCRIPTOR: [Type; 4] = [ADDRESS, ADDRESS, Type::Scalar(Scalar::I64), Type::Scalar(Scalar::I64)];
const ADDRESS: Type = Type::Ptr(Scalar::U8, Space::Generic);

impl Shape {
    /// The layout of a value of a type. Its pointers have the address space `space`.
    pub(super) fn of(ty: &ArgType, abi: Abi, space: Space) -> Self {
        let mut shape = Self { align: 1, ..Self::default() };
        shape.add(ty, abi, space, &mut Vec::new());
        shape.alone = match ty {
            ArgType::Value(dtype) => !matches!(dtype, DType::Number(Number::Complex(_))),
            ArgType::Enum(_, value) => Self::of(value, abi, space).alone,
            ArgType::Record(_) | ArgType::Pointer(_) => true,
            ArgType::Array(_)
            | ArgType::Tuple(_)
            | ArgType::None
            | ArgType::Struct(..)
            | ArgType::Class(_)
            | ArgType::Optional(_) => false,
        };
        shape
    }

    fn push(&mut self, ty: Type, field: Option<(Vec<Step>, SlotField)>) {
        let size = match ty {
            Type::Scalar(scalar) => scalar.size_bytes(),
            Type::Ptr(..) => 8,
        };
        self.start(size);
        self.parts.push(AbiScalar { field, ty, offset: self.size });
        self.size += size;
    }

    fn push_address(&mut self, of: DType, space: Space, path: &[Step]) {
        self.push(Type::Ptr(of.access().0, space), Some((path.to_vec(), SlotField::Data)));
    }

    /// Pads, so that the next part starts at a multiple of `align`.
    fn start(&mut self, align: u64) {
        self.align = self.align.max(align);
        self.size = self.size.next_multiple_of(align.max(1));
    }

    /// Pads the end of an item with this alignment.
    fn end(&mut self, align: u64) {
        self.size = self.size.next_multiple_of(align.max(1));
    }

    fn add(&mut self, ty: &ArgType, abi: Abi, space: Space, path: &mut Vec<Step>) {
        match ty {
            ArgType::Value(DType::Number(Number::Complex(complex))) => {
                let part = complex.part();
                // `cuFloatComplex`, `cuDoubleComplex` and `cuda::std::complex` are aligned to their size.
                let align = part.size_bytes() * if abi == Abi::C { 2 } else { 1 };
                self.start(align);
                for field in [SlotField::Real, SlotField::Imag] {
                    self.push(Type::Scalar(part), Some((path.clone(), field)));
                }
            }
            ArgType::Value(DType::Number(Number::Real(scalar))) => {
                self.push(Type::Scalar(*scalar), Some((path.clone(), SlotField::Value)));
            }
            ArgType::Value(DType::Compound(id)) => {
                // The front end has no values of other compound types yet.
                if matches!(id.get(), Compound::Time(_)) {
                    self.push(Type::Scalar(Scalar::I64), Some((path.clone(), SlotField::Value)));
                }
            }
            ArgType::Record(dtype) => self.push_address(*dtype, space, path),
            ArgType::Pointer(dtype) => self.push_address(dtype.unwrap_or(DType::U8), space, path),
            ArgType::Array(array) => {
                for filler in DESCRIPTOR {
                    self.push(filler, None);
                }
                self.push(Type::Ptr(array.dtype.access().0, space), Some((path.clone(), SlotField::Data)));
                let long = Type::Scalar(Scalar::I64);
                for dim in 0..array.ndim {
                    self.push(long, Some((path.clone(), SlotField::Shape(dim))));
                }
                for dim in 0..array.ndim {
                    self.push(long, Some((path.clone(), SlotField::Stride(dim))));
                }
            }
            ArgType::Tuple(items) | ArgType::Struct(_, items) => {
                self.add_items(items.iter().zip(0..), abi, space, path);
            }
            // numba-cuda stores the value first.
            ArgType::Optional(of) => self.add_items([(&**of, 1), (&GIVEN, 0)].into_iter(), abi, space, path),
            ArgType::Enum(_, value) => self.add(value, abi, space, path),
            // numba-cuda passes a pointer for a type without a value.
            ArgType::None | ArgType::Class(_) => {
                if abi == Abi::Numba {
                    self.push(ADDRESS, None);
                }
            }
        }
    }

    /// Adds a struct of items, each with its step in the path.
    fn add_items<'a>(
        &mut self,
        items: impl Iterator<Item = (&'a ArgType, Step)>,
        abi: Abi,
        space: Space,
        path: &mut Vec<Step>,
    ) {
        let mut inner = Self { align: 1, ..Self::default() };
        for (item, step) in items {
            path.push(step);
            inner.add(item, abi, space, path);
            path.pop();
        }
        self.start(inner.align);
        let base = self.size;
        self.parts.extend(inner.parts.into_iter().map(|part| AbiScalar { offset: base + part.offset, ..part }));
        self.size += inner.size;
        self.end(inner.align);
    }

    /// The LLVM struct of the parts, and the index of each part's field in it.
    pub(super) fn llvm<'ctx>(&self, types: &Types<'ctx>) -> Result<(StructType<'ctx>, Vec<u32>)> {
        let byte = types.context.i8_type();
        let (mut fields, mut places): (Vec<BasicTypeEnum<'ctx>>, Vec<u32>) = (Vec::new(), Vec::new());
        let mut end = 0;
        let gap = |fields: &mut Vec<BasicTypeEnum<'ctx>>, bytes: u64| -> Result<()> {
            let Ok(bytes) = u32::try_from(bytes) else { return internal("a struct beyond 4 GiB") };
            if bytes > 0 {
                fields.push(byte.array_type(bytes).into());
            }
            Ok(())
        };
        for part in &self.parts {
            gap(&mut fields, part.offset - end)?;
            places.push(fields.len() as u32);
            fields.push(types.memory(part.ty)?);
            end = part.offset
                + match part.ty {
                    Type::Scalar(scalar) => scalar.size_bytes(),
                    Type::Ptr(..) => 8,
                };
        }
        gap(&mut fields, self.size.next_multiple_of(self.align.max(1)) - end)?;
        Ok((types.context.struct_type(&fields, false), places))
    }
}

/// The parameters of an argument.
pub(super) fn params(ty: &ArgType, abi: Abi, space: Space) -> Vec<Param> {
    if let ArgType::Optional(of) = ty {
        // Both ABIs pass the value, and whether it is present.
        let inner = params(of, abi, space).into_iter().map(|param| param.in_item(1));
        let given = params(&GIVEN, abi, space).into_iter().map(|param| param.in_item(0));
        return inner.chain(given).collect();
    }
    let shape = Shape::of(ty, abi, space);
    let flat = match (abi, ty) {
        (Abi::Numba, _) | (Abi::C, ArgType::Array(_)) => true,
        (
            Abi::C,
            ArgType::Value(_)
            | ArgType::Tuple(_)
            | ArgType::None
            | ArgType::Struct(..)
            | ArgType::Enum(..)
            | ArgType::Record(_)
            | ArgType::Pointer(_)
            | ArgType::Optional(_)
            | ArgType::Class(_),
        ) => shape.alone,
    };
    if flat {
        return shape.parts.into_iter().map(Param::Part).collect();
    }
    if shape.size == 0 { Vec::new() } else { vec![Param::Struct(shape)] }
}

/// The type of a part as a parameter or a result. numba-cuda passes the bits of 16-bit floats.
pub(super) fn alone<'ctx>(types: &Types<'ctx>, ty: Type, abi: Abi) -> Result<BasicTypeEnum<'ctx>> {
    match (ty, abi) {
        (Type::Scalar(scalar), Abi::Numba) if scalar.is_half() => Ok(types.context.i16_type().into()),
        (Type::Scalar(_) | Type::Ptr(..), Abi::C | Abi::Numba) => types.memory(ty),
    }
}

/// Whether this file defines a layout for a leaf of an argument.
pub(super) fn known(leaf: ArgItem) -> bool {
    match leaf {
        ArgItem::Value(DType::Number(_)) | ArgItem::Array(_) | ArgItem::Record(_) | ArgItem::Pointer(_) => true,
        ArgItem::Value(DType::Compound(id)) => matches!(id.get(), Compound::Time(_)),
    }
}
