//! Shared, dynamic and local memory, barriers, fences, atomics, and calls.

use weft_artifact::Scalar;

use super::{ptx, ptx_for};
use crate::{
    backend::{
        emit,
        testing::{KernelBuilder, SPAN, request},
    },
    diagnostic::Code,
    ir::{
        Align, AtomicOp, BinaryOp, Builder, ExprId, ExprKind, Function, FunctionKind, LocalArray, LocalId, Op, Order,
        Scope, SharedArray, SharedId, SharedKind, Space, SpecialRegister, StmtKind, Type,
    },
    request::{Options, Target},
};

impl KernelBuilder {
    fn shared(&mut self, name: &str, elem: Scalar, len: u64) -> SharedId {
        let array = SharedArray {
            name: name.to_owned(),
            kind: SharedKind::Program,
            elem,
            len,
            shape: vec![len],
            align: elem.align_bytes(),
            span: SPAN,
        };
        self.module.shared.push(array)
    }

    /// The address of an element of a shared array.
    fn shared_at(&mut self, array: SharedId, index: LocalId) -> ExprId {
        let ty = Type::Ptr(self.module.shared[array].elem, Space::Shared);
        let base = self.b.expr(ExprKind::SharedBase(array), ty, SPAN);
        let index = self.read(index);
        self.b.expr(ExprKind::Offset { base, index, scale: 1 }, ty, SPAN)
    }

    fn thread(&mut self) -> LocalId {
        let thread = self.b.special(SpecialRegister::ThreadIdx(0), SPAN);
        let thread = self.b.convert(thread, Type::I64, SPAN);
        let local = self.b.local("t", Type::I64);
        self.b.assign(local, thread, SPAN);
        local
    }
}

/// Passes a value to another thread through shared memory.
#[test]
fn shared_memory_and_barriers() {
    let mut k = KernelBuilder::new("reverse");
    let x = k.array("x", Scalar::F32);
    let tile = k.shared("tile", Scalar::F32, 64);
    let t = k.thread();
    let value = k.load(x, t);
    let pointer = k.shared_at(tile, t);
    k.b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, SPAN);
    k.b.op(Op::Barrier, vec![], vec![], SPAN);
    let (last, thread) = (k.b.i64(63, SPAN), k.read(t));
    let mirrored = k.b.binary(BinaryOp::Sub, last, thread, SPAN);
    let m = k.b.temp(mirrored, SPAN);
    let pointer = k.shared_at(tile, m);
    let value = k.b.expr(ExprKind::Load(pointer, Align::Natural), Type::Scalar(Scalar::F32), SPAN);
    k.store(x, t, value);
    for scope in [Scope::Block, Scope::Device, Scope::System] {
        k.b.op(Op::Fence(scope), vec![], vec![], SPAN);
    }
    let mask = k.b.int(Scalar::I32, -1, SPAN);
    k.b.op(Op::WarpBarrier, vec![], vec![mask], SPAN);
    let text = ptx(&k.finish());
    for part in [
        "bar.sync",
        "st.shared.b32",
        "ld.shared.b32",
        ".shared .align 4 .b8",
        "membar.cta",
        "membar.gl",
        "membar.sys",
        "bar.warp.sync",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
}

/// Two arrays in dynamic shared memory, at byte offsets.
#[test]
fn dynamic_shared_memory() {
    let mut k = KernelBuilder::new("dynamic");
    k.module.dynamic_shared = true;
    k.module.dynamic_shared_align = 16;
    let out = k.array("out", Scalar::I32);
    let t = k.thread();
    let ty = Type::Ptr(Scalar::F64, Space::Shared);
    let base = k.b.expr(ExprKind::DynamicShared, ty, SPAN);
    let bytes = k.b.i64(256, SPAN);
    let pointer = k.b.expr(ExprKind::ByteOffset { base, bytes }, ty, SPAN);
    let value = k.b.float(Scalar::F64, 1.5, SPAN);
    k.b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, SPAN);
    let size = k.b.special(SpecialRegister::DynamicSharedBytes, SPAN);
    k.store(out, t, size);
    let module = k.finish();
    let text = ptx(&module);
    for part in [".extern .shared .align 16 .b8 weft$dynamic_shared[]", "%dynamic_smem_size", "st.shared.b64"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let emitted = emit(&module, &request("dynamic", Target::Sm(90, ""), Options::default())).expect("it compiles");
    assert!(emitted.artifact.kernels[0].dynamic_shared);
    assert_eq!(emitted.artifact.kernels[0].shared_bytes, 0);
}

