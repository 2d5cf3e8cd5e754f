//! Matrix tiles of a warp, for Python: their names, their layout, and the products of kernels that CPython runs.

use pyo3::{
    exceptions::PyValueError,
    prelude::*,
    types::{PyString, PyStringMethods},
};
use weft_artifact::{MatrixPart, MatrixRules, MatrixTile};

use super::dtype_of;

/// The positions of a lane's registers or accumulators.
type Places = Vec<(usize, usize)>;

fn of_path(path: &str) -> PyResult<MatrixTile> {
    MatrixTile::from_path(path).ok_or_else(|| PyValueError::new_err(format!("{path} is no tile")))
}

/// The path of the tile with a shape, types and a number of threads.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 makes the array")]
pub(crate) fn matrix_tile(shape: (i64, i64, i64), types: [Bound<'_, PyAny>; 3], threads: i64) -> PyResult<String> {
    let mut names = [const { String::new() }; 3];
    for (name, ty) in names.iter_mut().zip(&types) {
        *name = match ty.cast::<PyString>() {
            Ok(text) => text.to_str()?.to_owned(),
            Err(_) => dtype_of(ty)?.to_string(),
        };
    }
    let (m, n, k) = shape;
    let made = MatrixTile::new([m, n, k].map(i128::from), names.each_ref().map(String::as_str), threads.into());
    made.map(MatrixTile::path).map_err(PyValueError::new_err)
}

/// The shape of a tile, the names of its types, the elements of a register, the positions of the registers of A and B and of
/// the accumulators, for lane 0 of the first warp, and the number of threads. The registers are those of a warp's part.
#[pyfunction]
#[expect(clippy::type_complexity, reason = "a tuple for Python")]
pub(crate) fn matrix_layout(
    path: &str,
) -> PyResult<([u16; 3], [&'static str; 3], u16, (Places, Places, Places), usize)> {
    let tile = of_path(path)?;
    let words = |part: MatrixPart| (0..tile.registers(part)).map(|word| tile.register_at(part, word)).collect();
    let values = (0..tile.values()).map(|value| tile.value_at(value)).collect();
    let places = (words(MatrixPart::A), words(MatrixPart::B), values);
    Ok((tile.shape(), tile.kind().names(), tile.kind().per_register(), places, tile.threads()))
}

/// The bits of `c + a * b`, from those of the elements: A and C by rows, B by columns. For a tile of a warpgroup, A and C are
/// the rows of one warp. They are those of a GPU of the compute capability.
#[pyfunction]
#[expect(clippy::needless_pass_by_value, reason = "PyO3 makes the lists")]
pub(crate) fn matrix_product(
    path: &str,
    compute_capability: (u32, u32),
    a: Vec<u64>,
    b: Vec<u64>,
    mut c: Vec<u64>,
) -> PyResult<Vec<u64>> {
    let tile = of_path(path)?;
    let [m, n, k] = tile.of_warp().shape().map(usize::from);
    if (a.len(), b.len(), c.len()) != (m * k, n * k, m * n) {
        return Err(PyValueError::new_err(format!("these are not the matrices of {path}")));
    }
    weft_artifact::matrix_product(MatrixRules::of(compute_capability), tile, &a, &b, &mut c);
    Ok(c)
}
