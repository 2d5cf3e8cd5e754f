//! Bad usage and bad programs: messages and exit codes.

use crate::support::{Folder, SAXPY};

#[test]
fn bad_usage_is_code_2() {
    let folder = Folder::with("k.py", SAXPY);
    let cases: [(&[&str], &str); 11] = [
        (&["emit"], "required arguments were not provided"),
        (&["emmit", "k.py"], "unrecognized subcommand"),
        (&["emit", "absent.py"], "error: cannot read absent.py: "),
        (&["emit", "k.py", "--target", "sm91"], "error[E0304]: there is no target `sm91`"),
        (&["emit", "k.py", "--target", "sm_90", "--target", "hots"], "did you mean host"),
        (&["emit", "k.py", "--emit", "ptxx"], "invalid value 'ptxx'"),
        (&["emit", "k.py", "--target", "host", "--emit", "ptx"], "error: the target `host` has no ptx"),
        (
            &["emit", "k.py", "--target", "sm_80", "--plan"],
            "error: the target `sm_80` has no plan: use `--target host`",
        ),
        (&["emit", "k.py", "--kernel", "saxpi"], "did you mean `saxpy`?"),
        (&["emit", "k.py", "--sig", "void(float33)"], "--> --sig:1:6"),
        (&["check"], "required arguments were not provided"),
    ];
    for (args, expected) in cases {
        let said = folder.weft(args).failed(2);
        assert!(said.contains(expected), "{args:?}: {said}");
    }
    let said = folder.weft_with(&["devices"], &[("WEFT_DEVICE", "gpu")]).failed(2);
    assert!(said.contains("WEFT_DEVICE is \"gpu\""), "{said}");
}

#[test]
fn help_and_version_are_code_0() {
    let folder = Folder::new();
    assert_eq!(folder.weft(&["--version"]).succeeded(), format!("weft {}\n", env!("CARGO_PKG_VERSION")));
    let help = folder.weft(&["--help"]).succeeded();
    for command in ["emit", "check", "explain", "devices"] {
        assert!(help.contains(&format!("  {command} ")), "{help}");
    }
    assert!(folder.weft(&["emit", "--help"]).succeeded().contains("--sig <SIGNATURE>"));
}

#[test]
fn all_errors_of_all_kernels_are_reported_once() {
    let text = "\
from weft import cuda


@cuda.jit(device=True)
def broken(x):
    return x + undefined


@cuda.jit(['void(f4[:])', 'void(f8[:])'])
def one(x):
    x[0] = broken(x[0])
    x[1, 2] = 1


@cuda.jit('void(i4[:])')
def two(x):
    x[0] = broken(x[0])
    try:
        pass
    finally:
        pass
";
    let folder = Folder::with("k.py", text);
    let said = folder.weft(&["emit", "k.py", "--target", "sm_75,sm_90"]).failed(1);
    let codes: Vec<&str> = said.lines().filter_map(|line| line.strip_prefix("error[")?.get(..5)).collect();
    assert_eq!(codes, ["E0201", "E0208", "E0102"], "{said}");
    assert!(said.ends_with("\n\n3 errors\n"), "{said}");
}

#[test]
fn diagnostics_come_as_json_and_in_color() {
    let folder = Folder::with("k.py", &SAXPY.replace("a * x[i]", "b * x[i]"));
    let json = folder.weft(&["emit", "k.py", "--json"]).failed(1);
    assert!(json.starts_with("[\n  {\"code\": \"E0201\", \"severity\": \"error\", "), "{json}");
    assert!(
        json.contains("\"file\": \"k.py\", \"line\": 8, \"column\": 18, \"end_line\": 8, \"end_column\": 19"),
        "{json}"
    );
    let colored = folder.weft(&["emit", "k.py", "--color", "always"]).failed(1);
    assert!(colored.contains("\u{1b}["), "{colored}");
    assert!(!folder.weft(&["emit", "k.py"]).failed(1).contains('\u{1b}'));
    folder.write("k.py", SAXPY);
    let ran = folder.weft(&["check", "k.py", "--json"]);
    assert_eq!((ran.code, ran.stderr.as_str()), (Some(0), "[]\n"));
}

