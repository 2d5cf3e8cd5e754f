//! Calls of device functions: which functions are inlined, and the stack sizes of kernels with calls.

use std::fmt::Write;

use weft_artifact::HostEntry;

use crate::{
    backend::{
        host::tests::harness::{array, kernel, output},
        testing::cpu_for_code,
    },
    request::Target,
};

fn host(source: &str) -> HostEntry {
    let output = output(source, "void(float64[::1])", Target::Host(cpu_for_code("x86-64-v3")));
    output.artifact.kernels[0].host.expect("a host kernel")
}

/// A chain of `n` functions, each of which calls the previous one and has `live` values that are live across the call.
fn chain(n: usize, live: usize) -> String {
    let mut text = "def f0(x, t):\n    x[t] += 1\n    return x[t]\n".to_owned();
    for at in 1..n {
        let _ = writeln!(text, "def f{at}(x, t):");
        for value in 0..live {
            let _ = writeln!(text, "    v{value} = x[(t + {value}) % 64] * {value}.5");
        }
        let _ = write!(text, "    return f{}(x, t + 1 if t < 60 else t)", at - 1);
        for value in 0..live {
            let _ = write!(text, " + v{value}");
        }
        text.push('\n');
    }
    text + &format!("def k(x):\n    x[0] = f{}(x, 0)\n", n - 1)
}

#[test]
fn the_frames_of_a_chain_are_counted() {
    let (short, long) = (host(&chain(3, 60)), host(&chain(15, 60)));
    assert!(long.call_bytes >= 14 * 40 * 8, "{long:?}");
    assert!(long.call_bytes >= short.call_bytes + 12 * 40 * 8, "{short:?} {long:?}");
    assert_eq!((short.stack_bytes, short.below_bytes), (None, 0));
}

const WAITS: &str = "
    i = cuda.grid(1)
    if i > 0:
        while cuda.atomic.add(x, 0, 0.0) == 0:
            pass
";

#[test]
fn a_stack_is_as_large_as_what_is_called() {
    let small = host(&format!("def k(x):{WAITS}    x[i] += 1.0\n"));
    assert_eq!(small.stack_bytes, Some(64 << 10));
    let lines = "    a = cuda.local.array(20000, float64)\n    for j in range(20000):\n        a[j] = x[j % 8]\n";
    let large = host(&format!("def k(x):{WAITS}{lines}    x[i] = a[i + int(x[1])]\n"));
    assert!(large.stack_bytes.is_some_and(|bytes| bytes > 160_000), "{large:?}");
}

/// A chain of `n` functions, each of which calls the previous one twice. The first one has a barrier.
fn doubling(n: usize) -> String {
    let mut text = "def f0(s, x):\n    cuda.syncthreads()\n    return s[x % 8]\n".to_owned();
    for at in 1..n {
        let below = at - 1;
        let _ = writeln!(text, "def f{at}(s, x):\n    return f{below}(s, x) + f{below}(s, x + 1) * 0.5");
    }
    let last = n - 1;
    let body = format!("    s[i] = i + 1.0\n    out[i] = f{last}(s, i)\n");
    text + "def k(out):\n    s = cuda.shared.array(8, float64)\n    i = cuda.threadIdx.x\n" + &body
}

fn doubled(n: usize, x: usize) -> f64 {
    if n == 1 { (x % 8) as f64 + 1.0 } else { doubled(n - 1, x) + doubled(n - 1, x + 1) * 0.5 }
}

#[test]
fn functions_over_a_barrier_are_copied_up_to_a_bound() {
    let kernel = kernel(&doubling(5), "void(float64[::1])");
    assert_eq!(kernel.output.artifact.kernels[0].host.expect("a host kernel").stack_bytes, None);
    let mut out = vec![0.0_f64; 8];
    kernel.launch([1, 1, 1], [8, 1, 1], 0, &[array(&mut out)]);
    for (x, got) in out.iter().enumerate() {
        assert!((got - doubled(5, x)).abs() < 1e-9, "{x}: {got}");
    }
    assert!(host(&doubling(40)).stack_bytes.is_some());
}

#[test]
fn the_arrays_of_a_function_over_a_barrier_are_those_of_all_its_calls() {
    // The function returns its caller's array, not its own array.
    let source = "
def f(x, n):
    a = cuda.local.array(30000, float64)
    for i in range(30000):
        a[i] = x[i % 8] + n
    cuda.syncthreads()
    x[cuda.threadIdx.x] += a[n]
    cuda.syncthreads()
    return x[:8]
def k(x):
    y = f(f(f(x, 1), 2), 3)
    y[cuda.threadIdx.x] *= 2
";
    let kernel = kernel(source, "void(float64[::1])");
    assert_eq!(kernel.output.artifact.kernels[0].host.expect("a host kernel").stack_bytes, None);
    let mut x: Vec<f64> = (0..8).map(f64::from).collect();
    let mut want = x.clone();
    for n in 1..4 {
        let added = want[n] + n as f64;
        for value in &mut want {
            *value += added;
        }
    }
    kernel.launch([1, 1, 1], [8, 1, 1], 0, &[array(&mut x)]);
    let want: Vec<f64> = want.into_iter().map(|value| value * 2.0).collect();
    assert_eq!(x, want);
}
