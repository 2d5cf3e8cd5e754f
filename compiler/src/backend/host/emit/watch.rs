//! The cancellation flag of a launch, as the emitted code reads it.

#![expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]

use std::mem::offset_of;

use inkwell::{
    builder::Builder,
    values::{BasicValue, PointerValue},
};
use weft_artifact::{HostConfig, HostWatch};

use crate::{
    backend::llvm::{Result, Types, internal},
    ir::Space,
};

/// The configuration of a launch, and the flag of its watch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Watch<'ctx> {
    /// The configuration.
    pub config: PointerValue<'ctx>,
    /// The address of the flag.
    pub flag: PointerValue<'ctx>,
}

impl<'ctx> Watch<'ctx> {
    /// Loads the address of the flag, at the start of a function.
    pub(crate) fn of(types: &Types<'ctx>, builder: &Builder<'ctx>, config: PointerValue<'ctx>) -> Result<Self> {
        let watch = pointer_at(types, builder, config, offset_of!(HostConfig, watch))?;
        Ok(Self { config, flag: pointer_at(types, builder, watch, offset_of!(HostWatch, flag))? })
    }
}

/// Loads an address that never changes.
pub(crate) fn pointer_at<'ctx>(
    types: &Types<'ctx>,
    builder: &Builder<'ctx>,
    base: PointerValue<'ctx>,
    offset: usize,
) -> Result<PointerValue<'ctx>> {
    let offset = types.context.i64_type().const_int(offset as u64, false);
    // SAFETY: one index on a byte is a valid getelementptr, and the artifact defines the field.
    let place = unsafe { builder.build_in_bounds_gep(types.context.i8_type(), base, &[offset], "")? };
    let value = builder.build_load(types.pointer(Space::Generic), place, "")?;
    if let Some(load) = value.as_instruction_value() {
        let set = load.set_metadata(types.context.metadata_node(&[]), types.context.get_kind_id("invariant.load"));
        set.or_else(|error| internal(format!("LLVM takes no mark: {error}")))?;
    }
    Ok(value.into_pointer_value())
}
