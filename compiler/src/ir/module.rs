//! Modules, functions, and what they declare.

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

/// One kernel, or one function for other code, and the device functions that it calls.
#[derive(Clone, Debug, Default)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Module {
    /// All functions; a callee stands before its callers, unless it leads back to them ([`Circles`](super::Circles)).
    pub functions: Arena<Function>,
    /// The kernel, or the exported function.
    pub kernel: Option<FuncId>,
    /// Its Python parameters.
    pub params: Vec<Param>,
    /// What an exported function returns; nothing for a kernel.
    pub returns: Option<ArgType>,
    /// Block-shared arrays of fixed size.
    pub shared: Arena<SharedArray>,
    /// Arrays that are part of the code.
    pub constants: Arena<ConstantArray>,
    /// PTX that kernels hold as text.
    pub inline_ptx: Arena<InlinePtx>,
    /// Functions that are linked with the kernel.
    pub externals: Arena<External>,
    /// Places that report a fault.
    pub faults: Arena<FaultSite>,
    /// Calls that a fault may come through.
    pub call_sites: Arena<CallSite>,
    /// `true` if something takes the address of dynamic shared memory.
    pub dynamic_shared: bool,
    /// `true` if something asks for the grid as a group: all of it runs at a time.
    pub cooperative: bool,
    /// What holds of every launch.
    pub assumptions: Assumptions,
    /// By parameter: the last extent of an array that the launch has which the code is compiled for, where that is short.
    pub short_extents: Vec<(u32, u8)>,
    /// The facts that the code is better for: passes find out.
    pub gains: Assumptions,
    /// Writes beside the arrays of the kernel's arguments are to do nothing, if that is possible.
    pub bounded_stores: bool,
    /// `true` if it is: a pass finds out.
    pub can_bound_stores: bool,
    /// How many threads one is to do the work of, if that is possible.
    pub coarsen: Factors,
    /// A pass is to estimate which of these are worth it, where one is to do its own work alone.
    pub choose: bool,
    /// How many one does: a pass says.
    pub coarsening: Coarsening,
    /// The code tells of its accesses, for these checks.
    pub sanitize: Tools,
    /// Where statements stand, if it does.
    pub structure: Structure,
    /// The same bits on every target: a pass decides what targets would.
    pub reproducible: bool,
    /// Largest alignment in bytes that arrays in dynamic shared memory need.
    pub dynamic_shared_align: u64,
    /// The files that spans refer to.
    pub sources: SourceMap,
}

/// A place that raises an exception.
#[derive(Clone, Debug, PartialEq)]
pub struct FaultSite {
    /// The exception's class, as [`weft_artifact::Fault`] has it.
    pub class: String,
    /// What the exception is made of.
    pub args: Vec<FaultArg>,
    /// What the numbers are that it gives besides.
    pub numbers: Numbers,
    /// No call adds itself: the record is whole once the thread has written it.
    pub alone: bool,
    /// The Python function.
    pub function: String,
    /// Where.
    pub span: Span,
}

/// A call that a fault may come through.
#[derive(Clone, Debug, PartialEq)]
pub struct CallSite {
    /// The Python function that calls.
    pub function: String,
    /// Where.
    pub span: Span,
}

/// A kernel or a device function.
#[derive(Clone, Debug)]
pub struct Function {
    /// Unique in its module; also the symbol. A kernel's contains the Python name.
    pub name: String,
    /// Kernel or device function.
    pub kind: FunctionKind,
    /// The locals that take the arguments, in order. For a kernel and an exported function: one a slot, and `slots` says
    /// which.
    pub params: Vec<LocalId>,
    /// What each of those is; as long as `params`, and empty for device functions.
    pub slots: Vec<SlotSource>,
    /// Result types; a kernel has none.
    pub results: Vec<Type>,
    /// Every variable.
    pub locals: Arena<Local>,
    /// Thread-local arrays.
    pub local_arrays: Arena<LocalArray>,
    /// Every expression.
    pub exprs: Arena<Expr>,
    /// The statements. A function with results ends every path with `Return`.
    pub body: Block,
    /// Inline it wherever it is called.
    pub inline: bool,
    /// The `def`.
    pub span: Span,
}

/// Who calls a function.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum FunctionKind {
    /// Launched over a grid.
    Kernel,
    /// Called by the functions of its module.
    Device,
    /// Called by code that is not weft's. Its results are the parts of [`Module::returns`], and, if it may end the thread,
    /// a `Bool` that says whether it does.
    Export,
}

/// A variable. Its value is undefined until it is assigned.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is a fact of its own")]
pub struct Local {
    /// The Python variable, with a suffix for parts (`x.data`, `x.shape0`, `z.real`); temporaries are `t`. Names may
    /// repeat: the text form adds the handle's number.
    pub name: String,
    /// What it stands for.
    pub kind: LocalKind,
    /// Its type.
    pub ty: Type,
    /// The front end knows that it is never negative: extents, variables of counted loops that cannot go below zero.
    pub nonneg: bool,
    /// The counter of a loop that must not pass the end of its type: in a loop's `step`, an addition to it saturates.
    pub counts: bool,
    /// A parameter that points to what nobody writes while the kernel runs; the host's plan says so.
    pub never_written: bool,
    /// What is added to the threads' first indices in a loop that they take together; the host's plan says so.
    pub offset: bool,
}

