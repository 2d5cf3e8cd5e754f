//! `weft emit`: outputs and their locations.

use std::{fs, os::unix::fs::PermissionsExt as _};

use crate::support::{Folder, SAXPY};

#[test]
fn ptx_goes_to_the_standard_output() {
    let folder = Folder::with("k.py", SAXPY);
    let ptx = folder.weft(&["emit", "k.py"]).succeeded();
    assert!(ptx.contains(".target sm_75") && ptx.contains(".entry saxpy("), "{ptx}");
    let newer = folder.weft(&["emit", "k.py", "--target", "sm_90a"]).succeeded();
    assert!(newer.contains(".target sm_90a"), "{newer}");
}

#[test]
fn every_form_shows_the_kernel() {
    let folder = Folder::with("k.py", SAXPY);
    let ir = folder.weft(&["emit", "k.py", "--emit", "ir"]).succeeded();
    assert!(ir.contains("kernel @saxpy("), "{ir}");
    let llvm = folder.weft(&["emit", "k.py", "--emit", "llvm"]).succeeded();
    assert!(llvm.contains("define ptx_kernel void @saxpy("), "{llvm}");
    let host = folder.weft(&["emit", "k.py", "--target", "host"]).succeeded();
    assert!(host.contains("saxpy:"), "{host}");
    let host_llvm = folder.weft(&["emit", "k.py", "--target", "host", "--emit", "llvm"]).succeeded();
    assert!(host_llvm.contains("saxpy"), "{host_llvm}");
}

#[test]
fn several_outputs_have_headers_or_files_of_their_own() {
    let folder = Folder::with(
        "k.py",
        &format!("{SAXPY}\n\n@cuda.jit(['void(f4[:])', '(f8[:],)'])\ndef zero(x):\n    x[0] = 0\n"),
    );
    let text = folder.weft(&["emit", "k.py", "--target", "sm_75,sm_90"]).succeeded();
    let headers: Vec<&str> = text.lines().filter(|line| line.starts_with("// ") && line.contains(" for sm_")).collect();
    assert_eq!(
        headers,
        [
            "// saxpy(float32, array(float32, 1d, C), array(float32, 1d, C), array(float32, 1d, C)) for sm_75",
            "// saxpy(float32, array(float32, 1d, C), array(float32, 1d, C), array(float32, 1d, C)) for sm_90",
            "// zero(array(float32, 1d, A)) for sm_75",
            "// zero(array(float32, 1d, A)) for sm_90",
            "// zero(array(float64, 1d, A)) for sm_75",
            "// zero(array(float64, 1d, A)) for sm_90",
        ]
    );
    assert_eq!(folder.weft(&["emit", "k.py", "--emit", "ir,ptx", "-o", "out"]).succeeded(), "");
    assert_eq!(
        folder.files("out"),
        [
            "saxpy.sm_75.ir",
            "saxpy.sm_75.ptx",
            "zero.1.sm_75.ir",
            "zero.1.sm_75.ptx",
            "zero.2.sm_75.ir",
            "zero.2.sm_75.ptx"
        ]
    );
    assert!(folder.read("out/saxpy.sm_75.ptx").contains(".entry saxpy("));
    folder.write("old.ptx", "");
    let said = folder.weft(&["emit", "k.py", "-o", "old.ptx"]).failed(2);
    let expected =
        "error: old.ptx is one file, but there are 3 outputs: pass a folder, or select one kernel with `--kernel`\n";
    assert_eq!(said, expected);
    let said = folder.weft(&["emit", "k.py", "-o", "new.ptx"]).failed(2);
    assert!(said.starts_with("error: new.ptx is one file, but there are 3 outputs"), "{said}");
}

#[test]
fn one_output_is_one_file_and_nothing_is_left_beside_it() {
    let folder = Folder::with("k.py", SAXPY);
    folder.write("k.ptx", "old");
    assert_eq!(folder.weft(&["emit", "k.py", "-o", "k.ptx"]).succeeded(), "");
    assert!(folder.read("k.ptx").contains(".entry saxpy("));
    assert_eq!(folder.files(""), ["k.ptx", "k.py"]);
    folder.weft(&["emit", "k.py", "-o", "new/"]).succeeded();
    assert_eq!(folder.files("new"), ["saxpy.sm_75.ptx"]);
    let said = folder.weft(&["emit", "k.py", "-o", "absent/k.ptx"]).failed(2);
    assert!(said.starts_with("error: cannot write absent/k.ptx: "), "{said}");
}

