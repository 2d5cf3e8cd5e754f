//! The CPU back end: compiles a module to an object whose entry runs a range of blocks, with all threads and barriers.
//!
//! [`plan`] forms parallel regions and work-item loops, and decides which values are live across barriers.
//! [`emit::frame`] lays out scratch memory; [`entry`], [`emit::nodes`] and [`emit::threads`] emit the code. Kernels
//! whose threads wait for each other in loops, or that cannot be cut at their barriers, run on [`fibers`]. The design
//! is in `docs/design/cpu-thread-loops.md`.

pub(crate) mod checked;
pub(crate) mod cpu;
pub(crate) mod emit;
mod fibers;
pub mod jit;
mod plan;
mod stack_reason;
#[cfg(test)]
mod tests;

use std::sync::Arc;

use inkwell::{
    OptimizationLevel,
    targets::{CodeModel, FileType, RelocMode},
};
use weft_artifact::{Artifact, CodeFormat, HostEntry, Kernel, Sites};

use crate::backend::host::{
    checked::{calls, inline_checks},
    emit::entry,
};
use crate::{
    analysis::{Rematerializable, WaitAnalysis},
    backend::{
        Emitted, accesses,
        host::{
            checked::{calls::Instrumentation, seen::Seen, sites::Recorder},
            emit::{
                access_groups::Parallel,
                frame::Offsets,
                position::{Frame, array_alloca, fields},
                state::HostHooks,
                watch::Watch,
            },
            stack_reason::StackReason,
        },
        kernel_of, kernel_record,
        llvm::{
            AddressSpaces, FunctionEmitter, Halves, Library, ModuleContext, Result, Types,
            driver::{self, Finished, Job},
            internal,
            shim::{self, Depth, LeakyModule, Machine, MachineSpec},
            size,
        },
        symbol,
    },
    ir::{AsyncCopy, Circles, Effects, FuncId, FunctionKind, Module, Op, StmtKind, SyncScope, for_each_stmt},
    request::{CpuThreads, HostCpu, Keep, Options, Request},
    stage::{self, Stage},
};
use plan::{
    Plan, Polling, Vectors,
    cx::{PassSet, PlanInputs},
    passes::Trace,
};

/// All memory is in one address space.
const SPACES: AddressSpaces = AddressSpaces { global: 0, shared: 0, constant: 0, local: 0, generic: 0 };

/// Emits a module as an object for a CPU.
pub(super) fn emit(module: &Module, request: &Request, cpu: &HostCpu) -> Result<Emitted> {
    let (_, kernel) = kernel_of(module)?;
    let compiled = compile(module, &request.options, request.keep, cpu)?;
    let Depth { call, around } = compiled.depth;
    let host = HostEntry {
        stack_bytes: compiled.has_stacks.then(|| stack_bytes(compiled.depth)),
        call_bytes: call,
        below_bytes: around,
        dynamic_offset: compiled.dynamic_offset,
        x_axis: compiled.x_axis,
        may_split_blocks: compiled.may_split_blocks,
        calls_runtime: calls_runtime(module),
    };
    let artifact = Artifact {
        format: CodeFormat::HostObject,
        target: "host".to_owned(),
        code: compiled.object,
        kernels: vec![Kernel { sanitize: compiled.sites, ..kernel_record(module, kernel, request, Some(host)) }],
    };
    Ok(Emitted { artifact, llvm: compiled.llvm, asm: compiled.asm })
}

/// Whether a module multiplies matrices or copies asynchronously, which calls the runtime, or has operations of clusters.
fn calls_runtime(module: &Module) -> bool {
    has_op(module, |op| matches!(op, Op::Multiply(_) | Op::AsyncCopy(_) | Op::Cluster(_)))
}

/// The names of the transformations in the kernel's plan for a CPU ([`plan::features`]), sorted. Generates no code.
pub(super) fn features(module: &Module, options: &Options, cpu: &HostCpu) -> Result<Vec<&'static str>> {
    let names = match Strategy::of(module, options, cpu, true, &mut Trace::Off)? {
        Strategy::Loops(plan, _) if module.sanitize.is_empty() => plan::features::of_plan(&plan, vectors(cpu)),
        Strategy::Loops(..) => vec!["sanitized", "thread-loops"],
        Strategy::Fibers(..) if module.sanitize.is_empty() => vec!["stack-per-thread"],
        Strategy::Fibers(..) => vec!["sanitized", "stack-per-thread"],
    };
    Ok(names)
}

