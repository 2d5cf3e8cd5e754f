//! Short vectors, under the names that Numba and C have for them.

use std::fmt;

use crate::{
    compound::CompoundError,
    number::{Number, Scalar},
};

/// A short vector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Vector {
    scalar: Scalar,
    lanes: u8,
}

/// The scalars of vector types, with their names in C on Linux.
const C_NAMES: [(&str, Scalar); 12] = [
    ("char", Scalar::I8),
    ("short", Scalar::I16),
    ("int", Scalar::I32),
    ("long", Scalar::I64),
    ("longlong", Scalar::I64),
    ("uchar", Scalar::U8),
    ("ushort", Scalar::U16),
    ("uint", Scalar::U32),
    ("ulong", Scalar::U64),
    ("ulonglong", Scalar::U64),
    ("float", Scalar::F32),
    ("double", Scalar::F64),
];

impl Vector {
    /// A vector of scalars.
    ///
    /// # Errors
    ///
    /// See [`CompoundError`].
    pub fn new(scalar: Scalar, lanes: u8) -> Result<Self, CompoundError> {
        if (1..=4).contains(&lanes) && scalar != Scalar::Bool {
            Ok(Self { scalar, lanes })
        } else {
            Err(CompoundError::Lanes(lanes))
        }
    }

    /// The vector with a name of Numba, `float32x4`, or of CUDA C, `float4`.
    pub fn from_name(name: &str) -> Option<Self> {
        let lanes = name.chars().next_back()?.to_digit(10)?;
        let base = name.get(..name.len() - 1)?;
        let c = C_NAMES.iter().find(|(c, _)| *c == base).map(|(_, scalar)| *scalar);
        let numba = base.strip_suffix('x').and_then(|base| {
            let scalar = Number::from_name(base)?.real()?;
            (scalar.name() == base).then_some(scalar)
        });
        Self::new(c.or(numba)?, lanes as u8).ok()
    }

    /// The names of all vectors: Numba's, and CUDA C's.
    pub fn names() -> impl Iterator<Item = String> {
        let numba = C_NAMES.iter().map(|(_, scalar)| format!("{scalar}x"));
        let c = C_NAMES.iter().map(|(c, _)| (*c).to_owned());
        let mut bases: Vec<String> = numba.chain(c).collect();
        bases.sort();
        bases.dedup();
        bases.into_iter().flat_map(|base| (1..=4).map(move |lanes| format!("{base}{lanes}")))
    }

    /// The type of a lane.
    pub fn scalar(&self) -> Scalar {
        self.scalar
    }

    /// The number of lanes.
    pub fn lanes(&self) -> u8 {
        self.lanes
    }
}

impl fmt::Display for Vector {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}x{}", self.scalar, self.lanes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn vectors_have_numbas_names_and_those_of_c() {
        let named = |name: &str| Vector::from_name(name).map(|vector| (vector.scalar(), vector.lanes()));
        assert_eq!(named("float32x4"), Some((Scalar::F32, 4)));
        assert_eq!(named("float4"), Some((Scalar::F32, 4)));
        assert_eq!(named("uchar1"), Some((Scalar::U8, 1)));
        assert_eq!(named("long2"), Some((Scalar::I64, 2)));
        for none in ["", "x4", "f4x4", "int8", "float32x5", "float5", "booleanx2", "complex64x2", "float32", "é"] {
            assert_eq!(named(none), None, "{none}");
        }
        let names: Vec<String> = Vector::names().collect();
        assert_eq!(names.len(), 4 * (10 + 12));
        assert!(names.iter().all(|name| Vector::from_name(name).is_some()));
    }
}
