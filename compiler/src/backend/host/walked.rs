//! Turns of a loop in which the threads of a strip go on along rows of their own: what sixteen turns load is a vector of each row,
//! and these are turned round in registers.

#![expect(unsafe_code, reason = "inkwell's getelementptr and flags of instructions")]

use inkwell::{
    IntPredicate,
    basic_block::BasicBlock,
    llvm_sys::core::{LLVMGEPSetNoWrapFlags, LLVMSetNSW, LLVMSetNUW},
    types::{BasicTypeEnum, IntType, VectorType},
    values::{AsValueRef, BasicValueEnum, InstructionOpcode, IntValue, PointerValue, VectorValue},
};

use super::{
    entry::KernelEmitter,
    fetch::FIRST,
    hooks::index,
    plan::{Ask, Node, Walked, WalkedLoad, inverse},
};
use crate::{
    backend::llvm::{Result, internal},
    ir::{CompareOp, ExprId},
};

/// Threads of a strip, and turns that are taken together.
const WIDTH: u32 = 16;

/// Bytes of the widest vector.
const VECTOR: u32 = 64;

/// So many bytes further on in its row is what the cache is asked for: sixteen rows that lie a power of two apart share the few places of
/// a set, and hardware does not fetch far ahead in so many.
const AHEAD: u32 = 256;

/// What stands in place of a load.
#[derive(Clone, Copy, Debug)]
pub(super) enum Turned<'ctx> {
    /// An element for each thread of the strip.
    Each(ExprId, PointerValue<'ctx>, BasicTypeEnum<'ctx>),
    /// A value for all.
    All(ExprId, BasicValueEnum<'ctx>),
}

/// Rows that are taken ahead.
struct Ahead<'ctx> {
    element: BasicTypeEnum<'ctx>,
    /// Elements of a vector: all rows, or half of them.
    elements: u32,
    /// By the row; one where it is the same for all threads.
    rows: PointerValue<'ctx>,
    /// By the turn.
    turns: PointerValue<'ctx>,
    /// A bit for each turn in which some thread loads.
    some: Option<PointerValue<'ctx>>,
}

