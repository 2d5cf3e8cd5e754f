//! Asynchronous copies to shared memory: `cp.async`, and `cp.async.bulk` with barriers in shared memory.
//!
//! Barriers and bulk copies are inline PTX, which LTO-IR can contain, too.

use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use crate::{
    backend::llvm::{FunctionEmitter, OperandValue, Result, internal},
    ir::{AsyncCopy, Space, Type},
};

/// The first SM with the instructions of bulk copies, and with `try_wait`.
const BULK: u32 = 90;

/// Emits an operation. Returns its results.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    sm: u32,
    copy: AsyncCopy,
    operands: &[OperandValue<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let (name, args): (String, Vec<BasicMetadataValueEnum<'ctx>>) = match copy {
        AsyncCopy::Element { bytes } => {
            let [to, from] = operands else { return internal("a copy without its two pointers") };
            (format!("{}.{bytes}", copy.ptx()), vec![to.value.into(), from.value.into()])
        }
        AsyncCopy::Commit => ("cp.async.commit.group".to_owned(), Vec::new()),
        AsyncCopy::Wait { pending } => {
            let pending = emitter.cx.types.context.i32_type().const_int(pending.into(), false);
            ("cp.async.wait.group".to_owned(), vec![pending.into()])
        }
        AsyncCopy::BarrierInit { .. }
        | AsyncCopy::BarrierArrive
        | AsyncCopy::BarrierExpect
        | AsyncCopy::BarrierWait
        | AsyncCopy::Bulk
        | AsyncCopy::Box { .. }
        | AsyncCopy::BoxMap => {
            inline(emitter, &text(sm, copy), operands)?;
            // A GPU detects no faults of these operations.
            let done = emitter.cx.types.context.bool_type().const_int(1, false);
            return Ok(vec![done.into(); copy.results()]);
        }
    };
    emitter.builder.build_call(emitter.cx.intrinsic(&format!("llvm.nvvm.{name}"), &[])?, &args, "")?;
    Ok(Vec::new())
}

/// The PTX of an operation of a barrier. `$0` is the first operand.
pub(in crate::backend) fn text(sm: u32, copy: AsyncCopy) -> String {
    let name = copy.ptx();
    match copy {
        AsyncCopy::BarrierInit { barriers } => {
            let mut lines: Vec<String> = (0..barriers).map(|at| format!("{name} [$0+{}], $1;", 8 * at)).collect();
            if sm >= BULK {
                lines.extend(
                    ["fence.mbarrier_init.release.cluster;", "fence.proxy.async.shared::cta;"].map(str::to_owned),
                );
            }
            lines.join("\n")
        }
        AsyncCopy::BarrierArrive => format!("{{\n.reg .b64 state;\n{name} state, [$0];\n}}"),
        AsyncCopy::BarrierExpect => format!("{name} _, [$0], $1;"),
        AsyncCopy::BarrierWait => {
            let name = if sm >= BULK { "mbarrier.try_wait.parity.shared.b64" } else { name };
            // The pause lets the hardware run the other threads of a divergent warp.
            format!(
                "{{\n.reg .pred done;\nWAIT:\n{name} done, [$0], $1;\n@done bra DONE;\nnanosleep.u32 0;\nbra \
                 WAIT;\nDONE:\n}}"
            )
        }
        AsyncCopy::Bulk => format!("{name} [$0], [$1], $3, [$2];"),
        AsyncCopy::Box { dims } => {
            // PTX has the innermost dimension first.
            let indices: Vec<String> = (3..3 + dims).rev().map(|operand| format!("${operand}")).collect();
            let name = name.replace(".tensor.", &format!(".tensor.{dims}d."));
            format!("{name} [$0], [$1, {{{}}}], [$2];", indices.join(", "))
        }
        AsyncCopy::BoxMap => format!("{name} [$0], 128;"),
        AsyncCopy::Element { .. } | AsyncCopy::Commit | AsyncCopy::Wait { .. } => format!("{name};"),
    }
}

/// Emits inline PTX that accesses memory. Global addresses are generic, as tensor maps need them.
fn inline<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, text: &str, operands: &[OperandValue<'ctx>]) -> Result<()> {
    let (types, builder) = (emitter.cx.types, &emitter.builder);
    let (mut args, mut arg_types): (Vec<BasicMetadataValueEnum<'ctx>>, Vec<_>) = (Vec::new(), Vec::new());
    let mut constraints = Vec::new();
    for operand in operands {
        let value = match (operand.ty, operand.value) {
            (Type::Ptr(_, space), BasicValueEnum::PointerValue(mut pointer)) => {
                constraints.push("l");
                if space == Space::Global {
                    pointer = builder.build_address_space_cast(pointer, types.pointer(Space::Generic), "")?;
                }
                builder.build_ptr_to_int(pointer, types.context.i64_type(), "")?
            }
            (Type::Scalar(_), BasicValueEnum::IntValue(value)) => {
                constraints.push("r");
                value
            }
            _ => return internal("a barrier's operand of another type"),
        };
        arg_types.push(value.get_type().into());
        args.push(value.into());
    }
    constraints.push("~{memory}");
    let function = types.context.void_type().fn_type(&arg_types, false);
    let code = (text.to_owned(), constraints.join(","));
    let asm = types.context.create_inline_asm(function, code.0, code.1, true, false, None, false);
    let call = builder.build_indirect_call(function, asm, &args, "")?;
    emitter.cx.make_convergent(call);
    Ok(())
}
