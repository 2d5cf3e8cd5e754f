//! The accesses of a kernel to its arrays of the thread, as elements at indices.

use std::collections::{BTreeMap, BTreeSet};

use crate::{
    backend::host::plan::{
        analysis::{array_elements::element, structure::sole_values},
        plan_ir::Refusal,
    },
    ir::{
        BinaryOp, Block, Class, ExprId, ExprKind, Function, LocalArrayId, LocalId, Stmt, StmtKind, Type,
        for_each_expr_of_block, for_each_expr_of_stmt, for_each_stmt,
    },
    normalize::drop_unread::drop_assignments,
    source::Span,
};

/// The address of an element: the array, and indices with the number of elements that each counts.
type Element = (LocalArrayId, Vec<(ExprId, u32)>);

/// The accesses of a body.
#[derive(Debug, Default)]
pub(super) struct Accesses {
    /// By the pointer of a load or a store: the element.
    elements: BTreeMap<ExprId, Element>,
    /// Locals that hold only the address of an array, or of an element at a constant index.
    addresses: BTreeSet<LocalId>,
}

impl Accesses {
    /// Collects the accesses of a body.
    ///
    /// # Errors
    ///
    /// An array of the thread has a use that is no load or store of an element.
    pub(super) fn of(function: &Function, body: &[Stmt]) -> Result<Self, Refusal> {
        let mut search = Search { function, sole: sole_values(function, body), found: Self::default() };
        search.block(body)?;
        Ok(search.found)
    }

    /// The arrays that are accessed.
    pub(super) fn arrays(&self) -> BTreeSet<LocalArrayId> {
        self.elements.values().map(|&(array, _)| array).collect()
    }

    /// Makes each pointer one offset from the start of its array.
    pub(super) fn canonicalize(&self, function: &mut Function, body: &mut Block) {
        for (&pointer, (array, terms)) in &self.elements {
            let ty = function.exprs[pointer].ty;
            let mut edit = function.edit(function.exprs[pointer].span);
            let sum = terms.iter().fold(None, |sum, &(index, scale)| {
                let index = if scale == 1 {
                    index
                } else {
                    let scale = edit.int(scale.into(), Type::I64);
                    edit.binary(BinaryOp::Mul, index, scale)
                };
                Some(sum.map_or(index, |sum| edit.binary(BinaryOp::Add, sum, index)))
            });
            let index = sum.unwrap_or_else(|| edit.int(0, Type::I64));
            let base = edit.expr(ExprKind::LocalBase(*array), ty);
            function.exprs[pointer].kind = ExprKind::Offset { base, index, scale: 1 };
        }
        drop_assignments(body, &|local| self.addresses.contains(&local));
    }
}

struct Search<'a> {
    function: &'a Function,
    sole: Vec<Option<ExprId>>,
    found: Accesses,
}

impl Search<'_> {
    fn block(&mut self, block: &[Stmt]) -> Result<(), Refusal> {
        for stmt in block {
            match stmt.kind {
                StmtKind::Store { pointer, value, .. } => {
                    self.access(pointer, stmt.span)?;
                    self.expr(value, stmt.span)?;
                }
                StmtKind::Assign(local, value) if self.holds_address(local, value) => {
                    self.found.addresses.insert(local);
                }
                StmtKind::Assign(..)
                | StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::If { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => {
                    for root in stmt.kind.exprs() {
                        self.expr(root, stmt.span)?;
                    }
                }
            }
            for inner in stmt.kind.blocks().into_iter().flatten() {
                self.block(inner)?;
            }
        }
        Ok(())
    }

    fn expr(&mut self, id: ExprId, span: Span) -> Result<(), Refusal> {
        if let Class::Load(pointer) = self.function.class(id) {
            return self.access(pointer, self.function.exprs[id].span);
        }
        if !legal!("lane_arrays.only-elements", element(self.function, &self.sole, id).is_none()) {
            return Err(Refusal::ArrayEscapes(span));
        }
        for operand in self.function.exprs[id].kind.operands() {
            self.expr(operand, span)?;
        }
        Ok(())
    }

    /// The pointer of a load or a store.
    fn access(&mut self, pointer: ExprId, span: Span) -> Result<(), Refusal> {
        let found = element(self.function, &self.sole, pointer);
        let Some((array, terms)) = found.and_then(|at| Some((at.array, at.terms?))) else {
            return self.expr(pointer, span);
        };
        for &(index, _) in &terms {
            self.expr(index, span)?;
        }
        self.found.elements.insert(pointer, (array, terms));
        Ok(())
    }

    /// Whether a local holds only an address that each of its reads may compute again.
    fn holds_address(&self, local: LocalId, value: ExprId) -> bool {
        let at = element(self.function, &self.sole, value);
        self.sole[local.index()] == Some(value) && at.is_some_and(|at| at.constant(self.function).is_some())
    }
}

/// Whether a body mentions an array of the thread.
pub(super) fn has_arrays(function: &Function, body: &[Stmt]) -> bool {
    let mut found = false;
    for_each_stmt(body, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            found |= matches!(function.exprs[id].kind, ExprKind::LocalBase(_));
        });
    });
    found
}

/// The indices that are not constant of accesses to arrays of the thread in loops, with duplicates.
pub(super) fn variable_indices_in_loops(function: &Function, body: &[Stmt]) -> Vec<ExprId> {
    let mut found = Vec::new();
    for_each_stmt(body, &mut |stmt| {
        let StmtKind::Loop { body, step } = &stmt.kind else { return };
        for part in [body, step] {
            for_each_expr_of_block(function, part, &mut |id| {
                if let ExprKind::Offset { base, index, .. } = function.exprs[id].kind
                    && matches!(function.exprs[base].kind, ExprKind::LocalBase(_))
                    && function.int(index).is_none()
                {
                    found.push(index);
                }
            });
        }
    });
    found
}
