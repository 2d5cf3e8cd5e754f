//! The addresses of the first requests of each instruction, for pictures of access patterns.

use super::Lanes;
use crate::{memory::Region, parse::Space};

/// The requests of an instruction that are recorded.
const RECORDED: usize = 2;

/// A request: an access of a warp.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Request {
    /// The memory.
    pub space: Space,
    /// The number of the region; none for shared and local memory.
    pub(crate) region: u32,
    /// Of each active lane the first byte that it accesses, from the beginning of the array or of the shared memory.
    pub offsets: [Option<u64>; 32],
    /// The bytes that a lane accesses.
    pub size: u32,
}

/// The first requests of an instruction in one block.
#[derive(Debug, Clone, Default)]
struct First {
    /// The position of the block, by which blocks are ordered.
    block: u128,
    requests: Vec<Request>,
}

/// The order of a block.
fn number([x, y, z]: [u32; 3]) -> u128 {
    u128::from(z) << 64 | u128::from(y) << 32 | u128::from(x)
}

/// The recorded requests of the instructions of a program: those of the first block of the grid that executes each. So
/// they do not depend on the order in which blocks run.
#[derive(Debug)]
pub(crate) struct Requests(Vec<First>);

impl Requests {
    /// Of as many instructions.
    pub(crate) fn new(instructions: usize) -> Self {
        Self(vec![First::default(); instructions])
    }

    /// Whether an access of an instruction in a block is one of the first.
    #[inline]
    pub(crate) fn records(&self, counter: usize, position: [u32; 3]) -> bool {
        let (first, block) = (&self.0[counter], number(position));
        match first.requests.len() {
            0 => true,
            RECORDED => block < first.block,
            _ => block <= first.block,
        }
    }

    /// Records an access of an instruction in a block, if it is one of the first.
    pub(crate) fn add(
        &mut self,
        counter: usize,
        position: [u32; 3],
        (space, region): (Space, u32),
        regions: &[Region],
        lanes: Lanes,
    ) {
        if !self.records(counter, position) {
            return;
        }
        let (first, block) = (&mut self.0[counter], number(position));
        if block != first.block {
            first.requests.clear();
        }
        let base = regions.get(region as usize).map_or(0, Region::base);
        let offset = |lane: usize| (lanes.mask >> lane & 1 != 0).then(|| lanes.addresses[lane].wrapping_sub(base));
        first.block = block;
        first.requests.push(Request { space, region, offsets: std::array::from_fn(offset), size: lanes.size });
    }

    /// Adds those of another thread, which ran other blocks.
    pub(crate) fn merge(&mut self, other: &Self) {
        for (own, more) in self.0.iter_mut().zip(&other.0) {
            if !more.requests.is_empty() && (own.requests.is_empty() || more.block < own.block) {
                *own = more.clone();
            }
        }
    }

    /// Those of an access of an instruction.
    pub(crate) fn of(&self, counter: usize, space: Space, region: u32) -> impl Iterator<Item = &Request> {
        self.0[counter].requests.iter().filter(move |request| (request.space, request.region) == (space, region))
    }
}
