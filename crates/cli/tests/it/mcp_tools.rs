//! The tools of the MCP server: what is offered, what each answers, and how a wrong call is told.

use std::time::Instant;

use outlast_testkit::mcp::{Client, ERAS, Era, Reply};
use serde_json::{Value, json};

use crate::support::{AT_ONCE, World, world};

/// A server in the session of this world.
#[track_caller]
fn server(world: &World, era: Era, options: &[&str]) -> Client {
    world.mcp(era, &[&["--session", &world.session()], options].concat())
}

#[track_caller]
fn tools(client: &mut Client) -> Vec<Value> {
    client.ask("tools/list", json!({})).at("/result/tools").as_array().expect("a list").clone()
}

fn names(tools: &[Value]) -> Vec<&str> {
    tools.iter().filter_map(|tool| tool["name"].as_str()).collect()
}

#[track_caller]
fn refused(reply: &Reply, words: &[&str]) {
    assert!(reply.is_error, "not refused: {reply:?}");
    assert!(words.iter().all(|word| reply.text.contains(word)), "{words:?} in {reply:?}");
}

/// Covers: U1, T8
#[test]
fn u1_the_tools_and_their_texts_are_constant() {
    let golden = include_str!("tools.json");
    for era in ERAS {
        let (one, other) = (world(), world());
        let (mut first, mut second) = (server(&one, era, &[]), server(&other, era, &[]));
        let listed = tools(&mut first);
        assert_eq!(names(&listed), ["run", "wait", "read", "list", "stop", "send"]);
        // A command in between changes nothing.
        first.background("sleep 300");
        assert_eq!(listed, tools(&mut first));
        assert_eq!(listed, tools(&mut second));
        let text = serde_json::to_string_pretty(&listed).expect("plain data") + "\n";
        assert!(text == golden, "what is offered differs from tools.json; it is now\n{text}");
    }
}

/// Covers: U3
#[test]
fn u3_hints_are_true_and_a_bound_of_nothing_is_refused() {
    let world = world();
    let mut client = server(&world, Era::Modern, &[]);
    for tool in tools(&mut client) {
        let name = tool["name"].as_str().expect("a name");
        let reads = ["wait", "read", "list"].contains(&name);
        assert_eq!(tool["annotations"]["readOnlyHint"], reads, "{name}");
        assert_eq!(tool["annotations"]["destructiveHint"], !reads, "{name}");
        assert_eq!(tool["_meta"]["anthropic/alwaysLoad"], true, "{name}");
        assert!(tool.get("outputSchema").is_none(), "{name}");
    }
    client.background("sleep 300");
    for bound in ["0s", "500ms"] {
        refused(&client.tool("wait", json!({"id": "w1", "timeout": bound})), &["`timeout`", "1s"]);
    }
}

/// Covers: U1, U2, U4, A12
#[test]
fn u2_a_wrong_call_is_told_so_that_it_can_be_mended() {
    for era in ERAS {
        let world = world();
        let mut client = server(&world, era, &[]);
        for (tool, arguments, words) in [
            ("run", json!({}), &["`run`", "command"][..]),
            ("run", json!({"command": ""}), &["`command`", "empty"]),
            ("run", json!({"command": " \n"}), &["`command`", "empty"]),
            ("run", json!({"command": "true", "nope": 1}), &["nope", "command"]),
            ("run", json!({"command": 5}), &["`command`", "string"]),
            ("run", json!({"command": "true", "grace": 5}), &["`grace`", "30s"]),
            ("run", json!({"command": "true", "lifetime": "ever"}), &["`lifetime`", "detached"]),
            ("run", json!({"command": "true", "env": ["NOPE"]}), &["`env`", "NAME=value"]),
            ("run", json!({"command": "true", "env": ["ld_preload=/x"]}), &["`env`", "ld_preload"]),
            ("run", json!({"command": "true", "cwd": "/no/such/place"}), &["/no/such/place", "cwd"]),
            ("read", json!({}), &["`read`", "id"]),
            ("read", json!({"id": "w9"}), &["unknown id: w9", "`list`"]),
            ("read", json!({"id": "wrk_00000000000000000000000000000000"}), &["unknown id"]),
            ("read", json!({"id": "w1", "head": 1, "tail": 1}), &["`head`", "`tail`"]),
            ("wait", json!({"ids": ["w9"]}), &["unknown id: w9"]),
            ("wait", json!({"until": "end"}), &["`until`", "output:"]),
            ("stop", json!({}), &["`stop`", "`list`"]),
            ("stop", json!({"id": ""}), &["`stop`", "`list`"]),
            ("send", json!({"id": "w9"}), &["`text`", "`eof`", "`signal`"]),
            ("send", json!({"id": "w9", "text": "x"}), &["unknown id"]),
            ("list", json!({"id": "w1"}), &["`list`", "`id`", "all"]),
        ] {
            refused(&client.tool(tool, arguments), words);
        }
        let unknown = client.ask("tools/call", json!({"name": "nope", "arguments": {}}));
        assert_eq!(unknown.int("/error/code"), -32602);
        assert!(world.list().is_empty(), "something was started");
    }
}

