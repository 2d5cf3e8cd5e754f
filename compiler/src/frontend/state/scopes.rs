//! The scopes of the enclosing generators.

use super::{env::Var, variables::Stored};

/// The names of a generator, with their outer meanings; while the scope is suspended, with their inner ones.
#[derive(Debug)]
pub(in crate::frontend) struct Scope {
    pub(in crate::frontend) names: Vec<Hidden>,
}

/// A name.
#[derive(Debug)]
pub(in crate::frontend) struct Hidden {
    pub(in crate::frontend) name: String,
    pub(in crate::frontend) var: Option<Var>,
    pub(in crate::frontend) storage: Option<Stored>,
    /// Whether it is a variable of the function.
    pub(in crate::frontend) bound: bool,
}