#[test]
fn check_types_what_has_a_signature_and_reads_the_rest() {
    let text = "\
from weft import cuda


@cuda.jit
def untyped(x):
    break
    x[0] = missing + other(1)
    y = [1]


@cuda.jit(device=True)
def other(x):
    with x:
        pass


@cuda.jit('void(f4[:])')
def typed(x):
    x[0] = x
";
    let folder = Folder::with("k.py", text);
    let said = folder.weft(&["check", "k.py"]).failed(1);
    let lines: Vec<&str> = said.lines().filter(|line| line.starts_with("error[")).collect();
    for expected in [
        "error[E0104]: `break` outside a loop",
        "error[E0201]: name `missing` is not defined",
        "error[E0103]: a kernel cannot make a list",
        "error[E0102]: a kernel cannot have a `with` statement",
    ] {
        assert!(lines.contains(&expected), "{expected} is not in:\n{said}");
    }
    assert_eq!(lines.len(), 5, "{said}");
    folder.write("k.py", SAXPY);
    folder.write("l.py", "from weft import cuda\n@cuda.jit\ndef k(x): x[0] = 1\n");
    assert_eq!(
        folder.weft(&["check", "k.py", "l.py"]).succeeded(),
        "k.py: 1 kernel\nl.py: 1 kernel, 1 without a signature: only names and syntax were checked there\n"
    );
    assert_eq!(folder.weft(&["check", "l.py", "--sig", "(f4[:],)"]).succeeded(), "l.py: 1 kernel\n");
}

#[test]
fn faults_in_the_file_are_found_where_they_are() {
    let folder = Folder::with("k.py", "from weft import cuda\n\n@cuda.jit('void(f4[:])'\ndef k(x):\n    x[0] = 1\n");
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(said.contains("error[E0101]") && said.contains("--> k.py:4:"), "{said}");
    folder.write("k.py", "print('no kernels here')\n");
    assert!(folder.weft(&["emit", "k.py"]).failed(1).starts_with("error[E0303]: k.py has no kernels"));
    assert_eq!(folder.weft(&["check", "k.py"]).succeeded(), "k.py: 0 kernels\n");
    folder.write("k.py", "from weft import cuda\n@cuda.jit('float32(f4)')\ndef k(x):\n    return x\n");
    assert!(
        folder.weft(&["emit", "k.py"]).failed(1).contains("error[E0212]: the kernel `k` is declared to return float32")
    );
    folder.write("k.py", "from weft import cuda\n@cuda.jit('void(f4)')\ndef k(x, y):\n    pass\n");
    assert!(folder.weft(&["emit", "k.py"]).failed(1).contains("error[E0206]: kernel `k` takes 2 arguments"));
    // A file with newer syntax than weft's parser knows: only the kernel must be parsable.
    folder.write("k.py", &format!("d = {{}}\nprint(f\"{{d[\"a\"]}}\")\n{SAXPY}"));
    assert!(folder.weft(&["emit", "k.py"]).succeeded().contains(".entry saxpy("));
}

#[test]
fn recursion_is_compiled_and_one_without_end_is_no_hang() {
    let text = "\
from weft import cuda


@cuda.jit(device=True)
def even(n):
    if n == 0:
        return True
    return odd(n - 1)


@cuda.jit(device=True)
def odd(n):
    if n == 0:
        return False
    return even(n - 1)


@cuda.jit('void(int32[::1])')
def k(x):
    x[0] = even(x[0])
";
    let folder = Folder::with("k.py", text);
    let ptx = folder.weft(&["emit", "k.py"]).succeeded();
    assert!(ptx.contains(".entry k("), "{ptx}");
    folder.write("k.py", &text.replace("True", "odd(1)").replace("False", "even(1)"));
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(said.contains("error[E0213]"), "{said}");
}

#[test]
fn devices_always_has_the_cpu() {
    let list = Folder::new().weft(&["devices"]).succeeded();
    assert!(list.lines().any(|line| line.starts_with("cpu ") && line.contains("target host")), "{list}");
    assert!(list.lines().any(|line| line.starts_with("cuda")), "{list}");
}