/// A local array that is indexed by a run-time value is in local memory.
#[test]
fn local_memory() {
    let mut k = KernelBuilder::new("local");
    let out = k.array("out", Scalar::I64);
    let t = k.thread();
    let array = LocalArray { name: "buffer".into(), elem: Scalar::I64, len: 32, align: 8, span: SPAN };
    let array = k.b.function.local_arrays.push(array);
    let ty = Type::Ptr(Scalar::I64, Space::Local);
    let element = |k: &mut KernelBuilder, index: ExprId| {
        let base = k.b.expr(ExprKind::LocalBase(array), ty, SPAN);
        k.b.expr(ExprKind::Offset { base, index, scale: 1 }, ty, SPAN)
    };
    for round in 0..2 {
        let index = k.load(out, t);
        let pointer = element(&mut k, index);
        let value = k.b.i64(round, SPAN);
        k.b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, SPAN);
        k.b.op(Op::Barrier, vec![], vec![], SPAN);
    }
    let index = k.load(out, t);
    let pointer = element(&mut k, index);
    let value = k.b.expr(ExprKind::Load(pointer, Align::Natural), Type::I64, SPAN);
    k.store(out, t, value);
    let text = ptx(&k.finish());
    assert!(text.contains(".local"), "{text}");
    assert!(text.contains("st.local.b64"), "{text}");
}

/// PTX has no `atom` on local memory. An atomic operation on a pointer to local memory becomes a load and a store; with
/// a generic pointer the code tests the address space.
#[test]
fn atomics_on_local_memory() {
    for (space, steps) in [(Space::Local, 0), (Space::Generic, 1)] {
        let mut k = KernelBuilder::new("local");
        let out = k.array("out", Scalar::I64);
        let t = k.thread();
        let array = LocalArray { name: "buffer".into(), elem: Scalar::I64, len: 32, align: 8, span: SPAN };
        let array = k.b.function.local_arrays.push(array);
        let base = k.b.expr(ExprKind::LocalBase(array), Type::Ptr(Scalar::I64, Space::Local), SPAN);
        let base = k.b.convert(base, Type::Ptr(Scalar::I64, space), SPAN);
        let index = k.load(out, t);
        let pointer = k.b.expr(ExprKind::Offset { base, index, scale: 1 }, Type::Ptr(Scalar::I64, space), SPAN);
        let (value, old) = (k.b.i64(3, SPAN), k.b.local("old", Type::I64));
        k.b.op(Op::atomic(AtomicOp::Add), vec![old], vec![pointer, value], SPAN);
        let value = k.read(old);
        k.store(out, t, value);
        let module = k.finish();
        let text = ptx_for(&module, 90, Options { opt: false, ..Options::default() });
        assert_eq!(text.matches("atom.add.u64").count(), steps, "{text}");
        assert_eq!(text.matches("isspacep.local").count(), steps, "{text}");
    }
}

