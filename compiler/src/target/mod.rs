//! The targets: one table row per SM, and the host.
//!
//! The lowest PTX ISA is the one that LLVM 22 selects by default; requesting an older one is a fatal error in LLVM.
//! Limits are those of the CUDA programming guide's table of compute capabilities. `sm_90a` and the like have features
//! that only this very SM has, `sm_100f` those of its family.

pub mod gpus;
pub mod needs;
pub mod occupancy;

use std::{fmt, sync::Arc};

use crate::{
    diagnostic::nearest,
    request::{HostCpu, Target},
};

/// Shared memory that a block may declare statically, on every SM. A kernel that needs more uses dynamic shared memory.
pub const STATIC_SHARED_BYTES: u64 = 48 * 1024;

/// Bytes of local memory that a thread can have, on every SM. CUDA C++ Programming Guide, "Technical Specifications per
/// Compute Capability".
pub const LOCAL_BYTES: u64 = 512 * 1024;

/// Threads that a block may have, on every SM and on the host.
pub const MAX_THREADS_PER_BLOCK: u32 = 1024;

/// The text form of the host target.
pub const HOST: &str = "host";

/// One SM.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sm {
    /// `sm_90a`.
    pub name: &'static str,
    /// `90`.
    pub number: u32,
    /// `""`, `"a"` or `"f"`.
    pub suffix: &'static str,
    /// Lowest PTX ISA, as (major, minor).
    pub lowest_isa: (u32, u32),
    /// The most shared memory of a block in a launch, in bytes, static and dynamic together.
    pub max_shared_bytes: u64,
    /// Warps that a multiprocessor runs at a time.
    pub max_warps: u32,
    /// Blocks that a multiprocessor runs at a time.
    pub max_blocks: u32,
}

/// A row of the table.
const fn sm(
    name: &'static str,
    number: u32,
    suffix: &'static str,
    lowest_isa: (u32, u32),
    max_shared_kib: u64,
    (max_warps, max_blocks): (u32, u32),
) -> Sm {
    Sm { name, number, suffix, lowest_isa, max_shared_bytes: max_shared_kib * 1024, max_warps, max_blocks }
}

/// Every SM that weft compiles for. For `sm_88` no limit is published; its row has that of the smaller Ampere chips.
#[rustfmt::skip]
pub const SMS: &[Sm] = &[
    sm("sm_75",   75, "",  (6, 3),  64, (32, 16)),
    sm("sm_80",   80, "",  (7, 0), 163, (64, 32)),
    sm("sm_86",   86, "",  (7, 1),  99, (48, 16)),
    sm("sm_87",   87, "",  (7, 4), 163, (48, 16)),
    sm("sm_88",   88, "",  (9, 0),  99, (48, 16)),
    sm("sm_89",   89, "",  (7, 8),  99, (48, 24)),
    sm("sm_90",   90, "",  (7, 8), 227, (64, 32)),
    sm("sm_90a",  90, "a", (8, 0), 227, (64, 32)),
    sm("sm_100",  100, "",  (8, 6), 227, (64, 32)),
    sm("sm_100a", 100, "a", (8, 6), 227, (64, 32)),
    sm("sm_100f", 100, "f", (8, 8), 227, (64, 32)),
    sm("sm_101",  101, "",  (8, 6), 227, (48, 24)),
    sm("sm_101a", 101, "a", (8, 6), 227, (48, 24)),
    sm("sm_101f", 101, "f", (8, 8), 227, (48, 24)),
    sm("sm_103",  103, "",  (8, 8), 227, (64, 32)),
    sm("sm_103a", 103, "a", (8, 8), 227, (64, 32)),
    sm("sm_103f", 103, "f", (8, 8), 227, (64, 32)),
    sm("sm_110",  110, "",  (9, 0), 227, (48, 24)),
    sm("sm_110a", 110, "a", (9, 0), 227, (48, 24)),
    sm("sm_110f", 110, "f", (9, 0), 227, (48, 24)),
    sm("sm_120",  120, "",  (8, 7),  99, (48, 24)),
    sm("sm_120a", 120, "a", (8, 7),  99, (48, 24)),
    sm("sm_120f", 120, "f", (8, 8),  99, (48, 24)),
    sm("sm_121",  121, "",  (8, 8),  99, (48, 24)),
    sm("sm_121a", 121, "a", (8, 8),  99, (48, 24)),
    sm("sm_121f", 121, "f", (8, 8),  99, (48, 24)),
];

