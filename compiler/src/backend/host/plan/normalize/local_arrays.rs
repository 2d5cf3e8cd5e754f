//! Scalar replacement of thread-local arrays: each element becomes a local.
//!
//! ```text
//! local p: float32[2]                           $p.0 = 0.0
//! for i in range(2):                            $p.1 = 0.0
//!     p[i] = 0.0                                for step in range(n):
//! for step in range(n):                             $p.0 = $p.0 * f + a[step, t]
//!     p[0] = p[0] * f + a[step, t]
//! ```
//!
//! Legal for an array of which each access is a load or a store of an element at a constant index within bounds.
//! [`unroll`] first makes the indices of loops with constant trip counts constants.
//!
//! Profitable if a loop remains around the accesses and is interchanged with the thread loop, which LLVM then vectorizes.
//! With an array, the loop would remain inside, and run for one thread at a time. The planner plans again without this
//! pass if no loop was interchanged: LLVM does the same replacement later, for a thread at a time.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    backend::host::plan::analysis::{array_elements::element, structure::sole_values},
    ir::{
        Arena, Block, ConstantArray, ExprId, ExprKind, Function, Local, LocalArrayId, LocalId, LocalKind, Stmt,
        StmtKind, Type, for_each_expr, for_each_stmt, for_each_stmt_mut,
    },
    normalize::{drop_unread::drop_assignments, unroll},
};

/// Most elements of an array that becomes locals.
const MAX_ELEMENTS: u64 = 64;

/// Replaces arrays by locals. Returns whether there were such arrays.
pub(crate) fn replace(function: &mut Function, constants: &Arena<ConstantArray>, body: &mut Block) -> bool {
    if function.local_arrays.is_empty() || !runs_a_loop(body) {
        return false;
    }
    let (mut attempt, mut unrolled) = (function.clone(), body.clone());
    unroll::write_out_indexing(&mut attempt, constants, &mut unrolled);
    let arrays = Arrays::of(&attempt, &unrolled);
    if arrays.in_loops.is_empty() {
        return false;
    }
    arrays.promote(&mut attempt, &mut unrolled);
    (*function, *body) = (attempt, unrolled);
    true
}

/// Whether a body has a loop.
fn runs_a_loop(body: &[Stmt]) -> bool {
    let mut found = false;
    for_each_stmt(body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Loop { .. }));
    found
}

/// The arrays that can be replaced.
struct Arrays {
    /// By the pointer of an access: the array and the index.
    accesses: BTreeMap<ExprId, (LocalArrayId, u64)>,
    /// The arrays that can be replaced and that a loop accesses.
    in_loops: BTreeSet<LocalArrayId>,
    /// Locals that hold the address of an array that can be replaced, and have no other use.
    addresses: BTreeSet<LocalId>,
}

impl Arrays {
    fn of(function: &Function, body: &[Stmt]) -> Self {
        let sole = sole_values(function, body);
        let mut uses = Uses {
            function,
            sole: &sole,
            accesses: BTreeMap::new(),
            others: BTreeSet::new(),
            in_loops: BTreeSet::new(),
            addresses: BTreeMap::new(),
        };
        uses.block(body, false);
        let Uses { mut accesses, others, mut in_loops, addresses, .. } = uses;
        accesses.retain(|_, (array, _)| legal!("local_arrays.only-elements", !others.contains(array)));
        in_loops.retain(|array| legal!("local_arrays.only-elements", !others.contains(array)));
        let of_replaced =
            |(local, array)| legal!("local_arrays.only-elements", !others.contains(&array)).then_some(local);
        Self { accesses, in_loops, addresses: addresses.into_iter().filter_map(of_replaced).collect() }
    }

