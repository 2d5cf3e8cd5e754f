//! The inputs of the machine code that a GPU's driver generates. A cache identifies machine code by them.

/// Everything that a linker's machine code depends on.
#[derive(Clone, Copy, Debug)]
pub struct MachineCode<'a> {
    /// The compute capability of the device that it is for.
    pub compute_capability: (u32, u32),
    /// The identity of the driver, whose compiler and linker generate the code.
    pub driver: &'a str,
    /// The most registers per thread, if the linker is limited.
    pub max_registers: Option<u32>,
    /// The pieces that are linked, in order: the kind of each, as a file extension, and its bytes.
    pub inputs: &'a [(&'a str, &'a [u8])],
}
