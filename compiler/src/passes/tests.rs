//! The passes on small modules, by the text form of what they leave.

use weft_artifact::{Access, ArgType, ArrayType, Layout, Param, Scalar, SlotField};

use super::{access, drop_dead, drop_dead_params, fold_temps, prove_nonneg};
use crate::{
    ir::{
        AtomicOp, BinaryOp, Builder, CompareOp, Expr, ExprId, ExprKind, FuncId, Function, FunctionKind, LocalId,
        Module, ParamSlot, Space, SpecialRegister, Stmt, StmtKind, Type, UnaryOp, verify,
    },
    request::Target,
    source::Span,
};

const HERE: Span = Span { file: 0, start: 0, end: 0 };
const DATA: Type = Type::Ptr(Scalar::F32, Space::Global);

/// A kernel that is being built; its parameters are added as they are asked for.
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
        let ty = ArgType::Array(ArrayType { dtype: Scalar::F32, ndim: 1, layout: Layout::C, readonly: false });
        let index = self.param(name, ty);
        let data = self.slot(format!("{name}.data"), DATA, index, SlotField::Data);
        let extent = self.slot(format!("{name}.shape0"), Type::I64, index, SlotField::Shape(0));
        (data, extent)
    }

    fn scalar(&mut self, name: &str, scalar: Scalar) -> LocalId {
        let index = self.param(name, ArgType::Scalar(scalar));
        self.slot(name.to_owned(), Type::Scalar(scalar), index, SlotField::Value)
    }

    fn param(&mut self, name: &str, ty: ArgType) -> u32 {
        self.module.params.push(Param { name: name.to_owned(), ty, access: Access::default() });
        (self.module.params.len() - 1) as u32
    }

    fn slot(&mut self, name: String, ty: Type, param: u32, field: SlotField) -> LocalId {
        let local = self.b.local(name, ty);
        self.b.function.params.push(local);
        self.b.function.slots.push(ParamSlot { param, path: vec![], field });
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
        self.b.stmt(StmtKind::Store { pointer, value }, HERE);
    }

    /// The finished module after a pass, which must be valid before and after.
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

/// The lines of a kernel that store, without the value stored.
fn stores(module: &Module) -> Vec<String> {
    let text = module.to_string();
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("store "));
    lines.map(|line| line.trim_end_matches(" = 1.0:float32").to_owned()).collect()
}

/// What becomes of `x[index(a: int64, h: int64)]`, where `h = 0; loop { h = h * 31 + a_nonneg }`.
fn store_line(index: impl FnOnce(&mut Builder, Locals) -> ExprId) -> String {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let a = kernel.scalar("a", Scalar::I64);
    let small = kernel.scalar("small", Scalar::I32);
    let word = kernel.scalar("word", Scalar::U32);
    let b = &mut kernel.b;
    let hash = b.local("hash", Type::I64);
    let zero = b.i64(0, HERE);
    b.assign(hash, zero, HERE);
    b.open();
    let (old, factor, thread) = (b.read(hash, HERE), b.i64(31, HERE), wide(b, SpecialRegister::ThreadIdx(0)));
    let scaled = b.binary(BinaryOp::Mul, old, factor, HERE);
    let next = b.binary(BinaryOp::Add, scaled, thread, HERE);
    b.assign(hash, next, HERE);
    let (read, extent) = (b.read(hash, HERE), b.read(x.1, HERE));
    let cond = b.compare(CompareOp::Gt, read, extent, HERE);
    b.stmt(StmtKind::If { cond, then: vec![stmt(StmtKind::Break)], otherwise: vec![] }, HERE);
    let body = b.close();
    b.stmt(StmtKind::Loop { body, step: vec![] }, HERE);
    let index = index(b, Locals { a, small, word, hash, n: x.1 });
    kernel.store_at(x, index);
    let module = kernel.after(prove_nonneg::run);
    stores(&module).pop().expect("there is one store")
}

/// What [`store_line`] offers: an int64, an int32 and a uint32 argument, a value that may overflow, an extent.
#[derive(Clone, Copy)]
struct Locals {
    a: LocalId,
    small: LocalId,
    word: LocalId,
    hash: LocalId,
    n: LocalId,
}

