//! Makes counters 32 bits wide where their values provably fit.
//!
//! ```text
//! var $count: int64                                  var $count: int32
//! $count = 0                                         $count = 0:int32
//! loop {                                             loop {
//!     if not $count < int64($limit) { break }            if not $count < $limit { break }
//!     …                                                  …
//!     $count = $count + 1                                $count = $count + 1:int32
//! }                                                  }
//! ```
//!
//! Numba's rules make most integers `int64`, but a GPU adds and compares 64 bits in two instructions each, and LLVM
//! keeps the width that it is given. A local fits 32 bits if all that is assigned to it does: small constants,
//! conversions of narrow integers, other such locals, and the local itself plus a constant where the loop's test has
//! just shown that there is room. Locals that take part in other arithmetic stay as they are, above all in
//! addresses, which are 64 bits wide in any case.

use std::collections::BTreeSet;

use weft_artifact::Scalar;

use super::turns::Around;
use crate::ir::{
    Arith, BinaryOp, Block, Class, Const, Expr, ExprId, ExprKind, Function, Leaf, LocalId, Module, StmtKind, Type,
    for_each_expr_of_block, for_each_stmt,
};

type Locals = BTreeSet<LocalId>;

const LARGEST: i128 = i32::MAX as i128;

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        let narrow = narrow_locals(function);
        if !narrow.is_empty() {
            rewrite(function, &narrow);
        }
    }
}

/// The locals that can be 32 bits wide and gain by it.
fn narrow_locals(function: &Function) -> Locals {
    let mut narrow: Locals = function.locals.iter().filter(|(_, l)| l.ty == Type::I64).map(|(id, _)| id).collect();
    for param in &function.params {
        narrow.remove(param);
    }
    for_each_stmt(&function.body, &mut |stmt| {
        if !matches!(stmt.kind, StmtKind::Assign(..)) {
            for local in stmt.kind.assigned() {
                narrow.remove(&local);
            }
        }
    });
    // Each local that leaves may be what another one rests on.
    loop {
        let mut wide = Locals::new();
        check_uses(function, &narrow, &mut wide);
        check_assignments(function, &narrow, &function.body, None, &mut wide);
        let before = narrow.len();
        narrow.retain(|local| !wide.contains(local));
        if narrow.len() == before {
            return narrow;
        }
    }
}

/// Finds the locals that are used for more than comparing, converting, copying and counting.
fn check_uses(function: &Function, narrow: &Locals, wide: &mut Locals) {
    for_each_expr_of_block(function, &function.body, &mut |id| {
        let expr = &function.exprs[id];
        let fine = match expr.kind.class() {
            Class::Arith(Arith::Convert(_)) => expr.ty != Type::I64 && expr.ty != Type::Scalar(Scalar::U64),
            Class::Arith(Arith::Compare(_, a, b)) => fits(function, narrow, a) && fits(function, narrow, b),
            Class::Arith(Arith::Binary(BinaryOp::Add, _, _)) => increment(function, id).is_some(),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        };
        if !fine {
            wide.extend(expr.kind.operands().into_iter().filter_map(|child| function.local(child)));
        }
    });
    // A sum may stand where it is not assigned to its own local.
    for_each_stmt(&function.body, &mut |stmt| {
        for root in stmt.kind.exprs() {
            crate::ir::for_each_expr(function, root, &mut |id| {
                if let Some((local, _)) = increment(function, id)
                    && !matches!(stmt.kind, StmtKind::Assign(to, value) if to == local && value == id)
                {
                    wide.insert(local);
                }
            });
        }
    });
}

/// Finds the locals that are assigned what may not fit.
fn check_assignments(
    function: &Function,
    narrow: &Locals,
    block: &Block,
    around: Option<Around<'_>>,
    wide: &mut Locals,
) {
    for stmt in block {
        match &stmt.kind {
            StmtKind::Assign(local, value) => {
                let counts = || {
                    increment(function, *value).is_some_and(|(counter, by)| {
                        counter == *local
                            && around.is_some_and(|around| has_room(function, narrow, around, counter, by))
                    })
                };
                if !fits(function, narrow, *value) && !counts() {
                    wide.insert(*local);
                }
            }
            StmtKind::Loop { body, step } => {
                let around = Around::of(function, body, step);
                check_assignments(function, narrow, body, around, wide);
                check_assignments(function, narrow, step, around, wide);
            }
            StmtKind::If { then, otherwise, .. } => {
                check_assignments(function, narrow, then, around, wide);
                check_assignments(function, narrow, otherwise, around, wide);
            }
            // `narrow_locals` has taken out what these assign.
            StmtKind::Op { .. } | StmtKind::Call { .. } => {}
            StmtKind::Store { .. } | StmtKind::Break | StmtKind::Continue | StmtKind::Return(_) => {}
        }
    }
}

