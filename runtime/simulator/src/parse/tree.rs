//! The syntax tree of PTX.

use std::collections::BTreeMap;

/// A type of PTX: what an instruction reads, writes or stores.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Type {
    B8,
    B16,
    B32,
    B64,
    B128,
    U8,
    U16,
    U32,
    U64,
    S8,
    S16,
    S32,
    S64,
    F16,
    F16x2,
    Bf16,
    Bf16x2,
    E4m3,
    E4m3x2,
    E5m2,
    E5m2x2,
    F32,
    F64,
    Pred,
}

impl Type {
    /// The type with a name, such as `b32`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name {
            "b8" => Self::B8,
            "b16" => Self::B16,
            "b32" => Self::B32,
            "b64" => Self::B64,
            "b128" => Self::B128,
            "u8" => Self::U8,
            "u16" => Self::U16,
            "u32" => Self::U32,
            "u64" => Self::U64,
            "s8" => Self::S8,
            "s16" => Self::S16,
            "s32" => Self::S32,
            "s64" => Self::S64,
            "f16" => Self::F16,
            "f16x2" => Self::F16x2,
            "bf16" => Self::Bf16,
            "bf16x2" => Self::Bf16x2,
            "e4m3x2" => Self::E4m3x2,
            "e5m2x2" => Self::E5m2x2,
            "f32" => Self::F32,
            "f64" => Self::F64,
            "pred" => Self::Pred,
            _ => return None,
        })
    }

    /// Its size in bytes. A predicate has none.
    pub(crate) fn size(self) -> u32 {
        match self {
            Self::Pred => 0,
            Self::B8 | Self::U8 | Self::S8 | Self::E4m3 | Self::E5m2 => 1,
            Self::B16 | Self::U16 | Self::S16 | Self::F16 | Self::Bf16 | Self::E4m3x2 | Self::E5m2x2 => 2,
            Self::B32 | Self::U32 | Self::S32 | Self::F32 | Self::F16x2 | Self::Bf16x2 => 4,
            Self::B64 | Self::U64 | Self::S64 | Self::F64 => 8,
            Self::B128 => 16,
        }
    }

    /// Whether it is a signed integer.
    pub(crate) fn is_signed(self) -> bool {
        matches!(self, Self::S8 | Self::S16 | Self::S32 | Self::S64)
    }

    /// Whether it is an integer, or bits.
    pub(crate) fn is_integer(self) -> bool {
        matches!(
            self,
            Self::B8
                | Self::B16
                | Self::B32
                | Self::B64
                | Self::B128
                | Self::U8
                | Self::U16
                | Self::U32
                | Self::U64
                | Self::S8
                | Self::S16
                | Self::S32
                | Self::S64
        )
    }
}

/// A state space of PTX.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Space {
    /// Global memory.
    Global,
    /// Shared memory of the block.
    Shared,
    /// Memory of a thread.
    Local,
    /// Constant memory.
    Const,
    /// Parameters of kernels and device functions.
    Param,
    /// An address that names its space itself.
    Generic,
}

impl Space {
    /// Its name in reports.
    pub fn name(self) -> &'static str {
        match self {
            Self::Global | Self::Generic => "global",
            Self::Shared => "shared",
            Self::Local => "local",
            Self::Const => "constant",
            Self::Param => "parameter",
        }
    }
}

impl Space {
    /// The space with a name, such as `global`.
    pub(crate) fn parse(name: &str) -> Option<Self> {
        Some(match name.split("::").next()? {
            "global" => Self::Global,
            "shared" => Self::Shared,
            "local" => Self::Local,
            "const" => Self::Const,
            "param" => Self::Param,
            _ => return None,
        })
    }
}

/// An initial value of a variable.
#[derive(Debug, Clone)]
pub(crate) enum Value {
    Bits(u64),
    Symbol(String, i64),
}

/// A variable in memory, or a parameter.
#[derive(Debug, Clone)]
pub(crate) struct Variable {
    pub(crate) space: Space,
    pub(crate) name: String,
    pub(crate) align: u32,
    pub(crate) ty: Type,
    /// The number of elements; `None` for `[]`, whose size the launch gives.
    pub(crate) count: Option<u32>,
    pub(crate) values: Vec<Value>,
    /// It has `.ptr`: a kernel parameter that is an address.
    pub(crate) is_pointer: bool,
    pub(crate) line: u32,
}

impl Variable {
    /// Its size in bytes.
    pub(crate) fn size(&self) -> u32 {
        self.ty.size() * self.count.unwrap_or(0)
    }
}

/// An operand of an instruction.
#[derive(Debug, Clone, PartialEq)]
pub(crate) enum Operand {
    Name(String),
    /// A name and an offset: `symbol+8`.
    Offset(String, i64),
    Integer(u64),
    Single(u32),
    Double(u64),
    /// `{a, b}`
    Vector(Vec<Operand>),
    /// `(a, b)`
    List(Vec<Operand>),
    /// `[base+offset]`
    Address(Box<Operand>, i64),
    /// `[base, {i, j}]`: an element of a tensor, by a tensor map and indices.
    Tensor(Box<Operand>, Vec<Operand>),
    /// `a|b`
    Pair(Box<Operand>, Box<Operand>),
    /// `!a`
    Not(Box<Operand>),
}

/// An instruction.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    /// The predicate of `@p` or `@!p`, and whether it is negated.
    pub(crate) guard: Option<(String, bool)>,
    /// The opcode and its modifiers, without the dots.
    pub(crate) opcode: Vec<String>,
    pub(crate) operands: Vec<Operand>,
    pub(crate) line: u32,
}

impl Source {
    /// The opcode as written.
    pub(crate) fn form(&self) -> String {
        self.opcode.join(".")
    }

    /// Whether there is a modifier.
    pub(crate) fn has(&self, modifier: &str) -> bool {
        self.opcode[1..].iter().any(|own| own == modifier)
    }
}

/// A statement of a body.
#[derive(Debug, Clone)]
pub(crate) enum Statement {
    /// `{`: a scope of registers, labels and parameters begins.
    Open,
    /// `}`
    Close,
    Label(String),
    Registers(Vec<String>, Type),
    Variable(Variable),
    Location {
        file: u32,
        line: u32,
        column: u32,
    },
    Instruction(Source),
}

/// A kernel or a device function.
#[derive(Debug, Clone)]
pub(crate) struct FunctionTree {
    pub(crate) name: String,
    pub(crate) is_kernel: bool,
    pub(crate) returns: Vec<Variable>,
    pub(crate) params: Vec<Variable>,
    /// `None` for a declaration.
    pub(crate) body: Option<Vec<Statement>>,
    pub(crate) line: u32,
}

/// A module.
#[derive(Debug, Default)]
pub(crate) struct ModuleTree {
    /// That of the target, major and minor.
    pub(crate) compute_capability: (u32, u32),
    pub(crate) variables: Vec<Variable>,
    pub(crate) functions: Vec<FunctionTree>,
    /// The names of source files by the numbers that `.loc` uses.
    pub(crate) files: BTreeMap<u32, String>,
    /// The calls of inlined code, by the column that `.loc` has for it.
    pub(crate) calls: BTreeMap<u32, Vec<super::CallSite>>,
}
