//! Tests of the algebra, of strides, of magnitudes and of the classes of accesses.

use weft_artifact::Scalar;

use super::{
    AccessClass, AccessKind, Along, Atoms, ByStructure, LocalStride, Magnitude, Polynomial, Precision, Stride, Strides,
    accesses, estimated_strides, polynomial,
};
use crate::{
    analysis::Rematerializable,
    ir::{
        Align, BinaryOp, Builder, CompareOp, ExprId, ExprKind, Function, FunctionKind, LocalId, Space, SpecialRegister,
        Stmt, StmtKind, Type, UnaryOp,
    },
    source::Span,
};

const I64: Type = Type::I64;
const POINTER: Type = Type::Ptr(Scalar::F32, Space::Global);
const SPAN: Span = Span { file: 0, start: 0, end: 0 };

/// A kernel with an array `x`, and integers `n` and `m`.
struct Code {
    b: Builder,
    x: LocalId,
    n: LocalId,
    m: LocalId,
}

impl Code {
    fn new() -> Self {
        let mut b = Builder::new(Function::new("kernel", FunctionKind::Kernel, SPAN));
        let [x, n, m] = [("x", POINTER), ("n", I64), ("m", I64)].map(|(name, ty)| b.local(name, ty));
        b.function.params.extend([x, n, m]);
        Self { b, x, n, m }
    }

    /// `threadIdx.x`, of 32 bits.
    fn thread(&mut self) -> ExprId {
        self.b.special(SpecialRegister::ThreadIdx(0), SPAN)
    }

    /// `int64(threadIdx.x)`.
    fn wide_thread(&mut self) -> ExprId {
        let thread = self.thread();
        self.b.convert(thread, I64, SPAN)
    }

    fn read(&mut self, local: LocalId) -> ExprId {
        self.b.read(local, SPAN)
    }

    fn int(&mut self, value: i64) -> ExprId {
        self.b.i64(value, SPAN)
    }

    fn op(&mut self, op: BinaryOp, a: ExprId, b: ExprId) -> ExprId {
        self.b.binary(op, a, b, SPAN)
    }

    fn element(&mut self, index: ExprId) -> ExprId {
        let base = self.read(self.x);
        self.b.expr(ExprKind::Offset { base, index, scale: 1 }, POINTER, SPAN)
    }

    fn store(&mut self, index: ExprId) {
        let pointer = self.element(index);
        let value = self.b.float(Scalar::F32, 1.0, SPAN);
        self.b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, SPAN);
    }

    /// A local with a value.
    fn named(&mut self, name: &str, value: ExprId) -> LocalId {
        let ty = self.b.ty(value);
        let local = self.b.local(name, ty);
        self.b.assign(local, value, SPAN);
        local
    }

    /// The stride of a value along `x`, if parameters are uniform and rematerializable locals are replaced.
    fn stride(self, precision: Precision, value: ExprId) -> Stride {
        let function = self.b.finish();
        let fixed = Rematerializable::of(&function, &function.body);
        let local = |local: LocalId| match fixed.value(local) {
            Some(value) => LocalStride::Value(value),
            None if function.params.contains(&local) => LocalStride::Known(Stride::ZERO),
            None => LocalStride::UNKNOWN,
        };
        Strides { function: &function, along: Along::Threads(0), precision, local: &local }.stride(value)
    }

    fn exact(self, value: ExprId) -> Stride {
        self.stride(Precision::Exact, value)
    }

    /// The classes of the stores.
    fn classes(self) -> Vec<AccessClass> {
        let all = accesses(&self.b.finish(), 0);
        all.into_iter().filter(|access| access.kind == AccessKind::Store).map(|access| access.class).collect()
    }
}

/// The polynomial of one atom.
fn atom(number: u32) -> Polynomial {
    Polynomial::atom(number)
}

fn sum(a: &Polynomial, b: &Polynomial) -> Polynomial {
    a.clone().plus(b, 1).expect("it is small")
}

fn product(a: &Polynomial, b: &Polynomial) -> Polynomial {
    a.times(b).expect("it is small")
}