/// `atomic.add` on every type in global and shared memory, with and without use of the old value; and `cas`.
#[test]
fn atomics() {
    let types = [
        (Scalar::I32, "u32"),
        (Scalar::U32, "u32"),
        (Scalar::I64, "u64"),
        (Scalar::U64, "u64"),
        (Scalar::F32, "f32"),
        (Scalar::F64, "f64"),
    ];
    for (scalar, suffix) in types {
        let mut k = KernelBuilder::new("count");
        let x = k.array("x", scalar);
        let out = k.array("out", scalar);
        let tile = k.shared("tile", scalar, 8);
        let t = k.thread();
        let (pointer, value) = (k.at(out, t), k.load(x, t));
        k.b.op(Op::atomic(AtomicOp::Add), vec![], vec![pointer, value], SPAN);
        let old = k.b.local("old", Type::Scalar(scalar));
        let (pointer, value) = (k.shared_at(tile, t), k.load(x, t));
        k.b.op(Op::atomic(AtomicOp::Add), vec![old], vec![pointer, value], SPAN);
        let value = k.read(old);
        k.store(x, t, value);
        if scalar.is_int() {
            let (pointer, value, compare) = (k.at(out, t), k.load(x, t), k.read(old));
            k.b.op(Op::atomic(AtomicOp::Cas), vec![old], vec![pointer, compare, value], SPAN);
            let value = k.read(old);
            k.store(x, t, value);
        }
        let text = ptx(&k.finish());
        assert!(text.contains(&format!("atom.global.add.{suffix}")), "{text}");
        assert!(text.contains(&format!("atom.shared.add.{suffix}")), "{text}");
        assert_eq!(scalar.is_int(), text.contains("global.cas.b"), "{text}");
    }
}

/// The PTX instructions for `op` on an element of global memory, without their operands.
fn atomic(op: AtomicOp, order: Order, scope: Scope, scalar: Scalar) -> String {
    let mut k = KernelBuilder::new("count");
    let x = k.array("x", scalar);
    let t = k.thread();
    let old = k.b.local("old", Type::Scalar(scalar));
    let mut args = vec![k.at(x, t), k.load(x, t)];
    if op == AtomicOp::Cas {
        args.push(k.load(x, t));
    }
    k.b.op(Op::Atomic { op, order, scope }, vec![old], args, SPAN);
    let value = k.read(old);
    k.store(x, t, value);
    let text = ptx(&k.finish());
    let kept = text.lines().filter(|line| ["atom.", "membar", "fence."].iter().any(|word| line.contains(word)));
    kept.map(|line| line.trim().split(['\t', ';']).next().unwrap_or_default().trim()).collect::<Vec<_>>().join(" ")
}

/// The instructions and fences for each order and scope.
#[test]
fn orders_and_scopes() {
    for (scope, name) in [(Scope::Block, "cta"), (Scope::Device, "gpu"), (Scope::System, "sys")] {
        let add = if scope == Scope::System { "atom.sys.add.s32" } else { "atom.global.add.u32" };
        let fence = format!("fence.acq_rel.{name}");
        let strict = format!("fence.sc.{name}");
        for (order, before, after, word) in [
            (Order::Relaxed, "", "", "relaxed"),
            (Order::Acquire, "", fence.as_str(), "acquire"),
            (Order::Release, fence.as_str(), "", "release"),
            (Order::AcquireRelease, fence.as_str(), fence.as_str(), "acq_rel"),
            (Order::Sequential, strict.as_str(), fence.as_str(), "seq_cst"),
        ] {
            let narrow = format!("{before} atom.relaxed.{name}.global.cas.b32 {after}");
            assert_eq!(atomic(AtomicOp::Cas, order, scope, Scalar::U8), narrow.trim());
            assert_eq!(atomic(AtomicOp::Add, order, scope, Scalar::U32), format!("{before} {add} {after}").trim());
            let cas = atomic(AtomicOp::Cas, order, scope, Scalar::U32);
            let expected = match order {
                Order::Sequential => format!("fence.sc.{name} atom.acquire.{name}.global.cas.b32"),
                Order::Relaxed | Order::Acquire | Order::Release | Order::AcquireRelease => {
                    format!("atom.{word}.{name}.global.cas.b32")
                }
            };
            assert_eq!(cas, expected);
        }
    }
    for (scalar, suffix) in [(Scalar::F32, "f32"), (Scalar::F64, "f64"), (Scalar::I64, "u64")] {
        let add = atomic(AtomicOp::Add, Order::Relaxed, Scope::System, scalar);
        assert_eq!(add, format!("atom.sys.add.{suffix}"));
    }
}

