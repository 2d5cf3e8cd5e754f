//! The counting rules for one access of a warp: its active lanes, their addresses, and the bytes that each accesses.
//!
//! Each function says which of Nsight Compute's counters it equals, and on how many of the 38 index patterns that were
//! measured on an H100. `tests.rs` compares them.

use super::{Count, Stride};
use crate::decode::AtomicOp;

/// The lanes of a warp that access memory.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Lanes<'a> {
    pub(crate) addresses: &'a [u64; 32],
    /// The active lanes.
    pub(crate) mask: u32,
    /// The bytes that each lane accesses.
    pub(crate) size: u32,
    /// The distance of consecutive lanes' addresses, if all lanes are active and it is the same for all.
    stride: Option<i64>,
}

/// The addresses of active lanes in ascending order.
struct Sorted {
    addresses: [u64; 32],
    len: usize,
}

impl<'a> Lanes<'a> {
    pub(crate) fn new(addresses: &'a [u64; 32], mask: u32, size: u32) -> Self {
        let stride = if mask == u32::MAX { stride(addresses) } else { None };
        Self { addresses, mask, size, stride }
    }

    /// The same accesses of fewer lanes.
    fn only(&self, mask: u32) -> Self {
        Self::new(self.addresses, self.mask & mask, self.size)
    }

    /// The distance of consecutive lanes, for reports.
    pub(crate) fn observed_stride(&self) -> Stride {
        match self.stride {
            Some(stride) => Stride::Constant(stride),
            None if self.mask == u32::MAX => Stride::Varying,
            None => Stride::Unknown,
        }
    }

    /// The ranges of addresses that are accessed: lanes that continue or repeat the range of the lane before are in it.
    pub(crate) fn ranges(&self, mut range: impl FnMut(u64, u64)) {
        let size = u64::from(self.size);
        if self.stride.is_some_and(|stride| stride.unsigned_abs() <= size) {
            let (low, high) = self.bounds();
            return range(low, high - low + size);
        }
        let (mut rest, mut low, mut end) = (self.mask, 0, 0);
        while rest != 0 {
            let address = self.addresses[rest.trailing_zeros() as usize];
            rest &= rest - 1;
            if end == 0 {
                low = address;
            } else if address < low || address > end {
                range(low, end - low);
                (low, end) = (address, 0);
            }
            end = end.max(address + size);
        }
        if end != 0 {
            range(low, end - low);
        }
    }

    /// The least and the greatest address.
    pub(crate) fn bounds(&self) -> (u64, u64) {
        let [first, last] = [self.addresses[0], self.addresses[31]];
        if self.stride.is_some() {
            return (first.min(last), first.max(last));
        }
        let (mut low, mut high) = (u64::MAX, 0);
        for (lane, address) in self.addresses.iter().enumerate() {
            if self.mask >> lane & 1 != 0 {
                (low, high) = (low.min(*address), high.max(*address));
            }
        }
        (low, high)
    }

    fn sorted(&self) -> Sorted {
        let mut sorted = Sorted { addresses: [0; 32], len: 0 };
        let (mut rest, mut is_sorted, mut last) = (self.mask, true, 0);
        while rest != 0 {
            let address = self.addresses[rest.trailing_zeros() as usize];
            rest &= rest - 1;
            is_sorted &= address >= last;
            last = address;
            sorted.addresses[sorted.len] = address;
            sorted.len += 1;
        }
        if !is_sorted {
            sorted.addresses[..sorted.len].sort_unstable();
        }
        sorted
    }
}

/// The distance of consecutive addresses, if it is the same for all and no address wraps around.
fn stride(addresses: &[u64; 32]) -> Option<i64> {
    let (first, stride) = (addresses[0], addresses[1].wrapping_sub(addresses[0]));
    let (mut differs, mut expected) = (0, first);
    for address in addresses {
        differs |= address ^ expected;
        expected = expected.wrapping_add(stride);
    }
    let stride = stride as i64;
    let is_exact = differs == 0 && first.checked_add_signed(stride.checked_mul(31)?).is_some();
    is_exact.then_some(stride)
}

