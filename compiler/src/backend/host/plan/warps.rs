//! Takes what the lanes of a warp do together apart: into barriers of the warp, and cells of shared memory, one a thread.
//!
//! ```text
//!                                        store shuffled[t] = $x
//!  $y = shuffle.down $m, $x, 4, 32       warp_barrier $m
//!                                        $y = lane + 4 <= 31 ? shuffled[t + 4] : shuffled[t]
//!
//!                                        store here[t] = 1 | 2 * $p
//!                                        warp_barrier $m
//!  $v = vote.any $m, $p                  $some = lane_bits.1 here[t & ~31]
//!                                        warp_barrier $m
//!                                        store here[t] = 0
//!                                        $v = ($some & $m) != 0
//! ```
//!
//! A thread writes no cell but its own, so that lanes which are elsewhere, with masks of their own, are not disturbed.
//! Where a lane is not there (it has returned, it went another way, the block ends within the warp), its cell of `here`
//! is 0, and it does not count; what a shuffle reads of it is whatever it left there last.
//!
//! On stacks, lanes of a mask go on as soon as all of them have come, and would overwrite what lanes of another one have
//! not read yet: a second barrier comes behind each read. In loops, where all threads of the block come to the end of a
//! piece before any goes on, two arrays in turn do that.

use weft_artifact::Scalar;

use super::cells::{CELLS, LANES, Make};
use crate::{
    ir::{
        Align, BinaryOp, Block, CompareOp, Const, ExprId, ExprKind, Function, Local, LocalId, LocalKind, Module, Op,
        SharedArray, SharedId, SharedKind, Shuffle, Space, Stmt, StmtKind, Together, Type, Vote, WarpReduction,
        for_each_stmt,
    },
    source::Span,
};

/// The arrays of cells.
#[derive(Debug)]
pub(crate) struct Cells {
    /// Threads have stacks.
    stacks: bool,
    /// Of each type of values, two arrays, and which is next.
    values: Vec<(Scalar, [SharedId; 2], usize)>,
    /// Who is here, and with what.
    here: Option<SharedId>,
}

/// Whether threads of a warp do something together that is more than a barrier: it gives them something of each other.
fn is_of_warp(op: Op) -> bool {
    let row = op.row();
    row.together == Together::Warp && !row.results.is_empty()
}

/// Whether a list of statements holds such an operation.
pub(crate) fn holds(body: &[Stmt]) -> bool {
    let mut found = false;
    for_each_stmt(body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Op { op, .. } if is_of_warp(op)));
    found
}

