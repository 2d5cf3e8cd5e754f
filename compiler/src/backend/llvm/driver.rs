//! Compiles a built LLVM module to code: links the math library, then runs the verifier, LLVM's passes and the code
//! generator.

#![expect(unsafe_code, reason = "LLVM's C interface, for lazy bitcode, which inkwell has not")]

use std::{ffi::CStr, mem::ManuallyDrop, ptr};

use inkwell::{
    attributes::AttributeLoc,
    context::{AsContextRef, Context},
    llvm_sys::{bit_reader::LLVMGetBitcodeModuleInContext2, core::LLVMCreateMemoryBufferWithMemoryRange},
    module::{Linkage, Module},
    targets::FileType,
};

use super::{
    Library, ModuleContext, Result, internal,
    shim::{self, Depth, LeakyModule, Machine},
    size::Bulk,
};
use crate::{
    stage::{self, Stage},
    stop,
};

/// The scalar functions of libclc, extracted by `build.rs`. Aligned, because LLVM reads bitcode in words.
static LIBCLC: Aligned<[u8; include_bytes!(concat!(env!("OUT_DIR"), "/libclc.bc")).len()]> =
    Aligned(*include_bytes!(concat!(env!("OUT_DIR"), "/libclc.bc")));

#[repr(align(16))]
struct Aligned<T>(T);

/// How to compile a built module.
#[derive(Debug)]
pub(crate) struct Job<'a> {
    /// The pass pipeline, for example `default<O3>`.
    pub passes: &'a str,
    /// Whether the passes use the costs of PTX instructions.
    pub costs_of_ptx: bool,
    /// The size class of the kernel.
    pub bulk: Bulk,
    /// The target's changes to the module after the passes.
    pub legalize: fn(&ModuleContext<'_, '_>) -> Result<()>,
    /// The file types to emit, in order.
    pub emit: &'a [FileType],
    /// Whether to return the LLVM IR that the code generator gets.
    pub keep_llvm: bool,
    /// Whether to return the LLVM IR that the passes get; the code is then empty.
    pub unoptimized: bool,
    /// String attributes for the functions of the library, the same as the back end gives to its own functions.
    pub attributes: &'a [(&'a str, &'a str)],
    /// The function whose stack use to compute, if any.
    pub depth_of: Option<&'a str>,
}

/// The result of a [`Job`].
#[derive(Debug)]
pub(crate) struct Finished {
    /// One string or object file for each of [`Job::emit`].
    pub code: Vec<Vec<u8>>,
    /// LLVM IR as the code generator gets it; of an [unoptimized](Job::unoptimized) job as the passes get it.
    pub llvm: Option<String>,
    /// See [`Job::depth_of`].
    pub depth: Option<Depth>,
}

/// Links the library, verifies, optimizes, legalizes and emits. The module has the machine's triple and data layout.
pub(crate) fn finish(cx: &ModuleContext<'_, '_>, machine: &Machine, job: &Job<'_>) -> Result<Finished> {
    if let Some(debug) = &cx.debug {
        debug.finish();
    }
    link_library(cx, machine, job.attributes)?;
    stage::begin(Stage::Verifier);
    verify(cx.module)?;
    if job.unoptimized {
        let code = vec![Vec::new(); job.emit.len()];
        let depth = job.depth_of.map(|_| Depth { call: 0, around: 0 });
        return Ok(Finished { code, llvm: Some(cx.module.print_to_string().to_string()), depth });
    }
    stage::holds(|| shim::size(cx.module));
    let large = job.bulk.is_large();
    if large {
        shim::skip_slow_passes(job.bulk.is_huge());
    }
    stage::begin(Stage::LlvmPasses);
    if job.costs_of_ptx {
        machine.run_nvptx_passes(cx.module, job.passes, large)?;
    } else {
        machine.run_host_passes(cx.module, job.passes, large)?;
    }
    // If the compilation was cancelled, LLVM has skipped its remaining passes.
    stop::check();
    stage::begin(Stage::Legalize);
    (job.legalize)(cx)?;
    if large {
        shim::split_blocks(cx.module);
    }
    let keeps_addresses = job.bulk.keeps_addresses(shim::size(cx.module));
    if keeps_addresses {
        shim::keep_addresses();
    } else if !cx.ptx && cx.options.opt {
        shim::share_bases(cx.module);
    }
    let llvm = job.keep_llvm.then(|| cx.module.print_to_string().to_string());
    if job.depth_of.is_some() {
        shim::watch_frames(cx.module);
    }
    stage::holds(|| shim::size(cx.module));
    if cx.ptx {
        shim::keep_joins();
    }
    stage::begin(Stage::Code);
    let code = job.emit.iter().map(|&file_type| machine.emit(cx.module, file_type)).collect::<Result<Vec<_>>>()?;
    let depth = job.depth_of.map(|symbol| shim::deepest(cx.module, symbol)).transpose()?;
    Ok(Finished { code, llvm, depth })
}

