//! Tests of the CPU back end: they inspect the code of kernels, or run kernels and compare the results with plain Rust.

mod accumulated;
mod barriers;
mod calls;
mod confined;
mod harness;
mod interior;
mod large;
mod lockstep;
mod order;
mod polling;
mod small;
mod swaps;
mod tiles;
mod vector;
mod waiting;
mod walked;
mod warps;
