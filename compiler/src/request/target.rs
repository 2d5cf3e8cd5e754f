//! What to compile for.

use std::sync::Arc;

/// What to compile for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An NVIDIA SM: `sm_90` is `90`; the suffix is `""`, `"a"` or `"f"`.
    Sm(u32, &'static str),
    /// This machine's CPU.
    Host(Arc<HostCpu>),
}

/// A CPU as LLVM describes it. Whoever makes a request asks [`crate::host_cpu`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCpu {
    /// The system: `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor: `znver5`.
    pub name: String,
    /// What it has and has not: `+avx512f,-amx-tile`.
    pub features: String,
    /// The CPU for which kernels are planned, if that is another one.
    pub planned: Option<PlannedCpu>,
    /// LLVM's optimization level, 0 to 3, if it is not 3.
    pub opt_level: Option<u8>,
}

/// A CPU for which kernels are planned while code is made for another one, which need not have its features: LLVM legalizes wider
/// vectors, and expands masked accesses.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct PlannedCpu {
    /// The processor: `x86-64-v4`.
    pub name: String,
    /// What it has: `+avx512f`.
    pub features: String,
}
