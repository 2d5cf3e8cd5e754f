//! Code, kernels and the types of their arguments.

use weft_artifact::{
    Access, ArgType, ArrayType, Artifact, Assumptions, Candidate, Chars, Class, ClassId, ClassKind, Coarsening,
    CodeFormat, Compound, DType, Factors, Fault, FaultArg, Faults, Float8, HostEntry, Kernel, Layout, Nested, Number,
    Numbers, Param, Record, RecordField, RuntimeSlot, Scalar, SharedArrayInfo, Site, SiteKind, Sites, Slot, SlotField,
    SlotSource, SlotType, SourceLocation, Time, TimeUnit, Tools, Update, Vector,
};

use super::{Bytes, Encode, Malformed, Reader, fields, variants, write_bytes};

impl Encode for Artifact {
    fn write(&self, out: &mut Vec<u8>) {
        let Self { format, target, code, kernels } = self;
        format.write(out);
        target.write(out);
        write_bytes(code, out);
        kernels.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (format, target) = Encode::read(from)?;
        let Bytes(code) = Encode::read(from)?;
        Ok(Self { format, target, code, kernels: Encode::read(from)? })
    }
}

variants!(CodeFormat { 0 => Ptx, 1 => HostObject, 2 => NvvmIr });
fields!(Kernel {
    name,
    symbol,
    params,
    slots,
    shared_bytes,
    local_bytes,
    const_bytes,
    max_threads,
    dynamic_shared,
    cooperative,
    calls_itself,
    can_bound_stores,
    coarsening,
    gains,
    faults,
    prints,
    sanitize,
    host,
});
fields!(Sites { tools, sites, shared, only_read });
fields!(Site { kind, file, line, column, width, text, array, function, is_own, loops, branches, update });
fields!(Update { statement, operation, element });
fields!(SharedArrayInfo { offset, bytes, name, item, shape, is_program });
variants!(SiteKind { 0 => Read, 1 => Write, 2 => Atomic, 3 => Barrier, 4 => WarpBarrier, 5 => GridBarrier, 6 => Shuffle, 7 => Vote, 8 => Match, 9 => WarpReduce, 10 => End, 11 => Call, 12 => Multiply, 13 => Phase });

impl Encode for Tools {
    fn write(&self, out: &mut Vec<u8>) {
        let Self(bits) = self;
        bits.write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Ok(Self(Encode::read(from)?))
    }
}
fields!(Param { name, ty, access });
fields!(Access { reads, writes, accumulates });
fields!(Assumptions { small, nonneg, disjoint, aligned, warps });
fields!(HostEntry { stack_bytes, call_bytes, below_bytes, dynamic_offset, x_axis, may_split_blocks, calls_runtime });
fields!(Slot { source, ty });
variants!(SlotSource { 0 => Argument { param, path, field }, 1 => Runtime(slot) });
variants!(SlotField { 0 => Value, 1 => Real, 2 => Imag, 3 => Data, 4 => Shape(dim), 5 => Stride(dim), 6 => Start, 7 => Room, 8 => Least, 9 => Limit });
variants!(SlotType { 0 => Scalar(scalar), 1 => Pointer, 2 => Bytes { size, align } });

fields!(Coarsening { factors, note, candidates });
fields!(Candidate { factors, time, fewest, at_once, note });

impl Encode for Factors {
    fn write(&self, out: &mut Vec<u8>) {
        let Self { threads, blocks } = self;
        for factor in threads.iter().chain(blocks) {
            factor.write(out);
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let mut factors = Self::NONE;
        for factor in factors.threads.iter_mut().chain(&mut factors.blocks) {
            *factor = Encode::read(from)?;
        }
        Ok(factors)
    }
}

/// The type has no values.
impl Encode for RuntimeSlot {
    fn write(&self, _: &mut Vec<u8>) {
        match *self {}
    }

