//! `outlast setup`: puts outlast into the settings of an agent host.

use std::path::PathBuf;

use clap::Args;

use crate::config::Config;
use crate::exit::{self, Answer, Failure};
use crate::output::Printer;
use crate::setup::{self, Done, Host, Parts};

/// Puts the MCP server, hooks and a few lines for the model into the settings of an agent host
#[derive(Args)]
#[command(after_help = "\
What others have written there stays as it is, order and comments included; the first time a copy
of the file is kept beside it (.before-outlast). The same call again changes nothing; one with
other options takes out what these do not ask for. Nothing is approved on your behalf: the host
goes on to ask before it runs a command, as you have told it.

Examples:
  outlast setup claude                 the MCP server and hooks, for you in every project
  outlast setup codex --print          only show what would be written, and where
  outlast setup gemini --undo          take out what setup has put in, and nothing else
  outlast setup claude --plugin DIR    the same as a plugin folder of Claude Code")]
pub struct SetupArgs {
    /// The agent host
    #[arg(value_enum, value_name = "HOST")]
    host: Host,
    /// Write nothing; print what would stand in which file
    #[arg(long)]
    print: bool,
    /// Take out what setup has put in; ends with 4 where something was changed since, and stays
    #[arg(long, conflicts_with_all = ["print", "no_hooks", "redirect"])]
    undo: bool,
    /// The settings of the project in the working directory, in place of yours
    #[arg(long)]
    project: bool,
    /// No hooks: ends stay to be asked for
    #[arg(long, conflicts_with = "redirect")]
    no_hooks: bool,
    /// Also a hook that refuses the built-in shell tool and names `run` in its place
    #[arg(long)]
    redirect: bool,
    /// Write a plugin folder for Claude Code in place of settings
    #[arg(long, value_name = "DIR", conflicts_with_all = ["print", "project"])]
    plugin: Option<PathBuf>,
}

/// Sets a host up, and says what was written.
pub fn setup(args: SetupArgs, config: &Config, printer: Printer) -> Answer {
    let host = args.host;
    if args.redirect && !host.has_hooks() {
        return Err(Failure::Usage(format!("no hooks of {} are known that could refuse its shell", host.word())));
    }
    let parts = Parts { hooks: !args.no_hooks, redirect: args.redirect };
    if let Some(dir) = &args.plugin {
        if host != Host::Claude {
            return Err(Failure::Usage("--plugin is for claude".to_owned()));
        }
        let dir: PathBuf = config.cwd.join(dir).components().collect();
        return if args.undo {
            undone(&setup::unplug(&dir)?, printer)
        } else {
            say(&setup::plugin(&dir, parts)?, printer)
        };
    }
    let place = setup::place(args.project, config)?;
    if args.print {
        printer.print(setup::printed(host, &place, parts)?)?;
        return Ok(exit::DONE);
    }
    if args.undo {
        return undone(&setup::undo(host, &place)?, printer);
    }
    let code = say(&setup::put(host, &place, parts, printer)?, printer)?;
    if let Some(remark) = host.remark(&place, parts) {
        printer.say(remark);
    }
    let path = config.path().unwrap_or_default();
    if !std::env::split_paths(&path).any(|dir| dir.join("outlast").is_file()) {
        printer.say("no `outlast` is in PATH, where the host looks for it; put it there");
    }
    Ok(code)
}

fn say(done: &Done, printer: Printer) -> Answer {
    printer.print(done.lines.iter().map(|line| format!("{line}\n")).collect::<String>())?;
    Ok(exit::DONE)
}

/// Says what was taken out, and fails where something stays.
fn undone(done: &Done, printer: Printer) -> Answer {
    let code = say(done, printer)?;
    if done.left.is_empty() {
        return Ok(code);
    }
    Err(Failure::Refused(format!(
        "not everything was taken out: {}; what is there was changed since, or is of somebody else: take it out by hand",
        done.left.join(", ")
    )))
}
