//! Expressions: trees without effects.

use weft_artifact::Scalar;

use super::{ConstantId, ExprId, LocalArrayId, LocalId, SharedId, types::Type};
use crate::source::Span;

/// An expression with its type and span.
#[derive(Clone, Debug, PartialEq)]
pub struct Expr {
    /// Its kind.
    pub kind: ExprKind,
    /// Its type.
    pub ty: Type,
    /// The Python source that it comes from.
    pub span: Span,
}

/// The kind of an expression.
#[derive(Clone, Debug, PartialEq)]
pub enum ExprKind {
    /// A constant of the expression's type.
    Const(Const),
    /// The current value of a local.
    Local(LocalId),
    /// A special register; type `I32`.
    Special(SpecialRegister),
    /// `op a`; the result has the operand's type.
    Unary(UnaryOp, ExprId),
    /// `a op b`; both operands and the result have one type (shifts: the amount too).
    Binary(BinaryOp, ExprId, ExprId),
    /// `a op b` on one type of operands; `Bool` result. Floats: ordered, except `Ne`, which is unordered.
    Compare(CompareOp, ExprId, ExprId),
    /// `if c then a else b`; both are evaluated.
    Select(ExprId, ExprId, ExprId),
    /// The operand converted to the expression's type, which is a scalar (or a pointer: to `Generic`, or another
    /// element type of the same space).
    ///
    /// Integers are extended by the operand's signedness or truncated. A conversion to a float rounds once, to nearest
    /// even. A float is converted to an integer by truncation with saturation (NaN becomes 0), as by PTX `cvt.rzi`; for
    /// 8-bit and 16-bit integers it becomes a saturated 32-bit integer, which is truncated. The conversion to `Bool` is
    /// `!= 0`, the one from `Bool` is 0 or 1.
    Convert(ExprId),
    /// A pure function of one float type. All arguments and the result have this type, except where [`MathFn`]
    /// documents others.
    Math(MathFn, Vec<ExprId>),
    /// The element that a pointer points to; the type is the pointer's element type.
    Load(ExprId, Align),
    /// `pointer + index`, in elements of the pointer's element type times `scale`; index is `I64`. In bounds.
    ///
    /// `scale` is 1; 2 if an element is a (real, imaginary) pair; the size of a record if elements are its bytes.
    Offset {
        /// The base pointer.
        base: ExprId,
        /// Signed index, `I64`.
        index: ExprId,
        /// Elements per index step.
        scale: u32,
    },
    /// `pointer + bytes`; bytes is `I64`. In bounds.
    ByteOffset {
        /// The base pointer.
        base: ExprId,
        /// Signed number of bytes, `I64`.
        bytes: ExprId,
    },
    /// The first element of a block-shared array.
    SharedBase(SharedId),
    /// The first element of a constant array.
    ConstBase(ConstantId),
    /// The first byte of the block's dynamic shared memory.
    DynamicShared,
    /// The first element of a thread-local array.
    LocalBase(LocalArrayId),
    /// `index < 0 ? index + extent : index`: Python's negative index. Both `I64`, or both `I32` after a pass has
    /// narrowed them. A pass removes it if the index is provably not negative.
    Wrap {
        /// The index as written.
        index: ExprId,
        /// The extent of the dimension.
        extent: ExprId,
    },
}

/// The alignment of the address of a load or store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Align {
    /// It is a multiple of the element's own alignment.
    Natural,
    /// A multiple of this power of two in bytes: smaller in packed records, larger if several elements are stored
    /// together.
    Bytes(u32),
}

/// A constant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Const {
    /// Of type `Bool`.
    Bool(bool),
    /// Of an integer type; the value fits it.
    Int(i128),
    /// Of a float type; a type smaller than `F64` has exactly this value.
    Float(f64),
    /// Of a pointer type: the null pointer.
    Null,
    /// Of a pointer type: the address of memory that lives as long as the code.
    Address(u64),
}

