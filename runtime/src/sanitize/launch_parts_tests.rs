//! Launches in parts: proofs that a launch is clean, and undoing all stores.

use std::{
    collections::BTreeMap,
    sync::{Arc, Mutex},
    thread::{self, ThreadId},
};

use weft_artifact::{AccessBits, EventKind, Site, SiteKind, Sites, Tools};

use super::{
    AccessRecord, Launch, LaunchParts, Lines, LiveThread, Overlaps, Shape, Verdict, element_size_tests::Random, memory,
    page::PAGE,
};

const READS: u32 = AccessBits::READS;
const WRITES: u32 = AccessBits::WRITES;
const STEPS: u32 = READS | WRITES | AccessBits::ATOMIC;
const GLOBAL: u64 = 11 << 40;
const SCRATCH: u64 = 12 << 40;

fn sites(tools: Tools) -> Arc<Sites> {
    let site = |kind: SiteKind| Site {
        kind,
        file: "kernel.py".to_owned(),
        line: 1,
        column: 1,
        width: 1,
        text: "x".to_owned(),
        array: "x".to_owned(),
        function: "kernel".to_owned(),
        is_own: false,
        loops: Vec::new(),
        branches: Vec::new(),
        update: None,
    };
    let kinds = [SiteKind::Read, SiteKind::Write, SiteKind::Atomic];
    Arc::new(Sites { tools, sites: kinds.into_iter().map(site).collect(), ..Sites::default() })
}

fn shape(blocks: u32) -> Shape {
    Shape { grid: [blocks, 1, 1], block: [64, 1, 1], benign_races: true, loops: true }
}

/// Where nothing is.
const MISSING: u64 = 15 << 40;

/// The contents of a page: numbers computed from the addresses.
fn read(address: u64, _is_ours: bool, lines: &mut Lines) -> bool {
    lines.iter_mut().zip(address..).for_each(|(byte, at)| *byte = (at % 251) as u8);
    address != MISSING
}

/// One test at a time has parts.
fn parts(tools: Tools, blocks: u32) -> LaunchParts {
    loop {
        if let Some(parts) = LaunchParts::begin(sites(tools), "kernel", shape(blocks), Vec::new(), read) {
            return parts;
        }
        thread::yield_now();
    }
}

fn is_clean(parts: &mut LaunchParts) -> bool {
    parts.is_clean(|overlaps: &Overlaps<'_>, n| {
        (0..n).for_each(|number| overlaps.look(number));
        true
    })
}

/// A block that reports only some accesses, with barriers between them: a thread, an address and bits, or a barrier.
type Doing = Vec<Option<(usize, u64, u32)>>;

fn run(launch: &mut Launch, block: u64, doing: &Doing) {
    let slot = launch.begin(block, SCRATCH, 64, 64);
    for what in doing {
        match *what {
            None => launch.event(LiveThread { slot, thread: 0 }, 0, EventKind::MET, 0, 0),
            Some((thread, address, bits)) => {
                let site = if bits & AccessBits::ATOMIC != 0 { 2 } else { u32::from(bits & WRITES != 0) };
                let _ = launch.access(
                    LiveThread { slot, thread },
                    AccessRecord { site, address, bits, value: 1, copy: 0 },
                    || 0,
                );
            }
        }
    }
    launch.end(slot);
}

/// A thread, as far as parts know.
fn thread(number: u64) -> ThreadId {
    static THREADS: Mutex<BTreeMap<u64, ThreadId>> = Mutex::new(BTreeMap::new());
    let mut threads = THREADS.lock().expect("the threads");
    *threads.entry(number).or_insert_with(|| thread::spawn(|| ()).thread().id())
}

/// How two blocks end that do something once each, in parts of their own.
fn two(start: u64, one: (u64, u32), two: (u64, u32)) -> bool {
    let mut parts = parts(Tools::RACECHECK, 2);
    for (block, (at, bits)) in [(0, one), (1, two)] {
        parts.with_part(thread(100 + block), |part| run(part, block, &vec![Some((3, start + at, bits))]));
    }
    is_clean(&mut parts)
}

#[test]
fn parts_that_meet_no_common_byte_or_only_read_it_are_clean() {
    let of_block = STEPS | AccessBits::BLOCK_SCOPE;
    for (number, size) in (0..).zip([1, 2, 4, 8]) {
        let start = GLOBAL + (number << 30);
        let by = |bits: u32| bits | size;
        let next = u64::from(size);
        for bits in [READS, WRITES, STEPS] {
            assert!(two(start, (0, by(bits)), (next, by(bits))), "{size} {bits}");
        }
        assert!(two(start, (0, by(READS)), (0, by(READS))));
        assert!(two(start, (0, by(STEPS)), (0, by(STEPS))));
        assert!(!two(start, (0, by(STEPS)), (0, by(READS))));
        assert!(!two(start, (0, by(READS)), (0, by(STEPS))));
        assert!(!two(start, (0, by(WRITES)), (0, by(READS))));
        assert!(!two(start, (0, by(READS)), (0, by(WRITES))));
        assert!(!two(start, (0, by(WRITES)), (0, by(WRITES))));
        assert!(!two(start, (0, by(of_block)), (0, by(of_block))));
        // Cells of another size, and accesses that extend into the next page.
        assert!(!two(start, (0, WRITES | 8), (next - 1, READS | 1)));
        assert!(!two(start, (PAGE - 4, WRITES | 8), (PAGE + 3, READS | 1)));
        assert!(two(start, (PAGE - 4, WRITES | 8), (PAGE + 4, READS | 1)));
    }
}

