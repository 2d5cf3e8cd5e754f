//! The launch rule: the grid, the block and the dynamic shared memory of a launch.

use super::{RuleArgs, RuleError, RuleExpr};

/// Computes the configuration of a launch from its arguments.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct LaunchRule {
    /// The blocks of the grid along x, y and z.
    pub grid: [RuleExpr; 3],
    /// The threads of a block along x, y and z.
    pub block: [RuleExpr; 3],
    /// The dynamic shared memory of a block in bytes.
    pub shared_bytes: RuleExpr,
}

/// The configuration of a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaunchSize {
    /// The blocks of the grid along x, y and z.
    pub grid: [u32; 3],
    /// The threads of a block along x, y and z.
    pub block: [u32; 3],
    /// The dynamic shared memory of a block in bytes.
    pub shared_bytes: u32,
}

impl LaunchSize {
    /// Whether the grid has no blocks: there is nothing to launch.
    pub fn is_empty(&self) -> bool {
        self.grid.contains(&0)
    }
}

/// A part of a launch: its name, and its least and greatest value.
pub type LaunchLimit = (&'static str, i64, i64);

impl LaunchRule {
    /// The limits of all GPUs that weft supports. A grid without blocks launches nothing.
    pub const GRID: [LaunchLimit; 3] =
        [("gridDim.x", 0, i32::MAX as i64), ("gridDim.y", 0, 65_535), ("gridDim.z", 0, 65_535)];
    /// The same of a block.
    pub const BLOCK: [LaunchLimit; 3] = [("blockDim.x", 1, 1024), ("blockDim.y", 1, 1024), ("blockDim.z", 1, 64)];
    /// The most threads of a block.
    pub const MAX_THREADS: u32 = 1024;
    /// The limit of dynamic shared memory. The device's own limit is smaller, and the launch checks it.
    pub const SHARED: LaunchLimit = ("dynamic shared memory", 0, 1 << 30);

    /// The configuration for some arguments. A grid without blocks is no error.
    ///
    /// # Errors
    ///
    /// An expression has no value for the arguments, or a part of the launch is out of range.
    pub fn evaluate<A: RuleArgs + ?Sized>(&self, args: &A) -> Result<LaunchSize, RuleError> {
        let part = |expr: &RuleExpr, (what, least, most): LaunchLimit| {
            let value = expr.evaluate(args)?;
            let fits = (least..=most).contains(&value);
            let part = u32::try_from(value).ok().filter(|_| fits);
            part.ok_or(RuleError::OutOfRange { what, value, least, most })
        };
        let parts = |exprs: &[RuleExpr; 3], limits: [LaunchLimit; 3]| {
            let [x, y, z] = exprs;
            let [of_x, of_y, of_z] = limits;
            Ok([part(x, of_x)?, part(y, of_y)?, part(z, of_z)?])
        };
        let grid = parts(&self.grid, Self::GRID)?;
        let block = parts(&self.block, Self::BLOCK)?;
        if block.iter().product::<u32>() > Self::MAX_THREADS {
            return Err(RuleError::TooManyThreads { block, most: Self::MAX_THREADS });
        }
        Ok(LaunchSize { grid, block, shared_bytes: part(&self.shared_bytes, Self::SHARED)? })
    }

    /// Its expressions.
    pub fn exprs(&self) -> impl Iterator<Item = &RuleExpr> {
        self.grid.iter().chain(&self.block).chain([&self.shared_bytes])
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::rules::{RuleArg, RuleOp};

    fn over(block: i64) -> LaunchRule {
        let one = RuleExpr::Int(1);
        let sum = RuleExpr::Apply(RuleOp::Add, vec![RuleExpr::Size(0), RuleExpr::Int(block - 1)]);
        let blocks = RuleExpr::Apply(RuleOp::FloorDiv, vec![sum, RuleExpr::Int(block)]);
        LaunchRule {
            grid: [blocks, one.clone(), one.clone()],
            block: [RuleExpr::Int(block), one.clone(), one],
            shared_bytes: RuleExpr::Int(0),
        }
    }

    #[test]
    fn a_launch_covers_the_array() {
        let size = over(256).evaluate(&[RuleArg::Array(vec![1000])][..]);
        assert_eq!(size, Ok(LaunchSize { grid: [4, 1, 1], block: [256, 1, 1], shared_bytes: 0 }));
        let empty = over(256).evaluate(&[RuleArg::Array(vec![0])][..]);
        assert_eq!(empty.map(|size| size.is_empty()), Ok(true));
    }

    #[test]
    fn sizes_out_of_range_are_errors() {
        let error = over(2048).evaluate(&[RuleArg::Array(vec![10])][..]).expect_err("the block is too large");
        assert_eq!(error.message(&["x"]), "blockDim.x is 2048; it must be from 1 to 1024");
        let mut rule = over(512);
        rule.block[1] = RuleExpr::Int(4);
        let error = rule.evaluate(&[RuleArg::Array(vec![10])][..]).expect_err("the block is too large");
        assert_eq!(error.message(&["x"]), "a block of 512 × 4 × 1 has 2048 threads; at most 1024 are possible");
    }
}
