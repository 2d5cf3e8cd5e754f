//! `any`, `all` and `in` of generators: they stop at the first item that decides the result.

use weft_artifact::{MAX_LEAVES, Scalar};

use super::super::{
    lowerer::{FnLowerer, Truth},
    state,
    value::Value,
};
use crate::{
    ir::{BinaryOp, CompareOp, ExprId, LocalId, StmtKind as Ir, Type, UnaryOp},
    source::Span,
};

impl FnLowerer<'_> {
    /// Lowers code that runs if `cond` holds.
    fn when<R>(&mut self, cond: ExprId, span: Span, then: impl FnOnce(&mut Self) -> R) -> R {
        let cond = self.b.temp(cond, span);
        let entry = self.env.clone();
        self.b.open();
        let result = then(self);
        let end = self.env.take();
        let mut then = self.b.close();
        let joined = state::join(&[&end, &entry], self.typing());
        self.b.open();
        then.extend(self.close_arm(end, &joined, span));
        self.b.open();
        let otherwise = self.close_arm(entry, &joined, span);
        self.env = joined;
        let cond = self.b.read(cond, span);
        self.stmt(Ir::If { cond, then, otherwise }, span);
        result
    }

    /// Whether a test holds for any item. Consumes no items beyond the first one for which it holds. `position` is the
    /// generator's run-time position, if it has one.
    pub(in crate::frontend) fn holds_of_one(
        &mut self,
        value: Value,
        position: Option<LocalId>,
        span: Span,
        test: &mut dyn FnMut(&mut Self, Value) -> Truth,
    ) -> Value {
        let Some(mut source) = self.source(value, span) else { return Value::Poison };
        let mut found: Option<LocalId> = None;
        let mut too_many = false;
        for iteration in 0.. {
            if iteration > MAX_LEAVES as i64 {
                too_many = true;
                break;
            }
            let mut take = |this: &mut Self| -> Option<Option<Truth>> {
                let Some(item) = this.pull(&mut source, span)? else { return Some(None) };
                if let Some(position) = position {
                    let next = this.b.i64(iteration + 1, span);
                    this.b.assign(position, next, span);
                }
                Some(Some(test(this, item)))
            };
            let guard = match (found, position) {
                (None, None) => None,
                (None, Some(position)) => Some(self.is_at(position, iteration, span)),
                (Some(found), position) => {
                    let found = self.b.read(found, span);
                    let open = self.b.unary(UnaryOp::Not, found, span);
                    Some(match position {
                        None => open,
                        Some(position) => {
                            let here = self.is_at(position, iteration, span);
                            self.b.binary(BinaryOp::And, open, here, span)
                        }
                    })
                }
            };
            let Some(guard) = guard else {
                match take(self) {
                    None | Some(Some(Truth::Poison)) => return Value::Poison,
                    Some(None) => return Value::Bool(false),
                    Some(Some(Truth::Known(true))) => return Value::Bool(true),
                    Some(Some(Truth::Known(false))) => {}
                    Some(Some(Truth::Expr(holds))) => found = Some(self.flag(holds, span)),
                }
                continue;
            };
            let flag = found.unwrap_or_else(|| {
                let no = self.b.bool(false, span);
                self.flag(no, span)
            });
            // A guard that is built before the flag must not read the flag before its first assignment.
            found = Some(flag);
            let taken = self.when(guard, span, |this| {
                let taken = take(this);
                let holds = match &taken {
                    Some(Some(Truth::Known(true))) => this.b.bool(true, span),
                    Some(Some(Truth::Expr(holds))) => *holds,
                    None | Some(None | Some(Truth::Known(false) | Truth::Poison)) => return taken,
                };
                this.b.assign(flag, holds, span);
                taken
            });
            match taken {
                None | Some(Some(Truth::Poison)) => return Value::Poison,
                // No later iteration is taken: there is none, or this one decides and the generator was at its first
                // item.
                Some(None) => break,
                Some(Some(Truth::Known(true))) if position.is_none() => break,
                Some(Some(Truth::Known(_) | Truth::Expr(_))) => {}
            }
        }
        match found {
            Some(found) if !too_many => {
                let found = self.b.read(found, span);
                self.settle(Value::Scalar(found, Scalar::Bool), span)
            }
            Some(_) | None => self.too_many_iterations(span),
        }
    }

    /// A flag with this initial value.
    fn flag(&mut self, value: ExprId, span: Span) -> LocalId {
        let flag = self.b.local("found", Type::BOOL);
        self.b.assign(flag, value, span);
        flag
    }

    /// Whether an iterator is at a position.
    pub(in crate::frontend) fn is_at(&mut self, position: LocalId, iteration: i64, span: Span) -> ExprId {
        let (now, iteration) = (self.b.read(position, span), self.b.i64(iteration, span));
        self.b.compare(CompareOp::Eq, now, iteration, span)
    }

    /// The negation of a truth value.
    pub(in crate::frontend) fn opposite(&mut self, truth: Truth, span: Span) -> Truth {
        match truth {
            Truth::Known(known) => Truth::Known(!known),
            Truth::Expr(expr) => Truth::Expr(self.b.unary(UnaryOp::Not, expr, span)),
            Truth::Poison => Truth::Poison,
        }
    }
}
