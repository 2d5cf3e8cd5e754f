//! Tests of the captured globals that the compiler gets for a file.

use std::path::PathBuf;

use weft_artifact::{DType, Number, Scalar};
use weft_compiler::{
    diagnostic::Severity,
    request::{Abi, External, FunctionDef, GpuBody, Overloads, Unsupported},
};

use super::{capture::Captures, *};

fn program(text: &str) -> Program {
    Program::read(Path::new("nowhere/k.py"), text.as_bytes())
}

/// The captured globals of the first kernel.
fn globals(text: &str) -> BTreeMap<String, Captured> {
    let program = program(text);
    let kernel = program.kernels()[0].index;
    program.function_def(kernel, &mut Captures::default()).expect("exists").globals.clone()
}

fn value(expr: &str) -> Captured {
    let text = format!(
        "import math\nimport numpy as np\nfrom numba import cuda, float32\nx = {expr}\n@cuda.jit\ndef k():\n    x\n"
    );
    globals(&text).remove("x").expect("is captured")
}

#[test]
fn a_comment_above_a_kernel_gives_it_signatures() {
    let read = |comments: &str| {
        let program = program(&format!(
            "from numba import cuda\nx = 1  # weft: sig = \"void(int8)\"\n\n{comments}@cuda.jit\ndef k(x):\n    pass\n"
        ));
        let signatures = program.signatures(&program.kernels()[0]);
        let args = signatures.iter().map(|signature| signature.args[0].to_string()).collect::<Vec<_>>().join(" ");
        (args, program.faults().iter().map(|fault| fault.message.clone()).collect::<Vec<_>>().join(" "))
    };
    assert_eq!(read("# weft: sig = \"void(float32[:])\"\n"), ("array(float32, 1d, A)".to_owned(), String::new()));
    let several = "# weft: sig = \"void(int32)\"\n# a word\n  # weft: sig = 'void(float32)'\n";
    assert_eq!(read(several), ("int32 float32".to_owned(), String::new()));
    assert_eq!(read("# weft: sig = \"void(int32)\"\n\n"), (String::new(), String::new()));
    for wrong in ["# weft: void(int32)\n", "# weft: sig = void(int32)\n", "# weft: sig = \"void(int33)\"\n"] {
        assert!(read(wrong).1.starts_with("this comment names no signature: "), "{wrong}");
    }
}

#[test]
fn constants_are_evaluated_as_python_would() {
    let cases = [
        ("7 // -2", Captured::Int(-4)),
        ("-7 % 3", Captured::Int(2)),
        ("7 / 2", Captured::Float(3.5)),
        ("2 ** -1", Captured::Float(0.5)),
        ("-7.5 // 2", Captured::Float(-4.0)),
        ("-7.5 % 2", Captured::Float(0.5)),
        ("1 << 40", Captured::Int(1 << 40)),
        ("~5 & 0xFF", Captured::Int(250)),
        ("True + True", Captured::Int(2)),
        ("1 < 2 <= 2 and not 0", Captured::Bool(true)),
        ("0 or 'text'", Captured::Str("text".into())),
        ("4 if math.pi > 3 else 5", Captured::Int(4)),
        (
            "(1, 2.0) + (3,) * 2",
            Captured::Tuple(vec![Captured::Int(1), Captured::Float(2.0), Captured::Int(3), Captured::Int(3)]),
        ),
        ("(4, 5, 6)[-1]", Captured::Int(6)),
        ("1 + 2j", Captured::Complex(1.0, 2.0)),
        ("math.sqrt(16) * math.tau", Captured::Float(4.0 * std::f64::consts::TAU)),
        ("math.ceil(1.5)", Captured::Int(2)),
        ("max(1, 2.5, 2)", Captured::Float(2.5)),
        ("float('inf')", Captured::Float(f64::INFINITY)),
        ("np.float32(0.1)", Captured::NumpyFloat(Number::F32, f64::from(0.1_f32), 0.0)),
        ("np.float32(0.1) * 3", Captured::NumpyFloat(Number::F32, f64::from(0.1_f32 * 3.0), 0.0)),
        ("np.uint8(300)", Captured::NumpyInt(Scalar::U8, 44)),
        ("np.int32(2) / 4", Captured::NumpyFloat(Number::F64, 0.5, 0.0)),
        ("np.int8(100) + np.uint8(200)", Captured::NumpyInt(Scalar::I16, 300)),
        ("float32(1)", Captured::NumpyFloat(Number::F32, 1.0, 0.0)),
        ("np.float32", Captured::Known("numpy.float32".into())),
        ("np.dtype('float32')", Captured::DType(DType::F32)),
        ("cuda.int32", Captured::Known("weft.cuda.int32".into())),
        ("[1]", Captured::Unsupported(Unsupported::Other, "list".into())),
        ("1 / 0", Captured::Unsupported(Unsupported::Other, "value that only Python can compute".into())),
        ("2 ** 70", Captured::Unsupported(Unsupported::Other, "int of more than 64 bits".into())),
        ("2 ** 64 - 1", Captured::Int(u64::MAX.into())),
        ("(1 << 127) >> 126", Captured::Int(2)),
        ("10 ** 25 / 1e20", Captured::Float(1e5 + 1e-11)),
        ("(2 ** 53 + 1) / 3", Captured::Float(3_002_399_751_580_331.0)),
        ("~0x8000000000000000", Captured::NumpyInt(Scalar::U64, i64::MAX.into())),
        (
            "(1, 2 ** 70)",
            Captured::Tuple(vec![
                Captured::Int(1),
                Captured::Unsupported(Unsupported::Other, "int of more than 64 bits".into()),
            ]),
        ),
        ("2 ** 53 + 1 == 2.0 ** 53", Captured::Bool(false)),
        ("2 ** 53 + 1 > 2.0 ** 53", Captured::Bool(true)),
        ("-0.5 < 0 < 0.5", Captured::Bool(true)),
        ("-5.0 // float('inf')", Captured::Float(-1.0)),
        ("(-8) ** 0.5", Captured::Complex(1.731_912_112_470_986_8e-16, 2.828_427_124_746_190_3)),
        ("2 * 1j ** 2", Captured::Complex(-2.0, 0.0)),
        ("'ab' * 2 + 'c'", Captured::Str("ababc".into())),
        ("None", Captured::None),
    ];
    for (expr, expected) in cases {
        assert_eq!(value(expr), expected, "{expr}");
    }
}

