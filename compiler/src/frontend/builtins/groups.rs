//! Cooperative groups: sets of threads as values with methods.
//!
//! The kind of a group is a compile-time constant; so are its members, except the lanes of a coalesced group. Its
//! methods are functions of the prelude (`prelude/groups.py`), over barriers, registers and warp operations; its
//! collective operations (`prelude/groups_collective.py`) are over those of `cuda.coop`.

use weft_artifact::Scalar;

use super::warps::is_plain;
use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::Args,
        function::count,
        lowerer::FnLowerer,
        object::{Group, ObjectKind, Static},
        prelude,
        ty::{Ty, shown_path},
        value::{LibraryName, Value},
    },
    intrinsics::Intrinsic,
    ir::{Op, StmtKind as Ir, Type},
    source::Span,
};

impl FnLowerer<'_> {
    /// The group of the current thread.
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

    /// Tiles of a block's warps, or of such tiles.
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
            let message = "the size of a tile must be a compile-time integer";
            return self.error(Code::NotConstant, span, message);
        };
        match u32::try_from(size) {
            Ok(size) if size.is_power_of_two() && size <= most => {
                Value::Object(ObjectKind::Group(Group::Tile(size)), Vec::new())
            }
            Ok(_) | Err(_) => {
                let message = format!("a tile must have 1, 2, 4, 8, 16 or 32 threads, here at most {most}, not {size}");
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

    /// `cg.reduce(group, value, op)`, `cg.inclusive_scan(group, value, op=plus)`, and `cg.exclusive_scan(group, value,
    /// op=plus)`.
    pub(super) fn group_collective(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        let method = row.path.rsplit('.').next().unwrap_or_default();
        let is_reduction = method == "reduce";
        let needed = if is_reduction { 3 } else { 2 };
        let Some([Some(group), Some(value), op]) = self.named(row, ["group", "value", "op"], needed, args, span) else {
            return Value::Poison;
        };
        let op = op.unwrap_or_else(|| Value::Static(Static::Known(LibraryName::of(format!("{CG}plus")))));
        let types = [group.ty(), value.ty(), op.ty()];
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let is_value = match &value {
            Value::Scalar(..) | Value::Complex(..) | Value::Int(_) | Value::Bool(_) => true,
            Value::Object(kind, _) => is_plain(kind),
            Value::Array(_) | Value::Static(_) | Value::Poison => false,
        };
        let (of, lanes) = match group {
            Value::Object(ObjectKind::Group(of @ (Group::Block | Group::Tile(_) | Group::Coalesced)), lanes) => {
                (of, lanes)
            }
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Array(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => return self.no_overload(row, &types, span),
        };
        let Some(def) = prelude::function(&format!("cg_{}_{method}", of.prefix())).filter(|_| is_value) else {
            return self.no_overload(row, &types, span);
        };
        let mut values = lanes;
        values.push(value);
        let across = across(&op);
        values.push(op);
        if is_reduction {
            let (name, same) = across.unwrap_or_default();
            let known = |name: &str| Value::Static(Static::Known(LibraryName::of(format!("weft.cuda.{name}"))));
            values.push(across.map_or(Value::NONE, |_| known(name)));
            values.push(Value::Bool(same));
        }
        if let Group::Tile(size) = of {
            values.push(Value::Int(i128::from(size)));
        }
        self.call_coop(row, &def, values, &types, span)
    }

    fn wrong_given(&mut self, row: &Intrinsic, takes: usize, given: usize, span: Span) -> Value {
        let message = format!("`{}` takes {}, not {given}", shown_path(row.path), count(takes, "argument"));
        self.error(Code::ArgumentCount, span, message)
    }
}

/// The common prefix of the rows' paths.
const CG: &str = "weft.cuda.cg.";

/// The warp reduction for integers that is equivalent to a function of `cg`, and whether the function is idempotent.
fn across(op: &Value) -> Option<(&'static str, bool)> {
    let Value::Static(Static::Known(known)) = op else { return None };
    Some(match known.path().strip_prefix(CG)? {
        "plus" => ("reduce_add_sync", false),
        "less" => ("reduce_min_sync", true),
        "greater" => ("reduce_max_sync", true),
        "bit_and" => ("reduce_and_sync", true),
        "bit_or" => ("reduce_or_sync", true),
        "bit_xor" => ("reduce_xor_sync", false),
        _ => return None,
    })
}
