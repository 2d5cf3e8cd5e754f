//! Decoded functions: instructions with register numbers, basic blocks, and the layout of a frame.

use super::{asynchronous::AsyncOp, special::Special, warpgroup::WarpgroupMultiply};
use crate::parse::{Space, Type};

/// The number of a register in its bank.
pub(crate) type Reg = u32;

/// The register of a bank that `_` names: written, never read.
pub(crate) const SINK: Reg = 0;
/// The predicate that holds the carry flag.
pub(crate) const CARRY: Reg = 1;

/// A bank of registers. Integers and floats of one size share a bank; 16 bits are in a word, zero-extended.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Bank {
    Predicate,
    Word,
    Long,
}

/// An operation on integers of one size. `U` and `S`: unsigned and signed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum IntOp {
    Mov,
    Add,
    Sub,
    AddSat,
    SubSat,
    MulLo,
    MulHiU,
    MulHiS,
    MadLo,
    MadHiU,
    MadHiS,
    DivU,
    DivS,
    RemU,
    RemS,
    MinU,
    MinS,
    MaxU,
    MaxS,
    Abs,
    Neg,
    And,
    Or,
    Xor,
    Not,
    Cnot,
    Shl,
    ShrU,
    ShrS,
    SadU,
    SadS,
    Brev,
}

/// An operation on 32-bit words only.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum WordOp {
    Popc,
    Clz,
    BfeU,
    BfeS,
    Prmt,
    FunnelLeft {
        clamp: bool,
    },
    FunnelRight {
        clamp: bool,
    },
    /// `lop3` with its table.
    Logic(u8),
    FindU,
    FindS,
    Dp4aU,
    Dp4aS,
}

/// An operation with 64-bit operands and words.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MixedOp {
    Shl,
    ShrU,
    ShrS,
    BfeU,
    BfeS,
    /// The result is a word.
    Popc,
    /// The result is a word.
    Clz,
}

/// An operation of `add.cc`, `subc` and so on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CarryOp {
    Add,
    Sub,
    MadLo,
    MadHiU,
    MadHiS,
}

/// The direction of a rounding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Rounding {
    Nearest,
    Zero,
    Down,
    Up,
}

/// An operation on floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FloatOp {
    Add,
    Sub,
    Mul,
    Fma,
    /// `a * b - c`
    MulSub,
    /// `c - a * b`
    SubMul,
    Div,
    Sqrt,
    Rcp,
    Rsqrt,
    Min,
    Max,
    MinNan,
    MaxNan,
    Abs,
    Neg,
    Copysign,
    Ex2,
    Lg2,
    Sin,
    Cos,
    Tanh,
}

/// The modifiers of an operation on floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Mode {
    pub(crate) rounding: Rounding,
    /// Flush denormals to zero.
    pub(crate) ftz: bool,
    /// Clamp to [0, 1].
    pub(crate) sat: bool,
    /// The rounding is not written: `ptxas` may contract the operation.
    pub(crate) contracts: bool,
}

/// A format of floats.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Format {
    F16,
    Bf16,
    F32,
    F64,
}

/// A relation of `setp`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Relation {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    /// Neither operand is NaN.
    Num,
    /// One operand is NaN.
    Nan,
}

/// A logical operation on predicates.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Logic {
    And,
    Or,
    Xor,
    Not,
    Mov,
}

/// Rounding to an integer in `cvt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ToInteger {
    Nearest,
    Zero,
    Down,
    Up,
}

/// The modifiers of `cvt`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Conversion {
    pub(crate) to: Type,
    pub(crate) from: Type,
    pub(crate) rounding: Rounding,
    pub(crate) to_integer: Option<ToInteger>,
    pub(crate) sat: bool,
    pub(crate) ftz: bool,
}

/// An address: a register and an offset.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Address {
    pub(crate) bank: Bank,
    pub(crate) base: Reg,
    pub(crate) offset: i64,
}

/// Registers of a load or a store, up to four.
#[derive(Debug, Clone)]
pub(crate) struct Access {
    pub(crate) space: Space,
    pub(crate) address: Address,
    /// The type of one element.
    pub(crate) ty: Type,
    pub(crate) registers: Vec<(Bank, Reg)>,
    /// Other threads may write the bytes: `volatile`, `relaxed`, `acquire`.
    pub(crate) polls: bool,
}

/// A part of the parameters of a frame, in bytes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Slot {
    pub(crate) offset: u32,
    pub(crate) size: u32,
    /// The PTX says that it is an address.
    pub(crate) is_pointer: bool,
}

/// A load or store of a parameter.
#[derive(Debug, Clone)]
pub(crate) struct ParamAccess {
    /// The launch's parameters; otherwise those of the frame.
    pub(crate) of_kernel: bool,
    pub(crate) offset: u32,
    pub(crate) ty: Type,
    pub(crate) registers: Vec<(Bank, Reg)>,
}

