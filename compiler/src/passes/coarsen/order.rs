//! Chooses the arrangement of the copies of a thread along x.
//!
//! Adjacent copies get wider accesses if each access to global memory has unit stride over threads with elements of at
//! most four bytes, or is uniform, or is an atomic operation with a data-dependent address. Otherwise they would make
//! the launch's coalesced accesses strided.

use super::{CopyLocals, Order};
use crate::ir::{
    Arith, BinaryOp, Class, ExprId, Function, Leaf, Module, Op, Space, SpecialRegister, StmtKind, Type, UnaryOp, Unit,
    for_each_expr_of_block, for_each_stmt,
};

/// The maximum size of elements of which several are accessed at once.
const LARGEST: i64 = 4;

/// The difference of a value between adjacent threads along x; of a pointer in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Growth {
    /// The value has not been visited yet.
    New,
    By(i64),
    Unknown,
}

impl Growth {
    fn join(self, other: Self) -> Self {
        match (self, other) {
            (Self::New, known) | (known, Self::New) => known,
            (Self::By(a), Self::By(b)) if a == b => self,
            (Self::By(_) | Self::Unknown, Self::By(_) | Self::Unknown) => Self::Unknown,
        }
    }

    fn with(self, other: Self, op: impl Fn(i64, i64) -> Option<i64>) -> Self {
        match (self, other) {
            (Self::New, _) | (_, Self::New) => Self::New,
            (Self::By(a), Self::By(b)) => op(a, b).map_or(Self::Unknown, Self::By),
            (Self::Unknown, _) | (_, Self::Unknown) => Self::Unknown,
        }
    }

    fn times(self, factor: i128) -> Self {
        self.with(Self::By(0), |a, _| i64::try_from(factor).ok().and_then(|factor| a.checked_mul(factor)))
    }
}

/// The order of the copies along x.
pub(super) fn along_x(module: &Module, copies: CopyLocals) -> Order {
    if copies[0].is_none() {
        return Order::Contiguous;
    }
    let merges = module.functions.iter().all(|(id, function)| {
        let growths = if Some(id) == module.kernel {
            growths(function, copies)
        } else {
            vec![Growth::Unknown; function.locals.len()]
        };
        all_merge(function, &growths)
    });
    if merges { Order::Contiguous } else { Order::Strided }
}

/// By the local's index: its growth. The index of the copy does not count.
pub(super) fn growths(function: &Function, copies: CopyLocals) -> Vec<Growth> {
    let mut growths = vec![Growth::New; function.locals.len()];
    for local in function.params.iter().chain(copies.iter().flatten()) {
        growths[local.index()] = Growth::By(0);
    }
    loop {
        let before = growths.clone();
        for_each_stmt(&function.body, &mut |stmt| {
            for local in stmt.kind.assigned() {
                let value = match stmt.kind {
                    StmtKind::Assign(_, value) => growth(function, &growths, value),
                    StmtKind::Store { .. }
                    | StmtKind::Op { .. }
                    | StmtKind::Call { .. }
                    | StmtKind::If { .. }
                    | StmtKind::Loop { .. }
                    | StmtKind::Break
                    | StmtKind::Continue
                    | StmtKind::Return(_) => Growth::Unknown,
                };
                growths[local.index()] = growths[local.index()].join(value);
            }
        });
        if growths == before {
            return growths;
        }
    }
}

pub(super) fn growth(function: &Function, growths: &[Growth], root: ExprId) -> Growth {
    let of = |id| growth(function, growths, id);
    let fixed = |ids: &[ExprId]| {
        ids.iter().fold(Growth::By(0), |all, id| all.with(of(*id), |a, b| (a == 0 && b == 0).then_some(0)))
    };
    match function.class(root) {
        Class::Leaf(Leaf::Local(local)) => growths[local.index()],
        Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => Growth::By(1),
        Class::Leaf(Leaf::Const(_) | Leaf::Special(_) | Leaf::Base(_)) => Growth::By(0),
        Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => of(a).with(of(b), i64::checked_add),
        Class::Arith(Arith::Binary(BinaryOp::Sub | BinaryOp::SubExact, a, b)) => of(a).with(of(b), i64::checked_sub),
        Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
            match (function.int(a), function.int(b)) {
                (Some(factor), _) => of(b).times(factor),
                (_, Some(factor)) => of(a).times(factor),
                (None, None) => fixed(&[a, b]),
            }
        }
        Class::Arith(Arith::Unary(UnaryOp::Neg, a)) => of(a).times(-1),
        Class::Arith(Arith::Convert(a))
            if function.exprs[root].ty.scalar().is_none_or(weft_artifact::Scalar::is_int) =>
        {
            of(a)
        }
        // `Wrap` returns an index within range unchanged.
        Class::Arith(Arith::Wrap { index, extent }) => of(index).with(fixed(&[extent]), |a, _| Some(a)),
        Class::Address { base, by, unit } => {
            let bytes = match unit {
                Unit::Bytes => 1,
                Unit::Elements => step(function, root),
            };
            of(base).with(of(by).times(bytes), i64::checked_add)
        }
        Class::Load(pointer) => fixed(&[pointer]),
        Class::Arith(arith) => fixed(&arith.operands()),
    }
}

/// The number of bytes of a step of an [`ExprKind::Offset`](crate::ir::ExprKind::Offset).
pub(super) fn step(function: &Function, offset: ExprId) -> i128 {
    let expr = &function.exprs[offset];
    let size = if let Type::Ptr(elem, _) = expr.ty { elem.size_bytes() } else { 1 };
    let scale = if let crate::ir::ExprKind::Offset { scale, .. } = expr.kind { scale } else { 1 };
    i128::from(size) * i128::from(scale)
}

/// Whether each access to global memory has unit stride over small elements, or is uniform.
fn all_merge(function: &Function, growths: &[Growth]) -> bool {
    let merges = |pointer: ExprId| match function.exprs[pointer].ty {
        Type::Ptr(elem, Space::Global | Space::Generic) => match growth(function, growths, pointer) {
            Growth::By(bytes) => bytes == 0 || (bytes <= LARGEST && bytes == elem.size_bytes() as i64),
            Growth::New => true,
            Growth::Unknown => false,
        },
        Type::Ptr(_, Space::Shared | Space::Local | Space::Constant) | Type::Scalar(_) => true,
    };
    let mut all = true;
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if let Class::Load(pointer) = function.class(id) {
            all &= merges(pointer);
        }
    });
    for_each_stmt(&function.body, &mut |stmt| match &stmt.kind {
        StmtKind::Store { pointer, .. } => all &= merges(*pointer),
        // Atomic operations never merge. Those with data-dependent addresses are scattered in either arrangement.
        StmtKind::Op { op: Op::Atomic { .. }, args, .. } => {
            all &= args.iter().all(|arg| merges(*arg) || growth(function, growths, *arg) == Growth::Unknown);
        }
        StmtKind::Op { args, .. } => all &= args.iter().all(|arg| merges(*arg)),
        StmtKind::Assign(..)
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => {}
    });
    all
}