/// The classes of the kernel's memory accesses, and the text form of its plan ([`plan::print`]). Generates no code.
pub(super) fn plan_text(module: &Module, options: &Options, cpu: &HostCpu) -> Result<String> {
    let (plan, axis) = match Strategy::of(module, options, cpu, false, &mut Trace::Off)? {
        Strategy::Loops(plan, _) => (plan.text(), plan.x_axis),
        Strategy::Fibers(module, ..) => (format!("{STACKS}{module}"), 0),
    };
    Ok(format!("{}{plan}", accesses::text(module, axis)))
}

/// What the planner did with each parallel region, loop and access of the kernel, and why it left loops as they are
/// ([`plan::remarks`]). Generates no code.
pub(super) fn remarks(module: &Module, options: &Options, cpu: &HostCpu) -> Result<Vec<String>> {
    let mut lines = match Strategy::of(module, options, cpu, false, &mut Trace::Off)? {
        Strategy::Loops(plan, _) => plan::remarks::lines(&plan, module),
        Strategy::Fibers(_, _, _, _, why) => {
            vec![format!("each thread has its own stack, and there are no loops over threads: {}", why.clause())]
        }
    };
    if !module.sanitize.is_empty() {
        lines.insert(0, "sanitized code is not transformed".to_owned());
    }
    Ok(lines)
}

/// Printed if a kernel has no plan.
const STACKS: &str = "# each thread has its own stack: there are no thread loops\n";

/// The text forms that the kernel's plan has after `passes`. Generates no code.
pub(super) fn plan_trace(module: &Module, options: &Options, cpu: &HostCpu, passes: &[String]) -> Result<String> {
    let mut trace = Trace::after(PassSet::of_names(passes.iter().map(String::as_str)).or_else(internal)?);
    Ok(match Strategy::of(module, options, cpu, false, &mut trace)? {
        Strategy::Loops(..) => trace.text(),
        Strategy::Fibers(..) => STACKS.to_owned(),
    })
}

/// The CPU properties that plans depend on.
fn vectors(cpu: &HostCpu) -> Vectors {
    Vectors { pairs: cpu::multiplies_in_pairs(cpu), masks: cpu::has_masks(cpu), word_masks: cpu::has_word_masks(cpu) }
}

/// A compiled kernel.
#[derive(Debug)]
struct Compiled {
    sites: Option<Arc<Sites>>,
    object: Vec<u8>,
    asm: Option<String>,
    llvm: Option<String>,
    dynamic_offset: u64,
    /// The axis that is interchanged with `x`.
    x_axis: u8,
    /// Whether a block may run as several.
    may_split_blocks: bool,
    /// Whether each thread has its own stack.
    has_stacks: bool,
    depth: Depth,
}

/// The minimum stack size of a thread on a fiber.
const STACK_BYTES: u64 = 64 << 10;

/// The part of a stack that is reserved for signal handlers and the runtime's callbacks.
const OTHERS_BYTES: u64 = 48 << 10;

/// The stack size for recursion: enough for thousands of calls of a small function. The system commits it on first use.
const DEEP_STACK_BYTES: u64 = 1 << 20;

/// The stack size of a thread on a fiber.
fn stack_bytes(depth: Depth) -> u64 {
    let Depth { call, around } = depth;
    if around > 0 {
        DEEP_STACK_BYTES.saturating_add(call).saturating_add(around)
    } else {
        STACK_BYTES.max(OTHERS_BYTES.saturating_add(call))
    }
}

/// How the threads of a block run.
enum Strategy {
    /// A block's threads are work-item loops.
    Loops(Box<Plan>, Offsets),
    /// Each thread has its own stack. Contains the module that the threads run, its kernel, and the reason.
    Fibers(Box<Module>, FuncId, Offsets, Polling, StackReason),
}

