//! Loop coalescing: the thread loop and a loop in which the threads of a block share the cells of a tile become one
//! loop nest over the rows and columns of the tile.
//!
//! ```text
//! for each thread t:                          for j in range(cells / width):
//!     for k in range(t, cells, threads):          for i in range(width):
//!         j, i = k // width, k % width                tile[j, i] = a[y0 + j, x0 + i]
//!         tile[j, i] = a[y0 + j, x0 + i]
//! ```
//!
//! Legal if
//!
//! - all threads of the block run the loop, each starts at its linear index, and the step is the number of threads:
//!   each index is then run exactly once. The block's shape is compared at the launch, and the loop is kept for others;
//! - no value is carried from one iteration to the next or out of the loop, and the body has no other dependence on the
//!   thread than the index;
//! - a row is not longer than the number of threads, so that the indices of a row belong to different threads. Rows run
//!   in order, and with them the iterations of each thread.
//!
//! Profitable if the body divides the index by a uniform value, the width of a row: the quotient is uniform in the row
//! and the remainder is the position in it. Accesses are then contiguous along the row, conditions on the quotient are
//! uniform, and nothing is divided.
//!
//! The body becomes a segment whose threads are the cells of the tile ([`TileShape`]).

use crate::{
    analysis::{Rematerializable, for_each_mention, for_each_read},
    backend::host::plan::{
        analysis::{
            candidates,
            divergence::Uniformity,
            grid_stride_loops::{Search, Strided},
            structure::{cut_here, holds_barrier},
        },
        plan_ir::{Coalesced, MAX_THREADS, Node, Runs, TileShape},
    },
    ir::{
        Arena, Arith, BinaryOp, Block, Class, CompareOp, ConstantArray, Editor, ExprId, ExprKind, Function, Leaf,
        LocalId, SpecialRegister, Stmt, StmtKind, Type, for_each_expr_of_stmt, for_each_stmt,
    },
    normalize::{fold_constants::Values, unroll},
};

/// Least row length: a vector of bytes.
const MIN_WIDTH: i128 = 16;

/// Most expressions of a body. The loop is kept beside the coalesced one, so its code is emitted twice.
const MAX_EXPRS: usize = 400;

/// Coalesces the loops of a body.
pub(crate) fn coalesce(function: &mut Function, constants: &Arena<ConstantArray>, body: &mut Block) -> Vec<Coalesced> {
    let mut returns = false;
    for_each_stmt(body, &mut |stmt| returns |= matches!(stmt.kind, StmtKind::Return(_)));
    if !legal!("coalesce.no-return", !returns) {
        return Vec::new();
    }
    let (fixed, uniformity) = candidates::uniformity(function, body);
    let mut found = Vec::new();
    in_list((function, constants), (&fixed, &uniformity), &body.clone(), body, &mut found);
    found
}

/// Sets the shapes of the segments of coalesced loops. `None` if a loop has become something else than one segment for
/// each thread.
pub(crate) fn set_shapes(coalesced: &[Coalesced], nodes: &mut [Node]) -> Option<()> {
    for node in nodes {
        if let Node::If { cond, then, .. } = node
            && let Some(Coalesced { shape, .. }) = coalesced.iter().find(|of| of.cond == *cond)
        {
            for inner in then {
                match inner {
                    Node::Segment(segment) if segment.runs == Runs::EachThread && segment.active.is_none() => {
                        segment.shape = Some(*shape);
                    }
                    Node::Barrier | Node::Once { active: None, guard: None, .. } => {}
                    Node::Once { .. }
                    | Node::Segment(_)
                    | Node::If { .. }
                    | Node::Guarded { .. }
                    | Node::Split { .. }
                    | Node::Strips(_)
                    | Node::WarpRegion(_)
                    | Node::Loop { .. }
                    | Node::TransposedRows(_)
                    | Node::Break
                    | Node::Continue
                    | Node::Return => return None,
                }
            }
            continue;
        }
        for part in node.parts_mut() {
            set_shapes(coalesced, part)?;
        }
    }
    Some(())
}

/// Coalesces the loops of a list that all threads of the block run. `whole` is the kernel's body.
fn in_list(
    (function, constants): (&mut Function, &Arena<ConstantArray>),
    (fixed, uniformity): (&Rematerializable, &Uniformity),
    whole: &[Stmt],
    list: &mut Block,
    found: &mut Vec<Coalesced>,
) {
    for index in 0..list.len() {
        let holds = holds_barrier(&list[index]);
        let splits = uniformity.splits_loop(&list[index]) || uniformity.splits_iteration(&list[index]);
        match &mut list[index].kind {
            StmtKind::Loop { body, .. } if holds && !splits => {
                in_list((&mut *function, constants), (fixed, uniformity), whole, body, found);
            }
            StmtKind::If { cond, then, otherwise } if holds && !uniformity.varies(function, *cond) => {
                in_list((&mut *function, constants), (fixed, uniformity), whole, then, found);
                in_list((&mut *function, constants), (fixed, uniformity), whole, otherwise, found);
            }
            StmtKind::Loop { body, step } if !holds => {
                let (body, step) = (body.clone(), step.clone());
                let search = Site { function, fixed, uniformity, whole };
                if let Some(tile) = search.tile(list, index, &body, &step) {
                    found.push(rewrite((function, constants), list, index, tile));
                }
            }
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        }
    }
}

