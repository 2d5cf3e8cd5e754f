//! Stages host arrays: copies them to memory that the kernel can access, and back.
//!
//! By default each array has its own compact buffer. The exceptions are arrays that the device uses in place, and small
//! arrays, which share a buffer so that one copy transfers them all. If arrays of one launch share elements and some of
//! these are written, they get one common buffer, a copy of the memory range that contains them, or all are used in
//! place. A write through one is then visible through the others, and no write is lost when copying back.

use std::{any::Any, ops::Range, sync::Arc};

use pyo3::{
    exceptions::{PyRuntimeError, PyValueError},
    prelude::*,
    types::{IntoPyDict, PyDict},
};
use weft_artifact::Access;
use weft_runtime::{Buffer, Executor, Stream};

use super::{
    Dispatcher,
    launch::setting,
    overload::Resolved,
    variants::in_place::{Rooms, Written, rooms},
};
use crate::{
    args::{Arguments, HostArgument, InPlace},
    arrays::host_array::HostArray,
    devices, errors,
};

/// A memory range that is copied as a whole keeps its address modulo this value, which preserves the alignment of its
/// elements.
const ALIGN: u64 = 64;
/// The `max_work` limit of `numpy.shares_memory` for deciding whether two arrays share elements. Rows, columns and
/// fields need little work.
const MOST_WORK: u32 = 10_000;

/// The minimum size in bytes for reading an array in place.
pub(super) const LARGE: usize = 256 << 10;
/// The minimum size in bytes for writing an array in place. The first such array requires another compilation of the
/// kernel.
const LARGE_WRITTEN: usize = 1 << 20;

/// The host arrays of a launch, in memory that the kernel can access.
#[derive(Default)]
pub(super) struct Staging {
    pub(super) staged: Vec<Staged>,
    /// The arrays that the kernel writes in place.
    pub(super) written: Vec<Written>,
    /// Guards that allow the kernel to read past the end of tensors of other libraries.
    _rooms: Rooms,
}

impl Staging {
    /// A staging that only holds guards for reading past the end of tensors.
    pub(super) fn holding(rooms: Rooms) -> Self {
        Self { _rooms: rooms, ..Self::default() }
    }
}

/// The location of elements of host arrays during the launch.
pub(super) enum Staged {
    /// In device memory.
    Copied {
        /// The memory.
        buffer: Arc<dyn Buffer>,
        /// The arrays whose elements are in the buffer.
        members: Vec<Member>,
    },
    /// In device memory, several small arrays in one buffer.
    Packed {
        /// The memory.
        buffer: Arc<dyn Buffer>,
        /// The arrays whose elements are in the buffer.
        members: Vec<Member>,
    },
    /// In host memory, used in place.
    InPlace {
        /// Guards that allow the kernel to read past their ends.
        _rooms: Rooms,
    },
}

/// A host array during the launch.
pub(super) struct Member {
    /// Index into the launch's host arrays.
    host: usize,
    /// The offset of its first element in the buffer.
    offset: u64,
    /// A compact copy of the elements in host memory, and its object.
    copy: Option<(HostArray, Py<PyAny>)>,
    /// Whether the kernel may have written it.
    copy_out: bool,
}

/// The requirements of a launch for a host array that its kernel uses.
#[expect(clippy::struct_excessive_bools, reason = "they are searched and tested separately")]
struct Need {
    /// Index into the launch's host arrays.
    host: usize,
    /// Whether the kernel may write it.
    writes: bool,
    /// Whether the kernel contains no write to it, and no copy was requested. The array's own read-only flag does not
    /// count.
    is_only_read: bool,
    copy_in: bool,
    copy_out: bool,
    /// The address range of its elements. It is empty if the array always gets its own copy.
    span: Range<u64>,
}

/// The host arrays of a launch that its kernel uses, in groups. The arrays of a group are copied as one range, or are
/// all used in place.
pub(super) struct Plan {
    groups: Vec<Vec<Need>>,
    /// Whether the kernel may read arrays in place.
    may_share: bool,
}

