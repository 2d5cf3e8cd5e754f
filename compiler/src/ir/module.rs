//! Modules, functions, and their declarations.

use std::sync::Arc;

use weft_artifact::{
    ArgItem, ArgType, ArrayType, Assumptions, Coarsening, Factors, FaultArg, Numbers, Param, Scalar, SlotSource,
    SlotType, Tools, Which,
};

use super::{
    Arena, Class, ExprId, FuncId, LocalId,
    expr::{Const, Expr, ExprKind},
    stmt::Block,
    structure::Structure,
    types::{Space, Type},
};
use crate::source::{SourceMap, Span};

/// A kernel or an exported function, with the device functions that it calls.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct Module {
    /// All functions. A callee comes before its callers, except in call cycles ([`Circles`](super::Circles)).
    pub functions: Arena<Function>,
    /// The kernel, or the exported function.
    pub kernel: Option<FuncId>,
    /// Its Python parameters.
    pub params: Vec<Param>,
    /// The result types of an exported function; empty for a kernel.
    pub returns: Option<ArgType>,
    /// Block-shared arrays of fixed size.
    pub shared: Arena<SharedArray>,
    /// Arrays that are part of the code.
    pub constants: Arena<ConstantArray>,
    /// Inline PTX of the program.
    pub inline_ptx: Arena<InlinePtx>,
    /// Functions that are linked with the kernel.
    pub externals: Arena<External>,
    /// The statements that report a fault.
    pub faults: Arena<FaultSite>,
    /// Calls that a fault may come through.
    pub call_sites: Arena<CallSite>,
    /// `true` if any expression takes the address of dynamic shared memory.
    pub dynamic_shared: bool,
    /// `true` if the kernel uses the grid as a group: all blocks must be resident.
    pub cooperative: bool,
    /// Assumptions that hold for every launch.
    pub assumptions: Assumptions,
    /// For parameters with a short array: the last extent of the array in the launch that the code is compiled for.
    pub short_extents: Vec<(u32, u8)>,
    /// The threads of a block in the launch that the code is compiled for.
    pub likely_block: Option<[u32; 3]>,
    /// The assumptions that improve the code. Passes compute it.
    pub gains: Assumptions,
    /// Whether to bounds-check stores to the arrays of the kernel's arguments, if possible.
    pub bounded_stores: bool,
    /// Whether these bounds checks are possible. A pass computes it.
    pub can_bound_stores: bool,
    /// The requested coarsening factors.
    pub coarsen: Factors,
    /// If no factors are requested: a pass estimates which factors are profitable.
    pub choose: bool,
    /// The coarsening of the code. A pass computes it.
    pub coarsening: Coarsening,
    /// The sanitizer checks for which the code records its accesses.
    pub sanitize: Tools,
    /// The structure of the statements, for the sanitizer.
    pub structure: Structure,
    /// Results must have the same bits on every target: a pass replaces operations whose results depend on the target.
    pub reproducible: bool,
    /// The kernel is an adjoint kernel: its arrays do not overlap, and nothing observes when it adds to gradients.
    pub is_adjoint: bool,
    /// Largest alignment in bytes that arrays in dynamic shared memory need.
    pub dynamic_shared_align: u64,
    /// The files that spans refer to.
    pub sources: SourceMap,
}

/// A statement that raises an exception.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSite {
    /// The exception's class, as in [`weft_artifact::Fault`].
    pub class: String,
    /// The exception's arguments.
    pub args: Vec<FaultArg>,
    /// The meaning of the record's two numbers.
    pub numbers: Numbers,
    /// No call is added to the record: it is complete when the thread has written it.
    pub alone: bool,
    /// The Python function.
    pub function: String,
    /// Its location.
    pub span: Span,
}

/// A call that can be in a fault's call stack.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSite {
    /// The calling Python function.
    pub function: String,
    /// Its location.
    pub span: Span,
}

/// A kernel or a device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Unique in its module; also the symbol. A kernel's contains the Python name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// The locals of the parameters, in order. A kernel and an exported function have one for each slot in `slots`.
    pub params: Vec<LocalId>,
    /// The source of each of these locals; empty for device functions.
    pub slots: Vec<SlotSource>,
    /// Result types; a kernel has none.
    pub results: Vec<Type>,
    /// All variables.
    pub locals: Arena<Local>,
    /// Thread-local arrays.
    pub local_arrays: Arena<LocalArray>,
    /// All expressions.
    pub exprs: Arena<Expr>,
    /// The statements. A function with results ends every path with `Return`.
    pub body: Block,
    /// Whether to inline it into all callers.
    pub inline: bool,
    /// How its calls are differentiated, if not by its statements.
    pub rule: Option<Rule>,
    /// The location of the `def` statement.
    pub span: Span,
}

