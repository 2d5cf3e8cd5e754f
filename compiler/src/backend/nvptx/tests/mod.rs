//! Modules that are built by hand, compiled through LLVM to PTX. If `WEFT_PTXAS` names a ptxas, it assembles all PTX.

#![expect(clippy::disallowed_methods, reason = "tests run ptxas where the environment names one")]

mod assumptions;
mod loads;
mod memory;
mod nvvm;
mod operators;
mod options;
mod reproducible;

use std::{env, fs, process::Command};

use weft_artifact::Scalar;

use crate::{
    backend::{
        emit,
        testing::{KernelBuilder, SPAN, request},
    },
    ir::{Align, BinaryOp, CompareOp, ExprId, ExprKind, LocalId, Module, StmtKind, Type},
    request::{Options, Target},
};

/// The PTX of a module, assembled if there is a ptxas.
fn ptx_for(module: &Module, number: u32, options: Options) -> String {
    let name = module.kernel().expect("a kernel").name.clone();
    let emitted = emit(module, &request(&name, Target::Sm(number, ""), options));
    let emitted = emitted.unwrap_or_else(|error| panic!("{}\n{}", error.message, error.notes.join("\n")));
    let text = String::from_utf8(emitted.artifact.code).expect("PTX is text");
    assemble(&text, number);
    text
}

fn ptx(module: &Module) -> String {
    for number in [75, 80, 100] {
        ptx_for(module, number, Options::default());
    }
    ptx_for(module, 90, Options::default())
}

fn assemble(text: &str, number: u32) {
    let Some(ptxas) = env::var_os("WEFT_PTXAS") else { return };
    let thread = format!("{:?}", std::thread::current().id()).replace(['(', ')'], "");
    let path = env::temp_dir().join(format!("weft-{}-{thread}.ptx", std::process::id()));
    fs::write(&path, text).expect("a temporary file");
    let out = Command::new(ptxas).arg(format!("-arch=sm_{number}")).arg(&path).args(["-o", "/dev/null"]).output();
    let out = out.expect("WEFT_PTXAS runs");
    let _ = fs::remove_file(&path);
    assert!(out.status.success(), "{}\n{text}", String::from_utf8_lossy(&out.stderr));
}

impl KernelBuilder {
    fn read(&mut self, local: LocalId) -> ExprId {
        self.b.read(local, SPAN)
    }

    /// The address of `array[index]`.
    fn at(&mut self, array: LocalId, index: LocalId) -> ExprId {
        let (base, index) = (self.read(array), self.read(index));
        let ty = self.b.ty(base);
        self.b.expr(ExprKind::Offset { base, index, scale: 1 }, ty, SPAN)
    }

    fn load(&mut self, array: LocalId, index: LocalId) -> ExprId {
        let pointer = self.at(array, index);
        let Type::Ptr(element, _) = self.b.ty(pointer) else { panic!("a pointer") };
        self.b.expr(ExprKind::Load(pointer, Align::Natural), Type::Scalar(element), SPAN)
    }

    fn store(&mut self, array: LocalId, index: LocalId, value: ExprId) {
        let pointer = self.at(array, index);
        self.b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, SPAN);
    }

    /// `i = grid(1)` as a local.
    fn index(&mut self) -> LocalId {
        let grid = self.grid();
        let index = self.b.local("i", Type::I64);
        self.b.assign(index, grid, SPAN);
        index
    }
}

/// `if i < n: out[i] = a * x[i] + out[i]`
fn saxpy() -> Module {
    let mut k = KernelBuilder::new("saxpy");
    let n = k.scalar("n", Scalar::I64);
    let a = k.scalar("a", Scalar::F32);
    let x = k.array("x", Scalar::F32);
    let out = k.array("out", Scalar::F32);
    let i = k.index();
    let (index, limit) = (k.read(i), k.read(n));
    let cond = k.b.compare(CompareOp::Lt, index, limit, SPAN);
    k.b.open();
    let (factor, value, old) = (k.read(a), k.load(x, i), k.load(out, i));
    let product = k.b.binary(BinaryOp::Mul, factor, value, SPAN);
    let sum = k.b.binary(BinaryOp::Add, product, old, SPAN);
    k.store(out, i, sum);
    let then = k.b.close();
    k.b.stmt(StmtKind::If { cond, then, otherwise: Vec::new() }, SPAN);
    k.finish()
}

#[test]
fn saxpy_is_lean() {
    let text = ptx(&saxpy());
    assert!(text.contains(".visible .entry saxpy("), "{text}");
    assert!(text.contains("fma.rn.f32"), "{text}");
    assert!(text.contains("ld.global.b32"), "{text}");
    assert!(text.contains("mad.wide.u32") || text.contains("mul.wide.u32"), "{text}");
    assert!(!text.contains("cvta"), "{text}");
}
