//! Compilation targets.

use std::sync::Arc;

/// A compilation target.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An NVIDIA SM: `sm_90` is `90`; the suffix is `""`, `"a"` or `"f"`.
    Sm(u32, &'static str),
    /// A CPU, by default this machine's.
    Host(Arc<HostCpu>),
}

/// A CPU as LLVM describes it. [`crate::host_cpu`] returns that of this machine.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCpu {
    /// The target triple: `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor: `znver5`.
    pub name: String,
    /// Enabled and disabled features: `+avx512f,-amx-tile`.
    pub features: String,
    /// The CPU that decisions are based on, if it differs.
    pub planned: Option<PlannedCpu>,
    /// LLVM's optimization level, 0 to 3, if it is not 3.
    pub opt_level: Option<u8>,
    /// Passes of the planner that do not run.
    pub skipped_passes: Vec<String>,
}

/// The CPU that vectorization decisions are based on if code is generated for another CPU, which may lack its features:
/// LLVM then splits wide vectors and expands masked accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlannedCpu {
    /// The processor: `x86-64-v4`.
    pub name: String,
    /// Enabled features: `+avx512f`.
    pub features: String,
}