#[test]
fn equal_addresses_have_equal_polynomials() {
    let at = |copy: i128, below: i128, beside: i128| {
        let row = sum(&sum(&atom(0), &Polynomial::constant(copy)), &Polynomial::constant(below));
        let index = sum(&product(&row, &atom(1)), &sum(&atom(2), &Polynomial::constant(beside)));
        product(&index, &Polynomial::constant(4))
    };
    assert_eq!(at(0, 1, 0), at(1, 0, 0));
    assert_eq!(at(2, -1, 3), at(0, 1, 3));
    assert_ne!(at(0, 1, 0), at(0, 0, 1));
    let ((rest, first), (of_next, second)) = (at(1, 0, 0).split(), at(1, 0, 1).split());
    assert_eq!((rest, second - first), (of_next, 4));
}

#[test]
fn terms_cancel_and_products_commute() {
    assert_eq!(atom(3).plus(&atom(3), -1), Some(Polynomial::default()));
    assert_eq!(product(&atom(3), &Polynomial::constant(0)), Polynomial::default());
    assert_eq!(product(&atom(3), &atom(1)), product(&atom(1), &atom(3)));
    assert_eq!((Polynomial::default().as_constant(), atom(0).as_constant()), (Some(0), None));
    assert_eq!(Polynomial::constant(7).as_constant(), Some(7));
    assert_eq!(sum(&atom(0), &Polynomial::constant(7)).as_constant(), None);
    let large = Polynomial::constant(i128::MAX);
    assert_eq!((large.clone().plus(&large, 1), large.times(&large)), (None, None));
}

#[test]
fn differences_are_constants_only_without_wraps() {
    // (i + 3) * m + 5 and i * m + 5 differ by 3 * m; (i + 3) * 8 and i * 8 by 24.
    let mut c = Code::new();
    let (three, eight, i, m) = (c.int(3), c.int(8), c.read(c.n), c.read(c.m));
    let next = c.op(BinaryOp::Add, i, three);
    let [far, near] = [next, i].map(|row| c.op(BinaryOp::Mul, row, eight));
    let [below, above] = [next, i].map(|row| c.op(BinaryOp::Mul, row, m));
    // 32 bits: the sum may wrap unless it is exact.
    let (thread, one) = (c.thread(), c.b.int(Scalar::I32, 1, SPAN));
    let [wrapping, exact] = [BinaryOp::Add, BinaryOp::AddExact].map(|op| c.op(op, thread, one));
    let [wrapping, exact, thread] = [wrapping, exact, thread].map(|value| c.b.convert(value, I64, SPAN));
    let function = c.b.finish();
    let mut atoms = ByStructure::new(&function);
    let mut difference = |precision, a, b| atoms.difference(precision, a, b);
    assert_eq!(difference(Precision::Exact, far, near), Some(24));
    assert_eq!(difference(Precision::Exact, below, above), None);
    assert_eq!(difference(Precision::Exact, exact, thread), Some(1));
    assert_eq!(difference(Precision::Exact, wrapping, thread), None);
    assert_eq!(difference(Precision::Estimate, wrapping, thread), Some(1));
}

#[test]
fn large_polynomials_are_atoms() {
    let mut c = Code::new();
    let mut value = c.read(c.n);
    for _ in 0..6 {
        value = c.op(BinaryOp::Mul, value, value);
    }
    let function = c.b.finish();
    let mut atoms = ByStructure::new(&function);
    let found = polynomial(&function, Precision::Exact, &mut atoms, value).expect("structural atoms exist");
    assert!(found.terms().all(|(factors, _)| factors.len() <= 4), "{found:?}");
    assert!(atoms.opaque(value).is_some());
}

