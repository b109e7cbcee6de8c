//! A write torn at a given byte, inside a sector too, which a sound device never does: nothing acknowledged is missing,
//! though it may be called damage (one torn sector looks like a flipped one).

use std::collections::VecDeque;

use crate::check::{self, Hit};
use crate::node::Part;
use crate::operations;
use crate::run::{Broken, Fate, Run};

/// Runs the same short life again and again, each time with the write `ahead` of its end torn after `bytes` bytes.
/// `Ok(false)` when there is no such write.
pub fn torn(seed: u64, ahead: u64, bytes: usize) -> Result<bool, Broken> {
    let mut run = Run::new(seed, Fate::PowerLoss);
    let broken = |what: String| Broken {
        seed,
        fate: Fate::PowerLoss,
        what: format!("write {ahead} torn at byte {bytes}: {what}"),
        notes: VecDeque::new(),
    };
    run.torn(ahead, bytes).map_err(broken)
}

impl Run {
    fn torn(&mut self, ahead: u64, bytes: usize) -> Result<bool, String> {
        self.prepare().map_err(|error| error.to_string())?;
        let opened = self.world.open();
        let (mut node, _) = opened.map_err(|error| error.to_string())?;
        for _ in 0..60 {
            operations::one(
                &self.chance,
                &self.mix,
                &self.world,
                &mut node,
                &mut self.truth,
            )?;
            node.hear(&mut self.truth)?;
        }
        let disk = self.world.disk.clone();
        disk.tear_at(disk.operations() + ahead, bytes);
        for _ in 0..20 {
            for part in [Part::Journal, Part::Segment, Part::Checkpoint] {
                node.step(part);
                node.hear(&mut self.truth)?;
            }
        }
        drop(node);
        if !disk.is_cut() {
            return Ok(false);
        }
        self.world.disk = disk.after_power_cut();
        let hit = Hit {
            is_any: true,
            ..Hit::default()
        };
        let opened = self.world.open();
        let (node, found) = opened.map_err(|error| format!("does not open: {error}"))?;
        check::recovered(&self.truth, &found, &hit)?;
        check::adopt(&node, &mut self.truth, &found);
        check::contents(&node, &self.truth, &Hit::default())?;
        Ok(true)
    }
}
