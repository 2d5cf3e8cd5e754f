//! Collective operations of a block or of a warp (`cuda.coop`): calls of the prelude's functions, and the primitives
//! that these use.
//!
//! All calls of a kernel share two buffers in shared memory: the *scratch*, as large as the call with the largest need,
//! and the *cells*. A call may write the scratch from its start, and does not access it after its last barrier; it
//! writes cells only after its first barrier, and reads them after the next one.

use std::sync::Arc;

use weft_artifact::{Compound, DType, Layout, Number, Scalar, Vector};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::{Args, Index},
        function::count as arguments,
        lowerer::FnLowerer,
        object::{ObjectKind, Static},
        prelude,
        state::Piece,
        ty::{ArrayTy, Sites, Ty, shown_path},
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::{Coop, CoopParam, Intrinsic},
    ir::{BinaryOp, CompareOp, ExprKind, Space, Type},
    request::{FunctionDef, Typing},
    source::{Origin, Span},
    syntax::ast::ParamKind,
};

/// The number of warps of the largest block.
const WARPS: i64 = 32;

/// The slots for the threads of the largest block, which the lanes of one warp scan, padded by one slot for every 32.
const RAKED: i64 = 264;

/// The required kind of argument, for the message; `None` if the value fits.
fn wanted(param: CoopParam, value: &Value) -> Option<String> {
    let fits = match (param, value) {
        (CoopParam::Items | CoopParam::Plain | CoopParam::Count, _) => true,
        (CoopParam::Lanes, Value::Int(lanes)) => matches!(lanes, 1 | 2 | 4 | 8 | 16 | 32),
        (CoopParam::Flag, Value::Bool(_)) => true,
        (CoopParam::Algorithm, Value::Static(Static::Str(name))) => Coop::ALGORITHMS.contains(&name.as_str()),
        (CoopParam::Lanes | CoopParam::Flag | CoopParam::Algorithm, _) => false,
    };
    let all = match param {
        CoopParam::Items | CoopParam::Plain | CoopParam::Count => return None,
        CoopParam::Lanes => ["1", "2", "4", "8", "16", "32"].map(str::to_owned).to_vec(),
        CoopParam::Flag => ["True", "False"].map(str::to_owned).to_vec(),
        CoopParam::Algorithm => Coop::ALGORITHMS.map(|name| format!("\"{name}\"")).to_vec(),
    };
    let (last, before) = all.split_last()?;
    (!fits).then(|| format!("{} or {last}", before.join(", ")))
}

/// An array of values in a buffer; for tuples, one array for each part.
#[derive(Clone, Copy, Debug)]
struct Stretch {
    piece: Piece,
    places: i64,
}

impl Stretch {
    fn of(name: &str, most_threads: u32) -> Option<Self> {
        // The arrays for the other numbers of a composed value follow, and must be aligned.
        let of_threads = i64::from(most_threads.next_multiple_of(16));
        Some(match name {
            "slot" => Self { piece: Piece::Scratch, places: WARPS },
            "rake" => Self { piece: Piece::Scratch, places: RAKED },
            "cell" => Self { piece: Piece::Cells, places: WARPS },
            "kept" => Self { piece: Piece::Cells, places: RAKED },
            "staged" => Self { piece: Piece::Staged, places: of_threads },
            "prefix" => Self { piece: Piece::Prefixes, places: of_threads },
            _ => return None,
        })
    }
}

