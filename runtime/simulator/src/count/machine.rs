//! What floating-point instructions and divisions of the PTX become in machine code.
//!
//! The rows are the fast paths of `ptxas` 13.5 for `sm_90`; with denormal, infinite and NaN operands, a division or root
//! runs further instructions. Instructions whose predicate is false for normal operands count as issued only.

use crate::decode::{FloatOp, IntOp, Mode, Operation};

/// Machine instructions by kind.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct MachineCode {
    /// Sums, products and fused multiply-adds of float32.
    pub float32: [u64; 3],
    /// Sums, products and fused multiply-adds of float64.
    pub float64: [u64; 3],
    /// Approximate functions, which divisions and roots begin with.
    pub special: u64,
    /// Instructions that are issued; 0 where the PTX instruction is about one.
    pub issued: u64,
}

impl MachineCode {
    /// The names of [`Self::values`].
    pub const NAMES: [&'static str; 7] =
        ["float32 add", "float32 mul", "float32 fma", "float64 add", "float64 mul", "float64 fma", "special"];

    /// The counts without those of other instructions.
    pub fn values(self) -> [u64; 7] {
        let ([a, b, c], [d, e, f]) = (self.float32, self.float64);
        [a, b, c, d, e, f, self.special]
    }

    const fn single(float32: [u64; 3], special: u64, issued: u64) -> Self {
        Self { float32, float64: [0; 3], special, issued }
    }

    const fn double(float64: [u64; 3], float32_fma: u64, issued: u64) -> Self {
        Self { float32: [0, 0, float32_fma], float64, special: 1, issued }
    }

    /// Those of an instruction for one lane.
    pub(crate) fn of(operation: &Operation) -> Self {
        match operation {
            Operation::Single(op, mode, _) => single(*op, *mode),
            Operation::Double(op, mode, _) => double(*op, *mode),
            Operation::Word(IntOp::DivU | IntOp::DivS | IntOp::RemU | IntOp::RemS, _) => {
                // Conversions to float32 and back are at the rate of approximate functions.
                Self { special: 3, issued: 18, ..Self::default() }
            }
            Operation::Nop
            | Operation::Short(..)
            | Operation::Word(..)
            | Operation::Long(..)
            | Operation::WordOnly(..)
            | Operation::Insert(..)
            | Operation::Mixed(..)
            | Operation::Wide { .. }
            | Operation::Carry { .. }
            | Operation::Half(..)
            | Operation::Compare { .. }
            | Operation::Predicate(..)
            | Operation::Select(..)
            | Operation::Convert(..)
            | Operation::Join { .. }
            | Operation::Split { .. }
            | Operation::Load(_)
            | Operation::Store(_)
            | Operation::LoadParam(_)
            | Operation::StoreParam(_)
            | Operation::Atomic(_)
            | Operation::Collective(..)
            | Operation::Multiply(_)
            | Operation::LoadMatrix(_)
            | Operation::WarpgroupMultiply(_)
            | Operation::Async(_)
            | Operation::ActiveMask(_)
            | Operation::IsSpace(..)
            | Operation::ReadClock(..)
            | Operation::Sleep
            | Operation::Barrier(_)
            | Operation::Branch(_)
            | Operation::Call(_)
            | Operation::Return
            | Operation::Exit
            | Operation::Trap => Self::default(),
        }
    }
}

/// Machine instructions of an operation on float32. An operation without a rounding is an approximation.
fn single(op: FloatOp, mode: Mode) -> MachineCode {
    let approximate = mode.contracts;
    // Without `ftz`, denormal operands are scaled before and results after.
    let function = MachineCode::single([0; 3], 1, if mode.ftz { 1 } else { 4 });
    match op {
        FloatOp::Add | FloatOp::Sub => MachineCode::single([1, 0, 0], 0, 1),
        FloatOp::Mul => MachineCode::single([0, 1, 0], 0, 1),
        FloatOp::Fma | FloatOp::MulSub | FloatOp::SubMul => MachineCode::single([0, 0, 1], 0, 1),
        FloatOp::Div if approximate => MachineCode::single([0, 1, 0], 1, 6),
        FloatOp::Div => MachineCode::single([0, 0, 5], 1, 10),
        FloatOp::Rcp if approximate && mode.ftz => function,
        FloatOp::Rcp if approximate => MachineCode::single([0, 2, 0], 1, 7),
        FloatOp::Rcp => MachineCode::single([1, 0, 2], 1, 9),
        FloatOp::Sqrt if approximate => function,
        FloatOp::Sqrt => MachineCode::single([0, 2, 2], 1, 10),
        FloatOp::Rsqrt | FloatOp::Ex2 | FloatOp::Lg2 => function,
        FloatOp::Sin | FloatOp::Cos => MachineCode::single([0, 1, 0], 1, 2),
        FloatOp::Tanh => MachineCode::single([0; 3], 1, 1),
        FloatOp::Min | FloatOp::Max | FloatOp::MinNan | FloatOp::MaxNan => MachineCode::default(),
        FloatOp::Abs | FloatOp::Neg | FloatOp::Copysign => MachineCode::default(),
    }
}

/// Machine instructions of an operation on float64.
fn double(op: FloatOp, mode: Mode) -> MachineCode {
    let sum = |float64| MachineCode { float64, issued: 1, ..MachineCode::default() };
    let function = MachineCode::single([0; 3], 1, 2);
    match op {
        FloatOp::Add | FloatOp::Sub => sum([1, 0, 0]),
        FloatOp::Mul => sum([0, 1, 0]),
        FloatOp::Fma | FloatOp::MulSub | FloatOp::SubMul => sum([0, 0, 1]),
        FloatOp::Div => MachineCode::double([0, 1, 7], 1, 17),
        FloatOp::Rcp if mode.ftz => function,
        FloatOp::Rcp => MachineCode::double([0, 0, 5], 0, 12),
        FloatOp::Sqrt => MachineCode::double([0, 3, 5], 0, 17),
        FloatOp::Rsqrt if mode.ftz => function,
        FloatOp::Rsqrt => MachineCode::double([0, 2, 3], 0, 12),
        FloatOp::Min | FloatOp::Max | FloatOp::MinNan | FloatOp::MaxNan => MachineCode::default(),
        FloatOp::Abs | FloatOp::Neg | FloatOp::Copysign => MachineCode::default(),
        // There are none for float64.
        FloatOp::Ex2 | FloatOp::Lg2 | FloatOp::Sin | FloatOp::Cos | FloatOp::Tanh => MachineCode::default(),
    }
}
