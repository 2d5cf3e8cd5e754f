//! Kernels as operators of other frameworks.
//!
//! A framework calls an [`Operator`] by a C function: [`torch`] has one function pointer for each operator, as libtorch
//! passes no user data, and [`xla`] has one handler for all, which finds the operator by a number in an attribute of the
//! call. Both read the framework's arguments into [`Value`]s, without Python, and report errors in the framework's way.
//! Nothing of either framework is needed at build time.

pub mod torch;
pub mod xla;

use std::fmt::Debug;

use weft_artifact::Number;

/// What a framework passes for a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// An array.
    Tensor,
    /// An integer of 64 bits.
    Int,
    /// A float64.
    Float,
    /// A boolean.
    Bool,
}

/// What a kernel does with a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// It only reads it.
    Read,
    /// It writes the caller's array.
    Written,
    /// It writes an array that the operator allocates and returns.
    Result,
}

/// A parameter of a kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Param {
    /// Its name, for messages.
    pub name: String,
    /// What is passed for it.
    pub kind: Kind,
    /// What the kernel does with it.
    pub role: Role,
}

/// The memory that the arrays of a call are in, and the device that runs the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Device {
    /// This process's memory; the CPU.
    Host,
    /// A GPU, by its number.
    Gpu(u32),
}

/// An array of a call.
#[derive(Clone, Copy, Debug)]
pub struct Tensor<'a> {
    /// The address of the first element.
    pub address: u64,
    /// The extents.
    pub shape: &'a [i64],
    /// The strides in elements; `None` for C order without gaps.
    pub strides: Option<&'a [i64]>,
    /// The type of the elements.
    pub number: Number,
}

impl Tensor<'_> {
    /// The array at an index of the first dimension.
    fn item(&self, index: i64) -> Self {
        let shape = self.shape.get(1..).unwrap_or_default();
        let (stride, strides) = match self.strides {
            Some(strides) => (strides.first().copied().unwrap_or_default(), Some(strides.get(1..).unwrap_or_default())),
            None => (shape.iter().product(), None),
        };
        let bytes = index.wrapping_mul(stride).wrapping_mul(self.number.row().size as i64);
        Self { address: self.address.wrapping_add_signed(bytes), shape, strides, number: self.number }
    }
}

/// The value of a parameter in a call.
#[derive(Clone, Copy, Debug)]
pub enum Value<'a> {
    /// An array.
    Tensor(Tensor<'a>),
    /// An integer.
    Int(i64),
    /// A float.
    Float(f64),
    /// A boolean.
    Bool(bool),
    /// An array that is not yet allocated.
    Missing,
}

/// An array that an operator allocates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResultSpec {
    /// The extents.
    pub shape: Vec<i64>,
    /// The type of the elements.
    pub number: Number,
    /// It starts with zeros; otherwise its contents are undefined.
    pub zeroed: bool,
}

/// A call of an operator, with a value for each parameter of the kernel.
#[derive(Clone, Copy, Debug)]
pub struct Call<'a> {
    /// The values.
    pub values: &'a [Value<'a>],
    /// The device.
    pub device: Device,
    /// The handle of the stream of a GPU: 0 is the legacy default stream.
    pub stream: u64,
}

/// A kernel with the rules that make it an operator. Functions may be called on any thread, without Python.
pub trait Operator: Debug + Send + Sync {
    /// The operator's name, `namespace::name`.
    fn name(&self) -> &str;
    /// The kernel's parameters.
    fn params(&self) -> &[Param];
    /// The array to allocate for a [`Role::Result`].
    ///
    /// # Errors
    ///
    /// A message that names the operator.
    fn result(&self, param: usize, values: &[Value<'_>]) -> Result<ResultSpec, String>;
    /// Launches the kernel. A number may be an array of no dimensions, in the device's memory.
    ///
    /// # Errors
    ///
    /// As [`Self::result`].
    fn launch(&self, call: &Call<'_>) -> Result<(), String>;
    /// Launches the kernel for each item of a batch: arrays with a bit in `batched` have it as their first dimension. A
    /// number may be an array then: of no dimensions, or with the batch as its only one.
    ///
    /// # Errors
    ///
    /// As [`Self::result`].
    fn launch_batch(&self, call: &Call<'_>, batched: u64, items: i64) -> Result<(), String>;
    /// The bytes of scratch memory that a launch needs: the greatest one of some counts of bytes for each thread, 64-bit
    /// integers at an address, times the number of threads. Waits for the counts.
    ///
    /// # Errors
    ///
    /// As [`Self::result`].
    fn scratch_bytes(&self, call: &Call<'_>, counts: u64, length: u64) -> Result<u64, String>;
}

/// The values of one item of a batch, whose arrays with a bit in `batched` have the batch as their first dimension.
pub fn item<'a>(values: &[Value<'a>], batched: u64, index: i64) -> Vec<Value<'a>> {
    let one = |(param, value): (usize, &Value<'a>)| match *value {
        Value::Tensor(tensor) if batched >> param & 1 == 1 => Value::Tensor(tensor.item(index)),
        value @ (Value::Tensor(_) | Value::Int(_) | Value::Float(_) | Value::Bool(_) | Value::Missing) => value,
    };
    values.iter().enumerate().map(one).collect()
}

/// Launches the kernel for each item of a batch, one after the other.
///
/// # Errors
///
/// As those of [`Operator::launch`].
pub fn launch_each(operator: &dyn Operator, call: &Call<'_>, batched: u64, items: i64) -> Result<(), String> {
    (0..items).try_for_each(|index| operator.launch(&Call { values: &item(call.values, batched, index), ..*call }))
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Records the addresses and the numbers that it is launched with.
    #[derive(Debug, Default)]
    struct Recorder(Mutex<Vec<(u64, i64)>>);

    impl Operator for Recorder {
        fn name(&self) -> &'static str {
            "tests::recorder"
        }

        fn params(&self) -> &[Param] {
            &[]
        }

        fn result(&self, _param: usize, _values: &[Value<'_>]) -> Result<ResultSpec, String> {
            Err("it has no results".to_owned())
        }

        fn launch(&self, call: &Call<'_>) -> Result<(), String> {
            if let [Value::Tensor(tensor), Value::Int(number)] = call.values {
                assert_eq!(tensor.shape, [3]);
                self.0.lock().expect("no test panics here").push((tensor.address, *number));
            }
            Ok(())
        }

        fn launch_batch(&self, call: &Call<'_>, batched: u64, items: i64) -> Result<(), String> {
            launch_each(self, call, batched, items)
        }

        fn scratch_bytes(&self, _call: &Call<'_>, _counts: u64, _length: u64) -> Result<u64, String> {
            Err("it has no scratch memory".to_owned())
        }
    }

    fn addresses(strides: Option<&[i64]>) -> Vec<(u64, i64)> {
        let recorder = Recorder::default();
        let tensor = Tensor { address: 1000, shape: &[2, 3], strides, number: Number::F32 };
        let values = [Value::Tensor(tensor), Value::Int(7)];
        let call = Call { values: &values, device: Device::Host, stream: 0 };
        recorder.launch_batch(&call, 1, 2).expect("it launches");
        recorder.0.into_inner().expect("no test panics here")
    }

    #[test]
    fn items_are_where_the_strides_say() {
        assert_eq!(addresses(None), [(1000, 7), (1012, 7)]);
        assert_eq!(addresses(Some(&[-5, 1])), [(1000, 7), (980, 7)]);
        assert_eq!(addresses(Some(&[0, 1])), [(1000, 7), (1000, 7)]);
    }
}
