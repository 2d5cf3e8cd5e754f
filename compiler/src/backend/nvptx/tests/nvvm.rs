//! NVVM IR of single functions: expansions, and what it cannot express.

use inkwell::memory_buffer::MemoryBuffer;

use crate::backend::llvm::{
    Error, internal,
    shim::{self, with_context},
};

/// Prints a module for an SM, without its first two lines and its version.
fn printed(llvm: &str, sm: u32) -> Result<String, String> {
    let text = with_context(|context| {
        let buffer = MemoryBuffer::create_from_memory_range_copy(llvm.as_bytes(), "test");
        let module = context.create_module_from_ir(buffer).or_else(|error| internal(error.to_string()))?;
        match shim::nvvm_ir(&module, sm) {
            Ok(text) => Ok(Ok(text)),
            Err(Error::NotInNvvm(part)) => Ok(Err(part)),
            Err(error) => Err(error),
        }
    });
    text.expect("LLVM reads the module")
}

/// The body of the only function that a module defines.
fn body(llvm: &str, sm: u32) -> String {
    let text = printed(llvm, sm).expect("NVVM IR can express the module");
    let lines = text.lines().skip_while(|line| *line != "b0:").skip(1).take_while(|line| *line != "}");
    trimmed(&lines.collect::<Vec<_>>().join("\n"))
}

/// The lines of a text without their indentation and without empty ones.
fn trimmed(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join("\n")
}

#[test]
fn pointers_get_types_where_they_are_used() {
    let llvm = "define float @f(ptr addrspace(1) %p, i64 %i) {
        %at = getelementptr inbounds nuw float, ptr addrspace(1) %p, i64 %i
        %x = load float, ptr addrspace(1) %at, align 4
        store i32 poison, ptr addrspace(1) %p, align 4
        ret float %x
    }";
    let expected = "
        %t0 = bitcast i8 addrspace(1)* %p0 to float addrspace(1)*
        %t1 = getelementptr inbounds float, float addrspace(1)* %t0, i64 %p1
        %v0 = bitcast float addrspace(1)* %t1 to i8 addrspace(1)*
        %v1 = load float, float addrspace(1)* %t1, align 4
        %t2 = bitcast i8 addrspace(1)* %p0 to i32 addrspace(1)*
        store i32 undef, i32 addrspace(1)* %t2, align 4
        ret float %v1";
    assert_eq!(body(llvm, 90), trimmed(expected));
}

#[test]
fn what_llvm_7_lacks_is_expanded() {
    let llvm = "define i32 @f(i32 %a, i32 %b, float %x) {
        %least = call i32 @llvm.umin.i32(i32 %a, i32 %b)
        %sum = call i32 @llvm.sadd.sat.i32(i32 %least, i32 %b)
        %frozen = freeze i32 %sum
        %negated = fneg float %x
        %converted = call i8 @llvm.fptosi.sat.i8.f32(float %negated)
        %wide = zext nneg i8 %converted to i32
        %both = or disjoint i32 %wide, %frozen
        ret i32 %both
    }
    declare i32 @llvm.umin.i32(i32, i32)
    declare i32 @llvm.sadd.sat.i32(i32, i32)
    declare i8 @llvm.fptosi.sat.i8.f32(float)";
    let expected = r#"
        %t0 = icmp ult i32 %p0, %p1
        %v0 = select i1 %t0, i32 %p0, i32 %p1
        %t1 = call { i32, i1 } @llvm.sadd.with.overflow.i32(i32 %v0, i32 %p1)
        %t2 = extractvalue { i32, i1 } %t1, 0
        %t3 = extractvalue { i32, i1 } %t1, 1
        %t4 = ashr i32 %v0, 31
        %t5 = xor i32 %t4, 2147483647
        %v1 = select i1 %t3, i32 %t5, i32 %t2
        %v2 = call i32 asm "mov.b32 $0, $1;", "=r,r"(i32 %v1) nounwind
        %v3 = fsub float 0x8000000000000000, %p2
        %t6 = call i32 asm "cvt.rzi.s32.f32 $0, $1;", "=r,f"(float %v3) nounwind
        %t7 = fcmp uno float %v3, %v3
        %t8 = select i1 %t7, i32 0, i32 %t6
        %t9 = icmp slt i32 %t8, 127
        %t10 = select i1 %t9, i32 %t8, i32 127
        %t11 = icmp sgt i32 %t10, -128
        %t12 = select i1 %t11, i32 %t10, i32 -128
        %v4 = trunc i32 %t12 to i8
        %v5 = zext i8 %v4 to i32
        %v6 = or i32 %v5, %v2
        ret i32 %v6"#;
    assert_eq!(body(llvm, 90), trimmed(expected));
}

#[test]
fn products_and_sums_are_fused_only_where_they_may_be() {
    let llvm = "define double @f(double %a, double %b) {
        %separate = fmul double %a, %b
        %left = fsub double %separate, %a
        %product = fmul contract double %left, %b
        %sum = fadd contract double %product, %a
        ret double %sum
    }";
    let expected = "
        %v0 = call double @llvm.nvvm.mul.rn.d(double %p0, double %p1)
        %t0 = fsub double 0x8000000000000000, %p0
        %v1 = call double @llvm.nvvm.add.rn.d(double %v0, double %t0)
        %v2 = fmul contract double %v1, %p1
        %v3 = fadd contract double %v2, %p0
        ret double %v3";
    assert_eq!(body(llvm, 90), trimmed(expected));
}

