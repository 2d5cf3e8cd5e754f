//! Warp operations: shuffles of any value, matches, and the warp barrier.

use weft_artifact::Scalar;

use crate::{
    diagnostic::Code,
    frontend::{
        expr::Args,
        function::count,
        lowerer::FnLowerer,
        object::ObjectKind,
        promote,
        ty::{Ty, shown_path},
        value::{Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{LocalId, MathFn, Op, Shuffle, StmtKind as Ir, Type},
    source::Span,
};

/// The operands that all parts of a shuffled value share.
struct ShuffleArgs {
    shuffle: Shuffle,
    mask: Atom32,
    by: Atom32,
    width: Atom32,
}

/// An `I32` that can be read any number of times.
#[derive(Clone, Copy)]
enum Atom32 {
    Int(i128),
    Local(LocalId),
}

impl FnLowerer<'_> {
    /// The arguments for these parameters, by position or by name; optional ones may be missing.
    pub(super) fn named<const N: usize>(
        &mut self,
        row: &Intrinsic,
        params: [&str; N],
        needed: usize,
        args: Args,
        span: Span,
    ) -> Option<[Option<Value>; N]> {
        let name = shown_path(row.path);
        let given = args.positional.len() + args.keywords.len();
        let mut bound = [const { None }; N];
        let mut fits = args.positional.len() <= N;
        for (place, (value, _)) in bound.iter_mut().zip(args.positional) {
            *place = Some(value);
        }
        for (keyword, value, at) in args.keywords {
            match params.iter().position(|param| *param == keyword).and_then(|index| bound.get_mut(index)) {
                Some(place @ None) => *place = Some(value),
                Some(_) => fits = false,
                None => {
                    self.error(Code::ArgumentCount, at, format!("`{name}` has no parameter `{keyword}`"));
                    return None;
                }
            }
        }
        fits &= bound.iter().take(needed).all(Option::is_some);
        if !fits {
            let takes = if needed == N { count(N, "argument") } else { format!("{needed} to {N} arguments") };
            self.error(Code::ArgumentCount, span, format!("`{name}` takes {takes}, not {given}"));
            return None;
        }
        Some(bound)
    }

    /// An integer as 32 bits, for several uses.
    fn word(&mut self, value: &Value, span: Span) -> Option<Atom32> {
        match value.ty().scalar() {
            Some(scalar) if promote::is_integral(scalar) => {}
            Some(_) | None => return None,
        }
        if let Value::Int(known) = value {
            return Some(Atom32::Int(i128::from(*known as i32)));
        }
        let expr = self.number(value, Scalar::I32, span)?;
        Some(match self.atom(expr, span) {
            Atom::Int(known) => Atom32::Int(i128::from(known)),
            Atom::Local(local) => Atom32::Local(local),
        })
    }

    fn use_word(&mut self, word: Atom32, span: Span) -> crate::ir::ExprId {
        match word {
            Atom32::Int(value) => self.b.int(Scalar::I32, value, span),
            Atom32::Local(local) => self.b.read(local, span),
        }
    }

    /// `shfl_sync` and similar functions.
    pub(super) fn shuffle(&mut self, row: &Intrinsic, shuffle: Shuffle, args: Args, span: Span) -> Value {
        let by = match shuffle {
            Shuffle::Index => "src_lane",
            Shuffle::Up | Shuffle::Down => "delta",
            Shuffle::Xor => "lane_mask",
        };
        let Some([Some(mask), Some(value), Some(by), width]) =
            self.named(row, ["mask", "value", by, "width"], 3, args, span)
        else {
            return Value::Poison;
        };
        let width = width.unwrap_or(Value::Int(32));
        let types: Vec<Ty> = [&mask, &value, &by].into_iter().map(Value::ty).collect();
        if matches!(width, Value::Int(known) if !(1..=32).contains(&known) || known.count_ones() != 1) {
            let message = "the width of a shuffle must be 1, 2, 4, 8, 16 or 32";
            return self.error(Code::NoMatchingOverload, span, message);
        }
        let (Some(mask), Some(by), Some(width)) =
            (self.word(&mask, span), self.word(&by, span), self.word(&width, span))
        else {
            return self.no_overload(row, &types, span);
        };
        let way = ShuffleArgs { shuffle, mask, by, width };
        match self.shuffled(&way, value, span) {
            Some(value) => value,
            None => self.no_overload(row, &types, span),
        }
    }

    /// The value of another lane; for a composed value, each part is shuffled.
    fn shuffled(&mut self, way: &ShuffleArgs, value: Value, span: Span) -> Option<Value> {
        match value {
            Value::Scalar(expr, scalar) => {
                let expr = self.shuffled_number(way, expr, scalar, span);
                Some(Value::Scalar(expr, scalar))
            }
            Value::Int(_) => {
                let expr = self.number(&value, value.ty().scalar()?, span)?;
                Some(Value::Scalar(expr, value.ty().scalar()?))
            }
            Value::Bool(_) => {
                let expr = self.number(&value, Scalar::Bool, span)?;
                Some(Value::Scalar(expr, Scalar::Bool))
            }
            Value::Complex(real, imag, of) => {
                // The operand of the second shuffle must be computed before the first shuffle.
                let imag = self.atom(imag, span);
                let real = self.shuffled_number(way, real, of.part(), span);
                let imag = self.use_atom(imag, span);
                let imag = self.shuffled_number(way, imag, of.part(), span);
                Some(Value::Complex(real, imag, of))
            }
            Value::Object(kind, items) if is_plain(&kind) => {
                let items: Vec<Value> = items.into_iter().map(|item| self.settle(item, span)).collect();
                let items = items.into_iter().map(|item| self.shuffled(way, item, span)).collect::<Option<_>>()?;
                Some(Value::Object(kind, items))
            }
            Value::Poison => Some(Value::Poison),
            Value::Array(_) | Value::Object(..) | Value::Static(_) => None,
        }
    }

    fn shuffled_number(
        &mut self,
        way: &ShuffleArgs,
        expr: crate::ir::ExprId,
        scalar: Scalar,
        span: Span,
    ) -> crate::ir::ExprId {
        let mask = self.use_word(way.mask, span);
        let (by, width) = (self.use_word(way.by, span), self.use_word(way.width, span));
        let result = self.b.new_temp(Type::Scalar(scalar));
        let op = Op::Shuffle(way.shuffle);
        self.stmt(Ir::Op { op, results: vec![result], args: vec![mask, expr, by, width] }, span);
        self.b.read(result, span)
    }

    /// `match_any_sync` and `match_all_sync`, on the bits of a number.
    pub(super) fn match_lanes(&mut self, row: &Intrinsic, op: Op, args: Args, span: Span) -> Value {
        let Some([Some(mask), Some(value)]) = self.named(row, ["mask", "value"], 2, args, span) else {
            return Value::Poison;
        };
        let types: Vec<Ty> = [&mask, &value].into_iter().map(Value::ty).collect();
        let integral = mask.ty().scalar().is_some_and(promote::is_integral);
        let (true, Some(scalar)) = (integral, value.ty().scalar()) else {
            return self.no_overload(row, &types, span);
        };
        let bits = match scalar {
            Scalar::F16 | Scalar::BF16 => Scalar::U16,
            Scalar::F32 => Scalar::U32,
            Scalar::F64 | Scalar::U64 => Scalar::U64,
            Scalar::I64 => Scalar::I64,
            Scalar::Bool | Scalar::I8 | Scalar::I16 | Scalar::I32 | Scalar::U8 | Scalar::U16 | Scalar::U32 => {
                Scalar::U32
            }
        };
        let Some(mut expr) = self.number(&value, scalar, span) else { return Value::Poison };
        expr = if scalar.is_float() {
            self.b.math(MathFn::Bits, vec![expr], Type::Scalar(bits), span)
        } else {
            self.b.convert(expr, Type::Scalar(bits), span)
        };
        if bits == Scalar::U16 {
            expr = self.b.convert(expr, Type::Scalar(Scalar::U32), span);
        }
        let Some(mask) = self.number(&mask, Scalar::I32, span) else { return Value::Poison };
        let lanes = self.b.new_temp(Type::I32);
        if op == Op::MatchAny {
            self.stmt(Ir::Op { op, results: vec![lanes], args: vec![mask, expr] }, span);
            return Value::Scalar(self.b.read(lanes, span), Scalar::I32);
        }
        let all = self.b.new_temp(Type::BOOL);
        self.stmt(Ir::Op { op, results: vec![lanes, all], args: vec![mask, expr] }, span);
        let lanes = Value::Scalar(self.b.read(lanes, span), Scalar::I32);
        Value::tuple(vec![lanes, Value::Scalar(self.b.read(all, span), Scalar::Bool)])
    }

    /// `syncwarp`.
    pub(super) fn syncwarp(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([mask]) = self.named(row, ["mask"], 0, args, span) else { return Value::Poison };
        let mask = mask.unwrap_or(Value::Int(0xFFFF_FFFF));
        match mask.ty().scalar() {
            Some(scalar) if promote::is_integral(scalar) => {
                let Some(mask) = self.number(&mask, Scalar::I32, span) else { return Value::Poison };
                self.stmt(Ir::Op { op: Op::WarpBarrier, results: Vec::new(), args: vec![mask] }, span);
                Value::NONE
            }
            Some(_) | None => self.no_overload(row, &[mask.ty()], span),
        }
    }
}

/// Whether its parts are numbers, which can be those of another lane.
pub(super) fn is_plain(kind: &ObjectKind) -> bool {
    match kind {
        ObjectKind::Tuple
        | ObjectKind::Struct(_)
        | ObjectKind::Enum(_)
        | ObjectKind::Weak
        | ObjectKind::Vector(_)
        | ObjectKind::Time(_)
        | ObjectKind::Float8(_)
        | ObjectKind::Optional => true,
        ObjectKind::Record
        | ObjectKind::Pointer
        | ObjectKind::VoidPointer
        | ObjectKind::Group(_)
        | ObjectKind::Matrix(_)
        | ObjectKind::Formatted(_)
        | ObjectKind::Chars
        | ObjectKind::Range(_)
        | ObjectKind::Closure(_)
        | ObjectKind::Slice
        | ObjectKind::Enumerate
        | ObjectKind::NdIndex
        | ObjectKind::NdEnumerate
        | ObjectKind::Flat
        | ObjectKind::Swizzled(_)
        | ObjectKind::Barrier
        | ObjectKind::MapBox(_)
        | ObjectKind::CTypes
        | ObjectKind::Zip
        | ObjectKind::Reversed
        | ObjectKind::Iterator(_)
        | ObjectKind::Generator(_)
        | ObjectKind::Unrolled => false,
    }
}
