//! Divergent barriers: whether lanes of a warp may wait for each other at warp barriers in different positions.
//!
//! If both arms of a branch contain `syncwarp`, the lanes of one arm wait for those of the other (CUDA: `__syncwarp`).
//! Thread loops run one arm to its end before the other begins. A kernel therefore runs on fibers if both arms of a
//! branch contain a warp barrier, unless their constant masks name different lanes, or the condition is uniform in a
//! warp. Shuffles and votes need no such test: all lanes of their mask must execute the same one.

use crate::{
    analysis::Rematerializable,
    ir::{
        Arith, BinaryOp, Class, Const, ExprId, ExprKind, Function, Leaf, Module, Op, SpecialRegister, Stmt, StmtKind,
        for_each_stmt,
    },
};

/// Whether lanes may wait for each other at warp barriers in different arms of a branch.
pub(crate) fn arms_meet(module: &Module) -> bool {
    let mut waiting = vec![false; module.functions.len()];
    let mut meet = false;
    // Callees precede their callers, except for recursive functions. If these contain barriers, the threads run on
    // fibers anyway.
    for (id, function) in module.functions.iter() {
        let masks = Masks { function, waiting: &waiting };
        let reaches = masks.of(&function.body);
        if reaches != Some(0) {
            let fixed = Rematerializable::of(function, &function.body);
            for_each_stmt(&function.body, &mut |stmt| {
                if let StmtKind::If { cond, then, otherwise } = &stmt.kind {
                    let overlap = match (masks.of(then), masks.of(otherwise)) {
                        (Some(0), _) | (_, Some(0)) => false,
                        (Some(a), Some(b)) => a & b != 0,
                        (None, _) | (_, None) => true,
                    };
                    meet |= overlap && !is_of_warp(function, &fixed, *cond);
                }
            });
        }
        waiting[id.index()] = reaches != Some(0);
    }
    meet
}

struct Masks<'a> {
    function: &'a Function,
    /// By function: it may reach a warp barrier.
    waiting: &'a [bool],
}

impl Masks<'_> {
    /// The union of the masks of all warp barriers in statements; `None` if a mask is unknown.
    fn of(&self, body: &[Stmt]) -> Option<u32> {
        let mut all = Some(0);
        for_each_stmt(body, &mut |stmt| match &stmt.kind {
            StmtKind::Op { op: Op::WarpBarrier, args, .. } => {
                let mask = args.first().and_then(|mask| {
                    let ExprKind::Const(Const::Int(mask)) = self.function.exprs[*mask].kind else { return None };
                    Some(mask as u32)
                });
                all = all.zip(mask).map(|(all, mask)| all | mask);
            }
            StmtKind::Call { func, .. } if self.waiting.get(func.index()) == Some(&true) => all = None,
            StmtKind::Assign(..)
            | StmtKind::Store { .. }
            | StmtKind::Op { .. }
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        });
        all
    }
}

/// Whether an expression is uniform in a warp, if a row consists of whole warps.
fn is_of_warp(function: &Function, fixed: &Rematerializable, root: ExprId) -> bool {
    let is_const = |id: ExprId, test: fn(i128) -> bool| matches!(function.exprs[id].kind, ExprKind::Const(Const::Int(value)) if test(value));
    let of_warp = |id: ExprId| is_of_warp(function, fixed, id);
    match function.class(root) {
        Class::Arith(Arith::Binary(BinaryOp::FloorDiv | BinaryOp::DivNonneg, a, by))
            if is_const(by, |by| by > 0 && by % 32 == 0) =>
        {
            is_row(function, fixed, a)
        }
        Class::Arith(Arith::Binary(BinaryOp::Shr, a, by)) if is_const(by, |by| (5..32).contains(&by)) => {
            is_row(function, fixed, a)
        }
        Class::Leaf(Leaf::Const(_)) => true,
        Class::Leaf(Leaf::Local(local)) => function.params.contains(&local) || fixed.value(local).is_some_and(of_warp),
        Class::Leaf(Leaf::Special(register)) => register.is_of_block(),
        Class::Arith(
            arith @ (Arith::Unary(..) | Arith::Binary(..) | Arith::Compare(..) | Arith::Select(..) | Arith::Convert(_)),
        ) => arith.operands().into_iter().all(of_warp),
        Class::Leaf(Leaf::Base(_)) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
    }
}

/// Whether an expression is `threadIdx.x`.
fn is_row(function: &Function, fixed: &Rematerializable, root: ExprId) -> bool {
    match function.class(root) {
        Class::Leaf(Leaf::Special(SpecialRegister::ThreadIdx(0))) => true,
        Class::Leaf(Leaf::Local(local)) => fixed.value(local).is_some_and(|value| is_row(function, fixed, value)),
        Class::Arith(Arith::Convert(a)) => is_row(function, fixed, a),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
    }
}
