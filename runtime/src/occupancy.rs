//! The block sizes that fill a device: the same search for every executor, using its occupancy of one block size.

use crate::executor::DeviceAttributes;

/// Threads of a block where several sizes fill a multiprocessor: enough to hide latency, few enough for the last blocks of a
/// grid to be spread over the device.
pub const USUAL_BLOCK: u32 = 256;

/// A block size.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct BlockSize {
    /// Threads of a block.
    pub threads: u32,
    /// The fewest blocks with which every multiprocessor has as much as it can run at a time.
    pub grid: u32,
}

/// The block size with which a multiprocessor runs the most threads, of several the largest, as CUDA's own search finds it.
///
/// `most` is the most threads that a block of the kernel can have, and `active` says of a block size how many of its blocks
/// a multiprocessor runs.
///
/// # Errors
///
/// Those of `active`.
pub fn best_block<E>(
    device: &DeviceAttributes,
    most: u32,
    active: impl FnMut(u32) -> Result<u32, E>,
) -> Result<BlockSize, E> {
    search(device.warp_size.max(1), device.multiprocessor_count, most.max(1), active)
}

fn search<E>(
    warp: u32,
    n_multiprocessors: u32,
    most: u32,
    mut active: impl FnMut(u32) -> Result<u32, E>,
) -> Result<BlockSize, E> {
    let mut best = BlockSize { threads: 0, grid: 0 };
    let mut best_threads = 0;
    // Whole warps, and at first the limit itself, which may be none.
    let whole = (1..=most / warp).rev().map(|warps| warps * warp).filter(|threads| *threads != most);
    for threads in [most].into_iter().chain(whole) {
        let blocks = active(threads)?;
        if blocks.saturating_mul(threads) > best_threads {
            best_threads = blocks.saturating_mul(threads);
            best = BlockSize { threads, grid: blocks.saturating_mul(n_multiprocessors) };
        }
    }
    Ok(best)
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;

    use super::{BlockSize, search};

    fn best(most: u32, active: impl Fn(u32) -> u32) -> BlockSize {
        match search::<Infallible>(32, 10, most, |threads| Ok(active(threads))) {
            Ok(found) => found,
        }
    }

    #[test]
    fn the_largest_of_those_that_fill_it_is_taken() {
        assert_eq!(best(1024, |threads| 2048 / threads), BlockSize { threads: 1024, grid: 20 });
        // Registers for 672 threads: 640 would leave two warps idle, 224 is three times that many.
        assert_eq!(best(640, |threads| 65536 / (96 * threads)), BlockSize { threads: 224, grid: 30 });
    }

    #[test]
    fn a_limit_that_is_no_whole_number_of_warps_is_tried() {
        assert_eq!(best(100, |_| 1), BlockSize { threads: 100, grid: 10 });
        assert_eq!(best(7, |_| 4), BlockSize { threads: 7, grid: 40 });
    }

    #[test]
    fn a_kernel_that_does_not_fit_has_none() {
        assert_eq!(best(1024, |_| 0), BlockSize { threads: 0, grid: 0 });
    }
}
