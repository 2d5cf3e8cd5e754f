//! Loop metadata of thread loops: parallel accesses, and how LLVM compiles the loop.
//!
//! A parallel loop has all of its accesses in an access group, which the loop names (`llvm.loop.parallel_accesses`).
//! LLVM then vectorizes it without run-time checks whether pointers alias.
//!
//! This is legal because the threads of a block are not ordered between barriers: if two of them access one address and
//! one writes, the program has a data race, unless it uses atomic operations or fences. Loops with these are not
//! annotated.

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

use crate::backend::{
    host::plan::Vectors,
    llvm::{Result, internal},
};

/// The bitcode of a module that contains only the named metadata `weft.access`. Its operand is an access group: a
/// distinct node without operands, which LLVM's C interface cannot create.
static GROUP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/access_group.bc"));

/// Unroll factor of [`Shape::Few`].
const SHORT_UNROLL_FACTOR: u64 = 4;

/// How LLVM compiles a thread loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Shape {
    /// LLVM decides.
    Loop,
    /// Vectorized, then fully unrolled.
    Vectors,
    /// Fully unrolled before vectorization.
    Straight,
    /// Not vectorized.
    Single,
    /// Unrolled by [`SHORT_UNROLL_FACTOR`].
    Few,
    /// Not unrolled.
    Rolled,
    /// Of the few threads at a boundary: if it is long, `host/passes.cpp` neither vectorizes nor unrolls it.
    Boundary,
}

/// Annotates the loops of one LLVM context.
#[derive(Debug)]
pub(crate) struct Parallel<'ctx> {
    context: &'ctx Context,
    group: LLVMMetadataRef,
    access_kind: u32,
    loop_kind: u32,
    /// The vector properties of the planned CPU.
    pub vectors: Vectors,
}

impl<'ctx> Parallel<'ctx> {
    /// Creates the access group.
    pub(crate) fn new(context: &'ctx Context, vectors: Vectors) -> Result<Self> {
        let raw = context.as_ctx_ref();
        // SAFETY: the bytes are static, and the whole module is read from them below.
        let buffer =
            unsafe { LLVMCreateMemoryBufferWithMemoryRange(GROUP.as_ptr().cast(), GROUP.len(), c"access".as_ptr(), 0) };
        let mut module = ptr::null_mut();
        // SAFETY: context and buffer are alive; the call takes ownership of the buffer.
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
        Ok(Self { context, group, access_kind, loop_kind, vectors })
    }

    /// Annotates a thread loop: whether its accesses are parallel, and how LLVM compiles it. The loop consists of all
    /// basic blocks from `first` to the end of the function; `back` is its latch branch.
    pub(crate) fn promise(&self, first: BasicBlock<'ctx>, back: InstructionValue<'ctx>, parallel: bool, shape: Shape) {
        let mut properties = Vec::new();
        if parallel {
            self.mark_accesses(first);
            properties.push(self.node(&mut [self.text("llvm.loop.parallel_accesses"), self.group]));
        }
        match shape {
            Shape::Loop => {}
            Shape::Vectors => {
                // LLVM fully unrolls loops of a constant trip count before the vectorizer. Here it must unroll after
                // it.
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
                let few = unsafe {
                    LLVMValueAsMetadata(self.context.i32_type().const_int(SHORT_UNROLL_FACTOR, false).as_value_ref())
                };
                properties.push(self.node(&mut [self.text("llvm.loop.unroll.count"), few]));
            }
            Shape::Rolled => properties.push(self.node(&mut [self.text("llvm.loop.unroll.disable")])),
            Shape::Boundary => properties.push(self.node(&mut [self.text("weft.boundary")])),
            Shape::Straight => properties.push(self.node(&mut [self.text("llvm.loop.unroll.full")])),
        }
        if !properties.is_empty() {
            self.set_properties(back, &properties);
        }
    }

    /// Puts the accesses of all basic blocks from `first` to the end of the function into the access group.
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
        // SAFETY: the string is passed with its length; LLVM copies it.
        unsafe { LLVMMDStringInContext2(self.context.as_ctx_ref(), text.as_ptr().cast(), text.len()) }
    }

    /// Attaches properties to a loop, at its latch branch.
    fn set_properties(&self, back: InstructionValue<'ctx>, properties: &[LLVMMetadataRef]) {
        let context = self.context.as_ctx_ref();
        // SAFETY: no operands are read from the null pointer, because their number is zero.
        let place = unsafe { LLVMTemporaryMDNode(context, ptr::null_mut(), 0) };
        let mut operands = vec![place];
        operands.extend(properties);
        let id = self.node(&mut operands);
        // A loop ID is a node whose first operand is the node itself.
        // SAFETY: `place` is a temporary node, which is not used after this call.
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
