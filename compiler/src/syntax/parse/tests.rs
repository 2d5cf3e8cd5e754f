//! Sources from `inspect.getsource`, and files in the syntax of newer Pythons, become trees with the right spans.

use super::*;
use crate::syntax::ast::{Constant, ExprKind, StmtKind};

fn file(text: &str) -> SourceFile {
    SourceFile::new("test.py", text)
}

fn function(text: &str) -> Function {
    parse_function(&file(text), 0, None).expect("parses")
}

fn at(text: &str, span: Span) -> &str {
    &text[span.start as usize..span.end as usize]
}

#[test]
fn an_indented_function_has_the_spans_of_its_own_text() {
    let text = "    @cuda.jit\n# a comment at the margin\n    def k(x: int32, *, y=1):\n        '''\nleft\n'''\n        x[0] = y;\n";
    let parsed = function(text);
    assert_eq!(at(text, parsed.name_span), "k");
    assert!(at(text, parsed.span).starts_with("def k("));
    assert!(at(text, parsed.span).ends_with("x[0] = y"), "{:?}", at(text, parsed.span));
    assert_eq!(at(text, parsed.decorators[0].span), "cuda.jit");
    assert_eq!(at(text, parsed.params[0].span), "x");
    assert_eq!(parsed.params[1].kind, crate::syntax::ast::ParamKind::KeywordOnly);
    assert_eq!(at(text, parsed.body[1].span), "x[0] = y");
}

#[test]
fn one_space_indents_semicolons_and_continuations_parse() {
    let text = "def k(x, ρ):\n if x[0] > 1 and \\\n    ρ:\n  x[0] = 1; x[1] = 2;\n elif ρ:\n  pass\n else:\n  return\n";
    let parsed = function(text);
    let StmtKind::If { orelse, body, .. } = &parsed.body[0].kind else { panic!("an if") };
    assert_eq!(body.len(), 2);
    assert_eq!(at(text, body[1].span), "x[1] = 2");
    assert!(matches!(&orelse[0].kind, StmtKind::If { orelse, .. } if matches!(orelse[0].kind, StmtKind::Return(None))));
    assert_eq!(parsed.params[1].name, "ρ");
}

#[test]
fn the_micro_sign_is_the_greek_letter() {
    for (written, meant) in
        [("\u{b5}", "\u{3bc}"), ("\u{3f5}", "\u{3b5}"), ("\u{fb01}x", "fix"), ("\u{1d6fc}", "\u{3b1}")]
    {
        assert_eq!(function(&format!("def f({written}): pass")).params[0].name, meant);
    }
}

#[test]
fn integers_have_their_sign_and_any_length() {
    let text = "def f():\n    return -18446744073709551615, 1_000_0000_0000_0000_0000_000\n";
    let StmtKind::Return(Some(value)) = &function(text).body[0].kind else { panic!("a return") };
    let ExprKind::Tuple(items) = &value.kind else { panic!("a tuple") };
    assert_eq!(items[0].kind, ExprKind::Constant(Constant::Int((-i128::from(u64::MAX)).into())));
    assert_eq!(items[1].kind, ExprKind::Constant(Constant::Int(10_i128.pow(22).into())));
}

#[test]
fn private_names_have_the_name_of_their_class() {
    let text = "    def k(self, __p):\n        __x = __g.__h + __i__ + f(__j=1)\n";
    let shown = |class| format!("{:?}", parse_function(&file(text), 0, class).expect("parses"));
    for class in ["C", "_C", "__C"] {
        let tree = shown(Some(class));
        for name in ["_C__p", "_C__x", "_C__g", "_C__h", "__i__", "_C__j"] {
            assert!(tree.contains(&format!("\"{name}\"")), "{name} in {tree}");
        }
    }
    for class in [None, Some("_"), Some("__")] {
        assert!(shown(class).contains("\"__g\""), "no name goes into {class:?}");
    }
}

