//! What a caller asks of the compiler: a function, what its free names mean, types, a target and options.
//!
//! The compiler is pure: everything that a compilation depends on is in the request.

use std::{
    collections::{BTreeMap, BTreeSet},
    sync::Arc,
};

use weft_artifact::{ArgType, ArrayType, ClassId, Compound, DType, Layout, MAX_LEAVES, Number, Scalar, Time, Vector};

use crate::{
    source::{SourceFile, Span},
    syntax::ast,
};

/// A Python function as captured at compile time: its tree and what its free names mean.
#[derive(Clone, Debug, PartialEq)]
pub struct FunctionDef {
    /// The parsed definition.
    pub ast: ast::Function,
    /// The text that it was parsed from; its spans refer to this file.
    pub source: Arc<SourceFile>,
    /// Free names (globals, closure variables, builtins that are not shadowed) and their values at compile time.
    /// A name that is not here and not a Python builtin is undefined.
    pub globals: BTreeMap<String, Captured>,
    /// Default values of parameters, by name, evaluated by the caller (a literal default may be left out).
    pub defaults: BTreeMap<String, Captured>,
    /// Declared signatures, if the device function has some: the argument types that calls are converted to, and the
    /// declared return type.
    pub signatures: Vec<Signature>,
    /// `inline="always"` or `forceinline=True`.
    pub inline: bool,
    /// What the function is on GPUs instead of its statements; it has one signature then.
    pub gpu: Option<GpuBody>,
    /// What [`Captured::Recursive`] calls it: no other function that the request leads to has this number.
    pub number: u32,
}

/// What a function is on GPUs instead of its statements.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GpuBody {
    /// PTX, from `cuda.intrinsic`.
    Ptx(PtxBody),
    /// Code that is linked with the kernel, from `cuda.declare_device`.
    External(External),
}

/// PTX in place of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PtxBody {
    /// The text: `%0` and on are the results and then the arguments.
    pub text: String,
    /// It only computes.
    pub pure: bool,
}

/// A function that is defined elsewhere.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct External {
    /// Its symbol.
    pub symbol: String,
    /// How it is called.
    pub abi: Abi,
    /// It waits for all threads of the grid, which must run at a time.
    pub cooperative: bool,
    /// The definition has statements, which are what it does on a CPU. Else they mean nothing.
    pub python: bool,
}

impl External {
    /// The text of a definition without statements, for messages: Python's form of a declaration.
    pub fn stub(symbol: &str, params: usize) -> (String, String) {
        let name: String =
            symbol.chars().map(|letter| if letter.is_ascii_alphanumeric() { letter } else { '_' }).collect();
        let params: Vec<String> = (0..params).map(|param| format!("x{param}")).collect();
        let text = format!("def {name}({}):\n    pass\n", params.join(", "));
        (name, text)
    }
}

impl FunctionDef {
    /// The function with a number among this one and those that it leads to.
    pub fn find(self: &Arc<Self>, number: u32) -> Option<Arc<Self>> {
        let mut found = None;
        self.each(&mut |def| {
            if def.number == number {
                found = Some(Arc::clone(def));
            }
            found.is_none()
        });
        found
    }

    /// A number that neither this function nor one that it leads to has, nor a greater one.
    pub fn next_number(self: &Arc<Self>) -> u32 {
        let mut next = 0;
        self.each(&mut |def| {
            next = next.max(def.number + 1);
            true
        });
        next
    }

    /// Visits this function and those that it leads to, as long as it is told to go on.
    fn each(self: &Arc<Self>, visit: &mut dyn FnMut(&Arc<Self>) -> bool) {
        let mut seen = BTreeSet::new();
        let mut open = vec![Arc::clone(self)];
        while let Some(def) = open.pop() {
            if !visit(&def) {
                return;
            }
            if seen.insert(Arc::as_ptr(&def)) {
                for value in def.globals.values().chain(def.defaults.values()) {
                    value.for_each_function(&mut |callee| open.push(Arc::clone(callee)));
                }
            }
        }
    }
}

