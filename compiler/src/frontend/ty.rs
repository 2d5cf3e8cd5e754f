//! The front end's types: the types of Python values during the lowering of a kernel.
//!
//! A type contains everything about a value that is known at compile time: the value of an integer literal, a dtype, a
//! module or a function itself. Only scalars, arrays and composed values have parts that exist at run time.

use std::fmt;

use weft_artifact::{
    ArgItem, ArgType, ArrayType, Chars, Complex, Compound, DType, Layout, Number, Scalar, SlotField, SlotType, Which,
};

use super::object::{MatrixObject, ObjectKind, Static};
use crate::{
    ir::{Space, Type},
    request::Typing,
    source::Span,
};

/// A front-end type.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Ty {
    /// A real number whose value is not known.
    Scalar(Scalar),
    /// A complex number.
    Complex(Complex),
    /// A Python int with a known value; computes as `int64` (`uint64` from 2^63 on).
    Int(i128),
    /// A Python bool with a known value.
    Bool(bool),
    /// An array. (There is no slice: a slice is only ever an index.)
    Array(ArrayTy),
    /// A value composed of other values.
    Object(ObjectKind, Vec<Ty>),
    /// A compile-time constant.
    Static(Static),
    /// Two types that cannot be joined at a control-flow join; an error once it is used.
    Conflict(Box<Conflict>),
    /// Not known yet: the type of a variable in a dry run if only paths that do not assign it have been visited. The
    /// least type: it adds nothing to a join.
    Bottom,
    /// The type of an expression whose error has been reported. The greatest type: it absorbs all others.
    Poison,
}

/// Two types that cannot be joined, and the origins of both.
#[derive(Clone, Debug)]
pub(super) struct Conflict {
    pub(super) first: Ty,
    pub(super) first_span: Span,
    pub(super) second: Ty,
    pub(super) second_span: Span,
    pub(super) kind: ConflictKind,
}

/// The reason why a variable with a conflict has no value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ConflictKind {
    /// The two types cannot be joined.
    Types,
    /// The call that created the array was executed again: the second span.
    Remade,
}

/// The allocating calls of a function that an array may come from: a bit set of their numbers in
/// [`Allocations`](super::state::Allocations).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Sites(pub(super) u64);

impl Sites {
    pub(super) const NONE: Self = Self(0);

    pub(super) fn union(self, other: Self) -> Self {
        Self(self.0 | other.0)
    }

    pub(super) fn meets(self, other: Self) -> bool {
        self.0 & other.0 != 0
    }
}

/// The type of an array value in a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArrayTy {
    pub(super) dtype: DType,
    pub(super) ndim: usize,
    pub(super) layout: Layout,
    pub(super) readonly: bool,
    pub(super) space: Space,
    /// Whether its elements may have any address, as fields of packed records do; otherwise they are aligned to
    /// [`DType::access_align`].
    pub(super) packed: bool,
    /// Whether it is in local memory of this function, which ends with the function, so that it cannot be returned.
    pub(super) own: bool,
    /// The calls of this function that may have created it.
    pub(super) sites: Sites,
}

/// Only messages use the spans of the two types: a loop whose types are equal has reached its fixpoint.
impl PartialEq for Conflict {
    fn eq(&self, other: &Self) -> bool {
        let Self { first, first_span: _, second, second_span: _, kind } = self;
        (first, second, kind) == (&other.first, &other.second, &other.kind)
    }
}

impl ArrayTy {
    /// The type of an argument.
    pub(super) fn of_arg(array: &ArrayType) -> Self {
        Self {
            dtype: array.dtype,
            ndim: array.ndim as usize,
            layout: array.layout,
            readonly: array.readonly,
            space: Space::Global,
            packed: false,
            own: false,
            sites: Sites::NONE,
        }
    }

    /// Its fields that exist at run time.
    pub(super) fn fields(self) -> impl Iterator<Item = SlotField> {
        ArgItem::Array(self.arg()).fields(Which::Kernel).into_iter().map(|field| field.field)
    }

