//! An invalid module for each rule, and a valid one that has a bit of everything.

use weft_artifact::{Access, ArgType, ArrayType, Layout, Param, Scalar, SlotField, SlotSource};

use crate::{
    ir::{
        Align, AtomicOp, BinaryOp, Builder, CompareOp, Const, Expr, ExprId, ExprKind, External, ExternalId, FuncId,
        Function, FunctionKind, LocalId, MathFn, Module, Op, SharedArray, SharedId, SharedKind, Space, SpecialRegister,
        StmtKind, Type, UnaryOp, verify,
    },
    source::Span,
};

const F32: Type = Type::Scalar(Scalar::F32);
const F64: Type = Type::Scalar(Scalar::F64);
const U8: Type = Type::Scalar(Scalar::U8);
const GLOBAL: Type = Type::Ptr(Scalar::F32, Space::Global);
const HERE: Span = Span { file: 0, start: 0, end: 0 };

/// The locals of the kernel of [`whole`], in order.
const DATA: LocalId = LocalId::new(0);
const EXTENT: LocalId = LocalId::new(1);
const FACTOR: LocalId = LocalId::new(2);
const I: LocalId = LocalId::new(3);
const FLAG: LocalId = LocalId::new(4);

/// A field of an argument.
fn argument(param: u32, path: &[u32], field: SlotField) -> SlotSource {
    SlotSource::Argument { param, path: path.to_vec(), field }
}

/// `kernel(x: float32[:], a: float64, flag: bool, words: uint8[:])` that calls `@twice`, with a loop, a store, an
/// atomic and a shared array.
fn whole() -> Module {
    let mut module = Module::default();
    let array = |dtype: Scalar, ndim| {
        ArgType::Array(ArrayType { dtype: dtype.into(), ndim, layout: Layout::C, readonly: false })
    };
    for (name, ty) in [
        ("x", array(Scalar::F32, 1)),
        ("a", Scalar::F64.into()),
        ("flag", Scalar::Bool.into()),
        ("words", array(Scalar::U8, 1)),
    ] {
        module.params.push(Param { name: name.to_owned(), ty, access: Access::default() });
    }
    module.shared.push(SharedArray {
        name: "tile".to_owned(),
        kind: SharedKind::Program,
        elem: Scalar::F32,
        len: 32,
        shape: vec![32],
        align: 4,
        span: HERE,
    });

    let mut twice = Builder::new(Function::new("twice", FunctionKind::Device, HERE));
    let x = twice.local("x", F64);
    twice.function.params.push(x);
    twice.function.results.push(F64);
    let sum = sum_of(&mut twice, x, x);
    twice.stmt(StmtKind::Return(vec![sum]), HERE);
    let callee = module.functions.push(twice.finish());

    let mut b = Builder::new(Function::new("kernel", FunctionKind::Kernel, HERE));
    for (name, ty, param, field) in [
        ("x.data", GLOBAL, 0, SlotField::Data),
        ("x.shape0", Type::I64, 0, SlotField::Shape(0)),
        ("a", F64, 1, SlotField::Value),
    ] {
        let local = b.local(name, ty);
        b.function.params.push(local);
        b.function.slots.push(argument(param, &[], field));
    }
    b.local("i", Type::I64);
    b.local("flag", Type::BOOL);
    b.local("words", Type::Ptr(Scalar::U8, Space::Global));
    let thread = b.special(SpecialRegister::ThreadIdx(0), HERE);
    let index = b.convert(thread, Type::I64, HERE);
    b.assign(I, index, HERE);
    let result = b.local("t", F64);
    let factor = b.read(FACTOR, HERE);
    b.stmt(StmtKind::Call { results: vec![result], func: callee, args: vec![factor] }, HERE);
    b.open();
    let [i, n] = [I, EXTENT].map(|local| b.read(local, HERE));
    let done = b.compare(CompareOp::Ge, i, n, HERE);
    b.open();
    b.stmt(StmtKind::Break, HERE);
    let then = b.close();
    b.stmt(StmtKind::If { cond: done, then, otherwise: vec![] }, HERE);
    let pointer = element(&mut b);
    let value = b.read(result, HERE);
    let value = b.convert(value, F32, HERE);
    b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, HERE);
    let pointer = element(&mut b);
    let value = b.float(Scalar::F32, 0.5, HERE);
    b.op(ADD, vec![], vec![pointer, value], HERE);
    let body = b.close();
    b.open();
    let [i, one] = [b.read(I, HERE), b.i64(1, HERE)];
    let next = b.binary(BinaryOp::Add, i, one, HERE);
    b.assign(I, next, HERE);
    let step = b.close();
    b.stmt(StmtKind::Loop { body, step }, HERE);
    b.op(Op::Barrier, vec![], vec![], HERE);
    module.kernel = Some(module.functions.push(b.finish()));
    module
}

