"""tests/benchmarks/sass.py reads machine code: the kinds of instructions, their loops, a profiler's page of them."""

from __future__ import annotations

import sys
from collections import Counter
from pathlib import Path

import pytest

BENCHMARKS = Path(__file__).resolve().parents[3] / "tests" / "benchmarks"

sys.path.insert(0, str(BENCHMARKS))
try:
    import sass
finally:
    sys.path.remove(str(BENCHMARKS))

# Two nested loops, and padding after the end.
CODE = """
	.target	sm_90
	.section	.nv.info,"",@"SHT_CUDA_INFO"
        /*0000*/                   BOGUS R1 ;
	.section	.text.peer,"ax",@progbits
        .global         peer
peer:
.text.peer:
        /*0000*/                   LDC R1, c[0x0][0x28] ;
        /*0010*/                   ULDC.64 UR4, c[0x0][0x208] ;
.L_x_0:
        /*0020*/                   IADD3 R8, P0, R10, R17, RZ ;
.L_x_1:
        /*0030*/                   LDG.E.U8.CONSTANT R4, desc[UR4][R8.64] ;
        /*0040*/                   FADD R5, R5, R4 ;
        /*0050*/              @!P1 BRA P2, `(.L_x_1) ;
        /*0060*/                   IMAD.X R9, R11, 0x1, R16, P0 ;
        /*0070*/               @P0 BRA `(.L_x_0) ;
        /*0080*/               @P0 BRA `(.L_x_2) ;
        /*0090*/                   STG.E.128 desc[UR4][R8.64], R4 ;
.L_x_2:
        /*00a0*/                   EXIT ;
.L_x_3:
        /*00b0*/                   BRA `(.L_x_3);
        /*00c0*/                   NOP;
.L_x_4:
	.section	.text.other,"ax",@progbits
other:
.text.other:
        /*0000*/                   EXIT ;
"""


@pytest.mark.parametrize(
    ("text", "kind"),
    [
        ("IADD3 R8, P0, R10, R17, RZ ;", sass.INTEGER64),  # has a carry output
        ("IADD3 R8, R10, R17, RZ ;", sass.INTEGER32),
        ("IADD3.X R0, ~R9.reuse, UR11, RZ, P0, !PT ;", sass.INTEGER64),
        ("LEA R10, P1, R0, UR12, 0x2 ;", sass.INTEGER64),
        ("LEA.HI.X R11, R0, UR13, R15, 0x2, P1 ;", sass.INTEGER64),
        ("LEA R7, R4, UR4, 0x2 ;", sass.INTEGER32),
        ("IMAD.WIDE.U32 R2, R11, UR5, RZ ;", sass.INTEGER64),
        ("IMAD R15, R3, 0x3, RZ ;", sass.INTEGER32),
        ("IMAD.SHL.U32 R17, R2, 0x4, RZ ;", sass.INTEGER32),
        ("IMAD.MOV.U32 R5, RZ, RZ, RZ ;", sass.MOVE),
        ("HFMA2.MMA R5, -RZ, RZ, 0, 0 ;", sass.MOVE),
        ("HFMA2 R5, R3, R4, R5 ;", sass.FLOAT16),
        ("ISETP.GE.U32.AND P0, PT, R8, UR10, PT ;", sass.INTEGER32),
        ("ISETP.GE.U32.AND.EX P0, PT, R9, UR11, PT, P0 ;", sass.INTEGER64),
        ("SHF.L.U64.HI R16, R2.reuse, 0x2, R3 ;", sass.INTEGER64),
        ("SHF.R.S32.HI R16, RZ, 0x1f, R3 ;", sass.INTEGER32),
        ("ULEA UR8, UP0, UR5, UR4, 0x2 ;", sass.INTEGER64),
        ("@!P0 FADD R0, R0, R3 ;", sass.FLOAT32),
        ("DFMA R4, R4, R6, R8 ;", sass.FLOAT64),
        ("MUFU.RSQ R5, R4 ;", sass.SPECIAL),
        ("I2F.S64 R5, R4 ;", sass.CONVERSION),
        ("F2I.S64.TRUNC R4, R5 ;", sass.CONVERSION),
        ("S2R R4, SR_TID.X ;", sass.MOVE),
        ("LDG.E.64 R4, desc[UR6][R10.64] ;", "load global, 8 B"),
        ("LDG.E R4, desc[UR6][R10.64] ;", "load global, 4 B"),
        ("LDG.E.128.CONSTANT R4, desc[UR6][R10.64] ;", "load global read-only, 16 B"),
        ("LDS.U16 R0, [R7] ;", "load shared, 2 B"),
        ("ULDC.64 UR4, c[0x0][0x208] ;", "load constant, 8 B"),
        ("STL [R1+0x4], R4 ;", "store local, 4 B"),
        ("LDGSTS.E.BYPASS.128 [R5], desc[UR4][R2.64] ;", "load global to shared, 16 B"),
        ("RED.E.ADD.F32.FTZ.RN.STRONG.GPU desc[UR4][R2.64], R5 ;", sass.ATOMIC),
        ("@UP0 UBRANCHY `(.L_x_1) ;", sass.OTHER),
        ("BSSY B0, `(.L_x_0) ;", sass.CONVERGENCE),
        ("BAR.SYNC.DEFER_BLOCKING 0x0 ;", sass.BARRIER),
        ("SHFL.DOWN PT, R5, R4, 0x10, 0x1f ;", sass.WARP),
        ("CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div) ;", sass.BRANCH),
    ],
)
def test_an_instruction_has_its_kind(text, kind):
    each = sass.instruction(text)
    assert each
    assert sass.kind(each) == kind