#[test]
fn a_rejected_program_writes_nothing() {
    let folder = Folder::with("k.py", &SAXPY.replace("a * x[i]", "b * x[i]"));
    folder.write("k.ptx", "old");
    let said = folder.weft(&["emit", "k.py", "-o", "k.ptx"]).failed(1);
    assert!(said.contains("error[E0201]: name `b` is not defined") && said.contains("--> k.py:8:18"), "{said}");
    assert_eq!(folder.read("k.ptx"), "old");
}

#[test]
fn signatures_come_from_the_command_line_annotations_or_the_decorator() {
    let bare =
        "from numba import cuda, int32\nimport numpy as np\n\n@cuda.jit\ndef fill(x, v):\n    x[cuda.grid(1)] = v\n";
    let folder = Folder::with("k.py", bare);
    let said = folder.weft(&["emit", "k.py"]).failed(1);
    assert!(said.contains("error[E0302]: the kernel `fill` has no signature to compile for"), "{said}");
    assert!(said.contains("--sig \"void(<type of x>, <type of v>)\""), "{said}");
    let ptx = folder.weft(&["emit", "k.py", "--sig", "void(int16[::1], int64)"]).succeeded();
    assert!(ptx.contains("st.global.b16"), "{ptx}");
    let both = folder.weft(&["emit", "k.py", "--sig", "(i2[::1], i8)", "--sig", "(f8[::1], f8)"]).succeeded();
    assert!(both.contains("st.global.b16") && both.contains("st.global.b64"), "{both}");

    folder.write("k.py", &bare.replace("fill(x, v)", "fill(x: 'f4[::1]', v: np.float32)"));
    let ptx = folder.weft(&["emit", "k.py"]).succeeded();
    assert!(ptx.contains(".param .f32"), "{ptx}");
    folder.write("k.py", &bare.replace("fill(x, v)", "fill(x, v: int32)"));
    assert!(folder.weft(&["emit", "k.py"]).failed(1).contains("not every parameter has an annotation"));
    folder.write(
        "k.py",
        &bare.replace("@cuda.jit", "@cuda.jit((int32[:, ::1], int32))").replace("grid(1)]", "grid(1), 0]"),
    );
    let ptx = folder.weft(&["emit", "k.py"]).succeeded();
    assert!(ptx.contains("st.global.b32"), "{ptx}");
}

#[test]
fn options_change_the_code() {
    let folder = Folder::with("k.py", &SAXPY.replace("a * x[i] + y[i]", "x[i] / y[i]"));
    let exact = folder.weft(&["emit", "k.py"]).succeeded();
    let fast = folder.weft(&["emit", "k.py", "--fastmath"]).succeeded();
    assert!(exact.contains("div.rn.f32") && !fast.contains("div.rn.f32"), "{fast}");
    assert!(!exact.contains(".loc"));
    assert!(folder.weft(&["emit", "k.py", "--lineinfo"]).succeeded().contains(".loc"));
    let bounded = SAXPY.replace("[::1])\")", "[::1])\", launch_bounds=(128, 2), fastmath=True)");
    folder.write("k.py", &bounded);
    let ptx = folder.weft(&["emit", "k.py"]).succeeded();
    assert!(ptx.contains(".maxntid 128") && ptx.contains(".minnctapersm 2"), "{ptx}");
}

#[test]
fn constants_and_functions_of_the_file_and_its_neighbors_are_used() {
    let folder = Folder::with("config.py", "TPB = 4\n");
    let text = "\
import math
import config
from weft import cuda, float32

SHAPE = (config.TPB * 2, 3)


@cuda.jit('void(float32[::1])')
def k(x):
    tile = cuda.shared.array(SHAPE, float32)
    tile[cuda.threadIdx.x, 0] = x[0]
    cuda.syncthreads()
    x[0] = scaled(tile[0, 1]) + config.TPB


@cuda.jit(device=True)
def scaled(v, by=math.pi):
    return v * by
";
    folder.write("k.py", text);
    let ptx = folder.weft(&["emit", "k.py"]).succeeded();
    // 8 × 3 float32 values, and pi as a float64.
    assert!(ptx.contains("[96]") && ptx.contains("0d400921FB54442D18"), "{ptx}");
}