/// An atomic operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AtomicOp {
    Add,
    Min,
    Max,
    And,
    Or,
    Xor,
    Exch,
    Cas,
    Inc,
    Dec,
}

/// An atomic instruction.
#[derive(Debug, Clone)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub(crate) struct Atomic {
    pub(crate) op: AtomicOp,
    pub(crate) ty: Type,
    pub(crate) space: Space,
    pub(crate) address: Address,
    pub(crate) bank: Bank,
    pub(crate) d: Reg,
    pub(crate) operands: [Reg; 2],
    /// Some instruction reads the result.
    pub(crate) is_read: bool,
    /// The address is equal in all lanes by data flow.
    pub(crate) is_uniform: bool,
    /// The value is equal in all lanes by data flow.
    pub(crate) is_value_uniform: bool,
    /// It adds the constant 1: a sum of integers, or an increment without a limit.
    pub(crate) adds_one: bool,
}

/// The source lane of a shuffle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shuffle {
    Up,
    Down,
    Bfly,
    Idx,
}

/// A collective of the lanes of a warp.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Collective {
    /// `d`, the predicate, `a`, `b`, `c`
    Shuffle(Shuffle, Reg, Reg, Reg, Reg, Reg),
    /// `d`, the predicate
    VoteAll(Reg, Vote),
    VoteAny(Reg, Vote),
    VoteUni(Reg, Vote),
    Ballot(Reg, Vote),
    /// `d`, the predicate, the bank and register of the value
    MatchAny(Reg, Bank, Reg),
    MatchAll(Reg, Reg, Bank, Reg),
    Redux(AtomicOp, bool, Reg, Reg),
    Barrier,
}

/// The operand of a vote.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Vote {
    pub(crate) p: Reg,
    pub(crate) negated: bool,
}

/// A product of matrices, `d = a * b + c`: the registers of a lane.
#[derive(Debug, Clone)]
pub(crate) struct Multiply {
    pub(crate) tile: weft_artifact::MatrixTile,
    pub(crate) rules: weft_artifact::MatrixRules,
    /// The bank of all of them.
    pub(crate) bank: Bank,
    pub(crate) d: Vec<Reg>,
    pub(crate) a: Vec<Reg>,
    pub(crate) b: Vec<Reg>,
    pub(crate) c: Vec<Reg>,
}

/// A load of matrices of eight rows of 16 bytes from shared memory: one for each register.
#[derive(Debug, Clone)]
pub(crate) struct LoadMatrix {
    pub(crate) d: Vec<Reg>,
    pub(crate) transposed: bool,
    /// Of lane `8 * i + j` that of row `j` of matrix `i`.
    pub(crate) address: Address,
}

/// A reduction of a barrier.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum BarrierResult {
    None,
    And(Reg),
    Or(Reg),
    Popc(Reg),
}

/// A barrier of the block.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Barrier {
    pub(crate) id: Reg,
    /// The number of threads, if not all.
    pub(crate) threads: Option<Reg>,
    pub(crate) waits: bool,
    pub(crate) p: Vote,
    pub(crate) result: BarrierResult,
}

/// The function of a call.
#[derive(Debug, Clone)]
pub(crate) enum Callee {
    Function(usize),
    /// A function of another module.
    External(String),
}

/// A call.
#[derive(Debug, Clone)]
pub(crate) struct Call {
    pub(crate) callee: Callee,
    pub(crate) args: Vec<Slot>,
    pub(crate) results: Vec<Slot>,
}

/// A clock.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Clock {
    Cycles,
    CyclesHi,
    Cycles64,
    Timer,
    TimerLo,
    TimerHi,
}