/// Registers that the hardware sets. PTX ISA section 10, special registers. All `I32`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SpecialRegister {
    /// `threadIdx`; 0, 1, 2 is x, y, z.
    ThreadIdx(u8),
    /// `blockIdx`.
    BlockIdx(u8),
    /// `blockDim`.
    BlockDim(u8),
    /// `gridDim`.
    GridDim(u8),
    /// The lane number: linear thread number modulo 32.
    LaneId,
    /// 32.
    WarpSize,
    /// Bytes of dynamic shared memory of this launch.
    DynamicSharedBytes,
    /// A 64-bit index of the first thread of a part of a thread loop. Only the plan for the host uses it.
    OfRow(u8),
}

/// Unary operators.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum UnaryOp {
    /// Integers wrap; floats flip the sign bit.
    Neg,
    /// Bitwise complement of an integer; logical not of a `Bool`.
    Not,
    /// Absolute value; of signed integers wraps at the minimum.
    Abs,
}

/// Binary operators. Integer arithmetic wraps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum BinaryOp {
    /// Integers and floats.
    Add,
    /// Integers and floats.
    Sub,
    /// Integers and floats.
    Mul,
    /// Integers: [`Self::Add`] whose exact result is known to be a value of the type.
    AddExact,
    /// Integers: [`Self::Sub`] whose exact result is known to be a value of the type.
    SubExact,
    /// Integers: [`Self::Mul`] whose exact result is known to be a value of the type.
    MulExact,
    /// Floats: IEEE division.
    Div,
    /// Python's `//`. Integers: rounds to minus infinity; `x // 0` is 0 and the minimum `// -1` is 0. Floats: the
    /// floor of the exact quotient as CPython computes it; `x // 0.0` is `x / 0.0`.
    FloorDiv,
    /// Python's `%`. Integers: has the sign of the divisor; `x % 0` is 0. Floats: as CPython's, but `x % 0.0` is NaN.
    FloorMod,
    /// Integers: both operands are known to be `>= 0`: truncating division; `x / 0` is 0.
    DivNonneg,
    /// Integers: both operands are known to be `>= 0`: remainder; `x % 0` is 0.
    ModNonneg,
    /// Integer power by squaring; a negative exponent gives 0, except for bases 1 (1) and -1 (1 or -1); 0 to a
    /// negative exponent is the minimum of the type.
    Pow,
    /// Integers; the amount has the same type and is taken modulo the width.
    Shl,
    /// Integers: arithmetic for signed types, logical for unsigned; the amount is taken modulo the width.
    Shr,
    /// Integers and `Bool`.
    And,
    /// Integers and `Bool`.
    Or,
    /// Integers and `Bool`.
    Xor,
    /// Integers: the smaller. Floats: IEEE 754-2019 minimumNumber: if one operand is NaN, the other; -0 < +0.
    Min,
    /// Integers: the larger. Floats: IEEE 754-2019 maximumNumber: if one operand is NaN, the other; -0 < +0.
    Max,
}

/// Comparisons; integers by their signedness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the comparison of its name")]
pub enum CompareOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
}

/// Declares the math functions: variant, Python-like name, number of arguments.
macro_rules! math_fns {
    ($($variant:ident $name:literal $arity:literal),* $(,)?) => {
        /// Pure functions on one float type. `F16` and `BF16` are computed as `F32` and rounded, except `Fma`, which
        /// rounds once, and `Nextafter`, which is not defined for them. Results are floats of the same type, except
        /// `Isnan`, `Isinf` and `Isfinite` (`Bool`), `FrexpExponent` (`I32`) and `Bits`, the float's bits as an
        /// unsigned integer of its size; `OfBits` is its inverse. `CanonicalNan` returns its argument, but replaces
        /// every NaN by the positive non-signaling NaN with an empty payload. `Ldexp` takes an `I32` second argument.
        /// Functions of [`MathFn::rounded`] take `F32` and `F64`, those of [`MathFn::is_of_integers`] integers, and
        /// those of [`MathFn::is_fast`] `F32`. `ToE4M3` and `ToE5M2` round an `F32` to a float of 8 bits in a `U8`, to nearest
        /// even; larger numbers become the largest one. `OfE4M3` is the `F32` of such a number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        pub enum MathFn {
            $(#[doc = concat!("`", $name, "`")] $variant),*
        }

        impl MathFn {
            /// Every function.
            pub const ALL: &'static [Self] = &[$(Self::$variant),*];

            /// Its name in the text form.
            pub const fn name(self) -> &'static str {
                match self { $(Self::$variant => $name),* }
            }

            /// The number of its arguments.
            pub const fn arity(self) -> usize {
                match self { $(Self::$variant => $arity),* }
            }
        }
    };
}

