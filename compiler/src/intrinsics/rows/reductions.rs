//! Rows of NumPy's functions of whole arrays, and of the corresponding methods.

use weft_artifact::{Number, Scalar};

use super::{
    super::{Arg, Custom, Intrinsic, Lowering, More, Returns, Signature, Whole},
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

const TOTAL: &[&str] = &["axis", "dtype", "out", "keepdims", "initial"];
const MEANS: &[&str] = &["axis", "dtype", "out", "keepdims"];
const SPREADS: &[&str] = &["axis", "dtype", "out", "ddof", "keepdims"];
const BEST: &[&str] = &["axis", "out", "keepdims", "initial"];
const FIRST: &[&str] = &["axis", "out", "keepdims"];
const RUNNING: &[&str] = &["axis", "dtype", "out"];

/// A function of whole arrays, its general function, NumPy's parameters, and the variant of [`More`].
macro_rules! whole {
    ($function:literal, $general:literal, $params:expr, $($more:tt)+) => {
        Lowering::Whole(&Whole { function: $function, general: $general, params: $params, more: More::$($more)+ })
    };
}

/// An overload that returns an index into a sorted array.
const fn search(args: &'static [Arg]) -> Signature {
    Signature { args, returns: Returns::Scalar(Scalar::I64) }
}

pub(super) const REDUCTIONS: &[Intrinsic] = &[
    row(
        "numpy.sum",
        SUM,
        whole!("np_sum", "np_sum_from", TOTAL, Start(0)),
        "The sum of all elements, added in C order.",
    ),
    row(
        "numpy.prod",
        SUM,
        whole!("np_prod", "np_prod_from", TOTAL, Start(1)),
        "The product of all elements, multiplied in C order.",
    ),
    row("numpy.mean", MEAN, whole!("np_mean", "np_mean_as", MEANS, Mean), "The mean of all elements."),
    row(
        "numpy.average",
        AVERAGE,
        Lowering::Prelude("np_average"),
        "The mean of all elements, weighted by a second array if there is one.",
    ),
    row(
        "numpy.var",
        SPREAD,
        whole!("np_var", "np_var_of", SPREADS, Spread),
        "The variance: the mean of the squared distances from the mean.",
    ),
    row(
        "numpy.std",
        SPREAD,
        whole!("np_std", "np_std_of", SPREADS, Spread),
        "The standard deviation: the square root of the variance.",
    ),
    row(
        "numpy.cumsum",
        SUM,
        whole!("np_cumsum", "np_cumsum", RUNNING, Running(0)),
        "The cumulative sums of the elements, in C order or along an axis, into `out=`.",
    ),
    row(
        "numpy.cumprod",
        SUM,
        whole!("np_cumprod", "np_cumprod", RUNNING, Running(1)),
        "The cumulative products of the elements, in C order or along an axis, into `out=`.",
    ),
    row(
        "numpy.min",
        ELEMENT,
        whole!("np_min", "np_min_from", BEST, Best),
        "The smallest element; NaN if any element is NaN.",
    ),
    row(
        "numpy.amin",
        ELEMENT,
        whole!("np_min", "np_min_from", BEST, Best),
        "The smallest element; NaN if any element is NaN.",
    ),
    row(
        "numpy.max",
        ELEMENT,
        whole!("np_max", "np_max_from", BEST, Best),
        "The largest element; NaN if any element is NaN.",
    ),
    row(
        "numpy.amax",
        ELEMENT,
        whole!("np_max", "np_max_from", BEST, Best),
        "The largest element; NaN if any element is NaN.",
    ),
    row("numpy.ptp", SPAN, whole!("np_ptp", "np_ptp", FIRST, None), "The largest element minus the smallest."),
    row(
        "numpy.argmin",
        NUMBER_OF,
        whole!("np_argmin", "np_argmin", FIRST, None),
        "The index, in C order, of the first smallest element, or of the first NaN.",
    ),
    row(
        "numpy.argmax",
        NUMBER_OF,
        whole!("np_argmax", "np_argmax", FIRST, None),
        "The index, in C order, of the first largest element, or of the first NaN.",
    ),
    row(
        "numpy.all",
        ALL,
        whole!("np_all", "np_all", FIRST, None),
        "Whether all elements are true; also takes a number.",
    ),
    row("numpy.any", ALL, whole!("np_any", "np_any", FIRST, None), "Whether any element is true; also takes a number."),
    row(
        "numpy.count_nonzero",
        COUNT_NONZERO,
        Lowering::Prelude("np_count_nonzero"),
        "The number of elements that are not 0; also takes a number.",
    ),
    row("numpy.nansum", SUM, whole!("np_nansum", "np_nansum_from", TOTAL, Start(0)), "Like `np.sum`, ignoring NaNs."),
    row(
        "numpy.nanprod",
        SUM,
        whole!("np_nanprod", "np_nanprod_from", TOTAL, Start(1)),
        "Like `np.prod`, ignoring NaNs.",
    ),
    row("numpy.nanmean", MEAN, whole!("np_nanmean", "np_nanmean_as", MEANS, Mean), "Like `np.mean`, ignoring NaNs."),
    row("numpy.nanvar", SPREAD, whole!("np_nanvar", "np_nanvar_of", SPREADS, Spread), "Like `np.var`, ignoring NaNs."),
    row("numpy.nanstd", SPREAD, whole!("np_nanstd", "np_nanstd_of", SPREADS, Spread), "Like `np.std`, ignoring NaNs."),
    row(
        "numpy.nanmin",
        ELEMENT_REAL,
        whole!("np_nanmin", "np_nanmin_from", BEST, Best),
        "Like `np.min`, ignoring NaNs.",
    ),
    row(
        "numpy.nanmax",
        ELEMENT_REAL,
        whole!("np_nanmax", "np_nanmax_from", BEST, Best),
        "Like `np.max`, ignoring NaNs.",
    ),
    row("numpy.trace", SUM2, Lowering::Prelude("np_trace"), "The sum of the diagonal of a two-dimensional array."),
    row(
        "numpy.array_equal",
        SAME_ARRAYS,
        Lowering::Prelude("np_array_equal"),
        "Whether two arrays with the same number of dimensions have the same shape and elements.",
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
        "The index at which to insert a number into a sorted array: before equal elements, or after them with \
         `side='right'`.",
    ),
    row(
        "numpy.ndarray.item",
        ELEMENT,
        Lowering::Custom(Custom::Item),
        "The method `a.item(k)`: element number `k` in C order, or 0 if there is none.",
    ),
    row(
        "numpy.generic.view",
        &[],
        Lowering::Custom(Custom::Bits),
        "The method `x.view(T)` of a real number: its bits as a number of another type of the same size.",
    ),
    row("numpy.ndarray.fill", FILL, Lowering::Custom(Custom::Fill), "The method `a.fill(x)`: sets all elements to x."),
    row(
        "numpy.ndarray.reshape",
        &[],
        Lowering::Custom(Custom::Reshape),
        "The method `a.reshape(n, m)` or `a.reshape(shape)` of an array in C order: a view; one dimension may be -1.",
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
        "The method `a.view(dtype)`: the same bytes as elements of another type, which must be aligned for it.",
    ),
    row(
        "numpy.ndarray.transpose",
        &[],
        Lowering::Custom(Custom::Transpose),
        "The method `a.transpose()` or `a.transpose(axes)`: a view with its dimensions permuted.",
    ),
    row(
        "numpy.ndindex",
        &[],
        Lowering::Custom(Custom::NdIndex),
        "An iterable of tuples of indices, `np.ndindex(n, m)` or `np.ndindex(shape)`; the last index varies fastest.",
    ),
    row(
        "numpy.ndenumerate",
        &[],
        Lowering::Custom(Custom::NdEnumerate),
        "An iterable of the elements of an array in C order, each with the tuple of its indices.",
    ),
    row(
        "numpy.dot",
        &[],
        Lowering::Custom(Custom::MatMul),
        "`a @ b`: the product of vectors and matrices whose shapes are compile-time constants. Returns a number or a \
         local array.",
    ),
    row("numpy.matmul", &[], Lowering::Custom(Custom::MatMul), "`a @ b`, like `np.dot`."),
];
