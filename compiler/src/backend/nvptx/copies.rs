//! Asynchronous copies to shared memory: `cp.async`.

use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use crate::{
    backend::llvm::{FunctionEmitter, Result, internal},
    ir::AsyncCopy,
};

/// Emits a copy, or a wait for copies.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    copy: AsyncCopy,
    values: &[BasicValueEnum<'ctx>],
) -> Result<()> {
    let (name, args): (String, Vec<BasicMetadataValueEnum<'ctx>>) = match copy {
        AsyncCopy::Element { bytes } => {
            let &[to, from] = values else { return internal("a copy without its two pointers") };
            (format!("{}.{bytes}", copy.ptx()), vec![to.into(), from.into()])
        }
        AsyncCopy::Commit => ("cp.async.commit.group".to_owned(), Vec::new()),
        AsyncCopy::Wait { pending } => {
            let pending = emitter.cx.types.context.i32_type().const_int(pending.into(), false);
            ("cp.async.wait.group".to_owned(), vec![pending.into()])
        }
    };
    emitter.builder.build_call(emitter.cx.intrinsic(&format!("llvm.nvvm.{name}"), &[])?, &args, "")?;
    Ok(())
}
