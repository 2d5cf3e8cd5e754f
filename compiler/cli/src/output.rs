//! Writes what was compiled: to the standard output, to a file, or to files in a folder. A file is never half-written.

use std::{
    fs,
    io::Write,
    path::{Path, PathBuf},
};

use crate::{args::Form, report::Stop};

/// One thing to write.
#[derive(Debug)]
pub(crate) struct Output {
    /// The file's name in a folder: `saxpy.sm_90.ptx`.
    pub(crate) file: String,
    /// What it is: `saxpy(float32) for sm_90`.
    pub(crate) title: String,
    pub(crate) form: Form,
    pub(crate) bytes: Vec<u8>,
}

impl Output {
    /// How a line of comment starts.
    fn comment(&self) -> &'static str {
        match self.form {
            Form::Ptx | Form::Cubin => "//",
            Form::Llvm => ";",
            Form::Ir | Form::Asm => "#",
        }
    }
}

/// The ending of a file's name.
pub(crate) fn extension(form: Form) -> &'static str {
    match form {
        Form::Ptx => "ptx",
        Form::Llvm => "ll",
        Form::Ir => "ir",
        Form::Asm => "s",
        Form::Cubin => "cubin",
    }
}

/// Writes everything: one output goes to the file `to`, several into the folder `to`.
pub(crate) fn write(outputs: &[Output], to: Option<&Path>, stdout: &mut dyn Write) -> Result<(), Stop> {
    match (to, outputs) {
        (None, [only]) => stdout.write_all(&only.bytes)?,
        (None, several) => {
            for output in several {
                writeln!(stdout, "{} {}", output.comment(), output.title)?;
                stdout.write_all(&output.bytes)?;
                if !output.bytes.ends_with(b"\n") {
                    writeln!(stdout)?;
                }
            }
        }
        (Some(path), [only]) if !is_folder(path) => replace(path, &only.bytes)?,
        (Some(path), several) => {
            if path.is_file() {
                let count = several.len();
                return Err(Stop::Usage(format!(
                    "{} is a file, and there are {count} outputs: name a folder",
                    path.display()
                )));
            }
            fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))?;
            for output in several {
                replace(&path.join(&output.file), &output.bytes)?;
            }
        }
    }
    Ok(())
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

/// Writes beside the file first, so that whoever reads it sees the old one or the new one.
fn replace(path: &Path, bytes: &[u8]) -> Result<(), Stop> {
    let beside = beside(path);
    let written = fs::write(&beside, bytes).and_then(|()| fs::rename(&beside, path));
    written.map_err(|error| {
        // What is left over may never have come to be.
        let _absent = fs::remove_file(&beside);
        cannot_write(path, &error)
    })
}

/// A name in the same folder that no other process takes.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    path.with_file_name(format!(".{name}.{}.tmp", std::process::id()))
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Stop {
    Stop::Usage(format!("cannot write {}: {error}", path.display()))
}
