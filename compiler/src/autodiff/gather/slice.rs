//! The statements that compute what a thread adds to an element.

use std::collections::BTreeSet;

use super::index::Values;
use crate::{
    analysis::assigned_in,
    ir::{
        Arith, BinaryOp, Class, ExprId, Function, Leaf, LocalId, SpecialRegister, Stmt, StmtKind, Type, for_each_expr,
    },
    passes::{Counted, counted},
};

/// The costs of expressions; that of an operation on floats is 1.
const LOAD: usize = 4;
const DIVISION: usize = 8;
const FUNCTION: usize = 16;

/// The lists of statements around a statement, from the outermost one on, with the index of the statement in each that is
/// or contains it.
#[derive(Clone, Default)]
pub(super) struct Path<'a> {
    pub(super) steps: Vec<(&'a [Stmt], usize)>,
}

/// A statement of a slice.
pub(super) enum Part {
    Assign(LocalId, ExprId),
    /// The following parts run if the condition has this value.
    If(ExprId, bool),
}

/// A loop around the addition.
pub(super) struct Loop {
    pub(super) counter: LocalId,
    /// The counter before the first iteration.
    pub(super) start: ExprId,
    /// The loop ends when the counter is not less.
    pub(super) bound: ExprId,
    pub(super) stride: i128,
}

/// What is executed to compute a term.
pub(super) struct Slice {
    /// From the outermost one on. They are independent of the thread.
    pub(super) loops: Vec<Loop>,
    pub(super) parts: Vec<Part>,
    pub(super) term: ExprId,
    /// The axes of the grid that the term and its conditions depend on.
    pub(super) axes: BTreeSet<u8>,
    /// The addresses that are loaded from.
    pub(super) loads: Vec<ExprId>,
}

/// The slice of a term at the end of a path.
pub(super) fn of(function: &Function, values: &Values, path: &Path<'_>, term: ExprId) -> Option<Slice> {
    let slice = Slice { loops: Vec::new(), parts: Vec::new(), term, axes: BTreeSet::new(), loads: Vec::new() };
    let mut slicer = Slicer { function, values, slice, needed: BTreeSet::new() };
    slicer.needs(term)?;
    for depth in (0..path.steps.len()).rev() {
        let (list, at) = path.steps[depth];
        if let Some(&(inner, _)) = path.steps.get(depth + 1) {
            slicer.enter(&list[..at], &list[at], inner)?;
        }
        for stmt in list[..at].iter().rev() {
            slicer.before(stmt)?;
        }
    }
    let Slicer { mut slice, needed, .. } = slicer;
    slice.loops.reverse();
    slice.parts.reverse();
    needed.iter().all(|&local| values.is_param(function, local)).then_some(slice)
}

struct Slicer<'a> {
    function: &'a Function,
    values: &'a Values,
    /// Its parts and loops are in reverse order.
    slice: Slice,
    /// The locals that the parts read before they assign them.
    needed: BTreeSet<LocalId>,
}

impl Slicer<'_> {
    /// Notes what an expression reads.
    fn needs(&mut self, id: ExprId) -> Option<()> {
        if let Some(axis) = self.values.axis(self.function, id) {
            self.slice.axes.insert(axis);
            return Some(());
        }
        match self.function.class(id) {
            Class::Leaf(Leaf::Special(register)) => {
                return matches!(register, SpecialRegister::BlockDim(_) | SpecialRegister::GridDim(_)).then_some(());
            }
            Class::Leaf(Leaf::Local(local)) => {
                self.needed.insert(local);
            }
            Class::Load(pointer) => self.slice.loads.push(pointer),
            Class::Leaf(Leaf::Const(_) | Leaf::Base(_)) | Class::Arith(_) | Class::Address { .. } => {}
        }
        self.function.exprs[id].kind.operands().iter().try_for_each(|&operand| self.needs(operand))
    }

    /// Takes a statement before the one of the path.
    fn before(&mut self, stmt: &Stmt) -> Option<()> {
        if let StmtKind::Assign(local, value) = stmt.kind {
            if self.needed.remove(&local) {
                self.slice.parts.push(Part::Assign(local, value));
                self.needs(value)?;
            }
            return Some(());
        }
        let is_jump = matches!(stmt.kind, StmtKind::Break | StmtKind::Continue | StmtKind::Return(_));
        let assigned = assigned_in(std::slice::from_ref(stmt));
        (!is_jump && assigned.is_disjoint(&self.needed)).then_some(())
    }

    /// Takes the branch or the loop whose list `inner` the path continues in; `before` are the statements before it.
    fn enter(&mut self, before: &[Stmt], stmt: &Stmt, inner: &[Stmt]) -> Option<()> {
        match &stmt.kind {
            StmtKind::If { cond, then, .. } => {
                self.slice.parts.push(Part::If(*cond, std::ptr::eq(then.as_slice(), inner)));
                self.needs(*cond)
            }
            StmtKind::Loop { body, step } => {
                let Counted { counter, bound, stride } = counted(self.function, body, step)?;
                self.needed.remove(&counter);
                let is_carried = !assigned_in(body).is_disjoint(&self.needed);
                let start = before.iter().rev().find_map(|stmt| {
                    if let StmtKind::Assign(local, value) = stmt.kind {
                        (local == counter).then_some(value)
                    } else {
                        None
                    }
                })?;
                let is_own = self.values.counts.get(&counter) == Some(&2);
                let mut counters = BTreeSet::new();
                let are_uniform =
                    [start, bound].into_iter().all(|id| self.values.is_uniform(self.function, id, &mut counters, 0));
                let fits = std::ptr::eq(body.as_slice(), inner) && is_own && !is_carried && are_uniform;
                self.slice.loops.push(Loop { counter, start, bound, stride });
                (fits && counters.is_empty()).then_some(())
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => None,
        }
    }
}

impl Slice {
    /// What it costs to compute the term once.
    pub(super) fn cost(&self, function: &Function) -> usize {
        let roots = self.parts.iter().map(|part| match part {
            Part::Assign(_, value) => *value,
            Part::If(cond, _) => *cond,
        });
        roots.chain([self.term]).map(|root| cost(function, root)).sum()
    }
}

fn cost(function: &Function, root: ExprId) -> usize {
    let mut sum = 0;
    for_each_expr(function, root, &mut |id| {
        let is_float = matches!(function.exprs[id].ty, Type::Scalar(scalar) if scalar.is_float());
        sum += match function.class(id) {
            Class::Load(_) => LOAD,
            Class::Arith(Arith::Math(..)) => FUNCTION,
            Class::Arith(Arith::Binary(
                BinaryOp::Div
                | BinaryOp::FloorDiv
                | BinaryOp::FloorMod
                | BinaryOp::DivNonneg
                | BinaryOp::ModNonneg
                | BinaryOp::Pow,
                ..,
            )) => DIVISION,
            Class::Arith(_) => usize::from(is_float),
            Class::Leaf(_) | Class::Address { .. } => 0,
        };
    });
    sum
}
