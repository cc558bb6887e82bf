//! `outlast setup`: what it writes into settings of others, and what it leaves alone.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use crate::support::*;

fn bare() -> World {
    World::bare(BINARY, "state")
}

fn write(path: &Path, text: &str) {
    fs::create_dir_all(path.parent().expect("it is in a folder")).expect("a folder");
    fs::write(path, text).expect("a file");
}

fn read(path: &Path) -> String {
    fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

fn json(path: &Path) -> Json {
    Json::parse(&read(path))
}

/// A home directory with settings in it.
fn me(world: &World) -> PathBuf {
    world.file("me")
}

/// A call of `setup` by its owner, in a project.
#[track_caller]
fn setup(world: &World, words: &[&str]) -> Output {
    fs::create_dir_all(world.file("project")).expect("a folder");
    let words = [&["setup"], words].concat();
    world.call(&words).env("HOME", me(world)).cwd(world.file("project")).run()
}

/// Everything below the home directory, with its text.
fn all(world: &World) -> Vec<(PathBuf, String)> {
    let files = tree(&me(world)).into_iter().filter(|path| path.is_file());
    files.map(|path| (path.clone(), read(&path))).collect()
}

const HOSTS: [&str; 7] = ["claude", "codex", "opencode", "gemini", "qwen", "cursor", "pi"];

#[test]
fn every_host_gets_its_entry_once_and_loses_it_again() {
    for host in HOSTS {
        for level in [&[][..], &["--project"]] {
            let world = bare();
            let call = |more: &[&str]| setup(&world, &[&[host], level, more].concat()).ok().text();
            let shown = call(&["--print"]);
            assert!(shown.contains("outlast") && shown.contains("mcp"), "{host}: {shown}");
            assert!(all(&world).is_empty(), "{host}: --print writes nothing");
            let said = call(&[]);
            assert!(said.contains(": added "), "{host}: {said}");
            let (first, project) = (all(&world), tree(&world.file("project")));
            assert_eq!(first.is_empty(), !level.is_empty(), "{host}: {first:?}");
            assert!(call(&[]).lines().all(|line| line.ends_with(": nothing to change")), "{host}");
            assert_eq!(
                (all(&world), tree(&world.file("project"))),
                (first, project),
                "{host}: a second run changed something"
            );
            call(&["--undo"]);
            let left: Vec<_> = tree(&world.file("project")).into_iter().filter(|path| path.is_file()).collect();
            assert!(all(&world).is_empty() && left.is_empty(), "{host}: {:?} {left:?}", all(&world));
            assert!(call(&["--undo"]).lines().all(|line| line.ends_with(": nothing to change")), "{host}");
        }
    }
}

#[test]
fn settings_of_others_stay_and_come_back_to_the_byte() {
    let world = bare();
    let settings = "{\n    \"model\": \"opus\",   \"hooks\": {\"Stop\": [{\"hooks\": [{\"type\": \"command\", \"command\": \
                    \"bell\"}]}]},\n    \"cost\": 0.10000000000000001\n}";
    let servers = "{\"numStartups\":5,\"mcpServers\":{\"other\":{\"command\":\"x\"}}}";
    let config = "# mine\nmodel = \"o\" # best\n\n[mcp_servers.other]\ncommand = \"x\"\n\n[[hooks.Stop]]\n[[hooks.Stop.hooks]]\n\
                  type = \"command\"\ncommand = \"bell\"\n";
    let commented = "// mine\n{\n\t\"theme\": \"dark\", // of course\n\t/* none */ \"mcp\": {},\n}\n";
    let files = [
        (me(&world).join(".claude/settings.json"), settings),
        (me(&world).join(".claude.json"), servers),
        (me(&world).join(".claude/CLAUDE.md"), "# Mine\nno newline"),
        (me(&world).join(".codex/config.toml"), config),
        (me(&world).join(".config/opencode/opencode.jsonc"), commented),
    ];
    for (path, text) in &files {
        write(path, text);
    }
    let before = all(&world);
    for host in ["claude", "codex", "opencode"] {
        setup(&world, &[host, "--redirect"]).ok();
    }
    let claude = json(&files[0].0);
    assert_eq!(claude.str("/hooks/Stop/0/hooks/0/command"), "bell");
    assert_eq!(claude.str("/hooks/Stop/1/hooks/0/command"), "outlast hook claude");
    assert_eq!(claude.str("/hooks/PreToolUse/0/matcher"), "Bash");
    assert_eq!(claude.str("/hooks/PreToolUse/0/hooks/0/command"), "outlast hook claude --redirect");
    assert!(read(&files[0].0).contains("\"cost\": 0.10000000000000001"), "a number of others was written anew");
    assert_eq!(json(&files[1].0).items("/mcpServers/outlast/args").len(), 1);
    let codex = read(&files[3].0);
    assert!(codex.starts_with("# mine\nmodel = \"o\" # best\n"), "{codex}");
    assert!(codex.contains("[mcp_servers.outlast]") && codex.contains("[[hooks.PostToolUse]]"), "{codex}");
    assert!(read(&files[4].0).contains("// of course") && read(&files[4].0).contains("/* none */"));
    for (path, text) in &files {
        let copy = PathBuf::from(format!("{}.before-outlast", path.display()));
        assert_eq!(read(&copy), *text, "the first copy");
    }
    for host in ["claude", "codex", "opencode"] {
        setup(&world, &[host, "--undo"]).ok();
    }
    assert_eq!(all(&world), before);
}

#[test]
fn what_a_person_changed_since_stays() {
    let world = bare();
    let settings = me(&world).join(".gemini/settings.json");
    write(&settings, "{\"ui\": {}}");
    setup(&world, &["gemini"]).ok();
    let changed = read(&settings)
        .replace("\"timeout\": 600000", "\"timeout\": 5, \"trust\": true")
        .replace("\"ui\": {}", "\"ui\": {\"theme\": \"x\"}");
    fs::write(&settings, &changed).expect("a file");
    let said = setup(&world, &["gemini"]).ok().text();
    assert!(said.contains("mcpServers.outlast holds something else"), "{said}");
    assert_eq!(read(&settings), changed);
    let said = setup(&world, &["gemini", "--undo"]).ok().text();
    assert!(said.contains("mcpServers.outlast holds something else"), "{said}");
    let left = json(&settings);
    assert_eq!(left.int("/mcpServers/outlast/timeout"), 5);
    assert!(!left.has("/hooks"), "{left:?}");
    assert_eq!(left.str("/ui/theme"), "x");
}

#[test]
fn what_is_not_understood_is_left_alone_and_named() {
    let world = bare();
    for (host, file, text, place) in [
        ("gemini", ".gemini/settings.json", "{\n  \"a\": 1\n  \"b\": 2\n}", "line 2"),
        ("gemini", ".gemini/settings.json", "[1]", "no JSON object"),
        ("gemini", ".gemini/settings.json", "{\"hooks\": {\"AfterTool\": 7}}", "`hooks.AfterTool` is no list"),
        ("claude", ".claude/settings.json", "{\"hooks\": []}", "`hooks` is no object"),
        ("codex", ".codex/config.toml", "a = 1\nb = = 2\n", "line 2"),
        ("codex", ".codex/config.toml", "hooks = { Stop = [] }\n", "`hooks.Stop`"),
        ("opencode", ".config/opencode/plugin/outlast.js", "// mine", "somebody else"),
        ("gemini", ".gemini/GEMINI.md", "x\n<!-- outlast setup: begin -->\ny\n", "line 2"),
    ] {
        let path = me(&world).join(file);
        write(&path, text);
        let out = setup(&world, &[host]);
        let err = out.exits(4).err();
        assert!(err.contains(file) && err.contains(place), "{file}: {err}");
        assert!(err.matches("outlast").count() > 1, "what would stand in it is shown: {err}");
        assert_eq!(all(&world), [(path.clone(), text.to_owned())], "nothing else was written either");
        fs::remove_file(&path).expect("our file");
    }
}

#[test]
fn a_link_is_followed_and_mode_and_owner_stay() {
    let world = bare();
    let real = world.file("dotfiles/settings.json");
    write(&real, "{}\n");
    fs::set_permissions(&real, fs::Permissions::from_mode(0o640)).expect("our file");
    let link = me(&world).join(".gemini/settings.json");
    fs::create_dir_all(link.parent().expect("a folder")).expect("a folder");
    symlink(&real, &link).expect("a link");
    setup(&world, &["gemini"]).ok();
    assert!(link.is_symlink(), "the link was replaced");
    assert!(json(&real).has("/mcpServers/outlast"));
    assert_eq!(fs::metadata(&real).expect("it is there").mode() & 0o7777, 0o640);
    let copy = world.file("dotfiles/settings.json.before-outlast");
    assert_eq!(fs::metadata(&copy).expect("a copy").mode() & 0o7777, 0o640);
    setup(&world, &["gemini", "--undo"]).ok();
    assert_eq!((read(&real).as_str(), link.is_symlink(), copy.exists()), ("{}\n", true, false));
    fs::remove_file(&real).expect("our file");
    let err = setup(&world, &["gemini"]).exits(70).err();
    assert!(err.contains(".gemini/settings.json"), "a link to nothing: {err}");
}

#[test]
fn the_plugin_folder_is_written_and_written_again() {
    let world = bare();
    setup(&world, &["claude", "--plugin", "plug"]).ok();
    let dir = world.file("project/plug");
    assert_eq!(json(&dir.join(".claude-plugin/plugin.json")).str("/name"), "outlast");
    assert_eq!(json(&dir.join(".mcp.json")).str("/mcpServers/outlast/command"), "outlast");
    let hooks = json(&dir.join("hooks/hooks.json"));
    assert_eq!(hooks.str("/hooks/UserPromptSubmit/0/hooks/0/command"), "outlast hook claude");
    assert!(!hooks.has("/hooks/PreToolUse"), "nobody asked for it");
    assert!(read(&dir.join("skills/background-commands/SKILL.md")).starts_with("---\nname: background-commands\n"));
    let said = setup(&world, &["claude", "--plugin", "plug"]).ok().text();
    assert!(said.lines().all(|line| line.ends_with(": nothing to change")), "{said}");
    setup(&world, &["claude", "--plugin", "plug", "--redirect"]).ok();
    assert!(json(&dir.join("hooks/hooks.json")).has("/hooks/PreToolUse"));
    write(&world.file("project/other/file"), "x");
    setup(&world, &["claude", "--plugin", "other"]).exits(4);
    setup(&world, &["codex", "--plugin", "plug"]).exits(2);
    setup(&world, &["pi", "--redirect"]).exits(2);
    assert!(all(&world).is_empty(), "a plugin is no setting");
}
