//! Call cycles: functions that call themselves, directly or through others.
//!
//! A callee comes before its callers, except in a call cycle. An analysis that visits callees first finds an unvisited
//! callee only in a cycle, and assumes the worst of it.

use super::{FuncId, Function, Handle, Module, Rule, StmtKind, for_each_stmt, for_each_stmt_mut};

/// The functions of a module that are part of a call cycle.
#[derive(Clone, Debug, Default)]
pub struct Circles {
    /// For each function, by index, the number of its cycle.
    of: Vec<Option<usize>>,
}

impl Circles {
    /// Finds all cycles of a module.
    pub fn of(module: &Module) -> Self {
        let search = CycleSearch::run(module);
        let mut of = vec![None; module.functions.len()];
        for (number, group) in search.groups.iter().enumerate() {
            let calls_itself = |func: &usize| search.callees[*func].contains(func);
            if group.len() > 1 || group.iter().any(calls_itself) {
                for &func in group {
                    of[func] = Some(number);
                }
            }
        }
        Self { of }
    }

    /// Whether there are no cycles.
    pub fn is_empty(&self) -> bool {
        self.of.iter().all(Option::is_none)
    }

    /// Whether a function is in a cycle.
    pub fn contains(&self, func: FuncId) -> bool {
        self.circle(func).is_some()
    }

    /// Whether two functions are in the same cycle: each calls itself through the other.
    pub fn have_both(&self, a: FuncId, b: FuncId) -> bool {
        self.contains(a) && self.circle(a) == self.circle(b)
    }

    fn circle(&self, func: FuncId) -> Option<usize> {
        self.of.get(func.index()).copied().flatten()
    }
}

impl Module {
    /// Orders every callee before its callers; the functions of a call cycle become adjacent. Functions that are
    /// already in order are not moved.
    pub fn order_functions(&mut self) {
        let order: Vec<usize> = CycleSearch::run(self).groups.into_iter().flatten().collect();
        if order.iter().enumerate().all(|(at, &func)| at == func) {
            return;
        }
        let mut place = vec![0; order.len()];
        order.iter().enumerate().for_each(|(at, &func)| place[func] = at);
        let moved = |func: FuncId| Handle::new(place.get(func.index()).map_or(u32::MAX, |&at| at as u32));
        let mut functions: Vec<(usize, Function)> =
            self.functions.iter().map(|(id, function)| (place[id.index()], function.clone())).collect();
        functions.sort_by_key(|(at, _)| *at);
        self.functions.truncate(0);
        for (_, mut function) in functions {
            for_each_stmt_mut(&mut function.body, &mut |stmt| {
                if let StmtKind::Call { func, .. } = &mut stmt.kind {
                    *func = moved(*func);
                }
            });
            function.rule = function.rule.map(|rule| match rule {
                Rule::Zero => Rule::Zero,
                Rule::Symmetric => Rule::Symmetric,
                Rule::Backward { func, of_all } => Rule::Backward { func: moved(func), of_all },
            });
            self.functions.push(function);
        }
        self.kernel = self.kernel.map(moved);
    }
}

/// Tarjan's algorithm for strongly connected components. A component is complete after all components that it calls.
struct CycleSearch {
    callees: Vec<Vec<usize>>,
    /// The discovery index of each function, and the lowest index of an open function that it reaches.
    met: Vec<Option<usize>>,
    lowest: Vec<usize>,
    count: usize,
    /// Functions that were discovered and have no component yet.
    open: Vec<usize>,
    groups: Vec<Vec<usize>>,
}

impl CycleSearch {
    fn run(module: &Module) -> Self {
        let n_functions = module.functions.len();
        let callees = module.functions.iter().map(|(_, function)| {
            let mut callees = Vec::new();
            for_each_stmt(&function.body, &mut |stmt| {
                if let StmtKind::Call { func, .. } = stmt.kind
                    && func.index() < n_functions
                    && !callees.contains(&func.index())
                {
                    callees.push(func.index());
                }
            });
            callees
        });
        let mut search = Self {
            callees: callees.collect(),
            met: vec![None; n_functions],
            lowest: vec![0; n_functions],
            count: 0,
            open: Vec::new(),
            groups: Vec::new(),
        };
        for func in 0..n_functions {
            if search.met[func].is_none() {
                search.visit(func);
            }
        }
        search
    }

