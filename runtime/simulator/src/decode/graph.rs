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
    let joins = post_dominators(&successors, n);
    for (block, join) in joins.into_iter().enumerate() {
        function.blocks[block].join = if ends_lanes(function, bounds[join]) { count } else { bounds[join] } as u32;
    }
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
    use super::post_dominators;

    #[test]
    fn branches_converge_at_their_post_dominators() {
        // 0 → 1, 2; 1 → 3; 2 → 3; 3 → 0, 4; 4 ends.
        let successors = [vec![1, 2], vec![3], vec![3], vec![0, 4], vec![5]];
        assert_eq!(post_dominators(&successors, 5), [3, 3, 3, 4, 5]);
        // A loop without an end, and a path to the end.
        let successors = [vec![1, 2], vec![1], vec![3]];
        assert_eq!(post_dominators(&successors, 3), [2, 3, 3]);
    }
}
