//! The parameters of the adjoint kernel, and the arrays that a kernel accesses, with their adjoints.

use std::collections::BTreeMap;

use weft_artifact::{ArgType, DType, HostChecks, Layout, Param, SlotField, SlotSource};

use crate::{
    ir::{
        Arena, Arith, Base, BinaryOp, Class, Const, ExprId, ExprKind, Function, Leaf, LocalArray, LocalArrayId,
        LocalId, SharedArray, SharedId,
    },
    request::Derivative,
};

/// The memory that a pointer points into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Memory {
    /// The array of the parameter with this number.
    Param(u32),
    /// A constant array, or an array that the kernel captures.
    Captured,
    /// An array of the block.
    Shared(SharedId),
    /// An array of the thread.
    Local(LocalArrayId),
    /// Dynamic shared memory: all its arrays start at one address.
    Dynamic,
    /// One of several arrays.
    Other,
}

/// The parameters of the kernel and their adjoints.
#[derive(Debug)]
pub(super) struct Arrays {
    /// The parameter and the field of each of the function's parameters.
    slots: BTreeMap<LocalId, (u32, SlotField)>,
    /// By the number of the parameter: the number of its adjoint.
    adjoints: BTreeMap<u32, u32>,
    /// The types of the parameters.
    params: Vec<Param>,
    /// The numbers of the parameters of scratch memory and of exact sums.
    memory: [Option<u32>; 2],
    /// The names of shared and local arrays.
    names: BTreeMap<Memory, String>,
    /// By shared or local array: its adjoint.
    own: BTreeMap<Memory, Base>,
}

impl Memory {
    /// Whether the kernel declares the memory: its contents are undefined when a thread starts.
    pub(super) fn is_own(self) -> bool {
        match self {
            Self::Shared(_) | Self::Local(_) | Self::Dynamic => true,
            Self::Param(_) | Self::Captured | Self::Other => false,
        }
    }

    /// Whether the threads of a block share it.
    pub(super) fn is_shared(self) -> bool {
        match self {
            Self::Shared(_) | Self::Dynamic => true,
            Self::Local(_) | Self::Param(_) | Self::Captured | Self::Other => false,
        }
    }
}

impl Arrays {
    pub(super) fn new(
        function: &Function,
        params: &[Param],
        shared: &Arena<SharedArray>,
        derivative: &Derivative,
    ) -> Self {
        let mut slots = BTreeMap::new();
        for (&local, source) in function.params.iter().zip(&function.slots) {
            match source {
                SlotSource::Argument { param, path, field } if path.is_empty() => {
                    slots.insert(local, (*param, *field));
                }
                SlotSource::Argument { .. } => {}
                SlotSource::Runtime(runtime) => match *runtime {},
            }
        }
        let first = derivative.first_adjoint(params.len()) as u32;
        let adjoints = derivative.of.iter().copied().zip(first..).collect();
        let shared = shared.iter().map(|(id, array)| (Memory::Shared(id), array.name.clone()));
        let local = function.local_arrays.iter().map(|(id, array)| (Memory::Local(id), array.name.clone()));
        let dynamic = [(Memory::Dynamic, "cuda.shared.array(0, dtype)".to_owned())];
        let names = shared.chain(local).chain(dynamic).collect();
        let mut added = first + derivative.of.len() as u32..;
        let has_scratch = derivative.scratch.params() > 0;
        let memory = [has_scratch, derivative.has_sums].map(|has| has.then(|| added.next()).flatten());
        Self { slots, adjoints, params: params.to_vec(), memory, names, own: BTreeMap::new() }
    }

    /// Declares the adjoints of shared and local arrays.
    pub(super) fn declare(
        &mut self,
        function: &mut Function,
        shared: &mut Arena<SharedArray>,
        active: impl Iterator<Item = Memory>,
    ) {
        for memory in active {
            let adjoint = match memory {
                Memory::Shared(id) => {
                    let own = &shared[id];
                    let adjoint = SharedArray { name: format!("{}.adjoint", own.name), ..own.clone() };
                    Base::Shared(shared.push(adjoint))
                }
                Memory::Local(id) => {
                    let own = &function.local_arrays[id];
                    let adjoint = LocalArray { name: format!("{}.adjoint", own.name), ..own.clone() };
                    Base::Local(function.local_arrays.push(adjoint))
                }
                Memory::Dynamic => Base::Dynamic,
                Memory::Param(_) | Memory::Captured | Memory::Other => continue,
            };
            self.own.insert(memory, adjoint);
        }
    }

    /// The name of an array of the kernel's or of its arguments.
    pub(super) fn name(&self, memory: Memory) -> &str {
        match memory {
            Memory::Param(param) => &self.param(param).name,
            Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic | Memory::Captured | Memory::Other => {
                self.names.get(&memory).map_or("", String::as_str)
            }
        }
    }