/// The value of a captured name.
#[derive(Clone, Debug, PartialEq)]
pub enum Captured {
    /// `None`.
    None,
    /// A Python bool.
    Bool(bool),
    /// A Python int that fits 64 bits, signed or unsigned.
    Int(i128),
    /// A Python float.
    Float(f64),
    /// A Python complex: real, imaginary.
    Complex(f64, f64),
    /// A NumPy scalar: its type, and its value as (real, imaginary) for floats and complex, or an integer.
    NumpyInt(Scalar, i128),
    /// See `NumpyInt`; for `F32`, `F64`, `C64`, `C128`.
    NumpyFloat(Number, f64, f64),
    /// A NumPy date or span of time: its type, and its count.
    Time(Time, i64),
    /// A string.
    Str(String),
    /// Bytes.
    Bytes(Vec<u8>),
    /// A tuple.
    Tuple(Vec<Captured>),
    /// A named tuple or an instance of a dataclass: the values of its fields.
    Struct(ClassId, Vec<Captured>),
    /// A member of an enum, by its place among those of its class, and its value.
    Enum(ClassId, usize, Box<Captured>),
    /// A class: for each member of an enum its value, for each field of another class its default if it has one.
    Class(ClassId, Vec<Option<Captured>>),
    /// An array of this process, with the elements that it had then: a constant.
    Array(CapturedArray),
    /// An array on the device: its type, the address of its first element, extents, strides in bytes. Who makes the
    /// request keeps the memory in place as long as the code is used.
    DeviceArray(ArrayType, u64, Vec<u64>, Vec<i64>),
    /// A NumPy scalar type, a dtype, or a weft type such as `weft.float32` or `weft.cuda.float32x4`: usable as a dtype
    /// and as a cast.
    DType(DType),
    /// Something that weft knows by its canonical dotted path: a module (`weft`, `weft.cuda`, `math`, `numpy`), a
    /// member of one (`weft.cuda.grid`, `math.sin`, `numpy.float32`), or a Python builtin (`builtins.range`).
    /// The prefix `numba.` is written as `weft.`.
    Known(String),
    /// A user's own module or object with the attributes that the function uses.
    Module(String, BTreeMap<String, Captured>),
    /// Another jitted function.
    Function(Arc<FunctionDef>),
    /// A jitted function that leads to the one that reads the name, or this one itself, by its
    /// [number](FunctionDef::number): definitions are a tree, and here it would be a circle. [`FunctionDef::find`] of
    /// the request's kernel has it.
    Recursive(u32),
    /// A function that has implementations for kernels, which whoever makes requests finds for the types of a call's
    /// arguments.
    Overloaded(Overloaded),
    /// The implementations that are found, in the kernel's globals under [`ANSWERS`].
    Answers(Vec<Answer>),
    /// An exception class, by what stands for it: whoever made the request knows it by that.
    Exception(String),
    /// Anything else: what it is, and in words that follow "a" or "an" in the error, such as Python's name of its type.
    Unsupported(Unsupported, String),
    /// A value that the text of a file does not tell: the place that makes it so, and why (`the loop binds it`).
    Unknown(Arc<SourceFile>, Span, String),
}

/// The name of [`Captured::Answers`] among the globals of a request's function, which no text has.
pub const ANSWERS: &str = "@answers";

/// The name among the globals of a request's function of what is overloaded by its path: a function in a module that weft
/// knows (`numpy.linalg.norm`) and kernels do not have, a method (`method.name`) or an attribute (`attribute.name`) of
/// values. No text has it.
pub fn overloaded_member(path: &str) -> String {
    format!("@{path}")
}

/// A function of Python's with implementations for kernels: `extending.overload`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Overloaded {
    /// What whoever makes requests knows it by.
    pub number: u32,
    /// Its name.
    pub name: String,
}

