//! The counting rules against counters of Nsight Compute on an H100: 38 index patterns in each kernel of
//! `tests/ncu-cc90/`. The rows are in the order of the launches: all kernels on one pattern, then on the next.

use std::fs;

use super::{AtomicKind, Count, Lanes, constant, global, global_atomic, local, matrices, shared, shared_atomic};
use crate::decode::AtomicOp;

/// The indices of the 38 patterns; -1 is an inactive lane.
fn patterns() -> Vec<[i64; 32]> {
    let mut state = 1_u32;
    (0..38_usize).map(|p| std::array::from_fn(|lane| index(p, lane as i64, &mut state))).collect()
}

fn index(pattern: usize, t: i64, state: &mut u32) -> i64 {
    *state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
    let random = i64::from(*state >> 8);
    let of_lane = [
        t,
        2 * t,
        0,
        t / 2,
        t ^ 1,
        32 * t,
        33 * t,
        t % 16,
        t % 8,
        4 * t,
        8 * t,
        16 * t,
        t / 4,
        t * 5 % 32,
        t + 1,
        31 - t,
        t % 2,
        t / 16,
        if t & 1 != 0 { t } else { -1 },
        if t < 8 { t } else { -1 },
    ];
    let range = match pattern {
        0..20 => return of_lane[pattern],
        20..25 => 64,
        25..30 => 128,
        30..34 => 256,
        _ => 1024,
    };
    if pattern >= 34 && pattern.is_multiple_of(2) && random & 1024 != 0 { -1 } else { random % range }
}

/// The counters of a file: their names, and the rows by kernel in the order of patterns.
struct Measured {
    names: Vec<String>,
    rows: Vec<(String, Vec<u64>)>,
}

impl Measured {
    fn read(file: &str) -> Self {
        let path = format!("{}/tests/ncu-cc90/{file}", env!("CARGO_MANIFEST_DIR"));
        let text = fs::read_to_string(path).unwrap();
        let mut lines = text.lines();
        let names = lines.next().unwrap().split(',').skip(1).map(str::to_owned).collect();
        let row = |line: &str| {
            let line = line.replace(", ", "_").replace('"', "");
            let (kernel, values) = line.split_once(',').unwrap();
            (kernel.to_owned(), values.split(',').map(|value| value.parse().unwrap()).collect())
        };
        Self { names, rows: lines.map(row).collect() }
    }

    fn of(&self, kernel: &str, name: &str) -> Vec<u64> {
        let column = self.names.iter().position(|own| own == name).unwrap_or_else(|| panic!("no counter {name}"));
        let found: Vec<_> = self.rows.iter().filter(|(own, _)| own == kernel).map(|(_, row)| row[column]).collect();
        found
    }

    /// Fails if a rule equals a counter on fewer patterns than documented. The kernel itself adds `other` to it.
    fn check(&self, kernel: &str, name: &str, size: u32, other: u64, least: usize, rule: impl Fn(Lanes) -> u64) {
        let mut differences = Vec::new();
        let all = self.of(kernel, name);
        for (number, (pattern, measured)) in patterns().iter().zip(all.iter().copied()).enumerate() {
            let addresses = pattern.map(|index| index.max(0) as u64 * u64::from(size));
            let mask = super::super::execute::mask_of(|lane| pattern[lane] >= 0);
            let found = rule(Lanes::new(&addresses, mask, size)) + other;
            if found != measured {
                differences.push(format!("pattern {number}: {found}, measured {measured}"));
            }
        }
        let equal = all.len() - differences.len();
        assert!(
            equal >= least,
            "{kernel} {name}: {equal} of {}, expected {least}\n{}",
            all.len(),
            differences.join("\n")
        );
    }
}

fn kind(op: AtomicOp, is_float: bool) -> AtomicKind {
    AtomicKind { op, is_float, is_uniform: false, is_value_uniform: false, adds_one: false, is_read: true }
}

#[test]
fn global_loads_and_stores() {
    let measured = Measured::read("counters1.csv");
    for (kernel, size) in [("k<3_4>", 4), ("k<3_8>", 8), ("k<3_16>", 16)] {
        let of = |name: &str, least, rule: fn(Count) -> u64, other| {
            measured.check(kernel, name, size, other, least, |lanes| rule(global(lanes)));
        };
        of("l1tex__t_requests_pipe_lsu_mem_global_op_ld", 38, |count| count.requests, 1);
        of("l1tex__t_sectors_pipe_lsu_mem_global_op_ld", 38, |count| count.sectors, 4);
        of("lts__t_requests_srcunit_tex_op_read", 38, |count| count.l2_requests, 1);
        of("lts__t_sectors_srcunit_tex_op_read", 38, |count| count.sectors, 4);
    }
    measured.check("k<3_4>", "l1tex__t_output_wavefronts_pipe_lsu_mem_global_op_ld", 4, 1, 34, |lanes| {
        global(lanes).tag_wavefronts
    });
    for (kernel, size) in [("k<4_4>", 4), ("k<4_16>", 16)] {
        let of = |name: &str, rule: fn(Count) -> u64, other| {
            measured.check(kernel, name, size, other, 38, |lanes| rule(global(lanes)));
        };
        of("l1tex__t_requests_pipe_lsu_mem_global_op_st", |count| count.requests, 1);
        of("l1tex__t_sectors_pipe_lsu_mem_global_op_st", |count| count.sectors, 4);
        of("lts__t_requests_srcunit_tex_op_write", |count| count.l2_requests, 1);
        of("lts__t_sectors_srcunit_tex_op_write", |count| count.sectors, 4);
    }
}

