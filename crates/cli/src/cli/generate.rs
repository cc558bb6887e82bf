//! What is generated from the definition of the command line: completions for shells, manual pages.

use std::path::PathBuf;

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use super::Cli;
use crate::exit::{self, Answer, Failure};
use crate::output::Printer;

/// Prints completions for a shell
#[derive(Args)]
#[command(after_help = "\
Example:
  outlast completions bash > ~/.local/share/bash-completion/completions/outlast")]
pub struct CompletionsArgs {
    /// The shell
    #[arg(value_enum, value_name = "SHELL")]
    shell: Shell,
}

/// Writes manual pages into a directory
#[derive(Args)]
pub struct ManArgs {
    /// The directory, which is there
    #[arg(value_name = "DIR")]
    dir: PathBuf,
}

/// Prints completions.
pub fn completions(args: &CompletionsArgs, printer: Printer) -> Answer {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut Cli::command(), "outlast", &mut script);
    printer.print(script)?;
    Ok(exit::DONE)
}

/// Writes manual pages.
pub fn man(args: &ManArgs) -> Answer {
    let failed = |error| Failure::System(format!("cannot write manual pages into {}", args.dir.display()), error);
    clap_mangen::generate_to(Cli::command(), &args.dir).map_err(failed)?;
    Ok(exit::DONE)
}
