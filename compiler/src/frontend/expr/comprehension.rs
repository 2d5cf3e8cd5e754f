//! `element for target in iter if test`: a generator, whose items are computed when they are consumed.
//!
//! The first iterable is evaluated where the expression occurs, all other parts in iterations. The trip count and the
//! conditions must be compile-time constants, and each consumed item has its own copy of the element's code. A
//! generator with one consumer is a value without state between passes. One in a variable with several consumers has a
//! local with its position, as iterators have (`stmt/generated.rs`).

use std::{collections::BTreeSet, sync::Arc};

use weft_artifact::MAX_LEAVES;

use super::super::{
    iterate::Sequence,
    lowerer::{FnLowerer, Truth},
    object::{Generator, ObjectKind, Site, is_generated},
    ty::Ty,
    value::{ArrayValue, Atom, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{ExprId, LocalId},
    source::Span,
    syntax::{
        ast::{ComprehensionLoop, Expr},
        target_names,
    },
};

/// A source of items, which are consumed in order.
pub(in crate::frontend) enum ItemSource {
    /// A value with a length, and the number of consumed items.
    Items(Value, i64, i64),
    /// A generator, and its active loops.
    Generator(Arc<Generator>, Vec<Frame>),
    /// Items with their numbers: the first number, and the number of consumed items.
    Enumerate(Box<Self>, Value, i64),
    /// Several sources in parallel.
    Zip(Vec<Self>),
}

/// A loop of a generator.
pub(in crate::frontend) struct Frame {
    over: ItemSource,
    item: Value,
}

/// The result of one iteration of a generator's loop.
enum GeneratorStep {
    Skipped,
    Inner(ItemSource),
    Item(Value),
}

impl FnLowerer<'_> {
    /// The value of a generator expression.
    pub(super) fn comprehension(&mut self, element: &Expr, loops: &[ComprehensionLoop], span: Span) -> Value {
        let Some(first) = loops.first() else { return Value::Poison };
        let over = self.expr(&first.iter);
        let over = super::by_letters(over);
        if !is_generated(&over) && !self.is_iterable(&over, first.iter.span) {
            return Value::Poison;
        }
        let over = self.settle(over, first.iter.span);
        self.check_held(&over, span, first.iter.span);
        let site = Site { start: span.start, items: self.loops.unrolled.clone() };
        let generator = Generator { element: element.clone(), loops: loops.to_vec(), site, depth: self.scopes.len() };
        Value::Object(ObjectKind::Generator(Arc::new(generator)), vec![over])
    }

    /// A generator's remaining items as a tuple. A constant string becomes its characters.
    pub(in crate::frontend) fn gathered(&mut self, value: Value, span: Span) -> Value {
        if let Value::Object(ObjectKind::Iterator(_), items) = &value
            && items.iter().any(is_generated)
        {
            let message = "the number of items left in this generator is not a compile-time constant";
            let diagnostic = Diagnostic::error(Code::NotConstant, span, message)
                .note("its variable is read more than once or in a loop")
                .help("write the expression where its items are used, or use `for`, `next`, `in`, `any` or `all`");
            return self.report(diagnostic);
        }
        if !is_generated(&value) {
            return super::by_letters(value);
        }
        let Some(mut source) = self.source(value, span) else { return Value::Poison };
        let mut items = Vec::new();
        loop {
            match self.pull(&mut source, span) {
                None => return Value::Poison,
                Some(None) => return self.tuple(items, span),
                Some(Some(item)) if items.len() < MAX_LEAVES => items.push(item),
                Some(Some(_)) => return self.too_many_iterations(span),
            }
        }
    }

    /// Reports a generator with more iterations than the maximum number of values of a tuple.
    pub(in crate::frontend) fn too_many_iterations(&mut self, span: Span) -> Value {
        let message = format!("a generator of more than {MAX_LEAVES} iterations");
        let diagnostic = Diagnostic::error(Code::UnsupportedValue, span, message);
        self.report(diagnostic.note("it is unrolled at compile time").help("write a `for` loop"))
    }

    /// An item source at its first item.
    pub(in crate::frontend) fn source(&mut self, value: Value, span: Span) -> Option<ItemSource> {
        match value {
            Value::Object(ObjectKind::Generator(of), items) => {
                let over = self.source(items.into_iter().next()?, span)?;
                Some(ItemSource::Generator(of, vec![Frame { over, item: Value::Poison }]))
            }
            Value::Object(ObjectKind::Enumerate, items) if items.iter().any(is_generated) => {
                let [over, first] = <[Value; 2]>::try_from(items).ok()?;
                Some(ItemSource::Enumerate(Box::new(self.source(over, span)?), first, 0))
            }
            Value::Object(ObjectKind::Zip, items) if items.iter().any(is_generated) => {
                for item in items.iter().filter(|item| !is_generated(item)) {
                    let length = self.length(item, span)?;
                    if self.constant_extent(length).is_none() {
                        let message = format!(
                            "a `zip` of a generator and {}, whose length is not a compile-time constant",
                            item.ty()
                        );
                        let diagnostic = Diagnostic::error(Code::NotConstant, span, message);
                        self.report(diagnostic.help("make a tuple of the generator's items: `zip(tuple(…), a)`"));
                        return None;
                    }
                }
                let sources = items.into_iter().map(|item| self.source(item, span)).collect::<Option<_>>()?;
                Some(ItemSource::Zip(sources))
            }
            other @ (Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison) => {
                let over = super::by_letters(other);
                if !self.is_iterable(&over, span) {
                    return None;
                }
                let over = self.settle(over, span);
                Sequence::of(&over)?;
                let length = self.length(&over, span)?;
                let Some(length) = self.constant_extent(length) else {
                    let what = over.ty();
                    let message = format!("a generator over {what}, whose length is not a compile-time constant");
                    let diagnostic = Diagnostic::error(Code::NotConstant, span, message)
                        .note("the generator is unrolled at compile time")
                        .help("write a `for` loop, or iterate over a tuple, a `range` of constants or a local array");
                    self.report(diagnostic);
                    return None;
                };
                Some(ItemSource::Items(over, length, 0))
            }
        }
    }

    /// Computes the next item, materialized: `Some(None)` after the last one, `None` after an error.
    pub(in crate::frontend) fn pull(&mut self, source: &mut ItemSource, span: Span) -> Option<Option<Value>> {
        match source {
            ItemSource::Items(_, length, taken) if *taken >= *length => Some(None),
            ItemSource::Items(over, _, taken) => {
                let item = self.item_at(over, Atom::Int(*taken), span);
                *taken += 1;
                Some(Some(self.settle(item, span)))
            }
            ItemSource::Enumerate(over, first, taken) => {
                let Some(item) = self.pull(over, span)? else { return Some(None) };
                let first = self.reread(first, span);
                let number = self.binary(crate::syntax::ast::BinOp::Add, first, Value::Int((*taken).into()), span);
                *taken += 1;
                let number = self.settle(number, span);
                Some(Some(Value::tuple(vec![number, item])))
            }
            ItemSource::Zip(sources) => {
                let mut items = Vec::new();
                for source in sources {
                    let Some(item) = self.pull(source, span)? else { return Some(None) };
                    items.push(item);
                }
                Some(Some(Value::tuple(items)))
            }
            ItemSource::Generator(of, frames) => {
                let of = Arc::clone(of);
                self.at_depth(of.depth, |this| this.pull_iteration(&of, frames))
            }
        }
    }

    /// The next item of a generator, evaluated in the scope of its definition.
    fn pull_iteration(&mut self, of: &Generator, frames: &mut Vec<Frame>) -> Option<Option<Value>> {
        loop {
            let Some(depth) = frames.len().checked_sub(1) else { return Some(None) };
            let Some(each) = of.loops.get(depth) else { return Some(None) };
            let at = each.iter.span;
            // The first iterable is not in the scope of the generator's variables, all others are.
            let item = if depth == 0 {
                self.pull(&mut frames.first_mut()?.over, at)?
            } else {
                let (outer, inner) = frames.split_at_mut(depth);
                let inner = inner.first_mut()?;
                self.in_scope(of, outer, |this| this.pull(&mut inner.over, at))?
            };
            let Some(item) = item else {
                frames.pop();
                continue;
            };
            let inner = of.loops.get(depth + 1);
            // Iterations of an inner loop read it, and their code may be in another block.
            let item = if inner.is_some() { self.kept(item, at) } else { item };
            frames.last_mut()?.item = item;
            let iteration = self.in_scope(of, frames, |this| {
                if !this.tests(&each.tests)? {
                    return Some(GeneratorStep::Skipped);
                }
                let Some(inner) = inner else {
                    let value = this.expr_or_none(&of.element);
                    return Some(GeneratorStep::Item(this.settle(value, of.element.span)));
                };
                let over = this.expr(&inner.iter);
                let over = if is_generated(&over) { over } else { this.kept(over, inner.iter.span) };
                Some(GeneratorStep::Inner(this.source(over, inner.iter.span)?))
            })?;
            match iteration {
                GeneratorStep::Skipped => {}
                GeneratorStep::Inner(over) => frames.push(Frame { over, item: Value::Poison }),
                GeneratorStep::Item(value) => return Some(Some(value)),
            }
        }
    }

    /// Lowers code in the scope of a generator, with the variables of its active loops bound to their items.
    fn in_scope<R>(&mut self, of: &Generator, frames: &[Frame], inner: impl FnOnce(&mut Self) -> R) -> R {
        let names: BTreeSet<String> = of.loops.iter().flat_map(|each| target_names(&each.target)).collect();
        self.enter_scope(&names);
        for (frame, each) in frames.iter().zip(&of.loops) {
            let item = self.reread(&frame.item, each.iter.span);
            self.assign_to(&each.target, item, each.target.span);
        }
        let result = inner(self);
        self.leave_scope();
        result
    }

    /// Whether an iteration's conditions hold; they must be compile-time constants.
    fn tests(&mut self, tests: &[Expr]) -> Option<bool> {
        for test in tests {
            let value = self.expr_or_none(test);
            match self.truth(value, test.span) {
                Truth::Known(true) => {}
                Truth::Known(false) => return Some(false),
                Truth::Poison => return None,
                Truth::Expr(_) => {
                    let message = "the condition of a generator must be a compile-time constant";
                    let diagnostic = Diagnostic::error(Code::NotConstant, test.span, message);
                    self.report(diagnostic.help("write a `for` loop that contains an `if`"));
                    return None;
                }
            }
        }
        Some(true)
    }

    /// Stores a value in locals that can be read in blocks that its assignment does not dominate.
    fn kept(&mut self, value: Value, span: Span) -> Value {
        let mut keep = |expr: ExprId| {
            let ty = self.b.ty(expr);
            let local = self.b.local("kept", ty);
            self.b.assign(local, expr, span);
            local
        };
        match value {
            Value::Scalar(expr, scalar) => {
                let local = keep(expr);
                Value::Scalar(self.b.read(local, span), scalar)
            }
            Value::Complex(real, imag, complex) => {
                let (real, imag) = (keep(real), keep(imag));
                Value::Complex(self.b.read(real, span), self.b.read(imag, span), complex)
            }
            Value::Object(kind, items) => {
                Value::Object(kind, items.into_iter().map(|item| self.kept(item, span)).collect())
            }
            Value::Array(ArrayValue { ty, data, shape, strides }) => {
                let mut each = |atom: Atom| match self.fixed(atom) {
                    Atom::Local(_) => {
                        let expr = self.use_atom(atom, span);
                        let ty = self.b.ty(expr);
                        let local = self.b.local("kept", ty);
                        self.b.assign(local, expr, span);
                        Atom::Local(local)
                    }
                    known @ Atom::Int(_) => known,
                };
                let data = each(data);
                let shape = shape.into_iter().map(&mut each).collect();
                let strides = strides.into_iter().map(&mut each).collect();
                Value::Array(ArrayValue { ty, data, shape, strides })
            }
            other @ (Value::Int(_) | Value::Bool(_) | Value::Static(_) | Value::Poison) => other,
        }
    }

    /// The generator of a value, or of a variable's value, and its position if that is a run-time value.
    pub(in crate::frontend) fn generated(&self, value: &Value) -> Option<(Value, Option<LocalId>)> {
        if let Value::Object(ObjectKind::Iterator(site), items) = value {
            let inner = items.first().filter(|inner| is_generated(inner))?;
            return Some((inner.clone(), Some(self.iterators.position(site)?)));
        }
        is_generated(value).then(|| (value.clone(), None))
    }

    /// The common type of the items of several iterations; `None` if there is none.
    pub(in crate::frontend) fn joined_type(&self, values: &[Value], span: Span) -> Option<Ty> {
        let typing = self.typing();
        let mut types = values.iter().map(|value| self.ty_of(value));
        let first = types.next()?;
        let joined = types.fold(first, |a, b| super::super::promote::join(&a, span, &b, span, typing));
        (!matches!(joined, Ty::Conflict(_))).then_some(joined)
    }
}
