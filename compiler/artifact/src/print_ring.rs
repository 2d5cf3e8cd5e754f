//! The ring buffer in host memory that receives the output of a GPU's threads. The host polls it without calling the
//! driver.

/// A ring of eight-byte words after a header of a few words. A call of `print` reserves space by one atomic operation
/// on a word in device memory, and writes a record, whose first word it writes last. The host reads records in order,
/// and zeroes the words that it has read before it frees their space.
///
/// A record consists of its size in bytes, a word with the size of the format in the bits below the
/// [count](Self::COUNT_SHIFT) of arguments, the format, a word for each argument (for a string, its size in bytes), and
/// the strings. The format and the strings are padded with zeros to whole words.
///
/// The compiler's `nvptx/print.ll` uses these numbers, too.
#[derive(Clone, Copy, Debug)]
pub struct PrintRing;

impl PrintRing {
    /// The symbol of the module's word with the buffer's address. The word is 0 if no host reads the buffer.
    pub const SYMBOL: &str = "weft$print_page";
    /// The total number of bytes that the host has read.
    pub const READ: usize = 0;
    /// The number of calls that found no space, or a slightly smaller number.
    pub const LOST: usize = 1;
    /// The address of two words in device memory: the total number of reserved bytes, and the exact number of calls
    /// that found no space.
    pub const HEAD: usize = 2;
    /// The size of the ring in bytes, a power of two.
    pub const ROOM: usize = 3;
    /// The ring's first word.
    pub const FIRST: usize = 8;
    /// The number of words in a record before its format.
    pub const BEFORE_FORMAT: usize = 2;
    /// The bit at which the count of arguments begins in a record's second word.
    pub const COUNT_SHIFT: u32 = 32;
}
