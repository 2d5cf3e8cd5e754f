//! The limits that a launch must keep, checked alike and with the same words on every executor.

use std::sync::atomic::{AtomicU64, Ordering};

use weft_artifact::Factors;

use crate::{
    error::{Error, ErrorKind},
    executor::{DeviceAttributes, LaunchConfig},
};

/// The requirements and limits of one kernel.
#[derive(Clone, Debug)]
pub(crate) struct KernelLimits {
    /// The Python function's name.
    pub(crate) name: String,
    /// Static shared memory of a block in bytes.
    pub(crate) shared_bytes: u32,
    /// Threads a block can have with this kernel, as the program sees it.
    pub(crate) max_threads_per_block: u32,
    /// Registers a thread; 0 where that means nothing.
    pub(crate) registers: u32,
    /// How many threads and blocks are one of the device's.
    pub(crate) factors: Factors,
    /// How many cells a launch passes: one a slot, or more where a slot is longer than eight bytes.
    pub(crate) cells: usize,
}

impl KernelLimits {
    /// The device's configuration for a checked launch: blocks and their threads divided by the factors.
    #[inline]
    pub(crate) fn on_device(&self, config: &LaunchConfig) -> LaunchConfig {
        if self.factors == Factors::NONE {
            return *config;
        }
        let divided = self.factors.divide(config.grid, config.block);
        let (grid, block) = divided.expect("the launch was checked");
        // A launch with clusters is not divided.
        LaunchConfig { grid, block, ..*config }
    }

    /// Whether a launch can be divided so.
    #[inline]
    fn divides(&self, config: &LaunchConfig) -> bool {
        self.factors == Factors::NONE || self.factors.divide(config.grid, config.block).is_some()
    }
}

/// The shape of a kernel's last launch on a device: threads of a block, and bytes of dynamic shared memory.
#[derive(Debug, Default)]
pub(crate) struct LastLaunch(AtomicU64);

impl LastLaunch {
    /// Notes a launch, which has at least one thread.
    #[inline]
    pub(crate) fn set(&self, config: &LaunchConfig) {
        let threads = config.block.iter().fold(1, |all: u32, extent| all.wrapping_mul(*extent));
        self.0.store((u64::from(threads) << 32) | u64::from(config.shared_bytes), Ordering::Relaxed);
    }

    /// The last one, if there was one.
    pub(crate) fn get(&self) -> Option<(u32, u32)> {
        let both = self.0.load(Ordering::Relaxed);
        (both != 0).then_some(((both >> 32) as u32, both as u32))
    }
}

/// Checks a launch. The way through for a good one is a dozen comparisons.
pub(crate) fn check(
    config: &LaunchConfig,
    n_cells: usize,
    device: &DeviceAttributes,
    kernel: &KernelLimits,
) -> Result<(), Error> {
    let fits = |extent: &[u32; 3], most: &[u32; 3]| {
        extent.iter().zip(most).all(|(&extent, &most)| extent.wrapping_sub(1) < most)
    };
    if fits(&config.block, &device.max_block_dim)
        && fits(&config.grid, &device.max_grid_dim)
        && threads(config) <= kernel.max_threads_per_block.min(device.max_threads_per_block) as u64
        && shared(config, kernel) <= device.max_shared_memory_per_block_optin as u64
        && n_cells == kernel.cells
        && kernel.divides(config)
        && (!config.has_clusters() || clusters(config, device).is_ok())
    {
        return Ok(());
    }
    Err(explain(config, n_cells, device, kernel))
}

/// The driver's error for a launch beyond the limits of the device, or of the kernel's launch bounds.
const INVALID_VALUE: u32 = 1;
/// The driver's error for a launch for which there are not enough registers.
pub(crate) const OUT_OF_RESOURCES: u32 = 701;
/// The registers of a block on every GPU that weft makes code for.
const BLOCK_REGISTERS: u64 = 65536;

/// Threads of a block. Extents are at most 32 bits each, so a product of three that were checked fits.
fn threads(config: &LaunchConfig) -> u64 {
    config.block.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent as u64))
}

/// Static and dynamic shared memory of a block in bytes.
fn shared(config: &LaunchConfig, kernel: &KernelLimits) -> u64 {
    kernel.shared_bytes as u64 + config.shared_bytes as u64
}