/// How calls of a function are differentiated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rule {
    /// The derivative is 0.
    Zero,
    /// By a function of the arguments, the results, and the adjoints of the results that are floats.
    Backward {
        /// The function.
        func: FuncId,
        /// It returns the adjoints of all arguments that are numbers, not only of those that are floats.
        of_all: bool,
    },
    /// The function itself gives the adjoint of its argument from the adjoint of its result: the sum of a block, which all
    /// threads get. It has barriers of the block.
    Symmetric,
}

/// How a function is called.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// Launched over a grid.
    Kernel,
    /// Called by the functions of its module.
    Device,
    /// Called by other code. Its results are the parts of [`Module::returns`] and, if it may end the thread, a `Bool`
    /// that is true if it did.
    Export,
}

/// A variable. Its value is undefined until it is assigned.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "independent flags")]
pub struct Local {
    /// The Python variable, with a suffix for parts (`x.data`, `x.shape0`, `z.real`); temporaries are `t`. Names may
    /// repeat: the text form adds the handle's number.
    pub name: String,
    /// The kind of variable.
    pub kind: LocalKind,
    /// Its type.
    pub ty: Type,
    /// It is never negative: an extent, or the counter of a loop that cannot go below zero.
    pub nonneg: bool,
    /// A loop counter that must not overflow: in the loop's `step`, additions to it saturate.
    pub counts: bool,
    /// A parameter that points to memory that is constant while the kernel runs. The plan for the host sets it.
    pub never_written: bool,
    /// A parameter whose value is one of `int32`, as launches are assumed to be small. The plan for the host sets it.
    pub small: bool,
    /// It is only assigned from loads of shared memory that no thread writes between the barriers around them. The plan
    /// for the host sets it.
    pub broadcast: bool,
    /// The offset that is added to the threads' first indices in an interchanged loop. The plan for the host sets it.
    pub offset: bool,
}

/// The kind of a local. Passes may remove locals that are not variables of the program.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalKind {
    /// A variable, or a flag or counter of a statement.
    Variable,
    /// One of several parts of a variable's value.
    Part,
    /// A temporary of an expression.
    Temp,
}

impl Local {
    /// A local without known properties.
    pub fn new(name: impl Into<String>, kind: LocalKind, ty: Type) -> Self {
        Self {
            name: name.into(),
            kind,
            ty,
            nonneg: false,
            counts: false,
            never_written: false,
            small: false,
            broadcast: false,
            offset: false,
        }
    }
}

/// The purpose of a block-shared array.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedKind {
    /// An array of the program.
    Program,
    /// Scratch memory of `cuda.coop` calls.
    Coop,
    /// The values of all threads, for `cuda.coop` calls on the CPU. It is no shared memory of the program: a kernel with
    /// as much of it as a GPU allows compiles for the CPU, too.
    Staged,
    /// Cells of a pass, for collective operations of a block or a warp.
    Cells,
    /// A copy of an argument's first elements that persists from block to block. The plan for the host creates it.
    Privatized,
    /// Values of locals, for the statements that each warp runs on its own. The plan for the host creates it.
    Context,
}

/// A block-shared array of fixed size. Contents are undefined at first.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedArray {
    /// The name for the symbol: the Python variable or a generated name.
    pub name: String,
    /// Its purpose.
    pub kind: SharedKind,
    /// Element type; a complex array has twice the elements of its part.
    pub elem: Scalar,
    /// Elements.
    pub len: u64,
    /// Its extents, for messages; empty if the program does not declare them.
    pub shape: Vec<u64>,
    /// Alignment in bytes.
    pub align: u64,
    /// The location of the call that declares it.
    pub span: Span,
}

/// A constant array in the code.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantArray {
    /// The Python variable.
    pub name: String,
    /// Element type; a complex array has twice the elements of its part.
    pub elem: Scalar,
    /// The bytes of the elements.
    pub bytes: Arc<[u8]>,
    /// Alignment in bytes.
    pub align: u64,
    /// `Constant` if all constant arrays fit into CUDA's constant memory, else `Global`.
    pub space: Space,
    /// The location of a read.
    pub span: Span,
}

/// Inline PTX of the program, with the types of its operands and results.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinePtx {
    /// The PTX, in which `$0`, `$1`, … are the results and then the operands, and `$$` is a dollar sign.
    pub text: String,
    /// The constraints of the results and operands, as LLVM writes them: `=r`, `l`, or `0` for the register of a
    /// result.
    pub constraints: Vec<String>,
    /// Its operand types; pointers become addresses in the generic space.
    pub operands: Vec<Type>,
    /// Its result types.
    pub results: Vec<Type>,
    /// The location of the call.
    pub span: Span,
}