/// The parts of a loop over the cells of a tile.
struct Tile {
    strided: Strided,
    /// The factor of `threadIdx.y` in the first index; `None` if it is not part of it.
    row_factor: Option<ExprId>,
    /// The length of a row.
    width: ExprId,
    /// Quotients and remainders of the index by `width`.
    quotients: Vec<ExprId>,
    remainders: Vec<ExprId>,
}

struct Site<'a> {
    function: &'a Function,
    fixed: &'a Rematerializable,
    uniformity: &'a Uniformity,
    whole: &'a [Stmt],
}

impl Site<'_> {
    fn tile(&self, list: &[Stmt], at: usize, body: &[Stmt], step: &[Stmt]) -> Option<Tile> {
        let strided = Search::of(self.function, self.whole, self.fixed, &[]).parts(list, at, body, step)?;
        let is_uniform = |root: ExprId| !self.uniformity.varies(self.function, root);
        let mut row_factor = None;
        let is_index = self.is_linear_index(strided.first, &mut row_factor)?;
        if !legal!("coalesce.linear-index", is_index)
            || strided.op != CompareOp::Lt
            || !legal!("coalesce.uniform-bound", is_uniform(strided.bound))
        {
            return None;
        }
        if !legal!("coalesce.independent", self.is_independent(&strided)) {
            return None;
        }
        let aliases = self.aliases(&strided);
        let mut width = None;
        let (mut quotients, mut remainders) = (Vec::new(), Vec::new());
        for stmt in &strided.rest {
            let mut may = true;
            for_each_stmt(std::slice::from_ref(stmt), &mut |inner| {
                for_each_expr_of_stmt(self.function, &inner.kind, &mut |id| {
                    let Class::Arith(Arith::Binary(op, value, by)) = self.function.class(id) else { return };
                    let found = if matches!(op, BinaryOp::FloorDiv | BinaryOp::DivNonneg) {
                        &mut quotients
                    } else if matches!(op, BinaryOp::FloorMod | BinaryOp::ModNonneg) {
                        &mut remainders
                    } else {
                        return;
                    };
                    let is_index = self.function.local(value).is_some_and(|local| aliases.contains(&local));
                    if is_index && self.function.exprs[id].ty == Type::I64 && self.is_width(by) {
                        found.push(id);
                        may &= self.is_same(*width.get_or_insert(by), by);
                    }
                });
            });
            if !legal!("coalesce.one-width", may) {
                return None;
            }
        }
        Some(Tile { strided, row_factor, width: width?, quotients, remainders })
    }

    /// Whether a value may be the length of a row: a constant of at least [`MIN_WIDTH`] or a uniform local.
    fn is_width(&self, by: ExprId) -> bool {
        match self.function.int(by) {
            Some(value) => (MIN_WIDTH..=i128::from(MAX_THREADS)).contains(&value),
            None => self.function.local(by).is_some_and(|local| !self.uniformity.local_varies(local)),
        }
    }

    fn is_same(&self, a: ExprId, b: ExprId) -> bool {
        self.function.exprs[a].kind == self.function.exprs[b].kind
    }

    /// Whether a value is `threadIdx.x`, or its sum with a multiple of `threadIdx.y`, whose factor goes to
    /// `row_factor`. `None` if it is anything else, and `false` if it does not depend on `threadIdx.x`.
    fn is_linear_index(&self, id: ExprId, row_factor: &mut Option<ExprId>) -> Option<bool> {
        match self.function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => Some(true),
            Class::Leaf(Leaf::Local(local)) => self.is_linear_index(self.fixed.value(local)?, row_factor),
            Class::Arith(Arith::Convert(inner)) if self.function.exprs[id].ty == Type::I64 => {
                self.is_linear_index(inner, row_factor)
            }
            Class::Arith(Arith::Binary(BinaryOp::Add | BinaryOp::AddExact, a, b)) => {
                let (a, b) = (self.is_linear_index(a, row_factor)?, self.is_linear_index(b, row_factor)?);
                (a != b).then_some(true)
            }
            Class::Arith(Arith::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b)) => {
                let factor = if self.is_row(a) { b } else { a };
                let is_product = self.is_row(a) != self.is_row(b);
                if !is_product
                    || row_factor.is_some()
                    || !legal!("coalesce.uniform-factor", !self.uniformity.varies(self.function, factor))
                {
                    return None;
                }
                *row_factor = Some(factor);
                Some(false)
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
        }
    }

    fn is_row(&self, id: ExprId) -> bool {
        match self.function.class(id) {
            Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(1))) => true,
            Class::Leaf(Leaf::Local(local)) => self.fixed.value(local).is_some_and(|value| self.is_row(value)),
            Class::Arith(Arith::Convert(inner)) => self.is_row(inner),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
    }

    /// The induction variable, and the locals of the body whose only value it is.
    fn aliases(&self, strided: &Strided) -> Vec<LocalId> {
        let mut aliases = vec![strided.local];
        let mut assigned = vec![0_u32; self.function.locals.len()];
        for_each_stmt(self.whole, &mut |stmt| {
            stmt.kind.assigned().iter().for_each(|local| assigned[local.index()] += 1);
        });
        for_each_stmt(&strided.rest, &mut |stmt| {
            if let StmtKind::Assign(local, value) = stmt.kind
                && legal!("coalesce.one-value", assigned[local.index()] == 1)
                && self.function.local(value).is_some_and(|local| aliases.contains(&local))
            {
                aliases.push(local);
            }
        });
        aliases
    }

    /// Whether iterations depend on the thread only through the index, and carry no value.
    fn is_independent(&self, strided: &Strided) -> bool {
        let mut simple = true;
        let mut n_exprs = 0;
        let mut mentions = vec![0_u32; self.function.locals.len()];
        for_each_mention(self.function, self.whole, &mut |local| mentions[local.index()] += 1);
        for_each_mention(self.function, &strided.rest, &mut |local| mentions[local.index()] -= 1);
        for_each_stmt(&strided.rest, &mut |stmt| {
            simple &= match &stmt.kind {
                StmtKind::Assign(..) | StmtKind::Store { .. } | StmtKind::If { .. } => true,
                // Atomic operations are not vectorized.
                StmtKind::Op { .. }
                | StmtKind::Call { .. }
                | StmtKind::Loop { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Return(_) => false,
            };
            for_each_expr_of_stmt(self.function, &stmt.kind, &mut |id| {
                n_exprs += 1;
                simple &= match self.function.class(id) {
                    Class::Leaf(Leaf::Special(register)) => register.is_of_block(),
                    Class::Leaf(Leaf::Base(base)) => base.is_of_block(),
                    // A varying local of the body has no mention outside of it.
                    Class::Leaf(Leaf::Local(local)) => {
                        local == strided.local || !self.uniformity.local_varies(local) || mentions[local.index()] == 0
                    }
                    Class::Leaf(Leaf::Const(_)) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => true,
                };
            });
            for local in stmt.kind.assigned() {
                simple &= self.uniformity.local_varies(local) && mentions[local.index()] == 0;
            }
        });
        simple && n_exprs <= MAX_EXPRS && self.reads_assigned(&strided.rest, &mut vec![strided.local])
    }

    /// Whether each varying local that statements read is assigned before, in the same iteration. `assigned` grows by
    /// the locals that the list assigns on all paths.
    fn reads_assigned(&self, list: &[Stmt], assigned: &mut Vec<LocalId>) -> bool {
        for stmt in list {
            let mut known = true;
            for root in stmt.kind.exprs() {
                for_each_read(self.function, root, &mut |local| {
                    known &= !self.uniformity.local_varies(local) || assigned.contains(&local);
                });
            }
            if !known {
                return false;
            }
            if let StmtKind::If { then, otherwise, .. } = &stmt.kind {
                let (mut first, mut second) = (assigned.clone(), assigned.clone());
                if !self.reads_assigned(then, &mut first) || !self.reads_assigned(otherwise, &mut second) {
                    return false;
                }
                assigned.extend(first.into_iter().filter(|local| second.contains(local)));
            }
            assigned.extend(stmt.kind.assigned());
        }
        true
    }
}

