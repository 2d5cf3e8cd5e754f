//! Properties of loops that decide how the reverse sweep runs them.

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use super::{
    activity::{Activity, for_each_write},
    arrays::{Arrays, Memory},
    build::is_float,
    shadow::Strides,
    tape::{
        Branch, Carried, Definition, Event, List, Node, Repeat, Values, for_each_event, for_each_use, for_each_value,
    },
};
use crate::{
    analysis::{any_expr, same},
    ir::{Arith, BinaryOp, Class, CompareOp, Const, ExprId, ExprKind, Function, Leaf, LocalId, MathFn, UnaryOp},
};

/// The deepest expressions that are compared, with the values in them.
const DEEPEST: usize = 12;

/// The whole tape, for questions about a loop.
#[derive(Clone, Copy)]
pub(super) struct Tape<'a> {
    pub(super) function: &'a Function,
    pub(super) arrays: &'a Arrays,
    pub(super) activity: &'a Activity,
    pub(super) strides: &'a Strides,
    pub(super) definitions: &'a BTreeMap<LocalId, Definition>,
    /// By value: the number of its uses.
    pub(super) uses: &'a BTreeMap<LocalId, usize>,
}

/// A counter: `next = header + step`.
#[derive(Clone, Copy, Debug)]
pub(super) struct Counter {
    pub(super) init: LocalId,
    pub(super) step: ExprId,
    pub(super) is_negative: bool,
}

/// A running maximum or minimum.
#[derive(Clone, Copy, Debug)]
pub(super) struct Extreme {
    /// The variable at the start of an iteration, and after the loop.
    pub(super) header: LocalId,
    /// Its value at the end of an iteration.
    pub(super) next: LocalId,
    /// What it is compared with: a read of a value, or a constant.
    pub(super) term: ExprId,
    pub(super) is_max: bool,
}