/// The PTX for each atomic operation and type: an instruction, or a compare-and-swap loop.
#[test]
fn steps_of_all_types() {
    let step = |op, scalar| atomic(op, Order::Relaxed, Scope::Device, scalar);
    for (op, scalar, expected) in [
        (AtomicOp::Sub, Scalar::I32, "atom.global.add.u32"),
        (AtomicOp::Sub, Scalar::F64, "atom.relaxed.gpu.global.cas.b64"),
        (AtomicOp::And, Scalar::U32, "atom.global.and.b32"),
        (AtomicOp::Or, Scalar::I64, "atom.global.or.b64"),
        (AtomicOp::Xor, Scalar::U64, "atom.global.xor.b64"),
        (AtomicOp::Max, Scalar::I32, "atom.global.max.s32"),
        (AtomicOp::NanMax, Scalar::U64, "atom.global.max.u64"),
        (AtomicOp::Min, Scalar::U32, "atom.global.min.u32"),
        (AtomicOp::NanMin, Scalar::I64, "atom.global.min.s64"),
        (AtomicOp::Max, Scalar::F32, "atom.relaxed.gpu.global.cas.b32"),
        (AtomicOp::NanMin, Scalar::F64, "atom.relaxed.gpu.global.cas.b64"),
        (AtomicOp::Inc, Scalar::U32, "atom.global.inc.u32"),
        (AtomicOp::Dec, Scalar::U32, "atom.global.dec.u32"),
        (AtomicOp::Inc, Scalar::U64, "atom.relaxed.gpu.global.cas.b64"),
        (AtomicOp::Exchange, Scalar::F32, "atom.global.exch.b32"),
        (AtomicOp::Exchange, Scalar::I64, "atom.global.exch.b64"),
        (AtomicOp::Cas, Scalar::F64, "atom.relaxed.gpu.global.cas.b64"),
        (AtomicOp::Add, Scalar::I8, "atom.relaxed.gpu.global.cas.b32"),
        (AtomicOp::Max, Scalar::U16, "atom.relaxed.gpu.global.cas.b32"),
        (AtomicOp::Or, Scalar::Bool, "atom.relaxed.gpu.global.cas.b32"),
        (AtomicOp::Cas, Scalar::I16, "atom.relaxed.gpu.global.cas.b32"),
        (AtomicOp::Add, Scalar::F16, "atom.global.add.noftz.f16"),
        (AtomicOp::Add, Scalar::BF16, "atom.global.add.noftz.bf16"),
    ] {
        assert_eq!(step(op, scalar), expected, "{op:?} of {scalar}");
    }
    for (op, scalar, expected) in [
        (AtomicOp::Sub, Scalar::U32, "atom.sys.add.s32"),
        (AtomicOp::Max, Scalar::I32, "atom.sys.max.s32"),
        (AtomicOp::Max, Scalar::U32, "atom.relaxed.sys.global.cas.b32"),
        (AtomicOp::Exchange, Scalar::U64, "atom.sys.exch.b64"),
        (AtomicOp::Inc, Scalar::U32, "atom.sys.inc.u32"),
        (AtomicOp::Add, Scalar::F16, "atom.relaxed.sys.global.cas.b32"),
    ] {
        assert_eq!(atomic(op, Order::Relaxed, Scope::System, scalar), expected, "{op:?} of {scalar}");
    }
}

