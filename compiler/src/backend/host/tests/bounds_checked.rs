//! Bounds-checked stores: a store that a guard proves to be in bounds has no check. Any other is compared with the
//! bounds.

use crate::backend::host::tests::harness::{Arg, array, confined, confined_llvm, kernel, matrix, padding};

/// The body of a kernel's IR, without the declarations of locals.
fn body(source: &str, signature: &str) -> String {
    let output = confined(source, signature).output;
    assert!(output.artifact.kernels[0].can_bound_stores, "{source}");
    let ir = output.ir.expect("the request keeps it");
    let lines = ir.lines().filter(|line| !line.trim_start().starts_with("var "));
    lines.flat_map(|line| [line.trim(), "\n"]).collect()
}

fn is_confinable(source: &str, signature: &str) -> bool {
    kernel(source, signature).output.artifact.kernels[0].can_bound_stores
}

#[test]
fn what_a_guard_proves_stays_as_it_is() {
    let kernels = [
        ("if i < x.size: x[i] += 1", "float64[::1]"),
        ("if i >= x.shape[0]: return\n    x[i] += 1", "float64[:]"),
        ("if i < len(x) and x[i] > 3: x[i] = 1", "float64[::1]"),
        ("for k in range(i, x.size, cuda.gridsize(1)): x[k] = k", "float64[::1]"),
        ("while i < x.size:\n        x[i] = 1\n        i += cuda.blockDim.x * cuda.gridDim.x", "float64[::1]"),
        ("j = cuda.threadIdx.y\n    if i < x.shape[0] and j < x.shape[1]: x[i, j] = 1", "float64[:,::1]"),
        ("j = cuda.threadIdx.y\n    if i < x.shape[0] and j < x.shape[1]: x[i, j] = 1", "float64[::1,:]"),
        ("j = cuda.threadIdx.y\n    if i < x.shape[0] and 0 < j < x.shape[1] - 1: x[i, j] = 1", "float64[:,:]"),
        ("if i < x.shape[0]:\n        for j in range(x.shape[1]): x[i, j] = 1", "float64[:,::1]"),
        ("if i < x.size: x[i] = x[i] * 2j", "complex128[::1]"),
        ("if i < x.size: cuda.atomic.add(x, i, 1)", "int64[::1]"),
        (
            "y = cuda.shared.array(32, float64)\n    y[cuda.threadIdx.x] = i\n    if i < x.size: x[i] = y[5]",
            "float64[::1]",
        ),
    ];
    for (lines, ty) in kernels {
        let source = format!("def k(x):\n    i = cuda.grid(1)\n    {lines}\n");
        let body = body(&source, &format!("void({ty})"));
        for bound in [".start", ".room", ".least", ".limit"] {
            assert!(!body.contains(bound), "{body}");
        }
    }
}

#[test]
fn what_is_not_known_is_compared() {
    let source = "def k(x):\n    i = cuda.grid(1)\n    x[i] += 1\n";
    assert_eq!(
        body(source, "void(float64[::1])"),
        "param x: array(float64, 1d, C) reads writes\n\n\
         kernel @k(\n$x.data: ptr<float64, global> = x.data,\n$x.limit: int64 = x.limit\n) {\n\
         $i = int64(blockIdx.x) * int64(blockDim.x) + int64(threadIdx.x)\n\
         $t = load $x.data[$i] + 1.0\n\
         if $i < $x.limit {\nstore $x.data[$i] = $t\n}\n}\n"
    );
    let compared = [
        // The guard has another bound; the index changes after the guard, or may be negative, or is loaded from memory.
        ("if i < x.size - 1:\n        i += 2\n        x[i] = 1", "$i < $x.limit"),
        ("if i < x.size - 1:\n        i -= 2\n        x[i] = 1", "($t >= $x.least) & ($t < $x.limit)"),
        ("if i < 100: x[i] = 1", "$i < $x.limit"),
        ("if i < x.size: x[i - 1] = 1", "($t >= $x.least) & ($t < $x.limit)"),
        ("if i < x.size: cuda.atomic.add(x, int(x[i]), 1)", "($t >= $x.least) & ($t < $x.limit)"),
        ("for k in range(x.size + 1): x[k] = 1", "$k < $x.limit"),
        // For views, the check compares addresses.
        ("y = x[i:]\n    y[3] = 1", "- $x.start <= $x.room - 8:uint64"),
        ("x.view(int32)[i] = 1", "- $x.start <= $x.room - 4:uint64"),
    ];
    for (lines, condition) in compared {
        let source = format!("def k(x):\n    i = cuda.grid(1)\n    {lines}\n");
        let body = body(&source, "void(float64[::1])");
        assert!(body.contains(condition), "{lines}: no {condition}\n{body}");
    }
}