impl Strategy {
    /// Chooses between loops and fibers. With `records`, a plan also contains the names of the rewrites that changed
    /// the kernel. `trace` receives the plan after passes.
    fn of(module: &Module, options: &Options, cpu: &HostCpu, records: bool, trace: &mut Trace) -> Result<Self> {
        let circles = Circles::of(module);
        // At a barrier of the grid, the threads of one block wait until other blocks have run.
        let kernel = kernel_of(module)?.0;
        let of_grid = Effects::of_function(&Effects::of_module(module), kernel).together == SyncScope::Grid;
        let fibers = match options.cpu_threads {
            // Only threads with stacks can wait for other blocks.
            CpuThreads::Auto | CpuThreads::Loops if uses_clusters(module) => Some(StackReason::Cluster),
            CpuThreads::Auto | CpuThreads::Loops if of_grid => Some(StackReason::GridBarrier),
            // Such a wait yields to the other threads of the block.
            CpuThreads::Auto | CpuThreads::Loops if waits_for_phases(module) => Some(StackReason::Phases),
            CpuThreads::Auto if WaitAnalysis::of(module, &circles).in_module(module) => Some(StackReason::Waits),
            CpuThreads::Auto if plan::warp::divergent_barrier::arms_meet(module) => Some(StackReason::ArmsMeet),
            // A recursive function cannot be cut at its barriers.
            CpuThreads::Auto | CpuThreads::Loops => {
                waits_on_circle(module, &circles).then_some(StackReason::RecursiveBarrier)
            }
            CpuThreads::Fibers => Some(StackReason::Requested),
        };
        if !module.sanitize.is_empty() {
            // Sanitized code is not transformed: each thread executes its operations in program order, on its own stack
            // if necessary.
            let plan =
                if fibers.is_none() && circles.is_empty() { Plan::sanitized(module).or_else(internal)? } else { None };
            return match plan {
                Some(plan) => {
                    let offsets = Offsets::of(&plan);
                    Ok(Self::Loops(Box::new(plan), offsets))
                }
                None => Self::fibers(module, &circles, fibers.unwrap_or(StackReason::Sanitized)),
            };
        }
        // Functions with barriers are inlined for loops. If they are too large for that, the threads get stacks.
        let is_too_large = || plan::too_many_copies(module).then_some(StackReason::TooLarge);
        if let Some(why) = fibers.or_else(is_too_large) {
            return Self::fibers(module, &circles, why);
        }
        let skipped = cpu::skipped_passes(&cpu.skipped_passes).or_else(internal)?;
        let inputs = PlanInputs {
            opt: options.opt,
            vectors: vectors(cpu),
            warp_regions: true,
            skipped,
            record_rewrites: records,
        };
        let plan = Plan::traced(module, inputs, trace).or_else(internal)?;
        let arrays = plan.module.functions[plan.kernel].local_arrays.iter().map(|(_, array)| array);
        // A local array that an inlined function returns has a copy for each call, so the kernel may exceed the limit.
        if super::check_local(arrays).is_err() {
            return Self::fibers(module, &circles, StackReason::LocalArrays);
        }
        let offsets = Offsets::of(&plan);
        Ok(Self::Loops(Box::new(plan), offsets))
    }

    fn fibers(module: &Module, circles: &Circles, why: StackReason) -> Result<Self> {
        let module = plan::for_stacks(module, circles);
        let (kernel, offsets, polling) = (kernel_of(&module)?.0, Offsets::of_shared(&module), Polling::of(&module));
        Ok(Self::Fibers(Box::new(module), kernel, offsets, polling, why))
    }
}

/// Whether a module has operations of clusters.
fn uses_clusters(module: &Module) -> bool {
    has_op(module, |op| matches!(op, Op::Cluster(_)) || matches!(op, Op::AsyncCopy(copy) if copy.is_of_cluster()))
}

/// Whether a module has an operation for which `is` is true.
fn has_op(module: &Module, is: impl Fn(Op) -> bool) -> bool {
    let mut found = false;
    for (_, function) in module.functions.iter() {
        for_each_stmt(&function.body, &mut |stmt| found |= matches!(stmt.kind, StmtKind::Op { op, .. } if is(op)));
    }
    found
}

/// Whether a thread waits for a phase of a barrier in shared memory.
fn waits_for_phases(module: &Module) -> bool {
    has_op(module, |op| op == Op::AsyncCopy(AsyncCopy::BarrierWait))
}

/// Whether a recursive function has an operation that synchronizes threads.
fn waits_on_circle(module: &Module, circles: &Circles) -> bool {
    let effects = Effects::of_module(module);
    module.functions.iter().any(|(id, _)| circles.contains(id) && Effects::of_function(&effects, id).synchronizes())
}