#[test]
fn what_kernels_cannot_have_is_named() {
    let text = "def f(x):\n    try:\n        pass\n    except E:\n        pass\n    y = [i for i in x]\n    z = f'{x}'\n    import math\n";
    let names: Vec<_> = function(text)
        .body
        .iter()
        .map(|stmt| match &stmt.kind {
            StmtKind::Unsupported(name) => *name,
            StmtKind::Assign { value, .. } => match value.kind {
                ExprKind::Unsupported(name) => name,
                _ => "",
            },
            _ => "",
        })
        .collect();
    assert_eq!(names, ["a `try` statement", "list comprehension", "", "a local `import`"]);
}

fn fault(text: &str) -> (String, String, (u32, u32)) {
    let source = file(text);
    let diagnostic = parse_function(&source, 0, None).expect_err("does not parse");
    let found = at(text, diagnostic.span).to_owned();
    (diagnostic.message, found, source.line_column(diagnostic.span.start))
}

#[test]
fn faults_are_sentences_at_their_place() {
    let cases = [
        ("def f(x):\n    if x = 1:\n        pass\n", "`=` cannot be used in a condition", "=", (2, 10)),
        ("def f(x):\n    if x\n        pass\n", "the `if` line does not end in `:`", "", (2, 9)),
        ("  def f(x):\n      x ]= 1\n", "this bracket does not match an open bracket", "]", (2, 9)),
        ("def f(x):\n    1 = x\n", "`1` cannot be assigned to", "1", (2, 5)),
        ("def f(x):\n    x += = 1\n", "`=` is not allowed here", "=", (2, 10)),
        ("def f(x, x):\n    pass\n", "the parameter `x` is declared twice", "x", (1, 10)),
        ("def f(x):\n    y = 'abc\n", "a string is not closed on its line", "", (2, 13)),
        ("f = lambda x: x\n", "there is no function definition here", "f = lambda x: x", (1, 1)),
        (
            "async def f(x): pass\n",
            "`f` is an `async def`: weft only compiles ordinary functions",
            "async def f(x): pass",
            (1, 1),
        ),
        ("def f(x):\nreturn\n", "an indented block must follow here", "return", (2, 1)),
        ("def f(x):\n    pass\n      pass\n", "this line is indented, but nothing above opens a block", "pass", (3, 7)),
    ];
    for (text, message, found, place) in cases {
        assert_eq!(fault(text), (message.to_owned(), found.to_owned(), place), "{text}");
    }
}

#[test]
fn tabs_of_an_indentation_go_to_the_next_multiple_of_eight() {
    // The line belongs to the inner block only if a tab has 8 columns.
    let text = "def f(x):\n    if x:\n        y = 1\n    \tz = 2\n\t \n  \t# a comment\n    return (y,\n \t  z)\n";
    let (message, found, place) = fault(text);
    assert!(message.starts_with("the indentation mixes tabs and spaces"), "{message}");
    assert_eq!((found.as_str(), place), ("z", (4, 6)));
    assert_eq!(function(&text.replace("    \tz", "        z")).body.len(), 2);
    let text = "def f(x):\n    if x:\n    \tz = 2\n    \ty = '''\n \t'''\n    \treturn z\n      return x\n";
    assert_eq!(fault(text).0, "the indentation does not match any block above");
    let text = text.replace("      return x", "    return x");
    let whole = function(&text);
    let StmtKind::If { body, .. } = &whole.body[0].kind else { panic!("an if") };
    assert_eq!((body.len(), whole.body.len()), (3, 2));
    assert_eq!(at(&text, body[0].span), "z = 2");
}

#[test]
fn chains_are_not_nesting_up_to_a_limit() {
    let sum = |terms: usize| format!("def k(x):\n    y = {}\n", vec!["x"; terms].join(" + "));
    let elifs =
        |count: usize| format!("def k(x):\n    if x:\n        pass\n{}", "    elif x:\n        pass\n".repeat(count));
    for text in [sum(1000), elifs(1000)] {
        assert!(parse_function(&SourceFile::new("t.py", text), 0, None).is_ok());
    }
    for text in [sum(3000), elifs(3000)] {
        assert!(fault(&text).0.contains("a chain of more than"));
    }
}

