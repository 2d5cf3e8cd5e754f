//! Launches with barriers in shared memory, copies that barriers or groups count, and clusters.

use weft_artifact::{BoxMap, MAP_DIMS};
use weft_simulator::{Class, Counts, Error, Launch, Memory, Module, Space};

/// A kernel `k` with an array of words, and registers as in `launches.rs`: `%rd1` is the address of the thread's element,
/// `%r4` its number in the block. `%rd2` is a shared array of 1024 bytes, `%rd3` two barriers.
fn kernel(body: &str) -> String {
    format!(
        ".version 8.0\n.target sm_90a\n.address_size 64\n
.visible .entry k(.param .u64 .ptr .global .align 4 k_param_0, .param .u64 k_param_1) {{
    .reg .pred %p<8>;
    .reg .b16 %rs<4>;
    .reg .b32 %r<16>;
    .reg .b64 %rd<16>;
    .shared .align 1024 .b8 tile[1024];
    .shared .align 8 .b8 bars[16];
    ld.param.b64 %rd0, [k_param_0];
    ld.param.b64 %rd5, [k_param_1];
    mov.u32 %r2, %ctaid.x;
    mov.u32 %r3, %ntid.x;
    mov.u32 %r4, %tid.x;
    mad.lo.s32 %r1, %r2, %r3, %r4;
    mad.wide.u32 %rd1, %r1, 4, %rd0;
    mov.b64 %rd2, tile;
    mov.b64 %rd3, bars;
    mad.wide.u32 %rd4, %r4, 4, %rd2;
    setp.eq.b32 %p0, %r4, 0;
{body}
    ret;
}}
"
    )
}

/// The threads wait for a phase of the first barrier.
const WAIT: &str = "
$wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [%rd3], 0;
    @!%p1 bra $wait;";

/// Launches `k` on an array of ascending words. Returns the array and the counts.
fn run(body: &str, [blocks, threads, cluster]: [u32; 3], map: Option<BoxMap>) -> Result<(Vec<u32>, Counts), Error> {
    let module = Module::parse(&kernel(body))?;
    let mut memory = module.memory();
    let words: Vec<u8> = (0..1024_u32).flat_map(u32::to_le_bytes).collect();
    let address = memory.add("x", &words);
    let map = map.map(|map| BoxMap { data: address, ..map }.words().into_iter().flat_map(u64::to_le_bytes).collect());
    let map = map.map_or(0, |bytes: Vec<u8>| memory.add("map", &bytes));
    let mut launch = Launch::new([blocks, 1, 1], [threads, 1, 1]);
    launch.params = vec![address.to_le_bytes().to_vec(), map.to_le_bytes().to_vec()];
    (launch.threads, launch.limit, launch.cluster) = (2, 5_000_000, [cluster, 1, 1]);
    let counts = module.launch("k", &launch, &memory)?;
    Ok((words_of(&memory, address), counts))
}

fn words_of(memory: &Memory, address: u64) -> Vec<u32> {
    let bytes = memory.region(address).expect("the array is there").bytes();
    bytes.chunks_exact(4).map(|word| u32::from_le_bytes([word[0], word[1], word[2], word[3]])).collect()
}

/// The error of a launch, with the text of its line.
fn fault(body: &str, shape: [u32; 3]) -> (String, String) {
    let error = run(body, shape, None).expect_err("the launch fails");
    let text = kernel(body).lines().nth((error.line as usize).saturating_sub(1)).unwrap_or_default().trim().to_owned();
    (error.message, text)
}

/// A map of 32 rows of 32 words, with boxes of 8 by 8.
fn map() -> BoxMap {
    let row = |first: u64, second: u64| std::array::from_fn(|dim| [first, second].get(dim).copied().unwrap_or(0));
    let mut sizes = [0; MAP_DIMS];
    (sizes[0], sizes[1]) = (8, 8);
    BoxMap { data: 0, dims: 2, element: 4, swizzle: 32, extents: row(32, 32), strides: row(128, 4), sizes }
}

