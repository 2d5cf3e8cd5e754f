//! GPUs by name, and the shortest time in which one can do given work: the roofline of a report.
//!
//! Multiprocessors, clocks, bandwidth and L2 are those of NVIDIA's data sheets and architecture white papers, at the
//! boost clock. Rates are those of the CUDA C++ programming guide, "Throughput of Native Arithmetic Instructions":
//! results per clock of a multiprocessor. Where the guide lacks a compute capability or sources differ, the row has the
//! higher rate, so that times remain lower bounds. A card that exceeds its boost clock is faster by as much.

use std::fmt;

use super::Sm;

/// Warp instructions that a multiprocessor issues per clock: one in each of four partitions.
const ISSUED: f64 = 4.0;
/// Sectors that L1 delivers per clock: 128 bytes.
const L1_SECTORS: f64 = 4.0;
/// Sectors that L2 delivers to a multiprocessor per clock, and those that it takes. An H200 reaches 0.88 and 0.49.
const L2_LOADS: f64 = 1.0;
const L2_STORES: f64 = 0.5;
/// Sectors that atomics update, per clock and multiprocessor. An H200 reaches 0.37, with sums of integers and of float32.
const L2_ATOMICS: f64 = 0.4;

/// Results per clock of a multiprocessor.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rates {
    /// Sums, products and fused multiply-adds of float32.
    pub float32: u32,
    /// Sums, products and fused multiply-adds of float64.
    pub float64: u32,
    /// Sums, comparisons, shifts and logical operations of 32-bit integers.
    pub integer: u32,
    /// Approximate functions of float32: reciprocals, roots, exponentials, logarithms, sines.
    pub special: u32,
}

/// A GPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gpu {
    /// `h100`.
    pub name: &'static str,
    /// `sm_90`.
    pub sm: &'static str,
    /// The number of multiprocessors.
    pub multiprocessors: u32,
    /// The boost clock in MHz.
    pub clock_mhz: u32,
    /// The bandwidth of device memory in GB/s.
    pub memory_gb_per_s: u32,
    /// The size of L2 in KiB.
    pub l2_kib: u32,
    /// Results per clock of a multiprocessor.
    pub rates: Rates,
}

const fn rates([float32, float64, integer, special]: [u32; 4]) -> Rates {
    Rates { float32, float64, integer, special }
}

const R75: Rates = rates([64, 2, 64, 16]);
const R80: Rates = rates([64, 32, 64, 16]);
/// 8.6, 8.7 and 8.9.
const R86: Rates = rates([128, 2, 64, 16]);
const R90: Rates = rates([128, 64, 64, 16]);
const R100: Rates = rates([128, 64, 128, 16]);
const R120: Rates = rates([128, 2, 128, 16]);

/// A row of the table.
const fn gpu(
    name: &'static str,
    sm: &'static str,
    rates: Rates,
    [multiprocessors, clock_mhz, memory_gb_per_s, l2_kib]: [u32; 4],
) -> Gpu {
    Gpu { name, sm, multiprocessors, clock_mhz, memory_gb_per_s, l2_kib, rates }
}

/// Every GPU that has a name: multiprocessors, MHz, GB/s, KiB of L2.
#[rustfmt::skip]
pub const GPUS: &[Gpu] = &[
    gpu("t4",               "sm_75",  R75,  [ 40, 1590,  320,   4096]),
    gpu("rtx2080ti",        "sm_75",  R75,  [ 68, 1545,  616,   5632]),
    gpu("a100",             "sm_80",  R80,  [108, 1410, 2039,  40960]),
    gpu("a100-40gb",        "sm_80",  R80,  [108, 1410, 1555,  40960]),
    gpu("a30",              "sm_80",  R80,  [ 56, 1440,  933,  24576]),
    gpu("a10",              "sm_86",  R86,  [ 72, 1695,  600,   6144]),
    gpu("a10g",             "sm_86",  R86,  [ 80, 1710,  600,   6144]),
    gpu("a40",              "sm_86",  R86,  [ 84, 1740,  696,   6144]),
    gpu("rtx3080",          "sm_86",  R86,  [ 68, 1710,  760,   5120]),
    gpu("rtx3090",          "sm_86",  R86,  [ 82, 1695,  936,   6144]),
    gpu("jetson-agx-orin",  "sm_87",  R86,  [ 16, 1300,  205,   4096]),
    gpu("jetson-orin-nano", "sm_87",  R86,  [  8, 1020,  102,   2048]),
    gpu("l4",               "sm_89",  R86,  [ 58, 2040,  300,  49152]),
    gpu("l40s",             "sm_89",  R86,  [142, 2520,  864,  98304]),
    gpu("rtx4080",          "sm_89",  R86,  [ 76, 2505,  717,  65536]),
    gpu("rtx4090",          "sm_89",  R86,  [128, 2520, 1008,  73728]),
    gpu("h100",             "sm_90",  R90,  [132, 1980, 3350,  51200]),
    gpu("h100-pcie",        "sm_90",  R90,  [114, 1755, 2039,  51200]),
    gpu("h200",             "sm_90",  R90,  [132, 1980, 4800,  51200]),
    gpu("b200",             "sm_100", R100, [148, 1965, 8000, 129_024]),
    gpu("rtx5080",          "sm_120", R120, [ 84, 2617,  960,  65536]),
    gpu("rtx5090",          "sm_120", R120, [170, 2407, 1792,  98304]),
];

