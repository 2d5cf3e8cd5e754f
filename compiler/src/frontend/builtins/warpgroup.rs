//! Operands of a warpgroup's matrix tiles: matrices in swizzled shared memory.
//!
//! The operand is an object with the address of the matrix's first row and the first column in it. Its type has the
//! layout. What the compiler knows of the position is checked; the rest is documented with `cuda.mma.Tile.a`.

use weft_artifact::{Layout, MatrixPart, MatrixTile, Number, Scalar, SharedMatrix};

use crate::{
    diagnostic::{Code, Diagnostic},
    frontend::{
        expr::{Args, Index},
        lowerer::FnLowerer,
        object::{MatrixObject, ObjectKind},
        swizzle::{self, Swizzle},
        ty::shown_path,
        value::{ArrayValue, Atom, Value},
    },
    intrinsics::Intrinsic,
    ir::{Op, Space, StmtKind},
    source::Span,
};

/// A swizzled array with a matrix.
struct Memory {
    array: ArrayValue,
    swizzle: Swizzle,
    /// Its extents: panels, rows of a panel, and elements of a row.
    extents: [i64; 3],
    /// Elements along `k` are in different rows.
    transposed: bool,
}

impl FnLowerer<'_> {
    /// `set_registers(n)`.
    pub(super) fn set_registers(&mut self, row: &Intrinsic, args: Args, span: Span) -> Value {
        let Some([Some(n)]) = self.named(row, ["n"], 1, args, span) else { return Value::Poison };
        let name = shown_path(row.path);
        let Value::Int(n) = n else {
            let message = format!("the number of registers in `{name}` must be a compile-time integer, not {}", n.ty());
            return self.error(Code::NotConstant, span, message);
        };
        let Some(count) = u16::try_from(n).ok().filter(|count| (24..=256).contains(count) && count % 8 == 0) else {
            let message = format!("`{name}` takes a multiple of 8 from 24 to 256, not {n}");
            return self.error(Code::OutOfRange, span, message);
        };
        let Some(registers) = self.cx.registers else {
            let message = format!("`{name}` needs a kernel whose number of registers at the launch is known");
            let help = "pass the threads of a block: `cuda.jit(launch_bounds=384)`";
            return self.report(Diagnostic::error(Code::BadOperand, span, message).help(help));
        };
        if self.cx.ptx {
            let op = Op::SetRegisters { count, more: u32::from(count) > registers };
            self.stmt(StmtKind::Op { op, results: Vec::new(), args: Vec::new() }, span);
        }
        Value::NONE
    }

    /// `T.a(array, i, j)` and `T.b(array, i, j)` of a tile of a warpgroup.
    pub(super) fn shared_matrix(
        &mut self,
        row: &Intrinsic,
        (tile, part): (MatrixTile, MatrixPart),
        array: Value,
        position: [Value; 2],
        span: Span,
    ) -> Value {
        let Some(start) = self.matrix_start(row, position, span) else { return Value::Poison };
        let Some(memory) = self.matrix_memory(row, (tile, part), array, span) else { return Value::Poison };
        // The first row and the first column in memory.
        let by_k = match part {
            MatrixPart::A => memory.transposed,
            MatrixPart::B => !memory.transposed,
        };
        let [first, second] = start;
        let [line, column] = if by_k { [second, first] } else { [first, second] };
        if let Err(message) = check_position((tile, part), &memory, [line, column]) {
            let message = format!("`{}`: {message}", shown_path(row.path));
            return self.error(Code::BadIndex, span, message);
        }
        let width = memory.swizzle.width() as u32;
        let panel = if memory.array.ty.ndim == 2 { 0 } else { memory.swizzle.n_rows * width };
        let layout = SharedMatrix { width: width as u8, transposed: memory.transposed, panel };
        let zero = |this: &mut Self| this.b.i64(0, span);
        let line = self.use_atom(line, span);
        let indices = match (memory.array.ty.layout, memory.array.ty.ndim) {
            (Layout::F, _) => vec![zero(self), line],
            (Layout::C | Layout::Any, 2) => vec![line, zero(self)],
            (Layout::C | Layout::Any, _) => vec![zero(self), line, zero(self)],
        };
        let indices: Vec<Index> =
            indices.into_iter().map(|expr| Index::At { expr, wraps: false, known: None }).collect();
        let Some(pointer) = self.element(&memory.array, &indices, span) else { return Value::Poison };
        let data = Atom::Local(self.b.temp(pointer, span));
        let column = self.use_atom(column, span);
        let items = vec![Value::Array(ArrayValue { data, ..memory.array }), Value::Scalar(column, Scalar::I64)];
        Value::Object(ObjectKind::Matrix(MatrixObject::Shared(tile, part, layout)), items)
    }

    /// The memory of an operand; `None` after an error.
    fn matrix_memory(
        &mut self,
        row: &Intrinsic,
        (tile, part): (MatrixTile, MatrixPart),
        array: Value,
        span: Span,
    ) -> Option<Memory> {
        let (name, shown, element) = (shown_path(row.path), array.ty(), tile.kind().element(part));
        let found = match swizzle::array_of(array) {
            Ok((array, Some(swizzle))) => Some((array, swizzle)),
            Ok((_, None)) | Err(_) => None,
        };
        let fits = |array: &ArrayValue| {
            let number = array.ty.dtype.number().and_then(Number::real);
            let shape = (array.ty.ndim == 2 && array.ty.layout != Layout::Any)
                || (array.ty.ndim == 3 && array.ty.layout == Layout::C);
            shape && number == Some(element) && array.ty.space == Space::Shared
        };
        let Some((array, swizzle)) = found.filter(|(array, _)| fits(array)) else {
            let message = format!(
                "for the tile {tile}, `{name}` takes a swizzled shared array of {element} with two dimensions, or with \
                 three (panels of columns, rows, columns), not {shown}"
            );
            let help = "make one with `cuda.shared.array(shape, dtype, swizzle=128)` or `cuda.shared.swizzled`";
            self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help));
            return None;
        };
        // A transposed array is stored by its columns.
        let by_rows = array.ty.layout == Layout::C;
        let (size, width) = (element.size_bytes(), swizzle.width());
        if !swizzle.is_of_rows() {
            let message = format!(
                "for the tile {tile}, `{name}` takes an array whose rows have {width} bytes, the width of its swizzle, not \
                 {}",
                swizzle.row_bytes
            );
            let help = format!(
                "divide longer rows into panels: an array of the shape (panels, rows, {})",
                width / size.max(1)
            );
            self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help));
            return None;
        }
        // The number of panels only bounds the position.
        let panels = match (array.ty.ndim, self.fixed(array.shape[0])) {
            (2, _) => 1,
            (_, Atom::Int(known)) => known,
            (_, Atom::Local(_)) => i64::from(u16::MAX),
        };
        let extents = [panels, i64::from(swizzle.n_rows), (width / size.max(1)) as i64];
        let transposed = match part {
            MatrixPart::A => !by_rows,
            MatrixPart::B => by_rows,
        };
        if transposed && size != 2 {
            let message = format!(
                "for the tile {tile}, `{name}` takes an array whose elements along `k` are contiguous: only types of 16 \
                 bits can be stored by columns of A or rows of B"
            );
            let help = "store the matrix transposed, and pass `array.T` to `b`, or the array itself to `a`";
            self.report(Diagnostic::error(Code::NoMatchingOverload, span, message).help(help));
            return None;
        }
        Some(Memory { array, swizzle, extents, transposed })
    }
}

