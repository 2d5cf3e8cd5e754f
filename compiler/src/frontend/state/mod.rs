//! What a lowering keeps: one file for each part of it that keeps something of its own. It is data, and knows nothing of
//! the walk, so that the walk's files need each other for what they do only.

mod allocations;
mod coop;
mod env;
mod functions;
mod iterators;
mod loops;
mod reports;
mod root;
mod scopes;
mod variables;

pub(super) use self::{
    allocations::Allocations,
    coop::{CoopMemory, Piece},
    env::{Env, Var, join, same},
    functions::{Compiled, Functions, Instance, Lowering, MOST_CHANGES, Open, Returns, Typed},
    iterators::Iterators,
    loops::{LoopState, LoopTable, LoopTypes, Loops},
    reports::Reports,
    root::Root,
    scopes::{Hidden, Scope},
    variables::{Names, Stored, Variables},
};
