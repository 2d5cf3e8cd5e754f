//! Settings: one row each, read from the environment by the caller.

/// `WEFT_DEVICE`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum DeviceChoice {
    /// The GPU if there is one, else the CPU.
    #[default]
    Auto,
    /// The GPU or an error.
    Cuda,
    /// The CPU.
    Cpu,
}

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Settings {
    /// `WEFT_DEVICE=auto|cuda|cpu`.
    pub device: DeviceChoice,
}
