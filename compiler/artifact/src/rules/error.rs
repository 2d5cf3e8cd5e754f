//! Why a rule gives no launch or no shape.

use crate::english::article;

/// Why a rule gives no launch or no shape. Parameters are numbers; [`RuleError::message`] names them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RuleError {
    /// A value does not fit in 64 bits.
    Overflow,
    /// A division by zero.
    ZeroDivisor,
    /// A shift by a negative count.
    NegativeShift,
    /// An argument is not an array.
    NoArray {
        /// The parameter.
        param: u32,
    },
    /// An argument is not an integer.
    NoInteger {
        /// The parameter.
        param: u32,
    },
    /// An array does not have a dimension.
    NoDimension {
        /// The parameter.
        param: u32,
        /// The dimension, as the rule writes it.
        dim: i64,
        /// The number of dimensions of the array.
        ndim: usize,
    },
    /// The type of a parameter is none that the rule can use.
    WrongType {
        /// The parameter.
        param: u32,
        /// What the rule uses, with its article.
        wanted: &'static str,
        /// The type.
        found: String,
    },
    /// A part of the launch is out of range.
    OutOfRange {
        /// The part: `gridDim.x`.
        what: &'static str,
        /// Its value.
        value: i64,
        /// The least value.
        least: i64,
        /// The greatest value.
        most: i64,
    },
    /// The threads of a block are too many.
    TooManyThreads {
        /// The extents of the block.
        block: [u32; 3],
        /// The most threads.
        most: u32,
    },
    /// An extent of an output is negative.
    NegativeExtent {
        /// The parameter.
        param: u32,
        /// The dimension.
        dim: usize,
        /// The extent.
        value: i64,
    },
    /// The shape of an output does not have the dimensions that the kernel's type has.
    WrongNdim {
        /// The parameter.
        param: u32,
        /// The number of dimensions of the rule's shape.
        rule: usize,
        /// The number of dimensions of the type.
        ty: usize,
    },
    /// The dtype of an output is not the one that the kernel's type has.
    WrongDType {
        /// The parameter.
        param: u32,
        /// The rule's dtype.
        rule: String,
        /// The type's dtype.
        ty: String,
    },
    /// The output has no name, and the kernel does not write one array.
    NotOneOutput {
        /// The parameters that it writes.
        written: Vec<u32>,
    },
    /// A parameter has two output rules.
    Twice {
        /// The parameter.
        param: u32,
    },
    /// An output rule uses an output, which does not exist yet.
    UsesOutput {
        /// The parameter of the rule.
        param: u32,
        /// The output that it uses.
        used: u32,
    },
    /// The kernel does not write the output.
    NotWritten {
        /// The parameter.
        param: u32,
    },
    /// The kernel reads an output, whose memory the rule leaves uninitialized.
    Uninitialized {
        /// The parameter.
        param: u32,
        /// Whether it only accumulates into it.
        accumulates: bool,
    },
    /// The kernel takes the output in Fortran order; outputs are C-contiguous.
    FortranOrder {
        /// The parameter.
        param: u32,
    },
}

impl RuleError {
    /// The parameter that the error is about.
    pub const fn param(&self) -> Option<u32> {
        match self {
            Self::NoArray { param }
            | Self::NoInteger { param }
            | Self::NoDimension { param, .. }
            | Self::WrongType { param, .. }
            | Self::NegativeExtent { param, .. }
            | Self::WrongNdim { param, .. }
            | Self::WrongDType { param, .. }
            | Self::Twice { param }
            | Self::UsesOutput { param, .. }
            | Self::NotWritten { param }
            | Self::Uninitialized { param, .. }
            | Self::FortranOrder { param } => Some(*param),
            Self::Overflow
            | Self::ZeroDivisor
            | Self::NegativeShift
            | Self::OutOfRange { .. }
            | Self::NotOneOutput { .. }
            | Self::TooManyThreads { .. } => None,
        }
    }

    /// The sentence, without a full stop. `names` are the kernel's parameters.
    pub fn message<S: AsRef<str>>(&self, names: &[S]) -> String {
        let name = |param: u32| match names.get(param as usize) {
            Some(name) => format!("`{}`", name.as_ref()),
            None => format!("argument {}", param + 1),
        };
        match self {
            Self::Overflow => "a value does not fit in 64 bits".to_owned(),
            Self::ZeroDivisor => "a division by zero".to_owned(),
            Self::NegativeShift => "a shift by a negative count".to_owned(),
            Self::NoArray { param } => format!("it uses the shape of {}, which is not an array", name(*param)),
            Self::NoInteger { param } => format!("it uses the value of {}, which is not an integer", name(*param)),
            Self::NoDimension { param, dim, ndim } => {
                let dims = if *ndim == 1 { "1 dimension".to_owned() } else { format!("{ndim} dimensions") };
                let name = name(*param);
                format!("it uses {}.shape[{dim}], but {name} has {dims}", name.trim_matches('`'))
            }
            Self::WrongType { param, wanted, found } => {
                format!("it uses {} as {wanted}, but it is {} {found}", name(*param), article(found))
            }
            Self::OutOfRange { what, value, least, most } => {
                format!("{what} is {value}; it must be from {least} to {most}")
            }
            Self::TooManyThreads { block: [x, y, z], most } => {
                let threads = u64::from(*x) * u64::from(*y) * u64::from(*z);
                format!("a block of {x} × {y} × {z} has {threads} threads; at most {most} are possible")
            }
            Self::NegativeExtent { param, dim, value } => {
                format!("the extent {value} of dimension {dim} of {} is negative", name(*param))
            }
            Self::WrongNdim { param, rule, ty } => {
                format!("the shape for {} has {rule} extents, but the kernel takes {ty} dimensions", name(*param))
            }
            Self::WrongDType { param, rule, ty } => {
                format!("the rule gives {} the dtype {rule}, but the kernel takes {ty}", name(*param))
            }
            Self::NotOneOutput { written } => {
                let names: Vec<String> = written.iter().map(|param| name(*param)).collect();
                let writes = if names.is_empty() { "nothing".to_owned() } else { names.join(", ") };
                let example = names.first().map_or("out", |name| name.trim_matches('`'));
                format!("the kernel writes {writes}: name the parameter of the output, as in out={{\"{example}\": …}}")
            }
            Self::Twice { param } => format!("{} has two output rules", name(*param)),
            Self::UsesOutput { param, used } => {
                format!(
                    "the rule of {} uses {}, which is an output: use the other arguments",
                    name(*param),
                    name(*used)
                )
            }
            Self::NotWritten { param } => {
                format!("the kernel does not write {}: an output is an array that it writes", name(*param))
            }
            Self::Uninitialized { param, accumulates } => {
                let does = if *accumulates { "accumulates into" } else { "reads" };
                format!("the kernel {does} {}, which starts uninitialized: write fill=0 in its rule", name(*param))
            }
            Self::FortranOrder { param } => {
                format!("the kernel takes {} in Fortran order, but outputs are C-contiguous", name(*param))
            }
        }
    }
}