impl Sorted {
    /// The number of distinct pieces of `1 << shift` bytes that accesses of a size touch.
    fn pieces(&self, size: u32, shift: u32) -> u64 {
        let (mut count, mut next) = (0, 0);
        for address in &self.addresses[..self.len] {
            let (first, last) = (address >> shift, (address + u64::from(size) - 1) >> shift);
            let first = first.max(next);
            if first <= last {
                count += last - first + 1;
                next = last + 1;
            }
        }
        count
    }

    /// The number of distinct addresses.
    fn distinct(&self) -> u64 {
        self.addresses[..self.len].chunk_by(|a, b| a == b).count() as u64
    }
}

/// A load or store of global memory. Requests, sectors and L2 requests: 38 of 38. Tag wavefronts: 34 of 38.
pub(crate) fn global(lanes: Lanes) -> Count {
    let size = u64::from(lanes.size);
    let (sectors, lines, distinct) = match lanes.stride.map(i64::unsigned_abs) {
        // Aligned accesses at one distance: no access is in two pieces, and pieces between the bounds are not left out
        // unless each lane has its own.
        Some(stride) if stride.is_multiple_of(size) && lanes.addresses[0].is_multiple_of(size) => {
            let (low, high) = lanes.bounds();
            let pieces = |shift: u32| if stride >> shift != 0 { 32 } else { (high >> shift) - (low >> shift) + 1 };
            (pieces(5), pieces(7), if stride == 0 { 1 } else { 32 })
        }
        _ => {
            let sorted = lanes.sorted();
            (sorted.pieces(lanes.size, 5), sorted.pieces(lanes.size, 7), sorted.distinct())
        }
    };
    Count {
        requests: 1,
        lanes: u64::from(lanes.mask.count_ones()),
        sectors,
        ideal_sectors: (distinct * size).div_ceil(32),
        l2_requests: lines,
        tag_wavefronts: lines.div_ceil(4),
        ..Count::default()
    }
}

/// The largest number of distinct 4-byte words in one of 32 banks.
fn words_per_bank(addresses: &[u64; 32], mask: u32, size: u32) -> u64 {
    /// The end of a chain.
    const END: u8 = u8::MAX;
    let (mut low, mut high, mut rest) = (u64::MAX, 0, mask);
    while rest != 0 {
        let address = addresses[rest.trailing_zeros() as usize];
        rest &= rest - 1;
        (low, high) = (low.min(address), high.max(address));
    }
    if mask != 0 && (high >> 2) - (low >> 2) + u64::from(size.div_ceil(4)) <= 32 {
        return 1;
    }
    // The distinct words of each bank are a chain.
    let (mut words, mut next, mut len) = ([0_u32; 128], [END; 128], 0_u8);
    let (mut chains, mut lengths, mut longest) = ([END; 32], [0_u8; 32], 0);
    let mut rest = mask;
    while rest != 0 {
        let first = (addresses[rest.trailing_zeros() as usize] >> 2) as u32;
        rest &= rest - 1;
        for word in first..first + size.div_ceil(4) {
            let bank = (word & 31) as usize;
            let mut at = chains[bank];
            while at != END && words[at as usize] != word {
                at = next[at as usize];
            }
            if at == END {
                (words[len as usize], next[len as usize]) = (word, chains[bank]);
                chains[bank] = len;
                lengths[bank] += 1;
                longest = lengths[bank].max(longest);
                len += 1;
            }
        }
    }
    u64::from(longest)
}

/// Whether every active lane has the address of lane `t ^ distance`. Inactive lanes count as equal.
fn pairs(lanes: Lanes, distance: usize) -> bool {
    let active = |lane: usize| lanes.mask >> lane & 1 != 0;
    (0..32).all(|lane| {
        let other = lane ^ distance;
        !active(lane) || !active(other) || lanes.addresses[lane] == lanes.addresses[other]
    })
}

