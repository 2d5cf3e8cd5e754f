//! The container: a header, a description in JSON, and the code. `docs/reference/packages.md` documents it.

use weft_artifact::{
    ArgType, ArrayType, DType, HostEntry, Kernel, Param, SlotField, SlotSource,
    rules::{LaunchRule, OutputRule},
};

use crate::{ExportedKernel, FORMAT, Image, Package, json::Json};

/// The first bytes.
const MAGIC: &[u8; 8] = b"weftkern";

/// The alignment of the code of each image.
const ALIGN: usize = 16;

pub(crate) fn write(package: &Package) -> Vec<u8> {
    // Offsets count from the end of the description, so that they do not depend on its length.
    let mut code = Vec::new();
    let kernels = package.kernels.iter().map(|kernel| of_kernel(kernel, &mut code)).collect();
    let description = Json::Object(vec![
        ("weft", Json::text(env!("CARGO_PKG_VERSION"))),
        ("format", Json::Int(FORMAT.into())),
        ("name", Json::text(&package.name)),
        ("kernels", Json::List(kernels)),
    ]);
    let mut text = String::new();
    description.write(0, &mut text);
    text.push('\n');
    let header = MAGIC.len() + 8;
    text.extend(std::iter::repeat_n(' ', (header + text.len()).next_multiple_of(ALIGN) - header - text.len()));
    let mut bytes = MAGIC.to_vec();
    bytes.extend(FORMAT.to_le_bytes());
    bytes.extend((text.len() as u32).to_le_bytes());
    bytes.extend(text.as_bytes());
    bytes.extend(code);
    bytes
}

fn of_kernel(kernel: &ExportedKernel, code: &mut Vec<u8>) -> Json {
    let ExportedKernel { name, params, launch, outputs, images } = kernel;
    Json::Object(vec![
        ("name", Json::text(name)),
        ("params", Json::List(params.iter().map(of_param).collect())),
        ("launch", launch.as_ref().map_or(Json::Null, |rule: &LaunchRule| Json::text(rule.to_string()))),
        ("outputs", Json::List(outputs.iter().map(|rule: &OutputRule| Json::text(rule.to_string())).collect())),
        ("images", of_images(images.iter().filter(|image| image.is_general()), code)),
        ("specialized", of_images(images.iter().filter(|image| !image.is_general()), code)),
    ])
}

fn of_param(param: &Param) -> Json {
    let mut members = vec![("name", Json::text(&param.name))];
    let dtype = |dtype: DType| ("dtype", Json::text(dtype.to_string()));
    match &param.ty {
        ArgType::Array(ArrayType { dtype: of, ndim, layout, readonly: _ }) => members.extend([
            ("kind", Json::text("array")),
            dtype(*of),
            ("ndim", Json::Int((*ndim).into())),
            ("layout", Json::text(layout.letter())),
            ("reads", Json::Bool(param.access.reads)),
            ("writes", Json::Bool(param.access.writes)),
            ("accumulates", Json::Bool(param.access.accumulates)),
        ]),
        ArgType::Value(of) => members.extend([("kind", Json::text("number")), dtype(*of)]),
        other @ (ArgType::Tuple(_)
        | ArgType::None
        | ArgType::Struct(..)
        | ArgType::Enum(..)
        | ArgType::Record(_)
        | ArgType::Class(_)
        | ArgType::Pointer(_)
        | ArgType::Optional(_)) => members.push(("kind", Json::text(other.to_string()))),
    }
    Json::Object(members)
}

fn of_images<'a>(images: impl Iterator<Item = &'a Image>, code: &mut Vec<u8>) -> Json {
    Json::List(images.map(|image| of_image(image, code)).collect())
}

fn of_image(image: &Image, code: &mut Vec<u8>) -> Json {
    let Kernel { symbol, slots, shared_bytes, max_threads, dynamic_shared, cooperative, host, .. } = &image.kernel;
    let offset = code.len();
    code.extend(&image.code);
    code.resize(code.len().next_multiple_of(ALIGN), 0);
    let slots = slots.iter().map(|slot| {
        let SlotSource::Argument { param, path: _, field } = &slot.source else { return Json::Null };
        let (field, dim) = match field {
            SlotField::Value => ("value", None),
            SlotField::Real => ("real", None),
            SlotField::Imag => ("imag", None),
            SlotField::Data => ("data", None),
            SlotField::Shape(dim) => ("shape", Some(*dim)),
            SlotField::Stride(dim) => ("stride", Some(*dim)),
            SlotField::Start | SlotField::Room | SlotField::Least | SlotField::Limit => ("bound", None),
        };
        let mut items = vec![Json::Int((*param).into()), Json::text(field)];
        items.extend(dim.map(|dim| Json::Int(dim.into())));
        Json::List(items)
    });
    let mut members = vec![
        ("target", Json::text(&image.target)),
        ("format", Json::text(image.format.name())),
        ("symbol", Json::text(symbol)),
        ("offset", Json::Int(offset as u64)),
        ("size", Json::Int(image.code.len() as u64)),
        ("slots", Json::List(slots.collect())),
        ("shared_bytes", Json::Int(*shared_bytes)),
        ("max_threads", max_threads.map_or(Json::Null, |most| Json::Int(most.into()))),
        ("dynamic_shared", Json::Bool(*dynamic_shared)),
        ("cooperative", Json::Bool(*cooperative)),
    ];
    if !image.is_general() {
        members.push(("assumptions", Json::List(image.assumptions.names().map(Json::text).collect())));
    }
    if let Some(HostEntry { dynamic_offset, x_axis, .. }) = host {
        members.push(("dynamic_offset", Json::Int(*dynamic_offset)));
        members.push(("x_axis", Json::Int((*x_axis).into())));
    }
    Json::Object(members)
}
