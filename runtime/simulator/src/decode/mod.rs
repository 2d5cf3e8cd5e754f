//! Decodes the tree of a module: registers become numbers, names become addresses, labels become basic blocks.

mod arithmetic;
mod asynchronous;
mod calls;
mod collectives;
mod contract;
mod convert;
mod float;
mod function;
mod graph;
mod matrix;
mod memory;
mod registers;
mod special;
mod symbols;
mod table;
mod uniform;
mod warpgroup;

pub(crate) use asynchronous::{AsyncOp, Part, Receivers, Target, WaitsFor};
pub(crate) use special::Special;
pub(crate) use symbols::{LOCAL_BASE, RANK_SHIFT, SHARED_BASE, WINDOW};
pub use table::Location;
pub(crate) use table::*;
pub(crate) use warpgroup::{Descriptor, MatrixOperand, WarpgroupMultiply};

use crate::{
    error::Error,
    parse::{FunctionTree, ModuleTree},
};
use symbols::Symbols;
pub(crate) use {graph::successors, registers::for_each as for_each_register};

/// Decodes a module.
pub(crate) fn decode(tree: ModuleTree) -> Result<Program, Error> {
    let symbols = Symbols::of(&tree)?;
    let mut locations = vec![Location { file: 0, line: 0, column: 0, is_inherited: false }];
    let mut functions = Vec::new();
    let mut first_counter = 0;
    for source in tree.functions.iter().filter(|function| function.body.is_some()) {
        let mut function = function::decode(source, &symbols, &mut locations)?;
        function.first_counter = first_counter;
        first_counter += function.instructions.len();
        functions.push(function);
    }
    let static_shared = symbols.static_shared;
    let variables = symbols.variables(&tree)?;
    Ok(Program { functions, variables, locations, static_shared, files: tree.files, calls: tree.calls })
}

/// The functions with a body, in the order of their numbers.
fn defined(tree: &ModuleTree) -> impl Iterator<Item = &FunctionTree> {
    tree.functions.iter().filter(|function| function.body.is_some())
}