/// A load or store of shared memory. Wavefronts and bank conflicts: 38 of 38 at each width.
///
/// Up to 4 bytes, the warp is one group. Accesses of 8 and 16 bytes are in groups of 16 and 8 lanes. Two groups of a
/// load are merged if lanes share addresses in pairs. A group takes as many wavefronts as a bank has distinct words;
/// one is needed, the others are bank conflicts.
pub(crate) fn shared(lanes: Lanes, is_load: bool) -> Count {
    if let (4, Some(stride)) = (lanes.size, lanes.stride)
        && (lanes.addresses[0] | stride.unsigned_abs()).is_multiple_of(4)
    {
        // As many words are in a bank as the greatest common divisor of the distance in words and 32.
        let wavefronts = if stride == 0 { 1 } else { 1 << (stride >> 2).trailing_zeros().min(5) };
        return Count {
            requests: 1,
            lanes: 32,
            wavefronts,
            ideal_wavefronts: 1,
            bank_conflicts: wavefronts - 1,
            ..Count::default()
        };
    }
    let mut per_group = match lanes.size {
        0..=4 => 32,
        8 => 16,
        _ => 8,
    };
    if is_load && per_group < 32 && (pairs(lanes, 1) || pairs(lanes, 2)) {
        per_group *= 2;
    }
    let (mut wavefronts, mut groups) = (0, 0);
    for start in (0..32).step_by(per_group) {
        let group = lanes.mask & (u32::MAX >> (32 - per_group) << start);
        if group != 0 {
            wavefronts += words_per_bank(lanes.addresses, group, lanes.size);
            groups += 1;
        }
    }
    Count {
        requests: 1,
        lanes: u64::from(lanes.mask.count_ones()),
        wavefronts,
        ideal_wavefronts: groups,
        bank_conflicts: wavefronts - groups,
        ..Count::default()
    }
}

/// `ldmatrix`: matrices of eight rows of 16 bytes, each by the addresses of eight lanes. A matrix takes as many wavefronts
/// as one of the eight groups of four banks has distinct rows. 38 of 38 on an H100.
pub(crate) fn matrices(lanes: Lanes) -> Count {
    let (mut wavefronts, mut matrices) = (0, 0);
    for first in (0..32).step_by(8).filter(|first| lanes.mask >> first & 0xff != 0) {
        let of_matrix = Lanes::new(lanes.addresses, 0xff << first, lanes.size).sorted();
        let mut rows = [0_u64; 8];
        for same in of_matrix.addresses[..of_matrix.len].chunk_by(|a, b| a >> 4 == b >> 4) {
            rows[(same[0] >> 4 & 7) as usize] += 1;
        }
        wavefronts += rows.into_iter().max().unwrap_or(0);
        matrices += 1;
    }
    Count {
        requests: 1,
        lanes: u64::from(lanes.mask.count_ones()),
        wavefronts,
        ideal_wavefronts: matrices,
        bank_conflicts: wavefronts - matrices,
        ..Count::default()
    }
}

/// What the counts of an atomic depend on.
#[derive(Debug, Clone, Copy)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct AtomicKind {
    pub(crate) op: AtomicOp,
    pub(crate) is_float: bool,
    /// The address is equal in all lanes by data flow.
    pub(crate) is_uniform: bool,
    /// The value is equal in all lanes by data flow.
    pub(crate) is_value_uniform: bool,
    /// It adds the constant 1: a sum of integers, or an increment without a limit.
    pub(crate) adds_one: bool,
    /// Some instruction reads the result.
    pub(crate) is_read: bool,
}

