//! What machine code is made of that a GPU's driver makes: all that it depends on, so that whoever keeps it can tell what it
//! is for.

/// Everything that a linker's machine code depends on.
#[derive(Clone, Copy, Debug)]
pub struct MachineCode<'a> {
    /// The compute capability of the device that it is for.
    pub compute_capability: (u32, u32),
    /// The driver whose compiler and linker make it: which of all drivers it is.
    pub driver: &'a str,
    /// The most registers that a thread may use, where the linker is told so.
    pub max_registers: Option<u32>,
    /// What is linked, in order: the kind of each piece, as the extension of a file, and its bytes.
    pub inputs: &'a [(&'a str, &'a [u8])],
}
