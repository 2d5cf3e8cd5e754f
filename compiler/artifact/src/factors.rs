//! How many of a program's threads one thread of a launch does the work of, and in which form people write it.
//!
//! The text form is `2x1x1` for threads of a block, `blocks:1x2x1` for neighbouring blocks, and `2x1x1+blocks:1x2x1` for
//! both; axes that are left out at the end are 1.

use std::{
    fmt::{self, Display, Formatter},
    str::FromStr,
};

/// How many of a program's threads are one of a launch: neighbours of a block, or those that stand at the same place of
/// neighbouring blocks. The program sees the block and the grid that it asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Factors {
    /// Along x, y and z: so many threads of a block are one. A launch divides the block's extents by them.
    pub threads: [u32; 3],
    /// So many blocks are one. A launch divides the grid's extents by them.
    pub blocks: [u32; 3],
}

/// What stands before the factors of blocks.
const BLOCKS: &str = "blocks:";

impl Factors {
    /// Each thread does its own.
    pub const NONE: Self = Self { threads: [1; 3], blocks: [1; 3] };

    /// Threads of a block.
    pub const fn of_threads(threads: [u32; 3]) -> Self {
        Self { threads, ..Self::NONE }
    }

    /// Whole blocks.
    pub const fn of_blocks(blocks: [u32; 3]) -> Self {
        Self { blocks, ..Self::NONE }
    }

    /// Whether the compiler takes them: 1, 2 or 4 each, and along an axis threads or blocks.
    pub fn are_possible(&self) -> bool {
        let is_one = |factor: &u32| [1, 2, 4].contains(factor);
        self.threads.iter().chain(&self.blocks).all(is_one) && !self.meet()
    }

    /// Whether both threads and blocks are to be one along an axis.
    pub fn meet(&self) -> bool {
        self.threads.iter().zip(self.blocks).any(|(threads, blocks)| *threads > 1 && blocks > 1)
    }

    /// By axis: copies of a thread, of whichever kind.
    pub fn by_axis(&self) -> [u32; 3] {
        let mut both = self.threads;
        for (factor, blocks) in both.iter_mut().zip(self.blocks) {
            *factor = factor.saturating_mul(blocks);
        }
        both
    }

    /// Copies of a thread in all.
    pub fn copies(&self) -> u32 {
        product(self.by_axis())
    }

    /// Threads of a block that are one.
    pub fn threads_in_one(&self) -> u32 {
        product(self.threads)
    }

    /// Blocks that are one.
    pub fn blocks_in_one(&self) -> u32 {
        product(self.blocks)
    }

    /// What a launch has of a grid and a block, if both can be divided so.
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

impl Display for Factors {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let Self { threads, blocks } = *self;
        let write = |f: &mut Formatter<'_>, [x, y, z]: [u32; 3]| write!(f, "{x}x{y}x{z}");
        if blocks == [1; 3] {
            return write(f, threads);
        }
        if threads != [1; 3] {
            write(f, threads)?;
            f.write_str("+")?;
        }
        f.write_str(BLOCKS)?;
        write(f, blocks)
    }
}

/// Why a text says no factors.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoFactors {
    /// It is none of their form, or another number than 1, 2 and 4.
    Text,
    /// Along one axis there are both threads and blocks.
    Meet,
}

impl FromStr for Factors {
    type Err = NoFactors;

    fn from_str(text: &str) -> Result<Self, NoFactors> {
        let factors = match (text.split_once('+'), text.strip_prefix(BLOCKS)) {
            (Some((threads, blocks)), None) => {
                let blocks = blocks.strip_prefix(BLOCKS).ok_or(NoFactors::Text)?;
                Self { threads: axes(threads)?, blocks: axes(blocks)? }
            }
            (_, Some(blocks)) => Self::of_blocks(axes(blocks)?),
            (None, None) => Self::of_threads(axes(text)?),
        };
        if factors.meet() { Err(NoFactors::Meet) } else { Ok(factors) }
    }
}

/// `2`, `1x2`, `2x1x4`.
fn axes(text: &str) -> Result<[u32; 3], NoFactors> {
    let mut factors = [1; 3];
    let given: Vec<&str> = text.split('x').collect();
    if given.len() > factors.len() {
        return Err(NoFactors::Text);
    }
    for (factor, given) in factors.iter_mut().zip(given) {
        *factor = match given {
            "1" => 1,
            "2" => 2,
            "4" => 4,
            _ => return Err(NoFactors::Text),
        };
    }
    Ok(factors)
}

#[cfg(test)]
mod tests {
    use super::{Factors, NoFactors};

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
    fn the_text_is_what_it_was_made_from() {
        let shown = |text: &str| text.parse::<Factors>().map(|factors| factors.to_string());
        for (text, whole) in [
            ("2", "2x1x1"),
            ("1x4", "1x4x1"),
            ("blocks:2x2", "blocks:2x2x1"),
            ("2x1+blocks:1x2", "2x1x1+blocks:1x2x1"),
            ("1+blocks:4", "blocks:4x1x1"),
            ("2+blocks:1", "2x1x1"),
            ("blocks:1", "1x1x1"),
        ] {
            assert_eq!(shown(text), Ok(whole.to_owned()));
            assert_eq!(shown(whole), Ok(whole.to_owned()));
        }
        for text in ["", "3", "2x", "x2", "1x1x1x1", "blocks:", "blocks:8", "2+2", "blocks:2+2", "02", "+2", "2+", " 2"]
        {
            assert_eq!(shown(text), Err(NoFactors::Text), "{text}");
        }
        assert_eq!(shown("2+blocks:4"), Err(NoFactors::Meet));
        assert_eq!(shown("1x2+blocks:4x2"), Err(NoFactors::Meet));
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
