//! Kernels compiled for this machine, loaded and run, against plain Rust.

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