fn sum_of(b: &mut Builder, left: LocalId, right: LocalId) -> ExprId {
    let [left, right] = [left, right].map(|local| b.read(local, HERE));
    b.binary(BinaryOp::Add, left, right, HERE)
}

/// `x.data[wrap(i, x.shape0)]`.
fn element(b: &mut Builder) -> ExprId {
    let [base, index, extent] = [DATA, I, EXTENT].map(|local| b.read(local, HERE));
    let index = b.expr(ExprKind::Wrap { index, extent }, Type::I64, HERE);
    b.expr(ExprKind::Offset { base, index, scale: 1 }, GLOBAL, HERE)
}

/// The valid module with statements added to its kernel.
fn with(add: impl FnOnce(&mut Builder)) -> Module {
    let mut module = whole();
    let id = module.kernel.expect("the module is whole");
    let mut function = module.functions[id].clone();
    let body = std::mem::take(&mut function.body);
    let mut b = Builder::new(function);
    for stmt in body {
        b.stmt(stmt.kind, stmt.span);
    }
    add(&mut b);
    module.functions[id] = b.finish();
    module
}

/// The valid module with an expression of these operands evaluated in it.
fn with_expr(ty: Type, kind: impl FnOnce(&mut Builder) -> ExprKind) -> Module {
    with(|b| {
        let kind = kind(b);
        let value = b.expr(kind, ty, HERE);
        let local = b.local("new", ty);
        b.assign(local, value, HERE);
    })
}

fn with_const(ty: Type, value: Const) -> Module {
    with_expr(ty, |_| ExprKind::Const(value))
}

fn with_binary(op: BinaryOp, left: LocalId, right: LocalId, ty: Type) -> Module {
    with_expr(ty, |b| {
        let [left, right] = [left, right].map(|local| b.read(local, HERE));
        ExprKind::Binary(op, left, right)
    })
}

fn with_stmt(kind: impl FnOnce(&mut Builder) -> StmtKind) -> Module {
    with(|b| {
        let kind = kind(b);
        b.stmt(kind, HERE);
    })
}

fn with_kernel(change: impl FnOnce(&mut Function)) -> Module {
    with(|b| change(&mut b.function))
}

fn changed(change: impl FnOnce(&mut Module)) -> Module {
    let mut module = whole();
    change(&mut module);
    module
}

/// The valid module with a loop around statements in its body and step.
fn with_loop(body: Vec<StmtKind>, step: Vec<StmtKind>) -> Module {
    with_stmt(|_| {
        let [body, step] = [body, step].map(|kinds| kinds.into_iter().map(stmt).collect());
        StmtKind::Loop { body, step }
    })
}

fn stmt(kind: StmtKind) -> crate::ir::Stmt {
    crate::ir::Stmt { kind, span: HERE }
}

/// An atomic addition, relaxed, at device scope.
const ADD: Op = Op::atomic(AtomicOp::Add);

fn op(op: Op, args: Vec<ExprId>) -> StmtKind {
    StmtKind::Op { op, results: vec![], args }
}

/// The valid module with a call of `int f(float *, T)`, whose argument is `a`, a float64.
fn with_external(param: ArgType) -> Module {
    let mut module = with_stmt(|b| op(Op::External(ExternalId::new(0)), vec![b.read(FACTOR, HERE)]));
    let (symbol, returns) = ("f".to_owned(), Some(Scalar::F32.into()));
    module.externals.push(External { symbol, params: vec![param], returns, writes: true, span: HERE });
    module
}