/// Replaces a loop by a branch: its first arm is the body of the segment, its second one the loop.
fn rewrite(
    (function, constants): (&mut Function, &Arena<ConstantArray>),
    list: &mut Block,
    index: usize,
    tile: Tile,
) -> Coalesced {
    let Tile { strided, row_factor, width, quotients, remainders } = tile;
    let span = list[index].span;
    let Strided { local, step, bound, rest, .. } = strided;
    let mut editor = function.edit(span);
    let shape = shape(&mut editor, width, bound);
    let cond = fits(&mut editor, (row_factor, step), (width, bound));
    // The copy is made before quotients and remainders are replaced.
    let otherwise = vec![editor.function.copy_stmt(&list[index])];
    let [column, row] = [0, 1].map(|axis| special(&mut editor, SpecialRegister::ThreadIdx(axis)));
    let (width, bound) = (editor.function.copy_expr(width), editor.function.copy_expr(bound));
    let first = editor.binary(BinaryOp::Mul, row, width);
    let cell = editor.binary(BinaryOp::Add, first, column);
    let index_read = editor.read(local);
    let inside = editor.compare(CompareOp::Lt, index_read, bound);
    for (ids, axis) in [(quotients, 1), (remainders, 0)] {
        for id in ids {
            let index = editor.expr(ExprKind::Special(SpecialRegister::ThreadIdx(axis)), Type::I32);
            editor.function.exprs[id].kind = ExprKind::Convert(index);
        }
    }
    let stmt = |kind| Stmt { kind, span };
    let body = vec![
        stmt(StmtKind::Assign(local, cell)),
        stmt(StmtKind::If { cond: inside, then: rest, otherwise: Block::new() }),
    ];
    // The copy has locals of its own: those of the loop have other values.
    let body = unroll::copied(function, constants, &body, Values::new());
    let then = [vec![cut_here(span)], body, vec![cut_here(span)]].concat();
    list[index] = stmt(StmtKind::If { cond, then, otherwise });
    Coalesced { cond, shape, span }
}

