//! Builds function definitions for the compiler: functions with the values of their free names.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weft_compiler::{
    request::{Captured, FunctionDef, MAX_CALL_DEPTH, Unsupported},
    syntax::free_chains,
};

use super::{Program, Value};

/// Builds function definitions. They form a tree: a recursive call to a function under construction becomes a back
/// reference.
#[derive(Debug, Default)]
pub(crate) struct Captures {
    /// Finished definitions. A definition with a back reference is valid in every context, because the function that it
    /// refers to always encloses it.
    finished: BTreeMap<usize, Arc<FunctionDef>>,
    /// Functions under construction.
    open: Vec<usize>,
}

impl Program {
    /// A function with the values of its free names at the end of the file.
    pub(crate) fn function_def(&self, index: usize, captures: &mut Captures) -> Option<Arc<FunctionDef>> {
        if let Some(finished) = captures.finished.get(&index) {
            return Some(Arc::clone(finished));
        }
        let function = self.functions.get(index)?;
        captures.open.push(index);
        let globals = self.globals(function.module, &free_chains(&function.ast), captures);
        let with_defaults = function.defaults.iter();
        let defaults = with_defaults.map(|(name, value)| (name.clone(), self.capture(value, &[], captures))).collect();
        let backward = function.backward.as_ref().map(|value| self.capture(value, &[], captures));
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
            backward,
            number: index as u32,
        });
        captures.finished.insert(index, Arc::clone(&def));
        Some(def)
    }

    /// The functions of the project that a function names.
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

    /// The free names that the compiler does not resolve by itself. Builtins and undefined names are omitted.
    pub(super) fn globals(
        &self,
        module: usize,
        chains: &[String],
        captures: &mut Captures,
    ) -> BTreeMap<String, Captured> {
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

    /// Converts a value for the compiler. `attributes` are its dotted attributes that the function uses.
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

/// Gives a constant its type in a kernel. The evaluator uses longer integers.
fn typed(value: &Captured) -> Captured {
    if let Captured::Tuple(items) = value {
        return Captured::Tuple(items.iter().map(typed).collect());
    }
    if let Captured::Int(value) = value { Captured::of_int(*value) } else { value.clone() }
}

/// Merges the captured members of two attributes of the same module.
fn merge(known: &mut Captured, more: &Captured) {
    if let (Captured::Module(_, known), Captured::Module(_, more)) = (known, more) {
        for (name, value) in more {
            known.entry(name.clone()).and_modify(|known| merge(known, value)).or_insert_with(|| value.clone());
        }
    }
}
