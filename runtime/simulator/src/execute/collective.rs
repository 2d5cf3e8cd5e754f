//! Shuffles, votes, matches and reductions of a warp.

use super::{
    compare::{set_predicate, truth},
    convert,
    lanes::{active, mask_of, set},
    warp::Frame,
};
use crate::decode::{AtomicOp, Collective, Reg, Shuffle};

/// Executes a collective for lanes, each with the lanes that it names.
pub(super) fn execute(frame: &mut Frame, collective: &Collective, members: Reg, mask: u32) {
    let members = frame.words[members as usize].map(|members| members & mask);
    match *collective {
        Collective::Barrier => {}
        Collective::Shuffle(mode, d, p, a, b, c) => shuffle(frame, mode, [d, p, a, b, c], mask),
        Collective::VoteAll(d, vote) => {
            let value = truth(frame, vote);
            set_predicate(frame, d, mask, mask_of(|lane| members[lane] & !value == 0));
        }
        Collective::VoteAny(d, vote) => {
            let value = truth(frame, vote);
            set_predicate(frame, d, mask, mask_of(|lane| members[lane] & value != 0));
        }
        Collective::VoteUni(d, vote) => {
            let value = truth(frame, vote);
            let is_equal = |lane: usize| members[lane] & value == 0 || members[lane] & !value == 0;
            set_predicate(frame, d, mask, mask_of(is_equal));
        }
        Collective::Ballot(d, vote) => {
            let value = truth(frame, vote);
            set(&mut frame.words, d, mask, &members.map(|members| members & value));
        }
        Collective::MatchAny(d, bank, a) => {
            let values = convert::read(frame, (bank, a));
            let equal = std::array::from_fn(|lane| mask_of(|other| values[other] == values[lane]) & members[lane]);
            set(&mut frame.words, d, mask, &equal);
        }
        Collective::MatchAll(d, p, bank, a) => {
            let values = convert::read(frame, (bank, a));
            let is_all = |lane: usize| active(members[lane]).all(|other| values[other] == values[lane]);
            let equal = mask_of(is_all);
            let found = std::array::from_fn(|lane| if equal >> lane & 1 != 0 { members[lane] } else { 0 });
            set(&mut frame.words, d, mask, &found);
            set_predicate(frame, p, mask, equal);
        }
        Collective::Redux(op, is_signed, d, a) => {
            let values = frame.words[a as usize];
            let reduced = std::array::from_fn(|lane| {
                let own = active(members[lane]).map(|other| values[other]);
                own.reduce(|x, y| reduce(op, is_signed, x, y)).unwrap_or(0)
            });
            set(&mut frame.words, d, mask, &reduced);
        }
    }
}

fn reduce(op: AtomicOp, is_signed: bool, x: u32, y: u32) -> u32 {
    let ty = if is_signed { crate::parse::Type::S32 } else { crate::parse::Type::U32 };
    super::atomic::apply(op, ty, u64::from(x), [u64::from(y), 0]) as u32
}

/// `shfl`: the low 5 bits of `c` are the last lane of a segment, the next ones a mask of segments.
fn shuffle(frame: &mut Frame, mode: Shuffle, [d, p, a, b, c]: [Reg; 5], mask: u32) {
    let values = frame.words[a as usize];
    let (distances, limits) = (&frame.words[b as usize], &frame.words[c as usize]);
    let (mut result, mut inside) = ([0; 32], 0);
    for lane in 0..32_i32 {
        let index = lane as usize;
        let (distance, limit) = ((distances[index] & 31) as i32, limits[index]);
        let segment = (limit >> 8 & 31) as i32;
        let low = lane & segment;
        let high = low | (limit & 31) as i32 & !segment;
        let (source, is_inside) = match mode {
            Shuffle::Up => (lane - distance, lane - distance >= high),
            Shuffle::Down => (lane + distance, lane + distance <= high),
            Shuffle::Bfly => (lane ^ distance, lane ^ distance <= high),
            Shuffle::Idx => (low | distance & !segment, low | distance & !segment <= high),
        };
        let source = if is_inside { source } else { lane };
        result[index] = values[(source & 31) as usize];
        inside |= u32::from(is_inside) << lane;
    }
    set(&mut frame.words, d, mask, &result);
    set_predicate(frame, p, mask, inside);
}

/// The lanes that the active lanes of a collective name.
pub(super) fn named(frame: &Frame, members: Reg, mask: u32) -> u32 {
    active(mask).fold(0, |all, lane| all | frame.words[members as usize][lane])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::decode::Bank;

    #[test]
    fn shuffles_stop_at_segments() {
        let mut frame = Frame::empty(5, 0, 3);
        frame.words[1] = std::array::from_fn(|lane| lane as u32);
        frame.words[2] = [1; 32];
        // Segments of eight lanes: 31 - 7 = 24 is the mask, 7 (or 0 for `up`) the end.
        frame.words[3] = [24 << 8 | 7; 32];
        shuffle(&mut frame, Shuffle::Down, [4, 2, 1, 2, 3], u32::MAX);
        assert_eq!((frame.words[4][6], frame.words[4][7]), (7, 7));
        assert_eq!(frame.predicates[2], !0x8080_8080);
        frame.words[3] = [24 << 8; 32];
        shuffle(&mut frame, Shuffle::Up, [4, 2, 1, 2, 3], u32::MAX);
        assert_eq!((frame.words[4][8], frame.words[4][9]), (8, 8));
        frame.words[3] = [31; 32];
        shuffle(&mut frame, Shuffle::Bfly, [4, 2, 1, 2, 3], u32::MAX);
        assert_eq!((frame.words[4][0], frame.words[4][1]), (1, 0));
        shuffle(&mut frame, Shuffle::Idx, [4, 2, 1, 2, 3], 1);
        assert_eq!(frame.words[4][0], 1);
    }

    #[test]
    fn reductions_use_the_named_lanes() {
        let mut frame = Frame::empty(4, 0, 3);
        frame.words[1] = std::array::from_fn(|lane| lane as u32 % 3);
        frame.words[2] = std::array::from_fn(|lane| if lane < 16 { 0xffff } else { 0xffff_0000 });
        execute(&mut frame, &Collective::Redux(AtomicOp::Add, false, 3, 1), 2, u32::MAX);
        assert_eq!((frame.words[3][0], frame.words[3][31]), (15, 16));
        execute(&mut frame, &Collective::MatchAny(3, Bank::Word, 1), 2, u32::MAX);
        assert_eq!(frame.words[3][0], 0b1001_0010_0100_1001);
    }
}
