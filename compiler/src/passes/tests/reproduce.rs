//! `reproduce`: fused products, and canonicalized NaNs.

use weft_artifact::Scalar;

use super::{HERE, Kernel};
use crate::{
    ir::{Align, BinaryOp, Builder, ExprId, ExprKind, LocalId, MathFn, StmtKind, Type},
    passes::reproduce,
};

const SINGLE: Type = Type::Scalar(Scalar::F32);

/// The body after the pass; the locals are a scalar parameter and two temporaries.
fn made(reproducible: bool, build: impl FnOnce(&mut Builder, LocalId, LocalId, [LocalId; 2])) -> String {
    let mut kernel = Kernel::new();
    kernel.module.reproducible = reproducible;
    let x = kernel.array("x");
    let a = kernel.scalar("a", Scalar::F32);
    let temps = [(); 2].map(|()| kernel.b.new_temp(SINGLE));
    build(&mut kernel.b, x.0, a, temps);
    let text = kernel.after(reproduce::run).to_string();
    let body = text.split_once(") {\n").expect("the kernel has a body").1.trim_end().trim_end_matches('}');
    let lines = body.lines().map(str::trim).filter(|line| !line.starts_with("var "));
    lines.collect::<Vec<_>>().join("; ")
}

fn load(b: &mut Builder, data: LocalId) -> ExprId {
    let pointer = b.read(data, HERE);
    b.expr(ExprKind::Load(pointer, Align::Natural), SINGLE, HERE)
}

fn store(b: &mut Builder, data: LocalId, value: ExprId) {
    let pointer = b.read(data, HERE);
    b.stmt(StmtKind::Store { pointer, value, align: Align::Natural }, HERE);
}

/// `*x * a`.
fn product(b: &mut Builder, x: LocalId, a: LocalId) -> ExprId {
    let (left, right) = (load(b, x), b.read(a, HERE));
    b.binary(BinaryOp::Mul, left, right, HERE)
}

#[test]
fn a_product_is_fused_with_the_sum_of_its_expression() {
    let of = |op: BinaryOp, product_first: bool| {
        made(true, |b, x, a, _| {
            let (product, other) = (product(b, x, a), b.read(a, HERE));
            let (left, right) = if product_first { (product, other) } else { (other, product) };
            let sum = b.binary(op, left, right, HERE);
            store(b, x, sum);
        })
    };
    let fused = |args: &str| format!("store $x.data = math.canonical_nan(math.fma({args}))");
    assert_eq!(of(BinaryOp::Add, true), fused("load $x.data, $a, $a"));
    assert_eq!(of(BinaryOp::Add, false), fused("load $x.data, $a, $a"));
    assert_eq!(of(BinaryOp::Sub, true), fused("load $x.data, $a, -$a"));
    assert_eq!(of(BinaryOp::Sub, false), fused("-load $x.data, $a, $a"));
    assert_eq!(of(BinaryOp::Div, true), "store $x.data = math.canonical_nan(load $x.data * $a / $a)");
}

#[test]
fn of_two_products_the_left_one_is_fused() {
    let both = made(true, |b, x, a, _| {
        let (left, right) = (product(b, x, a), product(b, x, a));
        let sum = b.binary(BinaryOp::Sub, left, right, HERE);
        store(b, x, sum);
    });
    assert_eq!(both, "store $x.data = math.canonical_nan(math.fma(load $x.data, $a, -(load $x.data * $a)))");
}

#[test]
fn a_temporary_that_is_read_once_is_a_part_of_the_expression_and_a_variable_is_none() {
    let through = |is_temp: bool, n_read: usize| {
        made(true, |b, x, a, [t, _]| {
            let held = if is_temp { t } else { b.local("t", SINGLE) };
            let value = product(b, x, a);
            b.assign(held, value, HERE);
            for _ in 0..n_read {
                let (left, right) = (b.read(a, HERE), b.read(held, HERE));
                let sum = b.binary(BinaryOp::Add, left, right, HERE);
                store(b, x, sum);
            }
        })
    };
    // The factors are read at the point where the product was computed.
    assert_eq!(
        through(true, 1),
        "$t.5 = load $x.data; $t.6 = $a; store $x.data = math.canonical_nan(math.fma($t.5, $t.6, $a))"
    );
    let sum = "store $x.data = math.canonical_nan($a + $t)";
    assert_eq!(through(true, 2), format!("$t = load $x.data * $a; {sum}; {sum}"));
    assert!(through(false, 1).contains("$a + $t"), "{}", through(false, 1));
}

#[test]
fn what_is_copied_stays_and_what_is_computed_has_one_nan() {
    let copied = made(true, |b, x, _, [t, _]| {
        let value = load(b, x);
        b.assign(t, value, HERE);
        let value = b.read(t, HERE);
        store(b, x, value);
    });
    assert!(!copied.contains("canonical_nan"), "{copied}");
    // The operand of `copysign` is a copy of a temporary with a computed value.
    let computed = made(true, |b, x, a, [t, u]| {
        let (left, right) = (b.read(a, HERE), b.read(a, HERE));
        let value = b.binary(BinaryOp::Sub, left, right, HERE);
        b.assign(t, value, HERE);
        let value = b.read(t, HERE);
        b.assign(u, value, HERE);
        let (one, sign) = (b.read(a, HERE), b.read(u, HERE));
        let signed = b.math(MathFn::Copysign, vec![one, sign], SINGLE, HERE);
        store(b, x, signed);
    });
    assert!(computed.contains("math.copysign($a, math.canonical_nan($"), "{computed}");
    assert!(computed.contains("store $x.data = math.canonical_nan(math.copysign("), "{computed}");
}

#[test]
fn nothing_changes_unless_somebody_asks() {
    let plain = made(false, |b, x, a, _| {
        let (left, right) = (product(b, x, a), b.read(a, HERE));
        let sum = b.binary(BinaryOp::Add, left, right, HERE);
        store(b, x, sum);
    });
    assert_eq!(plain, "store $x.data = load $x.data * $a + $a");
}

#[test]
fn an_exponent_that_a_temporary_holds_stands_in_its_power() {
    let power = made(true, |b, x, a, [t, _]| {
        let two = b.float(Scalar::F32, 2.0, HERE);
        b.assign(t, two, HERE);
        let (base, exponent) = (b.read(a, HERE), b.read(t, HERE));
        let power = b.math(MathFn::Pow, vec![base, exponent], SINGLE, HERE);
        store(b, x, power);
    });
    assert!(power.contains("math.pow($a, 2.0:float32)"), "{power}");
}
