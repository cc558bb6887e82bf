//! What the command line says: bounded, helpful, and nothing that is not so.

use crate::support::*;

#[test]
fn wait_any_ends_with_the_code_of_the_first_that_ended() {
    let world = world();
    let later = bg_shell(&world, &[], "while [ ! -e go ]; do sleep .05; done; exit 9");
    let first = bg_shell(&world, &[], "exit 4");
    world.outlast(&["wait", &first]).exits(4);
    std::fs::write(world.file("go"), "").expect("a file");
    world.outlast(&["wait", &later]).exits(9);
    world.outlast(&["wait", "--any", &later, &first]).exits(4);
    world.outlast(&["wait", "--any", &first, &later]).exits(4);
}

#[test]
fn wait_that_could_not_be_shown_tells_nobody() {
    let world = world();
    let id = bg_shell(&world, &[], "exit 4");
    let (reader, writer) = std::io::pipe().expect("a pipe");
    drop(reader);
    world.call(&["wait", &id]).stdout(writer).run();
    assert_eq!(ids(&world.acked("model")), [id]);
}

#[test]
fn unknown_id_among_known_ones_is_an_answer_of_its_own() {
    let world = world();
    let fine = world.bg(&["true"]);
    let told = world.outlast(&["wait", &fine, "w9999"]).exits(3);
    assert!(told.err().contains("w9999") && told.text().contains(&fine), "{told:?}");
}

#[test]
fn stopped_command_that_ends_with_0_is_called_no_success() {
    let world = world();
    let id = bg_shell(&world, &[], "trap 'exit 0' TERM; echo x >p; while :; do sleep .05; done");
    world.wait_file("p");
    world.stop(&id);
    let told = world.outlast(&["wait", &id]).ok();
    assert!(told.text().contains("error: not a success although its code is 0"), "{told:?}");
    assert_eq!(world.status(&id).str("/status"), "error");
}

#[test]
fn long_command_lines_and_names_are_cut() {
    let world = world();
    let long = "x".repeat(5_000);
    world.bg(&["sh", "-c", "exec sleep 50", &long]);
    for told in [
        world.outlast(&["trace"]).ok(),
        world.outlast(&["status", &long]).exits(3),
        world.outlast(&["wait", "w1", "--until", &format!("output:({long}")]).exits(2),
        world.outlast(&["run", "--", &long]),
        world.outlast(&["session", "end", &world.session()]).ok(),
    ] {
        let widest = (told.text() + &told.err()).lines().map(|line| line.chars().count()).max();
        assert!(widest.is_some_and(|widest| widest < 700), "{widest:?} characters: {told:?}");
    }
}

#[test]
fn refusal_by_the_cap_names_eight() {
    let world = world();
    let told = world.shell("for i in $(seq 64); do outlast run -b -- sleep 50 >ids || exit; done").run();
    told.ok();
    let refused = world.outlast(&["run", "-b", "--", "true"]).exits(4);
    assert_eq!(refused.err().matches("wrk_").count(), 8, "{refused:?}");
    assert!(refused.err().contains("64") && refused.err().contains("and 56 more"), "{refused:?}");
    world.outlast(&["stop", "--all", "--grace", "0"]).ok();
}

#[test]
fn too_few_descriptors_are_said() {
    let world = world();
    for verb in ["ps", "run -- true", "run -b -- true"] {
        for count in [6, 8, 12] {
            let told = world.shell(&format!("ulimit -n {count}; exec outlast {verb}")).run().exits(70);
            assert!(told.err().contains("ulimit -n") && told.err().lines().count() == 1, "{told:?}");
        }
    }
}

#[test]
fn help_is_there_under_each_of_its_names() {
    let world = world();
    let help = world.outlast(&["--help"]).ok().text();
    assert_eq!(world.outlast(&["help"]).ok().text(), help);
    assert_eq!(world.outlast(&["help", "run"]).ok().text(), world.outlast(&["run", "--help"]).ok().text());
    for verb in ["start", "list", "show", "end", "resume"] {
        let help = world.outlast(&["session", verb, "--help"]).ok().text();
        assert!(help.contains("Example"), "{help}");
    }
}