/// Covers: U1, U4, A5
#[test]
fn u4_what_is_not_offered_does_not_exist() {
    let world = world();
    let mut client = server(&world, Era::Legacy, &["--foreground-only"]);
    assert_eq!(names(&tools(&mut client)), ["run"]);
    for (tool, arguments) in [("wait", json!({})), ("read", json!({"id": "w1"})), ("list", json!({}))] {
        refused(&client.tool(tool, arguments), &["not offered", "--foreground-only"]);
    }
    refused(
        &client.tool("run", json!({"command": "true", "background": true})),
        &["`background`", "--foreground-only"],
    );
    // The grace that a call asks for has no meaning there.
    let reply = client.tool("run", json!({"command": "sleep 1; echo done", "grace": "100ms"}));
    assert_eq!(reply.command().ends("exited", 0).output(), "done\n");
}

/// Covers: U5, D6
#[test]
fn u5_kinds_of_outcome_are_told_apart() {
    for era in ERAS {
        let world = world();
        let mut client = server(&world, era, &[]);
        let ended = client.tool("run", json!({"command": "echo out; echo err >&2; exit 3"}));
        assert!(!ended.is_error);
        assert!(ended.first_line().starts_with("ended: exited, exit code 3, error, after "), "{ended:?}");
        assert!(ended.text.contains("\n[exit:3]\n") && ended.text.contains("\nout\nerr\n"), "{ended:?}");
        assert!(!ended.command().bool("/demoted"));
        let good = client.tool("run", json!({"command": "true"}));
        assert!(!good.text.contains("[exit:") && good.text.contains("(no output)"), "{good:?}");
        let late = client.tool("run", json!({"command": "echo part; sleep 300", "limit": "300ms"}));
        assert!(!late.is_error && late.first_line().contains("timed_out (wall"), "{late:?}");
        assert!(late.text.contains("the output is partial") && late.text.contains("part\n"), "{late:?}");
        late.command().ends("timed_out", 124);
        let killed = client.tool("run", json!({"command": "kill -KILL $$"}));
        assert!(!killed.is_error);
        killed.command().ends("signaled", 137);
        let moved = client.tool("run", json!({"command": "sleep 300", "grace": "100ms"}));
        assert!(!moved.is_error && moved.command().bool("/demoted"));
        let stopped = client.tool("stop", json!({"id": "w1"}));
        assert!(!stopped.is_error && stopped.first_line().contains("ended: stopped (TERM, by model)"), "{stopped:?}");
        // Asking again, and asking for what is not there, is no error of a stop.
        let again = client.tool("stop", json!({"ids": ["w1", "w9"]}));
        assert!(!again.is_error && again.text.contains("had already ended"), "{again:?}");
        assert!(again.text.contains("unknown: w9"), "{again:?}");
        let status = client.tool("read", json!({"id": "w1"}));
        assert!(!status.is_error && status.text.contains("[exit:143]"), "{status:?}");
        let missing = client.tool("run", json!({"command": "true", "cwd": "/no/such/place", "background": true}));
        refused(&missing, &["/no/such/place"]);
        missing.command().ends("spawn_failed", 126);
    }
}

