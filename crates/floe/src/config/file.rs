//! The configuration file: TOML whose keys, joined by dots, are the names of settings.
//!
//! Guarantees: every mistake of the file is reported, each with its line and column.

use std::ops::Range;
use std::path::Path;

use toml::Spanned;
use toml::de::{DeTable, DeValue};

use super::kind::Written;
use super::mistake::{Mistake, Place};
use super::settings::{self, SETTINGS};
use super::{Given, Layer};

/// Reads the settings of a file's text.
pub(super) fn read(path: &Path, text: &str) -> Layer {
    let mut reader = Reader {
        path,
        text,
        layer: Layer::default(),
    };
    let (table, errors) = DeTable::parse_recoverable(text);
    for error in errors {
        let span = error.span().unwrap_or(0..0);
        reader.layer.mistakes.push(Mistake {
            place: reader.place(&span),
            problem: format!("this is not TOML: {}", error.message()),
            remedy: "write lines like num.partitions = 4".to_owned(),
        });
    }
    reader.table("", table.get_ref());
    let order = |place: &Place| match place {
        Place::File { line, column, .. } => (*line, *column),
        _ => (0, 0),
    };
    reader.layer.mistakes.sort_by_key(|m| order(&m.place));
    reader.layer
}

struct Reader<'a> {
    path: &'a Path,
    text: &'a str,
    layer: Layer,
}

impl Reader<'_> {
    fn table(&mut self, prefix: &str, table: &DeTable<'_>) {
        for (key, value) in table {
            let name = match prefix {
                "" => key.get_ref().to_string(),
                prefix => format!("{prefix}.{}", key.get_ref()),
            };
            if let Some(setting) = settings::find(&name) {
                let written = written(value.get_ref());
                let place = self.place(&value.span());
                self.layer.given.push(Given {
                    setting,
                    written,
                    place,
                });
                continue;
            }
            let group = format!("{name}.");
            let is_group = SETTINGS.iter().any(|s| s.name.starts_with(&group));
            match value.get_ref() {
                DeValue::Table(inner) if is_group => self.table(&name, inner),
                _ => {
                    let (name, span) = deepest(name, key.span(), value);
                    let known = SETTINGS.iter().map(|s| s.name.to_owned());
                    let place = self.place(&span);
                    let mistake = Mistake::unknown(place, &name, known);
                    self.layer.mistakes.push(mistake);
                }
            }
        }
    }

    fn place(&self, span: &Range<usize>) -> Place {
        let before = self.text.get(..span.start).unwrap_or(self.text);
        let line_start = before.rfind('\n').map_or(0, |at| at + 1);
        Place::File {
            path: self.path.to_owned(),
            line: before.matches('\n').count() + 1,
            column: before[line_start..].chars().count() + 1,
        }
    }
}

/// Follows tables of one key, so that an unknown dotted key is named whole.
fn deepest(
    mut name: String,
    span: Range<usize>,
    value: &Spanned<DeValue<'_>>,
) -> (String, Range<usize>) {
    let mut value = value;
    while let DeValue::Table(inner) = value.get_ref() {
        let mut entries = inner.iter();
        let (Some((key, only)), None) = (entries.next(), entries.next()) else {
            break;
        };
        name = format!("{name}.{}", key.get_ref());
        value = only;
    }
    (name, span)
}

fn written(value: &DeValue<'_>) -> Written {
    match value {
        DeValue::String(text) => Written::Text(text.to_string()),
        DeValue::Boolean(on) => Written::Switch(*on),
        DeValue::Integer(number) => {
            match i64::from_str_radix(&number.as_str().replace('_', ""), number.radix()) {
                Ok(number) => Written::Number(number),
                Err(_) => Written::Foreign("integer of more than 63 bits"),
            }
        }
        DeValue::Array(items) => {
            let words = items.iter().map(|item| item.get_ref().as_str());
            match words.map(|word| word.map(str::to_owned)).collect() {
                Some(words) => Written::List(words),
                None => Written::Foreign("array"),
            }
        }
        other => Written::Foreign(other.type_str()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn mistakes(text: &str) -> Vec<String> {
        let layer = read(Path::new("floe.toml"), text);
        layer.mistakes.iter().map(ToString::to_string).collect()
    }

    #[test]
    fn dotted_keys_and_tables_name_the_same_setting() {
        for text in ["num.partitions = 8", "[num]\npartitions = 8\n"] {
            let layer = read(Path::new("floe.toml"), text);
            assert!(layer.mistakes.is_empty(), "{text}");
            assert_eq!(layer.given[0].setting.name, "num.partitions");
            assert_eq!(layer.given[0].written, Written::Number(8));
        }
    }

    #[test]
    fn an_unknown_key_is_named_whole_at_its_line_and_column() {
        assert_eq!(
            mistakes("# é\nnum.partition = 8\n"),
            ["floe.toml:2:5: there is no setting 'num.partition'; did you mean 'num.partitions'?"]
        );
        assert_eq!(
            mistakes("[colour]\nred = 1\nblue = 2\n"),
            ["floe.toml:1:2: there is no setting 'colour'; `floe config` lists all settings"]
        );
    }

    #[test]
    fn every_line_that_is_not_toml_is_reported() {
        let found = mistakes("num.partitions =\nkafka.port = = 3\n");
        assert!(found.len() >= 2, "{found:?}");
        assert!(found[0].starts_with("floe.toml:1:"), "{found:?}");
        assert!(
            found.last().unwrap().starts_with("floe.toml:2:"),
            "{found:?}"
        );
    }
}
