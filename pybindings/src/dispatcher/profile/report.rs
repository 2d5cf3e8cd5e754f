//! The result of a profile as a dictionary: what was compiled, the instructions with their counts, and what they mean on
//! a GPU.

use std::collections::BTreeMap;

use pyo3::{
    prelude::*,
    types::{PyBytes, PyDict},
};
use weft_compiler::target::{
    gpus::{Gpu, Work},
    occupancy::{Limit, Needs},
};
use weft_runtime::{
    LaunchConfig,
    ptxas::{self, Resources},
};
use weft_simulator::{CallSite, Class, Count, Counts, MachineCode, Module, Request, Row, Space, Stride};

use super::{
    prepare::Prepared,
    run::{SECTOR, Simulated},
};
use crate::devices;

/// The threads of a warp.
const WARP: u32 = 32;
/// The most warps of a block, on all GPUs.
const MAX_WARPS_OF_BLOCK: u32 = 32;

/// A request: the offset of each lane's access, and the bytes of a lane.
type RequestRow = ([Option<u64>; 32], u32);

/// The accesses of an instruction: space, array, the counts in the order of [`Count::NAMES`], whether whole warps have
/// been seen, the distance of lanes in bytes, if it is constant, and the first requests.
type AccessRow = (&'static str, String, [u64; 10], bool, Option<i64>, Vec<RequestRow>);

/// An instruction: file and line of the source, class, warps, lanes, divergent branches, machine instructions
/// in the order of [`MachineCode::NAMES`], what warps ran before a barrier and what they ran less than the slowest, accesses,
/// the calls through which it was inlined.
type InstructionRow = (u32, u32, &'static str, u64, u64, u64, [u64; 7], (u64, u64), Vec<AccessRow>, Vec<CallSite>);

/// An array: name, bytes, whether the kernel reads it, whether it writes it, and an estimate of its distinct bytes that
/// the launch accesses.
type ArrayRow = (String, u64, bool, bool, u64);

/// A launch that was profiled.
pub(super) struct Report<'a, 'py> {
    pub(super) py: Python<'py>,
    pub(super) gpu: &'static Gpu,
    pub(super) config: &'a LaunchConfig,
    pub(super) prepared: &'a Prepared,
    pub(super) simulated: &'a Simulated,
}

impl<'py> Report<'_, 'py> {
    /// The result of [`profile_launch`](super::profile_launch).
    pub(super) fn dict(&self) -> PyResult<Bound<'py, PyDict>> {
        let Self { py, gpu, prepared, simulated, .. } = *self;
        let overload = &prepared.resolved.overload;
        let sample = &simulated.sample;
        let report = PyDict::new(py);
        report.set_item("kernel", &overload.kernel.name)?;
        report.set_item("types", overload.args.iter().map(ToString::to_string).collect::<Vec<_>>())?;
        report.set_item("ptx", &prepared.ptx)?;
        report.set_item("blocks", sample.blocks)?;
        report.set_item("ran", sample.ran)?;
        report.set_item("error", sample.error)?;
        let arrays = self.arrays();
        let memory_bytes = arrays.iter().map(|array| array.4).sum();
        let bounds = gpu.bounds(&Work { memory_bytes, blocks: sample.blocks, ..work(&sample.counts) });
        report.set_item("arrays", arrays)?;
        let rows: Vec<InstructionRow> = sample.counts.rows.iter().map(|one| row(&simulated.module, one)).collect();
        let file = |row: &InstructionRow| Some((row.0, simulated.module.file(row.0)?));
        report.set_item("files", rows.iter().filter_map(file).collect::<BTreeMap<_, _>>())?;
        report.set_item("rows", rows)?;
        report.set_item("counts", Count::NAMES)?;
        report.set_item("machine", MachineCode::NAMES)?;
        let bounds: Vec<(&str, f64)> = bounds.iter().map(|bound| (bound.resource.name(), bound.seconds)).collect();
        report.set_item("bounds", bounds)?;
        report.set_item("gpu", self.gpu_dict()?)?;
        let (cubin, resources) = self.assembled()?.unzip();
        report.set_item("cubin", cubin.map(|bytes| PyBytes::new(py, &bytes)))?;
        report.set_item("occupancy", self.occupancy(resources.as_ref())?)?;
        Ok(report)
    }

    fn gpu_dict(&self) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        dict.set_item("name", self.gpu.name)?;
        dict.set_item("sm", self.gpu.sm)?;
        dict.set_item("multiprocessors", self.gpu.multiprocessors)?;
        dict.set_item("clock_mhz", self.gpu.clock_mhz)?;
        dict.set_item("memory_gb_per_s", self.gpu.memory_gb_per_s)?;
        dict.set_item("rates", rates(self.gpu))?;
        Ok(dict)
    }

    /// Distinct bytes are scaled to the whole grid where blocks were sampled: they are neither more than the array nor
    /// than all sectors that are accessed.
    fn arrays(&self) -> Vec<ArrayRow> {
        let sample = &self.simulated.sample;
        let params = &self.prepared.resolved.overload.kernel.params;
        let access: BTreeMap<&str, (bool, bool)> =
            params.iter().map(|param| (param.name.as_str(), (param.access.reads, param.access.writes))).collect();
        let sectors = |name: &str| -> u64 {
            let accesses = sample.counts.rows.iter().flat_map(|row| &row.accesses);
            accesses.filter(|(_, array, _)| array == name).map(|(.., count)| count.sectors).sum()
        };
        let one = |(name, bytes, touched): &(String, u64, u64)| {
            let (reads, writes) = access.get(name.as_str()).copied().unwrap_or((true, true));
            let scaled = (touched * SECTOR) as f64 * sample.blocks as f64 / sample.ran as f64;
            let most = (*bytes).min(sectors(name) * SECTOR).max(touched * SECTOR);
            (name.clone(), *bytes, reads, writes, (scaled as u64).min(most).min(*bytes))
        };
        let position = |row: &ArrayRow| {
            let first = row.0.split(", ").next().unwrap_or_default();
            params.iter().position(|param| param.name == first).unwrap_or(usize::MAX)
        };
        let mut rows: Vec<ArrayRow> = self.simulated.touched(&self.prepared.arrays).iter().map(one).collect();
        rows.sort_by_key(position);
        rows
    }

    /// The machine code of the kernel and its resources, if `ptxas` is on the PATH.
    fn assembled(&self) -> PyResult<Option<(Vec<u8>, Resources)>> {
        let path = std::env::var_os("PATH");
        let Some(file) = devices::toolkit(self.py)?.ptxas(path.as_deref()) else { return Ok(None) };
        let (ptx, sm) = (self.prepared.ptx.as_bytes(), self.gpu.sm);
        let Ok((cubin, found)) = self.py.detach(|| ptxas::assemble_and_report(&file, ptx, sm)) else {
            return Ok(None);
        };
        let symbol = &self.prepared.resolved.overload.kernel.symbol;
        Ok(found.into_iter().find(|found| found.symbol == *symbol).map(|own| (cubin, own)))
    }

    /// Registers, shared memory, and the resident warps of a multiprocessor.
    fn occupancy(&self, assembled: Option<&Resources>) -> PyResult<Bound<'py, PyDict>> {
        let dict = PyDict::new(self.py);
        let kernel = &self.prepared.resolved.overload.kernel;
        let Some(sm) = self.gpu.target() else { return Ok(dict) };
        let estimate = self.simulated.module.registers(&kernel.symbol, sm.max_warps);
        let registers = assembled.map(|found| found.registers).or(estimate.map(|found| found.count));
        let Some(registers) = registers else { return Ok(dict) };
        let shared = kernel.shared_bytes + u64::from(self.config.shared_bytes);
        let needs = Needs::new(registers, shared, self.config.block.iter().product());
        let occupancy = sm.occupancy(needs);
        dict.set_item("registers", registers)?;
        dict.set_item("registers_are_estimated", assembled.is_none())?;
        dict.set_item("spilled_bytes", assembled.and_then(|found| found.spills).map(|(stored, _)| stored))?;
        dict.set_item("shared_bytes", shared)?;
        dict.set_item("blocks", occupancy.blocks)?;
        dict.set_item("warps", occupancy.warps)?;
        dict.set_item("max_warps", occupancy.max_warps)?;
        dict.set_item("limits", occupancy.limits().map(Limit::name).collect::<Vec<_>>())?;
        dict.set_item("text", occupancy.to_string())?;
        let by_block = (1..=MAX_WARPS_OF_BLOCK).map(|warps| {
            let threads = WARP * warps;
            (threads, sm.occupancy(Needs::new(registers, shared, threads)).warps)
        });
        dict.set_item("by_block", by_block.collect::<Vec<_>>())?;
        dict.set_item("advice", sm.advice(needs).map(|advice| advice.to_string()))?;
        Ok(dict)
    }
}

