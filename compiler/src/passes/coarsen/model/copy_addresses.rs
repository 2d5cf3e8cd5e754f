//! The addresses that the copies of a thread access, as polynomials, so that equal addresses are counted once.
//!
//! `u[i + 1, j]` of one copy and `u[i, j]` of the next one are the same element. An address is a sum of products of
//! *atoms*: locals that are assigned more than once, registers, and opaque operations. Integers are treated as
//! unbounded: the result is only used for estimates.

use std::{collections::HashMap, rc::Rc};

use crate::{
    analysis::affine::{Atoms, Definition, Polynomial, Precision, definitions, polynomial},
    ir::{Base, Class, ExprId, Function, Leaf, LocalId, SpecialRegister},
    passes::coarsen::{CopyLocals, vary::Vary},
};

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
    Other(String, Vec<Polynomial>),
}

/// The addresses that the copies of a coarsened thread access.
pub(super) struct CopyAddresses<'a> {
    function: &'a Function,
    copies: CopyLocals,
    /// By axis.
    vary: &'a [Rc<Vary>; 3],
    definitions: Vec<Definition>,
    atoms: HashMap<Atom, u32>,
    locals: HashMap<(usize, [u32; 3]), Polynomial>,
    /// Locals whose definition is being expanded. A local that depends on itself is an atom.
    open: Vec<LocalId>,
}

impl<'a> CopyAddresses<'a> {
    pub(super) fn new(function: &'a Function, copies: CopyLocals, vary: &'a [Rc<Vary>; 3]) -> Self {
        Self {
            function,
            copies,
            vary,
            definitions: definitions(function, &|id| !vary.iter().any(|vary| vary.expr(function, id))),
            atoms: HashMap::new(),
            locals: HashMap::new(),
            open: Vec::new(),
        }
    }

    /// The polynomial of an integer, or of an address in bytes, for a copy.
    pub(super) fn sum(&mut self, root: ExprId, copy: [u32; 3]) -> Polynomial {
        polynomial(self.function, Precision::Estimate, &mut OfCopy { addresses: self, copy }, root).unwrap_or_default()
    }

    fn local(&mut self, local: LocalId, copy: [u32; 3]) -> Polynomial {
        if let Some(axis) = self.copies.iter().position(|of_axis| *of_axis == Some(local)) {
            return Polynomial::constant(i128::from(copy[axis]));
        }
        let own = own(self.vary, local, copy);
        if let Some(known) = self.locals.get(&(local.index(), own)) {
            return known.clone();
        }
        let is_whole = self.function.locals[local].ty.scalar().is_none_or(weft_artifact::Scalar::is_int);
        let definition =
            if is_whole && !self.open.contains(&local) { self.definitions[local.index()] } else { Definition::Any };
        self.open.push(local);
        let sum = match definition {
            Definition::Sole(value) => self.sum(value, copy),
            Definition::Counter(from) => {
                let (from, iteration) = (self.sum(from, copy), self.atom(Atom::Iteration(local.index())));
                from.plus(&iteration, 1).unwrap_or_default()
            }
            Definition::Any => self.atom(Atom::Local(local.index(), own)),
        };
        self.open.pop();
        self.locals.insert((local.index(), own), sum.clone());
        sum
    }

    fn other(&mut self, root: ExprId, copy: [u32; 3]) -> Polynomial {
        let atom = match self.function.class(root) {
            Class::Leaf(Leaf::Special(register)) => Atom::Special(register),
            Class::Leaf(Leaf::Base(base)) => Atom::Base(base),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {
                let operands = self.function.exprs[root].kind.operands();
                let operands = operands.into_iter().map(|operand| self.sum(operand, copy)).collect();
                let expr = &self.function.exprs[root];
                // The operation without its operands.
                let kind = expr.kind.clone().map_operands(&mut |_| ExprId::new(0));
                Atom::Other(format!("{kind:?}: {}", expr.ty), operands)
            }
        };
        self.atom(atom)
    }

    fn atom(&mut self, atom: Atom) -> Polynomial {
        let next = self.atoms.len() as u32;
        Polynomial::atom(*self.atoms.entry(atom).or_insert(next))
    }
}

/// The atoms of a copy's addresses.
struct OfCopy<'a, 'b> {
    addresses: &'a mut CopyAddresses<'b>,
    copy: [u32; 3],
}

impl Atoms for OfCopy<'_, '_> {
    fn local(&mut self, local: LocalId, _: ExprId) -> Option<Polynomial> {
        Some(self.addresses.local(local, self.copy))
    }

    fn opaque(&mut self, root: ExprId) -> Option<Polynomial> {
        Some(self.addresses.other(root, self.copy))
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
