//! Device functions of weft's own, in kernel Python: one file a subject.
//!
//! They are typed and lowered as a user's are. Most are called as device functions that are always inlined, by rows of
//! the intrinsic table, whose overloads say for which types (`builtins/own.rs`): what is wrong with a call is said of
//! the row, so that no message points into their text. What operators become (`operators.py`) is lowered within the body
//! of whoever uses it, and all that is built has the place of the user's expression.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, OnceLock},
};

use super::{env::Env, lowerer::FnLowerer, value::Value};
use crate::{
    ir::LocalId,
    request::{Captured, FunctionDef},
    source::{Origin, SourceFile, Span},
    syntax::{
        ast::{ExprKind, ModuleItem, Param, StmtKind},
        bound_names, free_chains, parse_module,
    },
};

/// The functions of a file by name, parsed when one of them, or of a later file, is first looked for.
struct File {
    name: &'static str,
    text: &'static str,
    functions: OnceLock<BTreeMap<String, Arc<FunctionDef>>>,
}

impl File {
    const fn new(name: &'static str, text: &'static str) -> Self {
        Self { name, text, functions: OnceLock::new() }
    }
}

/// The files; a function is below those that it calls, in its file or in a later one.
static FILES: [File; 21] = [
    File::new("operators.py", include_str!("operators.py")),
    File::new("elements.py", include_str!("elements.py")),
    File::new("numpy.py", include_str!("numpy.py")),
    File::new("reductions.py", include_str!("reductions.py")),
    File::new("math.py", include_str!("math.py")),
    File::new("cmath.py", include_str!("cmath.py")),
    File::new("half.py", include_str!("half.py")),
    File::new("times.py", include_str!("times.py")),
    File::new("matrix.py", include_str!("matrix.py")),
    File::new("texts.py", include_str!("texts.py")),
    File::new("random.py", include_str!("random.py")),
    File::new("print.py", include_str!("print.py")),
    File::new("warps.py", include_str!("warps.py")),
    File::new("groups.py", include_str!("groups.py")),
    File::new("coop.py", include_str!("coop.py")),
    File::new("coop_warp.py", include_str!("coop_warp.py")),
    File::new("coop_sort.py", include_str!("coop_sort.py")),
    File::new("libdevice.py", include_str!("libdevice.py")),
    File::new("special.py", include_str!("special.py")),
    File::new("coop_memory.py", include_str!("coop_memory.py")),
    File::new("groups_collective.py", include_str!("groups_collective.py")),
];

/// What the files import, and what they have beside Python (`builtins/elements.rs`).
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
    ("kept", "prelude.kept"),
    ("like", "prelude.like"),
    ("most_threads", "prelude.most_threads"),
    ("put_cell", "prelude.put_cell"),
    ("put_kept", "prelude.put_kept"),
    ("put_rake", "prelude.put_rake"),
    ("put_slot", "prelude.put_slot"),
    ("rake", "prelude.rake"),
    ("slot", "prelude.slot"),
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
    ("float16_bits", "weft.cuda.fp16.__half_as_ushort"),
    ("float16_of_bits", "weft.cuda.fp16.__ushort_as_half"),
];

/// The functions of the file with a number.
fn functions(number: usize) -> Option<&'static BTreeMap<String, Arc<FunctionDef>>> {
    let file = FILES.get(number)?;
    Some(file.functions.get_or_init(|| {
        let name = format!("weft/prelude/{}", file.name);
        let source = Arc::new(SourceFile { origin: Origin::Prelude, ..SourceFile::new(name, file.text) });
        let mut functions: BTreeMap<String, Arc<FunctionDef>> = BTreeMap::new();
        for item in parse_module(&source, 0) {
            let ModuleItem::Function(ast) = item else { continue };
            let globals = free_chains(&ast).into_iter().filter_map(|chain| {
                let root = chain.split('.').next()?.to_owned();
                let known = NAMES.iter().find(|(name, _)| *name == root);
                let own = || functions.get(&root).cloned().or_else(|| in_files(&root, number));
                let value = match known {
                    Some((_, path)) => Captured::Known((*path).to_owned()),
                    // A builtin is no name of the prelude's.
                    None if crate::intrinsics::is_builtin(&root) => return None,
                    None => Captured::Function(own()?),
                };
                Some((root, value))
            });
            let def = FunctionDef {
                source: Arc::clone(&source),
                globals: globals.collect(),
                defaults: BTreeMap::new(),
                signatures: Vec::new(),
                inline: true,
                gpu: None,
                number: 0,
                ast,
            };
            functions.insert(def.ast.name.clone(), Arc::new(def));
        }
        functions
    }))
}

/// The function with a name, if it is in one of the first files.
fn in_files(name: &str, count: usize) -> Option<Arc<FunctionDef>> {
    (0..count).find_map(|number| functions(number)?.get(name).cloned())
}

/// The annotation of parameters of the prelude's whose values its functions know where a caller does.
const KNOWN: &str = "known";

/// Whether a parameter is one of those.
pub(super) fn is_known(def: &FunctionDef, param: &Param) -> bool {
    let annotation = param.annotation.as_ref().map(|annotation| &annotation.kind);
    is_own(def) && matches!(annotation, Some(ExprKind::Name(name)) if name == KNOWN)
}

/// Whether a function is one of the prelude's.
pub(super) fn is_own(def: &FunctionDef) -> bool {
    def.source.origin == Origin::Prelude
}

/// A function by its name.
pub(super) fn function(name: &str) -> Option<Arc<FunctionDef>> {
    in_files(name, FILES.len())
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
        let Some(def) = function(name) else {
            self.cx.fault(self.at(span), "the prelude lacks a function");
            return Value::Poison;
        };
        let params = def.ast.params.iter().map(|param| param.name.clone());
        let bound: BTreeSet<String> = bound_names(&def.ast.body).into_iter().chain(params).collect();
        let outer = Outer {
            def: std::mem::replace(&mut self.def, Arc::clone(&def)),
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
    use crate::{
        intrinsics::{self, CoopParam, Lowering},
        syntax::ast::Stmt,
    };

    #[test]
    fn rows_of_coop_say_what_each_parameter_is() {
        let mut n_rows = 0;
        for row in intrinsics::rows() {
            let Lowering::Coop(of) = row.lowering else { continue };
            let def = function(of.function).expect("the row's function is in the prelude");
            assert_eq!(def.ast.params.len(), of.params.len(), "{}", row.path);
            for (place, (param, ast)) in of.params.iter().zip(&def.ast.params).enumerate() {
                // What is checked to be known is known to the function: its default makes it so.
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
        let in_place: Vec<_> = functions(0).expect("operators.py is the first file").values().collect();
        assert_eq!(in_place.len(), 2);
        for def in in_place {
            let returns = |stmt: &Stmt| matches!(stmt.kind, StmtKind::Return(Some(_)));
            let (last, before) = def.ast.body.split_last().expect("has a body");
            assert!(returns(last) && !before.iter().any(returns), "{}", def.ast.name);
        }
    }
}
