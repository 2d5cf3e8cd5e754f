//! Rematerializable locals: they are assigned once, from values that a thread has from its start, and can be recomputed
//! instead of stored.

use crate::ir::{
    Arith, Class, ExprId, ExprKind, Function, Leaf, LocalId, SpecialRegister, Stmt, StmtKind, for_each_expr,
    for_each_stmt,
};

/// The rematerializable locals of a function. Each is assigned once, from constants, special registers, parameters and
/// other such locals only, so it has one value for the thread's whole life and can be recomputed instead of stored.
#[derive(Clone, Debug, Default)]
pub(crate) struct Rematerializable {
    /// By the local's index: its value, if it is rematerializable.
    values: Vec<Option<ExprId>>,
    /// By the local's index: its dependence, if it is rematerializable.
    dependences: Vec<Dependence>,
}

/// The thread indices that a rematerializable value depends on.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Dependence {
    /// `threadIdx.x`.
    pub x: bool,
    /// `threadIdx.y` or `.z`, the lane, or the thread's own memory.
    pub row: bool,
}

impl Dependence {
    fn add(&mut self, other: Self) {
        self.x |= other.x;
        self.row |= other.row;
    }
}

impl Rematerializable {
    /// Analyzes a body. Parameters count as assigned at entry.
    pub(crate) fn of(function: &Function, body: &[Stmt]) -> Self {
        let mut counts = vec![0_u32; function.locals.len()];
        let mut sole: Vec<Option<ExprId>> = vec![None; function.locals.len()];
        for_each_stmt(body, &mut |stmt| {
            for local in stmt.kind.assigned() {
                counts[local.index()] += 1;
                sole[local.index()] = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
            }
        });
        let dependences = vec![Dependence::default(); function.locals.len()];
        let states = vec![VisitState::New; function.locals.len()];
        let mut search = FixedSearch { function, counts, sole, states, dependences };
        let values = function
            .locals
            .iter()
            .map(|(local, _)| {
                let is_param = function.params.contains(&local);
                if search.fixed(local) && !is_param { search.sole[local.index()] } else { None }
            })
            .collect();
        Self { values, dependences: search.dependences }
    }

    /// The dependence of a rematerializable local.
    pub(crate) fn local_dependence(&self, local: LocalId) -> Dependence {
        self.dependences.get(local.index()).copied().unwrap_or_default()
    }

    /// The dependence of an expression; other locals do not count.
    pub(crate) fn dependence(&self, function: &Function, root: ExprId) -> Dependence {
        dependence(function, root, &|local| self.local_dependence(local))
    }

    /// The value of a rematerializable local that is not a parameter.
    pub(crate) fn value(&self, local: LocalId) -> Option<ExprId> {
        self.values.get(local.index()).copied().flatten()
    }

    /// The value of a rematerializable local, which is no such local itself; other expressions as they are.
    pub(crate) fn resolve(&self, function: &Function, mut id: ExprId) -> ExprId {
        while let Some(value) = function.local(id).and_then(|local| self.value(local)) {
            id = value;
        }
        id
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum VisitState {
    New,
    Open,
    Rematerializable,
    Free,
}

struct FixedSearch<'a> {
    function: &'a Function,
    counts: Vec<u32>,
    sole: Vec<Option<ExprId>>,
    states: Vec<VisitState>,
    dependences: Vec<Dependence>,
}

fn dependence(function: &Function, root: ExprId, of_local: &dyn Fn(LocalId) -> Dependence) -> Dependence {
    let mut all = Dependence::default();
    for_each_expr(function, root, &mut |id| match function.class(id) {
        Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => all.x = true,
        Class::Leaf(Leaf::Special(register)) => all.row |= !register.is_of_block(),
        Class::Leaf(Leaf::Base(base)) => all.row |= !base.is_of_block(),
        Class::Leaf(Leaf::Local(local)) => all.add(of_local(local)),
        Class::Leaf(Leaf::Const(_)) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
    });
    all
}

impl FixedSearch<'_> {
    fn fixed(&mut self, local: LocalId) -> bool {
        let index = local.index();
        match self.states[index] {
            VisitState::Rematerializable => return true,
            // A local that depends on itself is not rematerializable.
            VisitState::Free | VisitState::Open => return false,
            VisitState::New => {}
        }
        self.states[index] = VisitState::Open;
        let fixed = match (self.counts[index], self.sole[index]) {
            (0, _) => self.function.params.contains(&local),
            (1, Some(value)) => self.cheap(value),
            _ => false,
        };
        self.states[index] = if fixed { VisitState::Rematerializable } else { VisitState::Free };
        if let (true, Some(value)) = (fixed, self.sole[index]) {
            self.dependences[index] = dependence(self.function, value, &|read| self.dependences[read.index()]);
        }
        fixed
    }

    /// Whether an expression is computed from rematerializable values, and cheap enough to recompute.
    fn cheap(&mut self, root: ExprId) -> bool {
        use crate::ir::BinaryOp as Op;
        let function = self.function;
        let mut cheap = true;
        let mut reads = Vec::new();
        for_each_expr(function, root, &mut |id| match function.class(id) {
            Class::Load(_) | Class::Arith(Arith::Math(..) | Arith::Binary(Op::Pow | Op::Div, ..)) => cheap = false,
            Class::Arith(Arith::Binary(Op::FloorDiv | Op::FloorMod | Op::DivNonneg | Op::ModNonneg, _, by)) => {
                cheap &= matches!(function.exprs[by].kind, ExprKind::Const(_));
            }
            Class::Leaf(Leaf::Local(local)) => reads.push(local),
            Class::Arith(
                Arith::Unary(..)
                | Arith::Binary(..)
                | Arith::Compare(..)
                | Arith::Select(..)
                | Arith::Convert(_)
                | Arith::Wrap { .. },
            )
            | Class::Leaf(_)
            | Class::Address { .. } => {}
        });
        cheap && reads.into_iter().all(|local| self.fixed(local))
    }
}