/// A call of an overloaded function: which implementation it has is not for the compiler to find.
#[derive(Clone, Debug, PartialEq)]
pub struct Ask {
    /// [`Overloaded::number`].
    pub function: u32,
    /// The arguments; those that are given by name with it.
    pub args: Vec<(Option<String>, Given)>,
}

/// What the choice of an implementation sees of an argument.
#[derive(Clone, Debug, PartialEq)]
pub enum Given {
    /// Its type.
    Type(ArgType),
    /// A text.
    Str(String),
}

/// The implementation of an overloaded function for a call's types.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The call.
    pub ask: Ask,
    /// The implementation; or why there is none, as far as somebody says it.
    pub chosen: Result<Arc<FunctionDef>, Option<String>>,
}

impl Ask {
    /// The arguments' types as errors show them.
    pub fn shown(&self) -> String {
        let shown = |given: &Given| match given {
            Given::Type(ty) => ty.to_string(),
            Given::Str(text) => format!("'{text}'"),
        };
        let args = self.args.iter().map(|(name, given)| match name {
            Some(name) => format!("{name}={}", shown(given)),
            None => shown(given),
        });
        args.collect::<Vec<_>>().join(", ")
    }
}

/// An array as a constant: its elements without gaps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CapturedArray {
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<u64>,
    /// In which order the elements lie: C or F.
    pub layout: Layout,
    /// The elements as they lie in memory.
    pub bytes: Arc<[u8]>,
}

/// What a captured value is that no kernel can use, as far as there is something to be said about it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unsupported {
    /// A function that is not jitted.
    PlainFunction,
    /// A function that another library jitted; its `py_func` is the Python function.
    ForeignFunction,
    /// An array.
    Array,
    /// Anything else.
    Other,
}

/// How deep functions may call functions; whoever captures them and the compiler recurse as deep.
pub const MAX_CALL_DEPTH: usize = 200;

/// The number type that a canonical path means: `numpy.float32`, `weft.types.int8`; what other libraries call
/// `numba` is `weft` here.
pub fn number_of_path(path: &str) -> Option<Number> {
    let (module, name) = path.rsplit_once('.')?;
    match module {
        "numpy" => Number::from_numpy_name(name),
        "weft" | "weft.types" | "weft.cuda" | "weft.cuda.types" => Number::from_name(name),
        "weft.cuda.bf16" if name == "bfloat16" => Some(Number::BF16),
        _ => None,
    }
}

/// The type that a canonical path means: a number's, or a vector's (`weft.cuda.float32x4`, `weft.cuda.float4`).
pub fn dtype_of_path(path: &str) -> Option<DType> {
    if let Some(number) = number_of_path(path) {
        return Some(number.into());
    }
    let (module, name) = path.rsplit_once('.')?;
    let known = matches!(module, "weft.types" | "weft.cuda" | "weft.cuda.types");
    Vector::from_name(name).filter(|_| known).and_then(|vector| DType::intern(Compound::Vector(vector)))
}

impl Captured {
    /// What a tuple of more than [`MAX_LEAVES`] values is.
    pub fn too_large() -> Self {
        Self::Unsupported(Unsupported::Other, format!("tuple of more than {MAX_LEAVES} values"))
    }

    /// What a function beyond [`MAX_CALL_DEPTH`] is.
    pub fn too_deep() -> Self {
        Self::Unsupported(Unsupported::Other, format!("call chain of more than {MAX_CALL_DEPTH} levels"))
    }