#[test]
fn thread_numbers_need_no_wrap() {
    assert_eq!(store_line(|b, _| grid(b)), "$x.data[int64(blockIdx.x) * int64(blockDim.x) + int64(threadIdx.x)]");
}

#[test]
fn anything_may_be_negative_unless_shown() {
    assert_eq!(store_line(|b, l| b.read(l.a, HERE)), "$x.data[wrap($a, $x.shape0)]");
    assert_eq!(store_line(|b, _| b.i64(-1, HERE)), "$x.data[wrap(-1, $x.shape0)]");
    let back = |b: &mut Builder, _: Locals| {
        let (i, one) = (grid(b), b.i64(1, HERE));
        b.binary(BinaryOp::Sub, i, one, HERE)
    };
    assert!(store_line(back).starts_with("$x.data[wrap("));
}

/// `op` on two operands, as an index.
fn line_of(op: BinaryOp, operands: impl FnOnce(&mut Builder, Locals) -> (ExprId, ExprId)) -> String {
    store_line(|b, locals| {
        let (left, right) = operands(b, locals);
        b.binary(op, left, right, HERE)
    })
}

#[test]
fn division_of_small_values_truncates() {
    let line = line_of(BinaryOp::FloorDiv, |b, _| (wide(b, SpecialRegister::ThreadIdx(0)), b.i64(32, HERE)));
    assert_eq!(line, "$x.data[div_nonneg(int64(threadIdx.x), 32)]");
    let line = line_of(BinaryOp::FloorMod, |b, l| (grid(b), b.read(l.n, HERE)));
    assert!(line.starts_with("$x.data[mod_nonneg("), "{line}");
}

#[test]
fn a_remainder_has_the_sign_of_its_divisor() {
    let line = line_of(BinaryOp::FloorMod, |b, l| (b.read(l.a, HERE), b.i64(8, HERE)));
    assert_eq!(line, "$x.data[$a % 8]");
    let line = line_of(BinaryOp::FloorMod, |b, l| (grid(b), b.read(l.a, HERE)));
    assert!(line.starts_with("$x.data[wrap("), "{line}");
}

#[test]
fn a_value_that_may_overflow_is_an_index_but_no_dividend() {
    assert_eq!(store_line(|b, l| b.read(l.hash, HERE)), "$x.data[$hash]");
    let line = line_of(BinaryOp::FloorMod, |b, l| (b.read(l.hash, HERE), b.read(l.n, HERE)));
    assert_eq!(line, "$x.data[$hash % $x.shape0]");
    let line = line_of(BinaryOp::FloorDiv, |b, l| (b.read(l.hash, HERE), b.i64(8, HERE)));
    assert_eq!(line, "$x.data[wrap($hash // 8, $x.shape0)]");
    let line = line_of(BinaryOp::Shr, |b, l| (b.read(l.hash, HERE), b.i64(60, HERE)));
    assert_eq!(line, "$x.data[wrap($hash >> 60, $x.shape0)]");
    let line = line_of(BinaryOp::And, |b, l| (b.read(l.hash, HERE), b.i64(255, HERE)));
    assert_eq!(line, "$x.data[$hash & 255]");
    let narrowed = store_line(|b, l| {
        let value = b.read(l.hash, HERE);
        let narrow = b.convert(value, Type::I32, HERE);
        b.convert(narrow, Type::I64, HERE)
    });
    assert_eq!(narrowed, "$x.data[wrap(int64(int32($hash)), $x.shape0)]");
}

