//! Strides: their meaning for an array's memory, and the strides of a new array. All stride arithmetic of the host side
//! is here; the Python code calls it.

use pyo3::{
    exceptions::{PyTypeError, PyValueError},
    prelude::*,
};
use weft_artifact::{DType, EXTENT_BITS, Layout};

/// Checks that all extents are as short as compiled code assumes. Only arrays with overlapping elements, or with none,
/// can have longer ones.
///
/// # Errors
///
/// `ValueError` with the extent that is too long.
pub(crate) fn check_extents(mut shape: impl Iterator<Item = u64>) -> PyResult<()> {
    match shape.find(|extent| extent >> EXTENT_BITS != 0) {
        Some(extent) => {
            let message = format!(
                "an array with {extent} elements along an axis is too large: the limit is 2**{EXTENT_BITS} - 1"
            );
            Err(PyValueError::new_err(message))
        }
        None => Ok(()),
    }
}

/// Whether the strides describe contiguous memory. The fastest dimension comes first. A dimension of one element may
/// have any stride.
fn follow(dims: impl Iterator<Item = (u64, i64)>, item: u64) -> bool {
    let mut expected = item as i64;
    for (extent, stride) in dims {
        if extent != 1 && stride != expected {
            return false;
        }
        expected = expected.wrapping_mul(extent as i64);
    }
    true
}

/// Whether the elements are C-contiguous, and whether they are Fortran-contiguous.
pub(crate) fn contiguous(
    shape: impl DoubleEndedIterator<Item = u64> + Clone,
    strides: impl DoubleEndedIterator<Item = i64> + Clone,
    item: u64,
) -> (bool, bool) {
    if shape.clone().any(|extent| extent == 0) {
        return (true, true);
    }
    (follow(shape.clone().rev().zip(strides.clone().rev()), item), follow(shape.zip(strides), item))
}

/// The layout that extents and strides have: C before F before any; an empty array is C.
pub(crate) fn layout(
    shape: impl DoubleEndedIterator<Item = u64> + Clone,
    strides: impl DoubleEndedIterator<Item = i64> + Clone,
    item: u64,
) -> Layout {
    match contiguous(shape, strides, item) {
        (true, _) => Layout::C,
        (false, true) => Layout::F,
        (false, false) => Layout::Any,
    }
}

/// Whether all elements are aligned as kernels assume for their dtype.
pub(crate) fn is_aligned(
    address: u64,
    shape: impl Iterator<Item = u64> + Clone,
    strides: impl Iterator<Item = i64>,
    dtype: DType,
) -> bool {
    // It is a power of two: a launch has no time for divisions.
    let below = dtype.access_align() - 1;
    let each = |(extent, stride): (u64, i64)| extent < 2 || stride as u64 & below == 0;
    shape.clone().any(|extent| extent == 0) || address & below == 0 && shape.zip(strides).all(each)
}

/// An array's [`layout`], and whether it [`is_aligned`], from its extents and strides in bytes; in two passes over
/// both, since launches with other libraries' arrays call it.
///
/// # Errors
///
/// `ValueError` for an extent that is too long.
pub(crate) fn examine(address: u64, shape: &[u64], steps: &[u64], dtype: DType) -> PyResult<(Layout, bool)> {
    let (item, below) = (dtype.size_bytes(), dtype.access_align() - 1);
    let (mut bits, mut loose, mut is_empty) = (0, address & below, false);
    let (mut is_f, mut expected) = (true, item);
    for (extent, step) in shape.iter().zip(steps) {
        bits |= extent;
        is_empty |= *extent == 0;
        if *extent > 1 {
            loose |= step & below;
            is_f &= *step == expected;
        }
        expected = expected.wrapping_mul(*extent);
    }
    let (mut is_c, mut expected) = (true, item);
    for (extent, step) in shape.iter().zip(steps).rev() {
        is_c &= *extent == 1 || *step == expected;
        expected = expected.wrapping_mul(*extent);
    }
    if bits >> EXTENT_BITS != 0 {
        check_extents(shape.iter().copied())?;
    }
    let layout = match (is_c || is_empty, is_f) {
        (true, _) => Layout::C,
        (false, true) => Layout::F,
        (false, false) => Layout::Any,
    };
    Ok((layout, is_empty || loose == 0))
}

/// `TypeError` for elements that are not aligned.
pub(crate) fn misaligned(dtype: DType) -> PyErr {
    PyTypeError::new_err(format!(
        "its {dtype} elements are not aligned to {} bytes (it may be a field of a packed record): pass the array of \
         records, or a copy of the elements",
        dtype.access_align()
    ))
}