/// Determines how a launch's host arrays are staged.
///
/// # Errors
///
/// `ValueError` for arrays that a kernel cannot use.
pub(super) fn plan(dispatcher: &Bound<'_, Dispatcher>, resolved: &Resolved, arguments: &Arguments) -> PyResult<Plan> {
    let needs = needs(dispatcher, resolved, &arguments.hosts)?;
    check_in_place(dispatcher.get(), resolved, arguments, &needs)?;
    Ok(Plan { groups: groups(dispatcher.py(), &arguments.hosts, needs)?, may_share: true })
}

impl Plan {
    /// Whether a kernel that bounds-checks its stores would write some of the arrays in place.
    pub(super) fn is_written_in_place(&self, hosts: &[HostArgument]) -> bool {
        self.groups.iter().any(|group| is_written_in_place(hosts, group))
    }

    /// The same with a copy of each array, so that the addresses are aligned as a GPU's.
    pub(super) fn copying(self) -> Self {
        Self { may_share: false, ..self }
    }

    /// Copies the host arrays to memory that the kernel can access, unless they are used in place, and stores their
    /// addresses in their cells. `is_checked`: the kernel bounds-checks its stores.
    pub(super) fn stage(
        self,
        dispatcher: &Bound<'_, Dispatcher>,
        executor: &dyn Executor,
        stream: Option<&dyn Stream>,
        arguments: &mut Arguments,
        is_checked: bool,
        staging: &mut Staging,
    ) -> PyResult<()> {
        let (py, Self { mut groups, may_share }) = (dispatcher.py(), self);
        let Arguments { hosts, cells, .. } = arguments;
        staging.staged.extend(pack(py, executor, stream, hosts, cells, &mut groups)?);
        for group in groups {
            if is_checked
                && is_written_in_place(hosts, &group)
                && let Some(rooms) = rooms(executor, group.iter().map(|need| need.span.clone()))
            {
                let written = group.iter().filter(|need| need.writes).filter_map(|need| {
                    let Range { start, end } = need.span;
                    let HostArgument { array, cell, .. } = hosts.get(need.host)?;
                    let elements = array.shape().iter().map(|extent| *extent as u64).product();
                    Some(Written { cell: *cell, start, room: end - start, elements })
                });
                staging.written.extend(written);
                staging.staged.push(Staged::InPlace { _rooms: rooms });
                continue;
            }
            staging.staged.push(match <[Need; 1]>::try_from(group) {
                Ok([need]) => match read_in_place(executor, hosts, &need).filter(|_| may_share) {
                    Some(room) => Staged::InPlace { _rooms: vec![room] },
                    None => alone(py, executor, stream, hosts, cells, &need)?,
                },
                Err(group) => together(dispatcher, executor, stream, hosts, cells, &group)?,
            });
        }
        Ok(())
    }
}

/// The kernel's accesses through a parameter.
pub(super) fn access(resolved: &Resolved, param: usize) -> Access {
    resolved
        .overload
        .kernel
        .params
        .get(param)
        .map_or(Access { reads: true, writes: true, accumulates: false }, |param| param.access)
}

/// Rejects an array of another library whose elements overlap in memory, if the kernel uses it in place and may write
/// it.
pub(super) fn check_elements(dispatcher: &Dispatcher, resolved: &Resolved, arguments: &Arguments) -> PyResult<()> {
    let written = arguments.overlapping.iter().find(|param| access(resolved, **param).writes);
    written.map_or(Ok(()), |param| Err(overlapping(dispatcher, *param)))
}

fn overlapping(dispatcher: &Dispatcher, param: usize) -> PyErr {
    PyValueError::new_err(format!(
        "{}: the kernel may write to the array, but some of its elements share memory (a view made by `as_strided` or \
         `broadcast_to`); pass a copy",
        dispatcher.argument(param)
    ))
}

