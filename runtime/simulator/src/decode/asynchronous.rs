//! Decodes barriers in shared memory, copies that barriers or groups count, and operations of clusters.

use super::{
    arithmetic::operands,
    function::{Decoder, unsupported},
    memory,
    table::{Address, Bank, Operation, Reg, SINK},
};
use crate::{
    count::Class,
    error::Error,
    parse::{Operand, Source, Space, Type},
};

/// An address and its space: shared, global or generic.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Target {
    pub(crate) space: Space,
    pub(crate) address: Address,
}

/// A part of memory that a copy reads or writes.
#[derive(Debug, Clone)]
pub(crate) enum Part {
    Bytes(Target),
    /// A box of an array: the address of the tensor map, and the first indices, the innermost first.
    Box(Target, Vec<Reg>),
}

/// What a wait for a barrier names.
#[derive(Debug, Clone, Copy)]
pub(crate) enum WaitsFor {
    /// The phase with this parity.
    Parity(Reg),
    /// The phase of an arrival.
    State(Reg),
}

/// The blocks to which a copy is made.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Receivers {
    /// The block of the address.
    One,
    /// The blocks of a mask, each at the same offset.
    Mask(Reg),
}

/// An operation of a barrier in shared memory, a copy, or an operation of a cluster.
#[derive(Debug, Clone)]
pub(crate) enum AsyncOp {
    Initialize {
        barrier: Target,
        count: Reg,
    },
    Invalidate(Target),
    /// An arrival, which may expect further bytes before.
    Arrive {
        barrier: Target,
        state: Reg,
        count: Option<Reg>,
        bytes: Option<Reg>,
        drops: bool,
    },
    Expect {
        barrier: Target,
        bytes: Reg,
    },
    Complete {
        barrier: Target,
        bytes: Reg,
    },
    Wait {
        barrier: Target,
        d: Reg,
        phase: WaitsFor,
    },
    PendingCount {
        d: Reg,
        state: Reg,
    },
    /// A copy to shared memory; the number of bytes is not that of a box.
    ToShared {
        to: Target,
        from: Part,
        bytes: Reg,
        barrier: Target,
        receivers: Receivers,
    },
    /// A copy to global memory.
    ToGlobal {
        to: Part,
        from: Target,
        bytes: Reg,
    },
    Commit,
    WaitGroups {
        pending: u32,
        is_read: bool,
    },
    /// `mapa`: the address of a variable in another block of the cluster.
    Map {
        is_generic: bool,
        bank: Bank,
        d: Reg,
        a: Reg,
        rank: Reg,
    },
    /// `wgmma.commit_group`
    ProductsCommit,
    /// `wgmma.wait_group`
    ProductsWait {
        pending: usize,
    },
    ClusterArrive,
    ClusterWait,
}

impl Part {
    fn for_each_register(&self, call: &mut impl FnMut(bool, Bank, Reg)) {
        let (Self::Bytes(target) | Self::Box(target, _)) = self;
        target.for_each_register(call);
        if let Self::Box(_, indices) = self {
            for index in indices {
                call(false, Bank::Word, *index);
            }
        }
    }
}

impl Target {
    fn for_each_register(&self, call: &mut impl FnMut(bool, Bank, Reg)) {
        call(false, self.address.bank, self.address.base);
    }
}

