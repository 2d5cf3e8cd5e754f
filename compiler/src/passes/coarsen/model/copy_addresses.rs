//! The addresses that the copies of a thread access, as polynomials, so that equal addresses are counted once.
//!
//! `u[i + 1, j]` of one copy and `u[i, j]` of the next one are the same element. An address is a sum of products of
//! *atoms*: locals that are assigned more than once, registers, and opaque operations. Integers are treated as
//! unbounded: the result is only used for estimates.

use std::{
    collections::{BTreeMap, HashMap},
    rc::Rc,
};

use crate::{
    ir::{
        Arith, Base, BinaryOp, Class, Const, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister, StmtKind,
        UnaryOp, Unit, for_each_stmt,
    },
    passes::coarsen::{CopyLocals, order::step, vary::Vary},
};

/// The maximum number of terms of a sum, and of factors of a term. A larger expression is an atom.
const MOST_TERMS: usize = 24;
const MOST_FACTORS: usize = 4;

/// A polynomial: the coefficient of each product of atoms. The constant is the term without atoms.
pub(super) type Sum = BTreeMap<Vec<u32>, i128>;

/// An indivisible part of a polynomial.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
enum Atom {
    /// A local; of this copy, if it varies.
    Local(usize, [u32; 3]),
    /// The distance of an induction variable from its start value.
    Iteration(usize),
    Special(SpecialRegister),
    Base(Base),
    /// Any other operation: its name and its operands.
    Other(String, Vec<Vec<(Vec<u32>, i128)>>),
}

/// The definition of a local.
#[derive(Clone, Copy)]
enum LocalSource {
    /// It has a single assignment.
    Value(ExprId),
    /// It is an induction variable with this start value, and a step that is uniform over the copies.
    Counter(ExprId),
    /// Any other.
    Any,
}

/// The addresses that the copies of a coarsened thread access.
pub(super) struct CopyAddresses<'a> {
    function: &'a Function,
    copies: CopyLocals,
    /// By axis.
    vary: &'a [Rc<Vary>; 3],
    sources: Vec<LocalSource>,
    atoms: HashMap<Atom, u32>,
    locals: HashMap<(usize, [u32; 3]), Sum>,
    /// Locals whose definition is being expanded. A local that depends on itself is an atom.
    open: Vec<LocalId>,
}

impl<'a> CopyAddresses<'a> {
    pub(super) fn new(function: &'a Function, copies: CopyLocals, vary: &'a [Rc<Vary>; 3]) -> Self {
        Self {
            function,
            copies,
            vary,
            sources: sources(function, vary),
            atoms: HashMap::new(),
            locals: HashMap::new(),
            open: Vec::new(),
        }
    }

    /// The polynomial of an integer, or of an address in bytes, for a copy.
    pub(super) fn sum(&mut self, root: ExprId, copy: [u32; 3]) -> Sum {
        match self.function.class(root) {
            Class::Leaf(Leaf::Const(Const::Int(value))) => constant(value),
            Class::Leaf(Leaf::Local(local)) => self.local(local, copy),
            Class::Leaf(Leaf::Special(register)) => self.atom(Atom::Special(register)),
            Class::Leaf(Leaf::Base(base)) => self.atom(Atom::Base(base)),
            Class::Leaf(Leaf::Const(other)) => self.atom(Atom::Other(format!("{other:?}"), Vec::new())),
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
                let (a, b) = (self.sum(a, copy), self.sum(b, copy));
                self.bounded(root, copy, added(a, &b, 1))
            }
            Class::Arith(Arith::Binary(BinaryOp::Sub | BinaryOp::SubExact, a, b)) => {
                let (a, b) = (self.sum(a, copy), self.sum(b, copy));
                self.bounded(root, copy, added(a, &b, -1))
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
                let (a, b) = (self.sum(a, copy), self.sum(b, copy));
                self.bounded(root, copy, product(&a, &b))
            }
            Class::Arith(Arith::Unary(UnaryOp::Neg, a)) => added(Sum::new(), &self.sum(a, copy), -1),
            Class::Arith(Arith::Convert(a)) if self.is_whole(root) && self.is_whole(a) => self.sum(a, copy),
            Class::Arith(Arith::Wrap { index, .. }) => self.sum(index, copy),
            Class::Address { base, by, unit } => {
                let bytes = match unit {
                    Unit::Bytes => 1,
                    Unit::Elements => step(self.function, root),
                };
                let (base, by) = (self.sum(base, copy), self.sum(by, copy));
                self.bounded(root, copy, added(base, &by, bytes))
            }
            Class::Load(_) | Class::Arith(_) => self.other(root, copy),
        }
    }

    /// Whether a value is an integer or a pointer.
    fn is_whole(&self, id: ExprId) -> bool {
        self.function.exprs[id].ty.scalar().is_none_or(weft_artifact::Scalar::is_int)
    }

    fn local(&mut self, local: LocalId, copy: [u32; 3]) -> Sum {
        if let Some(axis) = self.copies.iter().position(|of_axis| *of_axis == Some(local)) {
            return constant(i128::from(copy[axis]));
        }
        let own = own(self.vary, local, copy);
        if let Some(known) = self.locals.get(&(local.index(), own)) {
            return known.clone();
        }
        let is_whole = self.function.locals[local].ty.scalar().is_none_or(weft_artifact::Scalar::is_int);
        let source =
            if is_whole && !self.open.contains(&local) { self.sources[local.index()] } else { LocalSource::Any };
        self.open.push(local);
        let sum = match source {
            LocalSource::Value(value) => self.sum(value, copy),
            LocalSource::Counter(from) => {
                let from = self.sum(from, copy);
                let iteration = self.atom(Atom::Iteration(local.index()));
                added(from, &iteration, 1)
            }
            LocalSource::Any => self.atom(Atom::Local(local.index(), own)),
        };
        self.open.pop();
        self.locals.insert((local.index(), own), sum.clone());
        sum
    }

    fn other(&mut self, root: ExprId, copy: [u32; 3]) -> Sum {
        let operands = self.function.exprs[root].kind.operands();
        let operands = operands.into_iter().map(|operand| self.sum(operand, copy).into_iter().collect()).collect();
        let expr = &self.function.exprs[root];
        // The operation without its operands.
        let kind = expr.kind.clone().map_operands(&mut |_| ExprId::new(0));
        self.atom(Atom::Other(format!("{kind:?}: {}", expr.ty), operands))
    }

    /// The sum, or an atom if it is too large.
    fn bounded(&mut self, root: ExprId, copy: [u32; 3], sum: Sum) -> Sum {
        if sum.len() <= MOST_TERMS && sum.keys().all(|atoms| atoms.len() <= MOST_FACTORS) {
            return sum;
        }
        self.other(root, copy)
    }

    fn atom(&mut self, atom: Atom) -> Sum {
        let next = self.atoms.len() as u32;
        let number = *self.atoms.entry(atom).or_insert(next);
        Sum::from([(vec![number], 1)])
    }
}

