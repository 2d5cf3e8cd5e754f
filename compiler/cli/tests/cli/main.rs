//! The command as a user calls it.

mod check;
mod doctor;
mod emit;
mod output;
mod pages;
mod support;
mod usage;
