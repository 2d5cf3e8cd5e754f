//! From text to weft's own syntax tree.
//!
//! `parse/` is the only user of rustpython-parser, so that one folder can swap the parser. The tree is in [`ast`].

pub mod ast;
mod names;
mod parse;

pub use names::{bound_names, free_chains};
pub use parse::{parse_expression, parse_function, parse_module};