/// The index of the copy, restricted to the axes along which a local varies.
fn own(vary: &[Rc<Vary>; 3], local: LocalId, copy: [u32; 3]) -> [u32; 3] {
    let mut own = copy;
    for (number, vary) in own.iter_mut().zip(vary) {
        if !vary.local(local) {
            *number = 0;
        }
    }
    own
}

/// Splits a sum into its other terms and its constant.
pub(super) fn split(mut sum: Sum) -> (Sum, i128) {
    let constant = sum.remove(&Vec::new()).unwrap_or(0);
    (sum, constant)
}

fn constant(value: i128) -> Sum {
    if value == 0 { Sum::new() } else { Sum::from([(Vec::new(), value)]) }
}

fn added(mut a: Sum, b: &Sum, times: i128) -> Sum {
    for (atoms, factor) in b {
        let sum = a.entry(atoms.clone()).or_insert(0);
        *sum = sum.wrapping_add(factor.wrapping_mul(times));
    }
    a.retain(|_, factor| *factor != 0);
    a
}

fn product(a: &Sum, b: &Sum) -> Sum {
    let mut all = Sum::new();
    for (left, by) in a {
        for (right, times) in b {
            let mut atoms = [left.as_slice(), right].concat();
            atoms.sort_unstable();
            let sum: &mut i128 = all.entry(atoms).or_insert(0);
            *sum = sum.wrapping_add(by.wrapping_mul(*times));
        }
    }
    all.retain(|_, factor| *factor != 0);
    all
}

/// By the local's index: its definition.
fn sources(function: &Function, vary: &[Rc<Vary>; 3]) -> Vec<LocalSource> {
    let mut values: Vec<Vec<Option<ExprId>>> = vec![Vec::new(); function.locals.len()];
    for param in &function.params {
        values[param.index()].push(None);
    }
    for_each_stmt(&function.body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            let value = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
            values[local.index()].push(value);
        }
    });
    let steps = |local: usize, value: ExprId| {
        let is_own = |id| matches!(function.exprs[id].kind, ExprKind::Local(own) if own.index() == local);
        let is_same = |id| !vary.iter().any(|vary| vary.expr(function, id));
        match function.class(value) {
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
                is_own(a) && is_same(b) || is_own(b) && is_same(a)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    };
    let source = |(local, values): (usize, Vec<Option<ExprId>>)| match values[..] {
        [Some(value)] => LocalSource::Value(value),
        [Some(from), Some(next)] if steps(local, next) => LocalSource::Counter(from),
        _ => LocalSource::Any,
    };
    values.into_iter().enumerate().map(source).collect()
}

#[cfg(test)]
mod tests {
    use super::{Sum, added, constant, product, split};

    /// A sum of one atom.
    fn atom(number: u32) -> Sum {
        Sum::from([(vec![number], 1)])
    }

    #[test]
    fn the_row_below_of_one_copy_is_the_row_of_the_next() {
        let (row, stride, column) = (atom(0), atom(1), atom(2));
        let at = |copy: i128, below: i128, beside: i128| {
            let row = added(added(row.clone(), &constant(copy), 1), &constant(below), 1);
            let index = added(product(&row, &stride), &added(column.clone(), &constant(beside), 1), 1);
            product(&index, &constant(4))
        };
        assert_eq!(at(0, 1, 0), at(1, 0, 0));
        assert_eq!(at(2, -1, 3), at(0, 1, 3));
        assert_ne!(at(0, 1, 0), at(0, 0, 1));
        let (rest, first) = split(at(1, 0, 0));
        let (of_next, second) = split(at(1, 0, 1));
        assert_eq!((rest, second - first), (of_next, 4));
    }

    #[test]
    fn what_is_nothing_is_no_term() {
        assert_eq!(added(atom(3), &atom(3), -1), Sum::new());
        assert_eq!(product(&atom(3), &constant(0)), Sum::new());
        assert_eq!(product(&atom(3), &atom(1)), product(&atom(1), &atom(3)));
    }
}
