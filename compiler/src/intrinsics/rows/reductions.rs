//! Rows of NumPy's functions of whole arrays, and of the methods that they are.

use weft_artifact::{Number, Scalar};

use super::{
    super::{Arg, Custom, Intrinsic, Lowering, Returns, Signature},
    tables::{ELEMENT, MEAN, NUMBER_OF, SPREAD, SUM, arrays, row},
};

const AVERAGE: &[Signature] = arrays![[BOOL] -> F64, [I8] -> F64, [U8] -> F64, [I16] -> F64, [U16] -> F64, [I32] -> F64, [U32] -> F64, [I64] -> F64, [U64] -> F64, [F16] -> F16, [BF16] -> BF16, [F32] -> F32, [F64] -> F64, [C64] -> C64, [C128] -> C128, [F32] [F32] -> F32, [F64] [F64] -> F64, [I32] [F64] -> F64, [I64] [F64] -> F64];
const SPAN: &[Signature] = arrays![[I8] -> I8, [U8] -> U8, [I16] -> I16, [U16] -> U16, [I32] -> I32, [U32] -> U32, [I64] -> I64, [U64] -> U64, [F16] -> F16, [BF16] -> BF16, [F32] -> F32, [F64] -> F64];
const ALL: &[Signature] = arrays![[BOOL] -> BOOL, [I8] -> BOOL, [U8] -> BOOL, [I16] -> BOOL, [U16] -> BOOL, [I32] -> BOOL, [U32] -> BOOL, [I64] -> BOOL, [U64] -> BOOL, [F16] -> BOOL, [BF16] -> BOOL, [F32] -> BOOL, [F64] -> BOOL, [C64] -> BOOL, [C128] -> BOOL, BOOL -> BOOL, C128 -> BOOL];
const COUNT_NONZERO: &[Signature] = arrays![[BOOL] -> I64, [I8] -> I64, [U8] -> I64, [I16] -> I64, [U16] -> I64, [I32] -> I64, [U32] -> I64, [I64] -> I64, [U64] -> I64, [F16] -> I64, [BF16] -> I64, [F32] -> I64, [F64] -> I64, [C64] -> I64, [C128] -> I64, BOOL -> I64, C128 -> I64];
const ELEMENT_REAL: &[Signature] = arrays![[BOOL] -> BOOL, [I8] -> I8, [U8] -> U8, [I16] -> I16, [U16] -> U16, [I32] -> I32, [U32] -> U32, [I64] -> I64, [U64] -> U64, [F16] -> F16, [BF16] -> BF16, [F32] -> F32, [F64] -> F64];
const SUM2: &[Signature] = arrays![[BOOL] -> I64, [I8] -> I64, [U8] -> U64, [I16] -> I64, [U16] -> U64, [I32] -> I64, [U32] -> U64, [I64] -> I64, [U64] -> U64, [F16] -> F16, [BF16] -> BF16, [F32] -> F32, [F64] -> F64, [C64] -> C64, [C128] -> C128];
const SAME_ARRAYS: &[Signature] = arrays![[BOOL] [BOOL] -> BOOL, [I8] [I8] -> BOOL, [U8] [U8] -> BOOL, [I16] [I16] -> BOOL, [U16] [U16] -> BOOL, [I32] [I32] -> BOOL, [U32] [U32] -> BOOL, [I64] [I64] -> BOOL, [U64] [U64] -> BOOL, [F16] [F16] -> BOOL, [BF16] [BF16] -> BOOL, [F32] [F32] -> BOOL, [F64] [F64] -> BOOL, [C64] [C64] -> BOOL, [C128] [C128] -> BOOL];
const CLOSE_ARRAYS: &[Signature] = arrays![[F32] [F32] F64 F64 BOOL -> BOOL, [F64] [F64] F64 F64 BOOL -> BOOL, [C64] [C64] F64 F64 BOOL -> BOOL, [C128] [C128] F64 F64 BOOL -> BOOL];
const FILL: &[Signature] =
    &[Signature { args: &[Arg::Array(Number::F32), Arg::Scalar(Scalar::F32)], returns: Returns::Nothing }];
