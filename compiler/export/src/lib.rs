//! Exported kernels: compiled code for several targets with everything that a caller without Python needs, as files.
//!
//! A [`Package`] becomes a container (`container.rs`, documented in `docs/reference/packages.md`), and C sources with a
//! `CMake` package (`c/`). The files depend on the package alone, so that equal packages are equal bit for bit.

mod c;
mod container;
mod json;
mod refusal;

use weft_artifact::{
    Access, Assumptions, Kernel, Param,
    rules::{LaunchRule, OutputRule, RuleError, bind_outputs},
};

/// The version of the format of the container.
pub const FORMAT: u32 = 1;

/// What the code of a package assumes about launches: each kernel is compiled for each of these.
///
/// The first code is for any launch. A launch runs the other one where that one's assumptions hold.
pub const VARIANTS: [Assumptions; 2] = [Assumptions::NONE, Assumptions::ALL];

/// The symbol of a kernel's code.
pub fn symbol(package: &str, kernel: &str, assumptions: Assumptions) -> String {
    let suffix = if assumptions == Assumptions::NONE { "" } else { "_specialized" };
    format!("{package}_{kernel}_entry{suffix}")
}

/// Kernels that are exported together.
#[derive(Clone, Debug)]
pub struct Package {
    /// Its name, which begins the names of its files and functions: a C identifier.
    pub name: String,
    /// The kernels.
    pub kernels: Vec<ExportedKernel>,
}

/// A kernel for one tuple of argument types.
#[derive(Clone, Debug)]
pub struct ExportedKernel {
    /// Its name in the package: the Python function's, with a number if there are several signatures.
    pub name: String,
    /// Its parameters, with what the code of any target does to them.
    pub params: Vec<Param>,
    /// The launch rule, if there is one.
    pub launch: Option<LaunchRule>,
    /// The output rules, with their parameters.
    pub outputs: Vec<OutputRule>,
    /// The code: for each target [for any launch](Image::is_general), and specialized.
    pub images: Vec<Image>,
}

/// Code of a kernel for a target.
#[derive(Clone, Debug)]
pub struct Image {
    /// The target: `sm_90`, or the name of a CPU such as `x86-64-v3`.
    pub target: String,
    /// The form of the code.
    pub format: ImageFormat,
    /// The code.
    pub code: Vec<u8>,
    /// The kernel in the code: its symbol, slots and needs.
    pub kernel: Kernel,
    /// What it assumes about its launches.
    pub assumptions: Assumptions,
}

impl Image {
    /// Code of a kernel that was compiled under assumptions, of which only those count that change its code.
    pub fn new(target: String, format: ImageFormat, code: Vec<u8>, kernel: Kernel, assumptions: Assumptions) -> Self {
        let assumptions = assumptions.and(kernel.gains);
        Self { target, format, code, kernel, assumptions }
    }

    /// Whether it is for any launch.
    pub fn is_general(&self) -> bool {
        self.assumptions == Assumptions::NONE
    }
}

/// The form of the code of an [`Image`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageFormat {
    /// PTX, which this and newer GPUs run.
    Ptx,
    /// Machine code of a GPU.
    Cubin,
    /// A relocatable ELF object.
    HostObject,
}

impl ImageFormat {
    /// The name in the container.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Ptx => "ptx",
            Self::Cubin => "cubin",
            Self::HostObject => "object",
        }
    }

    /// Whether it is code for a GPU.
    pub const fn is_gpu(self) -> bool {
        match self {
            Self::Ptx | Self::Cubin => true,
            Self::HostObject => false,
        }
    }
}

/// A file of a package.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct File {
    /// Its name.
    pub name: String,
    /// Its contents.
    pub bytes: Vec<u8>,
}

/// The rules of a kernel, as its decorator declares them.
#[derive(Clone, Debug, Default)]
pub struct Rules {
    /// The launch rule.
    pub launch: Option<LaunchRule>,
    /// The output rules; the parameter may be that of [`OutputRule::ONLY_WRITTEN`].
    pub outputs: Vec<OutputRule>,
}

impl ExportedKernel {
    /// A kernel of code for several targets, and its rules.
    ///
    /// # Errors
    ///
    /// A sentence: a rule does not fit the kernel, or there is no code.
    pub fn new(name: String, rules: &Rules, images: Vec<Image>) -> Result<Self, String> {
        let Some(first) = images.first() else { return Err(format!("`{name}` has no code: name a target")) };
        let mut params = first.kernel.params.clone();
        for image in &images {
            for (param, other) in params.iter_mut().zip(&image.kernel.params) {
                let Access { reads, writes, accumulates } = other.access;
                param.access.reads |= reads;
                param.access.writes |= writes;
                param.access.accumulates &= accumulates;
            }
        }
        let names: Vec<&str> = params.iter().map(|param| param.name.as_str()).collect();
        let wrong = |what: &str, error: &RuleError| {
            format!("the {what} rule of `{name}` does not fit: {}", error.message(&names))
        };
        if let Some(launch) = &rules.launch {
            launch.check(&params).map_err(|error| wrong("launch", &error))?;
        }
        let outputs = bind_outputs(&rules.outputs, &params).map_err(|error| wrong("output", &error))?;
        Ok(Self { launch: rules.launch.clone(), outputs, name, params, images })
    }
}

impl Package {
    /// Checks that callers without Python can launch the kernels.
    ///
    /// # Errors
    ///
    /// A sentence that names the kernel and the argument.
    pub fn check(&self) -> Result<(), String> {
        refusal::check(self)
    }

    /// The files, after [`Self::check`].
    ///
    /// # Errors
    ///
    /// As [`Self::check`].
    pub fn files(&self) -> Result<Vec<File>, String> {
        self.check()?;
        let mut files = vec![File { name: format!("{}.weft", self.name), bytes: self.container() }];
        files.extend(c::files(self));
        Ok(files)
    }

    /// The container: the description of the kernels, and their code.
    pub fn container(&self) -> Vec<u8> {
        container::write(self)
    }
}
