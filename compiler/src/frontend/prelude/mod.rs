//! The device functions of weft's own library, in kernel Python: one file per subject. A function is parsed on first
//! use, together with the functions that it calls.
//!
//! They are typed and lowered as a user's are. Most are called as device functions that are always inlined, by rows of
//! the intrinsic table, whose overloads give the types (`builtins/prelude_rows.rs`). Errors are reported for the row,
//! so that no message points into the prelude's source. The functions for operators (`operators.py`) are lowered within
//! the body of the caller, and all of their code has the span of the user's expression.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use super::{
    lowerer::FnLowerer,
    state::{Env, Stored},
    value::Value,
};
use crate::{
    request::{Captured, FunctionDef},
    source::{Origin, SourceFile, Span},
    syntax::{
        ast::{self, ExprKind, Param, StmtKind},
        bound_names, free_chains, parse_function,
    },
};

/// A function of the prelude, parsed on first use.
struct Definition {
    name: &'static str,
    file: &'static str,
    /// The line of `file` at which its source starts.
    line: u32,
    text: &'static str,
    def: OnceLock<Option<Arc<FunctionDef>>>,
}

impl Definition {
    const fn new(name: &'static str, file: &'static str, line: u32, text: &'static str) -> Self {
        Self { name, file, line, text, def: OnceLock::new() }
    }
}

// `FUNCTIONS`, sorted by name; `build.rs` collects them from the files.
include!(concat!(env!("OUT_DIR"), "/prelude.rs"));

/// The modules that the files import, and the primitives that Python lacks (`builtins/elements.rs`).
const NAMES: &[(&str, &str)] = &[
    ("cmath", "cmath"),
    ("cuda", "weft.cuda"),
    ("math", "math"),
    ("np", "numpy"),
    ("item", "prelude.item"),
    ("put", "prelude.put"),
    ("row", "prelude.row"),
    ("broadcast", "prelude.broadcast"),
    ("buffer", "prelude.buffer"),
    ("cell", "prelude.cell"),
    ("is_serial", "prelude.is_serial"),
    ("kept", "prelude.kept"),
    ("like", "prelude.like"),
    ("most_threads", "prelude.most_threads"),
    ("prefix", "prelude.prefix"),
    ("put_cell", "prelude.put_cell"),
    ("put_kept", "prelude.put_kept"),
    ("put_prefix", "prelude.put_prefix"),
    ("put_rake", "prelude.put_rake"),
    ("put_slot", "prelude.put_slot"),
    ("put_staged", "prelude.put_staged"),
    ("rake", "prelude.rake"),
    ("slot", "prelude.slot"),
    ("staged", "prelude.staged"),
    ("warp_buffer", "prelude.warp_buffer"),
    ("is_aligned", "prelude.is_aligned"),
    ("vector", "prelude.vector"),
    ("vectors", "prelude.vectors"),
    ("zero", "prelude.zero"),
    ("byte_perm", "prelude.math.byte_perm"),
    ("funnel_left", "prelude.math.funnel_left"),
    ("funnel_right", "prelude.math.funnel_right"),
    ("leading_zeros", "prelude.math.leading_zeros"),
    ("mul_high", "prelude.math.mul_high"),
    ("popcount", "prelude.math.popcount"),
    ("trailing_zeros", "prelude.math.trailing_zeros"),
    ("add_rn", "prelude.math.add.rn"),
    ("add_rz", "prelude.math.add.rz"),
    ("add_rd", "prelude.math.add.rd"),
    ("add_ru", "prelude.math.add.ru"),
    ("div_rn", "prelude.math.div.rn"),
    ("div_rz", "prelude.math.div.rz"),
    ("div_rd", "prelude.math.div.rd"),
    ("div_ru", "prelude.math.div.ru"),
    ("fast_cos", "prelude.math.fast.cos"),
    ("fast_div", "prelude.math.fast.div"),
    ("fast_exp2", "prelude.math.fast.exp2"),
    ("fast_log2", "prelude.math.fast.log2"),
    ("fast_sin", "prelude.math.fast.sin"),
    ("bfloat16", "weft.bfloat16"),
    ("bfloat16_bits", "weft.cuda.bf16.bfloat16_as_ushort"),
    ("bfloat16_of_bits", "weft.cuda.bf16.ushort_as_bfloat16"),
    ("to_e4m3", "prelude.math.to_e4m3"),
    ("to_e5m2", "prelude.math.to_e5m2"),
    ("single_rz", "weft.cuda.libdevice.double2float_rz"),
    ("float16_bits", "weft.cuda.fp16.__half_as_ushort"),
    ("float16_of_bits", "weft.cuda.fp16.__ushort_as_half"),
];

