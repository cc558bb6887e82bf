//! Area R, and rows of others, on policies about starts: what is refused, moved, or started another way.

use std::fs;

use outlast_testkit::mcp::Era;
use serde_json::json;

use crate::support::*;

/// A policy file with this text.
fn policy(world: &World, text: &str) -> String {
    let path = world.root().join("policy.toml");
    fs::write(&path, text).expect("a file");
    path.display().to_string()
}

/// `run` of these words under a policy.
fn run(world: &World, text: &str, args: &[&str]) -> Output {
    world.call(&[&["run"], args].concat()).env("OUTLAST_POLICY", policy(world, text)).run()
}

#[track_caller]
fn refused(world: &World, output: Output, words: &[&str]) {
    let output = output.exits(4);
    assert!(words.iter().all(|word| output.err().contains(word)), "{words:?} in {output:?}");
    assert!(!world.file("ran").exists(), "it ran");
}

/// Covers: R1
#[test]
fn r1_a_program_that_is_not_listed_does_not_start() {
    let world = world();
    let text = "[programs]\nname = \"builders\"\nallow = [\"echo\"]\n";
    refused(&world, run(&world, text, &["--", "touch", "ran"]), &["touch", "builders", "nothing ran"]);
    refused(&world, run(&world, text, &["-b", "--", "/usr/bin/touch", "ran"]), &["builders"]);
    assert_eq!(run(&world, text, &["--", "echo", "yes"]).ok().text(), "yes\n");
    run(&world, "", &["--", "touch", "ran"]).ok();
    assert!(world.file("ran").exists());
}

/// A program of this name in a directory of this name, which leaves the file `ran`.
fn impostor(world: &World, dir: &str, name: &str) -> String {
    let dir = world.file(dir);
    fs::create_dir_all(&dir).expect("a directory");
    let path = dir.join(name);
    let ran = world.file("ran").display().to_string();
    fs::write(&path, format!("#!/bin/sh\n: >{ran}\n")).expect("a program");
    fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).expect("it may be run");
    dir.display().to_string()
}

/// Covers: R1, R2
#[test]
fn r1_a_call_does_not_decide_what_a_name_means() {
    let world = world();
    let evil = impostor(&world, "evil", "ls");
    impostor(&world, "evil", "sh");
    let programs = "[programs]\nname = \"few\"\nallow = [\"ls\", \"sh\"]\n";
    let gate = "[gate]\nmode = \"enforce\"\nallow = [\"ls\"]\n";
    for text in [programs, gate] {
        for entry in [format!("PATH={evil}:/usr/bin"), "PATH=.".into(), "LD_PRELOAD=x".into(), "BASH_ENV=x".into()] {
            let name = entry.split('=').next().expect("a name");
            for line in [&["--", "ls"][..], &["-c", "ls"], &["-b", "--", "ls"]] {
                refused(&world, run(&world, text, &[&["-e", &entry], line].concat()), &[name, "nothing ran"]);
            }
        }
        run(&world, text, &["-e", "MINE=1", "--", "ls"]).ok();
        // What the operator's own path leaves to the working directory is not looked at.
        for path in [".:/usr/bin:/bin", ":/usr/bin:/bin", "evil:/usr/bin:/bin"] {
            for (dir, line) in [(".", ["--", "ls"]), ("evil", ["--", "ls"]), ("evil", ["-c", "ls"])] {
                let dir = world.file(dir).display().to_string();
                let call = world.call(&[&["run", "--cwd", &dir][..], &line].concat()).env("PATH", path);
                call.env("OUTLAST_POLICY", policy(&world, text)).run().ok();
                assert!(!world.file("ran").exists(), "{path} in {dir}: it ran");
            }
        }
    }
    // Without such a policy a call says what it wants.
    run(&world, "", &["-e", &format!("PATH={evil}:/usr/bin"), "--", "ls"]).ok();
    assert!(world.file("ran").exists());
}

/// Covers: R2
#[test]
fn r2_the_gate_refuses_warns_or_is_off() {
    let world = world();
    let gate = |mode: &str| format!("[gate]\nmode = \"{mode}\"\nallow = [\"echo\"]\n");
    let line = ["-c", "echo one; touch ran"];
    refused(&world, run(&world, &gate("enforce"), &line), &["touch ran", "nothing ran", "again"]);
    assert_eq!(run(&world, &gate("enforce"), &["-c", "echo one && echo two"]).ok().text(), "one\ntwo\n");
    let warned = run(&world, &gate("warn"), &line).ok();
    assert!(warned.text() == "one\n" && warned.err().contains("touch ran"), "{warned:?}");
    let off = run(&world, &gate("off"), &["-c", "echo 'unended"]);
    assert!(!off.err().contains("gate"), "{off:?}");
}

