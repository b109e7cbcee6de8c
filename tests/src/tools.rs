//! Outside programs the tests speak through. `scripts/install-tools.sh` brings them.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

/// The repository's root.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap()
}

/// The Python with the clients, from `CLIENTS_PYTHON` or where the script puts it.
pub fn python() -> PathBuf {
    let path = std::env::var_os("CLIENTS_PYTHON").map_or_else(
        || {
            let printed = Command::new("bash")
                .arg(root().join("scripts/install-tools.sh"))
                .arg("--python")
                .output()
                .expect("bash runs");
            PathBuf::from(String::from_utf8(printed.stdout).unwrap().trim_end())
        },
        PathBuf::from,
    );
    assert!(
        path.exists(),
        "{} is missing: run scripts/install-tools.sh",
        path.display()
    );
    path
}

/// A client program of this folder, ready for its arguments.
pub fn client(program: &str) -> Command {
    let mut command = Command::new(python());
    command.arg(root().join("tests/clients/python").join(program));
    command
}

/// kcat, ready for its arguments.
pub fn kcat(address: &str) -> Command {
    let mut command = Command::new("kcat");
    command.args(["-b", address, "-X", "broker.address.family=v4"]);
    command
}

/// Runs a command that has to succeed and gives what it printed.
///
/// # Panics
/// When it fails, with all it said.
pub fn run(command: &mut Command) -> String {
    let output = output(command);
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

/// Runs a command whatever its end.
///
/// # Panics
/// When it cannot be started: `scripts/install-tools.sh` was not run.
pub fn output(command: &mut Command) -> Output {
    command
        .output()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; run scripts/install-tools.sh"))
}

/// Runs a command with text on its standard input.
///
/// # Panics
/// As [`run`].
pub fn run_with_input(command: &mut Command, input: &[u8]) -> String {
    use std::io::Write;
    use std::process::Stdio;
    let mut child = command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap_or_else(|error| panic!("{command:?}: {error}; run scripts/install-tools.sh"));
    child.stdin.take().unwrap().write_all(input).unwrap();
    let output = child.wait_with_output().unwrap();
    assert!(
        output.status.success(),
        "{command:?} ended with {}\n{}",
        output.status,
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}
