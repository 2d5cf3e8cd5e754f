//! Finds the libraries and headers of a CUDA toolkit that linking needs: NVRTC, which compiles CUDA C++, nvJitLink,
//! which links LTO-IR, and libNVVM, which makes LTO-IR of NVVM IR. They are proprietary, so weft ships none and links none: they are looked for on this machine when
//! something needs them, and their absence is an error only then.

use std::{
    env::split_paths,
    ffi::{OsStr, OsString},
    fs,
    path::{Path, PathBuf},
};

use crate::settings::{FileChoice, Settings};

/// Folders of a toolkit that have libraries.
pub(crate) const IN_TOOLKIT: &[&str] = &["lib64", "targets/x86_64-linux/lib", "lib"];

/// Folders of Python packages that have headers, below `site-packages`: those of CUDA 13 in one, of CUDA 12 in many.
const HEADERS_IN_SITE_PACKAGES: &[&str] = &[
    "nvidia/cu13/include",
    "nvidia/cuda_runtime/include",
    "nvidia/cuda_nvcc/include",
    "nvidia/cuda_cccl/include",
    "nvidia/curand/include",
];

/// Folders of Python packages that have ptxas, below `site-packages`.
const PTXAS_IN_SITE_PACKAGES: &[&str] = &["nvidia/cu13/bin", "nvidia/cuda_nvcc/bin"];

/// A library of the CUDA toolkit to search for.
#[derive(Debug)]
pub(crate) struct ToolkitLibrary {
    /// Its name: `NVRTC`.
    pub(crate) name: &'static str,
    /// The start of its file's name: `libnvrtc.so`.
    pub(crate) file: &'static str,
    /// The start of the name of a library beside it that it opens by its name alone, which a loader need not find.
    pub(crate) beside: Option<&'static str>,
    /// The setting that names the file.
    pub(crate) setting: &'static str,
    /// The Python package that has it.
    pub(crate) package: &'static str,
    /// Folders of a toolkit that have it.
    pub(crate) in_toolkit: &'static [&'static str],
    /// Folders of Python packages that have it, below `site-packages`.
    pub(crate) in_site_packages: &'static [&'static str],
    /// The versions that are requested from the system's loader.
    pub(crate) versions: &'static [&'static str],
}

/// The folders of toolkits, and the settings for them.
#[derive(Clone, Debug)]
pub struct Toolkit {
    /// NVRTC, as the settings choose it.
    pub(crate) nvrtc: FileChoice,
    /// nvJitLink, as the settings choose it.
    pub(crate) nvjitlink: FileChoice,
    /// libNVVM, as the settings choose it.
    pub(crate) libnvvm: FileChoice,
    /// Folders that the environment names.
    toolkits: Vec<PathBuf>,
    /// `site-packages` of a Python.
    site_packages: Vec<PathBuf>,
}

impl Toolkit {
    /// Notes where to look: in `CUDA_HOME` and `CUDA_PATH` as `variable` answers them, below `roots` (the `site-packages`
    /// folders of a Python), then in `/usr/local/cuda*`. Touches no file yet.
    pub fn new(settings: &Settings, variable: impl Fn(&str) -> Option<OsString>, roots: &[PathBuf]) -> Self {
        let toolkits = ["CUDA_HOME", "CUDA_PATH"].into_iter().filter_map(variable).filter(|path| !path.is_empty());
        Self {
            nvrtc: settings.nvrtc.clone(),
            nvjitlink: settings.nvjitlink.clone(),
            libnvvm: settings.libnvvm.clone(),
            toolkits: toolkits.map(PathBuf::from).collect(),
            site_packages: roots.to_vec(),
        }
    }

    /// All toolkits: the named ones, then those in the default folder, the one without a version first, then the
    /// newest.
    fn all_toolkits(&self) -> Vec<PathBuf> {
        let mut versions: Vec<(Vec<u32>, PathBuf)> = fs::read_dir("/usr/local")
            .into_iter()
            .flatten()
            .filter_map(|entry| {
                let path = entry.ok()?.path();
                let version = path.file_name()?.to_str()?.strip_prefix("cuda-")?;
                Some((version.split('.').map(|part| part.parse().unwrap_or(0)).collect(), path.clone()))
            })
            .collect();
        versions.sort_by(|(left, _), (right, _)| right.cmp(left));
        let usual = [PathBuf::from("/usr/local/cuda")].into_iter().chain(versions.into_iter().map(|(_, path)| path));
        self.toolkits.iter().cloned().chain(usual).collect()
    }

    /// The folders of headers that there are, for CUDA C++.
    pub fn includes(&self) -> Vec<PathBuf> {
        let packages =
            self.site_packages.iter().flat_map(|root| HEADERS_IN_SITE_PACKAGES.iter().map(|at| root.join(at)));
        let mut found = Vec::new();
        let toolkits = self.all_toolkits();
        // The headers of one toolkit are enough; those of packages are in several folders.
        let toolkit = toolkits.iter().map(|root| root.join("include")).find(|folder| folder.join("cuda.h").is_file());
        for folder in toolkit.into_iter().chain(packages.filter(|folder| folder.is_dir())) {
            let library = folder.join("cccl");
            found.push(folder);
            if library.is_dir() {
                found.push(library);
            }
        }
        found
    }

    /// `ptxas`: on the PATH, whose value is given, in a toolkit, or in a Python package.
    pub fn ptxas(&self, path: Option<&OsStr>) -> Option<PathBuf> {
        let toolkits = self.all_toolkits().into_iter().map(|root| root.join("bin"));
        let packages = self.site_packages.iter().flat_map(|root| PTXAS_IN_SITE_PACKAGES.iter().map(|at| root.join(at)));
        let folders = split_paths(path.unwrap_or_default()).chain(toolkits).chain(packages);
        folders.map(|folder| folder.join("ptxas")).find(|file| file.is_file())
    }

