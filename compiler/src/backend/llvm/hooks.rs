//! The parts of code generation that differ between targets.

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
    /// Its source location.
    pub span: Span,
    /// The expression of the pointer.
    pub pointer: ExprId,
    /// The pointer's value.
    pub address: PointerValue<'ctx>,
    /// The local to which a load is assigned, if that is the load's only use.
    pub taken: Option<LocalId>,
    /// The stored value and its expression, if it is a store.
    pub stored: Option<(ExprId, BasicValueEnum<'ctx>)>,
    /// Whether the address is a multiple of the element's size.
    pub natural: bool,
}

/// Target-specific emission of a function. Each method emits at the position of the emitter's builder.
pub(crate) trait Hooks<'ctx> {
    /// A special register, an `i32`.
    fn special(&self, emitter: &FunctionEmitter<'_, 'ctx>, register: SpecialRegister) -> Result<IntValue<'ctx>>;

    /// The first element of a block-shared array.
    fn shared_base(&self, emitter: &FunctionEmitter<'_, 'ctx>, array: SharedId) -> Result<PointerValue<'ctx>>;

    /// The first byte of dynamic shared memory.
    fn dynamic_shared(&self, emitter: &FunctionEmitter<'_, 'ctx>) -> Result<PointerValue<'ctx>>;

    /// The first element of a thread-local array.
    fn local_base(&self, emitter: &FunctionEmitter<'_, 'ctx>, array: LocalArrayId) -> Result<PointerValue<'ctx>>;

    /// The distance between the elements of a thread-local array, in elements.
    fn local_stride(&self, _array: LocalArrayId) -> u64 {
        1
    }

    /// Emits an operation and returns its results, in order.
    fn op(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        op: Op,
        operands: &[OperandValue<'ctx>],
    ) -> Result<Vec<BasicValueEnum<'ctx>>>;

    /// Whether a load must read memory each time it is executed, so that earlier loads cannot replace it.
    fn reads_anew(&self, _load: ExprId) -> bool {
        false
    }

    /// Whether no thread writes the memory of a load while the kernel runs.
    fn never_written(&self, _emitter: &FunctionEmitter<'_, 'ctx>, _pointer: ExprId) -> bool {
        false
    }

    /// Sets the source location of the code that is emitted next.
    fn at(&self, _span: Span) {}

    /// Emits code before an access to an element; returns the address to access.
    fn access(&self, _emitter: &FunctionEmitter<'_, 'ctx>, access: &AccessSite<'ctx>) -> Result<PointerValue<'ctx>> {
        Ok(access.address)
    }

    /// Emits code before the next iteration of a loop with this body and step.
    fn iteration(&self, _emitter: &FunctionEmitter<'_, 'ctx>, _body: &[Stmt], _step: &[Stmt]) -> Result<()> {
        Ok(())
    }

    /// Emits code after a call of a device function.
    fn called(&self, _emitter: &FunctionEmitter<'_, 'ctx>, _callee: FuncId) -> Result<()> {
        Ok(())
    }

    /// Arguments that every device function takes before its own.
    fn hidden_args(&self, _emitter: &FunctionEmitter<'_, 'ctx>) -> Result<Vec<BasicMetadataValueEnum<'ctx>>> {
        Ok(Vec::new())
    }

    /// A fast approximation of a math function, if the request allows it and the target has one.
    fn approximate(
        &self,
        _emitter: &FunctionEmitter<'_, 'ctx>,
        _function: MathFn,
        _args: &[BasicValueEnum<'ctx>],
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        Ok(None)
    }

    /// A conversion to or from a float of 8 bits ([`MathFn::is_of_bytes`]), if the target has an instruction for it.
    fn of_bytes(
        &self,
        _emitter: &FunctionEmitter<'_, 'ctx>,
        _function: MathFn,
        _value: BasicValueEnum<'ctx>,
    ) -> Result<Option<BasicValueEnum<'ctx>>> {
        Ok(None)
    }

    /// A target-specific division of integers, if the target has one for these operands.
    fn divide(
        &self,
        _emitter: &FunctionEmitter<'_, 'ctx>,
        _division: Division,
        _a: IntValue<'ctx>,
        _b: IntValue<'ctx>,
    ) -> Result<Option<IntValue<'ctx>>> {
        Ok(None)
    }

    /// The minimum or maximum of two floats as `BinaryOp::Min` and `Max` define it, if LLVM's own is not correct.
    fn float_extreme(
        &self,
        _emitter: &FunctionEmitter<'_, 'ctx>,
        _largest: bool,
        _a: FloatValue<'ctx>,
        _b: FloatValue<'ctx>,
    ) -> Result<Option<FloatValue<'ctx>>> {
        Ok(None)
    }

    /// Emits the return from the function; terminates the current block.
    fn emit_return(&self, emitter: &FunctionEmitter<'_, 'ctx>, values: &[BasicValueEnum<'ctx>]) -> Result<()> {
        leave(emitter, values)
    }
}

/// Returns the values of a device function's results.
pub(crate) fn leave<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, values: &[BasicValueEnum<'ctx>]) -> Result<()> {
    match values {
        [] => emitter.builder.build_return(None)?,
        [one] => emitter.builder.build_return(Some(one as &dyn BasicValue<'ctx>))?,
        many => emitter.builder.build_aggregate_return(many)?,
    };
    Ok(())
}
