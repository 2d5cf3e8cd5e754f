//! The command as a user calls it.

mod emit;
mod pages;
mod support;
mod usage;
