//! The text of findings of memory and of races.

use weft_artifact::{AccessBits, SharedArrayInfo, Site, SiteKind, Tools};

use super::{
    advice::{Among, Pairs, does},
    clock::{Copied, WARP},
    finding::{Finding, ThreadLocation, triple},
    in_flight::{CopyInFlight, Ends},
    launch::{AccessRecord, Launch, LiveThread},
    races::Race,
    record::Spot,
};

impl Launch {
    /// `threadIdx` and `blockIdx`.
    pub(super) fn coordinates(&self, caller: LiveThread) -> ([u32; 3], [u32; 3]) {
        let block = self.in_grid(self.number(caller.slot));
        (split(caller.thread as u64, self.plan.shape.block), split(block, self.plan.shape.grid))
    }

    /// A thread at a source location, for a finding.
    pub(super) fn location(&self, caller: LiveThread, spot: Spot, address: Option<u64>) -> Option<ThreadLocation> {
        let element = address.and_then(|address| self.element(caller.slot, address));
        self.location_of(spot, self.coordinates(caller), element)
    }

    fn location_of(
        &self,
        spot: Spot,
        (thread, block): ([u32; 3], [u32; 3]),
        element: Option<(String, Vec<i64>)>,
    ) -> Option<ThreadLocation> {
        let mut site = self.site(spot.site())?.clone();
        let what = site.kind.name();
        let mut calls: Vec<Site> =
            self.calls.sites(spot.chain()).into_iter().filter_map(|site| self.site(site).cloned()).collect();
        if site.is_own {
            // The program's line is that which has called weft's own function.
            let first = calls.iter().position(|call| !call.is_own)?;
            site = calls.drain(..=first).next_back()?;
        }
        calls.retain(|call| !call.is_own);
        let (name, index) = element.unzip();
        if site.array.is_empty() {
            site.array = name.unwrap_or_default();
        }
        Some(ThreadLocation { site, what, index, thread, block, calls })
    }

    /// The kernel's end, as a location; nothing if no site is in the kernel.
    pub(super) fn end_site(&self) -> Option<Site> {
        self.plan.sites.sites.iter().rev().find(|site| site.kind == SiteKind::End).cloned()
    }

    /// Which element of which array an address is.
    fn element(&self, slot: usize, address: u64) -> Option<(String, Vec<i64>)> {
        let slot = self.owner(slot, address);
        let block = self.blocks.get(slot)?;
        if let Some(offset) = address.checked_sub(block.start).filter(|offset| *offset < block.len) {
            let shared =
                self.plan.sites.shared.iter().find(|shared| offset.wrapping_sub(shared.offset) < shared.bytes)?;
            return Some((shared.name.clone(), index_in(shared, offset - shared.offset)));
        }
        self.plan.arguments.iter().find_map(|argument| Some((argument.name.clone(), argument.index(address)?)))
    }

    pub(super) fn found_bounds(&mut self, caller: LiveThread, site: u32) {
        if !self.has(Tools::MEMCHECK) {
            return;
        }
        let Some(thread) = self.thread(caller) else { return };
        let (bad, spot) = (thread.bad, Spot::new(site, thread.depth.chain));
        let Some(bad) = bad else { return };
        let Some(mut location) = self.location(caller, spot, None) else { return };
        let mut locations = Vec::new();
        let Some(at_index) = self.location(caller, bad.spot, None) else { return };
        let index_site = at_index.site.clone();
        let array =
            if index_site.array.is_empty() { "the array".to_owned() } else { format!("`{}`", index_site.array) };
        let message = format!(
            "index {} is out of bounds for axis {} of {array}, which has {}",
            bad.index,
            bad.axis,
            if bad.extent == 1 { "1 element".to_owned() } else { format!("{} elements", bad.extent) },
        );
        let mut index = vec![bad.index];
        if (index_site.line, index_site.column) != (location.site.line, location.site.column) {
            locations.push(ThreadLocation { what: "index", index: Some(std::mem::take(&mut index)), ..at_index });
        }
        location.index = Some(index).filter(|index| !index.is_empty());
        locations.insert(0, location);
        let kernel = self.plan.kernel.clone();
        self.findings.add("out of bounds", &[&locations[0].site.clone(), &index_site], || Finding {
            tool: "memcheck",
            kind: "out of bounds",
            kernel,
            message,
            help: format!("keep the index below {}: guard the access by a condition", bad.extent),
            count: 1,
            accesses: locations,
        });
    }