#[test]
fn a_kernel_uses_no_value_that_the_file_may_rebind() {
    let text = "N = 1\n\n\ndef setup():\n    global N\n    N = 2\n\n\nfrom weft import cuda\n\n\n@cuda.jit('void(i4[:])')\n\
                def k(x):\n    x[0] = N\n";
    let folder = Folder::with("k.py", text);
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(said.contains("error[E0202]: the value of `N` cannot be found by reading the file"), "{said}");
    assert!(said.contains("6 |     N = 2\n") && said.contains("the function `setup` binds it here"), "{said}");
    // A device function of another file resolves names in its own module.
    folder.write("other.py", "from weft import cuda\nN = 3\ndel N\n@cuda.jit(device=True)\ndef f(): return N\n");
    folder
        .write("k.py", "from weft import cuda\nfrom other import f\n@cuda.jit('void(i4[:])')\ndef k(x): x[0] = f()\n");
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(
        said.contains("--> other.py:5") && said.contains("3 | del N") && said.contains("it is deleted here"),
        "{said}"
    );
    // A value read through its module reports where that module rebinds it.
    folder.write("other.py", "N = 3\nfor N in range(3): pass\n");
    folder.write("k.py", "from weft import cuda\nimport other\n@cuda.jit('void(i4[:])')\ndef k(x): x[0] = other.N\n");
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(
        said.contains("--> k.py:4") && said.contains("2 | for N in") && said.contains("the loop binds it"),
        "{said}"
    );
    folder.write("other.py", "N = 3\n");
    folder.write(
        "k.py",
        "from weft import cuda\nimport other\nother.N = 77\n@cuda.jit('void(i4[:])')\ndef k(x): x[0] = other.N\n",
    );
    assert!(folder.weft(&["emit", "k.py", "--emit", "ir"]).succeeded().contains("77"));
}

#[test]
fn a_file_that_is_no_python_is_rejected() {
    let folder = Folder::new();
    let after = format!("{SAXPY}=======\n    out[0] = 1\n");
    for (text, message, place) in [
        (format!("import math\ndef host(:\n    pass\n{SAXPY}"), "is not allowed here", "2:10"),
        (format!("import math\nx = = 2\n{SAXPY}"), "`=` is not allowed here", "2:5"),
        (format!("import math\nprint \"hello\"\n{SAXPY}"), "is not allowed here", "2:7"),
        (format!("import math\nreturn 5\n{SAXPY}"), "`return` outside a function", "2:1"),
        (format!("if 1:\n    x = 1\n   y = 2\n{SAXPY}"), "the indentation does not match any block above", "3:"),
        (format!("print(f'{{x y}}')\n{SAXPY}"), "`y` is not allowed here", "1:12"),
        (after, "is not allowed here", "9:1"),
    ] {
        folder.write("k.py", &text);
        for command in
            [&["emit", "k.py"][..], &["check", "k.py"], &["emit", "k.py", "--kernel", "nope", "--emit", "ir"]]
        {
            let ran = folder.weft(command);
            let said = &ran.stderr;
            if command.len() > 2 && said.starts_with("error[E0303]") {
                // The file parses, so the missing kernel is reported instead.
                continue;
            }
            assert!(said.starts_with("error[E01") && said.contains(message), "{text}: {said}");
            assert!(said.contains(&format!("--> k.py:{place}")), "{text}: {said}");
            assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), ""), "{text}");
        }
    }
    // The same holds for an imported file.
    folder.write("k.py", &format!("import other\n{SAXPY}"));
    folder.write("other.py", "N = 1\n>>>>>>> theirs\n");
    assert!(folder.weft(&["emit", "k.py"]).failed(1).contains("--> other.py:2:1"));
}

#[test]
fn statements_that_are_newer_than_the_parser_are_read() {
    let folder = Folder::new();
    for line in
        ["print(f\"{d[\"a\"]}\")", "x = t'{y}'", "try:\n    pass\nexcept A, B:\n    pass", "class A[T = int]: pass"]
    {
        folder.write("k.py", &format!("{line}\n{SAXPY}"));
        for command in ["emit", "check"] {
            let ran = folder.weft(&[command, "k.py"]);
            assert_eq!(ran.stderr, "", "{line}");
            ran.succeeded();
        }
    }
}

