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
    fs::create_dir_all(me(world)).expect("a folder");
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
            let said = call(&["--undo"]);
            assert!(
                !said.is_empty() && said.lines().all(|line| line.ends_with(": nothing to change")),
                "{host}: {said}"
            );
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
    assert_eq!(claude.str("/hooks/PostToolUseFailure/0/hooks/0/command"), "outlast hook claude");
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
    let hooked = changed.replacen("10000", "20000", 1);
    fs::write(&settings, &hooked).expect("a file");
    let said = setup(&world, &["gemini"]).ok().text();
    assert!(said.contains("hooks.SessionStart holds something else"), "{said}");
    assert_eq!(read(&settings), hooked);
    fs::write(&settings, &changed).expect("a file");
    let said = setup(&world, &["gemini", "--undo"]).exits(4).text();
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
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {},\n\"mcpServers\": {}}", "line 2: \"mcpServers\""),
        ("cursor", ".cursor/mcp.json", "{\"mcpServers\": {\"outlast\": 1,\n\"outlast\": 2}}", "line 2: \"outlast\""),
        (
            "gemini",
            ".gemini/settings.json",
            "{\"hooks\": {\"AfterTool\": [], \"AfterTool\": []}}",
            "line 1: \"AfterTool\"",
        ),
        ("codex", ".codex/config.toml", "a = 1\r\nb = 2\n", "make them alike"),
        ("codex", ".codex/config.toml", "a = 1\nb = = 2\n", "line 2"),
        ("codex", ".codex/config.toml", "hooks = { Stop = [] }\n", "`hooks.Stop`"),
        // What hooks and lines would speak of is another program.
        (
            "claude",
            ".claude.json",
            "{\"mcpServers\": {\"outlast\": {\"url\": \"http://x/mcp\"}}}",
            "`mcpServers.outlast`",
        ),
        ("codex", ".codex/config.toml", "[mcp_servers.outlast]\ncommand = \"mine\"\n", "`mcp_servers.outlast`"),
        (
            "opencode",
            ".config/opencode/opencode.json",
            "{\"mcp\": {\"outlast\": {\"command\": [\"mine\"]}}}",
            "`mcp.outlast`",
        ),
        ("opencode", ".config/opencode/plugin/outlast.js", "// mine", "somebody else"),
        ("gemini", ".gemini/GEMINI.md", "x\n<!-- outlast setup for gemini: begin -->\ny\n", "line 2"),
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
    let err = setup(&world, &["gemini"]).exits(4).err();
    assert!(err.contains(".gemini/settings.json is a link to nothing"), "{err}");
    assert!(err.contains("\"mcpServers\""), "what would stand in it is shown: {err}");
    fs::write(&real, b"{\n\xff}").expect("a file");
    let err = setup(&world, &["gemini"]).exits(4).err();
    assert!(err.contains("settings.json, line 2: it is no UTF-8") && err.contains("\"mcpServers\""), "{err}");
}

#[test]
fn an_undo_that_is_not_done_says_so_and_what_to_do() {
    let world = bare();
    let path = me(&world).join(".cursor/mcp.json");
    write(&path, "{\n  \"a\"\n}");
    let err = setup(&world, &["cursor", "--undo"]).exits(4).err();
    assert!(err.contains("nothing was changed") && err.contains("line 3") && err.contains("do this again"), "{err}");
    assert!(!err.contains("\"outlast\""), "nothing is to be written: {err}");
    fs::write(&path, "{\"mcpServers\": {\"outlast\": {\"command\": \"mine\"}}}").expect("a file");
    let out = setup(&world, &["cursor", "--undo"]).exits(4);
    let err = out.err();
    assert!(err.contains("mcpServers.outlast in ") && err.contains(".cursor/mcp.json; "), "{err}");
    assert!(err.contains("take it out by hand") && out.text().contains("it is left as it is"), "{err}");
    assert_eq!(json(&path).str("/mcpServers/outlast/command"), "mine");
}

#[test]
fn the_settings_are_what_the_last_call_says() {
    let world = bare();
    let file = me(&world).join(".claude/settings.json");
    for (host, hooks) in [("claude", &file), ("codex", &me(&world).join(".codex/config.toml"))] {
        setup(&world, &[host]).ok();
        let plain = read(hooks);
        setup(&world, &[host, "--redirect"]).ok();
        assert!(read(hooks).contains("--redirect"));
        let said = setup(&world, &[host]).ok().text();
        assert!(said.contains(": removed hooks.PreToolUse"), "{said}");
        assert_eq!(read(hooks), plain, "{host}");
        setup(&world, &[host, "--redirect"]).ok();
        setup(&world, &[host, "--no-hooks"]).ok();
        assert!(!hooks.exists() || !read(hooks).contains("hook"), "{host}");
        setup(&world, &[host, "--redirect"]).ok();
        setup(&world, &[host, "--undo"]).ok();
        assert!(
            all(&world).is_empty(),
            "{host}: what setup itself has written is no text of before: {:?}",
            all(&world)
        );
    }
    let plugins = me(&world).join(".config/opencode/plugin");
    setup(&world, &["opencode", "--redirect"]).ok();
    let said = setup(&world, &["opencode"]).ok().text();
    assert!(said.contains("outlast-redirect.js: removed the plugin"), "{said}");
    assert!(plugins.join("outlast.js").exists() && !plugins.join("outlast-redirect.js").exists());
}

