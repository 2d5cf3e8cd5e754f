//! How many blocks and warps of a kernel run on a multiprocessor at a time, by the rules of CUDA's occupancy calculator
//! (`cuda_occupancy.h`).
//!
//! A multiprocessor has four partitions with 16,384 registers each, and allocates registers to warps. The limits on
//! warps, blocks, registers, shared memory and barriers determine the number of resident blocks. Without a preferred
//! carve-out the driver makes shared memory as large as the blocks need, so the largest carve-out counts.
//!
//! `calculator.csv` has results of NVIDIA's calculator for all targets, which `calculator.c` writes; `driver.csv` has
//! those of the driver on an H200. Two differences to the calculator are intended: a thread can have 255 registers, as
//! `ptxas` has it, and not 256; and the calculator has a limit on virtual resources, which weft's kernels do not use.

mod advice;
#[cfg(test)]
mod tests;

use std::fmt;

use super::{MAX_THREADS_PER_BLOCK, Sm};

pub use self::advice::Advice;

/// Threads of a warp.
const WARP: u32 = 32;
/// Partitions of a multiprocessor, each with a scheduler and registers of its own.
const PARTITIONS: u32 = 4;
/// Registers of a multiprocessor; also the most that a block can have.
const REGISTERS: u32 = 65536;
/// The most registers of a thread.
const MAX_REGISTERS: u32 = 255;
/// The allocation unit of registers per warp.
const REGISTER_UNIT: u32 = 256;
/// The sizes of shared memory of a multiprocessor in KiB, for those that have that much; the remainder is L1.
const CARVEOUTS: [u64; 10] = [0, 8, 16, 32, 64, 100, 132, 164, 196, 228];

/// The resources that a block of a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes, static and dynamic together.
    pub shared_bytes: u64,
    /// Threads of a block.
    pub threads: u32,
    /// Barriers of a block.
    pub barriers: u32,
    /// The preferred carve-out: shared memory in percent of the largest. `None`: as much as the blocks need.
    pub carveout: Option<u32>,
}

impl Needs {
    /// The needs of a kernel with one barrier and no preferred carve-out.
    pub const fn new(registers: u32, shared_bytes: u64, threads: u32) -> Self {
        Self { registers, shared_bytes, threads, barriers: 1, carveout: None }
    }

    const fn warps(&self) -> u32 {
        let warps = self.threads.div_ceil(WARP);
        if warps == 0 { 1 } else { warps }
    }

    /// The blocks that registers permit: each partition holds whole warps.
    const fn by_registers(&self) -> u32 {
        let Some(of_warp) = self.registers.saturating_mul(WARP).checked_next_multiple_of(REGISTER_UNIT) else {
            return 0;
        };
        if of_warp == 0 {
            return u32::MAX;
        }
        // The hardware requires registers as if each partition had the same number of warps of the block.
        let assumed = of_warp.saturating_mul(self.warps().next_multiple_of(PARTITIONS));
        if assumed > REGISTERS || self.registers > MAX_REGISTERS {
            return 0;
        }
        REGISTERS / PARTITIONS / of_warp * PARTITIONS / self.warps()
    }
}

/// The resident blocks and warps of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Occupancy {
    /// Blocks; 0 if a block does not fit.
    pub blocks: u32,
    /// Warps of these blocks.
    pub warps: u32,
    /// The maximum number of resident warps.
    pub max_warps: u32,
    /// The number of blocks that each resource permits, in the order of [`Limit::ALL`].
    pub by_resource: [u32; 5],
}

/// A resource of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The number of warps.
    Warps,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
    /// The number of blocks.
    Blocks,
    /// Barriers.
    Barriers,
}

impl Limit {
    /// All of them.
    pub const ALL: [Self; 5] = [Self::Warps, Self::Registers, Self::SharedMemory, Self::Blocks, Self::Barriers];

    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Warps => "the number of warps",
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
            Self::Blocks => "the number of blocks",
            Self::Barriers => "barriers",
        }
    }
}

impl Sm {
    /// Shared memory that the driver reserves in each block, in bytes.
    const fn reserved_shared_bytes(&self) -> u64 {
        if self.number >= 80 { 1024 } else { 0 }
    }