#[test]
fn shared_loads_and_stores() {
    let measured = Measured::read("counters1.csv");
    let wavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_";
    let conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_";
    for size in [1, 2, 4, 8, 16] {
        let kernel = format!("k<0_{size}>");
        measured.check(&kernel, &format!("{wavefronts}ld"), size, 0, 38, |lanes| shared(lanes, true).wavefronts);
        measured.check(&kernel, &format!("{conflicts}ld"), size, 0, 38, |lanes| shared(lanes, true).bank_conflicts);
    }
    for size in [2, 4, 8, 16] {
        let kernel = format!("k<1_{size}>");
        measured.check(&kernel, &format!("{wavefronts}st"), size, 0, 38, |lanes| shared(lanes, false).wavefronts);
        measured.check(&kernel, &format!("{conflicts}st"), size, 0, 38, |lanes| shared(lanes, false).bank_conflicts);
    }
}

#[test]
fn shared_atomics() {
    let (first, third) = (Measured::read("counters1.csv"), Measured::read("counters3.csv"));
    let wavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom";
    let conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom";
    let add = kind(AtomicOp::Add, false);
    for kernel in ["k<2_4>", "k<10_4>"] {
        first.check(kernel, wavefronts, 4, 0, 38, |lanes| shared_atomic(lanes, add).wavefronts);
        first.check(kernel, conflicts, 4, 0, 38, |lanes| shared_atomic(lanes, add).bank_conflicts);
    }
    for (kernel, op) in [("k<0>", AtomicOp::Min), ("k<2>", AtomicOp::Exch)] {
        third.check(kernel, wavefronts, 4, 0, 38, |lanes| shared_atomic(lanes, kind(op, false)).wavefronts);
    }
    third.check("k<1>", wavefronts, 4, 0, 38, |lanes| shared_atomic(lanes, kind(AtomicOp::Cas, false)).wavefronts);
    // Loops of load and compare-and-swap.
    first.check("k<9_4>", wavefronts, 4, 0, 38, |lanes| shared_atomic(lanes, kind(AtomicOp::Add, true)).wavefronts);
    third.check("k<3>", wavefronts, 8, 0, 28, |lanes| shared_atomic(lanes, add).wavefronts);
    third.check("k<4>", wavefronts, 8, 0, 28, |lanes| shared_atomic(lanes, kind(AtomicOp::Add, true)).wavefronts);
    third.check("k<4>", conflicts, 8, 0, 38, |lanes| shared_atomic(lanes, kind(AtomicOp::Add, true)).bank_conflicts);
}

#[test]
fn global_atomics() {
    let (first, third) = (Measured::read("counters1.csv"), Measured::read("counters3.csv"));
    let of = |file: &Measured, kernel: &str, way: &str, size, kind: AtomicKind, [sectors, l2]: [usize; 2]| {
        let rule = |rule: fn(Count) -> u64| move |lanes: Lanes<'_>| rule(global_atomic(lanes, kind));
        let name = format!("l1tex__t_requests_pipe_lsu_mem_global_op_{way}");
        file.check(kernel, &name, size, 0, 38, rule(|count| count.requests));
        let name = format!("l1tex__t_sectors_pipe_lsu_mem_global_op_{way}");
        file.check(kernel, &name, size, 0, sectors, rule(|count| count.sectors));
        let name = format!("lts__t_requests_srcunit_tex_op_{way}");
        file.check(kernel, &name, size, 0, l2, rule(|count| count.l2_requests));
    };
    let add = kind(AtomicOp::Add, false);
    of(&first, "k<5_4>", "red", 4, add, [37, 34]);
    of(&first, "k<6_4>", "atom", 4, add, [37, 34]);
    of(&first, "k<7_4>", "red", 4, kind(AtomicOp::Add, true), [37, 34]);
    of(&third, "k<10>", "red", 8, kind(AtomicOp::Add, true), [34, 31]);
    of(&third, "k<11>", "red", 8, add, [34, 31]);
    of(&third, "k<12>", "atom", 4, kind(AtomicOp::Cas, false), [37, 36]);
}

#[test]
fn constant_loads() {
    let measured = Measured::read("counters1.csv");
    measured.check("k<8_4>", "idc__requests", 4, 2, 38, |lanes| constant(lanes).requests);
}

