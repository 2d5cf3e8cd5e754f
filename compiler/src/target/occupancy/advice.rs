//! What raises the occupancy of a kernel: fewer resources for one more block, or another block size for more warps.

use std::fmt;

use super::{Limit, Needs, Occupancy, WARP};
use crate::target::{MAX_THREADS_PER_BLOCK, Sm};

/// The fewest registers to which `ptxas` limits a thread (`max_registers=`).
const MIN_REGISTERS: u32 = 24;

/// What raises the occupancy of a kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Advice {
    needs: Needs,
    /// The highest needs, with the same block size, with which one more block fits, and its occupancy. `None` if no
    /// such needs exist: the warps or blocks of the multiprocessor are used up.
    pub one_more: Option<(Needs, Occupancy)>,
    /// The block size with the most resident warps, if the needs of a thread and the shared memory of a block remain
    /// the same, and its occupancy. Of several sizes it is the one nearest to the present one. `None` if no size has
    /// more warps.
    pub threads: Option<(u32, Occupancy)>,
}

impl Sm {
    /// What raises the occupancy of a kernel; `None` if nothing does.
    pub fn advice(&self, needs: Needs) -> Option<Advice> {
        let now = self.occupancy(needs);
        let advice = Advice { needs, one_more: self.one_more(needs, &now), threads: self.better_size(needs, &now) };
        (now.warps < now.max_warps && (advice.one_more.is_some() || advice.threads.is_some())).then_some(advice)
    }

    /// The highest needs with which one more block fits.
    fn one_more(&self, needs: Needs, now: &Occupancy) -> Option<(Needs, Occupancy)> {
        let fits = |limit, needs| self.blocks_by(limit, needs) > now.blocks;
        let mut fewer = needs;
        for limit in now.limits() {
            match limit {
                Limit::Warps | Limit::Blocks => return None,
                Limit::Registers => {
                    fewer.registers = (MIN_REGISTERS..needs.registers)
                        .rev()
                        .find(|registers| fits(limit, Needs { registers: *registers, ..needs }))?;
                }
                Limit::SharedMemory => {
                    // More bytes than a block can have never fit. The reserve is a multiple of the unit, so a block
                    // of whole units uses all that it is allocated.
                    let (most, unit) = (needs.shared_bytes.min(self.max_shared_bytes + 1), self.shared_unit());
                    fewer.shared_bytes = (0..most.div_ceil(unit))
                        .rev()
                        .map(|units| units * unit)
                        .find(|bytes| fits(limit, Needs { shared_bytes: *bytes, ..needs }))?;
                }
                Limit::Barriers => {
                    fewer.barriers = (0..needs.barriers)
                        .rev()
                        .find(|barriers| fits(limit, Needs { barriers: *barriers, ..needs }))?;
                }
            }
        }
        Some((fewer, self.occupancy(fewer)))
    }

    /// The block size with the most resident warps.
    fn better_size(&self, needs: Needs, now: &Occupancy) -> Option<(u32, Occupancy)> {
        let sizes = (WARP..=MAX_THREADS_PER_BLOCK).step_by(WARP as usize);
        sizes
            .map(|threads| (threads, self.occupancy(Needs { threads, ..needs })))
            .filter(|(_, occupancy)| occupancy.warps > now.warps)
            .min_by_key(|(threads, occupancy)| (u32::MAX - occupancy.warps, threads.abs_diff(needs.threads)))
    }
}

/// Formats as `at most 32 registers a thread: 8 blocks (64 warps); blocks of 128 threads: 48 warps`.
impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some((fewer, occupancy)) = &self.one_more {
            let mut limits = Vec::new();
            if fewer.registers < self.needs.registers {
                limits.push(format!("{} registers a thread", fewer.registers));
            }
            if fewer.shared_bytes < self.needs.shared_bytes {
                // Rounded down to what fits.
                let tenths = fewer.shared_bytes * 10 / 1024;
                limits.push(format!("{}.{} KB of shared memory a block", tenths / 10, tenths % 10));
            }
            if fewer.barriers < self.needs.barriers {
                limits.push(format!("{} barriers a block", fewer.barriers));
            }
            let plural = if occupancy.blocks == 1 { "" } else { "s" };
            parts.push(format!(
                "at most {}: {} block{plural} ({} warps)",
                limits.join(" and "),
                occupancy.blocks,
                occupancy.warps
            ));
        }
        if let Some((threads, occupancy)) = &self.threads {
            parts.push(format!("blocks of {threads} threads: {} warps", occupancy.warps));
        }
        f.write_str(&parts.join("; "))
    }
}