#[test]
fn narrow_arithmetic_overflows_in_earnest() {
    let line = store_line(|b, _| {
        let block = b.special(SpecialRegister::BlockIdx(0), HERE);
        let size = b.special(SpecialRegister::BlockDim(0), HERE);
        let product = b.binary(BinaryOp::Mul, block, size, HERE);
        b.convert(product, Type::I64, HERE)
    });
    assert_eq!(line, "$x.data[wrap(int64(blockIdx.x * blockDim.x), $x.shape0)]");
    let line = store_line(|b, _| {
        let (y, size) = (b.special(SpecialRegister::ThreadIdx(1), HERE), b.special(SpecialRegister::BlockDim(0), HERE));
        let product = b.binary(BinaryOp::Mul, y, size, HERE);
        b.convert(product, Type::I64, HERE)
    });
    assert_eq!(line, "$x.data[int64(threadIdx.y * blockDim.x)]");
}

#[test]
fn conversions_and_bounds() {
    let widened = |local: fn(Locals) -> LocalId| {
        store_line(|b, l| {
            let value = b.read(local(l), HERE);
            b.convert(value, Type::I64, HERE)
        })
    };
    assert_eq!(widened(|l| l.word), "$x.data[int64($word)]");
    assert_eq!(widened(|l| l.small), "$x.data[wrap(int64($small), $x.shape0)]");
    let line = line_of(BinaryOp::Max, |b, l| (b.read(l.a, HERE), b.i64(0, HERE)));
    assert_eq!(line, "$x.data[max($a, 0)]");
    let line = line_of(BinaryOp::Min, |b, l| (b.read(l.a, HERE), b.i64(7, HERE)));
    assert_eq!(line, "$x.data[wrap(min($a, 7), $x.shape0)]");
    let line = store_line(|b, l| {
        let value = b.read(l.a, HERE);
        b.unary(UnaryOp::Abs, value, HERE)
    });
    assert_eq!(line, "$x.data[abs($a)]");
    // The amount of a shift is taken modulo 64: this is `$n` itself.
    let line = line_of(BinaryOp::FloorDiv, |b, l| {
        let (n, amount) = (b.read(l.n, HERE), b.i64(64, HERE));
        (b.binary(BinaryOp::Shr, n, amount, HERE), b.i64(3, HERE))
    });
    assert_eq!(line, "$x.data[div_nonneg($x.shape0 >> 64, 3)]");
}

#[test]
fn nested_wraps_go_from_the_inside() {
    let line = store_line(|b, l| {
        let (index, extent) = (grid(b), b.read(l.n, HERE));
        b.expr(ExprKind::Wrap { index, extent }, Type::I64, HERE)
    });
    assert_eq!(line, "$x.data[int64(blockIdx.x) * int64(blockDim.x) + int64(threadIdx.x)]");
}

/// `@pick(i) -> i` called with these, and its result used as an index.
fn through_call(args: &[fn(&mut Builder, LocalId) -> ExprId]) -> Vec<String> {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let a = kernel.scalar("a", Scalar::I64);
    let mut pick = Builder::new(Function::new("pick", FunctionKind::Device, HERE));
    let i = pick.local("i", Type::I64);
    pick.function.params.push(i);
    pick.function.results.push(Type::I64);
    let value = pick.read(i, HERE);
    pick.stmt(StmtKind::Return(vec![value]), HERE);
    let func = kernel.module.functions.push(pick.finish());
    for arg in args {
        let result = kernel.b.local("t", Type::I64);
        let arg = arg(&mut kernel.b, a);
        kernel.b.stmt(StmtKind::Call { results: vec![result], func, args: vec![arg] }, HERE);
        let index = kernel.b.read(result, HERE);
        kernel.store_at(x, index);
    }
    stores(&kernel.after(prove_nonneg::run))
}

#[test]
fn calls_carry_facts_both_ways() {
    assert_eq!(through_call(&[|b, _| grid(b)]), ["$x.data[$t]"]);
    let both = through_call(&[|b, _| grid(b), |b, a| b.read(a, HERE)]);
    assert_eq!(both.len(), 2);
    assert!(both.iter().all(|line| line.contains("wrap(")), "{both:?}");
}

