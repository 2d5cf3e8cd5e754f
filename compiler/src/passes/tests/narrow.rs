//! `narrow`: the values that are computed in 32 bits.

use weft_artifact::{Factors, Scalar};

use super::{HERE, Kernel, grid, narrow_pass as narrow, wide};
use crate::ir::{
    BinaryOp, Builder, CompareOp, ExprId, ExprKind, LocalId, SpecialRegister, Stmt, StmtKind, Type, UnaryOp,
};

/// The lines of a kernel's body after the pass.
fn lines(kernel: Kernel, small: bool) -> Vec<String> {
    let mut kernel = kernel;
    kernel.module.assumptions.small = small;
    let text = kernel.after(narrow::run).to_string();
    text.lines().map(|line| line.trim().to_owned()).collect()
}

/// The use of the sum in a loop.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    /// It is an index.
    Index,
    /// It is stored as `int32`, after more arithmetic.
    Half,
    /// It is compared, and stored as `int32`.
    HalfAndWhole,
}

/// `total = 0; for c in range(turns): total += int64(threadIdx.x) * by`.
fn summed(turns: i64, by: i64, used: Use) -> Vec<String> {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let b = &mut kernel.b;
    let (total, counter) = (b.local("total", Type::I64), b.local("counter", Type::I64));
    for local in [total, counter] {
        let zero = b.i64(0, HERE);
        b.assign(local, zero, HERE);
    }
    b.open();
    let (now, end) = (b.read(counter, HERE), b.i64(turns, HERE));
    let goes_on = b.compare(CompareOp::Lt, now, end, HERE);
    let ends = b.unary(UnaryOp::Not, goes_on, HERE);
    let leave = vec![Stmt { kind: StmtKind::Break, span: HERE }];
    b.stmt(StmtKind::If { cond: ends, then: leave, otherwise: vec![] }, HERE);
    let (thread, by) = (wide(b, SpecialRegister::ThreadIdx(0)), b.i64(by, HERE));
    let (sum, product) = (b.read(total, HERE), b.binary(BinaryOp::Mul, thread, by, HERE));
    let sum = b.binary(BinaryOp::Add, sum, product, HERE);
    b.assign(total, sum, HERE);
    let body = b.close();
    b.open();
    let (now, one) = (b.read(counter, HERE), b.i64(1, HERE));
    let next = b.binary(BinaryOp::Add, now, one, HERE);
    b.assign(counter, next, HERE);
    let step = b.close();
    b.stmt(StmtKind::Loop { body, step }, HERE);
    let b = &mut kernel.b;
    let sum = b.read(total, HERE);
    let index = match used {
        Use::Index => sum,
        Use::Half | Use::HalfAndWhole => {
            let (again, five) = (b.read(total, HERE), b.i64(0x5_0000_0003, HERE));
            let product = b.binary(BinaryOp::Mul, again, five, HERE);
            let mixed = b.binary(BinaryOp::Xor, sum, product, HERE);
            b.convert(mixed, Type::I32, HERE)
        }
    };
    if used == Use::HalfAndWhole {
        let (sum, zero) = (b.read(total, HERE), b.i64(0, HERE));
        let some = b.compare(CompareOp::Lt, sum, zero, HERE);
        b.stmt(StmtKind::If { cond: some, then: vec![], otherwise: vec![] }, HERE);
    }
    let index = b.convert(index, Type::I64, HERE);
    kernel.store_at(x, index);
    lines(kernel, false)
}

#[test]
fn a_sum_is_bounded_by_the_turns_of_its_loop() {
    // 1023 * 1000 * 2000 is below 2^31; with one more iteration of each loop it is not.
    let found = summed(1000, 2000, Use::Index);
    assert!(found.contains(&"$total = add_exact($total, mul_exact(threadIdx.x, 2000:int32))".to_owned()), "{found:?}");
    assert!(found.contains(&"var $counter: int32".to_owned()), "{found:?}");
    // Nor do sums between 2^31 and 2^32 fit.
    let found = summed(1000, 2100, Use::Index);
    assert!(found.contains(&"var $total: uint32".to_owned()), "{found:?}");
    assert!(
        found.contains(&"$total = uint32(int32($total) + mul_exact(threadIdx.x, 2100:int32))".to_owned()),
        "{found:?}"
    );
    let found = summed(1000, 4300, Use::Index);
    assert!(found.contains(&"var $total: int64".to_owned()), "{found:?}");
    assert!(found.contains(&"$total = $total + int64(mul_exact(threadIdx.x, 4300:int32))".to_owned()), "{found:?}");
}

