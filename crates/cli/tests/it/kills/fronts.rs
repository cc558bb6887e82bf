//! Lives of what front ends do about commands: sessions, deliveries, stops, input, receipts, moves, retention.

use std::fs;

use super::lives::{ENDLESS, FAILS, Life, SHORT, Walk, act, dead, id_of, judge};
use super::points::Stage;
use super::rules::{self, Act};
use super::shapes::Shape;
use super::victims::{kill_exact, kill_marked};
use crate::bind::Elsewhere;
use crate::support::*;

/// All lives.
pub const LIVES: &[Life] = &[
    Life { name: "a session that begins", walk: Walk::Whole, play: begun },
    Life { name: "a session that ends", walk: Walk::From("keeper send FromOwnKeeper.stop"), play: ended },
    Life { name: "an end that is told by the inbox", walk: Walk::From("front lock inbox.lock"), play: told_by_inbox },
    Life {
        name: "an end that is waited for",
        walk: Walk::From("front send ToSupervisor.subscribe"),
        play: told_by_wait,
    },
    Life { name: "a stop", walk: Walk::From("front send ToSupervisor.stop"), play: stopped },
    Life { name: "input", walk: Walk::New, play: input },
    Life { name: "a signal", walk: Walk::New, play: signalled },
    Life { name: "a log that is followed", walk: Walk::New, play: followed },
    Life { name: "receipts of a command with records", walk: Walk::New, play: |stage| receipts(stage, &["-b"]) },
    Life { name: "receipts of one without", walk: Walk::New, play: |stage| receipts(stage, &[]) },
    Life { name: "a keeper that takes over", walk: Walk::New, play: taken_over },
    Life { name: "a verdict", walk: Walk::From("front write .verdict.json.*.*.tmp"), play: lost },
    Life { name: "records that survive a loss of power", walk: Walk::New, play: powerless },
    Life { name: "a server", walk: Walk::New, play: server },
    Life { name: "a server on the network", walk: Walk::New, play: network },
    Life { name: "a caller that goes away", walk: Walk::New, play: goes_away },
    Life { name: "a call whose supervisor is killed", walk: Walk::New, play: bereft },
    Life { name: "a stop that others forbid", walk: Walk::New, play: forbidden },
    Life { name: "a context that is given", walk: Walk::New, play: context },
    Life { name: "records that are moved", walk: Walk::From("front create bound.lock"), play: moved },
    Life {
        name: "records that move at their end",
        walk: Walk::From("supervisor create bound.lock"),
        play: moved_at_end,
    },
    Life { name: "retention", walk: Walk::From("front write .pruned.json.*.*.tmp"), play: retained },
];

/// Says what a command has changed, and ends.
const PUBLISHES: &Shape =
    &Shape { name: "publishes", options: &[], line: "outlast receipt a; exit 4", code: Some(4), output: None };
/// Reads what it is sent.
const READS: &Shape = &Shape {
    name: "reads",
    options: &["--stdin"],
    line: "while read x; do echo $x; done; exec sleep 300",
    code: None,
    output: None,
};
/// Takes a signal and goes on.
const TRAPS: &Shape =
    &Shape { name: "traps", options: &[], line: "trap : USR1; while :; do sleep .05; done", code: None, output: None };

/// A call that says yes, or dies where a front end, or what it talks to, was to die.
#[track_caller]
fn call(stage: &Stage, words: &[&str]) -> Output {
    let told = stage.call(words);
    assert!(told.code.is_some() || stage.kills("front"), "nobody was to kill this call: {told:?}");
    told
}

/// Makes a session, uses it and ends it.
fn begun(stage: &Stage) {
    let world = &stage.world;
    let anchor = world.sleeper();
    let words = ["session", "start", "--anchor", &anchor.pid().to_string(), "--context", "another"];
    let told = call(stage, &words).text().trim().to_owned();
    // Whoever died over it is followed by one who makes another.
    let session = world.outlast(&words).ok().text().trim().to_owned();
    stage.curtain();
    world.call(&["run", "--", "true"]).session(&session).run().ok();
    let found = world.outlast(&["session", "list", "--json"]).ok().json().each("/sessions", "/id");
    assert!(found.contains(&session) && (told.is_empty() || found.contains(&told)), "{found:?}");
    for one in found.iter().filter(|one| **one != world.session()) {
        world.outlast(&["session", "end", one]).ok();
    }
    rules::every_file_parses(world);
    rules::judge_rest(world, &[]);
}

