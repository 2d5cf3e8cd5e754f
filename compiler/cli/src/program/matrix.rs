//! Matrix tiles that a program makes outside of kernels: `cuda.mma.tile(16, 8, 16, a=bfloat16, …)`.

use weft_artifact::MatrixTile;
use weft_compiler::request::{Captured, number_of_path};

/// The path of the function.
pub(super) const TILE: &str = "weft.cuda.mma.tile";

/// The tile that a call makes; `None` if there is no such tile, or if an argument is not known.
pub(super) fn tile(args: Vec<Captured>, keywords: Vec<(String, Captured)>) -> Option<Captured> {
    let mut given: [Option<Captured>; 7] = [const { None }; 7];
    let names = ["m", "n", "k", "a", "b", "c", "threads"];
    if args.len() > names.len() {
        return None;
    }
    for (place, value) in given.iter_mut().zip(args) {
        *place = Some(value);
    }
    for (name, value) in keywords {
        let place = given.get_mut(names.iter().position(|known| *known == name)?)?;
        if place.replace(value).is_some() {
            return None;
        }
    }
    let [m, n, k, a, b, c, threads] = given;
    let mut extents = [0; 4];
    for (extent, value) in extents.iter_mut().zip([m, n, k, threads.or(Some(Captured::Int(32)))]) {
        let Captured::Int(known) = value? else { return None };
        *extent = known;
    }
    let mut types = [const { String::new() }; 3];
    for (name, value) in types.iter_mut().zip([a, b, c]) {
        let value = value?;
        *name = if let Captured::Str(text) = value {
            text
        } else if let Captured::DType(dtype) = value {
            dtype.to_string()
        } else if let Captured::Known(path) = value {
            number_of_path(&path)?.to_string()
        } else {
            return None;
        };
    }
    let [m, n, k, threads] = extents;
    let tile = MatrixTile::new([m, n, k], types.each_ref().map(String::as_str), threads).ok()?;
    Some(Captured::Known(tile.path()))
}