#[test]
fn functions_of_other_languages_get_what_they_take() {
    assert_eq!(verify(&with_external(Scalar::F64.into())), Ok(()));
    let external = &with_external(ArgType::Pointer(None)).externals[ExternalId::new(0)];
    assert_eq!(external.operands(), [Type::Ptr(Scalar::U8, Space::Generic)]);
    assert_eq!(external.results(), [Type::I32, F32]);
}

const CALLEE: FuncId = FuncId::new(0);

#[test]
fn a_whole_module_passes_and_prints() {
    let module = whole();
    assert_eq!(verify(&module), Ok(()));
    let expected = "\
param x: array(float32, 1d, C)
param a: float64
param flag: boolean
param words: array(uint8, 1d, C)
shared tile: float32[32] align 4

fn @twice(
    $x: float64
) -> float64 {
    return $x + $x
}

kernel @kernel(
    $x.data: ptr<float32, global> = x.data,
    $x.shape0: int64 = x.shape[0],
    $a: float64 = a
) {
    var $i: int64
    var $t: float64
    $i = int64(threadIdx.x)
    $t = call @twice($a)
    loop {
        if $i >= $x.shape0 {
            break
        }
        store $x.data[wrap($i, $x.shape0)] = float32($t)
        atomic.add $x.data[wrap($i, $x.shape0)], 0.5:float32
    } step {
        $i = $i + 1
    }
    barrier
}
";
    assert_eq!(module.to_string(), expected);
}

