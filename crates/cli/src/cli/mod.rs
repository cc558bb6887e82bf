//! The command line: its definition, and one file for each verb.

mod context;
mod signals;
mod run;
mod ps;
mod status;
mod logs;
mod wait;
mod stop;
mod send;
mod receipt;
mod inbox;
mod session;
mod trace;
mod stats;
mod gc;
mod doctor;
mod mcp;
mod hook;
mod setup;
mod generate;

use std::process::ExitCode;

use outlast::ForkKeeper;

use clap::{Args, Parser, Subcommand};

use crate::config::Config;
use crate::exit::{self, Answer, Failure};
use crate::output::Printer;
pub use context::Context;

/// Runs shell commands that never block their caller, are never lost and leave nothing behind.
#[derive(Parser)]
#[command(name = "outlast", version, after_help = exit::TABLE, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand)]
enum Verb {
    Run(Box<run::RunArgs>),
    Ps(ps::PsArgs),
    Status(status::StatusArgs),
    Logs(logs::LogsArgs),
    Wait(wait::WaitArgs),
    Stop(stop::StopArgs),
    Send(send::SendArgs),
    Inbox(inbox::InboxArgs),
    Session(session::SessionArgs),
    Trace(trace::TraceArgs),
    Stats(stats::StatsArgs),
    Gc(gc::GcArgs),
    Doctor(doctor::DoctorArgs),
    Completions(generate::CompletionsArgs),
    #[command(hide = true)]
    Man(generate::ManArgs),
    Mcp(mcp::McpArgs),
    Hook(hook::HookArgs),
    Setup(setup::SetupArgs),
    Receipt(receipt::ReceiptArgs),
}

/// The verb that is known and shown in no help.
const HIDDEN: &str = "man";

/// File descriptors that must be free for a call to be answered.
const DESCRIPTORS: usize = 16;

/// The options that every verb has which looks at a session.
#[derive(Args)]
pub struct Scope {
    /// The session that is meant [default: $OUTLAST_SESSION, else this terminal's]
    #[arg(long, value_name = "ID")]
    session: Option<String>,
}

/// Parses the arguments, answers, and gives the exit code.
pub fn answer(fork_keeper: ForkKeeper) -> ExitCode {
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(mut error) => {
            suggest_what_is_shown(&mut error);
            print_parse_error(&error);
            return ExitCode::from(if error.use_stderr() { usage_code(is_hook()) } else { exit::DONE });
        }
    };
    let config = match Config::read() {
        Ok(config) => config,
        Err(reason) => {
            let hook = matches!(cli.verb, Verb::Hook(_));
            fail(Printer { colour: false, columns: 80 }, &Failure::Usage(reason));
            return ExitCode::from(usage_code(hook));
        }
    };
    let printer = Printer { colour: config.colour, columns: config.columns };
    for note in &config.notes {
        printer.say(note);
    }
    let policy = config.library(config.speaks_to_model()).policy;
    match dispatch(cli.verb, config, printer, fork_keeper) {
        Ok(code) => ExitCode::from(code),
        Err(failure) => {
            if let Some(message) = failure.message() {
                let help = match (&failure, std::env::args_os().nth(1)) {
                    (Failure::Usage(_), Some(verb)) => {
                        format!("; `outlast {} --help` shows what there is", verb.display())
                    }
                    _ => String::new(),
                };
                // It may repeat an argument.
                printer.say(&policy.shown(message + &help));
            }
            ExitCode::from(failure.code())
        }
    }
}

/// Help and version go to standard output, with success; a closed output is nobody to be told. What is wrong with an
/// argument may repeat a secret.
fn print_parse_error(error: &clap::Error) {
    let text = error.render().to_string();
    let config = Config::read().ok().filter(|_| error.use_stderr());
    let shown = config.map(|config| config.library(config.speaks_to_model()).policy.shown(text.clone()));
    match shown {
        Some(shown) if shown != text => Printer { colour: false, columns: 80 }.tell(&shown),
        _ => {
            let _unheard = error.print();
        }
    }
}

/// The code for arguments and settings that make no sense. Hosts take the usual one, from a hook, as a refusal of
/// what their model or their person is about to do.
fn usage_code(hook: bool) -> u8 {
    if hook { exit::DONE } else { exit::USAGE }
}

/// Whether this was called as a hook, with whatever arguments.
fn is_hook() -> bool {
    std::env::args_os().nth(1).is_some_and(|verb| verb == "hook")
}

/// Takes the verb that no help shows out of the suggestions of an error.
fn suggest_what_is_shown(error: &mut clap::Error) {
    use clap::error::{ContextKind, ContextValue};
    let shown = |name: &String| name != HIDDEN;
    let rest = match error.remove(ContextKind::SuggestedSubcommand) {
        Some(ContextValue::String(name)) => shown(&name).then_some(ContextValue::String(name)),
        Some(ContextValue::Strings(names)) => {
            let names: Vec<String> = names.into_iter().filter(shown).collect();
            (!names.is_empty()).then_some(ContextValue::Strings(names))
        }
        other => other,
    };
    if let Some(rest) = rest {
        error.insert(ContextKind::SuggestedSubcommand, rest);
    }
}

