//! Names of CUDA C++ that a kernel of Python's calls otherwise: `__syncthreads`, `atomicAdd`, `threadIdx` by itself.

use crate::intrinsics;

/// What a name of CUDA C++, or one that `weft.cuda` has, is called in a kernel: `cuda.syncthreads`.
pub(super) fn of_cuda(name: &str) -> Option<String> {
    let bare = name.trim_start_matches('_');
    let has = |path: &str| intrinsics::is_known(&format!("weft.cuda.{path}"));
    if let Some(step) = bare.strip_prefix("atomic").filter(|step| step.starts_with(|first: char| first.is_uppercase()))
    {
        let step = step.trim_end_matches("_block").trim_end_matches("_system").to_lowercase();
        // `and` and `or` are words of Python's.
        return [step.clone(), format!("{step}_")]
            .into_iter()
            .map(|step| format!("atomic.{step}"))
            .find(|path| has(path))
            .map(shown);
    }
    has(bare).then(|| shown(bare.to_owned()))
}

fn shown(path: String) -> String {
    format!("cuda.{path}")
}

#[cfg(test)]
mod tests {
    use super::of_cuda;

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
            ("value", None),
        ] {
            assert_eq!(of_cuda(name).as_deref(), here, "{name}");
        }
    }
}