#[test]
fn warps_hand_values_on_through_barriers() {
    // The first warp fills the array; the second waits for 32 arrivals, reads, and arrives at the other barrier.
    let body = "
    @%p0 mbarrier.init.shared.b64 [%rd3], 32;
    @%p0 mbarrier.init.shared.b64 [%rd3+8], 32;
    bar.sync 0;
    mov.b32 %r5, 0;
    setp.ge.u32 %p2, %r4, 32;
    @%p2 bra $reader;
$fill:
    and.b32 %r6, %r5, 1;
    xor.b32 %r7, %r6, 1;
$empty:
    mbarrier.try_wait.parity.shared.b64 %p1, [%rd3+8], %r7;
    @!%p1 bra $empty;
    mad.lo.s32 %r8, %r5, 100, %r4;
    st.shared.b32 [%rd4], %r8;
    mbarrier.arrive.shared.b64 %rd6, [%rd3];
    add.s32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 3;
    @%p3 bra $fill;
    bra.uni $done;
$reader:
    mov.b32 %r9, 0;
$read:
    and.b32 %r6, %r5, 1;
$full:
    mbarrier.try_wait.parity.shared.b64 %p1, [%rd3], %r6;
    @!%p1 bra $full;
    ld.shared.b32 %r8, [%rd4+-128];
    add.s32 %r9, %r9, %r8;
    mbarrier.arrive.shared.b64 _, [%rd3+8], 1;
    add.s32 %r5, %r5, 1;
    setp.lt.u32 %p3, %r5, 3;
    @%p3 bra $read;
    st.global.b32 [%rd1], %r9;
$done:";
    let (x, _) = run(body, [1, 64, 1], None).unwrap();
    assert_eq!(x[32..64], (0..32).map(|lane| 300 + 3 * lane).collect::<Vec<_>>());
}

#[test]
fn a_wait_that_no_thread_can_end_is_an_error_at_its_line() {
    let body =
        format!("@%p0 mbarrier.init.shared.b64 [%rd3], 33;\nbar.sync 0;\nmbarrier.arrive.shared.b64 _, [%rd3];{WAIT}");
    let (message, line) = fault(&body, [1, 32, 1]);
    assert_eq!(line, "mbarrier.try_wait.parity.shared.b64 %p1, [%rd3], 0;");
    assert!(message.ends_with("that no other thread can complete: it lacks 1 arrivals"), "{message}");
    // Bytes are missing, of which only a part is copied.
    let body = format!(
        "@!%p0 bra $wait;
mbarrier.init.shared.b64 [%rd3], 1;
mbarrier.arrive.expect_tx.shared.b64 _, [%rd3], 64;
cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd2], [%rd0], 32, [%rd3];{WAIT}"
    );
    let (message, _) = fault(&body, [1, 1, 1]);
    assert!(message.ends_with("it lacks 32 bytes"), "{message}");
}

#[test]
fn a_poll_of_limited_length_ends() {
    let body = "
    @%p0 mbarrier.init.shared.b64 [%rd3], 33;
    bar.sync 0;
    mov.b32 %r5, 0;
$poll:
    mbarrier.test_wait.parity.shared.b64 %p1, [%rd3], 0;
    add.s32 %r5, %r5, 1;
    setp.lt.u32 %p2, %r5, 10;
    @%p2 bra $poll;
    selp.b32 %r6, 1, 2, %p1;
    st.global.b32 [%rd1], %r6;";
    assert_eq!(run(body, [1, 32, 1], None).unwrap().0[..32], [2; 32]);
}

#[test]
fn lanes_may_complete_a_phase_for_which_others_of_their_warp_wait() {
    let body = "
    @%p0 mbarrier.init.shared.b64 [%rd3], 31;
    bar.sync 0;
    @!%p0 bra $others;
$wait:
    mbarrier.try_wait.parity.shared.b64 %p1, [%rd3], 0;
    @!%p1 bra $wait;
    bra.uni $done;
$others:
$done:
    @!%p0 mbarrier.arrive.shared.b64 _, [%rd3];
    st.global.b32 [%rd1], 7;";
    assert_eq!(run(body, [1, 32, 1], None).unwrap().0[..32], [7; 32]);
}

