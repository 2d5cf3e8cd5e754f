//! C sources that launch the kernels of a package, on GPUs and on the CPU, and a `CMake` package of them.
//!
//! The runtime (`weft.h`, `weft_launcher.h`, `weft_launcher.c`) is the same in every package; the package's own header and
//! source have typed functions, and another source has operators of PyTorch. Code for GPUs is in the source as bytes, code for the CPU is objects beside it.

mod cells;
mod cmake;
mod expr;
mod functions;
mod source;
mod torch;
mod types;

use crate::{File, ImageFormat, Package};

/// The version of the C sources: packages of one program must have the same.
const VERSION: u32 = 2;

/// The files that are the same in every package.
const RUNTIME: [(&str, &str); 3] = [
    ("weft.h", include_str!("weft.h")),
    ("weft_launcher.h", include_str!("weft_launcher.h")),
    ("weft_launcher.c", include_str!("weft_launcher.c")),
];

pub(crate) fn files(package: &Package) -> Vec<File> {
    let text = |name: String, text: String| File { name, bytes: text.into_bytes() };
    let mut files: Vec<File> =
        RUNTIME.iter().map(|(name, text)| File { name: (*name).to_owned(), bytes: text.as_bytes().to_vec() }).collect();
    let name = &package.name;
    files.push(text(format!("{name}.h"), functions::header(package)));
    files.push(text(format!("{name}.c"), source::source(package)));
    let operators = torch::source(package);
    files.push(text("CMakeLists.txt".to_owned(), cmake::lists(package)));
    files.push(text(format!("{name}Config.cmake"), cmake::config(package, operators.is_some())));
    files.extend(operators.map(|source| text(format!("{name}_torch.cpp"), source)));
    for (object, bytes) in objects(package) {
        files.push(File { name: object, bytes: bytes.to_vec() });
    }
    files
}

/// The objects of the package: their names and their bytes.
fn objects(package: &Package) -> impl Iterator<Item = (String, &[u8])> {
    package.kernels.iter().flat_map(|kernel| {
        let objects = kernel.images.iter().filter(|image| image.format == ImageFormat::HostObject);
        objects.map(|image| {
            let suffix = if image.is_general() { "" } else { ".specialized" };
            (format!("{}.{}{suffix}.o", kernel.name, image.target), image.code.as_slice())
        })
    })
}

#[cfg(test)]
mod tests {
    use std::mem::{offset_of, size_of};

    use weft_artifact::{
        ALIGNED, Addresses, HostConfig, HostContext, HostWatch, SMALL_BLOCKS, SMALL_EXTENT, SMALL_SIZE,
    };

    #[test]
    fn the_runtime_in_c_has_the_numbers_of_this_crate() {
        let has = |text: &str, line: String| assert!(text.contains(&line), "{line}");
        has(include_str!("weft.h"), format!("#define WEFT_FORMAT {}\n", super::VERSION));
        let launcher = include_str!("weft_launcher.c");
        has(launcher, format!("#define MOST_EXTENT {SMALL_EXTENT}\n"));
        has(launcher, format!("#define MOST_ELEMENTS {SMALL_SIZE}\n"));
        has(launcher, format!("#define MOST_BLOCKS {SMALL_BLOCKS}\n"));
        has(launcher, format!("#define ALIGNED {ALIGNED}\n"));
        has(launcher, format!("#define MOST_ARRAYS {}\n", Addresses::MOST));
    }

    #[test]
    fn the_runtime_in_c_has_the_layout_of_the_context() {
        assert_eq!(offset_of!(HostContext, scratch), 32);
        assert_eq!(offset_of!(HostContext, lowest), 72);
        assert_eq!(offset_of!(HostContext, fault), 104);
        assert_eq!(offset_of!(HostContext, checks), 128);
        assert_eq!(offset_of!(HostContext, seen), 152);
        assert_eq!(size_of::<HostContext>(), 192);
        assert_eq!(offset_of!(HostConfig, watch), 32);
        assert_eq!(offset_of!(HostWatch, give_up), 16);
    }
}
