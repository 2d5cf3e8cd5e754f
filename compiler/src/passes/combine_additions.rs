//! In adjoint kernels for GPUs, combines the additions of several threads to one element of a gradient.
//!
//! ```text
//! atomic.add w.adjoint[k], t        mask = active_mask; same = match.all(mask, k)
//!                                   if mask == -1 and same {
//!                                       t = sum of t over the warp
//!                                       if lane == 0 { add(k, t) }
//!                                   } else { add(k, t) }
//! ```
//!
//! `add` adds to a copy of the first elements in shared memory, which is added to the gradient at the end of the kernel,
//! and to the gradient for other elements. An element whose address is the same in the whole grid (the gradient of a
//! scalar, `w[0]`) has a local, which is summed over the block at the end.
//!
//! Legal: nothing observes when an addition is executed, since the kernel does not access these arrays otherwise, and the
//! arrays of an adjoint kernel do not overlap. Whether the lanes of a warp add to the same element is tested at run time,
//! because lanes that are active together may be in different iterations. All threads reach the end of the kernel, and no
//! thread returns before.
//!
//! Profitable if the lanes are likely to add to the same element: the index depends on no `threadIdx.x`. A GPU executes
//! atomic operations on one element one after the other, in 2 to 4 ns each on an H200.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use crate::{
    analysis::{any_expr, escapes, for_each_read, same},
    ir::{
        Align, AtomicOp, BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, Local, LocalId,
        LocalKind, Module, Op, SharedArray, SharedId, SharedKind, Shuffle, Space, SpecialRegister, Stmt, StmtKind,
        Type, UnaryOp, for_each_expr, for_each_stmt,
    },
    source::Span,
};

/// The elements of an array that have a copy in shared memory.
const COPIED: u64 = 64;

/// The most arrays with such a copy.
const MOST_COPIES: usize = 4;

/// The most elements that are summed in locals.
const MOST_SUMS: usize = 8;

/// The warp size.
const LANES: i128 = 32;

const ALL_LANES: i128 = -1;

/// The type of a mask of active lanes.
const WORD: Type = Type::Scalar(Scalar::U32);

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    let Some(kernel) = module.kernel.filter(|_| module.is_adjoint) else { return };
    let mut function = std::mem::replace(
        &mut module.functions[kernel],
        Function::new("", crate::ir::FunctionKind::Kernel, Span::default()),
    );
    let mut body = std::mem::take(&mut function.body);
    if !escapes(&body).returns {
        let span = function.span;
        let uniform = Uniform::of(&function, &body);
        let mut combiner = Combiner {
            function: &mut function,
            module,
            uniform,
            copies: Vec::new(),
            only_added_to: BTreeSet::new(),
            span,
        };
        combiner.find_only_added_to(&body);
        let sums = combiner.sums(&mut body);
        combiner.find_copies(&body);
        combiner.block(&mut body);
        combiner.around(&mut body, &sums);
    }
    function.body = body;
    module.functions[kernel] = function;
}

/// Locals whose values are likely the same in all lanes of a warp: they depend on no `threadIdx.x`.
struct Uniform(BTreeSet<LocalId>);

impl Uniform {
    fn of(function: &Function, body: &Block) -> Self {
        let mut uniform = Self(function.locals.iter().map(|(local, _)| local).collect());
        loop {
            let mut varying = Vec::new();
            for_each_stmt(body, &mut |stmt| match stmt.kind {
                StmtKind::Assign(local, value) => {
                    if !uniform.has(function, value) {
                        varying.push(local);
                    }
                }
                StmtKind::Op { .. } | StmtKind::Call { .. } => varying.extend(stmt.kind.assigned()),
                StmtKind::Store { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            });
            let before = uniform.0.len();
            for local in &varying {
                uniform.0.remove(local);
            }
            if uniform.0.len() == before {
                return uniform;
            }
        }
    }

    fn has(&self, function: &Function, id: ExprId) -> bool {
        let mut has = true;
        for_each_read(function, id, &mut |local| has &= self.0.contains(&local));
        let is_of_lane = |kind: &ExprKind| {
            matches!(kind, ExprKind::Special(SpecialRegister::ThreadIdx(0) | SpecialRegister::LaneId))
        };
        has && !any_expr(function, id, &is_of_lane)
    }
}

/// A local that sums what a thread adds to one element.
struct Sum {
    pointer: ExprId,
    local: LocalId,
}

/// The copy of an array's first elements in shared memory.
struct Copy {
    param: LocalId,
    array: SharedId,
    elem: Scalar,
}

/// An addition that waits for others of the same statements.
struct Pending {
    pointer: ExprId,
    /// The part of the index that lanes compare.
    index: ExprId,
    term: LocalId,
    span: Span,
}

struct Combiner<'a> {
    function: &'a mut Function,
    module: &'a mut Module,
    uniform: Uniform,
    /// The arrays that the kernel accesses only by additions.
    only_added_to: BTreeSet<LocalId>,
    copies: Vec<Copy>,
    span: Span,
}

