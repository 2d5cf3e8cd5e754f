//! Inlining of small functions, and indices that conditions prove to be nonnegative.

use crate::backend::host::tests::harness::{cpu_ir, padding};

#[test]
fn small_functions_stand_in_place_of_their_calls() {
    let source = |lines: &str| {
        format!(
            "
def clamp(value, low, high):
{lines}    return max(low, min(value, high))

def at(x, i):
    return x[clamp(i, 0, x.size - 1)]

def k(x, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = at(x, i - 1) + at(x, i + 1)
"
        )
    };
    let types = "void(float32[::1], float32[::1])";
    assert!(!cpu_ir(&source(""), types).contains("call @"));
    assert!(cpu_ir(&source(&padding("value")), types).contains("call @clamp"));
}

#[test]
fn differences_behind_conditions_need_no_wrap() {
    let wraps = |lines: &str| {
        let source = format!("def k(x, w, out):\n    i = cuda.grid(1)\n    {lines}\n");
        cpu_ir(&source, "void(float32[::1], int32, float32[::1])").contains("wrap(")
    };
    for lines in [
        "if i >= w: out[i] = x[i - w]",
        "if w < i: out[i] = x[i - w - 1]",
        "if i < w: return\n    out[i] = x[i - w]",
        "if not (i < w or i > 99): out[i] = x[i - w]",
    ] {
        assert!(!wraps(lines), "{lines}");
    }
    for lines in [
        "out[i] = x[i - w]",
        "if i > w: out[i] = x[i - w - 2]",
        "if w >= i: out[i] = x[i - w]",
        "if i >= w or i < 99: out[i] = x[i - w]",
        "j = i\n    if j >= w:\n        j -= 1\n        out[i] = x[j - w]",
    ] {
        assert!(wraps(lines), "{lines}");
    }
}
