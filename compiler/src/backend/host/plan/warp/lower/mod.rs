//! Lowering of warp operations to warp barriers and *cells*, arrays of shared memory with one element for each thread.
//!
//! ```text
//!                                        store shuffled[t] = $x
//!  $y = shuffle.down $m, $x, 4, 32       warp_barrier $m
//!                                        $y = lane + 4 <= 31 ? shuffled[t + 4] : shuffled[t]
//!
//!                                        store here[t] = 1 | 2 * $p
//!                                        of_warps: once for the threads from w to w + 31
//!                                            $bits = lane_bits.1 here[w]
//!  $v = vote.any $m, $p                      store some[w..w + 32] = $bits
//!                                            store here[w..w + 32] = 0
//!                                        $v = (some[t] & $m) != 0
//! ```
//!
//! A value that is computed once for a warp is stored to the cells of all its lanes, so that the threads of a row load
//! a row of cells. If each warp is a block, it is stored to the first lane's cell, and loaded once for the block: the
//! value is uniform, and so is what the program computes from it. On fibers, only the lanes of the mask wait for each
//! other, so each lane reads the 32 cells of `here` itself.
//!
//! Each thread writes only its own cells, or, in a reduction, those of the lanes in its mask. Lanes at other positions,
//! with other masks, are therefore not disturbed. The cell `here` of a lane that is not present is 0, because it
//! returned, took another branch, or is beyond the end of the block; such a lane takes no part in votes, matches and
//! reductions. A shuffle that reads its cell gets the value that it stored last.
//!
//! Cells must not be overwritten before all lanes have read them. On fibers, the lanes of one mask continue as soon as
//! all of them have arrived, so a second barrier follows each read. In thread loops, where all threads of the block
//! finish a region before the next one begins, two arrays of cells alternate instead (double buffering).

mod butterfly;
mod lanes;
mod matrix;

use weft_artifact::Scalar;

use crate::{
    backend::host::plan::plan_ir::cells::{CELLS, LANES, Make},
    ir::{
        Align, BinaryOp, Block, CompareOp, Const, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Module, Op,
        SharedArray, SharedId, SharedKind, Shuffle, Space, Stmt, StmtKind, SyncScope, Type, Vote, for_each_stmt,
    },
    normalize::split_live_ranges,
    source::Span,
};

/// The arrays of cells of a module.
#[derive(Debug)]
pub(crate) struct Cells {
    /// Threads run on fibers.
    pub(crate) stacks: bool,
    /// Each warp is a block of its own.
    pub(crate) warp_blocks: bool,
    /// For each type of values: its two arrays, and the index of the one used last.
    values: Vec<(Scalar, [SharedId; 2], usize)>,
    /// A byte for each thread: bit 0 if the lane is present, bit 1 if its predicate is true.
    here: Option<SharedId>,
    /// For each bit of `here`, the ballot of the warp, stored for each of its lanes.
    bits: [Option<SharedId>; 2],
    /// For each type, the arrays of the operands of products of matrices.
    operands: Vec<(Scalar, SharedId)>,
    /// By the local's index: how often the kernel mentions it; empty on fibers.
    mentions: Vec<u32>,
    /// The locals that butterflies reduce, where each warp is a block.
    reduced: Vec<LocalId>,
}

/// Whether an operation exchanges values between the lanes of a warp, unlike a barrier.
fn is_of_warp(op: Op) -> bool {
    let row = op.row();
    row.together == SyncScope::Warp && !row.results.is_empty()
}

/// Whether statements contain such an operation.
pub(crate) fn holds(body: &[Stmt]) -> bool {
    let mut found = false;
    for_each_stmt(body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Op { op, .. } if is_of_warp(op)));
    found
}

