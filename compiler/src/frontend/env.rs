//! The variables of a function: their types at a point of the program, and the locals that hold them.
//!
//! At control-flow joins the types are joined (`state/env.rs`); each path converts its variables to the joined types
//! before the join.

use weft_artifact::SlotField;

use super::{
    allocations::remade,
    expr::used_before,
    lowerer::FnLowerer,
    object::ObjectKind,
    state::{Env, Var},
    ty::{Conflict, ConflictKind, Ty},
    value::{ArrayValue, Atom, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{LocalId, StmtKind, Type},
    source::Span,
    syntax::bound_once,
};

impl FnLowerer<'_> {
    /// The locals that hold a variable of a type.
    pub(super) fn storage(&mut self, name: &str, ty: &Ty) -> Vec<LocalId> {
        let parts = ty.parts();
        if parts.is_empty() {
            return Vec::new();
        }
        let known = self.variables.storage.get(name).into_iter().flatten().find(|(known, _)| known == ty);
        if let Some((_, locals)) = known {
            return locals.clone();
        }
        if let Some(inner) = ty.optional() {
            // An optional shares the locals of its value, so a test for `None` changes only the type.
            let given = if self.b.fixed_span().is_some() {
                self.b.new_temp(Type::BOOL)
            } else {
                self.b.part(format!("{name}.given"), Type::BOOL)
            };
            let mut locals = vec![given];
            locals.extend(self.storage(name, inner));
            self.variables.storage.entry(name.to_owned()).or_default().push((ty.clone(), locals.clone()));
            return locals;
        }
        let own = self.b.fixed_span().is_some();
        let in_parts = !matches!(ty, Ty::Scalar(_));
        let local = |(suffix, part): (String, Type)| {
            let name = format!("{name}{suffix}");
            if own {
                // Variables of the prelude are not reported to the user.
                self.b.new_temp(part)
            } else if in_parts {
                self.b.part(name, part)
            } else {
                self.b.local(name, part)
            }
        };
        let locals: Vec<LocalId> = parts.into_iter().map(local).collect();
        self.variables.storage.entry(name.to_owned()).or_default().push((ty.clone(), locals.clone()));
        locals
    }

    /// Assigns a value to a variable.
    pub(super) fn assign_var(&mut self, name: &str, value: Value, span: Span) {
        let Some(value) = self.own_iterator(name, value, span) else { return };
        let value = self.with_own_strings(value, span);
        let ty = self.ty_of(&value);
        self.record_type(name, &ty, span);
        self.note_type(&ty, span, Some(name));
        if !ty.is_poison() && ty != Ty::Bottom && !self.names.given.contains(name) {
            self.names.given.insert(name.to_owned());
        }
        let locals = self.storage(name, &ty);
        if let Value::Array(array) = &value {
            self.note_extents(&locals, array);
        } else if let Value::Object(ObjectKind::Swizzled(_), items) = &value
            && let [Value::Array(array)] = items.as_slice()
        {
            self.note_extents(&locals, array);
        }
        self.store_parts(&locals, value, span);
        if let Some(env) = &mut self.env {
            env.insert(name.to_owned(), Var { ty, span, maybe_undefined: false });
        }
    }

    /// Records which extents of an array that is assigned to a variable are constants.
    fn note_extents(&mut self, locals: &[LocalId], array: &ArrayValue) {
        for (local, field) in locals.iter().zip(array.ty.fields()) {
            let SlotField::Shape(dim) = field else { continue };
            let extent = match array.shape.get(usize::from(dim)) {
                Some(Atom::Int(extent)) => Some(*extent),
                Some(Atom::Local(_)) | None => None,
            };
            let known = self.variables.extents.entry(*local).or_insert(extent);
            *known = known.filter(|known| Some(*known) == extent);
        }
    }

    /// The value of an extent, if it is a constant, or that of an array in a variable with a single assignment.
    pub(super) fn constant_extent(&self, extent: Atom) -> Option<i64> {
        let local = match extent {
            Atom::Int(extent) => return Some(extent),
            Atom::Local(local) => local,
        };
        let extent = self.variables.extents.get(&local).copied().flatten()?;
        let of = |(_, stored): &(&String, &Vec<(Ty, Vec<LocalId>)>)| stored.iter().any(|(_, of)| of.contains(&local));
        let (name, _) = self.variables.storage.iter().find(of)?;
        bound_once(&self.def.ast).contains(name).then_some(extent)
    }

    /// The extent, as a constant if its value is known.
    pub(super) fn fixed(&self, extent: Atom) -> Atom {
        self.constant_extent(extent).map_or(extent, Atom::Int)
    }

    /// Assigns a value's run-time parts to locals.
    pub(super) fn store_parts(&mut self, locals: &[LocalId], value: Value, span: Span) {
        let mut parts = self.flatten(value, span);
        // In `z = complex(z.imag, z.real)` or `A = A.T`, all parts are read before the first one is assigned.
        if parts.len() > 1 && parts.iter().any(|part| self.b.reads(*part, locals)) {
            for part in &mut parts {
                let local = self.b.temp(*part, span);
                *part = self.b.read(local, span);
            }
        }
        for (local, part) in locals.iter().zip(parts) {
            self.b.assign(*local, part, span);
        }
    }

    /// The current value of a variable.
    pub(super) fn read_var(&mut self, name: &str, var: &Var, span: Span) -> Value {
        if let Ty::Conflict(conflict) = &var.ty {
            // The name of a variable that several alternatives of a pattern bind has a suffix.
            let name = name.split('@').next().unwrap_or(name);
            if conflict.kind == ConflictKind::Remade {
                let message =
                    format!("`{name}` is an array of an earlier iteration, and a newer array has overwritten it");
                let diagnostic = remade(message, span)
                    .label("used here, after the newer array was made")
                    .also(conflict.first_span, format!("`{name}` becomes the array here"))
                    .also(conflict.second_span, "this call makes both");
                return self.report(diagnostic);
            }
            let diagnostic = Diagnostic::error(
                Code::CannotJoin,
                span,
                format!("`{name}` is {} on one path and {} on another", conflict.first, conflict.second),
            )
            .label("used here, after the paths join")
            .also(conflict.first_span, format!("`{name}` is {} here", conflict.first))
            .also(conflict.second_span, format!("`{name}` is {} here", conflict.second))
            .help("use two variables, or assign values of one type on both paths");
            let diagnostic = match integer_without_room(conflict) {
                Some((known, other)) => diagnostic.note(format!(
                    "with NumPy's typing a Python number takes the type of the other operand, and {known} is out of \
                     bounds for {other}"
                )),
                None => diagnostic,
            };
            return self.report(diagnostic);
        }
        if var.ty == Ty::Bottom && !self.is_dry() {
            let mut diagnostic = used_before(name, span);
            diagnostic.span = self.at(span);
            self.cx.undefined.push(diagnostic);
            return Value::Poison;
        }
        self.read_parts(name, var, span)
    }

    /// The value in a variable's locals, which are zero on paths that do not assign it.
    fn read_parts(&mut self, name: &str, var: &Var, span: Span) -> Value {
        let locals = self.storage(name, &var.ty);
        if var.maybe_undefined {
            self.variables.zeroed.extend(locals.iter().copied());
            let mut at = 0;
            self.note_strings(&var.ty, &locals, &mut at);
        }
        self.rebuild(&var.ty, &mut locals.into_iter(), span)
    }

    /// Records which of a variable's locals point to strings; one without a value is initialized to the empty string.
    fn note_strings(&mut self, ty: &Ty, locals: &[LocalId], at: &mut usize) {
        match ty {
            Ty::Object(kind, items) => {
                if let (ObjectKind::Chars, [Ty::Array(place)], Some(local)) = (kind, items.as_slice(), locals.get(*at))
                {
                    self.variables.zeroed_strings.insert(*local, *place);
                }
                for item in items {
                    self.note_strings(item, locals, at);
                }
            }
            other @ (Ty::Scalar(_)
            | Ty::Complex(_)
            | Ty::Int(_)
            | Ty::Bool(_)
            | Ty::Array(_)
            | Ty::Static(_)
            | Ty::Conflict(_)
            | Ty::Bottom
            | Ty::Poison) => *at += other.parts().len(),
        }
    }

    /// Converts the variables to the types in `target`, before a jump to a join.
    pub(super) fn convert_env(&mut self, target: &Env, span: Span) {
        let (Some(from), Some(target)) = (self.env.clone(), target) else { return };
        for (name, to) in target {
            let Some(var) = from.get(name) else { continue };
            if var.ty == to.ty || to.ty.parts().is_empty() {
                continue;
            }
            if matches!(var.ty, Ty::Conflict(_)) || var.ty.is_poison() {
                continue;
            }
            if to.ty.optional() == Some(&var.ty) && !var.maybe_undefined {
                if let Some(given) = self.storage(name, &to.ty).first() {
                    let yes = self.b.bool(true, span);
                    self.b.assign(*given, yes, span);
                }
                continue;
            }
            let value = self.read_parts(name, var, span);
            match self.try_convert(value, &to.ty, span) {
                Some(value) => {
                    let locals = self.storage(name, &to.ty);
                    self.store_parts(&locals, value, span);
                }
                None if self.is_dry() => {}
                None => self.cx.fault(self.at(span), "a variable has a type that its joined type does not hold"),
            }
        }
    }

    /// Runs `arm`, which lowers code into a new block, from the environment `env`. The block is still open, without the
    /// conversions to a joined environment. Returns the environment at its end.
    pub(super) fn in_block(&mut self, env: Env, arm: impl FnOnce(&mut Self)) -> Env {
        self.b.open();
        self.env = env;
        arm(self);
        self.env.take()
    }

    /// Closes the block that `in_block` opened, after converting to the joined environment.
    pub(super) fn close_arm(&mut self, env: Env, joined: &Env, span: Span) -> crate::ir::Block {
        self.env = env;
        self.convert_env(joined, span);
        self.b.close()
    }

    /// Statements at the start of the function that initialize variables that may be undefined: to zero, for an array
    /// to a null pointer with zero extents, for a string to the empty string.
    pub(super) fn zero_maybe_undefined(&mut self, span: Span) -> crate::ir::Block {
        self.b.open();
        for local in std::mem::take(&mut self.variables.zeroed) {
            let Some(declared) = self.b.function.locals.get(local) else { continue };
            if self.b.function.params.contains(&local) {
                continue;
            }
            if let Some(place) = self.variables.zeroed_strings.get(&local).copied() {
                let empty = self.empty_text(place, span);
                self.b.stmt(StmtKind::Assign(local, empty), span);
                continue;
            }
            let zero = self.b.zero(declared.ty, span);
            self.b.stmt(StmtKind::Assign(local, zero), span);
        }
        self.b.close()
    }
}

/// The known int of a conflict between an int and a number type that cannot hold it, and that type.
fn integer_without_room(conflict: &Conflict) -> Option<(i128, &Ty)> {
    match (&conflict.first, &conflict.second) {
        (Ty::Int(known), other) | (other, Ty::Int(known)) if other.number().is_some() => Some((*known, other)),
        _ => None,
    }
}
