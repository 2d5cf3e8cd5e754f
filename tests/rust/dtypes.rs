//! Dtypes that are made of others: arrays of them are arguments; by value they are not, and whoever asks is told.

use std::{collections::BTreeMap, sync::Arc};

use weft_artifact::{ArgType, ArrayType, Compound, DType, Layout, Nested, Record, Scalar, Vector};
use weft_compiler::{
    pipeline,
    request::{FunctionDef, Keep, Options, Request, Target},
    source::SourceFile,
    syntax::{ast::ModuleItem, parse_module},
};

/// The messages of a kernel of one parameter that does nothing with it.
fn messages(arg: ArgType) -> Vec<String> {
    let source = Arc::new(SourceFile::new("kernel.py", "def kernel(x):\n    pass\n"));
    let ast = parse_module(&source, 0)
        .into_iter()
        .find_map(|item| if let ModuleItem::Function(ast) = item { Some(ast) } else { None });
    let function = Arc::new(FunctionDef {
        ast: ast.expect("the text has a function"),
        source,
        globals: BTreeMap::new(),
        defaults: BTreeMap::new(),
        signatures: Vec::new(),
        inline: false,
        number: 0,
    });
    let (target, options, keep) = (Target::Sm(90, ""), Options::default(), Keep::default());
    match pipeline::compile(&Request { function, args: vec![arg], target, options, keep }) {
        Ok(_) => Vec::new(),
        Err(failure) => failure.diagnostics.into_iter().map(|diagnostic| diagnostic.message).collect(),
    }
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
        let expected = vec![format!("`x` holds a {dtype} by value: pass an array of it")];
        assert_eq!(messages(dtype.into()), expected);
        assert_eq!(messages(ArgType::Tuple(vec![DType::I8.into(), ArgType::Tuple(vec![dtype.into()])])), expected);
        assert_eq!(messages(array(dtype)), [""; 0]);
    }
    assert_eq!(messages(array(DType::C64)), [""; 0]);
    assert_eq!(messages(ArgType::Record(record)), [""; 0]);
}