#[test]
fn deep_nesting_is_an_error_and_not_a_crash() {
    let text = format!("def f(x):\n    return {}x\n", "x + ".repeat(100_000));
    assert!(fault(&text).0.contains("a chain of more than"));
    let text = format!("def f(x):\n    return {}x\n", "-".repeat(100_000));
    assert!(fault(&text).0.contains("nested"));
}

#[test]
fn a_file_newer_than_the_parser_is_read_as_any_other() {
    let text = "import math\nfrom weft import cuda as c\nN = 4\nprint(f\"{d[\"a\"]}\" + f\"{'\\n'.join(x)}\")\n\
                try:\n    x = 1\nexcept A, B:\n    x = 2\n\n@c.jit\n# why\n@other\ndef k(\n    x,\n):\n    x[0] = N\n\nlast = '''\n1\n'''\n";
    let source = file(text);
    let items = parse_module(&source, 0).expect("is Python").items;
    let shapes: Vec<String> = items
        .iter()
        .map(|item| match item {
            ModuleItem::Function(def) => format!("def {} @{}", def.name, def.decorators.len()),
            ModuleItem::Import { module, .. } => format!("import {module}"),
            ModuleItem::ImportFrom { module, name, bound, .. } => format!("from {module} import {name} as {bound}"),
            ModuleItem::Stmt(stmt) => at(text, stmt.span).replace('\n', "|"),
            ModuleItem::Class { name, .. } => format!("class {name}"),
            ModuleItem::Try { body, handlers } => format!("try {} {}", body.len(), handlers.len()),
            ModuleItem::If { .. }
            | ModuleItem::Maybe(_)
            | ModuleItem::Binds { .. }
            | ModuleItem::Unparsed { .. }
            | ModuleItem::Inner { .. } => panic!("{item:?}"),
        })
        .collect();
    assert_eq!(
        shapes,
        [
            "import math",
            "from weft import cuda as c",
            "N = 4",
            "print(f\"{d[\"a\"]}\" + f\"{'\\n'.join(x)}\")",
            "try 1 1",
            "def k @2",
            "last = '''|1|'''",
        ]
    );
}

/// Syntax of Python 3.12 to 3.14 that the parser does not support, one statement each.
const NEWER: [&str; 27] = [
    "f\"{d[\"a\"]}\"",
    "f'{'\\n'.join(x)}' f\"{x}\"",
    "f'''{\n  # why: '}'\n  x['''a''']\n}'''",
    "f'{x:{y['w']}.{z}}'",
    "rf'\\{x['a']}\\d' 'plain' r'\\''",
    "f'{x['a']=}' f'{x['a']!r:>8}' f'{ x['a'] = !s}'",
    "f'{{{x['a']}}}' '}{'",
    "f'{lambda_['a'] != 1}' f'{(lambda x: x['a'])(1)}'",
    "f'\\N{EN DASH}{x['a']}\\'' + \"'\"",
    "f'{f'{f'{x}'}'}'",
    "f'{*x['a'], 1}' f'{x['a'],}' f'{yield_['a']}' f'{*x,}'",
    "def g():\n    f'{x['a']}' f'{yield}' f'{yield x}'",
    "def g():\n    x = 1\n    class C:\n        nonlocal x\n        x = f'{y['a']}'",
    "t'{x['a']}' t\"{y}\"",
    "f'{x!r }' f'{x=  }' f'{x:\\x41\\{y}}' f'{\nx # c\n}'",
    "rt'{x}\\''",
    "x = t'a{b!r}c'",
    "try:\n    pass\nexcept A, B:\n    pass\nexcept (C, D) as e:\n    pass",
    "try:\n    pass\nexcept a.b, c[1, 2], d(3),:\n    pass",
    "try:\n    pass\nexcept* A, B:\n    pass",
    "class A[T = int]: pass",
    "class A[T: int = bool, *Ts = *tuple[int, ...], **P = [int, str]](B): pass",
    "def f[T = dict[str, int]](x: T) -> T: return x",
    "type X[T = int] = list[T]",
    "type X[T = 'a, b]', U = 1] = list[T]",
    "a = 1; b = f'{x['a']}'; c = 2  # d",
    "@d(f'{x['a']}')\n# c\n@e\nasync def g():\n    async with x, y:\n        await z",
];