/// Lowers the warp operations of a module whose threads run on fibers. `ActiveMask` remains: only the runtime can
/// compute it.
pub(crate) fn lower_for_stacks(module: &mut Module) {
    let mut cells = Cells::new(true, false);
    let ids: Vec<_> = module.functions.iter().map(|(id, _)| id).collect();
    for id in ids {
        let mut body = std::mem::take(&mut module.functions[id].body);
        let mut function = module.functions[id].clone();
        cells.lower(module, &mut function, &mut body);
        function.body = body;
        module.functions[id] = function;
    }
    if let Some(kernel) = module.kernel {
        let mut function = module.functions[kernel].clone();
        let mut body = std::mem::take(&mut function.body);
        cells.clear(&mut function, &mut body);
        function.body = body;
        module.functions[kernel] = function;
    }
}

/// Lowers the warp operations of a kernel whose threads run in thread loops; with `warp_blocks` each warp is a block.
pub(crate) fn lower_for_loops(module: &mut Module, function: &mut Function, body: &mut Block, warp_blocks: bool) {
    let mut cells = Cells::new(false, warp_blocks);
    cells.mentions = butterfly::mentions(function, body);
    cells.lower(module, function, body);
    cells.clear(function, body);
    // Each of them varies before its reduction, and is uniform after it.
    for local in cells.reduced {
        split_live_ranges::split_one(function, body, local);
    }
}

impl Cells {
    const fn new(stacks: bool, warp_blocks: bool) -> Self {
        Self {
            stacks,
            warp_blocks,
            values: Vec::new(),
            here: None,
            bits: [None; 2],
            operands: Vec::new(),
            mentions: Vec::new(),
            reduced: Vec::new(),
        }
    }

    fn lower(&mut self, module: &mut Module, function: &mut Function, block: &mut Block) {
        if !holds(block) {
            return;
        }
        let mut out = Block::with_capacity(block.len());
        let mut stmts = std::mem::take(block).into_iter();
        loop {
            if let Some(found) = butterfly::find(function, &self.mentions, stmts.as_slice()) {
                let span = found.span;
                let mut site = Site { cells: self, module, function, span, out: &mut out };
                site.fold(&found);
                stmts.nth(butterfly::LENGTH - 1);
                continue;
            }
            let Some(mut stmt) = stmts.next() else { break };
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.lower(module, function, inner);
            }
            match stmt.kind {
                StmtKind::Op { op: Op::ActiveMask, .. } if self.stacks => out.push(stmt),
                StmtKind::Op { op, results, args } if is_of_warp(op) => {
                    let mut site = Site { cells: self, module, function, span: stmt.span, out: &mut out };
                    site.operation(op, &results, &args);
                }
                StmtKind::Assign(..)
                | StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => out.push(stmt),
            }
        }
        *block = out;
    }

    /// Clears the cells of `here` at the start of a kernel. The first lane of each warp does so for all lanes,
    /// including those beyond the end of the block.
    fn clear(&self, function: &mut Function, body: &mut Block) {
        let Some(here) = self.here else { return };
        let span = function.span;
        let mut make = Make { function, span, warp_blocks: self.warp_blocks };
        let then = nobody(&mut make, here);
        let cond = make.is_first_lane();
        let all = make.int(-1);
        let branch = make.stmt(StmtKind::If { cond, then, otherwise: Block::new() });
        let barrier = make.stmt(StmtKind::Op { op: Op::WarpBarrier, results: Vec::new(), args: vec![all] });
        let of_warps = make.stmt(StmtKind::Op { op: Op::OfWarps, results: Vec::new(), args: Vec::new() });
        let start = if self.stacks { vec![branch, barrier] } else { vec![of_warps, branch] };
        body.splice(0..0, start);
    }

    fn new_array(module: &mut Module, elem: Scalar, span: Span) -> SharedId {
        let name = "lanes".to_owned();
        module.shared.push(SharedArray {
            name,
            kind: SharedKind::Cells,
            elem,
            len: CELLS,
            shape: Vec::new(),
            align: 64,
            span,
        })
    }

    /// The array for the next value of a type.
    pub(crate) fn of_values(&mut self, module: &mut Module, elem: Scalar, span: Span) -> SharedId {
        let known = self.values.iter_mut().find(|(of, ..)| *of == elem);
        if let Some((_, arrays, next)) = known {
            *next = 1 - *next;
            return arrays[*next];
        }
        let first = Self::new_array(module, elem, span);
        let second = if self.stacks { first } else { Self::new_array(module, elem, span) };
        self.values.push((elem, [first, second], 0));
        first
    }

    /// The array for the ballot of one bit of `here`.
    fn bits(&mut self, module: &mut Module, bit: usize, span: Span) -> SharedId {
        *self.bits[bit].get_or_insert_with(|| Self::new_array(module, Scalar::I32, span))
    }

    pub(crate) fn here(&mut self, module: &mut Module, span: Span) -> SharedId {
        *self.here.get_or_insert_with(|| Self::new_array(module, Scalar::U8, span))
    }
}

