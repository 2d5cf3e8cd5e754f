//! The events that sanitized code for the CPU reports to the runtime: accesses and barriers, identified by numbers of
//! sites.
//!
//! Only sanitized code calls [`HostChecks`]. Its kernel has [`Sites`], which map a number to a location in the source.

use crate::artifact::HostContext;

/// The checks, as bits.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Tools(pub u8);

impl Tools {
    /// No checks.
    pub const NONE: Self = Self(0);
    /// All checks.
    pub const ALL: Self = Self(15);
    /// Accesses outside of their array.
    pub const MEMCHECK: Self = Self(1);
    /// Data races.
    pub const RACECHECK: Self = Self(2);
    /// Reads of uninitialized memory.
    pub const INITCHECK: Self = Self(4);
    /// Divergent barriers and invalid warp operations.
    pub const SYNCCHECK: Self = Self(8);

    /// The names of the checks, which are compute-sanitizer's.
    pub const NAMES: [(&'static str, Self); 4] = [
        ("memcheck", Self::MEMCHECK),
        ("racecheck", Self::RACECHECK),
        ("initcheck", Self::INITCHECK),
        ("synccheck", Self::SYNCCHECK),
    ];

    /// Whether all of `tools` are enabled.
    pub const fn has(self, tools: Self) -> bool {
        self.0 & tools.0 == tools.0
    }

    /// Whether no check is enabled.
    pub const fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// Parses `all`, or names with commas between; `None` if a name is unknown. `0`, `none` and an empty string are no
    /// checks.
    pub fn parse(text: &str) -> Option<Self> {
        match text.trim() {
            "" | "0" | "none" => return Some(Self::NONE),
            "1" | "all" => return Some(Self::ALL),
            _ => {}
        }
        text.split(',').try_fold(Self::NONE, |tools, name| {
            let (_, tool) = Self::NAMES.iter().find(|(known, _)| *known == name.trim())?;
            Some(Self(tools.0 | tool.0))
        })
    }
}

/// The kind of event at a site.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum SiteKind {
    /// An element is read.
    Read,
    /// An element is written.
    Write,
    /// An atomic operation.
    Atomic,
    /// A barrier of the block.
    Barrier,
    /// `syncwarp`.
    WarpBarrier,
    /// An operation of a barrier in shared memory.
    Phase,
    /// A barrier of the grid.
    GridBarrier,
    /// A shuffle.
    Shuffle,
    /// A vote.
    Vote,
    /// `match_any_sync` and `match_all_sync`.
    Match,
    /// A reduction of a warp's values.
    WarpReduce,
    /// A product of matrices of a warp.
    Multiply,
    /// A `return`, or the end of the kernel.
    End,
    /// A call of a function.
    Call,
}

impl SiteKind {
    /// The name in messages.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Write => "write",
            Self::Atomic => "atomic",
            Self::Barrier => "barrier",
            Self::WarpBarrier => "syncwarp",
            Self::Phase => "barrier in shared memory",
            Self::GridBarrier => "grid barrier",
            Self::Shuffle => "shuffle",
            Self::Vote => "vote",
            Self::Match => "match",
            Self::WarpReduce => "warp reduction",
            Self::Multiply => "matrix product",
            Self::End => "end",
            Self::Call => "call",
        }
    }

    /// Whether the operation synchronizes threads of a warp.
    pub const fn is_of_warp(self) -> bool {
        match self {
            Self::WarpBarrier | Self::Shuffle | Self::Vote | Self::Match | Self::WarpReduce | Self::Multiply => true,
            Self::Read
            | Self::Write
            | Self::Atomic
            | Self::Barrier
            | Self::Phase
            | Self::GridBarrier
            | Self::End
            | Self::Call => false,
        }
    }
}

/// A location in a kernel that sanitized code reports.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Site {
    /// The kind of event.
    pub kind: SiteKind,
    /// The file's name.
    pub file: String,
    /// The line number, from 1.
    pub line: u32,
    /// The column, from 1.
    pub column: u32,
    /// The number of characters on its line.
    pub width: u32,
    /// The line's text.
    pub text: String,
    /// The array's name in the source; empty if unknown.
    pub array: String,
    /// The Python function.
    pub function: String,
    /// Whether the site is in weft's own code, which is not reported.
    pub is_own: bool,
    /// The header lines of the loops that contain it, outermost first. Only loops of its own function.
    pub loops: Vec<u32>,
    /// The branches of `if` statements that contain it, outermost first: the line of the condition, and whether it is
    /// the `else` branch.
    pub branches: Vec<(u32, bool)>,
    /// The statement that reads and writes the element, if this access is one of the two.
    pub update: Option<Update>,
}

/// A statement such as `a[i] += x` or `a[i] = max(a[i], x)`, which reads an element and writes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Update {
    /// The statement, with `…` for the operand.
    pub statement: String,
    /// The name of the operation in `cuda.atomic`; empty if there is none for this type of element.
    pub operation: String,
    /// The arguments of that call: the array and the index.
    pub element: String,
}

