//! Hoists loads above long divisions and square roots.
//!
//! ptxas issues loads early, so that their latencies overlap, but only within a basic block. A correctly rounded
//! division or square root, or an integer division, ends the block, because it has a branch to a slow path. Hence
//! `a = sqrt(x[i]); b = y[i]` would wait for `x[i]` before it loads `y[i]`. This pass moves a load above such an
//! operation in the same LLVM basic block, together with the load's address computation, if nothing between them may
//! write memory or not return.

use std::collections::BTreeSet;

use inkwell::{
    AtomicOrdering,
    attributes::{Attribute, AttributeLoc},
    basic_block::BasicBlock,
    builder::Builder,
    context::Context,
    module::Module,
    values::{AsValueRef, BasicValue, CallSiteValue, FunctionValue, InstructionOpcode, InstructionValue, Operand},
};

/// The maximal number of loads that move above one operation. Each of them occupies a register for longer.
const MOST: usize = 8;

/// Moves the loads of every function.
pub(super) fn hoist(context: &Context, module: &Module<'_>) {
    let builder = context.create_builder();
    for block in module.get_functions().flat_map(FunctionValue::get_basic_block_iter) {
        hoist_in(&builder, block);
    }
}

fn hoist_in<'ctx>(builder: &Builder<'ctx>, block: BasicBlock<'ctx>) {
    // The operation to hoist above, the number of loads already hoisted, and the instructions after the operation.
    let mut split: Option<(InstructionValue<'ctx>, usize)> = None;
    let mut later = BTreeSet::new();
    let instructions: Vec<_> = block.get_instructions().collect();
    for instruction in instructions {
        match (kind(instruction), &mut split) {
            (Kind::Clobber, _) => {
                split = None;
                later.clear();
            }
            (Kind::Split, None) => split = Some((instruction, 0)),
            (Kind::Load, Some((before, moved))) if *moved < MOST => {
                let mut cone = Vec::new();
                if movable(instruction, &later, &mut cone) {
                    *moved += 1;
                    for part in cone {
                        later.remove(&key(part));
                        part.remove_from_basic_block();
                        builder.position_before(before);
                        // Otherwise it would get the source line of `before`.
                        builder.unset_current_debug_location();
                        builder.insert_instruction(&part, None);
                    }
                    continue;
                }
            }
            _ => {}
        }
        if split.is_some() {
            later.insert(key(instruction));
        }
    }
}

/// Collects an instruction with all its operands from `later`, operands first. Returns false if one of them cannot
/// move.
fn movable<'ctx>(
    instruction: InstructionValue<'ctx>,
    later: &BTreeSet<usize>,
    cone: &mut Vec<InstructionValue<'ctx>>,
) -> bool {
    for operand in instruction.get_operands().flatten().filter_map(Operand::value) {
        let Some(needed) = operand.as_instruction_value().filter(|needed| later.contains(&key(*needed))) else {
            continue;
        };
        if cone.contains(&needed) {
            continue;
        }
        if kind(needed) != Kind::Address || !movable(needed, later, cone) {
            return false;
        }
    }
    cone.push(instruction);
    true
}

fn key(instruction: InstructionValue<'_>) -> usize {
    instruction.as_value_ref().addr()
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// A plain load.
    Load,
    /// Cheap and without side effects, as in address computations.
    Address,
    /// ptxas expands it to code with a branch.
    Split,
    /// It may write memory, wait for other threads, or not return.
    Clobber,
    Other,
}

#[expect(clippy::wildcard_enum_match_arm, reason = "LLVM's opcodes")]
fn kind(instruction: InstructionValue<'_>) -> Kind {
    use InstructionOpcode as Op;
    match instruction.get_opcode() {
        Op::Load => {
            let volatile = instruction.get_volatile().unwrap_or(true);
            let atomic = instruction.get_atomic_ordering().is_ok_and(|order| order != AtomicOrdering::NotAtomic);
            if volatile || atomic { Kind::Clobber } else { Kind::Load }
        }
        Op::GetElementPtr | Op::Add | Op::Sub | Op::Mul | Op::Shl | Op::Or | Op::ZExt | Op::SExt | Op::Trunc => {
            Kind::Address
        }
        Op::FDiv | Op::FRem | Op::UDiv | Op::SDiv | Op::URem | Op::SRem => Kind::Split,
        Op::Store | Op::AtomicRMW | Op::AtomicCmpXchg | Op::Fence | Op::VAArg => Kind::Clobber,
        Op::Call => called(instruction),
        _ => Kind::Other,
    }
}

/// The kind of a call. A load may move above a call only if the callee is declared to return and not to access memory.
fn called(instruction: InstructionValue<'_>) -> Kind {
    let callee = CallSiteValue::try_from(instruction).ok().and_then(CallSiteValue::get_called_fn_value);
    let Some(callee) = callee else { return Kind::Clobber };
    let attribute = |name| callee.get_enum_attribute(AttributeLoc::Function, Attribute::get_named_enum_kind_id(name));
    let no_memory = attribute("memory").is_some_and(|memory| memory.get_enum_value() == 0);
    if !no_memory || attribute("willreturn").is_none() || attribute("convergent").is_some() {
        return Kind::Clobber;
    }
    let name = callee.get_name().to_bytes();
    if [&b"llvm.sqrt."[..], b"llvm.nvvm.sqrt.rn"].iter().any(|split| name.starts_with(split)) {
        Kind::Split
    } else {
        Kind::Other
    }
}