#[test]
fn names_have_their_last_value_and_canonical_paths() {
    let text = "\
import math, numpy as np
import numba.cuda as nc
from weft import cuda, types as t
from weft.cuda import jit as compile_it
if __name__ == '__main__':
    N = 99
elif True:
    N = 4
M = N * 2
N += 1
a, (b, c) = 1, (2, 3)
for i in range(3):
    LOOPED = i
if input():
    MAYBE = 1

def plain(x):
    return x

@compile_it
def k(x):
    return nc.grid(1), N, M, a, b, LOOPED, MAYBE, t.float32, math.sin(x), plain(x), range(3), undefined
";
    let globals = globals(text);
    let known = |path: &str| Captured::Known(path.into());
    let shown = |name: &str| globals.get(name).cloned();
    assert_eq!(shown("nc"), Some(known("weft.cuda")));
    assert_eq!(shown("t"), Some(known("weft.types")));
    assert_eq!(shown("math"), Some(known("math")));
    assert_eq!(shown("N"), Some(Captured::Int(5)));
    assert_eq!(shown("M"), Some(Captured::Int(8)));
    assert_eq!(shown("a"), Some(Captured::Int(1)));
    assert_eq!(shown("b"), Some(Captured::Int(2)));
    assert!(matches!(shown("LOOPED"), Some(Captured::Unknown(..))));
    assert!(matches!(shown("MAYBE"), Some(Captured::Unknown(..))));
    assert_eq!(shown("plain"), Some(Captured::Unsupported(Unsupported::PlainFunction, "plain Python function".into())));
    assert_eq!((shown("range"), shown("undefined")), (None, None));
}

#[test]
fn what_is_guarded_by_try_counts_and_classes_have_their_names() {
    let text = "\
try:
    from weft import cuda
    N = 1
except ImportError:
    from numba import cuda
    N = 1
except OSError:
    raise
else:
    M = 3
with open('x') as f:
    K = 4
class Config:
    N = 4
@cuda.jit
def k(x):
    x[0] = N + M + K + Config.N
";
    let globals = globals(text);
    let shown: Vec<_> = ["N", "M", "K", "Config"].iter().map(|name| globals.get(*name)).collect();
    let unsupported = Captured::Unsupported(Unsupported::Other, "class".into());
    assert_eq!(shown, [Some(&Captured::Int(1)), Some(&Captured::Int(3)), Some(&Captured::Int(4)), Some(&unsupported)]);
}