/// The error for an unknown name of a GPU. Its message lists the names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownGpu {
    /// The requested name.
    pub name: String,
}

impl fmt::Display for UnknownGpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let names: Vec<&str> = GPUS.iter().map(|gpu| gpu.name).collect();
        write!(f, "there is no GPU `{}`; the names are {}", self.name, names.join(", "))
    }
}

impl std::error::Error for UnknownGpu {}

/// What a kernel does, on the whole GPU. Operations are machine instructions times active lanes.
///
/// Counts of PTX are near these: `ptxas` combines integer operations, and expands divisions and 64-bit integers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Work {
    /// Bytes of device memory: each byte that is read or written, once.
    pub memory_bytes: u64,
    /// Sectors of 32 bytes that L1 delivers.
    pub sectors: u64,
    /// Sectors that L2 delivers.
    pub l2_loads: u64,
    /// Sectors of stores.
    pub l2_stores: u64,
    /// Sectors that atomics update.
    pub l2_atomics: u64,
    /// Clocks for which L2 is busy with atomics of one sector.
    pub atomic_clocks: f64,
    /// Wavefronts of shared memory.
    pub wavefronts: u64,
    /// Sums, products and fused multiply-adds of float32.
    pub float32: u64,
    /// Sums, products and fused multiply-adds of float64.
    pub float64: u64,
    /// Operations of 32-bit integers.
    pub integer: u64,
    /// Approximate functions of float32.
    pub special: u64,
    /// Instructions of warps.
    pub warp_instructions: u64,
    /// Blocks of the grid: each is on one multiprocessor.
    pub blocks: u64,
}

/// A resource of a GPU that work occupies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resource {
    /// Device memory.
    Memory,
    /// L2.
    L2,
    /// The units of L2 for atomics.
    Atomics,
    /// L1.
    L1,
    /// Shared memory.
    SharedMemory,
    /// The units for float32.
    Float32,
    /// The units for float64.
    Float64,
    /// The units for integers.
    Integer,
    /// The units for approximate functions.
    Special,
    /// The schedulers, which issue instructions.
    Issue,
}

impl Resource {
    /// The name in reports.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Memory => "device memory",
            Self::L2 => "L2",
            Self::Atomics => "atomics",
            Self::L1 => "L1",
            Self::SharedMemory => "shared memory",
            Self::Float32 => "float32",
            Self::Float64 => "float64",
            Self::Integer => "integers",
            Self::Special => "approximate functions",
            Self::Issue => "instruction issue",
        }
    }
}

/// The time for which work occupies a resource at least.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bound {
    /// The resource.
    pub resource: Resource,
    /// The time in seconds.
    pub seconds: f64,
}

