//! The `CMake` package: `find_package(NAME)` and `add_subdirectory` define the library `NAME::NAME`.

use std::fmt::Write as _;

use super::objects;
use crate::Package;

/// `CMakeLists.txt`, for `add_subdirectory`.
pub(super) fn lists(package: &Package) -> String {
    let name = &package.name;
    format!(
        "# Written by `weft build`: do not edit.\ncmake_minimum_required(VERSION 3.16)\nproject({name} LANGUAGES \
         C)\ninclude(${{CMAKE_CURRENT_LIST_DIR}}/{name}Config.cmake)\n"
    )
}

/// The package's configuration, for `find_package`, with the library of PyTorch's operators if there are some.
pub(super) fn config(package: &Package, has_operators: bool) -> String {
    let name = &package.name;
    let mut objects: Vec<String> = objects(package).map(|(object, _)| object).collect();
    objects.sort();
    let mut text = format!(
        "# The kernels of `{name}`: link {name}::{name}. Written by `weft build`: do not edit.\nif(TARGET \
         {name}::{name})\n  return()\nendif()\nenable_language(C)\nfind_package(Threads REQUIRED)\nadd_library({name}_kernels \
         STATIC\n  ${{CMAKE_CURRENT_LIST_DIR}}/{name}.c\n  ${{CMAKE_CURRENT_LIST_DIR}}/weft_launcher.c"
    );
    for object in &objects {
        let _ = write!(text, "\n  ${{CMAKE_CURRENT_LIST_DIR}}/{object}");
    }
    text.push(')');
    if !objects.is_empty() {
        text.push_str("\nset_source_files_properties(");
        for object in &objects {
            let _ = write!(text, "\n  ${{CMAKE_CURRENT_LIST_DIR}}/{object}");
        }
        text.push_str("\n  PROPERTIES EXTERNAL_OBJECT TRUE GENERATED TRUE)");
    }
    let _ = write!(
        text,
        "\nadd_library({name}::{name} ALIAS {name}_kernels)\nset_target_properties({name}_kernels PROPERTIES C_STANDARD 11 C_EXTENSIONS ON \
         POSITION_INDEPENDENT_CODE ON)\ntarget_include_directories({name}_kernels PUBLIC \
         ${{CMAKE_CURRENT_LIST_DIR}})\ntarget_link_libraries({name}_kernels PUBLIC Threads::Threads \
         ${{CMAKE_DL_LIBS}})\n"
    );
    if has_operators {
        text.push_str(&operators(name));
    }
    text
}

/// The library with operators of PyTorch. `--no-as-needed` keeps it linked, although no program refers to its symbols.
fn operators(name: &str) -> String {
    format!(
        "if(TARGET torch)\n  enable_language(CXX)\n  add_library({name}_torch SHARED \
         ${{CMAKE_CURRENT_LIST_DIR}}/{name}_torch.cpp)\n  add_library({name}::torch ALIAS {name}_torch)\n  \
         target_compile_features({name}_torch PRIVATE cxx_std_20)\n  separate_arguments({name}_torch_flags UNIX_COMMAND \
         \"${{TORCH_CXX_FLAGS}}\")\n  target_compile_options({name}_torch PRIVATE ${{{name}_torch_flags}})\n  \
         target_link_libraries({name}_torch PRIVATE {name}_kernels torch)\n  target_link_options({name}_torch INTERFACE \
         LINKER:--no-as-needed)\nendif()\n"
    )
}
