//! The command as a user calls it.

mod doctor;
mod emit;
mod output;
mod pages;
mod support;
mod usage;
