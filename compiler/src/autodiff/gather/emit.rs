//! Emits the sum that a thread gathers.

use std::collections::BTreeMap;

use weft_artifact::SlotField;

use super::{
    Gathered, Term,
    index::{Index, Values, counter_of},
    slice::Part,
};
use crate::{
    autodiff::{
        arrays::Arrays,
        build::{adjoint_type, converted, unrounded},
    },
    ir::{
        Align, BinaryOp, Block, CompareOp, Const, ExprId, ExprKind, Function, Local, LocalId, LocalKind,
        SpecialRegister, Stmt, StmtKind, Type, UnaryOp,
    },
    source::Span,
};

/// An axis of the grid, with the dimension of the array whose index it is.
struct Axis {
    number: u8,
    /// The index of this thread's element.
    element: LocalId,
    /// The threads of the grid.
    threads: LocalId,
    /// The elements that the threads gather.
    limit: LocalId,
    /// There may be more elements than threads.
    has_more: bool,
    /// The distance of the element from this thread's first one, if it has several.
    first: Option<LocalId>,
}

pub(super) struct Emitter<'a> {
    function: &'a mut Function,
    arrays: &'a Arrays,
    values: &'a Values,
    of: &'a Gathered,
    span: Span,
    /// By axis, in a term: the index of the thread whose addition is computed.
    threads: BTreeMap<u8, LocalId>,
    /// The locals of a term.
    locals: BTreeMap<LocalId, LocalId>,
}

impl<'a> Emitter<'a> {
    pub(super) fn new(function: &'a mut Function, arrays: &'a Arrays, values: &'a Values, of: &'a Gathered) -> Self {
        let span = of.terms.first().map_or(function.span, |term| term.span);
        Self { function, arrays, values, of, span, threads: BTreeMap::new(), locals: BTreeMap::new() }
    }

    /// Emits the sum of this thread's element, and of those after the elements of all threads.
    pub(super) fn emit(&mut self, out: &mut Block) {
        let Some(first) = self.of.terms.first() else { return };
        let mut axes: Vec<Axis> = (0..first.indices.len()).filter_map(|dim| self.axis(dim, out)).collect();
        self.elements(&axes, out);
        let mut has_more = None;
        for axis in axes.iter_mut().filter(|axis| axis.has_more) {
            let (first, element) = (self.local("first", Type::I64), self.local("element", Type::I64));
            for local in [first, element] {
                self.function.locals[local].nonneg = true;
            }
            (axis.first, axis.element) = (Some(first), element);
            let own = self.less(axis.threads, axis.limit);
            has_more = Some(self.joined(BinaryOp::Or, has_more, own));
        }
        let Some(cond) = has_more else { return };
        let mut block = Block::new();
        self.elements(&axes, &mut block);
        for axis in axes.iter().rev() {
            block = self.repeated(axis, block);
        }
        out.push(self.stmt(StmtKind::If { cond, then: block, otherwise: Block::new() }));
    }

    fn joined(&mut self, op: BinaryOp, before: Option<ExprId>, cond: ExprId) -> ExprId {
        match before {
            Some(before) => self.binary(op, before, cond),
            None => cond,
        }
    }

    fn stmt(&self, kind: StmtKind) -> Stmt {
        Stmt { kind, span: self.span }
    }

    fn local(&mut self, name: &str, ty: Type) -> LocalId {
        self.function.locals.push(Local::new(name, LocalKind::Temp, ty))
    }

    /// A new local of type `I64` that is not negative.
    fn number(&mut self, name: &str, value: ExprId, out: &mut Block) -> LocalId {
        let local = self.local(name, Type::I64);
        self.function.locals[local].nonneg = true;
        out.push(self.stmt(StmtKind::Assign(local, value)));
        local
    }

    fn int(&mut self, value: i128) -> ExprId {
        self.function.edit(self.span).int(value, Type::I64)
    }

    fn read(&mut self, local: LocalId) -> ExprId {
        self.function.edit(self.span).read(local)
    }

    fn binary(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        self.function.edit(self.span).binary(op, a, b)
    }

