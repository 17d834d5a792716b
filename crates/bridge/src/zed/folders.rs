//! The folders of a row of Zed's `workspaces`, in every generation of its columns. Pure.

/// The columns that tell a workspace's folders; those that a generation does not have are `None`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash)]
pub struct FolderColumns {
    /// `paths`: lines, or a JSON array.
    pub paths: Option<String>,
    /// `local_paths` or `workspace_location`: bincode of a list of strings.
    pub blob: Option<Vec<u8>>,
    /// `local_paths_array`: joined by commas.
    pub array: Option<String>,
    /// Whether a connection column is set: the folders lie on another machine.
    pub is_remote: bool,
}

/// The local folders in the stored order; none for a remote workspace and for what is damaged.
pub fn folders(columns: &FolderColumns) -> Vec<String> {
    if columns.is_remote {
        return Vec::new();
    }
    let folders = columns
        .blob
        .as_deref()
        .and_then(strings)
        .or_else(|| columns.paths.as_deref().and_then(lines))
        // Ambiguous where a folder's name has a comma, so the others come first.
        .or_else(|| Some(columns.array.as_deref()?.split(',').map(str::to_owned).collect()));
    let mut folders = folders.unwrap_or_default();
    folders.retain(|folder| !folder.trim().is_empty());
    folders
}

fn lines(paths: &str) -> Option<Vec<String>> {
    if paths.starts_with('[') {
        return serde_json::from_str(paths).ok();
    }
    Some(paths.split('\n').map(str::to_owned).collect())
}

/// Bincode 1: a count, then length and UTF-8 of each, the numbers as little-endian u64. Bytes after the last string are
/// ignored.
fn strings(mut blob: &[u8]) -> Option<Vec<String>> {
    if blob.is_empty() {
        return Some(Vec::new());
    }
    let count = number(&mut blob)?;
    let mut strings = Vec::new();
    for _ in 0..count {
        let length = number(&mut blob)?;
        let (text, rest) = blob.split_at_checked(length)?;
        strings.push(std::str::from_utf8(text).ok()?.to_owned());
        blob = rest;
    }
    Some(strings)
}

fn number(blob: &mut &[u8]) -> Option<usize> {
    let (number, rest) = blob.split_first_chunk()?;
    *blob = rest;
    usize::try_from(u64::from_le_bytes(*number)).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hostile_blobs_end_at_once() {
        let mut huge = u64::MAX.to_le_bytes().to_vec();
        for blob in [huge.clone(), huge[..5].to_vec(), {
            huge.extend(u64::MAX.to_le_bytes());
            huge
        }] {
            assert_eq!(folders(&FolderColumns { blob: Some(blob), ..FolderColumns::default() }), [""; 0]);
        }
        let columns = FolderColumns { paths: Some("[1]".into()), ..FolderColumns::default() };
        assert_eq!(folders(&columns), [""; 0]);
    }
}