#[test]
fn functions_are_told_where_they_may_write() {
    let padding = padding("i");
    let source = &format!(
        "
def put(x, i, value):
{padding}    x[i] = value
    return x[1:]

def guarded(x, i):
{padding}    if i < x.size:
        x[i] = 1

def k(x, y):
    i = cuda.grid(1)
    tail = put(x, i, 3.0)
    guarded(x, i)
    tail[i] = 1
    put(y, i, 3.0)
"
    );
    let body = body(source, "void(float64[::1], float64[::1])");
    for expected in [
        "if $i < $x.limit {\nstore $x.data[$i] = $value",
        "call @guarded.1($x.data, $x.shape0, $i)",
        "$x.start <= $x.room - 8:uint64",
    ] {
        assert!(body.contains(expected), "no {expected}\n{body}");
    }
}

#[test]
fn what_cannot_be_confined_says_so() {
    let either = "def k(x, y):\n    i = cuda.grid(1)\n    z = x if i > 5 else y\n    z[i] = 1\n";
    assert!(!is_confinable(either, "void(float64[::1], float64[::1])"));
    let reads_either = "def k(x, y):\n    i = cuda.grid(1)\n    z = x if i > 5 else y\n    x[i] = z[i]\n";
    assert!(is_confinable(reads_either, "void(float64[::1], float64[::1])"));
    let pointer = "def k(x, y):\n    i = cuda.grid(1)\n    y[i] = 1\n    x[i] = 1\n";
    assert!(!is_confinable(pointer, "void(float64[::1], CPointer(float64))"));
    let until = "def k(x):\n    i = cuda.grid(1)\n    while x[i] < 5: x[i] += 1\n";
    assert!(!is_confinable(until, "void(float64[::1])"));
    let guarded = "def k(x):\n    i = cuda.grid(1)\n    if i < x.size:\n        while x[i] < 5: x[i] += 1\n";
    assert!(is_confinable(guarded, "void(float64[::1])"));
    let waits = "
def k(x, ready):
    while cuda.atomic.add(ready, 0, 0) < cuda.blockIdx.x: pass
    x[cuda.grid(1)] = 1
    cuda.atomic.add(ready, 0, 1)
";
    assert!(!is_confinable(waits, "void(float64[::1], int64[::1])"));
}

#[test]
fn a_comparison_is_a_bound_of_the_loop_over_threads() {
    let sources = [
        ("def k(x, y):\n    i = cuda.grid(1)\n    x[i] += 1\n", "float32[::1]"),
        ("def k(x, y):\n    i = cuda.grid(1)\n    if i < y.size:\n        x[i] = y[i] * 2\n", "float32[::1]"),
        (
            "def k(x, y):\n    j, i = cuda.grid(2)\n    if i < y.shape[0] and j < y.shape[1]:\n        x[i, j] = y[i, j] * 2\n",
            "float32[:,::1]",
        ),
        ("def k(x, y):\n    i = cuda.grid(1)\n    if i < y.size:\n        x[i] = y[i]\n", "uint8[::1]"),
    ];
    for (source, ty) in sources {
        let llvm = confined_llvm(source, &format!("void({ty}, {ty})"), "x86-64-v3");
        assert!(llvm.contains("store <"), "{llvm}");
        assert!(!llvm.contains("masked.store"), "{llvm}");
    }
}

#[test]
fn nothing_is_written_beside_an_array() {
    let unguarded = confined("def k(x):\n    i = cuda.grid(1)\n    x[i] = i\n", "void(int32[::1])");
    let n = 1000;
    let mut memory = vec![-1_i32; n + 512];
    unguarded.launch([5, 1, 1], [256, 1, 1], 0, &[array(&mut memory[100..100 + n])]);
    let want = |at: usize| if (100..100 + n).contains(&at) { at as i32 - 100 } else { -1 };
    assert!(memory.iter().enumerate().all(|(at, value)| *value == want(at)), "{memory:?}");

    // An index may exceed its axis, but the address must be in the matrix.
    let source = "def k(x, far):\n    i = cuda.grid(1)\n    x[0, i] = i\n    x[-1, i + far] = 7\n    x[i, 0] = -2\n";
    let rows = confined(source, "void(int32[:,::1], int64)");
    let mut memory = vec![-1_i32; 3000];
    let view = matrix(&mut memory[1000..1000 + 30 * 20], 30, 20);
    rows.launch([1, 1, 1], [1024, 1, 1], 0, &[view, Arg::Int(20)]);
    assert!(memory[..1000].iter().chain(&memory[1600..]).all(|value| *value == -1), "{memory:?}");
    assert_eq!([memory[1000 + 21], memory[1599], memory[1000]], [21, 599, -2]);
}