/// Covers: B6, B7, B8, B9
#[test]
fn b8_the_reply_of_a_demotion() {
    for era in ERAS {
        let world = world();
        let mut client = server(&world, era, &[]);
        let mut texts = Vec::new();
        for line in ["yes | head -c 200000; sleep 300", "sleep 301"] {
            let reply = client.tool("run", json!({"command": line, "grace": "200ms"}));
            let moved = reply.command();
            assert!(!reply.is_error && moved.bool("/demoted") && moved.null("/end") && moved.null("/status"));
            assert!(reply.text.len() < 400, "{reply:?}");
            for fact in ["not an error", "grace is over", "output is kept", "`read`", "`stop`"] {
                assert!(reply.text.contains(fact), "{fact}: {reply:?}");
            }
            assert!(!reply.text.contains("You will be notified"), "nobody can promise that here: {reply:?}");
            texts.push(reply.text.replace(moved.str("/id"), "ID"));
        }
        assert_eq!(texts[0], texts[1]);
    }
}

/// Covers: A9
#[test]
fn a9_the_grace_is_never_longer_than_clients_wait() {
    let world = world();
    let mut client = server(&world, Era::Modern, &["--grace", "200s"]);
    let id = client.background("sleep 300");
    assert_eq!(world.record(&id, "request.json").int("/grace_ms"), 110_000);
    let asked = client.tool("run", json!({"command": "sleep 300", "grace": "10m", "background": true, "unique": true}));
    let id = asked.command().str("/id").to_owned();
    assert_eq!(world.record(&id, "request.json").int("/grace_ms"), 110_000);
    let mut client = server(&world, Era::Modern, &[]);
    let id = client.background("sleep 301");
    assert_eq!(world.record(&id, "request.json").int("/grace_ms"), 45_000);
    // A limit far above the grace does not hold the reply back.
    let asked = Instant::now();
    let moved = client.tool("run", json!({"command": "sleep 302", "grace": "100ms", "limit": "10m"}));
    assert!(moved.command().bool("/demoted") && asked.elapsed() < AT_ONCE);
    let mut client = world.mcp(Era::Modern, &["--session", &world.session(), "--grace", "100ms"]);
    assert!(client.tool("run", json!({"command": "sleep 303"})).command().bool("/demoted"), "the operator's grace");
}

/// Covers: E1, E2
#[test]
fn e1_a_shortened_wait_says_how_long_it_really_was() {
    for era in ERAS {
        let world = world();
        let mut client = server(&world, era, &["--longest-call", "1s"]);
        let id = client.background("sleep 300");
        let reply = client.tool("wait", json!({"id": id, "timeout": "10m"}));
        assert!(reply.first_line().starts_with(&format!("[{id}] running, waited 1")), "{reply:?}");
        assert!(
            reply.text.contains("The wait was over after 1s: this client ends a call that takes longer."),
            "{reply:?}"
        );
        let waited = reply.command().int("/waited_ms");
        assert!((1_000..20_000).contains(&waited), "{waited}");
        reply.command().runs();
        // What was asked for and kept needs no word.
        let kept = client.tool("wait", json!({"id": id, "timeout": "1s"}));
        assert!(!kept.text.contains("The wait was over"), "{kept:?}");
    }
}

#[test]
fn case_075_over_mcp_the_first_line_has_the_id() {
    let world = world();
    let mut client = server(&world, Era::Legacy, &[]);
    for arguments in
        [json!({"command": "sleep 300", "grace": "1s"}), json!({"command": "sleep 301", "background": true})]
    {
        let reply = client.tool("run", arguments);
        let moved = reply.command();
        moved.runs();
        assert!(moved.bool("/demoted") && reply.first_line().contains(moved.str("/id")), "{reply:?}");
    }
}

#[test]
fn case_111_a_wait_that_a_client_cuts_short_says_so() {
    let world = world();
    let mut client = server(&world, Era::Legacy, &["--longest-call", "1s"]);
    client.background("sleep 300");
    let reply = client.tool("wait", json!({"timeout": "65s"}));
    assert!(reply.text.contains("waited 1") && reply.text.contains("this client"), "{reply:?}");
}

