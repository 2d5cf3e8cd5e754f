//! Compiles kernels from source, and runs them on arrays.

#![expect(unsafe_code, reason = "runs compiled code on raw memory")]

use std::{collections::BTreeMap, ffi::c_void, sync::Arc};

use weft_artifact::{ArgType, Assumptions, HostConfig, HostContext, HostWatch, Number, SlotField, SlotSource};

use crate::{
    backend::{
        host::jit,
        testing::{cpu, cpu_for_code, cpu_planned_as},
    },
    diagnostic::Failure,
    frontend,
    ir::Module,
    passes,
    pipeline::{self, Output},
    request::{Captured, FunctionDef, Keep, Options, Overloads, Request, Target},
    signature::parse_signature,
    source::SourceFile,
    syntax::{ast::ModuleItem, free_chains, parse_module},
};

/// The number of elements of an array. An extent of 0 is an unused axis.
fn elements(shape: &[i64]) -> u64 {
    shape.iter().filter(|extent| **extent > 0).map(|extent| *extent as u64).product()
}

/// Lines of a function that only compute an unused value from an argument. They make it too large to be inlined.
pub(super) fn padding(argument: &str) -> String {
    format!("    padding = {argument}\n{}", format!("    padding = padding + {argument}\n").repeat(150))
}

/// An argument of a launch.
#[derive(Clone, Copy, Debug)]
pub(super) enum Arg {
    /// An integer.
    Int(i64),
    /// A `float32`.
    F32(f32),
    /// A C-contiguous array: its data, extents, and size of an element.
    Array(*mut c_void, [i64; 3], usize),
}

/// A one-dimensional array.
pub(super) fn array<T>(data: &mut [T]) -> Arg {
    Arg::Array(data.as_mut_ptr().cast(), [data.len() as i64, 0, 0], size_of::<T>())
}

/// A two-dimensional array.
pub(super) fn matrix<T>(data: &mut [T], rows: usize, columns: usize) -> Arg {
    assert_eq!(data.len(), rows * columns);
    Arg::Array(data.as_mut_ptr().cast(), [rows as i64, columns as i64, 0], size_of::<T>())
}

/// A kernel that can be launched.
pub(super) struct Kernel {
    pub(super) output: Output,
    module: jit::HostModule,
}

type Entry = unsafe extern "C" fn(*mut HostContext);

/// Compiles the last function of `source` as a kernel. The functions before it are device functions, and each may call
/// the earlier ones.
pub(super) fn kernel(source: &str, signature: &str) -> Kernel {
    loaded(output(source, signature, Target::Host(cpu())))
}

/// Like [`kernel`], with the plan for another CPU. This machine need not have that CPU.
pub(super) fn kernel_planned_as(source: &str, signature: &str, cpu: &str) -> Kernel {
    loaded(output(source, signature, Target::Host(cpu_planned_as(cpu))))
}

/// The names of the transformations in a kernel's plan for a CPU.
pub(super) fn plan_features(source: &str, signature: &str, cpu: &str) -> Vec<&'static str> {
    let request = request(source, signature, Target::Host(cpu_planned_as(cpu)));
    let outcome = pipeline::plan_features(&request).unwrap_or_else(|failure| failed(&failure));
    outcome.made().expect("no function is overloaded")
}

fn loaded(output: Output) -> Kernel {
    let module = jit::load(&output.artifact.code).expect("the object loads");
    Kernel { output, module }
}

/// Like [`kernel`], with bounds-checked stores.
pub(super) fn confined(source: &str, signature: &str) -> Kernel {
    loaded(compiled(&confined_request(source, signature, Target::Host(cpu()))))
}

/// Like [`llvm`], with bounds-checked stores.
pub(super) fn confined_llvm(source: &str, signature: &str, cpu: &str) -> String {
    compiled(&confined_request(source, signature, Target::Host(cpu_for_code(cpu)))).llvm.expect("the request keeps it")
}

fn confined_request(source: &str, signature: &str, target: Target) -> Request {
    let mut request = request(source, signature, target);
    request.options.bounded_stores = true;
    request
}