#[test]
fn each_broken_module_is_caught() {
    let read = |b: &mut Builder, local: LocalId| b.read(local, HERE);
    #[rustfmt::skip]
    let cases: Vec<(&str, Module)> = vec![
        // The module.
        ("the module has no kernel", changed(|m| m.kernel = None)),
        ("external: operands", with_external(Scalar::F32.into())),
        ("is not declared", with_stmt(|_| op(Op::External(ExternalId::new(0)), vec![]))),
        ("is no function", changed(|m| m.kernel = Some(FuncId::new(9)))),
        ("is a device function", changed(|m| m.kernel = Some(CALLEE))),
        ("is a second kernel", changed(|m| m.functions[CALLEE].kind = FunctionKind::Kernel)),
        ("the results are not what it returns", changed(|m| {
            m.returns = Some(Scalar::F32.into());
            m.functions[FuncId::new(1)].kind = FunctionKind::Export;
        })),
        ("two functions have the name", changed(|m| m.functions[CALLEE].name = "kernel".to_owned())),
        ("alignment 3 does not fit", changed(|m| m.shared[SharedId::new(0)].align = 3)),
        ("alignment 2 does not fit", changed(|m| m.shared[SharedId::new(0)].align = 2)),
        ("alignment 0 is no power of two", changed(|m| m.dynamic_shared = true)),
        // Declarations.
        ("is nonneg but no integer", with_kernel(|f| f.locals[FACTOR].nonneg = true)),
        ("parameter $#99 is no local", with_kernel(|f| f.params[0] = LocalId::new(99))),
        ("occurs twice", with_kernel(|f| f.params[1] = f.params[0])),
        ("a kernel has results", with_kernel(|f| f.results.push(F64))),
        ("a device function has slots", changed(|m| m.functions[CALLEE].slots.push(argument(0, &[], SlotField::Value)))),
        // A kernel's slots.
        ("3 parameters but 2 slots", with_kernel(|f| drop(f.slots.pop()))),
        ("slot #0.data occurs twice", with_kernel(|f| f.slots[1] = f.slots[0].clone())),
        ("slot #9.data is no field", with_kernel(|f| f.slots[0] = argument(9, &[], SlotField::Data))),
        ("slot #0.shape[1] is no field", with_kernel(|f| f.slots[1] = argument(0, &[], SlotField::Shape(1)))),
        ("slot #0[0].data is no field", with_kernel(|f| f.slots[0] = argument(0, &[0], SlotField::Data))),
        ("slot #1.real is no field", with_kernel(|f| f.slots[2] = argument(1, &[], SlotField::Real))),
        ("slot #2 is boolean, but", with_kernel(|f| f.slots[2] = argument(2, &[], SlotField::Value))),
        // Trees.
        ("%? is no expression", with_stmt(|_| StmtKind::Return(vec![ExprId::new(9999)]))),
        ("is used twice", with(|b| { let x = read(b, I); b.assign(I, x, HERE); b.assign(I, x, HERE); })),
        ("is used twice", with_expr(Type::I64, |b| { let x = read(b, I); ExprKind::Binary(BinaryOp::Add, x, x) })),
        ("is used twice", with(|b| {
            let x = read(b, I);
            b.function.exprs[x].kind = ExprKind::Convert(x);
            b.assign(I, x, HERE);
        })),
        // Expressions.
        ("the constant does not fit", with_const(U8, Const::Int(256))),
        ("the constant does not fit", with_const(U8, Const::Int(-1))),
        ("the constant does not fit", with_const(F32, Const::Float(0.1))),
        ("the constant does not fit", with_const(F64, Const::Int(1))),
        ("the constant does not fit", with_const(Type::BOOL, Const::Int(1))),
        ("the constant does not fit", with_const(GLOBAL, Const::Int(0))),
        ("is no local", with_expr(Type::I64, |_| ExprKind::Local(LocalId::new(99)))),
        ("$i is int64", with_expr(F64, |_| ExprKind::Local(I))),
        ("a special register is int32", with_expr(Type::I64, |_| ExprKind::Special(SpecialRegister::LaneId))),
        ("a special register is int32", with_expr(Type::I32, |_| ExprKind::Special(SpecialRegister::GridDim(3)))),
        ("Not does not take float64", with_expr(F64, |b| ExprKind::Unary(UnaryOp::Not, read(b, FACTOR)))),
        ("Neg does not take boolean", with_expr(Type::BOOL, |b| ExprKind::Unary(UnaryOp::Neg, read(b, FLAG)))),
        ("Add does not take int64 and float64", with_binary(BinaryOp::Add, I, FACTOR, Type::I64)),
        ("Add does not take int64 and int64", with_binary(BinaryOp::Add, I, EXTENT, Type::I32)),
        ("Add does not take boolean", with_binary(BinaryOp::Add, FLAG, FLAG, Type::BOOL)),
        ("Div does not take int64", with_binary(BinaryOp::Div, I, EXTENT, Type::I64)),
        ("Shl does not take float64", with_binary(BinaryOp::Shl, FACTOR, FACTOR, F64)),
        ("Xor does not take float64", with_binary(BinaryOp::Xor, FACTOR, FACTOR, F64)),
        ("DivNonneg does not take float64", with_binary(BinaryOp::DivNonneg, FACTOR, FACTOR, F64)),
        ("Lt does not compare boolean", with_expr(Type::BOOL, |b| ExprKind::Compare(CompareOp::Lt, read(b, FLAG), read(b, FLAG)))),
        ("Lt does not compare int64 and float64", with_expr(Type::BOOL, |b| ExprKind::Compare(CompareOp::Lt, read(b, I), read(b, FACTOR)))),
        ("Lt does not compare int64", with_expr(Type::I64, |b| ExprKind::Compare(CompareOp::Lt, read(b, I), read(b, I)))),
        ("select of int64", with_expr(Type::I64, |b| ExprKind::Select(read(b, I), read(b, I), read(b, I)))),
        ("select of boolean, int64 and float64", with_expr(Type::I64, |b| ExprKind::Select(read(b, FLAG), read(b, I), read(b, FACTOR)))),
        ("int64 does not convert", with_expr(GLOBAL, |b| ExprKind::Convert(read(b, I)))),
        ("does not convert", with_expr(Type::Ptr(Scalar::F32, Space::Shared), |b| ExprKind::Convert(read(b, DATA)))),
        ("math.sin of", with_expr(Type::I64, |b| ExprKind::Math(MathFn::Sin, vec![read(b, I)]))),
        ("math.pow of", with_expr(F64, |b| ExprKind::Math(MathFn::Pow, vec![read(b, FACTOR)]))),
        ("math.ldexp of", with_expr(F64, |b| ExprKind::Math(MathFn::Ldexp, vec![read(b, FACTOR), read(b, FACTOR)]))),
        ("math.isnan of", with_expr(F64, |b| ExprKind::Math(MathFn::Isnan, vec![read(b, FACTOR)]))),
        ("not the elements' type", with_expr(F64, |b| ExprKind::Load(read(b, DATA), Align::Natural))),
        ("does not take [Scalar(I64)]", with_expr(F32, |b| ExprKind::Load(read(b, I), Align::Natural))),
        ("offset by int64 times 0", with_expr(GLOBAL, |b| ExprKind::Offset { base: read(b, DATA), index: read(b, I), scale: 0 })),
        ("offset by float64", with_expr(GLOBAL, |b| ExprKind::Offset { base: read(b, DATA), index: read(b, FACTOR), scale: 1 })),
        ("offset by float64", with_expr(GLOBAL, |b| ExprKind::ByteOffset { base: read(b, DATA), bytes: read(b, FACTOR) })),
        ("shared #5 is no array", with_expr(GLOBAL, |_| ExprKind::SharedBase(SharedId::new(5)))),
        ("not a pointer to its elements", with_expr(GLOBAL, |_| ExprKind::SharedBase(SharedId::new(0)))),
        ("the module must say", with_expr(Type::Ptr(Scalar::F32, Space::Shared), |_| ExprKind::DynamicShared)),
        ("local #0 is no array", with_expr(GLOBAL, |_| ExprKind::LocalBase(crate::ir::LocalArrayId::new(0)))),
        ("wrap of int64 and float64", with_expr(Type::I64, |b| ExprKind::Wrap { index: read(b, I), extent: read(b, FACTOR) })),
        // Statements.
        ("assignment: $i.3 is int64, the value float64", with(|b| { let x = read(b, FACTOR); b.assign(I, x, HERE); })),
        ("assignment: $#99 is no local", with(|b| { let x = read(b, I); b.assign(LocalId::new(99), x, HERE); })),
        ("store: int64 is no pointer", with_stmt(|b| StmtKind::Store { pointer: read(b, I), value: read(b, I), align: Align::Natural })),
        ("store: the value is float64", with_stmt(|b| StmtKind::Store { pointer: read(b, DATA), value: read(b, FACTOR), align: Align::Natural })),
        ("atomic.add: int64 is no pointer", with_stmt(|b| op(ADD, vec![read(b, I), read(b, I)]))),
        ("atomic.add: ptr<float32, global> is no element", with_stmt(|b| op(ADD, vec![read(b, DATA), read(b, DATA)]))),
        ("atomic.and does not take float32", with_stmt(|b| {
            let value = b.float(Scalar::F32, 1.0, HERE);
            op(Op::atomic(AtomicOp::And), vec![read(b, DATA), value])
        })),
        ("atomic.inc does not take float32", with_stmt(|b| {
            let value = b.float(Scalar::F32, 1.0, HERE);
            op(Op::atomic(AtomicOp::Inc), vec![read(b, DATA), value])
        })),
        ("atomic.add: 3 operands, it takes 2", with_stmt(|b| {
            let [value, compare] = [1.0, 2.0].map(|x| b.float(Scalar::F32, x, HERE));
            op(ADD, vec![read(b, DATA), compare, value])
        })),
        ("atomic.add: an operand is float64, the elements float32", with_stmt(|b| op(ADD, vec![read(b, DATA), read(b, FACTOR)]))),
        ("atomic.add: $i.3 is int64", with_stmt(|b| {
            let value = b.float(Scalar::F32, 1.0, HERE);
            StmtKind::Op { op: ADD, results: vec![I], args: vec![read(b, DATA), value] }
        })),
        ("barrier: 1 locals take its 0 results", with_stmt(|_| StmtKind::Op { op: Op::Barrier, results: vec![I], args: vec![] })),
        ("call: #9 is no function", with_stmt(|_| StmtKind::Call { results: vec![], func: FuncId::new(9), args: vec![] })),
        ("@late is not defined before its caller", changed(|module| {
            let late = Function { name: "late".to_owned(), ..module.functions[CALLEE].clone() };
            let func = module.functions.push(late);
            let kernel = module.kernel.expect("the module has a kernel");
            module.functions[kernel].body.push(crate::ir::Stmt { kind: StmtKind::Call { results: vec![], func, args: vec![] }, span: HERE });
        })),
        ("call: @kernel is no device function", with_stmt(|_| StmtKind::Call { results: vec![], func: FuncId::new(1), args: vec![] })),
        ("call: 0 arguments, @twice takes 1", with_stmt(|_| StmtKind::Call { results: vec![FACTOR], func: CALLEE, args: vec![] })),
        ("call: an argument of @twice is int64", with_stmt(|b| StmtKind::Call { results: vec![FACTOR], func: CALLEE, args: vec![read(b, I)] })),
        ("call: 0 locals take the 1 results", with_stmt(|b| StmtKind::Call { results: vec![], func: CALLEE, args: vec![read(b, FACTOR)] })),
        ("call: $i.3 is int64, the value float64", with_stmt(|b| StmtKind::Call { results: vec![I], func: CALLEE, args: vec![read(b, FACTOR)] })),
        ("warp_barrier: an operand is int64, not int32", with_stmt(|b| op(Op::WarpBarrier, vec![read(b, I)]))),
        ("if: the condition is int64", with_stmt(|b| StmtKind::If { cond: read(b, I), then: vec![], otherwise: vec![] })),
        // Control flow.
        ("`break` outside a loop body", with_stmt(|_| StmtKind::Break)),
        ("`continue` outside a loop body", with_stmt(|_| StmtKind::Continue)),
        ("`break` outside a loop body", with_loop(vec![], vec![StmtKind::Break])),
        ("`continue` outside a loop body", with_loop(vec![], vec![StmtKind::Continue])),
        ("`return` in the step of a loop", with_loop(vec![], vec![StmtKind::Return(vec![])])),
        ("`return` in the step of a loop", with_loop(vec![], vec![StmtKind::Loop { body: vec![stmt(StmtKind::Return(vec![]))], step: vec![] }])),
        ("return: 1 values for 0 results", with_stmt(|b| StmtKind::Return(vec![read(b, I)]))),
        ("return: the value is int64, the result float64", changed(|m| {
            let f = &mut m.functions[CALLEE];
            let value = f.exprs.push(Expr::int(Scalar::I64, 1, HERE));
            f.body = vec![stmt(StmtKind::Return(vec![value]))];
        })),
        ("a path ends without `return`", changed(|m| m.functions[CALLEE].body.clear())),
        ("a path ends without `return`", changed(|m| {
            m.functions[CALLEE].body = vec![stmt(StmtKind::Loop { body: vec![stmt(StmtKind::Break)], step: vec![] })];
        })),
        // Spans.
        ("span 0:2..1 is of no file", with(|b| b.op(Op::Barrier, vec![], vec![], Span { file: 0, start: 2, end: 1 }))),
    ];
    for (index, (expected, module)) in cases.into_iter().enumerate() {
        let expected = expected.replace("%?", "%9999");
        let errors = verify(&module).expect_err(&expected).join("\n");
        assert!(errors.contains(&expected), "case {index}: no {expected:?} in\n{errors}");
        // Printing an invalid module must not fail: the report of an internal error shows it.
        assert!(!module.to_string().is_empty());
    }
}

#[test]
fn a_loop_without_break_needs_no_return_behind_it() {
    let module = changed(|m| {
        let body = std::mem::take(&mut m.functions[CALLEE].body);
        m.functions[CALLEE].body = vec![stmt(StmtKind::Loop { body, step: vec![] })];
    });
    assert_eq!(verify(&module), Ok(()));
}

#[test]
fn nested_loops_have_their_own_break() {
    let inner = StmtKind::Loop { body: vec![stmt(StmtKind::Break), stmt(StmtKind::Continue)], step: vec![] };
    assert_eq!(verify(&with_loop(vec![inner.clone(), StmtKind::Break], vec![inner])), Ok(()));
}
