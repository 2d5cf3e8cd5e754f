//! The states of xoroshiro128+ generators whose sequences do not meet: each is 2^64 steps ahead of the one before it.
//!
//! A step is linear over the field of two elements, and so is a jump: a matrix of 128 by 128 bits. It is stored as a
//! table of its results for every value of each of the sixteen bytes of a state, so that a jump is sixteen reads and
//! not 128 steps.

/// A state: the first word is the lower half.
type XoroshiroState = u128;

/// The polynomial of a jump by 2^64 steps: the states at the steps of its bits are added up.
const JUMP: u128 = 0xd86b_048b_86aa_9922_beac_0467_eba5_facb;

/// One step of the generator.
fn step(state: XoroshiroState) -> XoroshiroState {
    let (first, second) = (state as u64, (state >> 64) as u64);
    let mixed = second ^ first;
    let next = first.rotate_left(55) ^ mixed ^ (mixed << 14);
    u128::from(next) | u128::from(mixed.rotate_left(36)) << 64
}

/// A state 2^64 steps on, step by step.
fn jumped(mut state: XoroshiroState) -> XoroshiroState {
    let mut sum = 0;
    for bit in 0..128 {
        if JUMP >> bit & 1 == 1 {
            sum ^= state;
        }
        state = step(state);
    }
    sum
}

/// A state whose words are both what `SplitMix64` makes of a seed first.
fn seeded(seed: u64) -> XoroshiroState {
    let mut word = seed.wrapping_add(0x9e37_79b9_7f4a_7c15);
    word = (word ^ word >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    word = (word ^ word >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    word ^= word >> 31;
    u128::from(word) | u128::from(word) << 64
}

/// A linear map of states, by the bytes of its argument.
struct Map(Vec<[XoroshiroState; 256]>);

impl Map {
    /// The map with these values at the states of one bit each.
    fn new(columns: &[XoroshiroState]) -> Self {
        let bytes = columns.chunks(8).map(|columns| {
            let mut sums = [0; 256];
            for value in 1..256_usize {
                let lowest = value.trailing_zeros() as usize;
                sums[value] = sums[value & (value - 1)] ^ columns[lowest];
            }
            sums
        });
        Self(bytes.collect())
    }

    fn of(&self, state: XoroshiroState) -> XoroshiroState {
        self.0.iter().zip(state.to_le_bytes()).fold(0, |sum, (sums, byte)| sum ^ sums[usize::from(byte)])
    }
}

/// The states of generators, as bytes: for each its two words, little-endian. The first is that of the seed,
/// `start` jumps on.
pub fn xoroshiro128p_states(count: usize, seed: u64, start: u64) -> Vec<u8> {
    let mut columns: Vec<XoroshiroState> = (0..128).map(|bit| jumped(1 << bit)).collect();
    let jump = Map::new(&columns);
    let mut state = seeded(seed);
    let mut left = start;
    while left != 0 {
        // The columns are those of a jump of jumps: 1, 2, 4 and so on.
        let map = Map::new(&columns);
        if left & 1 == 1 {
            state = map.of(state);
        }
        left >>= 1;
        columns = columns.iter().map(|column| map.of(*column)).collect();
    }
    let mut bytes = Vec::with_capacity(count.saturating_mul(16));
    for _ in 0..count {
        bytes.extend_from_slice(&state.to_le_bytes());
        state = jump.of(state);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    fn states(count: usize, seed: u64, start: u64) -> Vec<XoroshiroState> {
        let bytes = xoroshiro128p_states(count, seed, start);
        bytes.as_chunks::<16>().0.iter().map(|bytes| XoroshiroState::from_le_bytes(*bytes)).collect()
    }

    #[test]
    fn each_state_is_a_jump_ahead() {
        for seed in [0, 1, 42, u64::MAX] {
            let mut expected = seeded(seed);
            for state in states(50, seed, 0) {
                assert_eq!(state, expected, "seed {seed}");
                expected = jumped(expected);
            }
        }
    }

    #[test]
    fn a_start_leaves_states_out() {
        let all = states(70, 7, 0);
        for start in [0, 1, 2, 3, 31, 64] {
            assert_eq!(states(6, 7, start as u64), all[start..start + 6], "{start}");
        }
        // Jumps may be split: 2^63 - 1 and 2^63 of them differ by one.
        assert_eq!(states(2, 7, (1 << 63) - 1)[1], states(1, 7, 1 << 63)[0]);
        assert!(states(0, 7, 5).is_empty());
    }
}
