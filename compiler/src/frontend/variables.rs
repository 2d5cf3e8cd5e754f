//! The types of variables at each occurrence in a kernel's source, for editors.

use super::{
    lowerer::{FnLowerer, Lowerer},
    prelude,
    ty::Ty,
};
use crate::{
    request::Request,
    source::{SourceMap, Span},
};

/// A read or an assignment of a variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: String,
    /// The span of the name.
    pub span: Span,
    /// Its type at this point, as in messages.
    pub ty: String,
}

impl FnLowerer<'_> {
    /// Records the type of a name in the user's code, if the request requires it.
    pub(super) fn record_type(&mut self, name: &str, ty: &Ty, span: Span) {
        // The name of a variable that several alternatives of a pattern bind has a suffix.
        let is_own = self.b.fixed_span().is_none() && !name.contains('@') && !prelude::is_own(&self.def);
        if self.cx.variables.is_none() || self.is_dry() || !is_own || ty.is_poison() || *ty == Ty::Bottom {
            return;
        }
        let found = Variable { name: name.to_owned(), span: self.at(span), ty: ty.to_string() };
        if let Some(variables) = &mut self.cx.variables
            && !variables.contains(&found)
        {
            variables.push(found);
        }
    }
}

/// The variables of a request's kernel and of the functions that it calls, as far as their types can be inferred, and
/// the files of their spans.
pub fn variables(request: &Request) -> (Vec<Variable>, SourceMap) {
    let Lowerer { variables, sources, .. } =
        super::lowered_for(request, super::RecordedInfo { variables: true, expressions: false });
    (variables.unwrap_or_default(), sources)
}