/// Runs LLVM's verifier. A failure is an internal error of weft.
pub(crate) fn verify(module: &Module<'_>) -> Result<()> {
    module
        .verify()
        .or_else(|error| internal(format!("LLVM rejects the module: {error}\n\n{}", module.print_to_string())))
}

/// Links the functions of the math library that the module calls, if any.
fn link_library(cx: &ModuleContext<'_, '_>, machine: &Machine, attributes: &[(&str, &str)]) -> Result<()> {
    let wanted = cx.library_symbols();
    if wanted.is_empty() {
        return Ok(());
    }
    stage::begin(Stage::MathLibrary);
    let bytes: &[u8] = match (cx.library, &cx.options.libdevice) {
        (Library::Libdevice, Some(bytes)) => bytes,
        (Library::Libdevice, None) => return internal("libdevice is wanted but not given"),
        (Library::Libclc, _) => &LIBCLC.0,
    };
    let library = lazy_bitcode(cx.types.context, bytes, c"math")?;
    machine.prepare(&library);
    for function in library.get_functions() {
        if function.as_global_value().is_declaration() {
            continue;
        }
        // The linker takes a `linkonce_odr` definition only if the module refers to it.
        if function.get_linkage() == Linkage::External {
            function.set_linkage(Linkage::LinkOnceODR);
        }
        // These attributes describe the build of libclc. The target machine's own settings apply instead.
        for key in ["target-cpu", "target-features", "frame-pointer", "stack-protector-buffer-size"] {
            function.remove_string_attribute(AttributeLoc::Function, key);
        }
        for (key, value) in attributes {
            cx.string_attribute(function, key, value);
        }
    }
    shim::link(cx.module, library)?;
    for name in wanted {
        match cx.module.get_function(&name) {
            Some(function) if !function.as_global_value().is_declaration() => {}
            _ => return internal(format!("the math library has no function {name}")),
        }
    }
    if cx.library == Library::Libclc {
        cx.saturate_conversions()?;
        if cx.options.reproducible {
            shim::decide_floats(cx.module);
        }
    }
    for function in cx.module.get_functions() {
        if function.get_linkage() == Linkage::LinkOnceODR {
            function.set_linkage(Linkage::Internal);
        }
    }
    Ok(())
}

/// A module that reads a function's body only on demand. It refers to `bytes` until it is linked.
pub(crate) fn lazy_bitcode<'ctx>(context: &'ctx Context, bytes: &[u8], name: &CStr) -> Result<LeakyModule<'ctx>> {
    // SAFETY: the bytes outlive this compilation, and thus the buffer's module.
    let buffer = unsafe { LLVMCreateMemoryBufferWithMemoryRange(bytes.as_ptr().cast(), bytes.len(), name.as_ptr(), 0) };
    let mut module = ptr::null_mut();
    // SAFETY: context and buffer are alive; the call takes ownership of the buffer.
    let failed = unsafe { LLVMGetBitcodeModuleInContext2(context.as_ctx_ref(), buffer, &raw mut module) };
    if failed != 0 || module.is_null() {
        return internal(format!("LLVM cannot read the bitcode of {}", name.to_string_lossy()));
    }
    // SAFETY: the call succeeded, so `module` is a module of `context` that has no other owner.
    let module = unsafe { Module::new(module) };
    Ok(ManuallyDrop::new(module))
}