/// Covers: R2
#[test]
fn r2_no_spelling_of_a_line_gets_around_the_gate() {
    let world = world();
    let evil = impostor(&world, "evil", "ls");
    impostor(&world, "evil", "sh");
    let text =
        "[gate]\nmode = \"enforce\"\nallow = [\"echo\", \"ls\", \"cat\", \"set\", \"export\", \"read\", \":\"]\n";
    refused(&world, run(&world, text, &["--", &format!("{evil}/sh"), "-c", "ls"]), &["evil/sh", "nothing ran"]);
    // Each of these ran what is not in the list, in one of the two shells.
    for line in [
        "set -- a; for x do : >ran; touch ran; done",
        "echo a\r# ; touch ran",
        "echo `echo \\'; touch ran; echo \\'`",
        "echo ${x:-'}'$(touch ran)} \\'",
        "cat <<EF\nx\nE\\\nF\ntouch ran",
        "((x=1<<2))\ntouch ran\n2",
        "echo $[1<<2]\ntouch ran\n2]",
        "echo $((touch ran) )",
        "x='b[$(touch ran)]'; echo $((x))",
        "RANDOM='b[$(touch ran)]'",
        "export PATH=$PWD/evil:/usr/bin; ls",
        "for PATH in $PWD/evil; do ls; done",
        "read PATH <<EOF\n$PWD/evil\nEOF\nls",
    ] {
        for shell in ["sh", "bash"] {
            refused(&world, run(&world, text, &["--", shell, "-c", line]), &["command gate", "nothing ran"]);
        }
    }
    let strict = "[gate]\nmode = \"enforce\"\nallow = [\"echo\", \"sh\"]\nstrict = true\n";
    for rest in ["\nsh", " (sh)", " sh -s x", " sh +e", " sh /dev/stdin"] {
        refused(&world, run(&world, strict, &["-c", &format!("echo 'touch ran' |{rest}")]), &["command gate"]);
    }
    let line = "x=\"$(cat <<'EOF'\nit's (one)\nEOF\n)\"; for y in \"$x\" two; do echo \"${y}\"; done | cat";
    assert_eq!(run(&world, text, &["-c", line]).ok().text(), "it's (one)\ntwo\n");
}

/// Covers: R3
#[test]
fn r3_a_directory_outside_of_the_root_is_not_used() {
    let world = world();
    let root = world.file("root");
    fs::create_dir_all(root.join("sub")).expect("directories");
    std::os::unix::fs::symlink("/", root.join("out")).expect("a link");
    let at = root.display().to_string();
    let text = format!("root = \"{at}\"\n");
    let pwd = |dir: &str| run(&world, &text, &["--cwd", dir, "--", "pwd", "-P"]);
    let inside = pwd(&format!("{at}/sub")).ok();
    assert_eq!((inside.text(), inside.err()), (format!("{at}/sub\n"), String::new()));
    for outside in ["/", &format!("{at}/out"), &format!("{at}/sub/../..")] {
        let moved = pwd(outside).ok();
        assert_eq!(moved.text(), format!("{at}\n"), "{outside}");
        assert!(moved.err().ends_with(&format!("is outside of the root, so it ran in {at}\n")), "{moved:?}");
    }
    refused(&world, pwd(&format!("{at}/nowhere")), &["nowhere", "nothing ran"]);
    refused(&world, run(&world, "root = \"/no/root\"\n", &["--", "touch", "ran"]), &["/no/root"]);
}

/// Covers: R3
#[test]
fn r3_nothing_starts_in_a_session_whose_lock_is_not_to_be_had() {
    let world = world();
    let root = world.file("root");
    fs::create_dir_all(root.join("sub")).expect("directories");
    let (at, sub) = (root.display().to_string(), root.join("sub").display().to_string());
    let text = format!("root = \"{at}\"\n");
    // No keeper lives yet, and none can hold the lock of this one.
    let session = world.new_session(&[]);
    let lock = world.session_dir(&session).join("keeper.lock");
    fs::create_dir(&lock).expect("a directory in its place");
    for dir in [&sub, "/"] {
        let output = run(&world, &text, &["--session", &session, "--cwd", dir, "--", "touch", "ran"]);
        assert!(output.code != Some(0) && output.err().contains("keeper.lock"), "{output:?}");
        assert!(!root.join("ran").exists() && !root.join("sub/ran").exists(), "it ran");
    }
    fs::remove_dir(&lock).expect("an empty directory");
    // Where there can be no session at all, what is outside of the root is decided just the same.
    let nowhere = world.call(&["run", "--cwd", "/", "--", "pwd"]).env("OUTLAST_STATE_DIR", "/proc/none");
    let moved = nowhere.env("OUTLAST_POLICY", policy(&world, &text)).run().ok();
    assert!(moved.text() == format!("{at}\n") && moved.err().contains("is outside of the root"), "{moved:?}");
}