impl AsyncOp {
    /// Calls a function for each register that the operation writes (`true`) or reads.
    pub(super) fn for_each_register(&self, call: &mut impl FnMut(bool, Bank, Reg)) {
        match self {
            Self::Commit
            | Self::WaitGroups { .. }
            | Self::ProductsCommit
            | Self::ProductsWait { .. }
            | Self::ClusterArrive
            | Self::ClusterWait => {}
            Self::Invalidate(barrier) => barrier.for_each_register(call),
            Self::Initialize { barrier, count: word }
            | Self::Expect { barrier, bytes: word }
            | Self::Complete { barrier, bytes: word } => {
                barrier.for_each_register(call);
                call(false, Bank::Word, *word);
            }
            Self::Arrive { barrier, state, count, bytes, .. } => {
                barrier.for_each_register(call);
                call(true, Bank::Long, *state);
                call(false, Bank::Word, count.unwrap_or(SINK));
                call(false, Bank::Word, bytes.unwrap_or(SINK));
            }
            Self::Wait { barrier, d, phase } => {
                barrier.for_each_register(call);
                call(true, Bank::Predicate, *d);
                match phase {
                    WaitsFor::Parity(parity) => call(false, Bank::Word, *parity),
                    WaitsFor::State(state) => call(false, Bank::Long, *state),
                }
            }
            Self::PendingCount { d, state } => {
                call(true, Bank::Word, *d);
                call(false, Bank::Long, *state);
            }
            Self::ToShared { to, from, bytes, barrier, receivers } => {
                to.for_each_register(call);
                barrier.for_each_register(call);
                from.for_each_register(call);
                call(false, Bank::Word, *bytes);
                if let Receivers::Mask(mask) = receivers {
                    call(false, Bank::Word, *mask);
                }
            }
            Self::ToGlobal { to, from, bytes } => {
                to.for_each_register(call);
                from.for_each_register(call);
                call(false, Bank::Word, *bytes);
            }
            Self::Map { bank, d, a, rank, .. } => {
                call(true, *bank, *d);
                call(false, *bank, *a);
                call(false, Bank::Word, *rank);
            }
        }
    }
}

/// The most groups of products that a wait leaves.
const MOST_PENDING: u64 = 7;

/// Decodes an instruction if it is of this file.
pub(super) fn decode(decoder: &mut Decoder, source: &Source) -> Result<bool, Error> {
    let form: Vec<&str> = source.opcode.iter().map(String::as_str).collect();
    let op = match form.as_slice() {
        ["mbarrier", ..] => barrier(decoder, source)?,
        ["cp", "async", "bulk", "commit_group"] => AsyncOp::Commit,
        ["cp", "async", "bulk", "wait_group", rest @ ..] => {
            let [Operand::Integer(pending)] = operands(source)? else { return Err(unsupported(source)) };
            if !matches!(rest, [] | ["read"]) {
                return Err(unsupported(source));
            }
            AsyncOp::WaitGroups { pending: *pending as u32, is_read: !rest.is_empty() }
        }
        ["cp", "async", "bulk", ..] => copy(decoder, source)?,
        ["barrier", "cluster", "arrive", rest @ ..] => {
            check(source, rest, &["release", "relaxed", "aligned"])?;
            AsyncOp::ClusterArrive
        }
        ["barrier", "cluster", "wait", rest @ ..] => {
            check(source, rest, &["acquire", "aligned"])?;
            AsyncOp::ClusterWait
        }
        ["wgmma", "commit_group", "sync", "aligned"] => AsyncOp::ProductsCommit,
        ["wgmma", "wait_group", "sync", "aligned"] => {
            let [Operand::Integer(pending @ 0..=MOST_PENDING)] = operands(source)? else {
                return Err(unsupported(source));
            };
            AsyncOp::ProductsWait { pending: *pending as usize }
        }
        ["mapa", ..] => map(decoder, source)?,
        _ => return Ok(false),
    };
    decoder.push(source, Operation::Async(Box::new(op)), Class::Other)?;
    Ok(true)
}

/// Fails for a modifier that is not known.
fn check(source: &Source, own: &[&str], known: &[&str]) -> Result<(), Error> {
    if own.iter().all(|name| known.contains(name)) { Ok(()) } else { Err(unsupported(source)) }
}

/// An address in the space that the instruction names, or a generic one.
fn target(decoder: &mut Decoder, source: &Source, operand: &Operand, space: Space) -> Result<Target, Error> {
    Ok(Target { space, address: memory::address(decoder, source, operand)? })
}