#[test]
fn functions_have_backward_functions() {
    let text = "\
from weft import cuda
def back(x, y, g): return g * f(x)
@cuda.custom_vjp(backward=back)
def f(x): return x
@cuda.custom_vjp(backward=lambda x, y, g: g)
@cuda.jit(device=True, inline='always')
def g(x): return x
def plain(x): return x
h = cuda.custom_vjp(plain, back)
@cuda.jit
def k(x): x[0] = f(1) + g(2) + h(3)
";
    let globals = globals(text);
    let has = |name: &str, is: fn(&FunctionDef) -> bool| match globals.get(name) {
        Some(Captured::Function(def)) => is(def),
        _ => false,
    };
    let is_back = |def: &FunctionDef| match &def.backward {
        Some(Captured::Function(back)) => back.ast.name == "back",
        _ => false,
    };
    assert!(has("f", is_back), "{globals:?}");
    assert!(has("h", is_back), "{globals:?}");
    assert!(has("g", |def| def.inline && matches!(def.backward, Some(Captured::Unsupported(..)))), "{globals:?}");
    assert_eq!(program(text).kernels().len(), 1);
}

#[test]
fn registered_functions_are_device_functions() {
    let text = "\
from weft import cuda
from weft.cuda.extending import register_jitable
@register_jitable
def f(x): return x
@register_jitable(inline='always')
def g(x): return x
@cuda.jit
def k(x): x[0] = f(1) + g(2)
";
    let globals = globals(text);
    assert!(matches!(globals.get("f"), Some(Captured::Function(def)) if !def.inline), "{globals:?}");
    assert!(matches!(globals.get("g"), Some(Captured::Function(def)) if def.inline), "{globals:?}");
    assert_eq!(program(text).kernels().len(), 1);
}

#[test]
fn exceptions_of_the_file() {
    let text = "\
from weft import cuda
import abc
class Base(Exception): pass
class Derived(abc.ABC, Base):
    def __init__(self, n): super().__init__(n)
class Wrong(ArithmeticError): pass
class Plain(abc.ABC): pass
class Meta(ValueError, metaclass=abc.ABCMeta): pass
@decorated
class Decorated(ValueError): pass
if abc.x:
    class Maybe(ValueError): pass
@cuda.jit
def k(x):
    Base, Derived, Wrong, Plain, Meta, Decorated, Maybe, ValueError
";
    let globals = globals(text);
    let exception = |name: &str| Some(Captured::Exception(format!("k.{name}")));
    for name in ["Base", "Derived", "Wrong"] {
        assert_eq!(globals.get(name), exception(name).as_ref());
    }
    for name in ["Plain", "Meta", "Decorated"] {
        assert_eq!(globals.get(name), Some(&Captured::Unsupported(Unsupported::Other, "class".into())), "{name}");
    }
    assert!(matches!(globals.get("Maybe"), Some(Captured::Unknown(..))));
    assert_eq!(globals.get("ValueError"), None);
}

/// For an unknown name: the source text that causes it, and the reason.
fn unknown(text: &str, name: &str) -> Option<(String, String)> {
    let text = format!("from numba import cuda\n{text}\n@cuda.jit\ndef k(): {name}\n");
    let known = globals(&text).remove(name)?;
    let Captured::Unknown(source, span, why) = known else { panic!("{text}: {known:?}") };
    Some((source.text[span.start as usize..span.end as usize].to_owned(), why))
}

#[test]
fn a_name_that_the_text_may_rebind_is_unknown() {
    let cases = [
        ("N = 1\ndef f():\n    if x:\n        global N\n        N = 2\n", "N", "the function `f` binds it here"),
        ("def f():\n    global N\n    N += 1\nN = 1\n", "N", "the function `f` binds it here"),
        (
            "N = 1\nclass C:\n    def m(self):\n        global N\n        for N in x: pass",
            "N",
            "the function `m` binds it",
        ),
        ("N = 1\ndef f():\n    def g():\n        global N\n        del N", "N", "the function `g` binds it here"),
        ("N = 1\ndel N\n", "N", "it is deleted here"),
        ("N = 1\nfor N in range(3): pass\n", "N", "the loop binds it"),
        ("N = 1\nfor i in range(3):\n    with x:\n        N += 1\n", "N += 1", "it is bound here, in a loop"),
        ("N = 1\nwhile x:\n    try:\n        N = 2\n    finally:\n        pass\n", "N", "it is bound here, in a loop"),
        ("N = 1\nwith open('x') as N: pass\n", "N", "the `with` statement binds it"),
        ("N = 1\ntry: pass\nexcept OSError: N = 2\n", "N", "it is bound here only if an exception is raised"),
        ("try: N = 1\nexcept OSError:\n    x()\n    N = 2\n", "N", "it is bound here only if an exception is raised"),
        ("N = 1\nif x():\n    N = 2\n", "N", "a condition decides whether it is bound here"),
        ("N = 1\nif x():\n    with y as (a, N): pass\n", "N", "the `with` statement binds it"),
        ("N = 1\nmatch x:\n    case [1, *N]: pass\n", "*N", "the `match` statement binds it"),
        ("N = 1\nprint(N := 2)\n", "N", "`:=` binds it"),
        (
            "N = 1\nfrom elsewhere import *\n",
            "from elsewhere import *",
            "this `import *` of a module that weft does not know",
        ),
    ];
    for (text, place, why) in cases {
        let (found, said) = unknown(text, "N").expect("is captured");
        assert!(said.starts_with(why) && place.starts_with(found.trim()), "{text}: {found}: {said}");
    }
}

