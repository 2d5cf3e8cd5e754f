//! The kernels of a package as operators of PyTorch in C++, for programs without Python.
//!
//! `NAME_torch.cpp` registers an operator `NAME::KERNEL` for each kernel with a launch rule, with the schema that
//! `as_torch_op` gives it in Python. A program that runs what `torch.export` or `AOTInductor` made of the Python operator
//! links it. All names of its functions are numbers, so that no parameter's name has to be avoided.

use std::fmt::Write as _;

use weft_artifact::{ArrayType, Complex, Number, Param, Scalar};

use super::{
    functions::output,
    types::{self, CParam},
};
use crate::{ExportedKernel, Package};

/// What is the same in all files.
const HELPERS: &str = include_str!("torch.inc");

/// The source, if a kernel can be an operator.
pub(super) fn source(package: &Package) -> Option<String> {
    let operators: Vec<Operator<'_>> = package.kernels.iter().filter_map(Operator::of).collect();
    if operators.is_empty() {
        return None;
    }
    let name = &package.name;
    let mut text = format!(
        "/* The kernels of the package `{name}` as operators of PyTorch, `torch.ops.{name}`. Written by `weft build`: do not \
         edit.\n *\n * In CMake, `find_package(Torch)` before the package defines {name}::torch, which has them. A process has \
         them once:\n * from here, or from `as_torch_op` in Python.\n */\n#include \"{name}.h\"\n\n{HELPERS}"
    );
    let mut registered = String::new();
    for operator in &operators {
        text.push_str(&operator.function(package));
        let schema = operator.schema();
        let _ = writeln!(registered, "    library.def(\"{schema}\", {{at::Tag::pt2_compliant_tag}});");
        for key in ["CPU", "CUDA", "Meta"] {
            let _ = writeln!(
                registered,
                "    library.impl(\"{0}\", torch::dispatch(c10::DispatchKey::{key}, TORCH_FN({0}_operator)));",
                operator.kernel.name
            );
        }
    }
    let _ = write!(text, "\n}}  // namespace\n\nTORCH_LIBRARY_FRAGMENT({name}, library) {{\n{registered}}}\n");
    Some(text)
}

