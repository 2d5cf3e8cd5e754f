; Inline checks of sanitized code. A function compares an access with the records of earlier accesses to the element. If
; none of them can race with the access, the function records it. In all other cases it calls the runtime, which handles
; every access (`runtime/src/sanitize/`). The functions must change records in the same way as `races.rs` there.
;
; The types are `HostSeen` and `HostPage` of weft-artifact, and `Write`, `Reads` and `Directory` of the runtime. The
; functions take the arguments of `HostChecks::access`; `shift` is the binary logarithm of the access's size, and
; `parameter` the bit of the array parameter whose memory is accessed, if the kernel only reads that array.

; Fields: block, epoch, chain, read, chain_too, write, lane, first, copies, last, knows, padding, unrecorded, near,
; scratch, scratch_bytes.
%seen = type { i32,  i32,  i32,  i32, i32,  i32,  i32, i32,  i32,   i32, i32,  i32, i64,  ptr, i64,    i64 }
; Fields: number, writes, reads, second, unwritten, read_key, write_key, at, padding. For packed records, `second` is
; the directory.
%page = type { i64,   ptr,   ptr,  ptr,   ptr,      i64,     i64,      i32, [4 x i8] }
; Fields: block, epoch, spot, and the writer: its clock, thread and kind bits.
%write = type { i32,  i32,  i32, i32 }
; Fields: block, epoch, spot, the reader (its clock, warp and kind bits), and lanes.
%reads = type { i32,  i32,  i32,  i32, i32 }
; The functions load and compare block and epoch as one number (`time`), and the spot and the thread as another one
; (`from`).

; The entry of the table of pages for an address: `slot` of `runtime/src/sanitize/shadow.rs`.
define internal ptr @weft.page(ptr %near, i64 %address) alwaysinline nounwind {
  %number = lshr i64 %address, 11
  %spread = mul i64 %number, -7046029254386353131
  %slot = lshr i64 %spread, 55
  %page = getelementptr inbounds %page, ptr %near, i64 %slot
  ret ptr %page
}

; Whether an access is one element of the page with this key: it is in the page, aligned, and has the size of the page's
; elements.
define internal i1 @weft.known(i64 %key, i64 %address, i32 %shift) alwaysinline nounwind {
  %long = zext i32 %shift to i64
  %size = shl i64 1, %long
  %rest = sub i64 %size, 1
  %bits = or i64 %rest, -2048
  %start = and i64 %address, %bits
  %high = shl i64 %long, 8
  %own = or i64 %start, %high
  %known = icmp eq i64 %own, %key
  ret i1 %known
}

; The address of the word with an access's bits in the page's bitmap of unwritten bytes.
define internal ptr @weft.word(ptr %page, i64 %address) alwaysinline nounwind {
  %bits.at = getelementptr inbounds %page, ptr %page, i64 0, i32 4
  %bits = load ptr, ptr %bits.at
  %offset = and i64 %address, 2047
  %index = lshr i64 %offset, 6
  %word.at = getelementptr inbounds i64, ptr %bits, i64 %index
  ret ptr %word.at
}

; The access's bits in that word.
define internal i64 @weft.mask(i64 %address, i32 %shift) alwaysinline nounwind {
  %bit = and i64 %address, 63
  %long = zext i32 %shift to i64
  %size = shl i64 1, %long
  %beyond = shl i64 1, %size
  %low = sub i64 %beyond, 1
  %mask = shl i64 %low, %bit
  ret i64 %mask
}

; The first block whose accesses may race. In scratch memory it is the current block.
define internal i32 @weft.first(ptr %seen, i64 %address, i32 %block) alwaysinline nounwind {
  %first.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 7
  %first = load i32, ptr %first.at
  %scratch.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 14
  %scratch = load i64, ptr %scratch.at
  %bytes.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 15
  %bytes = load i64, ptr %bytes.at
  %offset = sub i64 %address, %scratch
  %inside = icmp ult i64 %offset, %bytes
  %least = select i1 %inside, i32 %block, i32 %first
  ret i32 %least
}

; Whether the last write cannot race with this access: it is by this thread, by its block in an earlier epoch, or by a
; block that has finished. `Now::meet` tests the same.
define internal i1 @weft.alone(ptr %write, ptr %seen, i64 %time, i64 %from, i64 %address) alwaysinline nounwind {
  %its_time = load i64, ptr %write, align 8
  %block = trunc i64 %time to i32
  %its_block = trunc i64 %its_time to i32
  %own = icmp eq i32 %its_block, %block
  %before = icmp ult i64 %its_time, %time
  %who.at = getelementptr inbounds %write, ptr %write, i64 0, i32 3
  %its_who = load i32, ptr %who.at
  %long_who = lshr i64 %from, 32
  %own_who = trunc i64 %long_who to i32
  ; The ten bits of the thread's number.
  %differs = xor i32 %its_who, %own_who
  %other = and i32 %differs, 8184
  %same = icmp eq i32 %other, 0
  %first = call i32 @weft.first(ptr %seen, i64 %address, i32 %block)
  %old = icmp ult i32 %its_block, %first
  %behind = or i1 %before, %same
  %own_behind = and i1 %own, %behind
  %alone = or i1 %old, %own_behind
  ret i1 %alone
}

; `Now::happens_after_all`, or there are no reads.
define internal i1 @weft.free(ptr %reads, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address) alwaysinline nounwind {
  %its_time = load i64, ptr %reads, align 4
  %block = trunc i64 %time to i32
  %its_block = trunc i64 %its_time to i32
  %own = icmp eq i32 %its_block, %block
  %before = icmp ult i64 %its_time, %time
  %lanes.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 4
  %lanes = load i32, ptr %lanes.at
  %who.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 3
  %its_who = load i32, ptr %who.at
  %long_who = lshr i64 %from, 32
  %own_who = trunc i64 %long_who to i32
  %none = icmp eq i32 %lanes, 0
  ; The five bits of the warp's number.
  %differs = xor i32 %its_who, %own_who
  %other = and i32 %differs, 248
  %same_warp = icmp eq i32 %other, 0
  %same_lane = icmp eq i32 %lanes, %lane
  %same = and i1 %same_warp, %same_lane
  %first = call i32 @weft.first(ptr %seen, i64 %address, i32 %block)
  %old = icmp ult i32 %its_block, %first
  %behind = or i1 %before, %same
  %own_behind = and i1 %own, %behind
  %unused = or i1 %none, %old
  %free = or i1 %unused, %own_behind
  ret i1 %free
}