#[test]
fn names_that_nothing_rebinds_keep_their_values() {
    let cases = [
        ("N = 1\ndel N\nN = 2\n", Captured::Int(2)),
        ("N = 1\ndef f():\n    N = 2\n    global M\n    M = N\n", Captured::Int(1)),
        ("N = 1\ndef f(N):\n    global M\n    M = 3\n    def g():\n        N = 4\n", Captured::Int(1)),
        ("N = 1\nN += 2\nif False:\n    N = 7\n", Captured::Int(3)),
        ("if 0:\n    N = 1\nelif 1:\n    N = 2\nelif x():\n    N = 3\nelse:\n    N = 4\n", Captured::Int(2)),
        ("if 1:\n    with x:\n        N = 5\n", Captured::Int(5)),
        ("N = 1\nclass C:\n    N = 2\n", Captured::Int(1)),
        ("from math import *\nN = pi", Captured::Float(std::f64::consts::PI)),
        ("pi = 3\nfrom math import *\nN = pi", Captured::Float(std::f64::consts::PI)),
        ("from math import *\nN = pow", Captured::Known("math.pow".into())),
        ("from numpy import *\nN = max(2, 4)", Captured::Int(4)),
        // A lookup table written as many conditions, as in real programs.
        (&format!("M = 900\nif M == 0: N = 0\n{}", table()), Captured::Int(900)),
    ];
    for (text, expected) in cases {
        let text = format!("from numba import cuda\n{text}\n@cuda.jit\ndef k(): N\n");
        assert_eq!(globals(&text).remove("N"), Some(expected), "{text}");
    }
}

fn table() -> String {
    (1..1000).map(|n| format!("elif M == {n}: N = {n}")).collect::<Vec<_>>().join("\n")
}

#[test]
fn imports_count_whatever_their_condition() {
    for text in [
        "try:\n    from numba import cuda\nexcept ImportError:\n    cuda = None\n",
        "try:\n    import nothing\nexcept ImportError:\n    from numba import cuda\n",
        "if x():\n    from numba import cuda\nelse:\n    cuda = None\n",
        "cuda = None\nif x():\n    from weft import cuda\n",
        "if x():\n    from weft import cuda\nelse:\n    from numba import cuda\n",
        "with x:\n    try:\n        from weft import cuda\n    finally:\n        pass\n",
    ] {
        let program = program(&format!("{text}@cuda.jit\ndef k(): pass\n"));
        assert_eq!(program.kernels().len(), 1, "{text}");
    }
}

