//! Runs the clients' contract for all families and writes the matrix into `docs/clients.md`.

use std::fmt::Write as _;
use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result, bail};
use floe_tests::Node;
use floe_tests::contract::{self, CASES, Family, Lacks, Outcome};

use crate::repository;

const PAGE: &str = "docs/clients.md";
const BEGIN: &str = "<!-- written by cargo xtask clients: from here -->";
const END: &str = "<!-- to here -->";

/// Runs the families whose names begin with one of the words, or all; only a run of all writes the page.
pub(crate) fn run(only: &[&str]) -> Result<()> {
    repository::run(
        Command::new("bash")
            .arg(repository::root().join("scripts/install-tools.sh"))
            .arg("--bench"),
    )?;
    let wanted = |name: &str| only.is_empty() || only.iter().any(|word| name.starts_with(word));
    let mut matrix = Vec::new();
    for build in [kcat, confluent, kafka_python, franz_go, java] {
        let Some(family) = build(&wanted)? else {
            continue;
        };
        let mut node = Node::start();
        let outcomes = contract::run(&family, &node);
        if !node.stop().success() {
            bail!(
                "the node did not end in order after {}: {}",
                family.name,
                node.log()
            );
        }
        matrix.push((family.name, outcomes));
    }
    if only.is_empty() {
        write_page(&matrix)?;
    }
    let failures: Vec<String> = matrix
        .iter()
        .flat_map(|(name, outcomes)| {
            outcomes
                .iter()
                .map(move |(case, outcome)| (name, case, outcome))
        })
        .filter_map(|(name, case, outcome)| match outcome {
            Outcome::Failed(why) => Some(format!("{name}: {case}: {why}")),
            Outcome::Passed | Outcome::Absent => None,
        })
        .collect();
    if !failures.is_empty() {
        bail!(
            "{} cases do not hold\n  {}",
            failures.len(),
            failures.join("\n  ")
        );
    }
    println!("clients: {} families keep the contract", matrix.len());
    Ok(())
}

type Wanted<'a> = &'a dyn Fn(&str) -> bool;

fn python(program: &str) -> Vec<String> {
    let program = repository::root()
        .join("tests/clients/python")
        .join(program);
    vec![
        floe_tests::tools::python().display().to_string(),
        program.display().to_string(),
    ]
}

fn python_version(package: &str) -> Result<String> {
    let mut command = Command::new(floe_tests::tools::python());
    command.args([
        "-c",
        &format!("import importlib.metadata as m; print(m.version('{package}'))"),
    ]);
    Ok(repository::output(&mut command)?.trim().to_owned())
}

fn kcat(wanted: Wanted<'_>) -> Result<Option<Family>> {
    if !wanted("kcat") {
        return Ok(None);
    }
    let said = repository::output(Command::new("kcat").arg("-V"))?;
    let version = said
        .split_whitespace()
        .skip_while(|word| *word != "Version")
        .nth(1)
        .unwrap_or("?")
        .to_owned();
    Ok(Some(Family {
        name: format!("kcat {version}"),
        program: python("kcat.py"),
        lacks: Lacks::KCAT,
    }))
}

fn confluent(wanted: Wanted<'_>) -> Result<Option<Family>> {
    if !wanted("confluent-kafka") {
        return Ok(None);
    }
    let name = format!("confluent-kafka {}", python_version("confluent-kafka")?);
    Ok(Some(Family {
        name,
        program: python("confluent.py"),
        lacks: Lacks::default(),
    }))
}

fn kafka_python(wanted: Wanted<'_>) -> Result<Option<Family>> {
    if !wanted("kafka-python") {
        return Ok(None);
    }
    let name = format!("kafka-python {}", python_version("kafka-python")?);
    Ok(Some(Family {
        name,
        program: python("kafkapython.py"),
        lacks: Lacks::KAFKA_PYTHON,
    }))
}

fn franz_go(wanted: Wanted<'_>) -> Result<Option<Family>> {
    if !wanted("franz-go") {
        return Ok(None);
    }
    let folder = repository::root().join("tests/clients/go");
    let program = repository::target().join("clients-go");
    repository::run(
        Command::new("go")
            .current_dir(&folder)
            .args(["build", "-o"])
            .arg(&program)
            .arg("."),
    )?;
    let module = std::fs::read_to_string(folder.join("go.mod"))?;
    let version = module
        .lines()
        .find_map(|line| {
            line.trim()
                .trim_start_matches("require ")
                .strip_prefix("github.com/twmb/franz-go ")
        })
        .context("franz-go in go.mod")?;
    let name = format!("franz-go {}", version.trim().trim_start_matches('v'));
    Ok(Some(Family {
        name,
        program: vec![program.display().to_string()],
        lacks: Lacks::default(),
    }))
}

fn java(wanted: Wanted<'_>) -> Result<Option<Family>> {
    if !wanted("java") {
        return Ok(None);
    }
    let folder = repository::root().join("tests/clients/java");
    let target = repository::target().join("clients-java");
    std::fs::create_dir_all(&target)?;
    let classpath = maven_classpath(&folder.join("pom.xml"), &target)?;
    repository::run(
        Command::new("javac")
            .args(["--release", "17", "-cp", &classpath, "-d"])
            .arg(target.join("classes"))
            .arg(folder.join("src/main/java/Client.java")),
    )?;
    let classpath = format!("{}:{classpath}", target.join("classes").display());
    let program = [
        "java",
        "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn",
        "-cp",
        &classpath,
        "Client",
    ];
    let program = program.map(str::to_owned).to_vec();
    Ok(Some(Family {
        name: "java 4.4.0".to_owned(),
        program,
        lacks: Lacks::default(),
    }))
}

/// Brings what a pom names and gives the class path.
pub(crate) fn maven_classpath(pom: &Path, target: &Path) -> Result<String> {
    std::fs::create_dir_all(target)?;
    let list = target.join("classpath");
    repository::run(
        Command::new("mvn")
            .args(["-q", "-B", "-f"])
            .arg(pom)
            .arg("dependency:build-classpath")
            .arg(format!("-Dmdep.outputFile={}", list.display())),
    )?;
    Ok(std::fs::read_to_string(list)?.trim().to_owned())
}

fn write_page(matrix: &[(String, Vec<(&'static str, Outcome)>)]) -> Result<()> {
    let path = repository::root().join(PAGE);
    let page = std::fs::read_to_string(&path).with_context(|| PAGE.to_owned())?;
    let (before, rest) = page
        .split_once(BEGIN)
        .with_context(|| format!("{PAGE} lacks its begin mark"))?;
    let (_, after) = rest
        .split_once(END)
        .with_context(|| format!("{PAGE} lacks its end mark"))?;
    let mut table = String::from("\n\n| |");
    for (name, _) in matrix {
        write!(table, " {name} |")?;
    }
    write!(table, "\n|---|{}", "---|".repeat(matrix.len()))?;
    for (row, case) in CASES.iter().enumerate() {
        write!(table, "\n| {case} |")?;
        for (_, outcomes) in matrix {
            let mark = match &outcomes[row].1 {
                Outcome::Passed => "yes",
                Outcome::Absent => "no such call",
                Outcome::Failed(_) => "**no**",
            };
            write!(table, " {mark} |")?;
        }
    }
    std::fs::write(path, format!("{before}{BEGIN}{table}\n\n{END}{after}"))?;
    Ok(())
}
