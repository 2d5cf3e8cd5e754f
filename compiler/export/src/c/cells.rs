//! The cells of a call: the values of all arguments, from which the slots of each image are chosen.
//!
//! A number has a cell, a complex number two. An array has cells for its address, its extents and its strides.

use weft_artifact::{Kernel, Param, SlotField, SlotSource};

use super::types::CParam;

/// The number of cells of a parameter.
fn count(param: CParam) -> usize {
    match param {
        CParam::Number(number) => {
            if number.is_complex() {
                2
            } else {
                1
            }
        }
        CParam::Array(array, _) => 1 + 2 * usize::from(array.ndim),
    }
}

/// The first cell of each parameter, and after them the number of cells.
pub(super) fn firsts(params: &[Param]) -> Vec<usize> {
    let mut firsts = vec![0];
    for param in params {
        let before = firsts.last().copied().unwrap_or(0);
        firsts.push(before + CParam::of(param).map_or(0, count));
    }
    firsts
}

/// The cells of a kernel's slots.
pub(super) fn of_slots(params: &[Param], kernel: &Kernel) -> Vec<usize> {
    let firsts = firsts(params);
    let cell = |source: &SlotSource| {
        let SlotSource::Argument { param, path: _, field } = source else { return 0 };
        let index = *param as usize;
        let ndim = match params.get(index).and_then(CParam::of) {
            Some(CParam::Array(array, _)) => usize::from(array.ndim),
            Some(CParam::Number(_)) | None => 0,
        };
        let within = match field {
            SlotField::Value | SlotField::Real | SlotField::Data => 0,
            SlotField::Imag => 1,
            SlotField::Shape(dim) => 1 + usize::from(*dim),
            SlotField::Stride(dim) => 1 + ndim + usize::from(*dim),
            // Exported code has no bounds-checked stores.
            SlotField::Start | SlotField::Room | SlotField::Least | SlotField::Limit => 0,
        };
        firsts.get(index).map_or(0, |first| first + within)
    };
    kernel.slots.iter().map(|slot| cell(&slot.source)).collect()
}