/// What the GPU does in a second, by resource: bytes of device memory, sectors that L2 and L1 deliver, wavefronts of shared memory,
/// operations, instructions of warps.
fn rates(gpu: &Gpu) -> Vec<(&'static str, f64)> {
    // Large enough for all multiprocessors.
    const MUCH: u64 = 1 << 40;
    let work = Work {
        memory_bytes: MUCH,
        sectors: MUCH,
        l2_loads: MUCH,
        l2_atomics: MUCH,
        wavefronts: MUCH,
        float32: MUCH,
        float64: MUCH,
        integer: MUCH,
        special: MUCH,
        warp_instructions: MUCH,
        blocks: MUCH,
        ..Work::default()
    };
    gpu.bounds(&work).iter().map(|bound| (bound.resource.name(), MUCH as f64 / bound.seconds)).collect()
}

/// What a launch does, for the bounds of its time.
fn work(counts: &Counts) -> Work {
    let mut work = Work { atomic_clocks: counts.hottest.clocks(), ..Work::default() };
    for row in &counts.rows {
        // A unit is busy with an instruction for all lanes of a warp, active or not.
        let lanes = 32 * row.warps;
        let MachineCode { float32, float64, special, issued } = row.machine;
        work.float32 += float32.iter().sum::<u64>() * lanes;
        work.float64 += float64.iter().sum::<u64>() * lanes;
        work.special += special * lanes;
        match row.class {
            // `ptxas` removes most of them.
            Class::Move => continue,
            Class::Int16 | Class::Int32 => work.integer += lanes,
            Class::Int64 => work.integer += 2 * lanes,
            Class::Float16
            | Class::Float32Add
            | Class::Float32Mul
            | Class::Float32Fma
            | Class::Float32Other
            | Class::Float64Add
            | Class::Float64Mul
            | Class::Float64Fma
            | Class::Float64Other
            | Class::Load
            | Class::Store
            | Class::Atomic
            | Class::Collective
            | Class::Matrix
            | Class::Barrier
            | Class::Control
            | Class::Other => {}
        }
        work.warp_instructions += issued.max(1) * row.warps;
        for (space, _, count) in &row.accesses {
            match space {
                Space::Global | Space::Generic => {
                    work.sectors += count.sectors;
                    let sectors = if row.class == Class::Store {
                        &mut work.l2_stores
                    } else if row.class == Class::Atomic {
                        &mut work.l2_atomics
                    } else {
                        &mut work.l2_loads
                    };
                    *sectors += count.l2_sectors;
                }
                Space::Shared => work.wavefronts += count.wavefronts,
                Space::Local | Space::Const | Space::Param => {}
            }
        }
    }
    work
}

fn row(module: &Module, row: &Row) -> InstructionRow {
    let access = |((space, array, count), requests): (&(Space, String, Count), &Vec<Request>)| {
        let (seen, stride) = match count.stride {
            Stride::Unknown => (false, None),
            Stride::Constant(stride) => (true, Some(stride)),
            Stride::Varying => (true, None),
        };
        let requests = requests.iter().map(|request| (request.offsets, request.size)).collect();
        (space.name(), array.clone(), count.values(), seen, stride, requests)
    };
    (
        row.location.file,
        row.location.line,
        row.class.name(),
        row.warps,
        row.lanes,
        row.divergent_branches,
        row.machine.values().map(|count| count * row.lanes),
        (row.waits.instructions, row.waits.missing),
        row.accesses.iter().zip(&row.requests).map(access).collect(),
        module.calls(row.location).to_vec(),
    )
}
