//! Launches of small kernels: divergence, waits, recursion, barriers, errors, and counts by line.

use std::time::Duration;

use weft_simulator::{Class, Counts, Error, Launch, Memory, Module, Space, Stride, Waits};

/// A kernel `k` with an array and registers `%r0` to `%r15`, `%rd0` to `%rd15`, `%p0` to `%p7`. `%rd1` is the address
/// of the thread's element of 4 bytes, `%r1` its number in the grid.
fn kernel(body: &str) -> String {
    format!(
        ".version 7.8\n.target sm_90\n.address_size 64\n
.visible .entry k(.param .u64 .ptr .global .align 4 k_param_0) {{
    .reg .pred %p<8>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    ld.param.b64 %rd0, [k_param_0];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r1, %r2, %r3, %r4;
    mad.wide.u32 %rd1, %r1, 4, %rd0;
{body}
    ret;
}}
"
    )
}

/// Launches `k` on an array of zeros. Returns the array and the counts.
fn launch(ptx: &str, blocks: u32, threads: u32, workers: usize) -> Result<(Vec<u32>, Counts), Error> {
    let module = Module::parse(ptx)?;
    let mut memory = module.memory();
    let address = memory.add("x", &vec![0; 4 * (blocks * threads) as usize]);
    let mut launch = Launch::new([blocks, 1, 1], [threads, 1, 1]);
    launch.params = vec![address.to_le_bytes().to_vec()];
    (launch.threads, launch.limit) = (workers, 5_000_000);
    let counts = module.launch("k", &launch, &memory)?;
    Ok((words(&memory, address), counts))
}