#[test]
fn a_file_is_read_in_the_encoding_that_it_declares() {
    let folder = Folder::new();
    let write = |bytes: &[u8]| std::fs::write(folder.path().join("k.py"), bytes).expect("the folder can be written");
    let text = [b"# -*- coding: latin-1 -*-\nNAME = 'caf\xe9'\n".as_slice(), SAXPY.as_bytes()].concat();
    write(&text);
    folder.weft(&["emit", "k.py"]).succeeded();
    assert_eq!(folder.weft(&["check", "k.py", "--json"]).stderr, "[]\n");
    write(&text.replace_first("latin-1", "utf-8  "));
    let said = folder.weft(&["check", "k.py"]).failed(1);
    assert!(said.starts_with("error[E0101]: the byte 0xe9 is not valid UTF-8\n --> k.py:2:12"), "{said}");
    write(&text.replace_first("latin-1", "klingon"));
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(said.starts_with("error[E0101]: weft does not know the encoding `klingon`\n --> k.py:1:15"), "{said}");
}

trait ReplaceFirst {
    fn replace_first(&self, from: &str, to: &str) -> Vec<u8>;
}

impl ReplaceFirst for Vec<u8> {
    fn replace_first(&self, from: &str, to: &str) -> Vec<u8> {
        let at = self.windows(from.len()).position(|part| part == from.as_bytes()).expect("is in it");
        [&self[..at], to.as_bytes(), &self[at + from.len()..]].concat()
    }
}

#[test]
fn every_error_is_json_if_asked_for() {
    let folder = Folder::with("k.py", SAXPY);
    let cases: [&[&str]; 9] = [
        &["emit", "absent.py", "--json"],
        &["check", "absent.py", "--json"],
        &["emit", "--json"],
        &["check", "--json", "--nope", "k.py"],
        &["emit", "k.py", "--json", "--emit", "ptxx"],
        &["emit", "k.py", "--json", "--target", "host", "--emit", "ptx"],
        &["emit", "k.py", "--json", "--target", "sm_1"],
        &["emit", "k.py", "--json", "--kernel", "nope"],
        &["emit", "k.py", "--json", "-o", "no/such/folder/k.ptx"],
    ];
    for args in cases {
        let said = folder.weft(args).failed(2);
        assert!(said.starts_with("[\n  {\"code\": \"E030") && said.ends_with("}\n]\n"), "{args:?}: {said}");
        assert!(said.contains("\"severity\": \"error\", \"message\": \"") && !said.contains("\"message\": \"error"));
    }
    // Without `--json`, the message is plain text.
    assert!(folder.weft(&["emit", "absent.py"]).failed(2).starts_with("error: cannot read absent.py"));
}

#[test]
fn kernels_that_are_not_at_the_top_level_are_said() {
    let text = "\
from weft import cuda

def make():
    if 1:
        @cuda.jit('void()')
        def one(): pass

class C:
    @cuda.jit
    def two(self): pass

if __name__ == '__main__':
    @cuda.jit
    def three(): pass

@cuda.jit
async def four(): pass

@other
def five():
    @other
    def six(): pass
";
    let folder = Folder::with("k.py", text);
    let expected = [
        "`one` is skipped: it is in the function `make`",
        "`two` is skipped: it is in the class `C`",
        "`three` is skipped: it is in `if __name__ == '__main__':`, which is false here",
        "`four` is skipped: it is in an `async def`",
    ];
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(said.starts_with("error[E0303]: k.py has no kernels"), "{said}");
    let warnings = |said: &str| -> Vec<String> {
        said.lines().filter_map(|line| line.strip_prefix("warning[E0303]: ")).map(str::to_owned).collect()
    };
    assert_eq!(warnings(&said), expected);
    let checked = folder.weft(&["check", "k.py"]);
    assert_eq!((warnings(&checked.stderr), checked.code), (expected.map(str::to_owned).to_vec(), Some(0)));
    let said = folder.weft(&["emit", "k.py", "--kernel", "two"]).failed(2);
    assert!(said.starts_with("error[E0303]: `two` is skipped: it is in the class `C`"), "{said}");
}

