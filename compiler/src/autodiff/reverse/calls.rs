//! Calls of functions that are differentiated by a rule.

use super::Emitter;
use crate::{
    autodiff::{
        build::{adjoint_type, converted, is_float},
        calls,
        tape::{Call, Callee},
    },
    ir::{LocalId, Rule},
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
        let mut given = Vec::new();
        for (&to, &adjoint) in floats.iter().zip(&adjoints) {
            let ty = self.function.locals[to].ty;
            given.push(match adjoint {
                Some(adjoint) => {
                    let adjoint = self.read(adjoint, span);
                    converted(self.function, adjoint, ty)
                }
                None => self.zero(ty, span),
            });
        }
        let backward = calls::backward(self.function, self.module, (call, func, of_all), given);
        self.push(backward.stmt, span);
        for (value, result) in backward.adjoints {
            let to = adjoint_type(self.function.locals[value].ty);
            let term = self.read(result, span);
            let term = converted(self.function, term, to);
            self.contribute(value, term, span);
        }
    }
}
