//! The classes of expressions, for traversals that match some kinds and treat the others alike.
//!
//! Each [`ExprKind`] belongs to one [`Class`], which has its operands. A traversal matches the kinds that it handles,
//! and has one arm per class for the others. So a new kind of expression needs a class in [`ExprKind::class`] and its
//! instructions in the back end. Computations depend only on their operands; the few traversals that distinguish them
//! match [`Arith`] exhaustively.

use std::ops::Deref;

use super::{BinaryOp, CompareOp, Const, ConstantId, ExprId, ExprKind, LocalArrayId, LocalId, MathFn, SharedId};
use super::{SpecialRegister, UnaryOp};

/// The class of an expression.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Class<'a> {
    /// It has no operands.
    Leaf(Leaf),
    /// A value that depends only on its operands.
    Arith(Arith<'a>),
    /// `base + by`: a pointer at an offset from another one.
    Address {
        /// The pointer.
        base: ExprId,
        /// The offset, `I64`.
        by: ExprId,
        /// The unit of the offset.
        unit: Unit,
    },
    /// The current value at a pointer.
    Load(ExprId),
}

/// Expressions without operands.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Leaf {
    /// A constant.
    Const(Const),
    /// The current value of a local. The other leaves are constant for the lifetime of a thread.
    Local(LocalId),
    /// A special register.
    Special(SpecialRegister),
    /// The address of the first element of an array, or of memory, that the function or its module declares.
    Base(Base),
}

/// Declared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Base {
    /// A shared array of the block.
    Shared(SharedId),
    /// A constant array.
    Const(ConstantId),
    /// The block's dynamic shared memory.
    Dynamic,
    /// A thread-local array.
    Local(LocalArrayId),
}

/// Computations; the kinds of the same names document them.
#[derive(Clone, Copy, Debug, PartialEq)]
#[expect(missing_docs, reason = "each is the kind of expression of its name")]
pub enum Arith<'a> {
    Unary(UnaryOp, ExprId),
    Binary(BinaryOp, ExprId, ExprId),
    Compare(CompareOp, ExprId, ExprId),
    Select(ExprId, ExprId, ExprId),
    Convert(ExprId),
    Math(MathFn, &'a [ExprId]),
    Wrap { index: ExprId, extent: ExprId },
}

/// The unit of an offset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    /// Elements times the scale of [`ExprKind::Offset`].
    Elements,
    /// Bytes.
    Bytes,
}

impl ExprKind {
    /// The class that the kind belongs to.
    pub fn class(&self) -> Class<'_> {
        match *self {
            Self::Const(value) => Class::Leaf(Leaf::Const(value)),
            Self::Local(local) => Class::Leaf(Leaf::Local(local)),
            Self::Special(register) => Class::Leaf(Leaf::Special(register)),
            Self::SharedBase(array) => Class::Leaf(Leaf::Base(Base::Shared(array))),
            Self::ConstBase(array) => Class::Leaf(Leaf::Base(Base::Const(array))),
            Self::DynamicShared => Class::Leaf(Leaf::Base(Base::Dynamic)),
            Self::LocalBase(array) => Class::Leaf(Leaf::Base(Base::Local(array))),
            Self::Unary(op, a) => Class::Arith(Arith::Unary(op, a)),
            Self::Binary(op, a, b) => Class::Arith(Arith::Binary(op, a, b)),
            Self::Compare(op, a, b) => Class::Arith(Arith::Compare(op, a, b)),
            Self::Select(cond, a, b) => Class::Arith(Arith::Select(cond, a, b)),
            Self::Convert(a) => Class::Arith(Arith::Convert(a)),
            Self::Math(function, ref args) => Class::Arith(Arith::Math(function, args)),
            Self::Wrap { index, extent } => Class::Arith(Arith::Wrap { index, extent }),
            Self::Offset { base, index, scale: _ } => Class::Address { base, by: index, unit: Unit::Elements },
            Self::ByteOffset { base, bytes } => Class::Address { base, by: bytes, unit: Unit::Bytes },
            Self::Load(pointer, _) => Class::Load(pointer),
        }
    }

    /// The operands, in order of evaluation.
    pub fn operands(&self) -> Operands<'_> {
        match self.class() {
            Class::Leaf(_) => Operands::Many(&[]),
            Class::Arith(arith) => arith.operands(),
            Class::Address { base, by, .. } => Operands::two(base, by),
            Class::Load(pointer) => Operands::one(pointer),
        }
    }
}