#[test]
fn wrong_uses_of_barriers_are_errors() {
    let (message, line) = fault("mbarrier.arrive.shared.b64 _, [%rd3];", [1, 32, 1]);
    assert!(message.starts_with("there is no initialized barrier at"), "{message}");
    assert_eq!(line, "mbarrier.arrive.shared.b64 _, [%rd3];");
    let (message, _) = fault("@%p0 mbarrier.init.shared.b64 [%rd3], 0;", [1, 32, 1]);
    assert!(message.contains("waits for 1 to 1048575 arrivals, not 0"), "{message}");
    let (message, _) = fault("mbarrier.init.shared.b64 [%rd3], 1;", [1, 2, 1]);
    assert!(message.starts_with("there is a barrier at"), "{message}");
    let (message, _) = fault("mbarrier.init.shared.b64 [%rd3+4], 1;", [1, 1, 1]);
    assert!(message.ends_with("is not aligned to 8 bytes"), "{message}");
    let (message, _) =
        fault("mbarrier.init.shared.b64 [%rd3], 1;\nmbarrier.arrive.shared.b64 _, [%rd3], 2;", [1, 1, 1]);
    assert_eq!(message, "2 arrivals at a barrier in shared memory whose phase waits for only 1 more");
}

#[test]
fn a_copy_comes_where_a_thread_waits_for_it() {
    let body = format!(
        "
    @!%p0 bra $skip;
    mbarrier.init.shared.b64 [%rd3], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%rd3], 128;
    add.s64 %rd7, %rd0, 256;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes [%rd2], [%rd7], 128, [%rd3];
    ld.shared.b32 %r5, [%rd2+4];
    st.global.b32 [%rd0+2048], %r5;
$skip:
    bar.sync 0;{WAIT}
    ld.shared.b32 %r5, [%rd4];
    st.global.b32 [%rd1], %r5;"
    );
    let (x, counts) = run(&body, [1, 32, 1], None).unwrap();
    assert_eq!(x[..32], (64..96).collect::<Vec<_>>());
    assert_eq!(x[512], 0);
    let copied = counts.total(Class::Other, Space::Global);
    assert_eq!((copied.requests, copied.sectors, copied.ideal_sectors, copied.l2_sectors), (0, 4, 4, 4));
}

#[test]
fn boxes_are_swizzled_and_filled_with_zeros() {
    // The box begins at row 28 and column -2.
    let body = format!(
        "
    @!%p0 bra $skip;
    mbarrier.init.shared.b64 [%rd3], 1;
    mbarrier.arrive.expect_tx.shared.b64 _, [%rd3], 256;
    cp.async.bulk.tensor.2d.shared::cluster.global.tile.mbarrier::complete_tx::bytes [%rd2], [%rd5, {{-2, 28}}], [%rd3];
$skip:
    bar.sync 0;{WAIT}
    ld.shared.b32 %r5, [%rd4];
    st.global.b32 [%rd1], %r5;"
    );
    let (x, _) = run(&body, [1, 64, 1], Some(map())).unwrap();
    let expected = |at: u32| {
        let (row, column) = (at / 8, (at % 8) ^ (at / 32 * 4));
        if row < 4 && column >= 2 { (28 + row) * 32 + column - 2 } else { 0 }
    };
    assert_eq!(x[..64], (0..64).map(expected).collect::<Vec<_>>());
    let error = run(&body, [1, 64, 1], None).expect_err("there is no map");
    assert!(error.message.starts_with("there is no tensor map at"), "{error}");
}