/// The meaning of a free name of the prelude; `None` for a Python builtin.
enum Meaning {
    Known(&'static str),
    Own(&'static Definition),
    Builtin,
}

/// The meaning of a free name. If this returns `None`, no other source defines the name either.
fn meaning(name: &str) -> Option<Meaning> {
    if let Some((_, path)) = NAMES.iter().find(|(known, _)| *known == name) {
        return Some(Meaning::Known(path));
    }
    if crate::intrinsics::is_builtin(name) {
        return Some(Meaning::Builtin);
    }
    definition(name).map(Meaning::Own)
}

fn definition(name: &str) -> Option<&'static Definition> {
    let index = FUNCTIONS.binary_search_by(|definition| definition.name.cmp(name)).ok()?;
    FUNCTIONS.get(index)
}

/// The syntax tree of a definition.
fn parsed(definition: &Definition) -> Option<(ast::Function, Arc<SourceFile>)> {
    let name = format!("weft/prelude/{}", definition.file);
    let source = SourceFile::new(name, definition.text);
    let source = Arc::new(SourceFile { origin: Origin::Prelude, first_line: definition.line, ..source });
    Some((parse_function(&source, 0, None).ok()?, source))
}

/// The names that a function reads and does not bind.
fn free_names(ast: &ast::Function) -> BTreeSet<String> {
    free_chains(ast).iter().filter_map(|chain| chain.split('.').next()).map(str::to_owned).collect()
}

/// A function with its callees. The prelude has no recursion, which a test checks.
fn defined(definition: &'static Definition) -> Option<Arc<FunctionDef>> {
    let make = || {
        let (ast, source) = parsed(definition)?;
        let mut globals = BTreeMap::new();
        for name in free_names(&ast) {
            let value = match meaning(&name)? {
                Meaning::Known(path) => Captured::Known(path.to_owned()),
                Meaning::Own(callee) => Captured::Function(defined(callee)?),
                Meaning::Builtin => continue,
            };
            globals.insert(name, value);
        }
        Some(Arc::new(FunctionDef {
            ast,
            source,
            globals,
            defaults: BTreeMap::new(),
            signatures: Vec::new(),
            inline: true,
            typing: None,
            gpu: None,
            backward: None,
            number: 0,
        }))
    };
    definition.def.get_or_init(make).clone()
}

/// The annotation of parameters of the prelude that keep constant values of the arguments.
const KNOWN: &str = "known";

/// Whether a parameter has this annotation.
pub(super) fn is_known(def: &FunctionDef, param: &Param) -> bool {
    let annotation = param.annotation.as_ref().map(|annotation| &annotation.kind);
    is_own(def) && matches!(annotation, Some(ExprKind::Name(name)) if name == KNOWN)
}

/// Whether a function belongs to the prelude.
pub(super) fn is_own(def: &FunctionDef) -> bool {
    def.source.origin == Origin::Prelude
}

/// A function by its name; `None` also if it calls one that does not exist.
pub(super) fn function(name: &str) -> Option<Arc<FunctionDef>> {
    definition(name).and_then(defined)
}

/// The state of the user's function, saved while a function of the prelude is lowered in it.
struct Outer {
    def: Arc<FunctionDef>,
    env: Env,
    storage: BTreeMap<String, Stored>,
    bound: BTreeSet<String>,
    span: Option<Span>,
}

impl FnLowerer<'_> {
    /// The result of a call of a prelude function.
    pub(super) fn prelude(&mut self, name: &str, args: Vec<Value>, span: Span) -> Value {
        let Some(def) = function(name) else {
            self.cx.fault(self.at(span), "the prelude lacks a function");
            return Value::Poison;
        };
        let params = def.ast.params.iter().map(|param| param.name.clone());
        let bound: BTreeSet<String> = bound_names(&def.ast.body).into_iter().chain(params).collect();
        let outer = Outer {
            def: std::mem::replace(&mut self.def, Arc::clone(&def)),
            env: self.env.replace(BTreeMap::new()),
            storage: std::mem::take(&mut self.variables.storage),
            bound: std::mem::replace(&mut self.names.bound, bound),
            span: self.b.set_span(Some(span)),
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
        self.variables.storage = outer.storage;
        self.names.bound = outer.bound;
        self.b.set_span(outer.span);
        result
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        intrinsics::{self, CoopParam, Lowering},
        syntax::ast::Stmt,
    };

    #[test]
    fn all_functions_are_whole_and_lead_to_no_circle() {
        let mut callees = BTreeMap::new();
        for definition in &FUNCTIONS {
            let (ast, _) = parsed(definition)
                .unwrap_or_else(|| panic!("{} of {} cannot be parsed", definition.name, definition.file));
            assert_eq!(ast.name, definition.name);
            let mut calls = Vec::new();
            for name in free_names(&ast) {
                match meaning(&name) {
                    Some(Meaning::Own(callee)) => calls.push(callee.name),
                    Some(Meaning::Known(_) | Meaning::Builtin) => {}
                    None => panic!("{} of {} reads `{name}`, which is nowhere", definition.name, definition.file),
                }
            }
            callees.insert(definition.name, calls);
        }
        assert!(callees.len() > 300);
        // Each pass removes the functions all of whose callees have been removed.
        while !callees.is_empty() {
            let before = callees.len();
            let left: BTreeSet<&str> = callees.keys().copied().collect();
            callees.retain(|_, calls| calls.iter().any(|callee| left.contains(callee)));
            assert!(callees.len() < before, "these call each other: {left:?}");
        }
    }

    #[test]
    fn rows_of_coop_say_what_each_parameter_is() {
        let mut n_rows = 0;
        for row in intrinsics::rows() {
            let Lowering::Coop(of) = row.lowering else { continue };
            let def = function(of.function).expect("the row's function is in the prelude");
            assert_eq!(def.ast.params.len(), of.params.len(), "{}", row.path);
            for (place, (param, ast)) in of.params.iter().zip(&def.ast.params).enumerate() {
                // An argument that is checked to be a compile-time constant has a default, which makes the parameter
                // constant.
                let checked = !matches!(param, CoopParam::Items | CoopParam::Plain);
                assert!(!checked || ast.default.is_some(), "{} of {}", ast.name, row.path);
                let is_last = place + 1 == of.params.len();
                assert!(*param != CoopParam::Count || is_last && is_known(&def, ast), "{} of {}", ast.name, row.path);
            }
            n_rows += 1;
        }
        assert!(n_rows > 30);
    }

    #[test]
    fn what_is_lowered_in_place_ends_in_its_one_return() {
        let in_place = FUNCTIONS.iter().filter(|definition| definition.file == "operators.py");
        let in_place: Vec<_> = in_place.map(|definition| defined(definition).expect("is whole")).collect();
        assert_eq!(in_place.len(), 2);
        for def in in_place {
            let returns = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Return(Some(_)));
            let (last, before) = def.ast.body.split_last().expect("has a body");
            assert!(returns(last) && !before.iter().any(returns), "{}", def.ast.name);
        }
    }
}
