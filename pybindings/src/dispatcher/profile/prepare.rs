//! Prepares a launch for the simulator: the kernel's PTX, its parameters, and copies of the arrays.

use std::{ops::Range, sync::Arc};

use pyo3::prelude::*;
use weft_artifact::{ArgType, Assumptions, BoxMap, BoxType, MAP_BYTES, Slot};
use weft_compiler::{
    request::{JitOptions, Target},
    target::needs::HIGHEST_ISA,
};
use weft_runtime::LaunchConfig;
use weft_simulator::Launch;

use crate::{
    args::{Arguments, InPlace, convert::Cast},
    capture::Capturer,
    dispatcher::{
        Dispatcher,
        launch::{make_slots, settle_cells},
        overload::{Found, Overload, Resolved},
        staging::{self, Staging},
        tensors,
        variants::coarsened::FactorChoice,
    },
    engine::Definition,
    errors,
    types::key,
};

/// A launch that the simulator can run.
pub(super) struct Prepared {
    /// The kernel, compiled for the GPU.
    pub(super) resolved: Arc<Resolved>,
    pub(super) ptx: String,
    pub(super) launch: Launch,
    pub(super) arrays: Vec<Array>,
}

impl Prepared {
    /// Compiles a kernel for a launch with arguments that were read, and copies its arrays. Host arrays are staged, as
    /// for a launch.
    pub(super) fn new(
        dispatcher: &Bound<'_, Dispatcher>,
        config: &LaunchConfig,
        arguments: &mut Arguments,
        target: &Target,
    ) -> PyResult<(Self, Staging)> {
        let py = dispatcher.py();
        let mut kernel = Variant::new(dispatcher, arguments, target)?;
        let mut resolved = kernel.compile(dispatcher, arguments)?;
        staging::check_elements(dispatcher.get(), &resolved, arguments)?;
        let mut staging = Staging::holding(tensors::settle(py, &resolved, arguments)?);
        if !arguments.hosts.is_empty() {
            let plan = staging::plan(dispatcher, &resolved, arguments)?.copying();
            let executor = Arc::clone(&resolved.overload.executor);
            plan.stage(dispatcher, &*executor, None, arguments, false, &mut staging)?;
        }
        let arrays = arrays(&resolved, arguments).map_err(|error| errors::runtime(py, &error))?;
        settle_cells(&resolved, arguments);
        if let Some(assumptions) = resolved.assumptions_for(config, arguments) {
            kernel.jit.code.assumptions = assumptions;
            resolved = kernel.compile(dispatcher, arguments)?;
        }
        let mut slots = Vec::new();
        make_slots(&resolved, arguments, &mut slots);
        let launch = Launch {
            params: params(&resolved, &slots),
            dynamic_shared: config.shared_bytes,
            cluster: config.cluster,
            ..Launch::new(config.grid, config.block)
        };
        let ptx = String::from_utf8_lossy(resolved.overload.code_bytes().unwrap_or_default()).into_owned();
        Ok((Self { resolved, ptx, launch, arrays }, staging))
    }
}

/// A kernel for a launch and a target, before it is compiled.
struct Variant {
    definition: Definition,
    types: Vec<ArgType>,
    casts: Vec<Cast>,
    jit: JitOptions,
    most: Assumptions,
    target: Target,
    kept: Vec<Py<PyAny>>,
}

impl Variant {
    fn new(dispatcher: &Bound<'_, Dispatcher>, arguments: &Arguments, target: &Target) -> PyResult<Self> {
        let (py, this) = (dispatcher.py(), dispatcher.get());
        let given = key::decode(&arguments.key);
        this.check_count(given.len())?;
        if this.jit.device {
            return Err(this.no_kernel());
        }
        let (types, casts) = this.types_for(given.clone())?;
        let mut capturer = Capturer::new(py);
        let function = capturer.dispatcher(dispatcher)?;
        if !capturer.links.is_empty() {
            let message =
                "a kernel with linked code cannot be simulated: the simulator runs only PTX that weft generates";
            return Err(errors::launch(py, message));
        }
        let (mut jit, wanted) = this.plain(py, &*crate::devices::current(py)?)?;
        if let FactorChoice::Factors(factors) = wanted {
            jit.code.coarsen = factors;
        }
        jit.code.choose = false;
        jit.code.lineinfo = true;
        // The simulator does not report the exceptions of kernels: a thread that raises one ends.
        (jit.code.debug, jit.code.opt, jit.code.exceptions) = (false, true, false);
        // The code is for the simulator alone: its SM has a suffix if the kernel needs one, as for a launch.
        jit.code.driver_isa = Some(HIGHEST_ISA);
        let most = jit.code.assumptions;
        let nonneg = weft_artifact::are_nonneg(&given, &arguments.cells);
        jit.code.assumptions = Assumptions::likeliest(arguments.likely(nonneg)).and(most);
        let target = target.clone();
        Ok(Self { definition: Definition::of(function), types, casts, jit, most, target, kept: capturer.kept })
    }

