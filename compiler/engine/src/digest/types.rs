//! Hashes types. Compound types and classes are hashed as their descriptions, because their numbers are only valid in
//! this process.

use weft_artifact::{ArgType, ArrayType, Class, ClassId, ClassKind, Compound, DType, Number, RecordField, Time};

use super::Feed;

impl Feed {
    pub(super) fn scalar(&mut self, number: impl Into<Number>) {
        self.text(number.into().name());
    }

    /// Hashes a compound type as its description: its number is only valid in this process.
    pub(super) fn dtype(&mut self, dtype: DType) {
        let id = match dtype {
            DType::Number(number) => {
                self.tag(0);
                return self.scalar(number);
            }
            DType::Compound(id) => id,
        };
        match id.get() {
            Compound::Record(record) => {
                self.tag(1);
                self.flag(record.is_aligned());
                self.number(id.get().size_bytes());
                self.number(record.fields().len() as u64);
                for RecordField { name, dtype, offset } in record.fields() {
                    self.text(name);
                    self.number(*offset);
                    self.dtype(*dtype);
                }
            }
            Compound::Nested(nested) => {
                self.tag(2);
                self.extents(nested.shape());
                self.dtype(nested.dtype());
            }
            Compound::Vector(vector) => {
                self.tag(3);
                self.scalar(vector.scalar());
                self.tag(vector.lanes());
            }
            Compound::Chars(chars) => {
                self.tag(4);
                self.flag(chars.is_wide());
                self.number(chars.max_len().into());
            }
            Compound::Time(time) => {
                self.tag(5);
                self.time(*time);
            }
            Compound::Float8(format) => {
                self.tag(6);
                self.text(format.name());
            }
        }
    }

    pub(super) fn time(&mut self, Time { is_span, unit }: Time) {
        self.flag(is_span);
        self.optional(unit, |feed, unit| feed.text(unit.name()));
    }

    /// Hashes a class as its description: its number is only valid in this process.
    pub(super) fn class(&mut self, class: ClassId) {
        let Class { kind, name, identity, fields } = class.get();
        self.tag(match kind {
            ClassKind::NamedTuple => 0,
            ClassKind::Dataclass => 1,
            ClassKind::Enum => 2,
            ClassKind::IntEnum => 3,
        });
        self.text(name);
        self.text(identity);
        self.number(fields.len() as u64);
        for field in fields {
            self.text(field);
        }
    }

    pub(super) fn array(&mut self, array: &ArrayType) {
        let ArrayType { dtype, ndim, layout, readonly } = array;
        self.dtype(*dtype);
        self.tag(*ndim);
        self.text(layout.letter().encode_utf8(&mut [0; 4]));
        self.flag(*readonly);
    }

    pub(super) fn types(&mut self, types: &[ArgType]) {
        self.number(types.len() as u64);
        for ty in types {
            match ty {
                ArgType::Value(dtype) => {
                    self.tag(0);
                    self.dtype(*dtype);
                }
                ArgType::Array(array) => {
                    self.tag(1);
                    self.array(array);
                }
                ArgType::Tuple(items) => {
                    self.tag(2);
                    self.types(items);
                }
                ArgType::None => self.tag(3),
                ArgType::Struct(class, items) => {
                    self.tag(4);
                    self.class(*class);
                    self.types(items);
                }
                ArgType::Enum(class, value) => {
                    self.tag(5);
                    self.class(*class);
                    self.types(std::slice::from_ref(value));
                }
                ArgType::Record(dtype) => {
                    self.tag(6);
                    self.dtype(*dtype);
                }
                ArgType::Class(dtype) => {
                    self.tag(7);
                    self.dtype(*dtype);
                }
                ArgType::Pointer(dtype) => {
                    self.tag(8);
                    self.optional(*dtype, Self::dtype);
                }
                ArgType::Optional(of) => {
                    self.tag(9);
                    self.types(std::slice::from_ref(of));
                }
            }
        }
    }
}