/// The text of a kernel that counts from a value by a step and stores at `counter // 2`.
fn counting(
    start: impl FnOnce(&mut Builder, LocalId) -> ExprId,
    by: impl FnOnce(&mut Builder, LocalId) -> ExprId,
) -> String {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let a = kernel.scalar("a", Scalar::I64);
    let counter = kernel.b.local("counter", Type::I64);
    let first = start(&mut kernel.b, a);
    kernel.b.assign(counter, first, HERE);
    kernel.b.open();
    let (now, two) = (kernel.b.read(counter, HERE), kernel.b.i64(2, HERE));
    let half = kernel.b.binary(BinaryOp::FloorDiv, now, two, HERE);
    kernel.store_at(x, half);
    let body = kernel.b.close();
    kernel.b.open();
    let (now, by) = (kernel.b.read(counter, HERE), by(&mut kernel.b, a));
    let next = kernel.b.binary(BinaryOp::Add, now, by, HERE);
    kernel.b.assign(counter, next, HERE);
    let step = kernel.b.close();
    kernel.b.stmt(StmtKind::Loop { body, step }, HERE);
    stores(&kernel.after(prove_nonneg::run)).join("; ")
}

#[test]
fn a_for_that_counts_up_does_not_overflow() {
    let kept = "$x.data[wrap($counter // 2, $x.shape0)]";
    assert_eq!(counting(|b, _| grid(b), |b, _| grid(b)), "$x.data[div_nonneg($counter, 2)]");
    assert_eq!(counting(|b, _| grid(b), |b, _| b.i64(-1, HERE)), kept);
    assert_eq!(counting(|b, _| grid(b), |b, a| b.read(a, HERE)), kept);
    assert_eq!(counting(|b, a| b.read(a, HERE), |b, _| b.i64(1, HERE)), kept);
}

#[test]
fn locals_are_marked() {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let i = kernel.b.local("i", Type::I64);
    let index = grid(&mut kernel.b);
    kernel.b.assign(i, index, HERE);
    let index = kernel.b.read(i, HERE);
    kernel.store_at(x, index);
    let module = kernel.after(prove_nonneg::run);
    assert!(module.to_string().contains("var $i: int64 nonneg\n"), "{module}");
}

/// The body that is left of one after folding, and dropping what is then dead; `t0` to `t2` are temporaries.
fn folded(build: impl FnOnce(&mut Builder, LocalId, [LocalId; 3])) -> String {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let temps = [(); 3].map(|()| kernel.b.local("t", Type::Scalar(Scalar::F32)));
    build(&mut kernel.b, x.0, temps);
    let text = kernel
        .after(|module| {
            fold_temps::run(module);
            drop_dead::run(module);
        })
        .to_string();
    let body = text.split_once(") {\n").expect("the kernel has a body").1.trim_end().trim_end_matches('}');
    let lines = body.lines().map(str::trim).filter(|line| !line.starts_with("var "));
    lines.collect::<Vec<_>>().join("; ")
}

/// `*data`.
fn load(b: &mut Builder, data: LocalId) -> ExprId {
    let pointer = b.read(data, HERE);
    b.expr(ExprKind::Load(pointer), Type::Scalar(Scalar::F32), HERE)
}

/// `*data = local`.
fn store_local(b: &mut Builder, data: LocalId, local: LocalId) {
    let (pointer, value) = (b.read(data, HERE), b.read(local, HERE));
    b.stmt(StmtKind::Store { pointer, value }, HERE);
}

#[test]
fn a_temporary_goes_into_the_next_statement_only() {
    let next = folded(|b, data, [t, ..]| {
        let value = load(b, data);
        b.assign(t, value, HERE);
        store_local(b, data, t);
    });
    assert_eq!(next, "store $x.data = load $x.data");
    // The load must not move behind the store.
    let later = folded(|b, data, [t, u, _]| {
        for local in [t, u] {
            let value = load(b, data);
            b.assign(local, value, HERE);
        }
        store_local(b, data, u);
        store_local(b, data, t);
    });
    assert_eq!(later, "$t = load $x.data; store $x.data = load $x.data; store $x.data = $t");
    // Two reads: the load would be done twice.
    let twice = folded(|b, data, [t, u, _]| {
        let value = load(b, data);
        b.assign(t, value, HERE);
        let (left, right) = (b.read(t, HERE), b.read(t, HERE));
        let sum = b.binary(BinaryOp::Add, left, right, HERE);
        b.assign(u, sum, HERE);
        store_local(b, data, u);
    });
    assert_eq!(twice, "$t = load $x.data; store $x.data = $t + $t");
}