/// The session ends over a running command.
fn ended(stage: &Stage) {
    let world = &stage.world;
    let act = act(stage, "target", ENDLESS, &["-b"]);
    let told = call(stage, &["session", "end", &world.session()]);
    if told.code == Some(0) {
        world.wait_until("no process is left", || world.processes().is_empty());
    }
    stage.curtain();
    if id_of(&act.told).is_some() {
        rules::judge_end(world, &act);
    } else {
        rules::judge_rest(world, &world.list());
    }
}

fn told_by_inbox(stage: &Stage) {
    told_by(stage, |_| vec!["inbox".to_owned()], &["--ack", "--consumer", "human", "--json"]);
}

fn told_by_wait(stage: &Stage) {
    told_by(stage, |id| vec!["wait".to_owned(), id.to_owned()], &["--consumer", "human", "--json"]);
}

/// An end is told by a call; if that was killed it is told again, and says so if it was shown.
fn told_by(stage: &Stage, verb: impl Fn(&str) -> Vec<String>, options: &[&str]) {
    let world = &stage.world;
    let act = act(stage, "target", SHORT, &["-b"]);
    let Some(id) = id_of(&act.told) else { return judge(stage, &[act]) };
    let verb = verb(&id);
    if verb[0] == "inbox" {
        world.wait_until("it has ended", || world.status(&id).str("/phase") == "ended");
    }
    let words: Vec<&str> = verb.iter().map(String::as_str).chain(options.iter().copied()).collect();
    let told = call(stage, &words);
    let shown = told.text().contains(&id);
    stage.curtain();
    world.wait_until("it has ended", || world.status(&id).str("/phase") == "ended");
    if shown && told.code.is_some() {
        let told = told.json();
        let end = if verb[0] == "wait" { told.at("/end") } else { told.at("/completions/0/end") };
        assert_eq!(end, world.status(&id).at("/end"), "told one end and recorded another");
    }
    let again = world.acked("human");
    assert!(shown || ids(&again) == [id.as_str()], "told by nobody: {again:?}");
    // A wait is a reply and claims nothing before it: only the inbox knows that it may have told it before.
    let claims = verb[0] == "inbox";
    assert!(again.iter().all(|one| !claims || shown == one.bool("/redelivered")), "{shown} {again:?}");
    assert!(again.is_empty() || stage.kills("front"), "nobody died and it is told again: {again:?}");
    assert!(world.acked("human").is_empty());
    assert_eq!(ids(&world.acked("model")), [id.as_str()], "told to another consumer");
    let told = world.trace("completed");
    assert_eq!(told.len(), 2, "one line for each consumer: {told:#?}");
    rules::judge_rest(world, &world.list());
}

fn stopped(stage: &Stage) {
    let act = act(stage, "target", ENDLESS, &["-b"]);
    if let Some(id) = id_of(&act.told) {
        call(stage, &["stop", &id, "--consumer", "model", "--grace", "100ms"]);
    }
    judge(stage, &[act]);
}

fn input(stage: &Stage) {
    let act = act(stage, "target", READS, &["-b"]);
    if let Some(id) = id_of(&act.told) {
        call(stage, &["send", &id, "a line"]);
        call(stage, &["send", &id, "--eof"]);
    }
    judge(stage, &[act]);
}

fn signalled(stage: &Stage) {
    let act = act(stage, "target", TRAPS, &["-b"]);
    if let Some(id) = id_of(&act.told) {
        stage.world.wait_until("it is up, or over", || {
            stage.world.file("ran.target").exists() || stage.world.status(&id).str("/phase") == "ended"
        });
        call(stage, &["send", &id, "--signal", "USR1"]);
    }
    judge(stage, &[act]);
}

fn followed(stage: &Stage) {
    let act = act(stage, "target", SHORT, &["-b"]);
    if let Some(id) = id_of(&act.told) {
        call(stage, &["logs", "-f", &id]);
        call(stage, &["status", &id]);
    }
    judge(stage, &[act]);
}

fn receipts(stage: &Stage, options: &[&str]) {
    let act = act(stage, "target", PUBLISHES, options);
    judge(stage, &[act]);
}

/// The keeper is killed in any case, and the next start makes another one.
fn taken_over(stage: &Stage) {
    let world = &stage.world;
    let mut first = act(stage, "first", ENDLESS, &["-b"]);
    for keeper in Cast::of(world).keepers {
        first.dead.keeper |= kill_exact(world, &keeper);
        world.wait_until("it is dead", || proc::stat(keeper.pid).is_none_or(|now| now.start != keeper.start));
    }
    let mut second = act(stage, "second", FAILS, &[]);
    second.dead.keeper |= first.dead.keeper;
    judge(stage, &[first, second]);
}

