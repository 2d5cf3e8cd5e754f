//! The promise to LLVM that the threads of a loop may run side by side: an access group on every access, and the loop
//! that names the group. LLVM then vectorises without asking whether two arrays overlap.
//!
//! Threads of a block are not ordered between barriers, so a program in which two of them touch one place, and one of
//! them writes, means nothing, unless it uses atomics or fences: loops with these make no promise.

#![expect(unsafe_code, reason = "LLVM's C interface, for metadata that inkwell cannot express")]

use std::{mem::ManuallyDrop, ptr};

use inkwell::{
    basic_block::BasicBlock,
    context::{AsContextRef, Context},
    llvm_sys::{
        bit_reader::LLVMGetBitcodeModuleInContext2,
        core::{
            LLVMCreateMemoryBufferWithMemoryRange, LLVMGetNamedMetadataOperands, LLVMMDNodeInContext2,
            LLVMMDStringInContext2, LLVMMetadataAsValue, LLVMSetMetadata, LLVMValueAsMetadata,
        },
        debuginfo::{LLVMMetadataReplaceAllUsesWith, LLVMTemporaryMDNode},
        prelude::LLVMMetadataRef,
    },
    module::Module,
    values::{AsValueRef, InstructionOpcode, InstructionValue},
};

use crate::backend::llvm::{Result, internal};

/// A module with nothing in it but the named metadata `weft.access`, whose operand is a distinct node without
/// operands: an access group. LLVM's C interface can make none.
static GROUP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/access_group.bc"));

/// How many threads [`Shape::Few`] are.
const FEW: u64 = 4;

/// What LLVM is to make of a loop of threads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// As it sees fit.
    Loop,
    /// Vectors, and these one after the other.
    Vectors,
    /// The threads' operations one after the other.
    Straight,
    /// A loop of single threads.
    Single,
    /// A loop of a few single threads at a time.
    Few,
    /// A loop that stays as it is.
    Rolled,
}

/// Makes the promise for loops of one context.
#[derive(Debug)]
pub(crate) struct Parallel<'ctx> {
    context: &'ctx Context,
    group: LLVMMetadataRef,
    access_kind: u32,
    loop_kind: u32,
    /// The CPU loads and stores vectors of all types under a mask.
    pub masks: bool,
}

impl<'ctx> Parallel<'ctx> {
    /// Makes the access group, for a CPU whose vectors have masks or not.
    pub(crate) fn new(context: &'ctx Context, masks: bool) -> Result<Self> {
        let raw = context.as_ctx_ref();
        // SAFETY: the bytes are static; the module that reads them is read to its end below.
        let buffer =
            unsafe { LLVMCreateMemoryBufferWithMemoryRange(GROUP.as_ptr().cast(), GROUP.len(), c"access".as_ptr(), 0) };
        let mut module = ptr::null_mut();
        // SAFETY: context and buffer are alive; the call takes the buffer over.
        let failed = unsafe { LLVMGetBitcodeModuleInContext2(raw, buffer, &raw mut module) };
        if failed != 0 || module.is_null() {
            return internal("LLVM cannot read the access group");
        }
        // SAFETY: the call succeeded, so `module` is a module of `context`, which frees it.
        let module = ManuallyDrop::new(unsafe { Module::new(module) });
        if module.get_global_metadata_size("weft.access") != 1 {
            return internal("the access group is missing");
        }
        let mut operand = ptr::null_mut();
        // SAFETY: the named metadata has one operand, so one value is written.
        unsafe { LLVMGetNamedMetadataOperands(module.as_mut_ptr(), c"weft.access".as_ptr(), &raw mut operand) };
        // SAFETY: the operand is a metadata node wrapped as a value.
        let group = unsafe { LLVMValueAsMetadata(operand) };
        let access_kind = context.get_kind_id("llvm.access.group");
        let loop_kind = context.get_kind_id("llvm.loop");
        Ok(Self { context, group, access_kind, loop_kind, masks })
    }

