//! Patterns: the addresses of a warp relative to the first one. An instruction mostly repeats a few of them, so its counts
//! are computed once for each, and lanes whose addresses are contiguous or equal are loaded and stored together.

#![expect(clippy::inline_always, reason = "the callers are compiled twice: see `simple::block`")]

use crate::{
    count::{Count, Lanes},
    parse::Space,
};

/// The patterns of an instruction that are cached: the warps of a block may have one each.
const CACHED: usize = 4;
/// An instruction with this many new patterns more than half of its repeated ones is irregular: its patterns are no
/// longer cached.
const IRREGULAR: u64 = 64;
/// Addresses of a pattern are at most this many bytes from the first.
const FARTHEST: u64 = 1 << 30;
/// Runs are at least this long.
const SHORTEST_RUN: usize = 3;
/// What counts depend on besides the pattern: the first address modulo the bytes of a line.
const PHASES: usize = 128;

/// How the elements of a run of lanes are in memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Step {
    /// All lanes access the same element.
    Same,
    /// They access consecutive elements.
    Next,
    /// Any.
    Other,
}

/// Consecutive active lanes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Run {
    pub(super) lane: usize,
    pub(super) len: usize,
    pub(super) step: Step,
}

/// The addresses of the active lanes of a warp relative to the first one.
#[derive(Debug)]
pub(super) struct Pattern {
    space: Space,
    mask: u32,
    offsets: [u64; 32],
    /// All ones for active lanes.
    care: [u64; 32],
    /// The last active lane.
    last: usize,
    /// The least and the greatest offset.
    low: i64,
    high: i64,
    /// The offsets are multiples of the bytes of an access.
    is_aligned: bool,
    /// Of each lane the number of its first element, from the one at the least address.
    pub(super) elements: [u32; 32],
    pub(super) runs: Vec<Run>,
    /// The offsets and sizes of the ranges that are accessed.
    ranges: Vec<(u64, u64)>,
    /// The counts by phase: indices from 1, or 0 if they are not known.
    phases: [u8; PHASES],
    counts: Vec<Count>,
}

/// The cached patterns of an instruction.
#[derive(Debug, Default)]
pub(super) struct Patterns {
    list: Vec<Pattern>,
    /// The one that was found last, and the one that a new one replaces.
    recent: usize,
    oldest: usize,
    repeated: u64,
    new: u64,
}

/// An access that has a cached pattern.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'p> {
    pub(super) pattern: &'p Pattern,
    /// The address of the first active lane.
    base: u64,
    /// The bytes of each lane.
    pub(super) size: u32,
    pub(super) count: &'p Count,
}

impl Patterns {
    /// The pattern of an access of some bytes and elements by each lane. None if the accesses are irregular or not
    /// aligned.
    #[inline(always)]
    pub(super) fn find(
        &mut self,
        space: Space,
        (addresses, mask): (&[u64; 32], u32),
        (size, element): (u32, u32),
        counted: impl Fn(Lanes) -> Count,
    ) -> Option<Known<'_>> {
        let base = addresses[mask.trailing_zeros() as usize & 31];
        let at = match self.index(space, (addresses, mask), base) {
            Some(at) => at,
            None => self.insert(space, (addresses, mask), (size, element))?,
        };
        self.recent = at;
        let pattern = &mut self.list[at];
        if !pattern.is_aligned || !base.is_multiple_of(u64::from(size)) {
            return None;
        }
        let phase = base as usize % PHASES;
        if pattern.phases[phase] == 0 {
            pattern.add_phase(phase, counted(Lanes::new(addresses, mask, size)));
        }
        let pattern = &self.list[at];
        let count = &pattern.counts[usize::from(pattern.phases[phase]) - 1];
        Some(Known { pattern, base, size, count })
    }

    #[inline(never)]
    fn insert(&mut self, space: Space, lanes: (&[u64; 32], u32), sizes: (u32, u32)) -> Option<usize> {
        self.new += 1;
        if self.new > IRREGULAR + self.repeated / 2 {
            return None;
        }
        let pattern = Pattern::of(space, lanes, sizes)?;
        if self.list.len() < CACHED {
            self.list.push(pattern);
            return Some(self.list.len() - 1);
        }
        self.oldest = (self.oldest + 1) % CACHED;
        self.list[self.oldest] = pattern;
        Some(self.oldest)
    }

    #[inline(always)]
    fn index(&mut self, space: Space, (addresses, mask): (&[u64; 32], u32), base: u64) -> Option<usize> {
        // Mostly the one that was found last.
        for at in std::iter::once(self.recent).chain(0..self.list.len()) {
            if let Some(pattern) = self.list.get(at)
                && (pattern.space, pattern.mask) == (space, mask)
                && addresses[pattern.last].wrapping_sub(base) == pattern.offsets[pattern.last]
                && pattern.has_offsets(addresses, base)
            {
                self.repeated += 1;
                return Some(at);
            }
        }
        None
    }
}