fn barrier(decoder: &mut Decoder, source: &Source) -> Result<AsyncOp, Error> {
    let line = source.line;
    let Some((name, rest)) = source.opcode[1..].split_first() else { return Err(unsupported(source)) };
    let rest: Vec<&str> = rest.iter().map(String::as_str).collect();
    let space = rest.iter().find_map(|name| Space::parse(name)).unwrap_or(Space::Generic);
    let order = ["release", "acquire", "relaxed", "cta", "cluster", "b64", "shared", "shared::cta", "shared::cluster"];
    let modifiers: &[&str] = match name.as_str() {
        "arrive" | "arrive_drop" => &["expect_tx", "noComplete"],
        "try_wait" | "test_wait" => &["parity"],
        _ => &[],
    };
    check(source, &rest, &[&order[..], modifiers].concat())?;
    let word = |decoder: &mut Decoder, operand: &Operand| decoder.read(operand, Type::B32, line);
    Ok(match (name.as_str(), &source.operands[..]) {
        ("init", [at, count]) => {
            AsyncOp::Initialize { barrier: target(decoder, source, at, space)?, count: word(decoder, count)? }
        }
        ("inval", [at]) => AsyncOp::Invalidate(target(decoder, source, at, space)?),
        ("expect_tx", [at, bytes]) => {
            AsyncOp::Expect { barrier: target(decoder, source, at, space)?, bytes: word(decoder, bytes)? }
        }
        ("complete_tx", [at, bytes]) => {
            AsyncOp::Complete { barrier: target(decoder, source, at, space)?, bytes: word(decoder, bytes)? }
        }
        ("arrive" | "arrive_drop", [state, at, rest @ ..]) if rest.len() <= 1 => {
            let barrier = target(decoder, source, at, space)?;
            let state = decoder.write(state, Type::B64, line)?;
            let last = rest.first().map(|operand| word(decoder, operand)).transpose()?;
            let expects = source.has("expect_tx");
            if expects && last.is_none() {
                return Err(unsupported(source));
            }
            let (count, bytes) = if expects { (None, last) } else { (last, None) };
            AsyncOp::Arrive { barrier, state, count, bytes, drops: name == "arrive_drop" }
        }
        // The last operand of `try_wait` is the time for which it may wait.
        ("try_wait" | "test_wait", [d, at, phase, rest @ ..]) if rest.len() <= usize::from(name == "try_wait") => {
            let phase = if source.has("parity") {
                WaitsFor::Parity(word(decoder, phase)?)
            } else {
                WaitsFor::State(decoder.read(phase, Type::B64, line)?)
            };
            AsyncOp::Wait {
                barrier: target(decoder, source, at, space)?,
                d: decoder.write(d, Type::Pred, line)?,
                phase,
            }
        }
        ("pending_count", [d, state]) => AsyncOp::PendingCount {
            d: decoder.write(d, Type::B32, line)?,
            state: decoder.read(state, Type::B64, line)?,
        },
        _ => return Err(unsupported(source)),
    })
}

