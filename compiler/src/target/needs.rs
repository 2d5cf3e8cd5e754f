//! What operations of PTX need: the SM from which on they are there, and the PTX ISA that has them.
//!
//! The back end asks here whether an SM has an instruction, or does without it; of PTX that a program has itself, it finds out
//! what the kernel needs. Facts are those of the notes on each instruction in "Parallel Thread Execution ISA".

use std::fmt;

use super::Sm;

/// `redux.sync`: the values of a warp's lanes, taken together.
pub const REDUX: &str = "redux.sync";
/// `atom.add` of a bfloat16.
pub const BFLOAT_ATOMIC_ADD: &str = "atom.add.noftz.bf16";
/// Multiplication and addition of bfloat16 in one step.
pub const BFLOAT_FMA: &str = "fma.rn.bf16";
/// Integers as bfloat16.
pub const BFLOAT_OF_INTEGERS: &str = "cvt.rn.bf16.s32";

/// The highest ISA that LLVM 22 writes.
pub const HIGHEST_ISA: (u32, u32) = (9, 0);

/// What one operation needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The words with which it begins: of several rows that do, the longest counts.
    pub operation: &'static str,
    /// The oldest SM.
    pub sm: u32,
    /// The major versions of SMs with it, if it is there only in code for the very SM or its family, such as `sm_90a`.
    pub majors: &'static [u32],
    /// The lowest PTX ISA.
    pub isa: (u32, u32),
}

const fn needs(operation: &'static str, sm: u32, isa: (u32, u32)) -> Needs {
    Needs { operation, sm, majors: &[], isa }
}

const fn specific(operation: &'static str, sm: u32, isa: (u32, u32), majors: &'static [u32]) -> Needs {
    Needs { operation, sm, majors, isa }
}

/// What is not in every SM and every ISA that weft compiles for.
#[rustfmt::skip]
pub const NEEDS: &[Needs] = &[
    needs("%cluster",                 90, (7, 8)),
    needs("%is_explicit_cluster",     90, (7, 8)),
    needs("%ncluster",                90, (7, 8)),
    needs("applypriority",            80, (7, 4)),
    needs(BFLOAT_ATOMIC_ADD,          90, (7, 8)),
    needs("barrier.cluster",          90, (7, 8)),
    needs("bmsk",                     75, (7, 6)),
    needs("clusterlaunchcontrol",    100, (8, 6)),
    needs("cp.async",                 80, (7, 0)),
    needs("cp.async.bulk",            90, (8, 0)),
    needs("cp.reduce.async.bulk",     90, (8, 0)),
    needs("createpolicy",             80, (7, 4)),
    needs(BFLOAT_OF_INTEGERS,         90, (7, 8)),
    needs("discard",                  80, (7, 4)),
    needs("elect.sync",               90, (8, 0)),
    needs("ex2.approx.f16",           75, (7, 0)),
    needs("ex2.approx.ftz.bf16",      90, (7, 8)),
    needs("fence.mbarrier_init",      90, (8, 0)),
    needs("fence.proxy.async",        90, (8, 0)),
    needs("fence.proxy.tensormap",    90, (8, 3)),
    needs(BFLOAT_FMA,                 80, (7, 0)),
    needs("getctarank",               90, (7, 8)),
    needs("griddepcontrol",           90, (7, 8)),
    needs("ldmatrix",                 75, (6, 5)),
    needs("mapa",                     90, (7, 8)),
    needs("mbarrier",                 80, (7, 0)),
    needs("mbarrier.arrive.expect_tx", 90, (8, 0)),
    needs("mbarrier.complete_tx",     90, (8, 0)),
    needs("mbarrier.expect_tx",       90, (8, 0)),
    needs("mbarrier.try_wait",        90, (7, 8)),
    needs("mma.sp",                   80, (7, 1)),
    needs("mma.sync",                 75, (6, 4)),
    needs("movmatrix",                75, (7, 8)),
    needs("multimem",                 90, (8, 1)),
    needs("red.async",                90, (8, 1)),
    needs(REDUX,                      80, (7, 0)),
    specific("setmaxnreg",            90, (8, 0), &[9, 10, 11, 12]),
    needs("st.async",                 90, (8, 1)),
    needs("st.bulk",                 100, (8, 6)),
    needs("stmatrix",                 90, (7, 8)),
    needs("szext",                    75, (7, 6)),
    needs("tanh.approx",              75, (7, 0)),
    needs("tanh.approx.bf16",         90, (7, 8)),
    specific("tcgen05",              100, (8, 6), &[10, 11]),
    needs("tensormap.cp_fenceproxy",  90, (8, 3)),
    specific("tensormap.replace",     90, (8, 3), &[9, 10, 11, 12]),
    specific("wgmma",                 90, (8, 0), &[9]),
];

