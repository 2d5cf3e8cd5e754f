//! Which loops are assumed to wait for other threads.

use crate::{analysis::WaitAnalysis, backend::host::tests::harness::module, ir::Circles};

fn waits(lines: &str) -> bool {
    let source = format!("def k(x, n, s):\n    i = cuda.grid(1)\n    {}\n", lines.replace('\n', "\n    "));
    of(&source)
}

fn of(source: &str) -> bool {
    let module = module(source, "void(int64[::1], int64, int32)");
    WaitAnalysis::of(&module, &Circles::of(&module)).in_module(&module)
}

#[test]
fn loops_that_wait() {
    let loops = [
        "while cuda.atomic.add(x, 0, 0) == 0:\n    pass",
        "while cuda.atomic.cas(x, 0, 0, 1) != 0:\n    pass",
        "while x[0] == 0:\n    pass",
        "while x[i] == 0:\n    x[i + 1] += 1",
        "while x[i] == 0:\n    if n > 3:\n        x[i] += 1",
        "for j in range(n):\n    if x[i] == 3:\n        break",
        // Each iteration computes the address.
        "while True:\n    j = i % 3\n    if cuda.atomic.cas(x, j, 0, 1) == 0:\n        break",
        // An iteration makes progress only if another thread has made progress.
        "t = 0\nwhile t < n:\n    if cuda.atomic.add(x, i, 0) < 0:\n        t += 1",
        "t = 0\nwhile t < n:\n    if cuda.atomic.add(x, t, 0) < 0:\n        t += 1",
        "t = n\nwhile t >= 0:\n    if i == n:\n        t -= 1\n    else:\n        if cuda.atomic.add(x, i, 0) < 0:\n            t -= 1",
        "t = 0\nwhile t < n:\n    if cuda.atomic.add(x, i, 0) >= 0:\n        continue\n    t += 1",
        "t = 0\nspins = 0\nwhile t < n:\n    if cuda.atomic.add(x, i, 0) >= 0:\n        spins += 1\n    else:\n        t += 1\nx[1] = spins",
        "done = False\nwhile not done:\n    if cuda.atomic.cas(x, 0, 0, 1) == 0:\n        x[1] += 1\n        cuda.atomic.exch(x, 0, 0)\n        done = True",
    ];
    for lines in loops {
        assert!(waits(lines), "{lines}");
    }
}

#[test]
fn loops_that_go_on_by_themselves() {
    let loops = [
        "j = 0\nwhile x[j] != 3:\n    j += 1",
        "old = x[0]\nwhile True:\n    seen = cuda.atomic.cas(x, 0, old, old + 1)\n    if seen == old:\n        break\n    old = seen",
        "while True:\n    old = x[0]\n    if cuda.atomic.cas(x, 0, old, old + 1) == old:\n        break",
        "while x[i] < 10:\n    x[i] += 1",
        "r = 9\nwhile r > 3:\n    x[i] = (x[i] * 5 + 1) % 16\n    r = x[i]",
        "t = 0\nwhile t < n:\n    x[i] = (x[i] * 5 + 1) % 16\n    if x[i] < 3:\n        t += 1",
        "a = cuda.local.array(4, 'int64')\na[0] = 0\nwhile a[0] < n:\n    a[0] += x[i]",
        "a = cuda.local.array(4, 'int64')\na[0] = 0\nj = 0\nwhile j < n:\n    if a[0] < 3:\n        j += 1\n    a[0] += 1",
        "lo = 0\nhi = n\nwhile lo < hi:\n    mid = (lo + hi) // 2\n    if x[mid] < s:\n        lo = mid + 1\n    else:\n        hi = mid",
        "a = 0\nb = 0\nwhile a < n and b < s:\n    if x[a] <= x[b]:\n        a += 1\n    else:\n        b += 1",
        "again = True\nwhile again:\n    again = False\n    for j in range(n):\n        if x[j] > x[j + 1]:\n            x[j] = 0\n            again = True",
    ];
    for lines in loops {
        assert!(!waits(lines), "{lines}");
    }
}

#[test]
fn a_function_that_writes_what_it_reads_moves_on() {
    let loops = "
def k(x, n, s):
    i = cuda.grid(1)
    r = 2.0
    while r > 1.0:
        r = draw(x, i)
    t = 0
    while t < n:
        if draw(x, i) > 0.5:
            t += 1
    x[i] = t
";
    let draws = "

def draw(x, i):
    x[i] = (x[i] * 5 + 1) % 16
    return x[i] / 16
";
    let waits = "

def draw(x, i):
    if x[i] > 0:
        x[i] -= 1
    return x[i] / 16
";
    assert!(!of(&format!("{draws}{loops}")));
    assert!(of(&format!("{waits}{loops}")));
}