#[test]
fn a_cubin_needs_ptxas_and_uses_the_one_that_is_found() {
    let folder = Folder::with("k.py", SAXPY);
    let said = folder.weft(&["emit", "k.py", "--emit", "cubin", "-o", "k.cubin"]);
    if said.code == Some(2) {
        assert!(said.stderr.contains("needs NVIDIA's `ptxas`, which was not found"), "{}", said.stderr);
    }
    let said = folder.weft(&["emit", "k.py", "--emit", "cubin"]).failed(2);
    assert!(said.contains("write it to a file with `-o PATH`"), "{said}");

    // Replacements for NVIDIA's `ptxas`: one stores its input, the other rejects it.
    let bin = folder.path().join("tools/bin");
    fs::create_dir_all(&bin).expect("can be written");
    let ptxas = bin.join("ptxas");
    let script = "#!/bin/sh\necho \"cubin $1\" > \"$4\"\nwhile read -r line; do echo \"$line\"; done >> \"$4\"\n";
    fs::write(&ptxas, script).expect("can be written");
    fs::set_permissions(&ptxas, fs::Permissions::from_mode(0o755)).expect("can be changed");
    let tools = folder.path().join("tools").display().to_string();
    let args = ["emit", "k.py", "--emit", "cubin", "-o", "k.cubin", "--target", "sm_90"];
    folder.weft_with(&args, &[("CUDA_HOME", &tools)]).succeeded();
    let cubin = folder.read("k.cubin");
    assert!(cubin.starts_with("cubin -arch=sm_90\n") && cubin.contains(".entry saxpy("), "{cubin}");
    fs::write(&ptxas, "#!/bin/sh\necho 'line 3; error : Unknown modifier' >&2\nexit 255\n").expect("can be written");
    let said = folder.weft_with(&args, &[("PATH", &format!("{tools}/bin"))]).failed(1);
    assert!(
        said.contains("error[E0901]: `ptxas` rejects the PTX for sm_90: line 3; error : Unknown modifier"),
        "{said}"
    );
}

#[test]
fn resource_usage_is_what_ptxas_reports() {
    let folder = Folder::with("k.py", SAXPY);
    let said = folder.weft(&["emit", "k.py", "--target", "host", "--resource-usage"]);
    assert_eq!(said.code, Some(0));
    assert!(said.stderr.contains("for host: registers and occupancy do not apply to the CPU"), "{}", said.stderr);
    let bin = folder.path().join("bin");
    fs::create_dir_all(&bin).expect("can be written");
    let script = "#!/bin/sh
echo \"ptxas info    : Compiling entry function 'saxpy' for 'sm_90'\" >&2
echo 'ptxas info    : Function properties for saxpy' >&2
echo '    0 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads' >&2
echo 'ptxas info    : Used 40 registers, 1024 bytes smem, 400 bytes cmem[0]' >&2
";
    let ptxas = bin.join("ptxas");
    fs::write(&ptxas, script).expect("can be written");
    fs::set_permissions(&ptxas, fs::Permissions::from_mode(0o755)).expect("can be changed");
    let path = bin.display().to_string();
    let args = ["emit", "k.py", "--target", "sm_90", "--coarsen", "1", "--resource-usage"];
    let said = folder.weft_with(&args, &[("PATH", &path)]);
    let expected = "for sm_90: 40 registers a thread, 1024 bytes of shared memory a block, no spills; occupancy with 256 \
                    threads a block: 75 % (48 of 64 warps), limited by registers\n";
    assert!(said.stderr.contains(expected) && said.stdout.contains(".entry saxpy("), "{}", said.stderr);
    let args = ["emit", "k.py", "--target", "sm_90", "--launch-bounds", "1024", "--coarsen", "2", "--resource-usage"];
    let said = folder.weft_with(&args, &[("PATH", &path)]);
    assert!(said.stderr.contains("occupancy with 512 threads a block: 75 % (48 of 64 warps)"), "{}", said.stderr);
}

