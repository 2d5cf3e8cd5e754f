//! The split of a launch with few blocks: each block runs as several, so that all threads of the pool have work.

/// The least threads along `x` of a part: half a vector of 32-bit values of the widest CPU. A thread of the pool that
/// takes several neighboring parts runs them as one block.
const LEAST: u32 = 8;
/// The number of parts for each thread of the pool: parts may take times that differ.
const PARTS_PER_THREAD: u64 = 4;
/// Launches of fewer threads along `x` than this many parts have are not split.
const LEAST_PARTS: u64 = 8;

/// The number of parts of each block, which divides `block_x`. `n_blocks` is the number of blocks, `n_threads` that of the
/// pool's threads. 1 if the blocks suffice for the threads or are short.
pub(super) fn parts_of_block(n_blocks: u64, block_x: u32, n_threads: usize) -> u32 {
    let enough = PARTS_PER_THREAD * n_threads as u64;
    if n_threads < 2 || n_blocks.saturating_mul(u64::from(block_x / LEAST)) < LEAST_PARTS {
        return 1;
    }
    let mut parts = 1;
    while n_blocks.saturating_mul(u64::from(parts)) < enough
        && (block_x / parts).is_multiple_of(2)
        && block_x / parts / 2 >= LEAST
    {
        parts *= 2;
    }
    parts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_long_blocks_are_split_until_all_threads_have_several_parts() {
        assert_eq!(parts_of_block(1, 1024, 16), 64);
        assert_eq!(parts_of_block(4, 128, 16), 16);
        assert_eq!(parts_of_block(4, 32, 16), 4);
        assert_eq!(parts_of_block(1, 1024, 2), 8);
        assert_eq!(parts_of_block(63, 256, 16), 2);
    }

    #[test]
    fn parts_divide_the_block() {
        assert_eq!(parts_of_block(1, 96, 16), 8);
        assert_eq!(parts_of_block(1, 100, 16), 4);
        assert_eq!(parts_of_block(1, 1023, 16), 1);
    }

    #[test]
    fn many_blocks_and_small_launches_stay_whole() {
        assert_eq!(parts_of_block(64, 1024, 16), 1);
        assert_eq!(parts_of_block(u64::MAX, 1024, 16), 1);
        assert_eq!(parts_of_block(1, 32, 16), 1);
        assert_eq!(parts_of_block(0, 1024, 16), 1);
        assert_eq!(parts_of_block(1, 1024, 1), 1);
    }
}
