//! The passes on small modules, compared by the text form of the result.

mod fold_temps;
mod narrow;
mod prove_nonneg;
mod reproduce;

use weft_artifact::{Access, ArgType, ArrayType, Layout, Param, Scalar, SlotField, SlotSource};

use super::{access, drop_dead, drop_dead_params, narrow as narrow_pass};
use crate::{
    ir::{
        Align, AtomicOp, BinaryOp, Builder, Expr, ExprId, ExprKind, FuncId, Function, FunctionKind, LocalId, Module,
        Op, Space, SpecialRegister, Stmt, StmtKind, Type, verify,
    },
    request::Target,
    source::Span,
};

const HERE: Span = Span { file: 0, start: 0, end: 0 };
const DATA: Type = Type::Ptr(Scalar::F32, Space::Global);

/// A kernel under construction; its parameters are added on first use.
struct Kernel {
    module: Module,
    b: Builder,
}

impl Kernel {
    fn new() -> Self {
        Self { module: Module::default(), b: Builder::new(Function::new("kernel", FunctionKind::Kernel, HERE)) }
    }

    /// A parameter `float32[:]`: its data and its extent.
    fn array(&mut self, name: &str) -> (LocalId, LocalId) {
        let ty = ArgType::Array(ArrayType { dtype: Scalar::F32.into(), ndim: 1, layout: Layout::C, readonly: false });
        let index = self.param(name, ty);
        let data = self.slot(format!("{name}.data"), DATA, index, SlotField::Data);
        let extent = self.slot(format!("{name}.shape0"), Type::I64, index, SlotField::Shape(0));
        (data, extent)
    }

    fn scalar(&mut self, name: &str, scalar: Scalar) -> LocalId {
        let index = self.param(name, scalar.into());
        self.slot(name.to_owned(), Type::Scalar(scalar), index, SlotField::Value)
    }

    fn param(&mut self, name: &str, ty: ArgType) -> u32 {
        self.module.params.push(Param { name: name.to_owned(), ty, access: Access::default() });
        (self.module.params.len() - 1) as u32
    }

    fn slot(&mut self, name: String, ty: Type, param: u32, field: SlotField) -> LocalId {
        let local = self.b.local(name, ty);
        self.b.function.params.push(local);
        self.b.function.slots.push(SlotSource::Argument { param, path: vec![], field });
        local
    }

    /// `store data[wrap(index, extent)] = 1`.
    fn store_at(&mut self, array: (LocalId, LocalId), index: ExprId) {
        let extent = self.b.read(array.1, HERE);
        let index = self.b.expr(ExprKind::Wrap { index, extent }, Type::I64, HERE);
        self.store(array.0, index);
    }

    fn store(&mut self, data: LocalId, index: ExprId) {
        let base = self.b.read(data, HERE);
        let pointer = self.b.expr(ExprKind::Offset { base, index, scale: 1 }, DATA, HERE);
        let value = self.b.float(Scalar::F32, 1.0, HERE);
        self.b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, HERE);
    }

    /// The module after a pass. It must be valid before and after.
    fn after(mut self, pass: fn(&mut Module)) -> Module {
        self.module.kernel = Some(self.module.functions.push(self.b.finish()));
        assert_eq!(verify(&self.module), Ok(()), "{}", self.module);
        pass(&mut self.module);
        assert_eq!(verify(&self.module), Ok(()), "{}", self.module);
        self.module
    }
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt { kind, span: HERE }
}

fn barrier() -> Stmt {
    stmt(StmtKind::Op { op: Op::Barrier, results: vec![], args: vec![] })
}

/// `int64(special)`.
fn wide(b: &mut Builder, register: SpecialRegister) -> ExprId {
    let value = b.special(register, HERE);
    b.convert(value, Type::I64, HERE)
}

