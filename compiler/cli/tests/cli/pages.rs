//! Checks the pages of `weft explain`: the wrong example is rejected with the message on the page, and the right one
//! compiles.

use crate::support::Folder;
use weft_compiler::diagnostic::{Code, explain};

/// The code blocks of a page in one language, in order.
fn blocks<'a>(page: &'a str, language: &str) -> Vec<&'a str> {
    let fence = format!("```{language}\n");
    page.split(&fence).skip(1).filter_map(|rest| rest.split("```").next()).collect()
}

#[test]
fn examples_of_every_page_do_what_it_says() {
    for &code in Code::ALL {
        let page = explain(code);
        let [wrong, right] = blocks(page, "python")[..] else { continue };
        let message = blocks(page, "text")[0].trim_end();
        let folder = Folder::with("k.py", wrong);
        let said = if matches!(code, Code::Widened | Code::NotReproducible) {
            // Notes and warnings do not fail the check.
            let ran = folder.weft(&["check", "--notes", "k.py"]);
            assert_eq!(ran.code, Some(0));
            ran.stderr
        } else {
            folder.weft(&emitted(code)).failed(1)
        };
        assert_eq!(said.lines().next(), message.lines().next(), "the wrong example of {}:\n{said}", code.number());
        folder.write("k.py", right);
        folder.weft(&emitted(code)).succeeded();
    }
}

/// The call that compiles an example: the adjoint kernel for the codes of derivatives, code of an SM with warpgroups for
/// their products.
fn emitted(code: Code) -> Vec<&'static str> {
    let adjoint = matches!(code, Code::NoDerivative | Code::NoPath | Code::NotRecomputable | Code::Unordered);
    let arrays = "void(float64[::1], float64[::1], float64[::1], float64[::1])";
    let args = if adjoint {
        &["--sig", arrays, "--adjoint", "x,y"][..]
    } else if matches!(code, Code::InFlight) {
        &["--target", "sm_90a"][..]
    } else {
        &[]
    };
    [&["emit", "k.py"], args].concat()
}

#[test]
fn commands_of_the_other_pages_do_what_they_say() {
    let folder = Folder::with("kernels.py", crate::support::SAXPY);
    for code in [Code::NoKernel, Code::UnknownTarget, Code::Usage] {
        let page = explain(code);
        let [wrong, right] = blocks(page, "sh")[..] else { panic!("{} has two commands", code.number()) };
        let args = |command: &'static str| command.split_whitespace().skip(1).collect::<Vec<_>>();
        let said = folder.weft(&args(wrong)).failed(2);
        assert_eq!(said.lines().next(), Some(blocks(page, "text")[0].trim_end()));
        folder.weft(&args(right)).succeeded();
    }
}

#[test]
fn a_page_is_printed_and_codes_are_listed() {
    let folder = Folder::new();
    assert_eq!(folder.weft(&["explain", "e0203"]).succeeded(), explain(Code::CannotJoin));
    let list = folder.weft(&["explain"]).succeeded();
    assert_eq!(list.lines().count(), Code::ALL.len());
    assert!(list.contains("E0203  a variable has types that cannot be joined"));
    let said = folder.weft(&["explain", "E9203"]).failed(2);
    assert_eq!(said, "error: `E9203` is not a code: did you mean E0203?\n");
}

#[test]
fn names_in_kernels_are_explained_from_their_rows() {
    let folder = Folder::new();
    let row = folder.weft(&["explain", "cuda.threadIdx.x"]).succeeded();
    assert!(row.starts_with("cuda.threadIdx.x -> int32\n") && row.contains("In PTX: %tid.x"), "{row}");
    assert_eq!(folder.weft(&["explain", "numba.cuda.threadIdx.x"]).succeeded(), row);
    assert!(folder.weft(&["explain", "math.sin"]).succeeded().contains("math.sin(float64) -> float64\n"));
    assert_eq!(folder.weft(&["explain", "threadIdx"]).succeeded().matches(" -> int32\n").count(), 3);
    let said = folder.weft(&["explain", "cuda.gird"]).failed(2);
    assert_eq!(said, "error: `cuda.gird` is not a diagnostic code or name in kernels: did you mean cuda.grid?\n");
}
