//! Stages host arrays: copies them to memory that the kernel can access, and back.
//!
//! Each array has a compact buffer of its own, unless the device uses it in place, or small arrays share a buffer to be
//! copied together. If arrays of one launch share elements and some of these are written, they have one common buffer,
//! a copy of the memory range that contains them, or all are used in place: a write through one is visible through the
//! others, and no write is lost when copying back.

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

/// A memory range that is copied as a whole keeps its address modulo this, so that its elements keep their alignment.
const ALIGN: u64 = 64;
/// How much work it may be to find out whether two arrays share elements, as `numpy.shares_memory` counts it: rows, columns
/// and fields take a few steps.
const MOST_WORK: u32 = 10_000;

/// The least size in bytes at which reading an array in place is tried.
pub(super) const LARGE: usize = 256 << 10;
/// The same of one that the kernel writes: for the first of them the kernel is compiled once more.
const LARGE_WRITTEN: usize = 1 << 20;

/// The host arrays of a launch where the kernel finds them.
#[derive(Default)]
pub(super) struct Staging {
    pub(super) staged: Vec<Staged>,
    /// Those that it writes in place.
    pub(super) written: Vec<Written>,
    /// What lets it read past the end of tensors of other libraries.
    _rooms: Rooms,
}

impl Staging {
    /// Holds what lets a kernel read past the end of tensors.
    pub(super) fn holding(rooms: Rooms) -> Self {
        Self { _rooms: rooms, ..Self::default() }
    }
}

/// Where the kernel finds elements of host arrays.
pub(super) enum Staged {
    /// In device memory.
    Copied {
        /// The memory.
        buffer: Arc<dyn Buffer>,
        /// The arrays with elements in it.
        members: Vec<Member>,
    },
    /// In device memory, small ones side by side.
    Packed {
        /// The memory.
        buffer: Arc<dyn Buffer>,
        /// The arrays with elements in it.
        members: Vec<Member>,
    },
    /// Where they are.
    InPlace {
        /// Guards that let the kernel read past their ends.
        _rooms: Rooms,
    },
}

/// A host array during the launch.
pub(super) struct Member {
    /// Index into the launch's host arrays.
    host: usize,
    /// Where its first element is in the buffer.
    offset: u64,
    /// A compact copy of the elements in host memory, and its object.
    copy: Option<(HostArray, Py<PyAny>)>,
    /// The kernel may have written it.
    copy_out: bool,
}

/// The requirements of a launch for a host array that its kernel uses.
#[expect(clippy::struct_excessive_bools, reason = "they are searched and tested separately")]
struct Need {
    /// Index into the launch's host arrays.
    host: usize,
    /// The kernel may write it.
    writes: bool,
    /// The kernel may not write it, whatever the array allows, and no copy was requested.
    is_only_read: bool,
    copy_in: bool,
    copy_out: bool,
    /// The address range of its elements; empty if it is a copy of its own in any case.
    span: Range<u64>,
}

/// The host arrays of a launch that its kernel uses: those that are copied together, or stay in place together.
pub(super) struct Plan(Vec<Vec<Need>>);

/// Finds out what a kernel needs of the host arrays of a launch.
///
/// # Errors
///
/// `ValueError` for arrays that it cannot have.
pub(super) fn plan(dispatcher: &Bound<'_, Dispatcher>, resolved: &Resolved, arguments: &Arguments) -> PyResult<Plan> {
    let needs = needs(dispatcher, resolved, &arguments.hosts)?;
    check_in_place(dispatcher.get(), resolved, arguments, &needs)?;
    Ok(Plan(groups(dispatcher.py(), &arguments.hosts, needs)?))
}

impl Plan {
    /// Whether a kernel that bounds-checks its stores would write some of the arrays in place.
    pub(super) fn is_written_in_place(&self, hosts: &[HostArgument]) -> bool {
        self.0.iter().any(|group| is_written_in_place(hosts, group))
    }

