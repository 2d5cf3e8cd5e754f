//! Which kernel a launch runs: the one for its types on the current device, found or compiled.
//!
//! Nothing that can panic or run Python happens under the lock of the state.

use std::{
    collections::{HashMap, HashSet},
    sync::{Arc, PoisonError},
};

use pyo3::{
    exceptions::{PyRuntimeError, PyTypeError},
    prelude::*,
    types::PyTuple,
};
use weft_artifact::{ArgType, Assumptions, Choice};
use weft_compiler::request::FunctionDef;

use super::{
    Dispatcher,
    around::{self, UnderWay},
    launcher::Launcher,
    overload::{Found, Overload, Resolved},
    variants::{assumptions, coarsened::FactorChoice, measured::Effort},
};
use crate::{
    args::{Arguments, convert},
    capture::{Capturer, Parsed},
    devices,
    engine::{self, Definition, timing::Timing},
    types::key,
};

/// The kernels and lookups that a dispatcher has cached.
#[derive(Default)]
pub(crate) struct DispatcherState {
    pub(super) parsed: Option<Arc<Parsed>>,
    pub(super) overloads: Vec<Arc<Overload>>,
    resolved: HashMap<(u32, Box<[u32]>), Arc<Resolved>>,
    /// No further types are compiled.
    pub(super) frozen: bool,
    /// Numbers of blocks that were warned about.
    warned: HashSet<u64>,
    /// The lookups in the disk cache.
    pub(super) lookups: Vec<Lookups>,
}

/// How often kernels for some types were looked for on the disk.
#[derive(Clone, Debug)]
pub(super) struct Lookups {
    /// The types.
    pub(super) args: Vec<ArgType>,
    /// So often there was one.
    pub(super) hits: u64,
    /// So often one was compiled.
    pub(super) misses: u64,
}

/// The properties that the launches of a compiled kernel are likely to have.
struct Likely {
    assumptions: Assumptions,
    /// By argument: the last extent of an array, where it is short.
    short_extents: Vec<(u32, u8)>,
    /// The threads of a block.
    block: Option<[u32; 3]>,
}

impl DispatcherState {
    fn compiled(&self, args: &[ArgType]) -> Option<Arc<Overload>> {
        let device = devices::current_id();
        self.overloads.iter().find(|overload| overload.device == device && overload.args == args).cloned()
    }

    /// Counts a kernel that was looked for on the disk.
    fn count(&mut self, args: &[ArgType], was_cached: bool) {
        let (hits, misses) = if was_cached { (1, 0) } else { (0, 1) };
        match self.lookups.iter_mut().find(|lookups| lookups.args == args) {
            Some(lookups) => {
                lookups.hits += hits;
                lookups.misses += misses;
            }
            None => self.lookups.push(Lookups { args: args.to_vec(), hits, misses }),
        }
    }
}

impl Dispatcher {
    /// The error of a launch of a device function.
    pub(super) fn no_kernel(&self) -> PyErr {
        PyRuntimeError::new_err(format!(
            "Cannot compile a device function as a kernel: `{}` has `device=True`, so kernels call it",
            self.name
        ))
    }

    /// The kernel for a launch's types on the current device. If there is none, one is compiled for launches like this one.
    pub(crate) fn resolve(slf: &Bound<'_, Self>, arguments: &Arguments) -> PyResult<Arc<Resolved>> {
        Self::resolve_for(slf, arguments, None)
    }

    /// The same for a launch with a configuration and arguments, which a compilation can query.
    pub(super) fn resolve_for(
        slf: &Bound<'_, Self>,
        arguments: &Arguments,
        launch: Option<(&Bound<'_, Launcher>, &Bound<'_, PyTuple>)>,
    ) -> PyResult<Arc<Resolved>> {
        let (this, key) = (slf.get(), arguments.key.as_slice());
        devices::check_fork(slf.py())?;
        let device = devices::current_id();
        if let Some(last) = &*this.last.lock().unwrap_or_else(PoisonError::into_inner)
            && last.overload.device == device
            && *last.key == *key
        {
            return Ok(Arc::clone(last));
        }
        let known = this.state().resolved.get(&(device, key.into())).cloned();
        let resolved = match known {
            Some(resolved) => resolved,
            None => {
                let under_way = launch.map(|(launcher, args)| UnderWay::begin(launcher, args, true));
                if let Some((launcher, _)) = launch {
                    around::note(launcher)?;
                }
                let resolved = Arc::new(Self::resolve_new(slf, arguments, launch.map(|(launcher, _)| launcher))?);
                drop(under_way);
                let old = this.state().resolved.insert((device, key.into()), Arc::clone(&resolved));
                drop(old);
                resolved
            }
        };
        let old = this.set_last(Some(Arc::clone(&resolved)));
        drop(old);
        Ok(resolved)
    }

