//! From source text to weft's own syntax tree.
//!
//! `parse/` is the only user of rustpython-parser, so the parser can be replaced in one folder. The tree is in [`ast`];
//! `fold.rs` folds constant expressions with the arithmetic of [`number`].

pub mod ast;
mod fold;
mod names;
pub mod number;
mod once;
#[expect(clippy::wildcard_enum_match_arm, reason = "rustpython's tree, of which kernels have a part")]
mod parse;

pub use fold::is_too_long;
pub use names::{
    OWN_BUILTIN, assigns_from_inside, bound_names, bound_once, free_chains, free_names, nonlocal_names, shape_names,
    target_names,
};
pub use once::is_read_once;
pub use parse::{Parsed, parse_expression, parse_function, parse_module};
