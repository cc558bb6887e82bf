//! Tests of the command gate.

use super::*;

fn gate(mode: Mode) -> Gate {
    Gate { mode, allow: ["sh", "python3", "xargs"].map(str::to_owned).to_vec(), preset: true, strict: false }
}

fn argv(line: &str) -> Vec<OsText> {
    ["sh", "-c", line].iter().map(OsText::from).collect()
}

/// Covers: R2
#[test]
fn r2_lines_that_are_allowed() {
    for line in [
        "ls",
        "git status && cargo test 2>&1 | tail -n 5",
        "cd x; make -j8 || echo failed >&2",
        "A=1 B='x y' make",
        "echo 'rm -rf /; eval x' \"a; rm b\"",
        "echo a # rm -rf /",
        "cat <<'EOF' > file\nrm -rf $(evil)\nEOF\nls",
        "cat <<-EOF\n\trm -rf /\n\tEOF\nls",
        "ls \\\n  -l",
        "if test -f x; then cat x; else echo no; fi",
        "for f in a b; do cat $f; done",
        "while true; do sleep 1; done",
        "(cd x && ls)",
        "{ ls; pwd; }",
        "! grep -q x file",
        "echo $(git rev-parse HEAD) `pwd` ${X:-y} $((1 + 2))",
        "diff <(sort a) <(sort b)",
        "'ls' -l; \"pwd\"; l\\s",
        "echo one|python3 -c 'print(1)'",
        "ls 2>/dev/null",
        "sort <file >out",
        "",
    ] {
        assert_eq!(gate(Mode::Enforce).admit(&argv(line)), Ok(None), "{line}");
    }
}

/// Covers: R2
#[test]
fn r2_lines_that_are_refused() {
    for (line, named) in [
        ("rm -rf /", "rm -rf /"),
        ("ls; rm x", "rm x"),
        ("ls\nrm x", "rm x"),
        ("ls && rm x", "rm x"),
        ("ls || rm x", "rm x"),
        ("ls | rm x", "rm x"),
        ("ls & rm x", "rm x"),
        ("(rm x)", "rm x"),
        ("ls\u{2028}rm x", "rm x"),
        ("r\\\nm x", "rm x"),
        ("r''m x", "rm x"),
        ("\"rm\" x", "rm x"),
        ("A=1 rm x", "rm x"),
        ("if true; then rm x; fi", "rm x"),
        ("while rm x; do ls; done", "rm x"),
        ("for f in a; do rm x; done", "rm x"),
        ("echo $(rm x)", "rm x"),
        ("echo \"$(rm x)\"", "rm x"),
        ("echo `rm x`", "rm x"),
        ("echo ${A:-$(rm x)}", "rm x"),
        ("echo $((1 + $(rm x)))", "rm x"),
        ("diff <(rm x) b", "rm x"),
        ("ls > $(rm x)", "rm x"),
        ("cat <<EOF\n$(rm x)\nEOF", "rm x"),
        ("cat <<EOF; rm x\nEOF", "rm x"),
        ("2>/dev/null rm x", "rm x"),
        ("/tmp/ls", "/tmp/ls"),
        ("eval ls", "eval"),
        (". ./x", "runs text"),
        ("$X y", "known only"),
        ("$(echo ls)", "known only"),
        ("`echo ls` -l", "known only"),
        ("PATH=/tmp ls", "PATH"),
        ("LD_PRELOAD=x ls", "LD_PRELOAD"),
        ("ls() { pwd; }", "function"),
        ("case x in y) ls;; esac", "does not understand"),
        ("$'rm' x", "does not understand"),
        ("echo 'x", "does not end"),
    ] {
        let refusal = gate(Mode::Enforce).admit(&argv(line)).expect_err(line);
        assert!(refusal.contains(named), "{line}: {refusal}");
        assert!(refusal.contains("nothing ran") && refusal.contains("trying it again"), "{refusal}");
        let warning = gate(Mode::Warn).admit(&argv(line)).expect("it only warns").expect("a warning");
        assert!(warning.contains(named), "{line}: {warning}");
        assert_eq!(gate(Mode::Off).admit(&argv(line)), Ok(None), "{line}");
    }
}

/// Covers: R2
#[test]
fn r2_strict_refuses_pipes_into_bare_interpreters() {
    let strict = Gate { strict: true, ..gate(Mode::Enforce) };
    for line in ["cat x | sh", "cat x | python3 -", "cat x |& sh -s", "true | perl"] {
        assert!(strict.admit(&argv(line)).is_err(), "{line}");
        assert!(gate(Mode::Enforce).admit(&argv(line)).is_ok(), "{line}");
    }
    for line in ["cat x | python3 script.py", "sh script", "cat x | python3 -c 'print(1)'", "true || perl"] {
        assert!(strict.admit(&argv(line)).is_ok(), "{line}");
    }
}

/// Covers: R2
#[test]
fn r2_a_command_without_a_shell_is_one_segment() {
    let words = |line: &[&str]| line.iter().map(OsText::from).collect::<Vec<_>>();
    assert_eq!(gate(Mode::Enforce).admit(&words(&["echo", "a; rm b"])), Ok(None));
    assert!(gate(Mode::Enforce).admit(&words(&["rm", "x"])).is_err());
    assert!(gate(Mode::Enforce).admit(&words(&["sh", "script"])).is_ok(), "sh is in the list");
    let names: Vec<&str> = PRESET.split(' ').collect();
    assert!(names.is_sorted() && names.len() > 190 && !names.contains(&"rm") && !names.contains(&""));
}
