//! The package's source: code for GPUs as bytes, the description of each kernel for the runtime, and its functions.

use std::fmt::Write as _;

use weft_artifact::{
    Access, Assumptions, Layout, Number, Param,
    rules::{LaunchRule, OutputRule, OutputShape},
};

use super::{
    cells,
    expr::Exprs,
    functions::{Function, functions, inputs, output},
    types::{self, CParam},
};
use crate::{ExportedKernel, Image, ImageFormat, Package};

pub(super) fn source(package: &Package) -> String {
    let mut text = format!(
        "/* The code of the package `{0}`, exported by weft {1}. Written by `weft build`: do not edit. */\n#include \
         \"{0}.h\"\n#include \"weft_launcher.h\"\n\n#if WEFT_FORMAT != {2}\n#error \"weft.h is of another version of weft: build \
         all packages of a program with the same\"\n#endif\n",
        package.name,
        env!("CARGO_PKG_VERSION"),
        super::VERSION
    );
    for kernel in &package.kernels {
        text.push_str(&describe(kernel));
        text.push_str(&launches(package, kernel));
    }
    text
}

/// An initializer of a list, in lines.
fn list(items: impl Iterator<Item = String>) -> String {
    let mut text = String::new();
    let mut width = 4;
    for item in items {
        if width + item.len() > 118 {
            text.push_str("\n    ");
            width = 4;
        }
        width += item.len() + 1;
        text.push_str(&item);
        text.push(',');
    }
    text
}

fn slots(kernel: &ExportedKernel, image: &Image, index: usize) -> String {
    let cells = cells::of_slots(&kernel.params, &image.kernel);
    let all = if cells.is_empty() { "0".to_owned() } else { list(cells.iter().map(ToString::to_string)) };
    format!("static const uint16_t {}_slots_{index}[] = {{{all}}};\n", kernel.name)
}

/// Assumptions as the runtime's bits.
fn bits(assumptions: Assumptions) -> String {
    let bits: Vec<String> = assumptions.names().map(|name| format!("WEFT_{}", name.to_uppercase())).collect();
    if bits.is_empty() { "0".to_owned() } else { bits.join(" | ") }
}

/// The parameters of a kernel for the runtime.
fn describe_params(kernel: &ExportedKernel) -> String {
    let firsts = cells::firsts(&kernel.params);
    let params = kernel.params.iter().enumerate().zip(&firsts).map(|((index, param), first)| {
        // What any code does: images may differ, as each is optimized by itself.
        let any = |does: fn(&Access) -> bool| {
            kernel.images.iter().filter_map(|image| image.kernel.params.get(index)).any(|param| does(&param.access))
        };
        let (ndim, layout, number) = match CParam::of(param) {
            Some(CParam::Array(array, number)) => (array.ndim, array.layout, number),
            Some(CParam::Number(number)) => (0, Layout::C, number),
            None => (0, Layout::C, Number::F64),
        };
        let is_array = matches!(CParam::of(param), Some(CParam::Array(..)));
        let rule = output(kernel, param);
        // An output is contiguous, so that it can be set to zeros at once.
        let layout = if rule.is_some() { Layout::C } else { layout };
        format!(
            "    {{\"{}\", {first}, {is_array}, {}, {}, {}, {}, {}, {ndim}, '{}', '{}', {}, {}}},\n",
            param.name,
            param.access.writes,
            any(|access| access.reads && !access.writes),
            any(|access| access.accumulates),
            rule.is_some(),
            rule.is_some_and(|rule| rule.zeroed),
            layout.letter(),
            kind(number),
            number.size_bytes(),
            number.align_bytes()
        )
    });
    params.collect()
}

/// The letter of a number's kind for the runtime.
fn kind(number: Number) -> char {
    match number.real() {
        Some(scalar) if scalar.is_signed_int() => 'i',
        Some(scalar) if scalar.is_int() => 'u',
        Some(_) | None => 'f',
    }
}

