//! The requirements of PTX instructions: the SMs that have them, and the PTX ISA.
//!
//! The back end queries whether an SM has an instruction, and otherwise generates other code. For a program's own PTX,
//! it finds the requirements of the kernel. The requirements are listed in `needs/table.txt`.

mod ptx;
mod table;

use std::fmt;

use self::table::Version;
use super::Sm;

/// `redux.sync`: a reduction over the lanes of a warp.
pub const REDUX: &str = "redux.sync";
/// `atom.add` of a bfloat16.
pub const BFLOAT_ATOMIC_ADD: &str = "atom.add.noftz.bf16";
/// Fused multiply-add of bfloat16.
pub const BFLOAT_FMA: &str = "fma.rn.bf16";
/// Conversion of integers to bfloat16.
pub const BFLOAT_OF_INTEGERS: &str = "cvt.rn.bf16.s32";

/// The highest ISA that LLVM 22 writes.
pub const HIGHEST_ISA: (u32, u32) = (9, 0);

/// Whether an SM has an instruction, for any operands.
pub fn has(sm: u32, instruction: &str) -> bool {
    lowest_isa(instruction, sm, "").is_some()
}

/// The lowest PTX ISA that has all instructions of a PTX text on an SM; `None` if the SM lacks one.
pub fn lowest_isa(text: &str, number: u32, suffix: &str) -> Option<(u32, u32)> {
    let mut highest = (0, 0);
    for instruction in ptx::instructions(text) {
        highest = highest.max(table::isa(&instruction, number, suffix).ok()?);
    }
    Some(highest)
}

/// The PTX ISA of each version of CUDA since 11.4. A driver accepts the ISA of its version and older ones. A version
/// that is not listed has the ISA of the version before it. ("Release History" in "Parallel Thread Execution ISA".)
const ISA_OF_CUDA: &[(Version, Version)] = &[
    ((11, 4), (7, 4)),
    ((11, 5), (7, 5)),
    ((11, 6), (7, 6)),
    ((11, 7), (7, 7)),
    ((11, 8), (7, 8)),
    ((12, 0), (8, 0)),
    ((12, 1), (8, 1)),
    ((12, 2), (8, 2)),
    ((12, 3), (8, 3)),
    ((12, 4), (8, 4)),
    ((12, 5), (8, 5)),
    ((12, 7), (8, 6)),
    ((12, 8), (8, 7)),
    ((12, 9), (8, 8)),
    ((13, 0), (9, 0)),
];

/// The highest PTX ISA that a driver for a version of CUDA accepts and weft writes; `None` for a version that weft does
/// not support.
pub fn isa_of_driver(version: (u32, u32)) -> Option<(u32, u32)> {
    ISA_OF_CUDA.iter().rev().find(|(cuda, _)| *cuda <= version).map(|(_, isa)| *isa)
}

/// The oldest CUDA whose driver accepts a PTX ISA; `None` for an ISA newer than all listed ones.
fn driver_for(isa: (u32, u32)) -> Option<(u32, u32)> {
    ISA_OF_CUDA.iter().find(|(_, taken)| *taken >= isa).map(|(cuda, _)| *cuda)
}

/// The SM suffix and the ISA that PTX is written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// `""`, `"a"` or `"f"`.
    pub suffix: &'static str,
    /// The PTX ISA.
    pub isa: Option<(u32, u32)>,
}

/// An instruction that cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacks {
    /// The instruction, or a special register.
    pub operation: String,
    /// The reason.
    pub why: NeedsError,
}

/// The reason why an instruction cannot be used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NeedsError {
    /// The target lacks it. The string lists the targets that have it.
    Target(String),
    /// No target has it.
    NoTarget,
    /// The driver that will load the code only accepts an older ISA.
    Driver {
        /// The lowest ISA that has it.
        isa: Version,
        /// The highest that the driver accepts.
        driver: Version,
    },
    /// Only ISAs newer than weft writes have it.
    Writer {
        /// The lowest ISA that has it.
        isa: Version,
    },
}

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let operation = &self.operation;
        match &self.why {
            NeedsError::Target(targets) => write!(f, "`{operation}` needs {targets}"),
            NeedsError::NoTarget => write!(f, "no GPU that weft compiles for has `{operation}`"),
            NeedsError::Driver { isa: (major, minor), driver: (taken, taken_minor) } => {
                write!(
                    f,
                    "`{operation}` needs PTX {major}.{minor}, but the driver supports at most {taken}.{taken_minor}"
                )?;
                match driver_for((*major, *minor)) {
                    Some((cuda, cuda_minor)) => write!(f, ": it needs a driver for CUDA {cuda}.{cuda_minor} or newer"),
                    None => Ok(()),
                }
            }
            NeedsError::Writer { isa: (major, minor) } => {
                let (highest, highest_minor) = HIGHEST_ISA;
                write!(f, "`{operation}` needs PTX {major}.{minor}, but weft emits at most {highest}.{highest_minor}")
            }
        }
    }
}

