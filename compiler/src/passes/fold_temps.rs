//! Folds the front end's temporaries where the order of evaluation allows it.
//!
//! ```text
//! $t.6 = load $x.data[$i]
//! $t.7 = $a * $t.6                      store $out.data[$i] = $a * load $x.data[$i]
//! store $out.data[$i] = $t.7
//! ```
//!
//! The front end puts every value that must be evaluated now into a temporary. Four rules, in this order, each for a
//! temporary that has one assignment:
//!
//! 1. `$t = e; …; $x = $t`, its only read, in one block: `$x = e; …`, if nothing between mentions `$x` or branches.
//! 2. `$t` is a constant, a special register, the address of an array, or a variable that has one value from its
//!    assignment on: reads of `$t` read that instead. The same holds for the parts of arrays and complex numbers
//!    (`$tile.shape1`).
//! 3. `$t` is read once, by the next statement: the value replaces the read. Expressions have no side effects, and a
//!    statement evaluates its expressions before it acts, so nothing happens in between.
//! 4. `$t = $x; …; $y = $t + 1`, all its reads in one block: reads of `$t` read `$x`, if nothing before the last one
//!    assigns it. Then only one value of each thread, not two, is live across a shuffle or a barrier.
//!
//! The user's variables are preserved, so that the IR dump shows them.

use std::collections::BTreeMap;

use crate::ir::{
    Block, Class, ExprId, ExprKind, Function, Leaf, LocalId, LocalKind, Module, StmtKind, for_each_expr,
    for_each_expr_of_block, for_each_stmt,
};

/// The maximum depth of a tree that rule 3 creates. It bounds the recursion over trees for long kernels.
const MAX_DEPTH: u32 = 40;

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        with_body(function, assign_directly);
        read_source(function);
        with_body(function, inline_into_next);
        with_body(function, read_unchanged);
    }
}

/// How often locals are assigned and read.
struct Uses {
    n_assigned: Vec<u32>,
    n_read: Vec<u32>,
    /// Whether it is assigned outside of loops, or is a parameter.
    outside_loops: Vec<bool>,
}

impl Uses {
    fn of(function: &Function) -> Self {
        let n_locals = function.locals.len();
        let mut uses =
            Self { n_assigned: vec![0; n_locals], n_read: vec![0; n_locals], outside_loops: vec![true; n_locals] };
        for param in &function.params {
            uses.n_assigned[param.index()] += 1;
        }
        uses.block(&function.body, false);
        for_each_expr_of_block(function, &function.body, &mut |id| {
            if let Some(local) = function.local(id) {
                uses.n_read[local.index()] += 1;
            }
        });
        uses
    }

    fn block(&mut self, block: &Block, in_loop: bool) {
        for stmt in block {
            for local in stmt.kind.assigned() {
                self.n_assigned[local.index()] += 1;
                self.outside_loops[local.index()] &= !in_loop;
            }
            let in_loop = in_loop || matches!(stmt.kind, StmtKind::Loop { .. });
            for inner in stmt.kind.blocks().into_iter().flatten() {
                self.block(inner, in_loop);
            }
        }
    }

    /// A temporary with one assignment.
    fn is_temp(&self, function: &Function, local: LocalId) -> bool {
        function.locals[local].kind == LocalKind::Temp && self.is_assigned_once(function, local)
    }

    /// A part of a variable, such as `x.shape0`, with one assignment.
    fn is_part(&self, function: &Function, local: LocalId) -> bool {
        function.locals[local].kind == LocalKind::Part && self.is_assigned_once(function, local)
    }

    fn is_assigned_once(&self, function: &Function, local: LocalId) -> bool {
        self.n_assigned[local.index()] == 1 && !function.params.contains(&local)
    }

    /// Whether it never changes after its assignment.
    fn is_stable(&self, local: LocalId) -> bool {
        self.n_assigned[local.index()] == 1 && self.outside_loops[local.index()]
    }
}

