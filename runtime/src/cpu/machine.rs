//! This machine's CPU, described by a GPU's attributes.

use std::{fs, num::NonZeroUsize, thread};

use crate::{executor::DeviceAttributes, settings::Settings};

/// Shared memory of a block in bytes, with opt-in, of the GPUs with these compute capabilities. The last row that is
/// not newer than the requested one counts.
const SHARED_MEMORY: &[((u32, u32), u32)] = &[
    ((5, 0), 48 << 10),
    ((7, 0), 96 << 10),
    ((7, 5), 64 << 10),
    ((8, 0), 163 << 10),
    ((8, 6), 99 << 10),
    ((8, 7), 163 << 10),
    ((8, 9), 99 << 10),
    ((9, 0), 227 << 10),
    ((12, 0), 99 << 10),
];

/// Blocks that a cluster can have on every GPU with clusters.
const MAX_BLOCKS_PER_CLUSTER: u32 = 8;

/// How many threads run blocks.
pub(super) fn thread_count(settings: &Settings) -> usize {
    settings.cpu_threads.map_or_else(cores, NonZeroUsize::get)
}

/// How many cores this process may use.
pub(super) fn cores() -> usize {
    thread::available_parallelism().map_or(1, NonZeroUsize::get)
}

/// The limits are a GPU's, so that a launch that is valid here is valid there.
pub(super) fn attributes(settings: &Settings) -> DeviceAttributes {
    let compute_capability = settings.cpu_compute_capability;
    let shared = SHARED_MEMORY.iter().rev().find(|(since, _)| *since <= compute_capability);
    DeviceAttributes {
        id: 0,
        name: name(),
        compute_capability,
        max_threads_per_block: 1024,
        max_block_dim: [1024, 1024, 64],
        max_grid_dim: [i32::MAX as u32, 65535, 65535],
        max_shared_memory_per_block: 48 << 10,
        max_shared_memory_per_block_optin: shared.map_or(48 << 10, |(_, bytes)| *bytes),
        multiprocessor_count: thread_count(settings) as u32,
        max_blocks_per_cluster: if compute_capability.0 >= 9 { MAX_BLOCKS_PER_CLUSTER } else { 0 },
        warp_size: 32,
        total_memory: memory_info().1,
        driver_version: (0, 0),
        pci_bus_id: String::new(),
        uuid: String::new(),
    }
}

/// One of the driver's attributes by its number in `cuda.h`: limits are a GPU's. Programs divide by counts, sizes and rates, so
/// none of them is 0.
pub(super) fn attribute(attributes: &DeviceAttributes, number: u32) -> i32 {
    let DeviceAttributes { compute_capability: (major, minor), max_block_dim, max_grid_dim, .. } = attributes;
    let [block_x, block_y, block_z] = *max_block_dim;
    let [grid_x, grid_y, grid_z] = *max_grid_dim;
    match number {
        // Those of the fields: MAX_THREADS_PER_BLOCK, MAX_BLOCK_DIM_X to MAX_GRID_DIM_Z, MAX_SHARED_MEMORY_PER_BLOCK,
        // WARP_SIZE, MULTIPROCESSOR_COUNT, COMPUTE_CAPABILITY_MAJOR and MINOR, MAX_SHARED_MEMORY_PER_BLOCK_OPTIN
        1 => attributes.max_threads_per_block as i32,
        2 => block_x as i32,
        3 => block_y as i32,
        4 => block_z as i32,
        5 => grid_x as i32,
        6 => grid_y as i32,
        7 => grid_z as i32,
        8 => attributes.max_shared_memory_per_block as i32,
        10 => attributes.warp_size as i32,
        16 => attributes.multiprocessor_count as i32,
        75 => *major as i32,
        76 => *minor as i32,
        97 => attributes.max_shared_memory_per_block_optin as i32,
        // TOTAL_CONSTANT_MEMORY, MAX_REGISTERS_PER_BLOCK, MAX_REGISTERS_PER_MULTIPROCESSOR
        9 | 12 | 82 => 64 << 10,
        // MAX_PITCH
        11 => i32::MAX,
        // CLOCK_RATE
        13 => clock_rate(),
        // TEXTURE_ALIGNMENT, SURFACE_ALIGNMENT
        14 | 30 => 512,
        // TEXTURE_PITCH_ALIGNMENT
        51 => 32,
        // The CPU's capabilities: GPU_OVERLAP, INTEGRATED, CAN_MAP_HOST_MEMORY, CONCURRENT_KERNELS, ASYNC_ENGINE_COUNT,
        // UNIFIED_ADDRESSING, GLOBAL_L1_CACHE_SUPPORTED, LOCAL_L1_CACHE_SUPPORTED, MANAGED_MEMORY,
        // HOST_NATIVE_ATOMIC_SUPPORTED, PAGEABLE_MEMORY_ACCESS, CONCURRENT_MANAGED_ACCESS,
        // COMPUTE_PREEMPTION_SUPPORTED, CAN_USE_HOST_POINTER_FOR_REGISTERED_MEM, COOPERATIVE_LAUNCH,
        // HOST_REGISTER_SUPPORTED, PAGEABLE_MEMORY_ACCESS_USES_HOST_PAGE_TABLES, DIRECT_MANAGED_MEM_ACCESS_FROM_HOST,
        // READ_ONLY_HOST_REGISTER_SUPPORTED, MEM_SYNC_DOMAIN_COUNT
        15 | 18 | 19 | 31 | 40 | 41 | 79 | 80 | 83 | 86 | 88 | 89 | 90 | 91 | 95 | 99 | 100 | 101 | 113 | 126 => 1,
        // LOCALITY_DOMAIN_COUNT, and the cores of one
        149 => 1,
        157 => attributes.multiprocessor_count as i32,
        // CLUSTER_LAUNCH, as a GPU of this compute capability has it
        120 => i32::from(attributes.max_blocks_per_cluster > 0),
        // MEMORY_CLOCK_RATE in kilohertz and GLOBAL_MEMORY_BUS_WIDTH in bits: the system reports them only to root, so
        // these are the values of two channels of DDR4-3200.
        36 => 1_600_000,
        37 => 128,
        // L2_CACHE_SIZE
        38 => cache_bytes(),
        // MAX_THREADS_PER_MULTIPROCESSOR
        39 => 2048,
        // MAX_BLOCKS_PER_MULTIPROCESSOR
        106 => 32,
        // MAX_SHARED_MEMORY_PER_MULTIPROCESSOR: a block's, and the kilobyte that the driver keeps of it
        81 => attributes.max_shared_memory_per_block_optin as i32 + 1024,
        // RESERVED_SHARED_MEMORY_PER_BLOCK
        111 => 1024,
        // SINGLE_TO_DOUBLE_PRECISION_PERF_RATIO: a vector holds half as many doubles.
        87 => 2,
        _ => 0,
    }
}