impl Tape<'_> {
    /// The running maximum or minimum that a loop carries.
    pub(super) fn extreme(self, repeat: &Repeat, carried: &Carried) -> Option<Extreme> {
        let &Carried { init: Some(_), header, next } = carried else { return None };
        let branch = repeat.body.iter().find_map(|node| Self::updated_in(node, next));
        let (is_max, a, b) = if let Some(branch) = branch {
            self.compared(repeat, branch, header, next)?
        } else {
            let Some(&Definition::Expr(id, _)) = self.definitions.get(&next) else { return None };
            match self.function.class(id) {
                Class::Arith(Arith::Binary(BinaryOp::Max, a, b)) => (true, a, b),
                Class::Arith(Arith::Binary(BinaryOp::Min, a, b)) => (false, a, b),
                Class::Arith(_) | Class::Leaf(_) | Class::Address { .. } | Class::Load(_) => return None,
            }
        };
        let is_header = |operand| self.function.local(operand) == Some(header);
        let term = match (is_header(a), is_header(b)) {
            (true, false) => b,
            (false, true) => a,
            (true, true) | (false, false) => return None,
        };
        let mut inside = 0;
        let mut count = |value: LocalId| inside += usize::from(value == header);
        for_each_use(self.function, &repeat.head, &mut count);
        for_each_value(self.function, repeat.exit, &mut count);
        for_each_use(self.function, &repeat.body, &mut count);
        repeat.carried.iter().for_each(|carried| count(carried.next));
        let is_once = repeat.body.iter().any(|node| matches!(node, Node::Define { to, .. } if *to == next));
        // A branch compares the variable, and leaves it as it is.
        let own = if branch.is_some() { 2 } else { 1 };
        let is_alone = inside == own && (is_once || branch.is_some()) && self.uses.get(&next) == Some(&1);
        (is_alone && is_float(self.function.locals[header].ty)).then_some(Extreme { header, next, term, is_max })
    }

    /// The branch of a node that assigns a value.
    fn updated_in(node: &Node, next: LocalId) -> Option<&Branch> {
        let Node::If(branch) = node else { return None };
        branch.joins.iter().any(|join| join.to == next).then_some(branch)
    }

    /// Whether `if x > m { m = x }` finds a maximum, and the operands of the comparison. Nothing else that the branch
    /// computes has a derivative.
    fn compared(
        self,
        repeat: &Repeat,
        branch: &Branch,
        header: LocalId,
        next: LocalId,
    ) -> Option<(bool, ExprId, ExprId)> {
        let Class::Arith(Arith::Compare(op, a, b)) = self.function.class(branch.cond) else { return None };
        let is_greater = match op {
            CompareOp::Gt | CompareOp::Ge => true,
            CompareOp::Lt | CompareOp::Le => false,
            CompareOp::Eq | CompareOp::Ne => return None,
        };
        let is_second = self.function.local(b) == Some(header);
        let join = branch.joins.iter().find(|join| join.to == next && join.otherwise == header)?;
        let Some(&Definition::Expr(assigned, _)) = self.definitions.get(&join.then) else { return None };
        let mut written = Vec::new();
        let mut is_ordered = false;
        for_each_event(&repeat.body, &mut |_, event| match event {
            Event::Write(write) => written.push(self.arrays.memory(self.function, write.pointer)),
            Event::Barrier(_) => is_ordered = true,
        });
        let is_constant = |pointer: ExprId| {
            let memory = self.arrays.memory(self.function, pointer);
            !is_ordered && memory != Memory::Other && !written.contains(&memory)
        };
        let fits = self.equal(assigned, if is_second { a } else { b }, &is_constant, DEEPEST)
            && branch.otherwise.is_empty()
            && branch.joins.iter().all(|join| join.to == next || !is_float(self.function.locals[join.to].ty))
            && branch.then.iter().all(|node| matches!(node, Node::Define { .. }));
        fits.then_some((is_greater == is_second, a, b))
    }

    /// Whether two expressions have the same value in an iteration, in which some memory is constant.
    fn equal(self, a: ExprId, b: ExprId, is_constant: &dyn Fn(ExprId) -> bool, depth: usize) -> bool {
        if depth == 0 {
            return false;
        }
        let (a, b) = (self.resolved(a), self.resolved(b));
        if let Class::Load(pointer) = self.function.class(a)
            && a != b
            && !is_constant(pointer)
        {
            return false;
        }
        let (x, y) = (&self.function.exprs[a], &self.function.exprs[b]);
        let (of_x, of_y) = (x.kind.operands(), y.kind.operands());
        let head = |kind: &ExprKind| kind.clone().map_operands(&mut |_| a);
        x.ty == y.ty
            && of_x.len() == of_y.len()
            && head(&x.kind) == head(&y.kind)
            && of_x.iter().zip(of_y.iter()).all(|(&p, &q)| self.equal(p, q, is_constant, depth - 1))
    }

    /// The expression that defines a value.
    fn resolved(self, mut id: ExprId) -> ExprId {
        while let Some(&Definition::Expr(value, _)) =
            self.function.local(id).and_then(|local| self.definitions.get(&local))
        {
            id = value;
        }
        id
    }

    /// Whether the iterations of a loop can run in the primal's order in the reverse sweep: all that they carry of
    /// active values are sums, whose adjoints no iteration changes, no two iterations write the same element, and none has
    /// barriers or writes to shared and local arrays.
    pub(super) fn is_order_free(self, repeat: &Repeat) -> bool {
        let mut is_own = false;
        for_each_event(&repeat.body, &mut |_, event| {
            is_own |= match event {
                Event::Write(write) => self.arrays.memory(self.function, write.pointer).is_own(),
                Event::Barrier(_) => true,
            };
        });
        if is_own {
            return false;
        }
        let active = repeat.carried.iter().filter(|carried| self.activity.is_active(carried.header));
        active.into_iter().all(|carried| self.is_sum(repeat, carried)) && self.writes_distinct(repeat)
    }

    /// Whether a loop adds to a carried value, and uses it for nothing else.
    fn is_sum(self, repeat: &Repeat, carried: &Carried) -> bool {
        let mut chain = BTreeMap::new();
        if !self.reaches(carried.next, carried.header, &mut chain) {
            return false;
        }
        let mut inside = 0;
        let mut count = |value: LocalId| inside += usize::from(value == carried.header);
        for_each_use(self.function, &repeat.head, &mut count);
        for_each_value(self.function, repeat.exit, &mut count);
        for_each_use(self.function, &repeat.body, &mut count);
        repeat.carried.iter().for_each(|carried| count(carried.next));
        chain.iter().all(|(value, links)| {
            let uses = if *value == carried.header { inside } else { self.uses.get(value).copied().unwrap_or(0) };
            uses == *links
        })
    }

    /// Whether a value is the start of a chain plus other values. Counts the links to each value of the chain.
    fn reaches(self, value: LocalId, start: LocalId, chain: &mut BTreeMap<LocalId, usize>) -> bool {
        let links = chain.entry(value).or_insert(0);
        *links += 1;
        if value == start || *links > 1 {
            return true;
        }
        let found = match self.definitions.get(&value) {
            Some(&Definition::Expr(id, _)) => self.addends(id).iter().any(|&next| {
                let before = chain.clone();
                let reaches = self.reaches(next, start, chain);
                if !reaches {
                    *chain = before;
                }
                reaches
            }),
            Some(&Definition::Join { then, otherwise }) => {
                self.reaches(then, start, chain) && self.reaches(otherwise, start, chain)
            }
            Some(&Definition::Header { init: Some(init), next }) => {
                self.reaches(init, start, chain) && self.reaches(next, value, chain)
            }
            Some(Definition::Header { init: None, .. } | Definition::Unrepeatable(_) | Definition::Opaque(_))
            | None => false,
        };
        if !found {
            chain.remove(&value);
        }
        found
    }

    /// The operands by which the derivative of an operation is 1.
    fn addends(self, id: ExprId) -> Vec<LocalId> {
        let operands = match self.function.class(id) {
            Class::Arith(Arith::Binary(BinaryOp::Add, a, b)) => vec![a, b],
            Class::Arith(Arith::Binary(BinaryOp::Sub, a, _)) => vec![a],
            Class::Arith(Arith::Convert(a)) => vec![a],
            Class::Arith(Arith::Math(MathFn::Fma, [_, _, c])) => vec![*c],
            Class::Arith(_) | Class::Leaf(_) | Class::Address { .. } | Class::Load(_) => Vec::new(),
        };
        operands.into_iter().filter_map(|operand| self.function.local(operand)).collect()
    }

    /// Whether no two iterations store to the same element, and each element whose adjoint an iteration adds to is its
    /// own if iterations store to its array.
    pub(super) fn writes_distinct(self, repeat: &Repeat) -> bool {
        let counters: Values =
            repeat.carried.iter().filter(|c| self.counter(repeat, c).is_some()).map(|c| c.header).collect();
        let inner = repeat.defined();
        let mut stores: Vec<(u32, Vec<ExprId>)> = Vec::new();
        let (mut distinct, mut added) = (true, Vec::new());
        for_each_write(&repeat.body, &mut |write, is_atomic| {
            let memory = self.arrays.memory(self.function, write.pointer);
            let Memory::Param(param) = memory else { return };
            if !self.arrays.has_adjoint(param) {
                return;
            }
            if is_atomic {
                added.push(param);
                return;
            }
            match self.arrays.indices(self.function, write.pointer) {
                Some((param, indices)) => {
                    distinct &= indices.iter().any(|&index| self.is_one_to_one(index, &counters, &inner));
                    stores.push((param, indices));
                }
                None => distinct = false,
            }
        });
        let all_same = |indices: &[ExprId], others: &[ExprId]| {
            indices.iter().zip(others).all(|(&a, &b)| same(self.function, a, b))
        };
        let repeats = stores.iter().enumerate().all(|(number, (param, indices))| {
            stores[..number].iter().filter(|(of, _)| of == param).all(|(_, others)| all_same(indices, others))
        });
        let mut loads_match = true;
        self.for_each_active_load(&repeat.body, &mut |pointer| {
            let Memory::Param(param) = self.arrays.memory(self.function, pointer) else { return };
            let stored: Vec<_> = stores.iter().filter(|(of, _)| *of == param).collect();
            if !stored.is_empty() {
                let indices = self.arrays.indices(self.function, pointer);
                loads_match &= indices.is_some_and(|(_, own)| stored.iter().all(|(_, others)| all_same(&own, others)));
            }
        });
        distinct && repeats && loads_match && stores.iter().all(|(param, _)| !added.contains(param))
    }

    /// Calls `visit` on the address of each load of an active value.
    pub(super) fn for_each_active_load(self, list: &List, visit: &mut dyn FnMut(ExprId)) {
        for node in list {
            match node {
                Node::Define { to, value, .. } => {
                    if let Class::Load(pointer) = self.function.class(*value)
                        && self.activity.is_active(*to)
                    {
                        visit(pointer);
                    }
                }
                Node::Unrepeatable { .. }
                | Node::Exchange(_)
                | Node::Call(_)
                | Node::Store(_)
                | Node::Add(_)
                | Node::Barrier { .. } => {}
                Node::If(branch) => {
                    self.for_each_active_load(&branch.then, visit);
                    self.for_each_active_load(&branch.otherwise, visit);
                }
                Node::Loop(repeat) => {
                    self.for_each_active_load(&repeat.head, visit);
                    self.for_each_active_load(&repeat.body, visit);
                }
            }
        }
    }

    /// Whether an index has another value in each iteration: a counter, plus values that no iteration changes.
    fn is_one_to_one(self, index: ExprId, counters: &Values, inner: &Values) -> bool {
        let is_invariant = |id: ExprId| {
            let mut invariant = true;
            for_each_value(self.function, id, &mut |value| invariant &= !inner.contains(&value));
            invariant
        };
        let inner_of = |id| self.is_one_to_one(id, counters, inner);
        match self.function.class(index) {
            Class::Leaf(_) => self.function.local(index).is_some_and(|local| match self.definitions.get(&local) {
                Some(&Definition::Expr(value, _)) => inner_of(value),
                Some(
                    Definition::Header { .. }
                    | Definition::Join { .. }
                    | Definition::Unrepeatable(_)
                    | Definition::Opaque(_),
                )
                | None => counters.contains(&local),
            }),
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
                (inner_of(a) && is_invariant(b)) || (inner_of(b) && is_invariant(a))
            }
            Class::Arith(Arith::Binary(BinaryOp::Sub | BinaryOp::SubExact, a, b)) => {
                (inner_of(a) && is_invariant(b)) || (inner_of(b) && is_invariant(a))
            }
            Class::Arith(Arith::Convert(a)) => {
                let bytes = |id: ExprId| {
                    self.function.exprs[id].ty.scalar().filter(|ty| !ty.is_float()).map(Scalar::size_bytes)
                };
                bytes(index).zip(bytes(a)).is_some_and(|(to, from)| to >= from) && inner_of(a)
            }
            Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    }

    /// The counter that a carried value is, if its step does not change.
    pub(super) fn counter(self, repeat: &Repeat, carried: &Carried) -> Option<Counter> {
        let init = carried.init?;
        let inner = repeat.defined();
        let Some(&Definition::Expr(id, _)) = self.definitions.get(&carried.next) else { return None };
        self.function.exprs[id].ty.scalar().filter(|scalar| !scalar.is_float())?;
        let Class::Arith(Arith::Binary(op, a, b)) = self.function.class(id) else { return None };
        let is_negative = matches!(op, BinaryOp::Sub | BinaryOp::SubExact);
        let adds = is_negative || matches!(op, BinaryOp::Add | BinaryOp::AddExact);
        let mut invariant = adds && self.function.local(a) == Some(carried.header);
        for_each_value(self.function, b, &mut |value| invariant &= !inner.contains(&value));
        invariant &= !any_expr(self.function, b, &|kind| matches!(kind.class(), Class::Load(_)));
        invariant.then_some(Counter { init, step: b, is_negative })
    }

    /// The most iterations of a loop, if it is a constant.
    pub(super) fn most_iterations(self, repeat: &Repeat) -> Option<u64> {
        self.most_until(repeat, repeat.exit)
    }

    /// The most iterations until a condition holds.
    fn most_until(self, repeat: &Repeat, exit: ExprId) -> Option<u64> {
        match self.function.class(exit) {
            Class::Arith(Arith::Unary(UnaryOp::Not, test)) => self.most_while(repeat, test),
            Class::Arith(Arith::Binary(BinaryOp::Or, a, b)) => {
                [a, b].into_iter().filter_map(|part| self.most_until(repeat, part)).min()
            }
            Class::Arith(_) | Class::Leaf(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// The most iterations while a condition holds.
    fn most_while(self, repeat: &Repeat, test: ExprId) -> Option<u64> {
        match self.function.class(test) {
            Class::Arith(Arith::Binary(BinaryOp::And, a, b)) => {
                [a, b].into_iter().filter_map(|part| self.most_while(repeat, part)).min()
            }
            Class::Arith(Arith::Compare(op, left, right)) => self.trip_count(repeat, op, left, right),
            Class::Arith(_) | Class::Leaf(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    /// The iterations while `left op right` holds: of a counter from a constant, by a constant, up or down to one, or
    /// of an integer that is shifted to the right or divided until it is 0.
    fn trip_count(self, repeat: &Repeat, op: CompareOp, left: ExprId, right: ExprId) -> Option<u64> {
        let header = self.function.local(left)?;
        let carried = repeat.carried.iter().find(|carried| carried.header == header)?;
        let stop = self.function.int(right)?;
        if let Some(bits) = self.shifted(carried) {
            return (stop == 0 && matches!(op, CompareOp::Ne | CompareOp::Gt)).then_some(bits);
        }
        let counter = self.counter(repeat, carried)?;
        let (start, step) = (self.constant(counter.init)?, self.function.int(counter.step)?);
        let step = if counter.is_negative { -step } else { step };
        let distance = match op {
            CompareOp::Lt if step > 0 => stop - start,
            CompareOp::Gt if step < 0 => start - stop,
            CompareOp::Le if step > 0 => stop - start + 1,
            CompareOp::Ge if step < 0 => start - stop + 1,
            CompareOp::Eq | CompareOp::Ne | CompareOp::Lt | CompareOp::Gt | CompareOp::Le | CompareOp::Ge => {
                return None;
            }
        };
        let step = step.abs();
        u64::try_from(distance.max(0).checked_add(step - 1)? / step).ok()
    }

    /// The bits of an integer that each iteration shifts to the right, or divides.
    fn shifted(self, carried: &Carried) -> Option<u64> {
        let Some(&Definition::Expr(id, _)) = self.definitions.get(&carried.next) else { return None };
        let Class::Arith(Arith::Binary(op, a, by)) = self.function.class(id) else { return None };
        let bits = self.function.exprs[id].ty.scalar().filter(|scalar| !scalar.is_float())?.size_bytes() * 8;
        let by = self.function.int(by)?;
        let halves = match op {
            BinaryOp::Shr => by > 0 && by < i128::from(bits),
            BinaryOp::FloorDiv | BinaryOp::DivNonneg => by > 1,
            BinaryOp::Add
            | BinaryOp::AddExact
            | BinaryOp::Sub
            | BinaryOp::SubExact
            | BinaryOp::Mul
            | BinaryOp::MulExact
            | BinaryOp::Div
            | BinaryOp::FloorMod
            | BinaryOp::ModNonneg
            | BinaryOp::Min
            | BinaryOp::Max
            | BinaryOp::Pow
            | BinaryOp::Shl
            | BinaryOp::And
            | BinaryOp::Or
            | BinaryOp::Xor => false,
        };
        if !halves || self.function.local(a) != Some(carried.header) {
            return None;
        }
        let start = carried.init.and_then(|init| self.constant(init)).filter(|&start| start >= 0);
        Some(start.map_or(bits, |start| u64::from(i128::BITS - start.leading_zeros())))
    }

    fn constant(self, value: LocalId) -> Option<i128> {
        match self.definitions.get(&value)? {
            &Definition::Expr(id, _) => match self.function.class(id) {
                Class::Leaf(Leaf::Const(Const::Int(value))) => Some(value),
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
            },
            Definition::Join { .. }
            | Definition::Header { .. }
            | Definition::Unrepeatable(_)
            | Definition::Opaque(_) => None,
        }
    }
}
