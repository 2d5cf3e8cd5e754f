//! What all functions of a module rely on: the ranges of parameters, of results, and of the elements of arrays.
//!
//! A function's ranges depend on those of its arguments, of its callees' results and of the elements that it loads, and
//! these depend on the ranges of all functions. The analysis guesses them: all `int64` numbers that pass between
//! functions or through memory are values of `int32`; all other numbers have the ranges of their types. If the module
//! handles negative indices, the first guess is that no signed integer is negative. If the ranges that follow from the
//! guess are within it, it holds, by induction over the steps of an execution. What is not within it gets the range of
//! the next guess, at last that of its type, and the rest is guessed again.
//!
//! Arrays are those that nothing but the functions of the module writes: shared arrays of the program, thread-local
//! arrays, and constant arrays. Their elements are the values that are stored. An element that was never stored has no
//! defined value, as the variables of a function.

use weft_artifact::Scalar;

use crate::{
    analysis::{Interval, PointedArray},
    ir::{Base, Circles, Const, FuncId, Function, FunctionKind, Module, SharedKind, Space, Type},
};

/// The maximum size in bytes of a constant array whose elements are inspected.
const INSPECTED: usize = 1 << 14;

/// Ranges that functions rely on, or that follow from their statements.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct ModuleSummary {
    /// By function: the ranges of its parameters.
    pub params: Vec<Vec<Interval>>,
    /// By function: the ranges of its results.
    pub results: Vec<Vec<Interval>>,
    pub elements: Elements,
}

/// The ranges of the elements of declared arrays.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Elements {
    shared: Vec<Interval>,
    /// By function and thread-local array.
    local: Vec<Vec<Interval>>,
    constants: Vec<Interval>,
}

impl ModuleSummary {
    /// One range for each, given its type. `of_param` has the ranges of parameters whose arguments come from elsewhere.
    fn filled(
        module: &Module,
        range: &dyn Fn(Type) -> Interval,
        of_param: &dyn Fn(FuncId, &Function, usize) -> Option<Interval>,
    ) -> Self {
        let all = |types: &mut dyn Iterator<Item = Type>| types.map(range).collect::<Vec<_>>();
        let params = |(id, function): (FuncId, &Function)| {
            let param = |index: usize| {
                let ty = function.locals[function.params[index]].ty;
                of_param(id, function, index).unwrap_or_else(|| range(ty))
            };
            (0..function.params.len()).map(param).collect()
        };
        let shared = module.shared.iter().map(|(_, array)| {
            let ty = Type::Scalar(array.elem);
            if array.kind == SharedKind::Program { range(ty) } else { Interval::of_type(ty) }
        });
        Self {
            params: module.functions.iter().map(params).collect(),
            results: module.functions.iter().map(|(_, function)| all(&mut function.results.iter().copied())).collect(),
            elements: Elements {
                shared: shared.collect(),
                local: (module.functions.iter())
                    .map(|(_, function)| all(&mut function.local_arrays.iter().map(|(_, it)| Type::Scalar(it.elem))))
                    .collect(),
                constants: module.constants.iter().map(|(_, array)| of_constant(array)).collect(),
            },
        }
    }

    /// What always holds: the ranges of the types, and those of a launch's arguments (`slot`).
    pub(super) fn of_types(module: &Module, slot: &dyn Fn(&Function, usize) -> Interval) -> Self {
        Self::filled(module, &Interval::of_type, &|_, function, index| {
            (function.kind != FunctionKind::Device).then(|| slot(function, index))
        })
    }

    /// A guess: the ranges of types by `range`. Recursive functions rely on nothing.
    pub(super) fn guess(
        module: &Module,
        circles: &Circles,
        slot: &dyn Fn(&Function, usize) -> Interval,
        range: fn(Type) -> Interval,
    ) -> Self {
        let mut guess = Self::filled(module, &range, &|id, function, index| {
            let ty = function.locals[function.params[index]].ty;
            if function.kind == FunctionKind::Device {
                circles.contains(id).then(|| Interval::of_type(ty))
            } else {
                Some(slot(function, index))
            }
        });
        for (id, function) in module.functions.iter() {
            if circles.contains(id) {
                guess.results[id.index()] = function.results.iter().map(|ty| Interval::of_type(*ty)).collect();
            }
        }
        guess
    }

    /// Nothing is known to occur.
    pub(super) fn nothing(module: &Module) -> Self {
        Self::filled(module, &|_| Interval::NONE, &|_, _, _| None)
    }

    /// Replaces each range that does not contain the one that follows from it by that of the first of `wider` that does,
    /// or of the last one; returns whether all did.
    pub(super) fn retract(&mut self, found: &Self, wider: &[&Self]) -> bool {
        let mut holds = true;
        let lists = |summary: &Self| -> Vec<Vec<Interval>> {
            let Elements { shared, local, constants: _ } = &summary.elements;
            summary.params.iter().chain(&summary.results).chain(local).chain([shared]).cloned().collect()
        };
        let (found, wider) = (lists(found), wider.iter().map(|summary| lists(summary)).collect::<Vec<_>>());
        let Elements { shared, local, constants: _ } = &mut self.elements;
        let known = self.params.iter_mut().chain(&mut self.results).chain(local).chain([shared]);
        for (list, (known, found)) in known.zip(&found).enumerate() {
            for (index, (known, found)) in known.iter_mut().zip(found).enumerate() {
                if !found.within(*known) {
                    holds = false;
                    let mut others = wider.iter().map(|summary| summary[list][index]);
                    let next = others.clone().find(|other| found.within(*other));
                    *known = next.or_else(|| others.next_back()).unwrap_or(*known);
                }
            }
        }
        holds
    }
}

