//! Safepoints: which loops have them, and that threads exit there when a launch is cancelled.

use crate::{
    analysis::Rematerializable,
    backend::host::{
        plan::Polling,
        tests::harness::{Arg, array, kernel, module, padding},
    },
    ir::{StmtKind, for_each_stmt},
};

/// For each loop of a module's functions, in order, whether it has a safepoint.
fn looks(source: &str) -> Vec<bool> {
    let module = module(source, "void(int64[::1], int64, int32)");
    let polling = Polling::of(&module);
    let mut all = Vec::new();
    for (_, function) in module.functions.iter() {
        let fixed = Rematerializable::of(function, &function.body);
        for_each_stmt(&function.body, &mut |stmt| {
            if let StmtKind::Loop { body, step } = &stmt.kind {
                all.push(polling.in_loop(function, &fixed, body, step));
            }
        });
    }
    all
}

fn body(lines: &str) -> String {
    format!("def k(x, n, s):\n    i = cuda.grid(1)\n    {}\n", lines.replace('\n', "\n    "))
}

#[test]
fn loops_that_count_are_left_alone() {
    let counting = [
        "for j in range(n):\n    x[i] += j",
        "for j in range(n, 0, -3):\n    x[i] += j",
        "for j in range(i, n, s):\n    x[i] += j",
        "for j in range(n):\n    if x[j] == 3:\n        break\n    x[i] += j",
        "j = i\nwhile j < n:\n    x[j] += 1\n    j += cuda.gridsize(1)",
        "stride = cuda.blockDim.x * cuda.gridDim.x\nwhile i < n and s > 0:\n    x[i] += 1\n    i += stride",
        "j = n\nwhile j >= 0:\n    x[j] += 1\n    j -= 1",
        "j = 0\nwhile n > j:\n    j = 2 + j\n    if x[j] == 1:\n        continue\n    x[i] += 1",
    ];
    for lines in counting {
        assert_eq!(looks(&body(lines)), [false], "{lines}");
    }
}

#[test]
fn other_loops_look() {
    let others = [
        "while True:\n    x[i] += 1",
        "while x[0] == 0:\n    pass",
        "j = 0\nwhile j < n:\n    j += s",
        "j = 0\nwhile j < n:\n    j -= 1",
        "j = 0\nwhile j != n:\n    j += 1",
        "j = 0\nwhile j < x[0]:\n    j += 1",
        "j = 0\nwhile j < n or x[j] > 1:\n    j += 1",
        "j = 0\nwhile j < n:\n    if x[j] == 1:\n        continue\n    j += 1",
        "j = 0\nwhile j < n:\n    j += 1\n    if x[j] == 1:\n        j = 0",
        "j = 0\nwhile j < n:\n    j += 1\n    n += 1",
        "j = n\nwhile j > 1:\n    j //= 2",
        "for j in range(n):\n    if x[0] == 3:\n        break",
    ];
    for lines in others {
        assert_eq!(looks(&body(lines)), [true], "{lines}");
    }
}

#[test]
fn what_holds_a_loop_that_takes_long_looks() {
    let nested = "for j in range(n):\n    for k in range(s):\n        x[i] += k";
    assert_eq!(looks(&body(nested)), [true, false]);
    let few = "for j in range(n):\n    for k in range(3):\n        for l in range(2, 12, 2):\n            x[i] += k";
    assert_eq!(looks(&body(few)), [false, false, false]);
    let many = "for j in range(n):\n    for k in range(30):\n        for l in range(1000):\n            x[i] += k";
    assert_eq!(looks(&body(many)), [true, true, false]);
    let calls = format!(
        "
def counts(n):
{}    s = 0
    for j in range(n):
        s += s // 3 + j
    return s

def k(x, n, s):
    for i in range(n):
        x[i] = counts(s)
",
        padding("n")
    );
    assert_eq!(looks(&calls), [false, true]);
}

#[test]
fn a_kernel_that_was_given_up_is_left() {
    // The kernels read more than a thread's index in the grid, so the blocks are not merged.
    let kernels = [
        "x[i] = 1 + 0 * cuda.threadIdx.x\nwhile True:\n    pass",
        "x[i] = 1 + 0 * cuda.threadIdx.x\nj = cuda.threadIdx.x\nwhile j >= 0:\n    j = (j + 1) % 7\ncuda.syncthreads()\nx[i] = 2",
        "x[i] = 1 + 0 * cuda.threadIdx.x\ncuda.syncthreads()\nwhile s > 0:\n    cuda.syncthreads()\nx[i] = 2",
        "x[i] = 1 + 0 * cuda.threadIdx.x\nfor j in range(1 << 40):\n    for k in range(1 << 20):\n        x[1] += j ^ k\nx[0] = 5",
    ];
    for lines in kernels {
        let kernel = kernel(&body(lines), "void(int64[::1], int64, int32)");
        let mut x = [0_i64; 4];
        kernel.launch_and_give_up([3, 1, 1], [2, 1, 1], &[array(&mut x), Arg::Int(1 << 40), Arg::Int(1)]);
        assert_eq!(x[0], 1, "the first thread has begun: {lines}");
        assert_eq!(x[2..], [0, 0], "the next block has not: {lines}");
    }
}

#[test]
fn what_a_function_returns_that_was_left_is_not_used() {
    let padding = padding("v");
    let source = &format!(
        "
def spin(v):
{padding}    while v > 0:
        v = v % 7 + 1
    return v

def twice(v):
{padding}    return spin(v) + spin(v + 1)

def k(x, n, s):
    i = cuda.grid(1)
    x[i] = 1
    x[i] = twice(i + 1) + 5
"
    );
    let kernel = kernel(source, "void(int64[::1], int64, int32)");
    let mut x = [0_i64; 4];
    kernel.launch_and_give_up([2, 1, 1], [2, 1, 1], &[array(&mut x), Arg::Int(0), Arg::Int(0)]);
    assert_eq!(x, [1, 0, 0, 0]);
}