/// Sets the strides of an array without gaps, its dimensions from the fastest to the slowest.
fn fill<'a, T: 'a>(dims: impl Iterator<Item = (&'a u64, &'a mut T)>, item: u64, stride_of: impl Fn(u64) -> T) {
    let mut step = item;
    for (extent, stride) in dims {
        *stride = stride_of(step);
        step = step.wrapping_mul(*extent);
    }
}

/// Adds the strides in bytes of a C-contiguous array to its extents, which lie in `cells` from `first` to the end.
pub(crate) fn push_c(cells: &mut Vec<u64>, first: usize, item: u64) {
    let ndim = cells.len() - first;
    cells.resize(first + 2 * ndim, 0);
    let (shape, strides) = cells.get_mut(first..).unwrap_or_default().split_at_mut(ndim);
    fill(shape.iter().zip(strides).rev(), item, |step| step);
}

/// The strides in bytes of a C-contiguous array.
pub(super) fn of_c(shape: &[u64], item: u64) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    fill(shape.iter().zip(&mut strides).rev(), item, |step| step as i64);
    strides
}

/// The strides in bytes of a Fortran-contiguous array.
fn of_f(shape: &[u64], item: u64) -> Vec<i64> {
    let mut strides = vec![0; shape.len()];
    fill(shape.iter().zip(&mut strides), item, |step| step as i64);
    strides
}

/// The strides in bytes of an array without gaps in order "C" or "F".
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what a Python sequence becomes")]
pub(crate) fn contiguous_strides(shape: Vec<u64>, itemsize: u64, order: &str) -> PyResult<Vec<i64>> {
    match order {
        "C" => Ok(of_c(&shape, itemsize)),
        "F" => Ok(of_f(&shape, itemsize)),
        other => Err(PyValueError::new_err(format!("order must be 'C' or 'F', not '{other}'"))),
    }
}

/// The strides in bytes of a contiguous array whose dimensions have the same order in memory as those of another array.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "what a Python sequence becomes")]
pub(crate) fn dense_strides(shape: Vec<u64>, strides: Vec<i64>, itemsize: u64) -> PyResult<Vec<i64>> {
    if shape.len() != strides.len() {
        return Err(PyValueError::new_err("an array needs one stride for each dimension"));
    }
    Ok(match layout(shape.iter().copied(), strides.iter().copied(), itemsize) {
        Layout::C => of_c(&shape, itemsize),
        Layout::F => of_f(&shape, itemsize),
        Layout::Any => {
            let mut dense = vec![0; shape.len()];
            let mut axes: Vec<_> = shape.iter().zip(&mut dense).zip(&strides).rev().collect();
            // Of equal strides, the last axis is the fastest.
            axes.sort_by_key(|(_, stride)| stride.unsigned_abs());
            fill(axes.into_iter().map(|(axis, _)| axis), itemsize, |step| step as i64);
            dense
        }
    })
}

/// The bytes of the elements as a half-open range of offsets from the first element.
pub(crate) fn span(
    shape: impl Iterator<Item = u64> + Clone,
    strides: impl Iterator<Item = i64>,
    item: u64,
) -> (i64, i64) {
    if shape.clone().any(|extent| extent == 0) {
        return (0, 0);
    }
    shape.zip(strides).fold((0, item as i64), |(low, high), (extent, stride)| {
        let end = stride.wrapping_mul(extent as i64 - 1);
        (low.wrapping_add(end.min(0)), high.wrapping_add(end.max(0)))
    })
}

