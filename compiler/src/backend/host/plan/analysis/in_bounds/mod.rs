//! Loads under a condition that every thread may make: their addresses are in bounds whether the condition holds or
//! not.
//!
//! ```text
//! if ($x < $width) & ($y < $height) {
//!     $alive = …
//!     if $alive == 2 { $t = load $cells.data[$y * $width + $x] == 1 } else { $t = False }
//! }
//! ```
//!
//! The analysis executes the statements in program order on [inequalities](inequalities) between integers. What it
//! knows at a position follows from the conditions and assignments that dominate it. A load is in bounds if its offset
//! is
//!
//! - within an array whose extents are known, a declared one or an argument: each index is within its extent;
//! - or between the addresses of two accesses to the same array that dominate the condition.
//!
//! Integers that may wrap are atoms, about which only the range of their type is known.

mod inequalities;

use std::collections::{BTreeMap, BTreeSet};

use weft_artifact::{ArgItem, Layout, SlotField, SlotSource, Step};

use self::inequalities::{Bound, Inequalities, Key, Value};
use crate::{
    analysis::{
        Interval, Rematerializable,
        affine::{Polynomial, bytes_per_step},
        argument_range, assigned_in,
    },
    ir::{
        Arith, Base, BinaryOp, Class, CompareOp, Const, ExprId, ExprKind, Function, Leaf, LocalId, Module, Stmt,
        StmtKind, Type, UnaryOp, falls_through, for_each_expr,
    },
};

/// The maximum number of accesses that a load is compared with.
const MAX_ACCESSES: usize = 16;

/// Loads in the assignments at the start of the arms of branches.
#[derive(Debug, Default)]
pub(crate) struct SpeculativeLoads {
    /// Those that are in bounds whether the branch's condition holds or not.
    pub in_bounds: BTreeSet<ExprId>,
    /// Those from memory that the threads load in any case: a declared array, or elements at a uniform distance from
    /// those of an access that dominates the branch.
    pub near: BTreeSet<ExprId>,
}

/// Finds the loads of a kernel's body that threads may make although the condition around them does not hold.
pub(crate) fn speculative_loads(
    module: &Module,
    function: &Function,
    fixed: &Rematerializable,
    body: &[Stmt],
) -> SpeculativeLoads {
    let mut loads = Loads {
        module,
        function,
        fixed,
        known: Inequalities::default(),
        locals: BTreeMap::new(),
        flags: BTreeMap::new(),
        accesses: Vec::new(),
        found: SpeculativeLoads::default(),
    };
    loads.list(body);
    loads.found
}

/// Whether an arm begins with assignments of which one has a load.
pub(crate) fn loads_at_start(function: &Function, arm: &[Stmt]) -> bool {
    let mut loads = false;
    for stmt in arm {
        let StmtKind::Assign(_, value) = stmt.kind else { break };
        for_each_expr(function, value, &mut |id| loads |= matches!(function.class(id), Class::Load(_)));
    }
    loads
}

/// The memory that an address points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Root {
    Param(LocalId),
    Declared(Base),
}

/// An access of some bytes of an array.
#[derive(Clone, Debug)]
struct ByteRange {
    root: Root,
    /// The offset of the first byte.
    first: Polynomial,
    /// The offset of the byte past the last one.
    end: Polynomial,
}

/// The polynomials that are not negative if a condition holds, and those that are not if it does not hold.
#[derive(Clone, Debug, Default)]
struct Implied {
    holds: Vec<Polynomial>,
    fails: Vec<Polynomial>,
}

struct Loads<'a> {
    module: &'a Module,
    function: &'a Function,
    fixed: &'a Rematerializable,
    known: Inequalities,
    /// The integers that locals have at the position.
    locals: BTreeMap<LocalId, Value>,
    /// What the boolean locals imply that are assigned before the position.
    flags: BTreeMap<LocalId, Implied>,
    /// The accesses that dominate the position.
    accesses: Vec<ByteRange>,
    found: SpeculativeLoads,
}

