//! Calls of functions that are differentiated by a rule.

use super::Emitter;
use crate::{
    autodiff::{
        build::{adjoint_type, converted, is_float},
        calls,
        tape::{Barrier, Call, Callee},
    },
    ir::{FuncId, LocalId, Rule, StmtKind},
};

impl Emitter<'_> {
    /// The call, in the forward sweep.
    pub(super) fn call(&mut self, call: &Call) {
        let args = call.args.iter().map(|&arg| self.function.copy_expr(arg)).collect();
        self.push(call.stmt(args), call.span);
    }

    /// The call of the backward function, whose results are contributions to the adjoints of the arguments.
    pub(super) fn reverse_call(&mut self, call: &Call) {
        if let Callee::Function(func, Rule::Symmetric) = call.callee {
            return self.reverse_symmetric(call, func);
        }
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

    /// The call with the adjoint of the result, which gives that of the argument; without one, the barrier.
    fn reverse_symmetric(&mut self, call: &Call, func: FuncId) {
        let span = call.span;
        let (&[result], &[arg]) = (call.results.as_slice(), call.args.as_slice()) else { return };
        let given = self.tape.function.local(arg).filter(|&value| self.receives(value));
        let (Some(adjoint), Some(value)) = (self.take(result), given) else {
            return self.barrier(Barrier::Block, span);
        };
        let (sum, adjoint) = (self.temp("g", self.function.locals[result].ty), self.read(adjoint, span));
        self.push(StmtKind::Call { results: vec![sum], func, args: vec![adjoint] }, span);
        let term = self.read(sum, span);
        self.contribute(value, term, span);
    }
}
