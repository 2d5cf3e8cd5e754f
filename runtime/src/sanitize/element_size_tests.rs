//! A test: the findings do not depend on the element size, and so not on the storage of cells.

use std::sync::Arc;

use weft_artifact::{AccessBits, EventKind, Site, SiteKind, Sites, Tools};

use super::{AccessRecord, Launch, LiveThread, Shape};

/// Where elements lie of each size.
const START: u64 = 7 << 40;
const ELEMENTS: u64 = 600;

/// Numbers that look random.
pub(super) struct Random(u64);

impl Random {
    pub(super) const fn of(seed: u64) -> Self {
        Self(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    pub(super) fn below(&mut self, end: u64) -> u64 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 11) % end
    }
}

fn launch(blocks: u32, threads: u32) -> Launch {
    let kinds = [SiteKind::WarpBarrier, SiteKind::Read, SiteKind::Write, SiteKind::Atomic, SiteKind::Read];
    let site = |(line, kind): (usize, SiteKind)| Site {
        kind,
        file: "kernel.py".to_owned(),
        line: line as u32,
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
    let sites = kinds.into_iter().cycle().take(250).enumerate().map(site).collect();
    let sites = Sites { tools: Tools::RACECHECK, sites, ..Sites::default() };
    let shape = Shape { grid: [blocks, 1, 1], block: [threads, 1, 1], benign_races: true, loops: false };
    let mut launch = Launch::new(Arc::new(sites), "kernel", shape, Vec::new());
    for block in 0..blocks {
        launch.begin(u64::from(block), (3 << 40) + 4096 * u64::from(block), 512, 256);
    }
    launch
}

/// The findings for each access of a random launch, and the number of accesses.
fn found(seed: u64, bytes: u64) -> (Vec<String>, usize) {
    let mut random = Random::of(seed);
    let (blocks, threads) = [(1, 64), (3, 96), (900, 1), (40, 33)][(seed % 4) as usize];
    // Some launches race seldom, some all the time.
    let spread = 1 + random.below(4);
    let start = START + (seed << 24) + (bytes << 20);
    let mut run = launch(blocks, threads);
    let (mut all, mut n_accesses) = (Vec::new(), 0);
    for _ in 0..800 {
        let slot = random.below(u64::from(blocks)) as usize;
        let thread = random.below(u64::from(threads)) as usize;
        let warp = thread / 32;
        let lanes = (threads as usize - warp * 32).min(32);
        match random.below(40) {
            0 => run.block_met(slot, &(0..threads as usize).collect::<Vec<_>>(), &[]),
            1 | 2 => {
                let mask = (random.below(1 << 32) as u32 | 1 << (thread % 32)) & (u32::MAX >> (32 - lanes));
                for lane in (0..lanes).filter(|lane| mask >> lane & 1 == 1) {
                    run.event(LiveThread { slot, thread: warp * 32 + lane }, 0, EventKind::MEETS, u64::from(mask), 0);
                }
                run.warp_met(slot, warp, mask, mask, 0);
            }
            3 if seed.is_multiple_of(5) => run.event(LiveThread { slot, thread }, 0, EventKind::FENCE, 0, 0),
            4 if random.below(60) == 0 => run.grid_met(),
            _ => {
                // The warp does the same, at elements that lie beside each other.
                let site = 1 + random.below(200) as u32;
                let bits = match site % 5 {
                    2 => AccessBits::WRITES,
                    3 => AccessBits::READS | AccessBits::WRITES | AccessBits::ATOMIC,
                    _ => AccessBits::READS,
                };
                let (mut first, mut step) = (random.below(ELEMENTS), random.below(spread).min(1));
                // Steps between fences order something, which takes long at many places.
                if seed.is_multiple_of(5) && bits & AccessBits::ATOMIC != 0 {
                    (first, step) = (first % 4, 0);
                }
                for lane in 0..lanes as u64 {
                    let element = (first + lane * step) % ELEMENTS;
                    let record = AccessRecord {
                        site,
                        address: start + element * bytes,
                        bits: bits | bytes as u32,
                        value: lane + 1,
                        copy: 0,
                    };
                    run.access(LiveThread { slot, thread: warp * 32 + lane as usize }, record, || 0);
                    n_accesses += 1;
                    if run.has_found() {
                        let findings = run.take().into_iter().map(|finding| {
                            let whos =
                                finding.accesses.iter().map(|access| (access.site.line, access.thread, access.block));
                            format!("{n_accesses} {} {:?}", finding.kind, whos.collect::<Vec<_>>())
                        });
                        all.extend(findings);
                    }
                }
            }
        }
    }
    (all, n_accesses)
}

#[test]
fn elements_of_all_sizes_race_alike() {
    let mut n_found = 0;
    for seed in 1..=16 {
        let wide = found(seed, 8);
        for bytes in [1, 2, 4] {
            assert_eq!(found(seed, bytes), wide, "seed {seed}, {bytes} bytes");
        }
        n_found += wide.0.len();
    }
    assert!(n_found > 1000, "{n_found}");
}
