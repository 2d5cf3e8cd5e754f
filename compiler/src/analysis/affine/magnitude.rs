//! Bounds of the absolute values of integers, from which it follows that sums do not wrap.

use std::cell::Cell;

use weft_artifact::{EXTENT_BITS, Scalar, SlotField, SlotSource};

use crate::{
    analysis::Rematerializable,
    ir::{Arith, BinaryOp, Class, Const, ExprId, Function, Leaf, LocalId, SpecialRegister, Type},
};

/// The maximum bits of a value to which a thread index can be added without overflow.
const MAX_BITS: u32 = u64::BITS - 2;

/// The maximum bits of a value of which a few can be added without overflow.
const MAX_SMALL_BITS: u32 = u64::BITS - 6;

/// The bits of the number of threads of a block that is not merged with others.
const BLOCK_BITS: u32 = 10;

/// The number of expressions that one query visits.
const MAX_VISITED: u32 = 512;

/// The query.
#[derive(Clone, Copy)]
pub(crate) struct Magnitude<'a> {
    pub function: &'a Function,
    /// Its rematerializable locals.
    pub fixed: &'a Rematerializable,
    /// The maximum number of threads along an axis.
    pub max_row: u64,
}

impl Magnitude<'_> {
    /// Whether the sum of a value and a thread index may wrap.
    pub(crate) fn wraps(&self, value: ExprId) -> bool {
        !self.fits(value, 0)
    }

    /// Whether a value with `more` bits does not wrap if a thread index is added to it.
    pub(crate) fn fits(&self, value: ExprId, more: u32) -> bool {
        self.bits(value) + more <= MAX_BITS
    }

    /// Whether an integer is so small that sums of a few such integers are exact in 64 bits.
    pub(crate) fn is_small(&self, value: ExprId) -> bool {
        self.bits(value) <= MAX_SMALL_BITS
    }

    /// A number of bits such that the integer's absolute value is less than two to the power of it.
    pub(crate) fn bits(&self, root: ExprId) -> u32 {
        self.bits_within(root, &Cell::new(MAX_VISITED))
    }

    fn bits_within(&self, root: ExprId, effort: &Cell<u32>) -> u32 {
        let expr = &self.function.exprs[root];
        let unknown = match expr.ty {
            Type::Scalar(scalar) => 8 * scalar.size_bytes() as u32,
            Type::Ptr(..) => u64::BITS,
        };
        let Some(left) = effort.get().checked_sub(1) else { return unknown };
        effort.set(left);
        let bits = |id: ExprId| self.bits_within(id, effort);
        let known = match expr.kind.class() {
            Class::Leaf(Leaf::Const(Const::Int(value))) => u128::BITS - value.unsigned_abs().leading_zeros(),
            Class::Leaf(Leaf::Local(local)) => match self.fixed.value(local) {
                Some(value) => bits(value),
                None if self.function.locals[local].small => i32::BITS,
                None if is_extent(self.function, local) => EXTENT_BITS,
                None => unknown,
            },
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(_) | SpecialRegister::BlockDim(_))) => {
                self.max_row.ilog2() + 1
            }
            Class::Leaf(Leaf::Special(SpecialRegister::OfRow(_))) => i32::BITS - 1 + BLOCK_BITS,
            Class::Leaf(Leaf::Special(_)) => i32::BITS - 1,
            Class::Arith(Arith::Convert(a)) if self.function.exprs[a].ty.scalar().is_some_and(Scalar::is_int) => {
                bits(a)
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::Sub, a, b)) => bits(a).max(bits(b)) + 1,
            Class::Arith(Arith::Binary(BinaryOp::Mul, a, b)) => bits(a) + bits(b),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => unknown,
        };
        known.min(unknown)
    }
}

/// Whether a local is an extent of an argument, and so has at most [`EXTENT_BITS`] bits.
pub(crate) fn is_extent(function: &Function, local: LocalId) -> bool {
    let mut slots = function.params.iter().zip(&function.slots);
    slots
        .any(|(&param, slot)| param == local && matches!(slot, SlotSource::Argument { field: SlotField::Shape(_), .. }))
}