math_fns! {
    Acos "acos" 1, Acosh "acosh" 1, Asin "asin" 1, Asinh "asinh" 1, Atan "atan" 1, Atan2 "atan2" 2, Atanh "atanh" 1,
    Bits "bits" 1, CanonicalNan "canonical_nan" 1, Cbrt "cbrt" 1, Ceil "ceil" 1, Copysign "copysign" 2, Cos "cos" 1, Cosh "cosh" 1, Erf "erf" 1, Erfc "erfc" 1, Exp "exp" 1,
    Exp2 "exp2" 1, Expm1 "expm1" 1, Floor "floor" 1, Fma "fma" 3, Fmod "fmod" 2,
    FrexpMantissa "frexp.mantissa" 1, FrexpExponent "frexp.exponent" 1, Gamma "gamma" 1,
    Hypot "hypot" 2, Isfinite "isfinite" 1, Isinf "isinf" 1, Isnan "isnan" 1, Ldexp "ldexp" 2, Lgamma "lgamma" 1,
    Log "log" 1, Log10 "log10" 1, Log1p "log1p" 1, Log2 "log2" 1, Nextafter "nextafter" 2, OfBits "of_bits" 1, Pow "pow" 2,
    Remainder "remainder" 2, RoundEven "roundeven" 1, Sin "sin" 1, Sinh "sinh" 1, Sqrt "sqrt" 1, Tan "tan" 1, Tanh "tanh" 1,
    Trunc "trunc" 1,
    // Integers.
    BytePerm "byte_perm" 3, FunnelLeft "funnel_left" 3, FunnelRight "funnel_right" 3, LeadingZeros "leading_zeros" 1,
    MulHigh "mul_high" 2, Popcount "popcount" 1, ReverseBits "reverse_bits" 1, TrailingZeros "trailing_zeros" 1,
    // Explicit rounding modes: to nearest even (and never contracted), toward zero, down, up.
    AddRn "add.rn" 2, AddRz "add.rz" 2, AddRd "add.rd" 2, AddRu "add.ru" 2,
    MulRn "mul.rn" 2, MulRz "mul.rz" 2, MulRd "mul.rd" 2, MulRu "mul.ru" 2,
    DivRn "div.rn" 2, DivRz "div.rz" 2, DivRd "div.rd" 2, DivRu "div.ru" 2,
    SqrtRn "sqrt.rn" 1, SqrtRz "sqrt.rz" 1, SqrtRd "sqrt.rd" 1, SqrtRu "sqrt.ru" 1,
    FmaRn "fma.rn" 3, FmaRz "fma.rz" 3, FmaRd "fma.rd" 3, FmaRu "fma.ru" 3,
    ConvertRz "convert.rz" 1, ConvertRd "convert.rd" 1, ConvertRu "convert.ru" 1,
    // Floats of 8 bits.
    OfE4M3 "of_e4m3" 1, ToE4M3 "to_e4m3" 1, ToE5M2 "to_e5m2" 1,
    // The hardware's approximations for `F32`.
    FastCos "fast.cos" 1, FastDiv "fast.div" 2, FastExp2 "fast.exp2" 1, FastLog2 "fast.log2" 1, FastSin "fast.sin" 1,
    // A quotient of `F32` with an error of at most two units in the last place.
    FullDiv "full.div" 2,
}

/// Operations with an explicit rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is the operation of its name")]
pub enum RoundedOp {
    Add,
    Mul,
    Div,
    Sqrt,
    Fma,
    /// Converts `F64` to `F32`, or an integer of 32 or 64 bits to either.
    Convert,
}

/// A rounding mode.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Rounding {
    /// To nearest, ties to even.
    Nearest,
    /// Toward zero.
    Zero,
    /// Toward minus infinity.
    Down,
    /// Toward infinity.
    Up,
}

