//! Instrumentation of sanitized code: calls of the runtime's checks before accesses and at other events.
//!
//! An access uses the address that the runtime returns. It differs from the access's own address only if the access
//! must not happen. A kernel that is not sanitized has no instrumentation.

use std::{
    cell::{Cell, RefCell},
    mem::offset_of,
};

use inkwell::{
    AddressSpace, IntPredicate,
    values::{BasicValueEnum, IntValue, PointerValue},
};
use weft_artifact::{AccessBits, EventKind, HostChecks, HostContext, HostSeen, SiteKind};

use crate::{
    backend::{
        host::{
            checked::{inline_checks::Quick, seen::Seen, sites::Recorder},
            emit::position::known_offset,
        },
        llvm::{AccessSite, FunctionEmitter, OperandValue, Result, int, internal},
    },
    ir::{Check, ExprId, FuncId, Function, LoadHint, Op, Order, Scope, SharedId, Shuffle, Space, Type},
    source::Span,
};

/// The race-free reads in the code that is being emitted.
pub(crate) struct Settled {
    /// The shared arrays whose reads cannot race.
    pub(crate) arrays: Vec<SharedId>,
    /// Whether all bytes of these arrays are written, and the reads of arrays that the kernel only reads are not
    /// recorded.
    pub(crate) all: bool,
}

/// The state of the instrumentation of one function.
pub(crate) struct Instrumentation<'a> {
    pub(crate) recorder: &'a Recorder<'a>,
    pub(crate) function: FuncId,
    /// The source location of the current statement.
    pub(crate) span: Cell<Span>,
    /// The race-free reads of the code that is being emitted.
    pub(crate) settled: RefCell<Option<Settled>>,
    /// Whether a read since the last [`Check::Unwritten`] may have set [`HostContext::unwritten`].
    pub(crate) asks: Cell<bool>,
}

impl<'a> Instrumentation<'a> {
    pub(crate) const fn new(recorder: &'a Recorder<'a>, function: FuncId, span: Span) -> Self {
        Self { recorder, function, span: Cell::new(span), settled: RefCell::new(None), asks: Cell::new(false) }
    }
}

/// Loads one of the function pointers of the context's [`HostChecks`], by its offset there.
fn check<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    offset: usize,
) -> Result<PointerValue<'ctx>> {
    let at = (offset_of!(HostContext, checks) + offset) as u64;
    let place = known_offset(emitter, context, at)?;
    let pointer = emitter.cx.types.context.ptr_type(AddressSpace::default());
    Ok(emitter.builder.build_load(pointer, place, "check")?.into_pointer_value())
}

/// Emits a call of [`HostChecks::event`].
pub(crate) fn event<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    (site, kind): (u32, u32),
    a: IntValue<'ctx>,
    b: IntValue<'ctx>,
) -> Result<()> {
    let llvm = emitter.cx.types.context;
    let (int, long, pointer) = (llvm.i32_type(), llvm.i64_type(), llvm.ptr_type(AddressSpace::default()));
    let callee = check(emitter, context, offset_of!(HostChecks, event))?;
    let ty = llvm.void_type().fn_type(&[pointer.into(), int.into(), int.into(), long.into(), long.into()], false);
    let (site, kind) = (int.const_int(u64::from(site), false), int.const_int(u64::from(kind), false));
    emitter.builder.build_indirect_call(
        ty,
        callee,
        &[context.into(), site.into(), kind.into(), a.into(), b.into()],
        "",
    )?;
    Ok(())
}

/// The size of the accesses that a copy is checked as, in bytes.
const COPIED_PART: u32 = 4;

/// The context, and the thread's state that inline checks compare an access with.
type Compared<'ctx> = (PointerValue<'ctx>, Option<Seen<'ctx>>);

/// An access with the properties that its check needs.
pub(crate) struct Told<'ctx> {
    kind: SiteKind,
    span: Span,
    pub(crate) place: PointerValue<'ctx>,
    bits: u32,
    value: Option<BasicValueEnum<'ctx>>,
    pub(crate) copy: u32,
    /// See [`Quick::parameter`].
    parameter: u64,
    /// The pointer expression of a plain load; `None` for any other access.
    pub(crate) loads: Option<ExprId>,
}

impl Told<'_> {
    /// The size of the access in bytes.
    pub(crate) const fn bytes(&self) -> u32 {
        self.bits & AccessBits::SIZE
    }
}

