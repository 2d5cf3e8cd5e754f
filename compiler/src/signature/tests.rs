//! Signatures and types are read, and errors have the right locations.

use super::*;

fn shown(text: &str) -> String {
    match parse_signature(text) {
        Ok(Signature { args, returns }) => {
            let args: Vec<_> = args.iter().map(ToString::to_string).collect();
            format!("{}({})", returns.map_or("void".to_owned(), |ty| ty.to_string()), args.join(", "))
        }
        Err(error) => format!("{} at {}..{}", error.message, error.span.start, error.span.end),
    }
}

#[test]
fn signatures_are_read_as_numba_writes_them() {
    let cases = [
        ("void(float32[:], int32)", "void(array(float32, 1d, A), int32)"),
        ("(f4[::1], i8)", "void(array(float32, 1d, C), int64)"),
        ("(f4)", "void(float32)"),
        ("()", "void()"),
        ("void()", "void()"),
        ("none(b1,)", "void(boolean)"),
        ("float32(float32)", "float32(float32)"),
        ("types.void(types.float64[:,::1], cuda.int32)", "void(array(float64, 2d, C), int32)"),
        ("void(weft.c8[::1,:], np.uint8)", "void(array(complex64, 2d, F), uint8)"),
        ("void(f8[:,:,:,::1])", "void(array(float64, 4d, C))"),
        ("void(array(float32, 1d, C), Tuple((int32, float32)))", "void(array(float32, 1d, C), Tuple(int32, float32))"),
        ("void(none, None, Tuple(none, int32))", "void(none, none, Tuple(none, int32))"),
        ("f4(types.CPointer(f4), CPointer(c8))", "float32(CPointer(float32), CPointer(complex64))"),
        (
            "Optional(f4)(types.Optional(i8), optional(f4[:]), Optional(Optional(b1)))",
            "OptionalType(float32)(OptionalType(int64), OptionalType(array(float32, 1d, A)), OptionalType(boolean))",
        ),
        ("void(Optional(none))", "use `none` for the type of None at 14..18"),
        ("void(Optional())", "`Optional` is written `Optional(float32)` at 5..15"),
        ("void(voidptr, types.voidptr)", "void(voidptr, voidptr)"),
        ("void(CPointer(f4[:]))", "a pointer cannot point to array(float32, 1d, A) at 14..19"),
        ("void(CPointer())", "`CPointer` is written `CPointer(float32)` at 5..15"),
        ("void(float32x4, cuda.int2[::1])", "void(float32x4, array(int32x2, 1d, C))"),
        ("UniTuple(int64, 2)(intp)", "UniTuple(int64 x 2)(int64)"),
        ("UniTuple(int64 x 2)(UniTuple(f4 x 1))", "UniTuple(int64 x 2)(UniTuple(float32 x 1))"),
        ("void(Array(float32, 1, 'C', readonly=True))", "void(Array(float32, 1d, C))"),
        ("void(Array(float32, 1, 'C'))", "void(array(float32, 1d, C))"),
        ("void(float32[:], int33)", "`int33` is not a type that weft knows at 17..22"),
        ("void(float)", "`float` is not a type that weft knows at 5..10"),
        ("void(f4[::2])", "the step can only be 1: `::1` marks the contiguous dimension at 10..11"),
        ("void(f4[:,::1,:])", "only the last (C) or the first (Fortran) dimension can be `::1` at 8..15"),
        ("void(f4[3])", "write a dimension as `:` or `::1` at 8..9"),
        ("float32[:]", "array(float32, 1d, A) is a type, not a signature at 0..10"),
        ("void(f4[:]", "the signature is incomplete at 10..10"),
        ("  ", "the signature is empty at 0..0"),
        ("void(int32); void(float32)", "unexpected text after the signature at 11..12"),
        ("void(float16[:], bfloat16)", "void(array(float16, 1d, A), bfloat16)"),
        ("void(f4[:,:,:,:,:,:,:,:])", "an array has 0 to 7 dimensions, not 8 at 8..23"),
        ("void(f4[()])", "write a dimension as `:` or `::1` at 8..10"),
        ("void(other.float32)", "`other.float32` is not a type that weft knows at 5..18"),
    ];
    for (text, expected) in cases {
        assert_eq!(shown(text), expected, "{text}");
    }
}

#[test]
fn misspelt_types_have_a_suggestion() {
    let help = |text| parse_type(text).expect_err("is no type").help;
    assert_eq!(help("flaot32").as_deref(), Some("did you mean `float32`?"));
    assert_eq!(help("int").as_deref(), Some("write `int32` or `int64`"));
}

#[test]
fn what_a_type_prints_is_read_back() {
    let array = |dtype, ndim, layout, readonly| ArgType::Array(ArrayType { dtype, ndim, layout, readonly });
    let mut types: Vec<ArgType> = Number::all().map(ArgType::from).collect();
    for ndim in 0..=7 {
        for layout in [Layout::C, Layout::F, Layout::Any] {
            types.extend([array(DType::F32, ndim, layout, false), array(DType::C128, ndim, layout, true)]);
        }
    }
    types.extend(Number::all().map(|number| ArgType::Pointer(Some(number.into()))));
    types.push(ArgType::Pointer(None));
    types.extend(types.clone().into_iter().filter_map(ArgType::or_none));
    types.push(ArgType::Tuple(vec![]));
    types.push(ArgType::Tuple(vec![ArgType::Value(DType::I64)]));
    types.push(ArgType::Tuple(vec![ArgType::Value(DType::I64); 3]));
    types.push(ArgType::Tuple(vec![ArgType::Tuple(vec![
        ArgType::Value(DType::I8),
        array(DType::U8, 2, Layout::C, false),
    ])]));
    for ty in types {
        assert_eq!(parse_type(&ty.to_string()), Ok(ty.clone()), "{ty}");
    }
}

fn expr(text: &str) -> Expr {
    parse_expression(&SourceFile::new("k.py", text), 0).expect("parses")
}

fn names(chain: &str) -> Option<Named> {
    match chain {
        "T" => Some(Named::Value(expr("f[:, ::1]"))),
        "SIG" => Some(Named::Value(expr("[void(T, i), 'void(f8)']"))),
        "loop" => Some(Named::Value(expr("loop"))),
        "f" => Some(Named::Path("weft.types.float32".into())),
        "i" | "int" => Some(Named::Path("builtins.int".into())),
        "void" => Some(Named::Path("weft.void".into())),
        "np.float32" => Some(Named::Path("numpy.float32".into())),
        _ => None,
    }
}

#[test]
fn expressions_are_read_with_the_names_of_their_file() {
    let signatures = signatures_of(&expr("SIG"), &names).expect("is a list of signatures");
    assert_eq!(
        signatures,
        [parse_signature("void(f4[:, ::1], i8)").expect("reads"), parse_signature("(f8,)").expect("reads")]
    );
    assert_eq!(type_of(&expr("np.float32"), &names), parse_type("f4"));
    assert_eq!(type_of(&expr("'f4[:]'"), &names), parse_type("f4[:]"));
    assert!(type_of(&expr("loop"), &names).is_err());
    let error = signatures_of(&expr("  'void(nope)'"), &names).expect_err("has an unknown type");
    assert_eq!((error.span.start, error.span.end), (8, 12));
}