#[test]
fn groups_of_copies_to_global_memory() {
    let body = "
    st.shared.b32 [%rd4], %r4;
    bar.sync 0;
    @!%p0 ret;
    fence.proxy.async.shared::cta;
    cp.async.bulk.global.shared::cta.bulk_group [%rd0+64], [%rd2], 64;
    cp.async.bulk.commit_group;
    cp.async.bulk.tensor.2d.global.shared::cta.tile.bulk_group [%rd5, {28, 4}], [%rd2];
    cp.async.bulk.commit_group;
    cp.async.bulk.wait_group 1;
    ld.global.b32 %r5, [%rd0+64];
    st.global.b32 [%rd0+3000], %r5;
    ld.global.b32 %r5, [%rd0+640];
    st.global.b32 [%rd0+3004], %r5;
    cp.async.bulk.wait_group.read 0;
    st.shared.b32 [%rd2], 99;";
    let (x, _) = run(body, [1, 64, 1], Some(map())).unwrap();
    assert_eq!(x[16..32], (0..16).collect::<Vec<_>>());
    assert_eq!((x[750], x[751]), (0, 160));
    // The box has columns 28 to 31 only; the block has ended before its copy was made.
    assert_eq!(x[4 * 32 + 28..4 * 32 + 33], [0, 1, 2, 3, 160]);
    assert_eq!(x[9 * 32 + 28..9 * 32 + 32], [44, 45, 46, 47]);
}

#[test]
fn blocks_of_a_cluster_access_each_others_memory() {
    // Each block stores to the next one, and adds to the first.
    let body = "
    mov.u32 %r5, %cluster_ctarank;
    mov.u32 %r6, %cluster_nctarank;
    st.shared.b32 [%rd4+512], 0;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    add.s32 %r7, %r5, 1;
    rem.u32 %r7, %r7, %r6;
    cvta.shared.u64 %rd6, %rd4;
    mapa.u64 %rd7, %rd6, %r7;
    mad.lo.s32 %r8, %r5, 100, %r4;
    st.b32 [%rd7], %r8;
    mapa.shared::cluster.u64 %rd8, %rd4, 0;
    red.shared::cluster.add.u32 [%rd8+512], 1;
    isspacep.shared::cta %p2, %rd7;
    isspacep.shared::cluster %p3, %rd7;
    barrier.cluster.arrive.release;
    barrier.cluster.wait.acquire;
    ld.shared.b32 %r9, [%rd4];
    ld.shared.b32 %r10, [%rd4+512];
    mad.lo.s32 %r9, %r10, 1000, %r9;
    selp.b32 %r11, 1, 0, %p2;
    selp.b32 %r12, 2, 0, %p3;
    mad.lo.s32 %r9, %r11, 100000, %r9;
    mad.lo.s32 %r9, %r12, 100000, %r9;
    st.global.b32 [%rd1], %r9;";
    let (x, counts) = run(body, [6, 32, 3], None).unwrap();
    let expected = |at: u32| {
        let (rank, lane) = (at / 32 % 3, at % 32);
        200_000 + (rank + 2) % 3 * 100 + lane + if rank == 0 { 3000 } else { 0 }
    };
    assert_eq!(x[..192], (0..192).map(expected).collect::<Vec<_>>());
    assert_eq!(counts.total(Class::Atomic, Space::Shared).requests, 2);
    let (message, _) = fault("mapa.shared::cluster.u64 %rd8, %rd4, 2;", [2, 32, 2]);
    assert_eq!(message, "there is no block 2 in a cluster of 2");
}

#[test]
fn one_copy_and_arrivals_for_several_blocks() {
    let body = format!(
        "
    mov.u32 %r5, %cluster_ctarank;
    @!%p0 bra $skip;
    mbarrier.init.shared.b64 [%rd3], 1;
    mbarrier.init.shared.b64 [%rd3+8], 2;
    mbarrier.arrive.expect_tx.shared.b64 _, [%rd3], 64;
$skip:
    barrier.cluster.arrive;
    barrier.cluster.wait;
    @!%p0 bra $wait;
    mapa.shared::cluster.u64 %rd6, %rd3, 0;
    mbarrier.arrive.release.cluster.shared::cluster.b64 _, [%rd6+8];
    setp.ne.b32 %p2, %r5, 0;
    @%p2 bra $wait;
$all:
    mbarrier.try_wait.parity.acquire.cluster.shared::cta.b64 %p1, [%rd3+8], 0;
    @!%p1 bra $all;
    mov.b16 %rs1, 3;
    cp.async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes.multicast::cluster [%rd2], [%rd0], 64, [%rd3], %rs1;{WAIT}
    ld.shared.b32 %r6, [%rd4];
    barrier.cluster.arrive;
    barrier.cluster.wait;
    st.global.b32 [%rd1], %r6;"
    );
    let (x, _) = run(&body, [2, 16, 2], None).unwrap();
    assert_eq!(x[..32], (0..32).map(|at| at % 16).collect::<Vec<_>>());
    let (message, _) = fault(&body.replace("%rs1, 3;", "%rs1, 5;"), [2, 16, 2]);
    assert!(message.ends_with("blocks outside of a cluster of 2"), "{message}");
}

