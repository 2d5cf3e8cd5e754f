; Writes a record of a call of `print` to the ring in host memory. weft_artifact::PrintRing describes the layout and has
; the same constants.
;
; Arguments of `weft$print`:
; - `page`: the words before the ring, and the ring. It is host memory, which the host may change at any time.
; - `format`: `length` bytes.
; - `words`: `count` arguments of eight bytes.
; - `kinds`: a byte for each argument, which is nonzero for the address of a string.

; The number of bytes of a string before its terminating zero.
define internal i64 @"weft$print_length"(ptr %text) #0 {
entry:
  br label %look

look:
  %length = phi i64 [ 0, %entry ], [ %longer, %look ]
  %at = getelementptr i8, ptr %text, i64 %length
  %letter = load i8, ptr %at
  %longer = add i64 %length, 1
  %is.end = icmp eq i8 %letter, 0
  br i1 %is.end, label %end, label %look, !llvm.loop !0

end:
  ret i64 %length
}

; Writes a word at an offset in bytes, modulo the size of the ring.
define internal void @"weft$print_word"(ptr addrspace(1) %page, i64 %mask, i64 %at, i64 %word) #1 {
  %within = and i64 %at, %mask
  %behind = add i64 %within, 64
  %place = getelementptr i8, ptr addrspace(1) %page, i64 %behind
  store volatile i64 %word, ptr addrspace(1) %place, align 8
  ret void
}

; Writes bytes, padded with zeros to whole words. Returns the offset after them.
define internal i64 @"weft$print_bytes"(ptr addrspace(1) %page, i64 %mask, i64 %at, ptr %from, i64 %length) #0 {
entry:
  br label %words

words:
  %first = phi i64 [ 0, %entry ], [ %first.next, %whole ]
  %place = add i64 %at, %first
  %some = icmp ult i64 %first, %length
  br i1 %some, label %bytes, label %end

bytes:
  %byte = phi i64 [ 0, %words ], [ %byte.next, %added ]
  %word = phi i64 [ 0, %words ], [ %word.next, %added ]
  %index = add i64 %first, %byte
  %is.there = icmp ult i64 %index, %length
  br i1 %is.there, label %add, label %added

add:
  %letter.at = getelementptr i8, ptr %from, i64 %index
  %letter = load i8, ptr %letter.at
  %wide = zext i8 %letter to i64
  %shift = shl i64 %byte, 3
  %shifted = shl i64 %wide, %shift
  %with = or i64 %word, %shifted
  br label %added

added:
  %word.next = phi i64 [ %word, %bytes ], [ %with, %add ]
  %byte.next = add i64 %byte, 1
  %is.whole = icmp eq i64 %byte.next, 8
  br i1 %is.whole, label %whole, label %bytes, !llvm.loop !1

whole:
  call void @"weft$print_word"(ptr addrspace(1) %page, i64 %mask, i64 %place, i64 %word.next)
  %first.next = add i64 %first, 8
  br label %words, !llvm.loop !2

end:
  ret i64 %place
}

define void @"weft$print"(ptr addrspace(1) %page, ptr %format, i64 %length, ptr %words, i64 %count, ptr %kinds) #0 {
entry:
  %format.most = add i64 %length, 7
  %format.bytes = and i64 %format.most, -8
  %words.bytes = shl i64 %count, 3
  %both = add i64 %format.bytes, %words.bytes
  %without.texts = add i64 %both, 16
  br label %measure

measure:
  %i = phi i64 [ 0, %entry ], [ %i.next, %measured ]
  %bytes = phi i64 [ %without.texts, %entry ], [ %bytes.next, %measured ]
  %i.some = icmp ult i64 %i, %count
  br i1 %i.some, label %measure.kind, label %reserve

measure.kind:
  %i.kind.at = getelementptr i8, ptr %kinds, i64 %i
  %i.kind = load i8, ptr %i.kind.at
  %i.plain = icmp eq i8 %i.kind, 0
  br i1 %i.plain, label %measured, label %measure.text

measure.text:
  %i.at = getelementptr i64, ptr %words, i64 %i
  %i.text = load ptr, ptr %i.at
  %i.length = call i64 @"weft$print_length"(ptr %i.text)
  %i.most = add i64 %i.length, 7
  %i.bytes = and i64 %i.most, -8
  %with.text = add i64 %bytes, %i.bytes
  br label %measured

measured:
  %bytes.next = phi i64 [ %bytes, %measure.kind ], [ %with.text, %measure.text ]
  %i.next = add i64 %i, 1
  br label %measure, !llvm.loop !3

