//! Writes compiled outputs to standard output, to a file, or to files in a folder. [`write`] writes files atomically.
//! An input file is never overwritten.

mod write;

use std::{
    fs,
    io::Write,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

use crate::{args::Form, report::Stop};

/// One output.
#[derive(Debug)]
pub(crate) struct Output {
    /// Its file name when several outputs go to a folder: `saxpy.sm_90.ptx`.
    pub(crate) file: String,
    /// Its title: `saxpy(float32) for sm_90`.
    pub(crate) title: String,
    pub(crate) form: Form,
    pub(crate) bytes: Vec<u8>,
}

impl Output {
    /// The prefix of a line comment.
    fn comment(&self) -> &'static str {
        match self.form {
            Form::Ptx | Form::Cubin => "//",
            Form::Llvm | Form::Nvvm => ";",
            // Several pages are written to a folder only.
            Form::Ir | Form::Asm | Form::Plan | Form::Html => "#",
        }
    }
}

/// The file name extension of a form.
pub(crate) fn extension(form: Form) -> &'static str {
    match form {
        Form::Ptx => "ptx",
        Form::Llvm => "ll",
        Form::Ir => "ir",
        Form::Asm => "s",
        Form::Cubin => "cubin",
        Form::Nvvm => "nvvm",
        Form::Plan => "plan",
        Form::Html => "html",
    }
}

/// Whether the outputs are several PTX modules. Joined, they are not valid PTX.
pub(crate) fn are_modules(outputs: &[Output]) -> bool {
    outputs.len() > 1 && outputs.iter().all(|output| output.form == Form::Ptx)
}

/// Writes all outputs: a single one to the file `to`, several into the folder `to`. The files of `inputs` are never
/// overwritten.
pub(crate) fn write(
    outputs: &[Output],
    to: Option<&Path>,
    inputs: &[PathBuf],
    stdout: &mut dyn Write,
) -> Result<(), Stop> {
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
        (Some(path), [only]) if !is_folder(path) => {
            spare(path, inputs)?;
            write::all(&[(path.to_path_buf(), &only.bytes)])?;
        }
        (Some(path), several) => {
            let there = fs::metadata(path).ok();
            // A missing path with the extension of a form, such as k.ptx, denotes a file.
            let is_file = there.map_or_else(|| has_ending(path, several), |known| !known.is_dir());
            if is_file && !is_folder(path) {
                return Err(Stop::Usage(format!(
                    "{} is one file, but there are {} outputs: pass a folder, or select one kernel with `--kernel`",
                    path.display(),
                    several.len()
                )));
            }
            let files: Vec<_> = several.iter().map(|output| (path.join(&output.file), &*output.bytes)).collect();
            files.iter().try_for_each(|(file, _)| spare(file, inputs))?;
            fs::create_dir_all(path).map_err(|error| cannot_write(path, &error))?;
            write::all(&files)?;
        }
    }
    Ok(())
}

/// Writes files into a folder, which is made. The files of `inputs` are never overwritten.
pub(crate) fn write_files(folder: &Path, files: &[(PathBuf, &[u8])], inputs: &[PathBuf]) -> Result<(), Stop> {
    files.iter().try_for_each(|(file, _)| spare(file, inputs))?;
    fs::create_dir_all(folder).map_err(|error| cannot_write(folder, &error))?;
    write::all(files)
}

/// Refuses to overwrite an input file, also under another name.
fn spare(path: &Path, inputs: &[PathBuf]) -> Result<(), Stop> {
    let identity = |path: &Path| fs::metadata(path).ok().map(|known| (known.dev(), known.ino()));
    let Some(there) = identity(path) else { return Ok(()) };
    match inputs.iter().find(|input| identity(input) == Some(there)) {
        Some(input) if input == path => {
            Err(Stop::Usage(format!("{} is the Python file: write the output elsewhere", path.display())))
        }
        Some(input) => Err(Stop::Usage(format!(
            "{} is the Python file {} under another name: write the output elsewhere",
            path.display(),
            input.display()
        ))),
        None => Ok(()),
    }
}

/// Whether a path has the file extension of one of the outputs.
fn has_ending(path: &Path, outputs: &[Output]) -> bool {
    let ending = path.extension();
    outputs.iter().any(|output| ending == Some(extension(output.form).as_ref()))
}

fn is_folder(path: &Path) -> bool {
    path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/")
}

fn cannot_write(path: &Path, error: &std::io::Error) -> Stop {
    Stop::Usage(format!("cannot write {}: {error}", path.display()))
}
