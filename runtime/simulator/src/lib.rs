//! Runs the PTX of weft's kernels on the CPU, and counts what a GPU would do: requests, sectors, wavefronts,
//! operations.
//!
//! 32 lanes run in lockstep and converge at immediate post-dominators. The counts follow rules that equal the counters
//! of compute capability 9.0. A form of PTX that is not known is an error; nothing is skipped.
//!
//! ```
//! let ptx = "
//! .visible .entry twice(.param .u64 .ptr .global .align 4 twice_param_0) {
//!     .reg .b32 %r<3>;
//!     .reg .b64 %rd<4>;
//!     ld.param.b64 %rd1, [twice_param_0];
//!     mov.u32 %r1, %tid.x;
//!     mul.wide.u32 %rd2, %r1, 4;
//!     add.s64 %rd3, %rd1, %rd2;
//!     ld.global.b32 %r2, [%rd3];
//!     shl.b32 %r2, %r2, 1;
//!     st.global.b32 [%rd3], %r2;
//!     ret;
//! }";
//! let module = weft_simulator::Module::parse(ptx)?;
//! let mut memory = module.memory();
//! let x = memory.add("x", &[1, 0, 0, 0].repeat(64));
//! let mut launch = weft_simulator::Launch::new([1, 1, 1], [64, 1, 1]);
//! launch.params = vec![x.to_le_bytes().to_vec()];
//! let counts = module.launch("twice", &launch, &memory)?;
//! assert_eq!(memory.region(x).unwrap().bytes()[252..], [2, 0, 0, 0]);
//! let loads = counts.total(weft_simulator::Class::Load, weft_simulator::Space::Global);
//! assert_eq!((loads.requests, loads.sectors), (2, 8));
//! # Ok::<(), weft_simulator::Error>(())
//! ```

mod count;
mod decode;
mod error;
mod execute;
mod launch;
mod memory;
mod parse;
mod registers;

pub use count::{Class, Count, Counts, MachineCode, Request, Row, SectorAtomics, Stride, Waits};
pub use decode::Location;
pub use error::Error;
pub use launch::{Launch, Sample, Totals};
pub use memory::{Memory, Region};
pub use parse::{CallSite, Space};
pub use registers::Registers;

/// A parameter of a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Its bytes.
    pub size: u32,
    /// The PTX says that it is an address.
    pub is_pointer: bool,
}

/// A module of PTX.
#[derive(Debug)]
pub struct Module {
    program: decode::Program,
}

impl Module {
    /// Parses and decodes PTX.
    pub fn parse(ptx: &str) -> Result<Self, Error> {
        Ok(Self { program: decode::decode(parse::parse(ptx)?)? })
    }

    /// The names of the kernels, and their parameters.
    pub fn kernels(&self) -> impl Iterator<Item = (&str, Vec<Param>)> {
        let kernels = self.program.functions.iter().filter(|function| function.is_kernel);
        kernels.map(|function| {
            let param = |slot: &decode::Slot| Param { size: slot.size, is_pointer: slot.is_pointer };
            (function.name.as_str(), function.params.iter().map(param).collect())
        })
    }

    /// The line of the source code of an instruction, by its line of the PTX: that of an [`Error`].
    pub fn location(&self, line: u32) -> Option<Location> {
        let mut instructions = self.program.functions.iter().flat_map(|function| &function.instructions);
        let found = instructions.find(|instruction| instruction.line == line)?;
        Some(self.program.locations[found.location as usize])
    }

    /// The source file with a number of [`Location`].
    pub fn file(&self, number: u32) -> Option<&str> {
        self.program.files.get(&number).map(String::as_str)
    }

    /// The calls through which the code of a location was inlined, the inner one first, by file and line. None of code
    /// that was not inlined, or whose calls LLVM has lost.
    pub fn calls(&self, location: Location) -> &[CallSite] {
        self.program.calls.get(&location.column).map_or(&[], Vec::as_slice)
    }

    /// Memory that holds the variables of the module, and a workspace for grid barriers.
    pub fn memory(&self) -> Memory {
        let mut memory = Memory::new();
        for variable in &self.program.variables {
            memory.add_at(&variable.name, variable.base, &variable.bytes);
        }
        memory.add(launch::WORKSPACE, &[0; 64]);
        memory
    }
}