reserve:
  %lost.field = getelementptr i64, ptr addrspace(1) %page, i64 1
  %head.field = getelementptr i64, ptr addrspace(1) %page, i64 2
  %head.address = load volatile i64, ptr addrspace(1) %head.field, align 8
  %head = inttoptr i64 %head.address to ptr addrspace(1)
  %room.field = getelementptr i64, ptr addrspace(1) %page, i64 3
  %room = load volatile i64, ptr addrspace(1) %room.field, align 8
  %mask = sub i64 %room, 1
  ; The active lanes reserve space with one atomic operation, which reduces contention on the head.
  %here = call i32 @llvm.nvvm.activemask() #2
  %lane = call i32 @llvm.nvvm.read.ptx.sreg.laneid()
  %small = trunc i64 %bytes to i32
  br label %sum

sum:
  %left = phi i32 [ %here, %reserve ], [ %left.next, %sum ]
  %before = phi i32 [ 0, %reserve ], [ %before.next, %sum ]
  %total = phi i32 [ 0, %reserve ], [ %total.next, %sum ]
  %other = call i32 @llvm.cttz.i32(i32 %left, i1 true)
  %of.other = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %here, i32 %small, i32 %other, i32 31) #2
  %total.next = add i32 %total, %of.other
  %is.before = icmp ult i32 %other, %lane
  %of.before = select i1 %is.before, i32 %of.other, i32 0
  %before.next = add i32 %before, %of.before
  %lowest = sub i32 %left, 1
  %left.next = and i32 %left, %lowest
  %is.last = icmp eq i32 %left.next, 0
  br i1 %is.last, label %elect, label %sum, !llvm.loop !7

elect:
  %leader = call i32 @llvm.cttz.i32(i32 %here, i1 true)
  %leads = icmp eq i32 %leader, %lane
  br i1 %leads, label %look.at, label %share

look.at:
  %all.bytes = zext i32 %total.next to i64
  %known = load volatile i64, ptr addrspace(1) %head, align 8
  %known.read = load volatile i64, ptr addrspace(1) %page, align 8
  br label %try

try:
  %at.now = phi i64 [ %known, %look.at ], [ %seen, %wait ], [ %at.now, %look.again ]
  %read = phi i64 [ %known.read, %look.at ], [ %read, %wait ], [ %read.again, %look.again ]
  %looked = phi i1 [ false, %look.at ], [ false, %wait ], [ true, %look.again ]
  %pause = phi i32 [ 32, %look.at ], [ %longer, %wait ], [ %pause, %look.again ]
  %end = add i64 %at.now, %all.bytes
  ; Negative if, since the head was loaded, other threads have moved it and the host has read their records. The exchange
  ; fails in this case.
  %used = sub i64 %end, %read
  %fits = icmp sle i64 %used, %room
  br i1 %fits, label %take, label %full

; Loads from host memory are slow, so the host's position is loaded again only if there seems to be no room.
full:
  br i1 %looked, label %share, label %look.again

look.again:
  %read.again = load volatile i64, ptr addrspace(1) %page, align 8
  br label %try, !llvm.loop !8

take:
  %swapped = cmpxchg ptr addrspace(1) %head, i64 %at.now, i64 %end syncscope("device") monotonic monotonic, align 8
  %seen = extractvalue { i64, i1 } %swapped, 0
  %is.mine = extractvalue { i64, i1 } %swapped, 1
  br i1 %is.mine, label %share, label %wait

; Exponential backoff after a failed exchange, with a pseudorandom part from the clock.
wait:
  %clock = call i32 @llvm.nvvm.read.ptx.sreg.clock()
  %pause.less = sub i32 %pause, 1
  %some.of = and i32 %clock, %pause.less
  %sleep = add i32 %some.of, %pause
  call void @llvm.nvvm.nanosleep(i32 %sleep)
  %doubled = shl i32 %pause, 1
  %longer = call i32 @llvm.umin.i32(i32 %doubled, i32 65536)
  br label %try, !llvm.loop !9

share:
  %base = phi i64 [ 0, %elect ], [ %at.now, %take ], [ -1, %full ]
  %base.low = trunc i64 %base to i32
  %base.top = lshr i64 %base, 32
  %base.high = trunc i64 %base.top to i32
  %low.shared = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %here, i32 %base.low, i32 %leader, i32 31) #2
  %high.shared = call i32 @llvm.nvvm.shfl.sync.idx.i32(i32 %here, i32 %base.high, i32 %leader, i32 31) #2
  %low.wide = zext i32 %low.shared to i64
  %high.wide = zext i32 %high.shared to i64
  %high.placed = shl i64 %high.wide, 32
  %base.shared = or i64 %high.placed, %low.wide
  %before.wide = zext i32 %before.next to i64
  %at = add i64 %base.shared, %before.wide
  %is.lost = icmp eq i64 %base.shared, -1
  br i1 %is.lost, label %lost, label %write

