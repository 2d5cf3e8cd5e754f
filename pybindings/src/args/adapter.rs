//! How an object is passed, by its type: determined once for each type, then looked up.
//!
//! The result depends on the type alone. Types whose objects must be inspected one by one (is there a buffer?) are
//! [`Adapter::Other`], and are not cached; neither are results that may still change, before NumPy is imported. Cached
//! types are held, so that an address always means the same type. They are NumPy's, weft's and a few of the program's:
//! if a program creates more and more types, only the first are cached.

use std::{
    cell::Cell,
    collections::HashMap,
    sync::{Mutex, PoisonError},
};

use pyo3::{
    prelude::*,
    types::{PyBool, PyBytes, PyComplex, PyFloat, PyInt, PyNone, PyString, PyTuple, PyType},
};
use weft_artifact::Number;

use super::CopyHint;
use crate::{
    arrays::{cupy::Cupy, device_array::DeviceArray, dlpack::exchange::Exchange, scalar},
    types::{
        classes::{self, KnownClass},
        numpy::{self, ScalarKind, Subclass},
    },
};

/// How objects of a type are passed.
#[derive(Clone, Copy, Default)]
pub(super) enum Adapter {
    /// weft's own arrays.
    DeviceArray,
    /// Python's `float`, or a class that is one and nothing else.
    Float,
    /// `int`, likewise.
    Int,
    /// `bool`.
    Bool,
    /// `complex`.
    Complex,
    /// `None`.
    None,
    /// `tuple`, or a class that is one and has no fields.
    Tuple,
    /// NumPy's arrays.
    HostArray(Subclass),
    /// NumPy's scalars of a number, which lie in memory as NumPy says.
    Plain(Number),
    /// NumPy's scalars of a number.
    Number(Number),
    /// Other scalars of NumPy's.
    Scalar(ScalarKind),
    /// Strings: Python's and NumPy's.
    Text,
    /// Named tuples, dataclasses, members of enums.
    Object(&'static KnownClass),
    /// `cuda.In`, `cuda.Out`, `cuda.InOut`.
    Hint,
    /// Tensors of other libraries, by the C functions of their type.
    Exchange(Exchange),
    /// CuPy's arrays, by their attributes.
    Cupy(&'static Cupy),
    /// Arrays of other libraries, by what the object has of what its type has: an array interface, `__dlpack__`.
    Foreign,
    /// Whatever the object itself says.
    #[default]
    Other,
}

/// The most types that are cached.
const MOST: usize = 1024;

/// By the address of the type object, which the table keeps alive.
type Table = HashMap<usize, (Py<PyType>, Adapter)>;

static TABLE: Mutex<Option<Table>> = Mutex::new(None);

/// How many types a thread has at hand: a power of two.
const AT_HAND: usize = 64;

thread_local! {
    /// A direct-mapped cache, indexed by a hash of the address.
    static HAND: [Cell<(usize, Adapter)>; AT_HAND] = const { [const { Cell::new((0, Adapter::Other)) }; AT_HAND] };
}

impl Adapter {
    /// How an object is passed, and whether all others of its type are, too.
    pub(super) fn of(arg: &Bound<'_, PyAny>) -> PyResult<(Self, bool)> {
        let address = arg.get_type_ptr() as usize;
        // Type objects lie at multiples of 16, and NumPy's one after the other, some 400 bytes each.
        let place = (address >> 4 ^ address >> 10) % AT_HAND;
        HAND.with(|hand| {
            let cell = &hand[place];
            let (known, adapter) = cell.get();
            if known == address {
                return Ok((adapter, true));
            }
            let (found, is_cached) = Self::find(arg)?;
            if is_cached {
                cell.set((address, found));
            }
            Ok((found, is_cached))
        })
    }

    /// The adapter of an object's type, cached or computed, and whether it is cached.
    fn find(arg: &Bound<'_, PyAny>) -> PyResult<(Self, bool)> {
        let class = &arg.get_type();
        let address = class.as_ptr() as usize;
        let kept = TABLE.lock().unwrap_or_else(PoisonError::into_inner).as_ref().and_then(|table| {
            let (_, adapter) = table.get(&address)?;
            Some(*adapter)
        });
        if let Some(adapter) = kept {
            return Ok((adapter, true));
        }
        let (adapter, lasts) = match Self::of_ours(class)? {
            Some(adapter) => (adapter, true),
            // Before NumPy is imported a class that is on its way may count as the number that it is too.
            None => (Self::decide(arg, class)?, numpy::loaded(class.py()).is_some()),
        };
        let mut table = TABLE.lock().unwrap_or_else(PoisonError::into_inner);
        let table = table.get_or_insert_default();
        let is_cached = lasts && !matches!(adapter, Self::Other) && table.len() < MOST;
        if is_cached {
            table.insert(address, (class.clone().unbind(), adapter));
        }
        Ok((adapter, is_cached))
    }

    /// The adapter of weft's arrays and of Python's own classes.
    fn of_ours(class: &Bound<'_, PyType>) -> PyResult<Option<Self>> {
        let py = class.py();
        if class.is_subclass_of::<DeviceArray>()? {
            return Ok(Some(Self::DeviceArray));
        }
        let exact = [
            (py.get_type::<PyFloat>(), Self::Float),
            (py.get_type::<PyInt>(), Self::Int),
            (py.get_type::<PyBool>(), Self::Bool),
            (py.get_type::<PyNone>(), Self::None),
            (py.get_type::<PyTuple>(), Self::Tuple),
        ];
        Ok(exact.into_iter().find(|(known, _)| class.is(known)).map(|(_, adapter)| adapter))
    }

    fn decide(arg: &Bound<'_, PyAny>, class: &Bound<'_, PyType>) -> PyResult<Self> {
        let py = class.py();
        if let Some(classes) = numpy::loaded(py) {
            if let Some(subclass) = classes.array_class(class)? {
                return Ok(Self::HostArray(subclass));
            }
            if let Some(number) = classes.number_of_type(class) {
                let is_plain = scalar::is_plain(class, number)?;
                return Ok(if is_plain { Self::Plain(number) } else { Self::Number(number) });
            }
            if let Some(kind) = classes.scalar_class(class)? {
                return Ok(match kind {
                    ScalarKind::Text => Self::Text,
                    ScalarKind::BFloat16 | ScalarKind::Void | ScalarKind::Time | ScalarKind::Other => {
                        Self::Scalar(kind)
                    }
                });
            }
        }
        if class.is_subclass_of::<PyComplex>()? {
            return Ok(Self::Complex);
        }
        if class.is_subclass_of::<CopyHint>()? {
            return Ok(Self::Hint);
        }
        let (is_float, is_int) = (class.is_subclass_of::<PyFloat>()?, class.is_subclass_of::<PyInt>()?);
        let is_tuple = class.is_subclass_of::<PyTuple>()?;
        if is_float || is_int || is_tuple {
            return Ok(match classes::find(class)? {
                Some(known) => Self::Object(known),
                None if is_tuple => Self::Tuple,
                None if is_float => Self::Float,
                None => Self::Int,
            });
        }
        if class.is_subclass_of::<PyString>()? || class.is_subclass_of::<PyBytes>()? {
            return Ok(Self::Text);
        }
        if let Some(exchange) = Exchange::of(class)? {
            return Ok(Self::Exchange(exchange));
        }
        // An object that has none of its own may still be of a dataclass.
        let is_foreign =
            class.hasattr(intern!(py, "__cuda_array_interface__"))? || class.hasattr(intern!(py, "__dlpack__"))?;
        if is_foreign {
            // If this object is inconclusive, the next one of its type is inspected.
            return Ok(Cupy::of(arg).map_or(Self::Other, |cupy| cupy.map_or(Self::Foreign, Self::Cupy)));
        }
        // An object of a dataclass may be an array of another library first.
        Ok(classes::known(class).map_or(Self::Other, Self::Object))
    }
}
