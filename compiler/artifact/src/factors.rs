//! Factors of thread coarsening.

use std::fmt::{self, Display, Formatter};

/// How many of a program's threads one launched thread executes: neighboring threads of a block, or the threads with
/// the same index in neighboring blocks. The program still sees the block and grid sizes that it requested.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factors {
    /// Along x, y and z: the number of threads of a block that are merged. A launch divides the block's extents by
    /// them.
    pub threads: [u32; 3],
    /// Along x, y and z: the number of blocks that are merged. A launch divides the grid's extents by them.
    pub blocks: [u32; 3],
}

impl Factors {
    /// No coarsening.
    pub const NONE: Self = Self { threads: [1; 3], blocks: [1; 3] };

    /// Merges threads of a block.
    pub const fn of_threads(threads: [u32; 3]) -> Self {
        Self { threads, ..Self::NONE }
    }

    /// Merges whole blocks.
    pub const fn of_blocks(blocks: [u32; 3]) -> Self {
        Self { blocks, ..Self::NONE }
    }

    /// Whether the compiler supports them: each is 1, 2 or 4, and no axis merges both threads and blocks.
    pub fn are_possible(&self) -> bool {
        let is_one = |factor: &u32| [1, 2, 4].contains(factor);
        self.threads.iter().chain(&self.blocks).all(is_one) && !self.meet()
    }

    /// Whether an axis merges both threads and blocks.
    pub fn meet(&self) -> bool {
        self.threads.iter().zip(self.blocks).any(|(threads, blocks)| *threads > 1 && blocks > 1)
    }

    /// The factor of each axis, of threads or blocks.
    pub fn by_axis(&self) -> [u32; 3] {
        let mut both = self.threads;
        for (factor, blocks) in both.iter_mut().zip(self.blocks) {
            *factor = factor.saturating_mul(blocks);
        }
        both
    }

    /// The number of the program's threads per launched thread.
    pub fn copies(&self) -> u32 {
        product(self.by_axis())
    }

    /// The number of merged threads of a block.
    pub fn threads_in_one(&self) -> u32 {
        product(self.threads)
    }

    /// The number of merged blocks.
    pub fn blocks_in_one(&self) -> u32 {
        product(self.blocks)
    }

    /// Reads factors along x, y and z from a list with commas; missing axes at the end are 1.
    pub fn axes(text: &str) -> Option<[u32; 3]> {
        let mut factors = [1; 3];
        let given: Vec<&str> = text.split(',').map(str::trim).collect();
        if given.len() > factors.len() {
            return None;
        }
        for (factor, given) in factors.iter_mut().zip(given) {
            *factor = match given {
                "1" => 1,
                "2" => 2,
                "4" => 4,
                _ => return None,
            };
        }
        Some(factors)
    }

    /// The numbers as the disk cache stores them.
    pub fn to_cached(&self) -> String {
        let numbers = self.threads.iter().chain(&self.blocks);
        numbers.map(ToString::to_string).collect::<Vec<_>>().join(" ")
    }

    /// Reads what [`to_cached`](Self::to_cached) has written.
    pub fn from_cached(text: &str) -> Option<Self> {
        let numbers: Vec<u32> = text.split(' ').map(str::parse).collect::<Result<_, _>>().ok()?;
        let [threads @ .., a, b, c] = numbers.as_slice() else { return None };
        let factors = Self { threads: threads.try_into().ok()?, blocks: [*a, *b, *c] };
        factors.are_possible().then_some(factors)
    }

    /// The grid and block of a launch after division by the factors; `None` if they are not multiples.
    pub fn divide(&self, grid: [u32; 3], block: [u32; 3]) -> Option<([u32; 3], [u32; 3])> {
        Some((divided(grid, self.blocks)?, divided(block, self.threads)?))
    }
}

impl Default for Factors {
    fn default() -> Self {
        Self::NONE
    }
}

fn product(factors: [u32; 3]) -> u32 {
    factors.into_iter().fold(1, u32::saturating_mul)
}

fn divided(extents: [u32; 3], by: [u32; 3]) -> Option<[u32; 3]> {
    let mut divided = [0; 3];
    for ((part, extent), factor) in divided.iter_mut().zip(extents).zip(by) {
        *part = extent.checked_div(factor).filter(|part| part.checked_mul(factor) == Some(extent))?;
    }
    Some(divided)
}

