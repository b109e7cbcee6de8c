//! Why a node did not start, as an exit code and a message.

use floe_broker::StartError;

use crate::exit::{Code, Failure};

/// Every reason has the code that [`crate::exit::CODES`] documents.
pub(super) fn failure(error: &StartError) -> Failure {
    let code = match error {
        StartError::Locked(_) => Code::DirectoryInUse,
        StartError::OtherIdentity { .. } => Code::ForeignDirectory,
        StartError::NewerFormat { .. } => Code::NewerFormat,
        StartError::Unwritable { .. } => Code::DirectoryUnusable,
        StartError::Damaged { .. } => Code::Damaged,
        StartError::Setting(_) => Code::Configuration,
        StartError::Failed { .. } => Code::DiskFailed,
    };
    Failure::new(code, error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    #[test]
    fn a_locked_directory_and_a_newer_format_have_codes_of_their_own() {
        let dir = PathBuf::from("/d");
        let locked = failure(&StartError::Locked(dir.clone()));
        assert_eq!(locked.code, Code::DirectoryInUse);
        assert!(locked.message.contains("/d"), "{locked}");
        let newer = failure(&StartError::NewerFormat {
            path: dir,
            found: 9,
            supported: 1,
        });
        assert_eq!(newer.code, Code::NewerFormat);
    }
}