    fn special(&mut self, register: SpecialRegister) -> ExprId {
        let value = self.function.edit(self.span).expr(ExprKind::Special(register), Type::I32);
        converted(self.function, value, Type::I64)
    }

    fn product(&mut self, a: SpecialRegister, b: SpecialRegister) -> ExprId {
        let (a, b) = (self.special(a), self.special(b));
        self.binary(BinaryOp::Mul, a, b)
    }

    /// The axis of a dimension, with the number of its elements.
    fn axis(&mut self, dim: usize, out: &mut Block) -> Option<Axis> {
        let of = self.of;
        let number = of.terms.first()?.indices.get(dim)?.axis;
        let threads = self.product(SpecialRegister::GridDim(number), SpecialRegister::BlockDim(number));
        let threads = self.number("threads", threads, out);
        let extent = self.arrays.local(of.adjoint, SlotField::Shape(dim as u8))?;
        let largest = of.terms.iter().map(|term| &term.indices[dim]).filter(|index| index.rest.is_empty());
        let largest = largest.map(|index| index.constant).max().unwrap_or(0).max(0);
        let mut more = self.int(largest);
        for term in &of.terms {
            if !term.indices[dim].rest.is_empty() {
                let distance = self.distance(term, dim, true);
                more = self.binary(BinaryOp::Max, more, distance);
            }
        }
        let has_more = largest > 0 || of.terms.iter().any(|term| !term.indices[dim].rest.is_empty());
        let (all, extent) = (self.read(threads), self.read(extent));
        let limit = if has_more { self.binary(BinaryOp::Add, all, more) } else { all };
        let limit = self.binary(BinaryOp::Min, limit, extent);
        let limit = self.number("limit", limit, out);
        let element = self.local("element", Type::I64);
        self.function.locals[element].nonneg = true;
        Some(Axis { number, element, threads, limit, has_more, first: None })
    }

    /// The sum of the element of a thread, if it has one. In loops after the first iteration, of another one.
    fn elements(&mut self, axes: &[Axis], out: &mut Block) {
        let (mut exists, mut firsts) = (None, None);
        for axis in axes {
            let first = self.product(SpecialRegister::BlockIdx(axis.number), SpecialRegister::BlockDim(axis.number));
            let thread = self.special(SpecialRegister::ThreadIdx(axis.number));
            let mut element = self.binary(BinaryOp::Add, first, thread);
            if let Some(first) = axis.first {
                let own = self.read(first);
                element = self.binary(BinaryOp::Add, element, own);
                let own = self.read(first);
                firsts = Some(self.joined(BinaryOp::Add, firsts, own));
            }
            out.push(self.stmt(StmtKind::Assign(axis.element, element)));
            let own = self.less(axis.element, axis.limit);
            exists = Some(self.joined(BinaryOp::And, exists, own));
        }
        let mut then = self.element(axes);
        if let Some(firsts) = firsts {
            let zero = self.int(0);
            let cond = self.function.edit(self.span).compare(CompareOp::Lt, zero, firsts);
            then = vec![self.stmt(StmtKind::If { cond, then, otherwise: Block::new() })];
        }
        if let Some(cond) = exists {
            out.push(self.stmt(StmtKind::If { cond, then, otherwise: Block::new() }));
        }
    }

    /// `for first in range(0, limit, threads) { block }`
    fn repeated(&mut self, axis: &Axis, mut body: Block) -> Block {
        let Some(first) = axis.first else { return body };
        let zero = self.int(0);
        let start = self.stmt(StmtKind::Assign(first, zero));
        let goes_on = self.less(first, axis.limit);
        body.insert(0, self.leave_unless(goes_on));
        let (before, by) = (self.read(first), self.read(axis.threads));
        let next = self.binary(BinaryOp::Add, before, by);
        let step = vec![self.stmt(StmtKind::Assign(first, next))];
        vec![start, self.stmt(StmtKind::Loop { body, step })]
    }

    fn less(&mut self, one: LocalId, other: LocalId) -> ExprId {
        let (one, other) = (self.read(one), self.read(other));
        self.function.edit(self.span).compare(CompareOp::Lt, one, other)
    }

