//! Stride analysis: the difference of a value between neighbors, which are two adjacent threads or two iterations.

use std::cell::Cell;

use super::{Linear, Precision, bytes_per_step, is_preserved};
use crate::ir::{
    Arith, Class, ExprId, Function, Leaf, LocalId, SpecialRegister, Stmt, StmtKind, Type, UnaryOp, for_each_stmt,
};

/// The number of expressions that one query visits. Locals are replaced by their values, which can be large.
const MAX_VISITED: u32 = 512;

/// The difference of a value between neighbors; of a pointer in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stride {
    /// The value has not been visited yet. Only while strides of locals are computed.
    Undefined,
    /// A constant. If it is 0, the value is uniform.
    Constant(i64),
    /// The same between all neighbors.
    Uniform,
    /// Not known.
    Unknown,
}

impl Stride {
    /// The stride of a uniform value.
    pub(crate) const ZERO: Self = Self::Constant(0);

    /// The stride of a local with several assignments: it is not known which one each neighbor executed last.
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::Undefined, known) | (known, Self::Undefined) => known,
            (one, other) if one == other => one,
            (Self::Constant(_) | Self::Uniform | Self::Unknown, _) => Self::Unknown,
        }
    }

    fn plus(self, other: Self, factor: i128) -> Self {
        match (self, other) {
            (Self::Undefined, _) | (_, Self::Undefined) => Self::Undefined,
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
            (Self::Constant(a), Self::Constant(b)) => {
                let sum = i128::from(b).checked_mul(factor).and_then(|b| b.checked_add(a.into()));
                sum.and_then(|sum| i64::try_from(sum).ok()).map_or(Self::Uniform, Self::Constant)
            }
            (Self::Uniform, _) | (_, Self::Uniform) => Self::Uniform,
        }
    }

    /// The stride of the product with a uniform value, which may be a known constant.
    fn times(self, factor: Option<i128>) -> Self {
        match (self, factor) {
            (Self::Constant(0) | Self::Undefined | Self::Unknown, _) => self,
            (Self::Constant(_), Some(factor)) => Self::ZERO.plus(self, factor),
            (Self::Constant(_) | Self::Uniform, _) => Self::Uniform,
        }
    }
}

/// The direction that strides are measured in.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Along {
    /// Adjacent threads of a block along an axis.
    Threads(u8),
    /// Iterations of a loop, which one thread executes.
    Iterations,
}

/// What is known about a local.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum LocalStride {
    Known(Stride),
    /// It has this value.
    Value(ExprId),
}

impl LocalStride {
    /// Nothing is known.
    pub(crate) const UNKNOWN: Self = Self::Known(Stride::Unknown);
}

/// The query.
#[derive(Clone, Copy)]
pub(crate) struct Strides<'a> {
    pub function: &'a Function,
    pub along: Along,
    pub precision: Precision,
    /// What is known about each local.
    pub local: &'a dyn Fn(LocalId) -> LocalStride,
}

