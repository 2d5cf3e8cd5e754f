//! Tables of counts: by instruction while a launch runs, and by line, array and space in its result.

use std::{collections::BTreeMap, ops::AddAssign};

use super::{MachineCode, Request, Requests, SectorAtomics, Updates};
use crate::{
    decode::{Location, Operation, Program},
    parse::Space,
};

/// The kind of an instruction, by which operations are counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Class {
    /// Moves, conversions between integers, and loads of parameters. `ptxas` removes most of them.
    Move,
    /// Integers of 8 and 16 bits.
    Int16,
    /// Integers of 32 bits.
    Int32,
    /// Integers of 64 bits, each two or more machine instructions.
    Int64,
    /// Floats of 16 bits.
    Float16,
    /// Sums and differences of float32.
    Float32Add,
    /// Products of float32.
    Float32Mul,
    /// Fused multiply-adds of float32.
    Float32Fma,
    /// Divisions, roots, comparisons, conversions and approximate functions of float32.
    Float32Other,
    /// Sums and differences of float64.
    Float64Add,
    /// Products of float64.
    Float64Mul,
    /// Fused multiply-adds of float64.
    Float64Fma,
    /// Other operations of float64.
    Float64Other,
    /// Loads.
    Load,
    /// Stores.
    Store,
    /// Atomics.
    Atomic,
    /// Shuffles, votes, and barriers of a warp.
    Collective,
    /// Products of matrices on tensor cores.
    Matrix,
    /// Barriers of a block.
    Barrier,
    /// Branches, calls and returns.
    Control,
    /// Selections, predicates, fences and others.
    Other,
}

impl Class {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Move => "move",
            Self::Int16 => "int16",
            Self::Int32 => "int32",
            Self::Int64 => "int64",
            Self::Float16 => "float16",
            Self::Float32Add => "float32 add",
            Self::Float32Mul => "float32 mul",
            Self::Float32Fma => "float32 fma",
            Self::Float32Other => "float32 other",
            Self::Float64Add => "float64 add",
            Self::Float64Mul => "float64 mul",
            Self::Float64Fma => "float64 fma",
            Self::Float64Other => "float64 other",
            Self::Load => "load",
            Self::Store => "store",
            Self::Atomic => "atomic",
            Self::Collective => "collective",
            Self::Matrix => "matrix",
            Self::Barrier => "barrier",
            Self::Control => "control",
            Self::Other => "other",
        }
    }
}

/// The distance in bytes of the addresses of consecutive lanes, over the requests of whole warps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Stride {
    /// No whole warp accessed memory.
    #[default]
    Unknown,
    /// The same for all requests.
    Constant(i64),
    /// It differs.
    Varying,
}

impl Stride {
    fn merge(self, other: Self) -> Self {
        match (self, other) {
            (Self::Unknown, known) | (known, Self::Unknown) => known,
            (Self::Constant(own), Self::Constant(more)) if own == more => self,
            (Self::Constant(_) | Self::Varying, Self::Constant(_) | Self::Varying) => Self::Varying,
        }
    }
}

/// The counts of memory accesses. Sums over warps.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Count {
    /// Warp instructions that access memory with any lane. For constant memory: distinct words, which are replayed.
    pub requests: u64,
    /// Active lanes.
    pub lanes: u64,
    /// Sectors of 32 bytes that are touched.
    pub sectors: u64,
    /// Sectors if the same bytes were contiguous.
    pub ideal_sectors: u64,
    /// Requests to L2 with a cold L1: lines of 128 bytes.
    pub l2_requests: u64,
    /// Sectors that L1 exchanges with L2: those of loads that the block's part of L1 does not hold, and all of stores and
    /// atomics. An estimate: blocks share L1, and it replaces sectors by rules of its own.
    pub l2_sectors: u64,
    /// Wavefronts of the L1 tag stage.
    pub tag_wavefronts: u64,
    /// Wavefronts of shared memory.
    pub wavefronts: u64,
    /// Wavefronts of shared memory without bank conflicts.
    pub ideal_wavefronts: u64,
    /// Wavefronts because of bank conflicts.
    pub bank_conflicts: u64,
    /// The distance between lanes.
    pub stride: Stride,
}

impl Count {
    /// The names of [`Self::values`].
    pub const NAMES: [&'static str; 10] = [
        "requests",
        "lanes",
        "sectors",
        "ideal_sectors",
        "l2_requests",
        "l2_sectors",
        "tag_wavefronts",
        "wavefronts",
        "ideal_wavefronts",
        "bank_conflicts",
    ];