/// Whatever one thread of the system finds in any order of the blocks, parts are not clean.
#[test]
fn what_one_thread_finds_parts_do_not_miss() {
    let (mut n_found, mut n_clean) = (0, 0);
    for seed in 1..700_u64 {
        let mut random = Random::of(seed);
        let n_blocks = 2 + random.below(4);
        let start = GLOBAL + (1 << 36) + (seed << 16);
        let size = [1, 4, 8][random.below(3) as usize];
        let spread = 2 + random.below(200);
        let blocks: Vec<Doing> = (0..n_blocks)
            .map(|block| {
                let one = |random: &mut Random| {
                    if random.below(4) == 0 {
                        return None;
                    }
                    // Mostly its own elements, in which a thread has its own.
                    let thread = random.below(64) as usize;
                    let own = random.below(3) != 0;
                    let at = if own { 100 * (block + 1) + thread as u64 } else { random.below(spread) };
                    let bits = [READS, READS, WRITES, STEPS][random.below(4) as usize];
                    Some((thread, start + at * size, bits | size as u32))
                };
                (0..3 + random.below(12)).map(|_| one(&mut random)).collect()
            })
            .collect();
        let alone = |order: &mut dyn Iterator<Item = u64>| {
            let mut launch = Launch::new(sites(Tools::RACECHECK), "kernel", shape(n_blocks as u32), Vec::new());
            order.for_each(|block| run(&mut launch, block, &blocks[block as usize]));
            launch.has_found()
        };
        let found = alone(&mut (0..n_blocks)) || alone(&mut (0..n_blocks).rev());
        let mut parts = parts(Tools::RACECHECK, n_blocks as u32);
        for block in 0..n_blocks {
            let part = 200 + random.below(3);
            parts.with_part(thread(part), |part| run(part, block, &blocks[block as usize]));
        }
        let is_clean = is_clean(&mut parts);
        assert!(!(found && is_clean), "{seed}: {blocks:?}");
        (n_found, n_clean) = (n_found + usize::from(found), n_clean + usize::from(is_clean));
    }
    assert!(n_found > 100 && n_clean > 100, "{n_found} {n_clean}");
}

#[test]
fn a_part_that_has_found_something_ends_all() {
    let mut parts = parts(Tools::RACECHECK, 2);
    parts.with_part(thread(1), |part| run(part, 1, &vec![Some((3, GLOBAL + 64, WRITES | 4))]));
    assert!(!parts.is_over());
    parts.with_part(thread(0), |part| {
        run(part, 0, &vec![Some((3, GLOBAL, WRITES | 4)), Some((40, GLOBAL, WRITES | 4))]);
    });
    assert!(parts.is_over() && !is_clean(&mut parts));
}

#[test]
fn what_was_met_is_undone() {
    let start = GLOBAL + (5 << 36);
    memory::watch();
    memory::given(start, 4 * PAGE);
    memory::written(start, 100);
    let mut parts = parts(Tools::ALL, 2);
    parts.with_part(thread(300), |part| {
        run(part, 0, &vec![Some((0, start + 96, WRITES | 4)), Some((1, start + 8, READS | 4))]);
    });
    parts.with_part(thread(301), |part| {
        run(part, 1, &vec![Some((1, start + 101, WRITES | 1)), Some((1, start + PAGE, WRITES | 8))]);
    });
    let unwritten = |at: u64, n: u64| memory::unwritten(&memory::now(), start + at, n);
    assert_eq!((unwritten(100, 2), unwritten(PAGE, 16)), (1, 8));
    let mut written = BTreeMap::new();
    {
        let kept = std::cell::RefCell::new(&mut written);
        parts.undo(|address, bytes| {
            for (at, &byte) in bytes.iter().enumerate() {
                assert_eq!(kept.borrow_mut().insert(address + at as u64, byte), None);
            }
        });
    }
    let bytes = [8..12, 96..100, 101..102, PAGE..PAGE + 8].into_iter().flatten().map(|at| start + at);
    assert_eq!(written, bytes.map(|at| (at, (at % 251) as u8)).collect());
    assert_eq!((unwritten(0, 100), unwritten(100, 2), unwritten(PAGE, 16)), (0, 2, 16));
}

#[test]
fn what_cannot_be_kept_is_not_met() {
    let parts = parts(Tools::RACECHECK, 2);
    parts.with_part(thread(500), |part| {
        let slot = part.begin(0, SCRATCH, 64, 64);
        let mut access = |address: u64, bits: u32| {
            part.access(
                LiveThread { slot, thread: 0 },
                AccessRecord { site: 1, address, bits, value: 1, copy: 0 },
                || 0,
            )
        };
        assert_eq!(access(MISSING - 8, WRITES | 4), Verdict::Goes);
        // Accesses that extend into it, and twice.
        assert_eq!(access(MISSING - 4, WRITES | 8), Verdict::Nowhere);
        assert_eq!(access(MISSING + 8, READS | 4), Verdict::Nowhere);
        assert_eq!(access(MISSING + 8, READS | 4), Verdict::Nowhere);
        assert_eq!(access(MISSING + PAGE, READS | 4), Verdict::Goes);
    });
    assert!(parts.is_over());
}

/// Parts that meet all the same pages remember too much.
#[test]
fn there_is_an_end_to_what_parts_remember() {
    let met_by = |n_parts: u64| {
        let parts = parts(Tools::RACECHECK, n_parts as u32);
        for block in 0..n_parts {
            let doing = (0..2500).map(|page| {
                let address = GLOBAL + (6 << 36) + page * PAGE + block * 8;
                Some((0, address, WRITES | 4))
            });
            parts.with_part(thread(400 + block), |part| run(part, block, &doing.collect()));
        }
        parts.is_over()
    };
    assert_eq!((met_by(1), met_by(2), met_by(6)), (false, false, true));
}
