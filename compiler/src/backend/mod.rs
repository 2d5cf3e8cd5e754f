//! Code generation: from IR to code, through LLVM. The only module that uses inkwell.
//!
//! [`emit`] checks limits, passes the module to the target's back end and converts its errors to diagnostics. The back
//! ends share `llvm/`: statements, expressions, math, passes, and the shim that catches LLVM's fatal errors.

mod accesses;
pub mod host;
mod llvm;
mod nvptx;
#[cfg(test)]
mod testing;

use std::{borrow::Cow, fmt::Write, sync::Arc};

use weft_artifact::{Artifact, CodeFormat, Fault, Faults, HostEntry, Kernel, Slot, SlotType, SourceLocation};

use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{self, Circles, Function, LocalArray, Module, Op, SharedKind, StmtKind, Type, for_each_stmt},
    request::{Request, Target},
    source::Span,
    stop,
    target::{
        LOCAL_BYTES, STATIC_SHARED_BYTES,
        needs::{self, Chosen, NeedsError},
    },
};

use nvptx::copies::{self, CopyTarget};

pub use host::cpu::{
    check_printed as check_printed_passes, cpu as host_cpu, cpu_for_export, cpu_set as host_cpu_set,
    passes as plan_passes, without_passes as host_cpu_without_passes,
};

/// The version of the LLVM that the compiler contains: major, minor, patch.
pub fn llvm_version() -> (u32, u32, u32) {
    inkwell::support::get_llvm_version()
}

/// Code, and the intermediate representations that were requested.
#[derive(Clone, Debug)]
pub struct Emitted {
    /// The code and its ABI.
    pub artifact: Artifact,
    /// LLVM IR after LLVM's passes.
    pub llvm: Option<String>,
    /// Host assembly.
    pub asm: Option<String>,
}

/// Emits a verified module for the request's target.
///
/// # Errors
///
/// As [`check`]; `E0901`, an internal error of weft, with LLVM's message and the IR.
pub fn emit(module: &Module, request: &Request) -> Result<Emitted, Diagnostic> {
    check(module, request)?;
    let emitted = match &request.target {
        Target::Sm(number, suffix) => {
            let chosen = written_for(module, request, *number, suffix)?;
            nvptx::emit(module, request, *number, chosen)
        }
        Target::Host(cpu) => host::emit(module, request, cpu),
    };
    // If the compilation was cancelled, the code generator has ended with a fatal error.
    stop::check();
    emitted.map_err(|error| fault(module, request, &error))
}

/// Describes the kernel of a verified module for a GPU, without emitting code.
///
/// # Errors
///
/// As [`check`]; `E0901` if there is no kernel.
pub fn describe(module: &Module, request: &Request) -> Result<Emitted, Diagnostic> {
    check(module, request)?;
    let (_, kernel) = kernel_of(module).map_err(|error| fault(module, request, &error))?;
    let kernels = vec![kernel_record(module, kernel, request, None)];
    let target = request.target.to_string();
    let artifact = Artifact { format: CodeFormat::Ptx, target, code: Vec::new(), kernels };
    Ok(Emitted { artifact, llvm: None, asm: None })
}

/// The names of the transformations in the plan of a verified module's kernel for the host, sorted; none for a GPU.
/// Emits no code.
///
/// # Errors
///
/// As [`check`]; `E0901` if there is no kernel.
pub fn plan_features(module: &Module, request: &Request) -> Result<Vec<&'static str>, Diagnostic> {
    check(module, request)?;
    match &request.target {
        Target::Sm(..) => Ok(Vec::new()),
        Target::Host(cpu) => {
            host::features(module, &request.options, cpu).map_err(|error| fault(module, request, &error))
        }
    }
}

/// The text form of the plan of a verified module's kernel for the host; empty for a GPU. Emits no code.
///
/// # Errors
///
/// As [`check`]; `E0901` if there is no kernel.
pub fn plan_text(module: &Module, request: &Request) -> Result<String, Diagnostic> {
    check(module, request)?;
    match &request.target {
        Target::Sm(..) => Ok(String::new()),
        Target::Host(cpu) => {
            host::plan_text(module, &request.options, cpu).map_err(|error| fault(module, request, &error))
        }
    }
}

/// What the planner did with each parallel region, loop and access of a verified module's kernel for the host, and why
/// it left loops as they are; none for a GPU. Emits no code.
///
/// # Errors
///
/// As [`plan_text`].
pub fn plan_remarks(module: &Module, request: &Request) -> Result<Vec<String>, Diagnostic> {
    check(module, request)?;
    match &request.target {
        Target::Sm(..) => Ok(Vec::new()),
        Target::Host(cpu) => {
            host::remarks(module, &request.options, cpu).map_err(|error| fault(module, request, &error))
        }
    }
}

