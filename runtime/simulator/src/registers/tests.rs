//! Tests of the pressure and of the rule.

use std::ops::Range;

use crate::Module;

/// The estimate of a kernel `k` with these instructions, for 64 warps.
fn estimate(body: &str) -> u32 {
    with(&kernel(body)).count
}

fn with(ptx: &str) -> super::Registers {
    let module = Module::parse(ptx).unwrap_or_else(|error| panic!("{error}"));
    module.registers("k", 64).expect("a kernel")
}

fn kernel(body: &str) -> String {
    format!(
        ".visible .entry k(.param .u64 .ptr .global .align 8 a, .param .u32 n) {{
        .reg .pred %p<20>; .reg .b32 %r<200>; .reg .b64 %rd<200>;
        {body}
        ret;
        }}"
    )
}

/// One text for each number, one after the other.
fn each(numbers: Range<u32>, text: impl Fn(u32) -> String) -> String {
    numbers.map(text).collect::<Vec<_>>().concat()
}

/// Loads of a number of values, and stores of them in the same order.
fn copies(count: u32, ty: &str, register: &str) -> String {
    let loads = each(0..count, |i| format!("ld.global.{ty} {register}{}, [%rd1+{}];", 10 + i, 8 * i));
    let stores = each(0..count, |i| format!("st.global.{ty} [%rd1+{}], {register}{};", 8 * i, 10 + i));
    format!("mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 8;{loads}{stores}")
}

#[test]
fn values_of_64_bits_need_two_registers() {
    // 40 values and an address of 64 bits.
    assert_eq!(estimate(&copies(40, "b32", "%r")), 42 + super::SCARCE);
    assert_eq!(estimate(&copies(40, "b64", "%rd")), 82 + super::SCARCE);
}

#[test]
fn few_values_need_ample_registers() {
    assert_eq!(estimate("ret;"), super::FEWEST);
    assert_eq!(estimate(&copies(8, "b32", "%r")), 10 + super::AMPLE);
    assert_eq!(estimate(&copies(28, "b32", "%r")), 33);
    assert_eq!(estimate(&copies(26, "b32", "%r")), 32);
    // 48 warps leave 40 registers to a thread, 32 warps 64.
    let module = Module::parse(&kernel(&copies(26, "b32", "%r"))).unwrap_or_else(|error| panic!("{error}"));
    assert_eq!(module.registers("k", 48).map(|found| found.count), Some(36));
    assert_eq!(module.registers("k", 32).map(|found| found.count), Some(36));
    assert_eq!(module.registers("other", 48), None);
}

#[test]
fn predicates_and_uniform_values_need_none() {
    let base = estimate(&copies(40, "b32", "%r"));
    let predicates = each(1..8, |i| format!("setp.lt.u32 %p{i}, %r10, {i};"));
    let uses = each(1..8, |i| format!("@%p{i} st.global.b32 [%rd1], %r10;"));
    let body = copies(40, "b32", "%r");
    let (loads, stores) = body.split_at(body.find("st.").expect("stores"));
    assert_eq!(estimate(&format!("{loads}{predicates}{stores}{uses}")), base);
    // Parameters, the index of the block, and what is computed from them.
    let uniform = "ld.param.u32 %r2, [n]; mov.u32 %r3, %ctaid.x; add.s32 %r4, %r2, %r3; shl.b32 %r5, %r4, 2;";
    let used = "add.s32 %r6, %r2, %r10; add.s32 %r7, %r5, %r6; st.global.b32 [%rd1], %r7;";
    assert_eq!(estimate(&format!("{uniform}{loads}{stores}{used}")), base);
    // The same values from a load are in registers.
    let loaded = uniform.replace("ld.param.u32 %r2, [n];", "ld.global.u32 %r2, [a];").replace("[a]", "[%rd1]");
    let (index, rest) = loads.split_once(';').expect("the index");
    let (address, rest) = rest.split_once(';').expect("the address");
    assert_eq!(estimate(&format!("{index};{address};{loaded}{rest}{stores}{used}")), base + 2);
}

#[test]
fn a_guarded_write_keeps_the_old_value() {
    let body = copies(40, "b32", "%r");
    let (loads, stores) = body.split_at(body.find("st.").expect("stores"));
    let first = "mov.b32 %r60, %r1; setp.lt.u32 %p1, %r1, 7;";
    let guarded = "@%p1 mov.b32 %r60, 5;";
    let last = "st.global.b32 [%rd1], %r60;";
    let at = loads.find("ld.").expect("loads");
    let with = |second: &str| estimate(&format!("{}{first}{}{second}{stores}{last}", &loads[..at], &loads[at..]));
    assert_eq!(with(guarded), with(""));
    assert_eq!(with(guarded), estimate(&body) + 1);
}

#[test]
fn a_loop_keeps_its_values() {
    // 40 values from before the loop are used after it; the loop has a counter.
    let body = copies(40, "b32", "%r");
    let (loads, stores) = body.split_at(body.find("st.").expect("stores"));
    let inner = "mov.b32 %r2, 0; L: add.s32 %r2, %r2, %r1; setp.lt.s32 %p1, %r2, 90; @%p1 bra L;";
    assert_eq!(estimate(&format!("{loads}{inner}{stores}")), estimate(&body) + 2);
}

#[test]
fn loads_start_early_while_all_warps_fit() {
    let pair = |i: u32| format!("ld.global.b32 %r{i}, [%rd1+{}]; st.shared.b32 [%r1+{}], %r{i};", 8 * i, 4 * i);
    let index = "mov.u32 %r1, %tid.x; mul.wide.u32 %rd1, %r1, 8;";
    let tile = ".shared .align 4 .b8 tile[4096];";
    let shared =
        |count: u32| with(&format!("{tile}{}", kernel(&format!("{index}{}", each(10..10 + count, pair))))).count;
    assert_eq!(shared(1), super::FEWEST);
    // At the last of 8 loads: its address, 7 values, and the address of the stores.
    assert_eq!(shared(8), 2 + 7 + 1 + super::AMPLE);
    assert_eq!(shared(60), 32);
    // Accesses to the same memory remain in order.
    let global = |i: u32| pair(i).replace("st.shared.b32 [%r1", "st.global.b32 [%rd1");
    assert_eq!(estimate(&format!("{index}{}", each(10..70, global))), super::FEWEST);
}

#[test]
fn callees_count_and_the_line_is_that_of_the_peak() {
    let callee = ".func f() {
        .reg .b32 %r<200>; .reg .b64 %rd<200>;
        LOADS
        ret;
        }\n";
    let calls = kernel("call.uni f, ();");
    let small = with(&(callee.replace("LOADS", "mov.u32 %r1, %tid.x;") + &calls));
    assert_eq!(small.count, super::FEWEST_WITH_CALLS);
    let large = with(&(callee.replace("LOADS", &copies(40, "b32", "%r")) + &calls));
    assert_eq!((large.count, large.line), (42 + super::SCARCE, 3));
}