impl<'ctx> KernelEmitter<'_, 'ctx> {
    /// As many turns of a walk as there are left, sixteen at most.
    pub(super) fn walked(&mut self, walked: &Walked) -> Result<()> {
        let ty = self.memory_type(walked.counter)?.into_int_type();
        let place = self.emitter.place(walked.counter)?;
        let counter = self.emitter.builder.build_load(ty, place, "from")?.into_int_value();
        let limit = self.emitter.emit_int(walked.limit)?;
        // There is a turn left, so that the difference is exact as an unsigned integer.
        let left = self.emitter.builder.build_int_sub(limit, counter, "left")?;
        let turns = self.choose("llvm.umin", left, ty.const_int(u64::from(WIDTH), false).into())?;
        let turns = self.narrowed(turns)?;
        let Some(plain) = walked.plain.as_ref().filter(|_| self.is_whole()) else {
            return self.turns(walked, (&walked.nodes, true), (counter, turns));
        };
        let all = self.all_hold(walked, counter, turns)?;
        let (everyone, some) = (self.emitter.block("everyone"), self.emitter.block("some"));
        let end = self.emitter.block("walked_end");
        self.emitter.builder.build_conditional_branch(all, everyone, some)?;
        for (block, nodes, asks) in [(everyone, plain, false), (some, &walked.nodes, true)] {
            self.emitter.builder.position_at_end(block);
            self.turns(walked, (nodes, asks), (counter, turns))?;
            self.emitter.go(end)?;
        }
        self.emitter.builder.position_at_end(end);
        Ok(())
    }

    /// Whether everyone loads everything in so many turns.
    fn all_hold(&mut self, walked: &Walked, counter: IntValue<'ctx>, turns: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let fails = self.array(turns.get_type().into(), 1, "fails")?;
        self.emitter.builder.build_store(fails, self.int(0))?;
        self.lanes(false, |this, thread| {
            this.enter_with(&walked.rows, &walked.rows.load, thread)?;
            for ask in walked.loads.iter().flat_map(|load| &load.asks) {
                let holds = this.holds(*ask, counter, turns)?;
                let builder = &this.emitter.builder;
                let fail = builder.build_int_z_extend(builder.build_not(holds, "")?, turns.get_type(), "")?;
                let before = builder.build_load(turns.get_type(), fails, "")?.into_int_value();
                builder.build_store(fails, builder.build_or(before, fail, "")?)?;
            }
            Ok(())
        })?;
        let builder = &self.emitter.builder;
        let fails = builder.build_load(turns.get_type(), fails, "")?.into_int_value();
        Ok(builder.build_int_compare(IntPredicate::EQ, fails, self.int(0), "everyone")?)
    }

    /// Whether a condition holds for the present thread in each of so many turns.
    fn holds(&self, ask: Ask, counter: IntValue<'ctx>, turns: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let builder = &self.emitter.builder;
        match ask {
            Ask::Thread { cond, negated } => {
                let cond = self.emitter.emit_int(cond)?;
                if negated { Ok(builder.build_not(cond, "")?) } else { Ok(cond) }
            }
            Ask::Counter { op, value, negated } => {
                let op = if negated { inverse(op) } else { op };
                let value = self.emitter.emit_int(value)?;
                let (first, turns) = (self.widened(counter, value)?, self.widened(turns, value)?);
                if op == CompareOp::Ne {
                    let into = builder.build_int_sub(value, first, "")?;
                    return Ok(builder.build_int_compare(IntPredicate::UGE, into, turns, "")?);
                }
                let one = turns.get_type().const_int(1, false);
                let last = builder.build_int_sub(builder.build_int_add(first, turns, "")?, one, "")?;
                let at_first = builder.build_int_compare(predicate(op), first, value, "")?;
                let at_last = builder.build_int_compare(predicate(op), last, value, "")?;
                Ok(builder.build_and(at_first, at_last, "")?)
            }
        }
    }

    /// A signed integer as wide as another one.
    fn widened(&self, value: IntValue<'ctx>, like: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        if value.get_type() == like.get_type() {
            return Ok(value);
        }
        Ok(self.emitter.builder.build_int_s_extend(value, like.get_type(), "")?)
    }

    /// Turns of a walk, in which loads may be masked by what they ask.
    fn turns(
        &mut self,
        walked: &Walked,
        (nodes, asks): (&[Node], bool),
        (counter, turns): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        let mut ahead = Vec::new();
        for load in &walked.loads {
            ahead.push(self.room_for(load)?);
        }
        self.take_rows(walked, &ahead, asks, (counter, turns))?;
        for (load, ahead) in walked.loads.iter().zip(&ahead) {
            if !load.alike {
                self.turn_round(ahead)?;
            } else if asks {
                self.take_shared_row(load, ahead)?;
            }
        }
        self.counted("turn", (self.int(0), turns), |this, turn| {
            this.turned.clear();
            for (load, ahead) in walked.loads.iter().zip(&ahead) {
                let turned = this.of_turn(load, ahead, asks, turn)?;
                this.turned.extend(turned);
            }
            for &(load, once) in &walked.once {
                let value = this.emitter.emit_expr(once)?;
                this.turned.push(Turned::All(load, value));
            }
            this.nodes(nodes)?;
            this.turned.clear();
            this.emitter.in_step = true;
            this.nodes(&walked.step)?;
            this.emitter.in_step = false;
            Ok(())
        })?;
        Ok(())
    }

    /// Has loads of the present thread give what was taken ahead.
    pub(super) fn take_turned(&mut self) -> Result<()> {
        for turned in self.turned.clone() {
            let (load, value) = match turned {
                Turned::All(load, value) => (load, value),
                Turned::Each(load, place, element) => {
                    let Some((lane, _)) = self.lane() else { return internal("a walk in no strip") };
                    let place = self.element_at(element, place, lane)?;
                    (load, self.emitter.builder.build_load(element, place, "walked")?)
                }
            };
            self.emitter.ahead.push((load, value));
        }
        Ok(())
    }

    fn narrowed(&self, value: IntValue<'ctx>) -> Result<IntValue<'ctx>> {
        let int = self.emitter.cx.types.context.i32_type();
        if value.get_type() == int {
            return Ok(value);
        }
        Ok(self.emitter.builder.build_int_truncate(value, int, "")?)
    }

    fn room_for(&self, load: &WalkedLoad) -> Result<Ahead<'ctx>> {
        let Some(&first) = load.loads.first() else { return internal("a walk that loads nothing") };
        let ty = self.emitter.function.exprs[first].ty;
        let element = self.emitter.cx.types.memory(ty)?;
        let bytes = ty.host_bytes() as u32;
        let elements = WIDTH.min(VECTOR / bytes);
        let rows = self.array(element, WIDTH * if load.alike { 1 } else { WIDTH }, "rows")?;
        let turns = if load.alike { rows } else { self.array(element, WIDTH * WIDTH, "turns")? };
        let some = if load.alike { Some(self.array(self.bits().into(), 1, "some")?) } else { None };
        Ok(Ahead { element, elements, rows, turns, some })
    }

    /// A bit for each turn.
    fn bits(&self) -> IntType<'ctx> {
        self.emitter.cx.types.context.i16_type()
    }

    /// The vector of each thread's row, of what it loads in so many turns.
    fn take_rows(
        &mut self,
        walked: &Walked,
        ahead: &[Ahead<'ctx>],
        asks: bool,
        (counter, turns): (IntValue<'ctx>, IntValue<'ctx>),
    ) -> Result<()> {
        for some in ahead.iter().filter_map(|ahead| ahead.some) {
            self.emitter.builder.build_store(some, self.bits().const_zero())?;
        }
        let first = self.emitter.block("walked_rows");
        self.emitter.go(first)?;
        self.emitter.builder.position_at_end(first);
        self.straight_lanes(|this, thread| {
            this.enter_with(&walked.rows, &walked.rows.load, thread)?;
            let Some((lane, here)) = this.lane() else { return internal("a walk in no strip") };
            // Whoever is not here takes no turn.
            let turns = match here {
                None => turns,
                Some(here) => {
                    let builder = &this.emitter.builder;
                    let is_here = builder.build_int_compare(IntPredicate::ULT, lane, here, "")?;
                    builder.build_select(is_here, turns, this.int(0), "")?.into_int_value()
                }
            };
            for (load, ahead) in walked.loads.iter().zip(ahead) {
                let asked = if asks { load.asks.as_slice() } else { &[] };
                if let Some(some) = ahead.some {
                    if !asks {
                        continue;
                    }
                    let mask = this.mask(asked, counter, turns, (0, WIDTH))?;
                    let builder = &this.emitter.builder;
                    let mask = builder.build_bit_cast(mask, this.bits(), "")?.into_int_value();
                    let before = builder.build_load(this.bits(), some, "")?.into_int_value();
                    builder.build_store(some, builder.build_or(before, mask, "")?)?;
                    continue;
                }
                let pointer = this.emitter.emit_pointer(load.pointer)?;
                let byte = this.emitter.cx.types.context.i8_type().into();
                this.prefetch(this.element_at(byte, pointer, this.int(AHEAD))?, FIRST)?;
                let row = this.emitter.builder.build_int_nuw_mul(lane, this.int(WIDTH), "")?;
                let row = this.element_at(ahead.element, ahead.rows, row)?;
                for from in (0..WIDTH).step_by(ahead.elements as usize) {
                    let mask = this.mask(asked, counter, turns, (from, ahead.elements))?;
                    this.take(ahead, pointer, row, from, mask)?;
                }
            }
            Ok(())
        })?;
        self.forget_limits(first);
        Ok(())
    }

    /// What some thread loads of a row that is the same for all.
    fn take_shared_row(&mut self, load: &WalkedLoad, ahead: &Ahead<'ctx>) -> Result<()> {
        let Some(some) = ahead.some else { return internal("a row of all that nobody asks for") };
        let first = self.emitter.block("walked_row");
        self.emitter.go(first)?;
        self.emitter.builder.position_at_end(first);
        let pointer = self.emitter.emit_pointer(load.pointer)?;
        let some = self.emitter.builder.build_load(self.bits(), some, "")?.into_int_value();
        for from in (0..WIDTH).step_by(ahead.elements as usize) {
            let context = self.emitter.cx.types.context;
            let bits = if ahead.elements == WIDTH { context.i16_type() } else { context.i8_type() };
            let builder = &self.emitter.builder;
            let part = builder.build_right_shift(some, self.bits().const_int(u64::from(from), false), false, "")?;
            let part = if bits == self.bits() { part } else { builder.build_int_truncate(part, bits, "")? };
            let mask = self.emitter.cx.types.context.bool_type().vec_type(ahead.elements);
            let mask = builder.build_bit_cast(part, mask, "")?.into_vector_value();
            self.take(ahead, pointer, ahead.rows, from, mask)?;
        }
        self.forget_limits(first);
        Ok(())
    }

    /// Takes elements of a row, from one on, under a mask.
    fn take(
        &self,
        ahead: &Ahead<'ctx>,
        pointer: PointerValue<'ctx>,
        row: PointerValue<'ctx>,
        from: u32,
        mask: VectorValue<'ctx>,
    ) -> Result<()> {
        let vector = vector_of(ahead.element, ahead.elements)?;
        let from = self.int(from);
        let pointer = self.element_at(ahead.element, pointer, from)?;
        let load = self.emitter.cx.intrinsic("llvm.masked.load", &[vector.into(), pointer.get_type().into()])?;
        let args = [pointer.into(), mask.into(), vector.const_zero().into()];
        let value = self.emitter.builder.build_call(load, &args, "row")?.try_as_basic_value();
        let Some(value) = value.basic() else { return internal("a masked load without a value") };
        let to = self.element_at(ahead.element, row, from)?;
        self.emitter.builder.build_store(to, value)?;
        Ok(())
    }

    /// The turns, from one on, in which the present thread loads.
    fn mask(
        &self,
        asks: &[Ask],
        counter: IntValue<'ctx>,
        turns: IntValue<'ctx>,
        (from, lanes): (u32, u32),
    ) -> Result<VectorValue<'ctx>> {
        let builder = &self.emitter.builder;
        let numbers = |ty: IntType<'ctx>| {
            let all: Vec<_> = (from..from + lanes).map(|lane| ty.const_int(u64::from(lane), false)).collect();
            VectorType::const_vector(&all)
        };
        let turns_of_all = self.splat(turns.into(), lanes)?;
        let all = builder.build_int_compare(IntPredicate::ULT, numbers(turns.get_type()), turns_of_all, "")?;
        let mut all = all;
        for ask in asks {
            let (holds, negated) = match *ask {
                Ask::Thread { cond, negated } => {
                    let cond = self.emitter.emit_int(cond)?;
                    (self.splat(cond.into(), lanes)?, negated)
                }
                Ask::Counter { op, value, negated } => {
                    let value = self.emitter.emit_int(value)?;
                    let counter = self.splat(self.widened(counter, value)?.into(), lanes)?;
                    let counter = builder.build_int_add(counter, numbers(value.get_type()), "")?;
                    (builder.build_int_compare(predicate(op), counter, self.splat(value.into(), lanes)?, "")?, negated)
                }
            };
            let holds = if negated { builder.build_not(holds, "")? } else { holds };
            all = builder.build_and(all, holds, "")?;
        }
        Ok(all)
    }

    fn splat(&self, value: BasicValueEnum<'ctx>, lanes: u32) -> Result<VectorValue<'ctx>> {
        let zero = self.int(0);
        let one = vector_of(value.get_type(), 1)?;
        let one = self.emitter.builder.build_insert_element(one.get_poison(), value, zero, "")?;
        let mask = VectorType::const_vector(&vec![zero; lanes as usize]);
        Ok(self.emitter.builder.build_shuffle_vector(one, one.get_type().get_poison(), mask, "")?)
    }

    /// What stands in place of loads in a turn.
    fn of_turn(
        &self,
        load: &WalkedLoad,
        ahead: &Ahead<'ctx>,
        asks: bool,
        turn: IntValue<'ctx>,
    ) -> Result<Vec<Turned<'ctx>>> {
        let one = if load.alike {
            let place = if asks {
                self.element_at(ahead.element, ahead.turns, turn)?
            } else {
                self.emitter.emit_pointer(load.pointer)?
            };
            let value = self.emitter.builder.build_load(ahead.element, place, "walked")?;
            Err(value)
        } else {
            let first = self.emitter.builder.build_int_nuw_mul(turn, self.int(WIDTH), "")?;
            Ok(self.element_at(ahead.element, ahead.turns, first)?)
        };
        let turned = |&id: &ExprId| match one {
            Ok(place) => Turned::Each(id, place, ahead.element),
            Err(value) => Turned::All(id, value),
        };
        Ok(load.loads.iter().map(turned).collect())
    }

    /// Makes a vector of the threads for each turn of one of the turns for each thread.
    fn turn_round(&mut self, ahead: &Ahead<'ctx>) -> Result<()> {
        let (n, vector) = (ahead.elements, vector_of(ahead.element, ahead.elements)?);
        for threads in (0..WIDTH).step_by(n as usize) {
            for turns in (0..WIDTH).step_by(n as usize) {
                let mut rows = Vec::new();
                for thread in threads..threads + n {
                    let place = self.element_at(ahead.element, ahead.rows, self.int(thread * WIDTH + turns))?;
                    rows.push(self.emitter.builder.build_load(vector, place, "")?.into_vector_value());
                }
                for (turn, column) in (turns..).zip(self.transposed(rows)?) {
                    let place = self.element_at(ahead.element, ahead.turns, self.int(turn * WIDTH + threads))?;
                    self.emitter.builder.build_store(place, column)?;
                }
            }
        }
        Ok(())
    }

    fn element_at(
        &self,
        element: BasicTypeEnum<'ctx>,
        base: PointerValue<'ctx>,
        at: IntValue<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let at = index(&self.emitter, at)?;
        // SAFETY: without `inbounds` an address may be anywhere; what is not there is not loaded.
        Ok(unsafe { self.emitter.builder.build_gep(element, base, &[at], "")? })
    }

    /// Addresses from a block on are computed for threads and turns that may load nothing there: they may be anywhere.
    fn forget_limits(&self, first: BasicBlock<'ctx>) {
        let mut block = Some(first);
        while let Some(present) = block {
            let mut instruction = present.get_first_instruction();
            while let Some(one) = instruction {
                use InstructionOpcode::{Add, GetElementPtr, Mul, Shl, Sub};
                match one.get_opcode() {
                    // SAFETY: the instruction is alive, and takes these flags.
                    GetElementPtr => unsafe { LLVMGEPSetNoWrapFlags(one.as_value_ref(), 0) },
                    Add | Mul | Shl | Sub => {
                        // SAFETY: the instruction is alive, and takes the flag.
                        unsafe { LLVMSetNUW(one.as_value_ref(), 0) };
                        // SAFETY: as above.
                        unsafe { LLVMSetNSW(one.as_value_ref(), 0) };
                    }
                    _ => {}
                }
                instruction = one.get_next_instruction();
            }
            block = present.get_next_basic_block();
        }
    }
}

fn predicate(op: CompareOp) -> IntPredicate {
    match op {
        CompareOp::Eq => IntPredicate::EQ,
        CompareOp::Ne => IntPredicate::NE,
        CompareOp::Lt => IntPredicate::SLT,
        CompareOp::Le => IntPredicate::SLE,
        CompareOp::Gt => IntPredicate::SGT,
        CompareOp::Ge => IntPredicate::SGE,
    }
}

fn vector_of(element: BasicTypeEnum<'_>, lanes: u32) -> Result<VectorType<'_>> {
    Ok(match element {
        BasicTypeEnum::IntType(int) => int.vec_type(lanes),
        BasicTypeEnum::FloatType(float) => float.vec_type(lanes),
        other @ (BasicTypeEnum::ArrayType(_)
        | BasicTypeEnum::PointerType(_)
        | BasicTypeEnum::StructType(_)
        | BasicTypeEnum::VectorType(_)
        | BasicTypeEnum::ScalableVectorType(_)) => return internal(format!("a row of {other}")),
    })
}