/// Covers: E4, E5, E7, E9
#[test]
fn e4_a_wait_takes_several_ids_or_none() {
    let world = world();
    let mut client = server(&world, Era::Modern, &[]);
    assert_eq!(client.tool("wait", json!({})).text, "No background commands to wait for.\n");
    let (long, short) = (client.background("sleep 300"), client.background("echo ready; read line; exit 7"));
    world.wait_until("the second has ended", || world.status(&short).str("/phase") == "ended");
    let all = client.tool("wait", json!({"timeout": "1s"}));
    assert_eq!(all.command().str("/id"), long, "the second has no input and has ended: {all:?}");
    let any = client.tool("wait", json!({"ids": [long, short, "w9"], "any": true, "timeout": "30s"}));
    assert!(any.text.contains("ended: exited, exit code 7, error") && any.text.contains("unknown id: w9"), "{any:?}");
    assert_eq!(any.commands().len(), 2);
    assert!(any.text.contains("\n[exit:7]\n") && any.text.contains("\nready\n"), "{any:?}");
    // The end was told by that wait: nobody tells it once more.
    assert!(client.tool("list", json!({})).news().is_empty());
    let again = client.tool("wait", json!({"id": short}));
    assert!(again.text.contains("its end was told before"), "{again:?}");
    assert_eq!(world.acked("human").len(), 1, "another consumer has not heard of it");
    let output = client.background("sleep 1; echo Listening on 80; sleep 300");
    let met = client.tool("wait", json!({"id": output, "until": "output:Listening on [0-9]+", "timeout": "30s"}));
    assert!(met.first_line().contains("running, what was waited for came after"), "{met:?}");
    let quiet = client.tool("wait", json!({"id": output, "until": "quiet:200ms", "timeout": "30s"}));
    assert!(quiet.command().bool("/met"), "{quiet:?}");
    let missed = client.tool("wait", json!({"id": short, "until": "output:never"}));
    assert!(!missed.command().bool("/met"), "{missed:?}");
}

/// Covers: E8
#[test]
fn e8_a_call_that_waits_reports_progress_to_who_listens() {
    for era in ERAS {
        let world = world();
        let mut client = server(&world, era, &[]);
        client.progress = true;
        let run = client.start("run", json!({"command": "echo first; echo second; sleep 6; echo third"}));
        let background = json!({"command": "echo other; sleep 6", "background": true});
        client.tool("run", background);
        let wait = client.start("wait", json!({"id": "w1"}));
        let (ran, _) = (client.reply(run), client.reply(wait));
        assert_eq!(ran.command().output(), "first\nsecond\nthird\n");
        for (id, line) in [(run, "second"), (wait, "other")] {
            let reports = client.progress_of(id);
            assert!(!reports.is_empty(), "no report");
            assert!(reports[0].at("/progress").as_f64().is_some_and(|seconds| seconds >= 5.0), "{reports:?}");
            assert_eq!(reports[0].str("/message"), line);
        }
        client.progress = false;
        client.tool("run", json!({"command": "sleep 5.5"}));
        assert_eq!(client.said().iter().filter(|one| one.0["method"] == "notifications/progress").count(), 2);
    }
}

/// Covers: S7
#[test]
fn s7_many_waiting_calls_hold_nothing_up() {
    for era in ERAS {
        let world = world();
        let mut client = server(&world, era, &[]);
        let id = client.background("sleep 300");
        let waits: Vec<u64> = (0..200).map(|_| client.start("wait", json!({"id": id, "timeout": "40s"}))).collect();
        let runs: Vec<u64> =
            (0..20).map(|n| client.start("run", json!({"command": format!("sleep 30{n}"), "grace": "40s"}))).collect();
        let asked = Instant::now();
        assert!(!client.tool("read", json!({"id": id})).is_error);
        assert!(asked.elapsed() < AT_ONCE);
        client.cancel(runs[3]);
        let listed = client.tool("list", json!({}));
        let lines: Vec<String> = listed.commands().iter().map(|one| one.each_word()).collect();
        assert!(lines.contains(&"sleep 303".to_owned()), "the cancelled run was demoted: {lines:?}");
        client.tool("stop", json!({"id": id}));
        for wait in waits {
            assert!(client.reply(wait).text.contains("ended: stopped"));
        }
        assert!(client.answered(runs[3]).is_none(), "an answer to a cancelled request");
    }
}

