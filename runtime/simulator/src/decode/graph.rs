//! Basic blocks, and the immediate post-dominators at which divergent lanes converge.

use super::table::{BasicBlock, Function, Operation};

/// Fills in the blocks of a function. A block ends after a branch, a call, a barrier, and an instruction that ends
/// lanes, so that the active lanes are the same in a whole block.
pub(super) fn blocks(function: &mut Function) {
    let count = function.instructions.len();
    let mut starts = vec![false; count + 1];
    starts[0] = true;
    for (at, instruction) in function.instructions.iter().enumerate() {
        if let Operation::Branch(target) = instruction.operation {
            starts[target as usize] = true;
        }
        if ends_block(&instruction.operation) {
            starts[at + 1] = true;
        }
    }
    let bounds: Vec<usize> = (0..count).filter(|at| starts[*at]).chain([count]).collect();
    let n = bounds.len() - 1;
    for (number, pair) in bounds.windows(2).enumerate() {
        function.blocks.push(BasicBlock { start: pair[0] as u32, end: pair[1] as u32, join: count as u32 });
        function.block_of.extend(std::iter::repeat_n(number as u32, pair[1] - pair[0]));
    }
    let successors: Vec<Vec<usize>> = (0..n).map(|block| successors(function, block, n)).collect();
    let ends = |block: usize| block == n || ends_lanes(function, bounds[block]);
    let all = post_dominators(&successors, n);
    let of_rest = post_dominators(&without_side_exits(&successors, ends), n);
    let joins: Vec<usize> =
        all.into_iter().zip(of_rest).map(|(all, rest)| if ends(all) { rest } else { all }).collect();
    let joins: Vec<usize> = joins.into_iter().map(|join| if ends(join) { count } else { bounds[join] }).collect();
    for (block, join) in joins.into_iter().enumerate() {
        function.blocks[block].join = join as u32;
    }
}

/// The successors without the branches by which lanes leave a loop to end: the others do not wait for them, so they
/// converge where they would without those. A branch at which a loop begins or repeats is its regular exit, and what
/// follows that is kept, too.
fn without_side_exits(successors: &[Vec<usize>], ends: impl Fn(usize) -> bool) -> Vec<Vec<usize>> {
    let n = successors.len();
    // Blocks from which lanes run to their end without a loop.
    let mut leads_to_end = vec![false; n + 1];
    leads_to_end[n] = true;
    let mut changed = true;
    while changed {
        changed = false;
        for block in (0..n).filter(|block| !successors[*block].is_empty()) {
            if !leads_to_end[block] && successors[block].iter().all(|next| leads_to_end[*next]) {
                leads_to_end[block] = true;
                changed = true;
            }
        }
    }
    let repeats = ends_of_back_edges(successors);
    let mut follows = vec![false; n + 1];
    let mut stack: Vec<usize> =
        (0..n).filter(|block| repeats[*block]).flat_map(|block| &successors[block]).copied().collect();
    stack.retain(|next| leads_to_end[*next] && !ends(*next));
    while let Some(block) = stack.pop() {
        if block < n && !std::mem::replace(&mut follows[block], true) {
            stack.extend(&successors[block]);
        }
    }
    let is_side_exit = |next: usize| leads_to_end[next] && (ends(next) || !follows[next]);
    let mut kept: Vec<Vec<usize>> = successors.to_vec();
    for block in (0..n).filter(|block| !repeats[*block]) {
        if kept[block].iter().any(|next| !leads_to_end[*next]) {
            kept[block].retain(|next| !is_side_exit(*next));
        }
    }
    // A loop without another exit keeps those that it has.
    let reaches = reaches_end(&kept);
    for block in (0..n).filter(|block| !reaches[*block]) {
        kept[block].clone_from(&successors[block]);
    }
    kept
}

/// The blocks at the two ends of branches back to a block that is being executed.
fn ends_of_back_edges(successors: &[Vec<usize>]) -> Vec<bool> {
    #[derive(Clone, Copy, PartialEq)]
    enum Visit {
        Not,
        Open,
        Done,
    }
    let n = successors.len();
    let (mut visits, mut found) = (vec![Visit::Not; n + 1], vec![false; n + 1]);
    let mut stack = vec![(0, 0)];
    while let Some((block, next)) = stack.pop() {
        if next == 0 {
            visits[block] = Visit::Open;
        }
        match successors.get(block).and_then(|all| all.get(next)) {
            Some(successor) => {
                stack.push((block, next + 1));
                match visits[*successor] {
                    Visit::Not => stack.push((*successor, 0)),
                    Visit::Open => (found[block], found[*successor]) = (true, true),
                    Visit::Done => {}
                }
            }
            None => visits[block] = Visit::Done,
        }
    }
    found
}

/// The blocks from which a path leads to the end.
fn reaches_end(successors: &[Vec<usize>]) -> Vec<bool> {
    let n = successors.len();
    let mut reaches = vec![false; n + 1];
    reaches[n] = true;
    let mut changed = true;
    while changed {
        changed = false;
        for block in 0..n {
            if !reaches[block] && successors[block].iter().any(|next| reaches[*next]) {
                reaches[block] = true;
                changed = true;
            }
        }
    }
    reaches
}

