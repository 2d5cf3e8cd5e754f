//! Data dependence: the locals and conditions that depend on memory, on results of operations, or on floats. Adjacent
//! threads mostly agree on conditions that depend only on their indices, and diverge on data-dependent ones.

use weft_artifact::Scalar;

use crate::{
    analysis::escapes,
    ir::{Block, Class, ExprId, Function, Leaf, Stmt, StmtKind, for_each_expr, for_each_stmt},
    passes::coarsen::vary::Vary,
};

/// The locals of a function that depend on data, by their index.
pub(super) struct Data(Vec<bool>);

impl Data {
    pub(super) fn of(function: &Function) -> Self {
        let mut this = Self(vec![false; function.locals.len()]);
        loop {
            let before = this.0.clone();
            this.block(function, &function.body, false);
            if this.0 == before {
                return this;
            }
        }
    }

    /// Whether a condition depends on data.
    pub(super) fn decides(&self, function: &Function, root: ExprId) -> bool {
        let mut found = false;
        for_each_expr(function, root, &mut |id| {
            found |= match function.class(id) {
                Class::Load(_) => true,
                Class::Leaf(Leaf::Local(local)) => self.0[local.index()] || is_float(function, id),
                Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } => false,
            };
        });
        found
    }

    /// Whether some statements have an exit with a data-dependent condition that varies over the copies.
    pub(super) fn leaves(&self, vary: &Vary, function: &Function, block: &[Stmt]) -> bool {
        self.jumps(function, block, &|cond| vary.expr(function, cond))
    }

    fn jumps(&self, function: &Function, block: &[Stmt], counts: &dyn Fn(ExprId) -> bool) -> bool {
        let mut found = false;
        for_each_stmt(block, &mut |stmt| {
            if let StmtKind::If { cond, then, otherwise } = &stmt.kind {
                let jumps = escapes(then).any() || escapes(otherwise).any();
                found |= jumps && counts(*cond) && self.decides(function, *cond);
            }
        });
        found
    }

    /// `inside`: whether the execution of the statements depends on data.
    fn block(&mut self, function: &Function, block: &Block, mut inside: bool) {
        for stmt in block {
            let from_data = match &stmt.kind {
                StmtKind::Assign(_, value) => self.decides(function, *value),
                StmtKind::Op { .. } | StmtKind::Call { .. } => true,
                StmtKind::If { cond, then, otherwise } => {
                    let decided = self.decides(function, *cond);
                    self.block(function, then, inside || decided);
                    self.block(function, otherwise, inside || decided);
                    // The code after a conditional exit depends on the condition, too.
                    inside |= decided && (escapes(then).any() || escapes(otherwise).any());
                    false
                }
                StmtKind::Loop { body, step } => {
                    let decided = inside || self.jumps(function, body, &|_| true);
                    self.block(function, body, decided);
                    self.block(function, step, decided);
                    false
                }
                StmtKind::Store { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => false,
            };
            for local in stmt.kind.assigned() {
                self.0[local.index()] |= from_data || inside;
            }
        }
    }
}

/// Whether a value is a float.
pub(super) fn is_float(function: &Function, id: ExprId) -> bool {
    function.exprs[id].ty.scalar().is_some_and(|scalar| !scalar.is_int() && scalar != Scalar::Bool)
}