/// The address and the term of an addition of floats in global memory.
fn addition(function: &Function, stmt: &Stmt) -> Option<(ExprId, ExprId)> {
    let StmtKind::Op { op: Op::Atomic { op: AtomicOp::Add, .. }, results, args } = &stmt.kind else { return None };
    let &[pointer, term] = args.as_slice() else { return None };
    let is_float = |elem: Scalar| matches!(elem, Scalar::F32 | Scalar::F64);
    let fits = matches!(function.exprs[pointer].ty, Type::Ptr(elem, Space::Global) if is_float(elem));
    (fits && results.is_empty()).then_some((pointer, term))
}

/// The parameter and the index of an address of one offset.
fn element(function: &Function, pointer: ExprId) -> Option<(LocalId, ExprId)> {
    let Class::Address { base, by, .. } = function.class(pointer) else { return None };
    function.local(base).filter(|local| function.params.contains(local)).map(|param| (param, by))
}

/// The parameter that an address is computed from.
fn root(function: &Function, pointer: ExprId) -> Option<LocalId> {
    match function.class(pointer) {
        Class::Leaf(_) => function.local(pointer).filter(|local| function.params.contains(local)),
        Class::Address { base, .. } => root(function, base),
        Class::Arith(_) | Class::Load(_) => None,
    }
}

/// An index without constants that are added to it.
fn varying_part(function: &Function, index: ExprId) -> ExprId {
    let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b) = function.exprs[index].kind else { return index };
    match (function.int(a), function.int(b)) {
        (_, Some(_)) => varying_part(function, a),
        (Some(_), None) => varying_part(function, b),
        (None, None) => index,
    }
}

