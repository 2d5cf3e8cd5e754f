//! Functions of the user's that have implementations for kernels (`extending.overload`), and which of them a call has.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::ArgType;

use super::FunctionDef;

/// What a request knows of overloaded functions.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Overloads {
    /// What is overloaded by its path: a function in a module that weft knows (`numpy.linalg.norm`) and kernels do not
    /// have, a method (`method.name`) or an attribute (`attribute.name`) of values.
    pub members: BTreeMap<String, Overloaded>,
    /// The implementations that are found so far.
    pub answers: Vec<Answer>,
}

impl Overloads {
    /// The function with a number among a request's function, the implementations, and those that these lead to.
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

    /// A number that none of those has, nor a greater one.
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

/// A function of Python's with implementations for kernels: `extending.overload`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overloaded {
    /// What whoever makes requests knows it by.
    pub number: u32,
    /// Its name.
    pub name: String,
}

/// A call of an overloaded function. The caller of the compiler chooses its implementation.
#[derive(Clone, Debug, PartialEq)]
pub struct OverloadQuery {
    /// [`Overloaded::number`].
    pub function: u32,
    /// The arguments; those that are given by name with it.
    pub args: Vec<(Option<String>, OverloadArgument)>,
}

/// An argument as the choice of an implementation sees it.
#[derive(Clone, Debug, PartialEq)]
pub enum OverloadArgument {
    /// Its type.
    Type(ArgType),
    /// A text.
    Str(String),
}

/// The implementation of an overloaded function for a call's types.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The call.
    pub ask: OverloadQuery,
    /// The implementation; or why there is none, as far as somebody says it.
    pub chosen: Result<Arc<FunctionDef>, Option<String>>,
}

impl OverloadQuery {
    /// The arguments' types as errors show them.
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

/// What comes of a request: what was asked for, or questions.
#[derive(Clone, Debug)]
pub enum Outcome<T> {
    /// It is made.
    Made(T),
    /// Calls of overloaded functions of which the request does not say which implementation they have. Whoever made the
    /// request adds the answers ([`Answer`]) and asks again.
    Queries(Vec<OverloadQuery>),
}

impl<T> Outcome<T> {
    /// What is made, if it is.
    pub fn made(self) -> Option<T> {
        match self {
            Self::Made(value) => Some(value),
            Self::Queries(_) => None,
        }
    }

    /// The same with something else of what is made.
    pub fn map<U>(self, made: impl FnOnce(T) -> U) -> Outcome<U> {
        match self {
            Self::Made(value) => Outcome::Made(made(value)),
            Self::Queries(asks) => Outcome::Queries(asks),
        }
    }
}