/// The operation of an instruction with its registers: the result first, then the operands.
#[derive(Debug, Clone)]
pub(crate) enum Operation {
    /// No operation: a fence, or a product that its sum contains.
    Nop,
    Short(IntOp, [Reg; 4]),
    Word(IntOp, [Reg; 4]),
    Long(IntOp, [Reg; 4]),
    WordOnly(WordOp, [Reg; 4]),
    /// `bfi`: the result, `a`, `b`, the position and the length.
    Insert(Bank, [Reg; 5]),
    Mixed(MixedOp, [Reg; 4]),
    /// A product of twice the size, and a summand if there is one.
    Wide {
        ty: Type,
        registers: [Reg; 3],
        summand: Option<Reg>,
    },
    Carry {
        op: CarryOp,
        bank: Bank,
        reads: bool,
        writes: bool,
        registers: [Reg; 4],
    },
    Single(FloatOp, Mode, [Reg; 4]),
    Double(FloatOp, Mode, [Reg; 4]),
    /// 16-bit floats, one or two in a register.
    Half(FloatOp, Mode, Format, bool, [Reg; 4]),
    /// `p = a relation b`, and `q` its complement, both combined with a predicate by `logic`.
    Compare {
        relation: Relation,
        unordered: bool,
        ty: Type,
        p: Reg,
        q: Reg,
        a: Reg,
        b: Reg,
        logic: Option<(Logic, Vote)>,
    },
    Predicate(Logic, [Reg; 3]),
    /// The bank, the result, two values and the predicate.
    Select(Bank, [Reg; 4]),
    Convert(Conversion, (Bank, Reg), (Bank, Reg)),
    /// Joins registers to a wider one: `mov.b64 d, {a, b}`.
    Join {
        ty: Type,
        d: Reg,
        parts: Vec<Reg>,
    },
    /// Splits a register: `mov.b64 {a, b}, d`.
    Split {
        ty: Type,
        parts: Vec<Reg>,
        a: Reg,
    },
    Load(Box<Access>),
    Store(Box<Access>),
    LoadParam(Box<ParamAccess>),
    StoreParam(Box<ParamAccess>),
    Atomic(Box<Atomic>),
    Collective(Collective, Reg),
    Multiply(Box<Multiply>),
    LoadMatrix(Box<LoadMatrix>),
    WarpgroupMultiply(Box<WarpgroupMultiply>),
    Async(Box<AsyncOp>),
    ActiveMask(Reg),
    /// Whether an address is in a space; that of shared memory is the block's, or with `true` the cluster's.
    IsSpace(Space, bool, Reg, Reg),
    ReadClock(Clock, Bank, Reg),
    Sleep,
    Barrier(Box<Barrier>),
    Branch(u32),
    Call(Box<Call>),
    Return,
    Exit,
    Trap,
}

/// A decoded instruction.
#[derive(Debug, Clone)]
pub(crate) struct Instruction {
    pub(crate) operation: Operation,
    /// The predicate, and whether it is negated.
    pub(crate) guard: Option<Vote>,
    /// The line of the PTX.
    pub(crate) line: u32,
    /// The index of its location in the program.
    pub(crate) location: u32,
    /// The type of operation that it counts as.
    pub(crate) class: crate::count::Class,
}

/// A basic block: the range of its instructions, and the block where lanes that diverge at its end converge.
#[derive(Debug, Clone, Copy)]
pub(crate) struct BasicBlock {
    pub(crate) start: u32,
    pub(crate) end: u32,
    /// The first instruction of the immediate post-dominator; the number of instructions for the function's end.
    pub(crate) join: u32,
}

/// A decoded function.
#[derive(Debug)]
pub(crate) struct Function {
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    pub(crate) instructions: Vec<Instruction>,
    pub(crate) blocks: Vec<BasicBlock>,
    /// The block of each instruction.
    pub(crate) block_of: Vec<u32>,
    /// The number of registers of each bank.
    pub(crate) words: u32,
    pub(crate) longs: u32,
    pub(crate) predicates: u32,
    pub(crate) word_constants: Vec<(Reg, u32)>,
    pub(crate) long_constants: Vec<(Reg, u64)>,
    pub(crate) predicate_constants: Vec<(Reg, bool)>,
    pub(crate) specials: Vec<(Reg, Special)>,
    /// Registers that hold addresses in the frame's local memory.
    pub(crate) local_addresses: Vec<(Reg, u32)>,
    pub(crate) local_size: u32,
    pub(crate) params: Vec<Slot>,
    pub(crate) returns: Vec<Slot>,
    /// The bytes of all parameters, results, and parameters of calls, for one lane.
    pub(crate) param_size: u32,
    /// The number of the first counter of its instructions.
    pub(crate) first_counter: usize,
}

/// A line of source code.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Location {
    /// The number of the file: see [`crate::Module::file`].
    pub file: u32,
    /// The line, from 1; 0 if none is known.
    pub line: u32,
    /// The column, from 1. Of inlined code it is a number: see [`crate::Module::calls`].
    pub column: u32,
    /// LLVM gives no line for the instruction: it is that of the instruction before.
    pub is_inherited: bool,
}

/// A variable of the module in memory.
#[derive(Debug)]
pub(crate) struct ModuleVariable {
    pub(crate) name: String,
    pub(crate) base: u64,
    pub(crate) bytes: Vec<u8>,
}

/// A decoded module.
#[derive(Debug)]
pub(crate) struct Program {
    pub(crate) functions: Vec<Function>,
    pub(crate) variables: Vec<ModuleVariable>,
    pub(crate) locations: Vec<Location>,
    /// The bytes of static shared memory.
    pub(crate) static_shared: u32,
    pub(crate) files: std::collections::BTreeMap<u32, String>,
    /// The calls of inlined code, by column.
    pub(crate) calls: std::collections::BTreeMap<u32, Vec<crate::parse::CallSite>>,
}