/// Covers: S7, A6
#[test]
fn s7_a_call_that_is_cancelled_at_once_does_not_run_or_is_listed() {
    for era in ERAS {
        let world = world();
        let mut client = server(&world, era, &[]);
        let mut calls = Vec::new();
        for number in 0..20 {
            let line = format!("echo >ran-{number}; sleep 300");
            let call = client.start("run", json!({"command": line}));
            client.cancel(call);
            calls.push((call, line, format!("ran-{number}")));
        }
        let listed = client.tool("list", json!({}));
        let listed: Vec<String> = listed.commands().iter().map(|one| one.each_word()).collect();
        for (call, line, mark) in calls {
            assert!(listed.contains(&line) || !world.file(&mark).exists(), "{line} runs and is not listed");
            assert!(client.answered(call).is_none(), "an answer to a cancelled request");
        }
    }
}

trait Words {
    fn each_word(&self) -> String;
}

impl Words for outlast_testkit::Json {
    /// The shell line of a command.
    fn each_word(&self) -> String {
        self.items("/command").last().and_then(|word| word.0.as_str().map(str::to_owned)).unwrap_or_default()
    }
}

/// Covers: C2, C12
#[test]
fn c12_a_read_shows_the_part_that_was_asked_for() {
    let world = world();
    let mut client = server(&world, Era::Modern, &[]);
    let line = "i=0; while [ $i -lt 3000 ]; do i=$((i+1)); echo line $i; done; printf '\\033[31mERR\\033[0m red\\n'";
    let id = client.background(line);
    client.tool("wait", json!({"id": id}));
    let total = world.raw(&id).len();
    let default = client.tool("read", json!({"id": id}));
    assert!(default.text.len() < 8 * 1024, "{} bytes", default.text.len());
    assert!(default.text.contains("the last 7168 shown") && default.text.contains("\nERR red\n"), "{default:?}");
    let head = client.tool("read", json!({"id": id, "head": 2}));
    assert!(head.text.contains("\nline 1\nline 2\n") && !head.text.contains("line 3\n"), "{head:?}");
    let tail = client.tool("read", json!({"id": id, "tail": 2}));
    assert!(tail.text.contains("\nline 3000\nERR red\n") && !tail.text.contains("line 2999"), "{tail:?}");
    let raw = client.tool("read", json!({"id": id, "tail": 1, "raw": true}));
    assert!(raw.text.contains("\u{1b}[31mERR\u{1b}[0m red\n"), "{raw:?}");
    let page = client.tool("read", json!({"id": id, "offset": 7, "bytes": 7}));
    assert!(page.text.contains("\nline 2\n") && page.text.contains(&format!("shown: offset 7 to 14 of {total}\n")));
    let grep = client.tool("read", json!({"id": id, "grep": "^ERR|line 299[89]$"}));
    assert!(grep.text.contains("3 lines match") && grep.text.contains("\nline 2998\nline 2999\nERR red\n"), "{grep:?}");
    let many = client.tool("read", json!({"id": id, "grep": "line"}));
    assert!(many.text.contains("3000 lines match") && many.text.contains("the last of them are shown"), "{many:?}");
    assert!(many.text.len() < 9 * 1024);
    let none = client.tool("read", json!({"id": id, "grep": "nowhere"}));
    assert!(none.text.contains("0 lines match") && none.text.contains("(no new output)"), "{none:?}");
    let more = client.tool("read", json!({"id": id, "bytes": 20_000}));
    assert!(more.text.contains("\nline 3000\n") && more.text.len() > 19_000, "{} bytes", more.text.len());
    refused(&client.tool("read", json!({"id": id, "grep": "("})), &["`grep`"]);
}