#[test]
fn local_memory_interleaves_lanes() {
    let of = |size, index: fn(u64) -> u64| {
        let addresses = std::array::from_fn(|lane| index(lane as u64));
        local(Lanes::new(&addresses, u32::MAX, size))
    };
    // k<9>, k<10>, k<11> and k<12> of the measurements of caches.
    let count = of(4, |_| 60);
    assert_eq!((count.requests, count.sectors, count.ideal_sectors), (1, 4, 4));
    assert_eq!(of(4, |lane| ((lane * 3 + 5) & 63) * 4).sectors, 32);
    let count = of(8, |_| 120);
    assert_eq!((count.requests, count.sectors), (2, 8));
    assert_eq!(of(1, |_| 15).sectors, 4);
}

#[test]
fn increments_combine_equal_addresses() {
    let measured = Measured::read("counters4.csv");
    let wavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom";
    let conflicts = "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_atom";
    // 0, 3 and 5: the constant 1 without a result. 1: its result is read. 2, 6, 7 and 8: other values and operations.
    for number in [0, 1, 2, 3, 5, 6, 7, 8] {
        let op = if number == 7 { AtomicOp::Max } else { AtomicOp::Add };
        let kind = AtomicKind { adds_one: [0, 1, 3, 5].contains(&number), is_read: number == 1, ..kind(op, false) };
        let kernel = format!("k<{number}>");
        measured.check(&kernel, wavefronts, 4, 0, 22, |lanes| shared_atomic(lanes, kind).wavefronts);
        measured.check(&kernel, conflicts, 4, 0, 22, |lanes| shared_atomic(lanes, kind).bank_conflicts);
    }
}

#[test]
fn uniform_atomics_are_combined() {
    let measured = Measured::read("counters4.csv");
    let wavefronts = "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom";
    let sectors = |way: &str| format!("l1tex__t_sectors_pipe_lsu_mem_global_op_{way}");
    let of = |kernel: u32, name: &str, size, kind: AtomicKind, rule: fn(Lanes, AtomicKind) -> u64| {
        let kind = AtomicKind { is_uniform: true, ..kind };
        measured.check(&format!("k<{kernel}>"), name, size, 0, 22, |lanes| {
            rule(Lanes::new(&[u64::from(5 * size); 32], lanes.mask, lanes.size), kind)
        });
    };
    let value = |op, is_read| AtomicKind { is_read, ..kind(op, false) };
    let constant = |is_read| AtomicKind { is_value_uniform: true, adds_one: true, ..value(AtomicOp::Add, is_read) };
    let in_shared = |lanes: Lanes<'_>, kind| shared_atomic(lanes, kind).wavefronts;
    of(9, wavefronts, 4, constant(false), in_shared);
    of(10, wavefronts, 4, constant(true), in_shared);
    of(11, wavefronts, 4, value(AtomicOp::Add, false), in_shared);
    of(12, wavefronts, 4, value(AtomicOp::Max, false), in_shared);
    of(13, wavefronts, 4, value(AtomicOp::Add, true), in_shared);
    of(14, wavefronts, 4, value(AtomicOp::Or, false), in_shared);
    of(15, wavefronts, 4, value(AtomicOp::Exch, false), in_shared);
    let in_global = |lanes: Lanes<'_>, kind| global_atomic(lanes, kind).sectors;
    of(19, &sectors("red"), 4, constant(false), in_global);
    of(20, &sectors("atom"), 4, constant(true), in_global);
    of(21, &sectors("red"), 4, value(AtomicOp::Add, false), in_global);
    of(22, &sectors("atom"), 4, value(AtomicOp::Add, true), in_global);
    of(23, &sectors("red"), 4, value(AtomicOp::Max, false), in_global);
    of(24, &sectors("red"), 4, value(AtomicOp::Or, false), in_global);
    of(25, &sectors("atom"), 4, value(AtomicOp::Exch, false), in_global);
    of(26, &sectors("atom"), 4, value(AtomicOp::Cas, false), in_global);
    of(27, &sectors("red"), 8, value(AtomicOp::Add, false), in_global);
    of(28, &sectors("red"), 4, AtomicKind { is_read: false, ..kind(AtomicOp::Add, true) }, in_global);
    of(29, &sectors("red"), 8, constant(false), in_global);
}

#[test]
fn loads_of_matrices() {
    let measured = Measured::read("counters5.csv");
    for (kernel, matrices_of_load) in [("k<5>", 4), ("k<6>", 1)] {
        let used = u32::MAX >> (32 - 8 * matrices_of_load);
        let of = |name: &str, other, rule: fn(Count) -> u64| {
            for (pattern, measured) in patterns().iter().zip(measured.of(kernel, name)) {
                let addresses = pattern.map(|index| (index & 1023) as u64 * 16);
                let counted = rule(matrices(Lanes::new(&addresses, used, 16)));
                assert_eq!(counted + other, measured, "{kernel} {name} {pattern:?}");
            }
        };
        // The kernel loads a result of 4 bytes, too.
        of("l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld", 1, |count| count.wavefronts);
        of("l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld", 0, |count| count.bank_conflicts);
    }
}

#[test]
fn misaligned_accesses_touch_more_sectors() {
    let addresses = std::array::from_fn(|lane| 4 + 4 * lane as u64);
    let count = global(Lanes::new(&addresses, u32::MAX, 4));
    assert_eq!((count.sectors, count.ideal_sectors, count.l2_requests), (5, 4, 2));
}
