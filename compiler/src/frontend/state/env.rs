//! The types of a function's variables at a program point.

use std::collections::BTreeMap;

use crate::{
    frontend::{promote, ty::Ty},
    request::Typing,
    source::Span,
};

/// A variable at a program point.
#[derive(Clone, Debug)]
pub(in crate::frontend) struct Var {
    pub(in crate::frontend) ty: Ty,
    /// The span that gave it this type.
    pub(in crate::frontend) span: Span,
    /// Whether some path to this point does not assign it.
    pub(in crate::frontend) maybe_undefined: bool,
}

impl Var {
    /// Joins a path that does not assign the variable. On this path it reads zero, so it is no constant.
    fn undefine(&mut self, typing: Typing) {
        if !self.maybe_undefined {
            self.maybe_undefined = true;
            self.ty = self.ty.widened(typing);
        }
    }
}

/// All variables at a program point; `None` if the point is unreachable.
pub(in crate::frontend) type Env = Option<BTreeMap<String, Var>>;

/// The environment at a control-flow join.
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