    pub(super) fn found_misaligned(&mut self, caller: LiveThread, record: AccessRecord, bytes: u64) {
        let chain = self.thread(caller).map_or(0, |thread| thread.depth.chain);
        let Some(location) = self.location(caller, Spot::new(record.site, chain), Some(record.address)) else { return };
        let kernel = self.plan.kernel.clone();
        let message = format!("an access of {bytes} bytes is not aligned to {bytes} bytes");
        self.findings.add("misaligned", &[&location.site.clone()], || Finding {
            tool: "memcheck",
            kind: "misaligned",
            kernel,
            message,
            help: "align the start of the array to the size of its elements".to_owned(),
            count: 1,
            accesses: vec![location],
        });
    }

    /// An access to bytes that an asynchronous copy will write.
    pub(super) fn found_in_flight(
        &mut self,
        caller: LiveThread,
        (spot, record): (Spot, AccessRecord),
        (copy, slot): (CopyInFlight, usize),
    ) {
        if !self.has(Tools::RACECHECK) {
            return;
        }
        let Some(location) = self.location(caller, spot, Some(record.address)) else { return };
        let at = self.coordinates(LiveThread { slot, thread: copy.thread });
        let element = self.element(caller.slot, record.address);
        let Some(begun) = self.location_of(copy.spot, at, element) else { return };
        let kernel = self.plan.kernel.clone();
        let (before, is_done) = match copy.ends {
            Ends::Phase => ("before it knows that the copy by thread", "is complete"),
            Ends::Group | Ends::Written => ("before the copy by thread", "is complete"),
            Ends::SourceRead => ("before the copy by thread", "has read it"),
        };
        let message = format!(
            "{}: {} by thread {} of block {}, {before} {} {is_done}",
            element_name(&location),
            done(location.what),
            triple(location.thread),
            triple(location.block),
            triple(begun.thread),
        );
        let help = match copy.ends {
            Ends::Phase => {
                "wait for the phase of the barrier that counts the copy, in each thread that accesses the element"
            }
            Ends::Group => {
                "call `cuda.copy_wait` in the thread that copies, and `cuda.syncthreads` after it if other threads access \
                 the element"
            }
            Ends::SourceRead => {
                "call `cuda.copy_wait(read=True)` in the thread that copies, and `cuda.syncthreads` after it if other \
                 threads write the element"
            }
            Ends::Written => "call `cuda.copy_wait` in the thread that copies, before any thread accesses the element",
        };
        let sites = [begun.site.clone(), location.site.clone()];
        self.findings.add("in flight", &[&sites[0], &sites[1]], || Finding {
            tool: "racecheck",
            kind: "copy in flight",
            kernel,
            message,
            help: help.to_owned(),
            count: 1,
            accesses: vec![location, begun],
        });
    }

    /// A thread uses a barrier in shared memory wrongly; `message` says what it does.
    pub(super) fn found_phase(
        &mut self,
        caller: LiveThread,
        (spot, barrier): (Spot, u64),
        kind: &'static str,
        message: &str,
        help: &str,
    ) {
        if !self.has(Tools::SYNCCHECK) {
            return;
        }
        let Some(location) = self.location(caller, spot, None) else { return };
        let made =
            self.barrier_made_at(caller.slot, barrier).and_then(|(spot, thread)| self.location(thread, spot, None));
        let message = format!("thread {} of block {} {message}", triple(location.thread), triple(location.block));
        let kernel = self.plan.kernel.clone();
        self.findings.add(kind, &[&location.site.clone()], || Finding {
            tool: "synccheck",
            kind,
            kernel,
            message,
            help: help.to_owned(),
            count: 1,
            accesses: [location].into_iter().chain(made).collect(),
        });
    }

    /// Memory that the device has back.
    pub(super) fn found_freed(&mut self, caller: LiveThread, spot: Spot, address: u64) {
        let Some(location) = self.location(caller, spot, Some(address)) else { return };
        let kernel = self.plan.kernel.clone();
        let message = format!("{} is in freed memory", element_name(&location));
        self.findings.add("freed", &[&location.site.clone()], || Finding {
            tool: "memcheck",
            kind: "use after free",
            kernel,
            message,
            help: "keep a reference to the array, or to the owner of its memory, until the kernel has finished"
                .to_owned(),
            count: 1,
            accesses: vec![location],
        });
    }

    pub(super) fn found_unwritten(&mut self, caller: LiveThread, spot: Spot, address: u64) {
        let Some(location) = self.location(caller, spot, Some(address)) else { return };
        let kernel = self.plan.kernel.clone();
        let message = format!("{} is read before it is written", element_name(&location));
        self.findings.add("uninitialized", &[&location.site.clone()], || Finding {
            tool: "initcheck",
            kind: "uninitialized",
            kernel,
            message,
            help: "write it first: newly allocated memory has undefined contents".to_owned(),
            count: 1,
            accesses: vec![location],
        });
    }

