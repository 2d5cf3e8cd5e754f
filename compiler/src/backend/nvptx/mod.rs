//! The back end for NVIDIA GPUs, which emits PTX.
//!
//! A kernel has the calling convention `ptx_kernel` (71) and takes its slots in order. LLVM attributes specify the
//! launch bounds. LLVM reads `nvvm.annotations` only when it parses a module, so they have no effect on one that is
//! built in memory.

mod abi;
mod absolute;
mod approximate;
mod atomics;
pub(super) mod bytes;
mod calls;
mod clusters;
pub(super) mod copies;
mod divide;
mod export;
mod external;
mod fault;
mod grid;
mod hints;
mod hooks;
mod inline;
mod kernel;
mod loads;
mod matrix;
mod packed;
mod print;
mod proxy;
mod ptxas_workarounds;
mod reconverge;
#[cfg(test)]
mod tests;
mod unread;
mod waits;
mod warps;

use inkwell::{
    AddressSpace, OptimizationLevel,
    module::{FlagBehavior, Linkage},
    targets::{CodeModel, FileType, RelocMode},
};
use weft_artifact::{Artifact, CodeFormat, Kernel, PrintRing};

use super::{
    Emitted, kernel_of, kernel_record,
    llvm::{
        AddressSpaces, DebugInfo, FunctionEmitter, Halves, Library, ModuleContext, Result, Types,
        driver::{self, Finished, Job},
        inlined, internal,
        shim::{self, LeakyModule, Machine, MachineSpec},
        size::{self, Bulk},
    },
};
use crate::{
    ir::{Circles, Effects, FuncId, FunctionKind, Module},
    request::{Entry, GpuCode, Request},
    stage::{self, Stage},
    target::needs::{self, Chosen},
};

/// LLVM's address spaces. Local arrays are `alloca`s, which have the generic address space until LLVM infers the local
/// one.
const SPACES: AddressSpaces = AddressSpaces { global: 1, shared: 3, constant: 4, local: 0, generic: 0 };

/// A switch is lowered to comparisons. The threads of a warp diverge at a jump table (`brx.idx`) as at branches, but
/// the cases cannot be predicated. With jump tables, a traversal with four directions took 5 times as long on an H200.
const NO_JUMP_TABLES: (&str, &str) = ("no-jump-tables", "true");

/// LLVM's attribute for flushing denormals.
const FLUSH: (&str, &str) = ("denormal-fp-math-f32", "preserve-sign,preserve-sign");

/// LLVM's passes before a module is printed as NVVM IR: libNVVM optimizes it, but does not know which functions of
/// libdevice are for which SM.
const NVVM_PASSES: &str = "nvvm-reflect,function(mem2reg),globaldce";

/// Emits a module as PTX or NVVM IR for `sm_<number>` with the chosen suffix and ISA version.
pub(super) fn emit(module: &Module, request: &Request, number: u32, chosen: Chosen) -> Result<Emitted> {
    let Chosen { suffix, isa } = chosen;
    let (kernel_id, kernel) = kernel_of(module)?;
    stage::begin(Stage::SetUp);
    let (prints, finished) = shim::with_context(|context| {
        let cpu = format!("sm_{number}{suffix}");
        let features = isa.map(|(major, minor)| format!("+ptx{major}{minor}")).unwrap_or_default();
        let level = if request.options.opt { OptimizationLevel::Aggressive } else { OptimizationLevel::None };
        let machine = Machine::new(&MachineSpec {
            triple: "nvptx64-nvidia-cuda",
            cpu: &cpu,
            features: &features,
            level,
            reloc: RelocMode::Default,
            model: CodeModel::Default,
        })?;
        stage::begin(Stage::LlvmIr);
        let llvm_module = LeakyModule::new(context.create_module(&kernel.name));
        machine.prepare(&llvm_module);
        let library = match request.options.libdevice {
            // The host has no libdevice, so reproducible code uses libclc.
            Some(_) if !request.options.reproducible => Library::Libdevice,
            Some(_) | None => Library::Libclc,
        };
        if request.options.fastmath && library == Library::Libdevice {
            let on = context.i32_type().const_int(1, false);
            llvm_module.add_basic_value_flag("nvvm-reflect-ftz", FlagBehavior::Override, on);
        }
        let is_nvvm = matches!(request.options.gpu_code, GpuCode::NvvmIr { .. });
        let debug =
            (request.options.lineinfo && !is_nvvm).then(|| DebugInfo::new(&llvm_module, context, &module.sources));
        let halves = Halves::Native {
            bfloat_of_ints: needs::has(number, needs::BFLOAT_OF_INTEGERS),
            bfloat_fma: needs::has(number, needs::BFLOAT_FMA),
        };
        let types = Types { context, spaces: SPACES, halves };
        let mut cx = ModuleContext::new(types, &llvm_module, module, &request.options, library, debug.transpose()?);
        cx.ptx = true;
        build(&cx, kernel_id, (number, isa.unwrap_or_default()))?;
        let prints = cx.module.get_global(PrintRing::SYMBOL).is_some();
        if is_nvvm {
            let finished = nvvm_ir(&cx, &machine, request, number)?;
            machine.dispose();
            return Ok((prints, finished));
        }
        let job = Job {
            passes: if request.options.opt { "default<O3>" } else { "default<O0>" },
            costs_of_ptx: request.options.opt,
            bulk: size::bulk(module, 0),
            legalize,
            emit: &[FileType::Assembly],
            keep_llvm: request.keep.llvm,
            unoptimized: request.keep.unoptimized,
            attributes: if request.options.fastmath { &[FLUSH] } else { &[] },
            depth_of: None,
        };
        let finished = driver::finish(&cx, &machine, &job)?;
        machine.dispose();
        Ok((prints, finished))
    })?;
    let Some(code) = finished.code.into_iter().next() else { return internal("LLVM emitted nothing") };
    let (format, code) = match request.options.gpu_code {
        GpuCode::Ptx => (CodeFormat::Ptx, ptxas_workarounds::rewrite(code)),
        GpuCode::NvvmIr { .. } => (CodeFormat::NvvmIr, code),
    };
    let artifact = Artifact {
        format,
        target: format!("sm_{number}{suffix}"),
        code,
        // Software that calls exported functions or kernels describes them itself.
        kernels: match request.options.entry {
            Entry::Launch => vec![Kernel { prints, ..kernel_record(module, kernel, request, None) }],
            Entry::Foreign(_) => Vec::new(),
        },
    };
    Ok(Emitted { artifact, llvm: finished.llvm, asm: None })
}