    /// How many values it holds, with those in the tuples in it.
    pub fn leaves(&self) -> usize {
        match self {
            Self::Tuple(items) | Self::Struct(_, items) => items.iter().map(Self::leaves).sum(),
            Self::None
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Complex(..)
            | Self::NumpyInt(..)
            | Self::NumpyFloat(..)
            | Self::Time(..)
            | Self::Str(_)
            | Self::Bytes(_)
            | Self::Enum(..)
            | Self::Class(..)
            | Self::Exception(_)
            | Self::Overloaded(_)
            | Self::Answers(_)
            | Self::Array(_)
            | Self::DeviceArray(..)
            | Self::DType(_)
            | Self::Known(_)
            | Self::Module(..)
            | Self::Function(_)
            | Self::Recursive(_)
            | Self::Unsupported(..)
            | Self::Unknown(..) => 1,
        }
    }

    /// Visits the functions in it, not those that they lead to.
    fn for_each_function(&self, visit: &mut dyn FnMut(&Arc<FunctionDef>)) {
        match self {
            Self::Function(def) => visit(def),
            Self::Tuple(items) | Self::Struct(_, items) => {
                for item in items {
                    item.for_each_function(visit);
                }
            }
            Self::Class(_, items) => items.iter().flatten().for_each(|item| item.for_each_function(visit)),
            Self::Enum(_, _, value) => value.for_each_function(visit),
            Self::Answers(answers) => answers.iter().flat_map(|answer| &answer.chosen).for_each(visit),
            Self::Module(_, members) => members.values().for_each(|member| member.for_each_function(visit)),
            Self::None
            | Self::Bool(_)
            | Self::Int(_)
            | Self::Float(_)
            | Self::Complex(..)
            | Self::NumpyInt(..)
            | Self::NumpyFloat(..)
            | Self::Time(..)
            | Self::Str(_)
            | Self::Bytes(_)
            | Self::Array(_)
            | Self::DeviceArray(..)
            | Self::DType(_)
            | Self::Known(_)
            | Self::Exception(_)
            | Self::Overloaded(_)
            | Self::Recursive(_)
            | Self::Unsupported(..)
            | Self::Unknown(..) => {}
        }
    }
}

/// A declared signature: `void(float32[:], int32)`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Signature {
    /// Argument types.
    pub args: Vec<ArgType>,
    /// `None` for `void` or where the text has no return type.
    pub returns: Option<ArgType>,
}

/// What to compile for.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Target {
    /// An NVIDIA SM: `sm_90` is `90`; the suffix is `""`, `"a"` or `"f"`.
    Sm(u32, &'static str),
    /// This machine's CPU.
    Host(Arc<HostCpu>),
}

/// A CPU as LLVM describes it. Whoever makes a request asks [`crate::host_cpu`].
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HostCpu {
    /// The system: `x86_64-pc-linux-gnu`.
    pub triple: String,
    /// The processor: `znver5`.
    pub name: String,
    /// What it has and has not: `+avx512f,-amx-tile`.
    pub features: String,
}

/// How a CPU runs the threads of a block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum CpuThreads {
    /// As loops, or, where a thread may wait for what another one writes, on stacks.
    #[default]
    Auto,
    /// As loops that end at barriers.
    Loops,
    /// Each on a stack of its own.
    Fibers,
}

/// Who calls the code.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub enum Entry {
    /// weft's executors launch the kernel: they pass what it reads and nothing else.
    #[default]
    Launch,
    /// Other code calls the function, or launches it as a kernel: it gets all that an ABI says. PTX only.
    Foreign(Foreign),
}

/// A function as other code sees it.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Foreign {
    /// What it is.
    pub role: Role,
    /// Its symbol; the function's own name where there is none.
    pub symbol: Option<String>,
}

/// What a function is to other code.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// A kernel, with the arguments of numba-cuda's kernels.
    Kernel,
    /// A device function.
    Function(Abi),
}

/// How a device function takes its arguments and gives its result. `docs/design/foreign-code.md` has both.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Abi {
    /// That of a CUDA C++ function with C linkage.
    C,
    /// That of numba-cuda's device functions: a status is returned, the result written where the first argument points.
    Numba,
}

