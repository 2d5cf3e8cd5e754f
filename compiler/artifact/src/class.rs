//! Python classes whose objects kernels unpack into fields: named tuples, dataclasses, enums.
//!
//! A class is interned like a compound dtype: equal descriptions have the same id as long as the process lives. An id
//! is only valid in its process; the description is used to store a class or to compare it between processes.

use std::{
    collections::HashMap,
    fmt,
    sync::{LazyLock, PoisonError, RwLock},
};

/// The kind of a class.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum ClassKind {
    /// `collections.namedtuple`, `typing.NamedTuple`.
    NamedTuple,
    /// `@dataclass`, frozen or not.
    Dataclass,
    /// `enum.Enum`: its members are not numbers.
    Enum,
    /// `enum.IntEnum`: its members are ints too.
    IntEnum,
}

/// A description of a class.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Class {
    /// Its kind.
    pub kind: ClassKind,
    /// Its name, for messages.
    pub name: String,
    /// A string that distinguishes the class from others with the same name, and is the same in each run of a program:
    /// its module and qualified name, and the values of an enum's members.
    pub identity: String,
    /// The names of its fields, in order; for an enum, of its members.
    pub fields: Vec<String>,
}

/// An interned [`Class`].
#[derive(Clone, Copy, PartialEq, Eq, Hash)]
pub struct ClassId(u32);

#[derive(Default)]
struct ClassTable {
    all: Vec<&'static Class>,
    ids: HashMap<&'static Class, ClassId>,
}

static TABLE: LazyLock<RwLock<ClassTable>> = LazyLock::new(RwLock::default);

impl ClassId {
    /// One more than the largest [`ClassId::code`].
    pub const CODES: u32 = 1 << 24;

    /// The id of a class; equal classes have the same. `None` if there are too many classes.
    pub fn intern(class: Class) -> Option<Self> {
        let mut table = TABLE.write().unwrap_or_else(PoisonError::into_inner);
        if let Some(id) = table.ids.get(&class) {
            return Some(*id);
        }
        let id = Self(u32::try_from(table.all.len()).ok().filter(|id| *id < Self::CODES)?);
        let class: &'static Class = Box::leak(Box::new(class));
        table.all.push(class);
        table.ids.insert(class, id);
        Some(id)
    }

    /// The description.
    pub fn get(self) -> &'static Class {
        let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        table.all[self.0 as usize]
    }

    /// A number below [`ClassId::CODES`] that identifies the class in this process.
    pub const fn code(self) -> u32 {
        self.0
    }

    /// The class with a code.
    pub fn from_code(code: u32) -> Option<Self> {
        let table = TABLE.read().unwrap_or_else(PoisonError::into_inner);
        ((code as usize) < table.all.len()).then_some(Self(code))
    }
}

impl Class {
    /// The number of the field or member with a name.
    pub fn find(&self, name: &str) -> Option<usize> {
        self.fields.iter().position(|field| field == name)
    }
}

impl ClassKind {
    /// Whether its objects are members that the class lists.
    pub const fn is_enum(self) -> bool {
        matches!(self, Self::Enum | Self::IntEnum)
    }
}

/// Formats the name, because an id alone is not readable.
impl fmt::Display for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.get().name)
    }
}

impl fmt::Debug for ClassId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.get().identity)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn class(identity: &str, fields: &[&str]) -> Class {
        Class {
            kind: ClassKind::NamedTuple,
            name: "Point".to_owned(),
            identity: identity.to_owned(),
            fields: fields.iter().map(|field| (*field).to_owned()).collect(),
        }
    }

    fn intern(class: Class) -> ClassId {
        ClassId::intern(class).expect("there is room")
    }

    #[test]
    fn equal_descriptions_are_one_class() {
        let point = intern(class("m.Point", &["x", "y"]));
        assert_eq!(point, intern(class("m.Point", &["x", "y"])));
        let others = [
            class("n.Point", &["x", "y"]),
            class("m.Point", &["y", "x"]),
            Class { kind: ClassKind::Dataclass, ..class("m.Point", &["x", "y"]) },
            Class { name: "Pair".to_owned(), ..class("m.Point", &["x", "y"]) },
        ];
        for other in others {
            assert_ne!(point, intern(other.clone()), "{other:?}");
        }
    }

    #[test]
    fn codes_are_read_back() {
        let point = intern(class("codes.Point", &["x"]));
        assert_eq!(ClassId::from_code(point.code()), Some(point));
        assert_eq!((point.to_string(), format!("{point:?}")), ("Point".to_owned(), "codes.Point".to_owned()));
        assert_eq!((point.get().find("x"), point.get().find("y")), (Some(0), None));
        assert_eq!(ClassId::from_code(ClassId::CODES - 1), None);
    }
}
