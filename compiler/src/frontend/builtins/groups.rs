//! Cooperative groups: the threads that do something together, as values with methods.
//!
//! What a group is is known when the kernel is compiled, but for the lanes of a coalesced one. Its methods are functions of
//! the prelude (`prelude/groups.py`), over barriers, registers and the operations of warps.

use weft_artifact::Scalar;

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        function::count,
        lowerer::FnLowerer,
        object::{Group, ObjectKind},
        prelude,
        ty::{Ty, shown_path},
        value::Value,
    },
    intrinsics::Intrinsic,
    ir::{Op, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// The group that a thread is in.
    pub(super) fn this_group(&mut self, row: &Intrinsic, group: Group, args: Args, span: Span) -> Value {
        let Some([]) = self.exactly(row, args, span) else { return Value::Poison };
        let items = match group {
            Group::Grid => {
                if !self.is_dry() {
                    self.cx.module.cooperative = true;
                }
                Vec::new()
            }
            Group::Block | Group::Tile(_) => Vec::new(),
            Group::Coalesced => {
                let lanes = self.b.new_temp(Type::Scalar(Scalar::U32));
                self.stmt(Ir::Op { op: Op::ActiveMask, results: vec![lanes], args: Vec::new() }, span);
                vec![Value::Scalar(self.b.read(lanes, span), Scalar::U32)]
            }
        };
        Value::Object(ObjectKind::Group(group), items)
    }

    /// Parts of a block's warps, or of such parts.
    pub(super) fn tiled_partition(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([group, size]) = self.exactly(row, args, span) else { return Value::Poison };
        let types = [group.ty(), size.ty()];
        let most = match group {
            Value::Object(ObjectKind::Group(Group::Block), _) => 32,
            Value::Object(ObjectKind::Group(Group::Tile(size)), _) => size,
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => return self.no_overload(row, &types, span),
        };
        let Value::Int(size) = size else {
            let message = "the size of a tile is an integer that is known when the kernel is compiled";
            return self.error(Code::NotConstant, span, message);
        };
        match u32::try_from(size) {
            Ok(size) if size.is_power_of_two() && size <= most => {
                Value::Object(ObjectKind::Group(Group::Tile(size)), Vec::new())
            }
            Ok(_) | Err(_) => {
                let message = format!("a tile has 1, 2, 4, 8, 16 or 32 threads, and here at most {most}, not {size}");
                self.error(Code::NoMatchingOverload, span, message)
            }
        }
    }

    /// A method of a group, which is the first argument.
    pub(super) fn group_method(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let mut values = args.positional.into_iter().map(|(value, _)| value);
        let Some(Value::Object(ObjectKind::Group(group), lanes)) = values.next() else { return Value::Poison };
        let given: Vec<Value> = values.collect();
        let method = row.path.rsplit('.').next().unwrap_or_default();
        if (group, method) == (Group::Grid, "sync") {
            if !given.is_empty() {
                return self.wrong_given(row, 0, given.len(), span);
            }
            self.stmt(Ir::Op { op: Op::GridBarrier, results: Vec::new(), args: Vec::new() }, span);
            return Value::Scalar(self.b.int(Scalar::I32, 0, span), Scalar::I32);
        }
        let Some(def) = prelude::function(&format!("{}_{method}", group.prefix())) else {
            self.cx.fault(self.at(span), &format!("the prelude lacks `{}`", row.path));
            return Value::Poison;
        };
        let types: Vec<Ty> = given.iter().map(Value::ty).collect();
        let mut values = match group {
            Group::Grid | Group::Block => Vec::new(),
            Group::Tile(size) => vec![Value::Int(i128::from(size))],
            Group::Coalesced => lanes,
        };
        let takes = def.ast.params.len() - values.len();
        if given.len() != takes {
            return self.wrong_given(row, takes, given.len(), span);
        }
        values.extend(given);
        match self.call_own(&def, values, span) {
            Ok(value) => value,
            Err(_) => {
                let given: Vec<String> = types.iter().map(ToString::to_string).collect();
                let message = format!("`{}` does not take ({})", shown_path(row.path), given.join(", "));
                self.report(Diagnostic::error(Code::NoMatchingOverload, span, message))
            }
        }
    }

    fn wrong_given(&mut self, row: &Intrinsic, takes: usize, given: usize, span: Span) -> Value {
        let message = format!("`{}` takes {}, not {given}", shown_path(row.path), count(takes, "argument"));
        self.error(Code::ArgumentCount, span, message)
    }
}