#[test]
fn what_is_newer_than_the_parser_is_read() {
    for newer in NEWER {
        let text = format!("N = 1\n\n@jit\ndef k():\n    pass\n{newer}\nN = 2\n@jit\ndef last(): pass\n");
        let Parsed { items, faults } =
            parse_module(&file(&text), 0).unwrap_or_else(|fault| panic!("{newer}: {fault:?}"));
        assert!(faults.is_empty(), "{newer}: {faults:?}");
        let names: Vec<&str> = items
            .iter()
            .filter_map(|item| if let ModuleItem::Function(def) = item { Some(def.name.as_str()) } else { None })
            .filter(|name| !newer.contains(&format!("def {name}")))
            .collect();
        assert_eq!(names, ["k", "last"], "{newer}");
        let left_out = items.iter().filter(|item| matches!(item, ModuleItem::Unparsed { .. })).count();
        assert_eq!(left_out, 0, "{newer}: {items:?}");
    }
}

/// Near misses of such statements, invalid in every version of Python.
#[test]
fn what_is_no_python_is_an_error_beside_newer_statements() {
    let wrong = [
        "f'{x['a'}'",
        "f'{x['a' b]}'",
        "f'{x['a']'",
        "f'{x['a']}}'",
        "f'{}' f'{x['a']}'",
        "f'{x['a']!}' 1",
        "f'{x['a']! r}'",
        "f'{x!q}'",
        "f'{*x}'",
        "f'{x['a'] # c}'",
        "f'{x:{y:{z:{w}}}}'",
        "f'{{}'",
        "f'}'",
        "f'{x:}}'",
        "f'{x;y}'",
        "f'{x\ny}'",
        "f'{x:\n}'",
        "f'{x!r=}'",
        "f'{x:'}'",
        "f'{lambda x: 1}'",
        "f'\\N{no such}'",
        "f'{a['b']}' b'x'",
        "class A[T = 1 +]: pass",
        "try:\n    pass\nexcept A, B as e:\n    pass",
        "try:\n    pass\nexcept A, , B:\n    pass",
        "class A[T = ]: pass",
        "=======",
        "    x = f'{y['a']}'",
        "x = (f'{y['a']}'",
        "x = '''",
        "def f():\nx = 1",
        "x = 1 +",
        "a b",
        "def f(x, x): pass",
        "f(a=1, 2)",
        "return f'{x['a']}'",
        "for f'{x['a']}' in y: pass",
    ];
    for wrong in wrong {
        for beside in ["", "f'{d['a']}'\n"] {
            let text = format!("{beside}N = 1\n{wrong}\nN = 2\n");
            let faults = parse_module(&file(&text), 0).map_or_else(|fault| vec![fault], |parsed| parsed.faults);
            assert!(!faults.is_empty(), "{wrong}");
            assert!(faults.iter().all(|fault| !fault.message.is_empty()), "{wrong}: {faults:?}");
        }
    }
}

