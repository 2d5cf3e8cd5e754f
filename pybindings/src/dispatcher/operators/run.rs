//! One call of an operator: values to cells, the launch rule, the launch.

use std::{
    any::Any,
    cell::Cell,
    sync::{Arc, LazyLock, PoisonError, RwLock},
};

use weft_artifact::{
    ALIGNED, ArrayType, Layout, MAX_NDIM, Number,
    rules::{LaunchSize, RuleArgs},
};
use weft_compiler::request::Derivative;
use weft_ffi::{Call, Device, Role, Tensor, Value};
use weft_runtime::{Error, Executor, LaunchConfig, LoadedKernel, Stream};

use super::{Inner, Shapes, kernels::device};
use crate::{
    args::{Arguments, InPlace},
    arrays::strides,
    devices,
    dispatcher::{
        launch::{make_slots, settle_cells},
        overload::Resolved,
        staging::LARGE,
        variants::Kind,
    },
    errors,
    types::key,
};

/// Memory that calls use again and again.
#[derive(Default)]
pub(super) struct Scratch {
    pub(super) arguments: Arguments,
    slots: Vec<u64>,
}

impl Scratch {
    /// That of this thread; a call inside of a call has its own.
    pub(super) fn take() -> Box<Self> {
        SCRATCH.take().unwrap_or_default()
    }

    /// Keeps the memory for this thread's next call.
    pub(super) fn give_back(mut self: Box<Self>) {
        self.arguments.clear();
        SCRATCH.set(Some(self));
    }
}

thread_local! {
    static SCRATCH: Cell<Option<Box<Scratch>>> = const { Cell::new(None) };
}

/// The streams of other libraries by GPU and handle.
type Streams = Vec<(u32, u64, Arc<dyn Stream>)>;
static STREAMS: LazyLock<RwLock<Streams>> = LazyLock::new(RwLock::default);

/// The most streams that are remembered.
const MOST_STREAMS: usize = 64;

/// The values of a call for rules.
pub(super) struct RuleValues<'a>(pub(super) &'a [Value<'a>]);

impl RuleArgs for RuleValues<'_> {
    fn shape(&self, param: usize) -> Option<&[i64]> {
        match self.0.get(param)? {
            Value::Tensor(tensor) => Some(tensor.shape),
            Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Missing => None,
        }
    }

    fn integer(&self, param: usize) -> Option<i64> {
        match self.0.get(param)? {
            Value::Int(value) => Some(*value),
            Value::Bool(value) => Some((*value).into()),
            Value::Tensor(_) | Value::Float(_) | Value::Missing => None,
        }
    }
}

