//! With `reproducible`, fixes in the IR what targets would otherwise decide, so that all targets produce the same bits.
//!
//! ```text
//! $t.1 = $a * $b                        $t.2 = $a
//! $acc = $acc + $t.1                    $t.3 = $b
//! store $out.data[$i] = $acc            $acc = fma($t.2, $t.3, $acc)
//!                                       store $out.data[$i] = canonical_nan($acc)
//! ```
//!
//! Three steps, on the front end's output, before target-specific passes:
//!
//! 1. An exponent that is a temporary with a constant value is replaced by the constant, so that back ends compute the
//!    power by multiplications.
//! 2. A `float32` or `float64` product that is an operand of a sum or a difference in one expression of the program is
//!    fused with it, the left one of two. Back ends fuse nothing else.
//! 3. The sign and payload of a computed NaN depend on the processor. Where they are observable (in memory, in `bits`
//!    and `copysign`, in operands of operations and of foreign code) the NaN is replaced by NumPy's. A NaN that is only
//!    copied retains its bits.

use std::collections::BTreeMap;

use weft_artifact::Scalar;

use crate::ir::{
    BinaryOp, Block, Class, Expr, ExprId, ExprKind, Function, FunctionKind, Leaf, Local, LocalId, LocalKind, MathFn,
    Module, Op, Stmt, StmtKind, Type, UnaryOp, for_each_expr, for_each_expr_of_block, for_each_stmt, for_each_stmt_mut,
};

/// Runs the pass.
pub(super) fn run(module: &mut Module) {
    if !module.reproducible {
        return;
    }
    for (_, function) in module.functions.iter_mut() {
        let temps = temps(function);
        exponents(function, &temps);
        fuse(function, &temps);
        settle(function);
    }
}

/// The value of a temporary, or of a part of a variable, that has one assignment, and how often it is read.
struct Temp {
    value: ExprId,
    n_read: u32,
}

fn temps(function: &Function) -> BTreeMap<LocalId, Temp> {
    let mut n_assigned = vec![0_u32; function.locals.len()];
    let mut found = BTreeMap::new();
    for_each_stmt(&function.body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            n_assigned[local.index()] += 1;
        }
        if let StmtKind::Assign(local, value) = stmt.kind
            && function.locals[local].kind != LocalKind::Variable
        {
            found.insert(local, Temp { value, n_read: 0 });
        }
    });
    found.retain(|local, _| n_assigned[local.index()] == 1 && !function.params.contains(local));
    for_each_expr_of_block(function, &function.body, &mut |id| {
        if let Some(temp) = function.local(id).and_then(|local| found.get_mut(&local)) {
            temp.n_read += 1;
        }
    });
    found
}

/// Every expression of a function's statements.
fn reached(function: &Function) -> Vec<ExprId> {
    let mut ids = Vec::new();
    for_each_expr_of_block(function, &function.body, &mut |id| ids.push(id));
    ids
}

/// Step 1: folds constant exponents.
fn exponents(function: &mut Function, temps: &BTreeMap<LocalId, Temp>) {
    let mut inside = Vec::new();
    for id in reached(function) {
        if let ExprKind::Math(MathFn::Pow, args) = &function.exprs[id].kind
            && let Some(&exponent) = args.get(1)
        {
            for_each_expr(function, exponent, &mut |id| inside.push(id));
        }
    }
    for id in inside {
        if let Some(constant) = function.local(id).and_then(|local| constant(function, temps, local)) {
            function.exprs[id].kind = constant;
        }
    }
}

/// The constant value of a temporary.
fn constant(function: &Function, temps: &BTreeMap<LocalId, Temp>, local: LocalId) -> Option<ExprKind> {
    let value = temps.get(&local)?.value;
    match function.class(value) {
        Class::Leaf(Leaf::Const(_)) => Some(function.exprs[value].kind.clone()),
        Class::Leaf(Leaf::Local(source)) if source != local => constant(function, temps, source),
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => None,
    }
}

fn is_fused(ty: Type) -> bool {
    ty == Type::Scalar(Scalar::F32) || ty == Type::Scalar(Scalar::F64)
}

/// The factors of a product.
fn factors(function: &Function, id: ExprId) -> Option<(ExprId, ExprId)> {
    let ExprKind::Binary(BinaryOp::Mul, a, b) = function.exprs[id].kind else { return None };
    Some((a, b))
}

/// Step 2: fuses products with sums.
fn fuse(function: &mut Function, temps: &BTreeMap<LocalId, Temp>) {
    // The factors of the products that temporaries held, each in a new temporary.
    let mut taken: BTreeMap<LocalId, (LocalId, LocalId)> = BTreeMap::new();
    for id in reached(function) {
        let Expr { kind: ExprKind::Binary(op @ (BinaryOp::Add | BinaryOp::Sub), left, right), ty, span } =
            function.exprs[id]
        else {
            continue;
        };
        if !is_fused(ty) {
            continue;
        }
        let mut product = |function: &mut Function, id: ExprId| {
            if let Some(found) = factors(function, id) {
                return Some(found);
            }
            let local = function.local(id)?;
            // A part belongs to a variable of the program, so it is not fused.
            let is_temp = function.locals[local].kind == LocalKind::Temp;
            let temp = temps.get(&local).filter(|temp| is_temp && temp.n_read == 1)?;
            let (a, b) = factors(function, temp.value)?;
            let held = |function: &mut Function, factor: ExprId| {
                let local = function.locals.push(Local::new("t", LocalKind::Temp, function.exprs[factor].ty));
                (local, function.exprs.push(Expr { kind: ExprKind::Local(local), ty, span }))
            };
            let ((a, read_a), (b, read_b)) = (held(function, a), held(function, b));
            taken.insert(local, (a, b));
            Some((read_a, read_b))
        };
        let negated = |function: &mut Function, id: ExprId| {
            let kind = ExprKind::Unary(UnaryOp::Neg, id);
            function.exprs.push(Expr { kind, ty, span })
        };
        let args = if let Some((a, b)) = product(function, left) {
            let addend = if op == BinaryOp::Sub { negated(function, right) } else { right };
            vec![a, b, addend]
        } else if let Some((a, b)) = product(function, right) {
            let a = if op == BinaryOp::Sub { negated(function, a) } else { a };
            vec![a, b, left]
        } else {
            continue;
        };
        function.exprs[id].kind = ExprKind::Math(MathFn::Fma, args);
    }
    let mut body = std::mem::take(&mut function.body);
    hold_factors(function, &mut body, &taken);
    function.body = body;
}

