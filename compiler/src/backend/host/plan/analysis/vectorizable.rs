//! Whether the accesses of a loop can be vectorized over the threads of a row.

use crate::{
    analysis::Rematerializable,
    backend::host::plan::{
        analysis::{
            divergence::Uniformity,
            gathers::Loaded,
            strides::{Form, Forms},
        },
        plan_ir::Refusal,
    },
    ir::{
        Arith, BinaryOp, Class, ExprId, ExprKind, Function, LocalId, MathFn, SpecialRegister, Stmt, StmtKind, Type,
        Unit, for_each_expr, for_each_expr_of_stmt, for_each_stmt,
    },
    source::Span,
};

/// The access patterns of a row in a loop.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct AccessPatterns {
    /// The first access without unit stride whose index is not loaded.
    pub strided: Option<Span>,
    /// The first gather: a load whose index was loaded.
    pub gathers: Option<Span>,
    /// A load with unit stride.
    pub next: bool,
}

impl AccessPatterns {
    /// The access because of which vectors of threads do not pay, if `may_gather` says whether gathers pay. With
    /// `may_interleave`, they pay in spite of it if the loop has a recurrence.
    pub(crate) fn refusal(self, may_gather: bool, may_interleave: bool) -> Option<Refusal> {
        let Self { strided, gathers, .. } = self;
        let strided = strided
            .map(|span| if may_interleave { Refusal::StridedWithoutRecurrence(span) } else { Refusal::Strided(span) });
        strided.or(gathers.filter(|_| !may_gather).map(Refusal::Gather))
    }
}

/// The access patterns of a row in a loop.
pub(crate) fn access_patterns(
    function: &Function,
    iteration: &[Stmt],
    body: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> AccessPatterns {
    let mut values: Vec<Option<ExprId>> = vec![None; function.locals.len()];
    let mut counts = vec![0_u32; function.locals.len()];
    for_each_stmt(body, &mut |stmt| {
        for local in stmt.kind.assigned() {
            counts[local.index()] += 1;
            values[local.index()] = if let StmtKind::Assign(_, value) = stmt.kind { Some(value) } else { None };
        }
    });
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let sole = |local: LocalId| if counts[local.index()] == 1 { values[local.index()] } else { None };
    let forms = Forms { function, fixed, shared: &shared, sole: &sole, axis: 0 };
    let loaded = Loaded::of(function, body);
    let mut access_patterns = AccessPatterns::default();
    for_each_stmt(iteration, &mut |stmt| {
        if let StmtKind::Store { pointer, .. } = stmt.kind {
            let is_good = is_unit_stride_or_uniform(&forms, pointer);
            access_patterns.strided = access_patterns.strided.or((!is_good).then_some(stmt.span));
        }
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                let ExprKind::Load(pointer, _) = function.exprs[id].kind else { return };
                if is_unit_stride_or_uniform(&forms, pointer) {
                    access_patterns.next |= forms.form(pointer) != Form::Same;
                } else if loaded.is_lookup(function, pointer) {
                    access_patterns.gathers = access_patterns.gathers.or(Some(function.exprs[id].span));
                } else {
                    access_patterns.strided = access_patterns.strided.or(Some(function.exprs[id].span));
                }
            });
        }
    });
    access_patterns
}