    /// The shared array that has another one as its adjoint; other memory itself.
    pub(super) fn of_adjoint(&self, memory: Memory) -> Memory {
        let is_adjoint = |base| matches!((memory, base), (Memory::Shared(id), Base::Shared(adjoint)) if id == adjoint);
        self.own.iter().find(|(_, base)| is_adjoint(**base)).map_or(memory, |(&of, _)| of)
    }

    /// The adjoint of a shared or local array.
    pub(super) fn own_adjoint(&self, memory: Memory) -> Option<Base> {
        self.own.get(&memory).copied()
    }

    /// The adjoints of shared and local arrays.
    pub(super) fn own_adjoints(&self) -> impl Iterator<Item = Base> {
        self.own.values().copied()
    }

    /// The parameters that have adjoints, with the adjoints' numbers.
    pub(super) fn adjoints(&self) -> impl Iterator<Item = (u32, u32)> {
        self.adjoints.iter().map(|(&of, &adjoint)| (of, adjoint))
    }

    /// Whether a parameter has an adjoint.
    pub(super) fn has_adjoint(&self, param: u32) -> bool {
        self.adjoints.contains_key(&param)
    }

    /// A parameter.
    pub(super) fn param(&self, number: u32) -> &Param {
        &self.params[number as usize]
    }

    /// The numbers of all parameters.
    pub(super) fn numbers(&self) -> impl Iterator<Item = u32> {
        0..self.params.len() as u32
    }

    /// The address of the scratch memory.
    pub(super) fn scratch(&self) -> Option<LocalId> {
        self.local(self.memory[0]?, SlotField::Data)
    }

    /// The address of the words of exact sums.
    pub(super) fn sums(&self) -> Option<LocalId> {
        self.local(self.memory[1]?, SlotField::Data)
    }

    /// The local of a field of a parameter.
    pub(super) fn local(&self, param: u32, field: SlotField) -> Option<LocalId> {
        self.slots.iter().find(|&(_, &slot)| slot == (param, field)).map(|(&local, _)| local)
    }

    /// The scalar parameters with an adjoint: the value, and the address of its adjoint.
    pub(super) fn scalars(&self) -> Vec<(LocalId, LocalId)> {
        let of = |(param, adjoint)| Some((self.local(param, SlotField::Value)?, self.local(adjoint, SlotField::Data)?));
        self.adjoints().filter_map(of).collect()
    }

    /// The parameter and the field of a local, if it is one.
    pub(super) fn slot(&self, local: LocalId) -> Option<(u32, SlotField)> {
        self.slots.get(&local).copied()
    }

    /// The locals of a parameter's strides.
    pub(super) fn strides(&self, param: u32) -> impl Iterator<Item = LocalId> {
        let slots = self.slots.iter();
        slots
            .filter(move |(_, slot)| slot.0 == param && matches!(slot.1, SlotField::Stride(_)))
            .map(|(&local, _)| local)
    }

    /// The field of a parameter's adjoint.
    pub(super) fn shadow(&self, param: u32, field: SlotField) -> Option<LocalId> {
        self.local(*self.adjoints.get(&param)?, field)
    }

    /// The memory that a pointer points into.
    pub(super) fn memory(&self, function: &Function, pointer: ExprId) -> Memory {
        match function.class(pointer) {
            Class::Leaf(Leaf::Local(local)) => match self.slots.get(&local) {
                Some(&(param, _)) => Memory::Param(param),
                None => Memory::Other,
            },
            Class::Leaf(Leaf::Base(Base::Const(_)) | Leaf::Const(Const::Address(_))) => Memory::Captured,
            Class::Leaf(Leaf::Base(Base::Shared(id))) => Memory::Shared(id),
            Class::Leaf(Leaf::Base(Base::Local(id))) => Memory::Local(id),
            Class::Leaf(Leaf::Base(Base::Dynamic)) => Memory::Dynamic,
            Class::Arith(Arith::Convert(base)) | Class::Address { base, .. } => self.memory(function, base),
            Class::Arith(Arith::Select(_, a, b)) => {
                // Sanitized code replaces an address outside of its array.
                let is_nowhere =
                    |id| matches!(function.class(id), Class::Leaf(Leaf::Const(Const::Address(HostChecks::NOWHERE))));
                match (self.memory(function, a), self.memory(function, b)) {
                    (one, _) if is_nowhere(b) => one,
                    (_, other) if is_nowhere(a) => other,
                    (one, other) if one == other => one,
                    (
                        Memory::Param(_)
                        | Memory::Captured
                        | Memory::Shared(_)
                        | Memory::Local(_)
                        | Memory::Dynamic
                        | Memory::Other,
                        _,
                    ) => Memory::Other,
                }
            }
            Class::Leaf(_) | Class::Arith(_) | Class::Load(_) => Memory::Other,
        }
    }