    /// Compiles the kernel, and maps the arguments to its parameters.
    fn compile(&mut self, dispatcher: &Bound<'_, Dispatcher>, arguments: &Arguments) -> PyResult<Arc<Resolved>> {
        let py = dispatcher.py();
        let kept = self.kept.iter().map(|array| array.clone_ref(py)).collect();
        let found = Found { kept, links: Vec::new() };
        let mut overload =
            Overload::compile_for(dispatcher, &self.definition, &self.types, (&self.jit, &self.target), found)?;
        overload.most = self.most;
        let casts = self.casts.clone();
        Ok(Arc::new(Arc::new(overload).resolve(py, &arguments.key, casts)?))
    }
}

/// Memory after an array up to a multiple of this can be accessed, as on a GPU, where allocations are rounded up.
const GRANULE: u64 = 512;

/// An array that the launch may access.
pub(super) struct Array {
    pub(super) name: String,
    pub(super) span: Range<u64>,
    /// A copy of its bytes, and zeros after its end where a launch can access them.
    pub(super) bytes: Vec<u8>,
}

/// The arrays among the arguments, those of tensor maps, and those whose addresses are in the code, by address. Arrays that share memory are
/// one.
fn arrays(resolved: &Resolved, arguments: &Arguments) -> Result<Vec<Array>, weft_runtime::Error> {
    let kernel = &resolved.overload.kernel;
    let name = |param: usize| kernel.params.get(param).map_or_else(String::new, |param| param.name.clone());
    let cells = arguments.cells.as_slice();
    let mut found: Vec<(String, Range<u64>)> = Vec::new();
    for place in arguments.in_place.iter().chain(arguments.tensors.iter().map(|tensor| &tensor.place)) {
        found.push((name(place.param), place.span(cells)));
    }
    for host in &arguments.hosts {
        let place = InPlace { param: host.param, cell: host.cell, array: host.array.array_type() };
        found.push((name(place.param), place.span(cells)));
    }
    for (_, buffer) in &resolved.overload.lent {
        let span = buffer.address()..buffer.address() + buffer.len();
        found.push(("captured array".to_owned(), span));
    }
    let executor = &resolved.overload.executor;
    let is_map = |param: &str| kernel.params.iter().any(|known| known.name == param && has_map(&known.ty));
    let maps: Vec<Range<u64>> = found
        .iter()
        .filter(|(name, span)| span.end - span.start == MAP_BYTES as u64 && is_map(name))
        .map(|(_, span)| span.clone())
        .collect();
    for span in maps {
        let mut bytes = [0; MAP_BYTES];
        executor.copy_to_host(&mut bytes, span.start, None)?;
        let words = std::array::from_fn(|word| u64::from_le_bytes(std::array::from_fn(|byte| bytes[8 * word + byte])));
        let map = BoxMap::read(&words);
        let steps = map.extents.iter().zip(&map.strides).take(map.dims);
        let last = steps.fold(map.data, |last, (extent, stride)| last + extent.saturating_sub(1) * stride);
        if let Some((name, _)) = found.iter_mut().find(|(_, known)| *known == span) {
            let array = std::mem::replace(name, format!("map {name}"));
            found.push((array, map.data..last + map.element as u64));
        }
    }
    found.retain(|(_, span)| !span.is_empty());
    found.sort_by_key(|(_, span)| span.start);
    let mut merged: Vec<(String, Range<u64>)> = Vec::new();
    for (name, span) in found {
        match merged.last_mut() {
            Some((names, last)) if span.start < last.end => {
                last.end = last.end.max(span.end);
                if !names.split(", ").any(|known| known == name) {
                    *names = format!("{names}, {name}");
                }
            }
            Some(_) | None => merged.push((name, span)),
        }
    }
    let starts: Vec<u64> = merged.iter().skip(1).map(|(_, span)| span.start).chain([u64::MAX]).collect();
    let copy = |((name, span), next): ((String, Range<u64>), u64)| {
        let end = span.end.next_multiple_of(GRANULE).min(next);
        let mut bytes = vec![0; (end - span.start) as usize];
        executor.copy_to_host(&mut bytes[..(span.end - span.start) as usize], span.start, None)?;
        Ok(Array { name, span, bytes })
    };
    merged.into_iter().zip(starts).map(copy).collect()
}

/// Whether an argument of a type is a tensor map, or has one.
fn has_map(ty: &ArgType) -> bool {
    match ty {
        ArgType::Struct(class, fields) => BoxType::of_class(*class).is_some() || fields.iter().any(has_map),
        ArgType::Tuple(elements) => elements.iter().any(has_map),
        ArgType::Optional(ty) => has_map(ty),
        ArgType::Value(_)
        | ArgType::Array(_)
        | ArgType::None
        | ArgType::Enum(..)
        | ArgType::Record(_)
        | ArgType::Class(_)
        | ArgType::Pointer(_) => false,
    }
}

/// The bytes of the kernel's parameters.
fn params(resolved: &Resolved, slots: &[u64]) -> Vec<Vec<u8>> {
    let kernel = &resolved.overload.kernel;
    let bytes = |(Slot { ty, .. }, first): (&Slot, usize)| {
        let cells = slots.get(first..first + ty.cells()).unwrap_or_default();
        let bytes: Vec<u8> = cells.iter().flat_map(|cell| cell.to_le_bytes()).collect();
        bytes.get(..ty.size_bytes() as usize).unwrap_or_default().to_vec()
    };
    kernel.slots.iter().zip(kernel.first_cells()).map(bytes).collect()
}
