//! Expresses pointers as an array and indices.

use weft_artifact::Layout;

use super::{roots::Tie, stores::Writer};
use crate::ir::{BinaryOp, ExprId, ExprKind, LocalId, Type};

/// An index and the extent that it must be below.
pub(super) type Dim = (ExprId, LocalId);

/// The address of an element in terms of its array.
pub(super) struct ElementAddress {
    /// The array's data.
    pub(super) data: LocalId,
    /// One per dimension.
    pub(super) dims: Vec<Dim>,
    /// The linear index of the element, if the pointer is computed from it.
    pub(super) number: Option<ExprId>,
    /// The distance from the element's start in bytes.
    pub(super) offset: i128,
    /// The size of the element in bytes.
    pub(super) bytes: i128,
}

impl Writer<'_> {
    /// The element that a pointer points to; `None` if the pointer is not computed from one index per dimension.
    pub(super) fn place(&self, pointer: ExprId) -> Option<ElementAddress> {
        let (at, offset) = self.peel(pointer);
        if let Some(data) = self.function.local(at) {
            let tie = self.arrays.get(&data).filter(|tie| tie.shape.is_empty())?;
            return Some(ElementAddress { data, dims: Vec::new(), number: None, offset, bytes: tie.bytes.into() });
        }
        let (data, tie, dims, number) = match self.function.exprs[at].kind {
            ExprKind::Offset { base, index, scale } => {
                let (data, tie) = self.array(base)?;
                if i128::from(scale) * self.size(at) != i128::from(tie.bytes) {
                    return None;
                }
                // A linear index has a bound that the launch can pass only if the array is contiguous; `of_elements`
                // rejects others.
                (data, tie, self.of_elements(index, tie)?, Some(index))
            }
            ExprKind::ByteOffset { base, bytes } => {
                let (data, tie) = self.array(base)?;
                (data, tie, self.of_bytes(bytes, tie)?, None)
            }
            ExprKind::Const(_)
            | ExprKind::Local(_)
            | ExprKind::Special(_)
            | ExprKind::Unary(..)
            | ExprKind::Binary(..)
            | ExprKind::Compare(..)
            | ExprKind::Select(..)
            | ExprKind::Convert(_)
            | ExprKind::Math(..)
            | ExprKind::Load(..)
            | ExprKind::SharedBase(_)
            | ExprKind::ConstBase(_)
            | ExprKind::DynamicShared
            | ExprKind::LocalBase(_)
            | ExprKind::Wrap { .. } => return None,
        };
        Some(ElementAddress { data, dims, number, offset, bytes: tie.bytes.into() })
    }

    fn array(&self, base: ExprId) -> Option<(LocalId, &Tie)> {
        let data = self.function.local(base)?;
        Some((data, self.arrays.get(&data)?))
    }

    /// The indices in `(i0 * n1 + i1) * n2 + i2`.
    fn of_elements(&self, index: ExprId, tie: &Tie) -> Option<Vec<Dim>> {
        let mut extents = tie.shape.clone();
        match tie.layout {
            Layout::C => {}
            Layout::F => extents.reverse(),
            Layout::Any => return None,
        }
        let mut dims = Vec::new();
        let mut left = index;
        while let Some(extent) = extents.pop() {
            if extents.is_empty() {
                dims.push((left, extent));
                return Some(dims);
            }
            let ExprKind::Binary(BinaryOp::Add, rows, at) = self.function.exprs[left].kind else { return None };
            let ExprKind::Binary(BinaryOp::Mul, row, by) = self.function.exprs[rows].kind else { return None };
            if self.function.local(by) != Some(extent) {
                return None;
            }
            dims.push((at, extent));
            left = row;
        }
        None
    }

    /// The indices in `i0 * s0 + i1 * s1`.
    fn of_bytes(&self, bytes: ExprId, tie: &Tie) -> Option<Vec<Dim>> {
        let mut dims = Vec::new();
        let mut left = bytes;
        for (place, (extent, stride)) in tie.shape.iter().zip(&tie.strides).enumerate().rev() {
            let term = if place == 0 {
                left
            } else {
                let ExprKind::Binary(BinaryOp::Add, rest, term) = self.function.exprs[left].kind else { return None };
                left = rest;
                term
            };
            let ExprKind::Binary(BinaryOp::Mul, index, by) = self.function.exprs[term].kind else { return None };
            if self.function.local(by) != Some(*stride) {
                return None;
            }
            dims.push((index, *extent));
        }
        (!dims.is_empty()).then_some(dims)
    }

    /// Strips constant offsets from a pointer; returns the base pointer and the offset in bytes.
    pub(super) fn peel(&self, mut pointer: ExprId) -> (ExprId, i128) {
        let mut offset = 0;
        loop {
            // An index into an array is not stripped, even if it is a constant.
            let known = |base: ExprId, distance: ExprId| match self.function.local(base) {
                Some(local) if self.arrays.contains_key(&local) => None,
                Some(_) | None => self.function.int(distance),
            };
            let (base, by) = match self.function.exprs[pointer].kind {
                ExprKind::Convert(base) if matches!(self.function.exprs[base].ty, Type::Ptr(..)) => (base, 0),
                ExprKind::Offset { base, index, scale } => match known(base, index) {
                    Some(index) => (base, index * i128::from(scale) * self.size(pointer)),
                    None => return (pointer, offset),
                },
                ExprKind::ByteOffset { base, bytes } => match known(base, bytes) {
                    Some(bytes) => (base, bytes),
                    None => return (pointer, offset),
                },
                ExprKind::Const(_)
                | ExprKind::Local(_)
                | ExprKind::Special(_)
                | ExprKind::Unary(..)
                | ExprKind::Binary(..)
                | ExprKind::Compare(..)
                | ExprKind::Select(..)
                | ExprKind::Convert(_)
                | ExprKind::Math(..)
                | ExprKind::Load(..)
                | ExprKind::SharedBase(_)
                | ExprKind::ConstBase(_)
                | ExprKind::DynamicShared
                | ExprKind::LocalBase(_)
                | ExprKind::Wrap { .. } => return (pointer, offset),
            };
            (pointer, offset) = (base, offset + by);
        }
    }

    /// The size in bytes of the value that a pointer points to.
    pub(super) fn size(&self, pointer: ExprId) -> i128 {
        match self.function.exprs[pointer].ty {
            Type::Ptr(scalar, _) | Type::Scalar(scalar) => scalar.size_bytes().into(),
        }
    }
}