const SEARCH: &[Signature] = &[
    search(&[Arg::Array(Number::BOOL), Arg::Scalar(Scalar::Bool), Arg::Text("right")]),
    search(&[Arg::Array(Number::I8), Arg::Scalar(Scalar::I8), Arg::Text("right")]),
    search(&[Arg::Array(Number::U8), Arg::Scalar(Scalar::U8), Arg::Text("right")]),
    search(&[Arg::Array(Number::I16), Arg::Scalar(Scalar::I16), Arg::Text("right")]),
    search(&[Arg::Array(Number::U16), Arg::Scalar(Scalar::U16), Arg::Text("right")]),
    search(&[Arg::Array(Number::I32), Arg::Scalar(Scalar::I32), Arg::Text("right")]),
    search(&[Arg::Array(Number::U32), Arg::Scalar(Scalar::U32), Arg::Text("right")]),
    search(&[Arg::Array(Number::I64), Arg::Scalar(Scalar::I64), Arg::Text("right")]),
    search(&[Arg::Array(Number::U64), Arg::Scalar(Scalar::U64), Arg::Text("right")]),
    search(&[Arg::Array(Number::F16), Arg::Scalar(Scalar::F16), Arg::Text("right")]),
    search(&[Arg::Array(Number::BF16), Arg::Scalar(Scalar::BF16), Arg::Text("right")]),
    search(&[Arg::Array(Number::F32), Arg::Scalar(Scalar::F32), Arg::Text("right")]),
    search(&[Arg::Array(Number::F64), Arg::Scalar(Scalar::F64), Arg::Text("right")]),
];

/// A place in a sorted array.
const fn search(args: &'static [Arg]) -> Signature {
    Signature { args, returns: Returns::Scalar(Scalar::I64) }
}

