//! Faults that kernels report: their exceptions, their locations, and the record that the first fault fills.

/// The faults that a kernel can report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// The faults, by their numbers.
    pub faults: Vec<Fault>,
    /// The calls that can be in a fault's call stack, by their numbers.
    pub calls: Vec<SourceLocation>,
    /// The launch waits for the kernel and raises the fault. Set for debug code, whose messages are Numba's.
    pub at_launch: bool,
}

/// A statement that can raise an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The exception's class: `builtins.ValueError`, or the name in the request.
    pub class: String,
    /// The exception's arguments.
    pub args: Vec<FaultArg>,
    /// The meaning of the record's two numbers.
    pub numbers: Numbers,
    /// Its location.
    pub location: SourceLocation,
}

/// The meaning of the two numbers in a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// They are unused.
    None,
    /// An index that is out of bounds for this axis, and the extent of the axis.
    Index(u8),
    /// Two extents; the first cannot be broadcast to the second.
    Extents,
    /// The number of elements of an array, and that of another shape.
    Elements,
}

/// A line of a function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// The file's name.
    pub file: String,
    /// From 1.
    pub line: u32,
    /// The Python function.
    pub function: String,
}

/// An argument of an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FaultArg {
    /// `None`.
    None,
    /// A bool.
    Bool(bool),
    /// An int.
    Int(i128),
    /// The bits of a float.
    Float(u64),
    /// A string.
    Str(String),
    /// A tuple.
    Tuple(Vec<Self>),
}

/// The indices of the eight-byte words that the first thread with a fault writes.
#[derive(Clone, Copy, Debug)]
pub struct FaultRecord;

impl FaultRecord {
    /// Nonzero when all other words are written.
    pub const DONE: usize = 0;
    /// The fault's number.
    pub const FAULT: usize = 1;
    /// `threadIdx.x`, `.y`, `.z`.
    pub const THREAD: usize = 2;
    /// `blockIdx.x`, `.y`, `.z`.
    pub const BLOCK: usize = 5;
    /// The first of the [`Numbers`].
    pub const INDEX: usize = 8;
    /// The second of the [`Numbers`].
    pub const EXTENT: usize = 9;
    /// The number of calls in the call stack.
    pub const N_CALLS: usize = 10;
    /// Their numbers, the innermost first.
    pub const CALLS: usize = 11;
    /// The maximum number of recorded calls; further calls are only counted.
    pub const MOST_CALLS: usize = 32;
    /// The number of words.
    pub const LEN: usize = Self::CALLS + Self::MOST_CALLS;
}

/// A fault that was reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// The fault.
    pub fault: Fault,
    /// `threadIdx`.
    pub thread: [u32; 3],
    /// `blockIdx`.
    pub block: [u32; 3],
    /// The numbers; [`Fault::numbers`] has their meaning.
    pub numbers: (i64, i64),
    /// The call stack, innermost call first.
    pub calls: Vec<SourceLocation>,
    /// The number of further calls, which were not recorded.
    pub further: u64,
    /// The launched code was debug code.
    pub at_launch: bool,
}

impl Faults {
    /// The fault in a record; `None` if there is none.
    pub fn raised(&self, word: impl Fn(usize) -> u64) -> Option<Raised> {
        if word(FaultRecord::DONE) == 0 {
            return None;
        }
        let fault = self.faults.get(word(FaultRecord::FAULT) as usize)?.clone();
        let three = |first: usize| [0, 1, 2].map(|axis| word(first + axis) as u32);
        let n_calls = word(FaultRecord::N_CALLS);
        let known = n_calls.min(FaultRecord::MOST_CALLS as u64);
        let calls =
            (0..known as usize).filter_map(|call| self.calls.get(word(FaultRecord::CALLS + call) as usize).cloned());
        Some(Raised {
            fault,
            thread: three(FaultRecord::THREAD),
            block: three(FaultRecord::BLOCK),
            numbers: (word(FaultRecord::INDEX).cast_signed(), word(FaultRecord::EXTENT).cast_signed()),
            calls: calls.collect(),
            further: n_calls - known,
            at_launch: self.at_launch,
        })
    }
}

impl Raised {
    /// The exception's message, if weft generates it.
    pub fn message(&self) -> Option<String> {
        let (first, second) = self.numbers;
        match self.fault.numbers {
            Numbers::None => None,
            Numbers::Index(axis) => Some(format!("index {first} is out of bounds for axis {axis} with size {second}")),
            Numbers::Extents => Some(format!("could not broadcast a dimension of size {first} to size {second}")),
            Numbers::Elements => {
                Some(format!("cannot reshape array of size {first} into a shape of {second} elements"))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_names_its_fault() {
        let location = |line| SourceLocation { file: "k.py".to_owned(), line, function: "f".to_owned() };
        let fault = Fault {
            class: "builtins.IndexError".to_owned(),
            args: Vec::new(),
            numbers: Numbers::Index(1),
            location: location(3),
        };
        let faults = Faults { faults: vec![fault], calls: vec![location(7), location(8)], at_launch: false };
        let mut words = [0_u64; FaultRecord::LEN];
        assert!(faults.raised(|word| words[word]).is_none());
        words[FaultRecord::DONE] = 1;
        words[FaultRecord::THREAD + 1] = 5;
        words[FaultRecord::INDEX] = (-4_i64).cast_unsigned();
        words[FaultRecord::EXTENT] = 3;
        words[FaultRecord::N_CALLS] = 2;
        words[FaultRecord::CALLS] = 1;
        let raised = faults.raised(|word| words[word]).expect("it is there");
        assert_eq!(raised.thread, [0, 5, 0]);
        assert_eq!(raised.calls, [location(8), location(7)]);
        assert_eq!(raised.message().as_deref(), Some("index -4 is out of bounds for axis 1 with size 3"));
    }
}