/// Checks the known parts of the position of a matrix: its first row and its first column in memory. Returns a sentence
/// if the matrix does not begin there or does not end in the array.
fn check_position(
    (tile, part): (MatrixTile, MatrixPart),
    memory: &Memory,
    [line, column]: [Atom; 2],
) -> Result<(), String> {
    let [m, n, k] = tile.shape().map(i64::from);
    let outer = match part {
        MatrixPart::A => m,
        MatrixPart::B => n,
    };
    let ([panels, rows, of_row], size) = (memory.extents, tile.kind().element(part).size_bytes() as i64);
    let [needed_rows, needed_columns] = if memory.transposed { [k, outer] } else { [outer, k] };
    // The matrix may begin inside a row if it ends there, too: at an instruction's step along `k`, or at a part.
    let (unit, step) = (swizzle::ROWS as i64, if memory.transposed { 16 } else { 32 } / size);
    let known = |atom: Atom| match atom {
        Atom::Int(known) => Some(known),
        Atom::Local(_) => None,
    };
    let (line, column) = (known(line), known(column));
    let within = |first: Option<i64>, count: i64, all: i64| {
        let first = first.unwrap_or(0);
        first >= 0 && first + count <= all
    };
    if !within(line, needed_rows, rows) || !within(column, needed_columns, panels * of_row) {
        return Err(format!(
            "the matrix has {needed_rows} rows and {needed_columns} columns in memory, and does not fit into the array's {rows} \
             rows and {} columns at this position",
            panels * of_row
        ));
    }
    if line.is_some_and(|line| line % unit != 0) {
        return Err(format!("the matrix must begin at a multiple of {unit} rows of the array's memory"));
    }
    if column.is_some_and(|column| column % step != 0) {
        return Err(format!("the matrix must begin at a multiple of {step} columns of the array's memory"));
    }
    if column.is_some_and(|column| column % of_row != 0 && column % of_row + needed_columns > of_row) {
        return Err(format!(
            "the matrix has {needed_columns} columns, and panels of {of_row}: it must begin at a panel, or end in the one \
             where it begins"
        ));
    }
    Ok(())
}