#[test]
fn strides_along_threads() {
    let stride = |build: &dyn Fn(&mut Code) -> ExprId| {
        let mut c = Code::new();
        let value = build(&mut c);
        c.exact(value)
    };
    assert_eq!(stride(&|c| c.read(c.n)), Stride::ZERO);
    assert_eq!(stride(&Code::wide_thread), Stride::Constant(1));
    let of = |op: BinaryOp| {
        stride(&|c| {
            let (thread, n) = (c.wide_thread(), c.read(c.n));
            c.op(op, thread, n)
        })
    };
    assert_eq!((of(BinaryOp::Add), of(BinaryOp::Sub)), (Stride::Constant(1), Stride::Constant(1)));
    assert_eq!((of(BinaryOp::Mul), of(BinaryOp::FloorDiv)), (Stride::Uniform, Stride::Unknown));
    let reversed = |c: &mut Code| {
        let (thread, n) = (c.wide_thread(), c.read(c.n));
        c.op(BinaryOp::Sub, n, thread)
    };
    assert_eq!(stride(&reversed), Stride::Constant(-1));
    // The thread index cancels out, but the value cannot be computed outside of the thread loop.
    let canceled = |c: &mut Code| {
        let (thread, reversed) = (c.wide_thread(), reversed(c));
        c.op(BinaryOp::Add, thread, reversed)
    };
    assert_eq!(stride(&canceled), Stride::Uniform);
    let constant = |c: &mut Code| {
        let (thread, three) = (c.wide_thread(), c.int(3));
        let product = c.op(BinaryOp::Mul, three, thread);
        c.b.unary(UnaryOp::Neg, product, SPAN)
    };
    assert_eq!(stride(&constant), Stride::Constant(-3));
    let pointer = |c: &mut Code| {
        let index = constant(c);
        c.element(index)
    };
    assert_eq!(stride(&pointer), Stride::Constant(-12));
}

#[test]
fn a_sum_of_32_bits_has_a_stride_only_if_it_is_exact() {
    let of = |op: BinaryOp, precision: Precision| {
        let mut c = Code::new();
        let (thread, start) = (c.thread(), c.b.int(Scalar::I32, i128::from(i32::MAX), SPAN));
        let sum = c.op(op, thread, start);
        let wide = c.b.convert(sum, I64, SPAN);
        c.stride(precision, wide)
    };
    assert_eq!(of(BinaryOp::Add, Precision::Exact), Stride::Unknown);
    assert_eq!(of(BinaryOp::AddExact, Precision::Exact), Stride::Constant(1));
    assert_eq!(of(BinaryOp::Add, Precision::Estimate), Stride::Constant(1));
}

#[test]
fn rematerializable_locals_are_replaced_and_cycles_end() {
    let mut c = Code::new();
    let thread = c.wide_thread();
    let first = c.named("first", thread);
    let (first, n) = (c.read(first), c.read(c.n));
    let shifted = c.op(BinaryOp::Add, first, n);
    let second = c.named("second", shifted);
    let read = c.read(second);
    assert_eq!(c.exact(read), Stride::Constant(1));

    let mut c = Code::new();
    let start = c.int(0);
    let local = c.named("i", start);
    let read = c.read(local);
    let function = c.b.finish();
    let cyclic = |_: LocalId| LocalStride::Value(read);
    let strides =
        Strides { function: &function, along: Along::Iterations, precision: Precision::Exact, local: &cyclic };
    assert_eq!(strides.stride(read), Stride::Unknown);
}

#[test]
fn strides_of_iterations() {
    let mut c = Code::new();
    let (counter, thread) = (c.b.local("i", I64), c.wide_thread());
    let (i, four) = (c.read(counter), c.int(4));
    let scaled = c.op(BinaryOp::Mul, i, four);
    let index = c.op(BinaryOp::Add, scaled, thread);
    let pointer = c.element(index);
    let function = c.b.finish();
    let local = |local: LocalId| LocalStride::Known(Stride::Constant(i64::from(local == counter)));
    let strides = Strides { function: &function, along: Along::Iterations, precision: Precision::Exact, local: &local };
    assert_eq!((strides.stride(index), strides.stride(pointer)), (Stride::Constant(4), Stride::Constant(16)));
    assert_eq!(strides.stride(thread), Stride::ZERO);
}

#[test]
fn magnitudes_exclude_wraps() {
    let mut c = Code::new();
    let (thread, n) = (c.wide_thread(), c.read(c.n));
    let small = c.op(BinaryOp::Mul, thread, thread);
    let large = c.op(BinaryOp::Add, thread, n);
    let named = c.named("named", small);
    let named = c.read(named);
    let function = c.b.finish();
    let fixed = Rematerializable::of(&function, &function.body);
    let magnitude = Magnitude { function: &function, fixed: &fixed, max_row: 1024 };
    assert_eq!((magnitude.bits(thread), magnitude.bits(small), magnitude.bits(named)), (11, 22, 22));
    assert_eq!((magnitude.bits(n), magnitude.bits(large)), (64, 64));
    assert!(magnitude.is_small(small) && !magnitude.wraps(small) && magnitude.wraps(large));
    assert!(magnitude.fits(small, 40) && !magnitude.fits(small, 41));
}