/// The requirements for the host arrays.
fn needs(dispatcher: &Bound<'_, Dispatcher>, resolved: &Resolved, hosts: &[HostArgument]) -> PyResult<Vec<Need>> {
    let py = dispatcher.py();
    let mut needs = Vec::with_capacity(hosts.len());
    // The warning about copies is for GPUs.
    let mut warned = resolved.overload.executor.kind() == "cpu";
    for (index, host) in hosts.iter().enumerate() {
        let access = access(resolved, host.param);
        if !access.reads && !access.writes {
            continue;
        }
        let (copy_in, hint_out) = host.hint.unwrap_or((true, true));
        // A kernel cannot store to a read-only array, even if its accesses are unknown and therefore count as writes.
        let writes = access.writes && !(host.is_array && host.array.is_read_only());
        let copy_out = writes && hint_out;
        if copy_out && host.array.overlaps() {
            return Err(overlapping(dispatcher.get(), host.param));
        }
        if !warned && host.hint.is_none() {
            warned = true;
            warn_about_copies(py)?;
        }
        // `cuda.In` requests a separate copy that is not copied back.
        let span = if hint_out { host.array.span() } else { 0..0 };
        let is_only_read = !access.writes && host.hint.is_none();
        needs.push(Need { host: index, writes, is_only_read, copy_in, copy_out, span });
    }
    Ok(needs)
}

/// Rejects a copied host array that shares memory with an array that the kernel uses in place.
fn check_in_place(dispatcher: &Dispatcher, resolved: &Resolved, arguments: &Arguments, needs: &[Need]) -> PyResult<()> {
    for place @ InPlace { param, array, .. } in &arguments.in_place {
        let Access { reads, writes, .. } = access(resolved, *param);
        let (used, writes) = (reads || writes, writes && !array.readonly);
        let span = place.span(&arguments.cells);
        let meets = |need: &&Need| used && (need.writes || writes) && meet(&need.span, &span);
        if let Some(host) = needs.iter().find(meets).and_then(|need| arguments.hosts.get(need.host)) {
            return Err(PyValueError::new_err(format!(
                "{} and {} share memory, but one is a host array, which is copied for the launch, and the other is \
                 used in place: pass both as host arrays or both as device arrays",
                dispatcher.argument(host.param),
                dispatcher.argument(*param)
            )));
        }
    }
    Ok(())
}

/// Whether two address ranges overlap.
pub(super) fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

/// The groups of arrays to copy together: arrays that share elements, some of which are written.
fn groups(py: Python<'_>, hosts: &[HostArgument], mut needs: Vec<Need>) -> PyResult<Vec<Vec<Need>>> {
    if needs.len() < 2 || needs.iter().all(|need| !need.writes) {
        return Ok(needs.into_iter().map(|need| vec![need]).collect());
    }
    needs.sort_by_key(|need| need.span.start);
    // The group of each array, identified by the group's first member.
    let mut firsts: Vec<usize> = (0..needs.len()).collect();
    for (index, need) in needs.iter().enumerate() {
        let later = needs.iter().enumerate().skip(index + 1).take_while(|(_, later)| later.span.start < need.span.end);
        for (other, later) in later {
            let (Some(one), Some(two)) = (firsts.get(index).copied(), firsts.get(other).copied()) else { continue };
            let met = one != two && (need.writes || later.writes) && meet(&need.span, &later.span);
            if met && share_elements(py, hosts.get(need.host), hosts.get(later.host))? {
                firsts.iter_mut().filter(|first| **first == one.max(two)).for_each(|first| *first = one.min(two));
            }
        }
    }
    let mut groups: Vec<Vec<Need>> = needs.iter().map(|_| Vec::new()).collect();
    for (need, first) in needs.into_iter().zip(firsts) {
        if let Some(group) = groups.get_mut(first) {
            group.push(need);
        }
    }
    groups.retain(|group| !group.is_empty());
    Ok(groups)
}

