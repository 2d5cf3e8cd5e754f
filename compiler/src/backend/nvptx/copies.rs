//! Asynchronous copies: `cp.async`, and `cp.async.bulk` with barriers in shared memory or in groups.
//!
//! Barriers and bulk copies are inline PTX, which LTO-IR can contain, too.

use inkwell::values::{BasicMetadataValueEnum, BasicValueEnum};

use super::proxy;
use crate::{
    backend::llvm::{FunctionEmitter, OperandValue, Result, internal},
    ir::{
        AsyncCopy, Class, ExprId, Function, Leaf, Module, Op, Space, StmtKind, Type, for_each_expr_of_stmt,
        for_each_stmt,
    },
};

/// The first SM with the instructions of bulk copies, and with `try_wait`.
const BULK: u32 = 90;

/// The copies in groups. Each kind has groups of its own.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Groups {
    /// Of elements to shared memory, or none.
    Elements,
    /// To global memory.
    Stores,
    /// Both.
    Both,
}

/// What the PTX of an operation depends on, besides the operation.
#[derive(Clone, Copy, Debug)]
pub(in crate::backend) struct CopyTarget {
    sm: u32,
    /// The kinds of groups.
    groups: Groups,
    /// The module has operations of clusters.
    pub(super) clusters: bool,
    /// Barriers order the accesses of threads of several blocks: these read what others may have written, or write shared
    /// memory. If not, barriers only count: copies, and products that have read what is to be overwritten. Such an order
    /// takes as long as a fence of the device at each arrival.
    orders: bool,
}

impl CopyTarget {
    /// Reads the operations of a module for an SM.
    pub(in crate::backend) fn of(module: &Module, sm: u32) -> Self {
        let (mut elements, mut stores) = (false, false);
        let mut found = Self { sm, groups: Groups::Elements, clusters: false, orders: false };
        for (_, function) in module.functions.iter() {
            for_each_stmt(&function.body, &mut |stmt| {
                if let StmtKind::Op { op: Op::AsyncCopy(copy), .. } = stmt.kind {
                    elements |= matches!(copy, AsyncCopy::Element { .. });
                    stores |= copy.is_store();
                    found.clusters |= copy.is_of_cluster();
                }
                found.clusters |= matches!(stmt.kind, StmtKind::Op { op: Op::Cluster(_), .. });
            });
            found.orders |= reads_written(function);
        }
        found.groups = match (elements, stores) {
            (_, false) => Groups::Elements,
            (false, true) => Groups::Stores,
            (true, true) => Groups::Both,
        };
        found.orders = found.clusters && (found.orders || proxy::writes_shared(module));
        found
    }
}

/// Whether a function reads memory that the kernel may write, other than by products and bulk copies.
fn reads_written(function: &Function) -> bool {
    let mut found = false;
    for_each_stmt(&function.body, &mut |stmt| {
        for_each_expr_of_stmt(function, &stmt.kind, &mut |id| {
            if let Class::Load(pointer) = function.class(id) {
                found |= !is_never_written(function, pointer);
            }
        });
        if let StmtKind::Op { op, .. } = stmt.kind {
            let is_async = matches!(op, Op::Multiply(_) | Op::AsyncCopy(_) | Op::Cluster(_));
            found |= op.row().memory.reads() && !is_async;
        }
    });
    found
}

/// Whether a pointer points into an array that the kernel does not write.
fn is_never_written(function: &Function, pointer: ExprId) -> bool {
    match function.class(pointer) {
        Class::Address { base, .. } => is_never_written(function, base),
        Class::Leaf(Leaf::Local(local)) => function.locals[local].never_written,
        Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => false,
    }
}

/// Emits an operation. Returns its results.
pub(super) fn emit<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    target: CopyTarget,
    copy: AsyncCopy,
    operands: &[OperandValue<'ctx>],
) -> Result<Vec<BasicValueEnum<'ctx>>> {
    let call = |name: &str, args: &[BasicMetadataValueEnum<'ctx>]| -> Result<()> {
        let intrinsic = emitter.cx.intrinsic(&format!("llvm.nvvm.{name}"), &[])?;
        emitter.builder.build_call(intrinsic, args, "")?;
        Ok(())
    };
    match copy {
        AsyncCopy::Element { bytes } => {
            let [to, from] = operands else { return internal("a copy without its two pointers") };
            call(&format!("{}.{bytes}", copy.ptx()), &[to.value.into(), from.value.into()])?;
        }
        AsyncCopy::Commit | AsyncCopy::Wait { .. } if target.groups == Groups::Elements => {
            let pending = if let AsyncCopy::Wait { pending, .. } = copy { Some(pending) } else { None };
            match pending {
                None => call("cp.async.commit.group", &[])?,
                Some(pending) => {
                    let pending = emitter.cx.types.context.i32_type().const_int(pending.into(), false);
                    call("cp.async.wait.group", &[pending.into()])?;
                }
            }
        }
        AsyncCopy::Commit
        | AsyncCopy::Wait { .. }
        | AsyncCopy::BarrierInit { .. }
        | AsyncCopy::BarrierArrive { .. }
        | AsyncCopy::BarrierExpect { .. }
        | AsyncCopy::BarrierWait
        | AsyncCopy::Bulk { .. }
        | AsyncCopy::Box { .. }
        | AsyncCopy::BulkStore
        | AsyncCopy::BoxStore { .. }
        | AsyncCopy::BoxMap => {
            inline(emitter, &text(target, copy), operands)?;
            // A GPU detects no faults of these operations.
            let done = emitter.cx.types.context.bool_type().const_int(1, false);
            return Ok(vec![done.into(); copy.results()]);
        }
    }
    Ok(Vec::new())
}