lost:
  br i1 %leads, label %count.lost, label %gone

count.lost:
  %here.count = call i32 @llvm.ctpop.i32(i32 %here)
  %here.wide = zext i32 %here.count to i64
  %count.at = getelementptr i64, ptr addrspace(1) %head, i64 1
  %others = atomicrmw add ptr addrspace(1) %count.at, i64 %here.wide syncscope("device") monotonic, align 8
  %all = add i64 %others, %here.wide
  store volatile i64 %all, ptr addrspace(1) %lost.field, align 8
  br label %gone

gone:
  ret void

write:
  %second = add i64 %at, 8
  %count.high = shl i64 %count, 32
  %counts = or i64 %count.high, %length
  call void @"weft$print_word"(ptr addrspace(1) %page, i64 %mask, i64 %second, i64 %counts)
  %third = add i64 %at, 16
  %behind.format = call i64 @"weft$print_bytes"(ptr addrspace(1) %page, i64 %mask, i64 %third, ptr %format, i64 %length)
  br label %args

args:
  %j = phi i64 [ 0, %write ], [ %j.next, %arg.write ]
  %j.offset = shl i64 %j, 3
  %j.place = add i64 %behind.format, %j.offset
  %j.some = icmp ult i64 %j, %count
  br i1 %j.some, label %arg, label %texts

arg:
  %j.kind.at = getelementptr i8, ptr %kinds, i64 %j
  %j.kind = load i8, ptr %j.kind.at
  %j.at = getelementptr i64, ptr %words, i64 %j
  %j.word = load i64, ptr %j.at
  %j.plain = icmp eq i8 %j.kind, 0
  br i1 %j.plain, label %arg.write, label %arg.text

arg.text:
  %j.text = load ptr, ptr %j.at
  %j.length = call i64 @"weft$print_length"(ptr %j.text)
  br label %arg.write

arg.write:
  %j.value = phi i64 [ %j.word, %arg ], [ %j.length, %arg.text ]
  call void @"weft$print_word"(ptr addrspace(1) %page, i64 %mask, i64 %j.place, i64 %j.value)
  %j.next = add i64 %j, 1
  br label %args, !llvm.loop !4

texts:
  %k = phi i64 [ 0, %args ], [ %k.next, %text.done ]
  %k.place = phi i64 [ %j.place, %args ], [ %k.place.next, %text.done ]
  %k.some = icmp ult i64 %k, %count
  br i1 %k.some, label %text, label %tell

text:
  %k.kind.at = getelementptr i8, ptr %kinds, i64 %k
  %k.kind = load i8, ptr %k.kind.at
  %k.plain = icmp eq i8 %k.kind, 0
  br i1 %k.plain, label %text.done, label %text.write

text.write:
  %k.at = getelementptr i64, ptr %words, i64 %k
  %k.text = load ptr, ptr %k.at
  %k.length = call i64 @"weft$print_length"(ptr %k.text)
  %behind.text = call i64 @"weft$print_bytes"(ptr addrspace(1) %page, i64 %mask, i64 %k.place, ptr %k.text, i64 %k.length)
  br label %text.done

text.done:
  %k.place.next = phi i64 [ %k.place, %text ], [ %behind.text, %text.write ]
  %k.next = add i64 %k, 1
  br label %texts, !llvm.loop !5

tell:
  call void @llvm.nvvm.membar.sys()
  call void @"weft$print_word"(ptr addrspace(1) %page, i64 %mask, i64 %at, i64 %bytes)
  ret void
}

declare void @llvm.nvvm.membar.sys()
declare i32 @llvm.nvvm.activemask()
declare i32 @llvm.nvvm.read.ptx.sreg.laneid()
declare i32 @llvm.nvvm.read.ptx.sreg.clock()
declare i32 @llvm.nvvm.shfl.sync.idx.i32(i32, i32, i32, i32)
declare void @llvm.nvvm.nanosleep(i32)
declare i32 @llvm.cttz.i32(i32, i1)
declare i32 @llvm.ctpop.i32(i32)
declare i32 @llvm.umin.i32(i32, i32)

attributes #0 = { noinline nounwind convergent "no-builtins" }
attributes #1 = { alwaysinline nounwind "no-builtins" }
attributes #2 = { convergent nounwind }

; Unrolling does not pay: a module has these loops once, and their trip counts are arbitrary.
!0 = distinct !{!0, !6}
!1 = distinct !{!1, !6}
!2 = distinct !{!2, !6}
!3 = distinct !{!3, !6}
!4 = distinct !{!4, !6}
!5 = distinct !{!5, !6}
!7 = distinct !{!7, !6}
!8 = distinct !{!8, !6}
!9 = distinct !{!9, !6}
!6 = !{!"llvm.loop.unroll.disable"}