fn compile(module: &Module, options: &Options, keep: Keep, cpu: &HostCpu) -> Result<Compiled> {
    let strategy = Strategy::of(module, options, cpu, false, &mut Trace::Off)?;
    let (emitted, offsets, has_stacks, segments) = match &strategy {
        Strategy::Loops(plan, offsets) => (&plan.module, offsets, false, plan.segments),
        Strategy::Fibers(module, _, offsets, ..) => (module.as_ref(), offsets, true, 0),
    };
    let entry = symbol(&kernel_of(module)?.1.name);
    let recorder = (!module.sanitize.is_empty()).then(|| Recorder::of(emitted));
    stage::begin(Stage::SetUp);
    let finished = shim::with_context(|context| {
        let (passes, level) =
            if options.opt { cpu::optimization(cpu) } else { ("default<O0>", OptimizationLevel::None) };
        let machine = Machine::new(&MachineSpec {
            triple: &cpu.triple,
            cpu: &cpu.name,
            features: &cpu::features(cpu),
            level,
            reloc: RelocMode::PIC,
            model: CodeModel::Small,
        })?;
        stage::begin(Stage::LlvmIr);
        let llvm_module = LeakyModule::new(context.create_module("kernel"));
        machine.prepare(&llvm_module);
        let types = Types { context, spaces: SPACES, halves: Halves::Bits { f16c: cpu::converts_halves(cpu) } };
        let cx = ModuleContext::new(types, &llvm_module, emitted, options, Library::Libclc, None);
        let parallel = Parallel::new(context, vectors(cpu))?;
        if recorder.is_some() {
            inline_checks::link(&cx, &machine)?;
        }
        match &strategy {
            Strategy::Loops(plan, offsets) => build(&cx, plan, offsets, &parallel, recorder.as_ref())?,
            Strategy::Fibers(_, kernel, offsets, polling, _) => {
                build_fibers(&cx, *kernel, offsets, polling, recorder.as_ref())?;
            }
        }
        if let Some(recorder) = &recorder {
            inline_checks::finish(&cx, recorder.n_quick())?;
        }
        let bits = cpu::vector_bits(cpu).map(|bits| bits.to_string());
        let attributes: Vec<_> = bits.iter().map(|bits| ("prefer-vector-width", bits.as_str())).collect();
        let emit: &[FileType] = if keep.asm { &[FileType::Object, FileType::Assembly] } else { &[FileType::Object] };
        let job = Job {
            legalize: match (cpu::gathers_slowly(cpu), cpu::has_masks(cpu)) {
                (false, false) => legal::<false, true>,
                (false, true) => legal::<false, false>,
                (true, false) => legal::<true, true>,
                (true, true) => legal::<true, false>,
            },
            passes,
            costs_of_ptx: false,
            emit,
            bulk: size::bulk(module, segments),
            keep_llvm: keep.llvm,
            unoptimized: keep.unoptimized,
            attributes: &attributes,
            depth_of: Some(&entry),
        };
        for function in llvm_module.get_functions().filter(|function| function.count_basic_blocks() > 0) {
            for (key, value) in &attributes {
                cx.string_attribute(function, key, value);
            }
        }
        let finished = driver::finish(&cx, &machine, &job)?;
        machine.dispose();
        Ok(finished)
    })?;
    let Finished { code, llvm, depth } = finished;
    let Some(depth) = depth else { return internal("LLVM reported no frame sizes") };
    let mut code = code.into_iter();
    let Some(object) = code.next() else { return internal("LLVM emitted nothing") };
    let asm = code.next().map(|text| String::from_utf8_lossy(&text).into_owned());
    let (x_axis, may_split_blocks) = match &strategy {
        // Warps and rows as blocks have the block's shape in their plan.
        Strategy::Loops(plan, _) => {
            (plan.x_axis, plan.may_split_blocks && !plan.warp_blocks && !plan.row_blocks && !plan.has_barriers)
        }
        Strategy::Fibers(..) => (0, false),
    };
    let sites = recorder.map(|recorder| Arc::new(recorder.sites(module.sanitize, offsets)));
    let dynamic_offset = offsets.dynamic_offset;
    Ok(Compiled { sites, object, asm, llvm, dynamic_offset, x_axis, may_split_blocks, has_stacks, depth })
}

/// The transformations before LLVM's code generator: [`shim::narrow_sums`] and [`shim::keep_quotients`], with `SINGLE` also
/// [`shim::single_accesses`], and with `BLENDS` also [`shim::keep_blends`].
#[expect(clippy::unnecessary_wraps, reason = "a `Job` may fail to legalize")]
fn legal<const SINGLE: bool, const BLENDS: bool>(cx: &ModuleContext<'_, '_>) -> Result<()> {
    shim::narrow_sums(cx.module);
    if SINGLE {
        shim::single_accesses(cx.module);
    }
    if BLENDS {
        shim::keep_blends(cx.module);
    }
    shim::keep_quotients(cx.module);
    Ok(())
}

