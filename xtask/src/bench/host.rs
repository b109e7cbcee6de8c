//! What the machine says: processor time, memory, finished writes of a device, and the price of a flush.

use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};

/// Seconds of processor time a process has used, all its threads, user and system.
pub(crate) fn cpu_seconds(process: u32) -> Result<f64> {
    let stat = std::fs::read_to_string(format!("/proc/{process}/stat"))?;
    // The name in brackets may hold spaces; fields count from behind it (proc(5)): 14 and 15, in ticks of 10 ms.
    let fields: Vec<&str> = stat
        .rsplit(')')
        .next()
        .unwrap_or_default()
        .split_whitespace()
        .collect();
    let ticks = |index: usize| -> Result<f64> {
        Ok(fields.get(index).context("field of stat")?.parse::<f64>()?)
    };
    Ok((ticks(11)? + ticks(12)?) / 100.0)
}

/// Resident memory of a process.
pub(crate) fn resident_bytes(process: u32) -> Result<u64> {
    let status = std::fs::read_to_string(format!("/proc/{process}/status"))?;
    let line = status
        .lines()
        .find(|line| line.starts_with("VmRSS:"))
        .context("VmRSS")?;
    Ok(line
        .split_whitespace()
        .nth(1)
        .context("VmRSS")?
        .parse::<u64>()?
        * 1024)
}

/// Writes that the device below a path has completed since boot.
pub(crate) fn device_writes(path: &Path) -> Result<u64> {
    let device = std::fs::metadata(path)?.dev();
    let (major, minor) = (
        (device >> 8) & 0xfff,
        (device & 0xff) | ((device >> 12) & 0xfff00),
    );
    let stats = std::fs::read_to_string("/proc/diskstats")?;
    let fields: Vec<&str> = stats
        .lines()
        .map(|line| line.split_whitespace().collect::<Vec<_>>())
        .find(|fields| fields[0] == major.to_string() && fields[1] == minor.to_string())
        .with_context(|| format!("device {major}:{minor} in /proc/diskstats"))?;
    Ok(fields[7].parse()?)
}

/// Forgets what the page cache holds; needs root.
pub(crate) fn drop_caches() -> Result<()> {
    std::process::Command::new("sync").status()?;
    std::fs::write("/proc/sys/vm/drop_caches", "3").context("dropping caches needs root")?;
    Ok(())
}

const O_DIRECT: i32 = 0x4000;
const O_DSYNC: i32 = 0x1000;
const BLOCK: usize = 4096;

/// Writes one block at a time into a zero-filled file, each on stable storage before the next: what a journal
/// cannot do better than.
pub(crate) fn flush_probe(folder: &Path, count: usize) -> Result<Value> {
    let path = folder.join("probe");
    std::fs::write(&path, vec![0_u8; count * BLOCK])?;
    std::fs::File::open(&path)?.sync_all()?;
    let file = std::fs::File::options()
        .write(true)
        .custom_flags(O_DIRECT | O_DSYNC)
        .open(&path)?;
    let memory = vec![0x5a_u8; 2 * BLOCK];
    let start = memory.as_ptr().align_offset(BLOCK);
    let block = &memory[start..start + BLOCK];
    let mut times = Vec::with_capacity(count);
    for index in 0..count {
        let started = Instant::now();
        std::os::unix::fs::FileExt::write_all_at(&file, block, (index * BLOCK) as u64)?;
        times.push(started.elapsed().as_secs_f64() * 1e6);
    }
    std::fs::remove_file(&path)?;
    times.sort_by(f64::total_cmp);
    Ok(
        json!({"p50_us": times[count / 2], "p99_us": times[count * 99 / 100], "p999_us": times[count * 999 / 1000]}),
    )
}