#[test]
fn kernels_are_found_through_any_alias() {
    let text = "\
from numba import cuda, njit
import weft.cuda as w
F = 'void(float32[:])'
T = cuda.float32[:, ::1]

@cuda.jit(device=True, inline='always')
def helper(x): return x

@njit
def other(x): return x

@cuda.jit
def implicit(x): return x

@w.jit(F)
def one(x): implicit(x[0])

@w.jit([cuda.void(T), 'void(f8[::1])'], fastmath=True, launch_bounds=(256, 2))
def two(x): pass

@cuda.jit
def three(x: cuda.int32, y: 'f4[:]'): pass

def four(x): pass
five = cuda.jit('(i4,)')(four)

@other.jit
def six(x): pass
";
    let program = program(text);
    assert_eq!(program.faults(), []);
    let kernels: Vec<_> = program
        .kernels()
        .iter()
        .map(|kernel| {
            let signatures: Vec<String> = program
                .signatures(kernel)
                .iter()
                .map(|signature| signature.args.iter().map(ToString::to_string).collect::<Vec<_>>().join(" "))
                .collect();
            format!("{}: {}", kernel.name, signatures.join(" | "))
        })
        .collect();
    assert_eq!(
        kernels,
        [
            "one: array(float32, 1d, A)",
            "two: array(float32, 2d, C) | array(float64, 1d, C)",
            "three: int32 array(float32, 1d, A)",
            "five: int32",
        ]
    );
    let two = program.kernels()[1].jit.clone();
    assert!(
        two.options.code.fastmath
            && two
                .options
                .code
                .launch_bounds
                .is_some_and(|it| (it.threads, it.blocks, it.cluster) == (256, Some(2), None))
    );
    let jitted: Vec<_> = program
        .jitted()
        .iter()
        .map(|kernel| (kernel.name, kernel.jit.options.device, kernel.jit.options.inline))
        .collect();
    assert_eq!(jitted[..3], [("helper", true, true), ("other", true, false), ("implicit", false, false)]);
}

#[test]
fn functions_capture_functions_and_recursion_is_cut() {
    let text = "\
from weft import cuda
@cuda.jit
def k(x): even(x)
@cuda.jit(device=True)
def even(n, base=1 + 1): return odd(n - 1)
@cuda.jit(device=True)
def odd(n): return even(n - 1)
";
    let globals = globals(text);
    let Some(Captured::Function(even)) = globals.get("even") else { panic!("a function") };
    assert_eq!(even.defaults.get("base"), Some(&Captured::Int(2)));
    let Some(Captured::Function(odd)) = even.globals.get("odd") else { panic!("a function") };
    assert_eq!(odd.globals.get("even"), Some(&Captured::Recursive(even.number)));
    assert!(Overloads::default().find(even, even.number).is_some_and(|found| Arc::ptr_eq(&found, even)));
}

#[test]
fn files_of_the_project_are_read_and_only_what_is_used_is_captured() {
    let folder = std::env::temp_dir().join(format!("weft-cli-imports-{}", std::process::id()));
    std::fs::create_dir_all(folder.join("pkg")).expect("can write");
    std::fs::write(folder.join("config.py"), "import kernels\nN = 3\nM = 4\n").expect("can write");
    std::fs::write(folder.join("pkg/util.py"), "from weft import cuda\n@cuda.jit(device=True)\ndef f(x): return x\n")
        .expect("can write");
    let text = "from weft import cuda\nimport config\nfrom pkg.util import f\nfrom config import M as K\nimport absent\n\
                @cuda.jit\ndef k(x): x[0] = f(config.N) + K + absent.x\n";
    let path: PathBuf = folder.join("kernels.py");
    let program = Program::read(&path, text.as_bytes());
    let def = program.function_def(program.kernels()[0].index, &mut Captures::default()).expect("exists");
    let members = BTreeMap::from([("N".to_owned(), Captured::Int(3))]);
    assert_eq!(def.globals.get("config"), Some(&Captured::Module("config".into(), members)));
    assert_eq!(def.globals.get("K"), Some(&Captured::Int(4)));
    assert!(matches!(def.globals.get("f"), Some(Captured::Function(_))));
    assert!(matches!(def.globals.get("absent"), Some(Captured::Unsupported(_, what)) if what.contains("absent")));
    std::fs::remove_dir_all(folder).expect("can remove");
}

#[test]
fn faults_are_those_of_decorators() {
    let text = "from weft import cuda\nx = f'{y['z']}'\n@cuda.jit('void(nope)')\ndef a(x): pass\n\
                @cuda.jit\ndef b(x):\n    print(f'{x['z']}')\n";
    let program = program(text);
    assert!(!program.is_broken());
    let faults: Vec<_> = program.faults().iter().map(|fault| (fault.code.number(), fault.severity)).collect();
    assert_eq!(faults, [("E0301", Severity::Error)], "{:?}", program.faults());
}