/// Declares and defines the functions of a kernel with work-item loops, callees first.
fn build<'ctx>(
    cx: &ModuleContext<'_, 'ctx>,
    plan: &Plan,
    offsets: &Offsets,
    parallel: &Parallel<'ctx>,
    recorder: Option<&Recorder<'_>>,
) -> Result<()> {
    cx.declare_circles(&Frame::types(&cx.types))?;
    for (id, function) in cx.ir.functions.iter() {
        if id == plan.kernel {
            let (blocks, of_region) = (entry::declare(cx), offsets.of_region());
            let mut regions = Vec::new();
            for region in &plan.warp_regions {
                let value = entry::declare_region(cx);
                entry::emit(cx, value, region, &of_region, &[], (parallel, recorder))?;
                regions.push(value);
            }
            entry::emit(cx, blocks, plan, offsets, &regions, (parallel, recorder))?;
            entry::declare_outer(cx, &symbol(&function.name), blocks)?;
        } else if function.kind == FunctionKind::Kernel {
            return internal(format!("@{} is a kernel, but not the module's", function.name));
        } else if !Effects::of_function(&plan.effects, id).synchronizes() {
            // Functions with a barrier have been inlined into the kernel.
            device_function(cx, id, offsets, &plan.polling, false, recorder)?;
        }
    }
    Ok(())
}

/// Declares and defines the functions of a kernel whose threads have stacks, callees first.
fn build_fibers(
    cx: &ModuleContext<'_, '_>,
    kernel: FuncId,
    offsets: &Offsets,
    polling: &Polling,
    recorder: Option<&Recorder<'_>>,
) -> Result<()> {
    cx.declare_circles(&Frame::types(&cx.types))?;
    for (id, function) in cx.ir.functions.iter() {
        if id == kernel {
            fibers::emit(cx, id, offsets, polling, &symbol(&function.name), recorder)?;
        } else {
            device_function(cx, id, offsets, polling, true, recorder)?;
        }
    }
    Ok(())
}

/// Emits a device function, which each thread calls on its own.
fn device_function(
    cx: &ModuleContext<'_, '_>,
    id: FuncId,
    offsets: &Offsets,
    polling: &Polling,
    stacks: bool,
    recorder: Option<&Recorder<'_>>,
) -> Result<()> {
    let function = &cx.ir.functions[id];
    let value = cx.declare_device(id, &Frame::types(&cx.types))?;
    let (frame, hidden) = Frame::received(value)?;
    let fixed = Rematerializable::of(function, &function.body);
    let mut hooks = HostHooks::new(offsets, frame, (polling, &fixed));
    hooks.stacks = stacks;
    hooks.instrumentation = recorder.map(|recorder| Instrumentation::new(recorder, id, function.span));
    hooks.next_site.set(HostHooks::first_site(id));
    let mut emitter = FunctionEmitter::new(cx, function, value, &hooks);
    if !stacks {
        let config = fields(&cx.types, &emitter.builder, frame.context)?.config;
        hooks.watch.set(Some(Watch::of(&cx.types, &emitter.builder, config)?));
    }
    emitter.declare_locals()?;
    let mut arrays = Vec::new();
    for (_, array) in function.local_arrays.iter() {
        arrays.push(Some(array_alloca(cx, &emitter.builder, array)?));
    }
    *hooks.arrays.borrow_mut() = arrays;
    if hooks.instrumentation.is_some() {
        hooks.seen.set(Some(Seen::declare(&cx.types, &emitter.builder, frame.context, stacks)?));
        calls::arrays(&emitter, hooks.frame.get().context, &hooks.arrays.borrow())?;
        hooks.reload(&emitter)?;
    }
    for (index, &local) in function.params.iter().enumerate() {
        let Some(param) = value.get_nth_param((hidden + index) as u32) else {
            return internal(format!("@{} has too few parameters", function.name));
        };
        param.set_name(&function.locals[local].name);
        emitter.set_local(local, param)?;
    }
    if let Some(waits) = polling.at_start(id) {
        fibers::look_down(&emitter, &hooks, frame.context)?;
        if stacks {
            fibers::turn(&emitter, frame.context, waits)?;
        }
    }
    emitter.emit_block(&function.body)?;
    emitter.finish()
}
