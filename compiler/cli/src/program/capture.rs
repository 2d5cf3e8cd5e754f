//! Functions with the meaning of their free names, as the compiler takes them.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weft_compiler::{
    request::{Captured, FunctionDef, MAX_CALL_DEPTH, Unsupported},
    syntax::free_chains,
};

use super::{Program, Value};

/// Builds function definitions. They are a tree: a call back into a function that is being built is cut off.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    /// Finished definitions. One with a cut is as good anywhere: the cut function does lead back to it.
    finished: BTreeMap<usize, Arc<FunctionDef>>,
    /// Functions that are being built.
    open: Vec<usize>,
}

impl Program {
    /// A function with what its free names mean once the file has been carried out.
    pub(crate) fn function_def(&self, index: usize, captures: &mut Captures) -> Option<Arc<FunctionDef>> {
        if let Some(finished) = captures.finished.get(&index) {
            return Some(Arc::clone(finished));
        }
        let function = self.functions.get(index)?;
        captures.open.push(index);
        let globals = self.globals(function.module, &free_chains(&function.ast), captures);
        let with_defaults = function.defaults.iter();
        let defaults = with_defaults.map(|(name, value)| (name.clone(), self.capture(value, &[], captures))).collect();
        captures.open.pop();
        let def = Arc::new(FunctionDef {
            ast: function.ast.clone(),
            source: Arc::clone(&self.modules.get(function.module)?.source),
            globals,
            defaults,
            signatures: function.jit.as_ref().map(|jit| jit.signatures.clone()).unwrap_or_default(),
            inline: function.jit.as_ref().is_some_and(|jit| jit.options.inline),
            typing: function.jit.as_ref().and_then(|jit| jit.options.typing),
            gpu: function.jit.as_ref().and_then(|jit| jit.options.gpu.clone()),
            number: index as u32,
        });
        captures.finished.insert(index, Arc::clone(&def));
        Some(def)
    }

    /// The functions of the file's own that a function names.
    pub(super) fn callees(&self, index: usize) -> Vec<usize> {
        let Some(function) = self.functions.get(index) else { return Vec::new() };
        let chains = free_chains(&function.ast);
        let values = chains.iter().filter_map(|chain| {
            let mut parts = chain.split('.');
            let value = self.lookup(function.module, parts.next()?)?;
            Some(parts.fold(value, |value, part| self.member(value, part)))
        });
        let indices = values.filter_map(|value| {
            if let Value::Function(callee) = value
                && callee != index
            {
                Some(callee)
            } else {
                None
            }
        });
        indices.collect()
    }

    /// The names that the compiler does not know by itself: builtins and undefined names are left to it.
    fn globals(&self, module: usize, chains: &[String], captures: &mut Captures) -> BTreeMap<String, Captured> {
        let mut globals = BTreeMap::new();
        let root_of = |chain: &str| chain.split('.').next().unwrap_or_default().to_owned();
        for root in chains.iter().map(|chain| root_of(chain)).collect::<BTreeSet<_>>() {
            let of_root = chains.iter().filter(|chain| root_of(chain) == root);
            let attributes: Vec<&str> = of_root.filter_map(|chain| chain.get(root.len() + 1..)).collect();
            match self.lookup(module, &root) {
                Some(Value::Const(Captured::Known(path))) if path == format!("builtins.{root}") => {}
                Some(value) => {
                    let captured = self.capture(&value, &attributes, captures);
                    globals.insert(root, captured);
                }
                None => {}
            }
        }
        globals
    }

    /// A value as the compiler takes it. `attributes` are the dotted attributes of it that the function uses.
    fn capture(&self, value: &Value, attributes: &[&str], captures: &mut Captures) -> Captured {
        match value {
            Value::Const(value) => typed(value),
            Value::Module(index) => {
                let mut members = BTreeMap::new();
                for attribute in attributes {
                    let (name, rest) = attribute.split_once('.').unwrap_or((attribute, ""));
                    let below: Vec<&str> = if rest.is_empty() { Vec::new() } else { vec![rest] };
                    if let Some(value) = self.modules.get(*index).and_then(|module| module.names.get(name)) {
                        let captured = self.capture(value, &below, captures);
                        members.entry(name.to_owned()).and_modify(|known| merge(known, &captured)).or_insert(captured);
                    }
                }
                let name = self.modules.get(*index).map(|module| module.name.clone()).unwrap_or_default();
                Captured::Module(name, members)
            }
            Value::Function(index) => self.capture_function(*index, captures),
            Value::Opaque(what, _) => Captured::Unsupported(Unsupported::Other, what.clone()),
            Value::Unknown(why, module, span) => match self.modules.get(*module) {
                Some(module) => Captured::Unknown(Arc::clone(&module.source), *span, why.clone()),
                None => Captured::Unsupported(Unsupported::Other, why.clone()),
            },
        }
    }

    fn capture_function(&self, index: usize, captures: &mut Captures) -> Captured {
        if captures.open.contains(&index) {
            return Captured::Recursive(index as u32);
        }
        if captures.open.len() > MAX_CALL_DEPTH {
            return Captured::too_deep();
        }
        if self.functions.get(index).is_none_or(|function| function.jit.is_none()) {
            return Captured::Unsupported(Unsupported::PlainFunction, "plain Python function".into());
        }
        match self.function_def(index, captures) {
            Some(def) => Captured::Function(def),
            None => Captured::Unsupported(Unsupported::PlainFunction, "plain Python function".into()),
        }
    }
}

/// A constant of the type that it has in a kernel: the file computes with longer integers.
fn typed(value: &Captured) -> Captured {
    if let Captured::Tuple(items) = value {
        return Captured::Tuple(items.iter().map(typed).collect());
    }
    if let Captured::Int(value) = value { Captured::of_int(*value) } else { value.clone() }
}

/// Adds the members of a module that another attribute of the same module brought.
fn merge(known: &mut Captured, more: &Captured) {
    if let (Captured::Module(_, known), Captured::Module(_, more)) = (known, more) {
        for (name, value) in more {
            known.entry(name.clone()).and_modify(|known| merge(known, value)).or_insert_with(|| value.clone());
        }
    }
}
