//! The typed IR.
//!
//! All values are scalars or pointers: the front end splits arrays, tuples and complex numbers into parts (an array
//! into a data pointer, extents and strides; a complex number into two floats). [`verify`] checks these rules:
//!
//! 1. Control flow is structured: `If`, `Loop`, `Break`, `Continue`, `Return`. The CPU back end needs the structure to
//!    split a kernel at its barriers; LLVM converts it to SSA.
//! 2. Expressions have no effects and form trees. An expression is evaluated when its statement executes.
//! 3. Operations with effects are statements (`Store`, `Call`, `Op`); their results are assigned to locals.
//! 4. Each expression has one type, and conversions are explicit: `Convert`. The front end applies Python's typing
//!    rules; [`BinaryOp`] documents the semantics of the operators.
//! 5. A Python variable that changes its type becomes several locals; at joins of control flow, the types are unified.
//! 6. Every statement and expression has a span.
//! 7. No back end panics on a verified module, and no user program can cause a back end to fail.
//! 8. The text form of handles is: `%7` an expression, `$x` a local, `@kernel` a function.

mod accumulation;
mod arena;
mod build;
mod call_cycles;
mod check_op;
mod class;
mod cluster_op;
mod edit;
mod effects;
mod expr;
mod hint_op;
mod module;
mod op;
mod print;
mod stmt;
mod structure;
mod types;
mod verify;
mod visit;
mod warp_op;

pub use accumulation::Accumulation;
pub use arena::{Arena, Handle};
pub use build::{Builder, Built};
pub use call_cycles::Circles;
pub use check_op::Check;
pub use class::{Arith, Base, Class, Leaf, Operands, OperandsIter, Unit};
pub use cluster_op::ClusterOp;
pub use edit::Editor;
pub use effects::{Effects, Touches};
pub use expr::{
    Align, BinaryOp, CompareOp, Const, Expr, ExprKind, MathFn, RoundedOp, Rounding, SpecialRegister, UnaryOp,
};
pub use hint_op::{AsyncCopy, Clock, LoadHint, StoreHint};
pub use module::{
    CallSite, ConstantArray, External, FaultSite, Function, FunctionKind, InlinePtx, Local, LocalArray, LocalKind,
    Module, Rule, SharedArray, SharedKind,
};
pub use op::{AtomicOp, Elements, Memory, Op, OpRow, Operand, Order, Reduction, Scope, SyncScope};
pub(crate) use print::FunctionText;
pub use stmt::{Block, Stmt, StmtKind};
pub use structure::{Region, Structure, UpdateStmt};
pub use types::{Space, Type};
pub use verify::verify;
pub use visit::{
    falls_through, for_each_expr, for_each_expr_of_block, for_each_expr_of_stmt, for_each_stmt, for_each_stmt_mut,
};
pub use warp_op::{MatrixLoad, ProductWait, Shuffle, Vote, WarpReduction};

/// A handle to an expression of a function.
pub type ExprId = Handle<Expr>;
/// A handle to a local variable of a function.
pub type LocalId = Handle<Local>;
/// A handle to a function of a module.
pub type FuncId = Handle<Function>;
/// A handle to a block-shared array of a module.
pub type SharedId = Handle<SharedArray>;
/// A handle to a constant array of a module.
pub type ConstantId = Handle<ConstantArray>;
/// A handle to a piece of PTX of a module.
pub type PtxId = Handle<InlinePtx>;
/// A handle to a function of another language.
pub type ExternalId = Handle<External>;
/// A handle to a fault of a module.
pub type FaultId = Handle<FaultSite>;
/// A handle to a call of a module that a fault may come through.
pub type CallSiteId = Handle<CallSite>;
/// A handle to a thread-local array of a function.
pub type LocalArrayId = Handle<LocalArray>;
