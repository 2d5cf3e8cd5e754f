//! If-conversion with speculative stores: a branch that may store to elements of shared memory becomes selects whose
//! results are always stored.
//!
//! ```text
//! if v[t] > v[t + 1]:                       a = v[t]; b = v[t + 1]
//!     swap = v[t]                           more = a > b
//!     v[t] = v[t + 1]                       v[t] = b if more else a
//!     v[t + 1] = swap                       v[t + 1] = a if more else b
//! ```
//!
//! This pass loads the elements before the branch and stores them after it; [`if_convert`](super::if_convert) then
//! makes the selects. A thread for which the condition is false stores the old values again. Legal because no other
//! thread can observe that:
//!
//! - Each thread loads all of these elements on every path through the branch, between the same two barriers as the
//!   stores: the branch contains only assignments, stores and branches. A program in which another thread writes one of
//!   the elements there has a race already.
//! - The elements are in shared memory: no other block writes them, and one CPU thread runs all threads of the block.
//!   In global memory, a store of another block between the load and the store would be lost, which breaks programs
//!   that race intentionally.
//! - No two threads of a thread loop have the same element. Otherwise an inactive lane of a vector could overwrite the
//!   store of an active lane with the old value. This excludes, for example, threads that all set the same flag, a
//!   benign race.
//! - On each path all loads precede all stores, and the path stores either all of the elements, in one order, or none.
//!   So the result is right even if two of them are the same element.
//!
//! Profitable because a store under a branch is a masked store, which is slow and cannot be forwarded to a load soon
//! after it, and because LLVM makes vector minima and maxima of the selects.

use crate::{
    analysis::{Rematerializable, affine::Stride, base, for_each_read, same},
    backend::host::plan::analysis::{block_uniformity::shared_by_block, divergence::Uniformity, strides::Forms},
    ir::{
        Align, Arith, Base, BinaryOp, Block, Class, Expr, ExprId, ExprKind, Function, Leaf, Local, LocalId, LocalKind,
        Stmt, StmtKind, Type, Unit, for_each_expr, for_each_stmt,
    },
};

/// Most elements that a converted branch may store to.
const MAX_STORED: usize = 4;

/// Most expressions of a converted branch.
const MAX_EXPRS: usize = 128;

/// The largest stride of an index: the indices of two threads of a row differ by less than 2^64.
const MAX_STRIDE: u64 = 1 << 16;

/// Converts the branches of a kernel's body that may store to shared memory.
pub(crate) fn convert(function: &mut Function, body: &mut Block) {
    let mut some = false;
    for_each_stmt(body, &mut |stmt| {
        if let StmtKind::If { then, otherwise, .. } = &stmt.kind {
            some |= then.iter().chain(otherwise).any(|stmt| is_store_to_shared(function, stmt));
        }
    });
    if !some {
        return;
    }
    let fixed = Rematerializable::of(function, body);
    let (_, uniformity) = shared_by_block(function, body, &fixed);
    let mut assigned = vec![0_u32; function.locals.len()];
    for_each_stmt(body, &mut |stmt| {
        stmt.kind.assigned().into_iter().for_each(|local| assigned[local.index()] += 1);
    });
    Convert { function, fixed: &fixed, uniformity: &uniformity, assigned: &assigned, known: Vec::new() }.list(body);
}

fn is_store_to_shared(function: &Function, stmt: &Stmt) -> bool {
    matches!(stmt.kind, StmtKind::Store { pointer, .. } if is_shared(function, pointer))
}

fn is_shared(function: &Function, pointer: ExprId) -> bool {
    matches!(base(function, pointer), Some(Base::Shared(_) | Base::Dynamic))
}

struct Convert<'a> {
    function: &'a mut Function,
    fixed: &'a Rematerializable,
    uniformity: &'a Uniformity,
    /// How often the body assigns a local, by index, for the locals that it had at first.
    assigned: &'a [u32],
    /// The locals that are assigned once, by an assignment that precedes the position in the same list or one around
    /// it, with their values.
    known: Vec<(LocalId, ExprId)>,
}

