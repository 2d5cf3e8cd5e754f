//! Items of generators at run-time positions: in `for` loops, and by `next` of a generator in a variable.
//!
//! A local holds the generator's position. The code that consumes an item selects among the iterations' code; the last
//! case is that there is no further item.

use weft_artifact::MAX_LEAVES;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        lowerer::FnLowerer,
        object::{Exception, ObjectKind, is_generated, site_of},
        state::{self, Env},
        ty::Ty,
        value::Value,
    },
    ir::{Block, LocalId, Stmt as IrStmt, StmtKind as Ir, Type},
    source::Span,
    syntax::ast::{Expr, Stmt},
};

/// The code of an iteration, the variables after it, and the item; no item in the case after the last one.
struct Case {
    block: Block,
    env: Env,
    item: Option<Value>,
}

impl FnLowerer<'_> {
    /// `for target in generator: … else: …`.
    pub(super) fn for_generated(
        &mut self,
        target: &Expr,
        (value, position): (Value, Option<LocalId>),
        body: &[Stmt],
        orelse: &[Stmt],
        span: Span,
    ) {
        let value = self.settle(value, span);
        let position = position.unwrap_or_else(|| {
            let position = self.b.local("turn", Type::I64);
            let first = self.b.i64(0, span);
            self.b.assign(position, first, span);
            position
        });
        self.b.function.locals[position].nonneg = true;
        self.loop_statement(
            span,
            orelse,
            |this, exhausted| {
                let Some(mut cases) = this.cases(value.clone(), position, span) else {
                    let never = this.b.bool(false, span);
                    this.leave_unless(never, &[], None, span);
                    this.assign_to(target, Value::Poison, target.span);
                    this.stmts(body);
                    return;
                };
                if let Some(end) = cases.last_mut() {
                    this.go_on(end, |this| this.exhausted(exhausted, span));
                }
                let items: Vec<Value> = cases.iter().filter_map(|case| case.item.clone()).collect();
                let typing = this.typing();
                let Some(first) = items.first().map(|item| item.ty().widened(typing)) else {
                    this.skipped(body);
                    this.choose_case(cases, position, span);
                    return;
                };
                let alike = items.iter().all(|item| item.ty().widened(typing) == first);
                if alike && !first.parts().is_empty() {
                    let locals = this.store_items(&mut cases, &first, span);
                    this.choose_case(cases, position, span);
                    let item = this.rebuild(&first, &mut locals.into_iter(), span);
                    this.assign_to(target, item, target.span);
                    this.stmts(body);
                    return;
                }
                for (number, case) in cases.iter_mut().enumerate() {
                    let Some(item) = case.item.clone() else { continue };
                    this.go_on(case, |this| {
                        let item = this.reread(&item, span);
                        this.loops.unrolled.push(number);
                        this.assign_to(target, item, target.span);
                        this.stmts(body);
                        this.loops.unrolled.pop();
                    });
                }
                this.choose_case(cases, position, span);
            },
            |_| {},
        );
    }

    /// `next(generator[, default])` of a generator at a run-time position.
    pub(in crate::frontend) fn next_generated(
        &mut self,
        value: Value,
        position: LocalId,
        default: Option<Value>,
        span: Span,
    ) -> Value {
        let Some(mut cases) = self.cases(value, position, span) else { return Value::Poison };
        if let Some(end) = cases.last_mut() {
            end.item.clone_from(&default);
            if default.is_none() {
                self.go_on(end, |this| {
                    let exception = Exception { class: "builtins.StopIteration".to_owned(), args: None };
                    this.end_thread(exception, span);
                    this.env = None;
                });
            }
        }
        let items: Vec<Value> = cases.iter().filter_map(|case| case.item.clone()).collect();
        let Some(ty) = self.joined_type(&items, span) else {
            self.choose_case(cases, position, span);
            if items.is_empty() {
                return Value::Poison;
            }
            let message = "`next` takes items of one type, and those of this generator have several";
            let diagnostic = Diagnostic::error(Code::CannotJoin, span, message);
            return self.report(diagnostic.help("loop over them with `for`"));
        };
        let locals = self.store_items(&mut cases, &ty, span);
        self.choose_case(cases, position, span);
        self.rebuild(&ty, &mut locals.into_iter(), span)
    }

    /// The cases for the iterations of a generator, and the one after the last iteration.
    fn cases(&mut self, value: Value, position: LocalId, span: Span) -> Option<Vec<Case>> {
        let entry = self.env.clone();
        let mut source = self.source(value, span)?;
        let mut cases = Vec::new();
        loop {
            let iteration = cases.len();
            let mut found = None;
            let env = self.in_block(entry.clone(), |this| {
                found = this.pull(&mut source, span);
                if let Some(Some(_)) = &found {
                    let next = this.b.i64(iteration as i64 + 1, span);
                    this.b.assign(position, next, span);
                }
            });
            let block = self.b.close();
            self.env.clone_from(&entry);
            let item = found?;
            if iteration > MAX_LEAVES {
                self.too_many_iterations(span);
                return None;
            }
            let is_last = item.is_none();
            cases.push(Case { block, env, item });
            if is_last {
                return Some(cases);
            }
        }
    }

    /// Lowers further code of an iteration.
    fn go_on(&mut self, case: &mut Case, more: impl FnOnce(&mut Self)) {
        case.env = self.in_block(case.env.take(), more);
        case.block.extend(self.b.close());
    }

    /// Stores the item of each iteration in locals of a common type.
    fn store_items(&mut self, cases: &mut [Case], ty: &Ty, span: Span) -> Vec<LocalId> {
        let locals: Vec<LocalId> = ty.parts().into_iter().map(|(_, part)| self.b.local("item", part)).collect();
        for case in cases {
            let Some(item) = case.item.clone() else { continue };
            self.go_on(case, |this| {
                let item = this.reread(&item, span);
                let known = !this.is_dry() && !item.ty().is_poison();
                match this.try_convert(item, ty, span) {
                    Some(item) => this.store_parts(&locals, item, span),
                    None if known => {
                        this.cx.fault(this.at(span), "an item has a type that its joined type does not hold");
                    }
                    None => {}
                }
            });
        }
        locals
    }

    /// Selects the code of the iteration at the generator's position; after it, the variables are the join over all
    /// iterations.
    fn choose_case(&mut self, cases: Vec<Case>, position: LocalId, span: Span) {
        let joined = state::join(&cases.iter().map(|case| &case.env).collect::<Vec<_>>(), self.typing());
        let mut rest: Option<Block> = None;
        for (iteration, case) in cases.into_iter().enumerate().rev() {
            let Case { mut block, env, .. } = case;
            self.b.open();
            block.extend(self.close_arm(env, &joined, span));
            rest = Some(match rest {
                None => block,
                Some(otherwise) => {
                    let cond = self.is_at(position, iteration as i64, span);
                    vec![IrStmt { kind: Ir::If { cond, then: block, otherwise }, span: self.at(span) }]
                }
            });
        }
        for stmt in rest.unwrap_or_default() {
            self.b.stmt(stmt.kind, stmt.span);
        }
        self.env = joined;
    }

    /// The value that a generator's variable is assigned: the generator unchanged if there is one consumer, else with a
    /// local for its position.
    pub(in crate::frontend) fn own_generator(&mut self, name: &str, value: Value, span: Span) -> Option<Value> {
        let site = site_of(&value)?.clone();
        let once = crate::syntax::is_read_once(&self.def.ast, name);
        let position = self.iterators.position(&site).unwrap_or_else(|| {
            let position = self.b.new_temp(Type::I64);
            self.b.function.locals[position].nonneg = true;
            self.iterators.add(site.clone(), position);
            position
        });
        if self.iterators.owner(&site, name).is_some_and(|owner| owner != name) {
            let diagnostic =
                Diagnostic::error(Code::BadAssignment, span, "a generator can be assigned to one variable only");
            self.report(diagnostic.help("use the first variable, or write the expression again"));
            return None;
        }
        if once {
            return Some(value);
        }
        let plain = match &value {
            Value::Object(ObjectKind::Generator(of), items) => of.is_plain() && !items.iter().any(is_generated),
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => false,
        };
        if !plain {
            let message = "the variable of this generator is read more than once or in a loop";
            let diagnostic = Diagnostic::error(Code::UnsupportedValue, span, message)
                .note("only a generator with a single `for`, which does not iterate over a generator, can be resumed")
                .help("make a tuple of its items, `tuple(…)`, or write the expression where they are used");
            self.report(diagnostic);
            return None;
        }
        let first = self.b.i64(0, span);
        self.b.assign(position, first, span);
        Some(Value::Object(ObjectKind::Iterator(site), vec![value]))
    }
}