/// A kernel's weft IR, as the back end receives it.
pub(super) fn cpu_ir(source: &str, signature: &str) -> String {
    output(source, signature, Target::Host(cpu())).ir.expect("the request keeps it")
}

/// Compiles like [`kernel`], for any target.
pub(super) fn output(source: &str, signature: &str, target: Target) -> Output {
    compiled(&request(source, signature, target))
}

fn compiled(request: &Request) -> Output {
    let outcome = pipeline::compile(request).unwrap_or_else(|failure| failed(&failure));
    outcome.made().expect("no function is overloaded")
}

/// The LLVM IR of a kernel after LLVM's passes, for a CPU that this machine need not have.
pub(super) fn llvm(source: &str, signature: &str, cpu: &str) -> String {
    output(source, signature, Target::Host(cpu_for_code(cpu))).llvm.expect("the request keeps it")
}

/// Like [`llvm`], with the [`short_extents`](Options::short_extents) of a launch.
pub(super) fn llvm_for_short(source: &str, signature: &str, cpu: &str, short_extents: Vec<(u32, u8)>) -> String {
    let mut request = request(source, signature, Target::Host(cpu_for_code(cpu)));
    request.options.short_extents = short_extents;
    compiled(&request).llvm.expect("the request keeps it")
}

/// Like [`llvm`], for a launch with these blocks.
pub(super) fn llvm_for_block(source: &str, signature: &str, cpu: &str, block: [u32; 3]) -> String {
    let mut request = request(source, signature, Target::Host(cpu_for_code(cpu)));
    request.options.likely_block = Some(block);
    compiled(&request).llvm.expect("the request keeps it")
}

/// Like [`llvm`], with assumptions about the launches.
pub(super) fn llvm_assuming(source: &str, signature: &str, cpu: &str, assumptions: Assumptions) -> String {
    let mut request = request(source, signature, Target::Host(cpu_for_code(cpu)));
    request.options.assumptions = assumptions;
    compiled(&request).llvm.expect("the request keeps it")
}

/// The module that the back end receives.
pub(super) fn module(source: &str, signature: &str) -> Module {
    let request = request(source, signature, Target::Host(cpu()));
    let lowered = frontend::lower(&request).unwrap_or_else(|failure| failed(&failure)).made();
    let mut module = lowered.expect("no function is overloaded").module;
    passes::run(&mut module, &request.target, |_| {}).expect("the passes keep the rules");
    module
}

fn failed(failure: &Failure) -> ! {
    let texts: Vec<_> = failure.diagnostics.iter().map(|d| format!("{}: {:?}", d.message, d.notes)).collect();
    panic!("{}", texts.join("\n"))
}

fn request(source: &str, signature: &str, target: Target) -> Request {
    let source = Arc::new(SourceFile::new("kernel.py", source));
    let mut globals = BTreeMap::new();
    for (name, path) in [("cuda", "weft.cuda"), ("math", "math"), ("range", "builtins.range")] {
        globals.insert(name.to_owned(), Captured::Known(path.to_owned()));
    }
    for number in Number::all() {
        globals.insert(number.name().to_owned(), Captured::DType(number.into()));
    }
    let mut last = None;
    for item in parse_module(&source, 0).expect("parses").items {
        let ModuleItem::Function(ast) = item else { continue };
        let chains = free_chains(&ast);
        let roots = chains.iter().map(|chain| chain.split('.').next().unwrap_or(chain));
        let used = roots.filter_map(|root| Some((root.to_owned(), globals.get(root)?.clone())));
        let def = Arc::new(FunctionDef {
            source: Arc::clone(&source),
            globals: used.collect(),
            defaults: BTreeMap::new(),
            signatures: Vec::new(),
            inline: false,
            typing: None,
            gpu: None,
            backward: None,
            number: 0,
            ast: ast.clone(),
        });
        globals.insert(def.ast.name.clone(), Captured::Function(Arc::clone(&def)));
        last = Some(def);
    }
    let args: Vec<ArgType> = parse_signature(signature).expect("a signature").args;
    Request {
        function: last.expect("a function"),
        overloads: Overloads::default(),
        args,
        target,
        options: Options::default(),
        keep: Keep { ir: true, llvm: true, asm: true, ..Keep::default() },
    }
}