/// An element that a branch loads or stores.
struct Element {
    pointer: ExprId,
    align: Align,
    elem: Type,
}

/// The elements that the paths to a position have stored, by index in `elements`.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Stored {
    /// Every path has stored these, in this order.
    All(Vec<usize>),
    /// Some paths have stored these, in this order, and the others nothing.
    Perhaps(Vec<usize>),
}

/// The loads and stores of the paths to a position.
#[derive(Clone, Debug)]
struct State {
    /// The elements that every path has loaded.
    loaded: Vec<usize>,
    stored: Stored,
}

impl Convert<'_> {
    fn list(&mut self, list: &mut Block) {
        let before = self.known.len();
        let mut out = Block::with_capacity(list.len());
        for mut stmt in std::mem::take(list) {
            if let Some(converted) = self.converted(&stmt) {
                out.extend(converted);
                continue;
            }
            match &mut stmt.kind {
                StmtKind::If { then: first, otherwise: second, .. } | StmtKind::Loop { body: first, step: second } => {
                    self.list(first);
                    self.list(second);
                }
                StmtKind::Assign(local, value) => {
                    if self.assigned.get(local.index()) == Some(&1) {
                        self.known.push((*local, *value));
                    }
                }
                StmtKind::Store { .. }
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
            out.push(stmt);
        }
        self.known.truncate(before);
        *list = out;
    }

    /// Converts a statement, if it is a branch that qualifies.
    fn converted(&mut self, stmt: &Stmt) -> Option<Block> {
        let StmtKind::If { cond, then, otherwise } = &stmt.kind else { return None };
        if !self.is_small(stmt) {
            return None;
        }
        let mut elements = Vec::new();
        let mut start = State { loaded: Vec::new(), stored: Stored::All(Vec::new()) };
        // The condition's other loads stay in the condition, which precedes all stores.
        self.loads(*cond, &mut start, &mut elements);
        let end = self.branch(then, otherwise, &start, &mut elements)?;
        let (Stored::All(stored) | Stored::Perhaps(stored)) = end.stored;
        let fits = (1..=MAX_STORED).contains(&stored.len());
        let are_loaded = (0..elements.len()).all(|element| end.loaded.contains(&element));
        if !fits || !legal!("speculate_stores.loaded", are_loaded) {
            return None;
        }
        let mut changes = Vec::new();
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| changes.extend(inner.kind.assigned()));
        let mut moves = false;
        for element in &elements {
            for_each_read(self.function, element.pointer, &mut |local| moves |= changes.contains(&local));
        }
        if !legal!("speculate_stores.same-addresses", !moves) {
            return None;
        }
        Some(self.selections(stmt, &elements, &stored))
    }

    fn is_small(&self, stmt: &Stmt) -> bool {
        let mut exprs = 0;
        for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
            for root in inner.kind.exprs() {
                for_each_expr(self.function, root, &mut |_| exprs += 1);
            }
        });
        exprs <= MAX_EXPRS
    }

    fn branch(&self, then: &[Stmt], otherwise: &[Stmt], start: &State, elements: &mut Vec<Element>) -> Option<State> {
        let first = self.walk(then, start.clone(), elements)?;
        let second = self.walk(otherwise, start.clone(), elements)?;
        let loaded = first.loaded.iter().copied().filter(|element| second.loaded.contains(element)).collect();
        let stored = match (first.stored, second.stored) {
            (one, other) if one == other => one,
            (Stored::All(none), Stored::All(some) | Stored::Perhaps(some))
            | (Stored::All(some) | Stored::Perhaps(some), Stored::All(none))
                if none.is_empty() =>
            {
                Stored::Perhaps(some)
            }
            (Stored::All(one), Stored::Perhaps(other)) | (Stored::Perhaps(one), Stored::All(other)) if one == other => {
                Stored::Perhaps(one)
            }
            (Stored::All(one), _) if legal!("speculate_stores.same-order", false) => Stored::Perhaps(one),
            (Stored::All(_) | Stored::Perhaps(_), _) => return None,
        };
        Some(State { loaded, stored })
    }

    /// Adds the loads and stores of an arm to a state; `None` if the arm does not qualify.
    fn walk(&self, list: &[Stmt], mut state: State, elements: &mut Vec<Element>) -> Option<State> {
        for stmt in list {
            let (StmtKind::Assign(_, root) | StmtKind::Store { value: root, .. } | StmtKind::If { cond: root, .. }) =
                &stmt.kind
            else {
                return None;
            };
            let (all, known) = self.loads(*root, &mut state, elements);
            // A branch with another load would stay a branch.
            let loads_known = all == known;
            if !loads_known
                || !legal!("speculate_stores.loads-first", all == 0 || state.stored == Stored::All(Vec::new()))
            {
                return None;
            }
            match &stmt.kind {
                StmtKind::Store { pointer, align, .. } => {
                    let element = self.element(*pointer, *align, elements)?;
                    let Stored::All(stored) = &mut state.stored else { return None };
                    // The first of two stores would be repeated after the branch, which does not pay.
                    if stored.contains(&element) {
                        return None;
                    }
                    stored.push(element);
                }
                StmtKind::If { then, otherwise, .. } => state = self.branch(then, otherwise, &state, elements)?,
                StmtKind::Assign(..)
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {}
            }
        }
        Some(state)
    }

    /// Records the elements that a value loads. Returns the number of its loads, and the number of those from
    /// `elements`.
    fn loads(&self, root: ExprId, state: &mut State, elements: &mut Vec<Element>) -> (usize, usize) {
        let (mut all, mut known) = (0, 0);
        for_each_expr(self.function, root, &mut |id| {
            let ExprKind::Load(pointer, align) = self.function.exprs[id].kind else { return };
            all += 1;
            if let Some(element) = self.element(pointer, align, elements) {
                known += 1;
                if !state.loaded.contains(&element) {
                    state.loaded.push(element);
                }
            }
        });
        (all, known)
    }

    /// The index of an element in `elements`, to which it is added if each thread of a thread loop has its own.
    fn element(&self, pointer: ExprId, align: Align, elements: &mut Vec<Element>) -> Option<usize> {
        let found = find(self.function, pointer, align, elements);
        if found.is_some() {
            return found;
        }
        let Type::Ptr(elem, _) = self.function.exprs[pointer].ty else { return None };
        if !legal!("speculate_stores.shared", is_shared(self.function, pointer))
            || !legal!("speculate_stores.own-element", self.is_own(pointer))
        {
            return None;
        }
        elements.push(Element { pointer, align, elem: Type::Scalar(elem) });
        Some(elements.len() - 1)
    }

    /// Whether no two threads of a thread loop have the same element.
    fn is_own(&self, pointer: ExprId) -> bool {
        match self.function.class(pointer) {
            Class::Address { base, by, unit } => {
                (unit == Unit::Elements && self.differs(by) && self.is_same(base))
                    || (self.is_same(by) && self.is_own(base))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => false,
        }
    }

    /// Whether an index is different for each thread of a thread loop.
    fn differs(&self, index: ExprId) -> bool {
        // The threads store to one element in order, which does not pay; larger strides do not occur.
        if matches!(self.stride(index), Stride::Constant(by) if (1..=MAX_STRIDE).contains(&by.unsigned_abs())) {
            return true;
        }
        match self.function.class(index) {
            Class::Leaf(Leaf::Local(local)) => self.value(local).is_some_and(|value| self.differs(value)),
            Class::Arith(Arith::Binary(BinaryOp::Xor | BinaryOp::Add | BinaryOp::Sub, a, b)) => {
                (self.differs(a) && self.is_same(b)) || (self.is_same(a) && self.differs(b))
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    }

    fn is_same(&self, id: ExprId) -> bool {
        self.stride(id) == Stride::ZERO
    }

    fn stride(&self, id: ExprId) -> Stride {
        let forms = Forms {
            function: self.function,
            fixed: self.fixed,
            shared: &|local| !self.uniformity.local_varies(local),
            sole: &|local| self.value(local),
            axis: 0,
        };
        forms.stride(id)
    }

    /// The value of a local that is assigned once before the position or is rematerializable.
    fn value(&self, local: LocalId) -> Option<ExprId> {
        let known = self.known.iter().rev().find(|(of, _)| *of == local).map(|&(_, value)| value);
        known.or_else(|| self.fixed.value(local))
    }

    /// Loads the elements into locals, applies the branch to the locals, and stores the elements that it may change.
    fn selections(&mut self, stmt: &Stmt, elements: &[Element], stored: &[usize]) -> Block {
        let span = stmt.span;
        let mut out = Block::new();
        let mut locals = Vec::new();
        for element in elements {
            let before = self.function.locals.push(Local::new("before", LocalKind::Variable, element.elem));
            let pointer = self.function.copy_expr(element.pointer);
            let load = ExprKind::Load(pointer, element.align);
            let load = self.function.exprs.push(Expr { kind: load, ty: element.elem, span });
            out.push(Stmt { kind: StmtKind::Assign(before, load), span });
            locals.push((before, before));
        }
        for &element in stored {
            let after = self.function.locals.push(Local::new("after", LocalKind::Variable, elements[element].elem));
            let (before, _) = locals[element];
            let value = self.function.edit(span).read(before);
            out.push(Stmt { kind: StmtKind::Assign(after, value), span });
            locals[element].1 = after;
        }
        out.extend(self.on_locals(std::slice::from_ref(stmt), elements, &locals));
        for &element in stored {
            let value = self.function.edit(span).read(locals[element].1);
            let pointer = self.function.copy_expr(elements[element].pointer);
            out.push(Stmt { kind: StmtKind::Store { pointer, value, align: elements[element].align }, span });
        }
        out
    }

    fn on_locals(&mut self, list: &[Stmt], elements: &[Element], locals: &[(LocalId, LocalId)]) -> Block {
        let mut out = Block::with_capacity(list.len());
        for stmt in list {
            let kind = match &stmt.kind {
                StmtKind::Store { pointer, value, align } => {
                    let value = self.value_on_locals(*value, elements, locals);
                    match find(self.function, *pointer, *align, elements) {
                        Some(element) => StmtKind::Assign(locals[element].1, value),
                        None => stmt.kind.clone(),
                    }
                }
                StmtKind::If { cond, then, otherwise } => StmtKind::If {
                    cond: self.value_on_locals(*cond, elements, locals),
                    then: self.on_locals(then, elements, locals),
                    otherwise: self.on_locals(otherwise, elements, locals),
                },
                StmtKind::Assign(..)
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {
                    stmt.kind.clone().map_exprs(&mut |id| self.value_on_locals(id, elements, locals))
                }
            };
            out.push(Stmt { kind, span: stmt.span });
        }
        out
    }

    /// Copies a value, with reads of locals in place of loads of elements.
    fn value_on_locals(&mut self, id: ExprId, elements: &[Element], locals: &[(LocalId, LocalId)]) -> ExprId {
        self.function.copy_with(id, &mut |function, id| {
            let ExprKind::Load(pointer, align) = function.exprs[id].kind else { return None };
            let element = find(function, pointer, align, elements)?;
            Some(function.edit(function.exprs[id].span).read(locals[element].0))
        })
    }
}

/// The index of an element in `elements`.
fn find(function: &Function, pointer: ExprId, align: Align, elements: &[Element]) -> Option<usize> {
    elements.iter().position(|element| element.align == align && same(function, element.pointer, pointer))
}
