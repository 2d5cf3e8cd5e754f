//! Device functions of weft's own, in kernel Python: one file a subject.
//!
//! They are typed and lowered as a user's are. Most are called as device functions that are always inlined, by rows of
//! the intrinsic table, whose overloads say for which types (`builtins/own.rs`): what is wrong with a call is said of
//! the row, so that no message points into their text. What operators become (`operators.py`) is lowered within the body
//! of whoever uses it, and all that is built has the place of the user's expression.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, LazyLock},
};

use super::{env::Env, lowerer::FnLowerer, value::Value};
use crate::{
    ir::LocalId,
    request::{Captured, FunctionDef},
    source::{SourceFile, Span},
    syntax::{
        ast::{ModuleItem, StmtKind},
        bound_names, free_chains, parse_module,
    },
};

/// The files; a function is below those that it calls, in its file or in a later one.
const FILES: &[(&str, &str)] = &[
    ("operators.py", include_str!("operators.py")),
    ("elements.py", include_str!("elements.py")),
    ("numpy.py", include_str!("numpy.py")),
    ("reductions.py", include_str!("reductions.py")),
    ("math.py", include_str!("math.py")),
    ("cmath.py", include_str!("cmath.py")),
    ("half.py", include_str!("half.py")),
    ("times.py", include_str!("times.py")),
];

/// What the files import, and what they have beside Python (`builtins/elements.rs`).
const NAMES: &[(&str, &str)] = &[
    ("cmath", "cmath"),
    ("math", "math"),
    ("np", "numpy"),
    ("item", "prelude.item"),
    ("put", "prelude.put"),
    ("bfloat16", "weft.bfloat16"),
    ("bfloat16_bits", "weft.cuda.bf16.bfloat16_as_ushort"),
    ("bfloat16_of_bits", "weft.cuda.bf16.ushort_as_bfloat16"),
    ("float16_bits", "weft.cuda.fp16.__half_as_ushort"),
    ("float16_of_bits", "weft.cuda.fp16.__ushort_as_half"),
];

/// The functions by name, parsed when the first of them is used.
static FUNCTIONS: LazyLock<BTreeMap<String, Arc<FunctionDef>>> = LazyLock::new(|| {
    let mut functions: BTreeMap<String, Arc<FunctionDef>> = BTreeMap::new();
    for (file, text) in FILES {
        let source = Arc::new(SourceFile::new(*file, *text));
        for item in parse_module(&source, 0) {
            let ModuleItem::Function(ast) = item else { continue };
            let globals = free_chains(&ast).into_iter().filter_map(|chain| {
                let root = chain.split('.').next()?.to_owned();
                let known = NAMES.iter().find(|(name, _)| *name == root);
                let value = match (known, functions.get(&root)) {
                    (Some((_, path)), _) => Captured::Known((*path).to_owned()),
                    (None, Some(def)) => Captured::Function(Arc::clone(def)),
                    (None, None) => return None,
                };
                Some((root, value))
            });
            let def = FunctionDef {
                source: Arc::clone(&source),
                globals: globals.collect(),
                defaults: BTreeMap::new(),
                signatures: Vec::new(),
                inline: true,
                number: 0,
                ast,
            };
            functions.insert(def.ast.name.clone(), Arc::new(def));
        }
    }
    functions
});

/// A function by its name.
pub(super) fn function(name: &str) -> Option<Arc<FunctionDef>> {
    FUNCTIONS.get(name).cloned()
}

/// What is the user's function's own while one of the prelude is lowered in it.
struct Outer {
    def: Arc<FunctionDef>,
    env: Env,
    storage: BTreeMap<String, Vec<(super::ty::Ty, Vec<LocalId>)>>,
    bound: BTreeSet<String>,
    place: Option<Span>,
}

impl FnLowerer<'_> {
    /// What a function of the prelude gives for some values.
    pub(super) fn prelude(&mut self, name: &str, args: Vec<Value>, span: Span) -> Value {
        let Some(def) = FUNCTIONS.get(name) else {
            self.cx.fault(self.at(span), "the prelude lacks a function");
            return Value::Poison;
        };
        let params = def.ast.params.iter().map(|param| param.name.clone());
        let bound: BTreeSet<String> = bound_names(&def.ast.body).into_iter().chain(params).collect();
        let outer = Outer {
            def: std::mem::replace(&mut self.def, Arc::clone(def)),
            env: self.env.replace(BTreeMap::new()),
            storage: std::mem::take(&mut self.storage),
            bound: std::mem::replace(&mut self.bound, bound),
            place: self.b.set_place(Some(span)),
        };
        for (param, value) in def.ast.params.iter().zip(args) {
            self.assign_var(&param.name, value, span);
        }
        let mut result = Value::Poison;
        for stmt in &def.ast.body {
            if let StmtKind::Return(Some(value)) = &stmt.kind {
                result = self.expr(value);
            } else {
                self.stmts(std::slice::from_ref(stmt));
            }
        }
        self.def = outer.def;
        self.env = outer.env;
        self.storage = outer.storage;
        self.bound = outer.bound;
        self.b.set_place(outer.place);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax::ast::Stmt;

    #[test]
    fn what_is_lowered_in_place_ends_in_its_one_return() {
        let in_place: Vec<_> = FUNCTIONS.values().filter(|def| def.source.name == "operators.py").collect();
        assert_eq!(in_place.len(), 2);
        for def in in_place {
            let returns = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Return(Some(_)));
            let (last, before) = def.ast.body.split_last().expect("has a body");
            assert!(returns(last) && !before.iter().any(returns), "{}", def.ast.name);
        }
    }
}