impl Kernel {
    /// Runs all blocks in two calls, with arbitrary bytes in the scratch memory.
    pub(super) fn launch(&self, grid: [u32; 3], block: [u32; 3], dynamic: u32, args: &[Arg]) {
        // The flag is set, so the code calls `look` at each safepoint.
        let blocks: u64 = grid.iter().map(|&extent| u64::from(extent)).product();
        let watch = HostWatch { flag: &1, ..HostWatch::idle() };
        self.run((grid, block, dynamic), args, &watch, &[(0, blocks / 3), (blocks / 3, blocks)]);
    }

    /// Runs all blocks in one call, which is cancelled at the first safepoint.
    pub(super) fn launch_and_give_up(&self, grid: [u32; 3], block: [u32; 3], args: &[Arg]) {
        extern "C" fn stops(_: *const HostWatch) -> u32 {
            1
        }
        let blocks = grid.iter().map(|&extent| u64::from(extent)).product();
        self.run((grid, block, 0), args, &HostWatch { flag: &1, look: stops, ..HostWatch::idle() }, &[(0, blocks)]);
    }

    fn run(
        &self,
        (grid, block, dynamic): ([u32; 3], [u32; 3], u32),
        args: &[Arg],
        watch: &HostWatch,
        ranges: &[(u64, u64)],
    ) {
        let record = &self.output.artifact.kernels[0];
        let slots: Vec<u64> = record
            .slots
            .iter()
            .map(|slot| match &slot.source {
                SlotSource::Argument { param, field, .. } => (args[*param as usize], *field),
                SlotSource::Runtime(slot) => match *slot {},
            })
            .map(|(arg, field)| match (arg, field) {
                (Arg::Int(value), SlotField::Value) => value as u64,
                (Arg::F32(value), SlotField::Value) => u64::from(value.to_bits()),
                (Arg::Array(data, ..), SlotField::Data) => data as u64,
                (Arg::Array(data, ..), SlotField::Start) => data as u64,
                (Arg::Array(_, shape, size), SlotField::Room) => elements(&shape) * size as u64,
                (Arg::Array(..), SlotField::Least) => 0,
                (Arg::Array(_, shape, _), SlotField::Limit) => elements(&shape),
                (Arg::Array(_, shape, _), SlotField::Shape(axis)) => shape[usize::from(axis)] as u64,
                (Arg::Array(_, shape, size), SlotField::Stride(axis)) => {
                    let inner: i64 = shape[usize::from(axis) + 1..].iter().filter(|&&extent| extent > 0).product();
                    (inner * size as i64) as u64
                }
                (arg, field) => panic!("{arg:?} has no {field:?}"),
            })
            .collect();
        let host = record.host.expect("a host kernel");
        let (mut grid, mut block) = (grid, block);
        grid.swap(0, usize::from(host.x_axis));
        block.swap(0, usize::from(host.x_axis));
        let words = [grid[0], grid[1], grid[2], block[0], block[1], block[2], dynamic, 0];
        let config = HostConfig { words, watch };
        let bytes = host.dynamic_offset as usize + dynamic as usize;
        let mut scratch = vec![0xab_u8; bytes + 64];
        let aligned = scratch.as_mut_ptr().align_offset(64);
        let address = self.module.find(&record.symbol).expect("the entry");
        // SAFETY: the symbol is the kernel's entry, which has this signature.
        let entry: Entry = unsafe { std::mem::transmute(address) };
        for &(first, last) in ranges {
            let scratch = scratch[aligned..].as_mut_ptr();
            let mut context = HostContext::of_blocks(slots.as_ptr(), &raw const config, (first, last), scratch);
            // SAFETY: slots, configuration and scratch are as the artifact specifies; the arrays outlive the call.
            unsafe { entry(&raw mut context) };
        }
    }
}