fn words(memory: &Memory, address: u64) -> Vec<u32> {
    let bytes = memory.region(address).expect("the array is there").bytes();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

fn fault(body: &str) -> String {
    launch(&kernel(body), 1, 32, 1).expect_err("the launch fails").to_string()
}

#[test]
fn lanes_leave_a_loop_one_by_one() {
    let body = "
    mov.b32 %r5, 0;
$L__BB0_1:
    add.s32 %r5, %r5, 1;
    setp.le.u32 %p1, %r5, %r4;
    @%p1 bra $L__BB0_1;
    st.global.b32 [%rd1], %r5;";
    let (x, counts) = launch(&kernel(body), 1, 32, 1).unwrap();
    assert_eq!(x, (1..=32).collect::<Vec<_>>());
    let row = counts.rows.iter().find(|row| row.class == Class::Control && row.divergent_branches > 0).unwrap();
    assert_eq!((row.warps, row.lanes, row.divergent_branches), (32, (0..32).sum(), 31));
    let stores = counts.total(Class::Store, Space::Global);
    assert_eq!((stores.requests, stores.sectors, stores.lanes), (1, 4, 32));
}

#[test]
fn branches_converge_and_returns_end_lanes() {
    let body = "
    and.b32 %r5, %r4, 1;
    setp.eq.b32 %p1, %r5, 0;
    setp.gt.u32 %p2, %r4, 20;
    @%p2 ret;
    @%p1 bra $even;
    mov.b32 %r6, 7;
    bra.uni $done;
$even:
    mov.b32 %r6, 9;
$done:
    activemask.b32 %r7;
    popc.b32 %r7, %r7;
    add.s32 %r6, %r6, %r7;
    st.global.b32 [%rd1], %r6;";
    let (x, _) = launch(&kernel(body), 1, 32, 1).unwrap();
    assert_eq!((x[0], x[1], x[20], x[21]), (30, 28, 30, 0));
}

#[test]
fn a_lane_may_wait_for_another() {
    let body = "
    setp.eq.b32 %p1, %r4, 0;
    add.s64 %rd2, %rd0, 4;
    @%p1 bra $wait;
    mov.b32 %r5, 1;
    st.volatile.global.b32 [%rd1], %r5;
    bra.uni $done;
$wait:
    ld.volatile.global.b32 %r6, [%rd2];
    setp.eq.b32 %p2, %r6, 0;
    @%p2 bra $wait;
    st.global.b32 [%rd1], %r6;
$done:";
    let (x, _) = launch(&kernel(body), 1, 32, 1).unwrap();
    assert_eq!(x, [1; 32]);
}

#[test]
fn the_lane_that_holds_a_lock_continues_without_the_others() {
    let body = "
$lock:
    atom.global.cas.b32 %r5, [%rd0], 0, 1;
    setp.ne.b32 %p1, %r5, 0;
    @%p1 bra $lock;
    ld.volatile.global.b32 %r6, [%rd0+4];
    add.s32 %r6, %r6, 1;
    st.volatile.global.b32 [%rd0+4], %r6;
    atom.global.exch.b32 %r5, [%rd0], 0;";
    let (x, _) = launch(&kernel(body), 2, 40, 2).unwrap();
    assert_eq!(x[..3], [0, 80, 0]);
}

#[test]
fn blocks_may_wait_for_each_other() {
    // Block 0 waits for the last block, on one worker.
    let body = "
    setp.ne.b32 %p1, %r2, 0;
    @%p1 bra $set;
$wait:
    ld.volatile.global.b32 %r6, [%rd0+1276];
    setp.eq.b32 %p2, %r6, 0;
    @%p2 bra $wait;
$set:
    mov.b32 %r5, 3;
    st.global.b32 [%rd1], %r5;";
    assert_eq!(launch(&kernel(body), 10, 32, 1).unwrap().0, [3; 320]);
}

#[test]
fn atomics_of_blocks_add_up() {
    let body = "
    atom.global.add.u32 %r5, [%rd0], %r4;
    atom.global.max.u32 %r6, [%rd0+4], %r1;";
    let (x, counts) = launch(&kernel(body), 64, 64, 4).unwrap();
    assert_eq!((x[0], x[1]), (64 * (63 * 64 / 2), 64 * 64 - 1));
    // One elected lane acts for its warp, because the address is uniform and no instruction reads the result.
    let atomics = counts.total(Class::Atomic, Space::Global);
    assert_eq!((atomics.requests, atomics.sectors, atomics.lanes), (256, 256, 8192));
}

#[test]
fn counts_do_not_depend_on_workers() {
    let body = "
    rem.u32 %r5, %r1, 7;
    mad.wide.u32 %rd2, %r5, 4, %rd0;
    ld.global.b32 %r6, [%rd2];
    st.global.b32 [%rd1], %r5;";
    let one = launch(&kernel(body), 33, 96, 1).unwrap();
    let four = launch(&kernel(body), 33, 96, 4).unwrap();
    assert_eq!(one.1, four.1);
}

#[test]
fn warps_that_run_less_before_a_barrier_wait_for_the_others() {
    // The third warp runs a loop of 10 iterations of 3 instructions before the first barrier, the others none. All run
    // the same before the second one.
    let body = "
    mov.b32 %r5, 0;
    setp.lt.u32 %p1, %r4, 64;
    setp.ge.u32 %p2, %r4, 96;
    or.pred %p1, %p1, %p2;
    @%p1 bra $wait;
$more:
    add.s32 %r5, %r5, 1;
    setp.lt.u32 %p1, %r5, 10;
    @%p1 bra $more;
$wait:
    bar.sync 0;
    bar.sync 0;";
    let (_, counts) = launch(&kernel(body), 2, 128, 1).unwrap();
    let waits: Vec<Waits> = counts.rows.iter().filter(|row| row.class == Class::Barrier).map(|row| row.waits).collect();
    let [first, second] = waits[..] else { panic!("two barriers, not {waits:?}") };
    // 2 blocks, 3 warps that wait, 30 instructions of the loop.
    assert_eq!(first.missing, 2 * 3 * 30);
    // The start of the kernel has 6 instructions, and 6 more are up to the barrier, without the loop.
    assert_eq!(first.instructions, 2 * (4 * 12 + 30));
    assert_eq!(second, Waits { instructions: 2 * 4, missing: 0 });
}

#[test]
fn warps_that_poll_before_a_barrier_are_not_counted() {
    // The first warp waits for a word of the second one: how long depends on their order.
    let body = "
    setp.lt.u32 %p1, %r4, 32;
    @%p1 bra $poll;
    mov.b32 %r5, 1;
    st.volatile.global.b32 [%rd0+256], %r5;
    bra.uni $wait;
$poll:
    ld.volatile.global.b32 %r6, [%rd0+256];
    setp.eq.b32 %p2, %r6, 0;
    @%p2 bra $poll;
$wait:
    bar.sync 0;";
    let (_, counts) = launch(&kernel(body), 1, 96, 1).unwrap();
    assert!(counts.rows.iter().all(|row| row.waits == Waits::default()));
}

#[test]
fn barriers_wait_and_reduce() {
    let body = "
    .shared .align 4 .b8 tile[512];
    mov.b64 %rd2, tile;
    mad.wide.u32 %rd3, %r4, 4, %rd2;
    st.shared.b32 [%rd3], %r4;
    bar.sync 0;
    xor.b32 %r5, %r4, 96;
    mad.wide.u32 %rd3, %r5, 4, %rd2;
    ld.shared.b32 %r6, [%rd3];
    setp.lt.u32 %p1, %r4, 40;
    bar.red.popc.u32 %r7, 0, %p1;
    bar.red.or.pred %p2, 0, !%p1;
    selp.b32 %r8, 1000, 0, %p2;
    add.s32 %r6, %r6, %r7;
    add.s32 %r6, %r6, %r8;
    bar.sync 1, 128;
    st.global.b32 [%rd1], %r6;";
    let (x, counts) = launch(&kernel(body), 2, 128, 1).unwrap();
    let expected: Vec<u32> = (0..256).map(|i| ((i % 128) ^ 0x60) + 1040).collect();
    assert_eq!(x, expected);
    let loads = counts.total(Class::Load, Space::Shared);
    assert_eq!((loads.requests, loads.wavefronts, loads.bank_conflicts), (8, 8, 0));
}

#[test]
fn columns_of_a_tile_conflict() {
    let body = "
    .shared .align 4 .b8 tile[4096];
    mov.b64 %rd2, tile;
    mad.wide.u32 %rd3, %r4, 128, %rd2;
    st.shared.b32 [%rd3], %r4;
    ld.shared.b32 %r5, [%rd3];
    st.global.b32 [%rd1], %r5;";
    let (x, counts) = launch(&kernel(body), 1, 32, 1).unwrap();
    assert_eq!(x, (0..32).collect::<Vec<_>>());
    for class in [Class::Load, Class::Store] {
        let count = counts.total(class, Space::Shared);
        assert_eq!((count.wavefronts, count.ideal_wavefronts, count.bank_conflicts), (32, 1, 31));
    }
}

#[test]
fn functions_call_themselves() {
    let function = "
.visible .func (.param .b32 func_retval0) fib(.param .b32 fib_param_0) {
    .reg .pred %p<2>;
    .reg .b32 %r<6>;
    ld.param.b32 %r1, [fib_param_0];
    setp.lt.s32 %p1, %r1, 2;
    mov.b32 %r5, %r1;
    @%p1 bra $small;
    add.s32 %r2, %r1, -1;
    { // callseq 0, 0
    .param .b32 param0;
    .param .b32 retval0;
    st.param.b32 [param0], %r2;
    call.uni (retval0), fib, (param0);
    ld.param.b32 %r3, [retval0];
    }
    add.s32 %r2, %r1, -2;
    { // callseq 1, 0
    .param .b32 param0;
    .param .b32 retval0;
    st.param.b32 [param0], %r2;
    call.uni (retval0), fib, (param0);
    ld.param.b32 %r4, [retval0];
    }
    add.s32 %r5, %r3, %r4;
$small:
    st.param.b32 [func_retval0], %r5;
    ret;
}
";
    let body = "
    rem.u32 %r5, %r4, 12;
    .param .b32 param0;
    .param .b32 retval0;
    st.param.b32 [param0], %r5;
    call.uni (retval0), fib, (param0);
    ld.param.b32 %r6, [retval0];
    st.global.b32 [%rd1], %r6;";
    let (x, _) = launch(&format!("{function}{}", kernel(body)), 1, 32, 1).unwrap();
    let fib = [0, 1, 1, 2, 3, 5, 8, 13, 21, 34, 55, 89];
    assert_eq!(x, (0..32).map(|lane| fib[lane % 12]).collect::<Vec<_>>());
}

#[test]
fn products_and_sums_contract() {
    // (1 + 2^-23)^2 - 1, whose last bit a rounded product loses.
    let body = "
    mov.b32 %r5, 0f3F800001;
    mul.f32 %r6, %r5, %r5;
    add.f32 %r7, %r6, 0fBF800000;
    mul.rn.f32 %r8, %r5, %r5;
    add.rn.f32 %r9, %r8, 0fBF800000;
    setp.eq.b32 %p1, %r4, 0;
    selp.b32 %r10, %r7, %r9, %p1;
    st.global.b32 [%rd1], %r10;";
    let (x, counts) = launch(&kernel(body), 1, 32, 1).unwrap();
    let a = 1.0_f32 + f32::EPSILON;
    assert_eq!((x[0], x[1]), (a.mul_add(a, -1.0).to_bits(), (a * a - 1.0).to_bits()));
    assert_eq!(counts.rows.iter().filter(|row| row.class == Class::Float32Fma).count(), 1);
}

#[test]
fn packed_floats_are_two_operations() {
    // (3, -2) * (lane, lane) + (1, 0.5), minus (1, 1), as integers in two halves of a word.
    let body = "
    cvt.rn.f32.u32 %r5, %r4;
    mov.b64 %rd2, {%r5, %r5};
    mov.b32 %r6, 0f40400000;
    mov.b32 %r7, 0fC0000000;
    mov.b64 %rd3, {%r6, %r7};
    mov.b64 %rd4, 0x3F0000003F800000;
    fma.rn.f32x2 %rd5, %rd2, %rd3, %rd4;
    mov.b64 %rd6, 0x3F8000003F800000;
    sub.rn.f32x2 %rd5, %rd5, %rd6;
    mov.b64 {%r8, %r9}, %rd5;
    add.f32 %r10, %r8, %r9;
    st.global.b32 [%rd1], %r10;";
    let (x, counts) = launch(&kernel(body), 1, 32, 1).unwrap();
    let expected = |lane: u16| (3.0 * f32::from(lane) + 1.0 - 1.0) + (-2.0 * f32::from(lane) + 0.5 - 1.0);
    assert_eq!(x, (0..32).map(|lane| expected(lane).to_bits()).collect::<Vec<_>>());
    let lanes = |class| counts.rows.iter().filter(|row| row.class == class).map(|row| row.lanes).sum::<u64>();
    assert_eq!((lanes(Class::Float32Fma), lanes(Class::Float32Add)), (64, 64 + 32));
    assert!(fault("div.rn.f32x2 %rd5, %rd2, %rd3;").contains("not supported"));
}

#[test]
fn minima_and_maxima_clamp_at_zero() {
    let body = "
    sub.s32 %r5, %r4, 20;
    min.relu.s32 %r6, %r5, 5;
    max.relu.s32 %r7, %r5, -3;
    shl.b32 %r7, %r7, 8;
    or.b32 %r6, %r6, %r7;
    st.global.b32 [%rd1], %r6;";
    let (x, _) = launch(&kernel(body), 1, 32, 1).unwrap();
    let expected = |lane: i32| (lane - 20).clamp(0, 5) | (lane - 20).max(-3).max(0) << 8;
    assert_eq!(x, (0..32).map(|lane| expected(lane) as u32).collect::<Vec<_>>());
    assert!(fault("max.relu.u32 %r5, %r5, %r6;").contains("not supported"));
}

#[test]
fn lanes_of_other_paths_join_a_collective() {
    let body = "
    and.b32 %r5, %r4, 1;
    setp.eq.b32 %p1, %r5, 0;
    {
    .reg .b32 lane;
    mov.b32 lane, %r4;
    @%p1 bra even;
    bar.warp.sync -1;
    bra done;
even:
    bar.warp.sync -1;
done:
    shfl.sync.bfly.b32 %r6|%p2, lane, 1, 31, -1;
    }
    vote.sync.ballot.b32 %r7, %p1, -1;
    add.s32 %r6, %r6, %r7;
    st.global.b32 [%rd1], %r6;";
    let (x, _) = launch(&kernel(body), 1, 32, 1).unwrap();
    assert_eq!(x, (0..32).map(|lane| (lane ^ 1) + 0x5555_5555).collect::<Vec<_>>());
}

#[test]
fn invalid_accesses_are_errors() {
    assert!(fault("ld.global.b32 %r5, [%rd1+4];").contains("lane 31: an access of 4 bytes at"));
    assert!(fault("ld.global.b64 %rd5, [%rd1];").contains("lane 1: the address"));
    assert!(fault("st.shared.b32 [%rd1], %r1;").contains("outside of the 0 bytes of shared memory"));
    assert!(fault("trap;").contains("the kernel trapped"));
    assert!(fault("$wait: bra $wait;").contains("more instructions than its limit"));
    let parse = |body: &str| Module::parse(&kernel(body)).expect_err("the module is refused").to_string();
    assert_eq!(parse("    frobnicate.b32 %r1, %r2;"), "line 15: `frobnicate.b32` is not supported");
    assert_eq!(parse("    add.wrap.s32 %r1, %r2, %r3;"), "line 15: `add.wrap.s32` is not supported");
    assert_eq!(parse("    add.s64 %rd1, %r2, %rd3;").split(": ").next(), Some("line 15"));
    assert_eq!(parse("    bra $nowhere;"), "line 15: there is no label `$nowhere`");
}

/// A kernel whose blocks store a row three times. In those with a number above 75,000 the last two stores
/// are missing.
fn guarded() -> String {
    kernel(
        "
    st.global.b32 [%rd1], %r4;
    setp.gt.u32 %p1, %r2, 75000;
    @%p1 bra $L__BB0_1;
    st.global.b32 [%rd1], %r2;
    st.global.b32 [%rd1], %r3;
$L__BB0_1:",
    )
}

#[test]
fn a_sample_is_near_the_whole() {
    let module = Module::parse(&guarded()).unwrap();
    let mut memory = module.memory();
    let address = memory.add("x", &vec![0; 4 * 100_000 * 64]);
    let mut launch = Launch::new([100_000, 1, 1], [64, 1, 1]);
    launch.params = vec![address.to_le_bytes().to_vec()];
    let whole = module.launch("k", &launch, &memory).unwrap();
    let sample = module.sample("k", &launch, &memory, Duration::from_hours(1)).unwrap().expect("no block waits");
    assert_eq!(sample.blocks, 100_000);
    assert!(sample.ran < 100_000 && sample.error > 0.0 && sample.error <= 0.002, "{}", sample.ran);
    let sectors = |counts: &Counts| counts.total(Class::Store, Space::Global).sectors as f64;
    let deviation = (sectors(&sample.counts) / sectors(&whole) - 1.0).abs();
    assert!(deviation < 4.0 * sample.error, "{deviation} {}", sample.error);
    // Every stratum of a launch without time has run all the same: the first block, the last, one between.
    let late = module.sample("k", &launch, &memory, Duration::ZERO).unwrap().expect("no block waits");
    assert!(late.ran >= 3 && late.error > 0.01, "{}", late.ran);
}

#[test]
fn few_blocks_run_as_a_whole() {
    let module = Module::parse(&guarded()).unwrap();
    let mut memory = module.memory();
    let address = memory.add("x", &vec![0; 4 * 60 * 64]);
    let mut launch = Launch::new([5, 4, 3], [64, 1, 1]);
    launch.params = vec![address.to_le_bytes().to_vec()];
    let whole = module.launch("k", &launch, &memory).unwrap();
    let sample = module.sample("k", &launch, &memory, Duration::from_hours(1)).unwrap().expect("no block waits");
    assert_eq!((sample.ran, sample.error), (60, 0.0));
    assert_eq!(sample.counts, whole);
}

#[test]
fn a_launch_whose_blocks_wait_for_each_other_is_not_sampled() {
    // Each block but the first waits until the block before it has stored.
    let body = "
    setp.eq.u32 %p1, %r2, 0;
    @%p1 bra $L__BB0_2;
$L__BB0_1:
    ld.volatile.global.b32 %r5, [%rd1+-128];
    setp.eq.u32 %p2, %r5, 0;
    @%p2 bra $L__BB0_1;
$L__BB0_2:
    st.volatile.global.b32 [%rd1], 1;";
    let module = Module::parse(&kernel(body)).unwrap();
    let mut memory = module.memory();
    let address = memory.add("x", &vec![0; 4 * 1000 * 32]);
    let mut launch = Launch::new([1000, 1, 1], [32, 1, 1]);
    launch.params = vec![address.to_le_bytes().to_vec()];
    assert!(module.sample("k", &launch, &memory, Duration::from_hours(1)).unwrap().is_none());
}

#[test]
fn strides_and_touched_sectors_are_counted() {
    let body = "
    mul.wide.u32 %rd2, %r4, 128;
    add.s64 %rd2, %rd0, %rd2;
    ld.global.b32 %r5, [%rd2];
    st.global.b32 [%rd1], %r5;";
    let module = Module::parse(&kernel(body)).unwrap();
    let mut memory = module.memory();
    let address = memory.add("x", &vec![0; 4 * 2048]);
    let mut launch = Launch::new([1, 1, 1], [32, 1, 1]);
    launch.params = vec![address.to_le_bytes().to_vec()];
    let counts = module.launch("k", &launch, &memory).unwrap();
    let stride = |class| counts.total(class, Space::Global).stride;
    assert_eq!((stride(Class::Load), stride(Class::Store)), (Stride::Constant(128), Stride::Constant(4)));
    // One sector for each lane's load, and the row of stores, whose first sector was loaded.
    assert_eq!(memory.region(address).unwrap().touched_sectors(), 32 + 3);
}

#[test]
fn lanes_that_return_early_are_not_waited_for() {
    let body = "
    setp.lt.u32 %p1, %r4, 20;
    @!%p1 bra $L__BB0_1;
    vote.sync.ballot.b32 %r5, %p1, -1;
    st.global.b32 [%rd1], %r5;
$L__BB0_1:";
    let (x, _) = launch(&kernel(body), 1, 32, 1).unwrap();
    assert_eq!(x, [[(1 << 20) - 1; 20].as_slice(), &[0; 12]].concat());
}