#[test]
fn constants_and_stable_copies_are_read_at_their_source() {
    let text = folded(|b, data, [t, u, v]| {
        let value = b.float(Scalar::F32, 2.0, HERE);
        b.assign(t, value, HERE);
        for (to, from) in [(u, t), (v, u)] {
            let value = b.read(from, HERE);
            b.assign(to, value, HERE);
        }
        b.stmt(StmtKind::Barrier, HERE);
        store_local(b, data, v);
        store_local(b, data, u);
    });
    assert_eq!(text, "barrier; store $x.data = 2.0:float32; store $x.data = 2.0:float32");
    // What changes in a loop is copied for a reason.
    let text = folded(|b, data, [t, _, _]| {
        let turn = b.local("turn", Type::Scalar(Scalar::F32));
        b.open();
        let value = b.read(turn, HERE);
        b.assign(t, value, HERE);
        let (old, one) = (b.read(turn, HERE), b.float(Scalar::F32, 1.0, HERE));
        let next = b.binary(BinaryOp::Add, old, one, HERE);
        b.assign(turn, next, HERE);
        store_local(b, data, t);
        let body = b.close();
        b.stmt(StmtKind::Loop { body, step: vec![] }, HERE);
    });
    assert_eq!(text, "loop {; $t = $turn; $turn = $turn + 1.0:float32; store $x.data = $t; }");
}

#[test]
fn a_variable_takes_its_value_directly_unless_its_old_one_is_needed() {
    let pair = |b: &mut Builder| ["a", "b"].map(|name| b.local(name, Type::Scalar(Scalar::F32)));
    // a, b = x[0], x[0]
    let text = folded(|b, data, [t, u, _]| {
        let [first, second] = pair(b);
        for local in [t, u] {
            let value = load(b, data);
            b.assign(local, value, HERE);
        }
        for (to, from) in [(first, t), (second, u)] {
            let value = b.read(from, HERE);
            b.assign(to, value, HERE);
        }
        for local in [first, second] {
            store_local(b, data, local);
        }
    });
    assert_eq!(text, "$a = load $x.data; $b = load $x.data; store $x.data = $a; store $x.data = $b");
    // a, b = b, a
    let text = folded(|b, data, [t, u, _]| {
        let [first, second] = pair(b);
        for local in [first, second] {
            let value = load(b, data);
            b.assign(local, value, HERE);
        }
        for (to, from) in [(t, second), (u, first), (first, t), (second, u)] {
            let value = b.read(from, HERE);
            b.assign(to, value, HERE);
        }
        for local in [first, second] {
            store_local(b, data, local);
        }
    });
    let expected =
        "$a = load $x.data; $b = load $x.data; $t = $b; $b = $a; $a = $t; store $x.data = $a; store $x.data = $b";
    assert_eq!(text, expected);
}

#[test]
fn dead_code_goes() {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let b = &mut kernel.b;
    // `unused` feeds only itself and `also`, which nobody reads.
    let (unused, also, flag) = (b.local("unused", Type::I64), b.local("also", Type::I64), b.local("flag", Type::BOOL));
    let one = b.i64(1, HERE);
    b.assign(unused, one, HERE);
    let (old, one) = (b.read(unused, HERE), b.i64(1, HERE));
    let sum = b.binary(BinaryOp::Add, old, one, HERE);
    b.assign(unused, sum, HERE);
    let value = b.read(unused, HERE);
    b.assign(also, value, HERE);
    // `flag` is read by a branch whose only statement dies.
    let value = b.bool(true, HERE);
    b.assign(flag, value, HERE);
    let (cond, two) = (b.read(flag, HERE), b.i64(2, HERE));
    b.stmt(StmtKind::If { cond, then: vec![stmt(StmtKind::Assign(also, two))], otherwise: vec![] }, HERE);
    let index = grid(b);
    kernel.store_at(x, index);
    kernel.b.stmt(StmtKind::Return(vec![]), HERE);
    kernel.b.stmt(StmtKind::Barrier, HERE);
    let module = kernel.after(drop_dead::run);
    let body = module.to_string();
    let body = body.split_once("{\n").expect("the kernel has a body").1;
    let index = "int64(blockIdx.x) * int64(blockDim.x) + int64(threadIdx.x)";
    assert_eq!(body, format!("    store $x.data[wrap({index}, $x.shape0)] = 1.0:float32\n    return\n}}\n"));
}

