//! Lowering of warp matches, warp reductions and butterflies.

use weft_artifact::Scalar;

use crate::{
    backend::host::plan::{
        plan_ir::cells::{LANES, Make},
        warp::lower::{Site, butterfly::Butterfly},
    },
    ir::{
        Align, BinaryOp, Block, CompareOp, Const, ExprId, ExprKind, LocalId, Op, SharedId, StmtKind, Type,
        WarpReduction,
    },
};

impl Site<'_> {
    /// `for lane in range(32): body`; `lane` is a local of type `I32`.
    fn each_lane(&mut self, body: impl FnOnce(&mut Make<'_>, LocalId) -> Block) {
        let first = self.make().int(0);
        let lane = self.assigned("lane", first);
        let mut make = self.make();
        let (at, end) = (make.read(lane), make.int(LANES));
        let over = make.compare(CompareOp::Ge, at, end);
        let leave = vec![make.stmt(StmtKind::Break)];
        let mut iteration = vec![make.stmt(StmtKind::If { cond: over, then: leave, otherwise: Block::new() })];
        iteration.extend(body(&mut make, lane));
        let (at, one) = (make.read(lane), make.int(1));
        let next = make.binary(BinaryOp::Add, at, one);
        let step = vec![make.stmt(StmtKind::Assign(lane, next))];
        self.push(StmtKind::Loop { body: iteration, step });
    }

    /// Stores a value into the thread's cell of the array for its type. Returns the array, the type, and a new local
    /// for the number of the warp's first thread.
    fn shared_value(&mut self, value: ExprId) -> Option<(SharedId, Scalar, LocalId)> {
        let elem = self.function.exprs[value].ty.scalar()?;
        let array = self.cells.of_values(self.module, elem, self.span);
        self.leave(array, value);
        Some((array, elem, self.local("first", Type::I64)))
    }

    /// A reduction over all lanes that are present, for thread loops: computed once for each warp.
    fn reduce_all(&mut self, (op, neutral): (BinaryOp, i128), (array, elem): (SharedId, Scalar), result: LocalId) {
        let here = self.cells.here(self.module, self.span);
        let one = self.make().expr(ExprKind::Const(Const::Int(1)), Type::Scalar(Scalar::U8));
        self.leave(here, one);
        self.once_a_warp(|this| {
            let bits = this.lane_bits(here, 0);
            let ty = Type::Scalar(elem);
            let start = this.make().expr(ExprKind::Const(Const::Int(neutral)), ty);
            let total = this.assigned("total", start);
            this.each_lane(|make, lane| {
                let (first, wide) = (make.thread(), make.read(lane));
                let wide = make.wide(wide);
                let thread = make.binary(BinaryOp::Add, first, wide);
                let there = make.cell_of(array, elem, thread);
                let is_here = make.has(bits, lane);
                let neutral = make.expr(ExprKind::Const(Const::Int(neutral)), ty);
                let there = make.select(is_here, there, neutral);
                let before = make.read(total);
                let more = make.binary(op, before, there);
                vec![make.stmt(StmtKind::Assign(total, more))]
            });
            this.leave_to_all(array, total);
        });
        let value = self.of_warp(array, elem);
        self.push(StmtKind::Assign(result, value));
    }

    pub(crate) fn match_lanes(&mut self, mask: ExprId, value: ExprId, lanes: LocalId, all: Option<LocalId>) {
        let mask = self.assigned("mask", mask);
        let Some((array, elem, first)) = self.shared_value(value) else { return };
        let (here, _) = self.gathered(mask, None, [true, false]);
        let start = self.make().first_thread();
        self.push(StmtKind::Assign(first, start));
        let mut make = self.make();
        let own = make.thread();
        let own = make.cell_of(array, elem, own);
        let none = make.int(0);
        let own = self.assigned("own", own);
        let same = self.assigned("same", none);
        self.each_lane(|make, lane| {
            let thread = make.lane_of(first, lane);
            let there = make.cell_of(array, elem, thread);
            let mine = make.read(own);
            let equal = make.compare(CompareOp::Eq, there, mine);
            let (one, at) = (make.int(1), make.read(lane));
            let bit = make.binary(BinaryOp::Shl, one, at);
            let zero = make.int(0);
            let bit = make.select(equal, bit, zero);
            let before = make.read(same);
            let more = make.binary(BinaryOp::Or, before, bit);
            vec![make.stmt(StmtKind::Assign(same, more))]
        });
        let mut make = self.make();
        let (bits, of) = (make.read(same), make.read(here));
        let found = make.binary(BinaryOp::And, bits, of);
        let Some(all) = all else {
            self.push(StmtKind::Assign(lanes, found));
            self.gone(mask);
            return;
        };
        let of = make.read(here);
        let is_all = make.compare(CompareOp::Eq, found, of);
        self.push(StmtKind::Assign(all, is_all));
        let mut make = self.make();
        let (is_all, of, none) = (make.read(all), make.read(here), make.int(0));
        let found = make.select(is_all, of, none);
        self.push(StmtKind::Assign(lanes, found));
        self.gone(mask);
    }

    pub(crate) fn reduce(&mut self, reduction: WarpReduction, mask: ExprId, value: ExprId, result: LocalId) {
        let of_all = self.function.int(mask).is_some_and(|mask| mask == -1 || mask == i128::from(u32::MAX));
        let mask = self.assigned("mask", mask);
        let Some((array, elem, first)) = self.shared_value(value) else { return };
        let (op, neutral) = match reduction {
            WarpReduction::Add => (BinaryOp::Add, 0),
            WarpReduction::Or => (BinaryOp::Or, 0),
            WarpReduction::Xor => (BinaryOp::Xor, 0),
            WarpReduction::And if elem.is_signed_int() => (BinaryOp::And, -1),
            WarpReduction::And => (BinaryOp::And, i128::from(u32::MAX)),
            WarpReduction::Min if elem.is_signed_int() => (BinaryOp::Min, i128::from(i32::MAX)),
            WarpReduction::Min => (BinaryOp::Min, i128::from(u32::MAX)),
            WarpReduction::Max if elem.is_signed_int() => (BinaryOp::Max, i128::from(i32::MIN)),
            WarpReduction::Max => (BinaryOp::Max, 0),
        };
        if of_all && !self.cells.stacks {
            self.reduce_all((op, neutral), (array, elem), result);
            return;
        }
        let ty = Type::Scalar(elem);
        let (here, _) = self.gathered(mask, None, [true, false]);
        let start = self.make().first_thread();
        self.push(StmtKind::Assign(first, start));
        let start = self.make().expr(ExprKind::Const(Const::Int(neutral)), ty);
        let total = self.assigned("total", start);
        // The lowest lane of the mask computes the reduction and stores it to the cells of all lanes of the mask.
        let before = self.out.len();
        self.each_lane(|make, lane| {
            let thread = make.lane_of(first, lane);
            let there = make.cell_of(array, elem, thread);
            let is_here = make.has(here, lane);
            let neutral = make.expr(ExprKind::Const(Const::Int(neutral)), ty);
            let there = make.select(is_here, there, neutral);
            let before = make.read(total);
            let more = make.binary(op, before, there);
            vec![make.stmt(StmtKind::Assign(total, more))]
        });
        self.each_lane(|make, lane| {
            let cond = make.has(here, lane);
            let thread = make.lane_of(first, lane);
            let index = make.shifted(thread, LANES);
            let pointer = make.cell(array, elem, index);
            let value = make.read(total);
            let then = vec![make.stmt(StmtKind::Store { pointer, value, align: Align::Natural })];
            vec![make.stmt(StmtKind::If { cond, then, otherwise: Block::new() })]
        });
        let then = self.out.split_off(before);
        let mut make = self.make();
        let (one, lane, of) = (make.int(1), make.lane(), make.int(1));
        let own = make.binary(BinaryOp::Shl, one, lane);
        let below = make.binary(BinaryOp::Sub, own, of);
        let lanes = make.read(here);
        let below = make.binary(BinaryOp::And, lanes, below);
        let none = make.int(0);
        let cond = make.compare(CompareOp::Eq, below, none);
        self.push(StmtKind::If { cond, then, otherwise: Block::new() });
        self.gone(mask);
        let mut make = self.make();
        let thread = make.thread();
        let value = make.cell_of(array, elem, thread);
        self.push(StmtKind::Assign(result, value));
        if self.cells.stacks {
            self.barrier(mask);
        }
    }

    /// Reduces a local by a butterfly, once for the warp.
    pub(super) fn fold(&mut self, butterfly: &Butterfly) {
        let value = butterfly.value;
        let ty = self.function.locals[value].ty;
        let Some(elem) = ty.scalar() else { return };
        let array = self.cells.of_values(self.module, elem, self.span);
        let own = self.make().read(value);
        self.leave(array, own);
        self.push(StmtKind::Op { op: Op::OfWarps, results: Vec::new(), args: Vec::new() });
        let before = self.out.len();
        let total = self.local("total", ty);
        let mut make = self.make();
        let first = make.thread();
        let index = make.shifted(first, LANES);
        let pointer = make.cell(array, elem, index);
        self.push(StmtKind::Op { op: Op::LaneFold(butterfly.reduction), results: vec![total], args: vec![pointer] });
        self.leave_to_all(array, total);
        let then = self.out.split_off(before);
        let cond = self.make().is_first_lane();
        self.push(StmtKind::If { cond, then, otherwise: Block::new() });
        let reduced = self.of_warp(array, elem);
        self.push(StmtKind::Assign(value, reduced));
        if self.cells.warp_blocks {
            self.cells.reduced.push(value);
        }
    }
}
