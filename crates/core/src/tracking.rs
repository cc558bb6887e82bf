//! Which files changed between two looks at a directory.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use crate::request::OsText;

/// The most paths that are named; what is beyond is counted.
pub const TRACKED_PATHS: usize = 200;
/// The most bytes of paths that are named.
pub const TRACKED_BYTES: usize = 16 << 10;

/// By what a file is known to have changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stamp {
    /// Its number within its file system.
    pub inode: u64,
    /// Its length in bytes.
    pub bytes: u64,
    /// Its kind and its rights (inode(7)).
    pub mode: u32,
    /// When its content changed, in seconds and nanoseconds since 1970.
    pub modified: (i64, i64),
}

/// Files and links below a directory, by their paths from there.
pub type Files = BTreeMap<Vec<u8>, Stamp>;

/// What was found below a directory at one look.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Look {
    /// The files.
    pub files: Files,
    /// What could not be looked at, or that there was too much.
    pub problem: Option<String>,
}

/// Which files below a directory changed while a command ran, whoever changed them. Paths are from that directory on, in
/// their order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tracked {
    /// The directory.
    pub dir: OsText,
    /// Files that were not there before.
    pub created: Vec<OsText>,
    /// Files that are others than before, or were written.
    pub modified: Vec<OsText>,
    /// Files that are gone.
    pub deleted: Vec<OsText>,
    /// How many more there are than are named.
    #[serde(default)]
    pub more: u64,
    /// Why this may not be all.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub problem: Option<String>,
}

impl Tracked {
    /// What two looks at this directory tell. `exists` says whether there is a file that the second one did not see:
    /// one that is ignored since.
    pub fn between(dir: &OsText, before: &Look, after: &Look, exists: impl Fn(&[u8]) -> bool) -> Tracked {
        let problem = before.problem.clone().or_else(|| after.problem.clone());
        let mut tracked = Tracked { dir: dir.clone(), problem, ..Tracked::default() };
        let (mut named, mut bytes) = (0, 0);
        let mut paths: Vec<&Vec<u8>> = before.files.keys().chain(after.files.keys()).collect();
        paths.sort();
        paths.dedup();
        for path in paths {
            let list = match (before.files.get(path), after.files.get(path)) {
                (Some(old), Some(new)) if old == new => continue,
                (Some(_), Some(_)) => &mut tracked.modified,
                (None, _) => &mut tracked.created,
                (Some(_), None) if exists(path) => continue,
                (Some(_), None) => &mut tracked.deleted,
            };
            named += 1;
            bytes += path.len();
            if named > TRACKED_PATHS || bytes > TRACKED_BYTES {
                tracked.more += 1;
            } else {
                list.push(OsText(path.clone()));
            }
        }
        tracked
    }

    /// All paths, to be masked.
    pub fn paths_mut(&mut self) -> impl Iterator<Item = &mut OsText> {
        let lists = self.created.iter_mut().chain(&mut self.modified).chain(&mut self.deleted);
        std::iter::once(&mut self.dir).chain(lists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn look(files: &[(&str, u64)]) -> Look {
        let stamp = |bytes| Stamp { inode: 1, bytes, mode: 0o100_644, modified: (1, 2) };
        let files = files.iter().map(|(path, bytes)| (path.as_bytes().to_vec(), stamp(*bytes))).collect();
        Look { files, problem: None }
    }

    fn texts(list: &[OsText]) -> Vec<String> {
        list.iter().map(OsText::lossy).collect()
    }

    /// Covers: N9
    #[test]
    fn n9_two_looks_tell_what_changed() {
        let before = look(&[("a", 1), ("b", 1), ("gone", 1), ("hidden", 1)]);
        let after = look(&[("a", 1), ("b", 2), ("new", 1)]);
        let dir = OsText::from("/d");
        let tracked = Tracked::between(&dir, &before, &after, |path| path == b"hidden");
        assert_eq!((texts(&tracked.created), texts(&tracked.modified)), (vec!["new".into()], vec!["b".into()]));
        assert_eq!((texts(&tracked.deleted), tracked.more, &tracked.problem), (vec!["gone".into()], 0, &None));
        let same = Tracked::between(&dir, &after, &after, |_| false);
        assert_eq!(same, Tracked { dir: dir.clone(), ..Tracked::default() });
        let late = Look { problem: Some("no".into()), ..Look::default() };
        assert_eq!(Tracked::between(&dir, &after, &late, |_| true).problem.as_deref(), Some("no"));
    }

    /// Covers: N9
    #[test]
    fn n9_what_is_named_is_bounded_and_the_rest_counted() {
        let dir = OsText::from("/d");
        let names: Vec<String> = (0..1_000).map(|number| format!("{number:04}")).collect();
        let many = look(&names.iter().map(|name| (name.as_str(), 1)).collect::<Vec<_>>());
        let tracked = Tracked::between(&dir, &Look::default(), &many, |_| false);
        assert_eq!((tracked.created.len(), tracked.more), (200, 800));
        let long: Vec<String> = (0..10).map(|number| format!("{number}{}", "x".repeat(4_000))).collect();
        let long = look(&long.iter().map(|name| (name.as_str(), 1)).collect::<Vec<_>>());
        let tracked = Tracked::between(&dir, &long, &Look::default(), |_| false);
        assert_eq!((tracked.deleted.len(), tracked.more), (4, 6));
    }
}