/// An atomic operation on a part of a word reads the word by an atomic load, for every operation, memory and GPU. The
/// word is within the declared shared memory.
#[test]
fn parts_of_words() {
    for (op, scalar) in [
        (AtomicOp::Add, Scalar::I8),
        (AtomicOp::Cas, Scalar::U8),
        (AtomicOp::Cas, Scalar::I16),
        (AtomicOp::Exchange, Scalar::U16),
        (AtomicOp::Max, Scalar::F16),
        (AtomicOp::Or, Scalar::Bool),
        (AtomicOp::Add, Scalar::BF16),
    ] {
        let mut k = KernelBuilder::new("part");
        let x = k.array("x", scalar);
        let tile = k.shared("tile", scalar, 5);
        let t = k.thread();
        for shared in [false, true] {
            let pointer = if shared { k.shared_at(tile, t) } else { k.at(x, t) };
            let zero = |k: &mut KernelBuilder| k.b.zero(Type::Scalar(scalar), SPAN);
            let mut args = vec![pointer, zero(&mut k)];
            if op == AtomicOp::Cas {
                args.push(zero(&mut k));
            }
            k.b.op(Op::atomic(op), vec![], args, SPAN);
        }
        let text = ptx_for(&k.finish(), 80, Options::default());
        assert!(!text.contains("ld.shared") && !text.contains("ld.global"), "{op:?} of {scalar}: {text}");
        for memory in ["shared", "global"] {
            assert_eq!(text.matches(&format!("ld.relaxed.gpu.{memory}.b32")).count(), 1, "{op:?} of {scalar}: {text}");
            assert_eq!(text.matches(&format!("{memory}.cas.b32")).count(), 1, "{op:?} of {scalar}: {text}");
        }
        let bytes = if scalar.size_bytes() == 1 { 8 } else { 12 };
        assert!(text.contains(&format!("[{bytes}]")), "{op:?} of {scalar}: {text}");
    }
}

/// Device functions with no, one and two results, inlined and called; one contains a barrier.
#[test]
fn calls() {
    for inline in [true, false] {
        let mut k = KernelBuilder::new("caller");
        let out = k.array("out", Scalar::I32);
        let device = |name: &str, results: &[Type]| {
            let mut function = Function::new(name, FunctionKind::Device, SPAN);
            function.inline = inline;
            function.results = results.to_vec();
            let mut b = Builder::new(function);
            let x = b.local("x", Type::I32);
            let flag = b.local("flag", Type::BOOL);
            b.function.params = vec![x, flag];
            b.op(Op::Barrier, vec![], vec![], SPAN);
            let (old, cond) = (b.read(x, SPAN), b.read(flag, SPAN));
            let one = b.int(Scalar::I32, 1, SPAN);
            let next = b.binary(BinaryOp::Add, old, one, SPAN);
            let old = b.read(x, SPAN);
            let next = b.select(cond, next, old, SPAN);
            let values = [next, b.read(flag, SPAN)];
            b.stmt(StmtKind::Return(values[..results.len()].to_vec()), SPAN);
            b.finish()
        };
        let none = k.module.functions.push(device("none", &[]));
        let one = k.module.functions.push(device("one", &[Type::I32]));
        let two = k.module.functions.push(device("two.λ", &[Type::I32, Type::BOOL]));
        let t = k.thread();
        let (x, flag) = (k.b.local("x", Type::I32), k.b.local("flag", Type::BOOL));
        let (value, yes) = (k.load(out, t), k.b.bool(true, SPAN));
        k.b.assign(x, value, SPAN);
        k.b.assign(flag, yes, SPAN);
        for (func, results) in [(none, vec![]), (one, vec![x]), (two, vec![x, flag])] {
            let args = vec![k.read(x), k.read(flag)];
            k.b.stmt(StmtKind::Call { results, func, args }, SPAN);
        }
        let (value, flag) = (k.read(x), k.read(flag));
        let flag = k.b.convert(flag, Type::I32, SPAN);
        let sum = k.b.binary(BinaryOp::Add, value, flag, SPAN);
        k.store(out, t, sum);
        let module = k.finish();
        let text = ptx(&module);
        assert_eq!(text.matches("bar.sync").count(), 3, "{text}");
        let plain = ptx_for(&module, 90, Options { opt: false, ..Options::default() });
        assert_eq!(plain.contains("call.uni") || plain.contains("call "), !inline, "{plain}");
    }
}

#[test]
fn too_much_shared_memory_is_rejected() {
    let mut k = KernelBuilder::new("greedy");
    k.shared("small", Scalar::I8, 1);
    k.shared("large", Scalar::F64, 6144);
    let error = emit(&k.finish(), &request("greedy", Target::Sm(90, ""), Options::default())).expect_err("too large");
    assert_eq!(error.code, Code::SharedTooLarge);
    assert!(error.message.contains("49160"), "{}", error.message);
}