/// A formatted string is a call of `format`: the template, and the spans of its arguments.
#[test]
fn formatted_strings_are_calls_of_format() {
    let cases: [(&str, &str, &[&str]); 23] = [
        ("f''", "", &[]),
        ("f\"a{x[\"b\"]}c\"", "a{0}c", &["x[\"b\"]"]),
        ("f'{x['a']!r:>{w['b']}.{p}}'", "{0!r:>{1}.{2}}", &["x['a']", "w['b']", "p"]),
        ("f'{{}}{x}}}'", "{{}}{0}}}", &["x"]),
        ("f'{'\\n'.join(x)}\\n\\x41\\N{BULLET}\\''", "{0}\nA\u{2022}'", &["'\\n'.join(x)"]),
        ("rf'\\n{x}\\{y}'", "\\n{0}\\{1}", &["x", "y"]),
        ("f'\\{x}\\{{'", "\\{0}\\{{", &["x"]),
        ("f'{\n    x + # why: }'\n    1\n}é'", "{0}é", &["x + # why: }'\n    1"]),
        ("f'{x=}'", "x={0!r}", &["x"]),
        ("f'{ x + 1 = !s:5}'", " x + 1 = {0!s:5}", &["x + 1"]),
        ("f'{x=:>5}'", "x={0:>5}", &["x"]),
        ("f'{x # a\n  = # b\n  !r # c\n  }'", "x \n  = \n  {0!r}", &["x"]),
        ("f'{x:\\x3e5}'", "{0:>5}", &["x"]),
        ("f'{x != y}{(a := 1)}{x:=5}'", "{0}{1}{2:=5}", &["x != y", "a := 1", "x"]),
        ("f'{(lambda v: v)(1)}{ {1}}'", "{0}{1}", &["(lambda v: v)(1)", "{1}"]),
        ("'a{' f'{x}' # f'{q}'\n  \"b'}\" r'\\n' F\"{y}\"", "a{{{0}b'}}\\n{1}", &["x", "y"]),
        ("'a' \\\n  f'{x}'", "a{0}", &["x"]),
        ("f'''\"{x}\" ' '''", "\"{0}\" ' ", &["x"]),
        ("f\"\"\"a\"{x}\\\"\"\"\"", "a\"{0}\"", &["x"]),
        ("f'{f'{f'{x}'}'}'", "{0}", &["f'{f'{x}'}'"]),
        ("f'{x}' 'ü' f'{ü}'", "{0}ü{1}", &["x", "ü"]),
        ("f'a\\\nb{x}'", "ab{0}", &["x"]),
        ("f'{x}{x}'", "{0}{1}", &["x", "x"]),
    ];
    for (text, template, fields) in cases {
        for (front, ends) in [("    ", "\n"), ("", "\n"), ("", "\r\n")] {
            let written = |text: &str| text.replace('\n', ends);
            let text = written(&format!("{front}def k(x):\n{front}    s = (\n{text})\n{front}    y[0] = 1\n"));
            let parsed = parse_function(&file(&text), 0, None).unwrap_or_else(|fault| panic!("{text}: {fault:?}"));
            let StmtKind::Assign { value, .. } = &parsed.body[0].kind else { panic!("an assignment") };
            let ExprKind::Call { func, args, .. } = &value.kind else { panic!("{text}: {value:?}") };
            let ExprKind::Attribute { value: literal, .. } = &func.kind else { panic!("an attribute") };
            assert_eq!(literal.kind, ExprKind::Constant(Constant::Str(template.to_owned())), "{text}");
            let found: Vec<&str> = args.iter().map(|arg| at(&text, arg.span)).collect();
            assert_eq!(found, fields.iter().map(|field| written(field)).collect::<Vec<_>>(), "{text}");
            assert_eq!(at(&text, parsed.body[1].span), "y[0] = 1");
        }
    }
}