/// A function of another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Its symbol.
    pub symbol: String,
    /// Its parameter types. A call's operands are the fields of all parameters; pointers are addresses in the generic
    /// space.
    pub params: Vec<ArgType>,
    /// Its result type. A call's results are its fields.
    pub returns: Option<ArgType>,
    /// It writes its result to the address in its first parameter and returns an `I32`, which is the first result.
    pub writes: bool,
    /// The location of a call.
    pub span: Span,
}

/// A thread-local array of fixed size. Contents are undefined at first.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalArray {
    /// The Python variable or a generated name.
    pub name: String,
    /// Element type; a complex array has twice the elements of its part.
    pub elem: Scalar,
    /// Elements.
    pub len: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// The location of the call that declares it.
    pub span: Span,
}

impl ConstantArray {
    /// The number of elements.
    pub(crate) fn len(&self) -> usize {
        usize::try_from(self.elem.size_bytes()).map_or(0, |size| self.bytes.len() / size.max(1))
    }

    /// An element, unless it is a bool or a 16-bit float.
    pub(crate) fn element(&self, index: usize) -> Option<Const> {
        let size = usize::try_from(self.elem.size_bytes()).ok()?;
        let from = index.checked_mul(size)?;
        let bytes = self.bytes.get(from..from.checked_add(size)?)?;
        let mut whole = [0; 8];
        whole.get_mut(..size)?.copy_from_slice(bytes);
        let bits = u64::from_le_bytes(whole);
        match self.elem {
            Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::I64 => {
                let unused = u64::BITS - 8 * u32::try_from(size).ok()?;
                Some(Const::Int(i128::from((bits << unused).cast_signed() >> unused)))
            }
            Scalar::U8 | Scalar::U16 | Scalar::U32 | Scalar::U64 => Some(Const::Int(i128::from(bits))),
            Scalar::F32 => Some(Const::Float(f64::from(f32::from_bits(u32::try_from(bits).ok()?)))),
            Scalar::F64 => Some(Const::Float(f64::from_bits(bits))),
            Scalar::Bool | Scalar::F16 | Scalar::BF16 => None,
        }
    }
}

impl External {
    /// The types of a call's operands.
    pub fn operands(&self) -> Vec<Type> {
        self.params.iter().flat_map(passed).collect()
    }

    /// The types of a call's results.
    pub fn results(&self) -> Vec<Type> {
        let status = self.writes.then_some(Type::I32);
        status.into_iter().chain(self.returns.iter().flat_map(passed)).collect()
    }
}

/// The types of the fields of values that are passed to functions of other languages.
fn passed(ty: &ArgType) -> Vec<Type> {
    let mut types = Vec::new();
    ty.for_each_leaf(&mut |_, leaf| {
        for field in leaf.fields(Which::Kernel) {
            types.extend(match (field.ty, leaf) {
                (SlotType::Scalar(scalar), _) => Some(Type::Scalar(scalar)),
                (
                    SlotType::Pointer,
                    ArgItem::Array(ArrayType { dtype, .. }) | ArgItem::Record(dtype) | ArgItem::Pointer(dtype),
                ) => Some(Type::Ptr(dtype.access().0, Space::Generic)),
                // The front end creates no value with such a part.
                (SlotType::Pointer, ArgItem::Value(_)) | (SlotType::Bytes { .. }, _) => None,
            });
        }
    });
    types
}

impl Module {
    /// The kernel's function. The front end always sets it; it is `None` only while a module is built.
    pub fn kernel(&self) -> Option<&Function> {
        self.kernel.map(|id| &self.functions[id])
    }

    /// The assumptions about a launch that the code uses.
    pub fn assumed(&self) -> Assumptions {
        self.assumptions.and(self.gains)
    }
}

impl Function {
    /// An empty function.
    pub fn new(name: impl Into<String>, kind: FunctionKind, span: Span) -> Self {
        Self {
            name: name.into(),
            kind,
            params: Vec::new(),
            slots: Vec::new(),
            results: Vec::new(),
            locals: Arena::default(),
            local_arrays: Arena::default(),
            exprs: Arena::default(),
            body: Block::new(),
            inline: false,
            rule: None,
            span,
        }
    }

    /// The class of an expression, with its operands.
    pub(crate) fn class(&self, id: ExprId) -> Class<'_> {
        self.exprs[id].kind.class()
    }

    /// The local, if the expression is only a read of one.
    pub(crate) fn local(&self, id: ExprId) -> Option<LocalId> {
        if let ExprKind::Local(local) = self.exprs[id].kind { Some(local) } else { None }
    }

    /// The value, if the expression is an integer constant.
    pub(crate) fn int(&self, id: ExprId) -> Option<i128> {
        if let ExprKind::Const(Const::Int(value)) = self.exprs[id].kind { Some(value) } else { None }
    }
}
