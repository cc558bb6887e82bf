//! From a program's name to its file.

use outlast_host::program::{recorded_program, resolve_program};
use rustix::io::Errno;
use std::ffi::OsStr;
use std::fs::{self, File};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};

#[test]
fn a13_names_are_found_as_a_shell_finds_them() {
    if !crate::stage::alone() {
        return;
    }
    let root = std::env::temp_dir().join(format!("outlast-host-program-{}", std::process::id()));
    for directory in ["one", "two", "two/folder"] {
        fs::create_dir_all(root.join(directory)).expect("scratch");
    }
    for (file, mode) in
        [("one/plain", 0o644), ("two/plain", 0o755), ("one/barred", 0o644), ("two/tool", 0o755), ("here", 0o755)]
    {
        fs::write(root.join(file), "").expect("write");
        fs::set_permissions(root.join(file), PermissionsExt::from_mode(mode)).expect("mode");
    }
    symlink(root.join("two/tool"), root.join("one/link")).expect("link");
    let real = fs::canonicalize(&root).expect("real");
    let cwd = File::open(&root).expect("cwd");

    let path = format!("{}:/dev/null:two:/no/such", root.join("one").display());
    let resolve = |name: &str, path: &str| resolve_program(OsStr::new(name), Some(OsStr::new(path)), &cwd);
    for (name, path, found, recorded) in [
        ("plain", path.as_str(), Ok(PathBuf::from("two/plain")), real.join("two/plain")),
        ("link", &path, Ok(root.join("one/link")), real.join("two/tool")),
        ("here", "/no/such:", Ok("./here".into()), real.join("here")),
        ("./here", &path, Ok("./here".into()), "./here".into()),
        ("barred", &path, Err(Errno::ACCESS), "barred".into()),
        ("folder", &path, Err(Errno::ACCESS), "folder".into()),
        ("here", &path, Err(Errno::NOENT), "here".into()),
        ("", &path, Err(Errno::NOENT), "".into()),
    ] {
        let got = resolve(name, path);
        assert_eq!(got, found, "{name}");
        assert_eq!(recorded_program(OsStr::new(name), got.as_deref().ok(), &cwd), recorded, "{name}");
    }
    let shell = resolve_program(OsStr::new("sh"), None, &cwd).expect("sh");
    assert_eq!(shell, Path::new("/bin/sh"));
    fs::remove_dir_all(&root).expect("clean up");
}
