//! Bases of addresses (`host/address_bases.cpp`).

use std::fmt::Write;

use crate::backend::host::tests::harness::{Arg, array, kernel, llvm};

const ROWS: i64 = 12;

/// Each thread adds a column of an array with rows of any length.
fn columns() -> String {
    let mut text = "
def k(x, out, w, first):
    i = cuda.grid(1)
    if i < out.size:
        s = int64(0)
"
    .to_owned();
    for row in 0..ROWS {
        let _ = writeln!(text, "        s += x[first + {row} * w + i]");
    }
    text + "        out[i] = s\n"
}

#[test]
fn the_addresses_of_a_loop_have_bases() {
    let signature = "void(int64[::1], int64[::1], int64, int64)";
    assert!(llvm(&columns(), signature, "x86-64-v3").contains("%base = freeze ptr"));
    let kernel = kernel(&columns(), signature);
    for (w, n) in [(1, 1), (7, 7), (40, 33), (100, 100)] {
        let mut x: Vec<i64> = (0..3 + ROWS * w + n).map(|i| i * i - 5 * i).collect();
        let mut out = vec![0; n as usize];
        let column = |i: i64| (0..ROWS).map(|row| x[(3 + row * w + i) as usize]).sum();
        let expected: Vec<i64> = (0..n).map(column).collect();
        kernel.launch([4, 1, 1], [32, 1, 1], 0, &[array(&mut x), array(&mut out), Arg::Int(w), Arg::Int(3)]);
        assert_eq!(out, expected, "{w}");
    }
}