impl<'ctx> Instrumentation<'_> {
    fn call(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        (context, seen): Compared<'ctx>,
        told: &Told<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let site = self.recorder.site(told.kind, told.span, &emitter.function.name);
        let bytes = told.bytes();
        if let Some(settled) = self.settled(emitter, told, seen)? {
            return Self::settled_read(emitter, context, (told, site), settled);
        }
        self.asks.set(self.asks.get() || told.copy == HostChecks::FOLLOWED);
        let step = step(told.bits).filter(|_| bytes >= 4 && seen.is_some_and(|seen| seen.is_of_loops()));
        let is_quick = told.bits & AccessBits::ATOMIC == 0 || step.is_some();
        if is_quick && told.bits & AccessBits::LOCAL == 0 && matches!(bytes, 1 | 2 | 4 | 8) {
            self.recorder.n_quick.set(self.recorder.n_quick.get() + 1);
            let written = told.value.map(|value| word(emitter, value)).transpose()?;
            let &Told { place, bits, copy, parameter, .. } = told;
            let Some(seen) = seen else { return internal("an access that is compared with nothing") };
            return Quick { site, place, bits, bytes, copy, written, step, parameter }.emit(emitter, context, &seen);
        }
        Self::ask(emitter, context, (told, site))
    }

    /// Emits a call of [`HostChecks::access`]. Returns the address to access.
    pub(crate) fn ask(
        emitter: &FunctionEmitter<'_, 'ctx>,
        context: PointerValue<'ctx>,
        (told, site): (&Told<'ctx>, u32),
    ) -> Result<PointerValue<'ctx>> {
        let llvm = emitter.cx.types.context;
        let (int, long, pointer) = (llvm.i32_type(), llvm.i64_type(), llvm.ptr_type(AddressSpace::default()));
        let callee = check(emitter, context, offset_of!(HostChecks, access))?;
        let ty =
            pointer.fn_type(&[pointer.into(), int.into(), pointer.into(), int.into(), long.into(), int.into()], false);
        let value = match told.value {
            Some(value) => word(emitter, value)?,
            None => long.const_zero(),
        };
        let args = [
            context.into(),
            int.const_int(u64::from(site), false).into(),
            told.place.into(),
            int.const_int(u64::from(told.bits), false).into(),
            value.into(),
            int.const_int(u64::from(told.copy), false).into(),
        ];
        let call = emitter.builder.build_indirect_call(ty, callee, &args, "place")?;
        match call.try_as_basic_value().basic() {
            Some(BasicValueEnum::PointerValue(place)) => Ok(place),
            _ => internal("an access goes nowhere"),
        }
    }

    /// The number of a value that is only copied from one memory location to another; 0 for any other value.
    fn copy(&self, function: &Function, expr: ExprId) -> u32 {
        let local = function.local(expr);
        local.and_then(|local| self.recorder.copies.get(&(self.function, local))).copied().unwrap_or(0)
    }