/// `blockIdx.x * blockDim.x + threadIdx.x` as int64.
fn grid(b: &mut Builder) -> ExprId {
    let block = wide(b, SpecialRegister::BlockIdx(0));
    let size = wide(b, SpecialRegister::BlockDim(0));
    let thread = wide(b, SpecialRegister::ThreadIdx(0));
    let first = b.binary(BinaryOp::Mul, block, size, HERE);
    b.binary(BinaryOp::Add, first, thread, HERE)
}

#[test]
fn dead_code_goes() {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let b = &mut kernel.b;
    // `unused` is read only by itself and `also`, and `also` is never read.
    let (unused, also, flag) = (b.local("unused", Type::I64), b.local("also", Type::I64), b.local("flag", Type::BOOL));
    let one = b.i64(1, HERE);
    b.assign(unused, one, HERE);
    let (old, one) = (b.read(unused, HERE), b.i64(1, HERE));
    let sum = b.binary(BinaryOp::Add, old, one, HERE);
    b.assign(unused, sum, HERE);
    let value = b.read(unused, HERE);
    b.assign(also, value, HERE);
    // `flag` is read by a branch whose only statement is dead.
    let value = b.bool(true, HERE);
    b.assign(flag, value, HERE);
    let (cond, two) = (b.read(flag, HERE), b.i64(2, HERE));
    b.stmt(StmtKind::If { cond, then: vec![stmt(StmtKind::Assign(also, two))], otherwise: vec![] }, HERE);
    let index = grid(b);
    kernel.store_at(x, index);
    kernel.b.stmt(StmtKind::Return(vec![]), HERE);
    kernel.b.op(Op::Barrier, vec![], vec![], HERE);
    let module = kernel.after(drop_dead::run);
    let body = module.to_string();
    let body = body.split_once("{\n").expect("the kernel has a body").1;
    let index = "int64(blockIdx.x) * int64(blockDim.x) + int64(threadIdx.x)";
    assert_eq!(body, format!("    store $x.data[wrap({index}, $x.shape0)] = 1.0:float32\n    return\n}}\n"));
}

#[test]
fn what_stands_behind_an_endless_loop_goes() {
    let mut kernel = Kernel::new();
    let endless = StmtKind::Loop { body: vec![barrier()], step: vec![] };
    let ends = StmtKind::Loop { body: vec![barrier(), stmt(StmtKind::Break)], step: vec![] };
    kernel.b.stmt(ends, HERE);
    kernel.b.stmt(endless, HERE);
    kernel.b.op(Op::Barrier, vec![], vec![], HERE);
    let module = kernel.after(drop_dead::run);
    assert_eq!(module.to_string().matches("barrier").count(), 2);
}

#[test]
fn dead_parameters_go_with_their_arguments() {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let a = kernel.scalar("a", Scalar::I64);
    let mut callee = Builder::new(Function::new("f", FunctionKind::Device, HERE));
    for name in ["unread", "read"] {
        let param = callee.local(name, Type::I64);
        callee.function.params.push(param);
    }
    callee.function.results.push(Type::I64);
    let read = callee.function.params[1];
    let value = callee.read(read, HERE);
    callee.stmt(StmtKind::Return(vec![value]), HERE);
    let func = kernel.module.functions.push(callee.finish());
    let b = &mut kernel.b;
    let result = b.new_temp(Type::I64);
    let (copy, value) = (b.local("copy", Type::I64), b.read(a, HERE));
    b.assign(copy, value, HERE);
    let args = vec![b.read(copy, HERE), grid(b)];
    b.stmt(StmtKind::Call { results: vec![result], func, args }, HERE);
    let index = b.read(result, HERE);
    kernel.store(x.0, index);
    let module = kernel.after(drop_dead_params::run);
    let text = module.to_string();
    assert!(text.contains("fn @f(\n    $read: int64\n)"), "{text}");
    assert!(text.contains("kernel @kernel(\n    $x.data: ptr<float32, global> = x.data\n)"), "{text}");
    assert!(text.contains("call @f(int64(blockIdx.x)"), "{text}");
    assert!(!text.contains("copy"), "{text}");
}