/// Whether the device has the clusters of a launch, and the grid is of whole ones.
///
/// # Errors
///
/// A sentence that says why not.
#[cold]
pub fn clusters(config: &LaunchConfig, device: &DeviceAttributes) -> Result<(), String> {
    let DeviceAttributes { name, max_blocks_per_cluster: most, compute_capability: (major, minor), .. } = device;
    let shown = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    let cluster = shown(config.cluster);
    if config.cluster.contains(&0) {
        return Err(format!("cluster {cluster} has no blocks"));
    }
    if *most == 0 {
        return Err(format!(
            "cluster {cluster}: {name} has the compute capability {major}.{minor}, and clusters need 9.0 or higher"
        ));
    }
    let blocks = config.cluster.iter().fold(1, |product: u64, &extent| product.saturating_mul(extent as u64));
    if blocks > *most as u64 {
        return Err(format!("cluster {cluster} has {blocks} blocks; {name} allows {most}"));
    }
    if config.grid.iter().zip(&config.cluster).any(|(grid, cluster)| grid % cluster != 0) {
        let grid = shown(config.grid);
        return Err(format!("grid {grid} is not divisible into clusters {cluster}: make each dimension a multiple"));
    }
    Ok(())
}

/// Which limit a launch breaks.
#[cold]
fn explain(config: &LaunchConfig, n_cells: usize, device: &DeviceAttributes, kernel: &KernelLimits) -> Error {
    let KernelLimits { name, shared_bytes, max_threads_per_block, registers, cells, factors } = kernel;
    let device_name = &device.name;
    let refused = |code, message| Error { driver_code: Some(code), ..Error::new(ErrorKind::Launch, message) };
    let launch = |message: String| refused(INVALID_VALUE, message);
    let shown = |[x, y, z]: [u32; 3]| format!("({x}, {y}, {z})");
    let threads = threads(config);

    for (what, extent, none) in [("grid", config.grid, "blocks"), ("block", config.block, "threads")] {
        if extent.contains(&0) {
            return launch(format!("cannot launch `{name}`: {what} {} has no {none}", shown(extent)));
        }
    }
    if threads > device.max_threads_per_block as u64 {
        return launch(format!(
            "cannot launch `{name}`: block {} has {threads} threads; {device_name} allows {} per block",
            shown(config.block),
            device.max_threads_per_block
        ));
    }
    for (what, extent, most) in
        [("block", config.block, device.max_block_dim), ("grid", config.grid, device.max_grid_dim)]
    {
        for ((axis, value), most) in ["x", "y", "z"].into_iter().zip(extent).zip(most) {
            if value > most {
                return launch(format!(
                    "cannot launch `{name}`: {what} {} has {value} in {axis}; {device_name} allows {most}",
                    shown(extent)
                ));
            }
        }
    }
    if threads > *max_threads_per_block as u64 {
        let lacks_registers = threads * u64::from(*registers) > BLOCK_REGISTERS;
        let why = if lacks_registers {
            format!(", with {registers} registers per thread")
        } else {
            ", by its `launch_bounds`".to_owned()
        };
        let message = format!(
            "cannot launch `{name}`: block {} has {threads} threads; this kernel allows {max_threads_per_block} per \
             block on {device_name}{why}",
            shown(config.block)
        );
        return refused(if lacks_registers { OUT_OF_RESOURCES } else { INVALID_VALUE }, message);
    }
    let shared = shared(config, kernel);
    if shared > device.max_shared_memory_per_block_optin as u64 {
        return launch(format!(
            "cannot launch `{name}`: it needs {shared} bytes of shared memory per block ({shared_bytes} static and {} \
             dynamic); {device_name} allows {}",
            config.shared_bytes, device.max_shared_memory_per_block_optin
        ));
    }
    if config.has_clusters()
        && let Err(why) = clusters(config, device)
    {
        return launch(format!("cannot launch `{name}`: {why}"));
    }
    if !kernel.divides(config) {
        let (grid, block) = (shown(config.grid), shown(config.block));
        let message = format!(
            "cannot launch `{name}`: it is compiled with {factors}, which does not divide grid {grid} and block {block}"
        );
        return Error::new(ErrorKind::Internal, message);
    }
    Error::new(ErrorKind::Internal, format!("a launch of `{name}` passes {n_cells} cells; the kernel takes {cells}"))
}