/// Values for arrays that do not exist: disjoint and aligned, as most are.
pub(super) fn describe<'a>(shapes: &'a Shapes, numbers: &[Value<'a>]) -> Vec<Value<'a>> {
    let mut address = 1 << 20;
    let one = |(shape, number): (&'a Option<(Number, Vec<i64>)>, &Value<'a>)| match shape {
        None => *number,
        Some((number, shape)) => {
            let tensor = Tensor { address, shape, strides: None, number: *number };
            let bytes = shape.iter().product::<i64>().max(1) as u64 * number.row().size;
            address += (bytes / ALIGNED + 1) * ALIGNED;
            Value::Tensor(tensor)
        }
    };
    shapes.iter().zip(numbers).map(one).collect()
}

/// Whether elements of an array share memory, so that a kernel must not write it.
pub(super) fn overlaps(place: &InPlace, cells: &[u64]) -> bool {
    place.array.layout == Layout::Any && place.overlaps(cells)
}

/// A kernel that is ready, and its loaded code.
type Ready = (Arc<Resolved>, Arc<dyn LoadedKernel>);

impl Inner {
    /// Launches the kernel; nothing for a grid without blocks.
    pub(super) fn run(&self, call: &Call<'_>) -> Result<(), String> {
        let mut scratch = Scratch::take();
        let done = self.run_with(call, &mut scratch);
        scratch.give_back();
        done
    }

    fn run_with(&self, call: &Call<'_>, scratch: &mut Scratch) -> Result<(), String> {
        let Some(config) = self.config(&RuleValues(call.values))? else { return Ok(()) };
        if self.has_numbers_in_memory(call.values) {
            return self.with_numbers_in_memory(call, &config, scratch);
        }
        self.run_configured(call, &config, scratch)
    }

    /// Launches the kernel with a configuration.
    pub(super) fn run_configured(
        &self,
        call: &Call<'_>,
        config: &LaunchConfig,
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        self.read(call.values, &mut scratch.arguments)?;
        self.start(call.device, call.stream, config, scratch)
    }

    /// Launches the kernel with arguments that were read, in the stream with a handle.
    pub(super) fn start(
        &self,
        place: Device,
        stream: u64,
        config: &LaunchConfig,
        scratch: &mut Scratch,
    ) -> Result<(), String> {
        let Scratch { arguments, slots } = scratch;
        let (kernel, loaded) = self.ready(place, arguments, config)?;
        make_slots(&kernel, arguments, slots);
        let executor = &*kernel.overload.executor;
        let stream = self.stream(place, stream, executor)?;
        let stream = stream.as_deref();
        let _tails = readable_tails(place, executor, arguments);
        let launched = loaded.launch(config, stream, slots);
        if launched.is_ok() && !kernel.overload.lent.is_empty() {
            let lent: Vec<_> = kernel.overload.lent.iter().map(|(_, buffer)| Arc::clone(buffer)).collect();
            executor.note_use(&lent, stream);
        }
        let launched = match place {
            // A kernel's exception is the call's.
            Device::Host => launched.and_then(|()| executor.report_faults(None)),
            Device::Gpu(_) => launched,
        };
        launched.or_else(|error| self.failed(error))
    }

    /// The bytes of scratch memory of all threads of a launch, from the counts of bytes of a thread.
    pub(super) fn scratch_bytes(&self, call: &Call<'_>, counts: u64, length: u64) -> Result<u64, String> {
        let Some(config) = self.config(&RuleValues(call.values))? else { return Ok(0) };
        let threads: u64 = config.grid.iter().chain(&config.block).map(|extent| u64::from(*extent)).product();
        let executor = self.with_python(|py| Ok(device(py, call.device)?.1))?;
        let stream = self.stream(call.device, call.stream, &*executor)?;
        let mut read = vec![0; length as usize * size_of::<u64>()];
        executor
            .copy_to_host(&mut read, counts, stream.as_deref())
            .map_err(|error| format!("{}: {}", self.name, error.message))?;
        let (counts, _) = read.as_chunks::<8>();
        let most = counts.iter().map(|bytes| u64::from_ne_bytes(*bytes)).max().unwrap_or_default();
        most.checked_mul(threads).ok_or_else(|| format!("{}: the scratch memory is too large", self.name))
    }

    /// Compiles and loads the kernel of a call that is not made.
    pub(super) fn prepare(&self, values: &[Value<'_>], place: Device) -> Result<(), String> {
        let mut arguments = Arguments::default();
        let Some(config) = self.config(&RuleValues(values))? else { return Ok(()) };
        self.read(values, &mut arguments)?;
        self.ready(place, &mut arguments, &config).map(drop)
    }

    /// The configuration of a launch; `None` for a grid without blocks.
    pub(super) fn config(&self, values: &impl RuleArgs) -> Result<Option<LaunchConfig>, String> {
        let size = self.launch.evaluate(values).map_err(|error| self.refusal("the launch rule", &error))?;
        if size.is_empty() {
            return Ok(None);
        }
        let LaunchSize { grid, block, mut shared_bytes } = size;
        let mut derivative = self.dispatcher.get().jit.code.derivative.as_ref();
        while let Some(Derivative { inner, .. }) = derivative {
            shared_bytes = Derivative::shared_bytes(shared_bytes)
                .ok_or_else(|| format!("{shared_bytes} bytes of shared memory are too many for an adjoint kernel"))?;
            derivative = inner.as_deref();
        }
        Ok(Some(LaunchConfig { grid, block, shared_bytes, cluster: LaunchConfig::ALONE }))
    }

    /// The key and the cells of a call's values.
    pub(super) fn read(&self, values: &[Value<'_>], arguments: &mut Arguments) -> Result<(), String> {
        arguments.clear();
        for (index, value) in values.iter().enumerate() {
            let number = match value {
                Value::Tensor(tensor) => {
                    self.read_tensor(index, tensor, arguments)?;
                    continue;
                }
                Value::Int(value) => (Number::I64, *value as u64),
                Value::Float(value) => (Number::F64, value.to_bits()),
                Value::Bool(value) => (Number::BOOL, u64::from(*value)),
                Value::Missing => return Err(format!("{}: {} is missing", self.name, self.shown(index))),
            };
            arguments.key.push(key::value(number.0.into()));
            arguments.cells.extend([number.1, 0]);
        }
        Ok(())
    }

    fn shown(&self, param: usize) -> String {
        self.names.get(param).map_or_else(String::new, |name| format!("`{name}`"))
    }

    fn read_tensor(&self, index: usize, tensor: &Tensor<'_>, arguments: &mut Arguments) -> Result<(), String> {
        let Tensor { address, shape, strides: steps, number } = *tensor;
        let dtype = number.into();
        let item = number.row().size;
        if shape.len() > MAX_NDIM {
            return Err(format!(
                "{}: {} has {} dimensions; kernels take at most {MAX_NDIM}: combine some with `reshape`",
                self.name,
                self.shown(index),
                shape.len()
            ));
        }
        let cell = arguments.cells.len();
        arguments.cells.push(address);
        arguments.cells.extend(shape.iter().map(|extent| *extent as u64));
        match steps {
            Some(steps) => arguments.cells.extend(steps.iter().map(|step| step.wrapping_mul(item as i64) as u64)),
            None => strides::push_c(&mut arguments.cells, cell + 1, item),
        }
        let (extents, steps) = arguments.cells.get(cell + 1..).unwrap_or_default().split_at(shape.len());
        let examined = strides::examine(address, extents, steps, dtype);
        let (layout, is_aligned) = examined.map_err(|_| {
            format!("{}: {} has a dimension that is too long for a kernel", self.name, self.shown(index))
        })?;
        if !is_aligned {
            return Err(format!(
                "{}: the elements of {} are not aligned to their size: pass a copy, `{}.clone()`",
                self.name,
                self.shown(index),
                self.names.get(index).map_or("", String::as_str)
            ));
        }
        let array = ArrayType { dtype, ndim: shape.len() as u8, layout, readonly: false };
        let place = InPlace { param: index, cell, array };
        let is_read = self.params.get(index).is_some_and(|param| param.role == Role::Read);
        if !is_read && overlaps(&place, &arguments.cells) {
            return Err(format!(
                "{}: elements of {} share memory (an expanded array?), but the kernel writes them: pass a copy, \
                 `{}.clone()`",
                self.name,
                self.shown(index),
                self.names.get(index).map_or("", String::as_str)
            ));
        }
        arguments.key.push(key::array(array));
        arguments.in_place.push(place);
        Ok(())
    }

    /// The kernel for a launch, and its code; the cells are converted for it.
    fn ready(&self, place: Device, arguments: &mut Arguments, config: &LaunchConfig) -> Result<Ready, String> {
        let mut kernel = self.kernel(place, arguments, config)?;
        settle_cells(&kernel, arguments);
        if let Some(assumptions) = kernel.assumptions_for(config, arguments) {
            let kind = Kind::Assuming(assumptions);
            kernel = match kernel.known_variant(kind) {
                Some(known) => known,
                None => self.with_python(|py| {
                    let _aside = kernel.overload.executor.beside_captures();
                    kernel.variant(self.dispatcher.bind(py), kind)
                })?,
            };
        }
        let loaded = match kernel.overload.made() {
            Some(code) => Arc::clone(&code.loaded),
            None => self.with_python(|py| kernel.overload.loaded(py).cloned())?,
        };
        Ok((kernel, loaded))
    }

    /// The stream of a call; `None` is the default one.
    fn stream(&self, place: Device, handle: u64, executor: &dyn Executor) -> Result<Option<Arc<dyn Stream>>, String> {
        let Device::Gpu(gpu) = place else { return Ok(None) };
        if handle == 0 {
            return Ok(None);
        }
        let fits = |(of, known, _): &&(u32, u64, Arc<dyn Stream>)| (*of, *known) == (gpu, handle);
        let known = STREAMS.read().unwrap_or_else(PoisonError::into_inner).iter().find(fits).cloned();
        if let Some((_, _, stream)) = known {
            return Ok(Some(stream));
        }
        let stream = executor.external_stream(handle).map_err(|error| format!("{}: {}", self.name, error.message))?;
        let mut streams = STREAMS.write().unwrap_or_else(PoisonError::into_inner);
        if streams.len() >= MOST_STREAMS {
            streams.clear();
        }
        streams.push((gpu, handle, Arc::clone(&stream)));
        Ok(Some(stream))
    }

    /// The result of a launch that has failed, or that the sanitizer has findings about.
    #[cold]
    fn failed(&self, error: Error) -> Result<(), String> {
        self.with_python(|py| errors::launched(py, Err(error), || devices::findings(py)))
    }
}

/// While the result lives, threads without a guard may read past the end of large arrays of the host.
fn readable_tails(place: Device, executor: &dyn Executor, arguments: &Arguments) -> Vec<Box<dyn Any>> {
    if place != Device::Host {
        return Vec::new();
    }
    let spans = arguments.in_place.iter().map(|array| array.span(&arguments.cells));
    spans
        .filter(|span| span.end - span.start >= LARGE as u64)
        .filter_map(|span| executor.read_in_place(&span))
        .collect()
}
