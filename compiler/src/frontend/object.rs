//! Composed values, and values that exist only at compile time.
//!
//! An object is a kind and items. Operations on the parts of a value (evaluating, converting, joining types, passing to
//! a function) apply to the items, whatever the kind. Only operations with a meaning of their own, such as subscripts
//! and loops, distinguish kinds.

use std::{fmt, sync::Arc};

use weft_artifact::{
    ClassId, ClassKind, DType, FaultArg, Float8, MatrixPart, MatrixTile, Scalar, SharedMatrix, Time, Vector,
};

use super::{
    print::spec::FormatPart,
    swizzle::Swizzle,
    ty::shown_path,
    value::{LibraryName, Value},
};
use crate::{
    intrinsics,
    request::{Captured, FunctionDef, Overloaded},
    syntax::ast::{ComprehensionLoop, Expr},
};

/// The kind of a composed value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum ObjectKind {
    /// A tuple of its items.
    Tuple,
    /// A named tuple or an instance of a dataclass: the values of its fields.
    Struct(ClassId),
    /// An optional: a flag that it is not `None`, and the value.
    Optional,
    /// A member of an enum: its value.
    Enum(ClassId),
    /// A weak number that is known only at run time (NumPy's typing rules): the number, of the default type
    /// (`weak.rs`).
    Weak,
    /// A record by reference: the zero-dimensional array that stores it.
    Record,
    /// A C pointer: the zero-dimensional array with the element that it points to.
    Pointer,
    /// C's `void *`: the zero-dimensional array with the byte that it points to.
    VoidPointer,
    /// A vector: its lanes.
    Vector(Vector),
    /// A `datetime64` or `timedelta64`: the count of its units.
    Time(Time),
    /// A float of 8 bits: its bits.
    Float8(Float8),
    /// A string in an array, by reference like a record.
    Chars,
    /// A formatted string for `print`: its values.
    Formatted(Arc<[FormatPart]>),
    /// A `range` of values of this type: start, stop, step.
    Range(Scalar),
    /// A `lambda` or an inner function: the values of its defaults, followed by the captured variables if it has
    /// escaped the function that defines it.
    Closure(Arc<Closure>),
    /// A `slice`: lower bound, upper bound and step, each of which may be `None`.
    Slice,
    /// `enumerate`: the iterable, and the first number.
    Enumerate,
    /// `np.ndindex`: the extents.
    NdIndex,
    /// `np.ndenumerate`: the array.
    NdEnumerate,
    /// `a.flat`: the array, iterated over in C order.
    Flat,
    /// A swizzled shared array: the array in its memory's order.
    Swizzled(Swizzle),
    /// A barrier in shared memory: the zero-dimensional array of its word. Several: the one-dimensional array.
    Barrier,
    /// A box of a tensor map of this class: the map's words, and the box's first indices.
    MapBox(ClassId),
    /// `a.ctypes`: the array.
    CTypes,
    /// `zip`: the iterables.
    Zip,
    /// `reversed`: the iterable.
    Reversed,
    /// `iter`: the iterable. A local of the `iter` call holds the position.
    Iterator(Site),
    /// A generator: its first iterable.
    Generator(Arc<Generator>),
    /// A group of threads: its run-time values, such as the mask of lanes.
    Group(Group),
    /// A matrix tile, or the words of a fragment.
    Matrix(MatrixObject),
    /// `literal_unroll`: a tuple's items; a loop's body is compiled for each of them.
    Unrolled,
}

/// A `lambda` or an inner function.
#[derive(Debug)]
pub(super) struct Closure {
    /// The function; its captured variables are parameters after its own ones.
    pub(super) def: Arc<FunctionDef>,
    /// The variables of the enclosing function that it reads.
    pub(super) captures: Vec<String>,
    /// The captured variables that it assigns.
    pub(super) writes: Vec<String>,
    /// The parameters with defaults, which are evaluated at the definition.
    pub(super) defaults: Vec<String>,
    /// The enclosing function.
    pub(super) outer: Arc<FunctionDef>,
    /// The nesting depth of generator scopes.
    pub(super) depth: usize,
}

impl PartialEq for Closure {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.def, &other.def)
    }
}

impl Closure {
    /// Whether `def` is the code of this closure.
    pub(super) fn is_of(&self, def: &Arc<FunctionDef>) -> bool {
        Arc::ptr_eq(&self.def, def)
    }

