//! The reference page of the configuration, made from the table.

use std::fmt::Write as _;

use super::kind::{Kind, size};
use super::settings::{Default, SETTINGS, Setting};

const HEAD: &str = "\
# Configuration

<!-- Made from the table in crates/floe/src/config/settings.rs by `floe config --reference`; a test compares. -->

Floe starts with what is built in; nothing needs to be set. A setting can be given in three places, the later going
before the earlier:

1. a TOML file, `floe dev --config FILE` (or `FLOE_CONFIG=FILE`): `num.partitions = 8`
2. the environment: `FLOE_NUM_PARTITIONS=8`
3. a flag: `floe dev --set num.partitions=8`

Reading is strict: an unknown name, a value of the wrong type or out of range, and settings that contradict each other
are all reported at once, each with its file, line and column, its variable or its flag, and what to write instead;
the node does not start and the exit code is 3. `floe config` shows every setting with its value and where it came
from. Sizes are bytes, or text with `KiB`, `MiB`, `GiB`, `TiB`.
";

const LIMITS: &str = "
## Fixed limits

What the doors bound without a setting. The buffers are 11/16 of `memory.limit.bytes`.

| of | limit | is | beyond it |
|---|---|---|---|
";

const TAIL: &str = "
## Notes

**`journal.bytes`.** All partitions share one journal. What a small record costs is written to it first and copied to
the partition's segment by checkpoints; when the journal is full of records that no checkpoint has covered yet, producers
wait for the next one. A small journal therefore means more checkpoints and, under load, waits; a large one means a
longer replay after a crash. It grows to its size while the node runs, so a first start does not wait for it.

**`memory.limit.bytes`.** The default is the smallest limit among the process's control groups (cgroup v1 or v2), or
512 MiB when there is none below the machine's memory. Buffers for requests, for the tail of each partition and for
reads take 11/16 of it; the rest is left to indexes, producers' state, connections, decompressed batches, the allocator
and code.
";

/// The page.
pub fn page() -> String {
    let mut page = HEAD.to_owned();
    let mut section = "";
    for setting in SETTINGS {
        if setting.section != section {
            section = setting.section;
            write!(
                page,
                "\n## {section}\n\n| setting | default | allowed | what it does |\n|---|---|---|---|\n"
            )
            .expect("writing to a string cannot fail");
        }
        writeln!(
            page,
            "| `{}`<br>`{}` | {} | {} | {} |",
            setting.name,
            setting.variable(),
            default(setting),
            allowed(setting.kind),
            setting.doc
        )
        .expect("writing to a string cannot fail");
    }
    page.push_str(LIMITS);
    let of_node = ("the node", crate::node::fixed());
    for (door, rows) in floe_gateway::fixed::limits().into_iter().chain([of_node]) {
        for row in rows {
            let (what, limit, beyond) = (row.what, row.limit, row.beyond);
            writeln!(page, "| {door} | {what} | {limit} | {beyond} |")
                .expect("writing to a string cannot fail");
        }
    }
    page + TAIL
}

fn default(setting: &Setting) -> String {
    match (setting.default, setting.kind) {
        (Default::Is(text), _) => format!("`{text}`"),
        (Default::MemoryLimit, _) => "the control group's limit, else 512 MiB".to_owned(),
        (Default::PartOfMemory, _) => {
            "a sixteenth of `memory.limit.bytes`, at most 64 MiB".to_owned()
        }
        (Default::UserDataDirectory, _) => {
            "`floe` in the user's data directory (`~/.local/share`)".to_owned()
        }
    }
}

fn allowed(kind: Kind) -> String {
    match kind {
        Kind::Number { unit: "", min, max } => format!("{min} to {max}"),
        Kind::Number { unit, min, max } => format!("{min} to {max} ({unit})"),
        Kind::Bytes { min, max } => format!("{} to {}", size(min), size(max)),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_page_in_docs_is_what_the_table_says() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/configuration.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == page(),
            "docs/configuration.md is stale: floe config --reference > docs/configuration.md"
        );
    }
}