impl Pattern {
    fn of(space: Space, (addresses, mask): (&[u64; 32], u32), (size, element): (u32, u32)) -> Option<Self> {
        let first = mask.trailing_zeros() as usize & 31;
        let base = addresses[first];
        let is_active = |lane: usize| mask >> lane & 1 != 0;
        let offsets: [u64; 32] =
            std::array::from_fn(|lane| if is_active(lane) { addresses[lane].wrapping_sub(base) } else { 0 });
        let signed = offsets.map(u64::cast_signed);
        let (low, high) = (signed.into_iter().min()?, signed.into_iter().max()?);
        if low.unsigned_abs().max(high.unsigned_abs()) > FARTHEST || base.checked_add_signed(low).is_none() {
            return None;
        }
        let elements = signed.map(|offset| ((offset - low) / i64::from(element)) as u32);
        let mut ranges = Vec::new();
        let lanes = Lanes::new(addresses, mask, size);
        lanes.ranges(|address, bytes| ranges.push((address.wrapping_sub(base), bytes)));
        Some(Self {
            space,
            mask,
            offsets,
            care: std::array::from_fn(|lane| if is_active(lane) { u64::MAX } else { 0 }),
            last: 31 - mask.leading_zeros() as usize,
            low,
            high,
            is_aligned: offsets.iter().all(|offset| offset.is_multiple_of(u64::from(size))),
            runs: runs(&elements, mask),
            elements,
            ranges,
            phases: [0; PHASES],
            counts: Vec::new(),
        })
    }

    fn add_phase(&mut self, phase: usize, count: Count) {
        self.counts.push(count);
        self.phases[phase] = self.counts.len() as u8;
    }

    #[inline(always)]
    fn has_offsets(&self, addresses: &[u64; 32], base: u64) -> bool {
        let mut differs = 0;
        for ((address, offset), care) in addresses.iter().zip(&self.offsets).zip(&self.care) {
            differs |= (address.wrapping_sub(base) ^ offset) & care;
        }
        differs == 0
    }
}

impl Known<'_> {
    /// The least and the greatest address.
    pub(super) fn bounds(&self) -> (u64, u64) {
        let at = |offset: i64| self.base.wrapping_add_signed(offset);
        (at(self.pattern.low), at(self.pattern.high))
    }

    /// The addresses and sizes of the ranges that are accessed.
    pub(super) fn ranges(&self) -> impl Iterator<Item = (u64, u64)> {
        self.pattern.ranges.iter().map(|(offset, size)| (self.base.wrapping_add(*offset), *size))
    }
}

/// The runs of active lanes: their elements are equal or consecutive, or else there is nothing to know about them.
fn runs(elements: &[u32; 32], mask: u32) -> Vec<Run> {
    let is_active = |lane: usize| lane < 32 && mask >> lane & 1 != 0;
    let (mut found, mut lane): (Vec<Run>, usize) = (Vec::new(), 0);
    while lane < 32 {
        if !is_active(lane) {
            lane += 1;
            continue;
        }
        let len = |step: u32| (lane..32).take_while(|next| continues(elements, mask, (lane, *next), step)).count();
        let (same, next) = (len(0), len(1));
        let run = if same >= SHORTEST_RUN {
            Run { lane, len: same, step: Step::Same }
        } else if next >= SHORTEST_RUN {
            Run { lane, len: next, step: Step::Next }
        } else {
            Run { lane, len: 1, step: Step::Other }
        };
        lane += run.len;
        match found.last_mut() {
            Some(before)
                if (before.step, run.step) == (Step::Other, Step::Other) && before.lane + before.len == run.lane =>
            {
                before.len += 1;
            }
            _ => found.push(run),
        }
    }
    found
}