#[test]
fn faults_of_formatted_strings_are_at_their_place() {
    let cases = [
        ("f'{x['a'}'", "this bracket does not match an open bracket", "}", 9),
        ("f'{x y}'", "`y` is not allowed here", "y", 6),
        ("f'{ }' f'{x}'", "an expression is missing here", "", 5),
        ("f'{x!q}'", "a conversion must follow the `!` in this field", "!", 5),
        ("f'a}'", "this `}` does not close a field of the f-string", "}", 4),
        ("f'{x'", "a string in this field is not closed", "'", 5),
        ("f'{x:5'", "the format of a field is not closed", "'", 7),
        ("f'{x!r=}'", "expected the end of the field here", "=", 7),
        ("f'abc{x}", "a string is not closed on its line", "", 9),
        ("f'{x +}'", "`}` is not allowed here", "}", 7),
    ];
    for (text, message, found, column) in cases {
        let whole = format!("def f(x):\n    y = 1\n{text}\n");
        let source = file(&whole);
        let fault = parse_module(&source, 0).expect_err("is no Python");
        assert_eq!(
            (fault.message.as_str(), at(&whole, fault.span), source.line_column(fault.span.start)),
            (message, found, (3, column)),
            "{text}"
        );
    }
    // The first error in the source is reported.
    assert_eq!(fault("def f(x):\n    y = = 1\n    z = f'{}'\n").1, "=");
    // A template string is unsupported, and its span is reported.
    let text = "def f(x):\n    y = t'{x['a']}' t\"\"\n";
    let StmtKind::Assign { value, .. } = &function(text).body[0].kind else { panic!("an assignment") };
    assert_eq!(value.kind, ExprKind::Unsupported("template string"));
    assert_eq!(at(text, value.span), "t'{x['a']}' t\"\"");
    assert!(fault("def f(x):\n    y = t'{x}' 'a'\n").0.contains("with other strings"));
    assert!(
        fault("def f(x):\n    match x:\n        case f'{x}':\n            pass\n").0.contains("cannot be a pattern")
    );
}

#[test]
fn an_expression_has_places_in_its_own_text() {
    let text = "  float32[:, ::1]\n";
    let parsed = parse_expression(&file(text), 3).expect("parses");
    assert_eq!(at(text, parsed.span), "float32[:, ::1]");
    assert_eq!(parsed.span.file, 3);
    assert!(parse_expression(&file("a b"), 0).is_err());
}

#[test]
fn windows_line_ends_are_line_ends() {
    let text = "    @cuda.jit\r\n    def k(x):\r\n        '''a\r\nb'''\r\n        x[0] = \\\r\n            1\r\n";
    let source = file(text);
    let parsed = parse_function(&source, 0, None).expect("parses");
    assert_eq!(source.line_column(parsed.name_span.start), (2, 9));
    assert_eq!(at(text, parsed.body[1].span), "x[0] = \\\r\n            1");
}

/// Every prefix of a kernel's source gives an error with a span, and never a panic.
#[test]
fn cut_and_damaged_texts_are_errors() {
    let text = r#"  @cuda.jit('void(f4[:])', a=1)
  def k(x: int, *y, **z) -> None:
    """π"""
    if x[-1:, ::2] <= 0x1F and not y:
        z = [i async for i in x]; del z
    elif (a := 1.5e3j) is b"\xff":
      return f'{x!r:>{a}}' % (lambda q=1: q)
    @d
    class C(D, metaclass=E): pass
    while 1: break
    else: yield -~x ** 2 @ {**a, 1: 2}
"#;
    parse_function(&file(text), 0, None).expect("parses");
    let cuts = text.char_indices().map(|(index, _)| index).collect::<Vec<_>>();
    let mut damaged: Vec<String> = cuts.iter().map(|&cut| text[..cut].to_owned()).collect();
    damaged.extend(cuts.iter().map(|&cut| text[cut..].to_owned()));
    for insert in ["", "(", "'", "\n", "é"] {
        damaged.extend(cuts.iter().map(|&cut| {
            let rest = text[cut..].chars().next().map_or(0, char::len_utf8);
            format!("{}{insert}{}", &text[..cut], &text[cut + rest..])
        }));
    }
    for text in damaged {
        let source = file(&text);
        if let Err(fault) = parse_function(&source, 0, None) {
            let (start, end) = (fault.span.start as usize, fault.span.end as usize);
            assert!(!fault.message.is_empty() && text.get(start..end).is_some(), "{text:?}: {fault:?}");
        }
        let place = |span: Span| text.get(span.start as usize..span.end as usize);
        match parse_module(&source, 0) {
            Ok(Parsed { items, faults }) => {
                assert!(faults.iter().all(|fault| place(fault.span).is_some()), "{text:?}: {faults:?}");
                for item in items {
                    if let ModuleItem::Unparsed { at: fault, span, .. } = item {
                        assert!(!at(&text, span).is_empty() && place(fault).is_some());
                    }
                }
            }
            Err(fault) => assert!(place(fault.span).is_some(), "{text:?}: {fault:?}"),
        }
        let _any = parse_expression(&source, 0);
    }
}

