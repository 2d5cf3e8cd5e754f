//! Rows of Python's built-in functions and types.

use weft_artifact::{
    Complex::{C64, C128},
    Number,
    Scalar::{Bool, F32, F64, I32, I64, U32, U64},
};

use super::{
    super::{Arg, Custom, Intrinsic, Lowering, Ptx, Returns, Signature},
    tables::{arrays, pairs, row},
};
use crate::ir::Op;

const PRINT: &[Signature] = &[
    Signature { args: &[Arg::Scalar(Bool)], returns: Returns::Nothing },
    Signature { args: &[Arg::Scalar(I32), Arg::Scalar(U32)], returns: Returns::Nothing },
    Signature { args: &[Arg::Scalar(I64), Arg::Scalar(U64)], returns: Returns::Nothing },
    Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F64)], returns: Returns::Nothing },
    Signature { args: &[Arg::Complex(C64), Arg::Complex(C128)], returns: Returns::Nothing },
    Signature { args: &[Arg::Text("text"), Arg::Scalar(I32)], returns: Returns::Nothing },
];
const DIVMOD: &[Signature] = pairs![I64 I64 -> I64, U64 U64 -> U64, F32 F32 -> F32, F64 F64 -> F64];
const ARRAY_TEST: &[Signature] = arrays![[BOOL] -> BOOL, [I64] -> BOOL, [F32] -> BOOL, [C128] -> BOOL];
const SUM: &[Signature] = arrays![[I32] -> I64, [I64] -> I64, [U64] -> I64, [F32] -> F64, [F64] -> F64, [C128] -> C128];