    /// Tells LLVM of a loop of threads, all blocks from `first` on to the end of the function: whether they may run side by side,
    /// and what is to become of it.
    pub(crate) fn promise(&self, first: BasicBlock<'ctx>, back: InstructionValue<'ctx>, parallel: bool, shape: Shape) {
        let mut properties = Vec::new();
        if parallel {
            self.mark_accesses(first);
            properties.push(self.node(&mut [self.text("llvm.loop.parallel_accesses"), self.group]));
        }
        match shape {
            Shape::Loop => {}
            Shape::Vectors => {
                // Of a constant number of turns LLVM would make straight code before it looks for vectors.
                let unrolled = self.node(&mut [self.text("llvm.loop.unroll.full")]);
                let vectors = self.node(&mut [self.text("llvm.loop.isvectorized")]);
                let then = self.text("llvm.loop.vectorize.followup_all");
                properties.push(self.node(&mut [self.text("llvm.loop.unroll.disable")]));
                properties.push(self.node(&mut [then, unrolled, vectors]));
            }
            Shape::Single => {
                let no = self.constant(false);
                properties.push(self.node(&mut [self.text("llvm.loop.vectorize.enable"), no]));
            }
            Shape::Few => {
                // SAFETY: the constant is one of the context.
                let few = unsafe { LLVMValueAsMetadata(self.context.i32_type().const_int(FEW, false).as_value_ref()) };
                properties.push(self.node(&mut [self.text("llvm.loop.unroll.count"), few]));
            }
            Shape::Rolled => properties.push(self.node(&mut [self.text("llvm.loop.unroll.disable")])),
            Shape::Straight => properties.push(self.node(&mut [self.text("llvm.loop.unroll.full")])),
        }
        if !properties.is_empty() {
            self.set_properties(back, &properties);
        }
    }

    /// Puts all accesses of all blocks from `first` on, to the end of the function, into the access group.
    fn mark_accesses(&self, first: BasicBlock<'ctx>) {
        let context = self.context.as_ctx_ref();
        // SAFETY: the group is a node of the context.
        let group = unsafe { LLVMMetadataAsValue(context, self.group) };
        let mut block = Some(first);
        while let Some(present) = block {
            let mut instruction = present.get_first_instruction();
            while let Some(access) = instruction {
                use InstructionOpcode::{Call, Load, Store};
                if matches!(access.get_opcode(), Load | Store | Call) {
                    // SAFETY: the instruction is alive, and the kind is one of the context's.
                    unsafe { LLVMSetMetadata(access.as_value_ref(), self.access_kind, group) };
                }
                instruction = access.get_next_instruction();
            }
            block = present.get_next_basic_block();
        }
    }

    fn constant(&self, value: bool) -> LLVMMetadataRef {
        let value = self.context.bool_type().const_int(u64::from(value), false);
        // SAFETY: the constant is one of the context.
        unsafe { LLVMValueAsMetadata(value.as_value_ref()) }
    }

    fn text(&self, text: &str) -> LLVMMetadataRef {
        // SAFETY: the text is given with its length; LLVM copies it.
        unsafe { LLVMMDStringInContext2(self.context.as_ctx_ref(), text.as_ptr().cast(), text.len()) }
    }

    /// Gives a loop its properties, by its back branch.
    fn set_properties(&self, back: InstructionValue<'ctx>, properties: &[LLVMMetadataRef]) {
        let context = self.context.as_ctx_ref();
        // SAFETY: no operands are read from the null pointer, because their number is zero.
        let place = unsafe { LLVMTemporaryMDNode(context, ptr::null_mut(), 0) };
        let mut operands = vec![place];
        operands.extend(properties);
        let id = self.node(&mut operands);
        // A loop's identity is a node whose first operand is itself.
        // SAFETY: `place` is temporary, and is gone after this.
        unsafe { LLVMMetadataReplaceAllUsesWith(place, id) };
        // SAFETY: the node is one of the context.
        let id = unsafe { LLVMMetadataAsValue(context, id) };
        // SAFETY: the instruction is alive, and the kind is one of the context's.
        unsafe { LLVMSetMetadata(back.as_value_ref(), self.loop_kind, id) };
    }

    fn node(&self, operands: &mut [LLVMMetadataRef]) -> LLVMMetadataRef {
        // SAFETY: the operands are nodes of the context, given with their number.
        unsafe { LLVMMDNodeInContext2(self.context.as_ctx_ref(), operands.as_mut_ptr(), operands.len()) }
    }
}