    /// All counts.
    pub fn values(mut self) -> [u64; 10] {
        self.fields_mut().map(|count| *count)
    }

    fn fields_mut(&mut self) -> [&mut u64; 10] {
        let Self {
            requests,
            lanes,
            sectors,
            ideal_sectors,
            l2_requests,
            l2_sectors,
            tag_wavefronts,
            wavefronts,
            ideal_wavefronts,
            bank_conflicts,
            stride: _,
        } = self;
        [
            requests,
            lanes,
            sectors,
            ideal_sectors,
            l2_requests,
            l2_sectors,
            tag_wavefronts,
            wavefronts,
            ideal_wavefronts,
            bank_conflicts,
        ]
    }
}

impl AddAssign for Count {
    fn add_assign(&mut self, other: Self) {
        let Self {
            requests,
            lanes,
            sectors,
            ideal_sectors,
            l2_requests,
            l2_sectors,
            tag_wavefronts,
            wavefronts,
            ideal_wavefronts,
            bank_conflicts,
            stride,
        } = other;
        // Once for each access: a loop over the fields takes several times as long.
        self.requests += requests;
        self.lanes += lanes;
        self.sectors += sectors;
        self.ideal_sectors += ideal_sectors;
        self.l2_requests += l2_requests;
        self.l2_sectors += l2_sectors;
        self.tag_wavefronts += tag_wavefronts;
        self.wavefronts += wavefronts;
        self.ideal_wavefronts += ideal_wavefronts;
        self.bank_conflicts += bank_conflicts;
        self.stride = self.stride.merge(stride);
    }
}

/// How often something ran.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Executed {
    pub(crate) warps: u64,
    pub(crate) lanes: u64,
    /// Branches that some active lanes take and others do not.
    pub(crate) divergent: u64,
}

/// What the warps of a block ran before a barrier, since the barrier before or the start of the block.
///
/// A warp that polls memory waits for other threads in a way that depends on their order: blocks' phases with such a
/// warp are not counted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Waits {
    /// Instructions of the warps.
    pub instructions: u64,
    /// Instructions that the warps ran fewer than the one of their block that ran most, each.
    pub missing: u64,
}

/// The counters of one thread of a launch, by instruction.
#[derive(Debug)]
pub(crate) struct Counters {
    /// Of each basic block, at its first instruction; of an instruction with a guard, its own lanes.
    pub(crate) executed: Vec<Executed>,
    pub(crate) guarded: Vec<u64>,
    /// By barrier of the block.
    pub(crate) waits: Vec<Waits>,
    /// By instruction: space, region, counts.
    pub(crate) accesses: Vec<Vec<(Space, u32, Count)>>,
    pub(crate) requests: Requests,
    /// Atomics of global memory by sector.
    pub(crate) updates: Updates,
}

/// The number of a region for shared and local memory.
pub(crate) const NO_REGION: u32 = u32::MAX;

impl Counters {
    pub(crate) fn new(program: &Program) -> Self {
        let count = program.functions.iter().map(|function| function.instructions.len()).sum();
        Self {
            executed: vec![Executed::default(); count],
            guarded: vec![0; count],
            waits: vec![Waits::default(); count],
            accesses: vec![Vec::new(); count],
            requests: Requests::new(count),
            updates: Updates::default(),
        }
    }

    pub(crate) fn access(&mut self, counter: usize, space: Space, region: u32, count: Count) {
        let list = &mut self.accesses[counter];
        for (own_space, own_region, sum) in list.iter_mut() {
            if (*own_space, *own_region) == (space, region) {
                *sum += count;
                return;
            }
        }
        list.push((space, region, count));
    }

    /// The counts of `all` blocks, of which `ran` were counted here.
    pub(crate) fn scale(&mut self, all: u64, ran: u64) {
        let scale = |count: &mut u64| {
            *count = ((u128::from(*count) * u128::from(all) + u128::from(ran) / 2) / u128::from(ran)) as u64;
        };
        for Executed { warps, lanes, divergent } in &mut self.executed {
            [warps, lanes, divergent].into_iter().for_each(scale);
        }
        self.guarded.iter_mut().for_each(scale);
        for Waits { instructions, missing } in &mut self.waits {
            [instructions, missing].into_iter().for_each(scale);
        }
        for (_, _, count) in self.accesses.iter_mut().flatten() {
            count.fields_mut().into_iter().for_each(scale);
        }
        self.updates.scale(scale);
    }