    /// A static library of a toolkit.
    pub(crate) fn archive(&self, name: &str) -> Option<PathBuf> {
        let in_toolkits =
            self.all_toolkits().into_iter().flat_map(|root| IN_TOOLKIT.iter().map(move |at| root.join(at)));
        let in_packages = ["nvidia/cu13/lib", "nvidia/cuda_runtime/lib"];
        let packages = self.site_packages.iter().flat_map(|root| in_packages.iter().map(|at| root.join(at)));
        in_toolkits.chain(packages).map(|folder| folder.join(name)).find(|path| path.is_file())
    }

    /// Files that may be the library, best first.
    pub(crate) fn files(&self, wanted: &ToolkitLibrary) -> Vec<PathBuf> {
        let named = self.toolkits.iter();
        let named = named.flat_map(|root| wanted.in_toolkit.iter().map(move |at| root.join(at)));
        let packages =
            self.site_packages.iter().flat_map(|root| wanted.in_site_packages.iter().map(|at| root.join(at)));
        let usual = self.all_toolkits().into_iter().skip(self.toolkits.len());
        let usual = usual.flat_map(|root| wanted.in_toolkit.iter().map(move |at| root.join(at)));
        named.chain(packages).chain(usual).filter_map(|folder| newest(&folder, wanted.file)).collect()
    }
}

/// The library in a folder with the highest version.
pub(crate) fn newest(folder: &Path, file: &str) -> Option<PathBuf> {
    let version = |name: &OsStr| -> Option<Vec<u32>> {
        let rest = name.to_str()?.strip_prefix(file)?;
        Some(rest.split('.').map(|part| part.parse().unwrap_or(0)).collect())
    };
    let entries = fs::read_dir(folder).ok()?.filter_map(|entry| Some(entry.ok()?.path()));
    entries.filter_map(|path| Some((version(path.file_name()?)?, path))).max().map(|(_, path)| path)
}

#[cfg(test)]
mod tests {
    use super::*;

    const WANTED: ToolkitLibrary = ToolkitLibrary {
        name: "A library",
        file: "libtool.so",
        beside: None,
        setting: "WEFT_TOOL",
        package: "tool",
        in_toolkit: IN_TOOLKIT,
        in_site_packages: &["nvidia/tool/lib"],
        versions: &[],
    };

    /// A folder of a test's own, with empty files in it.
    fn folder(test: &str, files: &[&str]) -> PathBuf {
        let root = std::env::temp_dir().join(format!("weft-toolkit-{}-{test}", std::process::id()));
        for file in files {
            let path = root.join(file);
            fs::create_dir_all(path.parent().expect("it is in a folder")).expect("the system's folder can be written");
            fs::write(path, "").expect("the system's folder can be written");
        }
        root
    }

    fn toolkit(root: &Path) -> Toolkit {
        let home = root.join("home").display().to_string();
        let path = root.join("path").display().to_string();
        let variable = move |name: &str| match name {
            "CUDA_HOME" => Some(home.clone().into()),
            "CUDA_PATH" => Some(path.clone().into()),
            _ => None,
        };
        Toolkit::new(&Settings::default(), variable, &[root.join("site")])
    }

    #[test]
    fn a_library_is_the_newest_of_the_first_folder_that_has_one() {
        let root = folder(
            "order",
            &[
                "home/lib64/libtool-other.so.99",
                "home/lib64/libtool.so.9",
                "home/lib64/libtool.so.13.1",
                "home/lib64/libtool.so.13",
                "path/lib/libtool.so",
                "site/nvidia/tool/lib/libtool.so.14",
                "site/nvidia/tool/lib/libtool.alt.so.15",
            ],
        );
        let found = toolkit(&root).files(&WANTED);
        let shown: Vec<String> =
            found.iter().filter_map(|file| Some(file.strip_prefix(&root).ok()?.display().to_string())).collect();
        fs::remove_dir_all(&root).expect("the folder is this test's own");
        let expected = ["home/lib64/libtool.so.13.1", "path/lib/libtool.so", "site/nvidia/tool/lib/libtool.so.14"];
        assert_eq!(shown, expected);
    }

    #[test]
    fn ptxas_is_looked_for_on_the_path_first() {
        let files = ["own/ptxas", "path/bin/ptxas", "site/nvidia/cu13/bin/ptxas"];
        let root = folder("ptxas", &files);
        let path = root.join("own").into_os_string();
        let found = [Some(path.as_os_str()), None].map(|path| toolkit(&root).ptxas(path));
        fs::remove_file(root.join("path/bin/ptxas")).expect("the file is this test's own");
        let last = toolkit(&root).ptxas(None);
        fs::remove_dir_all(&root).expect("the folder is this test's own");
        assert_eq!(found, [Some(root.join(files[0])), Some(root.join(files[1]))]);
        assert!(last == Some(root.join(files[2])) || last.is_some_and(|file| file.starts_with("/usr/local")));
    }

    #[test]
    fn headers_are_of_the_first_toolkit_and_of_packages() {
        let files = ["path/include/cuda.h", "path/include/cccl/cuda/std/array", "site/nvidia/curand/include/curand.h"];
        let root = folder("headers", &files);
        let found = toolkit(&root).includes();
        fs::create_dir_all(root.join("home/include")).expect("the system's folder can be written");
        let same = toolkit(&root).includes();
        fs::remove_dir_all(&root).expect("the folder is this test's own");
        let expected = ["path/include", "path/include/cccl", "site/nvidia/curand/include"].map(|at| root.join(at));
        assert_eq!(found, expected);
        assert_eq!(same, expected);
    }
}