/// The transformations after LLVM's passes.
fn legalize(cx: &ModuleContext<'_, '_>) -> Result<()> {
    if cx.options.opt {
        loads::hoist(cx.types.context, cx.module);
    }
    if !Circles::of(cx.ir).is_empty() {
        keep(cx);
    }
    unread::remove(cx.module);
    if cx.options.opt {
        shim::narrow_comparisons(cx.module);
    }
    shim::disable_unrolling(cx.module);
    shim::look_before_spinning(cx.module);
    absolute::rewrite(cx.types.context, cx.module)?;
    packed::split(cx.types.context, cx.module)?;
    if cx.options.opt {
        shim::pair_conversions(cx.module);
        shim::keep_in_branches(cx.module);
    }
    if cx.debug.is_some() {
        inlined::number(cx.types.context, cx.module);
    }
    Ok(())
}

/// Prints the module as NVVM IR.
fn nvvm_ir(cx: &ModuleContext<'_, '_>, machine: &Machine, request: &Request, number: u32) -> Result<Finished> {
    let job = Job {
        passes: NVVM_PASSES,
        costs_of_ptx: true,
        bulk: Bulk::default(),
        legalize: |_| Ok(()),
        emit: &[],
        keep_llvm: request.keep.llvm,
        unoptimized: request.keep.unoptimized,
        attributes: if request.options.fastmath { &[FLUSH] } else { &[] },
        depth_of: None,
    };
    let mut finished = driver::finish(cx, machine, &job)?;
    finished.code.push(shim::nvvm_ir(cx.module, number)?.into_bytes());
    Ok(finished)
}

/// Makes `ptxas` 13.0, and the driver of that version, keep all functions of a module with recursion. ptxas crashes on
/// some functions with internal linkage. It also crashes if it finds, where LLVM did not, that the kernel never calls a
/// recursive function that contains a division. Hence all functions get external linkage, and an unused table refers to
/// them. External functions follow the ABI.
fn keep(cx: &ModuleContext<'_, '_>) {
    let mut kept = Vec::new();
    for function in cx.module.get_functions().filter(|function| function.count_basic_blocks() > 0) {
        if function.get_linkage() == Linkage::Internal {
            function.set_linkage(Linkage::External);
        }
        if function.get_call_conventions() != kernel::PTX_KERNEL {
            kept.push(function.as_global_value().as_pointer_value());
        }
    }
    let table = cx.types.context.ptr_type(AddressSpace::from(SPACES.generic)).const_array(&kept);
    let global = cx.module.add_global(table.get_type(), Some(AddressSpace::from(SPACES.global)), "functions$kept");
    global.set_linkage(Linkage::Internal);
    global.set_initializer(&table);
}

/// Declares and emits every function, callees first.
fn build(cx: &ModuleContext<'_, '_>, kernel_id: FuncId, sm: (u32, (u32, u32))) -> Result<()> {
    let hooks = hooks::NvptxHooks::new(cx, sm)?;
    let effects = Effects::of_module(cx.ir);
    if !cx.ir.faults.is_empty() {
        fault::declare(cx);
    }
    external::declare(cx)?;
    cx.declare_circles(&[])?;
    for (id, function) in cx.ir.functions.iter() {
        let is_entry = id == kernel_id;
        if is_entry == (function.kind == FunctionKind::Device) {
            return internal(format!("@{} is a kernel, but not the module's", function.name));
        }
        let foreign = match &cx.options.entry {
            Entry::Foreign(foreign) if is_entry => Some(foreign),
            Entry::Foreign(_) | Entry::Launch => None,
        };
        let value = match foreign {
            Some(foreign) => export::declare(cx, function, foreign)?,
            None if is_entry => kernel::declare(cx, function)?,
            None => cx.declare_device(id, &[])?,
        };
        if Effects::of_function(&effects, id).synchronizes() {
            cx.attribute(value, "convergent");
        }
        if cx.options.fastmath {
            cx.string_attribute(value, FLUSH.0, FLUSH.1);
        }
        cx.string_attribute(value, NO_JUMP_TABLES.0, NO_JUMP_TABLES.1);
        if is_entry && cx.options.gpu_code == (GpuCode::NvvmIr { forceinline: true }) {
            cx.attribute(value, "alwaysinline");
        }
        if let Some(debug) = &cx.debug {
            debug.enter(value, &function.name, &cx.ir.sources, function.span);
        }
        let mut emitter = FunctionEmitter::new(cx, function, value, &hooks);
        emitter.declare_locals()?;
        hooks.enter(&emitter, id)?;
        match foreign {
            Some(foreign) => export::receive(&emitter, foreign)?,
            None => kernel::receive(&emitter)?,
        }
        emitter.emit_block(&function.body)?;
        emitter.finish()?;
    }
    Ok(())
}
