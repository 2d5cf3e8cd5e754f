//! Invalid memory accesses of kernels: to unmapped memory, or stores to read-only memory.
//!
//! The system ends a process for one. If it occurs in a kernel's own code, weft abandons that code instead, and the
//! launch fails; `docs/design/invalid-memory-accesses.md` says when that is sound. Elsewhere nothing changes: the
//! previous signal handler handles it.

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
mod linux;
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
mod other;

use std::fmt::Write;

#[cfg(all(target_os = "linux", target_arch = "x86_64"))]
pub(super) use linux::{ThreadSlot, after_fork, call, outside, seat};
#[cfg(not(all(target_os = "linux", target_arch = "x86_64")))]
pub(super) use other::{ThreadSlot, after_fork, call, outside, seat};

/// Addresses below this one are a null pointer and an offset: no system maps them.
const NULL_END: usize = 64 << 10;

/// The kind of access that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessKind {
    Read,
    Write,
    /// One of the two: the processor does not say which.
    Either,
    /// To run it as code: a return address was overwritten.
    Jump,
}

/// Why an access failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AccessError {
    /// There is no memory at the address.
    Missing,
    /// It may not be read, or not be written.
    Protected,
    /// It is of a file that has become shorter, or broken.
    Lost,
}

/// An invalid memory access.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct InvalidAccess {
    pub(super) access: AccessKind,
    pub(super) why: AccessError,
    /// Where, if the processor says so.
    pub(super) address: Option<usize>,
    /// It is next to the end of the stack: calls went too deep.
    pub(super) on_stack: bool,
}

/// The accessing thread, as far as it is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Culprit {
    pub(super) invalid: InvalidAccess,
    /// The linear numbers of the blocks that ran, one after the other: the last is not among them.
    pub(super) blocks: (u64, u64),
    /// The linear number of the thread in its block.
    pub(super) thread: Option<u64>,
}

/// A linear number in a box of such extents, `x` fastest.
fn location(number: u64, extents: &[u32]) -> String {
    let [x, y] = [extents[0], extents[1]].map(|extent| u64::from(extent.max(1)));
    format!("({}, {}, {})", number % x, number / x % y, number / x / y)
}

impl Culprit {
    /// The text of the error: the kernel's name, and the extents of the grid and of a block if the numbers are the program's.
    pub(super) fn message(&self, kernel: &str, config: Option<&[u32; 8]>) -> String {
        let Self { invalid: InvalidAccess { access, why, address, on_stack: _ }, blocks: (first, last), thread } =
            *self;
        let did = match access {
            AccessKind::Read => "has read",
            AccessKind::Write => "has written to",
            AccessKind::Either => "has read or written",
            AccessKind::Jump => "has overwritten its stack and jumped to",
        };
        let what = match (why, access) {
            (AccessError::Missing, _) => "memory that does not exist",
            (AccessError::Protected, AccessKind::Write) => "read-only memory",
            (AccessError::Protected, AccessKind::Read | AccessKind::Either | AccessKind::Jump) => "protected memory",
            (AccessError::Lost, _) => "memory of a file that was truncated",
        };
        let mut text = format!("`{kernel}` {did} {what}");
        let is_null = address.is_some_and(|address| address < NULL_END) && why != AccessError::Lost;
        // Writing to a text does not fail.
        let _written = match address {
            Some(address) if is_null => write!(text, ", through a null pointer (address {address:#x})"),
            Some(address) => write!(text, ", at address {address:#x}"),
            None => Ok(()),
        };
        if let Some(config) = config {
            let (grid, block) = config.split_at(3);
            let _written = if last - first <= 1 {
                write!(text, ", in block {}", location(first, grid))
            } else {
                write!(text, ", in one of the blocks {} to {}", location(first, grid), location(last - 1, grid))
            };
            // A block of one thread has no other.
            let thread = thread.or_else(|| (block[..3].iter().all(|extent| *extent == 1)).then_some(0));
            let _written = match thread {
                Some(thread) => write!(text, ", thread {}", location(thread, block)),
                None => Ok(()),
            };
        }
        text.push_str(match (why, is_null) {
            (AccessError::Lost, _) => ". ",
            (AccessError::Missing | AccessError::Protected, true) => {
                ": an array or a pointer is null, or an index is out of bounds. "
            }
            (AccessError::Missing | AccessError::Protected, false) => {
                ": an index is out of bounds, or the memory was freed. "
            }
        });
        text.push_str(
            "Compile it with `boundscheck=True`, or set WEFT_BOUNDSCHECK=1: an index out of bounds then raises an \
             IndexError with its line. Earlier writes may have damaged other memory of this process",
        );
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_name_what_is_known() {
        let invalid = InvalidAccess {
            access: AccessKind::Write,
            why: AccessError::Missing,
            address: Some(0x7f00_dead_0000),
            on_stack: false,
        };
        let config = [4, 3, 1, 8, 2, 1, 0, 0];
        let one = Culprit { invalid, blocks: (6, 7), thread: Some(11) }.message("k", Some(&config));
        assert!(
            one.starts_with(
                "`k` has written to memory that does not exist, at address 0x7f00dead0000, in block (2, 1, 0), thread \
                 (3, 1, 0): an index"
            ),
            "{one}"
        );
        let null = InvalidAccess { access: AccessKind::Read, address: Some(24), ..invalid };
        let some = Culprit { invalid: null, blocks: (0, 8), thread: None }.message("k", Some(&config));
        assert!(
            some.starts_with(
                "`k` has read memory that does not exist, through a null pointer (address 0x18), in one of the blocks \
                 (0, 0, 0) to (3, 1, 0): an array or a pointer is null"
            ),
            "{some}"
        );
        let merged = Culprit { invalid, blocks: (0, 8), thread: Some(1) }.message("k", None);
        assert!(merged.contains("at address 0x7f00dead0000: an index"), "{merged}");
        let unknown = InvalidAccess { address: None, why: AccessError::Lost, ..invalid };
        let alone = Culprit { invalid: unknown, blocks: (0, 1), thread: None }.message("k", Some(&[1; 8]));
        assert!(
            alone.contains("of a file that was truncated, in block (0, 0, 0), thread (0, 0, 0). Compile"),
            "{alone}"
        );
    }
}