/// Whether two arrays share an element or part of one. If this takes too long to decide, the answer is true.
fn share_elements(py: Python<'_>, one: Option<&HostArgument>, other: Option<&HostArgument>) -> PyResult<bool> {
    let (Some(one), Some(other)) = (one, other) else { return Ok(false) };
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = |host: &HostArgument| numpy.call_method1(intern!(py, "asarray"), (&host.object,));
    let shares = numpy.call_method1(intern!(py, "shares_memory"), (array(one)?, array(other)?, MOST_WORK));
    match shares {
        Ok(shared) => shared.is_truthy(),
        // `numpy.exceptions.TooHardError`
        Err(error) if error.is_instance_of::<PyRuntimeError>(py) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether a group of arrays, of which the kernel writes a large one, can be used in place by a kernel that
/// bounds-checks its stores. The arrays' cells already describe the host memory. An array with gaps contains bytes that
/// are not its own, and a [`CopyHint`](crate::args::CopyHint) requests a copy.
fn is_written_in_place(hosts: &[HostArgument], group: &[Need]) -> bool {
    let stays = |need: &Need| {
        hosts.get(need.host).is_some_and(|HostArgument { array, is_array, hint, .. }| {
            let has_no_gaps = need.span.end - need.span.start == array.len_bytes() as u64;
            let fits = if need.writes { has_no_gaps } else { need.is_only_read };
            *is_array && hint.is_none() && fits && array.is_aligned_at(array.address())
        })
    };
    let is_large = |need: &Need| need.writes && need.span.end - need.span.start >= LARGE_WRITTEN as u64;
    group.iter().any(is_large) && group.iter().all(stays)
}

/// Uses a read-only array in place that shares no elements with others. Its cells already describe the host memory.
fn read_in_place(executor: &dyn Executor, hosts: &[HostArgument], need: &Need) -> Option<Box<dyn Any>> {
    let HostArgument { array, is_array, .. } = hosts.get(need.host)?;
    let is_worth_it = *is_array && need.is_only_read && array.len_bytes() >= LARGE;
    (is_worth_it && array.is_aligned_at(array.address())).then(|| executor.read_in_place(&need.span)).flatten()
}

/// Packs small contiguous arrays that share no elements into one buffer, so that one copy transfers them in each
/// direction. Removes them from the groups. `None` if there are fewer than two, or if copies have no fixed cost.
fn pack(
    py: Python<'_>,
    executor: &dyn Executor,
    stream: Option<&dyn Stream>,
    hosts: &[HostArgument],
    cells: &mut [u64],
    groups: &mut Vec<Vec<Need>>,
) -> PyResult<Option<Staged>> {
    let room = |group: &[Need]| {
        let [need] = group else { return None };
        let array = &hosts.get(need.host)?.array;
        executor.room_in_pack(array.len_bytes() as u64).filter(|_| array.is_contiguous())
    };
    if groups.iter().filter(|group| room(group).is_some()).take(2).count() < 2 {
        return Ok(None);
    }
    let (mut members, mut parts, mut size) = (Vec::new(), Vec::new(), 0);
    groups.retain(|group| {
        let (Some(room), [need]) = (room(group), group.as_slice()) else { return true };
        let Some(host) = hosts.get(need.host) else { return true };
        if need.copy_in {
            parts.push((size, host.array.bytes()));
        }
        members.push(Member { host: need.host, offset: size, copy: None, copy_out: need.copy_out });
        size += room;
        false
    });
    let buffer = py
        .detach(|| {
            let buffer = executor.allocate(size, stream)?;
            executor.copy_parts_to_device(buffer.address(), &parts, stream)?;
            Ok(buffer)
        })
        .map_err(|error| errors::runtime(py, &error))?;
    for member in &members {
        let Some(host) = hosts.get(member.host) else { continue };
        point(cells, host, buffer.address() + member.offset, host.array.strides());
    }
    Ok(Some(Staged::Packed { buffer, members }))
}

/// An array with a buffer of its own, without gaps.
fn alone(
    py: Python<'_>,
    executor: &dyn Executor,
    stream: Option<&dyn Stream>,
    hosts: &[HostArgument],
    cells: &mut [u64],
    need: &Need,
) -> PyResult<Staged> {
    let host = hosts.get(need.host).ok_or_else(|| errors::internal(py, "a host array is gone"))?;
    let copy = if host.array.is_contiguous() { None } else { Some(compact(py, host)?) };
    let source = copy.as_ref().map_or(&host.array, |(copy, _)| copy);
    let bytes = source.bytes();
    // Elements that the kernel does not write must be preserved, so elements are copied in even if none is read.
    let buffer = py
        .detach(|| {
            let buffer = executor.allocate(bytes.len() as u64, stream)?;
            if need.copy_in && !bytes.is_empty() {
                executor.copy_to_device(buffer.address(), bytes, stream)?;
            }
            Ok(buffer)
        })
        .map_err(|error| errors::runtime(py, &error))?;
    point(cells, host, buffer.address(), source.strides());
    let member = Member { host: need.host, offset: 0, copy, copy_out: need.copy_out };
    Ok(Staged::Copied { buffer, members: vec![member] })
}

/// Copies a group of arrays into one buffer that preserves their relative offsets in host memory.
fn together(
    dispatcher: &Bound<'_, Dispatcher>,
    executor: &dyn Executor,
    stream: Option<&dyn Stream>,
    hosts: &[HostArgument],
    cells: &mut [u64],
    group: &[Need],
) -> PyResult<Staged> {
    let py = dispatcher.py();
    let members: Vec<&HostArgument> = group.iter().filter_map(|need| hosts.get(need.host)).collect();
    let (first, bytes) = HostArray::bytes_of_all(members.iter().map(|host| &host.array));
    let buffer = py
        .detach(|| executor.allocate(bytes.len() as u64 + ALIGN, stream))
        .map_err(|error| errors::runtime(py, &error))?;
    // If the elements are misaligned in host memory, another offset may align them.
    let same = first.wrapping_sub(buffer.address()) % ALIGN;
    let mut places = std::iter::once(same).chain(0..ALIGN).map(|at| buffer.address() + at);
    let place =
        places.find(|place| members.iter().all(|host| host.array.is_aligned_at(host.array.address() - first + place)));
    let Some(place) = place else { return Err(askew(dispatcher.get(), &members)) };
    if group.iter().any(|need| need.copy_in) {
        py.detach(|| executor.copy_to_device(place, bytes, stream)).map_err(|error| errors::runtime(py, &error))?;
    }
    let staged = group.iter().zip(&members).map(|(need, host)| {
        let address = host.array.address() - first + place;
        point(cells, host, address, host.array.strides());
        Member { host: need.host, offset: address - buffer.address(), copy: None, copy_out: need.copy_out }
    });
    let members = staged.collect();
    Ok(Staged::Copied { buffer, members })
}

/// `ValueError` for arrays whose common memory range cannot be aligned.
fn askew(dispatcher: &Dispatcher, members: &[&HostArgument]) -> PyErr {
    let mut params: Vec<usize> = members.iter().map(|host| host.param).collect();
    params.sort_unstable();
    params.dedup();
    let names: Vec<String> = params.into_iter().map(|param| dispatcher.argument(param)).collect();
    PyValueError::new_err(format!(
        "{} share memory with elements that are not aligned to their size (fields of packed records): pass the array \
         of records, or copies",
        names.join(" and ")
    ))
}

impl Staged {
    /// Copies the kernel's stores back.
    pub(super) fn finish(
        self,
        py: Python<'_>,
        stream: Option<&dyn Stream>,
        hosts: &mut [HostArgument],
        executor: &dyn Executor,
    ) -> PyResult<()> {
        let (buffer, mut members) = match self {
            Self::Copied { buffer, members } => (buffer, members),
            Self::Packed { buffer, members } => return unpack(py, stream, hosts, executor, &*buffer, &members),
            Self::InPlace { .. } => return Ok(()),
        };
        let mut finished = Ok(());
        for member in members.iter_mut().filter(|member| member.copy_out) {
            let Some(host) = hosts.get_mut(member.host) else { continue };
            let from = buffer.address() + member.offset;
            finished = finished.and(member.finish(py, stream, host, executor, from));
        }
        finished
    }
}

/// Copies the kernel's stores to arrays that share a buffer back.
fn unpack(
    py: Python<'_>,
    stream: Option<&dyn Stream>,
    hosts: &mut [HostArgument],
    executor: &dyn Executor,
    buffer: &dyn Buffer,
    members: &[Member],
) -> PyResult<()> {
    let mut parts = Vec::with_capacity(members.len());
    for (index, host) in hosts.iter_mut().enumerate() {
        if let Some(member) = members.iter().find(|member| member.host == index && member.copy_out) {
            parts.push((member.offset, host.array.bytes_mut()?));
        }
    }
    let copied = py.detach(|| executor.copy_parts_to_host(&mut parts, buffer.address(), stream));
    errors::copied(py, copied, || devices::findings(py))
}

impl Member {
    fn finish(
        &mut self,
        py: Python<'_>,
        stream: Option<&dyn Stream>,
        host: &mut HostArgument,
        executor: &dyn Executor,
        from: u64,
    ) -> PyResult<()> {
        let copy = |bytes: &mut [u8], from: u64| {
            if bytes.is_empty() { Ok(()) } else { py.detach(|| executor.copy_to_host(bytes, from, stream)) }
        };
        // A contiguous array needs no call of NumPy.
        if self.copy.is_none() && host.array.is_contiguous() {
            return errors::copied(py, copy(host.array.bytes_mut()?, from), || devices::findings(py));
        }
        let numpy = py.import(intern!(py, "numpy"))?;
        let original = numpy.call_method1(intern!(py, "asarray"), (&host.object,))?;
        let copied = if let Some((compact, object)) = &mut self.copy {
            let copied = copy(compact.bytes_mut()?, from);
            numpy.call_method1(intern!(py, "copyto"), (original, &*object))?;
            copied
        } else {
            // The bytes between the elements do not belong to the array: their current values are preserved.
            let Range { start, end } = host.array.span();
            let before = host.array.address() - start;
            let memory = numpy.call_method1(intern!(py, "empty"), (end - start, intern!(py, "u1")))?;
            let copied = copy(HostArray::open_bytes(&memory)?.bytes_mut()?, from - before);
            let layout = PyDict::new(py);
            for name in [intern!(py, "shape"), intern!(py, "dtype"), intern!(py, "strides")] {
                layout.set_item(name, original.getattr(name)?)?;
            }
            layout.set_item("buffer", memory)?;
            layout.set_item("offset", before)?;
            let written = numpy.call_method("ndarray", (), Some(&layout))?;
            numpy.call_method1(intern!(py, "copyto"), (original, written))?;
            copied
        };
        errors::copied(py, copied, || devices::findings(py))
    }
}

/// A C-contiguous copy of a host array, and its object.
fn compact(py: Python<'_>, host: &HostArgument) -> PyResult<(HostArray, Py<PyAny>)> {
    let order = [("order", "C")].into_py_dict(py)?;
    let object = py.import("numpy")?.call_method("array", (&host.object,), Some(&order))?;
    let array = HostArray::open(&object)?.ok_or_else(|| errors::internal(py, "a copy of an array has no buffer"))?;
    Ok((array, object.unbind()))
}

/// Writes the address and the strides of staged elements into an array's cells.
fn point(cells: &mut [u64], host: &HostArgument, address: u64, strides: &[isize]) {
    let ndim = host.array.shape().len();
    if let Some(cell) = cells.get_mut(host.cell) {
        *cell = address;
    }
    let own = cells.iter_mut().skip(host.cell + 1 + ndim);
    for (cell, stride) in own.zip(strides) {
        *cell = *stride as u64;
    }
}

/// Numba's warning, unless it was turned off.
fn warn_about_copies(py: Python<'_>) -> PyResult<()> {
    if !setting(py, "CUDA_WARN_ON_IMPLICIT_COPY")? {
        return Ok(());
    }
    errors::advise(py, "PerformanceWarning", "Host array used in CUDA kernel will incur copy overhead to/from device.")
}
