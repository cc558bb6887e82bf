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