impl FnLowerer<'_> {
    /// A call of a function of the prelude. Parameters with defaults are compile-time constants if the arguments are.
    pub(super) fn coop(&mut self, row: &'static Intrinsic, of: &Coop, args: Args, span: Span) -> Value {
        let Some(def) = prelude::function(of.function) else {
            self.cx.fault(self.at(span), &format!("the prelude lacks `{}`", of.function));
            return Value::Poison;
        };
        let count = of.params.iter().position(|param| *param == CoopParam::Count);
        if let Some(place) = count {
            let shown = shown_path(row.path);
            let name = def.ast.params.get(place).map(|param| param.name.as_str());
            if let Some((name, _, at)) = args.keywords.iter().find(|(given, ..)| Some(given.as_str()) == name) {
                return self.error(Code::ArgumentCount, *at, format!("`{shown}` has no parameter `{name}`"));
            }
            let given = args.positional.len();
            if given > place {
                let message = format!("`{shown}` takes {}, not {given}", arguments(place, "argument"));
                return self.error(Code::ArgumentCount, span, message);
            }
        }
        let given = args.positional.iter().map(|(value, _)| value);
        let types: Vec<Ty> = given.chain(args.keywords.iter().map(|(_, value, _)| value)).map(Value::ty).collect();
        let Some(mut values) = self.bind_all(row, &def, args, span) else { return Value::Poison };
        if let Some(place) = count {
            let items = of.params.iter().zip(&values).filter(|(param, _)| **param == CoopParam::Items);
            let items: Vec<Value> = items.map(|(_, value)| value.clone()).collect();
            let Some(count) = self.count_of(row, &items, span) else { return Value::Poison };
            values.truncate(place);
            values.push(count);
        }
        for ((param, ast), value) in of.params.iter().zip(&def.ast.params).zip(&values) {
            if let Some(wanted) = wanted(*param, value) {
                let message = format!("`{}` must be {wanted} and a compile-time constant", ast.name);
                return self.error(Code::NotConstant, span, message);
            }
        }
        self.call_coop(row, &def, values, &types, span)
    }

    /// Calls a function of the prelude that may use the shared memory of the collective operations.
    pub(super) fn call_coop(
        &mut self,
        row: &'static Intrinsic,
        def: &Arc<FunctionDef>,
        values: Vec<Value>,
        types: &[Ty],
        span: Span,
    ) -> Value {
        let literals = def.ast.params.iter().filter(|param| param.default.is_some()).count();
        debug_assert!(def.ast.params.iter().all(|param| param.kind == ParamKind::Plain), "{}", def.ast.name);
        self.cx.coop.call = Some(self.at(span));
        let before = self.cx.diagnostics.len();
        let args = Args { positional: values.into_iter().map(|value| (value, span)).collect(), keywords: Vec::new() };
        let value = self.call_with_literals(def, args, literals, span);
        let errors = self.cx.diagnostics.split_off(before);
        let Some(error) = errors.into_iter().next() else { return value };
        // An error in a user's function is reported there, without the call chain through the prelude.
        let is_own = |this: &Self, at: Span| this.cx.sources.file(at).is_none_or(|file| file.origin == Origin::Prelude);
        if !is_own(self, error.span) {
            let call = self.at(span);
            let labels = error.labels.iter().filter(|(at, _)| *at != call && !is_own(self, *at)).cloned().collect();
            self.cx.diagnostics.push(Diagnostic { labels, ..error }.also(call, "called here"));
            return Value::Poison;
        }
        let shown: Vec<String> = types.iter().map(ToString::to_string).collect();
        let message = format!("`{}` does not take ({})", shown_path(row.path), shown.join(", "));
        let mut diagnostic = Diagnostic::error(Code::NoMatchingOverload, span, message);
        if error.code == Code::ReturnTypes {
            diagnostic = diagnostic.note(error.message);
        }
        self.report(diagnostic)
    }

    /// The number of items of a thread: the extent of the first array, or one. The argument for the parameter itself is
    /// not considered: it is the last one.
    fn count_of(&mut self, row: &Intrinsic, values: &[Value], span: Span) -> Option<Value> {
        let mut arrays = values.iter().filter_map(|value| match value {
            Value::Array(array) => Some(array.shape.as_slice()),
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Object(..)
            | Value::Static(_)
            | Value::Poison => None,
        });
        let Some(first) = arrays.next() else { return Some(Value::Int(1)) };
        let known =
            |this: &Self, shape: &[Atom]| if let [extent] = shape { this.constant_extent(*extent) } else { None };
        if let Some(extent) = known(self, first)
            && arrays.all(|shape| known(self, shape) == Some(extent))
        {
            return Some(Value::Int(i128::from(extent)));
        }
        let name = shown_path(row.path);
        let message = format!("the number of items of a thread must be a compile-time constant for `{name}`");
        let help = "make the arrays in the function that makes the call, with one dimension and one size";
        self.report(Diagnostic::error(Code::NotConstant, span, message).help(help));
        None
    }

    /// An upper bound of the threads of a block.
    fn most_threads(&self) -> u32 {
        self.cx.most_threads.unwrap_or(1024)
    }

    /// The primitives: `slot(k, x)`, the value of the type of `x` in slot `k`; `put_slot(k, x)`; the same for `rake`,
    /// `cell`, `kept`, `staged` and `prefix`; `buffer(n, x, m, y, …)`, an array of `n` numbers of the type of `x`, which starts in the
    /// scratch after `m` numbers of the type of `y`; `like(y, x)`, a value converted to the type of `x`;
    /// `most_threads()`, an upper bound of the threads of a block; `is_serial()`, whether one thread combines the
    /// values of a block, as on the CPU; `vectors(a, n)`, a view of an array as vectors,
    /// which `is_aligned` tests for alignment; `vector(a, x, y, …)`, an element of it; and `zero(x)`.
    pub(super) fn coop_primitive(&mut self, name: &str, values: &[Value], span: Span) -> Option<Value> {
        if let [number, x] = values
            && let Some(stretch) = Stretch::of(name.strip_prefix("put_").unwrap_or(name), self.most_threads())
        {
            let number = self.number(number, Scalar::I64, span)?;
            let number = self.nonneg_atom(number, span);
            if !name.starts_with("put_") {
                return self.in_stretch(stretch, number, &x.ty().widened(Typing::Numba), &mut 0, span);
            }
            let value = self.settle(x.clone(), span);
            return self.put_in_stretch(stretch, number, &value, &mut 0, span).map(|()| Value::NONE);
        }
        match (name, values) {
            ("most_threads", []) => Some(Value::Int(i128::from(self.most_threads()))),
            ("is_serial", []) => Some(Value::Bool(!self.cx.ptx)),
            ("zero", [x]) => Some(self.zeros(&x.ty().widened(Typing::Numba), span)),
            ("vectors", [Value::Array(array), Value::Int(count)]) => Some(self.as_vectors(array, *count, span)),
            ("vector", [Value::Array(wide), lanes @ ..]) => {
                let DType::Compound(id) = wide.ty.dtype else { return None };
                let Compound::Vector(vector) = id.get() else { return None };
                let lanes = lanes.iter().map(|lane| self.number(lane, vector.scalar(), span));
                let lanes: Option<Vec<_>> = lanes.collect();
                let lanes = lanes?.into_iter().map(|lane| Value::Scalar(lane, vector.scalar())).collect();
                Some(Value::Object(ObjectKind::Vector(*vector), lanes))
            }
            ("is_aligned", [Value::Array(wide)]) => {
                let word = Type::Scalar(Scalar::U64);
                let data = self.use_atom(wide.data, span);
                let address = self.b.convert(data, word, span);
                let rest = self.b.int(Scalar::U64, i128::from(wide.ty.dtype.align_bytes() - 1), span);
                let rest = self.b.binary(BinaryOp::And, address, rest, span);
                let zero = self.b.int(Scalar::U64, 0, span);
                Some(Value::Scalar(self.b.compare(CompareOp::Eq, rest, zero, span), Scalar::Bool))
            }
            ("like", [value, x]) => {
                let to = x.ty().widened(Typing::Numba);
                let from = value.ty();
                match self.try_convert(value.clone(), &to, span) {
                    Some(value) => Some(value),
                    None if from.is_poison() => Some(Value::Poison),
                    None => {
                        let message = format!("the function returns {from}, which cannot be converted to {to}");
                        Some(self.error(Code::ReturnTypes, span, message))
                    }
                }
            }
            ("warp_buffer", [Value::Int(count), x]) => {
                let (number, count) = (x.ty().number()?, i64::try_from(*count).ok()?);
                Some(Value::Array(self.scratch(Piece::Warps, number, 0, count, span)))
            }
            ("buffer", [Value::Int(count), x, before @ ..]) => {
                let mut start = 0_u64;
                for pair in before.chunks(2) {
                    let [Value::Int(count), x] = pair else { return None };
                    let bytes = DType::from(x.ty().number()?).size_bytes();
                    start = start.saturating_add(bytes.saturating_mul(u64::try_from(*count).ok()?));
                    start = start.next_multiple_of(16);
                }
                let number = x.ty().number()?;
                let count = i64::try_from(*count).ok()?;
                Some(Value::Array(self.scratch(Piece::Scratch, number, start, count, span)))
            }
            _ => None,
        }
    }

    /// A contiguous array as an array of vectors, whose length divides the number of a thread's items; `None` if there
    /// is no such vector type, and on the CPU, where LLVM vectorizes plain loads.
    fn as_vectors(&mut self, array: &ArrayValue, count: i128, span: Span) -> Value {
        let lanes = if count % 4 == 0 { 4 } else { 2 };
        let scalar = array.ty.dtype.number().and_then(Number::real);
        let vector = scalar.and_then(|scalar| Vector::new(scalar, lanes).ok());
        let dtype = vector.and_then(|vector| DType::intern(Compound::Vector(vector)));
        let (Some(dtype), [extent], true) =
            (dtype, array.shape.as_slice(), array.ty.layout == Layout::C && count % 2 == 0 && self.cx.ptx)
        else {
            return Value::NONE;
        };
        let (extent, lanes) = (self.use_atom(*extent, span), self.b.i64(i64::from(lanes), span));
        let extent = self.b.binary(BinaryOp::DivNonneg, extent, lanes, span);
        let extent = self.nonneg_atom(extent, span);
        // The caller of `vectors` tests the alignment first.
        let ty = ArrayTy { dtype, packed: false, ..array.ty };
        let data = self.use_atom(array.data, span);
        let data = self.b.convert(data, ty.pointer(), span);
        let data = Atom::Local(self.b.temp(data, span));
        Value::Array(ArrayValue { ty, data, shape: vec![extent], strides: Vec::new() })
    }

    /// A part of a buffer as an array.
    fn scratch(&mut self, piece: Piece, number: Number, start: u64, count: i64, span: Span) -> ArrayValue {
        let dtype = DType::from(number);
        let size = dtype.size_bytes().max(1);
        let ty = ArrayTy {
            dtype,
            ndim: 1,
            layout: Layout::C,
            readonly: false,
            space: Space::Shared,
            packed: false,
            own: false,
            sites: Sites::NONE,
        };
        let bytes = ArrayTy { dtype: DType::from(Number::Real(Scalar::U8)), ..ty };
        let base = if self.is_dry() {
            ExprKind::DynamicShared
        } else {
            let needed = start.saturating_add(size.saturating_mul(count.unsigned_abs()));
            let here = self.at(span);
            let id = self.cx.coop.array(&mut self.cx.module.shared, piece, (needed, size), here);
            ExprKind::SharedBase(id)
        };
        let base = self.b.expr(base, bytes.pointer(), span);
        let base = self.part_pointer(base, start as i64, span);
        let data = self.b.convert(base, ty.pointer(), span);
        let data = Atom::Local(self.b.temp(data, span));
        ArrayValue { ty, data, shape: vec![Atom::Int(count)], strides: Vec::new() }
    }

    /// The slots for one number of a value, after the slots of the previous numbers.
    fn places(&mut self, stretch: Stretch, number: Number, start: &mut u64, span: Span) -> ArrayValue {
        let array = self.scratch(stretch.piece, number, *start, stretch.places, span);
        *start += stretch.places.unsigned_abs() * DType::from(number).size_bytes();
        array
    }

    fn in_stretch(&mut self, stretch: Stretch, number: Atom, like: &Ty, start: &mut u64, span: Span) -> Option<Value> {
        match like {
            Ty::Scalar(_) | Ty::Complex(_) => {
                let array = self.places(stretch, like.number()?, start, span);
                let at = self.use_atom(number, span);
                Some(self.subscript(Value::Array(array), &[Index::at(at)], span))
            }
            Ty::Object(kind, items) if super::warps::is_plain(kind) => {
                let items = items
                    .iter()
                    .map(|item| self.in_stretch(stretch, number, item, start, span))
                    .collect::<Option<_>>()?;
                Some(Value::Object(kind.clone(), items))
            }
            Ty::Static(Static::None) => Some(Value::NONE),
            Ty::Array(_) | Ty::Object(..) | Ty::Int(_) | Ty::Bool(_) | Ty::Static(_) => None,
            Ty::Conflict(_) | Ty::Bottom | Ty::Poison => Some(Value::Poison),
        }
    }

    fn put_in_stretch(
        &mut self,
        stretch: Stretch,
        number: Atom,
        value: &Value,
        start: &mut u64,
        span: Span,
    ) -> Option<()> {
        if let Value::Object(kind, items) = value
            && super::warps::is_plain(kind)
        {
            return items.iter().try_for_each(|item| self.put_in_stretch(stretch, number, item, start, span));
        }
        if matches!(value, Value::Poison | Value::Static(Static::None)) {
            return Some(());
        }
        let array = self.places(stretch, value.ty().number()?, start, span);
        let at = self.use_atom(number, span);
        self.store_subscript(Value::Array(array), &[Index::at(at)], value.clone(), span);
        Some(())
    }
}