    /// Its name.
    pub(super) fn name(&self) -> &str {
        &self.def.ast.name
    }
}

/// A generator expression.
#[derive(Debug)]
pub(super) struct Generator {
    pub(super) element: Expr,
    pub(super) loops: Vec<ComprehensionLoop>,
    /// Its site.
    pub(super) site: Site,
    /// The nesting depth of generators around it.
    pub(super) depth: usize,
}

impl PartialEq for Generator {
    fn eq(&self, other: &Self) -> bool {
        self.site == other.site
    }
}

impl Generator {
    /// Whether its position is a single number.
    pub(super) fn is_plain(&self) -> bool {
        self.loops.len() == 1
    }
}

/// Whether a value is a generator, or `enumerate` or `zip` of one.
pub(super) fn is_generated(value: &Value) -> bool {
    match value {
        Value::Object(ObjectKind::Generator(_), _) => true,
        Value::Object(ObjectKind::Enumerate | ObjectKind::Zip, items) => items.iter().any(is_generated),
        Value::Scalar(..)
        | Value::Complex(..)
        | Value::Int(_)
        | Value::Bool(_)
        | Value::Array(_)
        | Value::Object(..)
        | Value::Static(_)
        | Value::Poison => false,
    }
}

/// The site of a generator, or of the first one in a value.
pub(super) fn site_of(value: &Value) -> Option<&Site> {
    match value {
        Value::Object(ObjectKind::Generator(of), _) => Some(&of.site),
        Value::Object(ObjectKind::Enumerate | ObjectKind::Zip, items) => items.iter().find_map(site_of),
        Value::Scalar(..)
        | Value::Complex(..)
        | Value::Int(_)
        | Value::Bool(_)
        | Value::Array(_)
        | Value::Object(..)
        | Value::Static(_)
        | Value::Poison => None,
    }
}

/// A matrix tile of a warp or a warpgroup, or an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MatrixObject {
    /// A tile.
    Tile(MatrixTile),
    /// A fragment of A or B: a lane's part of it, in registers.
    Fragment(MatrixTile, MatrixPart),
    /// A or B in swizzled shared memory, for a tile of a warpgroup. The items are an array whose data are the matrix's
    /// first row, and the matrix's first column in that row.
    Shared(MatrixTile, MatrixPart, SharedMatrix),
    /// The accumulators of a product of a warpgroup in flight. The items are the accumulators, after the words of A if the
    /// product reads them from registers, which the flag says.
    InFlight(MatrixTile, bool),
}

/// A set of threads: CUDA's cooperative groups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Group {
    /// All threads of the grid.
    Grid,
    /// All threads of the block.
    Block,
    /// A tile of a warp with this number of lanes.
    Tile(u32),
    /// The lanes of a mask, which is its item.
    Coalesced,
}

impl Group {
    /// The name of its class in CUDA.
    pub(super) const fn name(self) -> &'static str {
        match self {
            Self::Grid => "GridGroup",
            Self::Block => "ThreadBlock",
            Self::Tile(_) => "ThreadBlockTile",
            Self::Coalesced => "CoalescedGroup",
        }
    }

    /// The prefix of the prelude's functions that implement its methods.
    pub(super) const fn prefix(self) -> &'static str {
        match self {
            Self::Grid => "grid",
            Self::Block => "block",
            Self::Tile(_) => "tile",
            Self::Coalesced => "coalesced",
        }
    }
}

impl ObjectKind {
    /// Subscripts, unpacking and comparisons treat it as a tuple.
    pub(super) fn is_tuple(&self) -> bool {
        match self {
            Self::Tuple | Self::Unrolled => true,
            Self::Struct(class) => class.get().kind == ClassKind::NamedTuple,
            Self::Enum(_)
            | Self::Weak
            | Self::Optional
            | Self::Record
            | Self::Pointer
            | Self::VoidPointer
            | Self::Chars
            | Self::Time(_)
            | Self::Float8(_)
            | Self::Vector(_)
            | Self::Slice
            | Self::Group(_)
            | Self::Matrix(_)
            | Self::Formatted(_)
            | Self::Closure(_)
            | Self::Range(_)
            | Self::Enumerate
            | Self::NdIndex
            | Self::NdEnumerate
            | Self::Flat
            | Self::Swizzled(_)
            | Self::Barrier
            | Self::MapBox(_)
            | Self::CTypes
            | Self::Zip
            | Self::Reversed
            | Self::Iterator(_)
            | Self::Generator(_) => false,
        }
    }
}

