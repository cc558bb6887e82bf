//! Area J: ids and scope.

use crate::support::*;

#[test]
fn j1_ids_sort_by_start() {
    let world = world();
    let all: Vec<String> = (0..15).map(|_| world.bg(&["true"])).collect();
    let mut sorted = all.clone();
    sorted.sort();
    sorted.dedup();
    assert_eq!(all, sorted);
}

#[test]
fn j2_aliases_are_never_used_again() {
    let world = world();
    let first = world.bg(&["true"]);
    let second = world.bg(&["sleep", "50"]);
    world.outlast(&["run", "--", "true"]).ok();
    world.stop(&second);
    let third = world.bg(&["true"]);
    let list = world.list();
    assert_eq!(ids(&list), [first, second, third]);
    let numbers: Vec<u32> =
        list.iter().map(|one| one.str("/alias")[1..].parse().expect("a number after the w")).collect();
    assert_eq!(numbers[..2], [1, 2]);
    assert!(numbers[2] > 2, "{numbers:?}");
    let session = world.session();
    world.outlast(&["session", "end", &session]).ok();
    let next = world.resume(&session);
    let fresh = world.call(&["run", "-b", "--json", "--", "true"]).session(&next).run().ok().json();
    assert_eq!(fresh.str("/alias"), "w1");
}

#[test]
fn j3_sessions_do_not_see_each_other() {
    let world = world();
    let (a, b) = (world.session(), world.new_session(&[]));
    let in_a = world.bg(&["sleep", "50"]);
    let in_b = world.call(&["run", "-b", "--json", "sleep", "50"]).session(&b).run().ok().json();
    let in_b = in_b.str("/id").to_owned();
    for (session, own) in [(&a, &in_a), (&b, &in_b)] {
        let shown = world.outlast(&["status", "w1", "--json", "--session", session]).ok().json();
        assert_eq!(shown.str("/id"), own);
        let list = world.outlast(&["ps", "-a", "--json", "--session", session]).ok().json();
        assert_eq!(list.each("/commands", "/id"), [own.as_str()]);
    }
    let prefix = &in_b[..35];
    if !in_a.starts_with(prefix) {
        world.outlast(&["status", prefix]).exits(3);
    }
    assert_eq!(world.status(&in_b).str("/session"), b, "a full id acts in any session");
    world.outlast(&["stop", "w1"]).ok();
    world.status(&in_b).runs();
    world.outlast(&["stop", "w1", "--session", &b]).ok();
    assert!(world.acked("human").iter().all(|one| one.str("/id") == in_a));
}

#[test]
fn j4_ids_are_parsed_as_a_whole() {
    let world = world();
    let id = world.bg(&["sleep", "50"]);
    assert_eq!(world.outlast(&["status", &format!(" {id}\n"), "--json"]).ok().json().str("/id"), id);
    assert_eq!(world.outlast(&["status", " w1 ", "--json"]).ok().json().str("/id"), id);
    for odd in [format!("{id}\u{7}"), format!("{}\n{}", &id[..10], &id[10..]), "w1\u{1b}[0m".to_owned(), String::new()]
    {
        let refused = world.outlast(&["status", &odd]);
        assert!(matches!(refused.code, Some(2 | 3)), "{refused:?}");
        printable(&refused.err());
    }
}

#[test]
fn j8_id_of_an_earlier_session_says_so() {
    let world = world();
    let session = world.session();
    let over = bg_shell(&world, &[], "exit 7");
    world.wait(&over);
    let killed = world.bg(&["sleep", "50"]);
    world.outlast(&["session", "end", &session]).ok();
    let next = world.resume(&session);
    for (id, words) in [(&over, "7"), (&killed, "session")] {
        let told = world.call(&["status", id]).session(&next).run().ok();
        assert!(told.text().contains("earlier session") && told.text().contains(words), "{told:?}");
    }
}