/// The error for an unknown target name.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownTarget {
    /// The requested name.
    pub name: String,
    /// The most similar known names, best first.
    pub nearest: Vec<&'static str>,
}

impl fmt::Display for UnknownTarget {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "there is no target `{}`; did you mean {}?", self.name, self.nearest.join(", "))
    }
}

impl std::error::Error for UnknownTarget {}

impl Sm {
    /// The row of a name such as `sm_90a`.
    ///
    /// # Errors
    ///
    /// [`UnknownTarget`] with the nearest names.
    pub fn parse(name: &str) -> Result<&'static Self, UnknownTarget> {
        SMS.iter().find(|row| row.name == name).ok_or_else(|| unknown(name))
    }

    /// The row of a compute capability: 9.0 is `sm_90`. A capability without a row uses the highest lower one of the
    /// same major version, whose code it can run.
    pub fn of_capability(major: u32, minor: u32) -> Option<&'static Self> {
        SMS.iter()
            .filter(|row| row.suffix.is_empty() && row.number / 10 == major && row.number % 10 <= minor)
            .max_by_key(|row| row.number)
    }

    /// The row of a request's target; `None` for the host and for an SM that has no row.
    pub fn of_target(target: &Target) -> Option<&'static Self> {
        match target {
            Target::Sm(number, suffix) => SMS.iter().find(|row| row.number == *number && row.suffix == *suffix),
            Target::Host(_) => None,
        }
    }

    /// The target of a request for this SM.
    pub fn target(&self) -> Target {
        Target::Sm(self.number, self.suffix)
    }
}

/// Every name that [`parse`] accepts: the SMs, then `host`.
pub fn names() -> impl Iterator<Item = &'static str> {
    SMS.iter().map(|row| row.name).chain([HOST])
}

/// The target of a name such as `sm_90` or `host`; the function `host` returns the CPU.
///
/// # Errors
///
/// [`UnknownTarget`] with the nearest names.
pub fn parse(name: &str, host: impl FnOnce() -> Arc<HostCpu>) -> Result<Target, UnknownTarget> {
    if name == HOST { Ok(Target::Host(host())) } else { Sm::parse(name).map(Sm::target) }
}

impl fmt::Display for Target {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sm(number, suffix) => write!(f, "sm_{number}{suffix}"),
            Self::Host(_) => f.write_str(HOST),
        }
    }
}

/// The error for an unknown name, with the three most similar known ones.
fn unknown(name: &str) -> UnknownTarget {
    UnknownTarget { name: name.to_owned(), nearest: nearest(name, names(), 3) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_name_is_read_and_written_alike() {
        for name in names() {
            assert_eq!(parse(name, Arc::default).map(|target| target.to_string()).as_deref(), Ok(name));
        }
    }

    #[test]
    fn rows_agree_with_their_names_and_stand_in_order() {
        for row in SMS {
            assert_eq!(row.name, format!("sm_{}{}", row.number, row.suffix));
            assert_eq!(Sm::of_target(&row.target()), Some(row));
            assert!(row.max_shared_bytes >= STATIC_SHARED_BYTES, "{}", row.name);
        }
        assert!(SMS.windows(2).all(|pair| (pair[0].number, pair[0].suffix) < (pair[1].number, pair[1].suffix)));
    }

    #[test]
    fn an_unknown_name_says_what_is_near() {
        let error = parse("sm90", Arc::default).expect_err("there is no such name");
        assert_eq!(error.nearest.first(), Some(&"sm_90"));
        assert_eq!(parse("Host", Arc::default).expect_err("names are lower case").nearest.first(), Some(&"host"));
        assert!(parse("sm_70", Arc::default).is_err());
    }

    #[test]
    fn a_capability_takes_the_best_row_below_it() {
        assert_eq!(Sm::of_capability(9, 0).map(|row| row.name), Some("sm_90"));
        assert_eq!(Sm::of_capability(10, 2).map(|row| row.name), Some("sm_101"));
        assert_eq!(Sm::of_capability(12, 1).map(|row| row.name), Some("sm_121"));
        assert_eq!(Sm::of_capability(7, 0).map(|row| row.name), None);
    }
}
