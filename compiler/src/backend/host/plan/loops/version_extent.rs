//! Versioning on a constant last extent: a copy of the body for arrays whose last extent has the value that it has in
//! the launch that the code is compiled for, for example the three colors of a picture or the coordinates of points.
//!
//! ```text
//! body                                    if channels == 3: body with the constant 3
//!                                         else: body
//! ```
//!
//! With an unknown extent, `picture[y, x, 0]` has an unknown stride along `x`, and LLVM emits gathers. With a constant,
//! LLVM loads whole vectors and shuffles them, and loops over the extent have a constant trip count and are unrolled.
//! It pays only if the extent is a factor of an index and the other factor varies between threads.

use std::collections::BTreeMap;

use weft_artifact::{ArgItem, SlotField, SlotSource};

use crate::{
    analysis::Rematerializable,
    ir::{
        BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, Module, Stmt, StmtKind,
        Type, for_each_expr, for_each_expr_of_block, for_each_expr_of_stmt, for_each_stmt,
    },
    normalize::unroll,
};

/// Maximum number of expressions of a body that is copied.
const MAX_EXPRS: usize = 1500;

/// Versions the body, if the launch has short extents and the copy pays. The body is then a single branch with a
/// condition that is uniform for the launch.
pub(crate) fn copy(module: &Module, function: &mut Function, body: &mut Block) -> bool {
    let mut known: BTreeMap<LocalId, i128> = function
        .params
        .iter()
        .zip(&function.slots)
        .filter_map(|(&local, slot)| Some((local, i128::from(extent(module, slot)?))))
        .collect();
    let (mut exprs, mut asks) = (0, Vec::new());
    for_each_stmt(body, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            exprs += 1;
            asks.extend(function.local(id).filter(|local| known.contains_key(local) && !asks.contains(local)));
        });
    });
    let Some(span) = body.first().map(|stmt| stmt.span) else { return false };
    if asks.is_empty() || exprs > MAX_EXPRS || !is_between_threads(function, body, &known) {
        return false;
    }
    let asked: Vec<(LocalId, i128)> =
        known.iter().filter(|(local, _)| asks.contains(local)).map(|(&local, &extent)| (local, extent)).collect();
    // A local such as `channels` in `height, width, channels = picture.shape` has the same extent.
    let once = unroll::assigned_once(body);
    for stmt in body.iter() {
        if let StmtKind::Assign(local, value) = stmt.kind
            && let (Some(of), true) = (function.local(value), once.contains(&local))
            && let Some(&extent) = known.get(&of)
        {
            known.insert(local, extent);
        }
    }
    let mut push = |kind: ExprKind, ty: Type| function.exprs.push(Expr { kind, ty, span });
    let mut cond: Option<ExprId> = None;
    for (local, extent) in asked {
        let (value, extent) = (push(ExprKind::Local(local), Type::I64), push(int(extent), Type::I64));
        let is = push(ExprKind::Compare(CompareOp::Eq, value, extent), Type::BOOL);
        cond = Some(cond.map_or(is, |all| push(ExprKind::Binary(BinaryOp::And, all, is), Type::BOOL)));
    }
    let Some(cond) = cond else { return false };
    let mut then = unroll::copied(function, &module.constants, body, known);
    unroll::write_out_short(function, &module.constants, &mut then);
    let otherwise = std::mem::take(body);
    body.push(Stmt { kind: StmtKind::If { cond, then, otherwise }, span });
    true
}

/// Whether the stride between threads depends on such an extent: it is a factor of an index, and the other factor
/// varies between threads.
fn is_between_threads(function: &Function, body: &Block, known: &BTreeMap<LocalId, i128>) -> bool {
    let fixed = Rematerializable::of(function, body);
    let mut found = false;
    for_each_expr_of_block(function, body, &mut |id| {
        let Class::Address { by, .. } = function.class(id) else { return };
        for_each_expr(function, by, &mut |part| {
            let ExprKind::Binary(BinaryOp::Mul | BinaryOp::MulExact, a, b) = function.exprs[part].kind else { return };
            for (extent, other) in [(a, b), (b, a)] {
                let is_extent = function.local(extent).is_some_and(|local| known.contains_key(&local));
                let of_thread = fixed.dependence(function, other);
                found |= is_extent && (of_thread.x || of_thread.row);
            }
        });
    });
    found
}

/// The extent that a slot of the kernel has in the launch that the code is compiled for.
fn extent(module: &Module, slot: &SlotSource) -> Option<u8> {
    let SlotSource::Argument { param, path, field: SlotField::Shape(axis) } = slot else { return None };
    let Some(ArgItem::Array(array)) = module.params.get(*param as usize)?.ty.leaf(path) else { return None };
    let found = module.short_extents.iter().find(|(of, _)| of == param)?;
    (path.is_empty() && axis + 1 == array.ndim).then_some(found.1)
}

fn int(value: i128) -> ExprKind {
    ExprKind::Const(Const::Int(value))
}