    /// Emits the check of a plain access. Returns the address to access.
    pub(crate) fn access(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        compared: Compared<'ctx>,
        access: &AccessSite<'ctx>,
    ) -> Result<PointerValue<'ctx>> {
        let Type::Ptr(element, space) = emitter.function.exprs[access.pointer].ty else {
            return internal("an access without a pointer");
        };
        if self.recorder.is_unchecked(emitter.function, access.pointer) {
            return Ok(access.address);
        }
        let mut bits = element.size_bytes() as u32 | of_space(space);
        if access.natural {
            bits |= AccessBits::NATURAL;
        }
        let (kind, copy) = match access.stored {
            Some((stored, _)) => {
                bits |= AccessBits::WRITES;
                (SiteKind::Write, self.copy(emitter.function, stored))
            }
            None => {
                bits |= AccessBits::READS;
                let Recorder { copies, followed, .. } = self.recorder;
                let copy = access.taken.and_then(|local| copies.get(&(self.function, local)).copied());
                let is_followed = followed.contains(&(self.function, access.pointer));
                (SiteKind::Read, copy.unwrap_or(if is_followed { HostChecks::FOLLOWED } else { 0 }))
            }
        };
        let value = access.stored.map(|(_, value)| value);
        let parameter = self.recorder.parameter(self.function, emitter.function, access.pointer);
        let loads = value.is_none().then_some(access.pointer);
        let told = Told { kind, span: access.span, place: access.address, bits, value, copy, parameter, loads };
        self.call(emitter, compared, &told)
    }

    /// Emits the check of an operation's access, whose address is the first operand. Returns the address to access, or
    /// `None` if the operation accesses no memory.
    pub(crate) fn of_op(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        compared: Compared<'ctx>,
        op: Op,
        operands: &[OperandValue<'ctx>],
    ) -> Result<Option<PointerValue<'ctx>>> {
        let Some(OperandValue { ty: Type::Ptr(element, space), value: BasicValueEnum::PointerValue(place) }) =
            operands.first()
        else {
            return Ok(None);
        };
        let (kind, doing) = if let Op::Atomic { order, scope, .. } = op {
            (SiteKind::Atomic, atomic_bits(order, scope))
        } else if let Op::Load(hint) = op {
            let atomic = if hint == LoadHint::Volatile { AccessBits::ATOMIC } else { 0 };
            (SiteKind::Read, AccessBits::READS | atomic)
        } else if let Op::Store(_) = op {
            (SiteKind::Write, AccessBits::WRITES)
        } else {
            return Ok(None);
        };
        let bits = element.size_bytes() as u32 | of_space(*space) | doing | AccessBits::NATURAL;
        let value = if doing & AccessBits::ATOMIC == 0 { operands.get(1).map(|operand| operand.value) } else { None };
        let told = Told { kind, span: self.span.get(), place: *place, bits, value, copy: 0, parameter: 0, loads: None };
        self.call(emitter, compared, &told).map(Some)
    }

    /// The number of the site of the current statement.
    pub(crate) fn site(&self, emitter: &FunctionEmitter<'_, 'ctx>, kind: SiteKind) -> u32 {
        self.recorder.site(kind, self.span.get(), &emitter.function.name)
    }

    /// Emits the checks of a copy, which writes its first operand and reads its second one, part by part. Returns the
    /// operands to copy.
    pub(crate) fn of_copy(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        compared: Compared<'ctx>,
        bytes: u8,
        operands: &[OperandValue<'ctx>],
    ) -> Result<Vec<OperandValue<'ctx>>> {
        let &[to, from] = operands else { return internal("a copy without its two pointers") };
        let (builder, word) = (&emitter.builder, emitter.cx.types.context.i32_type());
        let span = self.span.get();
        // The element is read before it is written.
        let mut source: Option<PointerValue<'ctx>> = None;
        let mut checked = Vec::with_capacity(operands.len());
        for operand in [from, to] {
            let (Type::Ptr(_, space), BasicValueEnum::PointerValue(first)) = (operand.ty, operand.value) else {
                return internal("a copy without its two pointers");
            };
            let (kind, doing) = match source {
                None => (SiteKind::Read, AccessBits::READS),
                Some(_) => (SiteKind::Write, AccessBits::WRITES),
            };
            let bits = COPIED_PART | of_space(space) | doing | AccessBits::NATURAL;
            let mut value = operand.value;
            for offset in (0..u64::from(bytes)).step_by(COPIED_PART as usize) {
                let place = known_offset(emitter, first, offset)?;
                let copied = match source {
                    None => None,
                    Some(source) => Some(builder.build_load(word, known_offset(emitter, source, offset)?, "")?),
                };
                let told = Told { kind, span, place, bits, value: copied, copy: 0, parameter: 0, loads: None };
                let allowed = self.call(emitter, compared, &told)?;
                // If a part must not be accessed, nothing is.
                let same = builder.build_int_compare(IntPredicate::EQ, allowed, place, "")?;
                value = builder.build_select(same, value, allowed.into(), "")?;
            }
            source = Some(value.into_pointer_value());
            checked.insert(0, OperandValue { value, ..operand });
        }
        Ok(checked)
    }

    /// Emits a check operation of the IR. Returns its results.
    pub(crate) fn check(
        &self,
        emitter: &FunctionEmitter<'_, 'ctx>,
        context: PointerValue<'ctx>,
        check: Check,
        operands: &[OperandValue<'ctx>],
    ) -> Result<Vec<BasicValueEnum<'ctx>>> {
        let long = emitter.cx.types.context.i64_type();
        let zero = long.const_zero();
        let nothing = |()| Vec::new();
        let int = |index: usize| match operands.get(index) {
            Some(OperandValue { value: BasicValueEnum::IntValue(value), .. }) => {
                Ok(emitter.builder.build_int_z_extend_or_bit_cast(*value, long, "")?)
            }
            _ => internal("a check without its numbers"),
        };
        let span = self.span.get();
        let site = |kind| self.recorder.site(kind, span, &emitter.function.name);
        match check {
            Check::Bounds(axis) => {
                let kind = EventKind::BOUNDS | u32::from(axis) << 8;
                event(emitter, context, (site(SiteKind::Read), kind), int(0)?, int(1)?).map(nothing)
            }
            Check::Meets(kind) => event(emitter, context, (site(kind), EventKind::MEETS), int(0)?, zero).map(nothing),
            Check::Lanes(kind, shuffle) => {
                let how = shuffle.map_or(0, |shuffle| match shuffle {
                    Shuffle::Index => 1,
                    Shuffle::Up => 2,
                    Shuffle::Down => 3,
                    Shuffle::Xor => 4,
                });
                // The kind of the shuffle is in the lowest byte, the distance in the second one, the width above them.
                let builder = &emitter.builder;
                let byte = |value| builder.build_and(value, long.const_int(31, false), "");
                let by = builder.build_left_shift(byte(int(1)?)?, long.const_int(8, false), "")?;
                let width = builder.build_left_shift(int(2)?, long.const_int(16, false), "")?;
                let packed = builder.build_or(builder.build_or(by, width, "")?, long.const_int(how, false), "")?;
                event(emitter, context, (site(kind), EventKind::LANES), int(0)?, packed).map(nothing)
            }
            Check::Returns => {
                event(emitter, context, (site(SiteKind::End), EventKind::RETURNS), zero, zero).map(nothing)
            }
            Check::Enters => {
                event(emitter, context, (site(SiteKind::Call), EventKind::ENTERS), zero, zero).map(nothing)
            }
            Check::Leaves => event(emitter, context, (0, EventKind::LEAVES), zero, zero).map(nothing),
            Check::Used => event(emitter, context, (0, EventKind::USED), int(0)?, zero).map(nothing),
            Check::Unwritten
                if self.settled.borrow().as_ref().is_some_and(|settled| settled.all) && !self.asks.replace(false) =>
            {
                Ok(vec![emitter.cx.types.context.i32_type().const_zero().into()])
            }
            Check::Unwritten => {
                let place = known_offset(emitter, context, offset_of!(HostContext, unwritten) as u64)?;
                let word = emitter.cx.types.context.i32_type();
                let number = emitter.builder.build_load(word, place, "unwritten")?;
                emitter.builder.build_store(place, word.const_zero())?;
                Ok(vec![number])
            }
        }
    }
}

