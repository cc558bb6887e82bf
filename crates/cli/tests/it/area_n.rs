//! Area N: receipts.

use crate::support::*;

/// The shell line with the binary under test in place of `outlast`.
fn line(text: &str) -> String {
    text.replace("outlast", BINARY)
}

#[test]
fn n1_published_in_the_background_and_shown_after_the_end() {
    let world = world();
    let script = line("outlast receipt one.txt /two; touch published; read x; outlast receipt one.txt three");
    let id = bg_shell(&world, &["--stdin"], &script);
    world.wait_until("it has published", || world.file("published").exists());
    assert!(world.status(&id).null("/changed"));
    world.outlast(&["send", &id, "go"]).ok();
    let ended = world.outlast(&["wait", &id, "--json"]).ok().json();
    let here = world.work().display().to_string();
    assert_eq!(
        ended.each("/changed/paths", ""),
        [format!("{here}/one.txt"), "/two".to_owned(), format!("{here}/three")]
    );
    assert!(!ended.bool("/changed/opaque"));
    // A line of a version that is not known here is a change of which nothing is known.
    let stored = world.dir(&id).join("receipts.jsonl");
    std::fs::write(stored, "{\"schema\":\"outlast.receipts/7\",\"files\":[]}\n").expect("the receipts");
    let newer = world.status(&id);
    assert!(newer.bool("/changed/opaque") && newer.each("/changed/paths", "").is_empty());
}

#[test]
fn n1_published_in_the_foreground_and_shown_with_the_end() {
    let world = world();
    let ended = shell_json(&world, &[], &line("outlast receipt a && outlast receipt b"));
    let here = world.work().display().to_string();
    assert_eq!(ended.int("/exit_code"), 0);
    assert_eq!(ended.each("/changed/paths", ""), [format!("{here}/a"), format!("{here}/b")]);
    assert!(ended.null("/alias"), "it has no records");
    assert!(shell_json(&world, &[], "true").null("/changed"));
}

#[test]
fn n1_nothing_to_publish_and_nobody_to_publish_for() {
    let world = world();
    let nothing = |output: Output| assert_eq!((output.text(), output.err()), (String::new(), String::new()));
    nothing(world.outlast(&["receipt", "a"]).ok());
    nothing(world.outlast(&["receipt"]).ok());
    let ended = shell_json(&world, &[], &line("outlast receipt"));
    assert!(ended.int("/exit_code") == 0 && ended.null("/changed"));
    // Whoever survived the command is told that it is too late.
    let script = line(
        "(trap '' HUP; exec >/dev/null 2>late; while [ ! -e gate ]; do sleep 0.05; done; outlast receipt a; \
                       echo $? > code) & exit 0",
    );
    let id = bg_shell(&world, &[], &script);
    world.wait_until("it has ended", || world.status(&id).str("/phase") == "ended");
    std::fs::write(world.file("gate"), "").expect("the gate");
    world.wait_until("it has answered", || std::fs::read(world.file("code")).is_ok_and(|code| code == b"4\n"));
    let late = std::fs::read_to_string(world.file("late")).expect("what was said");
    assert!(late.contains(&format!("{id} has ended")), "{late}");
}

/// A directory `t` with files that git would keep and ignore.
fn tree_of_files(world: &World) {
    let files =
        [("t/.git/HEAD", ""), ("t/.gitignore", "out/\n"), ("t/a", "1"), ("t/b", "1"), ("t/s/c", "1"), ("t/out/x", "1")];
    for (path, text) in files {
        let path = world.file(path);
        std::fs::create_dir_all(path.parent().expect("a parent")).expect("a directory");
        std::fs::write(path, text).expect("a file");
    }
}

const CHANGES: &str = "echo 2 >>t/a; rm t/s/c; mkdir t/new; echo 1 >t/new/d; echo 2 >t/out/x; echo 1 >t/out/y; \
                       echo 1 >t/.git/index; cat t/b; ln -s b t/link";

/// Covers: N9
#[test]
fn n9_files_that_changed_are_told_with_the_end() {
    for background in [false, true] {
        let world = world();
        tree_of_files(&world);
        let ended = if background {
            let id = bg_shell(&world, &["--track-changes", "t"], CHANGES);
            world.outlast(&["wait", &id]).ok();
            assert!(world.outlast(&["ps", "-a", "--json"]).ok().json().items("/commands")[0].null("/tracked"));
            // What changes later is not of this command.
            std::fs::write(world.file("t/later"), "").expect("a file");
            world.status(&id)
        } else {
            shell_json(&world, &["--track-changes", "t"], CHANGES)
        };
        assert_eq!(ended.int("/exit_code"), 0);
        let paths = |kind: &str| ended.each(&format!("/tracked/{kind}"), "");
        assert_eq!(ended.str("/tracked/dir"), world.file("t").display().to_string());
        assert_eq!(paths("created"), ["link", "new/d"], "{ended:?}");
        assert_eq!(paths("modified"), ["a"]);
        assert_eq!(paths("deleted"), ["s/c"]);
        assert!(ended.int("/tracked/more") == 0 && ended.null("/tracked/problem"), "{ended:?}");
    }
}

/// Covers: N9
#[test]
fn n9_the_text_names_a_few_and_counts_the_rest() {
    let world = world();
    tree_of_files(&world);
    let dir = world.file("t").display().to_string();
    let run = |line: &str| world.outlast(&["run", "--track-changes", &dir, "-c", line]).ok().err();
    assert_eq!(run("cat t/a >/dev/null"), format!("outlast: below \"{dir}\": no file changed\n"));
    let told = format!("below \"{dir}\": created \"link\", \"new/d\"; modified \"a\"; deleted \"s/c\"");
    assert!(run(CHANGES).contains(&told));
    let many = run("for i in $(seq 10 39); do echo 1 >t/f$i; done");
    assert!(many.contains("created \"f10\", ") && many.contains(" \"f19\"; and 20 more"), "{many}");
    // Ignored from now on is not deleted, and a name cannot pass for words of outlast.
    let renamed = run("echo b >>t/.gitignore; mv t/a \"t/x\\\"; deleted\"");
    assert!(renamed.contains("created \"x\\\"; deleted\"; modified \".gitignore\"; deleted \"a\"\n"), "{renamed}");
    let id = bg_shell(&world, &["--track-changes", "t"], "echo 3 >>t/f10; exec sleep 300");
    world.wait_until("it is written", || std::fs::read(world.file("t/f10")).is_ok_and(|text| text.ends_with(b"3\n")));
    assert!(world.status(&id).null("/tracked"), "it runs");
    world.stop(&id);
    let text = world.outlast(&["status", &id]).ok().text();
    assert!(text.contains(&format!("below \"{dir}\": modified \"f10\"")), "{text}");
}

/// Covers: N9
#[test]
fn n9_secrets_are_masked_and_what_is_no_directory_is_refused() {
    let world = world();
    tree_of_files(&world);
    let secret = format!("ghp_{}", "a1B2".repeat(9));
    let ended = shell_json(&world, &["--track-changes", "t"], &format!("echo 1 >t/{secret}"));
    let created = ended.each("/tracked/created", "");
    assert!(created.len() == 1 && created[0].starts_with("****"), "{created:?}");
    for wrong in ["t/a", "none", "/dev/null"] {
        let refused = world.outlast(&["run", "--track-changes", wrong, "true"]).exits(2).err();
        assert!(refused.contains("no directory"), "{refused}");
    }
    world.outlast(&["run", "--track-changes", "t", "--join", "true"]).exits(2);
    assert!(shell_json(&world, &[], "true").null("/tracked"));
}