/// Fails where too few descriptors are left to this process: what starts below could not say so.
fn ensure_descriptors() -> Result<(), Failure> {
    let spare = (0..DESCRIPTORS).map(|_| rustix::io::fcntl_dupfd_cloexec(std::io::stdin(), 3));
    // All of them at once, and given back at the end of this function.
    match spare.collect::<Result<Vec<_>, _>>() {
        Ok(_) => Ok(()),
        Err(errno) => {
            let what = format!("fewer than {DESCRIPTORS} file descriptors are free, raise `ulimit -n`");
            Err(Failure::System(what, errno.into()))
        }
    }
}

fn fail(printer: Printer, failure: &Failure) -> ExitCode {
    if let Some(message) = failure.message() {
        printer.say(&message);
    }
    ExitCode::from(failure.code())
}

fn dispatch(verb: Verb, config: Config, printer: Printer, fork_keeper: ForkKeeper) -> Answer {
    let verb = match verb {
        Verb::Completions(args) => return generate::completions(&args, printer),
        Verb::Man(args) => return generate::man(&args),
        Verb::Hook(args) => return hook::hook(&args, &config, printer),
        Verb::Setup(args) => return setup::setup(args, &config, printer),
        verb => verb,
    };
    ensure_descriptors()?;
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build()
        .map_err(|error| Failure::System("cannot start an asynchronous runtime".to_owned(), error))?;
    let verb = match verb {
        Verb::Mcp(args) => {
            let served = runtime.block_on(mcp::mcp(args, config, printer));
            // A thread may still wait for input that never comes, or for a lock.
            runtime.shutdown_background();
            return served;
        }
        verb => verb,
    };
    let context = Context::new(config, printer, fork_keeper)?;
    // Only what adds to the records looks whether they are to be kept within their bounds.
    let adds = matches!(verb, Verb::Run(_) | Verb::Session(_));
    runtime.block_on(async {
        let answer = match verb {
            Verb::Run(args) => run::run(*args, &context).await,
            Verb::Ps(args) => ps::ps(args, &context).await,
            Verb::Status(args) => status::status(args, &context).await,
            Verb::Logs(args) => logs::logs(args, &context).await,
            Verb::Wait(args) => wait::wait(args, &context).await,
            Verb::Stop(args) => stop::stop(args, &context).await,
            Verb::Send(args) => send::send(args, &context).await,
            Verb::Receipt(args) => receipt::receipt(args, &context).await,
            Verb::Inbox(args) => inbox::inbox(args, &context).await,
            Verb::Session(args) => session::session(args, &context).await,
            Verb::Trace(args) => trace::trace(args, &context).await,
            Verb::Stats(args) => stats::stats(args, &context).await,
            Verb::Gc(args) => gc::gc(args, &context).await,
            Verb::Doctor(args) => doctor::doctor(args, &context).await,
            Verb::Completions(_) | Verb::Man(_) | Verb::Mcp(_) | Verb::Hook(_) | Verb::Setup(_) => {
                unreachable!("answered above, without a runtime")
            }
        };
        if adds {
            keep_within_bounds(&context).await;
        }
        answer
    })
}

/// Removes what is beyond the operator's bounds, once in a while, after the answer was given.
async fn keep_within_bounds(context: &Context) {
    // The answer stands, whatever comes of this.
    if let Err(error) = context.runtime.retain_if_due(&context.config.bounds.keep).await {
        context.printer.say(&format!("what is kept could not be held within its bounds: {error}"));
    }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_definition_is_sound() {
        Cli::command().debug_assert();
    }

    #[test]
    fn the_help_of_each_verb_fits_a_screen_and_has_an_example() {
        let cli = Cli::command();
        for verb in cli.get_subcommands().filter(|verb| !verb.is_hide_set()) {
            let help = verb.clone().term_width(100).render_help().to_string();
            let lines = help.lines().count();
            assert!(lines <= 50, "{} has {lines} lines of help", verb.get_name());
            assert!(help.contains("Example"), "{} has no example", verb.get_name());
        }
    }

    #[test]
    fn options_behind_the_program_belong_to_the_program() {
        let cli = Cli::try_parse_from(["outlast", "run", "-b", "ls", "--json", "-c", "x"]).expect("arguments");
        let Verb::Run(args) = cli.verb else { panic!("another verb") };
        assert_eq!(args.argv, ["ls", "--json", "-c", "x"]);
        for wrong in
            [&["outlast", "run", "--no-such", "ls"][..], &["outlast", "run", "-c", "x", "--", "ls"], &["outlast"]]
        {
            assert!(Cli::try_parse_from(wrong).is_err(), "{wrong:?}");
        }
    }
}
