//! Breadth-first search over all reachable states, with the shortest trace to a broken invariant; random walks for
//! scopes too large for it.

use crate::{Invariant, Scope, State, Step};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A state's 64-bit print; states are remembered by it only (at 10^7 states two share one with chance 3 in a million).
#[derive(Default)]
struct Print(u64);

impl Hasher for Print {
    fn write(&mut self, bytes: &[u8]) {
        for chunk in bytes.chunks(8) {
            let mut word = [0; 8];
            word[..chunk.len()].copy_from_slice(chunk);
            self.write_u64(u64::from_le_bytes(word))
        }
    }
    fn write_u8(&mut self, v: u8) {
        self.write_u64(v as u64)
    }
    fn write_u64(&mut self, v: u64) {
        self.0 =
            (self.0 ^ v.wrapping_add(0x9e37_79b9_7f4a_7c15)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        self.0 ^= self.0 >> 32;
    }
    fn finish(&self) -> u64 {
        let x = self.0.wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ x >> 29
    }
}

/// Prints are mixed already.
#[derive(Default)]
struct Same(u64);

impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {
        unreachable!("only prints are hashed")
    }
    fn write_u64(&mut self, v: u64) {
        self.0 = v
    }
    fn finish(&self) -> u64 {
        self.0
    }
}

fn print(st: &State) -> u64 {
    let mut h = Print::default();
    st.hash(&mut h);
    h.finish()
}

pub struct Outcome {
    pub states: usize,
    pub steps: u64,
    pub depth: usize,
    /// Every reachable state was visited.
    pub complete: bool,
    pub broken: Option<(Invariant, Vec<Step>)>,
}

/// Visits states in order of distance, up to `limit` of them; stops at the first broken invariant.
pub fn explore(s: &Scope, limit: usize) -> Outcome {
    let first = State::first(s);
    let root = first.canonical(s);
    let mut seen: HashSet<u64, BuildHasherDefault<Same>> = HashSet::default();
    let mut tree = vec![(print(&root), 0u32)]; // print, index of parent
    seen.insert(tree[0].0);
    let (mut level, mut next, mut out) = (vec![(root, 0u32)], vec![], vec![]);
    let mut o = Outcome {
        states: 1,
        steps: 0,
        depth: 0,
        complete: false,
        broken: None,
    };
    while !level.is_empty() {
        for (st, at) in &level {
            st.steps(s, &mut out);
            o.steps += out.len() as u64;
            for (_, t) in &out {
                let t = t.canonical(s);
                let p = print(&t);
                if !seen.insert(p) {
                    continue;
                }
                tree.push((p, *at));
                o.states += 1;
                if let Some(i) = t.broken(s) {
                    o.depth += 1;
                    o.broken = Some((i, trace(s, first, &tree)));
                    return o;
                }
                next.push((t, tree.len() as u32 - 1));
            }
            if o.states >= limit {
                return o;
            }
        }
        level = std::mem::take(&mut next);
        if !level.is_empty() {
            o.depth += 1
        }
    }
    o.complete = true;
    o
}

/// The path to the last state in `tree`, walked again so that a node keeps its name from step to step.
fn trace(s: &Scope, first: State, tree: &[(u64, u32)]) -> Vec<Step> {
    let (mut path, mut at) = (vec![], tree.len() - 1);
    while at != 0 {
        path.push(tree[at].0);
        at = tree[at].1 as usize
    }
    let (mut st, mut out, mut steps) = (first, vec![], vec![]);
    for want in path.iter().rev() {
        st.steps(s, &mut out);
        let (step, t) = *out
            .iter()
            .find(|(_, t)| print(&t.canonical(s)) == *want)
            .expect("a step on the path");
        steps.push(step);
        st = t;
    }
    steps
}

/// `walks` random walks of `length` steps. Finds deep faults; proves nothing.
pub fn wander(s: &Scope, seed: u64, walks: u64, length: usize) -> Outcome {
    let mut chance = seed.wrapping_mul(2).wrapping_add(1);
    let mut out = vec![];
    let mut o = Outcome {
        states: 0,
        steps: 0,
        depth: length,
        complete: false,
        broken: None,
    };
    for _ in 0..walks {
        let (mut st, mut path) = (State::first(s), vec![]);
        for _ in 0..length {
            st.steps(s, &mut out);
            chance ^= chance << 13;
            chance ^= chance >> 7;
            chance ^= chance << 17;
            // Trouble is always possible: progress is made likelier.
            if chance >> 20 & 7 != 0 && out.iter().any(|(step, _)| !is_trouble(step)) {
                out.retain(|(step, _)| !is_trouble(step))
            }
            if out.is_empty() {
                break;
            }
            let (step, t) = out[(chance >> 24) as usize % out.len()];
            path.push(step);
            o.steps += 1;
            o.states += 1;
            st = t;
            if let Some(i) = st.broken(s) {
                o.depth = path.len();
                o.broken = Some((i, path));
                return o;
            }
        }
    }
    o
}

fn is_trouble(step: &Step) -> bool {
    matches!(
        step,
        Step::Crash { .. }
            | Step::Wipe { .. }
            | Step::LoseSuffix { .. }
            | Step::Stop { .. }
            | Step::LeaseEnds { .. }
    )
}
