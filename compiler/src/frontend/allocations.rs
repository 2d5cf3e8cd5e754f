//! Arrays that a call allocates each time that it is executed: `np.zeros` and its like, copies, and the product of `@`.
//!
//! Each such call has one array in the thread's local memory, which every execution reuses. The reuse is invisible as
//! long as no code reads the array of an earlier execution. So the type of an array has the calls that it may come from
//! ([`Sites`]), and executing a call invalidates the variables with an array of that call: reading one is an error.
//! Temporary values that are live across an expression or a loop's body are checked before it is evaluated.

use weft_artifact::{DType, Layout};

use super::{
    lowerer::FnLowerer,
    object::Site,
    state::Var,
    ty::{ArrayTy, Conflict, ConflictKind, Sites, Ty},
    value::{ArrayValue, Atom, Value},
};
use crate::{
    diagnostic::{Code, Diagnostic},
    ir::{ExprKind, LocalArray, Space, Type},
    source::Span,
};

/// The properties of an array that a call creates.
pub(super) struct NewArray {
    pub(super) dtype: DType,
    pub(super) layout: Layout,
    pub(super) shape: Vec<Atom>,
    /// The number of elements that there is memory for.
    pub(super) room: u64,
}

impl FnLowerer<'_> {
    /// A new, uninitialized array of this call.
    pub(super) fn new_array(&mut self, made: &NewArray, name: &str, span: Span) -> ArrayValue {
        // Two calls may start at the same offset: `np.zeros(2).copy()`.
        let length = (span.end - span.start) as usize;
        let items = self.loops.unrolled.iter().copied().chain([length]).collect();
        let site = Site { start: span.start, items };
        let text = (self.file, self.def.ast.span.start);
        let sites = self.cx.allocations.number(text, site);
        self.remake(sites, span);
        self.scratch_array(made, sites, name, span)
    }

    /// An array that is not assigned to a variable.
    fn scratch_array(&mut self, made: &NewArray, sites: Sites, name: &str, span: Span) -> ArrayValue {
        let (elem, parts) = made.dtype.access();
        let ty = ArrayTy {
            dtype: made.dtype,
            ndim: made.shape.len(),
            layout: made.layout,
            readonly: false,
            space: Space::Local,
            packed: false,
            own: true,
            sites,
        };
        let (len, align) = (made.room.max(1) * parts, made.dtype.access_align());
        let data = self.local_memory(ty.pointer(), LocalArray { name: name.to_owned(), elem, len, align, span }, span);
        ArrayValue { ty, data, shape: made.shape.clone(), strides: Vec::new() }
    }

    /// The address of declared memory.
    pub(super) fn local_memory(&mut self, pointer: Type, declared: LocalArray, span: Span) -> Atom {
        let kind = if self.is_dry() {
            ExprKind::DynamicShared
        } else {
            ExprKind::LocalBase(self.b.function.local_arrays.push(declared))
        };
        let data = self.b.expr(kind, pointer, span);
        Atom::Local(self.b.temp(data, span))
    }

    /// A new array of this call, which `write` fills. If the call may read its own array of an earlier execution,
    /// `write` fills a temporary array first.
    pub(super) fn new_array_of(
        &mut self,
        made: &NewArray,
        read: Sites,
        name: &str,
        span: Span,
        write: impl FnOnce(&mut Self, &ArrayValue),
    ) -> ArrayValue {
        let array = self.new_array(made, name, span);
        if !array.ty.sites.meets(read) {
            write(self, &array);
            return array;
        }
        let scratch = self.scratch_array(made, Sites::NONE, name, span);
        write(self, &scratch);
        self.store_view(array.clone(), Value::Array(scratch), span);
        array
    }

    /// Invalidates the variables with an array that a call allocates again.
    fn remake(&mut self, sites: Sites, span: Span) {
        let forget = |var: &mut Var| {
            if var.ty.sites().meets(sites) {
                let (first, second) = (var.ty.clone(), var.ty.clone());
                let kind = ConflictKind::Remade;
                var.ty =
                    Ty::Conflict(Box::new(Conflict { first, first_span: var.span, second, second_span: span, kind }));
            }
        };
        self.env.iter_mut().flat_map(|env| env.values_mut()).for_each(forget);
        self.where_true.iter_mut().map(|(_, var)| var).for_each(forget);
        let hidden = self.scopes.iter_mut().flat_map(|scope| &mut scope.names);
        hidden.filter_map(|name| name.var.as_mut()).for_each(forget);
    }

    /// Reports a live temporary value whose array is allocated again by an expression that is evaluated before its use.
    pub(super) fn check_held(&mut self, value: &Value, later: Span, span: Span) {
        let sites = value.ty().sites();
        if sites == Sites::NONE {
            return;
        }
        let text = (self.file, self.def.ast.span.start);
        if self.cx.allocations.within(text, later.start, later.end).meets(sites) {
            let message =
                "this array was made in an earlier iteration, and the same call runs again before the array is used";
            self.report(
                remade(message.to_owned(), span).also(later, "this call makes the new array, in the same memory"),
            );
        }
    }
}

/// The error for an array whose memory another array has reused.
pub(super) fn remade(message: String, span: Span) -> Diagnostic {
    Diagnostic::error(Code::Remade, span, message)
        .note("a call that makes an array uses the same memory of the thread each time it runs")
        .help("make both arrays before the loop, and copy the elements: `before[:] = now`")
}
