//! Statements and expressions of one function, emitted at the builder's position.
//!
//! A local is stored in a slot: a pointer in [`FunctionEmitter::slots`], which the back end sets (an `alloca`, or a slot
//! of the host's scratch memory) and may change between two blocks. LLVM's `sroa` makes SSA from the `alloca`s.

use inkwell::{
    IntPredicate,
    basic_block::BasicBlock,
    builder::Builder,
    types::BasicTypeEnum,
    values::{
        BasicMetadataValueEnum, BasicValue, BasicValueEnum, FloatValue, FunctionValue, InstructionValue, IntValue,
        PointerValue,
    },
};
use weft_artifact::Scalar;

use super::{AccessSite, Hooks, ModuleContext, OperandValue, Result, internal, own_arrays::UnrolledCounter};
use crate::{
    ir::{self, Align, Const, ExprId, ExprKind, FuncId, LocalId, MathFn, Op, Stmt, StmtKind, Type},
    stop,
};

/// The targets of `break` and `continue`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct LoopTargets<'ctx> {
    /// After the loop.
    pub break_to: BasicBlock<'ctx>,
    /// The loop's step.
    pub continue_to: BasicBlock<'ctx>,
}

/// Emits one function's statements.
pub(crate) struct FunctionEmitter<'a, 'ctx> {
    /// The state that all functions of the module share.
    pub cx: &'a ModuleContext<'a, 'ctx>,
    /// weft's function.
    pub function: &'a ir::Function,
    /// LLVM's function, to which new blocks are added.
    pub value: FunctionValue<'ctx>,
    /// The builder; its position is where code is emitted.
    pub builder: Builder<'ctx>,
    /// The slot of each local, by the local's index.
    pub slots: Vec<Option<PointerValue<'ctx>>>,
    /// Targets of the enclosing loops, innermost last.
    pub loops: Vec<LoopTargets<'ctx>>,
    /// The counters of the enclosing loops that are unrolled.
    pub unrolled: Vec<UnrolledCounter>,
    /// Whether the position is in a loop's step, where additions to counters saturate.
    pub in_step: bool,
    /// The local to which the next emitted expression is assigned.
    pub assigned: std::cell::Cell<Option<LocalId>>,
    /// Loads that were emitted early, and their values.
    pub ahead: Vec<(ExprId, BasicValueEnum<'ctx>)>,
    /// Redirected accesses: pointers of stores to a temporary slot, and loads of the stored values, each with the
    /// slot's address.
    pub elsewhere: Vec<(ExprId, PointerValue<'ctx>)>,
    /// Calls of math functions are inlined, whatever that costs.
    pub inlines_math: std::cell::Cell<bool>,
    /// Target-specific emission.
    pub hooks: &'a dyn Hooks<'ctx>,
}

impl<'a, 'ctx> FunctionEmitter<'a, 'ctx> {
    /// An emitter at the end of a new block `entry` of `value`.
    pub(crate) fn new(
        cx: &'a ModuleContext<'a, 'ctx>,
        function: &'a ir::Function,
        value: FunctionValue<'ctx>,
        hooks: &'a dyn Hooks<'ctx>,
    ) -> Self {
        let builder = cx.types.context.create_builder();
        builder.position_at_end(cx.types.context.append_basic_block(value, "entry"));
        let emitter = Self {
            cx,
            function,
            value,
            builder,
            slots: vec![None; function.locals.len()],
            loops: Vec::new(),
            unrolled: Vec::new(),
            in_step: false,
            assigned: std::cell::Cell::new(None),
            ahead: Vec::new(),
            elsewhere: Vec::new(),
            inlines_math: std::cell::Cell::new(false),
            hooks,
        };
        emitter.locate(function.span);
        emitter
    }

    /// Creates an `alloca` for every local without a slot at the current position, which is in the entry block.
    pub(crate) fn declare_locals(&mut self) -> Result<()> {
        for (id, local) in self.function.locals.iter() {
            if self.slots[id.index()].is_none() {
                let place = self.builder.build_alloca(self.cx.types.memory(local.ty)?, &local.name)?;
                self.slots[id.index()] = Some(place);
            }
        }
        Ok(())
    }

    /// A new block at the end of the function.
    pub(crate) fn block(&self, name: &str) -> BasicBlock<'ctx> {
        self.cx.types.context.append_basic_block(self.value, name)
    }

    /// The block at the position.
    pub(crate) fn current(&self) -> Result<BasicBlock<'ctx>> {
        self.builder.get_insert_block().map_or_else(|| internal("the builder has no position"), Ok)
    }