/// The description of a kernel for the runtime.
fn describe(kernel: &ExportedKernel) -> String {
    let name = &kernel.name;
    let mut text = format!("\n/* {name} */\n\n");
    let params = describe_params(kernel);
    let none = "    {0},\n";
    let _ = write!(
        text,
        "static const weft_param {name}_params[] = {{\n{}}};\n",
        if params.is_empty() { none } else { &params }
    );
    let mut images = String::new();
    let (mut host, mut specialized) = ("NULL".to_owned(), "NULL".to_owned());
    let mut gpu_needs = Assumptions::NONE;
    for (index, image) in kernel.images.iter().enumerate() {
        text.push_str(&slots(kernel, image, index));
        let n_slots = image.kernel.slots.len();
        let needs = bits(image.assumptions);
        if image.format.is_gpu() {
            text.push_str(&bytes(&format!("{name}_code_{index}"), image));
            let (sm, variant) = sm(&image.target);
            let is_ptx = image.format == ImageFormat::Ptx;
            let symbol = &image.kernel.symbol;
            gpu_needs = gpu_needs.or(image.assumptions);
            let _ = writeln!(
                images,
                "    {{{sm}, {variant}, {is_ptx}, {needs}, {name}_code_{index}, \"{symbol}\", {name}_slots_{index}, {n_slots}}},"
            );
        } else if let Some(entry) = image.kernel.host {
            let _ = write!(
                text,
                "extern void {symbol}(void *context);\nstatic const char *const {name}_features_{index}[] = {{{features} \
                 NULL}};\nstatic const weft_host_image {name}_host_{index} = {{\n    {symbol}, {name}_slots_{index}, {n_slots}, \
                 {name}_features_{index}, {}, {}, {needs},\n}};\n",
                entry.dynamic_offset,
                entry.x_axis,
                symbol = image.kernel.symbol,
                features = list(features(&image.target).iter().map(|name| format!("\"{name}\""))),
            );
            let place = if image.is_general() { &mut host } else { &mut specialized };
            *place = format!("&{name}_host_{index}");
        }
    }
    let n_images = kernel.images.iter().filter(|image| image.format.is_gpu()).count();
    let images = if images.is_empty() { none } else { &images };
    let most =
        kernel.images.iter().filter_map(|image| image.kernel.max_threads).min().unwrap_or(LaunchRule::MAX_THREADS);
    let is_cooperative = kernel.images.iter().any(|image| image.kernel.cooperative);
    let _ = write!(
        text,
        "static const weft_image {name}_images[] = {{\n{images}}};\nstatic struct weft_loaded \
         {name}_loaded[2 * WEFT_DEVICES];\nstatic const weft_kernel {name}_kernel = {{\n    \"{name}\", {name}_params, {}, \
         {name}_images, {n_images}, {}, {host}, {specialized}, {most}, {is_cooperative}, {name}_loaded,\n}};\n",
        kernel.params.len(),
        bits(gpu_needs),
    );
    text
}

/// The code of an image as an array; PTX ends with a zero.
fn bytes(name: &str, image: &Image) -> String {
    let end = (image.format == ImageFormat::Ptx).then_some(0_u8);
    let all = list(image.code.iter().copied().chain(end).map(|byte| byte.to_string()));
    format!("static const unsigned char {name}[] __attribute__((aligned(16))) = {{\n    {all}\n}};\n")
}

/// The compute capability of a target such as `sm_90a`, and its variant.
fn sm(target: &str) -> (&str, String) {
    let name = target.strip_prefix("sm_").unwrap_or(target);
    match name.strip_suffix(['a', 'f']) {
        Some(digits) => (digits, format!("'{}'", &name[digits.len()..])),
        None => (name, "0".to_owned()),
    }
}

/// The instructions of a CPU that the runtime tests.
fn features(cpu: &str) -> &'static [&'static str] {
    match cpu {
        "x86-64" => &[],
        "x86-64-v2" => &["sse4.2"],
        "x86-64-v3" => &["avx2", "fma"],
        _ => &["avx2", "fma", "avx512f"],
    }
}