    fn leave_unless(&mut self, goes_on: ExprId) -> Stmt {
        let cond = self.function.edit(self.span).expr(ExprKind::Unary(UnaryOp::Not, goes_on), Type::BOOL);
        let then = vec![self.stmt(StmtKind::Break)];
        self.stmt(StmtKind::If { cond, then, otherwise: Block::new() })
    }

    /// Adds the sum to an element.
    fn element(&mut self, axes: &[Axis]) -> Block {
        let of = self.of;
        let Type::Ptr(elem, _) = self.function.exprs[of.pointer].ty else { return Block::new() };
        let wide = adjoint_type(Type::Scalar(elem));
        let sum = self.local("gathered", wide);
        let zero = self.function.edit(self.span).expr(ExprKind::Const(Const::Float(0.0)), wide);
        let mut out = vec![self.stmt(StmtKind::Assign(sum, zero))];
        for term in &of.terms {
            self.span = term.span;
            self.term(term, axes, sum, &mut out);
        }
        let (from, pointer) = (self.address(axes), self.address(axes));
        let old = self.function.edit(self.span).expr(ExprKind::Load(from, Align::Natural), Type::Scalar(elem));
        let (old, sum) = (converted(self.function, old, wide), self.read(sum));
        let value = self.binary(BinaryOp::Add, old, sum);
        let value = converted(self.function, value, Type::Scalar(elem));
        out.push(self.stmt(StmtKind::Store { pointer, value, align: Align::Natural }));
        out
    }

    /// The address of this thread's element.
    fn address(&mut self, axes: &[Axis]) -> ExprId {
        let of = self.of;
        self.function.copy_with(of.pointer, &mut |function, id| {
            let dim = of.indices.iter().position(|&index| index == id)?;
            let (ty, span) = (function.exprs[id].ty, function.exprs[id].span);
            let element = function.edit(span).read(axes[dim].element);
            Some(converted(function, element, ty))
        })
    }

    /// Adds a term to the sum.
    fn term(&mut self, term: &Term, axes: &[Axis], sum: LocalId, out: &mut Block) {
        self.locals.clear();
        self.threads.clear();
        let mut starts = Vec::new();
        for own in &term.slice.loops {
            let start = self.uniform(own.start);
            let copy = self.function.locals[own.counter].clone();
            let counter = self.function.locals.push(copy);
            starts.push(self.stmt(StmtKind::Assign(counter, start)));
            self.locals.insert(own.counter, counter);
        }
        let mut block = self.of_threads(term, axes, sum);
        for (own, start) in term.slice.loops.iter().zip(starts).rev() {
            let Some(&counter) = self.locals.get(&own.counter) else { continue };
            let (tested, bound) = (self.read(counter), self.uniform(own.bound));
            let goes_on = self.function.edit(self.span).compare(CompareOp::Lt, tested, bound);
            block.insert(0, self.leave_unless(goes_on));
            let before = self.read(counter);
            let ty = self.function.locals[counter].ty;
            let by = self.function.edit(self.span).int(own.stride, ty);
            let next = self.binary(BinaryOp::Add, before, by);
            let step = vec![self.stmt(StmtKind::Assign(counter, next))];
            block = vec![start, self.stmt(StmtKind::Loop { body: block, step })];
        }
        out.append(&mut block);
    }

    /// Adds the term of a thread, if it exists.
    fn of_threads(&mut self, term: &Term, axes: &[Axis], sum: LocalId) -> Block {
        let mut out = Block::new();
        let mut exists: Option<ExprId> = None;
        let mut inner = Block::new();
        for (dim, axis) in axes.iter().enumerate() {
            let element = self.read(axis.element);
            let distance = self.distance(term, dim, false);
            let thread = self.binary(BinaryOp::Sub, element, distance);
            let at = self.local("other", Type::I64);
            out.push(self.stmt(StmtKind::Assign(at, thread)));
            let (zero, tested) = (self.int(0), self.read(at));
            let is_first = self.function.edit(self.span).compare(CompareOp::Le, zero, tested);
            let is_last = self.less(at, axis.threads);
            for cond in [is_first, is_last] {
                exists = Some(self.joined(BinaryOp::And, exists, cond));
            }
            let at = self.read(at);
            let thread = self.number("thread", at, &mut inner);
            self.threads.insert(axis.number, thread);
        }
        inner.append(&mut self.parts(&term.slice.parts, term.slice.term, sum));
        if let Some(cond) = exists {
            out.push(self.stmt(StmtKind::If { cond, then: inner, otherwise: Block::new() }));
        }
        out
    }

