//! Builders for cells: arrays of shared memory with one element for each thread of a block, padded by a warp on both
//! sides.
//!
//! Expressions are trees, so each method makes new ones.

use weft_artifact::Scalar;

use crate::{
    backend::host::plan::plan_ir,
    ir::{
        Align, BinaryOp, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, SharedId, Space, SpecialRegister,
        Stmt, StmtKind, Type, UnaryOp,
    },
    source::Span,
};

/// Lanes of a warp.
pub(crate) const LANES: i128 = plan_ir::LANES as i128;
/// Length of an array of cells. The padding on both sides keeps accesses to the cells of neighboring lanes in bounds.
pub(crate) const CELLS: u64 = plan_ir::MAX_THREADS + 2 * LANES as u64;

/// Builds expressions with one span.
pub(crate) struct Make<'a> {
    /// The function that contains the expressions.
    pub(crate) function: &'a mut Function,
    /// Their span.
    pub(crate) span: Span,
    /// Each warp is a block of its own.
    pub(crate) warp_blocks: bool,
}

impl Make<'_> {
    pub(crate) fn stmt(&self, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.span }
    }

    pub(crate) fn expr(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }

    pub(crate) fn int(&mut self, value: i128) -> ExprId {
        self.expr(ExprKind::Const(Const::Int(value)), Type::I32)
    }

    pub(crate) fn read(&mut self, local: LocalId) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.expr(ExprKind::Local(local), ty)
    }

    /// `a op b`, with the type of `a`.
    pub(crate) fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.function.exprs[a].ty;
        self.expr(ExprKind::Binary(op, a, b), ty)
    }

    pub(crate) fn not(&mut self, a: ExprId) -> ExprId {
        let ty = self.function.exprs[a].ty;
        self.expr(ExprKind::Unary(UnaryOp::Not, a), ty)
    }

    pub(crate) fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        self.expr(ExprKind::Compare(op, a, b), Type::BOOL)
    }

    pub(crate) fn select(&mut self, cond: ExprId, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.function.exprs[a].ty;
        self.expr(ExprKind::Select(cond, a, b), ty)
    }

    pub(crate) fn wide(&mut self, a: ExprId) -> ExprId {
        self.expr(ExprKind::Convert(a), Type::I64)
    }

    pub(crate) fn lane(&mut self) -> ExprId {
        let lane = if self.warp_blocks { SpecialRegister::ThreadIdx(0) } else { SpecialRegister::LaneId };
        self.expr(ExprKind::Special(lane), Type::I32)
    }

    /// Whether the thread is the first lane of its warp.
    pub(crate) fn is_first_lane(&mut self) -> ExprId {
        let (lane, zero) = (self.lane(), self.int(0));
        self.compare(CompareOp::Eq, lane, zero)
    }

    /// The number of the thread in its block; `I64`.
    pub(crate) fn thread(&mut self) -> ExprId {
        use SpecialRegister::{BlockDim, ThreadIdx};
        if self.warp_blocks {
            let lane = self.lane();
            return self.wide(lane);
        }
        let [x, y, z, dim_x, dim_y] =
            [ThreadIdx(0), ThreadIdx(1), ThreadIdx(2), BlockDim(0), BlockDim(1)].map(|register| {
                let register = self.expr(ExprKind::Special(register), Type::I32);
                self.wide(register)
            });
        let planes = self.binary(BinaryOp::Mul, z, dim_y);
        let row = self.binary(BinaryOp::Add, planes, y);
        let before = self.binary(BinaryOp::Mul, row, dim_x);
        self.binary(BinaryOp::Add, before, x)
    }

    /// The number of the first thread of the warp; `I64`.
    pub(crate) fn first_thread(&mut self) -> ExprId {
        if self.warp_blocks {
            return self.expr(ExprKind::Const(Const::Int(0)), Type::I64);
        }
        let thread = self.thread();
        let warps = self.expr(ExprKind::Const(Const::Int(-LANES)), Type::I64);
        self.binary(BinaryOp::And, thread, warps)
    }

    /// `a + by`; both are `I64`.
    pub(crate) fn shifted(&mut self, a: ExprId, by: i128) -> ExprId {
        let by = self.expr(ExprKind::Const(Const::Int(by)), Type::I64);
        self.binary(BinaryOp::Add, a, by)
    }

    /// The address of element `index`; the cell of thread 0 is element 32.
    pub(crate) fn cell(&mut self, array: SharedId, elem: Scalar, index: ExprId) -> ExprId {
        let ty = Type::Ptr(elem, Space::Shared);
        let base = self.expr(ExprKind::SharedBase(array), ty);
        self.expr(ExprKind::Offset { base, index, scale: 1 }, ty)
    }

    /// Loads the cell of a thread.
    pub(crate) fn cell_of(&mut self, array: SharedId, elem: Scalar, thread: ExprId) -> ExprId {
        let index = self.shifted(thread, LANES);
        let pointer = self.cell(array, elem, index);
        self.expr(ExprKind::Load(pointer, Align::Natural), Type::Scalar(elem))
    }

    /// Whether bit `lane` of `bits` is set.
    pub(crate) fn has(&mut self, bits: LocalId, lane: LocalId) -> ExprId {
        let (bits, lane) = (self.read(bits), self.read(lane));
        let shifted = self.binary(BinaryOp::Shr, bits, lane);
        let one = self.int(1);
        let bit = self.binary(BinaryOp::And, shifted, one);
        let zero = self.int(0);
        self.compare(CompareOp::Ne, bit, zero)
    }

    /// The number of a lane's thread, where `first` holds the number of the warp's first thread.
    pub(crate) fn lane_of(&mut self, first: LocalId, lane: LocalId) -> ExprId {
        let (first, lane) = (self.read(first), self.read(lane));
        let lane = self.wide(lane);
        self.binary(BinaryOp::Add, first, lane)
    }

    /// Loads the cell of the lane whose number differs in at most one bit: the cell at that distance below or above, so
    /// that LLVM emits contiguous loads.
    pub(crate) fn neighbor(&mut self, array: SharedId, elem: Scalar, bit: LocalId) -> ExprId {
        let (lane, of) = (self.lane(), self.read(bit));
        let is_set = self.binary(BinaryOp::And, lane, of);
        let zero = self.int(0);
        let is_set = self.compare(CompareOp::Ne, is_set, zero);
        let [below, above] = [BinaryOp::Sub, BinaryOp::Add].map(|step| {
            let (thread, by) = (self.thread(), self.read(bit));
            let by = self.wide(by);
            let thread = self.binary(step, thread, by);
            self.cell_of(array, elem, thread)
        });
        self.select(is_set, below, above)
    }
}
