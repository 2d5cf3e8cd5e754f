//! Paths of lanes that diverge.

use super::{Frame, Path, State, Warp};
use crate::{decode::Function, execute::Machine};

impl Warp {
    /// Takes a branch; where lanes diverge, makes two paths.
    pub(super) fn branch(
        &mut self,
        machine: &mut Machine,
        path: usize,
        (frame, code): (&mut Frame, &Function),
        (target, join, taken, counter): (u32, u32, u32, usize),
    ) {
        let own = self.paths[path];
        let next = code.blocks[code.block_of[own.pc as usize] as usize].end;
        let rest = own.mask & frame.live & !taken;
        if rest == 0 || taken == 0 {
            self.paths[path].pc = if rest == 0 { target } else { next };
            return;
        }
        machine.counters.executed[counter].divergent += 1;
        if join == own.join {
            // The parent waits at the same instruction: this path becomes one of its children.
            let sibling = Path { pc: target, mask: taken, state: State::Ready, ..own };
            self.paths[path].pc = next;
            self.paths[path].mask = rest;
            if target != join {
                if let Some(parent) = own.parent {
                    self.paths[parent].children += 1;
                }
                frame.paths += 1;
                self.add_path(sibling);
            }
            return;
        }
        let mut children = 0;
        for (pc, mask) in [(next, rest), (target, taken)] {
            if pc != join {
                children += 1;
                frame.paths += 1;
                self.add_path(Path { pc, join, mask, parent: Some(path), children: 0, state: State::Ready, ..own });
            }
        }
        let state = if children > 0 { State::Waits } else { State::Ready };
        self.paths[path] = Path { pc: join, children, state, ..own };
    }

    /// Lets lanes that have arrived where their paths converge continue without a path that polls memory: it may wait
    /// for them, such as for the lane that holds a lock. They are the lanes of the nearest path that waits for it.
    /// Lanes that have returned from a call do not continue before the others.
    /// Returns whether there are such lanes.
    pub(super) fn continue_arrived(&mut self, path: usize) -> bool {
        let mut next = self.paths[path].parent;
        while let Some(waits) = next {
            let own = self.paths[waits];
            next = own.parent;
            let live = self.frames[own.frame].as_ref().map_or(0, |frame| frame.live);
            let children = self.paths.iter().filter(|other| other.state != State::Free && other.parent == Some(waits));
            let arrived = children.fold(own.mask & live, |lanes, child| lanes & !child.mask);
            if arrived == 0 {
                continue;
            }
            self.paths[waits].mask &= !arrived;
            if let Some(parent) = own.parent {
                self.paths[parent].children += 1;
            }
            if let Some(frame) = &mut self.frames[own.frame] {
                frame.paths += 1;
            }
            self.add_path(Path { mask: arrived, children: 0, state: State::Ready, ..own });
            return true;
        }
        false
    }
}
