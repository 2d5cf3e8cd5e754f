//! Call chains in line tables. LLVM 22 writes a `.loc` of PTX without the calls through which the code was inlined. So the
//! column of inlined code is a number, and comments at the start of the PTX say which calls it is.

#![expect(unsafe_code, reason = "LLVM's C interface, for debug information that inkwell cannot express")]

use std::{collections::HashMap, ffi::c_uint, fmt::Write as _};

use inkwell::{
    basic_block::BasicBlock,
    context::{AsContextRef, Context},
    llvm_sys::{
        debuginfo::{
            LLVMDIBuilderCreateDebugLocation, LLVMDIFileGetFilename, LLVMDILocationGetInlinedAt, LLVMDILocationGetLine,
            LLVMDILocationGetScope, LLVMDIScopeGetFile, LLVMInstructionGetDebugLoc, LLVMInstructionSetDebugLoc,
        },
        prelude::LLVMMetadataRef,
    },
    module::Module,
    values::{AsValueRef, FunctionValue},
};

/// The first column that is a number of a chain: columns of source code are less. LLVM has columns of 16 bits.
const FIRST: usize = 1 << 15;
/// The end of these columns.
const END: usize = 1 << 16;

/// A call, by its file and line; the inner one first in a chain.
type Call = (String, c_uint);

/// Replaces the columns of inlined instructions, and adds the comments.
pub(crate) fn number(context: &Context, module: &Module<'_>) {
    let (mut numbers, mut comments) = (HashMap::<Vec<Call>, usize>::new(), String::new());
    let blocks = module.get_functions().flat_map(FunctionValue::get_basic_block_iter);
    for instruction in blocks.flat_map(BasicBlock::get_instructions) {
        // SAFETY: the instruction is alive. Its location, if it has one, is metadata of the module.
        let location = unsafe { LLVMInstructionGetDebugLoc(instruction.as_value_ref()) };
        if location.is_null() {
            continue;
        }
        let chain = chain(location);
        if chain.is_empty() {
            continue;
        }
        let next = FIRST + numbers.len();
        let number = *numbers.entry(chain).or_insert_with_key(|chain| {
            if next < END {
                let calls: Vec<String> = chain.iter().map(|(file, line)| format!("\"{file}\" {line}")).collect();
                let _never_fails = writeln!(comments, "// weft: column {next} is inlined at {}", calls.join(", "));
            }
            next
        });
        if number >= END {
            continue;
        }
        // SAFETY: the location is alive.
        let line = unsafe { LLVMDILocationGetLine(location) };
        // SAFETY: the location is alive. A location has a scope.
        let scope = unsafe { LLVMDILocationGetScope(location) };
        // SAFETY: the location is alive.
        let inlined_at = unsafe { LLVMDILocationGetInlinedAt(location) };
        let context = context.as_ctx_ref();
        // SAFETY: the scope and the call belong to the context, and are alive.
        let numbered = unsafe { LLVMDIBuilderCreateDebugLocation(context, line, number as c_uint, scope, inlined_at) };
        // SAFETY: the instruction and the new location are alive.
        unsafe { LLVMInstructionSetDebugLoc(instruction.as_value_ref(), numbered) };
    }
    if !comments.is_empty() {
        module.set_inline_assembly(&comments);
    }
}

/// The calls through which a location is inlined.
fn chain(location: LLVMMetadataRef) -> Vec<Call> {
    let mut calls = Vec::new();
    // SAFETY: the location is alive. The result is null, or the location of a call.
    let mut call = unsafe { LLVMDILocationGetInlinedAt(location) };
    while !call.is_null() {
        let mut length = 0;
        // SAFETY: the location is alive.
        let line = unsafe { LLVMDILocationGetLine(call) };
        // SAFETY: the location is alive.
        let scope = unsafe { LLVMDILocationGetScope(call) };
        // SAFETY: a location has a scope.
        let file = unsafe { LLVMDIScopeGetFile(scope) };
        let name = if file.is_null() {
            String::new()
        } else {
            // SAFETY: the file is alive, and LLVM writes the length of the name.
            let name = unsafe { LLVMDIFileGetFilename(file, &raw mut length) };
            let bytes: &[u8] = if length == 0 {
                &[]
            } else {
                // SAFETY: LLVM's string has this length and lives as long as the file.
                unsafe { std::slice::from_raw_parts(name.cast(), length as usize) }
            };
            // A comment is one line, and a name ends at a quotation mark.
            String::from_utf8_lossy(bytes).replace(['\n', '\r', '"'], "?")
        };
        calls.push((name, line));
        // SAFETY: as before the loop.
        call = unsafe { LLVMDILocationGetInlinedAt(call) };
    }
    calls
}