#[test]
fn carriage_returns_and_a_byte_order_mark_stay() {
    let world = bare();
    let config = "\u{feff}# mine\r\nmodel = \"o\"\r\n\r\n[mcp_servers.other]\r\ncommand = \"x\"\r\n";
    let settings = "\u{feff}{\r\n  \"ui\": {}\r\n}\r\n";
    let files = [
        ("codex", me(&world).join(".codex/config.toml"), config),
        ("codex", me(&world).join(".codex/AGENTS.md"), "\u{feff}# Mine\r\n"),
        ("gemini", me(&world).join(".gemini/settings.json"), settings),
    ];
    files.iter().for_each(|(_, path, text)| write(path, text));
    let before = all(&world);
    let is_kept = |text: &str| text.starts_with('\u{feff}') && !text.replace("\r\n", "").contains('\n');
    for edited in [false, true] {
        for host in ["codex", "gemini"] {
            setup(&world, &[host]).ok();
            assert!(setup(&world, &[host]).ok().text().lines().all(|line| line.ends_with(": nothing to change")));
        }
        for (_, path, text) in &files {
            let new = read(path);
            assert!(is_kept(&new) && new.contains("outlast"), "{new:?}");
            if edited {
                let mine = if text.contains("ui") { ("\"ui\"", "\"mine\"") } else { ("ine", "ine, too") };
                fs::write(path, new.replacen(mine.0, mine.1, 1)).expect("a file");
            }
        }
        for host in ["codex", "gemini"] {
            setup(&world, &[host, "--undo"]).ok();
        }
        if !edited {
            assert_eq!(all(&world), before);
        }
    }
    for (_, path, text) in &files {
        let mine =
            if text.contains("ui") { text.replace("\"ui\"", "\"mine\"") } else { text.replace("ine", "ine, too") };
        assert_eq!(read(path), mine, "what a person wrote meanwhile");
    }
}

#[test]
fn lines_that_a_person_has_edited_are_left() {
    let world = bare();
    let path = me(&world).join(".codex/AGENTS.md");
    write(&path, "# Mine\n");
    setup(&world, &["codex"]).ok();
    let edited = read(&path).replace("Do\nnot use", "Never, ever,\nuse");
    fs::write(&path, &edited).expect("a file");
    let said = setup(&world, &["codex"]).ok().text();
    assert!(said.contains("AGENTS.md: the block of lines for the model holds something else"), "{said}");
    assert_eq!(read(&path), edited);
    let err = setup(&world, &["codex", "--undo"]).exits(4).err();
    assert!(err.contains("the block of lines for the model in ") && err.contains("AGENTS.md"), "{err}");
    assert_eq!(read(&path), edited);
}

#[test]
fn hosts_of_one_project_share_their_lines() {
    let world = bare();
    let path = world.file("project/AGENTS.md");
    for before in [None, Some("# Ours\n")] {
        if let Some(text) = before {
            write(&path, text);
        }
        setup(&world, &["codex", "--project"]).ok();
        let alone = read(&path);
        let said = setup(&world, &["opencode", "--project"]).ok().text();
        assert!(said.contains("AGENTS.md: added opencode to "), "{said}");
        assert_eq!(read(&path).matches("Run builds").count(), 1);
        let said = setup(&world, &["opencode", "--project", "--undo"]).ok().text();
        assert!(said.contains("they stay for codex"), "{said}");
        assert_eq!(read(&path), alone);
        setup(&world, &["opencode", "--project"]).ok();
        setup(&world, &["codex", "--project", "--undo"]).ok();
        assert!(read(&path).contains("setup for opencode: begin") && read(&path).contains("Run builds"));
        setup(&world, &["opencode", "--project", "--undo"]).ok();
        assert_eq!(fs::read_to_string(&path).ok().as_deref(), before);
        assert!(!world.file("project/AGENTS.md.before-outlast").exists());
    }
}

#[test]
fn claude_reads_its_own_file_of_a_project_where_there_is_one() {
    let world = bare();
    let (own, shared) = (world.file("project/CLAUDE.md"), world.file("project/AGENTS.md"));
    setup(&world, &["claude", "--project"]).ok();
    assert!(read(&shared).contains("setup for claude: begin"));
    write(&own, "# Ours\n");
    setup(&world, &["claude", "--project"]).ok();
    assert!(read(&own).contains("setup for claude: begin") && !shared.exists(), "the lines have moved");
    setup(&world, &["claude", "--project", "--undo"]).ok();
    assert_eq!(read(&own), "# Ours\n");
    fs::remove_file(&own).expect("our file");
    symlink("nothing", &own).expect("a link");
    setup(&world, &["claude", "--project"]).ok();
    assert!(read(&shared).contains("setup for claude: begin"), "a link to nothing is not in the way");
    fs::remove_file(&own).expect("our link");
    write(&shared, "# Ours\n");
    symlink(&shared, &own).expect("a link");
    setup(&world, &["claude", "--project"]).ok();
    assert_eq!(read(&shared).matches("setup for claude: begin").count(), 1);
    setup(&world, &["claude", "--project", "--undo"]).ok();
    assert_eq!(read(&shared), "# Ours\n");
}

