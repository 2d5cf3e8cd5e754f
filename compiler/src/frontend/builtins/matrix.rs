//! Matrix tiles of a warp or a warpgroup: `cuda.mma.tile`, and the methods of a tile.
//!
//! A tile is a compile-time value. The fragments of A and B are objects whose items are a lane's words, the accumulators
//! a tuple of numbers. Loads compute the elements that the lane holds, for an array of any strides and memory. On a GPU,
//! a load from shared memory tests whether rows are aligned to 16 bytes, and then is `ldmatrix`; LLVM removes the test
//! where the alignment is known. Others load whole words if they are aligned.

use weft_artifact::{DType, Layout, MatrixPart, MatrixTile, Number, Scalar};

use crate::{
    diagnostic::Code,
    frontend::{
        expr::{Args, Index},
        lowerer::FnLowerer,
        object::{MatrixObject, ObjectKind, Static},
        swizzle::{self, Swizzle},
        ty::{ArrayTy, Ty, shown_path},
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{BinaryOp, CompareOp, ExprId, LocalId, MathFn, MatrixLoad, Op, Space, SpecialRegister, StmtKind as Ir, Type},
    source::Span,
};

/// Lanes that hold elements of one row.
const LANES_OF_ROW: i64 = 4;
/// The alignment in bytes that `ldmatrix` needs.
const ROW_ALIGN: i64 = 16;

/// A matrix in memory: `view` has its rows in dimension 0 and `k` in dimension 1, with elements that are integers of the
/// size of the array's, or `float64`.
struct Source {
    tile: MatrixTile,
    part: MatrixPart,
    view: ArrayValue,
    swizzle: Option<Swizzle>,
    /// The first row, and the first position along `k`.
    start: [Atom; 2],
}

impl Source {
    fn registers(&self) -> usize {
        self.tile.registers(self.part)
    }

    /// The row, and the position along `k`, of a word's first element for lane 0.
    fn register_at(&self, word: usize) -> [i64; 2] {
        let (row, at) = self.tile.register_at(self.part, word);
        [row as i64, at as i64]
    }
}

impl FnLowerer<'_> {
    /// `cuda.mma.tile(m, n, k, a, b, c, threads=32)`.
    pub(super) fn matrix_tile(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let names = ["m", "n", "k", "a", "b", "c", "threads"];
        let Some([Some(m), Some(n), Some(k), Some(a), Some(b), Some(c), threads]) =
            self.named(row, names, 6, args, span)
        else {
            return Value::Poison;
        };
        let mut extents = [0; 4];
        for (extent, value) in extents.iter_mut().zip([m, n, k, threads.unwrap_or(Value::Int(32))]) {
            let Value::Int(known) = value else {
                let message =
                    format!("the shape and the threads of `{}` must be compile-time integers", shown_path(row.path));
                return self.error(Code::NotConstant, span, message);
            };
            *extent = known;
        }
        let mut types = [const { String::new() }; 3];
        for ((name, value), parameter) in types.iter_mut().zip([a, b, c]).zip(["a", "b", "c"]) {
            *name = if let Value::Static(Static::DType(dtype)) = value {
                dtype.to_string()
            } else if let Value::Static(Static::Str(text)) = value {
                text
            } else {
                let message =
                    format!("`{parameter}` must be a number type, \"tf32\", \"e4m3\" or \"e5m2\", not {}", value.ty());
                return self.error(Code::NotConstant, span, message);
            };
        }
        let [m, n, k, threads] = extents;
        match MatrixTile::new([m, n, k], types.each_ref().map(String::as_str), threads) {
            Ok(tile) => Value::Object(ObjectKind::Matrix(MatrixObject::Tile(tile)), Vec::new()),
            Err(message) => self.error(Code::NoMatchingOverload, span, message),
        }
    }

    /// A method of a tile, which is the first argument.
    pub(super) fn matrix_method(&mut self, row: &Intrinsic, mut args: Args, span: Span) -> Value {
        if args.positional.is_empty() {
            return Value::Poison;
        }
        let (Value::Object(ObjectKind::Matrix(MatrixObject::Tile(tile)), _), _) = args.positional.remove(0) else {
            return Value::Poison;
        };
        match row.path.rsplit('.').next().unwrap_or_default() {
            "zeros" => {
                let Some([]) = self.exactly(row, args, span) else { return Value::Poison };
                let scalar = tile.kind().accumulator();
                let zero = |this: &mut Self| Value::Scalar(this.b.zero(Type::Scalar(scalar), span), scalar);
                Value::tuple((0..tile.values()).map(|_| zero(self)).collect())
            }
            "coord" => {
                let Some([Some(at)]) = self.named(row, ["r"], 1, args, span) else { return Value::Poison };
                self.matrix_coord(row, tile, &at, span)
            }
            "mma" => self.multiply(row, tile, args, span),
            "store" => {
                let names = ["array", "i", "j", "acc"];
                let Some([Some(array), Some(i), Some(j), Some(acc)]) = self.named(row, names, 4, args, span) else {
                    return Value::Poison;
                };
                self.matrix_store(row, tile, [array, i, j, acc], span)
            }
            "a" if args.positional.len() == 1 && args.keywords.is_empty() => {
                let Some([Some(acc)]) = self.named(row, ["acc"], 1, args, span) else { return Value::Poison };
                self.left_of_accumulators(row, tile, &acc, span)
            }
            name => {
                let Some([Some(array), Some(i), Some(j)]) = self.named(row, ["array", "i", "j"], 3, args, span) else {
                    return Value::Poison;
                };
                let part = if name == "a" { MatrixPart::A } else { MatrixPart::B };
                self.fragment(row, (tile, part), [array, i, j], span)
            }
        }
    }

    /// The number of the thread's warp in its warpgroup.
    pub(super) fn warp_of_group(&mut self, span: Span) -> Atom {
        let mut thread = self.wide(SpecialRegister::ThreadIdx(2), span);
        for axis in [1, 0] {
            let extent = self.wide(SpecialRegister::BlockDim(axis), span);
            let outer = self.b.binary(BinaryOp::Mul, thread, extent, span);
            let inner = self.wide(SpecialRegister::ThreadIdx(axis), span);
            thread = self.b.binary(BinaryOp::Add, outer, inner, span);
        }
        for (op, by) in [(BinaryOp::Shr, 5), (BinaryOp::And, 3)] {
            let by = self.b.i64(by, span);
            thread = self.b.binary(op, thread, by, span);
        }
        self.nonneg_atom(thread, span)
    }

    /// The distance in columns, halved, and in rows of the lane's accumulators from those of lane 0 of the first warp.
    pub(super) fn place_of_values(&mut self, tile: MatrixTile, span: Span) -> [Atom; 2] {
        let [in_row, group] = self.lane_place(span);
        if !tile.is_of_warpgroup() {
            return [in_row, group];
        }
        let warp = self.warp_of_group(span);
        [in_row, self.plus(group, warp, tile.row_of_warp(1, 0) as i64, span)]
    }

    /// The lane's number in its row of four, and the row.
    fn lane_place(&mut self, span: Span) -> [Atom; 2] {
        let lane = self.lane(span);
        let (at, three) = (self.use_atom(lane, span), self.b.i64(LANES_OF_ROW - 1, span));
        let in_row = self.b.binary(BinaryOp::And, at, three, span);
        let (at, two) = (self.use_atom(lane, span), self.b.i64(2, span));
        let group = self.b.binary(BinaryOp::Shr, at, two, span);
        [self.nonneg_atom(in_row, span), self.nonneg_atom(group, span)]
    }

    fn lane(&mut self, span: Span) -> Atom {
        let lane = self.b.special(SpecialRegister::LaneId, span);
        let lane = self.b.convert(lane, Type::I64, span);
        self.nonneg_atom(lane, span)
    }

    /// `a + b * factor`.
    pub(super) fn plus(&mut self, a: Atom, b: Atom, factor: i64, span: Span) -> Atom {
        if factor == 0 {
            return a;
        }
        let mut product = self.use_atom(b, span);
        if factor != 1 {
            let factor = self.b.i64(factor, span);
            product = self.b.binary(BinaryOp::Mul, product, factor, span);
        }
        if a != Atom::Int(0) {
            let a = self.use_atom(a, span);
            product = self.b.binary(BinaryOp::Add, a, product, span);
        }
        self.atom(product, span)
    }

    /// The pointer to the element at indices that do not count from the end.
    pub(super) fn matrix_element(
        &mut self,
        (array, swizzle): (&ArrayValue, Option<Swizzle>),
        from: [Atom; 2],
        offset: [i64; 2],
        span: Span,
    ) -> Option<ExprId> {
        let mut places = [0, 1].map(|axis| self.at_offset(from[axis], offset[axis], span));
        if let Some(swizzle) = swizzle {
            // The row of the array: its elements are contiguous along the other axis.
            let row = usize::from(array.ty.layout == Layout::F);
            let own = self.atom(places[row], span);
            places[1 - row] = self.swizzled_column(array.ty, swizzle, (own, places[1 - row]), span);
            places[row] = self.use_atom(own, span);
        }
        let indices = places.map(|expr| Index::At { expr, wraps: false, known: None });
        self.element(array, &indices, span)
    }

    /// `from + offset`.
    pub(super) fn at_offset(&mut self, from: Atom, offset: i64, span: Span) -> ExprId {
        match from {
            Atom::Int(known) => self.b.i64(known + offset, span),
            Atom::Local(_) if offset == 0 => self.use_atom(from, span),
            Atom::Local(_) => {
                let (from, by) = (self.use_atom(from, span), self.b.i64(offset, span));
                self.b.binary(BinaryOp::Add, from, by, span)
            }
        }
    }

    /// `T.a(array, i, j)` and `T.b(array, i, j)`.
    fn fragment(
        &mut self,
        row: &Intrinsic,
        (tile, part): (MatrixTile, MatrixPart),
        [array, i, j]: [Value; 3],
        span: Span,
    ) -> Value {
        let types = [array.ty(), i.ty(), j.ty()];
        if types.iter().any(Ty::is_poison) {
            return Value::Poison;
        }
        let array = self.bits_of_float8((tile, part), array, span);
        if tile.is_of_warpgroup() {
            return self.shared_matrix(row, (tile, part), array, [i, j], span);
        }
        let element = tile.kind().element(part);
        let Some((array, swizzle, [i, j])) = self.matrix_place(row, (array, Some(element)), [i, j], span) else {
            return Value::Poison;
        };
        let (array, start) = match (part, Self::transposed(&array)) {
            (MatrixPart::A, _) => (array, [i, j]),
            (MatrixPart::B, Value::Array(transposed)) => (transposed, [j, i]),
            (MatrixPart::B, _) => return Value::Poison,
        };
        let loaded = match element.size_bytes() {
            1 => Scalar::U8,
            2 => Scalar::U16,
            4 => Scalar::U32,
            _ => Scalar::F64,
        };
        let view = self.viewed_as(&array, loaded, span);
        let source = Source { tile, part, view, swizzle, start };
        let ty = Type::Scalar(tile.kind().register());
        let words: Vec<LocalId> = (0..source.registers()).map(|_| self.b.local("word", ty)).collect();
        self.load_words(&source, &words, span);
        let words =
            words.into_iter().map(|word| Value::Scalar(self.b.read(word, span), tile.kind().register())).collect();
        Value::Object(ObjectKind::Matrix(MatrixObject::Fragment(tile, part)), words)
    }

    /// `T.a(acc)`: the left matrix from the accumulators of a tile with as many columns, rounded.
    fn left_of_accumulators(&mut self, row: &Intrinsic, tile: MatrixTile, acc: &Value, span: Span) -> Value {
        let ty = acc.ty();
        if ty.is_poison() {
            return Value::Poison;
        }
        let element = tile.kind().element(MatrixPart::A);
        let Some(count) = tile.accumulators_of_left() else {
            let message = format!(
                "`{}` takes an array and a position for the tile {tile}: a lane's accumulators are no elements of a left \
                 matrix of {element}",
                shown_path(row.path)
            );
            return self.error(Code::NoMatchingOverload, span, message);
        };
        let items = acc.as_tuple().filter(|items| items.len() == count).map(<[Value]>::to_vec);
        let numbers = items.filter(|items| {
            items.iter().all(|item| item.ty().scalar().is_some() || self.is_dry() && item.ty().is_poison())
        });
        let Some(numbers) = numbers else {
            let [m, _, k] = tile.shape();
            let message = format!(
                "`{}` takes an array and a position, or for the tile {tile} a tuple of {count} numbers, the accumulators of \
                 a tile of {m} rows and {k} columns, not {ty}",
                shown_path(row.path)
            );
            return self.error(Code::NoMatchingOverload, span, message);
        };
        let mut words = Vec::new();
        for word in 0..tile.registers(MatrixPart::A) {
            let first = tile.accumulator_of_left(word);
            let mut halves = Vec::new();
            for number in [first, first + 1] {
                let Some(half) = self.number(&numbers[number], element, span) else { return Value::Poison };
                let bits = self.b.math(MathFn::Bits, vec![half], Type::Scalar(Scalar::U16), span);
                halves.push(self.b.convert(bits, Type::Scalar(Scalar::U32), span));
            }
            let by = self.b.int(Scalar::U32, 16, span);
            let upper = self.b.binary(BinaryOp::Shl, halves[1], by, span);
            let joined = self.b.binary(BinaryOp::Or, halves[0], upper, span);
            let joined = self.b.temp(joined, span);
            words.push(Value::Scalar(self.b.read(joined, span), Scalar::U32));
        }
        Value::Object(ObjectKind::Matrix(MatrixObject::Fragment(tile, MatrixPart::A)), words)
    }

    /// The array and the position of a matrix in memory; `element` is the required dtype.
    pub(super) fn matrix_place(
        &mut self,
        row: &Intrinsic,
        (array, element): (Value, Option<Scalar>),
        [i, j]: [Value; 2],
        span: Span,
    ) -> Option<(ArrayValue, Option<Swizzle>, [Atom; 2])> {
        let name = shown_path(row.path);
        let shown = array.ty();
        let (array, swizzle) = swizzle::array_of(array).map_or((None, None), |(array, swizzle)| (Some(array), swizzle));
        let fits = |array: &ArrayValue| {
            let number = array.ty.dtype.number().and_then(Number::real);
            array.ty.ndim == 2 && number.is_some() && element.is_none_or(|element| number == Some(element))
        };
        let Some(array) = array.filter(fits) else {
            let of = element.map_or_else(String::new, |element| format!(" of {element}"));
            let message = format!("`{name}` takes an array of two dimensions{of}, not {shown}");
            self.error(Code::NoMatchingOverload, span, message);
            return None;
        };
        Some((array, swizzle, self.matrix_start(row, [i, j], span)?))
    }

    /// The position of a matrix's first element.
    pub(super) fn matrix_start(&mut self, row: &Intrinsic, position: [Value; 2], span: Span) -> Option<[Atom; 2]> {
        let mut start = [Atom::Int(0); 2];
        for (start, value) in start.iter_mut().zip(position) {
            if !value.ty().scalar().is_some_and(Scalar::is_int) {
                let message =
                    format!("the position in `{}` must be integers, not {}", shown_path(row.path), value.ty());
                self.error(Code::BadIndex, span, message);
                return None;
            }
            let value = self.number(&value, Scalar::I64, span)?;
            *start = self.atom(value, span);
        }
        Some(start)
    }

    /// An array with elements of another type of the same size.
    pub(in crate::frontend) fn viewed_as(&mut self, array: &ArrayValue, scalar: Scalar, span: Span) -> ArrayValue {
        let ty = ArrayTy { dtype: DType::from(Number::Real(scalar)), ..array.ty };
        let data = self.use_atom(array.data, span);
        let data = self.b.convert(data, ty.pointer(), span);
        ArrayValue { ty, data: Atom::Local(self.b.temp(data, span)), ..array.clone() }
    }

    /// Loads a lane's words, by the widest accesses that the alignment allows.
    fn load_words(&mut self, source: &Source, words: &[LocalId], span: Span) {
        let ty = source.view.ty;
        let (shared, per_register) = (ty.space == Space::Shared, source.tile.kind().per_register());
        let is_32 = source.tile.kind().register() == Scalar::U32;
        let of_rows = match ty.layout {
            Layout::C => is_32 && (shared || per_register > 1),
            Layout::F => is_32 && shared && per_register == 2,
            Layout::Any => false,
        };
        let align = if shared { ROW_ALIGN } else { 4 };
        if !self.cx.ptx || ty.packed || !of_rows {
            return self.load_elements(source, words, span);
        }
        let Some(aligned) = self.rows_aligned(source, align, span) else {
            return self.load_elements(source, words, span);
        };
        self.b.open();
        if shared {
            self.load_matrices(source, words, span);
        } else {
            self.load_whole_words(source, words, span);
        }
        let then = self.b.close();
        self.b.open();
        self.load_elements(source, words, span);
        let otherwise = self.b.close();
        self.stmt(Ir::If { cond: aligned, then, otherwise }, span);
    }

    /// Whether the first element and the distance between rows are aligned; `None` if the distance is not.
    fn rows_aligned(&mut self, source: &Source, align: i64, span: Span) -> Option<ExprId> {
        let outer = usize::from(source.view.ty.layout == Layout::F);
        let stride = self.stride(&source.view, outer, span);
        let word = Type::Scalar(Scalar::U64);
        let first = self.matrix_element((&source.view, source.swizzle), source.start, [0, 0], span)?;
        let mut bits = self.b.convert(first, word, span);
        match stride {
            Atom::Int(known) if known % align != 0 => return None,
            Atom::Int(_) => {}
            Atom::Local(_) => {
                let stride = self.use_atom(stride, span);
                let stride = self.b.convert(stride, word, span);
                bits = self.b.binary(BinaryOp::Or, bits, stride, span);
            }
        }
        let rest = self.b.int(Scalar::U64, i128::from(align - 1), span);
        let rest = self.b.binary(BinaryOp::And, bits, rest, span);
        let zero = self.b.int(Scalar::U64, 0, span);
        Some(self.b.compare(CompareOp::Eq, rest, zero, span))
    }

    /// The row and the position along `k` of the lane's first element.
    fn own_start(&mut self, source: &Source, span: Span) -> [Atom; 2] {
        let [row, at] = source.start;
        let [in_row, group] = self.lane_place(span);
        let at = self.plus(at, in_row, i64::from(source.tile.kind().per_register()), span);
        [self.plus(row, group, 1, span), at]
    }

    /// Loads each element.
    fn load_elements(&mut self, source: &Source, words: &[LocalId], span: Span) {
        let from = self.own_start(source, span);
        let kind = source.tile.kind();
        let (per_register, ty) = (i64::from(kind.per_register()), Type::Scalar(kind.register()));
        for (number, &word) in words.iter().enumerate() {
            let [row, at] = source.register_at(number);
            let mut joined: Option<ExprId> = None;
            for element in 0..per_register {
                let Some(pointer) =
                    self.matrix_element((&source.view, source.swizzle), from, [row, at + element], span)
                else {
                    return;
                };
                let Value::Scalar(value, _) = self.load(pointer, source.view.ty, span) else { return };
                let mut value = self.b.convert(value, ty, span);
                if element > 0 {
                    let by = self.b.int(kind.register(), i128::from(32 / per_register * element), span);
                    value = self.b.binary(BinaryOp::Shl, value, by, span);
                }
                joined = Some(match joined {
                    None => value,
                    Some(before) => self.b.binary(BinaryOp::Or, before, value, span),
                });
            }
            if let Some(value) = joined {
                self.b.assign(word, value, span);
            }
        }
    }

    /// Loads words of adjacent elements along `k`, which are aligned.
    fn load_whole_words(&mut self, source: &Source, words: &[LocalId], span: Span) {
        let from = self.own_start(source, span);
        let ty = ArrayTy { dtype: DType::from(Number::Real(Scalar::U32)), ..source.view.ty };
        for (number, &word) in words.iter().enumerate() {
            let Some(pointer) =
                self.matrix_element((&source.view, source.swizzle), from, source.register_at(number), span)
            else {
                return;
            };
            let pointer = self.b.convert(pointer, ty.pointer(), span);
            let Value::Scalar(value, _) = self.load(pointer, ty, span) else { return };
            self.b.assign(word, value, span);
        }
    }

    /// Loads words by `ldmatrix`: each is an element of a matrix of 8 rows of 16 bytes. Lane `8 * q + r` has the address
    /// of row `r` of matrix `q`.
    fn load_matrices(&mut self, source: &Source, words: &[LocalId], span: Span) {
        let lane = self.lane(span);
        let mut bits = |shift: i64, mask: i64| {
            let (lane, shift, mask) = (self.use_atom(lane, span), self.b.i64(shift, span), self.b.i64(mask, span));
            let shifted = self.b.binary(BinaryOp::Shr, lane, shift, span);
            let masked = self.b.binary(BinaryOp::And, shifted, mask, span);
            self.nonneg_atom(masked, span)
        };
        let (within, odd, upper) = (bits(0, 7), bits(3, 1), bits(4, 1));
        let transposed = source.view.ty.layout == Layout::F;
        let mut number = 0;
        while number < words.len() {
            let count = if words.len() - number >= 4 { 4 } else { 2 };
            let first = source.register_at(number);
            let mut from = source.start;
            for (axis, from) in from.iter_mut().enumerate() {
                // The matrices are a grid: the second one and the third one give the others.
                let step = source.register_at(number + 1)[axis] - first[axis];
                *from = self.plus(*from, odd, step, span);
                if count == 4 {
                    let step = source.register_at(number + 2)[axis] - first[axis];
                    *from = self.plus(*from, upper, step, span);
                }
                if (axis == 1) == transposed {
                    *from = self.plus(*from, within, 1, span);
                }
            }
            let Some(pointer) = self.matrix_element((&source.view, source.swizzle), from, first, span) else { return };
            let load = if count == 4 { MatrixLoad::Four { transposed } } else { MatrixLoad::Two { transposed } };
            let results = words[number..number + count].to_vec();
            self.stmt(Ir::Op { op: Op::MatrixLoad(load), results, args: vec![pointer] }, span);
            number += count;
        }
    }

    /// The numbers of a tile's accumulators, if the value has them.
    pub(super) fn accumulators(&self, tile: MatrixTile, acc: &Value) -> Option<Vec<Value>> {
        let items = acc.as_tuple()?;
        let numbers = items.iter().all(|item| item.ty().scalar().is_some() || self.is_dry() && item.ty().is_poison());
        (items.len() == tile.values() && numbers).then(|| items.to_vec())
    }

    /// `T.coord(r)`: the row and the column of the lane's accumulator `r`.
    fn matrix_coord(&mut self, row: &Intrinsic, tile: MatrixTile, number: &Value, span: Span) -> Value {
        if !number.ty().scalar().is_some_and(Scalar::is_int) {
            return self.no_overload(row, &[number.ty()], span);
        }
        let [in_row, group] = self.place_of_values(tile, span);
        let [at_row, at_column] = if let Value::Int(known) = number {
            let Some(known) = usize::try_from(*known).ok().filter(|known| *known < tile.values()) else {
                let message = format!("accumulator {known} is out of range for a tile of {}", tile.values());
                return self.error(Code::BadIndex, span, message);
            };
            let (row, column) = tile.value_at(known);
            [Atom::Int(row as i64), Atom::Int(column as i64)]
        } else {
            let Some(number) = self.number(number, Scalar::I64, span) else { return Value::Poison };
            let number = self.atom(number, span);
            let [_, columns, _] = tile.blocks();
            let ([_, n, _], m) = (tile.kind().instruction(), tile.rows_of_block() as i64);
            let of_block = tile.values_of_block() as i64;
            let mut part = |value: Atom, op: BinaryOp, by: i64| {
                let (value, by) = (self.use_atom(value, span), self.b.i64(by, span));
                let part = self.b.binary(op, value, by, span);
                self.atom(part, span)
            };
            let (block, within) =
                (part(number, BinaryOp::DivNonneg, of_block), part(number, BinaryOp::ModNonneg, of_block));
            let (block_row, block_column) =
                (part(block, BinaryOp::DivNonneg, columns as i64), part(block, BinaryOp::ModNonneg, columns as i64));
            let (half, odd) = (part(within, BinaryOp::Shr, 1), part(within, BinaryOp::And, 1));
            let (row, column) = (part(block_row, BinaryOp::Mul, m), part(block_column, BinaryOp::Mul, n.into()));
            [self.plus(row, half, 8, span), self.plus(column, odd, 1, span)]
        };
        let places = [self.plus(at_row, group, 1, span), self.plus(at_column, in_row, 2, span)];
        let number = |this: &mut Self, place: Atom| {
            let value = this.use_atom(place, span);
            this.python(Value::Scalar(value, Scalar::I64), span)
        };
        Value::tuple(places.into_iter().map(|place| number(self, place)).collect())
    }
}