/// Statements that fill the cells.
fn fill<'a>(kernel: &'a ExportedKernel, params: impl Iterator<Item = &'a Param>) -> String {
    let firsts = cells::firsts(&kernel.params);
    let mut text = format!("    uint64_t cells[{}] = {{0}};\n", firsts.last().copied().unwrap_or(0).max(1));
    for param in params {
        let index = kernel.params.iter().position(|other| other.name == param.name).unwrap_or(0);
        let (first, name) = (firsts[index], types::name(param));
        let _ = match CParam::of(param) {
            Some(CParam::Number(number)) if number.is_complex() => writeln!(
                text,
                "    weft_put(cells + {first}, &{name}.real, sizeof {name}.real);\n    weft_put(cells + {}, &{name}.imag, \
                 sizeof {name}.imag);",
                first + 1
            ),
            Some(CParam::Number(_)) => writeln!(text, "    weft_put(cells + {first}, &{name}, sizeof {name});"),
            Some(CParam::Array(array, _)) => writeln!(
                text,
                "    weft_put_array(cells + {first}, {name}.data, {name}.shape, {name}.strides, {});",
                array.ndim
            ),
            None => Ok(()),
        };
    }
    text
}

/// The definitions of a kernel's functions.
fn launches(package: &Package, kernel: &ExportedKernel) -> String {
    let mut functions = functions(package, kernel).into_iter();
    let name = &kernel.name;
    let all = fill(kernel, kernel.params.iter());
    let check = format!(
        "    weft_status status = weft_check(&{name}_kernel, where, cells);\n    if (status != WEFT_OK) return status;\n"
    );
    let mut text = String::new();
    let mut define = |body: String| {
        if let Some(Function { head, .. }) = functions.next() {
            let _ = write!(text, "\n{head} {{\n{body}}}\n");
        }
    };
    if let Some(rule) = &kernel.launch {
        let exprs = Exprs::of(&kernel.params);
        let sizes: Vec<String> = rule.exprs().map(|expr| format!("        {},", exprs.write(expr))).collect();
        let sizes = sizes.join("\n");
        define(format!(
            "{all}{check}    int error = 0;\n    const int64_t sizes[WEFT_SIZES] = {{\n{sizes}\n    }};\n    return \
             weft_launch(&{name}_kernel, where, cells, sizes, error);\n"
        ));
    }
    define(format!(
        "{all}{check}    const int64_t sizes[WEFT_SIZES] = {{grid.x, grid.y, grid.z, block.x, block.y, block.z, \
         shared_bytes}};\n    return weft_launch(&{name}_kernel, where, cells, sizes, 0);\n"
    ));
    define(format!("    return weft_load(&{name}_kernel, where);\n"));
    for rule in &kernel.outputs {
        define(shape(kernel, rule));
    }
    text
}

/// The body of the function for the shape of an output.
fn shape(kernel: &ExportedKernel, rule: &OutputRule) -> String {
    let mut text = fill(kernel, inputs(kernel));
    text.push_str("    int error = 0;\n    (void)cells;\n");
    // Inputs that the rule does not use.
    for param in inputs(kernel) {
        let _ = writeln!(text, "    (void){};", types::name(param));
    }
    let exprs = Exprs::of(&kernel.params);
    let output = kernel.params.get(rule.param as usize);
    let ndim = match output.and_then(CParam::of) {
        Some(CParam::Array(array, _)) => array.ndim,
        Some(CParam::Number(_)) | None => 0,
    };
    for dim in 0..ndim {
        let extent = match &rule.shape {
            OutputShape::Like(param) => exprs.write(&weft_artifact::rules::RuleExpr::Extent(*param, dim.into())),
            OutputShape::Extents(extents) => {
                extents.get(usize::from(dim)).map_or_else(|| "0".to_owned(), |extent| exprs.write(extent))
            }
        };
        let _ = writeln!(text, "    shape[{dim}] = {extent};");
    }
    let name = output.map(|param| param.name.as_str()).unwrap_or_default();
    let _ = writeln!(text, "    return weft_shape(&{}_kernel, \"{name}\", shape, {ndim}, error);", kernel.name);
    text
}