#[test]
fn where_one_file_cannot_be_written_none_is() {
    let world = bare();
    write(&me(&world).join(".claude.json"), "{}");
    // Nobody can make a file there, not even root.
    symlink("/proc", me(&world).join(".claude")).expect("a link");
    let err = setup(&world, &["claude"]).exits(70).err();
    assert!(err.contains("nothing was changed; cannot ") && err.contains(".claude/"), "{err}");
    assert_eq!(read(&me(&world).join(".claude.json")), "{}");
    assert!(!me(&world).join(".claude.json.before-outlast").exists(), "a copy of what was not changed");
    let left = fs::read_dir(me(&world)).expect("our folder").count();
    assert_eq!(left, 2, "nothing that was half written stays");
}

/// The fenced block below a line of the README that begins with `title`.
fn readme(title: &str) -> String {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../README.md");
    let text = read(&path);
    let at = text.find(title).unwrap_or_else(|| panic!("{title} is not in the README"));
    let block = text[at..].split("```").nth(1).expect("a block");
    block.split_once('\n').expect("a line with the language").1.to_owned()
}

#[test]
fn what_the_readme_says_is_what_setup_writes() {
    let world = bare();
    for (host, title, file) in [
        ("codex", "**Codex**", ".codex/config.toml"),
        ("opencode", "**opencode**", ".config/opencode/opencode.json"),
        ("gemini", "**Gemini CLI**", ".gemini/settings.json"),
        ("qwen", "**Qwen Code**", ".qwen/settings.json"),
        ("pi", "**pi**", ".pi/agent/mcp.json"),
        ("cursor", "**Cursor**", ".cursor/mcp.json"),
    ] {
        write(&me(&world).join(file), &readme(title));
        let out = setup(&world, &[host]).ok();
        assert!(!out.text().contains("something else"), "{host}: {}", out.text());
        assert!(!out.text().contains(": added mcp"), "{host}: {}", out.text());
    }
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
    let said = setup(&world, &["claude", "--plugin", "plug"]).ok().text();
    assert!(said.contains("hooks.json: written") && !json(&dir.join("hooks/hooks.json")).has("/hooks/PreToolUse"));
    write(&dir.join("README.md"), "mine");
    let said = setup(&world, &["claude", "--plugin", "plug"]).ok().text();
    assert!(said.contains("README.md holds something else"), "{said}");
    let err = setup(&world, &["claude", "--plugin", "plug", "--undo"]).exits(4).err();
    assert!(err.contains("plug/README.md"), "{err}");
    assert_eq!(tree(&dir), [dir.clone(), dir.join("README.md")]);
    assert_eq!(read(&dir.join("README.md")), "mine");
    setup(&world, &["claude", "--plugin", "plug"]).exits(4);
    fs::remove_file(dir.join("README.md")).expect("our file");
    setup(&world, &["claude", "--plugin", "plug"]).ok();
    let manifest_text = read(&dir.join(".claude-plugin/plugin.json"));
    setup(&world, &["claude", "--plugin", "plug", "--undo"]).ok();
    assert!(!dir.exists());
    setup(&world, &["claude", "--plugin", "plug", "--undo"]).ok();
    write(&world.file("project/other/file"), "x");
    setup(&world, &["claude", "--plugin", "other"]).exits(4);
    let (manifest, page) =
        (world.file("project/mine/.claude-plugin/plugin.json"), world.file("project/mine/README.md"));
    write(&manifest, "{\"name\": \"mine\"}");
    write(&page, "mine");
    for more in [&[][..], &["--undo"]] {
        let err = setup(&world, &[&["claude", "--plugin", "mine"], more].concat()).exits(4).err();
        assert!(err.contains("plugin.json is of another plugin"), "{err}");
    }
    assert_eq!((read(&manifest).as_str(), read(&page).as_str()), ("{\"name\": \"mine\"}", "mine"));
    let older = manifest_text.replace(env!("CARGO_PKG_VERSION"), "0.0.1");
    let kept = world.file("project/kept/.claude-plugin/plugin.json");
    write(&kept, &older);
    let err = setup(&world, &["claude", "--plugin", "kept", "--undo"]).exits(4).err();
    assert!(err.contains("0.0.1"), "{err}");
    let said = setup(&world, &["claude", "--plugin", "kept"]).ok().text();
    assert!(said.contains("plugin.json: written over that of version 0.0.1"), "{said}");
    setup(&world, &["codex", "--plugin", "plug"]).exits(2);
    setup(&world, &["pi", "--redirect"]).exits(2);
    assert!(all(&world).is_empty(), "a plugin is no setting");
}
