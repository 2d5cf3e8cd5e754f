//! `element for target in iter if test`: a tuple of what its turns give. How many there are must be known.

use std::collections::BTreeMap;

use weft_artifact::MAX_LEAVES;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        iterate::Sequence,
        lowerer::{FnLowerer, Truth},
        value::{Atom, Value},
    },
    source::Span,
    syntax::{
        ast::{ComprehensionLoop, Expr},
        target_names,
    },
};

impl FnLowerer<'_> {
    pub(super) fn comprehension(&mut self, element: &Expr, loops: &[ComprehensionLoop], span: Span) -> Value {
        let mut items = Vec::new();
        match self.turns(element, loops, &mut items) {
            Some(()) => self.tuple(items, span),
            None => Value::Poison,
        }
    }

    fn turns(&mut self, element: &Expr, loops: &[ComprehensionLoop], out: &mut Vec<Value>) -> Option<()> {
        let Some((each, inner)) = loops.split_first() else {
            let value = self.expr_or_none(element);
            out.push(self.settle(value, element.span));
            return Some(());
        };
        let over = self.expr(&each.iter);
        let over = super::spelled(over);
        if !self.is_iterable(&over, each.iter.span) {
            return None;
        }
        let over = self.settle(over, each.iter.span);
        Sequence::of(&over)?;
        let Some(Atom::Int(length)) = self.length(&over, each.iter.span) else {
            let message =
                format!("a comprehension over {}, whose length is not known when the kernel is compiled", over.ty());
            let diagnostic = Diagnostic::error(Code::NotConstant, each.iter.span, message)
                .note("its values are a tuple")
                .help("write a `for` loop, or go over a tuple, a `range` of constants or a local array");
            self.report(diagnostic);
            return None;
        };
        if length > MAX_LEAVES as i64 {
            let message = format!("a comprehension of {length} turns: a tuple has at most {MAX_LEAVES} values");
            self.error(Code::UnsupportedValue, each.iter.span, message);
            return None;
        }
        // Its variables are its own.
        let names = target_names(&each.target);
        let outer_storage: BTreeMap<_, _> =
            names.iter().filter_map(|name| Some((name.clone(), self.variables.storage.remove(name)?))).collect();
        let outer_vars: Vec<_> =
            names.iter().map(|name| (name.clone(), self.env.as_mut().and_then(|env| env.remove(name)))).collect();
        let new: Vec<String> = names.iter().filter(|name| self.names.bound.insert((*name).clone())).cloned().collect();
        let mut done = Some(());
        for at in 0..length {
            let item = self.item_at(&over, Atom::Int(at), each.iter.span);
            let item = self.settle(item, each.iter.span);
            self.assign_to(&each.target, item, each.target.span);
            match self.tests(&each.tests) {
                Some(true) => done = self.turns(element, inner, out),
                Some(false) => {}
                None => done = None,
            }
            if done.is_none() {
                break;
            }
        }
        for name in &names {
            self.variables.storage.remove(name);
        }
        self.variables.storage.extend(outer_storage);
        if let Some(env) = &mut self.env {
            for (name, var) in outer_vars {
                env.remove(&name);
                env.extend(var.map(|var| (name, var)));
            }
        }
        for name in new {
            self.names.bound.remove(&name);
        }
        done
    }

    /// Whether a turn's conditions hold; they must be known.
    fn tests(&mut self, tests: &[Expr]) -> Option<bool> {
        for test in tests {
            let value = self.expr_or_none(test);
            match self.truth(value, test.span) {
                Truth::Known(true) => {}
                Truth::Known(false) => return Some(false),
                Truth::Poison => return None,
                Truth::Expr(_) => {
                    let message = "the condition of a comprehension must be known when the kernel is compiled";
                    let diagnostic = Diagnostic::error(Code::NotConstant, test.span, message);
                    self.report(diagnostic.help("write a `for` loop with an `if` in it"));
                    return None;
                }
            }
        }
        Some(true)
    }
}
