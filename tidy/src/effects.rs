//! Effects: what the world keeps when a process dies has a name, by which a test can kill the process right before it.

use crate::tree::{self, Source};

/// Where calls with an effect may stand: files below these paths, each call behind its crash point.
const DOORS: [&str; 2] = ["crates/host/src/effect.rs", "crates/host/src/sys/"];
/// The point itself, which writes down what is come by and kills.
const POINT: &str = "crates/host/src/crash.rs";
/// The crates whose processes a test kills at each effect.
const CRATES: [&str; 3] = ["crates/host/src/", "crates/supervisor/src/", "crates/outlast/src/"];

/// Calls that have an effect, as they stand in code. A method counts with any receiver.
const RAW: &[&str] = &[
    ".write_all_at(",
    ".write_at(",
    ".write_all(",
    ".set_len(",
    ".sync_all(",
    ".sync_data(",
    ".set_permissions(",
    ".set_modified(",
    ".spawn()",
    "io::write(",
    "io::writev(",
    "io::pwrite(",
    "io::copy(",
    "io::splice(",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "fs::renameat(",
    "fs::renameat_with(",
    "fs::link(",
    "fs::linkat(",
    "fs::hard_link(",
    "fs::symlink(",
    "fs::symlinkat(",
    "fs::unlink(",
    "fs::unlinkat(",
    "fs::rmdir(",
    "fs::mkdir(",
    "fs::mkdirat(",
    "fs::mknodat(",
    "fs::create_dir(",
    "fs::create_dir_all(",
    "fs::remove_file(",
    "fs::remove_dir(",
    "fs::remove_dir_all(",
    "fs::chmod(",
    "fs::chmodat(",
    "fs::fchmod(",
    "fs::set_permissions(",
    "fs::ftruncate(",
    "fs::fallocate(",
    "fs::fsync(",
    "fs::fdatasync(",
    "fs::flock(",
    "fs::copy_file_range(",
    "fs::sendfile(",
    "fs::utimensat(",
    "File::create(",
    "File::create_new(",
    "File::options(",
    "OpenOptions::new(",
    "net::bind(",
    "net::connect(",
    "net::listen(",
    "net::send(",
    "net::sendto(",
    "net::sendmsg(",
    "net::shutdown(",
    "process::kill_process(",
    "process::kill_process_group(",
    "process::pidfd_send_signal(",
    "process::waitpid(",
    "process::waitid(",
];

/// The same of the C library and of the kernel by number, which only unsafe code can call.
const RAW_UNSAFE: &[&str] = &[
    "libc::fork(",
    "libc::vfork(",
    "libc::kill(",
    "libc::write(",
    "libc::rename(",
    "libc::unlink(",
    "libc::_exit(",
    "libc::waitid(",
    "libc::SYS_clone,",
    "libc::SYS_clone3",
    "libc::SYS_pidfd_send_signal",
];

/// Functions whose effects have no point, and why.
const EXCUSED: &[(&str, &str)] = &[
    ("join_cgroup", "a child that has the memory of nobody's making yet: it may not allocate, and is not a watcher"),
    ("raise_oom_score", "as above"),
    ("give_up", "as above"),
    ("fork_with_pidfd", "stands in for `clone_with_pidfd`, at the point of `spawn_by`"),
    ("clone_with_pidfd", "at the point of `spawn_by`"),
    ("clone3", "at the point of `spawn_by`"),
    ("enter", "the child's side within `clone3`"),
    ("send_to_group", "at the point of `signal_group`; with signal 0 it only asks"),
    ("wait_id", "looks at a child that has ended and leaves it; who reaps has a point"),
    ("wait_exit", "reaps a leader that never ran, whose report has told so"),
    ("reap_forked", "reaps what has ended long since, at the end of this process"),
];

/// Calls with an effect outside of the doors.
pub fn outside_the_doors(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| is_judged(source) && !is_door(source)) {
        for (number, line) in tree::code_lines(&source.text) {
            if let Some(call) = raw_call(&line)
                && !is_excused(&source.text, number)
            {
                faults.push(format!("{}:{number}: `{call}…` has an effect that has no name", source.path));
            }
        }
    }
    faults
}

/// Calls with an effect inside of the doors, in functions that come by no crash point before.
pub fn unnamed(sources: &[Source]) -> Vec<String> {
    let mut faults = Vec::new();
    for source in sources.iter().filter(|source| is_judged(source) && is_door(source)) {
        let mut named = false;
        for (number, line) in tree::code_lines(&source.text) {
            if function_of(&line).is_some() {
                named = false;
            }
            named |= line.contains("point(\"");
            if let Some(call) = raw_call(&line)
                && !named
                && !is_excused(&source.text, number)
            {
                faults.push(format!("{}:{number}: `{call}…` stands before the crash point, or has none", source.path));
            }
        }
    }
    faults
}

