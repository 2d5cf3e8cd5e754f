//! Tests that the extents of arrays match in copies, elementwise operations and reshapes.
//!
//! A mismatch of constants is a compile-time error. Otherwise the thread ends with a `ValueError` before it writes
//! anything. The error is reported whatever the launch's options are, since one comparison is cheap beside the loop
//! over the elements.

use weft_artifact::{Numbers, Scalar};

use super::{
    lowerer::FnLowerer,
    prelude::is_own,
    value::{ArrayValue, Atom, Value},
};
use crate::{
    diagnostic::Code,
    ir::{BinaryOp, CompareOp, ExprId, LocalId, MathFn, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// Ends the thread if `cond` holds, because the two numbers do not match.
    fn bad_extents_if(&mut self, cond: ExprId, numbers: Numbers, [first, second]: [Atom; 2], span: Span) {
        self.b.open();
        let values = [self.use_atom(first, span), self.use_atom(second, span)];
        self.bad_extents(numbers, values, span);
        let then = self.b.close();
        self.stmt(Ir::If { cond, then, otherwise: Vec::new() }, span);
    }

    /// Ends the thread if the extents differ; a mismatch of constants is reported at compile time.
    pub(super) fn end_unless_same(&mut self, own: Atom, extent: Atom, span: Span) -> Option<()> {
        let (own, extent) = (self.fixed(own), self.fixed(extent));
        match (own, extent) {
            (own, extent) if own == extent => {}
            (Atom::Int(own), Atom::Int(extent)) => return self.extents_differ(own, extent, span),
            (Atom::Int(_) | Atom::Local(_), Atom::Int(_) | Atom::Local(_)) if is_own(&self.def) => {}
            (Atom::Int(_) | Atom::Local(_), Atom::Int(_) | Atom::Local(_)) => {
                let (a, b) = (self.use_atom(own, span), self.use_atom(extent, span));
                let differ = self.b.compare(CompareOp::Ne, a, b, span);
                self.bad_extents_if(differ, Numbers::Extents, [own, extent], span);
            }
        }
        Some(())
    }

    /// Ends the thread if an extent is neither equal to another one nor 1 (NumPy's broadcasting).
    pub(super) fn end_unless_broadcast(&mut self, own: Atom, extent: Atom, span: Span) -> Option<()> {
        let (own, extent) = (self.fixed(own), self.fixed(extent));
        match (own, extent) {
            (Atom::Int(1), _) => {}
            (own, Atom::Int(1)) => return self.end_unless_same(own, Atom::Int(1), span),
            (Atom::Int(_), _) => return self.end_unless_same(own, extent, span),
            (Atom::Local(_), extent) if own == extent || is_own(&self.def) => {}
            (Atom::Local(_), Atom::Int(_) | Atom::Local(_)) => {
                let (a, b) = (self.use_atom(own, span), self.use_atom(extent, span));
                let differ = self.b.compare(CompareOp::Ne, a, b, span);
                let (a, one) = (self.use_atom(own, span), self.b.i64(1, span));
                let many = self.b.compare(CompareOp::Ne, a, one, span);
                let bad = self.b.binary(BinaryOp::And, differ, many, span);
                self.bad_extents_if(bad, Numbers::Extents, [own, extent], span);
            }
        }
        Some(())
    }

    /// Ends the thread if an array cannot be broadcast to a shape with the same or more dimensions.
    pub(super) fn end_unless_fits(&mut self, array: &ArrayValue, shape: &[Atom], span: Span) -> Option<()> {
        let first = shape.len().checked_sub(array.shape.len())?;
        for (own, extent) in array.shape.iter().zip(&shape[first..]) {
            self.end_unless_broadcast(*own, *extent, span)?;
        }
        Some(())
    }

    /// Ends the thread if arrays do not have the same shape, or, for different numbers of dimensions, the same size.
    pub(super) fn end_unless_alike(&mut self, own: &[Atom], shape: &[Atom], span: Span) -> Option<()> {
        if own.len() != shape.len() {
            let (own, size) = (self.product_of(own, span), self.product_of(shape, span));
            return self.end_unless_same(own, size, span);
        }
        for (own, extent) in own.iter().zip(shape) {
            self.end_unless_same(*own, *extent, span)?;
        }
        Some(())
    }

    /// Ends the thread if a shape does not have as many elements as the array that is reshaped.
    pub(super) fn end_unless_reshapes(&mut self, array: &ArrayValue, shape: &[Atom], span: Span) {
        if is_own(&self.def) || array.shape == shape {
            return;
        }
        let size = self.product_of(&array.shape, span);
        // The product, and the part of it beyond 64 bits: the product of 2^64 elements must not count as 0.
        let (mut known, mut product, mut beyond) = (1_i64, None::<LocalId>, None::<LocalId>);
        for extent in shape {
            match extent {
                Atom::Int(extent) => known = known.saturating_mul(*extent),
                Atom::Local(_) => {
                    let extent = self.use_atom(*extent, span);
                    let extent = self.b.convert(extent, Type::Scalar(Scalar::U64), span);
                    (product, beyond) = self.times(product, beyond, extent, span);
                }
            }
        }
        if known != 1 || product.is_none() {
            let known = self.b.int(Scalar::U64, i128::from(known), span);
            (product, beyond) = self.times(product, beyond, known, span);
        }
        let Some(product) = product else { return };
        let (elements, all) = (self.b.read(product, span), self.use_atom(size, span));
        let all = self.b.convert(all, Type::Scalar(Scalar::U64), span);
        let mut bad = self.b.compare(CompareOp::Ne, elements, all, span);
        if let Some(beyond) = beyond {
            let (beyond, zero) = (self.b.read(beyond, span), self.b.int(Scalar::U64, 0, span));
            let too_many = self.b.compare(CompareOp::Ne, beyond, zero, span);
            bad = self.b.binary(BinaryOp::Or, bad, too_many, span);
        }
        let elements = self.b.read(product, span);
        let elements = self.b.convert(elements, Type::I64, span);
        let elements = self.atom(elements, span);
        self.bad_extents_if(bad, Numbers::Elements, [size, elements], span);
    }

    /// Ends the thread unless the elements of the old size fill the same bytes as those of the new size.
    pub(super) fn end_unless_refits(&mut self, own: Atom, old: i64, extent: Atom, new: i64, span: Span) {
        let mut bytes = |extent: Atom, size: i64| {
            let (extent, size) = (self.use_atom(extent, span), self.b.i64(size, span));
            let bytes = self.b.binary(BinaryOp::Mul, extent, size, span);
            self.nonneg_atom(bytes, span)
        };
        let (had, has) = (bytes(own, old), bytes(extent, new));
        let (a, b) = (self.use_atom(had, span), self.use_atom(has, span));
        let differ = self.b.compare(CompareOp::Ne, a, b, span);
        self.bad_extents_if(differ, Numbers::Elements, [own, extent], span);
    }

    /// Multiplies a product by a number, and ORs the overflow into that of the previous products.
    fn times(
        &mut self,
        product: Option<LocalId>,
        beyond: Option<LocalId>,
        by: ExprId,
        span: Span,
    ) -> (Option<LocalId>, Option<LocalId>) {
        let Some(before) = product else { return (Some(self.b.temp(by, span)), None) };
        let by = self.b.temp(by, span);
        let (a, b) = (self.b.read(before, span), self.b.read(by, span));
        let mut high = self.b.math(MathFn::MulHigh, vec![a, b], Type::Scalar(Scalar::U64), span);
        if let Some(beyond) = beyond {
            let beyond = self.b.read(beyond, span);
            high = self.b.binary(BinaryOp::Or, beyond, high, span);
        }
        let high = self.b.temp(high, span);
        let (a, b) = (self.b.read(before, span), self.b.read(by, span));
        let product = self.b.binary(BinaryOp::Mul, a, b, span);
        (Some(self.b.temp(product, span)), Some(high))
    }

    /// Reports constant extents that do not match.
    fn extents_differ(&mut self, own: i64, extent: i64, span: Span) -> Option<()> {
        let message = format!("a dimension of size {own} cannot be broadcast to size {extent}");
        let _: Value = self.error(Code::BadAssignment, span, message);
        None
    }
}
