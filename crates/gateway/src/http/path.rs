//! The variable parts of a path, decoded once, each refused in its own words.

use axum::extract::{FromRequestParts, Path};
use axum::http::request::Parts;
use floe_model::{PartitionIndex, TopicName};

use super::problem::Problem;

/// `{topic}`, checked.
pub(crate) struct TopicPath(pub(crate) TopicName);

/// `{topic}` and `{partition}`, checked.
pub(crate) struct PartitionPath(pub(crate) TopicName, pub(crate) PartitionIndex);

/// `{group}`.
pub(crate) struct GroupPath(pub(crate) String);

async fn parts_of<T: serde::de::DeserializeOwned + Send>(parts: &mut Parts) -> Result<T, Problem>
where
    Path<T>: FromRequestParts<(), Rejection = axum::extract::rejection::PathRejection>,
{
    let path = Path::<T>::from_request_parts(parts, &()).await;
    path.map(|Path(value)| value).map_err(|rejection| {
        Problem::bad(
            "invalid-path",
            format!(
                "{}; names in a path are UTF-8, percent-encoded once",
                rejection.body_text()
            ),
        )
    })
}

impl<S: Send + Sync> FromRequestParts<S> for TopicPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let name: String = parts_of(parts).await?;
        Ok(Self(TopicName::parse(&name)?))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for PartitionPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let (name, partition): (String, String) = parts_of(parts).await?;
        let name = TopicName::parse(&name)?;
        let index = partition.parse().map_err(|_| {
            Problem::parameter("partition", &partition, "a partition number, from 0")
        })?;
        Ok(Self(name, PartitionIndex(index)))
    }
}

impl<S: Send + Sync> FromRequestParts<S> for GroupPath {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        Ok(Self(parts_of(parts).await?))
    }
}
