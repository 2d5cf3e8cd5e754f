//! The state of a lowering: one file for each part. It is data without traversal logic, so that the files of the
//! traversal depend on each other only for their functions.

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
