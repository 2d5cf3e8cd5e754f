//! The command as a user calls it.

mod emit;
mod output;
mod pages;
mod support;
mod usage;
