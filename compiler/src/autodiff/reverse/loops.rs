//! The loops of both sweeps.

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use super::{Emitter, scratch::Kept};
use crate::{
    autodiff::{
        needed::Needed,
        plan::{Order, Restored},
        tape::{Barrier, Definition, Event, Repeat, Values, definitions, for_each_event, has_barrier},
    },
    ir::{
        Align, BinaryOp, Block, Class, CompareOp, Const, ExprId, ExprKind, Leaf, Local, LocalArray, LocalId, Stmt,
        StmtKind, Type, UnaryOp,
    },
    source::Span,
};

impl Emitter<'_> {
    /// Emits a loop that computes values, counts its iterations where the reverse needs their number, and keeps the
    /// values that it needs of each iteration.
    pub(super) fn forward_loop(&mut self, repeat: &Repeat, needed: &Needed) {
        let span = repeat.span;
        let is_counted = needed.values.contains(&repeat.count);
        self.begin(repeat, needed);
        if is_counted {
            self.begin_extremes(repeat);
            self.begin_records(repeat);
            let zero = self.int(0, span);
            self.push(StmtKind::Assign(repeat.count, zero), span);
        }
        self.open();
        self.forward(&repeat.head, needed);
        self.exit(repeat);
        if is_counted {
            self.keep(repeat);
        }
        self.forward(&repeat.body, needed);
        self.kept.retain(|_, &mut (id, ..)| id != repeat.id);
        let step = self.step(repeat, needed);
        self.open();
        if let Some(block) = self.blocks.last_mut() {
            block.extend(step);
        }
        if is_counted {
            let count = self.read(repeat.count, span);
            let one = self.int(1, span);
            let next = self.binary(BinaryOp::Add, count, one, span);
            self.push(StmtKind::Assign(repeat.count, next), span);
        }
        let step = self.close();
        let body = self.close();
        self.push(StmtKind::Loop { body, step }, span);
        if is_counted {
            self.end_records(repeat);
        }
    }

    /// Assigns the values at the start of the first iteration.
    fn begin(&mut self, repeat: &Repeat, needed: &Needed) {
        for carried in repeat.carried.iter().filter(|carried| needed.values.contains(&carried.header)) {
            if let Some(init) = carried.init {
                let value = self.read(init, repeat.span);
                self.push(StmtKind::Assign(carried.header, value), repeat.span);
            }
        }
    }

    fn exit(&mut self, repeat: &Repeat) {
        let cond = self.function.copy_expr(repeat.exit);
        let then = vec![Stmt { kind: StmtKind::Break, span: repeat.span }];
        self.push(StmtKind::If { cond, then, otherwise: Block::new() }, repeat.span);
    }

    /// The statements between two iterations. Assigns in the body what another header's new value is read from.
    fn step(&mut self, repeat: &Repeat, needed: &Needed) -> Block {
        let span = repeat.span;
        let headers: Values = repeat.carried.iter().map(|carried| carried.header).collect();
        let mut step = Block::new();
        for carried in &repeat.carried {
            if !needed.values.contains(&carried.header) || carried.next == carried.header {
                continue;
            }
            let value = if headers.contains(&carried.next) {
                let ty = self.function.locals[carried.next].ty;
                let (temp, value) = (self.temp("t", ty), self.read(carried.next, span));
                self.push(StmtKind::Assign(temp, value), span);
                self.read(temp, span)
            } else if self.tape.counter(repeat, carried).is_some()
                && let Some(&Definition::Expr(value, _)) = self.tape.definitions.get(&carried.next)
            {
                // As the kernel does, so that a counter is seen as one.
                self.function.copy_expr(value)
            } else {
                self.read(carried.next, span)
            };
            step.push(Stmt { kind: StmtKind::Assign(carried.header, value), span });
        }
        step
    }

    /// Stores the values at the start of an iteration that the reverse needs. Those that the body loads are stored there.
    fn keep(&mut self, repeat: &Repeat) {
        let plan = self.plan;
        let Order::Backward(restored) = &plan.loops[repeat.id].order else { return };
        let mut inner = BTreeMap::new();
        definitions(&repeat.body, &mut inner);
        self.begin_record(repeat);
        if self.is_counting() {
            return;
        }
        let pushed = restored.stored.pushed().iter().map(|&value| (value, Kept::Pushed { repeat: repeat.id }));
        for (value, kept) in kept(repeat, restored).into_iter().chain(pushed) {
            self.kept.insert(value, (repeat.id, kept, repeat.count));
            if !inner.contains_key(&value) {
                self.keep_loaded(value, repeat.span);
            }
        }
    }

    /// Stores a value that the reverse needs of each iteration.
    pub(super) fn keep_loaded(&mut self, value: LocalId, span: Span) {
        let Some(&(_, kept, count)) = self.kept.get(&value) else { return };
        let element = self.kept_at(value, kept, count, span);
        let value = self.read(value, span);
        self.push(StmtKind::Store { pointer: element, value, align: Align::Natural }, span);
        if let Kept::Pushed { repeat } = kept {
            self.pass(repeat, span);
        }
    }

    /// The address where the value of an iteration is.
    fn kept_at(&mut self, value: LocalId, kept: Kept, iteration: LocalId, span: Span) -> ExprId {
        match kept {
            Kept::Local(length) => self.element(value, length, iteration, span),
            Kept::Stored { repeat, at } => self.stored_at(value, (repeat, at), iteration, span),
            Kept::Pushed { repeat } => self.pushed_at(value, repeat, span),
        }
    }

    /// The element of a local array that keeps the value of an iteration.
    fn element(&mut self, value: LocalId, length: u64, iteration: LocalId, span: Span) -> ExprId {
        let Local { name, ty, .. } = self.function.locals[value].clone();
        let elem = ty.scalar().unwrap_or(Scalar::F64);
        let array = match self.arrays.get(&value) {
            Some(&array) => array,
            None => {
                let (len, align) = (length.max(1), elem.size_bytes());
                let array = self.function.local_arrays.push(LocalArray { name, elem, len, align, span });
                self.arrays.insert(value, array);
                array
            }
        };
        let ty = Type::Ptr(elem, crate::ir::Space::Local);
        let base = self.expr(ExprKind::LocalBase(array), ty, span);
        let index = self.read(iteration, span);
        self.expr(ExprKind::Offset { base, index, scale: 1 }, ty, span)
    }

    /// Prepares the adjoints that a loop's iterations read and contribute to.
    fn enter(&mut self, repeat: &Repeat) -> Vec<usize> {
        let own = repeat.defined();
        self.ensure_outer([&repeat.head, &repeat.body], &own, false, repeat.span);
        let mut active = Vec::new();
        for (number, carried) in repeat.carried.iter().enumerate() {
            if self.tape.activity.is_active(carried.header) {
                self.ensure(carried.header, repeat.span);
                if self.receives(carried.next) && !own.contains(&carried.next) {
                    self.ensure(carried.next, repeat.span);
                }
                active.push(number);
            }
        }
        active
    }

    /// Passes the adjoints at the start of the first iteration to the values before the loop.
    fn leave(&mut self, repeat: &Repeat, active: &[usize]) {
        for &number in active {
            let carried = &repeat.carried[number];
            if let Some(adjoint) = self.take(carried.header)
                && let Some(init) = carried.init
            {
                let term = self.read(adjoint, repeat.span);
                self.contribute(init, term, repeat.span);
            }
        }
    }

    /// The reverse of a loop whose iterations can run in the primal's order.
    pub(super) fn same_order(&mut self, repeat: &Repeat, again: &Needed) {
        let span = repeat.span;
        let active = self.enter(repeat);
        let headers: Vec<LocalId> = active.iter().map(|&number| repeat.carried[number].header).collect();
        self.begin(repeat, again);
        let added: Vec<_> = headers.iter().copied().filter(|&header| self.constant.insert(header)).collect();
        let quotients = self.begin_quotients(repeat, again);
        self.open();
        self.forward(&repeat.head, again);
        self.exit(repeat);
        for &number in &active {
            let carried = &repeat.carried[number];
            let adjoint = self.local(carried.header);
            let term = self.read(adjoint, span);
            self.contribute(carried.next, term, span);
        }
        self.adjoint(&repeat.body, again, false);
        let step = self.step(repeat, again);
        let body = self.close();
        self.push(StmtKind::Loop { body, step }, span);
        for header in added {
            self.constant.remove(&header);
        }
        self.end_quotients(repeat, quotients);
        self.leave(repeat, &active);
    }

    /// The reverse of a loop, from its last iteration to the first.
    pub(super) fn backward(&mut self, repeat: &Repeat, restored: &Restored, again: &Needed) {
        let span = repeat.span;
        let active = self.enter(repeat);
        let quotients = std::mem::take(&mut self.quotients);
        let left = self.temp("left", Type::I64);
        let count = self.read(repeat.count, span);
        self.push(StmtKind::Assign(left, count), span);
        self.open();
        let (now, zero) = (self.read(left, span), self.int(0, span));
        let more = self.expr(ExprKind::Compare(CompareOp::Gt, now, zero), Type::BOOL, span);
        let cond = self.expr(ExprKind::Unary(UnaryOp::Not, more), Type::BOOL, span);
        let then = vec![Stmt { kind: StmtKind::Break, span }];
        self.push(StmtKind::If { cond, then, otherwise: Block::new() }, span);
        let (now, one) = (self.read(left, span), self.int(1, span));
        let less = self.binary(BinaryOp::Sub, now, one, span);
        self.push(StmtKind::Assign(left, less), span);
        // Another thread may still load what the iteration writes again.
        if let Some(scope) = self.barrier_of_writes(repeat, again) {
            self.barrier(scope, span);
        }
        self.restore(repeat, restored, left);
        let mut terms = Vec::new();
        for &number in &active {
            let carried = &repeat.carried[number];
            if let Some(adjoint) = self.take(carried.header) {
                let ty = self.function.locals[adjoint].ty;
                let (temp, value) = (self.temp("g", ty), self.read(adjoint, span));
                self.push(StmtKind::Assign(temp, value), span);
                terms.push((carried.next, temp));
            }
        }
        for (next, temp) in terms {
            let term = self.read(temp, span);
            self.contribute(next, term, span);
        }
        self.forward(&repeat.head, again);
        self.adjoint(&repeat.body, again, false);
        for &number in &active {
            self.ensure(repeat.carried[number].header, span);
        }
        let body = self.close();
        self.push(StmtKind::Loop { body, step: Block::new() }, span);
        self.release_records(repeat);
        self.quotients = quotients;
        self.leave(repeat, &active);
    }

    /// The barrier of an iteration with barriers that writes shared arrays again.
    fn barrier_of_writes(&self, repeat: &Repeat, again: &Needed) -> Option<Barrier> {
        let (mut writes, mut of_warp) = (false, None);
        for_each_event(&repeat.body, &mut |number, event| match event {
            Event::Write(write) => {
                let memory = self.tape.arrays.memory(self.tape.function, write.pointer);
                writes |= again.events.contains(&number) && memory.is_shared();
            }
            Event::Barrier(Barrier::Block) => {}
            Event::Barrier(scope @ Barrier::Warp(_)) => of_warp = Some(scope),
        });
        let scope = if has_barrier(&repeat.body, Some(Barrier::Block)) { Some(Barrier::Block) } else { of_warp };
        scope.filter(|_| writes)
    }

    /// Restores the values at the start of an iteration.
    fn restore(&mut self, repeat: &Repeat, restored: &Restored, iteration: LocalId) {
        let span = repeat.span;
        for &(header, counter) in &restored.counted {
            let ty = self.function.locals[header].ty;
            let mut number = self.read(iteration, span);
            if ty != Type::I64 {
                number = self.expr(ExprKind::Convert(number), ty, span);
            }
            let step = self.function.copy_expr(counter.step);
            let is_one = matches!(self.function.class(step), Class::Leaf(Leaf::Const(Const::Int(1))));
            let distance = if is_one { number } else { self.binary(BinaryOp::Mul, number, step, span) };
            let init = self.read(counter.init, span);
            let op = if counter.is_negative { BinaryOp::Sub } else { BinaryOp::Add };
            let value = self.binary(op, init, distance, span);
            self.push(StmtKind::Assign(header, value), span);
        }
        for (value, kept) in kept(repeat, restored) {
            let ty = self.function.locals[value].ty;
            let pointer = self.kept_at(value, kept, iteration, span);
            let load = self.expr(ExprKind::Load(pointer, Align::Natural), ty, span);
            self.push(StmtKind::Assign(value, load), span);
        }
        self.enter_record(repeat);
    }
}

/// The values that a loop keeps of each iteration, and where.
fn kept(repeat: &Repeat, restored: &Restored) -> Vec<(LocalId, Kept)> {
    let local = restored.kept.iter().map(|&(value, length)| (value, Kept::Local(length)));
    let stored = restored.stored.values().iter();
    local.chain(stored.map(|&(value, at)| (value, Kept::Stored { repeat: repeat.id, at }))).collect()
}
