//! The output rule: the shape and the dtype of an array that the caller of a kernel does not pass.

use super::{RuleArgs, RuleError, RuleExpr};
use crate::number::Number;

/// Computes the shape and the dtype of an output from the arguments. Outputs are C-contiguous.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct OutputRule {
    /// The parameter that the output is passed as.
    pub param: u32,
    /// Its shape.
    pub shape: OutputShape,
    /// Its dtype.
    pub dtype: OutputDType,
    /// Whether its elements start as zeros; otherwise they start uninitialized.
    pub zeroed: bool,
}

/// The shape of an output.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum OutputShape {
    /// That of an array argument.
    Like(u32),
    /// These extents.
    Extents(Vec<RuleExpr>),
}

/// The dtype of an output.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum OutputDType {
    /// That of an array argument.
    Like(u32),
    /// This one.
    Is(Number),
    /// That of the parameter in the kernel's signature.
    Declared,
}

impl OutputRule {
    /// The number that stands for the only array that the kernel writes, until [`Self::bound`].
    pub const ONLY_WRITTEN: u32 = u32::MAX;

    /// The shape for some arguments.
    ///
    /// # Errors
    ///
    /// An expression has no value for the arguments, or an extent is negative.
    pub fn evaluate<A: RuleArgs + ?Sized>(&self, args: &A) -> Result<Vec<i64>, RuleError> {
        match &self.shape {
            OutputShape::Like(param) => {
                args.shape(*param as usize).map(<[i64]>::to_vec).ok_or(RuleError::NoArray { param: *param })
            }
            OutputShape::Extents(extents) => {
                let extents = extents.iter().enumerate().map(|(dim, expr)| {
                    let value = expr.evaluate(args)?;
                    if value < 0 {
                        return Err(RuleError::NegativeExtent { param: self.param, dim, value });
                    }
                    Ok(value)
                });
                extents.collect()
            }
        }
    }

    /// Its expressions.
    pub fn exprs(&self) -> &[RuleExpr] {
        match &self.shape {
            OutputShape::Like(_) => &[],
            OutputShape::Extents(extents) => extents,
        }
    }
}
