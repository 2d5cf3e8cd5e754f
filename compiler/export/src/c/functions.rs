//! The package's header: the types of its arrays, and the declarations of its functions.

use std::{collections::BTreeSet, fmt::Write as _};

use weft_artifact::{
    Access, Number, Param,
    rules::{OutputRule, OutputShape},
};

use super::types::{self, CParam};
use crate::{ExportedKernel, Package};

/// A function of a kernel, without its final punctuation.
pub(super) struct Function {
    /// The declaration.
    pub(super) head: String,
    /// What it does.
    pub(super) comment: String,
}

pub(super) fn header(package: &Package) -> String {
    let guard = format!("{}_H", package.name.to_uppercase());
    let mut text = format!(
        "/* The kernels of the package `{}`, exported by weft {}. Written by `weft build`: do not edit.\n *\n \
         * A function returns WEFT_OK, or says by `weft_message` what is wrong. Nothing is launched then.\n \
         */\n#ifndef {guard}\n#define {guard}\n\n#include \"weft.h\"\n\n#ifdef __cplusplus\nextern \"C\" {{\n#endif\n",
        package.name,
        env!("CARGO_PKG_VERSION")
    );
    for (number, ndim) in arrays(package) {
        text.push_str(&array(number, ndim));
    }
    for kernel in &package.kernels {
        let _ = write!(text, "\n/* {}\n", kernel.name);
        for param in &kernel.params {
            let _ = writeln!(text, " *   {}: {}", types::name(param), describe(kernel, param));
        }
        text.push_str(" */\n");
        for Function { head, comment } in functions(package, kernel) {
            let _ = write!(text, "\n/* {comment} */\n{head};\n");
        }
    }
    text.push_str("\n#ifdef __cplusplus\n}\n#endif\n\n#endif\n");
    text
}

/// The array types of the package: numbers and dimensions.
fn arrays(package: &Package) -> BTreeSet<(Number, u8)> {
    let params = package.kernels.iter().flat_map(|kernel| &kernel.params);
    params
        .filter_map(|param| match CParam::of(param)? {
            CParam::Array(array, number) => Some((number, array.ndim)),
            CParam::Number(_) => None,
        })
        .collect()
}

/// The type of arrays. Several packages may define it.
fn array(number: Number, ndim: u8) -> String {
    let name = format!("weft_{}_{ndim}d", number.name());
    let guard = name.to_uppercase();
    // C has no arrays without elements.
    let extents = ndim.max(1);
    format!(
        "\n#ifndef {guard}\n#define {guard}\n/* An array of {} with {ndim} dimension{}. The strides are in bytes; all zero \
         for a contiguous array. */\ntypedef struct {name} {{\n    {} *data;\n    int64_t shape[{extents}];\n    int64_t \
         strides[{extents}];\n}} {name};\n#endif\n",
        number.name(),
        if ndim == 1 { "" } else { "s" },
        types::number(number),
    )
}

/// The output rule of a parameter.
pub(super) fn output<'a>(kernel: &'a ExportedKernel, param: &Param) -> Option<&'a OutputRule> {
    let index = kernel.params.iter().position(|other| other.name == param.name)?;
    kernel.outputs.iter().find(|rule| rule.param as usize == index)
}

/// A parameter, for a comment.
fn describe(kernel: &ExportedKernel, param: &Param) -> String {
    let Some(CParam::Array(array, _)) = CParam::of(param) else { return param.ty.to_string() };
    let Access { reads, writes, accumulates } = param.access;
    let access = match (reads, writes, accumulates) {
        (_, _, true) => "accumulated into",
        (true, true, false) => "read and written",
        (true, false, false) => "read",
        (false, true, false) => "written",
        (false, false, false) => "unused",
    };
    let order = match array.layout {
        weft_artifact::Layout::C => "contiguous",
        weft_artifact::Layout::F => "contiguous in Fortran's order",
        weft_artifact::Layout::Any => "any strides",
    };
    let output = output(kernel, param)
        .map_or("", |rule| if rule.zeroed { ", an output, set to zeros first" } else { ", an output" });
    format!("{}, {order}, {access}{output}", param.ty)
}

/// The parameters in C, after some.
fn parameters<'a>(before: &str, params: impl Iterator<Item = &'a Param>, after: &str) -> String {
    let given = params.filter_map(|param| Some(format!("{} {}", CParam::of(param)?.ty(), types::name(param))));
    let all: Vec<String> = [before.to_owned()]
        .into_iter()
        .chain(given)
        .chain([after.to_owned()])
        .filter(|part| !part.is_empty())
        .collect();
    if all.is_empty() { "void".to_owned() } else { all.join(", ") }
}

/// The functions of a kernel: those that launch it, one that loads it, and one for the shape of each output.
pub(super) fn functions(package: &Package, kernel: &ExportedKernel) -> Vec<Function> {
    let name = format!("{}_{}", package.name, kernel.name);
    let mut functions = Vec::new();
    if kernel.launch.is_some() {
        functions.push(Function {
            head: format!("weft_status {name}({})", parameters("weft_where where", kernel.params.iter(), "")),
            comment: "Launches the kernel with the grid and the block of its launch rule.".to_owned(),
        });
    }
    let before = "weft_where where, weft_dim3 grid, weft_dim3 block, uint32_t shared_bytes";
    functions.push(Function {
        head: format!("weft_status {name}_with({})", parameters(before, kernel.params.iter(), "")),
        comment: "Launches the kernel with a grid, a block, and bytes of dynamic shared memory.".to_owned(),
    });
    functions.push(Function {
        head: format!("weft_status {name}_load(weft_where where)"),
        comment:
            "Loads the kernel for the current GPU, so that its first launch does not. Needed before it is captured in \
                  a CUDA graph."
                .to_owned(),
    });
    for rule in &kernel.outputs {
        functions.push(shape_function(&name, kernel, rule));
    }
    functions
}

/// The function for the shape of an output.
fn shape_function(name: &str, kernel: &ExportedKernel, rule: &OutputRule) -> Function {
    let param = kernel.params.get(rule.param as usize).map(|param| param.name.as_str()).unwrap_or_default();
    let ndim = match &rule.shape {
        OutputShape::Like(like) => kernel.params.get(*like as usize).and_then(CParam::of),
        OutputShape::Extents(_) => kernel.params.get(rule.param as usize).and_then(CParam::of),
    };
    let ndim = match ndim {
        Some(CParam::Array(array, _)) => array.ndim.max(1),
        Some(CParam::Number(_)) | None => 1,
    };
    let inputs = inputs(kernel);
    Function {
        head: format!(
            "weft_status {name}_shape_of_{param}({})",
            parameters("", inputs, &format!("int64_t shape[{ndim}]"))
        ),
        comment: format!(
            "Computes the shape of the output `{param}` from the other arguments, whose elements it does not read."
        ),
    }
}

/// The parameters that are no outputs.
pub(super) fn inputs(kernel: &ExportedKernel) -> impl Iterator<Item = &Param> {
    kernel.params.iter().filter(|param| output(kernel, param).is_none())
}