#[test]
fn what_is_not_shown_is_not_suggested() {
    let world = world();
    let refused = world.outlast(&["mann"]).exits(2);
    assert!(!refused.err().contains("'man'"), "{refused:?}");
    assert!(world.outlast(&["statsu"]).exits(2).err().contains("'status'"));
}

#[test]
fn mistakes_in_arguments_are_said_in_a_line() {
    let world = world();
    let told = world.outlast(&["wait", "w1", "--until", "output:("]).exits(2);
    assert!(told.err().contains("unclosed group") && !told.err().contains('^'), "{told:?}");
    world.outlast(&["run", "--cwd", "", "--", "true"]).exits(2);
    let id = bg_shell(&world, &[], "printf four");
    world.wait(&id);
    let told = world.outlast(&["logs", &id, "--offset", "99"]).ok();
    assert!(told.err().contains("offset 99 is past the end") && told.err().contains("next offset 4"), "{told:?}");
    let told = world.outlast(&["logs", &id, "--offset", "4"]).ok();
    assert_eq!(told.err().lines().count(), 1, "{told:?}");
}

/// Covers: P3
#[test]
fn p3_limit_of_zero_is_ignored() {
    let world = world();
    let zero = ["--limit", "0", "--idle-limit", "0s", "--memory", "0"];
    shell_json(&world, &zero, "sleep .3; exit 5").ends("exited", 5);
    let told = world.call(&["run", "--json", "--limit", "0", "sleep", "50"]).env("OUTLAST_LIMIT", "200ms").run();
    told.exits(124).json().ends("timed_out", 124).detail("wall");
}

#[test]
fn relative_state_directory_is_told() {
    let world = world();
    let absolute = world.work().join("here").display().to_string();
    let told = world.call(&["ps"]).env("OUTLAST_STATE_DIR", "here").without("OUTLAST_SESSION").run().ok();
    assert!(told.err().contains("OUTLAST_STATE_DIR") && told.err().contains(&absolute), "{told:?}");
    let told = world.call(&["ps"]).env("HOME", "here").without("OUTLAST_STATE_DIR").without("OUTLAST_SESSION").run();
    assert!(told.ok().err().contains("HOME is no absolute path"));
    assert_eq!(world.outlast(&["ps"]).ok().err(), "");
}

#[test]
fn status_without_output_ends_without_an_empty_line() {
    let world = world();
    let id = world.bg(&["sleep", "50"]);
    let text = world.outlast(&["status", &id]).ok().text();
    assert!(text.ends_with("output: 0 bytes, all shown\n"), "{text:?}");
}

#[test]
fn tables_fit_the_columns_that_are_known() {
    let world = world();
    let id = world.bg(&["--label", &"word ".repeat(20), "sleep", "50"]);
    for (columns, widest) in [(None, 80), (Some("60"), 60), (Some("junk"), 80), (Some("200"), 200)] {
        let mut call = world.call(&["ps"]);
        if let Some(columns) = columns {
            call = call.env("COLUMNS", columns);
        }
        let text = call.run().ok().text();
        assert!(text.lines().all(|line| line.chars().count() <= widest), "{columns:?}: {text}");
        assert_eq!(text.contains(&id), widest == 200, "{columns:?}: {text}");
    }
}

#[test]
fn session_is_known_by_the_beginning_of_its_id() {
    let world = world();
    let whole = world.session();
    let part = &whole[..whole.len() - 2];
    let told = world.outlast(&["session", "show", part, "--json"]).ok().json();
    assert_eq!(told.str("/id"), whole);
    world.outlast(&["ps", "--session", part]).ok();
    world.new_session(&[]);
    let refused = world.outlast(&["session", "show", "ses_0"]).exits(2);
    assert!(refused.err().contains("2 sessions"), "{refused:?}");
    world.outlast(&["session", "show", "ses_ffff"]).exits(3);
}

#[test]
fn session_of_a_caller_outlives_the_shells_that_it_starts() {
    let world = World::bare(BINARY, "state");
    let line = "sh -c 'outlast session start --anchor $PPID >id'; export OUTLAST_SESSION=$(cat id); \
                sh -c 'outlast run -b -- sleep 50'; sh -c 'outlast ps'; sh -c 'outlast stop w1'";
    let told = world.shell(line).run().ok();
    assert!(told.text().contains("w1     running"), "{told:?}");
    world.wait_until("the session ended with its caller", || world.processes().is_empty());
}