; `Reads::takes`: reads by the same warp in the same epoch, at the same spot.
define internal i1 @weft.takes(ptr %reads, i64 %time, i64 %from) alwaysinline nounwind {
  %its_time = load i64, ptr %reads, align 4
  %from.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 2
  %its_from = load i64, ptr %from.at, align 4
  %times = xor i64 %its_time, %time
  %froms = xor i64 %its_from, %from
  %differ = or i64 %times, %froms
  %takes = icmp eq i64 %differ, 0
  ret i1 %takes
}

define internal void @weft.add(ptr %reads, i32 %lane) alwaysinline nounwind {
  %lanes.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 4
  %lanes = load i32, ptr %lanes.at
  %all = or i32 %lanes, %lane
  store i32 %all, ptr %lanes.at
  ret void
}

define internal void @weft.set(ptr %reads, i64 %time, i64 %from, i32 %lane) alwaysinline nounwind {
  store i64 %time, ptr %reads, align 4
  %from.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 2
  store i64 %from, ptr %from.at, align 4
  %lanes.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 4
  store i32 %lane, ptr %lanes.at
  ret void
}

; Whether the record is of atomic operations that write, which are stored among the reads.
define internal i1 @weft.steps(ptr %reads) alwaysinline nounwind {
  %who.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 3
  %who = load i32, ptr %who.at
  %bit = and i32 %who, 4
  %steps = icmp ne i32 %bit, 0
  ret i1 %steps
}

; Whether the access may copy unwritten bytes: it is part of a copy, and the thread copies values with unwritten bytes.
define internal i1 @weft.copies(ptr %seen, i32 %copy) alwaysinline nounwind {
  %next = add i32 %copy, 1
  ; 0 is no copy. `HostChecks::FOLLOWED`, the largest number, is no copy either.
  %is_copied = icmp ugt i32 %next, 1
  %count.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 8
  %count = load i32, ptr %count.at
  %some = icmp ne i32 %count, 0
  %copies = and i1 %is_copied, %some
  ret i1 %copies
}

; Records the thread's last access. In code with work-item loops, the runtime does not need it.
define internal void @weft.note(ptr %seen, i64 %from, i1 %notes) alwaysinline nounwind {
start:
  br i1 %notes, label %note, label %end

note:
  %spot = trunc i64 %from to i32
  %last.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 9
  %last = add i32 %spot, 1
  store i32 %last, ptr %last.at
  br label %end

end:
  ret void
}