/// Covers: R4
#[test]
fn r4_roles_that_may_not_start_anything() {
    let world = world();
    for (text, word) in [
        ("role = \"untrusted\"", "untrusted"),
        ("role = \"readonly\"", "readonly"),
        ("shell_access = false", "shell_access"),
    ] {
        refused(&world, run(&world, text, &["--", "touch", "ran"]), &[word, "nothing ran"]);
    }
    run(&world, "shell_access = true", &["--", "true"]).ok();
    // Through the server it is a result, not an error of the protocol.
    let call = world.call(&["mcp", "--session", &world.session()]);
    let front = call.open_input().env("OUTLAST_POLICY", policy(&world, "role = \"readonly\"")).spawn();
    let mut client = outlast_testkit::mcp::Client::over(front, Era::Modern, "test");
    let reply = client.tool("run", json!({"command": "touch ran"}));
    assert!(reply.is_error && reply.text.contains("readonly") && !world.file("ran").exists(), "{reply:?}");
    assert!(!client.tool("list", json!({})).is_error, "it may look");
}

/// Covers: A10
#[test]
fn a10_a_rule_starts_in_the_background() {
    let world = world();
    let text = "[[background]]\nline = \"cargo test\"\nlimit = \"5m\"\n";
    let line = "echo x\n: cargo test\nexec sleep 300";
    assert!(run(&world, text, &["-c", ": cargo test"]).ok().err().is_empty(), "no limit");
    run(&world, text, &["--limit", "299999ms", "-c", ": cargo test"]).ok();
    let moved = run(&world, text, &["--limit", "300000ms", "--json", "-c", line]).exits(75).json();
    assert!(moved.bool("/demoted"), "{moved:?}");
    run(&world, "", &["--limit", "300000ms", "-c", ": cargo test"]).ok();
}

/// Covers: Q7
#[test]
fn q7_a_clean_environment() {
    let world = world();
    let text = "env = \"clean\"\nenv_keep = [\"KEPT_*\"]\nenv_strip = [\"KEPT_NOT\"]\n";
    let call = |text: &str| {
        let args = ["run", "-e", "MINE=1", "-e", "HOME=/x", "-e", "A_TOKEN=12345678", "--", "env"];
        let mut call = world.call(&args).env("OUTLAST_POLICY", policy(&world, text));
        for name in ["AWS_PROFILE", "X_API_KEY", "GITHUB_TOKEN", "EDITOR", "KEPT_YES", "KEPT_NOT"] {
            call = call.env(name, "value");
        }
        call.run().ok().text()
    };
    let clean = call(text);
    let names: Vec<&str> = clean.lines().filter_map(|line| line.split_once('=')).map(|(name, _)| name).collect();
    for gone in ["AWS_PROFILE", "X_API_KEY", "GITHUB_TOKEN", "EDITOR", "KEPT_NOT", "A_TOKEN"] {
        assert!(!names.contains(&gone), "{gone} in {clean}");
    }
    for there in ["PATH", "MINE", "KEPT_YES"] {
        assert!(names.contains(&there), "{there} in {clean}");
    }
    let home = world.session_dir(&world.session()).join("home");
    assert!(clean.contains(&format!("HOME={}\n", home.display())) && home.is_dir(), "{clean}");
    let inherited = call("");
    assert!(inherited.contains("EDITOR=value") && inherited.contains("HOME=/x"), "{inherited}");
    // Without the home nothing starts.
    fs::remove_dir(&home).expect("an empty directory");
    fs::write(&home, "").expect("a file in its place");
    let output = world.call(&["run", "--", "touch", "ran"]).env("OUTLAST_POLICY", policy(&world, text)).run();
    assert!(output.code != Some(0) && output.err().contains("home") && !world.file("ran").exists(), "{output:?}");
}

/// Covers: R12
#[test]
fn r12_more_rights_are_refused_because_there_is_no_sandbox() {
    let world = world();
    for options in [&["--right", "network"][..], &["-b", "--right", "/etc", "--right", "network"]] {
        let output = run(&world, "", &[options, &["--", "touch", "ran"]].concat());
        refused(&world, output, &["network", "no sandbox", "nothing ran"]);
    }
    run(&world, "", &["--", "touch", "ran"]).ok();
    assert!(world.file("ran").exists());
}