/// The text forms that the plan of a verified module's kernel has after `passes`; empty for a GPU. Emits no code.
///
/// # Errors
///
/// As [`plan_text`].
pub fn plan_trace(module: &Module, request: &Request, passes: &[String]) -> Result<String, Diagnostic> {
    check(module, request)?;
    match &request.target {
        Target::Sm(..) => Ok(String::new()),
        Target::Host(cpu) => {
            host::plan_trace(module, &request.options, cpu, passes).map_err(|error| fault(module, request, &error))
        }
    }
}

/// The report of an internal error.
fn fault(module: &Module, request: &Request, error: &llvm::Error) -> Diagnostic {
    let span = module.kernel().map_or_else(Span::default, |kernel| kernel.span);
    let text = match error {
        llvm::Error::Fatal(text) | llvm::Error::Internal(text) => text,
        llvm::Error::NotInNvvm(part) => {
            return Diagnostic::error(Code::NotInTarget, span, format!("LTO-IR cannot express `{part}`"))
                .help("compile to PTX, which nvJitLink links, too");
        }
    };
    Diagnostic::error(Code::Internal, span, format!("weft cannot emit code for {}: {text}", request.target))
        .note(format!("weft's IR:\n{module}"))
}

/// The size of the statically sized shared arrays, laid out in order.
fn shared_bytes(module: &Module) -> u64 {
    let counted = module.shared.iter().filter(|(_, array)| array.kind != SharedKind::Staged);
    counted.fold(0, |end, (_, array)| {
        let size = array.len.saturating_mul(array.elem.size_bytes());
        end.next_multiple_of(array.align.max(1)).saturating_add(size)
    })
}

/// Checks the limits of the targets.
///
/// # Errors
///
/// `E0305` and `E0306` if the shared arrays or a thread's local arrays do not fit, `E0308` for PTX that the target does
/// not support.
pub fn check(module: &Module, request: &Request) -> Result<(), Diagnostic> {
    check_shared(module)?;
    check_local(local_arrays(module))?;
    match request.target {
        Target::Sm(number, suffix) => {
            check_instructions(module, request, number, suffix)?;
            written_for(module, request, number, suffix).map(drop)
        }
        Target::Host(_) => Ok(()),
    }
}

/// Checks that an SM has the instructions of the module's products of matrices of a warp, of its asynchronous copies and of
/// its operations of clusters.
fn check_instructions(module: &Module, request: &Request, number: u32, suffix: &'static str) -> Result<(), Diagnostic> {
    let (mut found, target) = (Ok(()), CopyTarget::of(module, number));
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| {
            let instruction = if let StmtKind::Op { op: Op::Multiply(product), .. } = &stmt.kind
                && !product.tile.is_of_warpgroup()
            {
                format!("{};", product.tile.ptx())
            } else if let StmtKind::Op { op: Op::AsyncCopy(copy), .. } = &stmt.kind {
                copies::text(target, *copy)
            } else if let StmtKind::Op { op: Op::Cluster(cluster), .. } = &stmt.kind {
                cluster.ptx().to_owned()
            } else {
                return;
            };
            if found.is_ok() {
                let chosen = needs::choose(number, suffix, None, std::iter::once(instruction.as_str()));
                found = chosen.map(drop).map_err(|(_, lacks)| {
                    Diagnostic::error(Code::NotInTarget, stmt.span, lacks.to_string())
                        .label(format!("the kernel is compiled for {}", request.target))
                        .help("compile for a target that supports it")
                });
            }
        });
    }
    found
}