#[test]
fn expressions_of_literals_are_the_constants_that_cpython_folds() {
    let folded = |text: &str| parse_expression(&file(text), 0).expect("parses").kind;
    let huge = "7".repeat(330);
    let cases = [
        ("1 - 2**-53", Constant::Float(0.999_999_999_999_999_9)),
        ("(1 << 64) - 1", Constant::Int(u64::MAX.into())),
        ("-7 // 2 * 10 + -7 % 4", Constant::Int((-39).into())),
        ("-1 >> 10**30", Constant::Int((-1).into())),
        ("0 ** 10**19 + 1", Constant::Int(1.into())),
        // Integers beyond the range of floats whose quotient is a float.
        (&format!("1{huge} / {huge}"), Constant::Float(2.285_714_285_714_285_6)),
        // Rounded once: to a float with few digits, and from the midpoint of two floats to the even one.
        (&format!("-1 / 1{}", "0".repeat(322)), Constant::Float(-1e-322)),
        ("9007199254740993 / 1", Constant::Float(9_007_199_254_740_992.0)),
        ("(2**55 + 2) / 2**2", Constant::Float(9_007_199_254_740_992.0)),
        ("((1 << 120) + (1 << 67) + 1) * 1.0", Constant::Float(2_f64.powi(120) + 2_f64.powi(68))),
        ("5.5 // -2 - 0.5", Constant::Float(-3.5)),
        ("True & (not ())", Constant::Bool(true)),
        ("~True", Constant::Int((-2).into())),
        ("('ab' * 2 + 'c')[-1] * 2", Constant::Str("cc".to_owned())),
        ("((1, 2) * 2 + (b'x',))[4][0]", Constant::Int(120.into())),
        ("2 - 1j", Constant::Complex(2.0, -1.0)),
    ];
    for (text, constant) in cases {
        assert_eq!(folded(text), ExprKind::Constant(constant), "{text}");
    }
    for text in ["-0.0", "-(0.0 * 5)"] {
        assert!(matches!(folded(text), ExprKind::Constant(Constant::Float(zero)) if zero.is_sign_negative()), "{text}");
    }
    let whole = "1 + 2 * 3";
    assert_eq!(at(whole, parse_expression(&file(whole), 0).expect("parses").span), whole);
    // Expressions that raise an exception, that are too long, and that CPython's compiler does not fold.
    for text in [
        "1 // 0",
        "1.0 % 0",
        "0 ** -1",
        "1 << -1",
        "1e300 ** 2",
        "2**65",
        "1 << 128",
        "(1 << 70) * (1 << 70)",
        "1 < 2",
        "1 and 2",
        "1 if True else 2",
        "(1, 2)[2]",
        "'a' * 4097",
        "(1, 2) * 129",
        "'a' * -1",
        "~1.0",
        "-'a'",
        "1 + x",
        "(1, x)[0]",
        "'%d' % 5",
        "1j // 2",
        "2 @ 3",
    ] {
        assert!(!matches!(folded(text), ExprKind::Constant(_) | ExprKind::Tuple(_)), "{text}");
    }
}
