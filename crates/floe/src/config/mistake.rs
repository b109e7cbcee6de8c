//! What is wrong in a configuration: where, what, and what to do; all of it at once.

use std::fmt;
use std::path::PathBuf;

use super::kind::Refusal;

/// Where a value was written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// In the configuration file; line and column count from 1, columns in characters.
    File {
        /// The file.
        path: PathBuf,
        /// Line.
        line: usize,
        /// Column.
        column: usize,
    },
    /// In a variable of the environment.
    Variable(String),
    /// After a flag, as it was typed.
    Flag(String),
    /// Nowhere: the default.
    Default,
}

/// One mistake.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// Where.
    pub place: Place,
    /// What is wrong with which setting.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

/// All mistakes of a configuration, in the order file, environment, flags.
#[derive(Debug, PartialEq, Eq)]
pub struct Mistakes(pub Vec<Mistake>);

impl Mistake {
    /// A value that its setting refuses.
    pub(super) fn refused(place: Place, setting: &str, refusal: Refusal) -> Self {
        Self {
            place,
            problem: format!("{setting}: {}", refusal.problem),
            remedy: refusal.remedy,
        }
    }

    /// A name that no setting has.
    pub(super) fn unknown(place: Place, name: &str, known: impl Iterator<Item = String>) -> Self {
        let nearest = known
            .map(|candidate| (distance(name, &candidate), candidate))
            .min()
            .filter(|(distance, _)| *distance <= 2 + name.len() / 6);
        Self {
            place,
            problem: format!("there is no setting '{name}'"),
            remedy: match nearest {
                Some((_, candidate)) => format!("did you mean '{candidate}'?"),
                None => "`floe config` lists all settings".to_owned(),
            },
        }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File { path, line, column } => write!(f, "{}:{line}:{column}", path.display()),
            Self::Variable(name) => write!(f, "environment variable {name}"),
            Self::Flag(text) => write!(f, "flag {text}"),
            Self::Default => f.write_str("defaults"),
        }
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.place, self.problem, self.remedy)
    }
}

impl fmt::Display for Mistakes {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.len() {
            1 => write!(f, "the configuration has a mistake:")?,
            count => write!(f, "the configuration has {count} mistakes:")?,
        }
        for mistake in &self.0 {
            write!(f, "\n  {mistake}")?;
        }
        Ok(())
    }
}

impl std::error::Error for Mistakes {}

/// Levenshtein's distance, in characters.
fn distance(left: &str, right: &str) -> usize {
    let right: Vec<char> = right.chars().collect();
    let mut row: Vec<usize> = (0..=right.len()).collect();
    for (i, a) in left.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in right.iter().enumerate() {
            let substituted = diagonal + usize::from(a != *b);
            diagonal = row[j + 1];
            row[j + 1] = substituted.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[right.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn distance_counts_edits() {
        for (left, right, edits) in [("", "abc", 3), ("kitten", "sitting", 3), ("a", "a", 0)] {
            assert_eq!(distance(left, right), edits, "{left} {right}");
        }
    }

    #[test]
    fn an_unknown_name_suggests_the_nearest_one_only_when_near() {
        let known = || ["num.partitions".to_owned(), "log.dir".to_owned()].into_iter();
        let near = Mistake::unknown(Place::Default, "num.partition", known());
        assert_eq!(near.remedy, "did you mean 'num.partitions'?");
        let far = Mistake::unknown(Place::Default, "colour", known());
        assert_eq!(far.remedy, "`floe config` lists all settings");
    }
}