/// The PTX that decides about the suffix of an SM and the ISA version, and its spans: the program's own, operations of a
/// warpgroup, products and conversions of floats of 8 bits, barriers in shared memory and bulk copies, and operations of
/// clusters.
fn deciding_ptx(module: &Module, number: u32, driver: Option<(u32, u32)>) -> Vec<(Cow<'_, str>, Span)> {
    let inline = module.inline_ptx.iter().map(|(_, ptx)| (Cow::from(&ptx.text), ptx.span));
    let mut found: Vec<_> = inline.collect();
    let target = CopyTarget::of(module, number);
    for (_, function) in module.functions.iter() {
        // Without the instruction, a conversion is other code.
        for (_, expr) in function.exprs.iter() {
            if let ir::ExprKind::Math(name, _) = &expr.kind
                && let Some(text) = nvptx::bytes::instruction(*name, number, driver)
            {
                found.push((text.into(), expr.span));
            }
        }
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Op { op: Op::Multiply(product), .. } = &stmt.kind
                && (product.tile.is_of_warpgroup() || product.tile.kind().is_of_bytes())
            {
                found.push((format!("{};", product.tile.ptx()).into(), stmt.span));
            } else if let StmtKind::Op { op: Op::AsyncCopy(copy), .. } = &stmt.kind
                && (copy.has_barrier() || copy.is_store())
            {
                found.push((copies::text(target, *copy).into(), stmt.span));
            } else if let StmtKind::Op { op: Op::Cluster(cluster), .. } = &stmt.kind {
                found.push((cluster.ptx().into(), stmt.span));
            } else if let StmtKind::Op { op: Op::SetRegisters { .. }, .. } = &stmt.kind {
                found.push(("setmaxnreg;".into(), stmt.span));
            } else if let StmtKind::Op { op: Op::ProductWait(_), .. } = &stmt.kind {
                found.push(("wgmma.wait_group.sync.aligned 0;".into(), stmt.span));
            }
        });
    }
    found
}

/// Chooses the target suffix and the ISA version of the PTX for an SM.
fn written_for(module: &Module, request: &Request, number: u32, suffix: &'static str) -> Result<Chosen, Diagnostic> {
    let driver = request.options.driver_isa;
    let snippets = deciding_ptx(module, number, driver);
    needs::choose(number, suffix, driver, snippets.iter().map(|(text, _)| text.as_ref())).map_err(|(place, lacks)| {
        let span = snippets.get(place).map_or_else(Span::default, |(_, span)| *span);
        let diagnostic = Diagnostic::error(Code::NotInTarget, span, lacks.to_string());
        match lacks.why {
            NeedsError::Driver { .. } => return diagnostic.help("update NVIDIA's driver, or do not use the operation"),
            NeedsError::Writer { .. } => return diagnostic.help("do without it"),
            NeedsError::NoTarget => {
                return diagnostic
                    .help("use the instruction that replaces it on newer GPUs, such as `vote.sync` for `vote`");
            }
            NeedsError::Target(_) => {}
        }
        let diagnostic = diagnostic.label(format!("the kernel is compiled for {}", request.target));
        if driver.is_some() {
            return diagnostic
                .help("write it in Python, too, and choose by the device: this GPU does not support the operation");
        }
        diagnostic.help("compile for a target that supports it, or do not use the operation")
    })
}

/// The local arrays of all functions.
fn local_arrays(module: &Module) -> impl Iterator<Item = &LocalArray> {
    module.functions.iter().flat_map(|(_, function)| function.local_arrays.iter().map(|(_, array)| array))
}

fn size_of(array: &LocalArray) -> u64 {
    array.len.saturating_mul(array.elem.size_bytes())
}

/// The size of the local arrays of all functions in sum: most functions are inlined, and the threads of the CPU have
/// their own stacks.
fn local_bytes(module: &Module) -> u64 {
    local_arrays(module).map(size_of).fold(0, u64::saturating_add)
}

/// Checks the limit of static shared memory. It is the same for every SM, and for the host, which emulates one.
fn check_shared(module: &Module) -> Result<(), Diagnostic> {
    let bytes = shared_bytes(module);
    if bytes <= STATIC_SHARED_BYTES {
        return Ok(());
    }
    let size = |elem: weft_artifact::Scalar, len: u64| len.saturating_mul(elem.size_bytes());
    let counted = module.shared.iter().filter(|(_, array)| array.kind != SharedKind::Staged);
    let Some((_, largest)) = counted.max_by_key(|(_, array)| size(array.elem, array.len)) else {
        return Ok(());
    };
    let message =
        format!("the kernel's shared arrays take {bytes} bytes, but a block can use at most {STATIC_SHARED_BYTES}");
    let mut diagnostic = Diagnostic::error(Code::SharedTooLarge, largest.span, message)
        .label(format!("this one takes {} bytes", size(largest.elem, largest.len)))
        .help(
            "make the arrays smaller, or use dynamic shared memory: shape 0, and pass the number of bytes at the \
            launch",
        );
    if largest.kind == SharedKind::Coop {
        diagnostic =
            diagnostic.help("limit the threads of a block with `launch_bounds`, or give each thread fewer items");
    }
    for (_, array) in module.shared.iter() {
        if array.span != largest.span {
            diagnostic = diagnostic.also(array.span, format!("this one takes {} bytes", size(array.elem, array.len)));
        }
    }
    Err(diagnostic)
}

