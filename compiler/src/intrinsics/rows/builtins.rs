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
        doc: "With `WEFT_DEVICE=python`, Python's debugger stops. In compiled code an error, but for PTX with `debug=True`: there it stops cuda-gdb. PTX ISA, `brkpt`.",
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
        "Whether an item of a tuple or a one-dimensional array is true.",
    ),
    row(
        "builtins.callable",
        &[],
        Lowering::Custom(Custom::Callable),
        "Whether something can be called, known when the kernel is compiled.",
    ),
    row("builtins.divmod", DIVMOD, Lowering::Custom(Custom::Divmod), "`(a // b, a % b)`."),
    row(
        "builtins.getattr",
        &[],
        Lowering::Custom(Custom::GetAttr),
        "`getattr(x, \"name\")`: `x.name`; with a third argument, that where there is no such attribute.",
    ),
    row(
        "builtins.hasattr",
        &[],
        Lowering::Custom(Custom::HasAttr),
        "`hasattr(x, \"name\")`, known when the kernel is compiled.",
    ),
    row(
        "builtins.isinstance",
        &[],
        Lowering::Custom(Custom::IsInstance),
        "Whether a value is of a type, or of one in a tuple, known when the kernel is compiled: a branch that is not taken is not typed. `int`, `float` and `complex` have NumPy's numbers of their kind.",
    ),
    row(
        "builtins.ord",
        &[],
        Lowering::Custom(Custom::Ord),
        "The code point of a string of one letter, known when the kernel is compiled.",
    ),
    row(
        "builtins.sum",
        SUM,
        Lowering::Custom(Custom::Sum),
        "The sum of a tuple or a one-dimensional array, from `start=0` on.",
    ),
    row(
        "builtins.tuple",
        &[],
        Lowering::Custom(Custom::Tuple),
        "A tuple as it is, or the items of a range, an array or another thing to loop over, if their number is known when the kernel is compiled.",
    ),
    row(
        "builtins.tuple.index",
        &[],
        Lowering::Custom(Custom::Index),
        "The method `t.index(x)` of a tuple or range: where its first item is that is equal to x, -1 if there is none; `t.index(x, start, stop)` looks in `t[start:stop]`.",
    ),
    row(
        "builtins.tuple.count",
        &[],
        Lowering::Custom(Custom::Count),
        "The method `t.count(x)` of a tuple or range: how many items are equal to x.",
    ),
    row("builtins.type", &[], Lowering::Custom(Custom::Type), "A number's type, which can be called as a cast."),
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
        doc: "The first extent of an array, or the number of items of a tuple.",
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
        doc: "Rounds half to even: to an `int64`, or with a second argument to a number of decimals.",
    },
    Intrinsic {
        path: "builtins.print",
        signatures: PRINT,
        lowering: Lowering::Custom(Custom::Print),
        ptx: Ptx::Has("vprintf"),
        doc: "Prints numbers, texts, `None`, tuples, named tuples, dataclasses, records and formatted texts, with `sep` and `end` that are known when the kernel is compiled. Floats have six decimals.",
    },
    row(
        "builtins.str.format",
        &[],
        Lowering::Custom(Custom::Format),
        "The method `text.format(x, name=y)` of a known text: a text for `print`. `f\"{x}\"` and `text % x` make one, too.",
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
        doc: "An integer: floats are truncated to `int64`, integers keep their type.",
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
        doc: "A float: integers become `float64`, floats keep their type.",
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
        doc: "What a `for` loop goes over: `range(stop)`, `range(start, stop)`, `range(start, stop, step)`.",
    },
    Intrinsic {
        path: "builtins.enumerate",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Enumerate),
        ptx: Ptx::Computed,
        doc: "What a `for` loop goes over, with the number of each item: `enumerate(iterable, start=0)`.",
    },
    Intrinsic {
        path: "builtins.zip",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Zip),
        ptx: Ptx::Computed,
        doc: "What a `for` loop goes over side by side, until the shortest ends: `zip(a, b, …)`.",
    },
    Intrinsic {
        path: "builtins.iter",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Iter),
        ptx: Ptx::Computed,
        doc: "What `next` and `for` take items from: `iter(iterable)`, held by one variable.",
    },
    Intrinsic {
        path: "builtins.next",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Next),
        ptx: Ptx::Computed,
        doc: "The next item: `next(iterator[, default])`. Without a default, a thread ends where there is none.",
    },
    Intrinsic {
        path: "builtins.reversed",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Reversed),
        ptx: Ptx::Computed,
        doc: "What a `for` loop goes over backwards: `reversed(array)`, `reversed(tuple)`, `reversed(range(…))`.",
    },
    Intrinsic {
        path: "builtins.slice",
        signatures: &[],
        lowering: Lowering::Custom(Custom::Slice),
        ptx: Ptx::Computed,
        doc: "A slice as a value, which is an index: `slice(stop)`, `slice(start, stop)`, `slice(start, stop, step)`.",
    },
];