#[test]
fn a_ptxas_that_fails_is_no_fault_of_wefts() {
    let folder = Folder::with("k.py", SAXPY);
    let bin = folder.path().join("bin");
    fs::create_dir_all(&bin).expect("can be written");
    let path = bin.display().to_string();
    let args = ["emit", "k.py", "--emit", "cubin", "-o", "k.cubin"];
    for (script, mode, expected) in [
        ("#!/bin/sh\n", 0o644, "ptxas cannot be run: Permission denied"),
        ("#!/absent/sh\n", 0o755, "ptxas cannot be run: No such file"),
        (
            "#!/bin/sh\necho half-done\nkill -9 $$\n",
            0o755,
            "could not assemble the PTX for sm_75 (signal: 9 (SIGKILL)): half-done",
        ),
        ("#!/bin/sh\nexit 3\n", 0o755, "could not assemble the PTX for sm_75 (exit status: 3)"),
        ("#!/bin/sh\nexit 0\n", 0o755, "ptxas wrote no cubin"),
        ("#!/bin/sh\n: > \"$4\"\n", 0o755, "ptxas wrote an empty cubin"),
    ] {
        // The file is recreated each time, because a running program cannot be overwritten.
        let _absent = fs::remove_file(bin.join("ptxas"));
        fs::write(bin.join("ptxas"), script).expect("can be written");
        fs::set_permissions(bin.join("ptxas"), fs::Permissions::from_mode(mode)).expect("can be changed");
        let said = folder.weft_with(&args, &[("PATH", &path)]).failed(2);
        assert!(said.starts_with("error: ") && said.contains(expected), "{script}: {said}");
    }
    assert_eq!(folder.files(""), ["bin", "k.py"]);
}

#[test]
fn libdevice_is_used_where_the_setting_or_the_option_names_it() {
    let folder = Folder::with("k.py", SAXPY);
    let said = folder.weft(&["emit", "k.py", "--libdevice", "./absent.bc"]).failed(2);
    assert!(said.starts_with("error: --libdevice is ./absent.bc, which cannot be used: "), "{said}");
    let said = folder.weft_with(&["emit", "k.py"], &[("WEFT_LIBDEVICE", "./absent.bc")]).failed(2);
    assert!(said.starts_with("error: WEFT_LIBDEVICE is ./absent.bc"), "{said}");
    folder.weft_with(&["emit", "k.py", "--libdevice", "none"], &[("WEFT_LIBDEVICE", "./absent.bc")]).succeeded();
    folder.weft_with(&["emit", "k.py", "--libdevice", "auto"], &[]).succeeded();
}

#[test]
fn device_functions_are_emitted_for_other_programs() {
    let text = "\
from weft import cuda, float32

@cuda.jit(device=True)
def area(w, h):
    return w * h

@cuda.jit(\"void(float32[::1], float32)\")
def k(out, x):
    out[0] = area(x, x)
";
    let folder = Folder::with("k.py", text);
    let sig = "float32(float32, float32)";
    let ptx = folder.weft(&["emit", "k.py", "--function", "area", "--sig", sig]).succeeded();
    assert!(ptx.contains(".visible .func  (.param .b32 func_retval0) area(") && !ptx.contains(".entry"), "{ptx}");
    let ptx = folder.weft(&["emit", "k.py", "--function", "area", "--sig", sig, "--abi", "numba"]).succeeded();
    assert!(ptx.contains("area_param_2"), "{ptx}");
    let kernel = folder.weft(&["emit", "k.py"]).succeeded();
    let ptx = folder.weft(&["emit", "k.py", "--abi", "numba"]).succeeded();
    assert!(!kernel.contains("k_param_7") && ptx.contains("k_param_7"), "{ptx}");
    let failed = folder.weft(&["emit", "k.py", "--kernel", "area"]).failed(2);
    assert!(failed.contains("use `weft emit --function area` to compile it alone"), "{failed}");
    let failed = folder.weft(&["emit", "k.py", "--function", "aera", "--sig", sig]).failed(2);
    assert!(failed.contains("did you mean `area`?"), "{failed}");
    let failed = folder.weft(&["emit", "k.py", "--function", "area"]).failed(1);
    assert!(failed.contains("has no signature to compile for"), "{failed}");
    for wrong in [["--abi", "c"], ["--abi", "fast"]] {
        assert!(!folder.weft(&[&["emit", "k.py"], wrong.as_slice()].concat()).failed(2).is_empty());
    }
    let failed = folder.weft(&["emit", "k.py", "--function", "area", "--sig", sig, "--target", "host"]).failed(2);
    assert!(failed.contains("the target `host` does not have"), "{failed}");
}

#[test]
fn exceptions_of_the_file_are_raised() {
    let text = "\
from weft import cuda
class MyError(ValueError):
    pass
@cuda.jit('void(i4[:])', exceptions=True)
def k(x):
    if x[0] > 3:
        raise MyError('too big')
    if x[0] < -3:
        raise MyError
";
    let folder = Folder::with("exc.py", text);
    let ir = folder.weft(&["emit", "exc.py", "--emit", "ir"]).succeeded();
    assert!(ir.matches("fault exc.MyError").count() == 2, "{ir}");
}