impl Needs {
    /// Of one operation, such as `cp.async.bulk.tensor.2d`; `None` if every target has it, or nothing is known of it.
    pub fn of(operation: &str) -> Option<&'static Self> {
        let begins = |row: &&Self| {
            operation.strip_prefix(row.operation).is_some_and(|rest| {
                // Names of registers go on where they like.
                rest.is_empty() || rest.starts_with('.') || row.operation.starts_with('%')
            })
        };
        NEEDS.iter().filter(begins).max_by_key(|row| row.operation.len())
    }

    /// Of all operations in a text of PTX, each with its words there.
    pub fn in_text(text: &str) -> impl Iterator<Item = (&str, &'static Self)> {
        let code = text.lines().map(|line| line.split("//").next().unwrap_or_default());
        let words = code.flat_map(|line| line.split(|c: char| !c.is_ascii_alphanumeric() && !"._%".contains(c)));
        words.filter_map(|word| Some((word, Self::of(word)?)))
    }

    /// Whether code for an SM can have it.
    pub fn is_met_by(&self, number: u32, suffix: &str) -> bool {
        number >= self.sm && (self.majors.is_empty() || !suffix.is_empty() && self.majors.contains(&(number / 10)))
    }

    /// The SMs that have it, in words.
    pub fn targets(&self) -> String {
        let number = self.sm;
        if self.majors.is_empty() { format!("`sm_{number}` or newer") } else { format!("`sm_{number}a`") }
    }
}

/// Whether an SM has an operation.
pub fn has(sm: u32, operation: &str) -> bool {
    Needs::of(operation).is_none_or(|needs| sm >= needs.sm)
}

/// A version: major and minor.
type Version = (u32, u32);

/// The PTX ISA of each version of CUDA since 11.4; a driver takes that of its version and older ones. The versions of CUDA
/// that are not here have that of the one before. ("Release History" in "Parallel Thread Execution ISA".)
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

/// The highest PTX ISA that a driver for a version of CUDA takes, of those that weft writes; `None` for an older one than
/// weft works with.
pub fn isa_of_driver(version: (u32, u32)) -> Option<(u32, u32)> {
    ISA_OF_CUDA.iter().rev().find(|(cuda, _)| *cuda <= version).map(|(_, isa)| *isa)
}

/// The oldest CUDA whose driver takes a PTX ISA; `None` for one that is newer than all that are known.
fn driver_for(isa: (u32, u32)) -> Option<(u32, u32)> {
    ISA_OF_CUDA.iter().find(|(_, taken)| *taken >= isa).map(|(cuda, _)| *cuda)
}

/// What code is written for: an SM with its suffix, and an ISA.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Chosen {
    /// `""`, `"a"` or `"f"`.
    pub suffix: &'static str,
    /// The PTX ISA.
    pub isa: Option<(u32, u32)>,
}

/// What a target lacks of what an operation needs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lacks {
    /// The operation.
    pub operation: String,
    /// What it needs.
    pub needs: &'static Needs,
    /// What the driver takes, if that is what is too old.
    pub driver: Option<(u32, u32)>,
}

impl fmt::Display for Lacks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { operation, needs: Needs { isa: (major, minor), .. }, driver } = self;
        match driver {
            Some((taken, taken_minor)) => {
                write!(f, "`{operation}` needs PTX {major}.{minor}, but the driver takes up to {taken}.{taken_minor}")?;
                match driver_for((*major, *minor)) {
                    Some((cuda, cuda_minor)) => write!(f, ": it takes one for CUDA {cuda}.{cuda_minor} or newer"),
                    None => Ok(()),
                }
            }
            None => write!(f, "`{operation}` needs {}", self.needs.targets()),
        }
    }
}

