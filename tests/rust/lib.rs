//! Tests of the workspace as a whole, one file a subject. They go through the crates' public faces: a kernel is read as
//! the command reads it and compiled by `weft_compiler::pipeline::compile`.
//!
//! `./weft-dev bless` accepts what changed: snapshots (`INSTA_UPDATE=always`) and generated pages (`WEFT_BLESS=1`).

#[cfg(test)]
mod diagnostics;
#[cfg(test)]
mod dtypes;
#[cfg(test)]
mod generated;
#[cfg(test)]
mod header;
#[cfg(test)]
mod intrinsics;
#[cfg(test)]
mod kernels;
#[cfg(test)]
mod layout;
#[cfg(test)]
mod names;
#[cfg(test)]
mod ptx_forms;
#[cfg(test)]
mod ptxas;
#[cfg(test)]
mod stubs;
#[cfg(test)]
mod support;
#[cfg(test)]
mod tidy;
