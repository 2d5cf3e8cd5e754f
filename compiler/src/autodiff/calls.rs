//! Which calls of functions with a rule can be differentiated: the adjoint kernel repeats them.

use super::{
    refusals::unsupported,
    tape::{Call, Callee, List, Node},
};
use crate::{
    diagnostic::Diagnostic,
    ir::{Effects, FuncId, Module, Rule, Touches},
};

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

/// The name of a device function in the program.
pub(super) fn name(module: &Module, func: FuncId) -> &str {
    let name = &module.functions[func].name;
    name.rsplit_once('.').map_or(name.as_str(), |(name, _)| name)
}
