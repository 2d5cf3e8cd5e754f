//! A copy of the body for arrays whose last extent is as short as in the launch that the code is compiled for: the three
//! colors of a picture, the coordinates of points.
//!
//! With that extent unknown `picture[y, x, 0]` is at an unknown distance from its neighbor, and LLVM gathers element by
//! element; with a constant it loads whole vectors and sorts them. Loops over the colors have turns of a known number, too.
//! Other launches run the body itself.

use std::collections::BTreeMap;

use weft_artifact::{ArgItem, SlotField, SlotSource};

use crate::{
    analysis::Rematerializable,
    backend::host::plan::normalize::unroll,
    ir::{
        BinaryOp, Block, Class, CompareOp, Const, Expr, ExprId, ExprKind, Function, LocalId, Module, Stmt, StmtKind,
        Type, for_each_expr, for_each_expr_of_block, for_each_expr_of_stmt, for_each_stmt,
    },
};

/// Expressions of the largest body that has a copy.
const MOST_EXPRS: usize = 1500;

/// Puts the copy before the body, if one is asked for and has anything to gain: the body is a choice between the two then,
/// which a launch makes.
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
    if asks.is_empty() || exprs > MOST_EXPRS || !is_between_threads(function, body, &known) {
        return false;
    }
    let asked: Vec<(LocalId, i128)> =
        known.iter().filter(|(local, _)| asks.contains(local)).map(|(&local, &extent)| (local, extent)).collect();
    // `height, width, channels = picture.shape`.
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

/// Whether such an extent lies between what neighboring threads touch: it is a factor of an index, and the other one says
/// which thread it is. Elsewhere nothing is gained.
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

/// The extent that a slot of the kernel is likely to have.
fn extent(module: &Module, slot: &SlotSource) -> Option<u8> {
    let SlotSource::Argument { param, path, field: SlotField::Shape(axis) } = slot else { return None };
    let Some(ArgItem::Array(array)) = module.params.get(*param as usize)?.ty.leaf(path) else { return None };
    let found = module.short_extents.iter().find(|(of, _)| of == param)?;
    (path.is_empty() && axis + 1 == array.ndim).then_some(found.1)
}

fn int(value: i128) -> ExprKind {
    ExprKind::Const(Const::Int(value))
}