/// Whether elements at these strides overlap.
pub(crate) fn overlap(shape: &[usize], strides: &[isize], item: u64) -> bool {
    if shape.contains(&0) {
        return false;
    }
    let dims = shape.iter().zip(strides).map(|(extent, stride)| (stride.unsigned_abs() as u64, *extent as u64));
    let mut dims: Vec<(u64, u64)> = dims.filter(|(_, extent)| *extent > 1).collect();
    dims.sort_unstable();
    // The usual case: each stride is at least the extent in memory of the dimensions with smaller strides.
    let mut reach = item;
    let mut nested = true;
    for (stride, extent) in &dims {
        nested &= *stride >= reach;
        reach = reach.saturating_add(stride.saturating_mul(extent - 1));
    }
    if nested {
        return false;
    }
    // There are more bytes of elements than bytes between the ends, as in sliding windows, which may have billions of
    // elements.
    let bytes = dims.iter().fold(item, |bytes, (_, extent)| bytes.saturating_mul(*extent));
    if bytes > reach {
        return true;
    }
    // Dimensions may still interleave without overlap: visit all elements. There are at most as many as the memory
    // holds.
    let mut offsets = vec![0_u64];
    for (stride, extent) in dims {
        if stride < item {
            return true;
        }
        offsets = (0..extent).flat_map(|index| offsets.iter().map(move |offset| offset + index * stride)).collect();
    }
    offsets.sort_unstable();
    offsets.windows(2).any(|pair| matches!(pair, [first, second] if second - first < item))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn elements_that_overlap() {
        assert!(overlap(&[8, 8], &[8, 8], 8));
        assert!(overlap(&[4, 8], &[0, 8], 8));
        assert!(overlap(&[3], &[4], 8));
        assert!(overlap(&[4, 3], &[16, 24], 8));
        assert!(overlap(&[2, 2], &[-8, 8], 8));
        assert!(overlap(&[1 << 40, 1 << 40], &[8, 8], 8));
    }

    #[test]
    fn elements_that_do_not() {
        assert!(!overlap(&[8, 8], &[8, 64], 8));
        assert!(!overlap(&[4, 4], &[-128, 16], 8));
        assert!(!overlap(&[1, 4], &[0, 16], 8));
        assert!(!overlap(&[0, 4], &[0, 0], 8));
        assert!(!overlap(&[2, 3], &[24, 16], 8));
        assert!(!overlap(&[3, 3], &[16, 24], 8));
        assert!(!overlap(&[], &[], 8));
    }

    #[test]
    fn new_arrays_have_no_gaps() {
        assert_eq!(of_c(&[2, 3, 4], 8), [96, 32, 8]);
        assert_eq!(of_f(&[2, 3, 4], 8), [8, 16, 48]);
        assert_eq!(of_c(&[], 8), [0_i64; 0]);
        let dense = |shape: &[u64], strides: &[i64]| {
            dense_strides(shape.to_vec(), strides.to_vec(), 8).unwrap_or_else(|_| panic!("as many strides as extents"))
        };
        assert_eq!(dense(&[2, 3], &[48, 16]), [24, 8]);
        assert_eq!(dense(&[2, 3], &[8, 16]), [8, 16]);
        assert_eq!(dense(&[2, 3], &[-16, 32]), [8, 16]);
        assert_eq!(dense(&[2, 3, 4], &[32, 1000, -8]), [32, 64, 8]);
        assert_eq!(dense(&[2, 3], &[0, 0]), [24, 8]);
        assert_eq!(dense(&[0, 3], &[5, 7]), [24, 8]);
    }

    #[test]
    fn layouts_are_those_of_one_piece_of_memory() {
        let layout = |shape: &[u64], strides: &[i64]| layout(shape.iter().copied(), strides.iter().copied(), 8);
        assert_eq!(layout(&[2, 3], &[24, 8]), Layout::C);
        assert_eq!(layout(&[2, 3], &[8, 16]), Layout::F);
        assert_eq!(layout(&[2, 3], &[8, 24]), Layout::Any);
        assert_eq!(layout(&[1, 3], &[-5, 8]), Layout::C);
        assert_eq!(layout(&[0, 3], &[1, 1]), Layout::C);
        assert_eq!(layout(&[3], &[-8]), Layout::Any);
        assert_eq!(layout(&[], &[]), Layout::C);
    }

    #[test]
    fn one_look_finds_what_several_find() {
        let extents = [0, 1, 2, 3];
        let strides: [i64; 7] = [-8, 0, 3, 4, 8, 12, 16];
        let arrays = |ndim: u32| {
            (0..(extents.len() * strides.len()).pow(ndim)).map(move |number| {
                let dims = (0..ndim).map(|dim| number / (extents.len() * strides.len()).pow(dim));
                let dims = dims.map(|dim| (extents[dim % 4], strides[dim / 4 % 7] as u64));
                dims.unzip::<u64, u64, Vec<_>, Vec<_>>()
            })
        };
        for (shape, steps) in (0..=2).flat_map(arrays) {
            for address in [0, 4, 6] {
                let (extents, strides) = (shape.iter().copied(), steps.iter().map(|step| *step as i64));
                let expected = (
                    layout(extents.clone(), strides.clone(), 4),
                    is_aligned(address, extents, strides, weft_artifact::Number::F32.into()),
                );
                let found = examine(address, &shape, &steps, weft_artifact::Number::F32.into());
                assert_eq!(found.ok(), Some(expected), "{address} {shape:?} {steps:?}");
            }
        }
        assert!(examine(0, &[1 << EXTENT_BITS], &[4], weft_artifact::Number::F32.into()).is_err());
    }

    #[test]
    fn a_span_holds_all_elements() {
        let span = |shape: &[u64], strides: &[i64]| span(shape.iter().copied(), strides.iter().copied(), 8);
        assert_eq!(span(&[2, 3], &[24, 8]), (0, 48));
        assert_eq!(span(&[2, 3], &[-24, 8]), (-24, 24));
        assert_eq!(span(&[2, 0], &[-24, 8]), (0, 0));
        assert_eq!(span(&[], &[]), (0, 8));
    }
}