/// `cp.async.bulk` and `cp.async.bulk.tensor`.
fn copy(decoder: &mut Decoder, source: &Source) -> Result<AsyncOp, Error> {
    let mut rest: Vec<&str> = source.opcode[3..].iter().map(String::as_str).collect();
    let mut accept = |name: &str| {
        let found = rest.iter().position(|own| *own == name);
        found.map(|at| rest.remove(at)).is_some()
    };
    let is_tensor = accept("tensor");
    let has_hint = accept("L2::cache_hint");
    let is_multicast = accept("multicast::cluster");
    let is_counted = accept("mbarrier::complete_tx::bytes");
    let is_grouped = accept("bulk_group");
    accept("tile");
    let dims = (1..=5).find(|dims| accept(&format!("{dims}d")));
    let mut given = &source.operands[..];
    if has_hint {
        given = &given[..given.len().saturating_sub(1)];
    }
    if is_tensor != dims.is_some() {
        return Err(unsupported(source));
    }
    let zero = decoder.word_constant(0);
    match (rest.as_slice(), given) {
        (["shared::cluster" | "shared::cta", "global"], [to, from, barrier, rest @ ..]) if is_tensor && is_counted => {
            copy_to_shared(decoder, source, [to, from, barrier], (zero, dims, rest), is_multicast)
        }
        (["shared::cluster" | "shared::cta", "global"], [to, from, bytes, barrier, rest @ ..]) if is_counted => {
            let bytes = decoder.read(bytes, Type::B32, source.line)?;
            copy_to_shared(decoder, source, [to, from, barrier], (bytes, None, rest), is_multicast)
        }
        (["shared::cluster", "shared::cta"], [to, from, bytes, barrier]) if is_counted => {
            let from = Part::Bytes(target(decoder, source, from, Space::Shared)?);
            Ok(AsyncOp::ToShared {
                to: target(decoder, source, to, Space::Shared)?,
                from,
                bytes: decoder.read(bytes, Type::B32, source.line)?,
                barrier: target(decoder, source, barrier, Space::Shared)?,
                receivers: Receivers::One,
            })
        }
        (["global", "shared::cta"], [to, from]) if is_tensor && is_grouped => Ok(AsyncOp::ToGlobal {
            to: part(decoder, source, to, dims)?,
            from: target(decoder, source, from, Space::Shared)?,
            bytes: zero,
        }),
        (["global", "shared::cta"], [to, from, bytes]) if is_grouped => Ok(AsyncOp::ToGlobal {
            to: part(decoder, source, to, None)?,
            from: target(decoder, source, from, Space::Shared)?,
            bytes: decoder.read(bytes, Type::B32, source.line)?,
        }),
        _ => Err(unsupported(source)),
    }
}

/// A copy of global memory to shared memory, which a barrier counts.
fn copy_to_shared(
    decoder: &mut Decoder,
    source: &Source,
    [to, from, barrier]: [&Operand; 3],
    (bytes, dims, rest): (Reg, Option<usize>, &[Operand]),
    is_multicast: bool,
) -> Result<AsyncOp, Error> {
    let receivers = match rest {
        [mask] if is_multicast => Receivers::Mask(decoder.read(mask, Type::B16, source.line)?),
        [] if !is_multicast => Receivers::One,
        _ => return Err(unsupported(source)),
    };
    Ok(AsyncOp::ToShared {
        to: target(decoder, source, to, Space::Shared)?,
        from: part(decoder, source, from, dims)?,
        bytes,
        barrier: target(decoder, source, barrier, Space::Shared)?,
        receivers,
    })
}

/// Global memory: an address, or a tensor map and as many indices as the array has dimensions.
fn part(decoder: &mut Decoder, source: &Source, operand: &Operand, dims: Option<usize>) -> Result<Part, Error> {
    let Some(dims) = dims else { return Ok(Part::Bytes(target(decoder, source, operand, Space::Global)?)) };
    let Operand::Tensor(map, indices) = operand else { return Err(unsupported(source)) };
    if indices.len() != dims {
        return Err(unsupported(source));
    }
    let map = target(decoder, source, map, Space::Global)?;
    let indices = indices.iter().map(|index| decoder.read(index, Type::B32, source.line)).collect::<Result<_, _>>()?;
    Ok(Part::Box(map, indices))
}

fn map(decoder: &mut Decoder, source: &Source) -> Result<AsyncOp, Error> {
    let (is_generic, ty) = match source.opcode.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["mapa", "u64"] => (true, Type::U64),
        ["mapa", "shared::cluster", "u64"] => (false, Type::U64),
        ["mapa", "shared::cluster", "u32"] => (false, Type::U32),
        _ => return Err(unsupported(source)),
    };
    let [d, a, rank] = operands(source)?;
    let bank = if ty == Type::U64 { Bank::Long } else { Bank::Word };
    let line = source.line;
    Ok(AsyncOp::Map {
        is_generic,
        bank,
        d: decoder.write(d, ty, line)?,
        a: decoder.read(a, ty, line)?,
        rank: decoder.read(rank, Type::U32, line)?,
    })
}
