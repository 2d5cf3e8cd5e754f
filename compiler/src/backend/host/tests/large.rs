//! Results of large kernels. Algorithms of quadratic or cubic time in the compiler would make these tests take minutes
//! (`docs/design/large-kernels.md`).

use std::fmt::Write;

use crate::{
    backend::host::tests::harness::{Arg, Kernel, array, kernel, output},
    request::{HostCpu, Target},
    target,
};

/// `n` calls of a function with a loop. Each call uses the previous one's result.
fn calls(n: usize) -> String {
    let mut text = "
def f(x, y):
    r = 0
    for q in range(y):
        r += (x * q) % 7
    return r
def k(o, n):
    i = cuda.grid(1)
    s = 0
"
    .to_owned();
    text.push_str(&"    s += f(i + s, n)\n".repeat(n));
    text + "    o[i] = s\n"
}

fn barriers(n: usize) -> String {
    let mut text = "
def k(o, n):
    i = cuda.threadIdx.x
    s = cuda.shared.array(4, int64)
    t = n * 2
    s[i] = i
"
    .to_owned();
    for at in 0..n / 2 {
        let _ = writeln!(
            text,
            "    cuda.syncthreads()\n    v = s[(i + 1) % 4]\n    cuda.syncthreads()\n    s[i] = v + {at} * t"
        );
    }
    text + "    cuda.syncthreads()\n    if i < n:\n        o[i] = s[i]\n"
}

fn ptx(source: &str) {
    let target = target::parse("sm_75", || -> std::sync::Arc<HostCpu> { unreachable!() }).expect("a target");
    assert!(matches!(target, Target::Sm(75, "")));
    output(source, "void(int64[::1], int64)", target);
}

#[test]
fn many_calls_of_a_function_with_a_loop() {
    let kernel: Kernel = kernel(&calls(160), "void(int64[::1], int64)");
    let mut out = vec![0_i64; 4];
    kernel.launch([1, 1, 1], [4, 1, 1], 0, &[array(&mut out), Arg::Int(3)]);
    for (i, &got) in out.iter().enumerate() {
        let mut sum = 0_i64;
        for _ in 0..160 {
            sum += (0..3).map(|q| ((i as i64 + sum) * q) % 7).sum::<i64>();
        }
        assert_eq!(got, sum);
    }
    ptx(&calls(160));
}

#[test]
fn many_barriers() {
    let source = barriers(360);
    let kernel = kernel(&source, "void(int64[::1], int64)");
    for n in [2_i64, 4] {
        let mut out = vec![-1_i64; 4];
        kernel.launch([1, 1, 1], [4, 1, 1], 0, &[array(&mut out), Arg::Int(n)]);
        let mut shared: Vec<i64> = (0..4).collect();
        for at in 0..180 {
            shared = (0..4).map(|i| shared[(i + 1) % 4] + at * n * 2).collect();
        }
        let expected: Vec<i64> = (0..4).map(|i| if (i as i64) < n { shared[i] } else { -1 }).collect();
        assert_eq!(out, expected);
    }
    ptx(&source);
}

#[test]
fn many_lines() {
    let mut source = "
def k(o, n):
    i = cuda.grid(1)
    a = i
    b = 1
"
    .to_owned();
    for at in 0..500 {
        let _ = writeln!(source, "    a = b * 3 + o[(i + {at}) % n]\n    b = a - {at}");
    }
    source.push_str("    o[i] = a + b\n");
    let kernel = kernel(&source, "void(int64[::1], int64)");
    let mut out: Vec<i64> = (0..4).collect();
    kernel.launch([1, 1, 1], [1, 1, 1], 0, &[array(&mut out), Arg::Int(4)]);
    let (mut a, mut b) = (0_i64, 1_i64);
    for at in 0..500_i64 {
        a = b.wrapping_mul(3).wrapping_add(at % 4);
        b = a - at;
    }
    assert_eq!(out, [a.wrapping_add(b), 1, 2, 3]);
    ptx(&source);
}