    /// Brings the host arrays to where the kernel reaches them, and puts their addresses into their cells. With
    /// `is_checked` the kernel bounds-checks its stores.
    pub(super) fn stage(
        self,
        dispatcher: &Bound<'_, Dispatcher>,
        executor: &dyn Executor,
        stream: Option<&dyn Stream>,
        arguments: &mut Arguments,
        is_checked: bool,
        staging: &mut Staging,
    ) -> PyResult<()> {
        let (py, Self(mut groups)) = (dispatcher.py(), self);
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
                Ok([need]) => match read_in_place(executor, hosts, &need) {
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

/// Refuses an array of another library in which elements share memory, if the kernel reaches it in place and may write it.
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
        // A kernel stores nothing to an array that is read-only, but code of which nothing is known counts as if it did.
        let writes = access.writes && !(host.is_array && host.array.is_read_only());
        let copy_out = writes && hint_out;
        if copy_out && host.array.overlaps() {
            return Err(overlapping(dispatcher.get(), host.param));
        }
        if !warned && host.hint.is_none() {
            warned = true;
            warn_about_copies(py)?;
        }
        // `cuda.In` requests a copy of its own that is not copied back.
        let span = if hint_out { host.array.span() } else { 0..0 };
        let is_only_read = !access.writes && host.hint.is_none();
        needs.push(Need { host: index, writes, is_only_read, copy_in, copy_out, span });
    }
    Ok(needs)
}

/// Refuses a host array, which is copied, that shares memory with an array which the kernel reaches in place.
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

/// Whether two spans of addresses have one in common.
pub(super) fn meet(one: &Range<u64>, other: &Range<u64>) -> bool {
    one.start.max(other.start) < one.end.min(other.end)
}

/// Those that are copied together: arrays that share elements of which some are written.
fn groups(py: Python<'_>, hosts: &[HostArgument], mut needs: Vec<Need>) -> PyResult<Vec<Vec<Need>>> {
    if needs.len() < 2 || needs.iter().all(|need| !need.writes) {
        return Ok(needs.into_iter().map(|need| vec![need]).collect());
    }
    needs.sort_by_key(|need| need.span.start);
    // The group of each, by the first of its members.
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

/// Whether two arrays have an element in common, or parts of one. Where that takes long to find out, they count as if.
fn share_elements(py: Python<'_>, one: Option<&HostArgument>, other: Option<&HostArgument>) -> PyResult<bool> {
    let (Some(one), Some(other)) = (one, other) else { return Ok(false) };
    let numpy = py.import(intern!(py, "numpy"))?;
    let array = |host: &HostArgument| numpy.call_method1(intern!(py, "asarray"), (&host.object,));
    let asked = numpy.call_method1(intern!(py, "shares_memory"), (array(one)?, array(other)?, MOST_WORK));
    match asked {
        Ok(shared) => shared.is_truthy(),
        // `numpy.exceptions.TooHardError`
        Err(error) if error.is_instance_of::<PyRuntimeError>(py) => Ok(true),
        Err(error) => Err(error),
    }
}

/// Whether arrays, of which the kernel writes a large one, can be used in place, as their cells already say, by a
/// kernel that bounds-checks its stores. An array with gaps contains bytes that are not its own, and a
/// [`CopyHint`](crate::args::CopyHint) requests a copy.
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

/// Uses a read-only array that shares no elements in place, as its cells already say.
fn read_in_place(executor: &dyn Executor, hosts: &[HostArgument], need: &Need) -> Option<Box<dyn Any>> {
    let HostArgument { array, is_array, .. } = hosts.get(need.host)?;
    let is_worth_it = *is_array && need.is_only_read && array.len_bytes() >= LARGE;
    (is_worth_it && array.is_aligned_at(array.address())).then(|| executor.read_in_place(&need.span)).flatten()
}

/// Small arrays without gaps that share nothing: in one buffer, for one copy there and one back. They are taken out of the
/// groups. `None` if there are no two of them, or if copies cost nothing but the bytes.
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

/// Arrays with one buffer, in which they lie as they do in the memory of the host.
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

/// `ValueError` for arrays that cannot be copied as they lie.
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
        // Most arrays have no gaps, and need nothing of NumPy's.
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
            // Bytes between the elements are not the kernel's: their current values are preserved.
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

/// Writes the address and the strides of where the elements are into an array's cells.
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