/// Whether a loop's test leaves room for one `counter + by` a turn, which must be the turn's only assignment to it.
fn has_room(function: &Function, narrow: &Locals, around: Around<'_>, counter: LocalId, by: i128) -> bool {
    let mut leaves_room = |above: ExprId, or_equal: bool| {
        let largest = if let Some(value) = function.int(above) {
            value
        } else if fits(function, narrow, above) {
            LARGEST
        } else {
            return false;
        };
        largest - 1 + i128::from(or_equal) + by <= LARGEST
    };
    around.assigns_once(counter) && around.is_below(function, counter, &mut leaves_room)
}

/// `local + constant`, of a constant above 0.
fn increment(function: &Function, id: ExprId) -> Option<(LocalId, i128)> {
    let ExprKind::Binary(BinaryOp::Add, now, by) = function.exprs[id].kind else { return None };
    let by = function.int(by).filter(|by| (1..=LARGEST).contains(by))?;
    Some((function.local(now)?, by))
}

/// Whether an `I64` expression is seen to fit 32 bits, and can be written on 32.
fn fits(function: &Function, narrow: &Locals, id: ExprId) -> bool {
    let expr = &function.exprs[id];
    expr.ty == Type::I64
        && match expr.kind.class() {
            Class::Leaf(Leaf::Const(Const::Int(value))) => i32::try_from(value).is_ok(),
            Class::Leaf(Leaf::Local(local)) => narrow.contains(&local),
            Class::Arith(Arith::Convert(from)) => function.exprs[from].ty.scalar().is_some_and(|scalar| {
                matches!(scalar, Scalar::Bool | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::U8 | Scalar::U16)
            }),
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => false,
        }
}

/// Gives the locals their new type, and what they meet.
fn rewrite(function: &mut Function, narrow: &Locals) {
    for local in narrow {
        function.locals[*local].ty = Type::I32;
    }
    let (mut roots, mut inner) = (Vec::new(), Vec::new());
    for_each_stmt(&function.body, &mut |stmt| match stmt.kind {
        StmtKind::Assign(to, value) if narrow.contains(&to) => inner.push(value),
        StmtKind::Assign(..)
        | StmtKind::Store { .. }
        | StmtKind::Op { .. }
        | StmtKind::Call { .. }
        | StmtKind::If { .. }
        | StmtKind::Loop { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Return(_) => roots.extend(stmt.kind.exprs()),
    });
    // What is assigned to a narrow local is narrow, with its operands if it is a sum.
    for value in inner {
        if let ExprKind::Binary(BinaryOp::Add, now, by) = function.exprs[value].kind {
            function.exprs[value].ty = Type::I32;
            narrow_expr(function, now);
            narrow_expr(function, by);
        } else {
            narrow_expr(function, value);
        }
    }
    let mut uses = Vec::new();
    for_each_expr_of_block(function, &function.body, &mut |id| uses.push(id));
    for id in uses {
        match function.class(id) {
            Class::Arith(Arith::Compare(_, a, b)) if [a, b].iter().any(|x| is_narrow(function, narrow, *x)) => {
                narrow_expr(function, a);
                narrow_expr(function, b);
            }
            Class::Arith(Arith::Convert(from)) if is_narrow(function, narrow, from) => {
                narrow_expr(function, from);
                if function.exprs[id].ty == Type::I32 {
                    function.exprs[id] = function.exprs[from].clone();
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => {}
        }
    }
    // A local that is stored, returned or passed as it stands.
    for root in roots {
        if is_narrow(function, narrow, root) && function.exprs[root].ty == Type::I64 {
            let Expr { kind, span, .. } = function.exprs[root].clone();
            let local = function.exprs.push(Expr { kind, ty: Type::I32, span });
            function.exprs[root].kind = ExprKind::Convert(local);
        }
    }
}

fn is_narrow(function: &Function, narrow: &Locals, id: ExprId) -> bool {
    function.local(id).is_some_and(|local| narrow.contains(&local))
}

/// Writes an expression that [`fits`] on 32 bits.
fn narrow_expr(function: &mut Function, id: ExprId) {
    if let ExprKind::Convert(from) = function.exprs[id].kind
        && function.exprs[from].ty == Type::I32
    {
        function.exprs[id] = function.exprs[from].clone();
    }
    function.exprs[id].ty = Type::I32;
}