    /// Gives what was the last before, for the caller to drop: its end may run Python, which must find the lock free.
    fn set_last(&self, resolved: Option<Arc<Resolved>>) -> Option<Arc<Resolved>> {
        std::mem::replace(&mut *self.last.lock().unwrap_or_else(PoisonError::into_inner), resolved)
    }

    /// How a launch's arguments reach this very kernel.
    pub(super) fn resolve_to(
        slf: &Bound<'_, Self>,
        arguments: &Arguments,
        overload: &Arc<Overload>,
    ) -> PyResult<Arc<Resolved>> {
        let (this, words) = (slf.get(), arguments.key.as_slice());
        let given = key::decode(words);
        this.check_count(given.len())?;
        let found = convert::match_types(&given, &overload.args).map_err(|wrong| this.misfit(&wrong))?;
        Ok(Arc::new(overload.resolve(slf.py(), words, found.casts)?))
    }

    /// The error for an argument that converts to no declared type.
    fn misfit(&self, wrong: &convert::Mismatch) -> PyErr {
        PyTypeError::new_err(format!("{}: {}", self.argument(wrong.param), wrong.message))
    }

    fn resolve_new(
        slf: &Bound<'_, Self>,
        arguments: &Arguments,
        launcher: Option<&Bound<'_, Launcher>>,
    ) -> PyResult<Resolved> {
        let (py, this, words) = (slf.py(), slf.get(), arguments.key.as_slice());
        let given = key::decode(words);
        let likely = Likely {
            assumptions: arguments.likely(weft_artifact::are_nonneg(&given, &arguments.cells)),
            short_extents: assumptions::short_extents(&given, &arguments.cells),
            block: launcher.map(|launcher| launcher.get().config().block),
        };
        this.check_count(given.len())?;
        if this.jit.device {
            return Err(this.no_kernel());
        }
        devices::announce(py)?;
        let (args, casts) = this.types_for(given)?;
        Self::overload_for(slf, &args, &likely)?.resolve(py, words, casts)
    }

    /// The types that a launch's arguments are compiled as, and the conversions to them.
    pub(super) fn types_for(&self, given: Vec<ArgType>) -> PyResult<(Vec<ArgType>, Vec<convert::Cast>)> {
        if self.declared.is_empty() { Ok((given, Vec::new())) } else { self.choose(&given) }
    }

    /// The declared signature that fits best, and the conversions to it.
    fn choose(&self, given: &[ArgType]) -> PyResult<(Vec<ArgType>, Vec<convert::Cast>)> {
        if let [only] = self.declared.as_slice() {
            return match convert::match_types(given, &only.args) {
                Ok(found) => Ok((only.args.clone(), found.casts)),
                Err(wrong) => Err(self.misfit(&wrong)),
            };
        }
        let fitting = self
            .declared
            .iter()
            .filter(|signature| signature.args.len() == given.len())
            .filter_map(|signature| Some((convert::match_types(given, &signature.args).ok()?, signature)))
            .map(|(found, signature)| (found.rank, (signature, found.casts)));
        let types = || given.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
        match weft_artifact::choose(fitting) {
            Choice::None => {
                Err(PyTypeError::new_err(format!("No matching definition for argument type(s) {}", types())))
            }
            Choice::Ambiguous(_) => Err(PyTypeError::new_err(format!(
                "Ambiguous overloading for {} with argument type(s) {}",
                self.name,
                types()
            ))),
            Choice::Best((signature, casts)) => Ok((signature.args.clone(), casts)),
        }
    }

    /// The overload for exactly these types on the current device, if there is one.
    pub(crate) fn compiled(&self, args: &[ArgType]) -> Option<Arc<Overload>> {
        self.state().compiled(args)
    }

    /// Whether no kernel is compiled for these types: they are further ones. Each device has its own kernels of the others.
    pub(super) fn is_closed_to(&self, args: &[ArgType]) -> bool {
        let state = self.state();
        state.frozen && !state.overloads.iter().any(|overload| overload.args == args)
    }

    /// The same, compiled if there is none.
    pub(crate) fn overload(slf: &Bound<'_, Self>, args: &[ArgType]) -> PyResult<Arc<Overload>> {
        let overload = Self::known_overload(slf, args)?;
        overload.code(slf.py())?;
        Ok(overload)
    }

    /// The same, without its code where a launch may need another.
    pub(super) fn known_overload(slf: &Bound<'_, Self>, args: &[ArgType]) -> PyResult<Arc<Overload>> {
        Self::overload_for(slf, args, &Likely { assumptions: Assumptions::ALL, short_extents: Vec::new(), block: None })
    }

