//! Tests of the occupancy against NVIDIA's calculator and driver, and of the advice.

use super::{Limit, Needs};
use crate::target::{SMS, Sm};

const CALCULATOR: &str = include_str!("calculator.csv");
const DRIVER: &str = include_str!("driver.csv");

/// The rows of a file, after its head.
fn rows<const N: usize>(text: &str) -> impl Iterator<Item = [i64; N]> {
    let lines = text.lines().filter(|line| !line.starts_with('#')).skip(1);
    lines.map(|line| {
        let numbers: Vec<i64> = line.split(',').map(|number| number.parse().expect("a number")).collect();
        numbers.try_into().unwrap_or_else(|_| panic!("{line}"))
    })
}

fn of_capability(capability: i64) -> &'static Sm {
    let sm = Sm::of_capability(capability as u32 / 10, capability as u32 % 10).expect("a target");
    assert_eq!(i64::from(sm.number), capability);
    sm
}

/// The SM, the needs, the blocks and the limits of each row of the calculator.
fn cases() -> impl Iterator<Item = (&'static Sm, Needs, u32, i64)> {
    rows::<8>(CALCULATOR).map(|[capability, registers, shared, threads, barriers, carveout, blocks, limits]| {
        let needs = Needs {
            barriers: barriers as u32,
            carveout: u32::try_from(carveout).ok(),
            ..Needs::new(registers as u32, shared as u64, threads as u32)
        };
        (of_capability(capability), needs, blocks as u32, limits)
    })
}

#[test]
fn it_is_what_nvidias_calculator_computes() {
    let (mut count, mut capabilities) = (0, Vec::new());
    for (sm, needs, blocks, limits) in cases() {
        let found = sm.occupancy(needs);
        assert_eq!(found.blocks, blocks, "{}: {needs:?}", sm.name);
        let mask = found.limits().map(|limit| 1 << Limit::ALL.iter().position(|each| *each == limit).expect("listed"));
        assert_eq!(mask.sum::<i64>(), limits, "{}: {needs:?}: {found}", sm.name);
        count += 1;
        capabilities.push(sm.number);
    }
    capabilities.dedup();
    assert!(count > 1000);
    let mut all: Vec<u32> = SMS.iter().map(|sm| sm.number).collect();
    all.dedup();
    assert_eq!(capabilities, all);
}

#[test]
fn it_is_what_the_driver_says() {
    for row in rows::<5>(DRIVER) {
        let [capability, registers, shared, threads, blocks] = row;
        let found = of_capability(capability).occupancy(Needs::new(registers as u32, shared as u64, threads as u32));
        assert_eq!(i64::from(found.blocks), blocks, "{row:?}");
    }
}

#[test]
fn the_limits_are_named() {
    let sm = Sm::parse("sm_90").expect("a target");
    let shown =
        |registers, shared_bytes, threads| sm.occupancy(Needs::new(registers, shared_bytes, threads)).to_string();
    assert_eq!(shown(32, 0, 256), "100 % (64 of 64 warps)");
    assert_eq!(shown(40, 0, 256), "75 % (48 of 64 warps), limited by registers");
    assert_eq!(shown(16, 100 << 10, 256), "25 % (16 of 64 warps), limited by shared memory");
    assert_eq!(shown(16, 0, 32), "50 % (32 of 64 warps), limited by the number of blocks");
    assert_eq!(shown(16, 0, 768), "75 % (48 of 64 warps), limited by the number of warps");
    assert_eq!(shown(64, 50 << 10, 256), "50 % (32 of 64 warps), limited by registers and shared memory");
    assert_eq!(shown(255, 0, 1024), "0 % (a block needs more than a multiprocessor has: registers)");
    let many = Needs { barriers: 16, ..Needs::new(32, 0, 256) };
    assert_eq!(sm.occupancy(many).to_string(), "50 % (32 of 64 warps), limited by barriers");
}

#[test]
fn advice_is_shown() {
    let sm = Sm::parse("sm_90").expect("a target");
    let shown = |needs| sm.advice(needs).map(|advice| advice.to_string()).unwrap_or_default();
    assert_eq!(shown(Needs::new(32, 0, 256)), "");
    assert_eq!(shown(Needs::new(48, 0, 256)), "at most 40 registers a thread: 6 blocks (48 warps)");
    assert_eq!(
        shown(Needs::new(16, 100 << 10, 256)),
        "at most 75.0 KB of shared memory a block: 3 blocks (24 warps); blocks of 1024 threads: 64 warps"
    );
    assert_eq!(shown(Needs::new(16, 0, 32)), "blocks of 64 threads: 64 warps");
    assert_eq!(shown(Needs::new(16, 0, 768)), "blocks of 512 threads: 64 warps");
    assert_eq!(
        shown(Needs { barriers: 16, ..Needs::new(32, 0, 256) }),
        "at most 12 barriers a block: 5 blocks (40 warps); blocks of 512 threads: 64 warps"
    );
}

/// With the needs of the advice one more block fits; with one register, byte or barrier more it does not.
#[test]
fn advice_is_the_highest_that_fits() {
    let mut with = [0; 2];
    for (sm, needs, blocks, _) in cases() {
        let Some(advice) = sm.advice(needs) else { continue };
        if let Some((fewer, occupancy)) = advice.one_more {
            with[0] += 1;
            assert!(occupancy.blocks > blocks, "{}: {needs:?}", sm.name);
            let steps = [
                (fewer.registers < needs.registers, Needs { registers: fewer.registers + 1, ..fewer }),
                (fewer.shared_bytes < needs.shared_bytes, Needs { shared_bytes: fewer.shared_bytes + 1, ..fewer }),
                (fewer.barriers < needs.barriers, Needs { barriers: fewer.barriers + 1, ..fewer }),
            ];
            assert!(steps.iter().any(|(lower, _)| *lower), "{}: {needs:?}", sm.name);
            for (_, more) in steps.into_iter().filter(|(lower, _)| *lower) {
                assert!(sm.occupancy(more).blocks <= blocks, "{}: {needs:?}: {more:?}", sm.name);
            }
        }
        if let Some((threads, occupancy)) = advice.threads {
            with[1] += 1;
            assert_eq!(sm.occupancy(Needs { threads, ..needs }), occupancy);
            assert!(occupancy.warps > sm.occupancy(needs).warps, "{}: {needs:?}", sm.name);
        }
    }
    assert!(with.iter().all(|count| *count > 100), "{with:?}");
}