impl Gpu {
    /// The GPU of a name. Case, blanks, hyphens and underscores do not matter: `RTX 4090`.
    ///
    /// # Errors
    ///
    /// [`UnknownGpu`], whose message lists the names.
    pub fn parse(name: &str) -> Result<&'static Self, UnknownGpu> {
        let plain = |name: &str| name.to_lowercase().replace([' ', '-', '_'], "");
        let found = GPUS.iter().find(|gpu| plain(gpu.name) == plain(name));
        found.ok_or_else(|| UnknownGpu { name: name.to_owned() })
    }

    /// The row of its SM.
    pub fn target(&self) -> Option<&'static Sm> {
        Sm::parse(self.sm).ok()
    }

    /// The times for which work occupies each resource at least, the longest first. A kernel takes at least the
    /// longest: all multiprocessors that have a block share the work evenly, and each
    /// resource is busy all the time.
    pub fn bounds(&self, work: &Work) -> [Bound; 10] {
        let clock = f64::from(self.clock_mhz) * 1e6;
        let all = f64::from(self.multiprocessors);
        let clocks = all.min(work.blocks as f64) * clock;
        let on_chip =
            |resource, count: u64, per_clock: f64| Bound { resource, seconds: count as f64 / per_clock / clocks };
        let Rates { float32, float64, integer, special } = self.rates;
        let memory = work.memory_bytes as f64 / (f64::from(self.memory_gb_per_s) * 1e9);
        let mut bounds = [
            Bound { resource: Resource::Memory, seconds: memory },
            Bound {
                resource: Resource::L2,
                seconds: (work.l2_loads as f64 / L2_LOADS + work.l2_stores as f64 / L2_STORES) / (all * clock),
            },
            Bound {
                resource: Resource::Atomics,
                seconds: (work.l2_atomics as f64 / L2_ATOMICS / all).max(work.atomic_clocks) / clock,
            },
            on_chip(Resource::L1, work.sectors, L1_SECTORS),
            on_chip(Resource::SharedMemory, work.wavefronts, 1.0),
            on_chip(Resource::Float32, work.float32, f64::from(float32)),
            on_chip(Resource::Float64, work.float64, f64::from(float64)),
            on_chip(Resource::Integer, work.integer, f64::from(integer)),
            on_chip(Resource::Special, work.special, f64::from(special)),
            on_chip(Resource::Issue, work.warp_instructions, ISSUED),
        ];
        bounds.sort_by(|a, b| b.seconds.total_cmp(&a.seconds));
        bounds
    }

    /// The peak rate of float32 in operations per second, with a fused multiply-add as two.
    pub fn float32_peak(&self) -> f64 {
        2.0 * f64::from(self.rates.float32) * f64::from(self.multiprocessors) * f64::from(self.clock_mhz) * 1e6
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_found() {
        for gpu in GPUS {
            assert_eq!(Gpu::parse(gpu.name), Ok(gpu));
            let sm = gpu.target().expect("an SM of the table");
            // A multiprocessor issues 128 lanes per clock.
            assert!(gpu.rates.float32 <= 128 && gpu.rates.integer <= 128, "{}", gpu.name);
            assert!(sm.suffix.is_empty());
        }
        assert_eq!(Gpu::parse("RTX 4090").map(|gpu| gpu.name), Ok("rtx4090"));
        assert_eq!(Gpu::parse("Jetson_AGX_Orin").map(|gpu| gpu.sm), Ok("sm_87"));
        let message = Gpu::parse("v100").expect_err("weft has no code for it").to_string();
        assert!(message.starts_with("there is no GPU `v100`; the names are t4, "), "{message}");
    }

    /// The peaks of NVIDIA's data sheets in teraflops.
    #[test]
    fn rows_agree_with_the_peaks_of_data_sheets() {
        let peaks = [
            ("t4", 8.1),
            ("a100", 19.5),
            ("a30", 10.3),
            ("a10", 31.2),
            ("a40", 37.4),
            ("rtx3080", 29.8),
            ("rtx3090", 35.6),
            ("jetson-agx-orin", 5.3),
            ("l4", 30.3),
            ("l40s", 91.6),
            ("rtx4080", 48.7),
            ("rtx4090", 82.6),
            ("h100", 67.0),
            ("h100-pcie", 51.0),
            ("h200", 67.0),
            ("rtx5080", 56.3),
            ("rtx5090", 104.8),
        ];
        for (name, peak) in peaks {
            let found = Gpu::parse(name).expect("a row").float32_peak() / 1e12;
            assert!((found / peak - 1.0).abs() < 0.01, "{name}: {found}, {peak}");
        }
    }

    #[test]
    fn the_longest_time_is_first() {
        let gpu = Gpu::parse("h200").expect("a row");
        // 4.8 GB take a millisecond; a clock of all multiprocessors 132 times 1.98 GHz.
        let work = Work { memory_bytes: 4_800_000_000, float64: 64 * 132 * 1_980_000, blocks: 1000, ..Work::default() };
        let bounds = gpu.bounds(&work);
        assert!(bounds.windows(2).all(|pair| pair[0].seconds >= pair[1].seconds));
        assert!((bounds[0].seconds - 1e-3).abs() < 1e-9 && (bounds[1].seconds - 1e-3).abs() < 1e-9);
        let work =
            Work { wavefronts: 132 * 1_980_000_000, sectors: 132 * 1_980_000_000, blocks: 132, ..Work::default() };
        let [first, second, ..] = gpu.bounds(&work);
        assert_eq!((first.resource, second.resource), (Resource::SharedMemory, Resource::L1));
        assert!((first.seconds - 1.0).abs() < 1e-9 && (second.seconds - 0.25).abs() < 1e-9);
        // One block is on one multiprocessor.
        let [first, ..] = gpu.bounds(&Work { blocks: 1, ..work });
        assert!((first.seconds - 132.0).abs() < 1e-9);
        let work = Work { l2_atomics: 10, atomic_clocks: 1.98e9, l2_stores: 132, blocks: 1, ..Work::default() };
        let [first, second, ..] = gpu.bounds(&work);
        assert_eq!((first.resource, second.resource), (Resource::Atomics, Resource::L2));
        assert!((first.seconds - 1.0).abs() < 1e-9 && (second.seconds * 1.98e9 - 2.0).abs() < 1e-9);
    }
}