/// Applies a rule to every block of a function, inner blocks first.
fn with_body(function: &mut Function, rule: fn(&mut Function, &Uses, &mut Block)) {
    fn traverse(function: &mut Function, uses: &Uses, block: &mut Block, rule: fn(&mut Function, &Uses, &mut Block)) {
        for stmt in block.iter_mut() {
            for inner in stmt.kind.blocks_mut().into_iter().flatten() {
                traverse(function, uses, inner, rule);
            }
        }
        rule(function, uses, block);
    }
    let uses = Uses::of(function);
    let mut body = std::mem::take(&mut function.body);
    traverse(function, &uses, &mut body, rule);
    function.body = body;
}

/// Rule 1. The result of one application is in its final position, so one pass over the block is enough.
fn assign_directly(function: &mut Function, uses: &Uses, block: &mut Block) {
    let mut index = 0;
    while index < block.len() {
        let StmtKind::Assign(target, value) = block[index].kind else {
            index += 1;
            continue;
        };
        let temp = function.local(value);
        let temp = temp.filter(|temp| uses.is_temp(function, *temp) && uses.n_read[temp.index()] == 1);
        let found = temp.and_then(|temp| Some((definition(function, &block[..index], temp, target)?, temp)));
        let Some((at, temp)) = found else {
            index += 1;
            continue;
        };
        block[at].kind.for_each_assigned_mut(&mut |local| {
            if *local == temp {
                *local = target;
            }
        });
        let nonneg = function.locals[temp].nonneg && uses.n_assigned[target.index()] == 1;
        function.locals[target].nonneg |= nonneg;
        block.remove(index);
    }
}

/// Where `temp` is assigned in statements before a copy of it to `target`, if the copy can move there.
fn definition(function: &Function, before: &[crate::ir::Stmt], temp: LocalId, target: LocalId) -> Option<usize> {
    let at = before.iter().rposition(|stmt| stmt.kind.assigned().contains(&temp))?;
    // A call with two results must assign them to two locals.
    if before[at].kind.assigned().contains(&target) {
        return None;
    }
    let free = before[at + 1..].iter().all(|stmt| {
        let branches = stmt.kind.blocks().is_some()
            || matches!(stmt.kind, StmtKind::Break | StmtKind::Continue | StmtKind::Return(_));
        !branches && !stmt.kind.assigned().contains(&target) && !reads(function, &stmt.kind, target)
    });
    free.then_some(at)
}

/// Whether a statement's own expressions read a local.
fn reads(function: &Function, kind: &StmtKind, local: LocalId) -> bool {
    n_reads(function, kind, local) > 0
}