#[test]
fn bfloat_is_computed_as_float() {
    let llvm = "define bfloat @f(bfloat %a, double %b) {
        %narrow = fptrunc double %b to bfloat
        %sum = fadd bfloat %a, %narrow
        ret bfloat %sum
    }";
    let expected = "
        %t0 = extractvalue %struct.half %p0.whole, 0
        %p0 = bitcast i16 %t0 to i16
        %t1 = call float @llvm.nvvm.d2f.rz(double %p1)
        %t2 = fpext float %t1 to double
        %t3 = fcmp une double %t2, %p1
        %t4 = zext i1 %t3 to i32
        %t5 = bitcast float %t1 to i32
        %t6 = or i32 %t5, %t4
        %t7 = bitcast i32 %t6 to float
        %t8 = bitcast float %t7 to i32
        %t9 = lshr i32 %t8, 16
        %t10 = and i32 %t9, 1
        %t11 = add i32 %t10, 32767
        %t12 = add i32 %t8, %t11
        %t13 = lshr i32 %t12, 16
        %t14 = fcmp uno float %t7, %t7
        %t15 = select i1 %t14, i32 32767, i32 %t13
        %v0 = trunc i32 %t15 to i16
        %t16 = zext i16 %p0 to i32
        %t17 = shl i32 %t16, 16
        %t18 = bitcast i32 %t17 to float
        %t19 = zext i16 %v0 to i32
        %t20 = shl i32 %t19, 16
        %t21 = bitcast i32 %t20 to float
        %t22 = fadd float %t18, %t21
        %t23 = bitcast float %t22 to i32
        %t24 = lshr i32 %t23, 16
        %t25 = and i32 %t24, 1
        %t26 = add i32 %t25, 32767
        %t27 = add i32 %t23, %t26
        %t28 = lshr i32 %t27, 16
        %t29 = fcmp uno float %t22, %t22
        %t30 = select i1 %t29, i32 32767, i32 %t28
        %v1 = trunc i32 %t30 to i16
        %t31 = bitcast i16 %v1 to i16
        %t32 = insertvalue %struct.half undef, i16 %t31, 0
        ret %struct.half %t32";
    assert_eq!(body(llvm, 75), trimmed(expected));
}

#[test]
fn orders_and_scopes_of_atomic_operations_are_those_of_ptx() {
    let llvm = "define void @f(ptr addrspace(3) %p, ptr %q) {
        %a = atomicrmw sub ptr addrspace(3) %p, i32 2 syncscope(\"block\") acq_rel, align 4
        %b = atomicrmw fadd ptr %q, float 1.0 seq_cst, align 4
        %c = load atomic i64, ptr %q syncscope(\"device\") acquire, align 8
        store atomic i64 %c, ptr %q release, align 8
        fence syncscope(\"device\") seq_cst
        ret void
    }";
    let expected = r#"
        %t0 = sub i32 0, 2
        %v0 = call i32 asm sideeffect "atom.acq_rel.cta.shared.add.u32 $0, [$1], $2;", "=r,l,r,~{memory}"(i8 addrspace(3)* %p0, i32 %t0) nounwind
        call void asm sideeffect "fence.sc.sys;", "~{memory}"() nounwind
        %v1 = call float asm sideeffect "atom.acquire.sys.add.f32 $0, [$1], $2;", "=f,l,f,~{memory}"(i8* %p1, float 0x3FF0000000000000) nounwind
        %v2 = call i64 asm sideeffect "ld.acquire.gpu.b64 $0, [$1];", "=l,l,~{memory}"(i8* %p1) nounwind
        call void asm sideeffect "st.release.sys.b64 [$0], $1;", "l,l,~{memory}"(i8* %p1, i64 %v2) nounwind
        call void asm sideeffect "fence.sc.gpu;", "~{memory}"() nounwind
        ret void"#;
    assert_eq!(body(llvm, 90), trimmed(expected));
}

#[test]
fn what_nvvm_ir_cannot_express_is_an_error() {
    let cases = [
        ("define double @f(double %a) { %r = frem double %a, %a ret double %r }", "frem double"),
        (
            "define float @f(float %a) { %r = call float @llvm.sin.f32(float %a) ret float %r }
             declare float @llvm.sin.f32(float)",
            "call float @llvm.sin.f32",
        ),
        (
            "define i32 @f(i32 %a) { %r = call i32 @\"weft$floordiv.i32\"(i32 %a, i32 %a) ret i32 %r }
             declare i32 @\"weft$floordiv.i32\"(i32, i32)",
            "a call of weft$floordiv.i32",
        ),
        ("define <2 x bfloat> @f(<2 x bfloat> %a) { %r = fadd <2 x bfloat> %a, %a ret <2 x bfloat> %r }", "fadd <2 x"),
        ("define float @f(ptr %a) { %r = atomicrmw fmax ptr %a, float 1.0 monotonic ret float %r }", "atomicrmw fmax"),
        ("define i8 @f(ptr %a) { %r = atomicrmw add ptr %a, i8 1 monotonic ret i8 %r }", "atomicrmw add"),
        ("define void @f(<vscale x 2 x i32> %a) { ret void }", "the type <vscale x 2 x i32>"),
    ];
    for (llvm, part) in cases {
        let error = printed(llvm, 90).expect_err(llvm);
        assert!(error.contains(part), "{error}");
    }
}