    /// The type of its data pointer.
    pub(super) fn pointer(self) -> Type {
        Type::Ptr(self.dtype.access().0, self.space)
    }

    /// The type without its address space, as users see it.
    pub(super) fn arg(self) -> ArrayType {
        ArrayType { dtype: self.dtype, ndim: self.ndim as u8, layout: self.layout, readonly: self.readonly }
    }
}

impl Ty {
    /// The type of a kernel argument; an unsupported dtype has been reported.
    pub(super) fn of_arg(arg: &ArgType) -> Self {
        match arg {
            ArgType::Value(DType::Number(number)) => Self::of(*number),
            ArgType::Value(DType::Compound(id)) => match id.get() {
                Compound::Time(time) => Self::Object(ObjectKind::Time(*time), vec![Self::Scalar(Scalar::I64)]),
                Compound::Record(_)
                | Compound::Nested(_)
                | Compound::Vector(_)
                | Compound::Chars(_)
                | Compound::Float8(_) => Self::Poison,
            },
            ArgType::Array(array) => Self::Array(ArrayTy::of_arg(array)),
            ArgType::Tuple(items) => Self::Object(ObjectKind::Tuple, items.iter().map(Self::of_arg).collect()),
            ArgType::None => Self::Static(Static::None),
            ArgType::Class(dtype) => Self::Static(Static::DType(*dtype)),
            ArgType::Struct(class, items) => {
                Self::Object(ObjectKind::Struct(*class), items.iter().map(Self::of_arg).collect())
            }
            ArgType::Enum(class, value) => Self::Object(ObjectKind::Enum(*class), vec![Self::of_arg(value)]),
            ArgType::Record(dtype) => {
                let place = ArrayType { dtype: *dtype, ndim: 0, layout: Layout::C, readonly: false };
                let kind = if dtype.chars().is_some() { ObjectKind::Chars } else { ObjectKind::Record };
                Self::Object(kind, vec![Self::Array(ArrayTy::of_arg(&place))])
            }
            ArgType::Optional(of) => {
                Self::Object(ObjectKind::Optional, vec![Self::Scalar(Scalar::Bool), Self::of_arg(of)])
            }
            ArgType::Pointer(dtype) => {
                let kind = if dtype.is_some() { ObjectKind::Pointer } else { ObjectKind::VoidPointer };
                let dtype = dtype.unwrap_or(DType::U8);
                let place = ArrayType { dtype, ndim: 0, layout: Layout::C, readonly: false };
                Self::Object(kind, vec![Self::Array(ArrayTy::of_arg(&place))])
            }
        }
    }

    /// The type as an argument of a call; `None` if it cannot be an argument.
    pub(super) fn arg(&self) -> Option<ArgType> {
        match self {
            Self::Scalar(_) | Self::Int(_) | Self::Bool(_) | Self::Complex(_) => self.number().map(ArgType::from),
            Self::Array(array) => Some(ArgType::Array(array.arg())),
            Self::Object(kind, items) => match (kind, items.as_slice()) {
                (ObjectKind::Tuple | ObjectKind::Unrolled, items) => {
                    items.iter().map(Self::arg).collect::<Option<_>>().map(ArgType::Tuple)
                }
                (ObjectKind::Struct(class), items) => {
                    let items = items.iter().map(Self::arg).collect::<Option<_>>();
                    items.map(|items| ArgType::Struct(*class, items))
                }
                (ObjectKind::Weak, [item]) => item.arg(),
                (ObjectKind::Enum(class), [item]) => Some(ArgType::Enum(*class, Box::new(item.arg()?))),
                (ObjectKind::Record | ObjectKind::Chars, [Self::Array(place)]) => Some(ArgType::Record(place.dtype)),
                (ObjectKind::Pointer, [Self::Array(place)]) => Some(ArgType::Pointer(Some(place.dtype))),
                (ObjectKind::Optional, [_, of]) => of.arg()?.or_none(),
                (ObjectKind::VoidPointer, _) => Some(ArgType::Pointer(None)),
                (ObjectKind::Time(time), _) => DType::intern(Compound::Time(*time)).map(ArgType::Value),
                (
                    ObjectKind::Weak
                    | ObjectKind::Enum(_)
                    | ObjectKind::Optional
                    | ObjectKind::Record
                    | ObjectKind::Pointer
                    | ObjectKind::Chars
                    | ObjectKind::Float8(_)
                    | ObjectKind::Slice
                    | ObjectKind::Group(_)
                    | ObjectKind::Matrix(_)
                    | ObjectKind::Formatted(_)
                    | ObjectKind::Closure(_)
                    | ObjectKind::NdIndex
                    | ObjectKind::NdEnumerate
                    | ObjectKind::Flat
                    | ObjectKind::Swizzled(_)
                    | ObjectKind::Barrier
                    | ObjectKind::MapBox(_)
                    | ObjectKind::CTypes
                    | ObjectKind::Vector(_)
                    | ObjectKind::Range(_)
                    | ObjectKind::Enumerate
                    | ObjectKind::Zip
                    | ObjectKind::Reversed
                    | ObjectKind::Iterator(_)
                    | ObjectKind::Generator(_),
                    _,
                ) => None,
            },
            Self::Static(Static::None) => Some(ArgType::None),
            Self::Static(Static::DType(dtype)) => Some(ArgType::Class(*dtype)),
            Self::Static(_) | Self::Conflict(_) | Self::Bottom | Self::Poison => None,
        }
    }

