//! The observable effects of functions, including those of their callees.

use super::{ExprKind, FuncId, Function, Module, Stmt, StmtKind, SyncScope, for_each_expr_of_stmt, for_each_stmt};

/// Accesses through pointers, in ascending order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Touches {
    /// No accesses.
    #[default]
    Nothing,
    /// Reads only.
    Reads,
    /// Writes, and perhaps reads.
    Writes,
}

/// The effects of statements, including those of the functions that they call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Effects {
    /// The largest set of threads that an operation synchronizes.
    pub together: SyncScope,
    /// Whether other threads may observe when one of their operations executes. If so, the iterations of a work-item
    /// loop over them must not be reordered.
    pub noticed: bool,
    /// Whether they use thread-local arrays.
    pub local_arrays: bool,
    /// Their accesses to memory.
    pub touches: Touches,
}

impl Effects {
    /// All effects, for unknown functions.
    const ALL: Self = Self { together: SyncScope::Grid, noticed: true, local_arrays: true, touches: Touches::Writes };

    /// The effects of every function of a module, by index.
    pub fn of_module(module: &Module) -> Vec<Self> {
        let mut all = vec![Self::default(); module.functions.len()];
        loop {
            let before = all.clone();
            for (id, function) in module.functions.iter() {
                let own = Self { local_arrays: !function.local_arrays.is_empty(), ..Self::default() };
                all[id.index()] = own.and(Self::of_block(function, &function.body, &all));
            }
            if all == before {
                return all;
            }
        }
    }

    /// The effects of some statements of a function; `functions` has those of the module's functions.
    pub fn of_block(function: &Function, block: &[Stmt], functions: &[Self]) -> Self {
        let mut effects = Self::default();
        for_each_stmt(block, &mut |stmt| {
            let own = match &stmt.kind {
                StmtKind::Op { op, .. } => {
                    let row = op.row();
                    let touches = match (row.memory.reads(), row.memory.writes()) {
                        (false, false) => Touches::Nothing,
                        (true, false) => Touches::Reads,
                        (_, true) => Touches::Writes,
                    };
                    Self { together: row.together, noticed: row.is_noticed(), local_arrays: false, touches }
                }
                StmtKind::Store { .. } => Self { touches: Touches::Writes, ..Self::default() },
                StmtKind::Call { func, .. } => Self::of_function(functions, *func),
                StmtKind::Assign(..)
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => Self::default(),
            };
            effects = effects.and(own);
            for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                let kind = &function.exprs[id].kind;
                effects.local_arrays |= matches!(kind, ExprKind::LocalBase(_));
                if matches!(kind, ExprKind::Load(..)) {
                    effects.touches = effects.touches.max(Touches::Reads);
                }
            });
        });
        effects
    }

    /// The effects of one of a module's functions.
    pub fn of_function(functions: &[Self], func: FuncId) -> Self {
        functions.get(func.index()).copied().unwrap_or(Self::ALL)
    }

    /// `true` if an operation synchronizes threads.
    pub fn synchronizes(self) -> bool {
        self.together > SyncScope::None
    }

    fn and(self, other: Self) -> Self {
        Self {
            together: self.together.max(other.together),
            noticed: self.noticed || other.noticed,
            local_arrays: self.local_arrays || other.local_arrays,
            touches: self.touches.max(other.touches),
        }
    }
}
