//! Binds a call's arguments to parameters: by position, by name, or by default.

use pyo3::{
    exceptions::PyTypeError,
    prelude::*,
    types::{PyDict, PyTuple},
};

use super::Dispatcher;

/// Names of configuration items, here and in other libraries.
const CONFIGURATION: [&str; 10] =
    ["griddim", "grid", "blocks", "blockdim", "block", "threads", "stream", "sharedmem", "shared_mem", "cluster"];

impl Dispatcher {
    /// Whether a call gives each parameter a value by position, or its error is reported later.
    pub(super) fn is_complete(&self, args: &Bound<'_, PyTuple>) -> bool {
        args.len() >= self.params.len() && self.keyword_only == 0 || self.variadic.is_some()
    }

    /// A call's arguments in the order of the parameters: positional, by name, and defaults.
    pub(crate) fn complete<'py>(
        &self,
        args: &Bound<'py, PyTuple>,
        kwargs: Option<&Bound<'py, PyDict>>,
    ) -> PyResult<Bound<'py, PyTuple>> {
        let py = args.py();
        let kwargs = kwargs.filter(|kwargs| !kwargs.is_empty());
        if kwargs.is_none() && self.is_complete(args) {
            return Ok(args.clone());
        }
        let positional = self.params.len() - self.keyword_only;
        if self.keyword_only > 0 && args.len() > positional {
            let name = self.params.get(positional).map_or("", String::as_str);
            let message = format!("kernel `{}` takes `{name}` only as a keyword argument: `{name}=…`", self.name);
            return Err(PyTypeError::new_err(message));
        }
        let mut values: Vec<_> = args.iter().map(Some).collect();
        values.resize_with(self.params.len().max(args.len()), || None);
        for (name, value) in kwargs.into_iter().flatten() {
            let name = name.to_string();
            let place = self.params.iter().position(|param| *param == name);
            let Some(slot) = place.and_then(|place| values.get_mut(place)) else {
                let configuration = if CONFIGURATION.contains(&name.as_str()) {
                    format!(
                        ": pass the launch configuration in brackets, `{}[griddim, blockdim, stream](…)`",
                        self.name
                    )
                } else {
                    String::new()
                };
                let message = format!("kernel `{}` has no parameter `{name}`{configuration}", self.name);
                return Err(PyTypeError::new_err(message));
            };
            if slot.replace(value).is_some() {
                return Err(PyTypeError::new_err(format!("kernel `{}` got multiple values for `{name}`", self.name)));
            }
        }
        let function = self.py_func.bind(py);
        if let Ok(defaults) = function.getattr(intern!(py, "__defaults__"))?.cast_into::<PyTuple>() {
            let first = positional.saturating_sub(defaults.len());
            for (slot, value) in values.iter_mut().skip(first).zip(defaults) {
                slot.get_or_insert(value);
            }
        }
        if self.keyword_only > 0
            && let Ok(defaults) = function.getattr(intern!(py, "__kwdefaults__"))?.cast_into::<PyDict>()
        {
            for (slot, name) in values.iter_mut().zip(&self.params).skip(positional) {
                if slot.is_none() {
                    *slot = defaults.get_item(name)?;
                }
            }
        }
        let missing = values.iter().position(Option::is_none).and_then(|place| self.params.get(place));
        match (missing, kwargs) {
            (Some(name), Some(_)) => {
                Err(PyTypeError::new_err(format!("kernel `{}` needs a value for `{name}`", self.name)))
            }
            (Some(_), None) => self.check_count(args.len()).map(|()| args.clone()),
            (None, _) => PyTuple::new(py, values.into_iter().flatten().collect::<Vec<_>>()),
        }
    }
}