/// Covers: A1, C5
#[test]
fn a1_what_a_reply_cuts_is_not_out_of_reach() {
    let world = world();
    let mut client = server(&world, Era::Legacy, &[]);
    let fits = client.tool("run", json!({"command": "head -c 7168 /dev/zero | tr '\\0' x"}));
    assert!(world.list().is_empty() && fits.command().null("/output/log"), "{fits:?}");
    let cut = client.tool("run", json!({"command": "echo first; seq 20000; echo last"}));
    assert!(cut.text.len() < 8 * 1024, "{} bytes", cut.text.len());
    assert!(cut.first_line().contains("not all shown: `read` w1 shows more"), "{cut:?}");
    assert!(cut.text.contains("\nfirst\n1\n") && cut.text.contains("\n20000\nlast\n"), "{cut:?}");
    assert!(cut.text.contains("bytes missing here"), "{cut:?}");
    let rest = client.tool("read", json!({"id": "w1", "grep": "^10000$"}));
    assert!(rest.text.contains("1 lines match"), "{rest:?}");
    // It ended in the foreground and was told by its reply: it is no news for anybody.
    assert!(rest.news().is_empty());
    assert!(world.acked("model").is_empty());
}

#[test]
fn input_and_signals_reach_a_command() {
    let world = world();
    let mut client = server(&world, Era::Modern, &[]);
    let line = "while read -r line; do echo \"<$line>\"; done; echo closed";
    let id = client.tool("run", json!({"command": line, "background": true, "stdin": true})).command();
    let id = id.str("/id").to_owned();
    let sent = client.tool("send", json!({"id": id, "text": "hello"}));
    assert_eq!(sent.first_line(), "w1: 6 bytes delivered");
    client.tool("wait", json!({"id": id, "until": "output:<hello>", "timeout": "30s"}));
    client.tool("send", json!({"id": id, "text": "bye\n", "eof": true}));
    let ended = client.tool("wait", json!({"id": id}));
    assert_eq!(ended.command().ends("exited", 0).output(), "<hello>\n<bye>\nclosed\n");
    let trapping = client.background("trap 'echo got HUP; exit 4' HUP; echo set; while :; do sleep 0.1; done");
    client.tool("wait", json!({"id": trapping, "until": "output:set", "timeout": "30s"}));
    assert_eq!(client.tool("send", json!({"id": trapping, "signal": "HUP"})).first_line(), "w2: HUP sent");
    let ended = client.tool("wait", json!({"id": trapping}));
    // The shell may say itself that the signal ended its `sleep`.
    assert!(ended.command().ends("exited", 4).output().ends_with("got HUP\n"), "{ended:?}");
    refused(&client.tool("send", json!({"id": id, "text": "x"})), &["not delivered"]);
    let deaf = client.background("sleep 300");
    refused(&client.tool("send", json!({"id": deaf, "text": "x"})), &["stdin"]);
}

#[test]
fn a_quiet_command_is_told_once_and_goes_on() {
    let world = world();
    let mut client = server(&world, Era::Modern, &[]);
    let quiet = json!({"command": "sleep 300", "background": true, "quiet_after": "200ms"});
    client.tool("run", quiet);
    world.wait_until("it is told that it is quiet", || {
        let news = client.tool("list", json!({}));
        news.news().iter().any(|line| line.contains("w1 is still running after") && line.contains("not an error"))
    });
    assert!(client.tool("list", json!({})).news().is_empty(), "it was told twice");
}

/// Covers: O8
#[test]
fn o8_lines_that_match_are_news_once() {
    let world = world();
    let mut client = server(&world, Era::Modern, &[]);
    world.bg(&["--consumer", "model", "--notify", "^E", "-c", "echo E; exec sleep 300"]);
    world.wait_until("it is told", || {
        let news = client.tool("list", json!({}));
        news.news().iter().any(|line| line.starts_with("[outlast] w1 is still running and has printed 1 line that"))
    });
    assert!(client.tool("list", json!({})).news().is_empty(), "it was told twice");
}
