//! Unit tests of the sanitizer: launches given access by access.

use std::sync::Arc;

use weft_artifact::{AccessBits, EventKind, HostChecks, HostPage, SharedArrayInfo, Site, SiteKind, Sites, Tools};

use super::{AccessRecord, Argument, Finding, Launch, LiveThread, Shape, Verdict, page::PAGE};

const READS: u32 = AccessBits::READS | 4;
const WRITES: u32 = AccessBits::WRITES | 4;
const STEP: u32 = AccessBits::READS | AccessBits::WRITES | AccessBits::ATOMIC | 4;
/// Scratch memory of the blocks, and global memory.
const SCRATCH: u64 = 1 << 20;
const GLOBAL: u64 = 1 << 30;
/// The sites.
const READ: u32 = 0;
const WRITE: u32 = 1;
const ATOMIC: u32 = 2;
const BARRIER: u32 = 3;
const SYNCWARP: u32 = 4;
const SHUFFLE: u32 = 5;
const CALL: u32 = 6;

fn launch(tools: Tools, threads: u32, blocks: u32) -> Launch {
    let kinds = [
        SiteKind::Read,
        SiteKind::Write,
        SiteKind::Atomic,
        SiteKind::Barrier,
        SiteKind::WarpBarrier,
        SiteKind::Shuffle,
        SiteKind::Call,
        SiteKind::End,
    ];
    let site = |(line, kind): (usize, SiteKind)| Site {
        kind,
        file: "kernel.py".to_owned(),
        line: line as u32 + 1,
        column: 5,
        width: 4,
        text: "    x[i]".to_owned(),
        array: "x".to_owned(),
        function: "kernel".to_owned(),
        is_own: false,
        loops: Vec::new(),
        branches: Vec::new(),
        update: None,
    };
    let shape = vec![4, 16];
    let shared =
        vec![SharedArrayInfo { offset: 0, bytes: 256, name: "s".to_owned(), item: 4, shape, is_program: true }];
    let sites =
        Sites { tools, sites: kinds.into_iter().enumerate().map(site).collect(), shared, only_read: Vec::new() };
    let shape = Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], benign_races: true, loops: false };
    let argument = Argument {
        name: "x".to_owned(),
        parameter: 0,
        is_whole: true,
        start: GLOBAL,
        item: 4,
        shape: vec![4, 8],
        strides: vec![32, 4],
    };
    let mut launch = Launch::new(Arc::new(sites), "kernel", shape, vec![argument]);
    for block in 0..blocks {
        let slot = launch.begin(u64::from(block), SCRATCH + 4096 * u64::from(block), 512, 256);
        assert_eq!(slot, block as usize);
    }
    launch
}

fn access(launch: &mut Launch, slot: usize, thread: usize, site: u32, address: u64, bits: u32) -> Verdict {
    let record = AccessRecord { site, address, bits, value: thread as u64 + 1, copy: 0 };
    launch.access(LiveThread { slot, thread }, record, || 0)
}

fn kinds(launch: &mut Launch) -> Vec<&'static str> {
    launch.take().iter().map(|finding| finding.kind).collect()
}