pub(super) const REDUCTIONS: &[Intrinsic] = &[
    row("numpy.sum", SUM, Lowering::Prelude("np_sum"), "The sum of all elements, one after the other in C order."),
    row(
        "numpy.prod",
        SUM,
        Lowering::Prelude("np_prod"),
        "The product of all elements, one after the other in C order.",
    ),
    row("numpy.mean", MEAN, Lowering::Prelude("np_mean"), "The mean of all elements."),
    row(
        "numpy.average",
        AVERAGE,
        Lowering::Prelude("np_average"),
        "The mean of all elements, weighted by a second array if there is one.",
    ),
    row("numpy.var", SPREAD, Lowering::Prelude("np_var"), "The mean of the squared distances from the mean."),
    row("numpy.std", SPREAD, Lowering::Prelude("np_std"), "The square root of the variance."),
    row("numpy.min", ELEMENT, Lowering::Prelude("np_min"), "The smallest element, or NaN if one is."),
    row("numpy.amin", ELEMENT, Lowering::Prelude("np_min"), "The smallest element, or NaN if one is."),
    row("numpy.max", ELEMENT, Lowering::Prelude("np_max"), "The largest element, or NaN if one is."),
    row("numpy.amax", ELEMENT, Lowering::Prelude("np_max"), "The largest element, or NaN if one is."),
    row("numpy.ptp", SPAN, Lowering::Prelude("np_ptp"), "The largest element less the smallest."),
    row(
        "numpy.argmin",
        NUMBER_OF,
        Lowering::Prelude("np_argmin"),
        "The number, in C order, of the first of the smallest elements, or of the first NaN.",
    ),
    row(
        "numpy.argmax",
        NUMBER_OF,
        Lowering::Prelude("np_argmax"),
        "The number, in C order, of the first of the largest elements, or of the first NaN.",
    ),
    row("numpy.all", ALL, Lowering::Prelude("np_all"), "Whether all elements are true; also of a number."),
    row("numpy.any", ALL, Lowering::Prelude("np_any"), "Whether an element is true; also of a number."),
    row(
        "numpy.count_nonzero",
        COUNT_NONZERO,
        Lowering::Prelude("np_count_nonzero"),
        "How many elements are not 0; also of a number.",
    ),
    row("numpy.nansum", SUM, Lowering::Prelude("np_nansum"), "As `np.sum`, without the NaNs."),
    row("numpy.nanprod", SUM, Lowering::Prelude("np_nanprod"), "As `np.prod`, without the NaNs."),
    row("numpy.nanmean", MEAN, Lowering::Prelude("np_nanmean"), "As `np.mean`, without the NaNs."),
    row("numpy.nanvar", SPREAD, Lowering::Prelude("np_nanvar"), "As `np.var`, without the NaNs."),
    row("numpy.nanstd", SPREAD, Lowering::Prelude("np_nanstd"), "As `np.std`, without the NaNs."),
    row("numpy.nanmin", ELEMENT_REAL, Lowering::Prelude("np_nanmin"), "As `np.min`, without the NaNs."),
    row("numpy.nanmax", ELEMENT_REAL, Lowering::Prelude("np_nanmax"), "As `np.max`, without the NaNs."),
    row("numpy.trace", SUM2, Lowering::Prelude("np_trace"), "The sum of the diagonal of an array of two dimensions."),
    row(
        "numpy.array_equal",
        SAME_ARRAYS,
        Lowering::Prelude("np_array_equal"),
        "Whether two arrays of one number of dimensions have the same shape and elements.",
    ),
    row(
        "numpy.allclose",
        CLOSE_ARRAYS,
        Lowering::Prelude("np_allclose"),
        "Whether `np.isclose` holds for all pairs of elements (`rtol=1e-5, atol=1e-8, equal_nan=False`).",
    ),
    row(
        "numpy.searchsorted",
        SEARCH,
        Lowering::Prelude("np_searchsorted"),
        "Where a number stands in a sorted array: before its equals, or with `side='right'` behind them.",
    ),
    row(
        "numpy.ndarray.item",
        ELEMENT,
        Lowering::Custom(Custom::Item),
        "The method `a.item(k)`: the element with a number in C order, 0 if there is none.",
    ),
    row(
        "numpy.generic.view",
        &[],
        Lowering::Custom(Custom::Bits),
        "The method `x.view(T)` of a real number: its bits as a number of another type of its size.",
    ),
    row("numpy.ndarray.fill", FILL, Lowering::Custom(Custom::Fill), "The method `a.fill(x)`: all elements become x."),
    row(
        "numpy.ndarray.reshape",
        &[],
        Lowering::Custom(Custom::Reshape),
        "The method `a.reshape(n, m)` or `a.reshape(shape)` of an array in C order: a view; one extent may be -1.",
    ),
    row("numpy.reshape", &[], Lowering::Custom(Custom::Reshape), "The method `a.reshape(shape)` as a function."),
    row("numpy.ravel", &[], Lowering::Custom(Custom::Ravel), "The method `a.ravel()` as a function."),
    row(
        "numpy.transpose",
        &[],
        Lowering::Custom(Custom::Transpose),
        "The methods `a.transpose()` and `a.transpose(axes)` as a function.",
    ),
    row(
        "numpy.ndarray.ravel",
        &[],
        Lowering::Custom(Custom::Ravel),
        "The method `a.ravel()` of an array in C order: a view with one dimension.",
    ),
    row(
        "numpy.ndarray.view",
        &[],
        Lowering::Custom(Custom::View),
        "The method `a.view(dtype)`: the same bytes as elements of another type, for which they must be aligned.",
    ),
    row(
        "numpy.ndarray.transpose",
        &[],
        Lowering::Custom(Custom::Transpose),
        "The method `a.transpose()` or `a.transpose(axes)`: a view with its dimensions in another order.",
    ),
    row(
        "numpy.ndindex",
        &[],
        Lowering::Custom(Custom::NdIndex),
        "What a `for` loop goes over: tuples of indices below `np.ndindex(n, m)` or `np.ndindex(shape)`, the last index running fastest.",
    ),
    row(
        "numpy.ndenumerate",
        &[],
        Lowering::Custom(Custom::NdEnumerate),
        "What a `for` loop goes over: the elements of an array in C order, each with the tuple of its indices.",
    ),
    row(
        "numpy.dot",
        &[],
        Lowering::Custom(Custom::MatMul),
        "`a @ b`: the product of vectors and matrices whose shapes are known when the kernel is compiled; a number, or a local array.",
    ),
    row("numpy.matmul", &[], Lowering::Custom(Custom::MatMul), "`a @ b`, as `np.dot`."),
];
