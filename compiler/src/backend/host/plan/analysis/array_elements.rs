//! Pointers into arrays of the thread, as elements at indices.

use crate::{
    ir::{ExprId, ExprKind, Function, LocalArrayId},
    normalize::fold_constants::{Values, known_value},
};

/// Where a pointer points into an array of the thread.
pub(crate) struct Element {
    pub array: LocalArrayId,
    /// Indices, with the number of elements that each counts; their sum is the index of the element. `None` if the
    /// pointer may point to another type or between elements, or if an index may have changed since it was read.
    pub terms: Option<Vec<(ExprId, u32)>>,
}

impl Element {
    /// The index of the element, if it is a constant.
    pub(crate) fn constant(&self, function: &Function) -> Option<i128> {
        self.terms.as_ref()?.iter().try_fold(0_i128, |sum, &(index, scale)| {
            let index = known_value(function, &Values::new(), index)?;
            sum.checked_add(index.checked_mul(scale.into())?)
        })
    }
}

/// The element that a pointer points to; `None` if it points into no array of the thread. `sole` has for each local the
/// value of its only assignment.
pub(crate) fn element(function: &Function, sole: &[Option<ExprId>], pointer: ExprId) -> Option<Element> {
    let of = |base: ExprId| element(function, sole, base);
    match function.exprs[pointer].kind {
        ExprKind::LocalBase(array) => Some(Element { array, terms: Some(Vec::new()) }),
        ExprKind::Local(local) => {
            let mut at = of(sole.get(local.index()).copied().flatten()?)?;
            if at.constant(function).is_none() {
                at.terms = None;
            }
            Some(at)
        }
        ExprKind::Offset { base, index, scale } => {
            let mut at = of(base)?;
            if let Some(terms) = &mut at.terms {
                terms.push((index, scale));
            }
            Some(at)
        }
        ExprKind::ByteOffset { base, .. } | ExprKind::Convert(base) => of(base).map(|at| Element { terms: None, ..at }),
        ExprKind::Const(_)
        | ExprKind::Special(_)
        | ExprKind::Unary(..)
        | ExprKind::Binary(..)
        | ExprKind::Compare(..)
        | ExprKind::Select(..)
        | ExprKind::Load(..)
        | ExprKind::Wrap { .. }
        | ExprKind::Math(..)
        | ExprKind::SharedBase(_)
        | ExprKind::ConstBase(_)
        | ExprKind::DynamicShared => None,
    }
}