#[test]
fn of_a_sum_that_is_cut_to_32_bits_the_lower_half_is_computed() {
    let large = 1 << 40;
    let found = summed(1000, large, Use::Half);
    assert!(found.contains(&"var $total: int32".to_owned()), "{found:?}");
    assert!(found.contains(&"$total = $total + threadIdx.x * 0:int32".to_owned()), "{found:?}");
    assert!(
        found.contains(&"store $x.data[wrap(int64($total ^ $total * 3:int32), $x.shape0)] = 1.0:float32".to_owned()),
        "{found:?}"
    );
    let found = summed(1000, large, Use::HalfAndWhole);
    assert!(found.contains(&"var $total: int64".to_owned()), "{found:?}");
}

/// `x[index of the thread in the grid + argument] = 1`.
fn thread_and_argument(small: bool) -> Vec<String> {
    let mut kernel = Kernel::new();
    let (x, n) = (kernel.array("x"), kernel.scalar("n", Scalar::I64));
    let b = &mut kernel.b;
    let (i, at) = (b.local("i", Type::I64), b.local("at", Type::I64));
    let number = grid(b);
    b.assign(i, number, HERE);
    let (now, more) = (b.read(i, HERE), b.read(n, HERE));
    let least = b.binary(BinaryOp::Min, now, more, HERE);
    b.assign(at, least, HERE);
    let index = b.read(at, HERE);
    kernel.store_at(x, index);
    lines(kernel, small)
}

#[test]
fn small_launches_compute_in_32_bits() {
    let found = thread_and_argument(true);
    for line in [
        "$i = add_exact(mul_exact(blockIdx.x, blockDim.x), threadIdx.x)",
        "$at = min($i, int32($n))",
        "store $x.data[int64(wrap($at, int32($x.shape0)))] = 1.0:float32",
    ] {
        assert!(found.contains(&line.to_owned()), "no {line} in {found:?}");
    }
    // For other launches, only the limit of 2^41 threads is known.
    let found = thread_and_argument(false);
    assert!(found.contains(&"$at = min($i, $n)".to_owned()), "{found:?}");
    assert!(found.contains(&"var $i: int64".to_owned()), "{found:?}");
}

/// `x[blockIdx.x * (blockDim.x * factor) + (threadIdx.x * 4 + copy)] = 1` in 64 bits, of a kernel that is coarsened by
/// 4.
fn coarsened(factor: i128, copy: i128) -> Vec<String> {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    kernel.module.coarsening.factors = Factors::of_threads([4, 1, 1]);
    let b = &mut kernel.b;
    let int = |b: &mut Builder, value| b.int(Scalar::I32, value, HERE);
    let special = |b: &mut Builder, register| b.expr(ExprKind::Special(register), Type::I32, HERE);
    let (dim, by) = (special(b, SpecialRegister::BlockDim(0)), int(b, factor));
    let dim = b.binary(BinaryOp::Mul, dim, by, HERE);
    let dim = b.convert(dim, Type::I64, HERE);
    let block = wide(b, SpecialRegister::BlockIdx(0));
    let first = b.binary(BinaryOp::Mul, block, dim, HERE);
    let (thread, four, copy) = (special(b, SpecialRegister::ThreadIdx(0)), int(b, 4), int(b, copy));
    let thread = b.binary(BinaryOp::Mul, thread, four, HERE);
    let thread = b.binary(BinaryOp::Add, thread, copy, HERE);
    let thread = b.convert(thread, Type::I64, HERE);
    let number = b.binary(BinaryOp::Add, first, thread, HERE);
    let i = compared(b, number);
    let index = kernel.b.read(i, HERE);
    kernel.store_at(x, index);
    lines(kernel, true)
}