/// The headings of the diagnostics of `check` for a kernel with this body.
fn faults_of(signature: &str, body: &str) -> Vec<String> {
    let text = format!(
        "from weft import cuda, float32\nimport numpy as np\n@cuda.jit({signature})\ndef k(a, t):\n    {body}\n"
    );
    let folder = Folder::with("k.py", &text);
    let said = folder.weft(&["check", "k.py"]).failed(1);
    said.lines().filter(|line| line.starts_with("error[")).map(str::to_owned).collect()
}

#[test]
fn builtins_that_kernels_do_not_have_are_no_unknown_names() {
    let signature = "'void(f4[:], UniTuple(i4, 2))'";
    let map = "error[E0202]: kernels do not have Python's built-in `map`";
    assert_eq!(faults_of(signature, "m = map(int, a)"), [map]);
    assert_eq!(faults_of("", "m = map(int, a)"), [map]);
    assert_eq!(faults_of("", "m = list(a)"), ["error[E0202]: kernels do not have Python's built-in `list`"]);
    let both = faults_of(signature, "a[0] = a\n    break\n    m = map(int, a)");
    assert_eq!(both.len(), 3, "{both:?}");
    assert!(both[0].contains("E0216") && both[1].contains("E0104") && both[2] == map, "{both:?}");
}

#[test]
fn one_fault_is_said_once() {
    let signature = "'void(i4, UniTuple(i4, 2))'";
    assert_eq!(faults_of(signature, "a[0] += 1").len(), 1);
    assert_eq!(faults_of(signature, "a[0] += nope").len(), 2);
    let set = "error[E0103]: a kernel cannot have a set";
    assert_eq!(faults_of(signature, "z = {4}\n    y = z[2] + z[7]"), [set]);
    let row = faults_of("'void(f4[:,:], f4)'", "a[0] += None");
    assert_eq!(row, ["error[E0211]: `+=` does not take array(float32, 1d, A) and none"]);
}

#[test]
fn check_knows_the_limits_that_emit_knows() {
    let body = "s = cuda.shared.array(20000, 'float64')\n    s[0] = a[0]\n    a[0] = s[1]";
    let said = faults_of("'void(f4[:], f4)'", body);
    assert_eq!(said, ["error[E0305]: the kernel's shared arrays take 160000 bytes, but a block can use at most 49152"]);
}

#[test]
fn arguments_of_arrays_are_named() {
    let signature = "'void(f4[:], f4)'";
    let array = |args: &str| faults_of(signature, &format!("s = cuda.shared.array({args})"));
    assert_eq!(array("4, 'flaot32'"), ["error[E0205]: there is no dtype `flaot32`"]);
    let float = "error[E0205]: the dimensions in the shape of `cuda.shared.array` must be ints, not float64";
    assert_eq!(array("4.0, np.float32"), [float]);
}

#[test]
fn options_of_the_decorator_that_python_rejects_are_rejected() {
    let said = faults_of("'void(f4[:], f4)', nonsense=3", "pass");
    assert_eq!(said, ["error[E0206]: `cuda.jit` has no option `nonsense`"]);
    let said = faults_of("signature_or_function='void(f4[:], f4)'", "pass");
    assert_eq!(said, ["error[E0206]: `cuda.jit` has no option `signature_or_function`"]);
    let folder = Folder::with("k.py", &SAXPY.replace("cuda.jit(", "cuda.jit(max_registers=32, func_or_sig="));
    assert!(folder.weft(&["emit", "k.py"]).succeeded().contains(".maxnreg 32"));
}

#[test]
fn constants_and_calls_without_end_are_errors() {
    let mut text = "from weft import cuda\nA = (1,)\n".to_owned();
    text += &"A = (A,) * 8\n".repeat(10);
    text += "@cuda.jit\ndef f0(x):\n    return x\n";
    let calls = (1..3000).map(|i| format!("@cuda.jit\ndef f{i}(x):\n    return f{}(x)\n", i - 1));
    text.extend(calls);
    text += "@cuda.jit(\"void(int64[:])\")\ndef tuples(o):\n    o[0] = A[0]\n";
    text += "@cuda.jit(\"void(int64[:])\")\ndef calls(o):\n    o[0] = f2999(1)\n";
    let folder = Folder::with("k.py", &text);
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(said.contains("`A` is a value that only Python can compute"), "{said}");
    assert!(said.contains("a call chain of more than 200 levels"), "{said}");
}