impl ObjectKind {
    /// Whether arithmetic uses its single item.
    pub(super) fn is_number(&self) -> bool {
        *self == Self::Weak || matches!(self, Self::Enum(class) if class.get().kind == ClassKind::IntEnum)
    }
}

/// A call in a function: its span, and the current items of the enclosing unrolled loops.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Site {
    pub(super) start: u32,
    pub(super) items: Vec<usize>,
}

/// A compile-time value, which has no parts at run time.
#[derive(Clone, Debug)]
pub(super) enum Static {
    /// `None`.
    None,
    /// A string.
    Str(String),
    /// A type used as a dtype or a cast.
    DType(DType),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A class, with the values of an enum's members or the defaults of fields.
    Class(ClassId, Arc<[Option<Captured>]>),
    /// Something of weft's, `math`'s, `numpy`'s or Python's own.
    Known(LibraryName),
    /// A user's module or object.
    Module(String, Arc<Captured>),
    /// A jitted function.
    Function(Arc<FunctionDef>),
    /// An exception class, or an exception.
    Exception(Exception),
    /// An overloaded function, whose implementation the caller of the compiler chooses.
    Overloaded(Overloaded),
}

impl PartialEq for Static {
    fn eq(&self, other: &Self) -> bool {
        match (self, other) {
            (Self::None, Self::None) => true,
            (Self::Str(a), Self::Str(b)) => a == b,
            (Self::DType(a), Self::DType(b)) => a == b,
            (Self::Bytes(a), Self::Bytes(b)) => a == b,
            (Self::Class(a, _), Self::Class(b, _)) => a == b,
            (Self::Known(a), Self::Known(b)) => a == b,
            (Self::Module(a, x), Self::Module(b, y)) => a == b && (Arc::ptr_eq(x, y) || x == y),
            (Self::Function(a), Self::Function(b)) => Arc::ptr_eq(a, b),
            (Self::Exception(a), Self::Exception(b)) => a == b,
            (Self::Overloaded(a), Self::Overloaded(b)) => a == b,
            (
                Self::None
                | Self::Str(_)
                | Self::Bytes(_)
                | Self::DType(_)
                | Self::Class(..)
                | Self::Known(_)
                | Self::Module(..)
                | Self::Function(_)
                | Self::Exception(_)
                | Self::Overloaded(_),
                _,
            ) => false,
        }
    }
}

/// An exception class, or an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exception {
    /// See [`weft_artifact::Fault`].
    pub(super) class: String,
    /// Its arguments; `None` for the class itself.
    pub(super) args: Option<Vec<FaultArg>>,
}

impl Exception {
    /// A built-in exception with a message.
    pub(super) fn builtin(name: &str, message: &str) -> Self {
        Self { class: format!("builtins.{name}"), args: Some(vec![FaultArg::Str(message.to_owned())]) }
    }

    /// The exception or exception class of a value.
    pub(super) fn of(value: &Value) -> Option<Self> {
        match value {
            Value::Static(Static::Exception(exception)) => Some(exception.clone()),
            Value::Static(Static::Known(LibraryName::Path(path))) => {
                let name = path.strip_prefix("builtins.")?;
                intrinsics::is_exception(name).then(|| Self { class: path.clone(), args: None })
            }
            Value::Static(_)
            | Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Poison => None,
        }
    }
}

impl fmt::Display for Static {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::None => f.write_str("none"),
            Self::Str(_) => f.write_str("str"),
            Self::Bytes(_) => f.write_str("bytes"),
            Self::DType(dtype) => write!(f, "type {dtype}"),
            Self::Class(class, _) => write!(f, "class {class}"),
            Self::Known(known) => f.write_str(shown_path(known.path())),
            Self::Module(name, _) => write!(f, "module {name}"),
            Self::Function(def) => write!(f, "function {}", def.ast.name),
            Self::Exception(exception) => write!(f, "exception {}", shown_path(&exception.class)),
            Self::Overloaded(function) => write!(f, "function {}", function.name),
        }
    }
}
