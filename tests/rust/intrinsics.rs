//! Compiles every row of the table of intrinsics, with every signature, for a GPU and for the host, and checks that the
//! PTX contains the row's mnemonic.
//!
//! For each signature, the test writes a kernel that calls the function with arguments of the signature's types and
//! stores the result. It compiles the kernel with the command, like a user's file.

use std::{
    env, fs,
    path::Path,
    process,
    sync::atomic::{AtomicUsize, Ordering},
    thread,
};

use weft_artifact::Number;
use weft_compiler::intrinsics::{Arg, Intrinsic, Lowering, More, Ptx, Returns, Signature, rows};

use crate::support::emit;

/// Whether the function exists only on GPUs, for debuggers.
fn is_for_debuggers(row: &Intrinsic) -> bool {
    row.path == "builtins.breakpoint"
}

/// A kernel that calls a function once for each signature: its source and its own signature.
fn kernel_for(row: &Intrinsic, signatures: &[Signature]) -> (String, String) {
    let mut types = Vec::new();
    let mut params = Vec::new();
    let mut body = Vec::new();
    for (index, signature) in signatures.iter().enumerate() {
        call(row, signature, index, &mut types, &mut params, &mut body);
    }
    let text = format!(
        "import cmath\nimport math\nimport operator\n\nimport numpy\nimport weft\nfrom weft import cuda\n\n\n\
         @cuda.jit{}\ndef row({}):\n    {}\n",
        if is_for_debuggers(row) { "(debug=True, opt=False)" } else { "" },
        params.join(", "),
        body.join("\n    ")
    );
    (text, format!("void({})", types.join(", ")))
}

/// Adds a call for a signature, and the kernel's parameters for its arguments and results.
fn call(
    row: &Intrinsic,
    signature: &Signature,
    number: usize,
    types: &mut Vec<String>,
    params: &mut Vec<String>,
    body: &mut Vec<String>,
) {
    let name = row.path.strip_prefix("weft.").or_else(|| row.path.strip_prefix("builtins.")).unwrap_or(row.path);
    let mut args = Vec::new();
    for (index, arg) in signature.args.iter().enumerate() {
        let ty = match arg {
            Arg::Scalar(scalar) => scalar.name().to_owned(),
            Arg::Complex(complex) => complex.to_string(),
            // This function requires two dimensions.
            Arg::Array(number) if row.path == "numpy.trace" => format!("{}[:, ::1]", number.name()),
            Arg::Array(number) => format!("{}[::1]", number.name()),
            Arg::Records(fields) => {
                let fields: Vec<_> = fields.iter().map(|(name, scalar)| format!("('{name}', '{scalar}')")).collect();
                format!("from_dtype(np.dtype([{}], align=True))[::1]", fields.join(", "))
            }
            Arg::Index => "int64".to_owned(),
            Arg::Const(value) => {
                args.push(value.to_string());
                continue;
            }
            Arg::DType(scalar) => {
                args.push(format!("weft.{}", scalar.name()));
                continue;
            }
            Arg::Text(text) => {
                args.push(format!("\"{text}\""));
                continue;
            }
        };
        types.push(ty);
        params.push(format!("a{number}_{index}"));
        args.push(format!("a{number}_{index}"));
    }
    let attribute = matches!(row.lowering, Lowering::Register(_));
    // Functions that return one value per element write them to an array.
    let running = matches!(row.lowering, Lowering::Whole(of) if matches!(of.more, More::Running(_)));
    if running {
        args.push(format!("out=r{number}_0"));
    }
    let call = if attribute { name.to_owned() } else { format!("{name}({})", args.join(", ")) };
    let mut results: Vec<Number> = Vec::new();
    let result = |index: usize| format!("r{number}_{index}");
    match signature.returns {
        Returns::Nothing => body.push(call),
        Returns::Scalar(scalar) => {
            results.push(scalar.into());
            body.push(if running { call } else { format!("{}[0] = {call}", result(0)) });
        }
        Returns::Complex(complex) => {
            results.push(complex.into());
            body.push(if running { call } else { format!("{}[0] = {call}", result(0)) });
        }
        Returns::Tuple(scalars) => {
            results.extend(scalars.iter().map(|scalar| Number::from(*scalar)));
            let targets: Vec<_> = (0..scalars.len()).map(|index| format!("{}[0]", result(index))).collect();
            body.push(format!("{} = {call}", targets.join(", ")));
        }
        // The stored value depends on the thread, so that the array is not removed.
        Returns::Array(of) => {
            results.push(of);
            body.push(format!("array = {call}"));
            body.push(format!("array[cuda.threadIdx.x] = {}[cuda.threadIdx.x]", result(0)));
            body.push("cuda.syncthreads()".to_owned());
            body.push(format!("{}[1] = array[cuda.threadIdx.x + 1]", result(0)));
        }
    }
    for (index, number) in results.iter().enumerate() {
        types.push(format!("{}[::1]", number.name()));
        params.push(result(index));
    }
}

