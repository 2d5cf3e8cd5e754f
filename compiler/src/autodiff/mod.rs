//! Derivatives of kernels, in reverse and forward mode: a stage between the front end and the passes.
//!
//! The stage replaces a kernel by its adjoint kernel, whose last parameters are the adjoints of arrays and scalars.
//! It inlines the kernel's functions, and describes the kernel as a tape (`build`, `tape`). `activity` finds the values
//! that carry derivatives, `plan` the values that the reverse sweep computes again and the order of its loops, and
//! `reverse` emits both sweeps. For the tangent kernel of forward mode, `tangents` emits the tape once. The derivatives of
//! operations are rows of `rules`.
//!
//! The adjoint kernel assumes that the kernel has no races, and that arrays do not overlap. It executes none of the
//! kernel's writes. A program outside of the supported subset is an error at its line, never a wrong derivative.

mod activity;
mod arrays;
mod build;
mod calls;
mod contents;
mod dependence;
mod dynamic;
mod early_loads;
mod exact_sums;
mod fuse_additions;
mod gather;
mod guards;
mod late_stores;
mod loops;
mod merge_additions;
mod needed;
mod own_elements;
mod plan;
mod ranges;
mod refusals;
mod reverse;
mod rules;
mod scratch;
mod shadow;
mod sums;
mod tangents;
mod tape;

use std::collections::BTreeMap;

use weft_artifact::{ArgType, Assumptions, DType, Param, SlotField};

use self::{
    activity::{Activity, Written},
    arrays::{Arrays, has_derivative},
    sums::Tape,
    tape::List,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    inline,
    ir::{Function, Module, Op, Rule, Stmt, StmtKind, for_each_expr_of_stmt, for_each_stmt},
    normalize::unroll,
    passes,
    request::{Derivative, Incoming, Scratch},
    source::{Origin, Span},
};

/// The most iterations of a loop that is unrolled first: the values of its iterations are then in registers.
const MOST_UNROLLED: usize = 8;

/// Replaces a module's kernel by its adjoint kernel. `is_ordered`: the bits of its results must not depend on the order of
/// the threads. `rounds`: the quotients of partial derivatives are rounded.
///
/// # Errors
///
/// The reason why the kernel has no derivative, or none that is supported, at its line.
pub(crate) fn differentiate(
    module: &mut Module,
    derivative: &Derivative,
    (is_ordered, rounds): (bool, bool),
) -> Result<(), Diagnostic> {
    let calls = module.clone();
    let params = module.params.clone();
    let mut gathers = None;
    if derivative.incoming != Incoming::Consumed && module.assumptions != Assumptions::default() {
        // Variants for other launches decide the same.
        let mut general = Module { assumptions: Assumptions::default(), ..module.clone() };
        let _without_gathers = derive(&mut general, derivative, &params, is_ordered, &mut gathers);
        gathers.get_or_insert_default();
    }
    derive(module, derivative, &params, is_ordered, &mut gathers)
        .map_err(|diagnostic| at_users_code(&calls, diagnostic))?;
    if let Some(kernel) = module.kernel.filter(|_| rounds || is_ordered) {
        rules::rounded(&mut module.functions[kernel]);
    }
    Ok(())
}

