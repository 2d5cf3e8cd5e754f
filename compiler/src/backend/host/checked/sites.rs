//! The table of sites: the source locations that sanitized code refers to by number. A site has its line, its array,
//! and the loops and branches around it.

use std::{
    cell::{Cell, RefCell},
    collections::{HashMap, HashSet},
};

use weft_artifact::{SharedArrayInfo, Site, SiteKind, Sites, SlotField, SlotSource, Tools, Update};

use crate::{
    analysis::{Origins, Owner, ValueInputs, base, copied, only_read},
    backend::host::{emit::frame::Offsets, plan::Pointers},
    intrinsics::{Arg, Intrinsic, Lowering, rows},
    ir::{AtomicOp, Base, Block, Check, ExprId, FuncId, Function, LocalId, Module, Op, Region, SharedKind, StmtKind},
    source::{Origin, Span},
};

/// The sites and the analysis results of a sanitized module.
pub(crate) struct Recorder<'a> {
    pub(crate) module: &'a Module,
    sites: RefCell<Vec<Site>>,
    known: RefCell<HashMap<(SiteKind, Span, String), u32>>,
    /// The numbers of the values that are only copied from one memory location to another, by function and local.
    pub(crate) copies: HashMap<(FuncId, LocalId), u32>,
    /// The pointers of the loads in statements that are followed by a check of uninitialized memory.
    pub(crate) followed: HashSet<(FuncId, ExprId)>,
    /// The number of accesses with inline checks.
    pub(crate) n_quick: Cell<u32>,
    /// The array parameters that the kernel only reads.
    only_read: Vec<u32>,
    /// The memory that the kernel's pointers originate from.
    origins: Option<Origins>,
    pub(crate) pointers: Pointers,
}

impl<'a> Recorder<'a> {
    pub(crate) fn of(module: &'a Module) -> Self {
        let mut copies = HashMap::new();
        let mut followed = HashSet::new();
        let mut next = 1;
        for (id, function) in module.functions.iter() {
            let mut loads = Vec::new();
            add_followed(function, &function.body, &mut loads);
            followed.extend(loads.into_iter().map(|load| (id, load)));
            for class in copied(function) {
                for local in class {
                    copies.insert((id, local), next);
                }
                next += 1;
            }
        }
        let (only_read, origins) = (only_read(module), module.kernel().map(Origins::of));
        let pointers = module.kernel().map(Pointers::of).unwrap_or_default();
        Self {
            module,
            sites: RefCell::default(),
            known: RefCell::default(),
            copies,
            followed,
            n_quick: Cell::new(0),
            only_read,
            origins,
            pointers,
        }
    }

    /// The table. Call this after all code has been emitted.
    pub(crate) fn sites(&self, tools: Tools, offsets: &Offsets) -> Sites {
        let place = |(id, array): (_, &crate::ir::SharedArray)| {
            let item = array.elem.size_bytes();
            Some(SharedArrayInfo {
                offset: offsets.shared(id)?,
                bytes: array.len.saturating_mul(array.elem.size_bytes()),
                name: array.name.clone(),
                item,
                shape: array.shape.clone(),
                is_program: array.kind == SharedKind::Program,
            })
        };
        let shared = self.module.shared.iter().filter_map(place).collect();
        if let Some(kernel) = self.module.kernel() {
            // The site at which threads end that do not return earlier.
            self.site(SiteKind::End, kernel.span, &kernel.name);
        }
        Sites { tools, sites: self.sites.borrow().clone(), shared, only_read: self.only_read.clone() }
    }

    /// The bit of the parameter to whose array a pointer points, if the kernel only reads that array; otherwise 0.
    pub(crate) fn parameter(&self, id: FuncId, function: &Function, pointer: ExprId) -> u64 {
        let Some(origins) = self.origins.as_ref().filter(|_| self.module.kernel == Some(id)) else { return 0 };
        let Owner::Param(at) = origins.origin(function, pointer) else { return 0 };
        match function.slots.get(at) {
            Some(SlotSource::Argument { param, path, field: SlotField::Data })
                if path.is_empty() && *param < u64::BITS && self.only_read.contains(param) =>
            {
                1 << param
            }
            Some(_) | None => 0,
        }
    }

    /// Whether a pointer points to shared memory that the sanitizer does not check: cells that a pass has made, or
    /// buffers of calls of `cuda.coop`.
    pub(crate) fn is_unchecked(&self, function: &Function, pointer: ExprId) -> bool {
        matches!(base(function, pointer), Some(Base::Shared(id)) if self.module.shared[id].kind != SharedKind::Program)
    }

    /// The number of accesses with inline checks.
    pub(crate) fn n_quick(&self) -> u32 {
        self.n_quick.get()
    }