/// Keeper and supervisor are killed in any case, and a look settles what is left.
fn lost(stage: &Stage) {
    let world = &stage.world;
    let mut act = act(stage, "target", ENDLESS, &["-b"]);
    if let Some(id) = id_of(&act.told) {
        for keeper in Cast::of(world).keepers {
            act.dead.keeper |= kill_exact(world, &keeper);
        }
        act.dead.supervisor |= kill_marked(world, &world.record(&id, "status.json"), "/supervisor");
        // What is left of a leader until it is reaped tells how it ended.
        world.wait_until("its processes are gone", || world.of_command(&id).is_empty());
        call(stage, &["status", &id]);
    }
    judge(stage, &[act]);
}

/// Every record is written to the disk, and the names of them too.
fn powerless(stage: &Stage) {
    let world = &stage.world;
    let path = world.session_dir(&world.session()).join("session.json");
    let text = fs::read_to_string(&path).expect("the record of the session");
    assert!(text.contains(r#""durability":"process""#), "{text}");
    fs::write(path, text.replace(r#""durability":"process""#, r#""durability":"power""#)).expect("our file");
    let first = act(stage, "first", SHORT, &["--grace", "20ms"]);
    let second = act(stage, "second", PUBLISHES, &["-b"]);
    judge(stage, &[first, second]);
}

/// A server owns its session, runs a command and hangs up.
fn server(stage: &Stage) {
    let world = &stage.world;
    let anchor = world.sleeper();
    let words = ["mcp", "--anchor", &anchor.pid().to_string()];
    let call = stage.arm(world.call(&words).without("OUTLAST_SESSION")).open_input();
    let mut front = call.spawn();
    let hello = r#"{"protocolVersion":"2025-11-25","capabilities":{},"clientInfo":{"name":"a","version":"0"}}"#;
    let run = r#"{"name":"run","arguments":{"command":"echo out; exit 3"}}"#;
    front.write(format!(r#"{{"jsonrpc":"2.0","id":1,"method":"initialize","params":{hello}}}{}"#, "\n").as_bytes());
    front.write(b"{\"jsonrpc\":\"2.0\",\"method\":\"notifications/initialized\"}\n");
    for id in [2, 3] {
        front
            .write(format!(r#"{{"jsonrpc":"2.0","id":{id},"method":"tools/call","params":{run}}}{}"#, "\n").as_bytes());
        let answer = format!(r#""id":{id}"#);
        world.wait_until("it answers or dies", || front.ended() || front.stdout().contains(&answer));
    }
    front.close_input();
    let told = front.wait();
    assert!(told.code.is_some() || stage.kills("front"), "{told:?}");
    drop(anchor);
    world.wait_until("nothing is left of it", || world.processes().is_empty());
    stage.curtain();
    rules::judge_rest(world, &[]);
}

/// A server that has to have a token.
fn network(stage: &Stage) {
    let world = &stage.world;
    let words = ["mcp", "--http", "127.0.0.1:0"];
    let mut front = stage.arm(world.call(&words).without("OUTLAST_SESSION")).spawn();
    let token = world.state().join("http-token");
    world.wait_until("it has its token or dies", || front.ended() || token.exists());
    if !front.ended() {
        front.signal(Signal::KILL);
    }
    drop(front.wait_killed());
    stage.curtain();
    let next = world.call(&words).without("OUTLAST_SESSION").spawn();
    next.wait_stderr("it listens", |text| text.contains("http://127.0.0.1"));
    assert!(fs::read_to_string(token).expect("a token").trim().len() >= 32);
    next.signal(Signal::KILL);
    drop(next.wait_killed());
    rules::judge_rest(world, &[]);
}

/// A call in the foreground, as soon as its command is up or is never to be.
fn up(stage: &Stage, front: &mut outlast_testkit::Front) {
    stage.world.wait_until("it is up or over", || front.ended() || stage.world.file("ran.target").exists());
}

/// An act whose call was made in the foreground, and is over.
fn act_of(stage: &Stage, told: Output) -> Act {
    Act { label: "target", shape: ENDLESS, dead: dead(stage, &told), told }
}

/// The caller goes away, and its command moves to the background.
fn goes_away(stage: &Stage) {
    let mut front = stage.arm(stage.world.call(&Act::words("target", ENDLESS, &["--grace", "60s"]))).spawn();
    up(stage, &mut front);
    if !front.ended() {
        front.signal(Signal::TERM);
    }
    let act = act_of(stage, front.wait_killed());
    judge(stage, &[act]);
}

/// The supervisor is killed in any case, and the front end hears from the keeper what became of the command.
fn bereft(stage: &Stage) {
    let mut front = stage.arm(stage.world.call(&Act::words("target", ENDLESS, &["--grace", "60s"]))).spawn();
    up(stage, &mut front);
    let supervisors = Cast::of(&stage.world).supervisors;
    let killed = supervisors.iter().filter(|one| kill_exact(&stage.world, one)).count() > 0;
    let mut act = act_of(stage, front.wait_killed());
    act.dead.supervisor |= killed;
    judge(stage, &[act]);
}

/// Two wait for a command that a third one would stop.
fn forbidden(stage: &Stage) {
    let world = &stage.world;
    let words = ["run", "--join", "--json", "sleep", "300"];
    let background = id_of(&call(stage, &[&["run", "-b"][..], &words[1..]].concat()));
    let mut calls: Vec<_> = (0..2).map(|_| stage.arm(world.call(&words)).spawn()).collect();
    for waits in &mut calls {
        // Where the first was killed they make a command of their own, which moves to the background at last.
        world.wait_until("it has joined", || waits.ended() || waits.stderr().contains("joined wrk_"));
    }
    let refused = background.map(|id| call(stage, &["stop", &id]));
    stage.curtain();
    let nobody_waits = stage.kills("front") || stage.kills("supervisor") || stage.kills("between");
    assert!(nobody_waits || refused.as_ref().is_some_and(|told| told.code == Some(4)), "{refused:?}");
    world.outlast(&["stop", "--all", "--force"]).ok();
    calls.drain(..).for_each(|waits| drop(waits.wait_killed()));
    world.outlast(&["stop", "--all", "--force"]).ok();
    for one in world.list() {
        assert_eq!(world.wait(one.str("/id")).str("/end/kind"), "stopped");
    }
    rules::judge_rest(world, &world.list());
}

fn context(stage: &Stage) {
    let world = &stage.world;
    let session = world.new_session(&[]);
    let words = ["session", "bind", &session, "--context", "project"];
    call(stage, &words);
    stage.curtain();
    world.outlast(&words).ok();
    rules::every_file_parses(world);
    world.outlast(&["session", "end", &session]).ok();
    rules::judge_rest(world, &[]);
}

/// Records are moved to another file system, by copies.
fn moved(stage: &Stage) {
    let world = &stage.world;
    let Some(elsewhere) = Elsewhere::new(world) else { return stage.curtain() };
    let over = crate::bind::ended(world);
    call(stage, &["session", "bind", &world.session(), &elsewhere.0.display().to_string()]);
    stage.curtain();
    // The first look finds it whole, and whoever goes on brings it where it was to go.
    crate::bind::whole(world, &over);
    crate::bind::bind(world, &elsewhere.0);
    let there = elsewhere.0.join(world.session()).join(&over);
    assert_eq!(crate::bind::place_of(world, &over, &[&elsewhere.0]), there);
    crate::bind::whole(world, &over);
    rules::judge_rest(world, &world.list());
}

/// They move once their command is over.
fn moved_at_end(stage: &Stage) {
    let world = &stage.world;
    let Some(elsewhere) = Elsewhere::new(world) else { return stage.curtain() };
    crate::bind::bind(world, &elsewhere.0);
    let act = act(stage, "target", FAILS, &["-b"]);
    world.wait_until("its keeper has seen to it", || world.processes().is_empty());
    let ended = rules::judge_acts(world, &[act]);
    stage.curtain();
    for id in ids(&ended) {
        let there = elsewhere.0.join(world.session()).join(&id);
        assert_eq!(crate::bind::place_of(world, &id, &[&elsewhere.0]), there);
    }
    rules::judge_rest(world, &ended);
}

/// Output goes, and then a session with all that is in it.
fn retained(stage: &Stage) {
    let world = &stage.world;
    let id = bg_shell(world, &[], "seq 50000; exit 7");
    world.wait(&id);
    let session = world.new_session(&["--context", "project"]);
    world.outlast(&["session", "end", &session]).ok();
    world.wait_until("nobody holds the records", || world.processes().is_empty());
    let steps = [["gc", "--keep-output", "4KiB"], ["gc", "--keep-age", "1ms"]];
    steps.iter().for_each(|words| drop(call(stage, words)));
    stage.curtain();
    // What the log of a command lost is said, and not taken for the log.
    let log = world.dir(&id).join("output.log");
    let told = world.outlast(&["status", &id]).ok();
    assert_eq!(told.text().contains("pruned"), !world.status(&id).null("/pruned_at_ms"), "{told:?}");
    assert!(log.exists() || told.text().contains("pruned"), "{told:?}");
    steps.iter().for_each(|words| drop(world.outlast(words).ok()));
    assert!(!log.exists() && world.status(&id).null("/output/log"));
    world.outlast(&["session", "show", &session]).exits(3);
    let left = tree(&world.state()).into_iter().filter(|path| path.to_string_lossy().contains(&session));
    assert_eq!(left.count(), 0);
    rules::judge_rest(world, &world.list());
}