/// Takes the operations of a module apart whose threads have stacks. Which lanes are here together only the runtime knows.
pub(crate) fn lower_for_stacks(module: &mut Module) {
    let mut cells = Cells { stacks: true, values: Vec::new(), here: None };
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

/// Takes the operations of a kernel apart whose threads are loops.
pub(crate) fn lower_for_loops(module: &mut Module, function: &mut Function, body: &mut Block) {
    let mut cells = Cells { stacks: false, values: Vec::new(), here: None };
    cells.lower(module, function, body);
    cells.clear(function, body);
}

impl Cells {
    fn lower(&mut self, module: &mut Module, function: &mut Function, block: &mut Block) {
        if !holds(block) {
            return;
        }
        let mut out = Block::with_capacity(block.len());
        for mut stmt in block.drain(..) {
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

    /// At the start of a kernel nobody is here: the first lane of a warp says so for all, those beyond the block's end
    /// among them.
    fn clear(&self, function: &mut Function, body: &mut Block) {
        let Some(here) = self.here else { return };
        let span = function.span;
        let mut make = Make { function, span };
        let lane = make.lane();
        let zero = make.int(0);
        let cond = make.compare(CompareOp::Eq, lane, zero);
        let mut then = Block::new();
        for bytes in (0..LANES).step_by(8) {
            let at = make.thread();
            let at = make.shifted(at, LANES + bytes);
            let pointer = make.cell(here, Scalar::U8, at);
            let pointer = make.expr(ExprKind::Convert(pointer), Type::Ptr(Scalar::U64, Space::Shared));
            let value = make.expr(ExprKind::Const(Const::Int(0)), Type::Scalar(Scalar::U64));
            then.push(make.stmt(StmtKind::Store { pointer, value, align: Align::Natural }));
        }
        let all = make.int(-1);
        let start = [
            make.stmt(StmtKind::If { cond, then, otherwise: Block::new() }),
            make.stmt(StmtKind::Op { op: Op::WarpBarrier, results: Vec::new(), args: vec![all] }),
        ];
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

    /// The array that the next value of a type goes into.
    fn of_values(&mut self, module: &mut Module, elem: Scalar, span: Span) -> SharedId {
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

    fn here(&mut self, module: &mut Module, span: Span) -> SharedId {
        *self.here.get_or_insert_with(|| Self::new_array(module, Scalar::U8, span))
    }
}

/// One operation.
struct Site<'a> {
    cells: &'a mut Cells,
    module: &'a mut Module,
    function: &'a mut Function,
    span: Span,
    out: &'a mut Block,
}

impl Site<'_> {
    fn make(&mut self) -> Make<'_> {
        Make { function: self.function, span: self.span }
    }

    fn push(&mut self, kind: StmtKind) {
        self.out.push(Stmt { kind, span: self.span });
    }

    fn local(&mut self, name: &str, ty: Type) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Variable, ty))
    }

    fn assigned(&mut self, name: &str, value: ExprId) -> LocalId {
        let local = self.local(name, self.function.exprs[value].ty);
        self.push(StmtKind::Assign(local, value));
        local
    }

    fn barrier(&mut self, mask: LocalId) {
        let mask = self.make().read(mask);
        self.push(StmtKind::Op { op: Op::WarpBarrier, results: Vec::new(), args: vec![mask] });
    }

    /// Stores into the thread's own cell.
    fn leave(&mut self, array: SharedId, value: ExprId) {
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
            (_, [mask, ..], []) => {
                // Nobody reads what it gives.
                self.push(StmtKind::Op { op: Op::WarpBarrier, results: Vec::new(), args: vec![*mask] });
            }
            (_, [], []) => {}
            // What is not known here stays: the back end says so.
            _ => self.push(StmtKind::Op { op, results: results.to_vec(), args: args.to_vec() }),
        }
    }

    fn shuffle(&mut self, shuffle: Shuffle, [mask, value, by, width]: [ExprId; 4], result: LocalId) {
        let Some(elem) = self.function.exprs[value].ty.scalar() else { return };
        let array = self.cells.of_values(self.module, elem, self.span);
        let mask = self.assigned("mask", mask);
        let known = self.function.int(by).map(|by| by & (LANES - 1));
        let mut make = self.make();
        let lanes = make.int(LANES - 1);
        let by = make.binary(BinaryOp::And, by, lanes);
        let by = self.assigned("by", by);
        // The bits of a lane that count within its part of the warp.
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

    /// What is in the cell of the lane whose number differs in some bits, which may be known. Where that is one bit, as it
    /// nearly always is, rows of cells are read.
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

    /// Says that the thread is here, and with what; waits; gives the lanes of the mask that are here, and those of them
    /// that came with a truth. [`Self::gone`] must follow.
    fn gathered(&mut self, mask: LocalId, predicate: Option<ExprId>) -> (LocalId, LocalId) {
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
        self.barrier(mask);
        let mut found = [self.local("here", Type::I32), self.local("some", Type::I32)];
        for (bit, local) in found.iter_mut().enumerate() {
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

    /// Waits until all lanes have read who is here: the thread is not any more.
    fn gone(&mut self, mask: LocalId) {
        let here = self.cells.here(self.module, self.span);
        self.barrier(mask);
        let zero = self.make().expr(ExprKind::Const(Const::Int(0)), Type::Scalar(Scalar::U8));
        self.leave(here, zero);
    }

    fn vote(&mut self, vote: Vote, mask: ExprId, predicate: ExprId, result: LocalId) {
        let mask = self.assigned("mask", mask);
        let (here, some) = self.gathered(mask, Some(predicate));
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

    /// `for lane in range(32): body`; the lane is a local of `I32`.
    fn each_lane(&mut self, body: impl FnOnce(&mut Make<'_>, LocalId) -> Block) {
        let first = self.make().int(0);
        let lane = self.assigned("lane", first);
        let mut make = self.make();
        let (at, end) = (make.read(lane), make.int(LANES));
        let over = make.compare(CompareOp::Ge, at, end);
        let leave = vec![make.stmt(StmtKind::Break)];
        let mut turn = vec![make.stmt(StmtKind::If { cond: over, then: leave, otherwise: Block::new() })];
        turn.extend(body(&mut make, lane));
        let (at, one) = (make.read(lane), make.int(1));
        let next = make.binary(BinaryOp::Add, at, one);
        let step = vec![make.stmt(StmtKind::Assign(lane, next))];
        self.push(StmtKind::Loop { body: turn, step });
    }

    /// Leaves a value in the array for its type, and the thread's number of the first lane's behind.
    fn shared_value(&mut self, value: ExprId) -> Option<(SharedId, Scalar, LocalId)> {
        let elem = self.function.exprs[value].ty.scalar()?;
        let array = self.cells.of_values(self.module, elem, self.span);
        self.leave(array, value);
        Some((array, elem, self.local("first", Type::I64)))
    }

    fn match_lanes(&mut self, mask: ExprId, value: ExprId, lanes: LocalId, all: Option<LocalId>) {
        let mask = self.assigned("mask", mask);
        let Some((array, elem, first)) = self.shared_value(value) else { return };
        let (here, _) = self.gathered(mask, None);
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

    fn reduce(&mut self, reduction: WarpReduction, mask: ExprId, value: ExprId, result: LocalId) {
        let mask = self.assigned("mask", mask);
        let Some((array, elem, first)) = self.shared_value(value) else { return };
        let (here, _) = self.gathered(mask, None);
        let start = self.make().first_thread();
        self.push(StmtKind::Assign(first, start));
        let ty = Type::Scalar(elem);
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
        let start = self.make().expr(ExprKind::Const(Const::Int(neutral)), ty);
        let total = self.assigned("total", start);
        // The lowest of the lanes works it out, and leaves it to the others, who wait.
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
}