/// Reports a fence.
pub(crate) fn fence<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    scope: Scope,
) -> Result<()> {
    let long = emitter.cx.types.context.i64_type();
    let of_block = long.const_int(u64::from(scope == Scope::Block), false);
    event(emitter, context, (0, EventKind::FENCE), of_block, long.const_zero())
}

/// Reports that all threads of the block have reached a barrier.
pub(crate) fn met<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, context: PointerValue<'ctx>) -> Result<()> {
    let zero = emitter.cx.types.context.i64_type().const_zero();
    event(emitter, context, (0, EventKind::MET), zero, zero)
}

/// Reports the local arrays of a function, at its start.
pub(crate) fn arrays<'ctx>(
    emitter: &FunctionEmitter<'_, 'ctx>,
    context: PointerValue<'ctx>,
    places: &[Option<PointerValue<'ctx>>],
) -> Result<()> {
    let long = emitter.cx.types.context.i64_type();
    for ((_, array), place) in emitter.function.local_arrays.iter().zip(places) {
        let Some(place) = place else { continue };
        let address = emitter.builder.build_ptr_to_int(*place, long, "")?;
        let bytes = long.const_int(array.len.saturating_mul(array.elem.size_bytes()), false);
        event(emitter, context, (0, EventKind::LOCAL), address, bytes)?;
    }
    Ok(())
}

/// The access bits of a memory space.
fn of_space(space: Space) -> u32 {
    match space {
        Space::Global | Space::Shared | Space::Generic => 0,
        // No other thread writes local or constant memory.
        Space::Local | Space::Constant => AccessBits::LOCAL,
    }
}

fn atomic_bits(order: Order, scope: Scope) -> u32 {
    let mut bits = AccessBits::READS | AccessBits::WRITES | AccessBits::ATOMIC;
    if scope == Scope::Block {
        bits |= AccessBits::BLOCK_SCOPE;
    }
    if order.acquires() {
        bits |= AccessBits::ACQUIRES;
    }
    if order.releases() {
        bits |= AccessBits::RELEASES;
    }
    bits
}

/// The kind bits of a relaxed atomic operation that writes, as the runtime stores them in the record of a read
/// ([`HostSeen::STEP`]); `None` for any other access.
fn step(bits: u32) -> Option<u64> {
    let has = |bit: u32| bits & bit != 0;
    let orders = has(AccessBits::ACQUIRES) || has(AccessBits::RELEASES);
    (has(AccessBits::ATOMIC) && has(AccessBits::WRITES) && !orders)
        .then(|| HostSeen::STEP | if has(AccessBits::BLOCK_SCOPE) { HostSeen::OF_BLOCK } else { 0 })
}

/// The bits of a number, zero-extended to 64 bits.
fn word<'ctx>(emitter: &FunctionEmitter<'_, 'ctx>, value: BasicValueEnum<'ctx>) -> Result<IntValue<'ctx>> {
    let llvm = emitter.cx.types.context;
    let builder = &emitter.builder;
    let bits = if let BasicValueEnum::FloatValue(float) = value {
        let int = if float.get_type() == llvm.f64_type() { llvm.i64_type() } else { llvm.i32_type() };
        builder.build_bit_cast(float, int, "")?
    } else {
        value
    };
    Ok(builder.build_int_z_extend_or_bit_cast(int(bits)?, llvm.i64_type(), "")?)
}
