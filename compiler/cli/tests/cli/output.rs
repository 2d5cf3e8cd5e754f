//! `weft emit -o`: links, modes, pipes and open files are preserved, inputs are never overwritten, and a call that
//! cannot write everything writes nothing.

use std::{
    fs,
    os::unix::fs::{FileTypeExt as _, PermissionsExt as _, symlink},
    process::{Command, Stdio},
};

use crate::support::{Folder, SAXPY};

const TWO: &str = "
@cuda.jit(['void(f4[:])', 'void(f8[:])'])
def two(x):
    x[0] = 0
";

#[test]
fn an_existing_file_keeps_its_mode_and_links_are_followed() {
    let folder = Folder::with("k.py", SAXPY);
    folder.write("k.ptx", "old");
    let at = |name: &str| folder.path().join(name);
    fs::set_permissions(at("k.ptx"), fs::Permissions::from_mode(0o600)).expect("can be changed");
    folder.weft(&["emit", "k.py", "-o", "k.ptx"]).succeeded();
    let mode = |name: &str| fs::metadata(at(name)).expect("is there").permissions().mode() & 0o777;
    assert_eq!(mode("k.ptx"), 0o600);
    assert!(folder.read("k.ptx").contains(".entry saxpy("));

    fs::create_dir(at("real")).expect("can be written");
    folder.write("real/a.ptx", "old");
    symlink("real/a.ptx", at("link.ptx")).expect("can be written");
    symlink("real/new.ptx", at("dangling.ptx")).expect("can be written");
    symlink("circle", at("circle")).expect("can be written");
    folder.weft(&["emit", "k.py", "-o", "link.ptx"]).succeeded();
    folder.weft(&["emit", "k.py", "-o", "dangling.ptx"]).succeeded();
    for name in ["link.ptx", "dangling.ptx"] {
        assert!(fs::symlink_metadata(at(name)).expect("is there").is_symlink(), "{name}");
    }
    assert_eq!(folder.files("real"), ["a.ptx", "new.ptx"]);
    assert!(folder.read("real/a.ptx").contains(".entry saxpy(") && folder.read("real/new.ptx").contains(".entry"));
    let said = folder.weft(&["emit", "k.py", "-o", "circle"]).failed(2);
    assert!(said.starts_with("error: cannot write circle: "), "{said}");
}

#[test]
fn pipes_and_open_files_are_written_to() {
    let folder = Folder::with("k.py", SAXPY);
    let fifo = folder.path().join("fifo");
    assert!(Command::new("mkfifo").arg(&fifo).status().expect("can be started").success());
    let reader = {
        let fifo = fifo.clone();
        std::thread::spawn(move || fs::read_to_string(fifo))
    };
    let ran = folder.weft(&["emit", "k.py", "-o", "fifo"]);
    assert!(fs::symlink_metadata(&fifo).expect("is there").file_type().is_fifo(), "{}", ran.stderr);
    ran.succeeded();
    assert!(reader.join().expect("ends").expect("is read").contains(".entry saxpy("));
    // A pipe of the shell, as in `-o >(cmd)`.
    let piped = folder.weft(&["emit", "k.py", "-o", "/proc/self/fd/1"]).succeeded();
    assert!(piped.contains(".entry saxpy("), "{piped}");

    // A file opened by the shell, as in `>>`.
    folder.write("log", "before\n");
    let log = fs::OpenOptions::new().append(true).open(folder.path().join("log")).expect("is there");
    let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
    command.current_dir(folder.path()).args(["emit", "k.py", "--libdevice", "none", "-o", "/proc/self/fd/1"]);
    let status = command.stdout(log).stderr(Stdio::null()).status().expect("can be started");
    assert!(status.success());
    let log = folder.read("log");
    assert!(log.starts_with("before\n") && log.contains(".entry saxpy("), "{log}");
}

#[test]
fn an_input_is_not_written_over() {
    let folder = Folder::with("k.py", &format!("from config import N\n{SAXPY}"));
    folder.write("config.py", "N = 1\n");
    let at = |name: &str| folder.path().join(name);
    symlink("k.py", at("soft.ptx")).expect("can be written");
    fs::hard_link(at("k.py"), at("hard.ptx")).expect("can be written");
    fs::create_dir(at("out")).expect("can be written");
    symlink("../k.py", at("out/saxpy.sm_75.ptx")).expect("can be written");
    let text = folder.read("k.py");
    let said = folder.weft(&["emit", "k.py", "-o", "k.py"]).failed(2);
    assert_eq!(said, "error: k.py is the Python file: write the output elsewhere\n");
    for to in ["./k.py", "soft.ptx", "hard.ptx"] {
        let said = folder.weft(&["emit", "k.py", "-o", to]).failed(2);
        assert!(said.contains("is the Python file"), "{said}");
    }
    let said = folder.weft(&["emit", "k.py", "-o", "out"]).failed(2);
    let by_another = "error: out/saxpy.sm_75.ptx is the Python file k.py under another name: write the output \
        elsewhere\n";
    assert_eq!(said, by_another);
    let said = folder.weft(&["emit", "k.py", "-o", "config.py"]).failed(2);
    assert_eq!(said, "error: config.py is the Python file: write the output elsewhere\n");
    assert_eq!(folder.read("k.py"), text);
}

#[test]
fn where_one_file_cannot_be_written_none_is() {
    let folder = Folder::with("k.py", &format!("{SAXPY}{TWO}"));
    fs::create_dir_all(folder.path().join("out/two.1.sm_75.ptx")).expect("can be written");
    let said = folder.weft(&["emit", "k.py", "-o", "out"]).failed(2);
    assert!(said.starts_with("error: cannot write out/two.1.sm_75.ptx: is a directory"), "{said}");
    assert_eq!(folder.files("out"), ["two.1.sm_75.ptx"]);
}

#[test]
fn several_ptx_modules_are_no_file() {
    let folder = Folder::with("k.py", &format!("{SAXPY}{TWO}"));
    let into = |args: &[&str]| {
        let file = fs::File::create(folder.path().join("all.ptx")).expect("can be written");
        let mut command = Command::new(env!("CARGO_BIN_EXE_weft"));
        command.current_dir(folder.path()).args(["emit", "k.py", "--libdevice", "none"]).args(args).stdout(file);
        let output = command.output().expect("can be started");
        (output.status.code(), String::from_utf8_lossy(&output.stderr).into_owned(), folder.read("all.ptx"))
    };
    let (code, said, written) = into(&[]);
    let expected = "error: the output would be 3 PTX modules, which no assembler accepts in one file: use `-o FOLDER` \
                    to write one file per kernel, or `--kernel NAME` to select one kernel\n";
    assert_eq!((code, said.as_str(), written.as_str()), (Some(2), expected, ""));
    let (code, said, written) = into(&["--kernel", "saxpy"]);
    assert_eq!((code, said.as_str()), (Some(0), ""));
    assert_eq!(written.matches(".version").count(), 1);
    // IR is not executable, so several outputs may share one file.
    assert_eq!(into(&["--emit", "ir"]).0, Some(0));
    let piped = folder.weft(&["emit", "k.py"]);
    assert!(piped.stderr.starts_with("note: these are 3 PTX modules, which no assembler accepts"), "{}", piped.stderr);
    assert_eq!(piped.succeeded().matches(".version").count(), 3);
}