#[test]
fn a_barrier_orders_a_block() {
    let mut run = launch(Tools::RACECHECK, 64, 1);
    access(&mut run, 0, 0, WRITE, SCRATCH, WRITES);
    run.block_met(0, &(0..64).collect::<Vec<_>>(), &[]);
    access(&mut run, 0, 40, READ, SCRATCH, READS);
    assert!(!run.has_found());
    access(&mut run, 0, 3, WRITE, SCRATCH, WRITES);
    let found = run.take();
    let [Finding { kind, count, accesses, .. }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!((*kind, *count), ("race within a block", 1));
    assert_eq!((accesses[0].thread, accesses[1].thread), ([3, 0, 0], [40, 0, 0]));
    assert_eq!((accesses[0].site.line, accesses[1].site.line), (2, 1));
    assert_eq!(accesses[0].index, Some(vec![0, 0]));
}

#[test]
fn a_syncwarp_orders_the_lanes_that_it_names() {
    let mut run = launch(Tools::RACECHECK, 32, 1);
    access(&mut run, 0, 0, WRITE, SCRATCH, WRITES);
    for thread in [0, 1] {
        run.event(LiveThread { slot: 0, thread }, SYNCWARP, EventKind::MEETS, 3, 0);
    }
    run.warp_met(0, 0, 3, 3, 0);
    access(&mut run, 0, 1, READ, SCRATCH, READS);
    assert!(!run.has_found());
    access(&mut run, 0, 2, READ, SCRATCH, READS);
    assert_eq!(kinds(&mut run), ["race within a warp"]);
}

#[test]
fn a_shuffle_orders_nothing() {
    let mut run = launch(Tools::RACECHECK, 32, 1);
    access(&mut run, 0, 0, WRITE, SCRATCH, WRITES);
    for thread in 0..32 {
        run.event(LiveThread { slot: 0, thread }, SHUFFLE, EventKind::LANES, 0xffff_ffff, 1 | 32 << 16);
    }
    run.warp_met(0, 0, u32::MAX, u32::MAX, 0);
    access(&mut run, 0, 1, READ, SCRATCH, READS);
    assert_eq!(kinds(&mut run), ["race within a warp"]);
}

#[test]
fn fences_and_steps_order_blocks() {
    let fence = |run: &mut Launch, slot| run.event(LiveThread { slot, thread: 0 }, 0, EventKind::FENCE, 0, 0);
    for (release, acquire, races) in [(true, true, 0), (false, true, 1), (true, false, 1)] {
        let mut run = launch(Tools::RACECHECK, 1, 2);
        access(&mut run, 0, 0, WRITE, GLOBAL, WRITES);
        if release {
            fence(&mut run, 0);
        }
        access(&mut run, 0, 0, ATOMIC, GLOBAL + 64, STEP);
        access(&mut run, 1, 0, ATOMIC, GLOBAL + 64, STEP);
        if acquire {
            fence(&mut run, 1);
        }
        access(&mut run, 1, 0, READ, GLOBAL, READS);
        assert_eq!(run.take().len(), races, "{release} {acquire}");
    }
}

/// Each thread writes an element, waits with all others by steps at one place, and reads the next thread's element.
#[test]
fn all_threads_of_a_grid_wait_at_one_place() {
    let (blocks, threads, turns) = (4_u32, 256_u32, 3);
    let everybody = || (0..blocks as usize).flat_map(|slot| (0..threads as usize).map(move |thread| (slot, thread)));
    let n_threads = (blocks * threads) as usize;
    let element = |number: usize| GLOBAL + 4096 + 4 * (number % n_threads) as u64;
    for (fences_behind, races) in [(true, false), (false, true)] {
        let mut run = launch(Tools::RACECHECK, threads, blocks);
        let fence = |run: &mut Launch, slot, thread| run.event(LiveThread { slot, thread }, 0, EventKind::FENCE, 0, 0);
        for turn in 0..turns {
            for (slot, thread) in everybody() {
                access(&mut run, slot, thread, WRITE, element(slot * threads as usize + thread), WRITES);
                fence(&mut run, slot, thread);
            }
            for _ in 0..3 {
                for (slot, thread) in everybody() {
                    access(&mut run, slot, thread, ATOMIC, GLOBAL + 8 * turn, STEP);
                }
            }
            for (slot, thread) in everybody().filter(|_| fences_behind) {
                fence(&mut run, slot, thread);
            }
            for (slot, thread) in everybody() {
                access(&mut run, slot, thread, READ, element(slot * threads as usize + thread + 1), READS);
            }
            for (slot, thread) in everybody() {
                fence(&mut run, slot, thread);
                access(&mut run, slot, thread, ATOMIC, GLOBAL + 8 * turn + 4, STEP);
                access(&mut run, slot, thread, ATOMIC, GLOBAL + 8 * turn + 4, STEP);
            }
            for (slot, thread) in everybody() {
                access(&mut run, slot, thread, ATOMIC, GLOBAL + 8 * turn + 4, STEP);
                fence(&mut run, slot, thread);
            }
        }
        assert_eq!(run.has_found(), races);
    }
}

#[test]
fn steps_of_a_block_race_between_blocks() {
    let mut run = launch(Tools::RACECHECK, 1, 2);
    for slot in [0, 1] {
        access(&mut run, slot, 0, ATOMIC, GLOBAL, STEP | AccessBits::BLOCK_SCOPE);
    }
    assert_eq!(kinds(&mut run), ["race between blocks"]);
    let mut run = launch(Tools::RACECHECK, 1, 2);
    for slot in [0, 1] {
        access(&mut run, slot, 0, ATOMIC, GLOBAL, STEP);
    }
    assert!(!run.has_found());
}

#[test]
fn a_step_does_not_hide_the_write_before_it() {
    let mut run = launch(Tools::RACECHECK, 64, 1);
    access(&mut run, 0, 0, WRITE, SCRATCH, WRITES);
    access(&mut run, 0, 0, ATOMIC, SCRATCH, STEP);
    access(&mut run, 0, 40, ATOMIC, SCRATCH, STEP);
    assert_eq!(kinds(&mut run), ["race within a block"]);
}

#[test]
fn bytes_of_one_word_are_apart() {
    let mut run = launch(Tools::RACECHECK, 64, 1);
    for thread in 0..64 {
        access(&mut run, 0, thread, WRITE, GLOBAL + thread as u64, AccessBits::WRITES | 1);
    }
    assert!(!run.has_found());
    access(&mut run, 0, 0, READ, GLOBAL + 60, READS);
    assert_eq!(run.take().len(), 1);
}

#[test]
fn the_grids_barrier_orders_everything() {
    let mut run = launch(Tools::RACECHECK, 1, 2);
    access(&mut run, 0, 0, WRITE, GLOBAL, WRITES);
    run.grid_met();
    access(&mut run, 1, 0, READ, GLOBAL, READS);
    assert!(!run.has_found());
}

#[test]
fn an_index_out_of_bounds_goes_nowhere() {
    let mut run = launch(Tools::ALL, 1, 1);
    run.event(LiveThread { slot: 0, thread: 0 }, WRITE, EventKind::BOUNDS | 1 << 8, 9, 8);
    let verdict = access(&mut run, 0, 0, WRITE, HostChecks::NOWHERE - 36, WRITES);
    assert_eq!(verdict, Verdict::Nowhere);
    let found = run.take();
    let [Finding { tool: "memcheck", message, accesses, .. }] = found.as_slice() else { panic!("{found:?}") };
    assert_eq!(message, "index 9 is out of bounds for axis 1 of `x`, which has 8 elements");
    assert_eq!((accesses.len(), &accesses[0].index), (1, &Some(vec![9])));
}

#[test]
fn shared_memory_is_unwritten_at_first() {
    let mut run = launch(Tools::INITCHECK, 1, 1);
    access(&mut run, 0, 0, WRITE, SCRATCH, WRITES);
    access(&mut run, 0, 0, READ, SCRATCH, READS);
    assert!(!run.has_found());
    // A copy is not a use; copied bytes are unwritten if their source was.
    let copy = |run: &mut Launch, site, address, bits| {
        let record = AccessRecord { site, address, bits, value: 0, copy: 7 };
        run.access(LiveThread { slot: 0, thread: 0 }, record, || 0);
    };
    copy(&mut run, READ, SCRATCH + 8, READS);
    copy(&mut run, WRITE, SCRATCH, WRITES);
    assert!(!run.has_found());
    access(&mut run, 0, 0, READ, SCRATCH, READS);
    assert_eq!(kinds(&mut run), ["uninitialized"]);
}

#[test]
fn barriers_at_different_places_are_told() {
    let mut run = launch(Tools::SYNCCHECK, 2, 1);
    run.event(LiveThread { slot: 0, thread: 0 }, BARRIER, EventKind::MEETS, u64::MAX, 0);
    run.block_met(0, &[0], &[1]);
    assert!(!run.has_found());
    let mut run = launch(Tools::SYNCCHECK, 2, 1);
    access(&mut run, 0, 1, WRITE, GLOBAL, WRITES);
    run.event(LiveThread { slot: 0, thread: 0 }, BARRIER, EventKind::MEETS, u64::MAX, 0);
    run.block_met(0, &[0], &[1]);
    assert_eq!(kinds(&mut run), ["barrier not reached"]);
    let mut run = launch(Tools::SYNCCHECK, 2, 1);
    run.event(LiveThread { slot: 0, thread: 1 }, 0, EventKind::RETURNS, 0, 0);
    run.event(LiveThread { slot: 0, thread: 0 }, BARRIER, EventKind::MEETS, u64::MAX, 0);
    run.block_met(0, &[0], &[1]);
    assert!(!run.has_found());
}

#[test]
fn elements_have_indices() {
    let mut run = launch(Tools::RACECHECK, 64, 1);
    access(&mut run, 0, 0, WRITE, GLOBAL + 32 * 2 + 4 * 3, WRITES);
    access(&mut run, 0, 40, WRITE, GLOBAL + 32 * 2 + 4 * 3, WRITES);
    let found = run.take();
    assert_eq!(found[0].accesses[0].index, Some(vec![2, 3]));
    assert!(found[0].message.starts_with("`x[2, 3]`: written by thread (0, 0, 0)"), "{}", found[0].message);
}

#[test]
fn what_is_read_may_be_used_later() {
    let mut run = launch(Tools::INITCHECK, 1, 1);
    let who = LiveThread { slot: 0, thread: 0 };
    let record = AccessRecord { site: READ, address: SCRATCH + 8, bits: READS, value: 0, copy: HostChecks::FOLLOWED };
    assert_eq!(run.access(who, record, || 0), Verdict::Unwritten(1));
    assert!(!run.has_found());
    run.event(who, 0, EventKind::USED, 1, 0);
    let found = run.take();
    assert_eq!((found[0].kind, &found[0].accesses[0].index), ("uninitialized", &Some(vec![0, 2])));
    access(&mut run, 0, 0, WRITE, SCRATCH + 8, WRITES);
    assert_eq!(run.access(who, record, || 0), Verdict::Goes);
}

#[test]
fn accesses_have_the_calls_that_led_there() {
    let mut run = launch(Tools::RACECHECK, 64, 1);
    run.event(LiveThread { slot: 0, thread: 0 }, CALL, EventKind::ENTERS, 0, 0);
    access(&mut run, 0, 0, WRITE, GLOBAL, WRITES);
    run.event(LiveThread { slot: 0, thread: 0 }, 0, EventKind::LEAVES, 0, 0);
    access(&mut run, 0, 40, WRITE, GLOBAL, WRITES);
    access(&mut run, 0, 0, WRITE, GLOBAL, WRITES);
    let found = run.take();
    let lines = |at: usize| found[0].accesses[at].calls.iter().map(|call| call.line).collect::<Vec<_>>();
    assert_eq!((lines(0), lines(1)), (vec![], vec![CALL + 1]));
}

#[test]
fn benign_races_can_be_ignored() {
    for (benign_races, n) in [(true, 1), (false, 0)] {
        let mut run = launch(Tools::RACECHECK, 64, 1);
        run.plan.shape.benign_races = benign_races;
        for thread in [0, 40] {
            let record = AccessRecord { site: WRITE, address: GLOBAL, bits: WRITES, value: 7, copy: 0 };
            run.access(LiveThread { slot: 0, thread }, record, || 7);
        }
        assert_eq!(run.take().len(), n);
    }
}

#[test]
fn freed_memory_is_known() {
    let start = 1 << 50;
    super::memory::watch();
    super::memory::given(start, 256);
    super::memory::taken_back(start, Box::new(()));
    let mut run = launch(Tools::MEMCHECK, 1, 1);
    assert_eq!(access(&mut run, 0, 0, WRITE, start + 252, WRITES), Verdict::Nowhere);
    assert_eq!(access(&mut run, 0, 0, WRITE, start + 256, WRITES), Verdict::Goes);
    assert_eq!(kinds(&mut run), ["use after free"]);
    super::memory::given(start, 256);
    assert_eq!(super::memory::freed().get(&start), None);
}

#[test]
fn arrays_that_are_only_read_are_quiet() {
    let argument = |parameter: u32, start: u64, strides: &[i64]| Argument {
        parameter,
        is_whole: true,
        start,
        item: 4,
        shape: vec![8; strides.len()],
        strides: strides.to_vec(),
        ..Argument::default()
    };
    let unrecorded = |arguments: Vec<Argument>| {
        let sites = Sites { tools: Tools::ALL, only_read: vec![0], ..Sites::default() };
        Launch::new(Arc::new(sites), "kernel", Shape::default(), arguments).plan.unrecorded
    };
    assert_eq!(unrecorded(vec![argument(0, GLOBAL, &[4])]), 1);
    // The other one begins where it ends.
    assert_eq!(unrecorded(vec![argument(0, GLOBAL, &[4]), argument(1, GLOBAL + 32, &[4])]), 1);
    assert_eq!(unrecorded(vec![argument(0, GLOBAL, &[4]), argument(1, GLOBAL + 28, &[4])]), 0);
    assert_eq!(unrecorded(vec![argument(0, GLOBAL, &[64, 4]), argument(1, GLOBAL + 400, &[4])]), 0);
    // It goes backwards.
    assert_eq!(unrecorded(vec![argument(0, GLOBAL, &[4]), argument(1, GLOBAL + 56, &[-4])]), 0);
    assert_eq!(unrecorded(vec![argument(0, GLOBAL, &[4]), argument(1, GLOBAL + 60, &[-4])]), 1);
    // How far another one goes is not known.
    let unknown = Argument { is_whole: false, ..argument(1, GLOBAL + 4096, &[4]) };
    assert_eq!(unrecorded(vec![argument(0, GLOBAL, &[4]), unknown]), 0);
}

#[test]
fn code_finds_what_was_looked_at() {
    // Accesses of other tests are still in the shadow memory.
    let (global, scratch) = (GLOBAL << 4, SCRATCH << 4);
    let mut run = launch(Tools::ALL, 64, 1);
    run.end(0);
    run.begin(0, scratch, 512, 256);
    let keys = |run: &Launch, address| {
        let near = run.shadow.found(address);
        (near.read_key, near.write_key)
    };
    let key = |address, shift| HostPage::key(address / PAGE * PAGE, shift);
    assert_eq!(keys(&run, global), (HostPage::NO_KEY, HostPage::NO_KEY));
    access(&mut run, 0, 0, WRITE, global, WRITES);
    assert_eq!(keys(&run, global), (HostPage::NO_KEY, key(global, 2)));
    access(&mut run, 0, 0, READ, global, READS);
    assert_eq!(keys(&run, global), (key(global, 2), key(global, 2)));
    // A byte of it.
    access(&mut run, 0, 0, READ, global + 1, AccessBits::READS | 1);
    assert_eq!(keys(&run, global), (key(global, 0), key(global, 0)));
    // Another block's scratch memory.
    access(&mut run, 0, 0, WRITE, scratch, WRITES);
    assert_eq!(keys(&run, scratch).1, key(scratch, 2));
    run.end(0);
    run.begin(0, scratch, 512, 256);
    assert_eq!(keys(&run, scratch), (HostPage::NO_KEY, HostPage::NO_KEY));
    assert!(!run.has_found());
}