/// Rule 2. It leaves dead assignments to `drop_dead`.
fn read_source(function: &mut Function) {
    let uses = Uses::of(function);
    let mut sources: BTreeMap<LocalId, ExprKind> = BTreeMap::new();
    for_each_stmt(&function.body, &mut |stmt| {
        let StmtKind::Assign(temp, value) = stmt.kind else { return };
        if !uses.is_temp(function, temp) && !uses.is_part(function, temp) {
            return;
        }
        // A mark that the analysis cannot derive again would be lost.
        let keeps_mark = |source: LocalId| function.locals[source].nonneg || !function.locals[temp].nonneg;
        match function.class(value) {
            Class::Leaf(Leaf::Local(source)) if !uses.is_stable(source) || !keeps_mark(source) => {}
            // Constant for the whole thread, or for the lifetime of the temporary.
            Class::Leaf(_) => {
                sources.insert(temp, function.exprs[value].kind.clone());
            }
            Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
    });
    for (_, expr) in function.exprs.iter_mut() {
        // A source may itself be a temporary with a source, but no chain is longer than there are sources.
        for _ in 0..sources.len() {
            let ExprKind::Local(local) = expr.kind else { break };
            let Some(source) = sources.get(&local) else { break };
            expr.kind = source.clone();
        }
    }
}

/// Rule 3, from the end: after a value is inlined into a statement, the previous statement is adjacent to it.
fn inline_into_next(function: &mut Function, uses: &Uses, block: &mut Block) {
    for index in (0..block.len().saturating_sub(1)).rev() {
        let StmtKind::Assign(temp, value) = block[index].kind else { continue };
        if !uses.is_temp(function, temp) || uses.n_read[temp.index()] != 1 {
            continue;
        }
        if let Some(read) = use_of(function, &block[index + 1].kind, temp, depth(function, value)) {
            function.exprs[read] = function.exprs[value].clone();
            block.remove(index);
        }
    }
}

/// Rule 4.
fn read_unchanged(function: &mut Function, uses: &Uses, block: &mut Block) {
    let mut index = 0;
    while index < block.len() {
        match unchanged_source(function, uses, &block[index..]) {
            Some((temp, source)) => {
                for stmt in &block[index + 1..] {
                    for root in stmt.kind.exprs() {
                        replace(function, root, temp, source);
                    }
                }
                block.remove(index);
            }
            None => index += 1,
        }
    }
}

/// The source of a temporary that the first of some statements assigns, if that is unchanged at all reads of the
/// temporary.
fn unchanged_source(function: &Function, uses: &Uses, stmts: &[crate::ir::Stmt]) -> Option<(LocalId, LocalId)> {
    let (first, rest) = stmts.split_first()?;
    let StmtKind::Assign(temp, value) = first.kind else { return None };
    let source = function.local(value)?;
    let keeps_mark = function.locals[source].nonneg || !function.locals[temp].nonneg;
    if !uses.is_temp(function, temp) || !keeps_mark || function.locals[source].ty != function.locals[temp].ty {
        return None;
    }
    let mut left = uses.n_read[temp.index()];
    for stmt in rest {
        // A statement evaluates its own expressions before it assigns results or runs nested blocks.
        left = left.saturating_sub(n_reads(function, &stmt.kind, temp));
        if left == 0 {
            return Some((temp, source));
        }
        let mut assigns = stmt.kind.assigned().contains(&source);
        for inner in stmt.kind.blocks().into_iter().flatten() {
            for_each_stmt(inner, &mut |stmt| assigns |= stmt.kind.assigned().contains(&source));
        }
        if assigns {
            return None;
        }
    }
    None
}

/// The number of reads of a local in a statement's own expressions.
fn n_reads(function: &Function, kind: &StmtKind, local: LocalId) -> u32 {
    let mut found = 0;
    for root in kind.exprs() {
        for_each_expr(function, root, &mut |id| found += u32::from(function.exprs[id].kind == ExprKind::Local(local)));
    }
    found
}

/// Replaces a local in an expression.
fn replace(function: &mut Function, id: ExprId, local: LocalId, by: LocalId) {
    if function.exprs[id].kind == ExprKind::Local(local) {
        function.exprs[id].kind = ExprKind::Local(by);
        return;
    }
    for child in function.exprs[id].kind.operands().to_vec() {
        replace(function, child, local, by);
    }
}

/// The expression of a statement that reads a local, if it can be replaced by a value of this depth.
fn use_of(function: &Function, kind: &StmtKind, local: LocalId, value_depth: u32) -> Option<ExprId> {
    fn find(function: &Function, id: ExprId, local: LocalId, above: u32) -> Option<(ExprId, u32)> {
        if function.exprs[id].kind == ExprKind::Local(local) {
            return Some((id, above));
        }
        function.exprs[id].kind.operands().into_iter().find_map(|child| find(function, child, local, above + 1))
    }
    let (id, above) = kind.exprs().into_iter().find_map(|root| find(function, root, local, 0))?;
    (above + value_depth <= MAX_DEPTH).then_some(id)
}

/// The depth of a tree.
fn depth(function: &Function, id: ExprId) -> u32 {
    1 + function.exprs[id].kind.operands().into_iter().map(|child| depth(function, child)).max().unwrap_or(0)
}