    fn promote(&self, function: &mut Function, body: &mut Block) {
        let mut locals = BTreeMap::<(LocalArrayId, u64), LocalId>::new();
        for &(array, index) in self.accesses.values() {
            let declared = &function.local_arrays[array];
            let local =
                Local::new(format!("{}.{index}", declared.name), LocalKind::Variable, Type::Scalar(declared.elem));
            locals.entry((array, index)).or_insert_with(|| function.locals.push(local));
        }
        drop_assignments(body, &|local| self.addresses.contains(&local));
        let local_at = |pointer: ExprId| self.accesses.get(&pointer).and_then(|access| locals.get(access).copied());
        for_each_stmt_mut(body, &mut |stmt| {
            if let StmtKind::Store { pointer, value, .. } = stmt.kind
                && let Some(local) = local_at(pointer)
            {
                stmt.kind = StmtKind::Assign(local, value);
            }
        });
        let mut loads = Vec::new();
        for_each_stmt(body, &mut |stmt| {
            for root in stmt.kind.exprs() {
                for_each_expr(function, root, &mut |id| {
                    if let ExprKind::Load(pointer, _) = function.exprs[id].kind
                        && let Some(local) = local_at(pointer)
                    {
                        loads.push((id, local));
                    }
                });
            }
        });
        for (id, local) in loads {
            function.exprs[id].kind = ExprKind::Local(local);
        }
    }
}

/// Collects the uses of arrays.
struct Uses<'a> {
    function: &'a Function,
    /// By the local's index: the value of its only assignment.
    sole: &'a [Option<ExprId>],
    accesses: BTreeMap<ExprId, (LocalArrayId, u64)>,
    /// Arrays with other uses.
    others: BTreeSet<LocalArrayId>,
    in_loops: BTreeSet<LocalArrayId>,
    /// Locals that hold the address of an array.
    addresses: BTreeMap<LocalId, LocalArrayId>,
}

impl Uses<'_> {
    fn block(&mut self, block: &[Stmt], in_loop: bool) {
        for stmt in block {
            match stmt.kind {
                StmtKind::Store { pointer, value, .. } => {
                    self.access(pointer, in_loop);
                    self.expr(value, in_loop);
                }
                // A local that only holds the array's address: its reads are resolved.
                StmtKind::Assign(local, value) if self.address(local, value).is_some() => {
                    self.addresses.extend(self.address(local, value).map(|array| (local, array)));
                }
                StmtKind::Assign(..)
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => stmt.kind.exprs().into_iter().for_each(|root| self.expr(root, in_loop)),
            }
            let inside = in_loop || matches!(stmt.kind, StmtKind::Loop { .. });
            for inner in stmt.kind.blocks().into_iter().flatten() {
                self.block(inner, inside);
            }
        }
    }

    fn expr(&mut self, id: ExprId, in_loop: bool) {
        if let ExprKind::Load(pointer, _) = self.function.exprs[id].kind {
            return self.access(pointer, in_loop);
        }
        self.others.extend(element(self.function, self.sole, id).map(|at| at.array));
        self.function.exprs[id].kind.operands().into_iter().for_each(|operand| self.expr(operand, in_loop));
    }

    /// The pointer of a load or a store.
    fn access(&mut self, pointer: ExprId, in_loop: bool) {
        let Some(at) = element(self.function, self.sole, pointer) else { return self.expr(pointer, in_loop) };
        let is_small = self.function.local_arrays[at.array].len <= MAX_ELEMENTS;
        match at.constant(self.function).and_then(|index| u64::try_from(index).ok()).filter(|_| is_small) {
            Some(index) => {
                self.accesses.insert(pointer, (at.array, index));
                if in_loop {
                    self.in_loops.insert(at.array);
                }
            }
            None => {
                self.others.insert(at.array);
                self.expr(pointer, in_loop);
            }
        }
    }

    /// The array, if a local holds the address of it or of an element only.
    fn address(&self, local: LocalId, value: ExprId) -> Option<LocalArrayId> {
        let is_sole = self.sole.get(local.index()).copied().flatten() == Some(value);
        if is_sole { element(self.function, self.sole, value).map(|at| at.array) } else { None }
    }
}