    pub(crate) fn merge(&mut self, other: &Self) {
        self.updates.merge(&other.updates);
        self.requests.merge(&other.requests);
        for (own, more) in self.executed.iter_mut().zip(&other.executed) {
            own.warps += more.warps;
            own.lanes += more.lanes;
            own.divergent += more.divergent;
        }
        for (own, more) in self.guarded.iter_mut().zip(&other.guarded) {
            *own += more;
        }
        for (own, more) in self.waits.iter_mut().zip(&other.waits) {
            own.instructions += more.instructions;
            own.missing += more.missing;
        }
        for (counter, list) in other.accesses.iter().enumerate() {
            for (space, region, count) in list {
                self.access(counter, *space, *region, *count);
            }
        }
    }
}

/// The counts of one instruction of the PTX.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The function of the PTX.
    pub function: String,
    /// The line of the PTX.
    pub line: u32,
    /// The line of the source code.
    pub location: Location,
    /// The kind of the instruction.
    pub class: Class,
    /// Warps that executed it.
    pub warps: u64,
    /// Lanes that executed it: those for which its predicate holds, so those that take a branch.
    pub lanes: u64,
    /// Times that only some active lanes took the branch.
    pub divergent_branches: u64,
    /// Of a barrier of the block: what warps ran before it.
    pub waits: Waits,
    /// The machine instructions of one lane.
    pub machine: MachineCode,
    /// Memory accesses by space and region: the name of the array, empty for shared and local memory.
    pub accesses: Vec<(Space, String, Count)>,
    /// The first requests of each of these, in their order.
    pub requests: Vec<Vec<Request>>,
}

/// The counts of a launch.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Counts {
    /// One row for each instruction that ran.
    pub rows: Vec<Row>,
    /// Atomics of the sector of global memory that is busy with them for longest.
    pub hottest: SectorAtomics,
}

impl Counts {
    pub(crate) fn of(program: &Program, counters: &Counters, names: &[&str]) -> Self {
        let mut rows = Vec::new();
        for function in &program.functions {
            for (index, instruction) in function.instructions.iter().enumerate() {
                let counter = function.first_counter + index;
                let start = function.blocks[function.block_of[index] as usize].start as usize;
                let block = counters.executed[function.first_counter + start];
                if block.warps == 0 || matches!(instruction.operation, Operation::Nop) {
                    continue;
                }
                let lanes = if instruction.guard.is_some() { counters.guarded[counter] } else { block.lanes };
                let name = |region: u32| names.get(region as usize).map_or(String::new(), |name| (*name).to_owned());
                let mut found: Vec<(Space, String, u32, Count)> = counters.accesses[counter]
                    .iter()
                    .map(|(space, region, count)| (*space, name(*region), *region, *count))
                    .collect();
                found.sort_by(|a, b| (a.0, &a.1).cmp(&(b.0, &b.1)));
                let requests = |(space, _, region, _): &(Space, String, u32, Count)| {
                    counters.requests.of(counter, *space, *region).cloned().collect()
                };
                let requests = found.iter().map(requests).collect();
                let accesses = found.into_iter().map(|(space, name, _, count)| (space, name, count)).collect();
                let is_branch = matches!(instruction.operation, Operation::Branch(_));
                rows.push(Row {
                    function: function.name.clone(),
                    line: instruction.line,
                    location: program.locations[instruction.location as usize],
                    class: instruction.class,
                    warps: block.warps,
                    lanes,
                    divergent_branches: if is_branch { counters.executed[counter].divergent } else { 0 },
                    waits: counters.waits[counter],
                    machine: MachineCode::of(&instruction.operation),
                    accesses,
                    requests,
                });
            }
        }
        Self { rows, hottest: counters.updates.hottest() }
    }

    /// The memory accesses, summed by source line, kind of instruction, space and array.
    pub fn by_line(&self) -> BTreeMap<(Location, Class, Space, String), Count> {
        let mut sums = BTreeMap::new();
        for row in &self.rows {
            for (space, name, count) in &row.accesses {
                let key = (row.location, row.class, *space, name.clone());
                *sums.entry(key).or_insert_with(Count::default) += *count;
            }
        }
        sums
    }

    /// The memory accesses of a kind in a space.
    pub fn total(&self, class: Class, space: Space) -> Count {
        let mut sum = Count::default();
        for row in self.rows.iter().filter(|row| row.class == class) {
            row.accesses.iter().filter(|(own, ..)| *own == space).for_each(|(.., count)| sum += *count);
        }
        sum
    }

    /// Warp instructions that ran.
    pub fn instructions(&self) -> u64 {
        self.rows.iter().map(|row| row.warps).sum()
    }
}