/// A loop `for i in range(start, n): body`.
fn counted(c: &mut Code, start: ExprId, body: impl FnOnce(&mut Code, LocalId)) {
    let counter = c.named("i", start);
    c.b.open();
    let (i, n) = (c.read(counter), c.read(c.n));
    let test = c.b.compare(CompareOp::Ge, i, n, SPAN);
    let exit = vec![Stmt { kind: StmtKind::Break, span: SPAN }];
    c.b.stmt(StmtKind::If { cond: test, then: exit, otherwise: Vec::new() }, SPAN);
    body(c, counter);
    let body = c.b.close();
    c.b.open();
    let (i, m) = (c.read(counter), c.read(c.m));
    let next = c.op(BinaryOp::Add, i, m);
    c.b.assign(counter, next, SPAN);
    let step = c.b.close();
    c.b.stmt(StmtKind::Loop { body, step }, SPAN);
}

#[test]
fn accesses_are_classified() {
    let mut c = Code::new();
    let (thread, n) = (c.wide_thread(), c.read(c.n));
    c.store(n);
    c.store(thread);
    let (thread, m) = (c.wide_thread(), c.read(c.m));
    let row = c.op(BinaryOp::Mul, thread, m);
    c.store(row);
    let (thread, three) = (c.wide_thread(), c.int(3));
    let third = c.op(BinaryOp::Mul, thread, three);
    c.store(third);
    let (thread, three) = (c.wide_thread(), c.int(3));
    let divided = c.op(BinaryOp::FloorDiv, thread, three);
    c.store(divided);
    let strided = [None, Some(12)].map(AccessClass::Strided);
    assert_eq!(
        c.classes(),
        [AccessClass::Uniform, AccessClass::Contiguous, strided[0], strided[1], AccessClass::Gather]
    );
}

#[test]
fn counters_have_the_stride_of_their_start() {
    let mut c = Code::new();
    let thread = c.wide_thread();
    counted(&mut c, thread, |c, i| {
        let i = c.read(i);
        c.store(i);
    });
    assert_eq!(c.classes(), [AccessClass::Contiguous]);
    let mut c = Code::new();
    let zero = c.int(0);
    counted(&mut c, zero, |c, i| {
        let (i, thread) = (c.read(i), c.wide_thread());
        c.store(i);
        let i_again = c.b.again(i, SPAN);
        let sum = c.op(BinaryOp::Add, i_again, thread);
        c.store(sum);
    });
    assert_eq!(c.classes(), [AccessClass::Uniform, AccessClass::Contiguous]);
}

/// `k = 0; if cond: k = 1; x[k] = 1`.
fn branch(cond: &dyn Fn(&mut Code) -> ExprId) -> Vec<AccessClass> {
    let mut c = Code::new();
    let (zero, cond) = (c.int(0), cond(&mut c));
    let chosen = c.named("k", zero);
    c.b.open();
    let one = c.int(1);
    c.b.assign(chosen, one, SPAN);
    let then = c.b.close();
    c.b.stmt(StmtKind::If { cond, then, otherwise: Vec::new() }, SPAN);
    let chosen = c.read(chosen);
    c.store(chosen);
    c.classes()
}

#[test]
fn a_divergent_branch_makes_a_local_unknown() {
    let compare = |value: &dyn Fn(&mut Code) -> ExprId| {
        branch(&|c| {
            let (value, m) = (value(c), c.read(c.m));
            c.b.compare(CompareOp::Lt, value, m, SPAN)
        })
    };
    assert_eq!(compare(&|c| c.read(c.n)), [AccessClass::Uniform]);
    assert_eq!(compare(&Code::wide_thread), [AccessClass::Gather]);
}

#[test]
fn results_of_operations_have_no_known_stride() {
    let mut c = Code::new();
    let (zero, thread) = (c.int(0), c.wide_thread());
    let local = c.named("k", zero);
    c.b.assign(local, thread, SPAN);
    let function: Function = c.b.finish();
    let strides = estimated_strides(&function, &function.body, 0, &[], &[]);
    assert_eq!(strides[local.index()], Stride::Unknown);
    let strides = estimated_strides(&function, &function.body, 1, &[], &[]);
    assert_eq!(strides[local.index()], Stride::ZERO);
}