/// Whether `ptxas` combines the values of a warp first, so that one elected lane executes the atomic. Equal to the
/// counters on 22 of 22 patterns of active lanes.
///
/// It does on an address that is equal in all lanes by data flow, for sums of 32 bits, sums of 64 bits of the constant
/// 1, and minima, maxima and bitwise operations of 32 bits, if no instruction reads the result. It also does for sums of
/// 32 bits whose result is read, if the value is uniform or all lanes are active. Not for exchanges, compare-and-swap
/// and floats.
fn is_combined(kind: AtomicKind, lanes: Lanes) -> bool {
    let is_word = lanes.size == 4;
    let by_op = match kind.op {
        AtomicOp::Add if is_word => !kind.is_read || kind.is_value_uniform || lanes.mask == u32::MAX,
        AtomicOp::Add => kind.adds_one && !kind.is_read,
        AtomicOp::Min | AtomicOp::Max | AtomicOp::And | AtomicOp::Or | AtomicOp::Xor => is_word && !kind.is_read,
        AtomicOp::Exch | AtomicOp::Cas | AtomicOp::Inc | AtomicOp::Dec => false,
    };
    kind.is_uniform && !kind.is_float && by_op
}

fn elected(lanes: Lanes) -> Lanes {
    lanes.only(lanes.mask.wrapping_neg())
}

/// The largest number of lanes in one of 32 banks of a size.
fn lanes_per_bank(addresses: impl Iterator<Item = u64>, size: u32) -> u64 {
    let mut banks = [0_u8; 32];
    for address in addresses {
        let bank = (address / u64::from(size.max(4))) & if size == 8 { 15 } else { 31 };
        banks[bank as usize] += 1;
    }
    u64::from(banks.into_iter().max().unwrap_or(0))
}

fn active(lanes: Lanes) -> impl Iterator<Item = u64> {
    (0..32).filter(move |lane| lanes.mask >> lane & 1 != 0).map(move |lane| lanes.addresses[lane])
}

/// The wavefronts of `ATOMS.POPC.INC`, which combines equal addresses: a shared 32-bit add of the constant 1 (or an
/// increment without a limit) whose result no instruction reads, as in a histogram. 22 of 22.
fn increments(lanes: Lanes) -> u64 {
    words_per_bank(lanes.addresses, lanes.mask, 4)
}

/// An atomic of shared memory. Integers of 32 bits, float32 and compare-and-swap: 38 of 38. The last two take twice the
/// wavefronts, of which a loop of load and compare-and-swap (float32) has no bank conflicts. Float64 and 64-bit integers
/// are such a loop too, in halves of 16 lanes: 28 of 38, all patterns without repeated addresses; otherwise up to 40 %
/// more.
pub(crate) fn shared_atomic(lanes: Lanes, kind: AtomicKind) -> Count {
    let count = |wavefronts: u64, bank_conflicts: u64| Count {
        requests: 1,
        lanes: u64::from(lanes.mask.count_ones()),
        wavefronts,
        ideal_wavefronts: wavefronts - bank_conflicts,
        bank_conflicts,
        ..Count::default()
    };
    if lanes.size == 4 && kind.adds_one && !kind.is_read {
        let wavefronts = increments(lanes);
        return count(wavefronts, wavefronts - 1);
    }
    let lanes = if is_combined(kind, lanes) { elected(lanes) } else { lanes };
    if lanes.size == 8 {
        let [first, second] = [0xffff, 0xffff_0000].map(|half| lanes.only(half));
        // Lanes of the second half whose address the first half has fail once more.
        let repeated = active(second).filter(|address| active(first).any(|other| other == *address));
        let banks = [lanes_per_bank(active(first), 8), lanes_per_bank(active(second), 8), lanes_per_bank(repeated, 8)];
        return count(2 * banks.iter().sum::<u64>(), 0);
    }
    let per_bank = lanes_per_bank(active(lanes), 4);
    if kind.op == AtomicOp::Cas {
        count(2 * per_bank, per_bank - 1)
    } else if kind.is_float {
        count(2 * per_bank, 0)
    } else {
        count(per_bank, per_bank - 1)
    }
}

