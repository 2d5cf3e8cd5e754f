//! Paths that wait for a phase of a barrier in shared memory, or of that of their cluster.

use super::{State, Warp};
use crate::{
    decode::{AsyncOp, Operation},
    error::Error,
    execute::{Machine, asynchronous},
};

/// The paths of a warp that wait for phases.
pub(super) enum Waiting {
    /// There are none.
    None,
    /// One continues.
    Continues,
    /// All wait further.
    All,
}

impl Warp {
    /// No path can run: lets paths continue whose phases have completed.
    pub(super) fn at_phases(&mut self, machine: &mut Machine) -> Result<Waiting, Error> {
        let mut found = Waiting::None;
        for path in 0..self.paths.len() {
            if self.paths[path].state == State::AtPhase {
                let continues = self.continue_waiting(machine, path, false)?;
                if continues {
                    found = Waiting::Continues;
                } else if let Waiting::None = found {
                    found = Waiting::All;
                }
            }
        }
        Ok(found)
    }

    /// Lets a path continue whose phase has completed, or with `gives_up` one that waits for a barrier in shared memory: the
    /// wait then has the result that it has not completed. Returns whether it continues.
    fn continue_waiting(&mut self, machine: &mut Machine, path: usize, gives_up: bool) -> Result<bool, Error> {
        let (slot, pc) = (self.paths[path].frame, self.paths[path].pc as usize);
        let code = self.code(machine, slot);
        let (instruction, counter) = (&code.instructions[pc], code.first_counter + pc);
        let (Operation::Async(op), Some(mut frame)) = (&instruction.operation, self.frames[slot].take()) else {
            return Ok(false);
        };
        let mask = self.paths[path].mask & frame.live;
        let lanes = asynchronous::Lanes { warp: self.number, mask, counter };
        let done = asynchronous::execute(machine, &mut frame, op, lanes);
        let mut continues = *done.as_ref().unwrap_or(&false);
        if gives_up && !continues && matches!(**op, AsyncOp::Wait { .. }) {
            let done = asynchronous::completed(machine, &frame, op, lanes).unwrap_or(0);
            asynchronous::end_wait(&mut frame, op, mask, done);
            continues = true;
        }
        self.frames[slot] = Some(frame);
        done.map_err(|error| Error { line: instruction.line, ..error })?;
        if continues {
            self.paths[path].pc += 1;
            self.resume(path);
        }
        Ok(continues)
    }

    /// No warp of the cluster can run: lets lanes continue that wait where they converge with lanes that wait for a phase, since
    /// these may wait for them. Returns whether there are such lanes.
    pub(crate) fn diverge_at_phases(&mut self) -> bool {
        let waiting = (0..self.paths.len()).filter(|path| self.paths[*path].state == State::AtPhase);
        let waiting: Vec<usize> = waiting.collect();
        waiting.into_iter().any(|path| self.continue_arrived(path))
    }

    /// No warp of the cluster can run: ends the waits for barriers in shared memory, which may end without success. Returns
    /// whether there are any.
    pub(crate) fn give_up_phases(&mut self, machine: &mut Machine) -> Result<bool, Error> {
        let mut found = false;
        for path in 0..self.paths.len() {
            if self.paths[path].state == State::AtPhase {
                found |= self.continue_waiting(machine, path, true)?;
            }
        }
        Ok(found)
    }

    /// The error for the first path that waits for a phase which cannot complete.
    pub(crate) fn stuck_at_phase(&mut self, machine: &mut Machine) -> Option<Error> {
        let path = *self.paths.iter().find(|path| path.state == State::AtPhase)?;
        let instruction = &self.code(machine, path.frame).instructions[path.pc as usize];
        let (Operation::Async(op), Some(frame)) = (&instruction.operation, &self.frames[path.frame]) else {
            return None;
        };
        let mask = path.mask & frame.live;
        let message = asynchronous::missing(machine, frame, op, mask);
        Some(Error { lane: Some(mask.trailing_zeros()), ..Error::at(instruction.line, message) })
    }
}
