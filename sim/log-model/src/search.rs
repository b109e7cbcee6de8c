//! Breadth-first search over all reachable states of a scope, with the shortest trace to a broken invariant.

use crate::{Invariant, Scope, State, Step};
use std::collections::HashSet;
use std::hash::{BuildHasherDefault, Hash, Hasher};

/// A state's 64-bit print; states are remembered by it only (at 10^7 states two share one with chance 3 in a million).
#[derive(Default)]
struct Print(u64, u64);
impl Hasher for Print {
    fn write(&mut self, b: &[u8]) {
        for c in b.chunks(8) {
            let mut w = [0; 8];
            w[..c.len()].copy_from_slice(c);
            self.write_u64(u64::from_le_bytes(w))
        }
    }
    fn write_u8(&mut self, v: u8) {
        self.write_u64(v as u64)
    }
    fn write_u64(&mut self, v: u64) {
        self.0 = (self.0 ^ v)
            .wrapping_mul(0x9e37_79b9_7f4a_7c15)
            .rotate_left(29);
        self.1 = self.1.wrapping_add(self.0 ^ self.0 >> 31);
    }
    fn finish(&self) -> u64 {
        let x = (self.0 ^ self.1.rotate_left(17)).wrapping_mul(0xd6e8_feb8_6659_fd93);
        x ^ x >> 32
    }
}
#[derive(Default)]
struct Same(u64);
impl Hasher for Same {
    fn write(&mut self, _: &[u8]) {
        unreachable!()
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
    pub complete: bool,
    pub broken: Option<(Invariant, Vec<Step>)>,
}

/// Visits states in order of distance, up to `limit` of them; stops at the first broken invariant.
pub fn explore(s: &Scope, limit: usize) -> Outcome {
    let first = State::first(s);
    let mut seen: HashSet<u64, BuildHasherDefault<Same>> = HashSet::default();
    let mut tree = vec![(print(&first), 0u32)]; // print, index of parent
    seen.insert(tree[0].0);
    let (mut level, mut next, mut out) = (vec![(first, 0u32)], vec![], vec![]);
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
                let p = print(t);
                if !seen.insert(p) {
                    continue;
                }
                tree.push((p, *at));
                o.states += 1;
                if let Some(i) = t.broken() {
                    o.depth += 1;
                    o.broken = Some((i, trace(s, first, &tree)));
                    return o;
                }
                next.push((*t, tree.len() as u32 - 1));
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
            .find(|(_, t)| print(t) == *want)
            .expect("a step on the path");
        steps.push(step);
        st = t;
    }
    steps
}