/// A local `i` with a value. A comparison reads all of it: only its range makes it narrow.
fn compared(b: &mut Builder, value: ExprId) -> LocalId {
    let i = b.local("i", Type::I64);
    b.assign(i, value, HERE);
    let (now, zero) = (b.read(i, HERE), b.i64(0, HERE));
    let cond = b.compare(CompareOp::Lt, now, zero, HERE);
    b.stmt(StmtKind::If { cond, then: vec![], otherwise: vec![] }, HERE);
    i
}

#[test]
fn the_numbers_of_coarsened_threads_are_those_of_the_program() {
    let narrow = &"var $i: int32".to_owned();
    for copy in 0..4 {
        assert!(coarsened(4, copy).contains(narrow), "{:?}", coarsened(4, copy));
    }
    // The index is not that of the original block, nor of an adjacent thread.
    assert!(!coarsened(16, 0).contains(narrow));
    assert!(!coarsened(4, i128::from(i32::MAX)).contains(narrow));
}

/// `x[(blockIdx.x * 2 + copy) * blockDim.x + threadIdx.x] = 1` in 64 bits, of a kernel with `factor` merged blocks.
fn merged(factor: u32, copy: i128) -> Vec<String> {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    kernel.module.coarsening.factors = Factors::of_blocks([factor, 1, 1]);
    let b = &mut kernel.b;
    let int = |b: &mut Builder, value| b.int(Scalar::I32, value, HERE);
    let (block, two, copy) = (b.special(SpecialRegister::BlockIdx(0), HERE), int(b, 2), int(b, copy));
    let block = b.binary(BinaryOp::Mul, block, two, HERE);
    let block = b.binary(BinaryOp::Add, block, copy, HERE);
    let block = b.convert(block, Type::I64, HERE);
    let dim = wide(b, SpecialRegister::BlockDim(0));
    let first = b.binary(BinaryOp::Mul, block, dim, HERE);
    let thread = wide(b, SpecialRegister::ThreadIdx(0));
    let number = b.binary(BinaryOp::Add, first, thread, HERE);
    let i = compared(b, number);
    let index = kernel.b.read(i, HERE);
    kernel.store_at(x, index);
    lines(kernel, true)
}

#[test]
fn the_numbers_of_merged_blocks_are_those_of_the_program() {
    let narrow = &"var $i: int32".to_owned();
    for copy in 0..2 {
        assert!(merged(2, copy).contains(narrow), "{:?}", merged(2, copy));
    }
    // The index is not that of an original block.
    assert!(!merged(4, 0).contains(narrow));
    assert!(!merged(2, 2).contains(narrow));
    assert!(!merged(2, -1).contains(narrow));
}

/// `i = a * a; store x[i] = 1`, then a comparison of `i` if `used`.
fn indexed(used: bool, small: bool) -> Vec<String> {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let a = kernel.scalar("a", Scalar::I64);
    let b = &mut kernel.b;
    let i = b.local("i", Type::I64);
    let (one, other) = (b.read(a, HERE), b.read(a, HERE));
    let product = b.binary(BinaryOp::Mul, one, other, HERE);
    b.assign(i, product, HERE);
    if used {
        let (now, zero) = (b.read(i, HERE), b.i64(0, HERE));
        let cond = b.compare(CompareOp::Lt, now, zero, HERE);
        b.stmt(StmtKind::If { cond, then: vec![], otherwise: vec![] }, HERE);
    }
    let index = kernel.b.read(i, HERE);
    kernel.store_at(x, index);
    lines(kernel, small)
}

#[test]
fn an_index_of_a_small_array_is_narrow() {
    let narrow = &"var $i: int32".to_owned();
    assert!(indexed(false, true).contains(narrow));
    // The array may be large, or the comparison reads more than the lower half.
    assert!(!indexed(false, false).contains(narrow));
    assert!(!indexed(true, true).contains(narrow));
}
