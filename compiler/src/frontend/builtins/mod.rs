//! Lowers calls of rows of the intrinsic table.

mod arrays;
mod atomics;
mod barriers;
mod bulk_copies;
mod cast;
mod classes;
mod clusters;
mod coop;
mod copies;
mod elements;
mod external;
mod groups;
mod iterators;
mod limits;
mod makers;
mod matrix;
mod matrix_product;
mod matrix_store;
mod numbers;
mod operators;
mod overload;
mod pointers;
mod prelude_rows;
mod ptx;
pub(super) mod reduce;
mod sequences;
pub(super) mod times;
mod views;
mod warpgroup;
mod warps;
mod whole_arrays;

use weft_artifact::{Layout, Number, Scalar};

use self::makers::Content;
use super::{
    expr::Args,
    function::count,
    lowerer::FnLowerer,
    object::{Group, ObjectKind, Static},
    ty::shown_path,
    value::Value,
};
use crate::{
    diagnostic::{Code, Diagnostic},
    intrinsics::{Arg, Custom, Intrinsic, Lowering, Returns},
    ir::{LocalId, MathFn, Op, Shuffle, StmtKind as Ir, Type},
    source::Span,
    syntax::ast::BinOp,
};

impl FnLowerer<'_> {
    pub(super) fn intrinsic(&mut self, row: &'static Intrinsic, args: Args, span: Span) -> Value {
        let args = self.widened_float8(row, args, span);
        if let Some(value) = self.of_times(row, &args, span) {
            return value;
        }
        if !self.is_numpy() {
            return self.lowered(row, row.lowering, args, span);
        }
        // Functions of `math`, and `sum`, `min` and `max` of a range, return weak numbers if all arguments are weak.
        let numbers = args.positional.iter().all(|(value, _)| value.is_weak()) && !args.positional.is_empty();
        let range = matches!(args.positional.first(), Some((Value::Object(ObjectKind::Range(_), _), _)));
        let of_range = matches!(row.lowering, Lowering::Custom(Custom::Max | Custom::Min | Custom::Sum | Custom::Prod));
        // These functions return a weak number for any argument.
        let always = matches!(
            row.lowering,
            Lowering::Custom(
                Custom::All
                    | Custom::Any
                    | Custom::Count
                    | Custom::Index
                    | Custom::IsInstance
                    | Custom::Item
                    | Custom::Len
                    | Custom::Ord
            )
        );
        let is_weak = always || range && of_range || numbers && row.path.starts_with("math.");
        let args = Self::with_types(row, args);
        let result = self.lowered(row, row.lowering, args, span);
        if !is_weak {
            return result;
        }
        if let Value::Object(ObjectKind::Tuple, items) = result {
            Value::tuple(items.into_iter().map(|item| self.python(item, span)).collect())
        } else {
            self.python(result, span)
        }
    }

    /// Converts weak numbers to their default types for calls that do not promote types: collective and memory
    /// operations, and complex numbers outside operators.
    fn with_types(row: &Intrinsic, args: Args) -> Args {
        let takes_all = matches!(
            row.lowering,
            Lowering::Operator(_)
                | Lowering::Custom(Custom::Pow | Custom::Sum | Custom::Prod | Custom::Tuple | Custom::Abs)
        );
        if takes_all {
            return args;
        }
        let none_is_weak = matches!(row.lowering, Lowering::Coop(_) | Lowering::Op(_) | Lowering::WordOp(..));
        let strong = |value: Value| {
            let complex = value.ty().number().is_some_and(Number::is_complex);
            if none_is_weak || complex { value.strong() } else { value }
        };
        let positional = args.positional.into_iter().map(|(value, span)| (strong(value), span)).collect();
        let keywords = args.keywords.into_iter().map(|(name, value, span)| (name, strong(value), span)).collect();
        Args { positional, keywords }
    }

    fn lowered(&mut self, row: &'static Intrinsic, lowering: Lowering, args: Args, span: Span) -> Value {
        match lowering {
            Lowering::Register(_) => {
                let message = format!("`{}` is a value, not a function", shown_path(row.path));
                self.error(Code::NotCallable, span, message)
            }
            Lowering::Math(function) => self.math(row, function, args, span),
            Lowering::MathOr(function, name) => self.math_or(row, function, name, args, span),
            Lowering::Prelude(name) => self.own_function(row, name, args, span),
            Lowering::Ufunc(of) => self.ufunc(row, *of, args, span),
            Lowering::Whole(of) => self.whole(row, of, args, span),
            Lowering::Fold(of) => self.fold(row, *of, args, span),
            Lowering::Operator(symbol) => self.operator(row, symbol, args, span),
            Lowering::Op(op) => self.operation(row, op, args, span),
            Lowering::WordOp(op, name) => self.word_operation(row, op, name, args, span),
            Lowering::Coop(of) => self.coop(row, of, args, span),
            Lowering::Custom(custom) => self.custom(row, custom, args, span),
        }
    }

    fn custom(&mut self, row: &'static Intrinsic, custom: Custom, args: Args, span: Span) -> Value {
        match custom {
            Custom::Grid => self.grid(row, false, args, span),
            Custom::GridSize => self.grid(row, true, args, span),
            Custom::SharedArray => self.make_array(row, true, args, span),
            Custom::SetRegisters => self.set_registers(row, args, span),
            Custom::SharedSwizzled => self.shared_swizzled(row, args, span),
            Custom::LocalArray => self.make_array(row, false, args, span),
            Custom::Abs => self.abs(row, args, span),
            Custom::All => self.any_or_all(row, true, args, span),
            Custom::Any => self.any_or_all(row, false, args, span),
            Custom::CArray => self.pointed_array(row, Layout::C, args, span),
            Custom::FArray => self.pointed_array(row, Layout::F, args, span),
            Custom::Callable => self.callable(row, args, span),
            Custom::Copy => self.copied(row, args, span),
            Custom::Barrier => self.shared_barrier(row, args, span),
            Custom::BarrierMethod => self.barrier_method(row, args, span),
            Custom::Cluster => self.cluster(row, args, span),
            Custom::CopyAsync => match args.positional.len() {
                2 => self.bulk_store(row, args, span),
                3 => self.bulk_copy(row, args, span),
                _ => self.copy_async(row, args, span),
            },
            Custom::CopyCommit => self.copy_commit(row, args, span),
            Custom::CopyWait => self.copy_wait(row, args, span),
            Custom::Empty => self.made_of_shape(row, Content::Nothing, args, span),
            Custom::EmptyLike => self.made_like(row, Content::Nothing, args, span),
            Custom::Full => self.made_of_shape(row, Content::Given, args, span),
            Custom::FullLike => self.made_like(row, Content::Given, args, span),
            Custom::Ones => self.made_of_shape(row, Content::Number(1), args, span),
            Custom::OnesLike => self.made_like(row, Content::Number(1), args, span),
            Custom::Zeros => self.made_of_shape(row, Content::Number(0), args, span),
            Custom::ZerosLike => self.made_like(row, Content::Number(0), args, span),
            Custom::Dist => self.dist(row, args, span),
            Custom::Divmod => self.divmod(row, args, span),
            Custom::Fill => self.fill_method(row, args, span),
            Custom::GetAttr => self.getattr(row, args, span),
            Custom::HasAttr => self.hasattr(row, args, span),
            Custom::Imag => self.part(row, "imag", args, span),
            Custom::IsInstance => self.isinstance(row, args, span),
            // For times, it is one of their functions.
            Custom::IsNat if args.positional.iter().any(|(value, _)| matches!(value, Value::Array(_))) => {
                self.ufunc(row, row.lowering, args, span)
            }
            Custom::IsNat => {
                let types: Vec<_> = args.positional.iter().map(|(value, _)| value.ty()).collect();
                self.no_overload(row, &types, span)
            }
            Custom::IsScalar => {
                let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
                Value::Bool(value.ty().number().is_some() || matches!(value, Value::Static(Static::Str(_))))
            }
            Custom::Item => self.item_method(row, args, span),
            Custom::Limits => self.limits(row, args, span),
            Custom::Ndim => self.extent_of(row, "ndim", args, span),
            Custom::Prod => self.folded_items(row, BinOp::Mul, args, span),
            Custom::Ord => self.ord(row, args, span),
            Custom::Real => self.part(row, "real", args, span),
            Custom::Same => self.exactly(row, args, span).map_or(Value::Poison, |[value]| value),
            Custom::Shape => self.extent_of(row, "shape", args, span),
            Custom::Size => self.extent_of(row, "size", args, span),
            Custom::Sum => self.folded_items(row, BinOp::Add, args, span),
            Custom::Count => self.count_method(row, args, span),
            Custom::Index => self.index_method(row, args, span),
            Custom::Tuple => self.tuple_of(row, args, span),
            Custom::Type => self.type_of(row, args, span),
            Custom::Bits => self.view_method(row, args, span),
            Custom::Bool => self.cast_bool(row, args, span),
            Custom::Complex => self.cast_complex(row, args, span),
            Custom::Degrees => self.scaled(row, 180.0 / std::f64::consts::PI, args, span),
            Custom::Radians => self.scaled(row, std::f64::consts::PI / 180.0, args, span),
            Custom::Float => self.cast_float(row, args, span),
            Custom::Int => self.cast_int(row, args, span),
            Custom::Frexp => self.frexp(row, args, span),
            Custom::Modf => self.modf(row, args, span),
            Custom::Len => self.len(row, args, span),
            Custom::Max => self.extremum(row, true, args, span),
            Custom::Min => self.extremum(row, false, args, span),
            Custom::InlinePtx => self.inline_ptx(args, span),
            Custom::FromBuffer => self.buffer_pointer(args, span),
            Custom::Print => self.print_call(args, span),
            Custom::Format => self.format_method(row, args, span),
            Custom::Pow => {
                let Some([a, b]) = self.exactly(row, args, span) else { return Value::Poison };
                self.binary(BinOp::Pow, a, b, span)
            }
            Custom::MatMul => {
                let Some([a, b]) = self.exactly(row, args, span) else { return Value::Poison };
                self.binary(BinOp::MatMul, a, b, span)
            }
            Custom::Round => self.round(row, args, span),
            Custom::ShflSync => self.shuffle(row, Shuffle::Index, args, span),
            Custom::ShflUpSync => self.shuffle(row, Shuffle::Up, args, span),
            Custom::ShflDownSync => self.shuffle(row, Shuffle::Down, args, span),
            Custom::ShflXorSync => self.shuffle(row, Shuffle::Xor, args, span),
            Custom::MatchAnySync => self.match_lanes(row, Op::MatchAny, args, span),
            Custom::MatchAllSync => self.match_lanes(row, Op::MatchAll, args, span),
            Custom::ThisGrid => self.this_group(row, Group::Grid, args, span),
            Custom::ThisThreadBlock => self.this_group(row, Group::Block, args, span),
            Custom::CoalescedThreads => self.this_group(row, Group::Coalesced, args, span),
            Custom::TiledPartition => self.tiled_partition(row, args, span),
            Custom::GroupCollective => self.group_collective(row, args, span),
            Custom::GroupMethod => self.group_method(row, args, span),
            Custom::MatrixTile => self.matrix_tile(row, args, span),
            Custom::MatrixMethod => self.matrix_method(row, args, span),
            Custom::ProductWait => self.product_wait(row, args, span),
            Custom::StopGradient => self.stop_gradient(row, args, span),
            Custom::SyncWarp => self.syncwarp(row, args, span),
            Custom::Range => self.range_value(row, args, span),
            Custom::Enumerate => self.enumerate_value(row, args, span),
            Custom::Zip => self.side_by_side(row, ObjectKind::Zip, args, span),
            Custom::Iter => self.iterator(row, args, span),
            Custom::Next => self.next(row, args, span),
            Custom::Reversed => self.side_by_side(row, ObjectKind::Reversed, args, span),
            Custom::Reshape => self.reshape(row, args, span),
            Custom::Ravel => self.ravel(row, args, span),
            Custom::View => self.view(row, args, span),
            Custom::Transpose => self.transpose(row, args, span),
            Custom::Slice => self.slice_value(row, args, span),
            Custom::ConstArrayLike => self.exactly(row, args, span).map_or(Value::Poison, |[value]| value),
            Custom::NdIndex => self.ndindex(row, args, span),
            Custom::NdEnumerate => self.elements_of(row, ObjectKind::NdEnumerate, args, span),
            Custom::LiteralUnroll => self.unrolled(row, args, span),
        }
    }

    /// The arguments, by position only and exactly `N`.
    pub(super) fn exactly<const N: usize>(&mut self, row: &Intrinsic, args: Args, span: Span) -> Option<[Value; N]> {
        self.no_keywords(row, &args)?;
        let given = args.positional.len();
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        match <[Value; N]>::try_from(values) {
            Ok(values) => Some(values),
            Err(_) => {
                let message = format!("`{}` takes {}, not {given}", shown_path(row.path), count(N, "argument"));
                self.error(Code::ArgumentCount, span, message);
                None
            }
        }
    }

    /// Reports keyword arguments of a function that has none.
    pub(super) fn no_keywords(&mut self, row: &Intrinsic, args: &Args) -> Option<()> {
        if let Some((name, _, span)) = args.keywords.first() {
            let message = format!("`{}` has no parameter `{name}`", shown_path(row.path));
            self.error(Code::ArgumentCount, *span, message);
            return None;
        }
        Some(())
    }

    /// A breakpoint without a debugger: no effect on a CPU; a GPU would end the kernel.
    fn no_breakpoint(&mut self, span: Span) -> Value {
        let help = if self.cx.interpreted {
            "launch the kernel: launches run in Python's interpreter, and pdb stops here"
        } else {
            "set the environment variable WEFT_DEVICE=python: the kernel then runs in Python's interpreter, and pdb \
             stops here, in the thread that WEFT_DEBUG_THREAD and WEFT_DEBUG_BLOCK name"
        };
        let message = "`breakpoint()` cannot stop in a compiled kernel";
        let diagnostic = Diagnostic::error(Code::NotInTarget, span, message).help(help);
        self.report(if self.cx.ptx {
            diagnostic
                .note("with `cuda.jit(debug=True)` on a GPU, it is the PTX instruction `brkpt`, where cuda-gdb stops")
        } else {
            diagnostic
        })
    }

    /// An operation on its arguments.
    fn operation(&mut self, row: &'static Intrinsic, op: Op, args: Args, span: Span) -> Value {
        if let Op::Atomic { op, .. } = op {
            return self.atomic(row, op, args, span);
        }
        if op == Op::Breakpoint && !self.cx.stops {
            return self.no_breakpoint(span);
        }
        if let Some([Arg::Array(_), ..]) = row.signatures.first().map(|sig| sig.args) {
            return self.on_element(row, op, args, span);
        }
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        let Some((operands, returns)) = self.overload(row, &values, span) else { return Value::Poison };
        let given: &[Scalar] = match &returns {
            Returns::Nothing => &[],
            Returns::Scalar(scalar) => std::slice::from_ref(scalar),
            Returns::Tuple(scalars) => scalars,
            Returns::Complex(_) | Returns::Array(_) => return Value::Poison,
        };
        let locals: Vec<_> = given.iter().map(|scalar| self.b.new_temp(Type::Scalar(*scalar))).collect();
        self.stmt(Ir::Op { op, results: locals.clone(), args: operands }, span);
        let mut read = |local: LocalId, scalar: Scalar| Value::Scalar(self.b.read(local, span), scalar);
        match (returns, locals.as_slice()) {
            (Returns::Scalar(scalar), [local]) => read(*local, scalar),
            (Returns::Tuple(scalars), locals) => Value::Object(
                ObjectKind::Tuple,
                locals.iter().zip(scalars).map(|(local, scalar)| read(*local, *scalar)).collect(),
            ),
            (Returns::Nothing | Returns::Scalar(_) | Returns::Complex(_) | Returns::Array(_), _) => Value::NONE,
        }
    }

    /// An operation on 32-bit integers, and a function of the prelude for other numbers.
    fn word_operation(&mut self, row: &'static Intrinsic, op: Op, name: &'static str, args: Args, span: Span) -> Value {
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.iter().map(|(value, _)| value.clone()).collect();
        let Some(sig) = self.choose_overload(row, &values, span) else { return Value::Poison };
        if matches!(sig.args.last(), Some(Arg::Scalar(Scalar::I32 | Scalar::U32))) {
            self.operation(row, op, args, span)
        } else {
            self.own_function(row, name, args, span)
        }
    }

    /// The rounding mode of `cuda.fma`, from `rounding=`.
    fn rounding(&mut self, row: &'static Intrinsic, args: &mut Args) -> Option<MathFn> {
        let choices = [MathFn::FmaRn, MathFn::FmaRz, MathFn::FmaRd, MathFn::FmaRu];
        let names = ["rn", "rz", "rd", "ru"];
        let name = |function| choices.iter().position(|choice| *choice == function).map_or("", |index| names[index]);
        self.choice(row, "rounding", &choices, name, MathFn::Fma, args)
    }

    /// A function of floats, with the overload that fits best.
    fn math(&mut self, row: &'static Intrinsic, function: MathFn, mut args: Args, span: Span) -> Value {
        let function = if row.path == "weft.cuda.fma" {
            let Some(function) = self.rounding(row, &mut args) else { return Value::Poison };
            function
        } else {
            function
        };
        if self.no_keywords(row, &args).is_none() {
            return Value::Poison;
        }
        let values: Vec<Value> = args.positional.into_iter().map(|(value, _)| value).collect();
        let Some((exprs, returns)) = self.overload(row, &values, span) else { return Value::Poison };
        let scalar = match returns {
            Returns::Scalar(scalar) => scalar,
            Returns::Nothing | Returns::Complex(_) | Returns::Tuple(_) | Returns::Array(_) => return Value::Poison,
        };
        let mut exprs = exprs;
        // `pow` of a float32 and an int: the exponent becomes a float32.
        if function == MathFn::Pow
            && let Some(exponent) = exprs.get_mut(1)
        {
            *exponent = self.b.convert(*exponent, Type::Scalar(scalar), span);
        }
        let tests = matches!(function, MathFn::Isnan | MathFn::Isinf | MathFn::Isfinite);
        let ty = if tests { Type::BOOL } else { Type::Scalar(scalar) };
        let value = self.b.math(function, exprs, ty, span);
        Value::Scalar(self.b.convert(value, Type::Scalar(scalar), span), scalar)
    }

    fn len(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([value]) = self.exactly(row, args, span) else { return Value::Poison };
        if let Some(length) = self.text_length(&value, span) {
            return length;
        }
        let sized = match &value {
            Value::Array(array) => array.ty.ndim > 0,
            Value::Object(kind, _) => kind.is_tuple() || matches!(kind, ObjectKind::Range(_) | ObjectKind::Flat),
            Value::Scalar(..)
            | Value::Complex(..)
            | Value::Int(_)
            | Value::Bool(_)
            | Value::Static(_)
            | Value::Poison => false,
        };
        if !sized {
            return self.no_overload(row, &[value.ty()], span);
        }
        let value = self.settle(value, span);
        if let Value::Object(ObjectKind::Range(_), _) = value {
            return self.range_len(&value, span);
        }
        match self.length(&value, span) {
            Some(super::value::Atom::Int(known)) if !matches!(value, Value::Array(_)) => Value::Int(i128::from(known)),
            // The length of an array is a run-time number, as in Numba: whether it is constant does not change its
            // type.
            Some(atom) => {
                let length = self.use_atom(atom, span);
                self.python(Value::Scalar(length, Scalar::I64), span)
            }
            None => Value::Poison,
        }
    }
}
