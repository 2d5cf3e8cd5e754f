//! Calls of functions that are differentiated by a rule.

use super::Emitter;
use crate::{
    autodiff::{
        build::{adjoint_type, converted, is_float},
        tape::{Call, Callee},
    },
    ir::{ExprId, LocalId, Rule, StmtKind, Type},
};

impl Emitter<'_> {
    /// The call, in the forward sweep.
    pub(super) fn call(&mut self, call: &Call) {
        let args = call.args.iter().map(|&arg| self.function.copy_expr(arg)).collect();
        self.push(call.stmt(args), call.span);
    }

    /// The call of the backward function, whose results are contributions to the adjoints of the arguments.
    pub(super) fn reverse_call(&mut self, call: &Call) {
        let (Callee::Function(_, Rule::Backward { func, of_all }), span) = (call.callee, call.span) else { return };
        let floats: Vec<LocalId> =
            call.results.iter().copied().filter(|&to| is_float(self.function.locals[to].ty)).collect();
        let adjoints: Vec<Option<LocalId>> = floats.iter().map(|&to| self.take(to)).collect();
        if adjoints.iter().all(Option::is_none) {
            return;
        }
        let mut args: Vec<ExprId> = call.args.iter().map(|&arg| self.function.copy_expr(arg)).collect();
        for &result in &call.results {
            args.push(self.read(result, span));
        }
        for (&to, &adjoint) in floats.iter().zip(&adjoints) {
            let ty = self.function.locals[to].ty;
            args.push(match adjoint {
                Some(adjoint) => {
                    let adjoint = self.read(adjoint, span);
                    converted(self.function, adjoint, ty)
                }
                None => self.zero(ty, span),
            });
        }
        let types = self.module.functions[func].results.clone();
        let results: Vec<LocalId> = types.into_iter().map(|ty| self.temp("g", ty)).collect();
        self.push(StmtKind::Call { results: results.clone(), func, args }, span);
        let types = call.args.iter().map(|&arg| self.tape.function.exprs[arg].ty);
        let has_result: Vec<bool> = types.map(|ty| is_float(ty) || of_all && ty != Type::BOOL).collect();
        let args = call.args.iter().zip(has_result).filter(|(_, has)| *has).map(|(&arg, _)| arg);
        for (arg, result) in args.zip(results) {
            if !is_float(self.tape.function.exprs[arg].ty) {
                continue;
            }
            let Some(value) = self.tape.function.local(arg).filter(|&value| self.receives(value)) else { continue };
            let to = adjoint_type(self.function.locals[value].ty);
            let term = self.read(result, span);
            let term = converted(self.function, term, to);
            self.contribute(value, term, span);
        }
    }
}
