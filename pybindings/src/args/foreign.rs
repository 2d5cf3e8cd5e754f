//! Arguments that are arrays of other libraries: by the C functions of their type, by `__dlpack__`, by
//! `__array_interface__`.
//!
//! One that the device reaches is used where it is, on the CPU also one of the host's memory. On a GPU that is an array of the
//! host, which is copied as NumPy's are.

use std::ops::Range;

use pyo3::prelude::*;
use weft_artifact::{DType, Layout, MAX_NDIM};

use super::{Arguments, HostArgument, InPlace, on_another_device};
use crate::{
    arrays::{
        cupy::Cupy,
        dlpack::{
            TensorMemory,
            exchange::Exchange,
            import::{self, Consumer, Keeper, Managed, Seen, Tensor},
        },
        host_array::HostArray,
        interface::Interface,
        strides,
    },
    devices, errors,
    types::key,
};

/// A tensor of the host's memory that is used where it is.
pub(crate) struct HostTensor {
    pub(crate) place: InPlace,
    object: Py<PyAny>,
    seen: Seen,
    managed: Option<Managed>,
}

impl HostTensor {
    /// The addresses that its elements lie between.
    pub(crate) fn span(&self, cells: &[u64]) -> Range<u64> {
        self.place.span(cells)
    }
}

impl Arguments {
    /// A tensor of a type that has C functions for them.
    pub(super) fn push_exchanged(&mut self, arg: &Bound<'_, PyAny>, exchange: Exchange) -> PyResult<()> {
        let first = self.cells.len();
        let (seen, managed) = exchange.read(arg, MAX_NDIM, &mut self.cells)?;
        if exchange.is_for_itself(arg, seen.array.dtype, self.cells.get(first..).unwrap_or_default())? {
            self.cells.truncate(first);
            return self.push_dlpack(arg, &arg.getattr(intern!(arg.py(), "__dlpack__"))?);
        }
        match exchange.producer_query(seen.place) {
            None => self.is_ordered |= seen.place.has_streams(),
            producer_query if producer_query == self.last_query => {}
            Some(producer_query) => {
                self.work_streams.push(producer_query.answer(arg.py())?);
                self.last_query = Some(producer_query);
            }
        }
        self.push_seen(arg, first, seen, managed)
    }

    /// An object with `__dlpack__`, which this is.
    pub(super) fn push_dlpack(&mut self, arg: &Bound<'_, PyAny>, method: &Bound<'_, PyAny>) -> PyResult<()> {
        let first = self.cells.len();
        let consumer = Consumer { stream: self.stream };
        let (seen, managed) = import::export(arg, method, consumer, MAX_NDIM, &mut self.cells)?;
        self.is_ordered |= seen.place.has_streams();
        self.push_seen(arg, first, seen, Some(managed))
    }

    /// An array whose cells are there from `first` on.
    fn push_seen(
        &mut self,
        arg: &Bound<'_, PyAny>,
        first: usize,
        mut seen: Seen,
        managed: Option<Managed>,
    ) -> PyResult<()> {
        let py = arg.py();
        // A kernel's writes to a copy would be lost.
        seen.array.readonly |= seen.is_copied;
        let on_cpu = !devices::is_cuda(py)?;
        let is_of_host = match seen.place {
            TensorMemory::Host => true,
            TensorMemory::PageLocked => on_cpu,
            TensorMemory::Gpu(_) | TensorMemory::Managed | TensorMemory::Elsewhere(_) => false,
        };
        // A copy hint requests the copies.
        if is_of_host && (!on_cpu || self.hint.is_some()) {
            let cells = self.cells.split_off(first);
            return self.push_host_copy(arg, &seen, &cells, managed);
        }
        let address = self.cells.get(first).copied().unwrap_or_default();
        check_location(arg, seen.place, address, on_cpu)?;
        if !seen.is_aligned {
            return Err(strides::misaligned(seen.array.dtype));
        }
        let place = InPlace { param: self.param, cell: first, array: seen.array };
        self.key.push(key::array(seen.array));
        if is_of_host {
            self.tensors.push(HostTensor { place, object: arg.clone().unbind(), seen, managed });
        } else {
            self.push_foreign(place);
            self.managed.extend(managed);
        }
        Ok(())
    }

    /// A tensor of the host's memory, as an array of NumPy's over the same memory.
    fn push_host_copy(
        &mut self,
        arg: &Bound<'_, PyAny>,
        seen: &Seen,
        cells: &[u64],
        managed: Option<Managed>,
    ) -> PyResult<()> {
        let (array, object) = over(arg, seen, cells, managed)?;
        self.push_opened(array, object);
        Ok(())
    }

    /// Has a tensor that is used where it is be copied for the launch, as NumPy's arrays are; its type is as before.
    pub(crate) fn copy_tensor(&mut self, py: Python<'_>, tensor: HostTensor) -> PyResult<()> {
        let HostTensor { place: InPlace { param, cell, array, .. }, object, seen, managed } = tensor;
        let end = cell + 1 + 2 * usize::from(array.ndim);
        let cells = self.cells.get(cell..end).unwrap_or_default();
        let (array, object) = over(object.bind(py), &seen, cells, managed)?;
        self.hosts.push(HostArgument { array, object, cell, param, is_array: true, hint: None });
        Ok(())
    }

