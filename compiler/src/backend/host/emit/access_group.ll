; An access group for access_groups.rs: a distinct metadata node without operands, which LLVM's C interface cannot make.
!weft.access = !{!0}
!0 = distinct !{}