    /// Whether the current block already has a terminator, so that code after it is unreachable.
    pub(crate) fn ended(&self) -> Result<bool> {
        Ok(self.current()?.get_terminator().is_some())
    }

    /// Branches to `target` unless the current block already has a terminator.
    pub(crate) fn go(&self, target: BasicBlock<'ctx>) -> Result<()> {
        if !self.ended()? {
            self.builder.build_unconditional_branch(target)?;
        }
        Ok(())
    }

    /// Sets the source location of the instructions that are emitted next.
    pub(crate) fn locate(&self, span: crate::source::Span) {
        if let Some(debug) = &self.cx.debug {
            debug.locate(&self.builder, self.value, &self.cx.ir.sources, span);
        }
    }

    /// Emits statements, up to the first one that terminates the block.
    pub(crate) fn emit_block(&mut self, block: &[Stmt]) -> Result<()> {
        for (index, stmt) in block.iter().enumerate() {
            if self.ended()? {
                break;
            }
            self.locate(stmt.span);
            self.hooks.at(stmt.span);
            self.emit_stmt(stmt, block.get(..index).unwrap_or_default())?;
        }
        Ok(())
    }

    /// Emits a statement; `before` are the statements before it in its block.
    fn emit_stmt(&mut self, stmt: &Stmt, before: &[Stmt]) -> Result<()> {
        stop::check();
        match &stmt.kind {
            StmtKind::Assign(local, assigned) => {
                let value = if self.in_step { self.saturated_step(*local, *assigned)? } else { None };
                if matches!(self.function.exprs[*assigned].kind, ExprKind::Load(..)) {
                    self.assigned.set(Some(*local));
                }
                let value = value.map_or_else(|| self.emit_expr(*assigned), Ok)?;
                self.set_local(*local, value)?;
            }
            StmtKind::Store { pointer, value, align } => {
                let pointer_value = self.redirected(*pointer).map_or_else(|| self.emit_pointer(*pointer), Ok)?;
                let stored = *value;
                let value = self.emit_expr(stored)?;
                let value = self.to_memory(value)?;
                let pointer_value = self.hooks.access(
                    self,
                    &AccessSite {
                        span: stmt.span,
                        pointer: *pointer,
                        address: pointer_value,
                        taken: None,
                        stored: Some((stored, value)),
                        natural: *align == Align::Natural,
                    },
                )?;
                let value = if self.cx.ptx && is_loose(*align) { self.as_bits(value)? } else { value };
                let store = self.builder.build_store(pointer_value, value)?;
                set_align(store, self.element(*pointer)?, *align)?;
            }
            StmtKind::Op { op, results, args } => self.emit_op(*op, results, args)?,
            StmtKind::Call { results, func, args } => self.emit_call(results, *func, args)?,
            StmtKind::If { cond, then, otherwise } => {
                let cond = self.emit_int(*cond)?;
                let then_block = self.block("then");
                let end = self.block("endif");
                let else_block = if otherwise.is_empty() { end } else { self.block("else") };
                self.builder.build_conditional_branch(cond, then_block, else_block)?;
                self.builder.position_at_end(then_block);
                self.emit_block(then)?;
                self.go(end)?;
                if !otherwise.is_empty() {
                    self.builder.position_at_end(else_block);
                    self.emit_block(otherwise)?;
                    self.go(end)?;
                }
                self.builder.position_at_end(end);
            }
            StmtKind::Loop { body, step } => self.emit_loop(before, body, step)?,
            StmtKind::Break => self.go(self.innermost()?.break_to)?,
            StmtKind::Continue => self.go(self.innermost()?.continue_to)?,
            StmtKind::Return(values) => {
                let values = values.iter().map(|&value| self.emit_expr(value)).collect::<Result<Vec<_>>>()?;
                self.hooks.emit_return(self, &values)?;
            }
        }
        Ok(())
    }