/// Checks that each access of the loop is uniform in a row or has unit stride along it.
///
/// # Errors
///
/// The first access that is not.
pub(crate) fn check_accesses(
    function: &Function,
    iteration: &[Stmt],
    body: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> Result<(), Refusal> {
    access_patterns(function, iteration, body, fixed, uniformity).refusal(false, false).map_or(Ok(()), Err)
}

/// Whether some loads have unit stride along `x` and are uniform along `y`, and others vary along `y`: a tile of
/// several rows makes the former once for all its rows.
pub(crate) fn rows_share(
    function: &Function,
    list: &[Stmt],
    fixed: &Rematerializable,
    uniformity: &Uniformity,
) -> bool {
    let shared = |local: LocalId| !uniformity.local_varies(local);
    let [along_x, along_y] = [0, 1].map(|axis| Forms { function, fixed, shared: &shared, sole: &|_| None, axis });
    let (mut shares, mut differs) = (false, false);
    for_each_stmt(list, &mut |stmt| {
        for root in stmt.kind.exprs() {
            for_each_expr(function, root, &mut |id| {
                if let ExprKind::Load(pointer, _) = function.exprs[id].kind
                    && let Class::Address { base, by, .. } = function.class(pointer)
                {
                    let alike = along_y.form(base) == Form::Same && along_y.form(by) == Form::Same;
                    shares |= alike && along_x.form(by) == Form::Step;
                    differs |= !alike;
                }
            });
        }
    });
    shares && differs && knows_rows(function)
}

/// Whether a kernel reads `threadIdx.y`.
fn knows_rows(function: &Function) -> bool {
    function.exprs.iter().any(|(_, expr)| expr.kind == ExprKind::Special(SpecialRegister::ThreadIdx(1)))
}

/// Whether a value is uniform in a row.
pub(crate) fn is_row_uniform(
    function: &Function,
    fixed: &Rematerializable,
    uniformity: &Uniformity,
    value: ExprId,
) -> bool {
    let shared = |local: LocalId| !uniformity.local_varies(local);
    Forms { function, fixed, shared: &shared, sole: &|_| None, axis: 0 }.form(value) == Form::Same
}

/// Whether the threads of a row access the same element or neighboring ones.
pub(crate) fn is_unit_stride_or_uniform(forms: &Forms<'_>, pointer: ExprId) -> bool {
    match forms.function.class(pointer) {
        Class::Address { base, by, unit: Unit::Elements } => {
            forms.form(base) == Form::Same && forms.form(by) != Form::Other
        }
        Class::Leaf(_) | Class::Arith(_) | Class::Address { .. } | Class::Load(_) => forms.form(pointer) == Form::Same,
    }
}

/// Whether a loop calls math functions other than those of a few instructions.
pub(crate) fn calls_math(function: &Function, block: &[Stmt]) -> bool {
    math_calls(function, block) > 0
}

/// The number of calls of math functions that are more than a few instructions.
pub(crate) fn math_calls(function: &Function, block: &[Stmt]) -> usize {
    let mut calls = 0;
    for_each_stmt(block, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Arith(Arith::Math(of, _)) = function.class(id) {
                calls += usize::from(!is_short_math(of));
            }
        });
    });
    calls
}

/// Largest number of calls of math functions of a thread loop that are inlined. Each is up to 300 instructions.
pub(crate) const MAX_INLINED_MATH: usize = 8;

/// Whether LLVM can vectorize a thread loop with this body once its math functions are inlined: the body has no loop,
/// and few calls. LLVM inlines a large function by itself only where it is called once, and vectorizes no loop with
/// calls.
pub(crate) fn is_vectorized_with_math(function: &Function, body: &[Stmt]) -> bool {
    let mut loops = false;
    for_each_stmt(body, &mut |stmt| loops |= matches!(stmt.kind, StmtKind::Loop { .. }));
    !loops && math_calls(function, body) <= MAX_INLINED_MATH
}

/// Whether a math function is a few instructions.
pub(crate) fn is_short_math(of: MathFn) -> bool {
    matches!(
        of,
        MathFn::Bits
            | MathFn::CanonicalNan
            | MathFn::Ceil
            | MathFn::Copysign
            | MathFn::Floor
            | MathFn::Fma
            | MathFn::Isfinite
            | MathFn::Isinf
            | MathFn::Isnan
            | MathFn::OfBits
            | MathFn::OfE4M3
            | MathFn::RoundEven
            | MathFn::Sqrt
            | MathFn::ToE4M3
            | MathFn::ToE5M2
            | MathFn::Trunc
    )
}

/// The first division of integers by a value that is not constant, or power: LLVM scalarizes these per lane.
pub(crate) fn division(function: &Function, list: &[Stmt]) -> Option<Span> {
    use BinaryOp::{
        Add, AddExact, And, Div, DivNonneg, FloorDiv, FloorMod, Max, Min, ModNonneg, Mul, MulExact, Or, Pow, Shl, Shr,
        Sub, SubExact, Xor,
    };
    let mut found = None;
    for_each_stmt(list, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            let ExprKind::Binary(op, _, by) = function.exprs[id].kind else { return };
            let is_int = matches!(function.exprs[id].ty, Type::Scalar(scalar) if scalar.is_int());
            let divides = match op {
                Div | FloorDiv | FloorMod | DivNonneg | ModNonneg => is_int && function.int(by).is_none(),
                Pow => true,
                Add | Sub | Mul | AddExact | SubExact | MulExact | And | Or | Xor | Min | Max | Shl | Shr => false,
            };
            if divides {
                found = found.or(Some(function.exprs[id].span));
            }
        });
    });
    found
}
