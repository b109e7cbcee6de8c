//! Topic names, by Kafka's rules (`org.apache.kafka.common.internals.Topic`): 1 to 249 of `[a-zA-Z0-9._-]`,
//! not `.` and not `..`. `.` and `_` collide with each other; see [`TopicName::collision_key`].

use std::fmt;
use std::sync::Arc;

/// Longest legal name, in bytes.
pub(crate) const NAME_BYTES_MAX: usize = 249;

/// A legal topic name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct TopicName(Arc<str>);

/// Why a name is refused; its text names the rule and the remedy.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InvalidTopicName {
    /// The empty name.
    #[error("topic name is empty; use 1 to 249 of the characters a-z A-Z 0-9 . _ -")]
    Empty,
    /// `.` or `..`.
    #[error("topic name '{0}' is reserved by file systems; choose another")]
    Reserved(String),
    /// More than 249 bytes.
    #[error("topic name has {0} characters; the limit is 249")]
    TooLong(usize),
    /// A character outside the set.
    #[error("topic name '{name}' holds {character:?}; only a-z A-Z 0-9 . _ - are allowed")]
    Character {
        /// The name as given.
        name: String,
        /// The first illegal character.
        character: char,
    },
}

impl TopicName {
    /// Checks a name.
    pub fn parse(name: &str) -> Result<Self, InvalidTopicName> {
        if name.is_empty() {
            return Err(InvalidTopicName::Empty);
        }
        if name == "." || name == ".." {
            return Err(InvalidTopicName::Reserved(name.to_owned()));
        }
        if name.len() > NAME_BYTES_MAX {
            return Err(InvalidTopicName::TooLong(name.chars().count()));
        }
        if let Some(character) = name
            .chars()
            .find(|c| !(c.is_ascii_alphanumeric() || matches!(c, '.' | '_' | '-')))
        {
            return Err(InvalidTopicName::Character {
                name: name.to_owned(),
                character,
            });
        }
        Ok(Self(name.into()))
    }

    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Two topics with equal keys must not both exist: their names differ in `.` and `_` only, which Kafka
    /// refuses since both become one metric name.
    pub fn collision_key(&self) -> String {
        self.0.replace('.', "_")
    }

    /// Whether the name is one of Floe's own topics (`__` prefix, as Kafka's internal topics).
    pub fn is_internal(&self) -> bool {
        self.0.starts_with("__")
    }
}

/// Orders and hashes like its text, so maps are searched without building a name.
impl std::borrow::Borrow<str> for TopicName {
    fn borrow(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for TopicName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn legal_names_are_accepted_up_to_249_bytes() {
        for name in ["a", "a.b", "a_b", "A-9", "...", &"x".repeat(249)] {
            assert_eq!(TopicName::parse(name).unwrap().as_str(), name);
        }
    }

    #[test]
    fn illegal_names_are_refused_by_the_rule_they_break() {
        assert_eq!(TopicName::parse(""), Err(InvalidTopicName::Empty));
        assert_eq!(
            TopicName::parse("."),
            Err(InvalidTopicName::Reserved(".".into()))
        );
        assert_eq!(
            TopicName::parse(".."),
            Err(InvalidTopicName::Reserved("..".into()))
        );
        assert_eq!(
            TopicName::parse(&"x".repeat(250)),
            Err(InvalidTopicName::TooLong(250))
        );
        for name in ["a*b", "a/b", "../x", "a b", "é", "a\0b"] {
            assert!(
                matches!(
                    TopicName::parse(name),
                    Err(InvalidTopicName::Character { .. })
                ),
                "{name}"
            );
        }
    }

    #[test]
    fn dot_and_underscore_collide() {
        let [dot, underscore] = ["a.b", "a_b"].map(|n| TopicName::parse(n).unwrap());
        assert_eq!(dot.collision_key(), underscore.collision_key());
    }
}