/// Replaces the kernel, whose last parameters are those of the derivative.
fn derive(
    module: &mut Module,
    derivative: &Derivative,
    params: &[Param],
    is_ordered: bool,
    gathers: &mut Option<gather::Decided>,
) -> Result<(), Diagnostic> {
    let Some(kernel) = module.kernel else { return Ok(()) };
    let span = module.functions[kernel].span;
    if let Some(inner) = &derivative.inner {
        let params = &params[..derivative.first_adjoint(params.len())];
        derive(module, inner, params, false, &mut None)?;
        if is_ordered && derivative.is_forward {
            let function = &module.functions[kernel];
            exact_sums::refuse(function, &Arrays::new(function, params, &module.shared, inner))?;
        }
    }
    check_parameters(params, derivative, span)?;
    if derivative.is_forward {
        calls::drop_symmetric(module);
    }
    inline::all(module);
    inline::without_returns(&mut module.functions[kernel]);
    calls::inline_in_branches(module, kernel);
    passes::simplify(module);
    let mut function = module.functions[kernel].clone();
    dynamic::without_adjoints(&mut function);
    let mut body = std::mem::take(&mut function.body);
    unroll::write_out_up_to(&mut function, &module.constants, &mut body, MOST_UNROLLED);
    function.body = body;
    guards::open(&mut function);
    let rules: Vec<Option<Rule>> = module.functions.iter().map(|(_, function)| function.rule).collect();
    let (list, loops) = build::record(&mut function, &rules)?;
    calls::check(module, &list)?;
    let mut arrays = Arrays::new(&function, params, &module.shared, derivative);
    let activity = activity::find(&function, &arrays, &list)?;
    let written = Written::of(&function, &arrays, &list);
    check_paths(&arrays, &activity, &written, derivative, function.span)?;
    let mut definitions = BTreeMap::new();
    tape::definitions(&list, &mut definitions);
    let uses = tape::uses(&function, &list);
    arrays.declare(&mut function, &mut module.shared, activity.active_memory());
    let (function, arrays) = (function, arrays);
    let strides = shadow::strides(&function, &arrays, &definitions);
    let (definitions, uses, strides) = (&definitions, &uses, &strides);
    let tape = Tape { function: &function, arrays: &arrays, activity: &activity, strides, definitions, uses };
    dependence::check_barriers(tape, &written, &list)?;
    let mut derived = function.clone();
    if derivative.is_forward {
        tangents::emit(tape, &list, &mut derived, module)?;
        module.functions[kernel] = derived;
        inline_rules(module);
        return Ok(());
    }
    reverse(tape, &mut derived, module, &written, (&list, loops), derivative)?;
    module.functions[kernel] = derived;
    inline_rules(module);
    if derivative.scratch == Scratch::Counted {
        return Ok(());
    }
    let plain = own_elements::plain(tape, &list);
    gather::run(&mut module.functions[kernel], tape.arrays, &plain, derivative.incoming, gathers);
    improve(&mut module.functions[kernel], tape, &plain);
    module.is_adjoint = true;
    if is_ordered { exact_sums::run(&mut module.functions[kernel], tape.arrays, derivative.has_sums) } else { Ok(()) }
}

/// Inlines the calls of functions with rules, and of backward functions.
fn inline_rules(module: &mut Module) {
    if module.functions.iter().any(|(_, function)| function.rule.is_some()) {
        module.functions.iter_mut().for_each(|(_, function)| function.rule = None);
        inline::all(module);
    }
}

/// Merges and moves the accesses of an adjoint kernel, in which the gradients of some parameters need no atomic
/// operations.
fn improve(adjoint: &mut Function, tape: Tape<'_>, plain: &[u32]) {
    merge_additions::run(adjoint, tape.arrays);
    merge_additions::without_atomics(adjoint, tape.arrays, plain);
    fuse_additions::run(adjoint, tape.arrays, plain);
    early_loads::run(adjoint, tape.arrays);
    late_stores::run(adjoint, tape.arrays);
    // A barrier at the end orders nothing.
    let is_barrier = |stmt: &mut Stmt| matches!(stmt.kind, StmtKind::Op { op: Op::Barrier | Op::WarpBarrier, .. });
    while adjoint.body.pop_if(is_barrier).is_some() {}
}

/// Makes the body of the adjoint kernel.
fn reverse(
    tape: Tape<'_>,
    adjoint: &mut Function,
    module: &Module,
    written: &Written,
    (list, loops): (&List, usize),
    derivative: &Derivative,
) -> Result<(), Diagnostic> {
    tape.activity.check_loops(tape.function, tape.arrays, list)?;
    let plan = plan::plan(tape, &mut tape.function.clone(), written, list, (loops, derivative))?;
    reverse::emit(tape, &plan, list, (adjoint, module), derivative.scratch);
    Ok(())
}

