//! Line tables, which map instructions to lines of the user's file.
//!
//! inkwell's builder cannot create the compile unit that ptxas needs for optimized code, so LLVM is called directly.

#![expect(unsafe_code, reason = "LLVM's C interface, for debug information that inkwell cannot express")]

use std::ffi::{CString, c_char, c_int};

use inkwell::{
    builder::Builder,
    context::{AsContextRef, Context},
    llvm_sys::{
        core::{LLVMAddModuleFlag, LLVMSetCurrentDebugLocation2, LLVMValueAsMetadata},
        debuginfo::{
            LLVMCreateDIBuilder, LLVMDIBuilderCreateDebugLocation, LLVMDIBuilderCreateFile,
            LLVMDIBuilderCreateFunction, LLVMDIBuilderCreateLexicalBlockFile, LLVMDIBuilderCreateSubroutineType,
            LLVMDIBuilderFinalize, LLVMDebugMetadataVersion, LLVMDisposeDIBuilder, LLVMGetSubprogram,
            LLVMSetSubprogram,
        },
        prelude::{LLVMDIBuilderRef, LLVMMetadataRef},
    },
    module::Module,
    values::{AsValueRef, FunctionValue},
};

use super::{Result, shim::c_string};
use crate::source::{SourceMap, Span};

unsafe extern "C" {
    fn weft_debug_unit(
        builder: LLVMDIBuilderRef,
        file: LLVMMetadataRef,
        producer: *const c_char,
        optimised: c_int,
    ) -> LLVMMetadataRef;
}

/// Builds the line tables of one module.
#[derive(Debug)]
pub(crate) struct DebugInfo<'ctx> {
    builder: LLVMDIBuilderRef,
    context: &'ctx Context,
    /// One for each source file, in the order of their indices; never empty.
    files: Vec<LLVMMetadataRef>,
    subroutine: LLVMMetadataRef,
}

impl<'ctx> DebugInfo<'ctx> {
    /// Creates a compile unit for all source files.
    pub(crate) fn new(module: &Module<'ctx>, context: &'ctx Context, sources: &SourceMap) -> Result<Self> {
        // SAFETY: the module is alive, and outlives the builder, which `finish` or `drop` frees.
        let builder = unsafe { LLVMCreateDIBuilder(module.as_mut_ptr()) };
        let mut files = Vec::new();
        let names = sources.files().iter().map(|file| file.name.as_str()).chain(["<unknown>"]);
        for name in names {
            let name = c_string(&name.replace('\0', "?"))?;
            let length = name.as_bytes().len();
            // SAFETY: the builder is alive and the strings' lengths are passed; LLVM copies the strings.
            files.push(unsafe { LLVMDIBuilderCreateFile(builder, name.as_ptr(), length, c"".as_ptr(), 0) });
        }
        let producer = concat!("weft ", env!("CARGO_PKG_VERSION"), "\0");
        let file = files.first().copied().unwrap_or(std::ptr::null_mut());
        // SAFETY: builder and file are alive; the producer ends with a NUL.
        unsafe { weft_debug_unit(builder, file, producer.as_ptr().cast(), 1) };
        // SAFETY: a subroutine type with no parameter types, which line tables do not need.
        let subroutine = unsafe { LLVMDIBuilderCreateSubroutineType(builder, file, std::ptr::null_mut(), 0, 0) };
        // SAFETY: the function takes nothing.
        let version = unsafe { LLVMDebugMetadataVersion() };
        for (key, value) in [("Debug Info Version", version), ("Dwarf Version", 2)] {
            let value = context.i32_type().const_int(u64::from(value), false);
            // SAFETY: the value is alive.
            let value = unsafe { LLVMValueAsMetadata(value.as_value_ref()) };
            let behavior = inkwell::llvm_sys::LLVMModuleFlagBehavior::LLVMModuleFlagBehaviorWarning;
            // SAFETY: the module is alive and the key's length is passed.
            unsafe { LLVMAddModuleFlag(module.as_mut_ptr(), behavior, key.as_ptr().cast(), key.len(), value) };
        }
        Ok(Self { builder, context, files, subroutine })
    }

    fn file(&self, span: Span) -> LLVMMetadataRef {
        let known = self.files.get(span.file as usize).or(self.files.last());
        known.copied().unwrap_or(std::ptr::null_mut())
    }

    /// Adds a function to the tables, at the line of its `def`.
    pub(crate) fn enter(&self, function: FunctionValue<'ctx>, name: &str, sources: &SourceMap, span: Span) {
        let line = sources.file(span).map_or(0, |file| file.line_column(span.start).0);
        let file = self.file(span);
        let name = CString::new(name).unwrap_or_default();
        let name_length = name.as_bytes().len();
        let symbol = function.get_name();
        let symbol_length = symbol.to_bytes().len();
        // SAFETY: builder, file and type are alive; the strings' lengths are passed; LLVM copies the strings.
        let subprogram = unsafe {
            LLVMDIBuilderCreateFunction(
                self.builder,
                file,
                name.as_ptr(),
                name_length,
                symbol.as_ptr(),
                symbol_length,
                file,
                line,
                self.subroutine,
                0,
                1,
                line,
                0,
                1,
            )
        };
        // SAFETY: the function is alive and `subprogram` describes it.
        unsafe { LLVMSetSubprogram(function.as_value_ref(), subprogram) };
    }

    /// Sets the source location of the instructions that `builder` emits next. The function was passed to `enter`
    /// before.
    pub(crate) fn locate(
        &self,
        builder: &Builder<'ctx>,
        function: FunctionValue<'ctx>,
        sources: &SourceMap,
        span: Span,
    ) {
        // SAFETY: the function is alive.
        let subprogram = unsafe { LLVMGetSubprogram(function.as_value_ref()) };
        if subprogram.is_null() {
            return;
        }
        let (line, column) = sources.file(span).map_or((0, 0), |file| file.line_column(span.start));
        // SAFETY: builder, subprogram and file are alive. The scope has its own file, because the span may be in
        // another file.
        let scope = unsafe { LLVMDIBuilderCreateLexicalBlockFile(self.builder, subprogram, self.file(span), 0) };
        let context = self.context.as_ctx_ref();
        // SAFETY: context and scope are alive; nothing is inlined here.
        let place = unsafe { LLVMDIBuilderCreateDebugLocation(context, line, column, scope, std::ptr::null_mut()) };
        // SAFETY: the builder is alive and the location belongs to its context.
        unsafe { LLVMSetCurrentDebugLocation2(builder.as_mut_ptr(), place) };
    }

    /// Completes the tables. Call it before the verifier.
    pub(crate) fn finish(&self) {
        // SAFETY: the builder is alive until `self` is dropped.
        unsafe { LLVMDIBuilderFinalize(self.builder) };
    }
}

impl Drop for DebugInfo<'_> {
    fn drop(&mut self) {
        // SAFETY: the builder is not used after this. A fatal error cannot have broken its references, because it is
        // complete before LLVM's passes run.
        unsafe { LLVMDisposeDIBuilder(self.builder) };
    }
}