/// Formats the equivalent arguments of `cuda.jit`: `coarsen=(2, 1), coarsen_blocks=(1, 2)`.
impl Display for Factors {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { threads, blocks } = *self;
        let has_blocks = blocks != [1; 3];
        if threads != [1; 3] || !has_blocks {
            f.write_str("coarsen=")?;
            axes(f, threads)?;
        }
        if has_blocks {
            f.write_str(if threads == [1; 3] { "coarsen_blocks=" } else { ", coarsen_blocks=" })?;
            axes(f, blocks)?;
        }
        Ok(())
    }
}

/// A number, or a tuple without trailing ones.
fn axes(f: &mut Formatter<'_>, factors: [u32; 3]) -> fmt::Result {
    match factors {
        [x, 1, 1] => write!(f, "{x}"),
        [x, y, 1] => write!(f, "({x}, {y})"),
        [x, y, z] => write!(f, "({x}, {y}, {z})"),
    }
}

#[cfg(test)]
mod tests {
    use super::Factors;

    #[test]
    fn a_launch_is_divided_or_it_is_not() {
        let threads = Factors::of_threads([2, 4, 1]);
        assert_eq!(threads.divide([5, 1, 1], [64, 4, 3]), Some(([5, 1, 1], [32, 1, 3])));
        assert_eq!(threads.divide([4, 4, 4], [64, 6, 3]), None);
        assert_eq!(Factors::of_threads([4, 1, 1]).divide([4, 4, 4], [2, 1, 1]), None);
        let blocks = Factors { blocks: [1, 2, 1], ..Factors::of_threads([4, 1, 1]) };
        assert_eq!(blocks.divide([5, 6, 1], [8, 3, 1]), Some(([5, 3, 1], [2, 3, 1])));
        assert_eq!(blocks.divide([5, 7, 1], [8, 3, 1]), None);
        assert_eq!(Factors::NONE.divide([3, 5, 7], [5, 7, 1]), Some(([3, 5, 7], [5, 7, 1])));
    }

    #[test]
    fn the_text_is_what_cuda_jit_takes() {
        let shown = |threads, blocks| Factors { threads, blocks }.to_string();
        assert_eq!(Factors::NONE.to_string(), "coarsen=1");
        assert_eq!(shown([4, 1, 1], [1; 3]), "coarsen=4");
        assert_eq!(shown([1, 2, 1], [1; 3]), "coarsen=(1, 2)");
        assert_eq!(shown([1; 3], [2, 1, 2]), "coarsen_blocks=(2, 1, 2)");
        assert_eq!(shown([2, 1, 1], [1, 2, 1]), "coarsen=2, coarsen_blocks=(1, 2)");
    }

    #[test]
    fn cached_numbers_are_read_back() {
        let both = Factors { blocks: [1, 4, 1], ..Factors::of_threads([2, 1, 1]) };
        assert_eq!(Factors::from_cached(&both.to_cached()), Some(both));
        for wrong in ["", "2 1 1", "2 1 1 2 1 1", "3 1 1 1 1 1", "2 1 1 1 4 1 1", "a 1 1 1 1 1"] {
            assert_eq!(Factors::from_cached(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn an_environment_variable_has_commas() {
        assert_eq!(Factors::axes("2"), Some([2, 1, 1]));
        assert_eq!(Factors::axes("1, 2"), Some([1, 2, 1]));
        assert_eq!(Factors::axes("4,1,2"), Some([4, 1, 2]));
        for wrong in ["", "3", "2,", "2x2", "1,1,1,1", "02", "+2"] {
            assert_eq!(Factors::axes(wrong), None, "{wrong}");
        }
    }

    #[test]
    fn copies_are_counted_along_all_axes() {
        let both = Factors { blocks: [1, 4, 1], ..Factors::of_threads([2, 1, 1]) };
        assert_eq!((both.by_axis(), both.copies()), ([2, 4, 1], 8));
        assert_eq!((both.threads_in_one(), both.blocks_in_one()), (2, 4));
        assert!(both.are_possible());
        assert!(!Factors::of_threads([3, 1, 1]).are_possible());
        assert!(!Factors { blocks: [2, 1, 1], ..both }.are_possible());
    }
}