#[test]
fn a_file_that_is_no_python_has_no_kernels() {
    let kernel = "from weft import cuda\n@cuda.jit('void(i8[:])')\ndef k(a):\n    a[0] = 1\n";
    let faults = [
        ("=======\n    a[1] = 2\n", "="),
        ("<<<<<<< ours\n    a[1] = 2\n", "<"),
        ("x = = 1\n", "="),
        ("    a[1] = (2\n", ""),
        ("  a[1] = 2\n", ""),
        ("x = f'{y z}'\n", ""),
        ("x = f'{y['a' 1]}'\n", ""),
        ("x = '\u{0}'\n", ""),
    ];
    for (more, place) in faults {
        let text = format!("{kernel}{more}");
        let program = program(&text);
        let [fault] = program.faults() else { panic!("{more}: {:?}", program.faults()) };
        let found = &text[fault.span.start as usize..fault.span.end as usize];
        assert!(program.is_broken() && program.kernels().is_empty(), "{more}");
        assert!(fault.span.start as usize >= kernel.len() - 1 && found.contains(place), "{more}: {fault:?}: {found}");
        assert_eq!(fault.severity, Severity::Error);
    }
}

#[test]
fn what_is_in_its_place_is_no_error() {
    for text in [
        "'Text.'\nfrom __future__ import annotations, division\nfrom __future__ import generators\n",
        "def f():\n    x = 1\n    class C:\n        nonlocal x\n        x = 2\n",
        "async def f():\n    async for i in x:\n        await i\n        yield i\n        continue\n",
        "while 1:\n    try:\n        break\n    finally:\n        pass\n",
        "(a, [b, *c]), d.e, f[0] = x\ndel (a, b), d.e\nwith x as (a, b): pass\n",
        "class C:\n    x = [i for i in y]\n    lambda: (yield)\n",
    ] {
        let program = program(text);
        assert!(program.faults().is_empty(), "{text}: {:?}", program.faults());
    }
    let program = program("from __future__ import braces\n");
    assert_eq!(program.faults()[0].message, "`__future__` has no feature `braces`");
}

#[test]
fn statements_in_the_wrong_place_are_errors() {
    let kernel = "from weft import cuda\n@cuda.jit('void(i8[:])')\ndef k(a):\n    a[0] = 1\n";
    let faults = [
        ("return\n", "return"),
        ("class C:\n    def f(): pass\n    break\n", "break"),
        ("class C:\n    def f(self):\n        f() = 1\n", "f()"),
        ("def f():\n    await g()\n", "await g()"),
        ("def f():\n    async with g(): pass\n", "async with g(): pass"),
        ("async def f():\n    x = yield from g()\n", "yield from g()"),
        ("for i in x:\n    def f():\n        continue\n", "continue"),
        ("x = yield\n", "yield"),
        ("nonlocal x\n", "nonlocal x"),
        ("class C:\n    nonlocal x\n", "nonlocal x"),
        ("from __future__ import annotations\n", "from __future__ import annotations"),
        ("def f():\n    from __future__ import division\n", "from __future__ import division"),
        ("with f() as 1: pass\n", "1"),
        ("del f()\n", "f()"),
    ];
    for (more, place) in faults {
        let text = format!("{kernel}{more}");
        let program = program(&text);
        let errors: Vec<_> = program.faults().iter().filter(|fault| fault.severity == Severity::Error).collect();
        let [fault] = errors[..] else { panic!("{more}: {:?}", program.faults()) };
        assert_eq!(&text[fault.span.start as usize..fault.span.end as usize], place);
        assert_eq!(program.kernels().len(), 1);
    }
}

#[test]
fn declared_functions_are_device_functions() {
    let text = "import cffi\nfrom weft import cuda\nffi = cffi.FFI()\n\
                f = cuda.declare_device('f', sig='float32(float32, int32)', abi='c')\n\
                @cuda.declare_device('$g', 'void(CPointer(int8))', 'g.cu', use_cooperative=True)\n\
                def g(p):\n    pass\n\
                @cuda.jit\ndef k():\n    f, g, ffi.from_buffer\n";
    let globals = globals(text);
    let external = |name: &str| {
        let Captured::Function(def) = &globals[name] else { panic!("{name} is no function") };
        (def.signatures.len(), def.gpu.clone(), def.ast.params.len())
    };
    let f = External { symbol: "f".into(), abi: Abi::C, cooperative: false, python: false };
    let g = External { symbol: "$g".into(), abi: Abi::Numba, cooperative: true, python: true };
    assert_eq!(external("f"), (1, Some(GpuBody::External(f)), 2));
    assert_eq!(external("g"), (1, Some(GpuBody::External(g)), 1));
    assert_eq!(globals["ffi"], Captured::Known("cffi.FFI".into()));
    let wrong = program("from weft import cuda\nf = cuda.declare_device('f', 'void()', abi='rust')\n");
    assert_eq!(wrong.faults().len(), 1);
}