    /// The host will read bytes that a thread has copied from memory that was never written.
    pub(super) fn found_copied(&mut self, caller: LiveThread, to: (Spot, u64), copied: Copied) {
        let Some(finding) = self.copied_finding(caller, to, copied) else { return };
        let sites: Vec<Site> = finding.accesses.iter().map(|location| location.site.clone()).collect();
        self.findings.add("copied", &sites.iter().collect::<Vec<_>>(), || finding);
    }

    /// The same, as a finding.
    pub(super) fn copied_finding(
        &self,
        caller: LiveThread,
        (spot, address): (Spot, u64),
        copied: Copied,
    ) -> Option<Finding> {
        let to = self.location(caller, spot, Some(address))?;
        let from = self.location(caller, copied.spot, Some(copied.address))?;
        let (name, source) = (element_name(&to), element_name(&from));
        Some(Finding {
            tool: "initcheck",
            kind: "uninitialized",
            kernel: self.plan.kernel.clone(),
            message: format!("the host reads {name}, a copy of {source}, which was never written"),
            help: "write the element before it is copied: newly allocated memory has undefined contents".to_owned(),
            count: 1,
            accesses: vec![to, from],
        })
    }

    pub(super) fn found_race(
        &mut self,
        caller: LiveThread,
        (spot, record): (Spot, AccessRecord),
        race: Race,
        same: bool,
    ) {
        if same && !self.plan.shape.benign_races {
            return;
        }
        let Race { other, .. } = race;
        let Some(location) = self.location(caller, spot, Some(record.address)) else { return };
        let element = self.element(caller.slot, record.address);
        let other_block = split(self.in_grid(other.block), self.plan.shape.grid);
        let at = (split(u64::from(other.thread), self.plan.shape.block), other_block);
        let Some(mut earlier) = self.location_of(other.spot, at, element) else { return };
        earlier.what = if race.was_write && earlier.site.kind == SiteKind::Read { "write" } else { earlier.what };
        let among = if other.block != self.number(caller.slot) {
            Among::Grid
        } else if other.thread as usize / WARP == caller.thread / WARP {
            Among::Warp
        } else {
            Among::Block
        };
        let end = |spot: Spot, writes| self.site(spot.site()).map(|site| (spot, does(site.kind, writes)));
        let writes = record.bits & AccessBits::WRITES != 0;
        let Some(pair) = end(other.spot, race.was_write).zip(end(spot, writes)) else { return };
        let pairs = Pairs::of(among, !same, pair);
        let kind = pairs.kind();
        let message = format!(
            "{}: {} by thread {} of block {} and {} by thread {} of block {}, without synchronization between them",
            element_name(&location),
            done(earlier.what),
            triple(earlier.thread),
            triple(earlier.block),
            done(location.what),
            triple(location.thread),
            triple(location.block),
        );
        let kernel = self.plan.kernel.clone();
        let sites = [earlier.site.clone(), location.site.clone()];
        self.findings.add_race(&[&sites[0], &sites[1]], pairs, || Finding {
            tool: "racecheck",
            kind,
            kernel,
            message,
            help: String::new(),
            count: 1,
            accesses: vec![location, earlier],
        });
    }
}

/// The index of the element at an offset of a shared array.
fn index_in(shared: &SharedArrayInfo, offset: u64) -> Vec<i64> {
    let n: u64 = shared.shape.iter().product();
    if n == 0 {
        return vec![(offset / shared.item.max(1)).cast_signed()];
    }
    // An element may have parts: those of a complex number, or the fields of a record.
    let mut at = offset / (shared.bytes / n).max(1);
    let mut index: Vec<i64> = Vec::with_capacity(shared.shape.len());
    for extent in shared.shape.iter().rev() {
        index.push((at % extent.max(&1)).cast_signed());
        at /= extent.max(&1);
    }
    index.reverse();
    index
}

/// `a[1, 2]`.
fn element_name(location: &ThreadLocation) -> String {
    let name = if location.site.array.is_empty() { "an element" } else { &location.site.array };
    match &location.index {
        Some(index) if !index.is_empty() => {
            let index: Vec<String> = index.iter().map(ToString::to_string).collect();
            format!("`{name}[{}]`", index.join(", "))
        }
        Some(_) | None if location.site.array.is_empty() => name.to_owned(),
        Some(_) | None => format!("an element of `{name}`"),
    }
}

/// The verb for an operation on an element.
fn done(what: &str) -> &str {
    match what {
        "read" => "read",
        "write" => "written",
        "atomic" => "updated atomically",
        other => other,
    }
}

/// The coordinates of a linear number, in which `x` runs fastest.
fn split(number: u64, [x, y, _]: [u32; 3]) -> [u32; 3] {
    let (x, y) = (u64::from(x.max(1)), u64::from(y.max(1)));
    [(number % x) as u32, (number / x % y) as u32, (number / x / y) as u32]
}
