//! What must hold at any time, over all nodes, disks and the catalog.

use super::disk::Stored;
use super::truth::Broken;
use super::world::World;

impl World {
    /// What must hold at any time, of everything.
    pub(super) fn check(&mut self) -> Result<(), Broken> {
        for node in &self.nodes {
            let Some(replica) = &node.replica else {
                continue;
            };
            for (epoch, stored) in &node.disk.memory.generations {
                let readable = replica.committed(*epoch).unwrap_or(stored.start);
                if readable > stored.end() {
                    return Err(format!(
                        "epoch {epoch} is readable up to {readable}, held up to {}",
                        stored.end()
                    ));
                }
                let batches = stored.batches.iter();
                for (base, batch) in batches.take_while(|(_, batch)| batch.end <= readable) {
                    self.truth.seen(*epoch, *base, *batch)?;
                }
            }
        }
        self.check_holders()?;
        self.check_kept()?;
        self.check_leases()
    }

    /// Whoever the catalog names as holder, in this life, has it all on its disk.
    fn check_holders(&mut self) -> Result<(), Broken> {
        for sealed in &self.catalog.sealed {
            let lives = self.nodes.iter();
            for holder in lives
                .map(|node| node.member)
                .filter(|life| sealed.holders.contains(life))
            {
                self.truth.compared += 1;
                let disk = &self.nodes[holder.node.0 as usize].disk.durable;
                let stored = disk.generations.get(&sealed.epoch);
                let end = stored.map_or(sealed.start, Stored::end);
                if end < sealed.end {
                    return Err(format!(
                        "node {} holds epoch {} up to {end} of {}",
                        holder.node, sealed.epoch, sealed.end
                    ));
                }
            }
        }
        Ok(())
    }

    /// P1: whatever was acknowledged or read is on some disk, and below the seal.
    fn check_kept(&mut self) -> Result<(), Broken> {
        for (epoch, seen) in &self.truth.seen_end {
            self.truth.compared += 1;
            let disks = self.nodes.iter().map(|node| &node.disk.durable.generations);
            let ends = disks.filter_map(|generations| Some(generations.get(epoch)?.end()));
            let kept = ends.max().unwrap_or_default();
            if kept < *seen {
                return Err(format!(
                    "epoch {epoch} was seen up to {seen} and is on disk up to {kept}"
                ));
            }
            if let Some(sealed) = self.catalog.sealed(*epoch)
                && *seen > sealed.end
            {
                return Err(format!(
                    "epoch {epoch} was seen up to {seen}, sealed at {}",
                    sealed.end
                ));
            }
        }
        Ok(())
    }

    /// P3: whoever may answer linearizable reads knows all that was acknowledged.
    pub(super) fn check_leases(&mut self) -> Result<(), Broken> {
        let acked = self.truth.acked_end();
        for at in 0..self.nodes.len() {
            let now = self.clock(at);
            let Some(replica) = &self.nodes[at].replica else {
                continue;
            };
            self.truth.compared += 1;
            let known = replica.leads().and_then(|epoch| replica.committed(epoch));
            let has_lease = replica.has_lease(now);
            self.leases += u64::from(has_lease);
            if has_lease && known.is_none_or(|known| known < acked) {
                return Err(format!(
                    "node {at} may answer reads and does not know {acked}"
                ));
            }
        }
        Ok(())
    }
}
