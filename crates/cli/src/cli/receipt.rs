//! `outlast receipt`: a command says what it has changed.

use std::path::PathBuf;

use clap::Args;
use outlast_core::id::CommandId;

use super::Context;
use crate::exit::{self, Answer, Failure};

/// Says, from within a command, that it has changed these paths
#[derive(Args)]
#[command(after_help = "\
The command is the one that this is called from (OUTLAST_SESSION, OUTLAST_WORK_ID). Outside of
one, and without a PATH, nothing happens. What was published is told after the command's end.

Examples:
  outlast receipt src/main.rs
  git diff --name-only -z | xargs -0 outlast receipt")]
pub struct ReceiptArgs {
    /// What was changed; a relative path is one from here
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
}

/// Publishes the paths.
pub async fn receipt(args: ReceiptArgs, context: &Context) -> Answer {
    let (Some(session), Some(command)) = (&context.config.session, context.config.var("OUTLAST_WORK_ID")) else {
        return Ok(exit::DONE);
    };
    if args.paths.is_empty() {
        return Ok(exit::DONE);
    }
    let id: CommandId = command.parse().map_err(|error| Failure::Usage(format!("OUTLAST_WORK_ID: {error}")))?;
    let session = context.session_id(session).await?;
    let session = context.runtime.open_session(&session).await?;
    let paths = args.paths.iter().map(|path| context.config.cwd.join(path)).collect();
    session.publish(&id, paths).await?;
    Ok(exit::DONE)
}
