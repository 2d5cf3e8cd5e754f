//! Runs the command as a user does.

mod check;
mod doctor;
mod emit;
mod output;
mod pages;
mod support;
mod usage;