/// Replaces each temporary with a fused product by temporaries for its factors, assigned at the same point.
fn hold_factors(function: &Function, block: &mut Block, taken: &BTreeMap<LocalId, (LocalId, LocalId)>) {
    let mut index = 0;
    while index < block.len() {
        let span = block[index].span;
        for inner in block[index].kind.blocks_mut().into_iter().flatten() {
            hold_factors(function, inner, taken);
        }
        let held = if let StmtKind::Assign(local, value) = block[index].kind {
            taken.get(&local).copied().zip(factors(function, value))
        } else {
            None
        };
        if let Some(((left, right), (a, b))) = held {
            block[index].kind = StmtKind::Assign(left, a);
            block.insert(index + 1, Stmt { kind: StmtKind::Assign(right, b), span });
        }
        index += 1;
    }
}

/// Step 3: canonicalizes NaNs.
fn settle(function: &mut Function) {
    let computed = computed(function);
    let mut seen = Vec::new();
    for id in reached(function) {
        if let ExprKind::Math(MathFn::Bits, args) = &function.exprs[id].kind {
            seen.extend(args.first().copied());
        } else if let ExprKind::Math(MathFn::Copysign, args) = &function.exprs[id].kind {
            seen.extend(args.get(1).copied());
        }
    }
    seen.retain(|&id| is_computed(function, id, &computed));
    for id in seen {
        // The operand moves to a new expression, and its old one becomes the call.
        let operand = function.exprs[id].clone();
        let (ty, span) = (operand.ty, operand.span);
        let operand = function.exprs.push(operand);
        function.exprs[id] = Expr { kind: ExprKind::Math(MathFn::CanonicalNan, vec![operand]), ty, span };
    }
    let exported = function.kind == FunctionKind::Export;
    let mut body = std::mem::take(&mut function.body);
    for_each_stmt_mut(&mut body, &mut |stmt| {
        let values = match &mut stmt.kind {
            StmtKind::Store { value, .. } => std::slice::from_mut(value),
            // The result of a shuffle is canonicalized at its uses.
            StmtKind::Op { op: Op::Shuffle(_), .. } => &mut [],
            StmtKind::Op { args, .. } => args.as_mut_slice(),
            StmtKind::Return(values) if exported => values.as_mut_slice(),
            StmtKind::Return(_)
            | StmtKind::Assign(..)
            | StmtKind::Call { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue => &mut [],
        };
        for value in values {
            if is_computed(function, *value, &computed) {
                let Expr { ty, span, .. } = function.exprs[*value];
                let kind = ExprKind::Math(MathFn::CanonicalNan, vec![*value]);
                *value = function.exprs.push(Expr { kind, ty, span });
            }
        }
    });
    function.body = body;
}

/// The floating-point locals that may hold computed values.
fn computed(function: &Function) -> Vec<bool> {
    let mut computed = vec![false; function.locals.len()];
    if function.kind == FunctionKind::Device {
        for param in &function.params {
            computed[param.index()] = true;
        }
    }
    loop {
        let mut more = Vec::new();
        for_each_stmt(&function.body, &mut |stmt| match &stmt.kind {
            StmtKind::Assign(local, value) => {
                if !computed[local.index()] && is_computed(function, *value, &computed) {
                    more.push(*local);
                }
            }
            StmtKind::Op { results, .. } | StmtKind::Call { results, .. } => {
                more.extend(results.iter().copied().filter(|local| !computed[local.index()]));
            }
            StmtKind::Store { .. }
            | StmtKind::If { .. }
            | StmtKind::Loop { .. }
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Return(_) => {}
        });
        if more.is_empty() {
            return computed;
        }
        for local in more {
            computed[local.index()] = true;
        }
    }
}

/// Whether an expression is a float that may be a NaN created by the processor.
fn is_computed(function: &Function, id: ExprId, computed: &[bool]) -> bool {
    let expr = &function.exprs[id];
    if !expr.ty.scalar().is_some_and(Scalar::is_float) {
        return false;
    }
    match &expr.kind {
        ExprKind::Local(local) => computed[local.index()],
        ExprKind::Select(_, a, b) => is_computed(function, *a, computed) || is_computed(function, *b, computed),
        // An integer converted to a float is never a NaN.
        ExprKind::Convert(a) => function.exprs[*a].ty.scalar().is_some_and(Scalar::is_float),
        ExprKind::Math(function, _) => !matches!(function, MathFn::OfBits | MathFn::CanonicalNan),
        ExprKind::Unary(..) | ExprKind::Binary(..) => true,
        ExprKind::Const(_)
        | ExprKind::Load(..)
        | ExprKind::Special(_)
        | ExprKind::Compare(..)
        | ExprKind::Offset { .. }
        | ExprKind::ByteOffset { .. }
        | ExprKind::SharedBase(_)
        | ExprKind::ConstBase(_)
        | ExprKind::DynamicShared
        | ExprKind::LocalBase(_)
        | ExprKind::Wrap { .. } => false,
    }
}