/// Clears a warp's cells of `here`, in the code of its first thread.
fn nobody(make: &mut Make<'_>, here: SharedId) -> Block {
    let mut clears = Block::new();
    for bytes in (0..LANES).step_by(8) {
        let at = make.thread();
        let at = make.shifted(at, LANES + bytes);
        let pointer = make.cell(here, Scalar::U8, at);
        let pointer = make.expr(ExprKind::Convert(pointer), Type::Ptr(Scalar::U64, Space::Shared));
        let value = make.expr(ExprKind::Const(Const::Int(0)), Type::Scalar(Scalar::U64));
        clears.push(make.stmt(StmtKind::Store { pointer, value, align: Align::Natural }));
    }
    clears
}

/// The position of one warp operation.
pub(crate) struct Site<'a> {
    pub(crate) cells: &'a mut Cells,
    pub(crate) module: &'a mut Module,
    pub(crate) function: &'a mut Function,
    pub(crate) span: Span,
    pub(crate) out: &'a mut Block,
}

impl Site<'_> {
    pub(crate) fn make(&mut self) -> Make<'_> {
        Make { function: self.function, span: self.span, warp_blocks: self.cells.warp_blocks }
    }

    pub(crate) fn push(&mut self, kind: StmtKind) {
        self.out.push(Stmt { kind, span: self.span });
    }

    pub(crate) fn local(&mut self, name: &str, ty: Type) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Variable, ty))
    }

    pub(crate) fn assigned(&mut self, name: &str, value: ExprId) -> LocalId {
        let local = self.local(name, self.function.exprs[value].ty);
        self.push(StmtKind::Assign(local, value));
        local
    }

    pub(crate) fn barrier(&mut self, mask: LocalId) {
        let mask = self.make().read(mask);
        self.push(StmtKind::Op { op: Op::WarpBarrier, results: Vec::new(), args: vec![mask] });
    }

    /// Stores a value into the thread's own cell.
    pub(crate) fn leave(&mut self, array: SharedId, value: ExprId) {
        let mut make = self.make();
        let Some(elem) = make.function.exprs[value].ty.scalar() else { return };
        let thread = make.thread();
        let index = make.shifted(thread, LANES);
        let pointer = make.cell(array, elem, index);
        self.push(StmtKind::Store { pointer, value, align: Align::Natural });
    }

    fn operation(&mut self, op: Op, results: &[LocalId], args: &[ExprId]) {
        match (op, args, results) {
            (Op::ActiveMask, [], &[result]) => {
                let mut make = self.make();
                let (all, yes) = (make.int(-1), make.expr(ExprKind::Const(Const::Bool(true)), Type::BOOL));
                self.vote(Vote::Ballot, all, yes, result);
            }
            (Op::Shuffle(shuffle), &[mask, value, by, width], &[result]) => {
                self.shuffle(shuffle, [mask, value, by, width], result);
            }
            (Op::Vote(vote), &[mask, predicate], &[result]) => self.vote(vote, mask, predicate, result),
            (Op::MatchAny, &[mask, value], &[lanes]) => self.match_lanes(mask, value, lanes, None),
            (Op::MatchAll, &[mask, value], &[lanes, all]) => self.match_lanes(mask, value, lanes, Some(all)),
            (Op::WarpReduce(reduction), &[mask, value], &[result]) => self.reduce(reduction, mask, value, result),
            (Op::Multiply(_), _, []) => {}
            (Op::Multiply(product), ..) => self.multiply(product, results, args),
            (_, [mask, ..], []) => {
                // The results are not read, so only the barrier remains.
                self.push(StmtKind::Op { op: Op::WarpBarrier, results: Vec::new(), args: vec![*mask] });
            }
            (_, [], []) => {}
            // An unknown operation is left to the code generator, which reports it.
            _ => self.push(StmtKind::Op { op, results: results.to_vec(), args: args.to_vec() }),
        }
    }

    fn shuffle(&mut self, shuffle: Shuffle, [mask, value, by, width]: [ExprId; 4], result: LocalId) {
        let Some(elem) = self.function.exprs[value].ty.scalar() else { return };
        let array = self.cells.of_values(self.module, elem, self.span);
        let mask = self.assigned("mask", mask);
        let known = self.function.int(by).map(|by| by & (LANES - 1));
        let is_whole = self.function.int(width) == Some(LANES);
        let mut make = self.make();
        let lanes = make.int(LANES - 1);
        let by = make.binary(BinaryOp::And, by, lanes);
        let by = self.assigned("by", by);
        // The bits of a lane number that count within its subgroup of `width` lanes.
        let mut make = self.make();
        let one = make.int(1);
        let within = make.binary(BinaryOp::Sub, width, one);
        let within = self.assigned("within", within);
        self.leave(array, value);
        self.barrier(mask);
        let mut make = self.make();
        let own = make.thread();
        let own = make.cell_of(array, elem, own);
        let read = match shuffle {
            Shuffle::Up | Shuffle::Down => {
                let lane = make.lane();
                let distance = make.read(by);
                let wide = make.read(by);
                let wide = make.wide(wide);
                let (step, compare) = match shuffle {
                    Shuffle::Up => (BinaryOp::Sub, CompareOp::Ge),
                    Shuffle::Down | Shuffle::Index | Shuffle::Xor => (BinaryOp::Add, CompareOp::Le),
                };
                let other = make.binary(step, lane, distance);
                let (lane, within) = (make.lane(), make.read(within));
                let end = match shuffle {
                    Shuffle::Up => {
                        let outside = make.not(within);
                        make.binary(BinaryOp::And, lane, outside)
                    }
                    Shuffle::Down | Shuffle::Index | Shuffle::Xor => make.binary(BinaryOp::Or, lane, within),
                };
                let is_in = make.compare(compare, other, end);
                let thread = make.thread();
                let thread = make.binary(step, thread, wide);
                let there = make.cell_of(array, elem, thread);
                make.select(is_in, there, own)
            }
            Shuffle::Xor => {
                let (lane, by_lane) = (make.lane(), make.read(by));
                let other = make.binary(BinaryOp::Xor, lane, by_lane);
                let (lane, within) = (make.lane(), make.read(within));
                let end = make.binary(BinaryOp::Or, lane, within);
                let is_in = make.compare(CompareOp::Le, other, end);
                let there = self.exchanged((array, elem), by, known);
                self.make().select(is_in, there, own)
            }
            Shuffle::Index if make.warp_blocks && legal!("lower_warps.whole-warp", is_whole) => {
                // `by` is less than 32.
                let by = make.read(by);
                let thread = make.wide(by);
                let there = make.cell_of(array, elem, thread);
                self.broadcast(there)
            }
            Shuffle::Index => {
                let lane = make.lane();
                let part = make.read(within);
                let part = make.not(part);
                let part = make.binary(BinaryOp::And, lane, part);
                let (by, within) = (make.read(by), make.read(within));
                let in_part = make.binary(BinaryOp::And, by, within);
                let other = make.binary(BinaryOp::Or, part, in_part);
                let other = make.wide(other);
                let first = make.first_thread();
                let thread = make.binary(BinaryOp::Add, first, other);
                make.cell_of(array, elem, thread)
            }
        };
        self.push(StmtKind::Assign(result, read));
        if self.cells.stacks {
            self.barrier(mask);
        }
    }

    /// Loads the cell of the lane whose number differs in the bits of `by`, which may be a constant. If at most one bit
    /// is set, which is the common case, the loads are contiguous.
    fn exchanged(&mut self, (array, elem): (SharedId, Scalar), by: LocalId, known: Option<i128>) -> ExprId {
        let is_bit = known.map(|by| by & (by - 1) == 0);
        if is_bit == Some(true) {
            return self.make().neighbor(array, elem, by);
        }
        let there = self.local("there", Type::Scalar(elem));
        let mut make = self.make();
        let (thread, bits) = (make.thread(), make.read(by));
        let bits = make.wide(bits);
        let other = make.binary(BinaryOp::Xor, thread, bits);
        let any = make.cell_of(array, elem, other);
        let any = make.stmt(StmtKind::Assign(there, any));
        if is_bit == Some(false) {
            self.out.push(any);
            return self.make().read(there);
        }
        let (bits, less, one) = (make.read(by), make.read(by), make.int(1));
        let less = make.binary(BinaryOp::Sub, less, one);
        let more = make.binary(BinaryOp::And, bits, less);
        let none = make.int(0);
        let cond = make.compare(CompareOp::Eq, more, none);
        let near = make.neighbor(array, elem, by);
        let near = make.stmt(StmtKind::Assign(there, near));
        self.push(StmtKind::If { cond, then: vec![near], otherwise: vec![any] });
        self.make().read(there)
    }

    /// Stores the thread's presence and predicate to its cell of `here`, and waits for the lanes of the mask. Returns
    /// the lanes of the mask that are present and those whose predicate is true, where `wanted`. [`Self::gone`] must
    /// follow.
    pub(crate) fn gathered(
        &mut self,
        mask: LocalId,
        predicate: Option<ExprId>,
        wanted: [bool; 2],
    ) -> (LocalId, LocalId) {
        let here = self.cells.here(self.module, self.span);
        let mut make = self.make();
        let byte = Type::Scalar(Scalar::U8);
        let one = make.expr(ExprKind::Const(Const::Int(1)), byte);
        let state = match predicate {
            Some(predicate) => {
                let truth = make.expr(ExprKind::Convert(predicate), byte);
                let place = make.expr(ExprKind::Const(Const::Int(1)), byte);
                let truth = make.binary(BinaryOp::Shl, truth, place);
                make.binary(BinaryOp::Or, truth, one)
            }
            None => one,
        };
        self.leave(here, state);
        let mut found = [self.local("here", Type::I32), self.local("some", Type::I32)];
        if !self.cells.stacks {
            let arrays = [0, 1].map(|bit| wanted[bit].then(|| self.cells.bits(self.module, bit, self.span)));
            self.once_a_warp(|this| {
                for (array, bit) in arrays.into_iter().zip(0..) {
                    let Some(array) = array else { continue };
                    let bits = this.lane_bits(here, bit);
                    this.leave_to_all(array, bits);
                }
            });
            for (array, local) in arrays.into_iter().zip(&mut found) {
                let Some(array) = array else { continue };
                let bits = self.of_warp(array, Scalar::I32);
                let mut make = self.make();
                let of = make.read(mask);
                let bits = make.binary(BinaryOp::And, bits, of);
                *local = self.assigned("lanes", bits);
            }
            let [here, some] = found;
            return (here, some);
        }
        self.barrier(mask);
        for (bit, local) in found.iter_mut().enumerate().filter(|&(bit, _)| wanted[bit]) {
            let mut make = self.make();
            let first = make.first_thread();
            let index = make.shifted(first, LANES);
            let pointer = make.cell(here, Scalar::U8, index);
            self.push(StmtKind::Op { op: Op::LaneBits(bit as u8), results: vec![*local], args: vec![pointer] });
            let mut make = self.make();
            let (bits, of) = (make.read(*local), make.read(mask));
            let bits = make.binary(BinaryOp::And, bits, of);
            *local = self.assigned("lanes", bits);
        }
        let [here, some] = found;
        (here, some)
    }

    /// Runs the statements that `make` builds once for each warp, and then clears the warp's cells of `here`.
    pub(crate) fn once_a_warp(&mut self, make: impl FnOnce(&mut Self)) {
        let here = self.cells.here(self.module, self.span);
        self.push(StmtKind::Op { op: Op::OfWarps, results: Vec::new(), args: Vec::new() });
        let before = self.out.len();
        make(self);
        let mut then = self.out.split_off(before);
        let mut make = self.make();
        then.extend(nobody(&mut make, here));
        let cond = make.is_first_lane();
        self.push(StmtKind::If { cond, then, otherwise: Block::new() });
    }

    /// The ballot of bit `bit` over the cells of `here`, in the code of a warp's first thread.
    pub(crate) fn lane_bits(&mut self, here: SharedId, bit: u8) -> LocalId {
        let bits = self.local("bits", Type::I32);
        let mut make = self.make();
        let first = make.thread();
        let index = make.shifted(first, LANES);
        let pointer = make.cell(here, Scalar::U8, index);
        self.push(StmtKind::Op { op: Op::LaneBits(bit), results: vec![bits], args: vec![pointer] });
        bits
    }

    /// Stores a value of a warp for all its lanes, in the code of its first thread. [`Self::of_warp`] loads it.
    pub(crate) fn leave_to_all(&mut self, array: SharedId, value: LocalId) {
        let Some(elem) = self.function.locals[value].ty.scalar() else { return };
        let cells = if self.cells.warp_blocks { 1 } else { LANES };
        for lane in 0..cells {
            let mut make = self.make();
            let thread = make.thread();
            let index = make.shifted(thread, LANES + lane);
            let (pointer, value) = (make.cell(array, elem, index), make.read(value));
            self.push(StmtKind::Store { pointer, value, align: Align::Natural });
        }
    }

    /// The value of a warp that its first thread has stored, in the code of each thread.
    pub(crate) fn of_warp(&mut self, array: SharedId, elem: Scalar) -> ExprId {
        let mut make = self.make();
        if !make.warp_blocks {
            let thread = make.thread();
            return make.cell_of(array, elem, thread);
        }
        let first = make.first_thread();
        let value = make.cell_of(array, elem, first);
        self.broadcast(value)
    }

    /// Assigns a load from a uniform address to a local, which is uniform: the cell is not written before the next
    /// barrier.
    fn broadcast(&mut self, load: ExprId) -> ExprId {
        let local = self.assigned("of_warp", load);
        self.function.locals[local].broadcast = true;
        self.make().read(local)
    }

    /// On fibers, waits until all lanes of the mask have read the cells, and then clears the thread's cell of `here`.
    pub(crate) fn gone(&mut self, mask: LocalId) {
        if !self.cells.stacks {
            return;
        }
        let here = self.cells.here(self.module, self.span);
        self.barrier(mask);
        let zero = self.make().expr(ExprKind::Const(Const::Int(0)), Type::Scalar(Scalar::U8));
        self.leave(here, zero);
    }

    fn vote(&mut self, vote: Vote, mask: ExprId, predicate: ExprId, result: LocalId) {
        let mask = self.assigned("mask", mask);
        let (here, some) = self.gathered(mask, Some(predicate), [matches!(vote, Vote::All | Vote::Uniform), true]);
        let mut make = self.make();
        let ones = make.read(some);
        let value = match vote {
            Vote::Ballot => ones,
            Vote::Any => {
                let none = make.int(0);
                make.compare(CompareOp::Ne, ones, none)
            }
            Vote::All => {
                let all = make.read(here);
                make.compare(CompareOp::Eq, ones, all)
            }
            Vote::Uniform => {
                let all = make.read(here);
                let is_all = make.compare(CompareOp::Eq, ones, all);
                let (ones, none) = (make.read(some), make.int(0));
                let is_none = make.compare(CompareOp::Eq, ones, none);
                make.binary(BinaryOp::Or, is_all, is_none)
            }
        };
        let ty = self.function.locals[result].ty;
        let value =
            if self.function.exprs[value].ty == ty { value } else { self.make().expr(ExprKind::Convert(value), ty) };
        self.push(StmtKind::Assign(result, value));
        self.gone(mask);
    }
}
