//! Hand-built modules through LLVM to PTX. `WEFT_PTXAS` names a ptxas that then assembles every text.

use std::{env, fs, process::Command};

use weft_artifact::Scalar;

use crate::{
    backend::{
        emit,
        testing::{KernelBuilder, SPAN, request},
    },
    ir::{BinaryOp, CompareOp, ExprId, ExprKind, LocalId, MathFn, Module, SpecialRegister, StmtKind, Type, UnaryOp},
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
    /// `blockIdx.x * blockDim.x + threadIdx.x` as numba computes it.
    fn grid(&mut self) -> ExprId {
        let [block, size, thread] =
            [SpecialRegister::BlockIdx(0), SpecialRegister::BlockDim(0), SpecialRegister::ThreadIdx(0)].map(
                |register| {
                    let value = self.b.special(register, SPAN);
                    self.b.convert(value, Type::I64, SPAN)
                },
            );
        let product = self.b.binary(BinaryOp::Mul, block, size, SPAN);
        self.b.binary(BinaryOp::Add, product, thread, SPAN)
    }

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
        self.b.expr(ExprKind::Load(pointer), Type::Scalar(element), SPAN)
    }

    fn store(&mut self, array: LocalId, index: LocalId, value: ExprId) {
        let pointer = self.at(array, index);
        self.b.stmt(StmtKind::Store { pointer, value }, SPAN);
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

/// Every function on every width assembles, with the libclc that is embedded.
#[test]
fn all_math_functions() {
    for &function in MathFn::ALL {
        for scalar in [Scalar::F32, Scalar::F64] {
            for fastmath in [false, true] {
                let mut k = KernelBuilder::new("kernel");
                let result = match function {
                    MathFn::Isfinite | MathFn::Isinf | MathFn::Isnan => Scalar::Bool,
                    MathFn::FrexpExponent => Scalar::I32,
                    _ => scalar,
                };
                let x = k.array("x", scalar);
                let out = k.array("out", result);
                let exponent = k.scalar("exponent", Scalar::I32);
                let i = k.index();
                let mut args: Vec<_> = (0..function.arity()).map(|_| k.load(x, i)).collect();
                if function == MathFn::Ldexp {
                    args[1] = k.read(exponent);
                }
                let value = k.b.math(function, args, Type::Scalar(result), SPAN);
                k.store(out, i, value);
                let options = Options { fastmath, ..Options::default() };
                let text = ptx_for(&k.finish(), 75, options);
                assert!(!text.contains(".extern"), "{}: {text}", function.name());
            }
        }
    }
}

/// Every operator on every type that has it, every comparison and every conversion.
#[test]
fn all_operators_and_conversions() {
    let scalars = Scalar::ALL.into_iter().filter(|scalar| !scalar.is_complex());
    for scalar in scalars.clone() {
        let mut k = KernelBuilder::new("kernel");
        let ty = Type::Scalar(scalar);
        let x = k.array("x", scalar);
        let out = k.array("out", scalar);
        let flags = k.array("flags", Scalar::Bool);
        let i = k.index();
        let ops: &[BinaryOp] = match scalar {
            Scalar::Bool => &[BinaryOp::And, BinaryOp::Or, BinaryOp::Xor],
            Scalar::F32 | Scalar::F64 => &[
                BinaryOp::Add,
                BinaryOp::Sub,
                BinaryOp::Mul,
                BinaryOp::Div,
                BinaryOp::FloorDiv,
                BinaryOp::FloorMod,
                BinaryOp::Min,
                BinaryOp::Max,
            ],
            _ => &[
                BinaryOp::Add,
                BinaryOp::Sub,
                BinaryOp::Mul,
                BinaryOp::FloorDiv,
                BinaryOp::FloorMod,
                BinaryOp::DivNonneg,
                BinaryOp::ModNonneg,
                BinaryOp::Pow,
                BinaryOp::Shl,
                BinaryOp::Shr,
                BinaryOp::And,
                BinaryOp::Or,
                BinaryOp::Xor,
                BinaryOp::Min,
                BinaryOp::Max,
            ],
        };
        for &op in ops {
            let (a, b) = (k.load(x, i), k.load(out, i));
            let value = k.b.binary(op, a, b, SPAN);
            k.store(out, i, value);
        }
        let unary: &[UnaryOp] = match scalar {
            Scalar::Bool => &[UnaryOp::Not],
            Scalar::F32 | Scalar::F64 => &[UnaryOp::Neg, UnaryOp::Abs],
            _ => &[UnaryOp::Neg, UnaryOp::Not, UnaryOp::Abs],
        };
        for &op in unary {
            let a = k.load(x, i);
            let value = k.b.unary(op, a, SPAN);
            k.store(out, i, value);
        }
        let ordered = [CompareOp::Lt, CompareOp::Le, CompareOp::Gt, CompareOp::Ge];
        let ordered = ordered.into_iter().filter(|_| scalar != Scalar::Bool);
        for op in [CompareOp::Eq, CompareOp::Ne].into_iter().chain(ordered) {
            let (a, b) = (k.load(x, i), k.load(out, i));
            let value = k.b.compare(op, a, b, SPAN);
            k.store(flags, i, value);
        }
        for to in scalars.clone() {
            let target = k.array(to.name(), to);
            let value = k.load(x, i);
            let converted = k.b.convert(value, Type::Scalar(to), SPAN);
            k.store(target, i, converted);
            assert_eq!(k.b.ty(value), ty);
        }
        ptx(&k.finish());
    }
}