impl Elements {
    /// No element of any array.
    pub(super) fn emptied(&self) -> Self {
        let none = |ranges: &Vec<Interval>| vec![Interval::NONE; ranges.len()];
        Self {
            shared: none(&self.shared),
            local: self.local.iter().map(none).collect(),
            constants: none(&self.constants),
        }
    }

    /// Adds what another function stores.
    pub(super) fn join(&mut self, other: &Self) {
        let lists = self.local.iter_mut().chain([&mut self.shared]);
        for (known, stored) in lists.zip(other.local.iter().chain([&other.shared])) {
            for (known, stored) in known.iter_mut().zip(stored) {
                *known = known.join(*stored);
            }
        }
    }

    /// Takes over the ranges of arrays that the functions' stores do not determine: constant arrays, and those of passes.
    pub(super) fn keep_others(&mut self, module: &Module, other: &Self) {
        self.constants.clone_from(&other.constants);
        for ((_, array), (known, other)) in module.shared.iter().zip(self.shared.iter_mut().zip(&other.shared)) {
            if array.kind != SharedKind::Program {
                *known = *other;
            }
        }
    }

    /// The range of an array's elements, if they are integers or bools of this type.
    pub(super) fn get(&self, module: &Module, array: PointedArray, elem: Scalar) -> Option<Interval> {
        let PointedArray::Declared(owner, base) = array else { return None };
        let (declared, range) = match base {
            Base::Shared(id) => (module.shared[id].elem, *self.shared.get(id.index())?),
            Base::Const(id) => (module.constants[id].elem, *self.constants.get(id.index())?),
            Base::Local(id) => {
                let owner = owner?;
                let range = *self.local.get(owner.index())?.get(id.index())?;
                (module.functions[owner].local_arrays[id].elem, range)
            }
            Base::Dynamic => return None,
        };
        (declared == elem && (elem.is_int() || elem == Scalar::Bool)).then_some(range)
    }

    /// Adds a value that is stored through a pointer to elements of type `elem` in `space`.
    pub(super) fn store(
        &mut self,
        module: &Module,
        array: PointedArray,
        (elem, space): (Scalar, Space),
        value: Interval,
    ) {
        match array {
            PointedArray::Argument => {}
            PointedArray::Declared(owner, base) => {
                let (declared, range) = match (base, owner) {
                    (Base::Shared(id), _) => (module.shared[id].elem, self.shared.get_mut(id.index())),
                    (Base::Local(id), Some(owner)) => {
                        let range = self.local.get_mut(owner.index()).and_then(|all| all.get_mut(id.index()));
                        (module.functions[owner].local_arrays[id].elem, range)
                    }
                    (Base::Local(_) | Base::Const(_) | Base::Dynamic, _) => return,
                };
                if let Some(range) = range {
                    let all = Interval::of_type(Type::Scalar(declared));
                    *range = if declared == elem { range.join(value) } else { all };
                }
            }
            PointedArray::Unknown => match space {
                Space::Global | Space::Constant => {}
                Space::Shared => self.store_anywhere(module, true, false),
                Space::Local => self.store_anywhere(module, false, true),
                Space::Generic => self.store_anywhere(module, true, true),
            },
        }
    }

    /// Any element of a shared or thread-local array may have got any value.
    pub(super) fn store_anywhere(&mut self, module: &Module, shared: bool, local: bool) {
        if shared {
            for ((_, array), range) in module.shared.iter().zip(&mut self.shared) {
                *range = Interval::of_type(Type::Scalar(array.elem));
            }
        }
        if local {
            for ((_, function), ranges) in module.functions.iter().zip(&mut self.local) {
                for ((_, array), range) in function.local_arrays.iter().zip(ranges) {
                    *range = Interval::of_type(Type::Scalar(array.elem));
                }
            }
        }
    }
}

/// The guessed range of a type: 64-bit integers are values of `int32`.
pub(super) fn small(ty: Type) -> Interval {
    if ty == Type::I64 { Interval::of_type(Type::I32) } else { Interval::of_type(ty) }
}

/// The guessed range of a type: signed integers are not negative, and values of `int32`.
pub(super) fn small_nonneg(ty: Type) -> Interval {
    let is_signed = ty.scalar().is_some_and(Scalar::is_signed_int);
    if is_signed { small(ty).meet(Interval::new(0, i128::MAX)) } else { small(ty) }
}

/// The range of a constant array's elements.
fn of_constant(array: &crate::ir::ConstantArray) -> Interval {
    let all = Interval::of_type(Type::Scalar(array.elem));
    if array.bytes.len() > INSPECTED || !array.elem.is_int() {
        return all;
    }
    (0..array.len()).fold(Interval::NONE, |known, index| match array.element(index) {
        Some(Const::Int(value)) => known.join(Interval::of(value)),
        Some(_) | None => all,
    })
}
