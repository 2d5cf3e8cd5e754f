//! Tests of the CPU back end: they inspect the code of kernels, or run kernels and compare the results with plain Rust.

mod accumulated;
mod address_bases;
mod barriers;
mod bounds_checked;
mod boxes;
mod calls;
mod harness;
mod large;
mod lockstep;
mod order;
mod polling;
mod refused;
mod small;
mod steady_state;
mod swaps;
mod tiles;
mod transposed;
mod vector;
mod verify;
mod waiting;
mod warps;
