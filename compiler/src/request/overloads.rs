//! The user's overloads of functions for kernels (`extending.overload`), and their selection by call.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::ArgType;

use super::FunctionDef;

/// The overloaded functions of a request, and the overloads selected for them.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overloads {
    /// The overloaded functions, by path: a function of a module that weft knows but kernels do not support
    /// (`numpy.linalg.norm`), a method (`method.name`) or an attribute (`attribute.name`).
    pub members: BTreeMap<String, Overloaded>,
    /// The overloads selected in earlier rounds of this request.
    pub answers: Vec<Answer>,
}

impl Overloads {
    /// Finds a function by its number, among the request's function, the overloads, and their callees.
    pub fn find(&self, function: &Arc<FunctionDef>, number: u32) -> Option<Arc<FunctionDef>> {
        let mut found = None;
        FunctionDef::each(self.roots(function), &mut |def| {
            if def.number == number {
                found = Some(Arc::clone(def));
            }
            found.is_none()
        });
        found
    }

    /// A number greater than those of all these functions.
    pub fn next_number(&self, function: &Arc<FunctionDef>) -> u32 {
        let mut next = 0;
        FunctionDef::each(self.roots(function), &mut |def| {
            next = next.max(def.number + 1);
            true
        });
        next
    }

    fn roots(&self, function: &Arc<FunctionDef>) -> Vec<Arc<FunctionDef>> {
        let chosen = self.answers.iter().flat_map(|answer| &answer.chosen);
        chosen.chain([function]).map(Arc::clone).collect()
    }
}

/// A Python function that `extending.overload` has overloads for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overloaded {
    /// The number by which the caller identifies it.
    pub number: u32,
    /// Its name.
    pub name: String,
}

/// A call of an overloaded function. The caller of the compiler selects the overload.
#[derive(Clone, Debug, PartialEq)]
pub struct OverloadQuery {
    /// [`Overloaded::number`].
    pub function: u32,
    /// The arguments, with the name of each keyword argument.
    pub args: Vec<(Option<String>, OverloadArgument)>,
}

/// An argument, as the selection of an overload sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum OverloadArgument {
    /// Its type.
    Type(ArgType),
    /// A string.
    Str(String),
}

/// The overload that the caller has selected for a call.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The call.
    pub query: OverloadQuery,
    /// The overload, or the reason why there is none, if the caller gives one.
    pub chosen: Result<Arc<FunctionDef>, Option<String>>,
}

impl OverloadQuery {
    /// The argument types, formatted for errors.
    pub fn shown(&self) -> String {
        let shown = |given: &OverloadArgument| match given {
            OverloadArgument::Type(ty) => ty.to_string(),
            OverloadArgument::Str(text) => format!("'{text}'"),
        };
        let args = self.args.iter().map(|(name, given)| match name {
            Some(name) => format!("{name}={}", shown(given)),
            None => shown(given),
        });
        args.collect::<Vec<_>>().join(", ")
    }
}

/// The outcome of a compilation: a result, or queries to the caller.
#[derive(Clone, Debug)]
pub enum Outcome<T> {
    /// The result.
    Made(T),
    /// Calls of overloaded functions for which the request has no overload yet. The caller adds an [`Answer`] for each,
    /// and repeats the request.
    Queries(Vec<OverloadQuery>),
}

impl<T> Outcome<T> {
    /// The result, if there is one.
    pub fn made(self) -> Option<T> {
        match self {
            Self::Made(value) => Some(value),
            Self::Queries(_) => None,
        }
    }

    /// Maps the result.
    pub fn map<U>(self, made: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Made(value) => Outcome::Made(made(value)),
            Self::Queries(queries) => Outcome::Queries(queries),
        }
    }
}