    /// The allocation unit of shared memory.
    const fn shared_unit(&self) -> u64 {
        if self.number >= 80 { 128 } else { 256 }
    }

    /// Shared memory that a block is allocated, in bytes.
    const fn allocated_shared_bytes(&self, shared_bytes: u64) -> u64 {
        (shared_bytes + self.reserved_shared_bytes()).next_multiple_of(self.shared_unit())
    }

    /// The smallest carve-out of at least `bytes` bytes; the largest one if there is none.
    fn carveout(&self, bytes: u64) -> u64 {
        let all = self.max_shared_bytes + self.reserved_shared_bytes();
        let least = if self.number == 75 { 32 } else { 0 };
        let sizes = CARVEOUTS.into_iter().filter(|kib| *kib >= least).map(|kib| kib << 10);
        sizes.filter(|size| *size <= all).find(|size| *size >= bytes).unwrap_or(all)
    }

    /// The blocks that shared memory permits. A preferred carve-out in which a block does not fit is replaced by the
    /// smallest one in which it fits.
    fn by_shared(&self, needs: Needs) -> u32 {
        let of_block = self.allocated_shared_bytes(needs.shared_bytes);
        let all = self.max_shared_bytes + self.reserved_shared_bytes();
        let preferred = self.carveout(needs.carveout.map_or(all, |percent| u64::from(percent.min(100)) * all / 100));
        let available = if preferred >= of_block { preferred } else { self.carveout(of_block) };
        match available.checked_div(of_block) {
            Some(blocks) if needs.shared_bytes <= self.max_shared_bytes => blocks as u32,
            Some(_) => 0,
            None => u32::MAX,
        }
    }

    /// The blocks that barriers permit; they are a limit since compute capability 9.0.
    const fn by_barriers(&self, needs: Needs) -> u32 {
        let available = match self.number {
            90 | 100 => 2 * self.max_blocks,
            0..90 => return u32::MAX,
            91.. => self.max_blocks,
        };
        match available.checked_div(needs.barriers) {
            Some(blocks) => blocks,
            None => u32::MAX,
        }
    }

    /// The blocks that a resource permits.
    fn blocks_by(&self, limit: Limit, needs: Needs) -> u32 {
        match limit {
            Limit::Warps if needs.threads > MAX_THREADS_PER_BLOCK => 0,
            Limit::Warps => self.max_warps / needs.warps(),
            Limit::Registers => needs.by_registers(),
            Limit::SharedMemory => self.by_shared(needs),
            Limit::Blocks => self.max_blocks,
            Limit::Barriers => self.by_barriers(needs),
        }
    }

    /// The occupancy of a kernel.
    pub fn occupancy(&self, needs: Needs) -> Occupancy {
        let by_resource = Limit::ALL.map(|limit| self.blocks_by(limit, needs));
        let blocks = by_resource.into_iter().fold(u32::MAX, u32::min);
        Occupancy { blocks, warps: blocks * needs.warps(), max_warps: self.max_warps, by_resource }
    }
}

impl Occupancy {
    /// The resident warps in percent of the maximum.
    pub fn percent(&self) -> u32 {
        (self.warps * 100 + self.max_warps / 2) / self.max_warps.max(1)
    }

    /// The resources that limit the number of blocks.
    pub fn limits(&self) -> impl Iterator<Item = Limit> {
        let (by_resource, lowest) = (self.by_resource, self.by_resource.into_iter().fold(u32::MAX, u32::min));
        Limit::ALL.into_iter().zip(by_resource).filter(move |(_, blocks)| *blocks == lowest).map(|(limit, _)| limit)
    }
}

/// Formats as `75 % (48 of 64 warps), limited by registers`.
impl fmt::Display for Occupancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, warps, max_warps, by_resource: _ } = self;
        let limits = self.limits().map(Limit::name).collect::<Vec<_>>().join(" and ");
        if *blocks == 0 {
            return write!(f, "0 % (a block needs more than a multiprocessor has: {limits})");
        }
        write!(f, "{} % ({warps} of {max_warps} warps)", self.percent())?;
        if warps < max_warps {
            write!(f, ", limited by {limits}")?;
        }
        Ok(())
    }
}