/// Whether lanes end at an instruction. `ptxas` makes a predicated exit of a branch to it, so lanes that take the branch
/// do not wait there for the others.
fn ends_lanes(function: &Function, at: usize) -> bool {
    function.instructions.get(at).is_some_and(|instruction| {
        instruction.guard.is_none()
            && (matches!(instruction.operation, Operation::Exit)
                || matches!(instruction.operation, Operation::Return) && function.is_kernel)
    })
}

fn ends_block(operation: &Operation) -> bool {
    matches!(
        operation,
        Operation::Branch(_)
            | Operation::Return
            | Operation::Exit
            | Operation::Trap
            | Operation::Call(_)
            | Operation::Barrier(_)
            | Operation::Collective(..)
            | Operation::Async(_)
            | Operation::Sleep
    )
}

/// The successors of a block; `n` is the end of the function.
pub(crate) fn successors(function: &Function, block: usize, n: usize) -> Vec<usize> {
    let last = &function.instructions[function.blocks[block].end as usize - 1];
    let (target, falls) = if let Operation::Branch(target) = last.operation {
        (Some(function.block_of[target as usize] as usize), false)
    } else if matches!(last.operation, Operation::Return | Operation::Exit | Operation::Trap) {
        (Some(n), false)
    } else {
        (None, true)
    };
    let mut found: Vec<usize> = target.into_iter().collect();
    // Lanes that end because of a predicate are no path for the others.
    if falls || last.guard.is_some() {
        if found == [n] {
            found.clear();
        }
        found.push(block + 1);
    }
    found
}

/// The immediate post-dominator of each block (Cooper, Harvey, Kennedy); `n`, the end, where there is none.
fn post_dominators(successors: &[Vec<usize>], n: usize) -> Vec<usize> {
    let mut predecessors = vec![Vec::new(); n + 1];
    for (block, next) in successors.iter().enumerate() {
        for successor in next {
            predecessors[*successor].push(block);
        }
    }
    // A post-order of the reversed graph, from the end.
    let (mut order, mut seen) = (Vec::new(), vec![false; n + 1]);
    let mut stack = vec![(n, 0)];
    seen[n] = true;
    while let Some((block, next)) = stack.pop() {
        if let Some(predecessor) = predecessors[block].get(next) {
            stack.push((block, next + 1));
            if !seen[*predecessor] {
                seen[*predecessor] = true;
                stack.push((*predecessor, 0));
            }
        } else {
            order.push(block);
        }
    }
    let mut rank = vec![usize::MAX; n + 1];
    for (position, block) in order.iter().enumerate() {
        rank[*block] = position;
    }
    let mut join: Vec<Option<usize>> = vec![None; n + 1];
    join[n] = Some(n);
    let mut changed = true;
    while changed {
        changed = false;
        for block in order.iter().rev().copied().filter(|block| *block != n) {
            let mut new = None;
            for successor in successors[block].iter().copied().filter(|s| join[*s].is_some()) {
                new = Some(new.map_or(successor, |other| intersect(&join, &rank, other, successor)));
            }
            if new.is_some() && join[block] != new {
                join[block] = new;
                changed = true;
            }
        }
    }
    join.truncate(n);
    join.into_iter().map(|join| join.unwrap_or(n)).collect()
}

fn intersect(join: &[Option<usize>], rank: &[usize], a: usize, b: usize) -> usize {
    let (mut a, mut b) = (a, b);
    while a != b {
        while rank[a] < rank[b] {
            a = join[a].unwrap_or(join.len() - 1);
        }
        while rank[b] < rank[a] {
            b = join[b].unwrap_or(join.len() - 1);
        }
    }
    a
}

#[cfg(test)]
mod tests {
    use super::{post_dominators, without_side_exits};

    #[test]
    fn branches_converge_at_their_post_dominators() {
        // 0 → 1, 2; 1 → 3; 2 → 3; 3 → 0, 4; 4 ends.
        let successors = [vec![1, 2], vec![3], vec![3], vec![0, 4], vec![5]];
        assert_eq!(post_dominators(&successors, 5), [3, 3, 3, 4, 5]);
        // A loop without an end, and a path to the end.
        let successors = [vec![1, 2], vec![1], vec![3]];
        assert_eq!(post_dominators(&successors, 3), [2, 3, 3]);
    }

    #[test]
    fn lanes_that_leave_a_loop_to_end_are_no_path_for_the_others() {
        // 1 to 5 are a loop: 4 leaves it and ends at 6, as those do that leave at 5.
        let successors = [vec![1], vec![2, 3], vec![4, 5], vec![5], vec![6], vec![1, 6], vec![7]];
        let ends = |block: usize| block >= 6;
        assert_eq!(post_dominators(&successors, 7)[1..3], [6, 6]);
        let rest = post_dominators(&without_side_exits(&successors, ends), 7);
        assert_eq!(rest[1..3], [5, 5]);
        // 4 follows the loop, and is also where a branch in it leads to.
        let successors = [vec![1], vec![2, 3], vec![4, 3], vec![1, 4], vec![5]];
        assert_eq!(without_side_exits(&successors, |block| block >= 5), successors);
    }
}