#[test]
fn a_cluster_that_does_not_meet_is_an_error() {
    let body = format!(
        "
    mbarrier.init.shared.b64 [%rd3], 2;
    mov.u32 %r5, %cluster_ctarank;
    setp.eq.b32 %p2, %r5, 0;
    barrier.cluster.arrive;
    @%p2 bra $wait;
    barrier.cluster.wait;
    barrier.cluster.arrive;
    barrier.cluster.wait;
    ret;{WAIT}"
    );
    let (message, line) = fault(&body, [2, 1, 2]);
    assert_eq!(line, "mbarrier.try_wait.parity.shared.b64 %p1, [%rd3], 0;");
    assert!(message.contains("it lacks 2 arrivals"), "{message}");
    let (message, _) = fault("barrier.cluster.wait;", [2, 1, 2]);
    assert!(message.ends_with("but has not arrived"), "{message}");
    let body = "
    mov.u32 %r5, %cluster_ctarank;
    setp.eq.b32 %p2, %r5, 0;
    @%p2 ret;
    bar.sync 0;
    mapa.shared::cluster.u64 %rd6, %rd4, 0;
    ld.shared::cluster.b32 %r6, [%rd6];";
    let (message, _) = fault(body, [2, 1, 2]);
    assert!(message.ends_with("of block 0 of the cluster, which has ended"), "{message}");
}

/// A product of a warpgroup of zeros, whose accumulators are `%r8` to `%r11`, with a left matrix in registers or in memory.
fn product(left: &str) -> String {
    format!(
        "
    wgmma.fence.sync.aligned;
    wgmma.mma_async.sync.aligned.m64n8k16.f32.f16.f16 {{%r8, %r9, %r10, %r11}}, {left}, %rd6, %p2, 1, 1, {} 0;
    wgmma.commit_group.sync.aligned;",
        if left.starts_with('{') { "" } else { "0," }
    )
}

#[test]
fn registers_of_products_in_flight_are_not_used() {
    let begin = "
    setp.eq.b32 %p2, %r4, %r4;
    mov.b64 %rd6, 0x4000000000000000;
    mov.b32 %r8, 0f00000000;
    mov.b32 %r9, %r8;
    mov.b32 %r10, %r8;
    mov.b32 %r11, %r8;
    mov.b32 %r12, 0;";
    let (shared, words) = (product("%rd6"), product("{%r12, %r12, %r12, %r12}"));
    let wait = |n: u32| format!("\n    wgmma.wait_group.sync.aligned {n};");
    let store = "\n    st.global.b32 [%rd1], %r9;";
    let shape = [1, 128, 1];
    // A chain, of which all are complete.
    let (got, _) = run(&[begin, &shared, &shared, &wait(1), &wait(0), store].concat(), shape, None).expect("it runs");
    assert_eq!(got[..128], [0; 128]);
    let reads = "an instruction reads an accumulator of a product in flight: wgmma.wait_group must come before";
    let writes = reads.replace("reads an accumulator", "writes a register");
    let faults = [
        ([begin, &shared, store].concat(), "st.global.b32 [%rd1], %r9;", reads),
        ([begin, &shared, &wait(1), store].concat(), "st.global.b32 [%rd1], %r9;", reads),
        ([begin, &shared, &shared, &wait(1), store].concat(), "st.global.b32 [%rd1], %r9;", reads),
        ([begin, &shared, "\n    mov.b32 %r8, 1;"].concat(), "mov.b32 %r8, 1;", &writes),
        ([begin, &words, "\n    mov.b32 %r12, 1;"].concat(), "mov.b32 %r12, 1;", &writes),
    ];
    for (body, line, message) in faults {
        let (found, text) = fault(&body, shape);
        assert!(found.contains(message) && text == line, "{found}: {text}");
    }
}