/// Compiles kernels that call a row with each of its signatures. Returns the number of compiled signatures, and the
/// errors.
fn compiled(row: &'static Intrinsic, folder: &Path) -> (usize, Vec<String>) {
    let (mut n_compiled, mut faults) = (0, Vec::new());
    let mnemonics = row.mnemonics();
    let is_operation = matches!(row.lowering, Lowering::Op(_));
    assert_eq!(is_operation, row.ptx == Ptx::Operation, "{}", row.path);
    // One kernel per signature if each must contain the mnemonic, else one kernel for all.
    let size = if mnemonics.is_empty() { row.signatures.len().max(1) } else { 1 };
    for (index, signatures) in row.signatures.chunks(size).enumerate() {
        let (text, sig) = kernel_for(row, signatures);
        let file = folder.join(format!("{}_{index}.py", row.path));
        fs::write(&file, text).expect("the folder can be written to");
        let path = file.to_str().expect("names here are UTF-8");
        match emit(path, "row", Some(&sig), "sm_80", "ptx") {
            Ok(ptx) if mnemonics.is_empty() || mnemonics.iter().any(|name| ptx.contains(name)) => {
                n_compiled += signatures.len();
            }
            Ok(ptx) => faults.push(format!("{} {sig}: none of {mnemonics:?} in\n{ptx}", row.path)),
            Err(fault) => faults.push(format!("{} {sig}:\n{fault}", row.path)),
        }
        match emit(path, "row", Some(&sig), "host", "asm") {
            Err(fault) if is_for_debuggers(row) => assert!(fault.contains("WEFT_DEVICE=python"), "{fault}"),
            Ok(assembly) => assert!(assembly.contains("row"), "{} {sig}: no code", row.path),
            Err(fault) => faults.push(format!("{} {sig} for the host:\n{fault}", row.path)),
        }
    }
    (n_compiled, faults)
}

#[test]
fn every_signature_of_every_row_compiles() {
    let folder = env::temp_dir().join(format!("weft-intrinsics-{}", process::id()));
    fs::create_dir_all(&folder).expect("the system has a folder for such files");
    let (rows, next) = (rows().collect::<Vec<_>>(), AtomicUsize::new(0));
    let (n_compiled, faults) = thread::scope(|scope| {
        let work = || {
            let (mut n_compiled, mut faults) = (0, Vec::new());
            while let Some(row) = rows.get(next.fetch_add(1, Ordering::Relaxed)) {
                let (of_row, wrong) = compiled(row, &folder);
                n_compiled += of_row;
                faults.extend(wrong);
            }
            (n_compiled, faults)
        };
        let count = thread::available_parallelism().map_or(1, usize::from);
        let threads: Vec<_> = (0..count).map(|_| scope.spawn(work)).collect();
        threads.into_iter().fold((0, Vec::new()), |(n_compiled, faults), thread| {
            let (more, wrong) = thread.join().expect("a thread that compiles rows does not panic");
            (n_compiled + more, [faults, wrong].concat())
        })
    });
    fs::remove_dir_all(&folder).expect("the folder is this test's own");
    assert!(faults.is_empty(), "{} faults:\n{}", faults.len(), faults.join("\n"));
    assert!(n_compiled > 1000, "only {n_compiled} signatures were found");
}

#[test]
fn rows_are_whole_and_unique() {
    for (index, row) in rows().enumerate() {
        assert!(!row.doc.is_empty() && row.doc.ends_with('.'), "{}: the doc is no sentence", row.path);
        assert!(!rows().take(index).any(|other| other.path == row.path), "{} occurs twice", row.path);
        // Functions with custom lowering may take arguments other than numbers and arrays.
        let own = matches!(row.lowering, Lowering::Custom(_) | Lowering::Coop(_));
        assert!(own || !row.signatures.is_empty(), "{}: no signature", row.path);
    }
}