/// Chooses the SM suffix and the ISA for the PTX of a kernel with the given inline PTX `snippets`. `driver` is the
/// highest ISA that the loading driver accepts, if the code is for this machine's device alone. The suffix then becomes
/// `a` if an instruction requires that, and inline PTX may use every ISA that the driver accepts.
///
/// # Errors
///
/// The first instruction that the SM or the driver lacks, with the index of its text.
pub fn choose<'a>(
    number: u32,
    suffix: &'static str,
    driver: Option<(u32, u32)>,
    snippets: impl Iterator<Item = &'a str>,
) -> Result<Chosen, (usize, Lacks)> {
    let mut suffix = suffix;
    let mut isa = (0, 0);
    for (place, text) in snippets.enumerate() {
        isa = isa.max(driver.unwrap_or_default());
        for instruction in ptx::instructions(text) {
            let mut needed = table::isa(&instruction, number, suffix);
            if needed.is_err() && driver.is_some() && suffix.is_empty() && row(number, "a").is_some() {
                let for_it_alone = table::isa(&instruction, number, "a");
                if for_it_alone.is_ok() {
                    (needed, suffix) = (for_it_alone, "a");
                }
            }
            let lacks = |operation: &str, why| (place, Lacks { operation: operation.to_owned(), why });
            let needed = needed.map_err(|operation| {
                lacks(operation, table::targets(&instruction).map_or(NeedsError::NoTarget, NeedsError::Target))
            })?;
            if let Some(driver) = driver.filter(|driver| *driver < needed) {
                return Err(lacks(&instruction.name, NeedsError::Driver { isa: needed, driver }));
            }
            if needed > HIGHEST_ISA {
                return Err(lacks(&instruction.name, NeedsError::Writer { isa: needed }));
            }
            isa = isa.max(needed);
        }
    }
    let lowest = row(number, suffix).map(|row| row.lowest_isa);
    Ok(Chosen { suffix, isa: lowest.map(|lowest| lowest.max(isa.min(HIGHEST_ISA))) })
}

fn row(number: u32, suffix: &str) -> Option<&'static Sm> {
    super::SMS.iter().find(|row| row.number == number && row.suffix == suffix)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(number: u32, driver: Option<(u32, u32)>, text: &str) -> Result<Chosen, String> {
        choose(number, "", driver, [text].into_iter()).map_err(|(_, lacks)| lacks.to_string())
    }

    #[test]
    fn the_back_end_finds_what_it_asks_for() {
        for (name, sm) in [(REDUX, 80), (BFLOAT_ATOMIC_ADD, 90), (BFLOAT_FMA, 80), (BFLOAT_OF_INTEGERS, 90)] {
            assert!(has(sm, name) && !has(sm - 1, name), "{name}");
        }
        assert!(has(75, "add.s32"));
    }

    #[test]
    fn a_text_needs_what_all_its_instructions_need() {
        assert_eq!(lowest_isa("add.s32 $0, $1, $2;", 75, ""), Some((0, 0)));
        assert_eq!(lowest_isa("elect.sync _|p, $0; mapa.u32 $0, $1, $2;", 90, ""), Some((8, 0)));
        assert_eq!(lowest_isa("elect.sync _|p, $0; mapa.u32 $0, $1, $2;", 89, ""), None);
    }

    #[test]
    fn code_is_for_as_little_as_it_needs() {
        assert_eq!(chosen(90, None, "add.s32 $0, $1, $2;"), Ok(Chosen { suffix: "", isa: Some((7, 8)) }));
        assert_eq!(chosen(90, None, "elect.sync _|p, $0;"), Ok(Chosen { suffix: "", isa: Some((8, 0)) }));
        assert_eq!(choose(90, "", Some((8, 4)), [].into_iter()), Ok(Chosen { suffix: "", isa: Some((7, 8)) }));
    }

    #[test]
    fn code_for_a_device_may_use_what_its_driver_takes() {
        assert_eq!(chosen(90, Some((8, 4)), "add.s32 $0, $1, $2;"), Ok(Chosen { suffix: "", isa: Some((8, 4)) }));
        assert_eq!(chosen(90, Some((9, 9)), "wgmma.fence;"), Ok(Chosen { suffix: "a", isa: Some(HIGHEST_ISA) }));
    }

    #[test]
    fn what_is_lacking_is_told_with_what_has_it() {
        let lacking = |number, driver, text| chosen(number, driver, text).expect_err("it lacks something");
        assert_eq!(lacking(89, None, "barrier.cluster.arrive;"), "`barrier.cluster.arrive` needs `sm_90` or newer");
        assert_eq!(lacking(90, None, "wgmma.fence;"), "`wgmma.fence` needs `sm_90a`");
        assert_eq!(lacking(90, None, "vote.any.pred p, q;"), "no GPU that weft compiles for has `vote.any.pred`");
        assert_eq!(
            lacking(90, None, "clmad.lo.u64 $0, $1, $2, $3;"),
            "`clmad.lo.u64` needs PTX 9.3, but weft emits at most 9.0"
        );
        assert_eq!(lacking(100, Some((9, 0)), "wgmma.fence;"), "`wgmma.fence` needs `sm_90a`");
        assert_eq!(
            lacking(90, Some((7, 8)), "elect.sync _|p, $0;"),
            "`elect.sync` needs PTX 8.0, but the driver supports at most 7.8: it needs a driver for CUDA 12.0 or newer"
        );
    }

    #[test]
    fn drivers_take_what_their_version_has() {
        assert_eq!(isa_of_driver((12, 4)), Some((8, 4)));
        assert_eq!(isa_of_driver((12, 6)), Some((8, 5)));
        assert_eq!(isa_of_driver((13, 7)), Some((9, 0)));
        assert_eq!(isa_of_driver((11, 3)), None);
        assert_eq!([driver_for((8, 0)), driver_for((8, 6)), driver_for((9, 5))], [Some((12, 0)), Some((12, 7)), None]);
    }
}
