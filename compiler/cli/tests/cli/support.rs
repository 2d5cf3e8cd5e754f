//! Runs the command as a user does, in a temporary folder.

use std::{
    fs,
    path::{Path, PathBuf},
    process::Command,
    sync::atomic::{AtomicU32, Ordering},
};

/// A kernel with a signature.
pub(crate) const SAXPY: &str = "\
from weft import cuda


@cuda.jit(\"void(float32, float32[::1], float32[::1], float32[::1])\")
def saxpy(a, x, y, out):
    i = cuda.grid(1)
    if i < out.size:
        out[i] = a * x[i] + y[i]
";

/// A folder that is removed when the test ends.
pub(crate) struct Folder(PathBuf);

/// The result of a call.
#[derive(Debug)]
pub(crate) struct Ran {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Folder {
    pub(crate) fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let path = std::env::temp_dir().join(format!("weft-cli-{}-{number}", std::process::id()));
        fs::create_dir_all(&path).expect("the folder for temporary files can be written");
        Self(path)
    }

    /// A folder with one file.
    pub(crate) fn with(name: &str, text: &str) -> Self {
        let folder = Self::new();
        folder.write(name, text);
        folder
    }

    pub(crate) fn path(&self) -> &Path {
        &self.0
    }

    pub(crate) fn write(&self, name: &str, text: &str) {
        fs::write(self.0.join(name), text).expect("the folder can be written");
    }

    pub(crate) fn read(&self, name: &str) -> String {
        fs::read_to_string(self.0.join(name)).unwrap_or_else(|error| panic!("{name}: {error}"))
    }

    /// The names of the files, sorted.
    pub(crate) fn files(&self, below: &str) -> Vec<String> {
        let entries = fs::read_dir(self.0.join(below)).expect("the folder is there");
        let mut names: Vec<String> =
            entries.map(|entry| entry.expect("is read").file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    /// Calls `weft` in the folder, without access to NVIDIA's tools.
    pub(crate) fn weft(&self, args: &[&str]) -> Ran {
        self.weft_with(args, &[])
    }

    /// Calls `weft` with environment variables.
    pub(crate) fn weft_with(&self, args: &[&str], variables: &[(&str, &str)]) -> Ran {
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        for name in ["CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV", "WEFT_DEVICE", "NO_COLOR"] {
            command.env_remove(name);
        }
        command.current_dir(&self.0).args(args).env("PATH", "").env("WEFT_LIBDEVICE", "none").envs(variables.to_vec());
        let output = command.output().expect("the command can be started");
        Ran {
            code: output.status.code(),
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // A failed removal is ignored: the folder is temporary.
        let _left_over = fs::remove_dir_all(&self.0);
    }
}

impl Ran {
    /// Asserts success; returns the standard output.
    pub(crate) fn succeeded(self) -> String {
        assert_eq!(self.code, Some(0), "{}", self.stderr);
        self.stdout
    }

    /// Asserts the exit code and an empty standard output; returns the standard error.
    pub(crate) fn failed(self, code: i32) -> String {
        assert_eq!(self.code, Some(code), "{}{}", self.stdout, self.stderr);
        assert_eq!(self.stdout, "");
        self.stderr
    }
}