    /// The number of a site, which is added to the table if it is new.
    pub(crate) fn site(&self, kind: SiteKind, span: Span, function: &str) -> u32 {
        let key = (kind, span, function.to_owned());
        if let Some(&known) = self.known.borrow().get(&key) {
            return known;
        }
        let sources = &self.module.sources;
        let file = sources.file(span);
        let (line, column) = file.map_or((0, 0), |file| file.line_column(span.start));
        let text = file.map_or("", |file| line_at(&file.text, span.start as usize));
        let covered = sources.text(span);
        let header_of = |region: &Region| {
            let file = file.filter(|_| region.body.contains(span))?;
            Some(file.line_column(region.header.start).0)
        };
        let width = covered.lines().next().unwrap_or_default().chars().count().max(1) as u32;
        let site = Site {
            kind,
            file: file.map(|file| file.name.clone()).unwrap_or_default(),
            line,
            column,
            width,
            text: text.to_owned(),
            array: if kind == SiteKind::Call { String::new() } else { array_name(covered) },
            function: function.to_owned(),
            is_own: file.is_some_and(|file| file.origin == Origin::Prelude),
            loops: self.module.structure.loops.iter().filter_map(header_of).collect(),
            branches: self
                .module
                .structure
                .branches
                .iter()
                .filter_map(|(region, is_else)| Some((header_of(region)?, *is_else)))
                .collect(),
            update: match kind {
                SiteKind::Read | SiteKind::Write => self.update(span),
                SiteKind::Atomic
                | SiteKind::Barrier
                | SiteKind::Phase
                | SiteKind::WarpBarrier
                | SiteKind::GridBarrier
                | SiteKind::Shuffle
                | SiteKind::Vote
                | SiteKind::Match
                | SiteKind::WarpReduce
                | SiteKind::Multiply
                | SiteKind::End
                | SiteKind::Call => None,
            },
        };
        let mut sites = self.sites.borrow_mut();
        let number = sites.len() as u32;
        sites.push(site);
        self.known.borrow_mut().insert(key, number);
        number
    }

    /// The update statement (such as `a[i] += x`) that has an access at a source location.
    fn update(&self, span: Span) -> Option<Update> {
        let structure = &self.module.structure;
        let update = structure.updates.iter().find(|update| update.accesses.contains(&span))?;
        let number = *structure.elements.get(&update.target)?;
        let takes = |row: &&Intrinsic| row.signatures.iter().any(|sig| sig.args.first() == Some(&Arg::Array(number)));
        let row = update.op.and_then(atomic_row).filter(takes);
        Some(Update {
            statement: update.text.clone(),
            operation: row.and_then(|row| row.path.rsplit('.').next()).unwrap_or_default().to_owned(),
            element: update.element.clone(),
        })
    }
}

/// The intrinsic of `cuda.atomic` for an operation.
fn atomic_row(op: AtomicOp) -> Option<&'static Intrinsic> {
    rows().find(|row| row.lowering == Lowering::Op(Op::atomic(op)))
}

/// The line of a text that contains a byte offset.
fn line_at(text: &str, at: usize) -> &str {
    let start = text.get(..at).and_then(|head| head.rfind('\n')).map_or(0, |newline| newline + 1);
    text.get(start..).and_then(|rest| rest.lines().next()).unwrap_or_default()
}

/// The array's name in an expression such as `a[i]`, `p.x[i]` or `cuda.atomic.add(a, i, 1)`; empty if the expression
/// has no name for it.
fn array_name(text: &str) -> String {
    let is_name = |text: &str| !text.is_empty() && text.chars().all(|c| c.is_alphanumeric() || c == '_' || c == '.');
    let name = match (text.find('['), text.find('(')) {
        (bracket, Some(paren)) if bracket.is_none_or(|bracket| paren < bracket) => {
            let args = text.get(paren + 1..).unwrap_or_default();
            args.split([',', ')', '[']).next().unwrap_or_default().trim()
        }
        (Some(bracket), _) => text.get(..bracket).unwrap_or_default().trim(),
        (None, _) => text.trim(),
    };
    if is_name(name) { name.to_owned() } else { String::new() }
}

/// Adds the pointers of the loads in statements that a [`Check::Unwritten`] follows.
fn add_followed(function: &Function, block: &Block, loads: &mut Vec<ExprId>) {
    for (stmt, next) in block.iter().zip(block.iter().skip(1)) {
        if let (StmtKind::Assign(_, value), StmtKind::Op { op: Op::Check(Check::Unwritten), .. }) =
            (&stmt.kind, &next.kind)
        {
            loads.extend(ValueInputs::of(function, *value).loads);
        }
    }
    for stmt in block {
        for inner in stmt.kind.blocks().into_iter().flatten() {
            add_followed(function, inner, loads);
        }
    }
}
