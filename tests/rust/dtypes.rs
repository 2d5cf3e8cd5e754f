//! Compound dtypes: kernels accept arrays of them as arguments. They reject values of them, with an error that says so.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{ArgType, ArrayType, Compound, DType, Layout, Nested, Record, Scalar, Vector};
use weft_compiler::{
    pipeline,
    request::{FunctionDef, Keep, Options, Overloads, Request, Target},
    source::SourceFile,
    syntax::{ast::ModuleItem, parse_module},
};

/// The code of a kernel with parameters `a` and `b` for `sm_90`, or its error.
fn compiled(text: &str, args: Vec<ArgType>) -> Result<String, Vec<String>> {
    let source = Arc::new(SourceFile::new("kernel.py", text));
    let ast = parse_module(&source, 0)
        .expect("parses")
        .items
        .into_iter()
        .find_map(|item| if let ModuleItem::Function(ast) = item { Some(ast) } else { None });
    let function = Arc::new(FunctionDef {
        ast: ast.expect("the text has a function"),
        source,
        globals: BTreeMap::new(),
        defaults: BTreeMap::new(),
        signatures: Vec::new(),
        inline: false,
        typing: None,
        gpu: None,
        backward: None,
        number: 0,
    });
    let (target, options, keep) = (Target::Sm(90, ""), Options::default(), Keep::default());
    match pipeline::compile(&Request { function, overloads: Overloads::default(), args, target, options, keep }) {
        Ok(outcome) => {
            let output = outcome.made().expect("no function is overloaded");
            Ok(String::from_utf8(output.artifact.code).expect("PTX is text"))
        }
        Err(failure) => Err(failure.diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect()),
    }
}

/// The messages for a kernel with one unused parameter.
fn messages(arg: ArgType) -> Vec<String> {
    compiled("def kernel(x):\n    pass\n", vec![arg]).err().unwrap_or_default()
}

/// The memory accesses of a kernel that copies an element between such arrays.
fn accesses(dtype: DType) -> Vec<String> {
    let ptx = compiled("def kernel(a, b):\n    b[0] = a[0]\n", vec![array(dtype), array(dtype)]);
    let ptx = ptx.expect("the kernel compiles");
    let word = |line: &str| line.split_whitespace().next().unwrap_or_default().to_owned();
    ptx.lines().map(word).filter(|word| word.contains(".global.") && !word.starts_with('.')).collect()
}

fn array(dtype: DType) -> ArgType {
    ArgType::Array(ArrayType { dtype, ndim: 1, layout: Layout::C, readonly: false })
}

#[test]
fn compound_dtypes_are_elements_of_arrays_and_no_values() {
    let intern = |compound| DType::intern(compound).expect("there is room");
    let vector = intern(Compound::Vector(Vector::new(Scalar::F32, 2).expect("is a vector")));
    let nested = intern(Compound::Nested(Nested::new(vector, vec![2, 3]).expect("is an array")));
    let record = intern(Compound::Record(Record::in_order(&[("a", nested)], true).expect("is a record")));
    for dtype in [vector, nested, record] {
        let expected = vec![format!("`x` takes a {dtype} by value: pass an array of it")];
        assert_eq!(messages(dtype.into()), expected);
        assert_eq!(messages(ArgType::Tuple(vec![DType::I8.into(), ArgType::Tuple(vec![dtype.into()])])), expected);
        assert_eq!(messages(array(dtype)), [""; 0]);
    }
    assert_eq!(messages(array(DType::C64)), [""; 0]);
    assert_eq!(messages(ArgType::Record(record)), [""; 0]);
}

#[test]
fn records_are_copied_in_as_few_accesses_as_their_alignment_allows() {
    let record = |fields: &[(&str, DType)], align| {
        DType::intern(Compound::Record(Record::in_order(fields, align).expect("is a record"))).expect("there is room")
    };
    let both = |load: &[&str]| -> Vec<String> {
        let stores = load.iter().map(|load| load.replace("ld.", "st."));
        load.iter().map(ToString::to_string).chain(stores).collect()
    };
    let four = |dtype: DType| [("x", dtype), ("y", dtype), ("z", dtype), ("w", dtype)];
    let without_cache = |dtype| accesses(dtype).into_iter().map(|word| word.replace(".nc", "")).collect::<Vec<_>>();
    // Accesses of eight bytes if a field requires that alignment, else of the alignment of the whole record. A packed
    // record has no alignment.
    assert_eq!(without_cache(record(&four(DType::F32), true)), both(&["ld.global.b32"; 4]));
    assert_eq!(
        without_cache(record(&[("x", DType::F64), ("i", DType::I8), ("j", DType::I16)], true)),
        both(&["ld.global.b64"; 2])
    );
    assert_eq!(without_cache(record(&[("i", DType::I8), ("j", DType::I8)], true)), both(&["ld.global.b8"; 2]));
    assert_eq!(without_cache(record(&[("i", DType::I8), ("j", DType::I32)], false)), both(&["ld.global.b8"; 5]));
    let vector = DType::intern(Compound::Vector(Vector::new(Scalar::F32, 4).expect("is a vector")));
    assert_eq!(without_cache(vector.expect("there is room")), both(&["ld.global.v4.b32"]));
}
