//! Names of NumPy, Python and Numba. Such a name is never reported as a misspelling of a similar one.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::LazyLock,
};

type Names = BTreeMap<&'static str, BTreeSet<&'static str>>;

static NAMES: LazyLock<Names> = LazyLock::new(|| {
    let mut names = Names::new();
    let mut owner = None;
    for line in include_str!("real_names.txt").lines().filter(|line| !line.starts_with('#')) {
        if let Some(name) = line.strip_suffix(':') {
            owner = Some(name);
        } else if let Some(owner) = owner {
            names.entry(owner).or_default().extend(line.split_whitespace());
        }
    }
    names
});

/// Whether a module or a class has a member of this name: `numpy` and `sort`. Modules of weft count as Numba's.
pub fn is_real(owner: &str, name: &str) -> bool {
    let owner = match owner {
        "weft" => "numba".to_owned(),
        "weft.cuda.DeviceNDArray" => "numpy.ndarray".to_owned(),
        _ => owner.strip_prefix("weft.").map_or_else(|| owner.to_owned(), |rest| format!("numba.{rest}")),
    };
    NAMES.get(owner.as_str()).is_some_and(|names| names.contains(name))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_belong_to_their_owners() {
        for (owner, name) in [
            ("numpy", "sort"),
            ("numpy.ndarray", "ctypes"),
            ("builtins", "sorted"),
            ("weft.cuda", "grid"),
            ("weft.cuda.DeviceNDArray", "sort"),
            ("weft", "njit"),
        ] {
            assert!(is_real(owner, name), "{owner}.{name}");
        }
        for (owner, name) in [("numpy", "sqr"), ("numpy.ndarray", "dtyp"), ("weft.cuda", "gird"), ("nowhere", "sort")] {
            assert!(!is_real(owner, name), "{owner}.{name}");
        }
    }
}