impl Strides<'_> {
    /// The stride of a value.
    pub(crate) fn stride(&self, root: ExprId) -> Stride {
        self.within(root, &Cell::new(MAX_VISITED))
    }

    fn within(&self, root: ExprId, effort: &Cell<u32>) -> Stride {
        // A local may depend on its own value in an earlier iteration.
        let Some(left) = effort.get().checked_sub(1) else { return Stride::Unknown };
        effort.set(left);
        let of = |id: ExprId| self.within(id, effort);
        let ty = self.function.exprs[root].ty;
        match self.function.class(root) {
            Class::Leaf(Leaf::Const(_)) => Stride::ZERO,
            Class::Leaf(Leaf::Special(register)) => self.register(register),
            Class::Leaf(Leaf::Base(base)) => {
                let same = self.along == Along::Iterations || self.is_estimate() || base.is_of_block();
                if same { Stride::ZERO } else { Stride::Unknown }
            }
            Class::Leaf(Leaf::Local(local)) => match (self.local)(local) {
                LocalStride::Known(stride) => stride,
                LocalStride::Value(value) => of(value),
            },
            Class::Arith(Arith::Binary(op, a, b)) => match Linear::of(op, ty, self.precision) {
                Some(Linear::Sum(factor)) => {
                    let (a, b) = (of(a), of(b));
                    self.derived(a.plus(b, factor), a == Stride::ZERO && b == Stride::ZERO)
                }
                Some(Linear::Product) => {
                    let (of_a, of_b) = (of(a), of(b));
                    match (of_a, of_b) {
                        (Stride::ZERO, Stride::ZERO) => Stride::ZERO,
                        (stride, Stride::ZERO) => self.derived(stride.times(self.function.int(b)), false),
                        (Stride::ZERO, stride) => self.derived(stride.times(self.function.int(a)), false),
                        (Stride::Undefined, _) | (_, Stride::Undefined) => Stride::Undefined,
                        (Stride::Constant(_) | Stride::Uniform | Stride::Unknown, _) => Stride::Unknown,
                    }
                }
                None => self.uniform(&[a, b], effort),
            },
            Class::Arith(Arith::Unary(UnaryOp::Neg, a)) if self.is_estimate() || ty == Type::I64 => {
                of(a).times(Some(-1))
            }
            Class::Arith(Arith::Convert(a)) if is_preserved(self.function.exprs[a].ty, ty, self.precision) => of(a),
            // An index within its array is not changed.
            Class::Arith(Arith::Wrap { index, extent }) if self.is_estimate() => match of(extent) {
                Stride::ZERO => of(index),
                Stride::Undefined => Stride::Undefined,
                Stride::Constant(_) | Stride::Uniform | Stride::Unknown => Stride::Unknown,
            },
            Class::Address { base, by, .. } => {
                let (base, by) = (of(base), of(by));
                let scaled = by.times(Some(bytes_per_step(self.function, root)));
                self.derived(base.plus(scaled, 1), base == Stride::ZERO && by == Stride::ZERO)
            }
            Class::Load(pointer) if self.is_estimate() => self.uniform(&[pointer], effort),
            Class::Load(_) => Stride::Unknown,
            Class::Arith(arith) => self.uniform(&arith.operands(), effort),
        }
    }

    fn is_estimate(&self) -> bool {
        self.precision == Precision::Estimate
    }

    /// The stride of an operation on operands, which are all uniform or not. A value in which the thread index cancels
    /// out still mentions it: it cannot be computed outside of the thread loop.
    fn derived(&self, stride: Stride, of_uniform: bool) -> Stride {
        if stride == Stride::ZERO && !of_uniform && !self.is_estimate() { Stride::Uniform } else { stride }
    }

    /// The stride of an operation that is only known to be uniform if all operands are.
    fn uniform(&self, operands: &[ExprId], effort: &Cell<u32>) -> Stride {
        for &operand in operands {
            match self.within(operand, effort) {
                Stride::ZERO => {}
                Stride::Undefined => return Stride::Undefined,
                Stride::Constant(_) | Stride::Uniform | Stride::Unknown => return Stride::Unknown,
            }
        }
        Stride::ZERO
    }

    fn register(&self, register: SpecialRegister) -> Stride {
        let Along::Threads(axis) = self.along else { return Stride::ZERO };
        match register {
            SpecialRegister::ThreadIdx(of) => Stride::Constant(i64::from(of == axis)),
            SpecialRegister::LaneId if self.is_estimate() => Stride::Constant(i64::from(axis == 0)),
            SpecialRegister::LaneId => Stride::Unknown,
            SpecialRegister::BlockIdx(_)
            | SpecialRegister::BlockDim(_)
            | SpecialRegister::GridDim(_)
            | SpecialRegister::WarpSize
            | SpecialRegister::DynamicSharedBytes
            | SpecialRegister::OfRow(_) => Stride::ZERO,
        }
    }
}

/// By the local's index: an estimate of the stride along an axis, as if all threads executed the same assignments of a
/// body. Parameters and the locals of `uniform` have the stride 0, and those of `unknown` none that is known.
pub(crate) fn estimated_strides(
    function: &Function,
    body: &[Stmt],
    axis: u8,
    uniform: &[LocalId],
    unknown: &[LocalId],
) -> Vec<Stride> {
    let mut strides = vec![Stride::Undefined; function.locals.len()];
    for local in function.params.iter().chain(uniform) {
        strides[local.index()] = Stride::ZERO;
    }
    for local in unknown {
        strides[local.index()] = Stride::Unknown;
    }
    loop {
        let before = strides.clone();
        for_each_stmt(body, &mut |stmt| {
            for local in stmt.kind.assigned() {
                let value = if let StmtKind::Assign(_, value) = stmt.kind {
                    estimated_stride(function, axis, &strides, value)
                } else {
                    Stride::Unknown
                };
                strides[local.index()] = strides[local.index()].join(value);
            }
        });
        if strides == before {
            return strides;
        }
    }
}

/// An estimate of the stride of a value along an axis, given those of locals.
pub(crate) fn estimated_stride(function: &Function, axis: u8, strides: &[Stride], value: ExprId) -> Stride {
    let local = |local: LocalId| LocalStride::Known(strides[local.index()]);
    let strides = Strides { function, along: Along::Threads(axis), precision: Precision::Estimate, local: &local };
    strides.stride(value)
}
