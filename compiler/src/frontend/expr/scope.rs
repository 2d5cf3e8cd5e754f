//! Scopes of generators in a function. While an iteration of a generator is lowered, its names shadow those of the
//! function, but not in values created outside of it, such as a lambda that the iteration calls.

use std::collections::BTreeSet;

use super::super::{
    lowerer::FnLowerer,
    state::{Hidden, Scope},
};

impl FnLowerer<'_> {
    /// Enters a scope in which the names are unbound.
    pub(super) fn enter_scope(&mut self, names: &BTreeSet<String>) {
        let hidden = |name: &String| Hidden { name: name.clone(), var: None, storage: None, bound: true };
        let mut scope = Scope { names: names.iter().map(hidden).collect() };
        self.exchange(&mut scope);
        self.scopes.push(scope);
    }

    /// Leaves the last scope: its names have their previous meanings again.
    pub(super) fn leave_scope(&mut self) {
        if let Some(mut scope) = self.scopes.pop() {
            self.exchange(&mut scope);
        }
    }

    /// Lowers code in which names have their meanings in the outermost `depth` scopes.
    pub(super) fn at_depth<R>(&mut self, depth: usize, inner: impl FnOnce(&mut Self) -> R) -> R {
        let mut open = self.scopes.split_off(depth.min(self.scopes.len()));
        for scope in open.iter_mut().rev() {
            self.exchange(scope);
        }
        let result = inner(self);
        for scope in &mut open {
            self.exchange(scope);
        }
        self.scopes.extend(open);
        result
    }

    /// Swaps the current meanings of a scope's names with the stored ones.
    fn exchange(&mut self, scope: &mut Scope) {
        for Hidden { name, var, storage, bound } in &mut scope.names {
            let other = self.variables.storage.remove(name.as_str());
            self.variables.storage.extend(storage.take().map(|locals| (name.clone(), locals)));
            *storage = other;
            if let Some(env) = &mut self.env {
                let other = env.remove(name.as_str());
                env.extend(var.take().map(|var| (name.clone(), var)));
                *var = other;
            }
            let other = self.names.bound.contains(name.as_str());
            if *bound {
                self.names.bound.insert(name.clone());
            } else {
                self.names.bound.remove(name.as_str());
            }
            *bound = other;
        }
    }
}