/// A special register as `I64`.
fn special(editor: &mut Editor<'_>, register: SpecialRegister) -> ExprId {
    let value = editor.expr(ExprKind::Special(register), Type::I32);
    editor.expr(ExprKind::Convert(value), Type::I64)
}

/// The shape of a tile of `bound` cells in rows of `width`.
fn shape(editor: &mut Editor<'_>, width: ExprId, bound: ExprId) -> TileShape {
    let [by, width, bound] = [width, width, bound].map(|id| editor.function.copy_expr(id));
    let one = editor.int(1, Type::I64);
    let most = editor.binary(BinaryOp::Sub, by, one);
    let sum = editor.binary(BinaryOp::Add, bound, most);
    let by = editor.function.copy_expr(width);
    let rows = editor.binary(BinaryOp::FloorDiv, sum, by);
    let zero = editor.int(0, Type::I64);
    let rows = editor.expr(ExprKind::Binary(BinaryOp::Max, rows, zero), Type::I64);
    TileShape { width, rows }
}

/// Whether the launch's blocks are such that a loop may be coalesced.
fn fits(
    editor: &mut Editor<'_>,
    (row_factor, step): (Option<ExprId>, ExprId),
    (width, bound): (ExprId, ExprId),
) -> ExprId {
    let mut all = Vec::new();
    let copied = |editor: &mut Editor<'_>, id: ExprId| {
        let copy = editor.function.copy_expr(id);
        let is_wide = editor.function.exprs[copy].ty == Type::I64;
        if is_wide { copy } else { editor.expr(ExprKind::Convert(copy), Type::I64) }
    };
    let [x, y, z] = [0, 1, 2].map(|axis| special(editor, SpecialRegister::BlockDim(axis)));
    let threads = editor.binary(BinaryOp::Mul, x, y);
    let step = copied(editor, step);
    all.push(editor.compare(CompareOp::Eq, step, threads));
    let one = editor.int(1, Type::I64);
    all.push(editor.compare(CompareOp::Eq, z, one));
    let rows_follow = match row_factor {
        Some(factor) => {
            let (factor, x) = (copied(editor, factor), special(editor, SpecialRegister::BlockDim(0)));
            editor.compare(CompareOp::Eq, factor, x)
        }
        None => {
            let (y, one) = (special(editor, SpecialRegister::BlockDim(1)), editor.int(1, Type::I64));
            editor.compare(CompareOp::Eq, y, one)
        }
    };
    all.push(rows_follow);
    let (least, given) = (editor.int(MIN_WIDTH, Type::I64), copied(editor, width));
    all.push(editor.compare(CompareOp::Le, least, given));
    let [x, y] = [0, 1].map(|axis| special(editor, SpecialRegister::BlockDim(axis)));
    let threads = editor.binary(BinaryOp::Mul, x, y);
    let given = copied(editor, width);
    all.push(editor.compare(CompareOp::Le, given, threads));
    let most_rows = editor.int(i128::from(MAX_THREADS), Type::I64);
    let given = copied(editor, width);
    let most = editor.binary(BinaryOp::Mul, given, most_rows);
    let bound = copied(editor, bound);
    all.push(editor.compare(CompareOp::Le, bound, most));
    all.into_iter().reduce(|a, b| editor.expr(ExprKind::Binary(BinaryOp::And, a, b), Type::BOOL)).unwrap_or(one)
}
