//! `fold_temps` followed by `drop_dead`, as in the table of passes.

use weft_artifact::Scalar;

use super::{HERE, Kernel};
use crate::{
    ir::{Align, BinaryOp, Builder, ExprId, ExprKind, LocalId, Op, StmtKind, Type},
    passes::{drop_dead, fold_temps},
};

/// The body after folding and dropping dead code; `t0` to `t2` are temporaries.
fn folded(build: impl FnOnce(&mut Builder, LocalId, [LocalId; 3])) -> String {
    let mut kernel = Kernel::new();
    let x = kernel.array("x");
    let temps = [(); 3].map(|()| kernel.b.new_temp(Type::Scalar(Scalar::F32)));
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
    b.expr(ExprKind::Load(pointer, Align::Natural), Type::Scalar(Scalar::F32), HERE)
}

/// `*data = local`.
fn store_local(b: &mut Builder, data: LocalId, local: LocalId) {
    let (pointer, value) = (b.read(data, HERE), b.read(local, HERE));
    b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, HERE);
}

#[test]
fn a_temporary_goes_into_the_next_statement_only() {
    let next = folded(|b, data, [t, ..]| {
        let value = load(b, data);
        b.assign(t, value, HERE);
        store_local(b, data, t);
    });
    assert_eq!(next, "store $x.data = load $x.data");
    // The load must not move past the store.
    let later = folded(|b, data, [t, u, _]| {
        for local in [t, u] {
            let value = load(b, data);
            b.assign(local, value, HERE);
        }
        store_local(b, data, u);
        store_local(b, data, t);
    });
    assert_eq!(later, "$t = load $x.data; store $x.data = load $x.data; store $x.data = $t");
    // Two reads: folding would repeat the load.
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
        b.op(Op::Barrier, vec![], vec![], HERE);
        store_local(b, data, v);
        store_local(b, data, u);
    });
    assert_eq!(text, "barrier; store $x.data = 2.0:float32; store $x.data = 2.0:float32");
    // The temporary holds the value before the assignment, so it is not replaced.
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