/// Finds what the PTX is written for of a kernel for an SM whose program has `texts` of PTX. `driver` is the highest ISA that
/// the driver takes which is to load it, if the code is for this machine's device alone. The code then is for this very SM
/// where an operation needs that, and PTX of the program's may use all that the driver takes.
///
/// # Errors
///
/// The first operation of a text that the SM or the driver lacks, with the text's place among them.
pub fn choose<'a>(
    number: u32,
    suffix: &'static str,
    driver: Option<(u32, u32)>,
    texts: impl Iterator<Item = &'a str>,
) -> Result<Chosen, (usize, Lacks)> {
    let mut suffix = suffix;
    let mut isa = (0, 0);
    for (place, text) in texts.enumerate() {
        isa = isa.max(driver.unwrap_or_default());
        for (operation, needs) in Needs::in_text(text) {
            let lacks = |driver| (place, Lacks { operation: operation.to_owned(), needs, driver });
            if driver.is_some() && needs.majors.contains(&(number / 10)) {
                suffix = "a";
            }
            if !needs.is_met_by(number, suffix) {
                return Err(lacks(None));
            }
            if driver.is_some_and(|driver| driver < needs.isa) {
                return Err(lacks(driver));
            }
            isa = isa.max(needs.isa);
        }
    }
    let lowest =
        super::SMS.iter().find(|row| row.number == number && row.suffix == suffix).map(|row: &Sm| row.lowest_isa);
    Ok(Chosen { suffix, isa: lowest.map(|lowest| lowest.max(isa.min(HIGHEST_ISA))) })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn chosen(number: u32, driver: Option<(u32, u32)>, text: &str) -> Result<Chosen, String> {
        choose(number, "", driver, [text].into_iter()).map_err(|(_, lacks)| lacks.to_string())
    }

    #[test]
    fn the_longest_row_counts() {
        let isa = |text: &str| Needs::of(text).map(|needs| (needs.operation, needs.sm, needs.isa));
        assert_eq!(isa("cp.async.ca.shared.global"), Some(("cp.async", 80, (7, 0))));
        assert_eq!(isa("cp.async.bulk.tensor.2d"), Some(("cp.async.bulk", 90, (8, 0))));
        assert_eq!(isa("%cluster_ctarank"), Some(("%cluster", 90, (7, 8))));
        assert_eq!(isa("mapaper"), None);
        assert_eq!(isa("add.s32"), None);
        for name in [REDUX, BFLOAT_ATOMIC_ADD, BFLOAT_FMA, BFLOAT_OF_INTEGERS] {
            assert_eq!(Needs::of(name).map(|needs| needs.operation), Some(name));
        }
        assert!(has(90, BFLOAT_ATOMIC_ADD) && !has(89, BFLOAT_ATOMIC_ADD) && has(75, "add.s32"));
    }

    #[test]
    fn operations_are_found_in_texts() {
        let found = |text| Needs::in_text(text).map(|(_, needs)| needs.operation).collect::<Vec<_>>();
        assert_eq!(
            found("{ .reg .b32 t; mapa.u32 t, $1, 0; @p mbarrier.try_wait.b64 $0, [t]; }"),
            ["mapa", "mbarrier.try_wait"]
        );
        assert_eq!(found("mov.u32 $0, %cluster_ctarank; // not wgmma"), ["%cluster"]);
        assert_eq!(found("add.s32 $0, $1, $2;"), Vec::<&str>::new());
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
        let told = |number, driver, text| chosen(number, driver, text).expect_err("it lacks something");
        assert_eq!(told(89, None, "barrier.cluster.arrive;"), "`barrier.cluster.arrive` needs `sm_90` or newer");
        assert_eq!(told(90, None, "wgmma.fence;"), "`wgmma.fence` needs `sm_90a`");
        assert_eq!(told(100, Some((9, 0)), "wgmma.fence;"), "`wgmma.fence` needs `sm_90a`");
        assert_eq!(
            told(90, Some((7, 8)), "elect.sync _|p, $0;"),
            "`elect.sync` needs PTX 8.0, but the driver takes up to 7.8: it takes one for CUDA 12.0 or newer"
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