    /// The type of a number.
    pub(super) fn of(number: Number) -> Self {
        match number {
            Number::Real(scalar) => Self::Scalar(scalar),
            Number::Complex(complex) => Self::Complex(complex),
        }
    }

    /// The number type that the value computes as; `None` if it is not a number.
    pub(super) fn number(&self) -> Option<Number> {
        match self {
            Self::Complex(complex) => Some(Number::Complex(*complex)),
            Self::Object(ObjectKind::Weak, items) => items.first().and_then(Self::number),
            Self::Scalar(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Object(..)
            | Self::Array(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison => self.scalar().map(Number::Real),
        }
    }

    /// The scalar type that the value computes as; `None` if it is not a real number.
    pub(super) fn scalar(&self) -> Option<Scalar> {
        match self {
            Self::Scalar(scalar) => Some(*scalar),
            Self::Int(value) => Some(int_scalar(*value)),
            Self::Bool(_) => Some(Scalar::Bool),
            Self::Object(kind, items) if kind.is_number() => items.first().and_then(Self::scalar),
            Self::Complex(_)
            | Self::Object(..)
            | Self::Array(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison => None,
        }
    }

    /// The type that the value has in a function that it is passed to.
    pub(super) fn lent(&self) -> Self {
        match self {
            Self::Array(array) => Self::Array(ArrayTy { own: false, sites: Sites::NONE, ..*array }),
            Self::Object(kind, items) => Self::Object(kind.clone(), items.iter().map(Self::lent).collect()),
            other @ (Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison) => other.clone(),
        }
    }

    /// Whether a part of it is in local memory of the current function.
    pub(super) fn is_own(&self) -> bool {
        match self {
            Self::Array(array) => array.own,
            Self::Object(_, items) => items.iter().any(Self::is_own),
            Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison => false,
        }
    }

    /// The calls that may have created an array in it.
    pub(super) fn sites(&self) -> Sites {
        match self {
            Self::Array(array) => array.sites,
            Self::Object(_, items) => items.iter().map(Self::sites).fold(Sites::NONE, Sites::union),
            Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison => Sites::NONE,
        }
    }

    /// The type of a result of a call, whose arrays may be those of its arguments.
    pub(super) fn borrowed(&self, own: bool, sites: Sites) -> Self {
        match self {
            Self::Array(array) => match array.space {
                Space::Local | Space::Generic => {
                    Self::Array(ArrayTy { own: array.own || own, sites: array.sites.union(sites), ..*array })
                }
                Space::Global | Space::Shared | Space::Constant => self.clone(),
            },
            Self::Object(kind, items) => {
                Self::Object(kind.clone(), items.iter().map(|item| item.borrowed(own, sites)).collect())
            }
            Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison => self.clone(),
        }
    }

    /// The capacity of a string; `None` for other types.
    pub(super) fn chars(&self) -> Option<Chars> {
        let room = |len: usize| u32::try_from(len.max(1)).ok();
        match self {
            Self::Static(Static::Str(text)) => Some(Chars::new(true, room(text.chars().count())?)),
            Self::Static(Static::Bytes(text)) => Some(Chars::new(false, room(text.len())?)),
            Self::Object(ObjectKind::Chars, items) => match items.as_slice() {
                [Self::Array(place)] => place.dtype.chars(),
                _ => None,
            },
            Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Array(_)
            | Self::Object(..)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison => None,
        }
    }

    /// The type without constant values: the type of a variable that changes, or of a device function's parameter.
    pub(super) fn widened(&self, typing: Typing) -> Self {
        let number = |scalar: Scalar| match typing {
            Typing::Numba => Self::Scalar(scalar),
            Typing::Numpy => Self::Object(ObjectKind::Weak, vec![Self::Scalar(scalar)]),
        };
        match self {
            Self::Int(value) => number(int_scalar(*value)),
            Self::Bool(_) => number(Scalar::Bool),
            Self::Object(kind, items) => {
                Self::Object(kind.clone(), items.iter().map(|item| item.widened(typing)).collect())
            }
            other @ (Self::Scalar(_)
            | Self::Complex(_)
            | Self::Array(_)
            | Self::Static(_)
            | Self::Conflict(_)
            | Self::Bottom
            | Self::Poison) => other.clone(),
        }
    }

    /// Whether there is no value: the expression has been reported, or its type is not known yet.
    pub(super) fn is_poison(&self) -> bool {
        match self {
            Self::Bottom | Self::Poison => true,
            Self::Object(_, items) => items.iter().any(Self::is_poison),
            Self::Scalar(_)
            | Self::Complex(_)
            | Self::Int(_)
            | Self::Bool(_)
            | Self::Array(_)
            | Self::Static(_)
            | Self::Conflict(_) => false,
        }
    }

    /// The parts that exist at run time, with the suffixes of their variables' names.
    pub(super) fn parts(&self) -> Vec<(String, Type)> {
        let mut out = Vec::new();
        self.collect_parts("", &mut out);
        out
    }

    fn collect_parts(&self, prefix: &str, out: &mut Vec<(String, Type)>) {
        let mut push = |leaf: ArgItem, pointer: Option<Type>| {
            for field in leaf.fields(Which::Kernel) {
                let ty = match field.ty {
                    SlotType::Scalar(scalar) => Some(Type::Scalar(scalar)),
                    SlotType::Pointer => pointer,
                    // No value of the front end has such a part.
                    SlotType::Bytes { .. } => None,
                };
                out.extend(ty.map(|ty| (format!("{prefix}{}", field.field.suffix()), ty)));
            }
        };
        match self {
            Self::Scalar(scalar) => push(ArgItem::Value((*scalar).into()), None),
            Self::Complex(complex) => push(ArgItem::Value(Number::Complex(*complex).into()), None),
            Self::Array(array) => push(ArgItem::Array(array.arg()), Some(array.pointer())),
            Self::Object(_, items) => {
                for (i, item) in items.iter().enumerate() {
                    item.collect_parts(&format!("{prefix}.{i}"), out);
                }
            }
            Self::Int(_) | Self::Bool(_) | Self::Static(_) | Self::Conflict(_) | Self::Bottom | Self::Poison => {}
        }
    }
}

/// The type of a Python int: `int64`, or `uint64` if it does not fit.
pub(super) fn int_scalar(value: i128) -> Scalar {
    if value > i128::from(i64::MAX) { Scalar::U64 } else { Scalar::I64 }
}

impl fmt::Display for Ty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Scalar(scalar) => scalar.fmt(f),
            Self::Complex(complex) => complex.fmt(f),
            Self::Int(value) => int_scalar(*value).fmt(f),
            Self::Bool(_) => Scalar::Bool.fmt(f),
            Self::Array(array) => array.arg().fmt(f),
            Self::Object(kind, items) => {
                match kind {
                    ObjectKind::Tuple | ObjectKind::Unrolled => f.write_str("Tuple(")?,
                    ObjectKind::Struct(class) => write!(f, "{class}(")?,
                    ObjectKind::Enum(class) => return class.fmt(f),
                    ObjectKind::Optional => {
                        return items.get(1).map_or(Ok(()), |inner| write!(f, "Optional({inner})"));
                    }
                    ObjectKind::Weak => return items.first().map_or(Ok(()), |number| number.fmt(f)),
                    ObjectKind::Vector(vector) => return vector.fmt(f),
                    ObjectKind::Time(time) => return time.fmt(f),
                    ObjectKind::Float8(format) => return format.fmt(f),
                    ObjectKind::Record | ObjectKind::Chars => {
                        return match items.as_slice() {
                            [Self::Array(place)] => place.dtype.fmt(f),
                            _ => Ok(()),
                        };
                    }
                    ObjectKind::Pointer => {
                        return match items.as_slice() {
                            [Self::Array(place)] => ArgType::Pointer(Some(place.dtype)).fmt(f),
                            _ => Ok(()),
                        };
                    }
                    ObjectKind::VoidPointer => return ArgType::Pointer(None).fmt(f),
                    ObjectKind::Closure(closure) => return write!(f, "function {}", closure.name()),
                    ObjectKind::Slice => return f.write_str("slice"),
                    ObjectKind::Group(group) => return f.write_str(group.name()),
                    ObjectKind::Matrix(MatrixObject::Tile(tile)) => return write!(f, "matrix tile {tile}"),
                    ObjectKind::Matrix(MatrixObject::Fragment(tile, part)) => {
                        return write!(f, "fragment {part:?} of {tile}");
                    }
                    ObjectKind::Matrix(MatrixObject::Shared(tile, part, _)) => {
                        return write!(f, "shared matrix {part:?} of {tile}");
                    }
                    ObjectKind::Matrix(MatrixObject::InFlight(tile, _)) => {
                        return write!(f, "{} of {tile}", super::in_flight::IN_FLIGHT);
                    }
                    ObjectKind::Formatted(_) => return f.write_str("formatted string"),
                    ObjectKind::Range(ty) => return write!(f, "range of {ty}"),
                    ObjectKind::Enumerate => f.write_str("enumerate(")?,
                    ObjectKind::NdIndex => f.write_str("ndindex(")?,
                    ObjectKind::NdEnumerate => f.write_str("ndenumerate(")?,
                    ObjectKind::Flat => f.write_str("flat(")?,
                    ObjectKind::Swizzled(swizzle) => write!(f, "swizzled({swizzle}, ")?,
                    ObjectKind::Barrier => {
                        let one = matches!(items.as_slice(), [Self::Array(word)] if word.ndim == 0);
                        return f.write_str(if one { "barrier" } else { "barriers" });
                    }
                    ObjectKind::MapBox(class) => return write!(f, "box of {class}"),
                    ObjectKind::CTypes => f.write_str("ctypes(")?,
                    ObjectKind::Zip => f.write_str("zip(")?,
                    ObjectKind::Reversed => f.write_str("reversed(")?,
                    ObjectKind::Iterator(_) => f.write_str("iterator(")?,
                    ObjectKind::Generator(_) => f.write_str("generator(")?,
                }
                for (i, item) in items.iter().enumerate() {
                    if i > 0 {
                        f.write_str(", ")?;
                    }
                    item.fmt(f)?;
                }
                f.write_str(")")
            }
            Self::Static(known) => known.fmt(f),
            Self::Conflict(conflict) => write!(f, "{} or {}", conflict.first, conflict.second),
            Self::Bottom | Self::Poison => f.write_str("unknown"),
        }
    }
}

/// A canonical path as a user writes it: `cuda.grid`, `math.sin`, `range`.
pub(super) fn shown_path(path: &str) -> &str {
    path.strip_prefix("builtins.").or_else(|| path.strip_prefix("weft.")).unwrap_or(path)
}