impl Loads<'_> {
    fn list(&mut self, list: &[Stmt]) {
        for stmt in list {
            for root in stmt.kind.exprs() {
                self.record_loads(root);
            }
            match &stmt.kind {
                StmtKind::Assign(local, value) => self.assign(*local, *value),
                StmtKind::Store { pointer, .. } => self.record(*pointer),
                StmtKind::If { cond, then, otherwise } => self.branch(*cond, then, otherwise),
                StmtKind::Loop { body, step } => {
                    let changed = assigned_in(std::slice::from_ref(stmt));
                    self.forget(changed.iter().copied());
                    self.scope(|loads| loads.list(body));
                    self.scope(|loads| loads.list(step));
                    self.forget(changed);
                }
                StmtKind::Op { results, .. } | StmtKind::Call { results, .. } => self.forget(results.iter().copied()),
                StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
            }
        }
    }

    fn branch(&mut self, cond: ExprId, then: &[Stmt], otherwise: &[Stmt]) {
        let implied = self.implied(cond);
        for arm in [then, otherwise] {
            if loads_at_start(self.function, arm) {
                self.scope(|loads| loads.speculate(arm));
            }
        }
        for (arm, facts) in [(then, &implied.holds), (otherwise, &implied.fails)] {
            self.scope(|loads| {
                loads.assume(facts);
                loads.list(arm);
            });
        }
        self.forget(assigned_in(then));
        self.forget(assigned_in(otherwise));
        if !falls_through(then) {
            self.assume(&implied.fails);
        }
        if !falls_through(otherwise) {
            self.assume(&implied.holds);
        }
    }

    /// Finds the loads of the assignments at the start of an arm that are in bounds without its condition.
    fn speculate(&mut self, arm: &[Stmt]) {
        for stmt in arm {
            let StmtKind::Assign(local, value) = stmt.kind else { return };
            let mut loads = Vec::new();
            for_each_expr(self.function, value, &mut |id| {
                if let Class::Load(pointer) = self.function.class(id) {
                    loads.push((id, pointer));
                }
            });
            for (id, pointer) in loads {
                let Some(bytes) = self.byte_range(pointer) else { continue };
                if self.is_in_bounds(&bytes) {
                    self.found.in_bounds.insert(id);
                }
                if self.is_near(&bytes) {
                    self.found.near.insert(id);
                }
            }
            self.assign(local, value);
            if let Some(value) = self.locals.get(&local)
                && self.function.locals[local].nonneg
                && !self.known.is_at_most(&Polynomial::default(), &value.sum)
            {
                // The mark of the local holds only if the condition does, and passes may rely on it.
                let unknown =
                    self.known.atom(Key::Fresh, Interval::of_type(self.function.locals[local].ty), Bound::None);
                self.locals.insert(local, unknown);
            }
        }
    }

    /// Runs a function on statements that do not dominate the next ones.
    fn scope(&mut self, run: impl FnOnce(&mut Self)) {
        let (locals, flags) = (self.locals.clone(), self.flags.clone());
        let (mark, accesses) = (self.known.mark(), self.accesses.len());
        run(self);
        self.known.reset(mark);
        self.accesses.truncate(accesses);
        (self.locals, self.flags) = (locals, flags);
    }

    fn assume(&mut self, facts: &[Polynomial]) {
        for fact in facts {
            self.known.add(fact.clone());
        }
    }

    fn assign(&mut self, local: LocalId, value: ExprId) {
        self.flags.remove(&local);
        if self.function.locals[local].ty == Type::BOOL {
            let implied = self.implied(value);
            self.flags.insert(local, implied);
        } else if is_integer(self.function.locals[local].ty) {
            let value = self.value(value);
            self.locals.insert(local, value);
        }
    }

    /// The locals have values about which only what holds everywhere is known.
    fn forget(&mut self, locals: impl IntoIterator<Item = LocalId>) {
        for local in locals {
            self.flags.remove(&local);
            if is_integer(self.function.locals[local].ty) {
                let value = self.known.atom(Key::Fresh, self.range_of(local), Bound::None);
                self.locals.insert(local, value);
            }
        }
    }

    /// The range of a local, whatever is assigned to it.
    fn range_of(&self, id: LocalId) -> Interval {
        if let Some(index) = self.function.params.iter().position(|&param| param == id) {
            return argument_range(self.module, self.function, index);
        }
        let local = &self.function.locals[id];
        let all = Interval::of_type(local.ty);
        if local.nonneg { all.meet(Interval::new(0, i128::MAX)) } else { all }
    }

    /// The value of an integer expression at the position.
    fn value(&mut self, id: ExprId) -> Value {
        let ty = self.function.exprs[id].ty;
        let all = Interval::of_type(ty);
        match self.function.class(id) {
            Class::Leaf(Leaf::Const(Const::Int(value))) => {
                Value { sum: Polynomial::constant(value), range: Interval::of(value) }
            }
            Class::Leaf(Leaf::Local(local)) if is_integer(ty) => self.local(local),
            Class::Leaf(Leaf::Special(register)) => {
                self.known.atom(Key::Special(register), all.meet(Interval::new(0, i128::MAX)), Bound::None)
            }
            Class::Arith(Arith::Convert(a)) if is_integer(ty) && is_integer(self.function.exprs[a].ty) => {
                let value = self.value(a);
                if value.range.fits(ty) { value } else { self.known.atom(Key::Expr(id), all, Bound::None) }
            }
            Class::Arith(Arith::Unary(op, a)) if is_integer(ty) => {
                let range = Interval::unary(op, self.value(a).range, ty);
                self.known.atom(Key::Expr(id), range, Bound::None)
            }
            Class::Arith(Arith::Binary(op, a, b)) if is_integer(ty) => {
                let (a, b) = (self.value(a), self.value(b));
                self.binary(op, a, b, ty)
            }
            Class::Arith(Arith::Select(_, a, b)) if is_integer(ty) => {
                let (a, b) = (self.value(a), self.value(b));
                self.known.atom(Key::Expr(id), a.range.join(b.range), Bound::Either(a.sum, b.sum))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {
                self.known.atom(Key::Expr(id), all, Bound::None)
            }
        }
    }

    fn local(&mut self, local: LocalId) -> Value {
        if let Some(value) = self.locals.get(&local) {
            // Facts that hold here may have made the range narrower.
            return Value { sum: value.sum.clone(), range: value.range.meet(self.known.range(&value.sum)) };
        }
        if let Some(value) = self.fixed.value(local) {
            let value = self.value(value);
            self.locals.insert(local, value.clone());
            return value;
        }
        let is_param = self.function.params.contains(&local);
        let key = if is_param { Key::Param(local) } else { Key::Fresh };
        let value = self.known.atom(key, self.range_of(local), Bound::None);
        self.locals.insert(local, value.clone());
        value
    }

    fn binary(&mut self, op: BinaryOp, a: Value, b: Value, ty: Type) -> Value {
        use BinaryOp::{Add, AddExact, FloorMod, Max, Min, ModNonneg, Mul, MulExact, Sub, SubExact};
        let (of_a, of_b) = (self.known.bounded(&a), self.known.bounded(&b));
        let exact = match op {
            Add | AddExact => a.sum.clone().plus(&b.sum, 1).map(|sum| (sum, of_a.plus(of_b))),
            Sub | SubExact => a.sum.clone().plus(&b.sum, -1).map(|sum| (sum, of_a.minus(of_b))),
            Mul | MulExact => a.sum.times(&b.sum).map(|sum| (sum, of_a.times(of_b))),
            FloorMod
            | Min
            | Max
            | ModNonneg
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::DivNonneg
            | BinaryOp::Pow
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => None,
        };
        // An operation that is marked as exact may wrap in a thread for which the condition around it does not hold.
        if let Some((sum, range)) = exact
            && sum.is_small()
            && legal!("in_bounds.no-wrap", range.fits(ty))
        {
            return Value { sum, range };
        }
        let is_nonneg = of_a.is_nonneg() && of_b.is_nonneg();
        if matches!(op, ModNonneg | BinaryOp::DivNonneg) && !is_nonneg {
            return self.known.atom(Key::Fresh, Interval::of_type(ty), Bound::None);
        }
        let range = Interval::binary(op, of_a, of_b, ty);
        let bound = match op {
            // A remainder modulo a positive number.
            FloorMod | ModNonneg => Bound::Below(b.sum.clone()),
            Min => Bound::Least(a.sum.clone(), b.sum.clone()),
            Max => Bound::Greatest(a.sum.clone(), b.sum.clone()),
            Add
            | AddExact
            | Sub
            | SubExact
            | Mul
            | MulExact
            | BinaryOp::Div
            | BinaryOp::FloorDiv
            | BinaryOp::DivNonneg
            | BinaryOp::Pow
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor
            | BinaryOp::Shl
            | BinaryOp::Shr => Bound::None,
        };
        self.known.atom(Key::Binary(op, a.sum, b.sum), range, bound)
    }

    /// What a condition implies at the position.
    fn implied(&mut self, cond: ExprId) -> Implied {
        let constant = |id: ExprId| {
            if let ExprKind::Const(Const::Bool(value)) = self.function.exprs[id].kind { Some(value) } else { None }
        };
        match self.function.class(cond) {
            Class::Arith(Arith::Unary(UnaryOp::Not, a)) => {
                let Implied { holds, fails } = self.implied(a);
                Implied { holds: fails, fails: holds }
            }
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => {
                Implied { holds: [self.implied(a).holds, self.implied(b).holds].concat(), fails: Vec::new() }
            }
            Class::Arith(Arith::Binary(BinaryOp::Or, a, b)) => {
                Implied { holds: Vec::new(), fails: [self.implied(a).fails, self.implied(b).fails].concat() }
            }
            // The forms of `a and b` and `a or b`.
            Class::Arith(Arith::Select(a, b, no)) if constant(no) == Some(false) => {
                Implied { holds: [self.implied(a).holds, self.implied(b).holds].concat(), fails: Vec::new() }
            }
            Class::Arith(Arith::Select(a, yes, b)) if constant(yes) == Some(true) => {
                Implied { holds: Vec::new(), fails: [self.implied(a).fails, self.implied(b).fails].concat() }
            }
            Class::Leaf(Leaf::Local(local)) => match (self.flags.get(&local), self.fixed.value(local)) {
                (Some(implied), _) => implied.clone(),
                (None, Some(value)) => self.implied(value),
                (None, None) => Implied::default(),
            },
            Class::Arith(Arith::Compare(op, a, b)) if is_integer(self.function.exprs[a].ty) => {
                let (a, b) = (self.value(a).sum, self.value(b).sum);
                compared(op, &a, &b)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => Implied::default(),
        }
    }

    /// Records that the loads of an expression are executed.
    fn record_loads(&mut self, root: ExprId) {
        let mut pointers = Vec::new();
        for_each_expr(self.function, root, &mut |id| {
            if let Class::Load(pointer) = self.function.class(id) {
                pointers.push(pointer);
            }
        });
        for pointer in pointers {
            self.record(pointer);
        }
    }

    fn record(&mut self, pointer: ExprId) {
        let bytes = self.byte_range(pointer);
        self.accesses.extend(bytes);
    }

    /// The bytes of the element at a pointer.
    fn byte_range(&mut self, pointer: ExprId) -> Option<ByteRange> {
        let Type::Ptr(element, _) = self.function.exprs[pointer].ty else { return None };
        let (root, first) = self.address(pointer)?;
        let end = first.clone().plus(&Polynomial::constant(i128::from(element.size_bytes())), 1)?;
        Some(ByteRange { root, first, end })
    }

    /// The memory that a pointer points into, and its offset in bytes.
    fn address(&mut self, pointer: ExprId) -> Option<(Root, Polynomial)> {
        match self.function.class(pointer) {
            Class::Leaf(Leaf::Base(base)) => Some((Root::Declared(base), Polynomial::default())),
            Class::Leaf(Leaf::Local(local)) if self.function.params.contains(&local) => {
                Some((Root::Param(local), Polynomial::default()))
            }
            Class::Leaf(Leaf::Local(local)) => self.address(self.fixed.value(local)?),
            Class::Arith(Arith::Convert(base)) => self.address(base),
            Class::Address { base, by, .. } => {
                let (root, offset) = self.address(base)?;
                Some((root, offset.plus(&self.value(by).sum, bytes_per_step(self.function, pointer))?))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => None,
        }
    }

    fn is_in_bounds(&mut self, bytes: &ByteRange) -> bool {
        let is_between = self.accesses_of(bytes.root).any(|access| self.known.is_at_most(&access.first, &bytes.first))
            && self.accesses_of(bytes.root).any(|access| self.known.is_at_most(&bytes.end, &access.end));
        is_between
            || match bytes.root {
                Root::Declared(base) => self.is_declared(base, bytes),
                Root::Param(param) => self.is_in_argument(param, bytes).unwrap_or(false),
            }
    }

    fn is_near(&self, bytes: &ByteRange) -> bool {
        let is_at_distance = |access: &ByteRange| {
            let distance = access.first.clone().plus(&bytes.first, -1);
            distance.is_some_and(|distance| self.known.is_of_params(&distance))
        };
        matches!(bytes.root, Root::Declared(_)) || self.accesses_of(bytes.root).any(is_at_distance)
    }

    /// The last accesses to an array that dominate the position.
    fn accesses_of(&self, root: Root) -> impl Iterator<Item = &ByteRange> {
        self.accesses.iter().rev().filter(move |access| access.root == root).take(MAX_ACCESSES)
    }

    fn is_declared(&self, base: Base, bytes: &ByteRange) -> bool {
        let size = match base {
            Base::Shared(id) => self.module.shared[id].len * self.module.shared[id].elem.size_bytes(),
            Base::Const(id) => self.module.constants[id].bytes.len() as u64,
            Base::Local(id) => self.function.local_arrays[id].len * self.function.local_arrays[id].elem.size_bytes(),
            Base::Dynamic => return false,
        };
        self.known.is_at_most(&Polynomial::default(), &bytes.first)
            && self.known.is_at_most(&bytes.end, &Polynomial::constant(size.into()))
    }

    /// Whether bytes are in the array of an argument, because each index is within its extent.
    fn is_in_argument(&mut self, data: LocalId, bytes: &ByteRange) -> Option<bool> {
        let index = self.function.params.iter().position(|&param| param == data)?;
        let SlotSource::Argument { param, path, field: SlotField::Data } = self.function.slots.get(index)? else {
            return None;
        };
        let ArgItem::Array(array) = self.module.params.get(*param as usize)?.ty.leaf(path)? else { return None };
        let axes: Vec<u8> = match array.layout {
            Layout::C => (0..array.ndim).collect(),
            Layout::F => (0..array.ndim).rev().collect(),
            Layout::Any => return None,
        };
        let item = i128::from(array.dtype.size_bytes());
        let size = bytes.end.clone().plus(&bytes.first, -1)?.as_constant()?;
        let (mut left, part) = bytes.first.divided_by_constant(item)?;
        if part + size > item {
            return Some(false);
        }
        let mut extents = Vec::new();
        for axis in axes {
            extents.push(self.extent(*param, path, axis)?);
        }
        while let Some(extent) = extents.pop() {
            let mut index = std::mem::take(&mut left);
            if !extents.is_empty() {
                (left, index) = index.divided_by(*extent.terms().next()?.0.first()?);
            }
            let most = extent.plus(&Polynomial::constant(-1), 1)?;
            if !self.known.is_at_most(&Polynomial::default(), &index) || !self.known.is_at_most(&index, &most) {
                return Some(false);
            }
        }
        Some(left.as_constant() == Some(0))
    }

    /// An extent of an argument: an atom.
    fn extent(&mut self, of: u32, of_path: &[Step], axis: u8) -> Option<Polynomial> {
        let mut slots = self.function.params.iter().zip(&self.function.slots);
        let (&local, _) = slots.find(|(_, slot)| match slot {
            SlotSource::Argument { param, path, field: SlotField::Shape(at) } => {
                (*param, path.as_slice(), *at) == (of, of_path, axis)
            }
            SlotSource::Argument { .. } | SlotSource::Runtime(_) => false,
        })?;
        Some(self.local(local).sum)
    }
}

/// The polynomials that are not negative if two integers compare.
fn compared(op: CompareOp, a: &Polynomial, b: &Polynomial) -> Implied {
    let at_most = |lesser: &Polynomial, greater: &Polynomial, by: i128| {
        greater.clone().plus(lesser, -1).and_then(|sum| sum.plus(&Polynomial::constant(by), 1)).into_iter().collect()
    };
    match op {
        CompareOp::Lt => Implied { holds: at_most(a, b, -1), fails: at_most(b, a, 0) },
        CompareOp::Le => Implied { holds: at_most(a, b, 0), fails: at_most(b, a, -1) },
        CompareOp::Gt => Implied { holds: at_most(b, a, -1), fails: at_most(a, b, 0) },
        CompareOp::Ge => Implied { holds: at_most(b, a, 0), fails: at_most(a, b, -1) },
        CompareOp::Eq => Implied { holds: [at_most(a, b, 0), at_most(b, a, 0)].concat(), fails: Vec::new() },
        CompareOp::Ne => Implied { holds: Vec::new(), fails: [at_most(a, b, 0), at_most(b, a, 0)].concat() },
    }
}

fn is_integer(ty: Type) -> bool {
    ty != Type::BOOL && ty.scalar().is_some_and(weft_artifact::Scalar::is_int)
}
