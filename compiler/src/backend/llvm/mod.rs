//! Code shared by both back ends: IR to LLVM IR, math, LLVM's passes and code generators.
//!
//! A back end creates a [`ModuleContext`], declares its functions, and emits each through a [`FunctionEmitter`] with
//! [`Hooks`] for target-specific code. Then it calls [`driver::finish`].

mod arith;
pub(crate) mod atomic;
mod bytes;
mod choice;
mod context;
mod debug;
mod divide;
pub(crate) mod driver;
mod function;
mod gamma;
mod half;
mod hooks;
pub(crate) mod inlined;
mod libclc;
mod loops;
mod math;
mod own_arrays;
mod power;
mod rounded;
mod saturate;
pub(crate) mod shim;
pub(crate) mod size;
#[cfg(test)]
mod tests;
mod types;

pub(crate) use context::ModuleContext;
pub(crate) use debug::DebugInfo;
pub(crate) use divide::Division;
pub(crate) use function::{FunctionEmitter, LoopTargets, float, int};
pub(crate) use half::Halves;
pub(crate) use hooks::{AccessSite, Hooks, OperandValue, leave};
pub(crate) use math::{Library, constant};
pub(crate) use shim::{Error, Result, internal};
pub(crate) use types::{AddressSpaces, Types};
