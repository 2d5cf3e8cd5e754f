//! Inline checks of accesses in sanitized code: calls of the functions of `inline_checks.ll`, which LLVM inlines.
//!
//! A function handles the common cases of an access and calls the runtime for all others.

use std::mem::offset_of;

use inkwell::{
    attributes::{Attribute, AttributeLoc},
    module::Linkage,
    values::{BasicMetadataValueEnum, BasicValueEnum, FunctionValue, IntValue, PointerValue},
};
use weft_artifact::{HostChecks, HostContext};

use crate::backend::{
    host::checked::seen::Seen,
    llvm::{
        FunctionEmitter, ModuleContext, Result, driver, internal,
        shim::{self, Machine},
    },
};

/// The functions, as bitcode.
static FUNCTIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inline_checks.bc"));

const READ: &str = "weft.read";
const WRITE: &str = "weft.write";
const READ_SMALL: &str = "weft.read_small";
const WRITE_SMALL: &str = "weft.write_small";
const STEP: &str = "weft.step";
const WRITTEN: &str = "weft.written";
const CLEAR: &str = "weft.clear";

/// The size in bytes of a page of access records.
pub(crate) const PAGE: u64 = 2048;

/// The maximum number of calls that are inlined. Code with more accesses calls the functions, which is slower: inlined,
/// they would be most of the code, and LLVM would take long to optimize it.
const MAX_INLINE: u32 = 64;

/// Links the functions into a module.
pub(crate) fn link(cx: &ModuleContext<'_, '_>, machine: &Machine) -> Result<()> {
    let functions = driver::lazy_bitcode(cx.types.context, FUNCTIONS, c"quick")?;
    machine.prepare(&functions);
    shim::link(cx.module, functions)?;
    for name in [READ, WRITE, READ_SMALL, WRITE_SMALL, STEP, WRITTEN, CLEAR] {
        let Some(function) = cx.module.get_function(name) else { return internal(format!("there is no {name}")) };
        function.set_linkage(Linkage::Internal);
    }
    Ok(())
}

/// Disables inlining if there are more than [`MAX_INLINE`] calls.
pub(crate) fn finish(cx: &ModuleContext<'_, '_>, n_calls: u32) -> Result<()> {
    if n_calls <= MAX_INLINE {
        return Ok(());
    }
    for name in [READ, WRITE, READ_SMALL, WRITE_SMALL, STEP] {
        let Some(function) = cx.module.get_function(name) else { return internal(format!("there is no {name}")) };
        function.remove_enum_attribute(AttributeLoc::Function, Attribute::get_named_enum_kind_id("alwaysinline"));
        cx.attribute(function, "noinline");
    }
    Ok(())
}

/// The function that tests whether all bytes of a range are written.
pub(crate) fn written<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>) -> Result<FunctionValue<'ctx>> {
    emitter.cx.module.get_function(WRITTEN).map_or_else(|| internal(format!("there is no {WRITTEN}")), Ok)
}

/// The function that tests whether all bytes of an element are written.
pub(crate) fn clear<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>) -> Result<FunctionValue<'ctx>> {
    emitter.cx.module.get_function(CLEAR).map_or_else(|| internal(format!("there is no {CLEAR}")), Ok)
}

/// An access of one, two, four or eight bytes to memory that other threads see. The records of one and two bytes are
/// packed.
pub(crate) struct Quick<'ctx> {
    pub(crate) site: u32,
    pub(crate) place: PointerValue<'ctx>,
    pub(crate) bits: u32,
    /// The size of the access in bytes.
    pub(crate) bytes: u32,
    pub(crate) copy: u32,
    /// The bits of the value that a plain access writes.
    pub(crate) written: Option<IntValue<'ctx>>,
    /// For a relaxed atomic operation of four or eight bytes in code with work-item loops: its kind bits, as the
    /// runtime stores them.
    pub(crate) step: Option<u64>,
    /// The bit of the parameter whose array is accessed, if the kernel only reads that array; otherwise 0.
    pub(crate) parameter: u64,
}

impl<'ctx> Quick<'ctx> {
    /// Emits the call. Returns the address to access.
    pub(crate) fn emit(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        context: PointerValue<'ctx>,
        seen: &Seen<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let llvm = emitter.cx.types.context;
        let is_small = self.bytes < 4;
        let name = match (self.step, self.written) {
            (Some(_), _) => STEP,
            (None, Some(_)) if is_small => WRITE_SMALL,
            (None, Some(_)) => WRITE,
            (None, None) if is_small => READ_SMALL,
            (None, None) => READ,
        };
        let Some(function) = emitter.cx.module.get_function(name) else {
            return internal(format!("there is no {name}"));
        };
        let int = |value: u32| llvm.i32_type().const_int(u64::from(value), false);
        let long = |value: u64| llvm.i64_type().const_int(value, false);
        let at_access = (offset_of!(HostContext, checks) + offset_of!(HostChecks, access)) as u64;
        let last = self.written.unwrap_or_else(|| long(self.step.unwrap_or(self.parameter)));
        let mut args: Vec<BasicMetadataValueEnum<'ctx>> = vec![context.into(), long(at_access).into()];
        args.extend(seen.args(emitter, self.written.is_some())?);
        args.extend::<[BasicMetadataValueEnum<'ctx>; 6]>([
            self.place.into(),
            int(self.site).into(),
            int(self.bits).into(),
            int(self.bytes.trailing_zeros()).into(),
            int(self.copy).into(),
            last.into(),
        ]);
        match emitter.builder.build_call(function, &args, "place")?.try_as_basic_value().basic() {
            Some(BasicValueEnum::PointerValue(place)) => Ok(place),
            _ => internal("an access goes nowhere"),
        }
    }
}
