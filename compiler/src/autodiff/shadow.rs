//! The address of the adjoint of an element: the element's address, with the adjoint's data pointer and strides.
//!
//! A shared or local array has an adjoint of its own. The strides of an array and of its adjoint may differ, even if those of the program's arrays are the same: a launch
//! may pack one of them when it copies it to a device.

use std::collections::BTreeMap;

use weft_artifact::SlotField;

use super::{
    arrays::{Arrays, Memory},
    dynamic,
    refusals::unsupported,
    sums::Tape,
    tape::{Definition, Values, for_each_value},
};
use crate::{
    diagnostic::Diagnostic,
    ir::{Base, Class, Expr, ExprId, ExprKind, Function, Leaf, Type},
    source::Span,
};

/// By the number of a parameter with an adjoint: the values that are computed from its strides, and the strides.
pub(super) type Strides = BTreeMap<u32, Values>;

/// Finds the values that are computed from strides.
pub(super) fn strides(
    function: &Function,
    arrays: &Arrays,
    definitions: &BTreeMap<crate::ir::LocalId, Definition>,
) -> Strides {
    let mut all = Strides::new();
    for (param, _) in arrays.adjoints() {
        let mut values: Values = arrays.strides(param).collect();
        let mut before = 0;
        while before != values.len() {
            before = values.len();
            for (&value, definition) in definitions {
                let is_from = match *definition {
                    Definition::Expr(id, _) => {
                        let mut reads = false;
                        for_each_value(function, id, &mut |read| reads |= values.contains(&read));
                        reads
                    }
                    Definition::Unrepeatable(_) | Definition::Opaque(_) => false,
                    Definition::Join { then, otherwise } => values.contains(&then) || values.contains(&otherwise),
                    Definition::Header { init, next } => {
                        values.contains(&next) || init.is_some_and(|init| values.contains(&init))
                    }
                };
                if is_from {
                    values.insert(value);
                }
            }
        }
        all.insert(param, values);
    }
    all
}

/// Refuses an address whose strides depend on the path through the kernel.
pub(super) fn check(tape: Tape<'_>, pointer: ExprId, span: Span) -> Result<(), Diagnostic> {
    let Memory::Param(param) = tape.arrays.memory(tape.function, pointer) else { return Ok(()) };
    let Some(values) = tape.strides.get(&param) else { return Ok(()) };
    let mut open = Vec::new();
    for_each_value(tape.function, pointer, &mut |value| open.push(value));
    while let Some(value) = open.pop().filter(|_| !values.is_empty()) {
        match tape.definitions.get(&value).filter(|_| values.contains(&value)) {
            Some(&Definition::Expr(id, _)) => for_each_value(tape.function, id, &mut |value| open.push(value)),
            Some(
                Definition::Join { .. }
                | Definition::Header { .. }
                | Definition::Unrepeatable(_)
                | Definition::Opaque(_),
            ) => {
                let help = "take the view of the array in each branch, or make the array contiguous";
                return Err(unsupported(span, "an access with strides that are chosen at run time", help));
            }
            None => {}
        }
    }
    Ok(())
}

/// Builds the address of the adjoint of an element.
pub(super) fn address(tape: Tape<'_>, function: &mut Function, pointer: ExprId) -> ExprId {
    let memory = tape.arrays.memory(tape.function, pointer);
    if let Memory::Param(param) = memory {
        return replaced(tape, function, pointer, param);
    }
    let Some(adjoint) = tape.arrays.own_adjoint(memory) else { return function.copy_expr(pointer) };
    function.copy_with(pointer, &mut |function, id| {
        let Class::Leaf(Leaf::Base(base)) = function.class(id) else { return None };
        let span = function.exprs[id].span;
        let kind = match (base, adjoint) {
            (Base::Dynamic, Base::Dynamic) => {
                let base = function.copy_expr(id);
                ExprKind::ByteOffset { base, bytes: dynamic::first_adjoint(function, Type::I64, span) }
            }
            (Base::Shared(_), Base::Shared(adjoint)) => ExprKind::SharedBase(adjoint),
            (Base::Local(_), Base::Local(adjoint)) => ExprKind::LocalBase(adjoint),
            (Base::Shared(_) | Base::Local(_) | Base::Const(_) | Base::Dynamic, _) => return None,
        };
        let ty = function.exprs[id].ty;
        Some(function.exprs.push(Expr { kind, ty, span }))
    })
}

fn replaced(tape: Tape<'_>, function: &mut Function, id: ExprId, param: u32) -> ExprId {
    function.copy_with(id, &mut |function, id| {
        let local = function.local(id)?;
        let Expr { ty, span, .. } = function.exprs[id].clone();
        if let Some((of, field)) = tape.arrays.slot(local)
            && of == param
            && matches!(field, SlotField::Data | SlotField::Stride(_))
        {
            let shadow = tape.arrays.shadow(param, field)?;
            return Some(function.exprs.push(Expr { kind: ExprKind::Local(shadow), ty, span }));
        }
        let Some(&Definition::Expr(value, _)) = tape.definitions.get(&local) else { return None };
        let depends = tape.strides.get(&param).is_some_and(|values| values.contains(&local));
        depends.then(|| replaced(tape, function, value, param))
    })
}