/// Options that change code.
#[derive(Clone, Debug, PartialEq)]
#[expect(clippy::struct_excessive_bools, reason = "each is an option of its own")]
pub struct Options {
    /// Relaxed floating point: flush denormals, approximate division and functions, reassociation.
    pub fastmath: bool,
    /// Line tables for profilers.
    pub lineinfo: bool,
    /// `raise` and `assert` are reported; else they end their thread.
    pub exceptions: bool,
    /// The same at the launch, and Python's rules: divisions by zero and bad indices of tuples raise exceptions.
    pub debug: bool,
    /// Indices of arrays that are out of bounds are reported.
    pub boundscheck: bool,
    /// Run the optimiser; off is for looking at unoptimised code.
    pub opt: bool,
    /// What the code is bound to be launched with.
    pub launch_bounds: Option<LaunchBounds>,
    /// At most this many registers a thread (`.maxnreg`); NVPTX only.
    pub max_registers: Option<u32>,
    /// How the threads of a block run; the host only.
    pub cpu_threads: CpuThreads,
    /// libdevice's bitcode (NVPTX only): used for math where given, else the embedded libclc.
    pub libdevice: Option<Arc<Vec<u8>>>,
    /// Who calls the code.
    pub entry: Entry,
}

/// Bounds of launches; the code is wrong for others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct LaunchBounds {
    /// At most this many threads a block (`.maxntid`).
    pub threads: u32,
    /// At least this many blocks an SM (`.minnctapersm`).
    pub blocks: Option<u32>,
    /// At most this many blocks a cluster (`.maxclusterrank`); NVPTX only.
    pub cluster: Option<u32>,
}

impl Default for Options {
    fn default() -> Self {
        Self {
            fastmath: false,
            lineinfo: false,
            exceptions: false,
            debug: false,
            boundscheck: false,
            opt: true,
            launch_bounds: None,
            max_registers: None,
            cpu_threads: CpuThreads::Auto,
            libdevice: None,
            entry: Entry::Launch,
        }
    }
}

/// One compilation: one kernel for one tuple of argument types.
#[derive(Clone, Debug)]
pub struct Request {
    /// The kernel.
    pub function: Arc<FunctionDef>,
    /// One type a parameter.
    pub args: Vec<ArgType>,
    /// The target.
    pub target: Target,
    /// Options.
    pub options: Options,
    /// Which texts to return with the artifact.
    pub keep: Keep,
}

/// Texts to return beside the artifact.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Keep {
    /// weft's IR after its passes.
    pub ir: bool,
    /// LLVM IR after LLVM's passes.
    pub llvm: bool,
    /// Assembly text of the host target (PTX is the artifact's own code).
    pub asm: bool,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::syntax;

    fn function(number: u32, globals: Vec<Captured>) -> Arc<FunctionDef> {
        let source = Arc::new(SourceFile::new("k.py", "def f():\n    pass\n"));
        let ast = syntax::parse_function(&source, 0, None).expect("the text of a function");
        let globals = globals.into_iter().enumerate().map(|(index, value)| (format!("g{index}"), value)).collect();
        Arc::new(FunctionDef {
            ast,
            source,
            globals,
            defaults: BTreeMap::new(),
            signatures: Vec::new(),
            inline: false,
            gpu: None,
            number,
        })
    }

    #[test]
    fn a_function_is_found_wherever_a_name_leads_to_it() {
        let inner = function(2, vec![Captured::Recursive(1)]);
        let members = BTreeMap::from([("f".to_owned(), Captured::Tuple(vec![Captured::Function(Arc::clone(&inner))]))]);
        let outer = function(1, vec![Captured::None, Captured::Module("m".into(), members)]);
        let kernel = function(0, vec![Captured::Function(Arc::clone(&outer))]);
        for (number, expected) in [(0, &kernel), (1, &outer), (2, &inner)] {
            assert!(kernel.find(number).is_some_and(|found| Arc::ptr_eq(&found, expected)), "{number}");
        }
        assert!(inner.find(1).is_none());
    }
}
