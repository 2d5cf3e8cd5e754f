//! `a.flat[i]`, the element at a linear position in C order, and `a.ctypes.data`, the address of the first element.

use weft_artifact::{Layout, Scalar};

use super::{index::Index, subscript::Selected};
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::FnLowerer,
        ty::ArrayTy,
        value::{ArrayValue, Value},
    },
    ir::{ExprId, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// The pointer to the element that an index of `a.flat` selects; a negative one counts from the end.
    pub(super) fn flat_element(&mut self, array: &ArrayValue, indices: &[Index], span: Span) -> Option<ExprId> {
        if !matches!(indices, [Index::At { .. }]) {
            let diagnostic = Diagnostic::error(Code::BadIndex, span, "`a.flat` takes one integer as its index");
            self.report(diagnostic.help("`a.ravel()` of an array in C order is a view with one dimension"));
            return None;
        }
        let size = self.product_of(&array.shape, span);
        let ty = ArrayTy { ndim: 1, layout: Layout::C, ..array.ty };
        let flat = ArrayValue { ty, data: array.data, shape: vec![size], strides: Vec::new() };
        if array.ty.layout == Layout::C {
            return element_of(self.selected(&flat, indices, span)?);
        }
        let indices = self.without_wraps(indices.to_vec(), span)?;
        let indices = self.checked(&flat, indices, span);
        let (indices, within) = self.with_bounds_test(&flat, indices, span);
        let at = self.wrapped(indices.first()?, size, span);
        let (view, indices) = self.nth(array.clone(), &Value::Scalar(at, Scalar::I64), span)?;
        let pointer = element_of(self.selected(&view, &indices, span)?)?;
        Some(self.if_within(pointer, within, span))
    }

    /// The address of an array's first element, in any address space.
    pub(super) fn address_of_array(&mut self, array: &ArrayValue, span: Span) -> Value {
        let (data, _) = self.address(array, span);
        Value::Scalar(self.b.convert(data, Type::Scalar(Scalar::U64), span), Scalar::U64)
    }
}

fn element_of(selected: Selected) -> Option<ExprId> {
    match selected {
        Selected::Element(pointer) => Some(pointer),
        Selected::View(_) => None,
    }
}