/// The clock of the first core in kilohertz; a gigahertz if the system does not report it.
fn clock_rate() -> i32 {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let megahertz = field(&info, "cpu MHz").and_then(|text| text.parse::<f64>().ok());
    megahertz.map_or(1_000_000, |megahertz| (megahertz * 1000.0) as i32).max(1)
}

/// Bytes of the last-level cache, the counterpart of a GPU's L2; a mebibyte if the system does not report it.
fn cache_bytes() -> i32 {
    let size = |index| fs::read_to_string(format!("/sys/devices/system/cpu/cpu0/cache/index{index}/size")).ok();
    let kib = |text: String| text.trim().strip_suffix('K')?.parse::<i32>().ok();
    let most = (0..8).map_while(size).filter_map(kib).max().filter(|kib| *kib > 0);
    most.unwrap_or(1 << 10).saturating_mul(1 << 10)
}

/// The CPU's model as the system names it, or its architecture.
fn name() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = field(&info, "model name").filter(|model| !model.is_empty());
    model.map_or_else(|| format!("{} CPU", std::env::consts::ARCH), str::to_owned)
}

/// Free and total memory of the machine in bytes. The whole address space if the system does not report it.
pub(super) fn memory_info() -> (u64, u64) {
    let info = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let bytes = |name| {
        let kib: u64 = field(&info, name)?.strip_suffix("kB")?.trim().parse().ok()?;
        Some(kib << 10)
    };
    let total = bytes("MemTotal").unwrap_or(i64::MAX as u64);
    (bytes("MemAvailable").unwrap_or(total), total)
}

/// The value of the first line `name : value`.
fn field<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.lines().find_map(|line| {
        let (key, value) = line.split_once(':')?;
        (key.trim() == name).then(|| value.trim())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_found() {
        let info = "processor\t: 0\nmodel name\t: AMD EPYC: 9\nprocessor\t: 1\nmodel name\t: other\n";
        assert_eq!(field(info, "model name"), Some("AMD EPYC: 9"));
        assert_eq!(field(info, "model"), None);
    }

    #[test]
    fn shared_memory_follows_the_compute_capability() {
        for (compute_capability, kib) in
            [((5, 0), 48), ((7, 2), 96), ((8, 6), 99), ((9, 0), 227), ((10, 3), 227), ((12, 1), 99)]
        {
            let settings = Settings { cpu_compute_capability: compute_capability, ..Settings::default() };
            assert_eq!(attributes(&settings).max_shared_memory_per_block_optin, kib << 10, "{compute_capability:?}");
        }
    }

    #[test]
    fn nothing_that_programs_divide_by_is_zero() {
        let attributes = attributes(&Settings::default());
        for number in (1..=16).chain([30, 36, 37, 38, 39, 40, 51, 75, 81, 82, 87, 97, 106, 111, 149, 157]) {
            assert!(attribute(&attributes, number) >= 1, "{number}");
        }
    }

    #[test]
    fn this_machine_has_a_name_and_memory() {
        let attributes = attributes(&Settings::default());
        assert!(!attributes.name.is_empty());
        assert!(attributes.total_memory > 1 << 20);
        assert!(attributes.multiprocessor_count >= 1);
    }
}