/// Excuses of functions that are no more.
pub fn stale_excuses(sources: &[Source]) -> Vec<String> {
    let is_there = |name: &str| {
        let mut judged = sources.iter().filter(|source| is_judged(source));
        judged.any(|source| source.text.lines().any(|line| function_of(line).is_some_and(|found| found == name)))
    };
    EXCUSED.iter().filter(|(name, _)| !is_there(name)).map(|(name, _)| format!("`{name}` is no function")).collect()
}

fn is_judged(source: &Source) -> bool {
    CRATES.iter().any(|path| source.path.starts_with(path)) && !source.is_test() && source.path != POINT
}

fn is_door(source: &Source) -> bool {
    DOORS.iter().any(|door| source.path.starts_with(door))
}

fn raw_call(line: &str) -> Option<&'static str> {
    let line = tree::without_strings(line);
    // A type that is defined or imported is no call.
    if line.trim_start().starts_with("use ") {
        return None;
    }
    RAW.iter().chain(RAW_UNSAFE).copied().find(|call| line.contains(call))
}

/// Whether the function around a line is excused.
fn is_excused(text: &str, number: usize) -> bool {
    let mut above = text.lines().take(number).collect::<Vec<_>>().into_iter().rev();
    let name = above.find_map(function_of);
    name.is_some_and(|name| EXCUSED.iter().any(|(excused, _)| *excused == name))
}

/// The name of the function that a line begins.
fn function_of(line: &str) -> Option<String> {
    let (before, rest) = line.split_once("fn ")?;
    let begins = before.split_whitespace().all(|word| {
        let marks = ["async", "const", "unsafe", "extern", "\"C\""];
        word.starts_with("pub") || marks.contains(&word)
    });
    let name: String = rest.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
    (begins && !name.is_empty()).then_some(name)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_effect_outside_of_the_doors_is_found() {
        let bad = Source::sample(
            "crates/host/src/store/log.rs",
            "fn f(file: &File) {\n    file.write_all_at(b\"\", 0);\n    rustix::fs::fsync(file);\n}\n",
        );
        let good = Source::sample("crates/host/src/store/log.rs", "fn f() { effect::write_at(\"fs::write(\", 0) }\n");
        let other = Source::sample("crates/cli/src/main.rs", "fn f() { fs::write(\"a\", \"b\") }\n");
        let spawns = Source::sample("crates/outlast/src/keeper.rs", "fn f() { command.spawn() }\n");
        let thread = Source::sample("crates/outlast/src/hub.rs", "fn f() { thread.spawn(move || tell()) }\n");
        let faults = outside_the_doors(&[bad, good, other, spawns, thread]);
        assert_eq!(faults.len(), 3, "{faults:#?}");
        assert!(faults[0].contains("log.rs:2") && faults[1].contains("log.rs:3") && faults[2].contains("keeper.rs:1"));
    }

    #[test]
    fn an_effect_without_its_point_is_found() {
        let text = "pub fn good() {\n    point(\"sync\", &what);\n    fs::fsync(fd)\n}\n\
                    pub fn bad() {\n    fs::fsync(fd)\n}\n\
                    pub fn late() {\n    fs::fsync(fd);\n    point(\"sync\", &what)\n}\n";
        let faults = unnamed(&[Source::sample("crates/host/src/effect.rs", text)]);
        assert_eq!(faults.len(), 2, "{faults:#?}");
        assert!(faults[0].contains(":6:") && faults[1].contains(":9:"));
        let fork = "pub fn fork() {\n    unsafe { libc::syscall(libc::SYS_clone, 0) }\n}\n";
        assert_eq!(unnamed(&[Source::sample("crates/host/src/sys/fork.rs", fork)]).len(), 1);
    }

    #[test]
    fn an_excuse_of_nothing_is_found() {
        assert_eq!(stale_excuses(&[]).len(), EXCUSED.len());
        let text = "fn give_up(&self) -> ! {\n    rustix::io::write(&self.report, b\"\")\n}\n";
        let source = Source::sample("crates/host/src/sys/spawn.rs", text);
        assert_eq!(stale_excuses(std::slice::from_ref(&source)).len(), EXCUSED.len() - 1);
        assert!(unnamed(&[source]).is_empty());
    }
}
