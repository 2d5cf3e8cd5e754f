//! Tests of the workspace as a whole, one file per subject. They use the public interfaces of the crates: a kernel is
//! read as by the command, and compiled with `weft_compiler::pipeline::compile`.
//!
//! `./weft-dev bless` accepts changes of snapshots (`INSTA_UPDATE=always`) and of generated pages (`WEFT_BLESS=1`).

#[cfg(test)]
mod diagnostics;
#[cfg(test)]
mod dtypes;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod header;
#[cfg(test)]
mod imports;
#[cfg(test)]
mod intrinsics;
#[cfg(test)]
mod kernels;
#[cfg(test)]
mod layout;
#[cfg(test)]
mod names;
#[cfg(test)]
mod plans;
#[cfg(test)]
mod ptx_forms;
#[cfg(test)]
mod ptxas;
#[cfg(test)]
mod registers;
#[cfg(test)]
mod remarks;
#[cfg(test)]
mod simulator;
#[cfg(test)]
mod stubs;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tidy;
