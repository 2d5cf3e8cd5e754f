//! Names that numba-cuda has in kernels and weft does not have yet: for the error message and its suggestion.
//!
//! A name is removed from this table when it gets a row of its own; a test checks that no name is in both tables. Names
//! in neither table are reported as typos.

/// Names of a module that numba-cuda has and weft does not, which share a suggestion.
#[derive(Debug)]
pub struct NumbaNames {
    /// The module, canonical.
    module: &'static str,
    /// The names of the members.
    names: &'static [&'static str],
    /// The suggestion, if there is one.
    pub suggestion: Option<&'static str>,
}

const LOOP: &str = "write a loop over an array argument or over a `cuda.local.array`";
const MAKES: &str = "make the array with `numpy.zeros(shape, dtype)` and write its elements, or make it on the host \
    and pass it";

const NAMES: &[NumbaNames] = &[
    NumbaNames {
        module: "numpy",
        names: &[
            "arange",
            "array",
            "ascontiguousarray",
            "asfortranarray",
            "diag",
            "eye",
            "identity",
            "linspace",
            "tri",
        ],
        suggestion: Some(MAKES),
    },
    NumbaNames {
        module: "numpy",
        names: &[
            "append",
            "argwhere",
            "bincount",
            "broadcast_to",
            "column_stack",
            "concatenate",
            "convolve",
            "correlate",
            "delete",
            "diff",
            "dstack",
            "ediff1d",
            "flatnonzero",
            "flip",
            "histogram",
            "hstack",
            "median",
            "nancumsum",
            "nonzero",
            "repeat",
            "roll",
            "stack",
            "take",
            "vstack",
        ],
        suggestion: Some(LOOP),
    },
    NumbaNames { module: "numpy", names: &["nditer"], suggestion: Some("write a `for` loop for each dimension") },
];

/// The entry of a path that numba-cuda supports in kernels and weft does not.
pub fn only_in_numba(path: &str) -> Option<&'static NumbaNames> {
    let (module, name) = path.rsplit_once('.')?;
    NAMES.iter().find(|entry| entry.module == module && entry.names.contains(&name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::intrinsics;

    #[test]
    fn no_name_is_there_already() {
        for entry in NAMES {
            assert!(intrinsics::is_known(entry.module), "{} is no module that kernels know", entry.module);
            for name in entry.names {
                let path = format!("{}.{name}", entry.module);
                let known = intrinsics::is_known(&path) || intrinsics::constant(&path).is_some();
                assert!(!known, "weft has `{path}`: take it out of intrinsics/numba.rs");
            }
        }
    }

    #[test]
    fn each_name_is_there_once() {
        let mut paths: Vec<String> = Vec::new();
        for entry in NAMES {
            assert!(entry.names.is_sorted(), "{:?}", entry.names);
            paths.extend(entry.names.iter().map(|name| format!("{}.{name}", entry.module)));
        }
        let all = paths.len();
        paths.sort();
        paths.dedup();
        assert_eq!(paths.len(), all);
        for path in &paths {
            assert!(only_in_numba(path).is_some(), "{path}");
        }
        assert!(only_in_numba("weft.cuda.shuffle_down_sync").is_none());
        assert!(only_in_numba("print").is_none());
    }

    /// The names in the suggestions exist.
    #[test]
    fn the_ways_out_exist() {
        for entry in NAMES {
            let words = entry.suggestion.unwrap_or("").split('`').skip(1).step_by(2);
            for code in words {
                let path = code.split(['(', ' ']).next().unwrap_or("");
                if let Some(member) = path.strip_prefix("cuda.") {
                    assert!(intrinsics::is_known(&format!("weft.cuda.{member}")), "{code}");
                } else if path.starts_with("math.") || path.starts_with("numpy.") {
                    assert!(intrinsics::is_known(path), "{code}");
                }
            }
        }
    }
}