impl MathFn {
    /// The operation and rounding mode of a function that has one.
    #[expect(clippy::wildcard_enum_match_arm, reason = "the others round to nearest")]
    pub const fn rounded(self) -> Option<(RoundedOp, Rounding)> {
        Some(match self {
            Self::AddRn => (RoundedOp::Add, Rounding::Nearest),
            Self::AddRz => (RoundedOp::Add, Rounding::Zero),
            Self::AddRd => (RoundedOp::Add, Rounding::Down),
            Self::AddRu => (RoundedOp::Add, Rounding::Up),
            Self::MulRn => (RoundedOp::Mul, Rounding::Nearest),
            Self::MulRz => (RoundedOp::Mul, Rounding::Zero),
            Self::MulRd => (RoundedOp::Mul, Rounding::Down),
            Self::MulRu => (RoundedOp::Mul, Rounding::Up),
            Self::DivRn => (RoundedOp::Div, Rounding::Nearest),
            Self::DivRz => (RoundedOp::Div, Rounding::Zero),
            Self::DivRd => (RoundedOp::Div, Rounding::Down),
            Self::DivRu => (RoundedOp::Div, Rounding::Up),
            Self::SqrtRn => (RoundedOp::Sqrt, Rounding::Nearest),
            Self::SqrtRz => (RoundedOp::Sqrt, Rounding::Zero),
            Self::SqrtRd => (RoundedOp::Sqrt, Rounding::Down),
            Self::SqrtRu => (RoundedOp::Sqrt, Rounding::Up),
            Self::FmaRn => (RoundedOp::Fma, Rounding::Nearest),
            Self::FmaRz => (RoundedOp::Fma, Rounding::Zero),
            Self::FmaRd => (RoundedOp::Fma, Rounding::Down),
            Self::FmaRu => (RoundedOp::Fma, Rounding::Up),
            Self::ConvertRz => (RoundedOp::Convert, Rounding::Zero),
            Self::ConvertRd => (RoundedOp::Convert, Rounding::Down),
            Self::ConvertRu => (RoundedOp::Convert, Rounding::Up),
            _ => return None,
        })
    }

    /// Whether it is a function of integers: all arguments and the result have one type, 32 bits and unsigned for
    /// `BytePerm`.
    pub const fn is_of_integers(self) -> bool {
        matches!(
            self,
            Self::BytePerm
                | Self::FunnelLeft
                | Self::FunnelRight
                | Self::LeadingZeros
                | Self::MulHigh
                | Self::Popcount
                | Self::ReverseBits
                | Self::TrailingZeros
        )
    }

    /// Whether it is a function of floats of any type, like those in `math`.
    pub const fn is_usual(self) -> bool {
        self.rounded().is_none() && !self.is_of_integers() && !self.is_of_bytes() && !self.is_fast()
    }

    /// Whether it converts to or from a float of 8 bits.
    pub const fn is_of_bytes(self) -> bool {
        matches!(self, Self::OfE4M3 | Self::ToE4M3 | Self::ToE5M2)
    }

    /// Whether it is a hardware approximation. Targets without it compute the function itself.
    pub const fn is_fast(self) -> bool {
        matches!(self, Self::FastCos | Self::FastDiv | Self::FastExp2 | Self::FastLog2 | Self::FastSin | Self::FullDiv)
    }
}

impl SpecialRegister {
    /// Its name in the text form: CUDA's.
    pub fn name(self) -> String {
        let axis = |i: u8| ["x", "y", "z"].get(i as usize).copied().unwrap_or("?");
        match self {
            Self::ThreadIdx(i) => format!("threadIdx.{}", axis(i)),
            Self::BlockIdx(i) => format!("blockIdx.{}", axis(i)),
            Self::BlockDim(i) => format!("blockDim.{}", axis(i)),
            Self::GridDim(i) => format!("gridDim.{}", axis(i)),
            Self::LaneId => "laneid".to_owned(),
            Self::WarpSize => "warpsize".to_owned(),
            Self::DynamicSharedBytes => "dynamic_shared_bytes".to_owned(),
            Self::OfRow(i) => format!("of_row.{i}"),
        }
    }
}

impl Expr {
    /// A constant integer of a type.
    pub fn int(scalar: Scalar, value: i128, span: Span) -> Self {
        Self { kind: ExprKind::Const(Const::Int(value)), ty: Type::Scalar(scalar), span }
    }
}