/// `@f(p, q)`: `*p = *q`, and returns `p`.
fn copying_callee() -> Function {
    let mut b = Builder::new(Function::new("f", FunctionKind::Device, HERE));
    let (to, from) = (b.local("to", DATA), b.local("from", DATA));
    b.function.params.extend([to, from]);
    b.function.results.push(DATA);
    let (pointer, source) = (b.read(to, HERE), b.read(from, HERE));
    let value = b.expr(ExprKind::Load(source, Align::Natural), Type::Scalar(Scalar::F32), HERE);
    b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, HERE);
    let result = b.read(to, HERE);
    b.stmt(StmtKind::Return(vec![result]), HERE);
    b.finish()
}

#[test]
fn access_follows_pointers() {
    let mut kernel = Kernel::new();
    let [written, read, chosen, other, returned, untouched] =
        ["written", "read", "chosen", "other", "returned", "untouched"].map(|name| kernel.array(name).0);
    let counted = kernel.array("counted").0;
    let func: FuncId = kernel.module.functions.push(copying_callee());
    let b = &mut kernel.b;
    // written <- read through a call; the returned pointer is that of `returned`.
    let result = b.local("p", DATA);
    for (to, from) in [(written, read), (returned, read)] {
        let args = vec![b.read(to, HERE), b.read(from, HERE)];
        b.stmt(StmtKind::Call { results: vec![result], func, args }, HERE);
    }
    let pointer = b.read(result, HERE);
    let value = b.float(Scalar::F32, 1.0, HERE);
    b.op(Op::atomic(AtomicOp::Add), vec![], vec![pointer, value], HERE);
    // A local that holds one of two pointers.
    let view = b.local("view", DATA);
    let (cond, left, right) = (b.bool(true, HERE), b.read(chosen, HERE), b.read(other, HERE));
    let either = b.select(cond, left, right, HERE);
    b.assign(view, either, HERE);
    let index = b.i64(0, HERE);
    kernel.store(view, index);
    let b = &mut kernel.b;
    let pointer = b.read(counted, HERE);
    let value = b.float(Scalar::F32, 1.0, HERE);
    b.op(Op::atomic(AtomicOp::Add), vec![], vec![pointer, value], HERE);
    // A pointer that is only copied is not an access.
    let copy = b.local("copy", DATA);
    let value = b.read(untouched, HERE);
    b.assign(copy, value, HERE);
    let module = kernel.after(access::run);
    let found: Vec<_> = module
        .params
        .iter()
        .map(|param| {
            format!(
                "{} {}{}{}",
                param.name,
                ["", "r"][usize::from(param.access.reads)],
                ["", "w"][usize::from(param.access.writes)],
                ["", "+"][usize::from(param.access.accumulates)]
            )
        })
        .collect();
    // `p` is `written` or `returned`: the atomic operation reads and writes both.
    assert_eq!(found, ["written rw", "read r", "chosen w", "other w", "returned rw", "untouched ", "counted rw+"]);
}

#[test]
fn an_invalid_module_is_a_fault_of_wefts_own() {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    kernel.module.kernel = Some(FuncId::new(0));
    let index = kernel.b.function.exprs.push(Expr::int(Scalar::I32, 0, HERE));
    kernel.store(x.0, index);
    let function = kernel.b.finish();
    kernel.module.functions.push(function);
    let error = crate::passes::run(&mut kernel.module, &Target::Host(std::sync::Arc::default()), |_| {})
        .expect_err("the index is int32");
    assert_eq!(error.code, crate::diagnostic::Code::Internal);
    assert!(error.message.contains("the front end made an invalid IR: @kernel: %"), "{}", error.message);
    assert!(error.notes.iter().any(|note| note.contains("kernel @kernel(")), "{:?}", error.notes);
}

#[test]
fn every_row_says_why_it_stands_there() {
    for pass in crate::passes::PASSES {
        assert!(!pass.why_here.is_empty(), "{}", pass.name);
        assert!(
            pass.targets.contains(&Target::Host(std::sync::Arc::default()))
                || pass.targets.contains(&Target::Sm(90, "")),
            "{}",
            pass.name
        );
    }
}
