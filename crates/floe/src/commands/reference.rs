//! The reference page of the commands, made from their declarations.

use std::fmt::Write as _;

use clap::{Args, CommandFactory as _};

use super::Cli;
use crate::exit::{CODES, Outcome};
use crate::output::Output;

const HEAD: &str = "\
# Commands

<!-- Made from the declarations in crates/floe/src/commands by `floe reference`; a test compares. -->

One binary does everything. Commands that talk to a node take its HTTP port with `--server` (or `FLOE_SERVER`). Tables are
for people; `--json` is for programs. What a command reports goes to the standard output, what went wrong to the standard
error, with an exit code that says which kind of wrong it was.
";

/// `floe reference`: hidden; prints docs/commands.md.
#[derive(Debug, Args)]
pub(super) struct Reference {}

impl Reference {
    pub(super) fn run(self) -> Outcome {
        let Self {} = self;
        let mut out = Output::stdout();
        out.bytes(page().as_bytes())?;
        out.flush()
    }
}

/// The page.
fn page() -> String {
    let mut page = HEAD.to_owned();
    section(&mut page, "floe", &mut Cli::command().term_width(100));
    page.push_str("\n## Exit codes\n\n| code | means |\n|---|---|\n");
    for (code, means) in CODES {
        writeln!(page, "| {} | {means} |", code as u8).expect("writing to a string cannot fail");
    }
    page
}

fn section(page: &mut String, path: &str, command: &mut clap::Command) {
    let help = command.clone().bin_name(path).render_help();
    writeln!(
        page,
        "\n## {path}\n\n```text\n{}\n```",
        help.to_string().trim_end()
    )
    .expect("writing to a string cannot fail");
    for inner in command.get_subcommands_mut() {
        if inner.get_name() == "help" || inner.is_hide_set() {
            continue;
        }
        let path = format!("{path} {}", inner.get_name());
        let mut inner = inner.clone().term_width(100);
        section(page, &path, &mut inner);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_declarations_of_the_commands_are_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_page_in_docs_is_what_the_declarations_say() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/commands.md");
        let kept = std::fs::read_to_string(path).unwrap_or_default();
        assert!(
            kept == page(),
            "docs/commands.md is stale: floe reference > docs/commands.md"
        );
    }
}
