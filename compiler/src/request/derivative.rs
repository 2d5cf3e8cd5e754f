//! The adjoint kernel or the tangent kernel of a kernel, as the subject of a request.

use crate::syntax::ast;

/// The adjoint kernel or the tangent kernel of a kernel.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Derivative {
    /// The numbers of the parameters that have adjoints. The adjoints are the last parameters, in this order.
    pub of: Vec<u32>,
    /// The numbers of the parameters that the program names: a derivative by each of them must exist.
    pub wrt: Vec<u32>,
    /// Arrays that the kernel writes have the contents from before the kernel's launch.
    pub has_old_contents: bool,
    /// The subject is the tangent kernel, whose last parameters are tangents.
    pub is_forward: bool,
    /// The memory for values of loops without a constant bound.
    pub scratch: Scratch,
    /// The last parameter, after the scratch memory, is a contiguous array of `int64`: words of exact sums, to which the
    /// kernel adds gradients instead of to their arrays. Their bits do not depend on the order of the threads.
    pub has_sums: bool,
    /// What the subject does to the gradients of arrays that the kernel writes.
    pub incoming: Incoming,
    /// The derivative of which this one is taken, for second derivatives: its parameters precede.
    pub inner: Option<Box<Self>>,
}

/// The scratch memory of an adjoint kernel: each thread stores the values of loops there that the reverse sweep needs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Scratch {
    /// None: that a loop needs it is an error.
    #[default]
    None,
    /// The last parameter, after the adjoints, is a contiguous array of `int64`. Each thread has the same number of its
    /// elements. The adjoint kernel also executes the kernel's writes to arrays whose elements it needs after
    /// them: the launch passes copies of these arrays.
    Given,
    /// The subject is the kernel that counts: its first element of the last parameter becomes the most bytes that a
    /// thread stores.
    Counted,
}

/// What an adjoint kernel does to incoming gradients: the adjoints of elements that the kernel overwrites become 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Incoming {
    /// It sets them to 0.
    #[default]
    Consumed,
    /// It may leave those that other threads need: gradients are gathered.
    Read,
    /// The subject is the kernel that sets to 0 what [`Self::Read`] leaves.
    Cleared,
}

impl Incoming {
    /// By the number that stands for it in Python and in digests.
    pub fn of_number(number: u8) -> Self {
        match number {
            0 => Self::Consumed,
            1 => Self::Read,
            _ => Self::Cleared,
        }
    }
}

impl Scratch {
    /// The name of the parameter. It is no identifier.
    pub const NAME: &str = "adjoint.scratch";

    /// The number of parameters that it adds.
    pub fn params(self) -> usize {
        match self {
            Self::None => 0,
            Self::Given | Self::Counted => 1,
        }
    }

    /// By the number that stands for it in Python and in digests.
    pub fn of_number(number: u8) -> Self {
        match number {
            0 => Self::None,
            1 => Self::Given,
            _ => Self::Counted,
        }
    }
}

impl Derivative {
    /// The name of the parameter of exact sums. It is no identifier.
    pub const SUMS: &str = "adjoint.sums";

    /// The number of the first adjoint among a number of parameters.
    pub fn first_adjoint(&self, params: usize) -> usize {
        params.saturating_sub(self.added())
    }

    /// The bytes of dynamic shared memory of a launch of the derived kernel, for a launch of the kernel: the adjoints
    /// begin at a multiple of 16. `None` if there are too many.
    pub fn shared_bytes(bytes: u32) -> Option<u32> {
        bytes.checked_next_multiple_of(16)?.checked_add(bytes)
    }

    /// The name of the adjoint of a parameter: `x.adjoint`, of a second derivative `x.adjoint2`. It is no identifier, so
    /// no kernel reads it.
    pub fn name(&self, param: &str) -> String {
        let order = std::iter::successors(Some(self), |derivative| derivative.inner.as_deref()).count();
        if order == 1 { format!("{param}.adjoint") } else { format!("{param}.adjoint{order}") }
    }

    /// Adds the names of its parameters to those of a kernel.
    pub fn add_names(&self, params: &mut Vec<String>) {
        if let Some(inner) = &self.inner {
            inner.add_names(params);
        }
        let of = self.of.iter().filter_map(|&number| params.get(number as usize));
        let mut added: Vec<String> = of.map(|name| self.name(name)).collect();
        added.extend(std::iter::repeat_n(Scratch::NAME.to_owned(), self.scratch.params()));
        added.extend(self.has_sums.then(|| Self::SUMS.to_owned()));
        params.extend(added);
    }

    /// The number of parameters that it adds to those of the kernel, or of the derivative of which it is taken.
    pub fn added(&self) -> usize {
        self.of.len() + self.scratch.params() + usize::from(self.has_sums)
    }

    /// Adds the adjoints, the scratch memory, and the words of exact sums to the parameters of a kernel.
    pub fn add_adjoints(&self, kernel: &mut ast::Function) {
        if let Some(inner) = &self.inner {
            inner.add_adjoints(kernel);
        }
        let mut add = |number: u32, name: &dyn Fn(&str) -> String| {
            if let Some(param) = kernel.params.get(number as usize) {
                let name = name(&param.name);
                kernel.params.push(ast::Param { name, annotation: None, default: None, ..param.clone() });
            }
        };
        self.of.iter().for_each(|&number| add(number, &|name| self.name(name)));
        (0..self.scratch.params()).for_each(|_| add(0, &|_| Scratch::NAME.to_owned()));
        if self.has_sums {
            add(0, &|_| Self::SUMS.to_owned());
        }
    }
}
