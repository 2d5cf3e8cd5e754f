//! Tensors of other libraries before a launch: host tensors that the kernel uses in place, and the streams with the
//! work on device tensors.
//!
//! Every thread of the process can access host tensors. Only the CPU device has them among its arguments.

use std::{any::Any, sync::Arc};

use pyo3::prelude::*;
use weft_artifact::Access;
use weft_runtime::{Executor, Stream};

use super::{
    overload::Resolved,
    staging::{LARGE, access, meet},
};
use crate::{args::Arguments, devices, errors};

/// Uses host tensors in place. A tensor that shares memory with a staged host array is copied with it. Large ones,
/// which may be at the end of a mapping, either have readable memory after them, which threads past the end may read
/// while the returned guards live, or are copied; for small ones the check would cost more than the launch.
pub(super) fn settle(py: Python<'_>, resolved: &Resolved, arguments: &mut Arguments) -> PyResult<Vec<Box<dyn Any>>> {
    let executor = &*resolved.overload.executor;
    let mut rooms = Vec::with_capacity(arguments.tensors.len());
    let mut at = 0;
    while let Some(tensor) = arguments.tensors.get(at) {
        let Access { reads, writes, .. } = access(resolved, tensor.place.param);
        let span = tensor.span(&arguments.cells);
        let shared = arguments.hosts.iter().any(|host| {
            let of_host = access(resolved, host.param);
            let is_written = writes && !tensor.place.array.readonly || of_host.writes && !host.array.is_read_only();
            is_written && host.shares_writes() && meet(&span, &host.array.span())
        });
        let is_large = !shared && (reads || writes) && span.end - span.start >= LARGE as u64;
        let room = if is_large { executor.read_in_place(&span) } else { None };
        if shared || is_large && room.is_none() {
            let tensor = arguments.tensors.swap_remove(at);
            arguments.copy_tensor(py, tensor)?;
            // It may share memory with those before.
            rooms.clear();
            at = 0;
        } else {
            rooms.extend(room);
            at += 1;
        }
    }
    Ok(rooms)
}

/// The stream of a launch for which none is given: that of other libraries, if all of its arrays are theirs and their
/// work is in one stream. Their later work then runs after the launch, and a captured stream captures the launch.
pub(super) fn followed(
    py: Python<'_>,
    resolved: &Resolved,
    arguments: &Arguments,
) -> PyResult<Option<Arc<dyn Stream>>> {
    let common = arguments.common_stream().filter(|_| resolved.overload.lent.is_empty());
    let Some(handle) = common else { return Ok(None) };
    if !devices::settings(py)?.use_producer_stream {
        return Ok(None);
    }
    let executor = &resolved.overload.executor;
    py.detach(|| executor.external_stream(handle)).map(Some).map_err(|error| errors::runtime(py, &error))
}

/// Orders a launch's stream after the current work of other streams. Handles are the driver's; that of the legacy
/// default stream is 0 or 1.
pub(super) fn wait_for_work(
    py: Python<'_>,
    streams: &[u64],
    stream: Option<&dyn Stream>,
    executor: &dyn Executor,
) -> PyResult<()> {
    let own = stream.map_or(0, Stream::handle);
    let mut others: Vec<u64> = streams.iter().copied().filter(|other| *other.max(&1) != own.max(1)).collect();
    others.sort_unstable();
    others.dedup();
    if others.is_empty() {
        return Ok(());
    }
    let wait = || -> Result<(), weft_runtime::Error> {
        for other in others {
            let event = executor.new_event(false)?;
            let other = if other > 1 { Some(executor.external_stream(other)?) } else { None };
            executor.record(&*event, other.as_deref())?;
            executor.wait_event(stream, &*event)?;
        }
        Ok(())
    };
    py.detach(wait).map_err(|error| errors::runtime(py, &error))
}