/// What a local stands for. Passes may do away with what the program does not speak of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum LocalKind {
    /// A variable, or a flag or counter of a statement.
    Variable,
    /// One of several parts of a variable's value.
    Part,
    /// A value between two steps of an expression.
    Temp,
}

impl Local {
    /// A local of which nothing is known.
    pub fn new(name: impl Into<String>, kind: LocalKind, ty: Type) -> Self {
        Self { name: name.into(), kind, ty, nonneg: false, counts: false, never_written: false, offset: false }
    }
}

/// What a block-shared array is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SharedKind {
    /// The program's own.
    Program,
    /// What the threads of calls of `cuda.coop` exchange.
    Coop,
    /// Cells that a pass has made, for what the threads of a block or a warp do together.
    Cells,
    /// A copy of an argument's first elements, which keeps what it has from block to block; the host's plan has them.
    Privatized,
}

/// A block-shared array of fixed size. Contents are undefined at first.
#[derive(Clone, Debug, PartialEq)]
pub struct SharedArray {
    /// The Python variable or a made-up name; for the symbol.
    pub name: String,
    /// What it is for.
    pub kind: SharedKind,
    /// Element type; a complex array has twice the elements of its part.
    pub elem: Scalar,
    /// Elements.
    pub len: u64,
    /// Its extents, for people; empty if it has none of the program's.
    pub shape: Vec<u64>,
    /// Alignment in bytes.
    pub align: u64,
    /// The call.
    pub span: Span,
}

/// An array that is part of the code and never changes.
#[derive(Clone, Debug, PartialEq)]
pub struct ConstantArray {
    /// The Python variable.
    pub name: String,
    /// Element type; a complex array has twice the elements of its part.
    pub elem: Scalar,
    /// The elements as they lie in memory.
    pub bytes: Arc<[u8]>,
    /// Alignment in bytes.
    pub align: u64,
    /// `Constant` where all of them together fit into CUDA's constant memory, else `Global`.
    pub space: Space,
    /// Where it is read.
    pub span: Span,
}

/// PTX as the program has it, and the types of what it takes and gives.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InlinePtx {
    /// The text, in which `$0`, `$1` stand for the results and then the operands, and `$$` for a dollar.
    pub text: String,
    /// The registers of the results and operands, in LLVM's words: `=r`, `l`, `0` for what lies where a result will.
    pub constraints: Vec<String>,
    /// What it takes; pointers become addresses of the generic space.
    pub operands: Vec<Type>,
    /// What it gives.
    pub results: Vec<Type>,
    /// The call.
    pub span: Span,
}

/// A function of another language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Its symbol.
    pub symbol: String,
    /// What it takes. A call's operands are the fields of all; pointers are addresses of the generic space.
    pub params: Vec<ArgType>,
    /// What it gives: a call's results are its fields, as of the parameters.
    pub returns: Option<ArgType>,
    /// It writes that where its first parameter points to, and returns an `I32`, which is the first of the results.
    pub writes: bool,
    /// A call.
    pub span: Span,
}

/// A thread-local array of fixed size. Contents are undefined at first.
#[derive(Clone, Debug, PartialEq)]
pub struct LocalArray {
    /// The Python variable or a made-up name.
    pub name: String,
    /// Element type; a complex array has twice the elements of its part.
    pub elem: Scalar,
    /// Elements.
    pub len: u64,
    /// Alignment in bytes.
    pub align: u64,
    /// The call.
    pub span: Span,
}

impl External {
    /// The types of a call's operands.
    pub fn operands(&self) -> Vec<Type> {
        self.params.iter().flat_map(passed).collect()
    }

    /// The types of its results.
    pub fn results(&self) -> Vec<Type> {
        let status = self.writes.then_some(Type::I32);
        status.into_iter().chain(self.returns.iter().flat_map(passed)).collect()
    }
}

/// The types of the fields of what is passed to other languages.
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
                // No value of the front end has such a part.
                (SlotType::Pointer, ArgItem::Value(_)) | (SlotType::Bytes { .. }, _) => None,
            });
        }
    });
    types
}

impl Module {
    /// The kernel's function. The front end always sets it; a module without one is only being built.
    pub fn kernel(&self) -> Option<&Function> {
        self.kernel.map(|id| &self.functions[id])
    }

    /// What the code takes for granted of a launch.
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
            span,
        }
    }

    /// The class of an expression, with what it holds.
    pub(crate) fn class(&self, id: ExprId) -> Class<'_> {
        self.exprs[id].kind.class()
    }

    /// The local that an expression reads and nothing else.
    pub(crate) fn local(&self, id: ExprId) -> Option<LocalId> {
        if let ExprKind::Local(local) = self.exprs[id].kind { Some(local) } else { None }
    }

    /// The value of an integer constant.
    pub(crate) fn int(&self, id: ExprId) -> Option<i128> {
        if let ExprKind::Const(Const::Int(value)) = self.exprs[id].kind { Some(value) } else { None }
    }
}