    /// An array of CuPy's, where it is.
    pub(super) fn push_cupys(&mut self, arg: &Bound<'_, PyAny>, cupy: &Cupy) -> PyResult<()> {
        check_shared(arg)?;
        let (py, first) = (arg.py(), self.cells.len());
        if let Some(foreign) = cupy.read(arg, &mut self.cells) {
            // One stream is current for all arrays of a launch.
            let stream = if self.has_cupys { None } else { cupy.stream(py) };
            if self.has_cupys || stream.is_some() {
                self.has_cupys = true;
                self.producers.extend(stream);
                return self.push_in_place(py, first, &foreign);
            }
            self.cells.truncate(first);
        }
        self.push_interface(arg, &arg.getattr(intern!(py, "__cuda_array_interface__"))?)
    }

    /// An array of another library, by the CUDA array interface: no copy.
    pub(super) fn push_interface(&mut self, arg: &Bound<'_, PyAny>, interface: &Bound<'_, PyAny>) -> PyResult<()> {
        check_shared(arg)?;
        let first = self.cells.len();
        let foreign = Interface::read(interface, Some(arg), MAX_NDIM, &mut self.cells)?;
        // The order of work in an unnamed stream is unknown.
        self.is_ordered |= foreign.stream.is_none();
        self.producers.extend(foreign.stream);
        self.push_in_place(arg.py(), first, &foreign)
    }

    /// An array of the device's memory whose cells are there from `first` on.
    fn push_in_place(&mut self, py: Python<'_>, first: usize, foreign: &Interface) -> PyResult<()> {
        check_reach(py, self.cells.get(first).copied().unwrap_or_default())?;
        if !foreign.is_aligned {
            return Err(strides::misaligned(foreign.array.dtype));
        }
        self.push_foreign(InPlace { param: self.param, cell: first, array: foreign.array });
        self.key.push(key::array(foreign.array));
        Ok(())
    }

    /// An array that the kernel reaches in place. Only one with gaps can have elements that share memory; arrays of weft's own
    /// have none.
    fn push_foreign(&mut self, place: InPlace) {
        if place.array.layout == Layout::Any && !place.array.readonly && place.overlaps(&self.cells) {
            self.overlapping.push(place.param);
        }
        self.in_place.push(place);
    }

    /// An object with NumPy's array interface: `asarray` makes an array of its memory.
    pub(super) fn push_array_interface(&mut self, arg: &Bound<'_, PyAny>) -> PyResult<()> {
        let numpy = arg.py().import(intern!(arg.py(), "numpy"))?;
        self.push_host_array(&numpy.call_method1(intern!(arg.py(), "asarray"), (arg,))?)
    }
}

/// An array of NumPy's over a tensor's memory, which it keeps.
fn over(
    arg: &Bound<'_, PyAny>,
    seen: &Seen,
    cells: &[u64],
    managed: Option<Managed>,
) -> PyResult<(HostArray, Py<PyAny>)> {
    let py = arg.py();
    let keeper = managed.map_or_else(|| Keeper::Object(arg.clone().unbind()), Keeper::Structure);
    let tensor = Bound::new(py, Tensor::new(seen, cells, keeper))?;
    let object = py.import(intern!(py, "numpy"))?.call_method1(intern!(py, "asarray"), (tensor,))?;
    let mut array = HostArray::open(&object)?.ok_or_else(|| errors::internal(py, "a NumPy array has no buffer"))?;
    // NumPy has none: there the elements are numbers of as many bits.
    if seen.array.dtype == DType::BF16 || seen.array.dtype.float8().is_some() {
        array.dtype = seen.array.dtype;
    }
    Ok((array, object.unbind()))
}

/// Refuses arrays of the CUDA array interface where kernels run on the CPU beside a GPU.
fn check_shared(arg: &Bound<'_, PyAny>) -> PyResult<()> {
    if devices::shares_arrays(arg.py())? {
        return Ok(());
    }
    let class = arg.get_type().fully_qualified_name()?;
    Err(errors::launch(arg.py(), &format!("the {class} is in GPU memory, but kernels run on the CPU")))
}

/// Refuses memory that kernels do not reach.
fn check_location(arg: &Bound<'_, PyAny>, place: TensorMemory, address: u64, on_cpu: bool) -> PyResult<()> {
    let py = arg.py();
    let class = || arg.get_type().fully_qualified_name();
    match place {
        TensorMemory::Gpu(id) if !on_cpu => {
            let there = u32::try_from(id).ok().filter(|id| *id != devices::current_id());
            match there {
                Some(there) => Err(on_another_device(py, there)),
                None => check_reach(py, address),
            }
        }
        TensorMemory::Managed | TensorMemory::PageLocked if !on_cpu => Ok(()),
        TensorMemory::Host | TensorMemory::PageLocked => Ok(()),
        TensorMemory::Gpu(_) | TensorMemory::Managed => {
            Err(errors::launch(py, &format!("the {} is in GPU memory, but kernels run on the CPU", class()?)))
        }
        TensorMemory::Elsewhere(kind) => Err(errors::launch(
            py,
            &format!("the {} is in memory of DLPack's device type {kind}, which kernels cannot access", class()?),
        )),
    }
}

fn check_reach(py: Python<'_>, address: u64) -> PyResult<()> {
    devices::out_of_reach(py, address)?.map_or(Ok(()), |there| Err(on_another_device(py, there)))
}
