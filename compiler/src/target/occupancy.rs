//! How many blocks and warps of a kernel run on a multiprocessor at a time, by the rules of CUDA's occupancy calculator
//! (`cuda_occupancy.h`).
//!
//! A multiprocessor has four partitions with 16,384 registers each, and allocates registers to warps. The limits on
//! warps, blocks, registers and shared memory determine the number of resident blocks. If a launch sets no carve-out,
//! the driver makes shared memory as large as the blocks need, so the largest size counts. `occupancy_cases.txt` has
//! results of NVIDIA's calculator for all targets, and of the driver on an H200.

use std::fmt;

use super::Sm;

/// Threads of a warp.
const WARP: u32 = 32;
/// Threads that a block may have.
const MAX_BLOCK: u32 = 1024;
/// Partitions of a multiprocessor, each with a scheduler and registers of its own.
const PARTITIONS: u32 = 4;
/// Registers of a multiprocessor; also the most that a block can have.
const REGISTERS: u32 = 65536;
/// The allocation unit of registers per warp.
const REGISTER_UNIT: u32 = 256;

/// The resources that a block of a kernel needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// Registers of a thread.
    pub registers: u32,
    /// Shared memory of a block in bytes, static and dynamic together.
    pub shared_bytes: u64,
    /// Threads of a block.
    pub threads: u32,
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
    /// The resource that limits the number of blocks.
    pub limit: Limit,
}

/// A resource of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Limit {
    /// The number of warps.
    Warps,
    /// The number of blocks.
    Blocks,
    /// Registers.
    Registers,
    /// Shared memory.
    SharedMemory,
}

impl Limit {
    const fn name(self) -> &'static str {
        match self {
            Self::Warps => "the number of warps",
            Self::Blocks => "the number of blocks",
            Self::Registers => "registers",
            Self::SharedMemory => "shared memory",
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

    /// The occupancy of a kernel.
    pub fn occupancy(&self, needs: Needs) -> Occupancy {
        let Needs { registers, shared_bytes, threads } = needs;
        let warps = threads.clamp(1, MAX_BLOCK).div_ceil(WARP);
        let of_warp = (registers * WARP).next_multiple_of(REGISTER_UNIT);
        // The hardware requires registers as if each partition had the same number of warps of the block.
        let has_registers = of_warp.saturating_mul(warps.next_multiple_of(PARTITIONS)) <= REGISTERS;
        let by_registers = match (REGISTERS / PARTITIONS).checked_div(of_warp) {
            Some(in_partition) if has_registers => in_partition * PARTITIONS / warps,
            Some(_) => 0,
            None => u32::MAX,
        };
        let of_block = (shared_bytes + self.reserved_shared_bytes()).next_multiple_of(self.shared_unit());
        let of_all = self.max_shared_bytes + self.reserved_shared_bytes();
        let by_shared = match of_all.checked_div(of_block) {
            Some(blocks) if shared_bytes <= self.max_shared_bytes => blocks as u32,
            Some(_) => 0,
            None => u32::MAX,
        };
        let by_warps = if threads > MAX_BLOCK { 0 } else { self.max_warps / warps };
        let limits = [
            (by_warps, Limit::Warps),
            (by_registers, Limit::Registers),
            (by_shared, Limit::SharedMemory),
            (self.max_blocks, Limit::Blocks),
        ];
        // Of equal limits, the first counts: more registers would not help if warps are a limit, too.
        let (blocks, limit) = limits.into_iter().min_by_key(|(blocks, _)| *blocks).unwrap_or((0, Limit::Warps));
        Occupancy { blocks, warps: blocks * warps, max_warps: self.max_warps, limit }
    }
}

impl Occupancy {
    /// The resident warps in percent of the maximum.
    pub fn percent(&self) -> u32 {
        (self.warps * 100 + self.max_warps / 2) / self.max_warps.max(1)
    }
}

/// Formats as `75 % (48 of 64 warps), limited by registers`.
impl fmt::Display for Occupancy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { blocks, warps, max_warps, limit } = self;
        if *blocks == 0 {
            return write!(f, "0 % (a block needs more than a multiprocessor has: {})", limit.name());
        }
        write!(f, "{} % ({warps} of {max_warps} warps)", self.percent())?;
        if warps < max_warps {
            write!(f, ", limited by {}", limit.name())?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Rows: compute capability, registers per thread, shared memory per block, threads per block, and resident blocks.
    const CASES: &str = include_str!("occupancy_cases.txt");

    #[test]
    fn it_is_what_cuda_computes() {
        let mut count = 0;
        for line in CASES.lines().filter(|line| !line.starts_with('#')) {
            let numbers: Vec<u32> = line.split(' ').map(|number| number.parse().expect("a number")).collect();
            let [capability, registers, shared, threads, blocks] = numbers[..] else { panic!("{line}") };
            let sm = Sm::of_capability(capability / 10, capability % 10).expect("a target");
            assert_eq!(sm.number, capability);
            let found = sm.occupancy(Needs { registers, shared_bytes: u64::from(shared), threads });
            assert_eq!(found.blocks, blocks, "{line}");
            count += 1;
        }
        assert!(count > 500);
    }

    #[test]
    fn the_limit_is_named() {
        let sm = Sm::parse("sm_90").expect("a target");
        let shown =
            |registers, shared_bytes, threads| sm.occupancy(Needs { registers, shared_bytes, threads }).to_string();
        assert_eq!(shown(32, 0, 256), "100 % (64 of 64 warps)");
        assert_eq!(shown(40, 0, 256), "75 % (48 of 64 warps), limited by registers");
        assert_eq!(shown(16, 100 << 10, 256), "25 % (16 of 64 warps), limited by shared memory");
        assert_eq!(shown(16, 0, 32), "50 % (32 of 64 warps), limited by the number of blocks");
        assert_eq!(shown(16, 0, 768), "75 % (48 of 64 warps), limited by the number of warps");
        assert_eq!(shown(255, 0, 1024), "0 % (a block needs more than a multiprocessor has: registers)");
    }
}
