//! What differs between targets.

use inkwell::values::{BasicMetadataValueEnum, BasicValue, BasicValueEnum, FloatValue, IntValue, PointerValue};

use super::{Division, FunctionEmitter, Result};
use crate::{
    ir::{ExprId, FuncId, LocalArrayId, LocalId, MathFn, Op, SharedId, SpecialRegister, Stmt, Type},
    source::Span,
};

/// An operand of an operation.
#[derive(Clone, Copy, Debug)]
pub(crate) struct OperandValue<'ctx> {
    /// Its type.
    pub ty: Type,
    /// Its value; `Bool` as `i1`.
    pub value: BasicValueEnum<'ctx>,
}

/// A plain load or store of an element.
#[derive(Clone, Copy, Debug)]
pub(crate) struct AccessSite<'ctx> {
    /// Where it stands.
    pub span: Span,
    /// The expression of the pointer.
    pub pointer: ExprId,
    /// Its value.
    pub address: PointerValue<'ctx>,
    /// The local that takes what is loaded, and nothing else of it.
    pub taken: Option<LocalId>,
    /// What is stored, and its expression.
    pub stored: Option<(ExprId, BasicValueEnum<'ctx>)>,
    /// It lies at a multiple of its size.
    pub natural: bool,
}

/// A target's answers while a function is emitted. Each method emits at the position of the emitter's builder.
pub(crate) trait Hooks<'ctx> {
    /// A special register, an `i32`.
    fn special(&self, emitter: &FunctionEmitter<'_, 'ctx>, register: SpecialRegister) -> Result<IntValue<'ctx>>;

    /// The first element of a block-shared array.
    fn shared_base(&self, emitter: &FunctionEmitter<'_, 'ctx>, array: SharedId) -> Result<PointerValue<'ctx>>;

    /// The first byte of dynamic shared memory.
    fn dynamic_shared(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<PointerValue<'ctx>>;

    /// The first element of a thread-local array.
    fn local_base(&self, emitter: &FunctionEmitter<'_, 'ctx>, array: LocalArrayId) -> Result<PointerValue<'ctx>>;

    /// An operation: the instructions of it, and the values that it gives, in order.
    fn op(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        op: Op,
        operands: &[OperandValue<'ctx>],
    ) -> Result<Vec<BasicValueEnum<'ctx>>>;

    /// Whether a load reads memory each time it is met, whatever was read before.
    fn reads_anew(&self, _load: ExprId) -> bool {
        false
    }

    /// Whether nobody writes what a load reads while the kernel runs.
    fn never_written(&self, _emitter: &FunctionEmitter<'_, 'ctx>, _pointer: ExprId) -> bool {
        false
    }

    /// What is emitted next comes from here.
    fn at(&self, _span: Span) {}

    /// Before an access to an element: where it goes.
    fn access(&self, _emitter: &FunctionEmitter<'_, 'ctx>, access: &AccessSite<'ctx>) -> Result<PointerValue<'ctx>> {
        Ok(access.address)
    }

    /// Before another turn of a loop with this body and step.
    fn turn(&self, _emitter: &FunctionEmitter<'_, 'ctx>, _body: &[Stmt], _step: &[Stmt]) -> Result<()> {
        Ok(())
    }

    /// After a call of a device function.
    fn called(&self, _emitter: &FunctionEmitter<'_, 'ctx>, _callee: FuncId) -> Result<()> {
        Ok(())
    }

    /// Arguments that every device function takes before its own.
    fn hidden_args(&self, _emitter: &FunctionEmitter<'_, 'ctx>) -> Result<Vec<BasicMetadataValueEnum<'ctx>>> {
        Ok(Vec::new())
    }

    /// A fast approximation of a math function, where the request allows it and the target has one.
    fn approximate(
        &self,
        _emitter: &FunctionEmitter<'_, 'ctx>,
        _function: MathFn,
        _args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        Ok(None)
    }

    /// A division of integers in a form of the target's own, if it has one for these.
    fn divide(
        &self,
        _emitter: &FunctionEmitter<'_, 'ctx>,
        _division: Division,
        _a: IntValue<'ctx>,
        _b: IntValue<'ctx>,
    ) -> Result<Option<IntValue<'ctx>>> {
        Ok(None)
    }

    /// The smaller or larger of two floats as `BinaryOp::Min` and `Max` say, where LLVM's own is not right.
    fn float_extreme(
        &self,
        _emitter: &FunctionEmitter<'_, 'ctx>,
        _largest: bool,
        _a: FloatValue<'ctx>,
        _b: FloatValue<'ctx>,
    ) -> Result<Option<FloatValue<'ctx>>> {
        Ok(None)
    }

    /// Leaves the function; ends the present block.
    fn emit_return(&self, emitter: &FunctionEmitter<'_, 'ctx>, values: &[BasicValueEnum<'ctx>]) -> Result<()> {
        leave(emitter, values)
    }
}

/// Returns values of a device function's results.
pub(crate) fn leave<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, values: &[BasicValueEnum<'ctx>]) -> Result<()> {
    match values {
        [] => emitter.builder.build_return(None)?,
        [one] => emitter.builder.build_return(Some(one as &dyn BasicValue<'ctx>))?,
        many => emitter.builder.build_aggregate_return(many)?,
    };
    Ok(())
}