    fn innermost(&self) -> Result<LoopTargets<'ctx>> {
        self.loops.last().copied().map_or_else(|| internal("a break or continue outside of a loop"), Ok)
    }

    /// Terminates the function: a function without results returns, and in others the end is unreachable.
    pub(crate) fn finish(&self) -> Result<()> {
        if !self.ended()? {
            if self.function.results.is_empty() {
                self.hooks.emit_return(self, &[])?;
            } else {
                self.builder.build_unreachable()?;
            }
        }
        Ok(())
    }

    fn emit_op(&self, op: Op, results: &[LocalId], args: &[ExprId]) -> Result<()> {
        let mut operands = Vec::with_capacity(args.len());
        for &arg in args {
            operands.push(OperandValue { ty: self.function.exprs[arg].ty, value: self.emit_expr(arg)? });
        }
        let values = self.hooks.op(self, op, &operands)?;
        let given = if let Op::Ptx { text, .. } = op {
            self.cx.ir.inline_ptx.get(text).map_or(0, |ptx| ptx.results.len())
        } else if let Op::External(function) = op {
            self.cx.ir.externals.get(function).map_or(0, |function| function.results().len())
        } else if let Op::Multiply(product) = op {
            product.tile.values()
        } else if let Op::ProductWait(wait) = op {
            wait.n_values()
        } else {
            op.row().results.len()
        };
        if values.len() != given {
            return internal(format!("{op} gives {} values", values.len()));
        }
        results.iter().zip(values).try_for_each(|(&local, value)| self.set_local(local, value))
    }

    fn emit_call(&mut self, results: &[LocalId], func: FuncId, args: &[ExprId]) -> Result<()> {
        let callee = self.cx.function(func)?;
        let mut values: Vec<BasicMetadataValueEnum<'ctx>> = self.hooks.hidden_args(self)?;
        for &arg in args {
            values.push(self.emit_expr(arg)?.into());
        }
        let call = self.builder.build_call(callee, &values, "")?;
        self.hooks.called(self, func)?;
        let value = call.try_as_basic_value().basic();
        match (results, value) {
            ([], _) => {}
            ([one], Some(value)) => self.set_local(*one, value)?,
            (many, Some(BasicValueEnum::StructValue(all))) => {
                for (index, &local) in many.iter().enumerate() {
                    let value = self.builder.build_extract_value(all, index as u32, "")?;
                    self.set_local(local, value)?;
                }
            }
            _ => return internal(format!("@{} gives no results", self.cx.ir.functions[func].name)),
        }
        Ok(())
    }

    /// The address of a local.
    pub(crate) fn slot(&self, local: LocalId) -> Result<PointerValue<'ctx>> {
        let slot = self.slots.get(local.index()).copied().flatten();
        slot.map_or_else(|| internal(format!("${} has no slot", self.function.locals[local].name)), Ok)
    }

    /// Reads a local.
    pub(crate) fn get_local(&self, local: LocalId) -> Result<BasicValueEnum<'ctx>> {
        let Some(info) = self.function.locals.get(local) else { return internal(format!("no local {local:?}")) };
        let value = self.builder.build_load(self.cx.types.memory(info.ty)?, self.slot(local)?, &info.name)?;
        if info.ty == Type::BOOL {
            // A local is 0 or 1, because only `set_local` writes it.
            return Ok(self.builder.build_int_truncate(int(value)?, self.cx.types.context.bool_type(), "")?.into());
        }
        Ok(value)
    }

    /// Assigns a local.
    pub(crate) fn set_local(&self, local: LocalId, value: BasicValueEnum<'ctx>) -> Result<()> {
        self.builder.build_store(self.slot(local)?, self.to_memory(value)?)?;
        Ok(())
    }

    /// A value in its memory representation: `Bool` as a byte.
    pub(crate) fn to_memory(&self, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        match value {
            BasicValueEnum::IntValue(bool) if bool.get_type().get_bit_width() == 1 => {
                Ok(self.builder.build_int_z_extend(bool, self.cx.types.context.i8_type(), "")?.into())
            }
            other @ (BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::IntValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::PointerValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_)) => Ok(other),
        }
    }

    /// The element type of a pointer expression.
    pub(crate) fn element(&self, pointer: ExprId) -> Result<Scalar> {
        match self.function.exprs[pointer].ty {
            Type::Ptr(element, _) => Ok(element),
            other @ Type::Scalar(_) => internal(format!("a {other} instead of a pointer")),
        }
    }

    /// The value of an integer or `Bool` expression.
    pub(crate) fn emit_int(&self, expr: ExprId) -> Result<IntValue<'ctx>> {
        int(self.emit_expr(expr)?)
    }

    /// The address of a redirected store or load.
    fn redirected(&self, id: ExprId) -> Option<PointerValue<'ctx>> {
        self.elsewhere.iter().find(|(known, _)| *known == id).map(|(_, place)| *place)
    }

    /// The value of a pointer expression.
    pub(crate) fn emit_pointer(&self, expr: ExprId) -> Result<PointerValue<'ctx>> {
        match self.emit_expr(expr)? {
            BasicValueEnum::PointerValue(pointer) => Ok(pointer),
            other @ (BasicValueEnum::ArrayValue(_)
            | BasicValueEnum::IntValue(_)
            | BasicValueEnum::FloatValue(_)
            | BasicValueEnum::StructValue(_)
            | BasicValueEnum::VectorValue(_)
            | BasicValueEnum::ScalableVectorValue(_)) => internal(format!("{other} instead of a pointer")),
        }
    }

    /// The distance between the elements of the array that starts at a pointer, in elements.
    fn stride(&self, base: ExprId) -> u64 {
        if let ExprKind::LocalBase(array) = self.function.exprs[base].kind { self.hooks.local_stride(array) } else { 1 }
    }

    /// Emits an expression; returns its value, `Bool` as `i1`.
    pub(crate) fn emit_expr(&self, id: ExprId) -> Result<BasicValueEnum<'ctx>> {
        let Some(expr) = self.function.exprs.get(id) else { return internal(format!("no expression {id:?}")) };
        let types = self.cx.types;
        Ok(match &expr.kind {
            ExprKind::Const(value) => self.emit_const(*value, expr.ty)?,
            ExprKind::Local(local) => self.get_local(*local)?,
            ExprKind::Special(register) => self.hooks.special(self, *register)?.into(),
            ExprKind::Unary(op, a) => self.emit_unary(*op, *a)?,
            ExprKind::Binary(op, a, b) => self.emit_binary(*op, *a, *b)?,
            ExprKind::Compare(op, a, b) => self.emit_compare(*op, *a, *b)?.into(),
            ExprKind::Select(c, a, b) => self.emit_select(*c, *a, *b)?,
            ExprKind::Convert(a) => self.emit_convert(*a, expr.ty)?,
            ExprKind::Math(function, args) => {
                let first = args.first().and_then(|&arg| self.function.exprs[arg].ty.scalar());
                let args = args.iter().map(|&arg| self.emit_expr(arg)).collect::<Result<Vec<_>>>()?;
                if matches!(function, MathFn::Bits | MathFn::OfBits)
                    && let [value] = args.as_slice()
                {
                    return Ok(self.builder.build_bit_cast(*value, types.value(expr.ty)?, "")?);
                }
                if let (Some((op, rounding)), Some(from)) = (function.rounded(), first) {
                    return self.rounded(op, rounding, from, expr.ty, &args);
                }
                if let (true, Some(scalar)) = (function.is_of_integers(), first) {
                    return self.integer_math(*function, scalar, &args);
                }
                match first.filter(|scalar| scalar.is_half()) {
                    Some(scalar) => self.half_math(*function, scalar, &args)?,
                    None => self.emit_math(*function, &args)?,
                }
            }
            ExprKind::Load(pointer, align) => {
                let taken = self.assigned.take();
                if let Some((_, value)) = self.ahead.iter().find(|(load, _)| *load == id) {
                    return Ok(*value);
                }
                let element = self.element(*pointer)?;
                let address = self.redirected(id).map_or_else(|| self.emit_pointer(*pointer), Ok)?;
                let never_written = self.hooks.never_written(self, *pointer);
                let pointer = self.hooks.access(
                    self,
                    &AccessSite {
                        span: expr.span,
                        pointer: *pointer,
                        address,
                        taken,
                        stored: None,
                        natural: *align == Align::Natural,
                    },
                )?;
                let value = self.builder.build_load(types.memory(Type::Scalar(element))?, pointer, "")?;
                if let Some(load) = value.as_instruction_value() {
                    set_align(load, element, *align)?;
                    if self.hooks.reads_anew(id) {
                        load.set_volatile(true).or_else(|error| internal(format!("a volatile load: {error}")))?;
                    } else if never_written {
                        let context = self.cx.types.context;
                        let set = load.set_metadata(context.metadata_node(&[]), context.get_kind_id("invariant.load"));
                        set.or_else(|error| internal(format!("LLVM takes no invariant load: {error}")))?;
                    }
                }
                if element == Scalar::Bool {
                    // Array memory comes from outside: every byte but 0 is true.
                    let byte = int(value)?;
                    let zero = byte.get_type().const_zero();
                    return Ok(self.builder.build_int_compare(IntPredicate::NE, byte, zero, "")?.into());
                }
                value
            }
            ExprKind::Offset { base, index, scale } => {
                let element = self.element(*base)?;
                let scale = u64::from(*scale) * self.stride(*base);
                let (base, mut index) = (self.emit_pointer(*base)?, self.emit_int(*index)?);
                if scale != 1 {
                    let scale = index.get_type().const_int(scale, false);
                    index = self.builder.build_int_nsw_mul(index, scale, "")?;
                }
                self.offset(types.memory(Type::Scalar(element))?, base, index)?.into()
            }
            ExprKind::ByteOffset { base, bytes } => {
                let (base, bytes) = (self.emit_pointer(*base)?, self.emit_int(*bytes)?);
                self.offset(types.context.i8_type().into(), base, bytes)?.into()
            }
            ExprKind::ConstBase(constant) => self.cx.constant(*constant)?.into(),
            ExprKind::SharedBase(array) => self.hooks.shared_base(self, *array)?.into(),
            ExprKind::DynamicShared => self.hooks.dynamic_shared(self)?.into(),
            ExprKind::LocalBase(array) => self.hooks.local_base(self, *array)?.into(),
            ExprKind::Wrap { index, extent } => {
                let (index, extent) = (self.emit_int(*index)?, self.emit_int(*extent)?);
                let zero = index.get_type().const_zero();
                let negative = self.builder.build_int_compare(IntPredicate::SLT, index, zero, "")?;
                let wrapped = self.builder.build_int_add(index, extent, "")?;
                self.builder.build_select(negative, wrapped, index, "")?
            }
        })
    }

    /// Moves a float's bits to an integer register: if a float register is stored as one byte, ptxas 13 converts the
    /// number to an integer instead of storing its lowest byte.
    fn as_bits(&self, value: BasicValueEnum<'ctx>) -> Result<BasicValueEnum<'ctx>> {
        let BasicValueEnum::FloatValue(float) = value else { return Ok(value) };
        let context = self.cx.types.context;
        let (bits, text, constraints) = if float.get_type() == context.f64_type() {
            (context.i64_type(), "{ .reg .b32 low, high; mov.b64 {low, high}, $1; mov.b64 $0, {low, high}; }", "=l,d")
        } else if float.get_type() == context.f32_type() {
            (context.i32_type(), "mov.b32 $0, $1;", "=r,f")
        } else {
            return Ok(value);
        };
        let ty = bits.fn_type(&[float.get_type().into()], false);
        let moved = context.create_inline_asm(ty, text.to_owned(), constraints.to_owned(), true, false, None, false);
        let call = self.builder.build_indirect_call(ty, moved, &[float.into()], "")?;
        call.try_as_basic_value().basic().map_or_else(|| internal("a move gives nothing"), Ok)
    }

    fn emit_const(&self, value: Const, ty: Type) -> Result<BasicValueEnum<'ctx>> {
        let scalar = match ty {
            Type::Scalar(scalar) => scalar,
            Type::Ptr(_, space) => {
                let pointer = self.cx.types.pointer(space);
                let Const::Address(address) = value else { return Ok(pointer.const_null().into()) };
                let address = self.cx.types.context.i64_type().const_int(address, false);
                return Ok(address.const_to_pointer(pointer).into());
            }
        };
        Ok(match value {
            Const::Null | Const::Address(_) => return internal(format!("a null of type {ty}")),
            Const::Bool(value) => self.cx.types.int(scalar)?.const_int(u64::from(value), false).into(),
            Const::Int(value) => self.cx.types.int(scalar)?.const_int(value as u64, false).into(),
            Const::Float(value) if scalar.is_half() => self.half_constant(scalar, value)?,
            Const::Float(value) => self.cx.types.float(scalar)?.const_float(value).into(),
        })
    }

    /// `base + index` elements, in bounds.
    #[expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]
    fn offset(
        &self,
        element: BasicTypeEnum<'ctx>,
        base: PointerValue<'ctx>,
        index: IntValue<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        // SAFETY: one index on a scalar element type is a valid getelementptr; the IR guarantees the bounds.
        Ok(unsafe { self.builder.build_in_bounds_gep(element, base, &[index], "")? })
    }

    /// A slot on the thread's stack, aligned to `align` bytes.
    pub(crate) fn stack(&self, ty: BasicTypeEnum<'ctx>, name: &str, align: u32) -> Result<PointerValue<'ctx>> {
        let function = self.current()?.get_parent();
        let Some(start) = function.and_then(FunctionValue::get_first_basic_block) else {
            return internal("the builder is in no function");
        };
        // An `alloca` must be in the function's entry block to be static.
        let first = self.cx.types.context.create_builder();
        match start.get_first_instruction() {
            Some(instruction) => first.position_before(&instruction),
            None => first.position_at_end(start),
        }
        let place = first.build_alloca(ty, name)?;
        if place.as_instruction().is_none_or(|alloca| alloca.set_alignment(align).is_err()) {
            return internal("a slot on the stack cannot be aligned");
        }
        Ok(place)
    }

    /// Stores eight-byte values contiguously in local memory; returns their address.
    #[expect(unsafe_code, reason = "inkwell's getelementptr is unsafe")]
    pub(crate) fn words(&self, values: &[BasicValueEnum<'ctx>]) -> Result<PointerValue<'ctx>> {
        let long = self.cx.types.context.i64_type();
        let words = self.stack(long.array_type(values.len().max(1) as u32).into(), "words", 8)?;
        for (index, &value) in values.iter().enumerate() {
            let at = long.const_int(index as u64, false);
            // SAFETY: one index on an integer type is a valid getelementptr, and there is a word for each value.
            let place = unsafe { self.builder.build_in_bounds_gep(long, words, &[at], "")? };
            self.builder.build_store(place, value)?;
        }
        Ok(words)
    }

    /// Calls a function that returns a value.
    pub(crate) fn call(
        &self,
        callee: FunctionValue<'ctx>,
        args: &[BasicValueEnum<'ctx>],
    ) -> Result<BasicValueEnum<'ctx>> {
        let args: Vec<BasicMetadataValueEnum<'ctx>> = args.iter().map(|&arg| arg.into()).collect();
        let value = self.builder.build_call(callee, &args, "")?.try_as_basic_value().basic();
        value.map_or_else(|| internal(format!("{:?} gives no value", callee.get_name())), Ok)
    }

    /// Calls an intrinsic that is overloaded on its first argument's type and returns a value.
    pub(crate) fn call_intrinsic(&self, name: &str, args: &[BasicValueEnum<'ctx>]) -> Result<BasicValueEnum<'ctx>> {
        let types: Vec<_> = args.first().map(BasicValueEnum::get_type).into_iter().collect();
        self.call(self.cx.intrinsic(name, &types)?, args)
    }
}

/// An integer value.
pub(crate) fn int(value: BasicValueEnum<'_>) -> Result<IntValue<'_>> {
    match value {
        BasicValueEnum::IntValue(value) => Ok(value),
        other @ (BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::FloatValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_)) => internal(format!("{other} instead of an integer")),
    }
}

/// A float value.
pub(crate) fn float(value: BasicValueEnum<'_>) -> Result<FloatValue<'_>> {
    match value {
        BasicValueEnum::FloatValue(value) => Ok(value),
        other @ (BasicValueEnum::ArrayValue(_)
        | BasicValueEnum::IntValue(_)
        | BasicValueEnum::PointerValue(_)
        | BasicValueEnum::StructValue(_)
        | BasicValueEnum::VectorValue(_)
        | BasicValueEnum::ScalableVectorValue(_)) => internal(format!("{other} instead of a float")),
    }
}

/// Whether an address may be misaligned for a float.
fn is_loose(align: Align) -> bool {
    match align {
        Align::Natural => false,
        Align::Bytes(bytes) => bytes < 8,
    }
}

/// Sets the alignment of a load or a store.
fn set_align(instruction: InstructionValue<'_>, element: Scalar, align: Align) -> Result<()> {
    let bytes = match align {
        Align::Natural => element.align_bytes() as u32,
        Align::Bytes(bytes) => bytes,
    };
    let set = instruction.set_alignment(bytes);
    set.or_else(|error| internal(format!("LLVM takes no alignment of {element}: {error}")))
}