; `time` is the thread's block and epoch. `its_from` has the calls that led to the current location, and the thread, in
; the encoding of a record.
define ptr @weft.read(ptr %context, i64 %at_access, ptr %seen, ptr %near, i64 %time, i64 %its_from, i64 %all_quiet, i32 %lane,
                      i1 %notes, ptr %place, i32 %site, i32 %bits, i32 %shift, i32 %copy, i64 %parameter)
                      alwaysinline nounwind {
start:
  %address = ptrtoint ptr %place to i64
  %long_site = zext i32 %site to i64
  ; The spot (the site and the calls), and the reader.
  %from = or i64 %its_from, %long_site
  %is_argument = icmp ne i64 %parameter, 0
  br i1 %is_argument, label %argument, label %look

argument:
  %quiet = and i64 %all_quiet, %parameter
  %is_quiet = icmp ne i64 %quiet, 0
  ; An index out of bounds gives an address near `HostChecks::NOWHERE`.
  %high = lshr i64 %address, 61
  %is_near = icmp eq i64 %high, 0
  %long = zext i32 %shift to i64
  %size = shl i64 1, %long
  %low = sub i64 %size, 1
  %rest = and i64 %address, %low
  %is_whole = icmp eq i64 %rest, 0
  %is_there = and i1 %is_near, %is_whole
  %nothing = and i1 %is_quiet, %is_there
  br i1 %nothing, label %quick, label %look, !prof !1

look:
  %page = call ptr @weft.page(ptr %near, i64 %address)
  %key.at = getelementptr inbounds %page, ptr %page, i64 0, i32 5
  %key = load i64, ptr %key.at
  %is_known = call i1 @weft.known(i64 %key, i64 %address, i32 %shift)
  %copies = call i1 @weft.copies(ptr %seen, i32 %copy)
  %is_new = xor i1 %copies, true
  %may = and i1 %is_known, %is_new
  br i1 %may, label %known, label %slow, !prof !1

known:
  %offset = and i64 %address, 2047
  %by = zext i32 %shift to i64
  %cell = lshr i64 %offset, %by
  %writes.at = getelementptr inbounds %page, ptr %page, i64 0, i32 1
  %writes = load ptr, ptr %writes.at
  %write = getelementptr inbounds %write, ptr %writes, i64 %cell
  %its_time = load i64, ptr %write, align 8
  %block = trunc i64 %time to i32
  %its_block = trunc i64 %its_time to i32
  %is_own = icmp eq i32 %its_block, %block
  %is_before = icmp ult i64 %its_time, %time
  ; The block made the last write in an earlier epoch: the bytes are written, and the write cannot race.
  %is_behind = and i1 %is_own, %is_before
  br i1 %is_behind, label %reads, label %careful

careful:
  %word.at = call ptr @weft.word(ptr %page, i64 %address)
  %word = load i64, ptr %word.at
  %mask = call i64 @weft.mask(i64 %address, i32 %shift)
  %unwritten = and i64 %word, %mask
  %is_written = icmp eq i64 %unwritten, 0
  %alone = call i1 @weft.alone(ptr %write, ptr %seen, i64 %time, i64 %from, i64 %address)
  %calm = and i1 %is_written, %alone
  br i1 %calm, label %reads, label %slow, !prof !1

reads:
  %reads.at = getelementptr inbounds %page, ptr %page, i64 0, i32 2
  %all_reads = load ptr, ptr %reads.at
  %one = getelementptr inbounds %reads, ptr %all_reads, i64 %cell
  br i1 %notes, label %ask, label %several

several:
  ; In code with work-item loops, only barriers order the threads of a block, and nothing orders different blocks.
  ; Records of two lanes that read in this epoch at the same spot are sufficient to find a race.
  %their_time = load i64, ptr %one, align 4
  %their_spot.at = getelementptr inbounds %reads, ptr %one, i64 0, i32 2
  %their_spot = load i32, ptr %their_spot.at
  %their_lanes.at = getelementptr inbounds %reads, ptr %one, i64 0, i32 4
  %their_lanes = load i32, ptr %their_lanes.at
  %their_who.at = getelementptr inbounds %reads, ptr %one, i64 0, i32 3
  %their_who = load i32, ptr %their_who.at
  %spot = trunc i64 %from to i32
  %at_once = icmp eq i64 %their_time, %time
  %at_place = icmp eq i32 %their_spot, %spot
  %but_one = sub i32 %their_lanes, 1
  %all_but_one = and i32 %their_lanes, %but_one
  %are_several = icmp ne i32 %all_but_one, 0
  %their_how = and i32 %their_who, 7
  %are_plain = icmp eq i32 %their_how, 0
  %there = and i1 %at_once, %at_place
  %plain_ones = and i1 %are_several, %are_plain
  %settled = and i1 %there, %plain_ones
  br i1 %settled, label %quick, label %ask

ask:
  %takes = call i1 @weft.takes(ptr %one, i64 %time, i64 %from)
  br i1 %takes, label %add, label %other

add:
  call void @weft.add(ptr %one, i32 %lane)
  br label %quick

other:
  %second.at = getelementptr inbounds %page, ptr %page, i64 0, i32 3
  %seconds = load ptr, ptr %second.at
  %one_time = load i64, ptr %one, align 4
  %is_now = icmp eq i64 %one_time, %time
  %is_second = icmp ne ptr %seconds, null
  %may_do = and i1 %is_now, %is_second
  br i1 %may_do, label %crowd, label %alone_here

crowd:
  ; Records of two other warps that read in this epoch are sufficient, if only barriers order this thread after others.
  %two = getelementptr inbounds %reads, ptr %seconds, i64 %cell
  %two_time = load i64, ptr %two, align 4
  %times = xor i64 %two_time, %time
  %one_who.at = getelementptr inbounds %reads, ptr %one, i64 0, i32 3
  %one_who = load i32, ptr %one_who.at
  %two_who.at = getelementptr inbounds %reads, ptr %two, i64 0, i32 3
  %two_who = load i32, ptr %two_who.at
  %one_lanes.at = getelementptr inbounds %reads, ptr %one, i64 0, i32 4
  %one_lanes = load i32, ptr %one_lanes.at
  %two_lanes.at = getelementptr inbounds %reads, ptr %two, i64 0, i32 4
  %two_lanes = load i32, ptr %two_lanes.at
  %knows.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 10
  %knows = load i32, ptr %knows.at
  %long_who = lshr i64 %from, 32
  %own_who = trunc i64 %long_who to i32
  %one_and_own = xor i32 %one_who, %own_who
  %two_and_own = xor i32 %two_who, %own_who
  %one_and_two = xor i32 %one_who, %two_who
  %one_warp = and i32 %one_and_own, 248
  %two_warp = and i32 %two_and_own, 248
  %warps = and i32 %one_and_two, 248
  %steps_of_both = or i32 %one_who, %two_who
  %steps_bit = and i32 %steps_of_both, 4
  %more = or i32 %steps_bit, %knows
  %more_long = zext i32 %more to i64
  %none_of = or i64 %times, %more_long
  %is_plain = icmp eq i64 %none_of, 0
  %is_third_a = icmp ne i32 %one_warp, 0
  %is_third_b = icmp ne i32 %two_warp, 0
  %are_two = icmp ne i32 %warps, 0
  %has_one = icmp ne i32 %one_lanes, 0
  %has_two = icmp ne i32 %two_lanes, 0
  %is_third = and i1 %is_third_a, %is_third_b
  %are_there = and i1 %has_one, %has_two
  %are_others = and i1 %is_third, %are_two
  %are_read = and i1 %are_others, %are_there
  %enough = and i1 %are_read, %is_plain
  br i1 %enough, label %quick, label %alone_here

alone_here:
  %steps = call i1 @weft.steps(ptr %one)
  br i1 %steps, label %slow, label %plain, !prof !2

plain:
  %free = call i1 @weft.free(ptr %one, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  br i1 %free, label %set, label %beside

set:
  call void @weft.set(ptr %one, i64 %time, i64 %from, i32 %lane)
  br label %quick

beside:
  %is_none = icmp eq ptr %seconds, null
  br i1 %is_none, label %slow, label %second, !prof !2

second:
  %other_two = getelementptr inbounds %reads, ptr %seconds, i64 %cell
  %steps_too = call i1 @weft.steps(ptr %other_two)
  br i1 %steps_too, label %slow, label %plain_too, !prof !2

plain_too:
  %takes_too = call i1 @weft.takes(ptr %other_two, i64 %time, i64 %from)
  br i1 %takes_too, label %add_too, label %other_too

add_too:
  call void @weft.add(ptr %other_two, i32 %lane)
  br label %quick

other_too:
  %free_too = call i1 @weft.free(ptr %other_two, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  br i1 %free_too, label %set_too, label %both

both:
  ; The same for a thread of one of the two warps, at another spot.
  %first_time = load i64, ptr %one, align 4
  %second_time = load i64, ptr %other_two, align 4
  %first_differs = xor i64 %first_time, %time
  %second_differs = xor i64 %second_time, %time
  %time_differs = or i64 %first_differs, %second_differs
  %first_who.at = getelementptr inbounds %reads, ptr %one, i64 0, i32 3
  %first_who = load i32, ptr %first_who.at
  %second_who.at = getelementptr inbounds %reads, ptr %other_two, i64 0, i32 3
  %second_who = load i32, ptr %second_who.at
  %whos_differ = xor i32 %first_who, %second_who
  %warps_differ = and i32 %whos_differ, 248
  %still_knows.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 10
  %still_knows = load i32, ptr %still_knows.at
  %are_now = icmp eq i64 %time_differs, 0
  %are_apart = icmp ne i32 %warps_differ, 0
  %knows_none = icmp eq i32 %still_knows, 0
  %both_now = and i1 %are_now, %are_apart
  %will_do = and i1 %both_now, %knows_none
  br i1 %will_do, label %quick, label %slow

set_too:
  call void @weft.set(ptr %other_two, i64 %time, i64 %from, i32 %lane)
  br label %quick

quick:
  call void @weft.note(ptr %seen, i64 %from, i1 %notes)
  ret ptr %place

slow:
  %access.at = getelementptr i8, ptr %context, i64 %at_access
  %access = load ptr, ptr %access.at
  %goes = call ptr %access(ptr %context, i32 %site, ptr %place, i32 %bits, i64 0, i32 %copy) #0
  ret ptr %goes
}

define ptr @weft.write(ptr %context, i64 %at_access, ptr %seen, ptr %near, i64 %time, i64 %its_from, i64 %whose_reads, i32 %lane,
                       i1 %notes, ptr %place, i32 %site, i32 %bits, i32 %shift, i32 %copy, i64 %value)
                       alwaysinline nounwind {
start:
  %address = ptrtoint ptr %place to i64
  %long_site = zext i32 %site to i64
  %from = or i64 %its_from, %long_site
  %page = call ptr @weft.page(ptr %near, i64 %address)
  %key.at = getelementptr inbounds %page, ptr %page, i64 0, i32 6
  %key = load i64, ptr %key.at
  %is_known = call i1 @weft.known(i64 %key, i64 %address, i32 %shift)
  %copies = call i1 @weft.copies(ptr %seen, i32 %copy)
  %is_new = xor i1 %copies, true
  %may = and i1 %is_known, %is_new
  br i1 %may, label %known, label %slow, !prof !1

known:
  %offset = and i64 %address, 2047
  %by = zext i32 %shift to i64
  %cell = lshr i64 %offset, %by
  %writes.at = getelementptr inbounds %page, ptr %page, i64 0, i32 1
  %writes = load ptr, ptr %writes.at
  %write = getelementptr inbounds %write, ptr %writes, i64 %cell
  %alone = call i1 @weft.alone(ptr %write, ptr %seen, i64 %time, i64 %from, i64 %address)
  br i1 %alone, label %reads, label %slow, !prof !1

reads:
  %reads.at = getelementptr inbounds %page, ptr %page, i64 0, i32 2
  %all_reads = load ptr, ptr %reads.at
  %none = icmp eq ptr %all_reads, null
  br i1 %none, label %remember, label %one

one:
  %first_reads = getelementptr inbounds %reads, ptr %all_reads, i64 %cell
  %free = call i1 @weft.free(ptr %first_reads, ptr %seen, i64 %time, i64 %whose_reads, i32 %lane, i64 %address)
  br i1 %free, label %more, label %slow, !prof !1

more:
  %second.at = getelementptr inbounds %page, ptr %page, i64 0, i32 3
  %seconds = load ptr, ptr %second.at
  %no_second = icmp eq ptr %seconds, null
  br i1 %no_second, label %clear, label %two

two:
  %reads_too = getelementptr inbounds %reads, ptr %seconds, i64 %cell
  %free_too = call i1 @weft.free(ptr %reads_too, ptr %seen, i64 %time, i64 %whose_reads, i32 %lane, i64 %address)
  br i1 %free_too, label %clear_too, label %slow, !prof !1

clear_too:
  %lanes_too.at = getelementptr inbounds %reads, ptr %reads_too, i64 0, i32 4
  store i32 0, ptr %lanes_too.at
  br label %clear

clear:
  %lanes.at = getelementptr inbounds %reads, ptr %first_reads, i64 0, i32 4
  store i32 0, ptr %lanes.at
  br label %remember

remember:
  %word.at = call ptr @weft.word(ptr %page, i64 %address)
  %word = load i64, ptr %word.at
  %mask = call i64 @weft.mask(i64 %address, i32 %shift)
  %unwritten = and i64 %word, %mask
  %is_written = icmp eq i64 %unwritten, 0
  br i1 %is_written, label %set, label %first_time

first_time:
  %written = xor i64 %mask, -1
  %old_word = atomicrmw and ptr %word.at, i64 %written monotonic
  br label %set

set:
  store i64 %time, ptr %write, align 8
  %its_from.at = getelementptr inbounds %write, ptr %write, i64 0, i32 2
  store i64 %from, ptr %its_from.at, align 8
  call void @weft.note(ptr %seen, i64 %from, i1 %notes)
  ret ptr %place

slow:
  %access.at = getelementptr i8, ptr %context, i64 %at_access
  %access = load ptr, ptr %access.at
  %goes = call ptr %access(ptr %context, i32 %site, ptr %place, i32 %bits, i64 %value, i32 %copy) #0
  ret ptr %goes
}

; The records of one-byte and two-byte elements are packed (`packed.rs` of the runtime): a cell has the number of an
; event and a lane.

; Fields: events, n_events, room, slots.
%directory = type { ptr,   i32,     i32, [128 x i16] }

; The event of a cell.
define internal ptr @weft.event(ptr %directory, i16 %cell) alwaysinline nounwind {
  %events = load ptr, ptr %directory
  %number = lshr i16 %cell, 5
  %index = zext i16 %number to i64
  %event = getelementptr inbounds %reads, ptr %events, i64 %index
  ret ptr %event
}

; The lanes of a cell: the event's lanes, or the cell's own lane. A cell of 0 has none.
define internal i32 @weft.lanes(ptr %event, i16 %cell) alwaysinline nounwind {
  %lanes.at = getelementptr inbounds %reads, ptr %event, i64 0, i32 4
  %several = load i32, ptr %lanes.at
  %long = zext i16 %cell to i32
  %number = and i32 %long, 31
  %one = shl i32 1, %number
  %is_none = icmp eq i16 %cell, 0
  %own = select i1 %is_none, i32 0, i32 %one
  %are_several = icmp ne i32 %several, 0
  %lanes = select i1 %are_several, i32 %several, i32 %own
  ret i32 %lanes
}

; `weft.free` for an event and the lanes of a cell.
define internal i1 @weft.event_free(ptr %event, i32 %lanes, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
                    alwaysinline nounwind {
  %its_time = load i64, ptr %event, align 4
  %block = trunc i64 %time to i32
  %its_block = trunc i64 %its_time to i32
  %own = icmp eq i32 %its_block, %block
  %before = icmp ult i64 %its_time, %time
  %who.at = getelementptr inbounds %reads, ptr %event, i64 0, i32 3
  %its_who = load i32, ptr %who.at
  %long_who = lshr i64 %from, 32
  %own_who = trunc i64 %long_who to i32
  %none = icmp eq i32 %lanes, 0
  ; The five bits of the warp's number.
  %differs = xor i32 %its_who, %own_who
  %other = and i32 %differs, 248
  %same_warp = icmp eq i32 %other, 0
  %same_lane = icmp eq i32 %lanes, %lane
  %same = and i1 %same_warp, %same_lane
  %first = call i32 @weft.first(ptr %seen, i64 %address, i32 %block)
  %old = icmp ult i32 %its_block, %first
  %behind = or i1 %before, %same
  %own_behind = and i1 %own, %behind
  %unused = or i1 %none, %old
  %free = or i1 %unused, %own_behind
  ret i1 %free
}

; The cell that records an access; 0 if there is no room for its event.
define internal i16 @weft.cell(ptr %directory, i64 %time, i64 %from, i32 %lane) alwaysinline nounwind {
start:
  ; The same as `slot` of `packed.rs`.
  %spot = trunc i64 %from to i32
  %long_who = lshr i64 %from, 35
  %shifted = trunc i64 %long_who to i32
  %warp = and i32 %shifted, 31
  %sum = add i32 %spot, %warp
  %slot = and i32 %sum, 127
  %index = zext i32 %slot to i64
  %number.at = getelementptr inbounds %directory, ptr %directory, i64 0, i32 3, i64 %index
  %number = load i16, ptr %number.at
  %cell = shl i16 %number, 5
  %event = call ptr @weft.event(ptr %directory, i16 %cell)
  %is_it = call i1 @weft.takes(ptr %event, i64 %time, i64 %from)
  %lanes.at = getelementptr inbounds %reads, ptr %event, i64 0, i32 4
  %lanes = load i32, ptr %lanes.at
  %is_single = icmp eq i32 %lanes, 0
  %is_known = and i1 %is_it, %is_single
  %lane_number = call i32 @llvm.cttz.i32(i32 %lane, i1 true)
  %short = trunc i32 %lane_number to i16
  br i1 %is_known, label %known, label %new, !prof !1

known:
  %with_lane = or i16 %cell, %short
  br label %end

new:
  %n_events.at = getelementptr inbounds %directory, ptr %directory, i64 0, i32 1
  %n_events = load i32, ptr %n_events.at
  %room.at = getelementptr inbounds %directory, ptr %directory, i64 0, i32 2
  %room = load i32, ptr %room.at
  %has_room = icmp ult i32 %n_events, %room
  br i1 %has_room, label %add, label %end, !prof !1

add:
  %more = add i32 %n_events, 1
  store i32 %more, ptr %n_events.at
  %new_number = trunc i32 %n_events to i16
  store i16 %new_number, ptr %number.at
  %new_cell = shl i16 %new_number, 5
  %place = call ptr @weft.event(ptr %directory, i16 %new_cell)
  call void @weft.set(ptr %place, i64 %time, i64 %from, i32 0)
  %new_with_lane = or i16 %new_cell, %short
  br label %end

end:
  %result = phi i16 [ %with_lane, %known ], [ 0, %new ], [ %new_with_lane, %add ]
  ret i16 %result
}

declare i32 @llvm.cttz.i32(i32, i1)

; `weft.read` for one-byte and two-byte elements.
define ptr @weft.read_small(ptr %context, i64 %at_access, ptr %seen, ptr %near, i64 %time, i64 %its_from, i64 %all_quiet,
                            i32 %lane, i1 %notes, ptr %place, i32 %site, i32 %bits, i32 %shift, i32 %copy, i64 %parameter)
                            alwaysinline nounwind {
start:
  %address = ptrtoint ptr %place to i64
  %long_site = zext i32 %site to i64
  %from = or i64 %its_from, %long_site
  %is_argument = icmp ne i64 %parameter, 0
  br i1 %is_argument, label %argument, label %look

argument:
  %quiet = and i64 %all_quiet, %parameter
  %is_quiet = icmp ne i64 %quiet, 0
  ; An index out of bounds gives an address near `HostChecks::NOWHERE`.
  %high = lshr i64 %address, 61
  %is_near = icmp eq i64 %high, 0
  %long = zext i32 %shift to i64
  %size = shl i64 1, %long
  %low = sub i64 %size, 1
  %rest = and i64 %address, %low
  %is_whole = icmp eq i64 %rest, 0
  %is_there = and i1 %is_near, %is_whole
  %nothing = and i1 %is_quiet, %is_there
  br i1 %nothing, label %quick, label %look, !prof !1

look:
  %page = call ptr @weft.page(ptr %near, i64 %address)
  %key.at = getelementptr inbounds %page, ptr %page, i64 0, i32 5
  %key = load i64, ptr %key.at
  %is_known = call i1 @weft.known(i64 %key, i64 %address, i32 %shift)
  %copies = call i1 @weft.copies(ptr %seen, i32 %copy)
  %is_new = xor i1 %copies, true
  %may = and i1 %is_known, %is_new
  br i1 %may, label %known, label %slow, !prof !1

known:
  %offset = and i64 %address, 2047
  %by = zext i32 %shift to i64
  %cell = lshr i64 %offset, %by
  %directory.at = getelementptr inbounds %page, ptr %page, i64 0, i32 3
  %directory = load ptr, ptr %directory.at
  %writes.at = getelementptr inbounds %page, ptr %page, i64 0, i32 1
  %writes = load ptr, ptr %writes.at
  %write.at = getelementptr inbounds i16, ptr %writes, i64 %cell
  %write = load i16, ptr %write.at
  %written = call ptr @weft.event(ptr %directory, i16 %write)
  %its_time = load i64, ptr %written, align 4
  %block = trunc i64 %time to i32
  %its_block = trunc i64 %its_time to i32
  %is_own = icmp eq i32 %its_block, %block
  %is_before = icmp ult i64 %its_time, %time
  ; As in `weft.read`.
  %is_behind = and i1 %is_own, %is_before
  br i1 %is_behind, label %reads, label %careful

careful:
  %word.at = call ptr @weft.word(ptr %page, i64 %address)
  %word = load i64, ptr %word.at
  %mask = call i64 @weft.mask(i64 %address, i32 %shift)
  %unwritten = and i64 %word, %mask
  %is_written = icmp eq i64 %unwritten, 0
  %writer = call i32 @weft.lanes(ptr %written, i16 %write)
  %alone = call i1 @weft.event_free(ptr %written, i32 %writer, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  %calm = and i1 %is_written, %alone
  br i1 %calm, label %reads, label %slow, !prof !1

reads:
  %reads.at = getelementptr inbounds %page, ptr %page, i64 0, i32 2
  %all_reads = load ptr, ptr %reads.at
  %one.at = getelementptr inbounds i16, ptr %all_reads, i64 %cell
  %one = load i16, ptr %one.at
  %first = call ptr @weft.event(ptr %directory, i16 %one)
  %first_lanes = call i32 @weft.lanes(ptr %first, i16 %one)
  %takes = call i1 @weft.takes(ptr %first, i64 %time, i64 %from)
  br i1 %takes, label %among, label %several

among:
  %common = and i32 %first_lanes, %lane
  %is_there_already = icmp ne i32 %common, 0
  br i1 %is_there_already, label %quick, label %several

several:
  ; In code with work-item loops, two lanes that read in this epoch at the same spot are sufficient, as in `weft.read`.
  %first_time = load i64, ptr %first, align 4
  %first_spot.at = getelementptr inbounds %reads, ptr %first, i64 0, i32 2
  %first_spot = load i32, ptr %first_spot.at
  %first_who.at = getelementptr inbounds %reads, ptr %first, i64 0, i32 3
  %first_who = load i32, ptr %first_who.at
  %spot = trunc i64 %from to i32
  %is_now = icmp eq i64 %first_time, %time
  %at_place = icmp eq i32 %first_spot, %spot
  %but_one = sub i32 %first_lanes, 1
  %all_but_one = and i32 %first_lanes, %but_one
  %are_several = icmp ne i32 %all_but_one, 0
  %first_how = and i32 %first_who, 7
  %are_plain = icmp eq i32 %first_how, 0
  %there = and i1 %is_now, %at_place
  %plain_ones = and i1 %are_several, %are_plain
  %enough = and i1 %there, %plain_ones
  %are_loops = xor i1 %notes, true
  %settled = and i1 %enough, %are_loops
  br i1 %settled, label %quick, label %other

other:
  ; The runtime handles another lane of the same event, which needs a new event, and atomic operations.
  %step_bit = and i32 %first_who, 4
  %is_step = icmp ne i32 %step_bit, 0
  %is_not_for_code = or i1 %takes, %is_step
  br i1 %is_not_for_code, label %slow, label %plain, !prof !2

plain:
  %free = call i1 @weft.event_free(ptr %first, i32 %first_lanes, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  br i1 %free, label %set, label %second

second:
  %cells = lshr i64 2048, %by
  %two_cell = add i64 %cells, %cell
  %two.at = getelementptr inbounds i16, ptr %all_reads, i64 %two_cell
  %two = load i16, ptr %two.at
  %other_two = call ptr @weft.event(ptr %directory, i16 %two)
  %two_lanes = call i32 @weft.lanes(ptr %other_two, i16 %two)
  %takes_too = call i1 @weft.takes(ptr %other_two, i64 %time, i64 %from)
  %common_too = and i32 %two_lanes, %lane
  %has_lane = icmp ne i32 %common_too, 0
  %is_there_too = and i1 %takes_too, %has_lane
  br i1 %is_there_too, label %quick, label %others

others:
  %two_time = load i64, ptr %other_two, align 4
  %two_who.at = getelementptr inbounds %reads, ptr %other_two, i64 0, i32 3
  %two_who = load i32, ptr %two_who.at
  %two_step_bit = and i32 %two_who, 4
  %two_is_step = icmp ne i32 %two_step_bit, 0
  br i1 %two_is_step, label %slow, label %both, !prof !2

both:
  ; Records of two warps that read in this epoch are sufficient, if only barriers order this thread after others.
  %whos_differ = xor i32 %first_who, %two_who
  %warps_differ = and i32 %whos_differ, 248
  %knows.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 10
  %knows = load i32, ptr %knows.at
  %two_is_now = icmp eq i64 %two_time, %time
  %two_is_some = icmp ne i32 %two_lanes, 0
  %are_apart = icmp ne i32 %warps_differ, 0
  %knows_none = icmp eq i32 %knows, 0
  %are_now = and i1 %is_now, %two_is_now
  %are_there = and i1 %two_is_some, %are_apart
  %are_two = and i1 %are_now, %are_there
  %will_do = and i1 %are_two, %knows_none
  br i1 %will_do, label %quick, label %plain_too

plain_too:
  br i1 %takes_too, label %slow, label %free_too

free_too:
  %is_free_too =
    call i1 @weft.event_free(ptr %other_two, i32 %two_lanes, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  br i1 %is_free_too, label %set, label %slow

set:
  %to = phi ptr [ %one.at, %plain ], [ %two.at, %free_too ]
  %new = call i16 @weft.cell(ptr %directory, i64 %time, i64 %from, i32 %lane)
  %is_event = icmp ne i16 %new, 0
  br i1 %is_event, label %keep, label %slow, !prof !1

keep:
  store i16 %new, ptr %to
  br label %quick

quick:
  call void @weft.note(ptr %seen, i64 %from, i1 %notes)
  ret ptr %place

slow:
  %access.at = getelementptr i8, ptr %context, i64 %at_access
  %access = load ptr, ptr %access.at
  %goes = call ptr %access(ptr %context, i32 %site, ptr %place, i32 %bits, i64 0, i32 %copy) #0
  ret ptr %goes
}

; `weft.write` for one-byte and two-byte elements.
define ptr @weft.write_small(ptr %context, i64 %at_access, ptr %seen, ptr %near, i64 %time, i64 %its_from, i64 %whose_reads,
                             i32 %lane, i1 %notes, ptr %place, i32 %site, i32 %bits, i32 %shift, i32 %copy, i64 %value)
                             alwaysinline nounwind {
start:
  %address = ptrtoint ptr %place to i64
  %long_site = zext i32 %site to i64
  ; An event of writes has the encoding of reads: a warp and lanes.
  %from = or i64 %whose_reads, %long_site
  %page = call ptr @weft.page(ptr %near, i64 %address)
  %key.at = getelementptr inbounds %page, ptr %page, i64 0, i32 6
  %key = load i64, ptr %key.at
  %is_known = call i1 @weft.known(i64 %key, i64 %address, i32 %shift)
  %copies = call i1 @weft.copies(ptr %seen, i32 %copy)
  %is_new = xor i1 %copies, true
  %may = and i1 %is_known, %is_new
  br i1 %may, label %known, label %slow, !prof !1

known:
  %offset = and i64 %address, 2047
  %by = zext i32 %shift to i64
  %cell = lshr i64 %offset, %by
  %directory.at = getelementptr inbounds %page, ptr %page, i64 0, i32 3
  %directory = load ptr, ptr %directory.at
  %writes.at = getelementptr inbounds %page, ptr %page, i64 0, i32 1
  %writes = load ptr, ptr %writes.at
  %write.at = getelementptr inbounds i16, ptr %writes, i64 %cell
  %write = load i16, ptr %write.at
  %written = call ptr @weft.event(ptr %directory, i16 %write)
  %writer = call i32 @weft.lanes(ptr %written, i16 %write)
  %alone = call i1 @weft.event_free(ptr %written, i32 %writer, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  br i1 %alone, label %event, label %slow, !prof !1

event:
  %new = call i16 @weft.cell(ptr %directory, i64 %time, i64 %from, i32 %lane)
  %is_event = icmp ne i16 %new, 0
  br i1 %is_event, label %reads, label %slow, !prof !1

reads:
  %reads.at = getelementptr inbounds %page, ptr %page, i64 0, i32 2
  %all_reads = load ptr, ptr %reads.at
  %none = icmp eq ptr %all_reads, null
  br i1 %none, label %remember, label %some

some:
  %one.at = getelementptr inbounds i16, ptr %all_reads, i64 %cell
  %one = load i16, ptr %one.at
  %first = call ptr @weft.event(ptr %directory, i16 %one)
  %first_lanes = call i32 @weft.lanes(ptr %first, i16 %one)
  %free = call i1 @weft.event_free(ptr %first, i32 %first_lanes, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  %cells = lshr i64 2048, %by
  %two_cell = add i64 %cells, %cell
  %two.at = getelementptr inbounds i16, ptr %all_reads, i64 %two_cell
  %two = load i16, ptr %two.at
  %second = call ptr @weft.event(ptr %directory, i16 %two)
  %two_lanes = call i32 @weft.lanes(ptr %second, i16 %two)
  %free_too = call i1 @weft.event_free(ptr %second, i32 %two_lanes, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  %are_free = and i1 %free, %free_too
  br i1 %are_free, label %clear, label %slow, !prof !1

clear:
  store i16 0, ptr %one.at
  store i16 0, ptr %two.at
  br label %remember

remember:
  %word.at = call ptr @weft.word(ptr %page, i64 %address)
  %word = load i64, ptr %word.at
  %mask = call i64 @weft.mask(i64 %address, i32 %shift)
  %unwritten = and i64 %word, %mask
  %is_written = icmp eq i64 %unwritten, 0
  br i1 %is_written, label %set, label %first_time

first_time:
  %others = xor i64 %mask, -1
  %old_word = atomicrmw and ptr %word.at, i64 %others monotonic
  br label %set

set:
  store i16 %new, ptr %write.at
  call void @weft.note(ptr %seen, i64 %from, i1 %notes)
  ret ptr %place

slow:
  %access.at = getelementptr i8, ptr %context, i64 %at_access
  %access = load ptr, ptr %access.at
  %goes = call ptr %access(ptr %context, i32 %site, ptr %place, i32 %bits, i64 %value, i32 %copy) #0
  ret ptr %goes
}

; A relaxed atomic operation that writes, in code with work-item loops. It is stored among the reads; `how` has its kind
; bits.
define ptr @weft.step(ptr %context, i64 %at_access, ptr %seen, ptr %near, i64 %time, i64 %its_from, i64 %all_quiet, i32 %lane,
                      i1 %notes, ptr %place, i32 %site, i32 %bits, i32 %shift, i32 %copy, i64 %how)
                      alwaysinline nounwind {
start:
  %address = ptrtoint ptr %place to i64
  %long_site = zext i32 %site to i64
  %high_how = shl i64 %how, 32
  %read_from = or i64 %its_from, %long_site
  %from = or i64 %read_from, %high_how
  %page = call ptr @weft.page(ptr %near, i64 %address)
  %key.at = getelementptr inbounds %page, ptr %page, i64 0, i32 5
  %key = load i64, ptr %key.at
  %is_known = call i1 @weft.known(i64 %key, i64 %address, i32 %shift)
  br i1 %is_known, label %known, label %slow, !prof !1

known:
  %offset = and i64 %address, 2047
  %by = zext i32 %shift to i64
  %cell = lshr i64 %offset, %by
  %writes.at = getelementptr inbounds %page, ptr %page, i64 0, i32 1
  %writes = load ptr, ptr %writes.at
  %write = getelementptr inbounds %write, ptr %writes, i64 %cell
  %its_time = load i64, ptr %write, align 8
  %block = trunc i64 %time to i32
  %its_block = trunc i64 %its_time to i32
  %is_own = icmp eq i32 %its_block, %block
  %is_before = icmp ult i64 %its_time, %time
  %is_behind = and i1 %is_own, %is_before
  br i1 %is_behind, label %reads, label %careful

careful:
  %word.at = call ptr @weft.word(ptr %page, i64 %address)
  %word = load i64, ptr %word.at
  %mask = call i64 @weft.mask(i64 %address, i32 %shift)
  %unwritten = and i64 %word, %mask
  %is_written = icmp eq i64 %unwritten, 0
  %alone = call i1 @weft.alone(ptr %write, ptr %seen, i64 %time, i64 %from, i64 %address)
  %calm = and i1 %is_written, %alone
  br i1 %calm, label %reads, label %slow, !prof !1

reads:
  %reads.at = getelementptr inbounds %page, ptr %page, i64 0, i32 2
  %all_reads = load ptr, ptr %reads.at
  %one = getelementptr inbounds %reads, ptr %all_reads, i64 %cell
  %takes = call i1 @weft.takes(ptr %one, i64 %time, i64 %from)
  br i1 %takes, label %add, label %other

add:
  call void @weft.add(ptr %one, i32 %lane)
  ret ptr %place

other:
  ; Atomic operations of the block in this epoch with the same kind bits do not race with this one.
  %free = call i1 @weft.hidden(ptr %one, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  %alike = call i1 @weft.alike(ptr %one, i64 %time, i64 %how)
  %is_well = or i1 %free, %alike
  br i1 %is_well, label %second, label %slow

second:
  %second.at = getelementptr inbounds %page, ptr %page, i64 0, i32 3
  %seconds = load ptr, ptr %second.at
  %is_none = icmp eq ptr %seconds, null
  br i1 %is_none, label %first_only, label %two

first_only:
  br i1 %free, label %set, label %slow

two:
  %other_two = getelementptr inbounds %reads, ptr %seconds, i64 %cell
  %free_too = call i1 @weft.hidden(ptr %other_two, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  %alike_too = call i1 @weft.alike(ptr %other_two, i64 %time, i64 %how)
  %is_well_too = or i1 %free_too, %alike_too
  br i1 %is_well_too, label %which, label %slow

which:
  br i1 %free, label %set, label %beside

set:
  call void @weft.set(ptr %one, i64 %time, i64 %from, i32 %lane)
  ret ptr %place

beside:
  %takes_too = call i1 @weft.takes(ptr %other_two, i64 %time, i64 %from)
  br i1 %takes_too, label %add_too, label %other_too

add_too:
  call void @weft.add(ptr %other_two, i32 %lane)
  ret ptr %place

other_too:
  br i1 %free_too, label %set_too, label %both

set_too:
  call void @weft.set(ptr %other_two, i64 %time, i64 %from, i32 %lane)
  ret ptr %place

both:
  ; Records of two warps with the same kind bits are sufficient.
  %one_who.at = getelementptr inbounds %reads, ptr %one, i64 0, i32 3
  %one_who = load i32, ptr %one_who.at
  %two_who.at = getelementptr inbounds %reads, ptr %other_two, i64 0, i32 3
  %two_who = load i32, ptr %two_who.at
  %whos_differ = xor i32 %one_who, %two_who
  %warps_differ = and i32 %whos_differ, 248
  %are_apart = icmp ne i32 %warps_differ, 0
  br i1 %are_apart, label %done, label %slow

done:
  ret ptr %place

slow:
  %access.at = getelementptr i8, ptr %context, i64 %at_access
  %access = load ptr, ptr %access.at
  %goes = call ptr %access(ptr %context, i32 %site, ptr %place, i32 %bits, i64 0, i32 %copy) #0
  ret ptr %goes
}

; `Now::is_free` for an atomic operation. It must not replace the reads of its own block, because atomic operations of
; other blocks race with these.
define internal i1 @weft.hidden(ptr %reads, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address) alwaysinline nounwind {
  %free = call i1 @weft.free(ptr %reads, ptr %seen, i64 %time, i64 %from, i32 %lane, i64 %address)
  %its_time = load i64, ptr %reads, align 4
  %lanes.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 4
  %lanes = load i32, ptr %lanes.at
  %steps = call i1 @weft.steps(ptr %reads)
  %before = icmp ne i64 %its_time, %time
  %block = trunc i64 %time to i32
  %its_block = trunc i64 %its_time to i32
  %not_own = icmp ne i32 %its_block, %block
  %scratch.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 14
  %scratch = load i64, ptr %scratch.at
  %bytes.at = getelementptr inbounds %seen, ptr %seen, i64 0, i32 15
  %bytes = load i64, ptr %bytes.at
  %offset = sub i64 %address, %scratch
  ; Other blocks do not access this block's scratch memory, so reads of earlier epochs may be replaced there.
  %inside = icmp ult i64 %offset, %bytes
  %done = and i1 %inside, %before
  %old = or i1 %not_own, %done
  %none = icmp eq i32 %lanes, 0
  %other = or i1 %old, %none
  %hides = or i1 %other, %steps
  %hidden = and i1 %free, %hides
  ret i1 %hidden
}

; Whether the record is of atomic operations in this epoch with the same kind bits.
define internal i1 @weft.alike(ptr %reads, i64 %time, i64 %how) alwaysinline nounwind {
  %its_time = load i64, ptr %reads, align 4
  %who.at = getelementptr inbounds %reads, ptr %reads, i64 0, i32 3
  %its_who = load i32, ptr %who.at
  %its_how = and i32 %its_who, 7
  %long_how = zext i32 %its_how to i64
  %now = icmp eq i64 %its_time, %time
  %same = icmp eq i64 %long_how, %how
  %alike = and i1 %now, %same
  ret i1 %alike
}

; Whether no bit in a range of a bitmap of unwritten bytes is set. If unwritten reads are not checked, the bitmap is
; null and the result true.
define i1 @weft.written(ptr %bits, i64 %from, i64 %to) nounwind {
start:
  %none = icmp eq ptr %bits, null
  %empty = icmp uge i64 %from, %to
  %nothing = or i1 %none, %empty
  br i1 %nothing, label %yes, label %some

some:
  %first = lshr i64 %from, 6
  %last_bit = sub i64 %to, 1
  %last = lshr i64 %last_bit, 6
  %skipped = and i64 %from, 63
  %behind = shl i64 -1, %skipped
  %taken = and i64 %last_bit, 63
  %beyond = sub i64 63, %taken
  %before = lshr i64 -1, %beyond
  br label %turn

turn:
  %at = phi i64 [ %first, %some ], [ %next, %go_on ]
  %word.at = getelementptr inbounds i64, ptr %bits, i64 %at
  %word = load i64, ptr %word.at
  %is_first = icmp eq i64 %at, %first
  %is_last = icmp eq i64 %at, %last
  %low = select i1 %is_first, i64 %behind, i64 -1
  %high = select i1 %is_last, i64 %before, i64 -1
  %own = and i64 %low, %high
  %unwritten = and i64 %word, %own
  %clear = icmp eq i64 %unwritten, 0
  br i1 %clear, label %go_on, label %no

go_on:
  %next = add i64 %at, 1
  br i1 %is_last, label %yes, label %turn

yes:
  ret i1 true

no:
  ret i1 false
}

; Whether all bytes of an element are written, by such a bitmap; true if it is null. An aligned element's bits are in
; one word. For a misaligned element the result is false, so that the runtime checks it.
define i1 @weft.clear(ptr %bits, i64 %byte, i32 %shift) alwaysinline nounwind {
start:
  %none = icmp eq ptr %bits, null
  br i1 %none, label %yes, label %look

yes:
  ret i1 true

look:
  %index = lshr i64 %byte, 6
  %word.at = getelementptr inbounds i64, ptr %bits, i64 %index
  %word = load i64, ptr %word.at
  %mask = call i64 @weft.mask(i64 %byte, i32 %shift)
  %unwritten = and i64 %word, %mask
  %is_clear = icmp eq i64 %unwritten, 0
  %long = zext i32 %shift to i64
  %size = shl i64 1, %long
  %low = sub i64 %size, 1
  %rest = and i64 %byte, %low
  %whole = icmp eq i64 %rest, 0
  %both = and i1 %is_clear, %whole
  ret i1 %both
}

attributes #0 = { cold nounwind }

!1 = !{!"branch_weights", i32 2000, i32 1}
!2 = !{!"branch_weights", i32 1, i32 2000}