    fn parts(&mut self, parts: &[Part], term: ExprId, sum: LocalId) -> Block {
        let mut out = Block::new();
        for (at, part) in parts.iter().enumerate() {
            match *part {
                Part::Assign(local, value) => {
                    let value = self.shifted(value);
                    let copy = self.function.locals[local].clone();
                    let own = match self.locals.get(&local) {
                        Some(&own) => own,
                        None => self.function.locals.push(copy),
                    };
                    self.locals.insert(local, own);
                    out.push(self.stmt(StmtKind::Assign(own, value)));
                }
                Part::If(cond, has_value) => {
                    let cond = self.shifted(cond);
                    let rest = self.parts(&parts[at + 1..], term, sum);
                    let (then, otherwise) = if has_value { (rest, Block::new()) } else { (Block::new(), rest) };
                    out.push(self.stmt(StmtKind::If { cond, then, otherwise }));
                    return out;
                }
            }
        }
        let (before, ty) = (self.read(sum), self.function.locals[sum].ty);
        let term = unrounded(self.function, term);
        let term = self.shifted(term);
        let term = converted(self.function, term, ty);
        let after = self.binary(BinaryOp::Add, before, term);
        out.push(self.stmt(StmtKind::Assign(sum, after)));
        out
    }

    /// An expression of another thread.
    fn shifted(&mut self, id: ExprId) -> ExprId {
        let (values, threads, locals) = (self.values, &self.threads, &self.locals);
        self.function.copy_with(id, &mut |function, id| {
            let span = function.exprs[id].span;
            if let Some(axis) = values.axis(function, id) {
                let (ty, thread) = (function.exprs[id].ty, threads.get(&axis)?);
                let thread = function.edit(span).read(*thread);
                return Some(converted(function, thread, ty));
            }
            let own = *locals.get(&function.local(id)?)?;
            Some(function.edit(span).read(own))
        })
    }

    /// A value that is the same in all threads.
    fn uniform(&mut self, id: ExprId) -> ExprId {
        inlined(self.function, self.values, &self.locals, id)
    }

    /// The distance of a term's element from its thread, or the largest one.
    fn distance(&mut self, term: &Term, dim: usize, is_largest: bool) -> ExprId {
        let Index { constant, rest, .. } = &term.indices[dim];
        let mut sum = self.int(*constant);
        for &(id, negative) in rest {
            let counter = counter_of(self.function, id).filter(|_| is_largest);
            let own = term.slice.loops.iter().find(|own| Some(own.counter) == counter);
            let value = match own {
                Some(own) if negative => self.uniform(own.start),
                Some(own) => self.uniform(own.bound),
                None => self.uniform(id),
            };
            let value = converted(self.function, value, Type::I64);
            let op = if negative { BinaryOp::Sub } else { BinaryOp::Add };
            sum = self.binary(op, sum, value);
            if own.is_some() && !negative {
                let one = self.int(1);
                sum = self.binary(BinaryOp::Sub, sum, one);
            }
        }
        sum
    }
}

/// Copies an expression, with the values of locals that have one, and other locals in place of some.
fn inlined(function: &mut Function, values: &Values, locals: &BTreeMap<LocalId, LocalId>, id: ExprId) -> ExprId {
    function.copy_with(id, &mut |function, id| {
        let local = function.local(id)?;
        if let Some(&own) = locals.get(&local) {
            return Some(function.edit(function.exprs[id].span).read(own));
        }
        values.sole(local).map(|value| inlined(function, values, locals, value))
    })
}