    fn read(_: &mut Reader<'_>) -> Result<Self, Malformed> {
        Err(Malformed)
    }
}

fields!(Faults { faults, calls, at_launch });
fields!(Fault { class, args, numbers, location });
fields!(SourceLocation { file, line, function });
variants!(Numbers { 0 => None, 1 => Index(axis), 2 => Extents, 3 => Elements });
variants!(FaultArg { 0 => None, 1 => Bool(value), 2 => Int(value), 3 => Float(bits), 4 => Str(text), 5 => Tuple(items) });

variants!(ArgType {
    0 => Value(dtype),
    1 => Array(array),
    2 => Tuple(items),
    3 => None,
    4 => Struct(class, items),
    5 => Enum(class, value),
    6 => Record(dtype),
    7 => Class(dtype),
    8 => Pointer(dtype),
    9 => Optional(of),
});
fields!(ArrayType { dtype, ndim, layout, readonly });
variants!(Layout { 0 => C, 1 => F, 2 => Any });

/// Encodes a number's type as its name.
impl Encode for Number {
    fn write(&self, out: &mut Vec<u8>) {
        self.name().to_owned().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let name = String::read(from)?;
        Self::all().find(|number| number.name() == name).ok_or(Malformed)
    }
}

impl Encode for Scalar {
    fn write(&self, out: &mut Vec<u8>) {
        Number::from(*self).write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Number::read(from)?.real().ok_or(Malformed)
    }
}

/// Encodes a dtype as its description.
impl Encode for DType {
    fn write(&self, out: &mut Vec<u8>) {
        match self {
            Self::Number(number) => {
                out.push(0);
                number.write(out);
            }
            Self::Compound(id) => {
                out.push(1);
                id.get().write(out);
            }
        }
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        from.deeper(|from| match u8::read(from)? {
            0 => Number::read(from).map(Self::Number),
            1 => Self::intern(Compound::read(from)?).ok_or(Malformed),
            _ => Err(Malformed),
        })
    }
}

variants!(Compound { 0 => Record(record), 1 => Nested(nested), 2 => Vector(vector), 3 => Chars(chars), 4 => Time(time), 5 => Float8(format) });
fields!(RecordField { name, dtype, offset });
fields!(Time { is_span, unit });

/// A type whose constructor checks its parts is read through that constructor.
impl Encode for Record {
    fn write(&self, out: &mut Vec<u8>) {
        self.fields().to_vec().write(out);
        self.size_bytes().write(out);
        self.is_aligned().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (fields, (size, aligned)) = Encode::read(from)?;
        Self::new(fields, size, aligned).map_err(|_| Malformed)
    }
}

impl Encode for Nested {
    fn write(&self, out: &mut Vec<u8>) {
        self.dtype().write(out);
        self.shape().to_vec().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (dtype, shape) = Encode::read(from)?;
        Self::new(dtype, shape).map_err(|_| Malformed)
    }
}

impl Encode for Vector {
    fn write(&self, out: &mut Vec<u8>) {
        self.scalar().write(out);
        self.lanes().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (scalar, lanes) = Encode::read(from)?;
        Self::new(scalar, lanes).map_err(|_| Malformed)
    }
}

impl Encode for Chars {
    fn write(&self, out: &mut Vec<u8>) {
        self.is_wide().write(out);
        self.max_len().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        let (wide, len) = Encode::read(from)?;
        Ok(Self::new(wide, len))
    }
}

impl Encode for Float8 {
    fn write(&self, out: &mut Vec<u8>) {
        self.name().to_owned().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::from_name(&String::read(from)?).ok_or(Malformed)
    }
}

impl Encode for TimeUnit {
    fn write(&self, out: &mut Vec<u8>) {
        self.name().to_owned().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::from_name(&String::read(from)?).ok_or(Malformed)
    }
}

impl Encode for ClassId {
    fn write(&self, out: &mut Vec<u8>) {
        self.get().write(out);
    }

    fn read(from: &mut Reader<'_>) -> Result<Self, Malformed> {
        Self::intern(Class::read(from)?).ok_or(Malformed)
    }
}

fields!(Class { kind, name, identity, fields });
variants!(ClassKind { 0 => NamedTuple, 1 => Dataclass, 2 => Enum, 3 => IntEnum });