    /// Visits the functions that a function calls, without recursion: a chain of calls may be long.
    fn visit(&mut self, root: usize) {
        let mut path = vec![(root, 0)];
        self.meet(root);
        while let Some((func, next)) = path.last_mut() {
            let func = *func;
            if let Some(&callee) = self.callees[func].get(*next) {
                *next += 1;
                match self.met[callee] {
                    None => {
                        self.meet(callee);
                        path.push((callee, 0));
                    }
                    Some(met) if self.open.contains(&callee) => self.lowest[func] = self.lowest[func].min(met),
                    Some(_) => {}
                }
                continue;
            }
            path.pop();
            if let Some((caller, _)) = path.last() {
                self.lowest[*caller] = self.lowest[*caller].min(self.lowest[func]);
            }
            if self.met[func] == Some(self.lowest[func]) {
                let first = self.open.iter().position(|&open| open == func).unwrap_or_default();
                let mut group = self.open.split_off(first);
                group.sort_unstable();
                self.groups.push(group);
            }
        }
    }

    fn meet(&mut self, func: usize) {
        self.met[func] = Some(self.count);
        self.lowest[func] = self.count;
        self.count += 1;
        self.open.push(func);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        ir::{FunctionKind, Stmt},
        source::Span,
    };

    /// A module whose functions call those with the given numbers.
    fn module(calls: &[&[u32]]) -> Module {
        let mut module = Module::default();
        for (index, callees) in calls.iter().enumerate() {
            let mut function = Function::new(format!("f{index}"), FunctionKind::Device, Span::default());
            for callee in *callees {
                let kind = StmtKind::Call { results: Vec::new(), func: Handle::new(*callee), args: Vec::new() };
                function.body.push(Stmt { kind, span: Span::default() });
            }
            module.functions.push(function);
        }
        module
    }

    fn names(module: &Module) -> Vec<&str> {
        module.functions.iter().map(|(_, function)| function.name.as_str()).collect()
    }

    #[test]
    fn a_circle_is_found_whatever_leads_to_it() {
        // 0 calls itself, 1 and 3 call each other through 2, 4 calls all.
        let module = module(&[&[0], &[2], &[3], &[1, 0], &[0, 1, 2, 3]]);
        let circles = Circles::of(&module);
        let on: Vec<bool> = (0..5).map(|func| circles.contains(Handle::new(func))).collect();
        assert_eq!(on, [true, true, true, true, false]);
        assert!(circles.have_both(Handle::new(1), Handle::new(3)));
        assert!(!circles.have_both(Handle::new(0), Handle::new(1)));
        assert!(!circles.have_both(Handle::new(4), Handle::new(4)));
    }

    #[test]
    fn functions_in_order_stay_where_they_are() {
        let mut ordered = module(&[&[], &[0], &[], &[2, 0]]);
        ordered.kernel = Some(Handle::new(3));
        let before = ordered.clone();
        ordered.order_functions();
        assert_eq!(names(&ordered), names(&before));
        assert!(Circles::of(&ordered).is_empty());
    }

    #[test]
    fn callees_come_first_and_circles_stand_together() {
        let mut module = module(&[&[3], &[], &[1, 0], &[2, 0], &[3]]);
        module.kernel = Some(Handle::new(4));
        module.order_functions();
        assert_eq!(names(&module), ["f1", "f0", "f2", "f3", "f4"]);
        assert_eq!(module.kernel, Some(Handle::new(4)));
        let StmtKind::Call { func, .. } = module.functions[Handle::new(1)].body[0].kind else { panic!("a call") };
        assert_eq!(module.functions[func].name, "f3");
    }
}