    /// The same, for launches of which this is likely to hold.
    fn overload_for(slf: &Bound<'_, Self>, args: &[ArgType], likely: &Likely) -> PyResult<Arc<Overload>> {
        let (py, this) = (slf.py(), slf.get());
        if let Some(known) = this.compiled(args) {
            return Ok(known);
        }
        if this.is_closed_to(args) {
            let types: Vec<String> = args.iter().map(ToString::to_string).collect();
            return Err(PyTypeError::new_err(format!(
                "No matching definition for argument type(s) {}",
                types.join(", ")
            )));
        }
        let timing = Timing::start(py, "capture")?;
        let mut capturer = Capturer::new(py);
        let function = capturer.dispatcher(slf)?;
        let found = Found { kept: capturer.kept, links: capturer.links };
        let compiled = if found.links.is_empty() {
            Self::compile_now(slf, &function, args, found, likely)?
        } else {
            Self::compile_alone(slf, &function, args, found, likely)?
        };
        let is_measured = compiled.wanted == FactorChoice::Measure(Effort::Background);
        if !is_measured {
            compiled.load_compiled(py)?;
        }
        timing.print(py, || {
            let what = if compiled.code_bytes().is_some() { "" } else { ", the estimate alone" };
            format!("{}{what}{}", compiled.shown(), if compiled.compiled.was_cached { ", cached" } else { "" })
        })?;
        // The launch may run a variant that another process has measured, so it loads the code that it needs.
        if !is_measured {
            compiled.code(py)?;
        }
        Ok(compiled)
    }

    /// One module for all threads: linked code is notified of each.
    fn compile_alone(
        slf: &Bound<'_, Self>,
        function: &Arc<FunctionDef>,
        args: &[ArgType],
        found: Found,
        likely: &Likely,
    ) -> PyResult<Arc<Overload>> {
        let lock = slf.py().import("weft.cuda._code.link")?.getattr("LOCK")?;
        lock.call_method0("acquire")?;
        let compiled = match slf.get().compiled(args) {
            Some(known) => Ok(known),
            None => Self::compile_now(slf, function, args, found, likely),
        };
        lock.call_method0("release")?;
        compiled
    }

    fn compile_now(
        slf: &Bound<'_, Self>,
        function: &Arc<FunctionDef>,
        args: &[ArgType],
        found: Found,
        likely: &Likely,
    ) -> PyResult<Arc<Overload>> {
        let this = slf.get();
        // Code of other languages may read its thread's index.
        let is_linked = !found.links.is_empty();
        let (mut jit, wanted) = this.plain(slf.py(), &*devices::current(slf.py())?)?;
        let most = jit.code.assumptions;
        jit.code.assumptions = Assumptions::likeliest(likely.assumptions).and(most);
        // A GPU's threads are no vectors.
        if devices::current(slf.py())?.kind() == "cpu" {
            jit.code.short_extents.clone_from(&likely.short_extents);
            jit.code.likely_block = likely.block;
        }
        let device = (devices::current_id(), devices::current(slf.py())?);
        let mut compiled = Overload::compile(slf, device, Definition::of(Arc::clone(function)), args, &jit, found)?;
        compiled.most = most;
        if !is_linked {
            compiled.wanted = wanted;
        }
        let compiled = Arc::new(compiled);
        let mut state = this.state();
        if engine::cache(&this.jit).is_some() {
            state.count(args, compiled.compiled.was_cached);
        }
        // Another thread may have been quicker: one overload for each type tuple.
        if let Some(known) = state.compiled(args) {
            return Ok(known);
        }
        state.overloads.push(Arc::clone(&compiled));
        Ok(compiled)
    }

    /// Forgets all kernels, and compiles the known types again.
    pub(super) fn compile_again(slf: &Bound<'_, Self>) -> PyResult<()> {
        let this = slf.get();
        let (old, resolved, frozen) = {
            let mut state = this.state();
            let resolved = std::mem::take(&mut state.resolved);
            (std::mem::take(&mut state.overloads), resolved, std::mem::take(&mut state.frozen))
        };
        drop((resolved, this.set_last(None)));
        let mut here = old.iter().filter(|overload| overload.device == devices::current_id());
        let compiled = here.try_for_each(|overload| Self::overload(slf, &overload.args).map(drop));
        this.state().frozen = frozen;
        compiled
    }

    /// Forgets the kernels of a device: the next launch compiles and loads them again.
    pub(super) fn forget(&self, device: u32) {
        let forgotten: (Vec<Arc<Overload>>, HashMap<_, _>) = {
            let mut state = self.state();
            let resolved = state.resolved.extract_if(|(on, _), _| *on == device).collect();
            let (gone, kept) = std::mem::take(&mut state.overloads).into_iter().partition(|of| of.device == device);
            state.overloads = kept;
            (gone, resolved)
        };
        // After the lock is released: dropping these may run Python.
        drop((forgotten, self.set_last(None)));
    }

    /// Compiles no further types from now on, or does again.
    pub(super) fn freeze(&self, frozen: bool) {
        self.state().frozen = frozen;
    }

    /// Whether this number of blocks is met for the first time.
    pub(super) fn is_new_grid(&self, blocks: u64) -> bool {
        self.state().warned.insert(blocks)
    }
}