/// Checks the limit of local memory per thread, which is the same for GPU and CPU.
fn check_local<'a>(arrays: impl Iterator<Item = &'a LocalArray>) -> Result<(), Diagnostic> {
    let arrays: Vec<_> = arrays.collect();
    let bytes = arrays.iter().map(|&array| size_of(array)).fold(0, u64::saturating_add);
    let largest = arrays.into_iter().max_by_key(|array| size_of(array)).filter(|_| bytes > LOCAL_BYTES);
    let Some(largest) = largest else { return Ok(()) };
    let message = format!("the kernel's local arrays take {bytes} bytes, but a thread can use at most {LOCAL_BYTES}");
    Err(Diagnostic::error(Code::LocalTooLarge, largest.span, message)
        .label(format!("this one takes {} bytes", size_of(largest)))
        .help("make the arrays smaller, or pass an array to the kernel and give each thread a part of it"))
}

/// The ABI record of the module's kernel.
fn kernel_record(module: &Module, kernel: &Function, request: &Request, host: Option<HostEntry>) -> Kernel {
    let slots = kernel
        .slots
        .iter()
        .zip(&kernel.params)
        .map(|(slot, &local)| Slot { source: slot.clone(), ty: slot_type(kernel.locals[local].ty) });
    Kernel {
        name: request.function.ast.name.clone(),
        symbol: symbol(&kernel.name),
        params: module.params.clone(),
        slots: slots.collect(),
        shared_bytes: shared_bytes(module),
        local_bytes: local_bytes(module),
        const_bytes: module.constants.iter().map(|(_, array)| array.bytes.len() as u64).sum(),
        max_threads: request.options.launch_bounds.map(|bounds| bounds.threads),
        dynamic_shared: module.dynamic_shared,
        cooperative: module.cooperative,
        calls_itself: !Circles::of(module).is_empty(),
        can_bound_stores: module.can_bound_stores && host.is_some(),
        coarsening: module.coarsening.clone(),
        gains: module.gains,
        faults: faults(module, request).map(Arc::new),
        prints: false,
        sanitize: None,
        host,
    }
}

/// The faults that a module reports.
fn faults(module: &Module, request: &Request) -> Option<Faults> {
    if module.faults.is_empty() {
        return None;
    }
    let location = |function: &str, span: Span| {
        let file = module.sources.files().get(span.file as usize);
        let line = file.map_or(0, |file| file.line_column(span.start).0);
        let file = file.map(|file| file.name.clone()).unwrap_or_default();
        SourceLocation { file, line, function: function.to_owned() }
    };
    let fault = |fault: &ir::FaultSite| Fault {
        class: fault.class.clone(),
        args: fault.args.clone(),
        numbers: fault.numbers,
        location: location(&fault.function, fault.span),
    };
    Some(Faults {
        faults: module.faults.iter().map(|(_, known)| fault(known)).collect(),
        calls: module.call_sites.iter().map(|(_, call)| location(&call.function, call.span)).collect(),
        at_launch: request.options.debug,
    })
}

/// The slot type of a parameter.
fn slot_type(ty: Type) -> SlotType {
    match ty {
        Type::Scalar(scalar) => SlotType::Scalar(scalar),
        Type::Ptr(..) => SlotType::Pointer,
    }
}

/// The module's kernel.
fn kernel_of(module: &Module) -> llvm::Result<(ir::FuncId, &Function)> {
    let id = module.kernel.map_or_else(|| llvm::internal("the module has no kernel"), Ok)?;
    Ok((id, &module.functions[id]))
}

/// The symbol of a function: its name if that is a PTX identifier; otherwise each other character is replaced by its
/// code point between `$`. A name in weft's IR has no `$`, so symbols are unique.
pub(crate) fn symbol(name: &str) -> String {
    let mut symbol = String::with_capacity(name.len());
    for character in name.chars() {
        if character.is_ascii_alphanumeric() || character == '_' {
            symbol.push(character);
        } else {
            let _ = write!(symbol, "${:x}$", u32::from(character)); // writing to a String cannot fail
        }
    }
    // A PTX identifier starts with a letter, or with `_` or `$` followed by another character. PTX's constant `WARP_SZ`
    // and the function `vprintf` must not be redefined.
    let starts_badly = symbol.starts_with(|first: char| first.is_ascii_digit());
    if starts_badly || symbol.chars().all(|c| c == '_') || matches!(symbol.as_str(), "WARP_SZ" | "vprintf") {
        symbol.insert_str(0, "$_");
    }
    symbol
}