/// The PTX of an operation. `$0` is the first operand.
pub(in crate::backend) fn text(target: CopyTarget, copy: AsyncCopy) -> String {
    let name = copy.ptx();
    match copy {
        AsyncCopy::BarrierInit { barriers } => {
            let mut lines: Vec<String> = (0..barriers).map(|at| format!("{name} [$0+{}], $1;", 8 * at)).collect();
            if target.sm >= BULK {
                lines.extend(
                    ["fence.mbarrier_init.release.cluster;", "fence.proxy.async.shared::cta;"].map(str::to_owned),
                );
            }
            lines.join("\n")
        }
        AsyncCopy::BarrierArrive { remote: false } => format!("{{\n.reg .b64 state;\n{name} state, [$0];\n}}"),
        AsyncCopy::BarrierArrive { remote: true } => remote(target, &format!("{name} _, [barrier];")),
        AsyncCopy::BarrierExpect { remote: false } => format!("{name} _, [$0], $1;"),
        AsyncCopy::BarrierExpect { remote: true } => remote(target, &format!("{name} _, [barrier], $1;")),
        AsyncCopy::BarrierWait => {
            let name = match target {
                // Threads of other blocks may arrive.
                CopyTarget { orders: true, .. } => "mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64",
                CopyTarget { sm: BULK.., .. } => "mbarrier.try_wait.parity.shared.b64",
                CopyTarget { .. } => name,
            };
            // The pause lets the hardware run the other threads of a divergent warp.
            format!(
                "{{\n.reg .pred done;\nWAIT:\n{name} done, [$0], $1;\n@done bra DONE;\nnanosleep.u32 0;\nbra \
                 WAIT;\nDONE:\n}}"
            )
        }
        AsyncCopy::Bulk { multicast: false } => format!("{name} [$0], [$1], $3, [$2];"),
        AsyncCopy::Bulk { multicast: true } => masked(&format!("{name}{MULTICAST} [$0], [$1], $3, [$2], mask;"), 4),
        AsyncCopy::Box { dims, multicast } => {
            let (name, indices) = (of_dims(name, dims), indices(3, dims));
            if multicast {
                masked(&format!("{name}{MULTICAST} [$0], [$1, {indices}], [$2], mask;"), 3 + dims)
            } else {
                format!("{name} [$0], [$1, {indices}], [$2];")
            }
        }
        AsyncCopy::BulkStore => format!("{name} [$0], [$1], $2;"),
        AsyncCopy::BoxStore { dims } => format!("{} [$0, {}], [$1];", of_dims(name, dims), indices(2, dims)),
        AsyncCopy::BoxMap => format!("{name} [$0], 128;"),
        AsyncCopy::Element { .. } => format!("{name};"),
        AsyncCopy::Commit => of_groups(target, "commit_group;", "commit_group;"),
        AsyncCopy::Wait { pending, read } => {
            let read = if read { ".read" } else { "" };
            of_groups(target, &format!("wait_group {pending};"), &format!("wait_group{read} {pending};"))
        }
    }
}

/// The modifier of copies to several blocks of the cluster.
const MULTICAST: &str = ".multicast::cluster";

/// An operation of groups. A group of the program is one of each kind that the module has.
fn of_groups(target: CopyTarget, elements: &str, stores: &str) -> String {
    match target.groups {
        Groups::Elements => format!("cp.async.{elements}"),
        Groups::Stores => format!("cp.async.bulk.{stores}"),
        Groups::Both => format!("cp.async.{elements}\ncp.async.bulk.{stores}"),
    }
}

/// An instruction with the address of the barrier `$0` of another block, whose generic address is given.
fn remote(target: CopyTarget, instruction: &str) -> String {
    let order = if target.orders { ".release.cluster" } else { "" };
    let instruction = instruction.replace(".shared::cluster", &format!("{order}.shared::cluster"));
    format!("{{\n.reg .b64 barrier;\ncvta.to.shared::cluster.u64 barrier, $0;\n{instruction}\n}}")
}

/// An instruction with an operand as a mask of blocks, which has 16 bits.
fn masked(instruction: &str, operand: u8) -> String {
    format!("{{\n.reg .b16 mask;\ncvt.u16.u32 mask, ${operand};\n{instruction}\n}}")
}

fn of_dims(name: &str, dims: u8) -> String {
    name.replace(".tensor.", &format!(".tensor.{dims}d."))
}

/// The first indices of a box. PTX has the innermost dimension first.
fn indices(first: u8, dims: u8) -> String {
    let indices: Vec<String> = (first..first + dims).rev().map(|operand| format!("${operand}")).collect();
    format!("{{{}}}", indices.join(", "))
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
