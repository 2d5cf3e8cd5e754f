//! Writes what was compiled: to the standard output, to a file, or to files in a folder. [`write`] puts files where they
//! belong; a file that was read is never written over.

mod write;

use std::{
    fs,
    io::Write,
    os::unix::fs::MetadataExt as _,
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

/// Whether these are several PTX modules, which are no PTX as one text.
pub(crate) fn are_modules(outputs: &[Output]) -> bool {
    outputs.len() > 1 && outputs.iter().all(|output| output.form == Form::Ptx)
}

/// Writes everything: one output goes to the file `to`, several into the folder `to`. `inputs` are the files that were
/// read: none of them is written over.
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
            // A name with a form's ending, such as k.ptx, is meant for a file, if nothing is there yet.
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

/// Refuses to write over a file that was read, by whatever name.
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

/// Whether a path ends as the file of one of the outputs would.
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