/// Moves an error in a function of weft's own to the call in the user's code.
fn at_users_code(module: &Module, mut diagnostic: Diagnostic) -> Diagnostic {
    let is_own = |span| module.sources.file(span).is_some_and(|file| file.origin == Origin::Prelude);
    if !is_own(diagnostic.span) {
        return diagnostic;
    }
    let mut reaching = Vec::new();
    for (id, function) in module.functions.iter() {
        let mut call = None;
        for_each_stmt(&function.body, &mut |stmt| {
            let calls = matches!(stmt.kind, StmtKind::Call { func, .. } if reaching.contains(&func));
            if calls && !is_own(stmt.span) {
                call.get_or_insert(stmt.span);
            }
            let mut here = calls || stmt.span == diagnostic.span;
            for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
                here |= function.exprs[id].span == diagnostic.span;
            });
            if here && !reaching.contains(&id) {
                reaching.push(id);
            }
        });
        if let Some(span) = call {
            return Diagnostic { span, label: "in this call".to_owned(), ..diagnostic };
        }
    }
    diagnostic.span = module.kernel().map_or(diagnostic.span, |kernel| kernel.span);
    diagnostic
}

/// Checks that each parameter with an adjoint has a derivative, and that the adjoints have the right types.
fn check_parameters(params: &[Param], derivative: &Derivative, span: Span) -> Result<(), Diagnostic> {
    let first = derivative.first_adjoint(params.len());
    for (&number, adjoint) in derivative.of.iter().zip(&params[first..]) {
        let Some(param) = params.get(number as usize) else { continue };
        let error = |message: String, help: &str| {
            Err(Diagnostic::error(Code::NoDerivative, span, message).help(help.to_owned()))
        };
        let Some(dtype) = float_type(&param.ty) else {
            let message = format!("`{}` is {}, which has no derivative", param.name, param.ty);
            return error(message, "derivatives are those of floats, and of arrays of complex numbers");
        };
        let is_right = if let (ArgType::Array(own), ArgType::Array(given)) = (&param.ty, &adjoint.ty) {
            own.dtype == given.dtype && own.ndim == given.ndim && own.layout == given.layout && !given.readonly
        } else if let ArgType::Array(given) = &adjoint.ty {
            given.dtype == dtype && given.ndim == 1 && !given.readonly
        } else {
            false
        };
        if !is_right {
            let message = format!("the adjoint of `{}`, {}, cannot be {}", param.name, param.ty, adjoint.ty);
            let help = "the adjoint of an array is an array of the same type and layout, that of a scalar an array of \
                one element";
            return error(message, help);
        }
    }
    Ok(())
}

/// The type of numbers that a parameter consists of, if it has derivatives.
fn float_type(ty: &ArgType) -> Option<DType> {
    match ty {
        ArgType::Array(array) => Some(array.dtype).filter(|&dtype| has_derivative(dtype)),
        ArgType::Value(dtype) => Some(*dtype).filter(|&dtype| has_derivative(dtype) && dtype.access().1 == 1),
        ArgType::Tuple(_)
        | ArgType::None
        | ArgType::Struct(..)
        | ArgType::Enum(..)
        | ArgType::Record(_)
        | ArgType::Class(_)
        | ArgType::Pointer(_)
        | ArgType::Optional(_) => None,
    }
}

/// Checks that a derivative by each parameter of `wrt` reaches an array.
fn check_paths(
    arrays: &Arrays,
    activity: &Activity,
    written: &Written,
    derivative: &Derivative,
    span: Span,
) -> Result<(), Diagnostic> {
    if !written.params.iter().any(|&param| arrays.has_adjoint(param)) {
        let message = "the kernel writes no array of floats, so it has no derivative";
        return Err(Diagnostic::error(Code::NoPath, span, message).help("write the results to an array of floats"));
    }
    for &param in &derivative.wrt {
        let scalar = arrays.local(param, SlotField::Value);
        let is_read = activity.loaded.contains(&param) || scalar.is_some_and(|value| activity.is_active(value));
        if !is_read && !written.params.contains(&param) {
            let name = &arrays.param(param).name;
            let message = format!("the derivative by `{name}` reaches no array that the kernel writes");
            let help = format!("leave `{name}` out of `wrt`; derivatives do not flow through integers and comparisons");
            return Err(Diagnostic::error(Code::NoPath, span, message).help(help));
        }
    }
    Ok(())
}
