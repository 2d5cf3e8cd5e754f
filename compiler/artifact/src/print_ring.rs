//! Where a GPU's threads leave what they print, in the host's memory: to see that nothing has come takes no call.

/// A ring of words of eight bytes, with a few words before it. A call of `print` takes room by one atomic step on a word of
/// device memory, writes a record, and its first word last; the host reads records in their order, and makes words that it
/// has read 0 before it gives their room back.
///
/// A record is its size in bytes, a word with the bytes of the format below the [count](Self::COUNT_SHIFT) of arguments, the
/// format, a word for each argument (of a text how many bytes it has), and the texts; format and texts end with zeros, up to a
/// whole word.
///
/// The compiler's `nvptx/print.ll` knows these numbers, too.
#[derive(Clone, Copy, Debug)]
pub struct PrintRing;

impl PrintRing {
    /// The module's symbol of the word with the address of all this; 0 where nobody reads it.
    pub const SYMBOL: &str = "weft$print_page";
    /// How far the host has read, in bytes since the beginning.
    pub const READ: usize = 0;
    /// How many calls have found no room, or a few less.
    pub const LOST: usize = 1;
    /// The address of two words in device memory: how far room is taken, and an exact count of calls that found none.
    pub const HEAD: usize = 2;
    /// Bytes of the ring, a power of two.
    pub const ROOM: usize = 3;
    /// The ring's first word.
    pub const FIRST: usize = 8;
    /// Words of a record before its format.
    pub const BEFORE_FORMAT: usize = 2;
    /// Where a record's second word has the count of arguments.
    pub const COUNT_SHIFT: u32 = 32;
}
