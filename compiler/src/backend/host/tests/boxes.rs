//! Branches that fill shared memory for a box of threads become regions of their own, with loops over the box.

use crate::backend::host::{
    plan::{Guard, Node, Plan, Vectors},
    tests::harness::module,
};

const SIGNATURE: &str = "void(float32[:, ::1], int64)";

/// The guards of a kernel's regions, as the number of bounds along `x` and that of conditions on the row.
fn guards(statements: &str) -> Vec<(usize, usize)> {
    let source = format!(
        "
def k(a, n):
    s = cuda.shared.array((20, 40), float32)
    tx = cuda.threadIdx.x
    ty = cuda.threadIdx.y
    {statements}
    cuda.syncthreads()
    a[ty, tx] = s[ty, tx] + s[0, 0]
"
    );
    let plan = Plan::of(&module(&source, SIGNATURE), true, Vectors::PLAIN, false).expect("a valid plan");
    let size = |guard: &Guard| (guard.ranges.len(), guard.rows.len());
    let guard = |node: &Node| {
        let Node::Segment(segment) = node else { return None };
        Some(segment.guard.as_ref().map_or((0, 0), size))
    };
    let regions = plan.cut.nodes.iter().take_while(|node| !matches!(node, Node::Barrier));
    regions.filter_map(guard).collect()
}

#[test]
fn halos_are_regions_of_their_own() {
    let fill = "s[ty + 2, tx + 2] = a[ty, tx]\n    ";
    let cases: [(&str, &[(usize, usize)]); 7] = [
        ("if tx < 2: s[ty + 2, tx] = a[ty, n]", &[(0, 0), (1, 0)]),
        ("if ty < 2: s[ty, tx + 2] = a[n, tx]", &[(0, 0), (0, 1)]),
        ("if tx < 2 and ty >= n: s[ty, tx] = a[n, n]", &[(0, 0), (1, 1)]),
        // A bound may differ from row to row.
        ("if tx < ty: s[ty, tx] = 1", &[(0, 0), (1, 0)]),
        ("if n <= tx and tx < n + 2:\n        b = tx - n\n        s[ty, b] = a[ty, b]", &[(0, 0), (2, 0)]),
        (
            "if tx < 2:\n        s[ty + 2, tx] = a[ty, n]\n        if ty < 2: s[ty, tx] = a[n, n]",
            &[(0, 0), (1, 0), (1, 1)],
        ),
        (
            "if tx < 2: s[ty + 2, tx] = a[ty, n]\n    s[0, 0] = 1\n    if ty < 2: s[ty, tx + 2] = a[n, tx]",
            &[(0, 0), (1, 0), (0, 0), (0, 1)],
        ),
    ];
    for (branch, expected) in cases {
        assert_eq!(guards(&format!("{fill}{branch}")), expected, "{branch}");
    }
}

#[test]
fn other_branches_stay_in_their_region() {
    let fill = "s[ty + 2, tx + 2] = a[ty, tx]\n    ";
    for branch in [
        // Not a box.
        "if tx < 2 or ty < 2: s[ty, tx] = a[ty, n]",
        "if tx % 3 < 2: s[ty, tx] = 1",
        // The condition changes in the region.
        "if a[0, 0] > 0 and tx < 2: s[ty, tx] = 1",
        // No shared memory is filled.
        "if tx < 2: a[ty, tx + n] = 1",
        // The branch needs a value of its thread, or gives it one.
        "v = a[ty, n] * 2\n    s[ty, tx] = v\n    if tx < 2: s[ty, tx + 1] = v",
        "v = 0.0\n    if tx < 2:\n        v = a[ty, n]\n        s[ty, tx] = v\n    a[ty, tx] = v",
        // Its order is observable.
        "if tx < 2:\n        s[ty, tx] = 1\n        print(tx)",
    ] {
        assert_eq!(guards(&format!("{fill}{branch}")), [(0, 0)], "{branch}");
    }
    // Nothing is left without the branch.
    assert_eq!(guards("if tx < 2: s[ty, tx] = a[ty, n]"), [(1, 0)]);
}
