//! The types of a function's variables at a point of the program.

use std::collections::BTreeMap;

use crate::{
    frontend::{promote, ty::Ty},
    request::Typing,
    source::Span,
};

/// A variable at a point of the program.
#[derive(Clone, Debug)]
pub(in crate::frontend) struct Var {
    pub(in crate::frontend) ty: Ty,
    /// Where it got this type.
    pub(in crate::frontend) span: Span,
    /// No path, or not every path, to here assigns it.
    pub(in crate::frontend) maybe_undefined: bool,
}

impl Var {
    /// A path without a value leads here, too. On it the variable reads zero, whatever literal the other paths gave it.
    fn undefine(&mut self, typing: Typing) {
        if !self.maybe_undefined {
            self.maybe_undefined = true;
            self.ty = self.ty.widened(typing);
        }
    }
}

/// All variables at a point of the program; `None` where the point cannot be reached.
pub(in crate::frontend) type Env = Option<BTreeMap<String, Var>>;

/// The environment where several paths meet.
pub(in crate::frontend) fn join(envs: &[&Env], typing: Typing) -> Env {
    let mut reached = envs.iter().filter_map(|env| env.as_ref());
    let mut out = reached.next()?.clone();
    for env in reached {
        for (name, var) in env {
            if let Some(known) = out.get_mut(name) {
                if known.ty != var.ty {
                    known.ty = promote::join(&known.ty, known.span, &var.ty, var.span, typing);
                }
                if var.maybe_undefined {
                    known.undefine(typing);
                }
            } else {
                let mut var = var.clone();
                var.undefine(typing);
                out.insert(name.clone(), var);
            }
        }
        for (name, var) in &mut out {
            if !env.contains_key(name) {
                var.undefine(typing);
            }
        }
    }
    Some(out)
}

/// Whether two environments give every variable the same type.
pub(in crate::frontend) fn same(a: &Env, b: &Env) -> bool {
    match (a, b) {
        (None, None) => true,
        (Some(a), Some(b)) => {
            a.len() == b.len()
                && a.iter().zip(b).all(|((name, x), (other, y))| {
                    name == other && x.ty == y.ty && x.maybe_undefined == y.maybe_undefined
                })
        }
        _ => false,
    }
}