    /// Whether a pointer may point into the array of a parameter. Arrays do not overlap.
    pub(super) fn may_be(&self, function: &Function, pointer: ExprId, param: u32) -> bool {
        match self.memory(function, pointer) {
            Memory::Param(other) => other == param,
            Memory::Captured | Memory::Shared(_) | Memory::Local(_) | Memory::Dynamic => false,
            Memory::Other => true,
        }
    }

    /// The indices of an element, one for each dimension of its array, if the address shows them.
    pub(super) fn indices(&self, function: &Function, pointer: ExprId) -> Option<(u32, Vec<ExprId>)> {
        let (base, by, scale) = if let ExprKind::Offset { base, index, scale } = function.exprs[pointer].kind {
            (base, index, scale)
        } else if let ExprKind::ByteOffset { base, bytes } = function.exprs[pointer].kind {
            (base, bytes, 0)
        } else {
            return None;
        };
        let &(param, SlotField::Data) = self.slots.get(&function.local(base)?)? else { return None };
        let ArgType::Array(array) = &self.param(param).ty else { return None };
        let dims = array.ndim;
        let mut found = match (array.layout, scale) {
            (Layout::C, 1) => self.nested(function, by, param, &(0..dims).rev().collect::<Vec<_>>())?,
            (Layout::F, 1) => self.nested(function, by, param, &(0..dims).collect::<Vec<_>>())?,
            (Layout::Any, 0) => self.strided(function, by, param, dims)?,
            (Layout::C | Layout::F | Layout::Any, _) => return None,
        };
        found.sort_by_key(|&(dim, _)| dim);
        Some((param, found.into_iter().map(|(_, index)| index).collect()))
    }

    /// Whether an expression is a field of a parameter; for an extent, also of the parameter whose adjoint it is.
    fn is_field(&self, function: &Function, id: ExprId, param: u32, field: SlotField) -> bool {
        let slot = function.local(id).and_then(|local| self.slots.get(&local));
        slot.is_some_and(|&(of, own)| {
            let is_extent = matches!(field, SlotField::Shape(_));
            own == field && (of == param || is_extent && self.adjoints.get(&of) == Some(&param))
        })
    }

    /// The indices in `(i * shape1 + j) * shape2 + k`, for the dimensions from the fastest one on.
    fn nested(&self, function: &Function, by: ExprId, param: u32, dims: &[u8]) -> Option<Vec<(u8, ExprId)>> {
        let mut found = Vec::new();
        let mut rest = by;
        let (&slowest, faster) = dims.split_last()?;
        for &dim in faster {
            let ExprKind::Binary(BinaryOp::Add | BinaryOp::AddExact, outer, index) = function.exprs[rest].kind else {
                return None;
            };
            let ExprKind::Binary(BinaryOp::Mul | BinaryOp::MulExact, slower, extent) = function.exprs[outer].kind
            else {
                return None;
            };
            if !self.is_field(function, extent, param, SlotField::Shape(dim)) {
                return None;
            }
            found.push((dim, index));
            rest = slower;
        }
        found.push((slowest, rest));
        Some(found)
    }

    /// The indices in `i * stride0 + j * stride1`.
    fn strided(&self, function: &Function, by: ExprId, param: u32, dims: u8) -> Option<Vec<(u8, ExprId)>> {
        let mut found = Vec::new();
        let mut open = vec![by];
        while let Some(id) = open.pop() {
            let ExprKind::Binary(op, a, b) = function.exprs[id].kind else { return None };
            if matches!(op, BinaryOp::Add | BinaryOp::AddExact) {
                open.extend([a, b]);
            } else if matches!(op, BinaryOp::Mul | BinaryOp::MulExact) {
                let is_stride = |dim: &u8| self.is_field(function, b, param, SlotField::Stride(*dim));
                found.push(((0..dims).find(is_stride)?, a));
            } else {
                return None;
            }
        }
        let mut seen: Vec<u8> = found.iter().map(|&(dim, _)| dim).collect();
        seen.sort_unstable();
        (seen == (0..dims).collect::<Vec<_>>()).then_some(found)
    }
}

/// Whether a type is one of floats, or of complex numbers made of them, whose adjoints are supported.
pub(super) fn has_derivative(dtype: DType) -> bool {
    let DType::Number(number) = dtype else { return false };
    let (scalar, _) = DType::Number(number).access();
    scalar.is_float()
}
