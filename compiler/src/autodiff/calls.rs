//! Calls of functions with a rule: which of them can be differentiated, as the adjoint kernel repeats them, and the
//! calls of their backward functions.

use std::collections::BTreeMap;

use super::{
    build::is_float,
    refusals::unsupported,
    tape::{Call, Callee, List, Node},
};
use crate::{
    diagnostic::Diagnostic,
    inline,
    ir::{
        Effects, ExprId, FuncId, Function, Local, LocalId, LocalKind, Module, Rule, StmtKind, Touches, Type,
        for_each_stmt_mut,
    },
};

/// Drops the rules of functions whose tangents are not those of a backward function: forward mode differentiates their
/// statements.
pub(super) fn drop_symmetric(module: &mut Module) {
    for (_, function) in module.functions.iter_mut() {
        function.rule = function.rule.filter(|rule| *rule != Rule::Symmetric);
    }
}

/// Inlines the calls of symmetric functions in branches of the kernel, whose barriers `guards` may move out of them.
pub(super) fn inline_in_branches(module: &mut Module, kernel: FuncId) {
    let is_symmetric: Vec<bool> =
        module.functions.iter().map(|(_, function)| function.rule == Some(Rule::Symmetric)).collect();
    let mut inlined = BTreeMap::new();
    let mut body = std::mem::take(&mut module.functions[kernel].body);
    for_each_stmt_mut(&mut body, &mut |stmt| {
        let StmtKind::If { then, otherwise, .. } = &mut stmt.kind else { return };
        for arm in [then, otherwise] {
            for_each_stmt_mut(arm, &mut |stmt| {
                if let StmtKind::Call { func, .. } = &mut stmt.kind
                    && is_symmetric.get(func.index()) == Some(&true)
                {
                    *func = *inlined.entry(*func).or_insert_with(|| {
                        let own = module.functions[*func].clone();
                        module.functions.push(Function { name: format!("{}.inlined", own.name), rule: None, ..own })
                    });
                }
            });
        }
    });
    module.functions[kernel].body = body;
    if !inlined.is_empty() {
        inline::all(module);
    }
}

/// Refuses calls of functions that have effects.
pub(super) fn check(module: &Module, list: &List) -> Result<(), Diagnostic> {
    check_list(&Effects::of_module(module), module, list)
}

fn check_list(effects: &[Effects], module: &Module, list: &List) -> Result<(), Diagnostic> {
    for node in list {
        match node {
            Node::Call(call) => check_call(effects, module, call)?,
            Node::Define { .. }
            | Node::Unrepeatable { .. }
            | Node::Exchange(_)
            | Node::Store(_)
            | Node::Add(_)
            | Node::Barrier { .. } => {}
            Node::If(branch) => {
                check_list(effects, module, &branch.then)?;
                check_list(effects, module, &branch.otherwise)?;
            }
            Node::Loop(repeat) => {
                check_list(effects, module, &repeat.head)?;
                check_list(effects, module, &repeat.body)?;
            }
        }
    }
    Ok(())
}

fn check_call(effects: &[Effects], module: &Module, call: &Call) -> Result<(), Diagnostic> {
    let Callee::Function(own, Rule::Backward { func: backward, .. }) = call.callee else { return Ok(()) };
    for func in [own, backward] {
        let effects = Effects::of_function(effects, func);
        if effects.synchronizes() || effects.noticed || effects.touches != Touches::Nothing {
            let what = format!("`{}`, which accesses memory or other threads,", name(module, func));
            let help = "a function with a backward function, and the backward function, compute from numbers only";
            return Err(unsupported(call.span, &what, help));
        }
    }
    Ok(())
}

/// The call of a backward function, whose results are the adjoints of the arguments.
pub(super) struct BackwardCall {
    pub(super) stmt: StmtKind,
    /// The arguments that are values of floats, and the results that are their adjoints.
    pub(super) adjoints: Vec<(LocalId, LocalId)>,
}

/// The call of the backward function of a call, with the adjoints of its results that are floats.
pub(super) fn backward(
    function: &mut Function,
    module: &Module,
    (call, func, of_all): (&Call, FuncId, bool),
    adjoints: Vec<ExprId>,
) -> BackwardCall {
    let mut args: Vec<ExprId> = call.args.iter().map(|&arg| function.copy_expr(arg)).collect();
    for &result in &call.results {
        args.push(function.edit(call.span).read(result));
    }
    args.extend(adjoints);
    let types = &module.functions[func].results;
    let results: Vec<LocalId> =
        types.iter().map(|&ty| function.locals.push(Local::new("g", LocalKind::Temp, ty))).collect();
    let has_result = |ty: Type| is_float(ty) || of_all && ty != Type::BOOL;
    let given = call.args.iter().filter(|&&arg| has_result(function.exprs[arg].ty));
    let pairs = given.zip(&results).filter(|&(&arg, _)| is_float(function.exprs[arg].ty));
    let adjoints = pairs.filter_map(|(&arg, &result)| Some((function.local(arg)?, result))).collect();
    BackwardCall { stmt: StmtKind::Call { results, func, args }, adjoints }
}

/// The name of a device function in the program.
pub(super) fn name(module: &Module, func: FuncId) -> &str {
    let name = &module.functions[func].name;
    name.rsplit_once('.').map_or(name.as_str(), |(name, _)| name)
}
