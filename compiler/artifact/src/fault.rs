//! Faults that kernels report: what they raise, where they can come from, and the record that the first one fills.

/// The faults of a kernel that reports them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Faults {
    /// By their numbers.
    pub faults: Vec<Fault>,
    /// Calls that a fault may come through, by their numbers.
    pub calls: Vec<SourceLocation>,
    /// Whoever launches waits, and is told: debug code, whose messages are Numba's.
    pub at_launch: bool,
}

/// A place that can raise an exception.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    /// The exception's class: `builtins.ValueError`, or what whoever made the request calls it.
    pub class: String,
    /// What the exception is made of.
    pub args: Vec<FaultArg>,
    /// What the record's two numbers are.
    pub numbers: Numbers,
    /// Where.
    pub location: SourceLocation,
}

/// What the two numbers are that a record has besides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Numbers {
    /// Nothing.
    None,
    /// An index that is out of bounds of an axis, and the extent there.
    Index(u8),
    /// Two extents, the first of which cannot be broadcast to the second.
    Extents,
    /// The elements that an array has, and those that another shape has.
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
    /// A text.
    Str(String),
    /// A tuple.
    Tuple(Vec<Self>),
}

/// The words of eight bytes that the first thread with a fault writes.
#[derive(Clone, Copy, Debug)]
pub struct FaultRecord;

impl FaultRecord {
    /// Not 0 when all the others are written.
    pub const DONE: usize = 0;
    /// The fault's number.
    pub const FAULT: usize = 1;
    /// `threadIdx.x`, `.y`, `.z`.
    pub const THREAD: usize = 2;
    /// `blockIdx.x`, `.y`, `.z`.
    pub const BLOCK: usize = 5;
    /// An index that is out of bounds, or the first of other [`Numbers`].
    pub const INDEX: usize = 8;
    /// The extent that it does not fit, or the second.
    pub const EXTENT: usize = 9;
    /// How many calls it came through.
    pub const N_CALLS: usize = 10;
    /// Their numbers, the innermost first.
    pub const CALLS: usize = 11;
    /// Further calls are only counted.
    pub const MOST_CALLS: usize = 32;
    /// All words.
    pub const LEN: usize = Self::CALLS + Self::MOST_CALLS;
}

/// A fault that has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Raised {
    /// What and where.
    pub fault: Fault,
    /// `threadIdx`.
    pub thread: [u32; 3],
    /// `blockIdx`.
    pub block: [u32; 3],
    /// What [`Fault::numbers`] says.
    pub numbers: (i64, i64),
    /// The calls that led there, the innermost first.
    pub calls: Vec<SourceLocation>,
    /// How many further calls led there.
    pub further: u64,
    /// The launch was of debug code.
    pub at_launch: bool,
}

impl Faults {
    /// The fault in a record; `None` if none has come.
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
    /// The text of the exception's first argument, if it is made here.
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
