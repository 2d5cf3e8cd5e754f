//! Device functions of weft's own, in kernel Python (`prelude.py`).
//!
//! They are typed and lowered as a user's are, but within the body of whoever uses them: all that is built has the place
//! of the user's expression, so that nothing points into their text.

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
        bound_names, parse_module,
    },
};

/// The functions by name, parsed when the first of them is used.
static FUNCTIONS: LazyLock<BTreeMap<String, Arc<FunctionDef>>> = LazyLock::new(|| {
    let source = Arc::new(SourceFile::new("prelude.py", include_str!("prelude.py")));
    let mut functions = BTreeMap::new();
    for item in parse_module(&source, 0) {
        if let ModuleItem::Function(ast) = item {
            let def = FunctionDef {
                source: Arc::clone(&source),
                globals: BTreeMap::from([("math".to_owned(), Captured::Known("math".to_owned()))]),
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
    fn every_function_is_there_and_ends_in_its_one_return() {
        let names: Vec<&str> = FUNCTIONS.keys().map(String::as_str).collect();
        assert_eq!(names, ["complex_divide", "complex_power"]);
        for def in FUNCTIONS.values() {
            let returns = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Return(Some(_)));
            let (last, before) = def.ast.body.split_last().expect("has a body");
            assert!(returns(last) && !before.iter().any(returns), "{}", def.ast.name);
        }
    }
}
