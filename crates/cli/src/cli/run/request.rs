//! Makes a request of the arguments and the surroundings.

use std::ffi::{OsStr, OsString};
use std::os::unix::ffi::{OsStrExt, OsStringExt};
use std::path::{Path, PathBuf};
use std::time::Duration;

use outlast::RunRequest;
use outlast_core::origin::Origin;
use outlast_core::request::{Limits, LogCap, Stdin};

use super::{RunArgs, terminal, usage};
use crate::cli::context::Context;
use crate::cli::wait::reason_of;
use crate::config::Bounds;
use crate::environment;
use crate::exit::Failure;

/// The grace of a run that asks for none and has no person in front of it.
const GRACE: Duration = Duration::from_secs(10);

/// What to run and how.
pub fn build(args: &RunArgs, context: &Context) -> Result<RunRequest, Failure> {
    let config = &context.config;
    let argv = argv(args)?;
    if args.cwd.as_ref().is_some_and(|dir| dir.is_empty()) {
        return Err(usage("--cwd is empty"));
    }
    let cwd = args.cwd.as_ref().map_or_else(|| config.cwd.clone(), |dir| config.cwd.join(dir));
    let entries = entries(&args.env)?;
    let asked = entries.iter().map(|(name, _)| name.clone()).collect();
    let env = environment::of_command(config.environment(), !config.terminal, entries);
    let env = if args.pty { environment::for_terminal(env) } else { env };
    let mut request = RunRequest::new(argv, cwd, env);
    request.asked = asked;
    request.stdin = match (args.pty, args.stdin) {
        (true, _) => {
            let here = terminal::size().filter(|_| !args.background);
            Stdin::Terminal(here.unwrap_or_default())
        }
        (false, true) => Stdin::Open,
        (false, false) => Stdin::Null,
    };
    request.notify = notify(&args.notify)?;
    request.track_changes = args.track_changes.as_ref().map(|dir| plain(&config.cwd.join(dir)));
    request.streams = args.streams.into();
    request.grace = args.grace.or(config.bounds.grace).or((!config.terminal).then_some(GRACE));
    request.limits = limits(args, &config.bounds);
    request.rights.clone_from(&args.right);
    request.lifetime = args.lifetime;
    request.survivors = args.survivors.into();
    request.cap = cap(args.max_log.or(config.bounds.max_log))?;
    request.label.clone_from(&args.label);
    request.consumer = context.consumer(args.consumer.as_deref())?;
    // A person in front of it is known; whoever else may have asked for it is not.
    request.provenance = if config.terminal { Origin::User } else { Origin::Event }.into();
    request.delivery = args.delivery.into();
    request.follow = !args.json && !args.background;
    request.join = args.join && !args.unique;
    Ok(request)
}

/// The path without the components that say nothing (`.`), as people write it.
fn plain(path: &Path) -> PathBuf {
    path.components().collect()
}

fn notify(expressions: &[String]) -> Result<Vec<String>, Failure> {
    for expression in expressions {
        if let Err(error) = regex::bytes::Regex::new(expression) {
            return Err(usage(format!("--notify {expression:?}: {}", reason_of(&error))));
        }
    }
    Ok(expressions.to_vec())
}

fn argv(args: &RunArgs) -> Result<Vec<OsString>, Failure> {
    let blank = |text: &OsStr| text.as_bytes().iter().all(u8::is_ascii_whitespace);
    match (&args.line, args.argv.first()) {
        (Some(line), _) if blank(line) => Err(usage("the line behind -c is empty")),
        (Some(line), _) => Ok(vec!["sh".into(), "-c".into(), line.clone()]),
        (None, Some(program)) if blank(program) => Err(usage("the program to run is empty")),
        (None, Some(_)) => Ok(args.argv.clone()),
        (None, None) => Err(usage("there is nothing to run: give a PROGRAM, or a line with -c")),
    }
}

fn entries(given: &[OsString]) -> Result<Vec<(OsString, OsString)>, Failure> {
    let entries = given.iter().map(|entry| {
        let bytes = entry.as_bytes();
        match bytes.iter().position(|byte| *byte == b'=') {
            Some(at) if at > 0 => {
                let part = |range: &[u8]| OsString::from_vec(range.to_vec());
                Ok((part(&bytes[..at]), part(&bytes[at + 1..])))
            }
            _ => Err(usage(format!("--env {} is not KEY=VALUE", entry.to_string_lossy()))),
        }
    });
    entries.collect()
}

fn cap(size: Option<u64>) -> Result<LogCap, Failure> {
    match size {
        None => Ok(LogCap::default()),
        Some(size) if size < LogCap::SMALLEST => Err(usage("--max-log: the smallest cap of a log is 1KiB")),
        Some(size) => Ok(LogCap::of(size)),
    }
}

fn limits(args: &RunArgs, bounds: &Bounds) -> Limits {
    // A bound of 0 is none: nothing could keep it.
    let above_0 = |time: Option<Duration>| time.filter(|time| !time.is_zero());
    Limits {
        wall_ms: bounds.wall(above_0(args.limit)).map(millis),
        idle_ms: above_0(args.idle_limit).map(millis),
        memory: args.memory.filter(|bytes| *bytes > 0),
        pids: args.pids,
        ..Limits::default()
    }
}

fn millis(time: Duration) -> u64 {
    u64::try_from(time.as_millis()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_are_read() {
        let read = |text: &str| entries(&[text.into()]).map(|all| all[0].clone());
        assert_eq!(read("A=B=C").expect("an entry"), ("A".into(), "B=C".into()));
        assert_eq!(read("A=").expect("an entry"), ("A".into(), "".into()));
        for wrong in ["A", "=B", ""] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
