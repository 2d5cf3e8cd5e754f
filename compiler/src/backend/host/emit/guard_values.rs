//! The values of guards for one row, as the emitted code computes them.

use inkwell::values::IntValue;

use crate::ir::CompareOp;

/// The values of a [`Guard`](crate::backend::host::plan::Guard) for one row.
pub(crate) struct GuardValues<'ctx> {
    pub(crate) ranges: Vec<RangeValues<'ctx>>,
    /// Conditions that are uniform in the row. With `true`, the condition must be false.
    pub(crate) rows: Vec<(IntValue<'ctx>, bool)>,
}

/// A [`Range`](crate::backend::host::plan::Range) for one row, with both sides in 64 bits. `value` is that of the row's
/// first thread; `bound` includes the range's factor and summand.
#[derive(Clone, Debug)]
pub(crate) struct RangeValues<'ctx> {
    pub(crate) value: IntValue<'ctx>,
    pub(crate) op: CompareOp,
    pub(crate) bound: IntValue<'ctx>,
    pub(crate) wraps: bool,
}