impl<'a> Arith<'a> {
    /// The operands, in order of evaluation.
    pub fn operands(self) -> Operands<'a> {
        match self {
            Self::Unary(_, a) | Self::Convert(a) => Operands::one(a),
            Self::Binary(_, a, b) | Self::Compare(_, a, b) | Self::Wrap { index: a, extent: b } => Operands::two(a, b),
            Self::Select(cond, a, b) => Operands::Few([cond, a, b], 3),
            Self::Math(_, args) => Operands::Many(args),
        }
    }
}

/// The operands of an expression, in order of evaluation. They are stored inline, because traversals request them for
/// every expression.
#[derive(Clone, Copy, Debug)]
pub enum Operands<'a> {
    /// The first `n` of the array.
    Few([ExprId; 3], usize),
    /// Those of a function.
    Many(&'a [ExprId]),
}

impl Operands<'_> {
    const fn one(a: ExprId) -> Self {
        Self::Few([a, a, a], 1)
    }

    const fn two(a: ExprId, b: ExprId) -> Self {
        Self::Few([a, b, b], 2)
    }
}

impl Deref for Operands<'_> {
    type Target = [ExprId];

    fn deref(&self) -> &[ExprId] {
        match self {
            Self::Few(few, count) => &few[..*count],
            Self::Many(many) => many,
        }
    }
}

impl<'a> IntoIterator for Operands<'a> {
    type Item = ExprId;
    type IntoIter = OperandsIter<'a>;

    fn into_iter(self) -> OperandsIter<'a> {
        OperandsIter { operands: self, next: 0 }
    }
}

/// See [`Operands`].
#[derive(Clone, Debug)]
pub struct OperandsIter<'a> {
    operands: Operands<'a>,
    next: usize,
}

impl Iterator for OperandsIter<'_> {
    type Item = ExprId;

    fn next(&mut self) -> Option<ExprId> {
        let operand = self.operands.get(self.next).copied();
        self.next += 1;
        operand
    }
}

impl SpecialRegister {
    /// Whether it is uniform over a launch.
    pub const fn is_of_launch(self) -> bool {
        match self {
            Self::BlockDim(_) | Self::GridDim(_) | Self::WarpSize | Self::DynamicSharedBytes => true,
            Self::ThreadIdx(_) | Self::BlockIdx(_) | Self::LaneId | Self::OfRow(_) => false,
        }
    }

    /// Whether it is uniform over a block.
    pub const fn is_of_block(self) -> bool {
        match self {
            Self::ThreadIdx(_) | Self::LaneId => false,
            Self::BlockIdx(_)
            | Self::BlockDim(_)
            | Self::GridDim(_)
            | Self::WarpSize
            | Self::DynamicSharedBytes
            | Self::OfRow(_) => true,
        }
    }
}

impl Base {
    /// Whether it is the same memory for all threads of a block.
    pub const fn is_of_block(self) -> bool {
        match self {
            Self::Shared(_) | Self::Const(_) | Self::Dynamic => true,
            Self::Local(_) => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{BinaryOp, CompareOp, Const, ExprId, ExprKind, LocalId, MathFn, SpecialRegister, UnaryOp};
    use super::{ConstantId, LocalArrayId, SharedId};
    use crate::ir::Align;

    #[test]
    fn the_operands_are_those_that_are_mapped() {
        let [a, b, c] = [3, 1, 2].map(ExprId::new);
        for kind in [
            ExprKind::Const(Const::Null),
            ExprKind::Local(LocalId::new(0)),
            ExprKind::Special(SpecialRegister::LaneId),
            ExprKind::SharedBase(SharedId::new(0)),
            ExprKind::ConstBase(ConstantId::new(0)),
            ExprKind::DynamicShared,
            ExprKind::LocalBase(LocalArrayId::new(0)),
            ExprKind::Unary(UnaryOp::Neg, a),
            ExprKind::Binary(BinaryOp::Sub, a, b),
            ExprKind::Compare(CompareOp::Lt, a, b),
            ExprKind::Select(a, b, c),
            ExprKind::Convert(a),
            ExprKind::Math(MathFn::Fma, vec![a, b, c]),
            ExprKind::Wrap { index: a, extent: b },
            ExprKind::Offset { base: a, index: b, scale: 2 },
            ExprKind::ByteOffset { base: a, bytes: b },
            ExprKind::Load(a, Align::Natural),
        ] {
            let mut mapped = Vec::new();
            let same = kind.clone().map_operands(&mut |operand| {
                mapped.push(operand);
                operand
            });
            assert_eq!((&same, mapped.as_slice()), (&kind, &*kind.operands()));
        }
    }
}