pub(super) const BUILTINS: &[Intrinsic] = &[
    Intrinsic {
        path: "builtins.breakpoint",
        signatures: &[Signature { args: &[], returns: Returns::Nothing }],
        lowering: Lowering::Op(Op::Breakpoint),
        ptx: Ptx::Operation,
        doc: "Stops Python's debugger with `WEFT_DEVICE=python`, and cuda-gdb in PTX compiled with `debug=True`. Any \
            other compilation is an error. PTX ISA, `brkpt`.",
    },
    row(
        "builtins.all",
        ARRAY_TEST,
        Lowering::Custom(Custom::All),
        "Whether all items of a tuple or a one-dimensional array are true.",
    ),
    row(
        "builtins.any",
        ARRAY_TEST,
        Lowering::Custom(Custom::Any),
        "Whether any item of a tuple or a one-dimensional array is true.",
    ),
    row(
        "builtins.callable",
        &[],
        Lowering::Custom(Custom::Callable),
        "Whether a value can be called, as a compile-time constant.",
    ),
    row("builtins.divmod", DIVMOD, Lowering::Custom(Custom::Divmod), "`(a // b, a % b)`."),
    row(
        "builtins.getattr",
        &[],
        Lowering::Custom(Custom::GetAttr),
        "`getattr(x, \"name\")`: `x.name`, or the third argument if there is no such attribute.",
    ),
    row(
        "builtins.hasattr",
        &[],
        Lowering::Custom(Custom::HasAttr),
        "`hasattr(x, \"name\")`: whether a value has an attribute, as a compile-time constant.",
    ),
    row(
        "builtins.isinstance",
        &[],
        Lowering::Custom(Custom::IsInstance),
        "Whether a value has a type, or one of a tuple of types, as a compile-time constant: a branch that is not \
         taken is not typed. `int`, `float` and `complex` include NumPy's types of that kind.",
    ),
    row(
        "builtins.ord",
        &[],
        Lowering::Custom(Custom::Ord),
        "The code point of a compile-time string of one character.",
    ),
    row(
        "builtins.sum",
        SUM,
        Lowering::Custom(Custom::Sum),
        "The sum of a tuple or a one-dimensional array, plus `start=0`.",
    ),
    row(
        "builtins.tuple",
        &[],
        Lowering::Custom(Custom::Tuple),
        "Makes a tuple of the items of a tuple, a range, an array or another iterable whose length is a compile-time \
         constant.",
    ),
    row(
        "builtins.tuple.index",
        &[],
        Lowering::Custom(Custom::Index),
        "The method `t.index(x)` of a tuple or range: the index of the first item equal to x, or -1 if there is none; \
         `t.index(x, start, stop)` searches `t[start:stop]`.",
    ),
    row(
        "builtins.tuple.count",
        &[],
        Lowering::Custom(Custom::Count),
        "The method `t.count(x)` of a tuple or range: the number of items equal to x.",
    ),
    row("builtins.type", &[], Lowering::Custom(Custom::Type), "The type of a number; calling it converts a value."),
    Intrinsic {
        path: "builtins.abs",
        signatures: &[
            Signature { args: &[Arg::Scalar(I64)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(U64)], returns: Returns::Scalar(U64) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
            Signature { args: &[Arg::Complex(C64)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Complex(C128)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Abs),
        ptx: Ptx::Computed,
        doc: "Absolute value; the modulus of a complex number.",
    },
    Intrinsic {
        path: "builtins.min",
        signatures: &[
            Signature { args: &[Arg::Scalar(I32), Arg::Scalar(I32)], returns: Returns::Scalar(I32) },
            Signature { args: &[Arg::Scalar(U32), Arg::Scalar(U32)], returns: Returns::Scalar(U32) },
            Signature { args: &[Arg::Scalar(I64), Arg::Scalar(I64)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(U64), Arg::Scalar(U64)], returns: Returns::Scalar(U64) },
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Min),
        ptx: Ptx::Computed,
        doc: "The smallest of two or more numbers, or of a tuple; arguments are unified to one type.",
    },
    Intrinsic {
        path: "builtins.max",
        signatures: &[
            Signature { args: &[Arg::Scalar(I32), Arg::Scalar(I32)], returns: Returns::Scalar(I32) },
            Signature { args: &[Arg::Scalar(U32), Arg::Scalar(U32)], returns: Returns::Scalar(U32) },
            Signature { args: &[Arg::Scalar(I64), Arg::Scalar(I64)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(U64), Arg::Scalar(U64)], returns: Returns::Scalar(U64) },
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Max),
        ptx: Ptx::Computed,
        doc: "The largest of two or more numbers, or of a tuple; arguments are unified to one type.",
    },
    Intrinsic {
        path: "builtins.len",
        signatures: &[Signature { args: &[Arg::Array(Number::F32)], returns: Returns::Scalar(I64) }],
        lowering: Lowering::Custom(Custom::Len),
        ptx: Ptx::Computed,
        doc: "The size of an array's first dimension, or the number of items of a tuple.",
    },
    Intrinsic {
        path: "builtins.round",
        signatures: &[
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(I64)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(I64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Round),
        ptx: Ptx::Computed,
        doc: "Rounds half to even: to an `int64`, or to the number of decimals in a second argument.",
    },
    Intrinsic {
        path: "builtins.print",
        signatures: PRINT,
        lowering: Lowering::Custom(Custom::Print),
        ptx: Ptx::Has("vprintf"),
        doc: "Prints numbers, strings, `None`, tuples, named tuples, dataclasses, records and formatted strings. \
            `sep` and `end` must be compile-time constants. Floats have six decimals.",
    },
    row(
        "builtins.str.format",
        &[],
        Lowering::Custom(Custom::Format),
        "The method `text.format(x, name=y)` of a compile-time string: a string for `print`, like `f\"{x}\"` and \
         `text % x`.",
    ),
    Intrinsic {
        path: "builtins.pow",
        signatures: &[
            Signature { args: &[Arg::Scalar(I64), Arg::Scalar(I64)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(U64), Arg::Scalar(U64)], returns: Returns::Scalar(U64) },
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Pow),
        ptx: Ptx::Computed,
        doc: "`x ** y`.",
    },
    Intrinsic {
        path: "builtins.int",
        signatures: &[
            Signature { args: &[Arg::Scalar(Bool)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(I64)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(I64) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(I64) },
        ],
        lowering: Lowering::Custom(Custom::Int),
        ptx: Ptx::Computed,
        doc: "Converts to an integer: floats are truncated to `int64`, integers keep their type.",
    },
    Intrinsic {
        path: "builtins.float",
        signatures: &[
            Signature { args: &[Arg::Scalar(I64)], returns: Returns::Scalar(F64) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(F32) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(F64) },
        ],
        lowering: Lowering::Custom(Custom::Float),
        ptx: Ptx::Computed,
        doc: "Converts to a float: integers become `float64`, floats keep their type.",
    },
    Intrinsic {
        path: "builtins.bool",
        signatures: &[
            Signature { args: &[Arg::Scalar(Bool)], returns: Returns::Scalar(Bool) },
            Signature { args: &[Arg::Scalar(I64)], returns: Returns::Scalar(Bool) },
            Signature { args: &[Arg::Scalar(U64)], returns: Returns::Scalar(Bool) },
            Signature { args: &[Arg::Scalar(F32)], returns: Returns::Scalar(Bool) },
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Scalar(Bool) },
        ],
        lowering: Lowering::Custom(Custom::Bool),
        ptx: Ptx::Computed,
        doc: "`x != 0`.",
    },
    Intrinsic {
        path: "builtins.complex",
        signatures: &[
            Signature { args: &[Arg::Scalar(F64)], returns: Returns::Complex(C128) },
            Signature { args: &[Arg::Scalar(F64), Arg::Scalar(F64)], returns: Returns::Complex(C128) },
            Signature { args: &[Arg::Scalar(F32), Arg::Scalar(F32)], returns: Returns::Complex(C64) },
        ],
        lowering: Lowering::Custom(Custom::Complex),
        ptx: Ptx::Computed,
        doc: "A complex number from its parts: `complex64` if all are `float32`, else `complex128`.",
    },
    Intrinsic {
        path: "builtins.range",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Range),
        ptx: Ptx::Computed,
        doc: "An iterable of integers: `range(stop)`, `range(start, stop)`, `range(start, stop, step)`.",
    },
    Intrinsic {
        path: "builtins.enumerate",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Enumerate),
        ptx: Ptx::Computed,
        doc: "An iterable of pairs of a number and an item: `enumerate(iterable, start=0)`.",
    },
    Intrinsic {
        path: "builtins.zip",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Zip),
        ptx: Ptx::Computed,
        doc: "An iterable of tuples of items, until the shortest iterable ends: `zip(a, b, …)`.",
    },
    Intrinsic {
        path: "builtins.iter",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Iter),
        ptx: Ptx::Computed,
        doc: "An iterator for `next` and `for`, which can be assigned to one variable: `iter(iterable)`.",
    },
    Intrinsic {
        path: "builtins.next",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Next),
        ptx: Ptx::Computed,
        doc: "The next item, or the default if there is none: `next(iterator[, default])`. Without a default, the \
            thread ends.",
    },
    Intrinsic {
        path: "builtins.reversed",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Reversed),
        ptx: Ptx::Computed,
        doc: "An iterable of the items in reverse order: `reversed(array)`, `reversed(tuple)`, `reversed(range(…))`.",
    },
    Intrinsic {
        path: "builtins.slice",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Slice),
        ptx: Ptx::Computed,
        doc: "A slice, which can be used as an index: `slice(stop)`, `slice(start, stop)`, `slice(start, stop, step)`.",
    },
];