/// An array in the block's scratch memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SharedArrayInfo {
    /// The offset in bytes.
    pub offset: u64,
    /// Its size.
    pub bytes: u64,
    /// The name in the source.
    pub name: String,
    /// Bytes of an element.
    pub item: u64,
    /// Its extents.
    pub shape: Vec<u64>,
    /// Whether the array is the program's own. The sanitizer does not check arrays that a pass has made.
    pub is_program: bool,
}

/// The sites of a sanitized kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Sites {
    /// The tools that are enabled.
    pub tools: Tools,
    /// The sites, by their numbers.
    pub sites: Vec<Site>,
    /// The arrays of fixed size in scratch memory.
    pub shared: Vec<SharedArrayInfo>,
    /// The numbers of array parameters that the kernel only reads. Empty if the kernel may write memory besides array
    /// parameters and its own memory.
    pub only_read: Vec<u32>,
}

/// Properties of an access besides its kind: bits of the word that [`HostChecks::access`] takes.
#[derive(Clone, Copy, Debug)]
pub struct AccessBits;

impl AccessBits {
    /// The access's size in bytes.
    pub const SIZE: u32 = 0xff;
    /// It reads.
    pub const READS: u32 = 1 << 8;
    /// It writes.
    pub const WRITES: u32 = 1 << 9;
    /// It is atomic.
    pub const ATOMIC: u32 = 1 << 10;
    /// It is atomic only among the threads of the block.
    pub const BLOCK_SCOPE: u32 = 1 << 11;
    /// It acquires.
    pub const ACQUIRES: u32 = 1 << 12;
    /// It releases.
    pub const RELEASES: u32 = 1 << 13;
    /// The memory is thread-local.
    pub const LOCAL: u32 = 1 << 14;
    /// Its address must be a multiple of its size.
    pub const NATURAL: u32 = 1 << 15;
}

/// Events other than accesses.
#[derive(Clone, Copy, Debug)]
pub struct EventKind;

impl EventKind {
    /// An index is out of bounds. Takes the index and the extent; the higher bits of the kind have the axis.
    pub const BOUNDS: u32 = 0;
    /// A fence. The first number is 1 if its scope is the block.
    pub const FENCE: u32 = 1;
    /// The lifetime of a local array begins. Takes its address and size in bytes.
    pub const LOCAL: u32 = 2;
    /// The thread reaches a barrier. The first number is the mask.
    pub const MEETS: u32 = 3;
    /// The thread reaches a warp operation that is not a barrier. Takes the mask, and for a shuffle its kind, distance
    /// and width (a byte each).
    pub const LANES: u32 = 4;
    /// The thread returns before the kernel's end.
    pub const RETURNS: u32 = 5;
    /// The thread calls a function, at the site.
    pub const ENTERS: u32 = 6;
    /// The thread returns from the called function.
    pub const LEAVES: u32 = 7;
    /// The thread uses a value that it read before. The first number is the value of [`HostContext::unwritten`] after
    /// that read.
    pub const USED: u32 = 8;
    /// All threads of the block have reached a barrier, in code with work-item loops.
    pub const MET: u32 = 9;
}

/// The functions that sanitized code calls. Both may be called on a fiber's stack.
#[repr(C)]
#[derive(Clone, Copy, Debug)]
pub struct HostChecks {
    /// Called before an access. Takes the site, the address, [`AccessBits`], the bits of the value that is written, and
    /// the number of the value that is copied (0 for none, or [`Self::FOLLOWED`]). Returns the address to access.
    pub access: extern "C" fn(*const HostContext, u32, *mut u8, u32, u64, u32) -> *mut u8,
    /// Reports another event. Takes the site, [`EventKind`] and two numbers.
    pub event: extern "C" fn(*const HostContext, u32, u32, u64, u64),
}

impl HostChecks {
    /// The functions for code that is not sanitized.
    pub const NONE: Self = {
        extern "C" fn access(_: *const HostContext, _: u32, pointer: *mut u8, _: u32, _: u64, _: u32) -> *mut u8 {
            pointer
        }
        extern "C" fn event(_: *const HostContext, _: u32, _: u32, _: u64, _: u64) {}
        Self { access, event }
    };
    /// The address of accesses whose index is out of bounds. No allocation is within 2^61 bytes of it.
    pub const NOWHERE: u64 = 1 << 62;
    /// The number of a value that may be used later. If it has unwritten bytes, the runtime sets
    /// [`HostContext::unwritten`].
    pub const FOLLOWED: u32 = u32::MAX;
}

#[cfg(test)]
mod tests {
    use super::Tools;

    #[test]
    fn tools_have_names() {
        assert_eq!(Tools::parse("all"), Some(Tools::ALL));
        assert_eq!(Tools::parse("memcheck, synccheck"), Some(Tools(9)));
        assert_eq!(Tools::parse("memchk"), None);
        assert!(Tools::ALL.has(Tools::RACECHECK) && !Tools::MEMCHECK.has(Tools::RACECHECK));
        assert!(Tools::parse("0").is_some_and(Tools::is_empty));
    }
}