impl Combiner<'_> {
    fn expr(&mut self, kind: ExprKind, ty: Type) -> ExprId {
        self.function.exprs.push(Expr { kind, ty, span: self.span })
    }

    fn read(&mut self, local: LocalId) -> ExprId {
        let ty = self.function.locals[local].ty;
        self.expr(ExprKind::Local(local), ty)
    }

    fn int(&mut self, value: i128, ty: Type) -> ExprId {
        self.expr(ExprKind::Const(Const::Int(value)), ty)
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        let ty = self.function.exprs[a].ty;
        self.expr(ExprKind::Binary(op, a, b), ty)
    }

    fn compare(&mut self, op: CompareOp, a: ExprId, b: ExprId) -> ExprId {
        self.expr(ExprKind::Compare(op, a, b), Type::BOOL)
    }

    fn zero(&mut self, ty: Type) -> ExprId {
        self.expr(ExprKind::Const(Const::Float(0.0)), ty)
    }

    /// A special register as an `int64`.
    fn special(&mut self, register: SpecialRegister) -> ExprId {
        let value = self.expr(ExprKind::Special(register), Type::I32);
        self.expr(ExprKind::Convert(value), Type::I64)
    }

    fn temp(&mut self, name: &str, ty: Type) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Temp, ty))
    }

    fn stmt(&self, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.span }
    }

    fn assign(&self, local: LocalId, value: ExprId) -> Stmt {
        self.stmt(StmtKind::Assign(local, value))
    }

    fn branch(&self, cond: ExprId, then: Block, otherwise: Block) -> Stmt {
        self.stmt(StmtKind::If { cond, then, otherwise })
    }

    fn op(&self, op: Op, results: Vec<LocalId>, args: Vec<ExprId>) -> Stmt {
        self.stmt(StmtKind::Op { op, results, args })
    }

    /// Finds the arrays that the kernel accesses only by additions.
    fn find_only_added_to(&mut self, body: &Block) {
        let function = &*self.function;
        let (mut added, mut accessed, mut unknown) = (BTreeSet::new(), BTreeSet::new(), false);
        let mut access = |pointer: ExprId| {
            if !matches!(function.exprs[pointer].ty, Type::Ptr(_, Space::Local | Space::Shared | Space::Constant)) {
                let param = root(function, pointer);
                unknown |= param.is_none();
                accessed.extend(param);
            }
        };
        for_each_stmt(body, &mut |stmt| {
            if let Some((pointer, _)) = addition(function, stmt) {
                added.extend(root(function, pointer));
            }
            if let StmtKind::Store { pointer, .. } = stmt.kind {
                access(pointer);
            }
            for root in stmt.kind.exprs() {
                for_each_expr(function, root, &mut |id| {
                    if let Class::Load(pointer) = function.class(id) {
                        access(pointer);
                    }
                });
            }
        });
        if !unknown {
            self.only_added_to = &added - &accessed;
        }
    }

    fn is_only_added_to(&self, pointer: ExprId) -> bool {
        root(self.function, pointer).is_some_and(|param| self.only_added_to.contains(&param))
    }

    /// Replaces the additions to elements whose address is the same in the whole grid by additions to locals.
    fn sums(&mut self, body: &mut Block) -> Vec<Sum> {
        let mut found: Vec<ExprId> = Vec::new();
        for_each_stmt(body, &mut |stmt| {
            if let Some((pointer, _)) = addition(self.function, stmt)
                && found.len() < MOST_SUMS
                && self.is_of_grid(pointer)
                && !found.iter().any(|&other| same(self.function, pointer, other))
                && self.is_only_added_to(pointer)
            {
                found.push(pointer);
            }
        });
        let mut sums = Vec::new();
        for pointer in found {
            let Type::Ptr(elem, _) = self.function.exprs[pointer].ty else { continue };
            let local = self.temp("sum", Type::Scalar(elem));
            self.replace(body, pointer, local);
            sums.push(Sum { pointer, local });
        }
        sums
    }

    /// Whether an address consists of parameters and constants.
    fn is_of_grid(&self, pointer: ExprId) -> bool {
        let function = &*self.function;
        let mut constant = root(function, pointer).is_some();
        for_each_expr(function, pointer, &mut |id| match function.class(id) {
            Class::Leaf(crate::ir::Leaf::Local(local)) => constant &= function.params.contains(&local),
            Class::Leaf(crate::ir::Leaf::Special(_)) | Class::Load(_) => constant = false,
            Class::Leaf(crate::ir::Leaf::Const(_) | crate::ir::Leaf::Base(_))
            | Class::Arith(_)
            | Class::Address { .. } => {}
        });
        constant
    }

    fn replace(&mut self, block: &mut Block, pointer: ExprId, sum: LocalId) {
        for stmt in block {
            if let Some((_, term)) = addition(self.function, stmt).filter(|&(own, _)| same(self.function, own, pointer))
            {
                let before = self.read(sum);
                let after = self.binary(BinaryOp::Add, before, term);
                stmt.kind = StmtKind::Assign(sum, after);
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.replace(inner, pointer, sum);
            }
        }
    }

    /// Combines the additions of a list of statements and of nested ones.
    fn block(&mut self, block: &mut Block) {
        let mut out = Block::with_capacity(block.len());
        let mut pending: Vec<Pending> = Vec::new();
        for mut stmt in std::mem::take(block) {
            self.span = stmt.span;
            if let Some(addition) = self.delayed(&stmt, &mut out) {
                pending.push(addition);
                continue;
            }
            let waits = match &stmt.kind {
                StmtKind::Assign(local, _) => !self.reads(&pending, *local),
                StmtKind::Op { results, .. } => results.is_empty() && addition(self.function, &stmt).is_some(),
                StmtKind::Store { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => false,
            };
            if !waits {
                self.flush(&mut pending, &mut out);
            }
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                self.block(inner);
            }
            out.push(stmt);
        }
        self.flush(&mut pending, &mut out);
        *block = out;
    }

    fn reads(&self, pending: &[Pending], local: LocalId) -> bool {
        let mut reads = false;
        for addition in pending {
            for_each_read(self.function, addition.pointer, &mut |read| reads |= read == local);
        }
        reads
    }

    /// An addition whose lanes likely add to the same element. Assigns its term.
    fn delayed(&mut self, stmt: &Stmt, out: &mut Block) -> Option<Pending> {
        let (pointer, term) = addition(self.function, stmt)?;
        let (_, index) = element(self.function, pointer)?;
        let is_read = any_expr(self.function, pointer, &|kind| matches!(kind.class(), Class::Load(_)));
        if is_read || !self.is_only_added_to(pointer) || !self.uniform.has(self.function, pointer) {
            return None;
        }
        let local = self.temp("t", self.function.exprs[term].ty);
        out.push(self.assign(local, term));
        Some(Pending { pointer, index: varying_part(self.function, index), term: local, span: stmt.span })
    }

    /// Emits the additions that wait.
    fn flush(&mut self, pending: &mut Vec<Pending>, out: &mut Block) {
        let Some(first) = pending.first() else { return };
        self.span = first.span;
        let (active, mask) = (self.temp("active", WORD), self.temp("mask", Type::I32));
        out.push(self.op(Op::ActiveMask, vec![active], Vec::new()));
        let value = self.read(active);
        let value = self.expr(ExprKind::Convert(value), Type::I32);
        out.push(self.assign(mask, value));
        let (value, all) = (self.read(mask), self.int(ALL_LANES, Type::I32));
        let mut cond = self.compare(CompareOp::Eq, value, all);
        let mut compared: Vec<ExprId> = Vec::new();
        for addition in pending.iter() {
            if compared.iter().any(|&other| same(self.function, other, addition.index)) {
                continue;
            }
            compared.push(addition.index);
            let (lanes, is_same) = (self.temp("lanes", Type::I32), self.temp("same", Type::BOOL));
            let (mask, index) = (self.read(mask), self.function.copy_expr(addition.index));
            out.push(self.op(Op::MatchAll, vec![lanes, is_same], vec![mask, index]));
            let is_same = self.read(is_same);
            cond = self.binary(BinaryOp::And, cond, is_same);
        }
        let mut then = Block::new();
        let mut distance = LANES / 2;
        while distance > 0 {
            for addition in pending.iter() {
                let mask = self.int(ALL_LANES, Type::I32);
                let other = self.shuffled(addition.term, mask, distance, &mut then);
                let (one, other) = (self.read(addition.term), self.read(other));
                let sum = self.binary(BinaryOp::Add, one, other);
                then.push(self.assign(addition.term, sum));
            }
            distance /= 2;
        }
        let lane = self.special(SpecialRegister::LaneId);
        let zero = self.int(0, Type::I64);
        let is_first = self.compare(CompareOp::Eq, lane, zero);
        let adds: Block = pending.iter().map(|addition| self.add(addition)).collect();
        then.push(self.branch(is_first, adds, Block::new()));
        let otherwise = pending.iter().map(|addition| self.add(addition)).collect();
        out.push(self.branch(cond, then, otherwise));
        pending.clear();
    }

    /// Emits a shuffle down; returns the local with the other lane's value.
    fn shuffled(&mut self, value: LocalId, mask: ExprId, distance: i128, out: &mut Block) -> LocalId {
        let to = self.temp("other", self.function.locals[value].ty);
        let (value, distance) = (self.read(value), self.int(distance, Type::I32));
        let width = self.int(LANES, Type::I32);
        out.push(self.op(Op::Shuffle(Shuffle::Down), vec![to], vec![mask, value, distance, width]));
        to
    }

    /// An addition to the array's copy, if it has the element, or to the array.
    fn add(&mut self, addition: &Pending) -> Stmt {
        let own = self.atomic(addition.pointer, addition.term);
        let Some((param, index)) = element(self.function, addition.pointer) else { return own };
        let is_elements = matches!(self.function.exprs[addition.pointer].kind, ExprKind::Offset { scale: 1, .. });
        let Some(copy) = self.copies.iter().find(|copy| copy.param == param && is_elements) else { return own };
        let (array, elem) = (copy.array, copy.elem);
        let mut indices = [index; 2];
        for index in &mut indices {
            *index = self.function.copy_expr(*index);
        }
        let [tested, index] = indices;
        let unsigned = Type::Scalar(Scalar::U64);
        let (tested, most) = (self.expr(ExprKind::Convert(tested), unsigned), self.int(i128::from(COPIED), unsigned));
        let is_copied = self.compare(CompareOp::Lt, tested, most);
        let pointer = self.copied(array, elem, index);
        let copied = self.atomic(pointer, addition.term);
        self.branch(is_copied, vec![copied], vec![own])
    }

    fn atomic(&mut self, pointer: ExprId, term: LocalId) -> Stmt {
        let (pointer, term) = (self.function.copy_expr(pointer), self.read(term));
        self.op(Op::atomic(AtomicOp::Add), Vec::new(), vec![pointer, term])
    }

    fn copied(&mut self, array: SharedId, elem: Scalar, index: ExprId) -> ExprId {
        let ty = Type::Ptr(elem, Space::Shared);
        let base = self.expr(ExprKind::SharedBase(array), ty);
        self.expr(ExprKind::Offset { base, index, scale: 1 }, ty)
    }

    fn shared(&mut self, name: &str, elem: Scalar, len: u64) -> SharedId {
        self.module.shared.push(SharedArray {
            name: name.to_owned(),
            kind: SharedKind::Cells,
            elem,
            len,
            shape: Vec::new(),
            align: elem.size_bytes(),
            span: self.span,
        })
    }

    /// Finds the arrays that get copies in shared memory.
    fn find_copies(&mut self, body: &Block) {
        let mut found: Vec<(LocalId, Scalar)> = Vec::new();
        for_each_stmt(body, &mut |stmt| {
            if let Some((pointer, _)) = addition(self.function, stmt)
                && let Some((param, _)) = element(self.function, pointer)
                && matches!(self.function.exprs[pointer].kind, ExprKind::Offset { scale: 1, .. })
                && self.uniform.has(self.function, pointer)
                && found.len() < MOST_COPIES
                && !found.iter().any(|&(other, _)| other == param)
                && self.is_only_added_to(pointer)
                && let Type::Ptr(elem, _) = self.function.exprs[pointer].ty
            {
                found.push((param, elem));
            }
        });
        for (param, elem) in found {
            let array = self.shared("copied", elem, COPIED);
            self.copies.push(Copy { param, array, elem });
        }
    }

    /// The thread's number in the block, and the number of threads.
    fn thread(&mut self, out: &mut Block) -> (LocalId, LocalId) {
        let (thread, threads) = (self.temp("thread", Type::I64), self.temp("threads", Type::I64));
        let [x, y, z] = [0, 1, 2].map(|axis| self.special(SpecialRegister::ThreadIdx(axis)));
        let [width, height] = [0, 1].map(|axis| self.special(SpecialRegister::BlockDim(axis)));
        let rows = self.binary(BinaryOp::Mul, z, height);
        let rows = self.binary(BinaryOp::Add, rows, y);
        let before = self.binary(BinaryOp::Mul, rows, width);
        let number = self.binary(BinaryOp::Add, before, x);
        out.push(self.assign(thread, number));
        let [width, height, depth] = [0, 1, 2].map(|axis| self.special(SpecialRegister::BlockDim(axis)));
        let area = self.binary(BinaryOp::Mul, width, height);
        let count = self.binary(BinaryOp::Mul, area, depth);
        out.push(self.assign(threads, count));
        (thread, threads)
    }

    /// Adds the statements at the start and the end of the kernel.
    fn around(&mut self, body: &mut Block, sums: &[Sum]) {
        if sums.is_empty() && self.copies.is_empty() {
            return;
        }
        self.span = self.function.span;
        let mut out = Block::new();
        let (thread, threads) = self.thread(&mut out);
        for sum in sums {
            let zero = self.zero(self.function.locals[sum.local].ty);
            out.push(self.assign(sum.local, zero));
        }
        let barrier = |combiner: &Self| combiner.op(Op::Barrier, Vec::new(), Vec::new());
        if !self.copies.is_empty() {
            let clear = self.over_copies(thread, threads, &mut |combiner, number, index| {
                let (array, elem) = combiner.copy(number);
                let pointer = combiner.copied(array, elem, index);
                let value = combiner.zero(Type::Scalar(elem));
                vec![combiner.stmt(StmtKind::Store { pointer, value, align: Align::Natural })]
            });
            out.extend(clear);
            out.push(barrier(self));
        }
        out.append(body);
        let parts = self.warp_sums(sums, thread, threads, &mut out);
        out.push(barrier(self));
        self.block_sums(sums, &parts, thread, threads, &mut out);
        if !self.copies.is_empty() {
            let flush = self.over_copies(thread, threads, &mut |combiner, number, index| {
                let (array, elem) = combiner.copy(number);
                let value = combiner.temp("copied", Type::Scalar(elem));
                let again = combiner.function.copy_expr(index);
                let pointer = combiner.copied(array, elem, index);
                let load = combiner.expr(ExprKind::Load(pointer, Align::Natural), Type::Scalar(elem));
                let base = combiner.read(combiner.copies[number].param);
                let ty = combiner.function.exprs[base].ty;
                let pointer = combiner.expr(ExprKind::Offset { base, index: again, scale: 1 }, ty);
                vec![combiner.assign(value, load), combiner.add_if_any(pointer, value)]
            });
            out.extend(flush);
        }
        *body = out;
    }

    /// `if value != 0 { *pointer += value }`.
    fn add_if_any(&mut self, pointer: ExprId, value: LocalId) -> Stmt {
        let (tested, zero) = (self.read(value), self.zero(self.function.locals[value].ty));
        let cond = self.compare(CompareOp::Ne, tested, zero);
        let add = self.atomic(pointer, value);
        self.branch(cond, vec![add], Block::new())
    }

    fn copy(&self, number: usize) -> (SharedId, Scalar) {
        (self.copies[number].array, self.copies[number].elem)
    }

    /// A loop of the block's threads over the elements of the copies. `each` gets the number of a copy, and the index.
    fn over_copies(
        &mut self,
        thread: LocalId,
        threads: LocalId,
        each: &mut dyn FnMut(&mut Self, usize, ExprId) -> Block,
    ) -> Block {
        let index = self.temp("index", Type::I64);
        let first = self.read(thread);
        let start = self.assign(index, first);
        let (now, most) = (self.read(index), self.int(i128::from(COPIED), Type::I64));
        let more = self.compare(CompareOp::Lt, now, most);
        let done = self.expr(ExprKind::Unary(UnaryOp::Not, more), Type::BOOL);
        let mut body = vec![self.branch(done, vec![self.stmt(StmtKind::Break)], Block::new())];
        for number in 0..self.copies.len() {
            let index = self.read(index);
            body.extend(each(self, number, index));
        }
        let (now, by) = (self.read(index), self.read(threads));
        let next = self.binary(BinaryOp::Add, now, by);
        let step = vec![self.assign(index, next)];
        vec![start, self.stmt(StmtKind::Loop { body, step })]
    }

    /// Sums over the lanes of each warp; the first lane stores the sums in shared memory. The last warp may have fewer
    /// lanes.
    fn warp_sums(&mut self, sums: &[Sum], thread: LocalId, threads: LocalId, out: &mut Block) -> Vec<SharedId> {
        if sums.is_empty() {
            return Vec::new();
        }
        let (lane, lanes, mask) =
            (self.temp("lane", Type::I32), self.temp("lanes", Type::I32), self.temp("mask", Type::I32));
        let value = self.expr(ExprKind::Special(SpecialRegister::LaneId), Type::I32);
        out.push(self.assign(lane, value));
        let (count, own, of_lane) = (self.read(threads), self.read(thread), self.read(lane));
        let of_lane = self.expr(ExprKind::Convert(of_lane), Type::I64);
        let left = self.binary(BinaryOp::Sub, count, own);
        let left = self.binary(BinaryOp::Add, left, of_lane);
        let most = self.int(LANES, Type::I64);
        let present = self.binary(BinaryOp::Min, left, most);
        let present = self.expr(ExprKind::Convert(present), Type::I32);
        out.push(self.assign(lanes, present));
        let (all, full, present) = (self.int(ALL_LANES, Type::I32), self.int(LANES, Type::I32), self.read(lanes));
        let is_full = self.compare(CompareOp::Eq, present, full);
        let (one, present) = (self.int(1, Type::I32), self.read(lanes));
        let above = self.binary(BinaryOp::Shl, one, present);
        let one = self.int(1, Type::I32);
        let below = self.binary(BinaryOp::Sub, above, one);
        let value = self.expr(ExprKind::Select(is_full, all, below), Type::I32);
        out.push(self.assign(mask, value));
        let mut distance = LANES / 2;
        while distance > 0 {
            for sum in sums {
                let ty = self.function.locals[sum.local].ty;
                let mask = self.read(mask);
                let other = self.shuffled(sum.local, mask, distance, out);
                let (own, by, present) = (self.read(lane), self.int(distance, Type::I32), self.read(lanes));
                let from = self.binary(BinaryOp::Add, own, by);
                let is_present = self.compare(CompareOp::Lt, from, present);
                let (other, zero) = (self.read(other), self.zero(ty));
                let other = self.expr(ExprKind::Select(is_present, other, zero), ty);
                let own = self.read(sum.local);
                let value = self.binary(BinaryOp::Add, own, other);
                out.push(self.assign(sum.local, value));
            }
            distance /= 2;
        }
        let mut parts = Vec::new();
        let mut stores = Block::new();
        for sum in sums {
            let elem = self.function.locals[sum.local].ty.scalar().unwrap_or(Scalar::F64);
            let part = self.shared("parts", elem, LANES as u64);
            let (own, warp) = (self.read(thread), self.int(5, Type::I64));
            let warp = self.binary(BinaryOp::Shr, own, warp);
            let pointer = self.copied(part, elem, warp);
            let value = self.read(sum.local);
            stores.push(self.stmt(StmtKind::Store { pointer, value, align: Align::Natural }));
            parts.push(part);
        }
        let (own, zero) = (self.read(lane), self.int(0, Type::I32));
        let is_first = self.compare(CompareOp::Eq, own, zero);
        out.push(self.branch(is_first, stores, Block::new()));
        parts
    }

    /// Sums over the warps: a thread for each sum, in the order of the warps.
    fn block_sums(&mut self, sums: &[Sum], parts: &[SharedId], thread: LocalId, threads: LocalId, out: &mut Block) {
        for (number, (sum, &part)) in sums.iter().zip(parts).enumerate() {
            let ty = self.function.locals[sum.local].ty;
            let warp = self.temp("warp", Type::I64);
            let (zero, first) = (self.zero(ty), self.int(0, Type::I64));
            let mut then = vec![self.assign(sum.local, zero), self.assign(warp, first)];
            let (now, count) = (self.read(warp), self.read(threads));
            let lanes = self.int(5, Type::I64);
            let before = self.binary(BinaryOp::Shl, now, lanes);
            let more = self.compare(CompareOp::Lt, before, count);
            let done = self.expr(ExprKind::Unary(UnaryOp::Not, more), Type::BOOL);
            let index = self.read(warp);
            let pointer = self.copied(part, ty.scalar().unwrap_or(Scalar::F64), index);
            let load = self.expr(ExprKind::Load(pointer, Align::Natural), ty);
            let own = self.read(sum.local);
            let value = self.binary(BinaryOp::Add, own, load);
            let body =
                vec![self.branch(done, vec![self.stmt(StmtKind::Break)], Block::new()), self.assign(sum.local, value)];
            let (now, one) = (self.read(warp), self.int(1, Type::I64));
            let next = self.binary(BinaryOp::Add, now, one);
            let step = vec![self.assign(warp, next)];
            then.push(self.stmt(StmtKind::Loop { body, step }));
            then.push(self.add_if_any(sum.pointer, sum.local));
            let number = number as i128;
            let (count, own) = (self.read(threads), self.read(thread));
            let (number_of, zero) = (self.int(number, Type::I64), self.int(0, Type::I64));
            let number = self.int(number, Type::I64);
            let has = self.compare(CompareOp::Gt, count, number_of);
            let one = self.expr(ExprKind::Select(has, number, zero), Type::I64);
            let is_own = self.compare(CompareOp::Eq, own, one);
            out.push(self.branch(is_own, then, Block::new()));
        }
    }
}
