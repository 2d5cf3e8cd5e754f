//! The types of the expressions in a kernel's source: the interpreter converts values to them.
//!
//! A row is an expression in one function for one tuple of argument types: a function that is called with several has a
//! row for each. Names that are assigned are rows, too.

use std::sync::Arc;

use weft_artifact::ArgType;

use super::{
    lowerer::{FnLowerer, Lowerer},
    object::ObjectKind,
    prelude,
    ty::Ty,
};
use crate::{
    request::{FunctionDef, Outcome, Request},
    source::{SourceMap, Span},
};

/// A function for one tuple of argument types.
#[derive(Clone, Debug)]
pub struct Instance {
    def: Arc<FunctionDef>,
    /// The span of its name.
    pub name: Span,
    /// The types of its arguments, followed by those of the variables that it captures; `None` for a type that no
    /// launch can pass.
    pub args: Vec<Option<ArgType>>,
}

/// An expression, or a name that is assigned.
#[derive(Clone, Debug, PartialEq)]
pub struct ExprType {
    /// The index of its function instance.
    pub instance: usize,
    /// Its span.
    pub span: Span,
    /// The type of its value; for a weak number its default type.
    pub ty: ArgType,
    /// Whether it is a weak number (`typing="numpy"`): it takes the type of the other operand.
    pub weak: bool,
    /// The name, if it is an assigned one.
    pub assigned: Option<String>,
}

/// The expressions of a kernel and of the functions that it calls.
#[derive(Clone, Debug, Default)]
pub struct ExprTypes {
    /// The function instances.
    pub instances: Vec<Instance>,
    /// The expressions.
    pub rows: Vec<ExprType>,
}

impl ExprTypes {
    fn instance(&mut self, def: &Arc<FunctionDef>, name: Span, args: Vec<Option<ArgType>>) -> usize {
        let known = |known: &Instance| Arc::ptr_eq(&known.def, def) && known.args == args;
        self.instances.iter().position(known).unwrap_or_else(|| {
            self.instances.push(Instance { def: Arc::clone(def), name, args });
            self.instances.len() - 1
        })
    }
}

impl FnLowerer<'_> {
    /// Records the type of an expression or of an assigned name, if the request requires it.
    pub(super) fn note_type(&mut self, ty: &Ty, span: Span, assigned: Option<&str>) {
        if self.cx.expressions.is_none() || self.is_dry() || self.b.fixed_span().is_some() || prelude::is_own(&self.def)
        {
            return;
        }
        let Some(found) = ty.arg() else { return };
        let weak = match ty {
            Ty::Int(_) | Ty::Bool(_) => self.is_numpy(),
            Ty::Object(kind, items) => {
                if items.iter().any(has_weak) {
                    return;
                }
                *kind == ObjectKind::Weak
            }
            Ty::Scalar(_)
            | Ty::Complex(_)
            | Ty::Array(_)
            | Ty::Static(_)
            | Ty::Conflict(_)
            | Ty::Bottom
            | Ty::Poison => false,
        };
        let lowering = self.cx.functions.lowering.last().filter(|lowering| Arc::ptr_eq(&lowering.def, &self.def));
        let args = lowering.map(|lowering| lowering.args.iter().map(Ty::arg).collect()).unwrap_or_default();
        let (span, name) = (self.at(span), self.at(self.def.ast.name_span));
        let Some(types) = &mut self.cx.expressions else { return };
        let instance = types.instance(&self.def, name, args);
        let row = ExprType { instance, span, ty: found, weak, assigned: assigned.map(str::to_owned) };
        if !types.rows.contains(&row) {
            types.rows.push(row);
        }
    }
}

/// Whether a composed type contains a weak number.
fn has_weak(ty: &Ty) -> bool {
    match ty {
        Ty::Object(ObjectKind::Weak, _) => true,
        Ty::Object(_, items) => items.iter().any(has_weak),
        Ty::Scalar(_)
        | Ty::Complex(_)
        | Ty::Int(_)
        | Ty::Bool(_)
        | Ty::Array(_)
        | Ty::Static(_)
        | Ty::Conflict(_)
        | Ty::Bottom
        | Ty::Poison => false,
    }
}

/// The types of the expressions of a request's kernel and of the functions that it calls, as far as they can be
/// inferred, and the files of their spans.
pub fn expression_types(request: &Request) -> Outcome<(ExprTypes, SourceMap)> {
    let Lowerer { expressions, sources, queries, .. } =
        super::lowered_for(request, super::RecordedInfo { variables: false, expressions: true });
    if queries.is_empty() {
        Outcome::Made((expressions.unwrap_or_default(), sources))
    } else {
        Outcome::Queries(queries)
    }
}
