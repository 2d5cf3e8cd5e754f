//! An estimate of the registers that `ptxas` allocates to a kernel.
//!
//! The pressure of a point is the number of 32-bit registers for the values that are live there; a value of 64 bits
//! needs two. Predicates have registers of their own. Values of the constant bank and of uniform registers need none
//! (`weights.rs`), and some operations need registers for intermediate results. The estimate starts from the highest
//! pressure in the order of the PTX.
//!
//! `ptxas` schedules for latency: it starts loads early and unrolls short loops (`schedule.rs`), and it reuses few
//! registers, as long as the registers permit all warps of a multiprocessor. Above that, it uses few more than the
//! pressure. The constants come from kernels with one operation and a growing number of live values, and from a half of
//! weft's kernels; `docs/design/simulator.md` has the errors of the other half.

mod liveness;
mod schedule;
#[cfg(test)]
mod tests;
mod weights;

use self::{liveness::Liveness, weights::Weights};
use crate::{
    Module,
    decode::{Callee, Function, Location, Operation},
};

/// The registers of a multiprocessor for each lane of a warp.
const REGISTERS: u32 = 2048;
/// Registers of a thread are allocated in units of this number.
const UNIT: u32 = 8;
/// Registers beyond the pressure that `ptxas` uses while all warps fit.
const AMPLE: u32 = 8;
/// Registers beyond the pressure that it uses otherwise: the stack pointer, pairs that are not aligned, addresses.
const SCARCE: u32 = 3;
/// Few kernels have fewer.
const FEWEST: u32 = 12;
/// The fewest in a kernel that calls functions, by the calling convention.
const FEWEST_WITH_CALLS: u32 = 24;
/// The most of a thread.
const MOST: u32 = 255;

/// An estimate of the registers of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Registers {
    /// The registers of a thread.
    pub count: u32,
    /// The line of the PTX with the highest pressure.
    pub line: u32,
    /// The source code of that line.
    pub location: Location,
}

/// The highest pressure, and the instruction that has it.
#[derive(Clone, Copy, Default)]
struct Peak {
    pressure: u32,
    at: usize,
}

impl Peak {
    /// The higher one.
    fn or(self, other: Self) -> Self {
        if other.pressure > self.pressure { other } else { self }
    }
}

impl Module {
    /// An estimate of the registers that `ptxas` allocates to a kernel, for a GPU with some number of warps on a
    /// multiprocessor. `None` if there is no kernel of that name.
    pub fn registers(&self, kernel: &str, max_warps: u32) -> Option<Registers> {
        let functions = &self.program.functions;
        let first = functions.iter().position(|function| function.is_kernel && function.name == kernel)?;
        let (mut reached, mut next, mut calls) = (vec![first], 0, false);
        let mut found: Option<Registers> = None;
        while let Some(number) = reached.get(next).copied() {
            next += 1;
            let function = &functions[number];
            for instruction in &function.instructions {
                if let Operation::Call(call) = &instruction.operation {
                    calls = true;
                    if let Callee::Function(callee) = call.callee
                        && !reached.contains(&callee)
                    {
                        reached.push(callee);
                    }
                }
            }
            let (peak, ample) = peaks(function);
            let instruction = &function.instructions[peak.at];
            let location = self.program.locations[instruction.location as usize];
            let own = Registers { count: rule(peak.pressure, ample, max_warps), line: instruction.line, location };
            found = found.filter(|found| found.count >= own.count).or(Some(own));
        }
        let fewest = if calls { FEWEST_WITH_CALLS } else { FEWEST };
        found.map(|found| Registers { count: found.count.clamp(fewest, MOST), ..found })
    }
}

/// The highest pressure in the order of the PTX, and the pressure with loads that start early.
fn peaks(function: &Function) -> (Peak, u32) {
    let liveness = Liveness::of(function);
    let weights = Weights::of(function, &liveness);
    let (mut peak, mut ample) = (Peak::default(), 0);
    for block in 0..function.blocks.len() {
        let order: Vec<usize> = liveness.instructions(block).collect();
        peak = peak.or(weights.peak(&liveness, block, &order));
        let early = schedule::early_loads(function, &liveness, block);
        let unrolled = schedule::unrolled_loads(function, &liveness, &weights, block);
        ample = ample.max(weights.peak(&liveness, block, &early).pressure + unrolled);
    }
    (peak, ample)
}

/// The registers for a pressure in the order of the PTX, and one with early loads.
fn rule(pressure: u32, ample: u32, max_warps: u32) -> u32 {
    // With up to this many registers all warps fit.
    let full = REGISTERS / max_warps.max(1) / UNIT * UNIT;
    let pressure = pressure.max(ample.min(full.saturating_sub(SCARCE)));
    (pressure + SCARCE).max((pressure + AMPLE).min(full))
}
