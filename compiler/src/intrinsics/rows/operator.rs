//! Rows of `operator`: each is lowered like its symbol.

use super::{
    super::{Arg, Custom, Intrinsic, Lowering, Returns, Signature},
    tables::{arrays, numbers, row},
};

const ARITHMETIC: &[Signature] = numbers![I64 I64 -> I64, U64 U64 -> U64, F32 F32 -> F32, F64 F64 -> F64];
const COMPLEX_TOO: &[Signature] =
    numbers![I64 I64 -> I64, U64 U64 -> U64, F32 F32 -> F32, F64 F64 -> F64, C64 C64 -> C64, C128 C128 -> C128];
const DIVISION: &[Signature] = numbers![I64 I64 -> F64, F32 F32 -> F32, F64 F64 -> F64, C128 C128 -> C128];
const BITWISE: &[Signature] = numbers![BOOL BOOL -> BOOL, I64 I64 -> I64, U64 U64 -> U64];
const SHIFT: &[Signature] = numbers![I64 I64 -> I64, U64 U64 -> U64];
const COMPARISON: &[Signature] = numbers![I64 I64 -> BOOL, U64 U64 -> BOOL, F32 F32 -> BOOL, F64 F64 -> BOOL];
const SIGN: &[Signature] = numbers![I64 -> I64, F32 -> F32, F64 -> F64, C128 -> C128];
const ABS: &[Signature] = numbers![I64 -> I64, F32 -> F32, F64 -> F64, C64 -> F32, C128 -> F64];
const TRUTH: &[Signature] = numbers![BOOL -> BOOL, I64 -> BOOL, F64 -> BOOL];
const INVERT: &[Signature] = numbers![BOOL -> BOOL, I64 -> I64, U64 -> U64];
const GET: &[Signature] = arrays![[F32] I64 -> F32];
const SET: &[Signature] = &[Signature {
    args: &[Arg::Array(weft_artifact::Number::F32), Arg::Index, Arg::Scalar(weft_artifact::Scalar::F32)],
    returns: Returns::Nothing,
}];
const CONTAINS: &[Signature] = arrays![[I64] I64 -> BOOL, [F64] F64 -> BOOL];

/// A row that is lowered like an operator.
const fn op(path: &'static str, sigs: &'static [Signature], symbol: &'static str, doc: &'static str) -> Intrinsic {
    row(path, sigs, Lowering::Operator(symbol), doc)
}

pub(super) const OPERATOR: &[Intrinsic] = &[
    row("operator.abs", ABS, Lowering::Custom(Custom::Abs), "`abs(x)`."),
    op("operator.add", COMPLEX_TOO, "+", "`a + b`."),
    op("operator.and_", BITWISE, "&", "`a & b`."),
    op("operator.contains", CONTAINS, "in", "`b in a`."),
    op("operator.eq", COMPARISON, "==", "`a == b`."),
    op("operator.floordiv", ARITHMETIC, "//", "`a // b`."),
    op("operator.ge", COMPARISON, ">=", "`a >= b`."),
    op("operator.getitem", GET, "[]", "`a[b]`."),
    op("operator.gt", COMPARISON, ">", "`a > b`."),
    op("operator.iadd", COMPLEX_TOO, "+", "The new value of `a` after `a += b`: `a + b`."),
    op("operator.iand", BITWISE, "&", "The new value of `a` after `a &= b`: `a & b`."),
    op("operator.ifloordiv", ARITHMETIC, "//", "The new value of `a` after `a //= b`: `a // b`."),
    op("operator.ilshift", SHIFT, "<<", "The new value of `a` after `a <<= b`: `a << b`."),
    op("operator.imod", ARITHMETIC, "%", "The new value of `a` after `a %= b`: `a % b`."),
    op("operator.imul", COMPLEX_TOO, "*", "The new value of `a` after `a *= b`: `a * b`."),
    op("operator.index", numbers![I64 -> I64], "index", "Returns an integer unchanged."),
    op("operator.inv", INVERT, "~", "`~x`."),
    op("operator.invert", INVERT, "~", "`~x`."),
    op("operator.ior", BITWISE, "|", "The new value of `a` after `a |= b`: `a | b`."),
    op("operator.ipow", COMPLEX_TOO, "**", "The new value of `a` after `a **= b`: `a ** b`."),
    op("operator.irshift", SHIFT, ">>", "The new value of `a` after `a >>= b`: `a >> b`."),
    op("operator.is_", COMPARISON, "is", "`a is b`: for numbers, whether they are equal."),
    op("operator.is_not", COMPARISON, "is not", "`a is not b`: for numbers, whether they differ."),
    op("operator.isub", COMPLEX_TOO, "-", "The new value of `a` after `a -= b`: `a - b`."),
    op("operator.itruediv", DIVISION, "/", "The new value of `a` after `a /= b`: `a / b`."),
    op("operator.ixor", BITWISE, "^", "The new value of `a` after `a ^= b`: `a ^ b`."),
    op("operator.le", COMPARISON, "<=", "`a <= b`."),
    op("operator.lshift", SHIFT, "<<", "`a << b`."),
    op("operator.lt", COMPARISON, "<", "`a < b`."),
    op("operator.mod", ARITHMETIC, "%", "`a % b`."),
    op("operator.mul", COMPLEX_TOO, "*", "`a * b`."),
    op("operator.ne", COMPARISON, "!=", "`a != b`."),
    op("operator.neg", SIGN, "unary -", "`-x`."),
    op("operator.not_", TRUTH, "not", "`not x`."),
    op("operator.or_", BITWISE, "|", "`a | b`."),
    op("operator.pos", SIGN, "unary +", "`+x`."),
    op("operator.pow", COMPLEX_TOO, "**", "`a ** b`."),
    op("operator.rshift", SHIFT, ">>", "`a >> b`."),
    op("operator.setitem", SET, "[]=", "`a[b] = c`."),
    op("operator.sub", COMPLEX_TOO, "-", "`a - b`."),
    op("operator.truediv", DIVISION, "/", "`a / b`."),
    op("operator.truth", TRUTH, "bool", "`bool(x)`."),
    op("operator.xor", BITWISE, "^", "`a ^ b`."),
];