/// A parameter of an operator.
enum Kind {
    /// A tensor.
    Array(ArrayType, Number),
    /// An integer, with its type in C.
    Int(&'static str),
    /// A float, with its type in C.
    Float(&'static str),
    Bool,
}

/// A kernel that can be an operator.
struct Operator<'a> {
    kernel: &'a ExportedKernel,
    /// Its parameters: the kernel's.
    params: Vec<(&'a Param, Kind)>,
    /// The first array that is no output: its device is that of the operator.
    first: usize,
}

impl<'a> Operator<'a> {
    /// `None` for a kernel without a launch rule or without arrays to read, and for one that takes a number that
    /// PyTorch's schemas do not have.
    fn of(kernel: &'a ExportedKernel) -> Option<Self> {
        kernel.launch.as_ref()?;
        let kind = |param: &'a Param| Some((param, kind(CParam::of(param)?)?));
        let params: Vec<_> = kernel.params.iter().map(kind).collect::<Option<_>>()?;
        let is_input =
            |(param, kind): &(&Param, Kind)| matches!(kind, Kind::Array(..)) && output(kernel, param).is_none();
        let first = params.iter().position(is_input)?;
        Some(Self { kernel, params, first })
    }

    /// The parameters that a call passes, with their numbers.
    fn inputs(&self) -> impl Iterator<Item = (usize, &(&'a Param, Kind))> {
        self.params.iter().enumerate().filter(|(_, (param, _))| output(self.kernel, param).is_none())
    }

    /// The numbers of the outputs.
    fn outputs(&self) -> impl Iterator<Item = (usize, &(&'a Param, Kind))> {
        self.params.iter().enumerate().filter(|(_, (param, _))| output(self.kernel, param).is_some())
    }

    /// `saxpy(Tensor x, float a, Tensor(a!) y) -> ()`
    fn schema(&self) -> String {
        let mut aliases = 'a'..='z';
        let mut parameter = |(param, kind): &(&Param, Kind)| {
            let ty = match kind {
                Kind::Array(..) if param.access.writes || param.access.accumulates => {
                    format!("Tensor({}!)", aliases.next().unwrap_or('z'))
                }
                Kind::Array(..) => "Tensor".to_owned(),
                Kind::Int(_) => "int".to_owned(),
                Kind::Float(_) => "float".to_owned(),
                Kind::Bool => "bool".to_owned(),
            };
            format!("{ty} {}", param.name)
        };
        let params: Vec<String> = self.inputs().map(|(_, param)| parameter(param)).collect();
        let results = vec!["Tensor"; self.outputs().count()].join(", ");
        let results = if self.outputs().count() == 1 { results } else { format!("({results})") };
        format!("{}({}) -> {results}", self.kernel.name, params.join(", "))
    }

    /// The definition of the operator.
    fn function(&self, package: &Package) -> String {
        let kernel = &self.kernel.name;
        let exported = format!("{}_{kernel}", package.name);
        let results = self.outputs().count();
        let result = match results {
            0 => "void".to_owned(),
            1 => "at::Tensor".to_owned(),
            _ => format!("std::tuple<{}>", vec!["at::Tensor"; results].join(", ")),
        };
        let params: Vec<String> =
            self.inputs().map(|(index, (_, kind))| format!("{} p{index}", kind.of_call())).collect();
        let mut text = format!(
            "\n{result} {kernel}_operator({}) {{\n    const char *const op = \"{}::{kernel}\";\n    const at::Device device = \
             p{}.device();\n    const c10::DeviceGuard guard(device);\n",
            params.join(", "),
            package.name,
            self.first
        );
        for (index, (param, kind)) in self.inputs() {
            text.push_str(&value(index, param, kind));
        }
        let given: Vec<String> = self.inputs().map(|(index, _)| format!("a{index}")).collect();
        for (index, (param, kind)) in self.outputs() {
            let Kind::Array(array, number) = kind else { continue };
            let (ndim, extents, name) = (array.ndim, array.ndim.max(1), &param.name);
            let _ = write!(
                text,
                "    int64_t s{index}[{extents}] = {{0}};\n    check(op, {exported}_shape_of_{name}({}, s{index}));\n    const \
                 at::Tensor t{index} = at::empty(at::IntArrayRef(s{index}, {ndim}), \
                 at::TensorOptions().dtype({}).device(device));\n",
                given.join(", "),
                scalar_type(*number)
            );
            text.push_str(&of_tensor(index, param, *array, *number));
        }
        let all: Vec<String> = (0..self.params.len()).map(|index| format!("a{index}")).collect();
        let _ = writeln!(
            text,
            "    if (!device.is_meta()) check(op, {exported}(where_of(op, device), {}));",
            all.join(", ")
        );
        let results: Vec<String> = self.outputs().map(|(index, _)| format!("t{index}")).collect();
        match results.len() {
            0 => {}
            1 => {
                let _ = writeln!(text, "    return {};", results[0]);
            }
            _ => {
                let _ = writeln!(text, "    return {{{}}};", results.join(", "));
            }
        }
        text.push_str("}\n");
        text
    }
}

impl Kind {
    /// Its type in the operator's function.
    const fn of_call(&self) -> &'static str {
        match self {
            Self::Array(..) => "const at::Tensor &",
            Self::Int(_) => "int64_t",
            Self::Float(_) => "double",
            Self::Bool => "bool",
        }
    }
}

fn kind(param: CParam) -> Option<Kind> {
    match param {
        CParam::Array(array, number) => Some(Kind::Array(array, number)),
        CParam::Number(number) => match number.real()? {
            Scalar::Bool => Some(Kind::Bool),
            Scalar::I8
            | Scalar::I16
            | Scalar::I32
            | Scalar::I64
            | Scalar::U8
            | Scalar::U16
            | Scalar::U32
            | Scalar::U64 => Some(Kind::Int(types::number(number))),
            Scalar::F32 | Scalar::F64 => Some(Kind::Float(types::number(number))),
            Scalar::F16 | Scalar::BF16 => None,
        },
    }
}

/// The statements that make `a0` of the argument `p0`.
fn value(index: usize, param: &Param, kind: &Kind) -> String {
    let name = &param.name;
    match kind {
        Kind::Array(array, number) => {
            let is_written = param.access.writes || param.access.accumulates;
            let take = if is_written { "written" } else { "read" };
            let tensor = format!("    const at::Tensor t{index} = {take}(op, \"{name}\", p{index});\n");
            tensor + &of_tensor(index, param, *array, *number)
        }
        Kind::Int(ty) => format!("    const auto a{index} = integer<{ty}>(op, \"{name}\", p{index});\n"),
        Kind::Float(ty) => format!("    const auto a{index} = static_cast<{ty}>(p{index});\n"),
        Kind::Bool => format!("    const bool a{index} = p{index};\n"),
    }
}

fn of_tensor(index: usize, param: &Param, array: ArrayType, number: Number) -> String {
    format!(
        "    const auto a{index} = array<{}>(op, \"{}\", t{index}, {}, {}, device);\n",
        CParam::Array(array, number).ty(),
        param.name,
        array.ndim,
        scalar_type(number)
    )
}

/// The dtype in PyTorch.
const fn scalar_type(number: Number) -> &'static str {
    match number {
        Number::Real(scalar) => match scalar {
            Scalar::Bool => "at::kBool",
            Scalar::I8 => "at::kChar",
            Scalar::I16 => "at::kShort",
            Scalar::I32 => "at::kInt",
            Scalar::I64 => "at::kLong",
            Scalar::U8 => "at::kByte",
            Scalar::U16 => "at::kUInt16",
            Scalar::U32 => "at::kUInt32",
            Scalar::U64 => "at::kUInt64",
            Scalar::F16 => "at::kHalf",
            Scalar::BF16 => "at::kBFloat16",
            Scalar::F32 => "at::kFloat",
            Scalar::F64 => "at::kDouble",
        },
        Number::Complex(Complex::C64) => "at::kComplexFloat",
        Number::Complex(Complex::C128) => "at::kComplexDouble",
    }
}
