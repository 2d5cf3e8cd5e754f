//! Tests that run the emitted code on this machine's CPU and compare every operator with a model in Rust.

#![expect(unsafe_code, reason = "runs compiled code on raw memory")]

mod convert;
mod floats;
mod halves;
mod integers;
mod math;

use std::sync::Arc;

use weft_artifact::{HostConfig, HostContext, HostWatch, Scalar};

use crate::{
    backend::{
        emit,
        host::jit,
        testing::{KernelBuilder, SPAN, cpu, request},
    },
    ir::{Align, Builder, ExprId, ExprKind, LocalId, SpecialRegister, StmtKind, Type},
    request::{HostCpu, Options, Target},
};

type Entry = unsafe extern "C" fn(*mut HostContext);

/// Threads per block; arrays are padded to a multiple.
const BLOCK: usize = 256;

/// A type that can be an array's element.
trait Element: Copy + Default {
    const SCALAR: Scalar;
}

macro_rules! elements {
    ($($ty:ty: $scalar:ident),*) => { $(impl Element for $ty { const SCALAR: Scalar = Scalar::$scalar; })* };
}

elements!(bool: Bool, i8: I8, i16: I16, i32: I32, i64: I64, u8: U8, u16: U16, u32: U32, u64: U64, f32: F32, f64: F64);

/// Runs `out[i] = value(a[i], b[i])` for every pair.
fn run<A: Element, B: Element, R: Element>(
    pairs: &[(A, B)],
    value: impl FnOnce(&mut Builder, ExprId, ExprId) -> ExprId,
) -> Vec<R> {
    let mut value = Some(value);
    let results = run_all(pairs, &[()], |b, (), x, y| value.take().expect("there is one item")(b, x, y));
    results.into_iter().next().expect("there is one item")
}

/// Runs `out[i] = value(item, a[i], b[i])` for every pair and every item, in one kernel.
fn run_all<A: Element, B: Element, R: Element, I: Copy>(
    pairs: &[(A, B)],
    items: &[I],
    value: impl FnMut(&mut Builder, I, ExprId, ExprId) -> ExprId,
) -> Vec<Vec<R>> {
    run_on(&cpu(), pairs, items, value)
}

/// As [`run_all`], with code for a given CPU, whose features this machine must have.
fn run_on<A: Element, B: Element, R: Element, I: Copy>(
    cpu: &HostCpu,
    pairs: &[(A, B)],
    items: &[I],
    mut value: impl FnMut(&mut Builder, I, ExprId, ExprId) -> ExprId,
) -> Vec<Vec<R>> {
    let blocks = pairs.len().div_ceil(BLOCK);
    let mut k = KernelBuilder::new("kernel");
    let a = k.array("a", A::SCALAR);
    let b = k.array("b", B::SCALAR);
    let out = k.array("out", R::SCALAR);
    let index = k.b.local("i", Type::I64);
    let grid = k.grid();
    k.b.assign(index, grid, SPAN);
    let place = k.b.local("place", Type::I64);
    for (number, &item) in items.iter().enumerate() {
        let start = k.b.i64((number * blocks * BLOCK) as i64, SPAN);
        let offset = k.b.read(index, SPAN);
        let sum = k.b.binary(crate::ir::BinaryOp::Add, start, offset, SPAN);
        k.b.assign(place, sum, SPAN);
        let (x, y) = (load(&mut k.b, a, index), load(&mut k.b, b, index));
        let pointer = element(&mut k.b, out, place);
        let value = value(&mut k.b, item, x, y);
        assert_eq!(k.b.ty(value), Type::Scalar(R::SCALAR));
        k.b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, SPAN);
    }
    let module = k.finish();
    let target = Target::Host(Arc::new(cpu.clone()));
    let emitted = emit(&module, &request("kernel", target, Options::default()));
    let emitted = emitted.unwrap_or_else(|error| panic!("{}\n{}", error.message, error.notes.join("\n")));
    let code = jit::load(&emitted.artifact.code).expect("the object loads");

    let mut a: Vec<A> = pairs.iter().map(|pair| pair.0).collect();
    let mut b: Vec<B> = pairs.iter().map(|pair| pair.1).collect();
    a.resize(blocks * BLOCK, A::default());
    b.resize(blocks * BLOCK, B::default());
    let mut out = vec![R::default(); items.len() * blocks * BLOCK];
    let slots = [a.as_ptr() as u64, b.as_ptr() as u64, out.as_mut_ptr() as u64];
    let watch = HostWatch::idle();
    let config = HostConfig { words: [blocks as u32, 1, 1, BLOCK as u32, 1, 1, 0, 0], watch: &raw const watch };
    let record = &emitted.artifact.kernels[0];
    let mut scratch = vec![0_u8; record.host.expect("a host kernel").dynamic_offset as usize + 64];
    let aligned = scratch.as_mut_ptr().align_offset(64);
    let address = code.find(&record.symbol).expect("the entry");
    // SAFETY: the symbol is the kernel's entry, which has this signature.
    let entry: Entry = unsafe { std::mem::transmute(address) };
    let scratch = scratch[aligned..].as_mut_ptr();
    let mut context = HostContext::of_blocks(slots.as_ptr(), &raw const config, (0, blocks as u64), scratch);
    // SAFETY: slots, configuration and scratch memory match the artifact; the arrays have one element per thread.
    unsafe { entry(&raw mut context) };
    out.chunks(blocks * BLOCK).map(|part| part[..pairs.len()].to_vec()).collect()
}

impl KernelBuilder {
    /// `blockIdx.x * blockDim.x + threadIdx.x` as numba computes it.
    pub(crate) fn grid(&mut self) -> ExprId {
        let registers = [SpecialRegister::BlockIdx(0), SpecialRegister::BlockDim(0), SpecialRegister::ThreadIdx(0)];
        let [block, size, thread] = registers.map(|register| {
            let value = self.b.special(register, SPAN);
            self.b.convert(value, Type::I64, SPAN)
        });
        let product = self.b.binary(crate::ir::BinaryOp::Mul, block, size, SPAN);
        self.b.binary(crate::ir::BinaryOp::Add, product, thread, SPAN)
    }
}

fn element(b: &mut Builder, array: LocalId, index: LocalId) -> ExprId {
    let (base, index) = (b.read(array, SPAN), b.read(index, SPAN));
    let ty = b.ty(base);
    b.expr(ExprKind::Offset { base, index, scale: 1 }, ty, SPAN)
}

fn load(b: &mut Builder, array: LocalId, index: LocalId) -> ExprId {
    let pointer = element(b, array, index);
    let Type::Ptr(scalar, _) = b.ty(pointer) else { panic!("a pointer") };
    b.expr(ExprKind::Load(pointer, Align::Natural), Type::Scalar(scalar), SPAN)
}
