//! JSON objects that are read into structures.
//!
//! Guarantees: what is read was written as an object. Derived readers alone also take an array, whose elements would be
//! the fields in the order of our declaration: a body that nobody meant to send.

use serde::de::{Deserialize, Deserializer, Visitor};

/// A structure that was written as an object.
pub(super) struct Object<T>(pub(super) T);

impl<'de, T: Deserialize<'de>> Deserialize<'de> for Object<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        T::deserialize(Members(deserializer)).map(Self)
    }
}

/// Gives members of an object, whatever is asked for.
struct Members<D>(D);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for Members<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_map(visitor)
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map struct enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Pair {
        a: u8,
        b: Option<Vec<u8>>,
    }

    #[test]
    fn an_object_is_read_and_an_array_of_its_fields_is_not() {
        let read = |text| serde_json::from_str::<Object<Pair>>(text).map(|object| object.0);
        let expected = Pair {
            a: 1,
            b: Some(vec![2]),
        };
        assert_eq!(read(r#"{"b":[2],"a":1}"#).unwrap(), expected);
        for text in ["[1,[2]]", "1", "null", "\"a\"", "{\"a\":1}}"] {
            assert!(read(text).is_err(), "{text}");
        }
    }
}
