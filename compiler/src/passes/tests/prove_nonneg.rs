//! `prove_nonneg`: simplified indices and divisions.

use weft_artifact::Scalar;

use super::{HERE, Kernel, grid, stmt, wide};
use crate::{
    ir::{
        BinaryOp, Builder, CompareOp, ExprId, ExprKind, Function, FunctionKind, LocalId, Module, SpecialRegister,
        StmtKind, Type, UnaryOp,
    },
    passes::prove_nonneg,
};

/// The lines of a kernel with stores, without the stored value.
fn stores(module: &Module) -> Vec<String> {
    let text = module.to_string();
    let lines = text.lines().filter_map(|line| line.trim().strip_prefix("store "));
    lines.map(|line| line.trim_end_matches(" = 1.0:float32").to_owned()).collect()
}

/// The line of `x[index(a: int64, h: int64)] = …`, where `h = 0; loop { h = h * 31 + a_nonneg }`.
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
    let (row, seven) = (wide(b, SpecialRegister::ThreadIdx(1)), b.i64(7, HERE));
    let cond = b.compare(CompareOp::Gt, row, seven, HERE);
    b.stmt(StmtKind::If { cond, then: vec![stmt(StmtKind::Break)], otherwise: vec![] }, HERE);
    let body = b.close();
    b.stmt(StmtKind::Loop { body, step: vec![] }, HERE);
    let index = index(b, Locals { a, small, word, hash, n: x.1 });
    kernel.store_at(x, index);
    let module = kernel.after(prove_nonneg::run);
    stores(&module).pop().expect("there is one store")
}

/// The locals of [`store_line`]: an int64, an int32 and a uint32 argument, a value that may overflow, an extent.
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
fn a_value_that_may_overflow_may_be_negative() {
    assert_eq!(store_line(|b, l| b.read(l.hash, HERE)), "$x.data[wrap($hash, $x.shape0)]");
    let line = line_of(BinaryOp::Mul, |b, _| (grid(b), b.i64(i64::MAX, HERE)));
    assert!(line.starts_with("$x.data[wrap("), "{line}");
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
    // A shift amount is taken modulo 64: this is `$n` itself.
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
        let result = kernel.b.new_temp(Type::I64);
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

/// The text of a kernel that counts from a start value by a step and stores at `counter // 2`.
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

/// The index of a kernel that counts `i = grid; while i < bound { x[i * 2] = 1; i = i + by }`.
fn while_below(
    op: CompareOp,
    bound: impl FnOnce(&mut Builder, Locals) -> ExprId,
    by: impl FnOnce(&mut Builder) -> ExprId,
) -> String {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let (a, small) = (kernel.scalar("a", Scalar::I64), kernel.scalar("small", Scalar::I32));
    let word = kernel.scalar("word", Scalar::U32);
    let i = kernel.b.local("i", Type::I64);
    let first = grid(&mut kernel.b);
    kernel.b.assign(i, first, HERE);
    kernel.b.open();
    let now = kernel.b.read(i, HERE);
    let bound = bound(&mut kernel.b, Locals { a, small, word, hash: i, n: x.1 });
    let more = kernel.b.compare(op, now, bound, HERE);
    let cond = kernel.b.unary(UnaryOp::Not, more, HERE);
    kernel.b.stmt(StmtKind::If { cond, then: vec![stmt(StmtKind::Break)], otherwise: vec![] }, HERE);
    let (now, two) = (kernel.b.read(i, HERE), kernel.b.i64(2, HERE));
    let index = kernel.b.binary(BinaryOp::Mul, now, two, HERE);
    kernel.store_at(x, index);
    let (now, by) = (kernel.b.read(i, HERE), by(&mut kernel.b));
    let next = kernel.b.binary(BinaryOp::Add, now, by, HERE);
    kernel.b.assign(i, next, HERE);
    let body = kernel.b.close();
    kernel.b.stmt(StmtKind::Loop { body, step: vec![] }, HERE);
    stores(&kernel.after(prove_nonneg::run)).pop().expect("there is one store")
}

#[test]
fn the_test_of_a_loop_bounds_the_next_turn() {
    let (plain, wrapped) = ("$x.data[$i * 2]", "$x.data[wrap($i * 2, $x.shape0)]");
    let wide = |local: LocalId, b: &mut Builder| {
        let value = b.read(local, HERE);
        b.convert(value, Type::I64, HERE)
    };
    assert_eq!(while_below(CompareOp::Lt, |b, l| b.read(l.n, HERE), grid), plain);
    assert_eq!(while_below(CompareOp::Le, |b, l| b.read(l.n, HERE), grid), plain);
    assert_eq!(while_below(CompareOp::Lt, |b, l| wide(l.small, b), grid), plain);
    assert_eq!(while_below(CompareOp::Lt, |b, l| wide(l.word, b), grid), plain);
    // With a bound of 2^63 - 1, the sum may overflow.
    assert_eq!(while_below(CompareOp::Lt, |b, l| b.read(l.a, HERE), grid), wrapped);
    assert_eq!(while_below(CompareOp::Gt, |b, l| b.read(l.n, HERE), grid), wrapped);
    assert_eq!(while_below(CompareOp::Ne, |b, l| b.read(l.n, HERE), grid), wrapped);
    assert_eq!(while_below(CompareOp::Lt, |b, l| b.read(l.n, HERE), |b| b.i64(-1, HERE)), wrapped);
    assert_eq!(while_below(CompareOp::Lt, |b, l| b.read(l.n, HERE), |b| b.i64(i64::MAX, HERE)), wrapped);
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