def test_each_opcode_is_of_one_kind():
    opcodes = [opcode for each in sass.OPCODES.values() for opcode in each.split()] + [*sass.LOADS, *sass.STORES]
    assert not [opcode for opcode, times in Counter(opcodes).items() if times > 1]
    assert set(sass.OPCODES) == set(sass.ORDER) - {sass.INTEGER64, sass.OTHER}


def test_functions_are_read_with_their_loops_and_without_what_fills_their_end():
    found = sass.functions(CODE)
    assert list(found) == ["peer", "other"]
    assert [(each.opcode, each.loop, each.innermost) for each in found["peer"]] == [
        ("LDC", None, False),
        ("ULDC.64", None, False),
        ("IADD3", 2, False),
        ("LDG.E.U8.CONSTANT", 3, True),
        ("FADD", 3, True),
        ("BRA", 3, True),
        ("IMAD.X", 2, False),
        ("BRA", 2, False),
        ("BRA", None, False),
        ("STG.E.128", None, False),
        ("EXIT", None, False),
    ]


def test_kinds_are_counted_and_have_an_order():
    counts = sass.count(sass.functions(CODE)["peer"])
    assert sorted(counts, key=sass.rank) == [
        sass.INTEGER64, sass.FLOAT32, "load constant, 4 B", "load constant, 8 B", "load global read-only, 1 B",
        "store global, 16 B", sass.BRANCH,
    ]  # fmt: skip
    assert counts[sass.INTEGER64] == 2
    assert counts[sass.BRANCH] == 4


def test_a_profilers_page_gives_what_was_executed():
    page = """\
==PROF== Connected to process 1
"Kernel Name","peer(int, int)"
"Address","Source","# Samples","Instructions Executed","Thread Instructions Executed"
"0x10","      @P0 FADD R0, R0, R3","7","1,024","32768"
"0x20","      LDG.E R4, [R2.64]","0","64","2048"
"0x30","      FMUL R0, R0, R3","7","6","12"
"0x40","      NOP","0","0","0"
"""
    assert sass.executed(page) == {sass.FLOAT32: 1030, "load global, 4 B": 64}
    with pytest.raises(ValueError, match="no table with the columns Source and Instructions Executed"):
        sass.executed("==ERROR== ERR_NVGPUCTRPERM\n")
