//! Names of CUDA C++ that have another name in Python kernels: `__syncthreads`, `atomicAdd`, plain `threadIdx`.

use crate::intrinsics;

/// The kernel's name for a name of CUDA C++, or for a name of `weft.cuda` without its module: `cuda.syncthreads`.
pub(super) fn of_cuda(name: &str) -> Option<String> {
    let bare = name.trim_start_matches('_');
    let has = |path: &str| intrinsics::is_known(&format!("weft.cuda.{path}"));
    if let Some(step) = bare.strip_prefix("atomic").filter(|step| step.starts_with(|first: char| first.is_uppercase()))
    {
        let step = step.trim_end_matches("_block").trim_end_matches("_system").to_lowercase();
        // `and` and `or` are keywords of Python.
        return [step.clone(), format!("{step}_")]
            .into_iter()
            .map(|step| format!("atomic.{step}"))
            .find(|path| has(path))
            .map(shown);
    }
    if let Some(vector) = of_vector(bare.strip_prefix("make_").unwrap_or(bare)) {
        return Some(shown(vector));
    }
    has(bare).then(|| shown(bare.to_owned()))
}

/// The kernel's name for a vector type of CUDA C++: `float32x4` for `float4`.
fn of_vector(name: &str) -> Option<String> {
    const TYPES: [(&str, &str); 12] = [
        ("char", "int8"),
        ("uchar", "uint8"),
        ("short", "int16"),
        ("ushort", "uint16"),
        ("int", "int32"),
        ("uint", "uint32"),
        ("long", "int64"),
        ("ulong", "uint64"),
        ("longlong", "int64"),
        ("ulonglong", "uint64"),
        ("float", "float32"),
        ("double", "float64"),
    ];
    let (base, lanes) = name.split_at_checked(name.len().checked_sub(1)?)?;
    let (_, own) = TYPES.iter().find(|(theirs, _)| *theirs == base)?;
    ["1", "2", "3", "4"].contains(&lanes).then(|| format!("{own}x{lanes}"))
}

/// The kernel's name for a function of C's math library: `math.sqrt` for `sqrtf` and `sqrt`.
pub(super) fn of_math(name: &str) -> Option<String> {
    [Some(name), name.strip_suffix('f')]
        .into_iter()
        .flatten()
        .map(|name| format!("math.{name}"))
        .find(|path| intrinsics::is_known(path))
}

fn shown(path: String) -> String {
    format!("cuda.{path}")
}

#[cfg(test)]
mod tests {
    use super::{of_cuda, of_math};

    #[test]
    fn functions_of_math_are_found() {
        for (name, here) in [("sqrtf", Some("math.sqrt")), ("exp", Some("math.exp")), ("f", None), ("rsqrtf", None)] {
            assert_eq!(of_math(name).as_deref(), here, "{name}");
        }
    }

    #[test]
    fn names_of_cuda_are_found() {
        for (name, here) in [
            ("__syncthreads", Some("cuda.syncthreads")),
            ("__shfl_down_sync", Some("cuda.shfl_down_sync")),
            ("threadIdx", Some("cuda.threadIdx")),
            ("atomicAdd", Some("cuda.atomic.add")),
            ("atomicCAS_system", Some("cuda.atomic.cas")),
            ("atomicOr", Some("cuda.atomic.or_")),
            ("atomicity", None),
            ("atomicMul", None),
            ("make_float4", Some("cuda.float32x4")),
            ("uchar3", Some("cuda.uint8x3")),
            ("float5", None),
            ("value", None),
        ] {
            assert_eq!(of_cuda(name).as_deref(), here, "{name}");
        }
    }
}
