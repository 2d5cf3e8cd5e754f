//! Kernels that callers without weft cannot launch, each with a sentence that says what to write instead.

use weft_artifact::{ArgType, Compound, DType, Kernel, Param};

use crate::{ExportedKernel, Image, Package};

/// The reserved words of C and C++.
pub(crate) const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "and_eq",
    "asm",
    "auto",
    "bitand",
    "bitor",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "compl",
    "concept",
    "const",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "mutable",
    "namespace",
    "new",
    "noexcept",
    "not",
    "not_eq",
    "nullptr",
    "operator",
    "or",
    "or_eq",
    "private",
    "protected",
    "public",
    "register",
    "requires",
    "restrict",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "xor_eq",
];

/// The most cells of a kernel's arguments.
const MAX_CELLS: usize = 1000;

pub(crate) fn check(package: &Package) -> Result<(), String> {
    if !is_identifier(&package.name) {
        return Err(format!(
            "the package's name `{}` is no identifier of C: use letters, digits and underscores",
            package.name
        ));
    }
    package.kernels.iter().try_for_each(check_kernel)
}

/// Whether a name has the form of an identifier of C. Reserved words are no problem: they are parts of longer names, or
/// get an underscore.
fn is_identifier(name: &str) -> bool {
    let is_part = |c: char| c.is_ascii_alphanumeric() || c == '_';
    name.starts_with(|c: char| is_part(c) && !c.is_ascii_digit()) && name.chars().all(is_part)
}

fn check_kernel(kernel: &ExportedKernel) -> Result<(), String> {
    let name = &kernel.name;
    if !is_identifier(name) {
        return Err(format!("kernel `{name}`: its name is no identifier of C: rename it"));
    }
    for param in &kernel.params {
        let what = format!("kernel `{name}`, parameter `{}`:", param.name);
        if !is_identifier(&param.name) {
            return Err(format!("{what} its name is no identifier of C: rename it"));
        }
        check_type(param).map_err(|why| format!("{what} {why}"))?;
    }
    let cells: usize = kernel.params.iter().map(|param| param.ty.cells()).sum();
    if cells > MAX_CELLS {
        return Err(format!("kernel `{name}`: it has too many parameters to be exported"));
    }
    kernel.images.iter().try_for_each(|image| check_image(image).map_err(|why| format!("kernel `{name}`: {why}")))
}

fn check_type(param: &Param) -> Result<(), String> {
    let of_dtype = |dtype: DType| match dtype {
        DType::Number(_) => Ok(()),
        DType::Compound(id) => Err(match id.get() {
            Compound::Record(_) | Compound::Nested(_) => {
                format!("{dtype} is a record: pass an array for each of its fields")
            }
            Compound::Vector(_) => format!("{dtype} is a vector: pass an array with one more dimension"),
            Compound::Chars(_) => format!("{dtype} is a string: pass an array of integers"),
            Compound::Time(_) => format!("{dtype} is a time: pass its count as int64"),
            Compound::Float8(_) => format!("{dtype} is a float of 8 bits: pass its bits as uint8"),
        }),
    };
    match &param.ty {
        ArgType::Value(dtype) => of_dtype(*dtype),
        ArgType::Array(array) => of_dtype(array.dtype),
        ArgType::Record(dtype) => of_dtype(*dtype),
        ArgType::Tuple(_) | ArgType::Struct(..) => {
            Err(format!("exported kernels take numbers and arrays, not {}: pass its values as parameters", param.ty))
        }
        ArgType::Enum(..) => Err("exported kernels take numbers and arrays, not enums: pass the value".to_owned()),
        ArgType::None | ArgType::Class(_) => {
            Err(format!("{} has no value in C: make it a constant of the kernel", param.ty))
        }
        ArgType::Pointer(_) => Err("a pointer has an unknown extent: pass an array".to_owned()),
        ArgType::Optional(_) => {
            Err(format!("{} may be None, which C does not have: export a kernel for each case", param.ty))
        }
    }
}

fn check_image(image: &Image) -> Result<(), String> {
    let Kernel { faults, prints, sanitize, host, .. } = &image.kernel;
    if faults.is_some() {
        return Err(
            "it reports exceptions, which callers without weft do not read: leave out exceptions=True, debug=True \
                    and boundscheck=True"
                .to_owned(),
        );
    }
    if *prints {
        return Err("it prints, which needs weft's runtime: remove `print`".to_owned());
    }
    if host.is_some_and(|host| host.calls_runtime) {
        return Err(
            "its matrix tiles or asynchronous copies need weft's runtime on a CPU: export it for GPUs only, without the target `host`"
                .to_owned(),
        );
    }
    if sanitize.is_some() {
        return Err("code with the checks of the sanitizer is not exported: leave out sanitize=".to_owned());
    }
    if host.is_some_and(|host| host.stack_bytes.is_some()) {
        return Err(
            "its threads wait for each other in a way that needs a stack for each, which only weft's own runtime \
                    has: export it for GPUs only, without the target `host`"
                .to_owned(),
        );
    }
    if host.is_some_and(|host| host.below_bytes > 0) {
        return Err(
            "it is recursive, and the depth of its calls on the CPU is checked by weft's runtime: export it for \
                    GPUs only, without the target `host`"
                .to_owned(),
        );
    }
    Ok(())
}
