//! `floe completions SHELL`: a script that lets a shell complete commands and flags.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use super::Cli;
use crate::exit::Outcome;
use crate::output::Output;

/// The command and where its output belongs.
#[derive(Debug, Args)]
#[command(after_help = "\
Where the script belongs:
  bash        floe completions bash > ~/.local/share/bash-completion/completions/floe
  fish        floe completions fish > ~/.config/fish/completions/floe.fish
  zsh         floe completions zsh > DIRECTORY/_floe, with a DIRECTORY of $fpath")]
pub(super) struct Completions {
    /// The shell.
    shell: Shell,
}

impl Completions {
    pub(super) fn run(self) -> Outcome {
        let mut out = Output::stdout();
        out.bytes(&script(self.shell))?;
        out.flush()
    }
}

fn script(shell: Shell) -> Vec<u8> {
    let mut script = Vec::new();
    let mut command = Cli::command();
    clap_complete::generate(shell, &mut command, "floe", &mut script);
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum as _;

    #[test]
    fn every_shells_script_knows_every_command_that_is_not_hidden() {
        for shell in Shell::value_variants() {
            let script = String::from_utf8(script(*shell)).unwrap();
            for command in Cli::command().get_subcommands() {
                let name = command.get_name();
                assert!(
                    command.is_hide_set() || script.contains(name),
                    "{shell} {name}"
                );
            }
            assert!(
                script.contains("--data-dir") || script.contains("data-dir"),
                "{shell}"
            );
        }
    }
}