/// Sums a function over rounds: round `r` holds the addresses that at least `r` lanes use.
fn rounds(sorted: &Sorted, of_round: impl Fn(&[u64]) -> u64) -> u64 {
    let (mut addresses, mut len, mut sum) = (sorted.addresses, sorted.len, 0);
    if len > 0 && addresses[0] == addresses[len - 1] {
        return len as u64 * of_round(&addresses[..1]);
    }
    while len > 0 {
        let (mut round, mut in_round, mut rest, mut in_rest) = ([0; 32], 0, [0; 32], 0);
        for address in &addresses[..len] {
            if in_round > 0 && round[in_round - 1] == *address {
                rest[in_rest] = *address;
                in_rest += 1;
            } else {
                round[in_round] = *address;
                in_round += 1;
            }
        }
        sum += of_round(&round[..in_round]);
        (addresses, len) = (rest, in_rest);
    }
    sum
}

/// An atomic of global memory. Requests: 38 of 38. Sectors: 37 of 38 for 32 bits, 34 of 38 for 64 bits, otherwise one
/// more. L2 requests: 31 to 36 of 38, otherwise up to three more.
pub(crate) fn global_atomic(lanes: Lanes, kind: AtomicKind) -> Count {
    let size = lanes.size;
    let acting = if is_combined(kind, lanes) { elected(lanes) } else { lanes };
    let pieces = |shift| {
        rounds(&acting.sorted(), |round| {
            let mut sorted = Sorted { addresses: [0; 32], len: round.len() };
            sorted.addresses[..round.len()].copy_from_slice(round);
            sorted.pieces(size, shift)
        })
    };
    let (sorted, sectors) = (acting.sorted(), pieces(5));
    Count {
        requests: 1,
        lanes: u64::from(lanes.mask.count_ones()),
        sectors,
        l2_sectors: sectors,
        ideal_sectors: (sorted.distinct() * u64::from(size)).div_ceil(32),
        l2_requests: pieces(if kind.op == AtomicOp::Cas { 6 } else { 7 }),
        tag_wavefronts: sorted.pieces(size, 7).div_ceil(4),
        ..Count::default()
    }
}

/// The rounds of an atomic of global memory by sector: as many as lanes that have the most frequent address in it.
pub(crate) fn updates(lanes: Lanes, kind: AtomicKind, mut of_sector: impl FnMut(u64, u64)) {
    let acting = if is_combined(kind, lanes) { elected(lanes) } else { lanes };
    let sorted = acting.sorted();
    for sector in sorted.addresses[..sorted.len].chunk_by(|a, b| a >> 5 == b >> 5) {
        let rounds = sector.chunk_by(|a, b| a == b).map(<[u64]>::len).max().unwrap_or(0);
        of_sector(sector[0] >> 5, rounds as u64);
    }
}

/// A load of constant memory: distinct 4-byte words, 38 of 38 for 4 bytes.
pub(crate) fn constant(lanes: Lanes) -> Count {
    let words = lanes.sorted().pieces(lanes.size, 2);
    let per_access = u64::from(lanes.size.div_ceil(4));
    Count { requests: words.div_ceil(per_access), lanes: u64::from(lanes.mask.count_ones()), ..Count::default() }
}

/// A load or store of local memory, whose 4-byte words interleave by lane: each word of an element is a request of its
/// own, and the same word of all lanes is a line. An estimate: `ptxas` keeps some local arrays in registers.
pub(crate) fn local(lanes: Lanes) -> Count {
    let mut sum = Count { lanes: u64::from(lanes.mask.count_ones()), ..Count::default() };
    for word in 0..lanes.size.div_ceil(4) {
        let size = lanes.size.min(4);
        // The addresses of inactive lanes are arbitrary.
        let at = |lane: usize| {
            let number = (lanes.addresses[lane] >> 2).wrapping_add(u64::from(word));
            number.wrapping_mul(128).wrapping_add(lane as u64 * 4)
        };
        let physical = std::array::from_fn(at);
        let one = global(Lanes::new(&physical, lanes.mask, size));
        sum.requests += 1;
        sum.sectors += one.sectors;
        sum.ideal_sectors += u64::from(lanes.mask.count_ones() * 4).div_ceil(32);
        sum.l2_requests += one.l2_requests;
        sum.tag_wavefronts += one.tag_wavefronts;
    }
    sum
}