/// Whether a lane is active and its element is as many steps from that of the first lane as the lane is.
fn continues(elements: &[u32; 32], mask: u32, (first, lane): (usize, usize), step: u32) -> bool {
    mask >> lane & 1 != 0 && elements[lane] == elements[first].wrapping_add(step * (lane - first) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::count;

    fn offsets(patterns: &mut Patterns, addresses: &[u64; 32], mask: u32) -> Option<(Vec<Run>, Count)> {
        let known = patterns.find(Space::Global, (addresses, mask), (4, 4), count::global)?;
        assert_eq!(*known.count, count::global(Lanes::new(addresses, mask, 4)), "{addresses:?} {mask:#x}");
        let ranges: u64 = known.ranges().map(|(_, size)| size).sum();
        assert!(ranges >= 4 && known.bounds().0 <= addresses[mask.trailing_zeros() as usize]);
        Some((known.pattern.runs.clone(), *known.count))
    }

    #[test]
    fn counts_of_a_pattern_are_those_of_its_addresses() {
        let mut patterns = Patterns::default();
        let mut random = 1_u64;
        for pattern in 0..60 {
            let mut next = || {
                random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
                random >> 33
            };
            let (stride, row, mask) =
                (next() % 40, next() % 3000, (next() as u32 | 1) | if pattern % 2 == 0 { u32::MAX } else { 0 });
            for _ in 0..20 {
                let base = (1 << 20) + next() % 1000 * 4;
                let addresses =
                    std::array::from_fn(|lane| base + lane as u64 % 16 * stride * 4 + lane as u64 / 16 * row * 4);
                assert!(offsets(&mut patterns, &addresses, mask).is_some());
            }
        }
        assert_eq!((patterns.new, patterns.repeated), (60, 1140));
    }

    #[test]
    fn runs_are_equal_or_consecutive_lanes() {
        let mut patterns = Patterns::default();
        let rows = std::array::from_fn(|lane| (1 << 20) + lane as u64 % 16 * 4 + lane as u64 / 16 * 4096);
        let run = |lane, len, step| Run { lane, len, step };
        let found = offsets(&mut patterns, &rows, u32::MAX).map(|found| found.0);
        assert_eq!(found, Some(vec![run(0, 16, Step::Next), run(16, 16, Step::Next)]));
        let found = offsets(&mut patterns, &rows, 0x0070_0f15).map(|found| found.0);
        let runs = vec![
            run(0, 1, Step::Other),
            run(2, 1, Step::Other),
            run(4, 1, Step::Other),
            run(8, 4, Step::Next),
            run(20, 3, Step::Next),
        ];
        assert_eq!(found, Some(runs));
        let found = offsets(&mut patterns, &[1 << 20; 32], u32::MAX).map(|found| found.0);
        assert_eq!(found, Some(vec![run(0, 32, Step::Same)]));
        let strided = std::array::from_fn(|lane| (1 << 20) + (31 - lane as u64) * 8);
        let found = offsets(&mut patterns, &strided, u32::MAX).map(|found| found.0);
        assert_eq!(found, Some(vec![run(0, 32, Step::Other)]));
    }

    #[test]
    fn irregular_and_misaligned_accesses_have_no_pattern() {
        let mut patterns = Patterns::default();
        let at = |seed: u64| std::array::from_fn(|lane| (1 << 20) + (seed * lane as u64 * lane as u64 * 4) % 9973 * 4);
        let found = (0..1000).filter(|seed| offsets(&mut patterns, &at(*seed), u32::MAX).is_some()).count();
        assert!((64..80).contains(&found), "{found}");
        let mut patterns = Patterns::default();
        assert!(offsets(&mut patterns, &[(1 << 20) + 2; 32], u32::MAX).is_none());
        assert!(offsets(&mut patterns, &std::array::from_fn(|lane| (lane as u64) << 40), u32::MAX).is_none());
    }
}
