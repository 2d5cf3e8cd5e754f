//! Plain accesses of sanitized code, most of which it need not ask the runtime about: the functions of `inline_checks.ll`, which become
//! part of the code.

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

/// The functions.
static FUNCTIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/inline_checks.bc"));

const READ: &str = "weft.read";
const WRITE: &str = "weft.write";
const READ_SMALL: &str = "weft.read_small";
const WRITE_SMALL: &str = "weft.write_small";
const STEP: &str = "weft.step";
const WRITTEN: &str = "weft.written";
const CLEAR: &str = "weft.clear";

/// Bytes of a page.
pub(crate) const PAGE: u64 = 2048;

/// Code with more accesses calls the functions: that takes half as long again, but in the place of each call they would be most of
/// the code, which LLVM would optimize for long.
const MOST_INLINE: u32 = 64;

/// Brings the functions into a module.
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

/// Says whether the functions come in the place of their calls, of which there are so many.
pub(crate) fn finish(cx: &ModuleContext<'_, '_>, n_calls: u32) -> Result<()> {
    if n_calls <= MOST_INLINE {
        return Ok(());
    }
    for name in [READ, WRITE, READ_SMALL, WRITE_SMALL, STEP] {
        let Some(function) = cx.module.get_function(name) else { return internal(format!("there is no {name}")) };
        function.remove_enum_attribute(AttributeLoc::Function, Attribute::get_named_enum_kind_id("alwaysinline"));
        cx.attribute(function, "noinline");
    }
    Ok(())
}

/// The function that says whether all bytes of some memory are written.
pub(crate) fn written<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>) -> Result<FunctionValue<'ctx>> {
    emitter.cx.module.get_function(WRITTEN).map_or_else(|| internal(format!("there is no {WRITTEN}")), Ok)
}

/// The function that says whether one element of it is.
pub(crate) fn clear<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>) -> Result<FunctionValue<'ctx>> {
    emitter.cx.module.get_function(CLEAR).map_or_else(|| internal(format!("there is no {CLEAR}")), Ok)
}

/// An access of one, two, four or eight bytes to memory that others see. What is remembered of those of one and two is packed.
pub(crate) struct Quick<'ctx> {
    pub(crate) site: u32,
    pub(crate) place: PointerValue<'ctx>,
    pub(crate) bits: u32,
    /// Its bytes.
    pub(crate) bytes: u32,
    pub(crate) copy: u32,
    /// What is written by a plain access.
    pub(crate) written: Option<IntValue<'ctx>>,
    /// Of an atomic step, of four or eight bytes, of a thread that is a turn of a loop: how atomic it is, as the runtime remembers
    /// that.
    pub(crate) step: Option<u64>,
    /// The bit of the parameter in whose array it lies, if the kernel only reads that; else 0.
    pub(crate) parameter: u64,
}

impl<'ctx> Quick<'ctx> {
    /// Gives where it goes.
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