#[test]
fn what_stands_behind_an_endless_loop_goes() {
    let mut kernel = Kernel::new();
    let endless = StmtKind::Loop { body: vec![stmt(StmtKind::Barrier)], step: vec![] };
    let ends = StmtKind::Loop { body: vec![stmt(StmtKind::Barrier), stmt(StmtKind::Break)], step: vec![] };
    kernel.b.stmt(ends, HERE);
    kernel.b.stmt(endless, HERE);
    kernel.b.stmt(StmtKind::Barrier, HERE);
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
    let result = b.local("t", Type::I64);
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

/// `@f(p, q)`: `*p = *q`, and gives `p` back.
fn copying_callee() -> Function {
    let mut b = Builder::new(Function::new("f", FunctionKind::Device, HERE));
    let (to, from) = (b.local("to", DATA), b.local("from", DATA));
    b.function.params.extend([to, from]);
    b.function.results.push(DATA);
    let (pointer, source) = (b.read(to, HERE), b.read(from, HERE));
    let value = b.expr(ExprKind::Load(source), Type::Scalar(Scalar::F32), HERE);
    b.stmt(StmtKind::Store { pointer, value }, HERE);
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
    // written <- read through a call; the pointer that comes back is `returned`'s.
    let result = b.local("p", DATA);
    for (to, from) in [(written, read), (returned, read)] {
        let args = vec![b.read(to, HERE), b.read(from, HERE)];
        b.stmt(StmtKind::Call { results: vec![result], func, args }, HERE);
    }
    let pointer = b.read(result, HERE);
    let value = b.float(Scalar::F32, 1.0, HERE);
    b.stmt(StmtKind::Atomic { result: None, op: AtomicOp::Add, pointer, value, compare: None }, HERE);
    // One of two, through a local.
    let view = b.local("view", DATA);
    let (cond, left, right) = (b.bool(true, HERE), b.read(chosen, HERE), b.read(other, HERE));
    let either = b.select(cond, left, right, HERE);
    b.assign(view, either, HERE);
    let index = b.i64(0, HERE);
    kernel.store(view, index);
    let b = &mut kernel.b;
    let pointer = b.read(counted, HERE);
    let value = b.float(Scalar::F32, 1.0, HERE);
    b.stmt(StmtKind::Atomic { result: None, op: AtomicOp::Add, pointer, value, compare: None }, HERE);
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
                "{} {}{}",
                param.name,
                ["", "r"][usize::from(param.access.reads)],
                ["", "w"][usize::from(param.access.writes)]
            )
        })
        .collect();
    // `p` is `written` or `returned`: the atomic reads and writes both.
    assert_eq!(found, ["written rw", "read r", "chosen w", "other w", "returned rw", "untouched ", "counted rw"]);
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
    let error = super::run(&mut kernel.module, &Target::Host).expect_err("the index is int32");
    assert_eq!(error.code, crate::diagnostic::Code::Internal);
    assert!(error.message.contains("the front end made an invalid IR: @kernel: %"), "{}", error.message);
    assert!(error.notes.iter().any(|note| note.contains("kernel @kernel(")), "{:?}", error.notes);
}

#[test]
fn every_row_says_why_it_stands_there() {
    for pass in super::PASSES {
        assert!(!pass.why_here.is_empty(), "{}", pass.name);
        assert!(pass.targets.contains(&Target::Host) || pass.targets.contains(&Target::Sm(90, "")), "{}", pass.name);
    }
}
