//! `outlast logs`: the output of a command, readable or raw, once or as it comes.

mod reader;

use std::future::poll_fn;
use std::pin::pin;
use std::task::Poll;

use clap::{Args, ValueEnum};
use outlast::{Command, Follower, Piece, ReadOptions, Stream};
use outlast_core::names::display_line;
use outlast_core::text::excerpt::Grep;

use super::{Context, Scope};
use crate::exit::{self, Answer, Failure};
use crate::output::Sink;
use crate::words;
use reader::Reader;

/// Prints the output of a command
#[derive(Args)]
#[command(after_help = "\
Offsets count bytes of the output, as --json shows them. Without --raw the text
is cleaned: no escape sequences, only the last frame of a redrawn line, runs of
equal lines counted (not with -f).

Examples:
  outlast logs w1 --tail 20
  outlast logs w1 -f                          until nothing more is captured
  outlast logs w1 --offset 16384 --bytes 4096 --raw
  outlast logs w1 --grep 'error|warning'")]
pub struct LogsArgs {
    /// Id, alias, or the beginning of an id
    #[arg(value_name = "ID")]
    id: String,
    /// Go on as output comes, until capture ends
    #[arg(short, long, conflicts_with_all = ["head", "bytes"])]
    follow: bool,
    /// Only the last N lines
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with_all = ["head", "offset", "bytes"])]
    tail: Option<u64>,
    /// Only the first N lines
    #[arg(long, value_name = "N", allow_hyphen_values = true, conflicts_with_all = ["offset", "bytes"])]
    head: Option<u64>,
    /// Begin at this byte; the next offset is said on standard error
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    offset: Option<u64>,
    /// At most so many bytes; the next offset is said on standard error
    #[arg(long, value_name = "N", allow_hyphen_values = true)]
    bytes: Option<u64>,
    /// Only lines that match this regular expression
    #[arg(long, value_name = "RE", conflicts_with = "raw")]
    grep: Option<String>,
    /// Only this stream, of a command started with --streams separate
    #[arg(long, value_name = "S")]
    stream: Option<StreamName>,
    /// The bytes as they came and nothing else
    #[arg(long, conflicts_with = "timestamps")]
    raw: bool,
    /// Put the time before each line, for a command started with --streams separate
    #[arg(long)]
    timestamps: bool,
    #[command(flatten)]
    scope: Scope,
}

#[derive(Clone, Copy, ValueEnum)]
enum StreamName {
    Stdout,
    Stderr,
}

impl From<StreamName> for Stream {
    fn from(name: StreamName) -> Stream {
        match name {
            StreamName::Stdout => Stream::Stdout,
            StreamName::Stderr => Stream::Stderr,
        }
    }
}

/// Prints output.
pub async fn logs(args: LogsArgs, context: &Context) -> Answer {
    let grep = args.grep.as_deref().map(Grep::new).transpose();
    let grep = grep.map_err(|error| Failure::Usage(error.to_string()))?;
    let command = context.command(&args.scope, &args.id).await?;
    let mut reader = Reader::new(context.printer, args.raw, args.timestamps, grep);
    if args.follow {
        follow(&args, &command, &mut reader, context).await
    } else {
        read(&args, &command, &mut reader, context).await
    }
}

async fn read(args: &LogsArgs, command: &Command, reader: &mut Reader, context: &Context) -> Answer {
    let options = ReadOptions {
        offset: args.offset.unwrap_or(0),
        bytes: args.bytes,
        tail_lines: args.tail,
        head_lines: args.head,
        stream: args.stream.map(Stream::from),
    };
    reader.starts_inside(args.offset.is_some_and(|offset| offset > 0));
    reader.counts_equal_lines();
    let mut reading = command.read(options).await?;
    while let Some(piece) = reading.next().await? {
        reader.take(piece)?;
    }
    reader.finish(args.bytes.is_some())?;
    if args.offset.is_some() || args.bytes.is_some() {
        let next = reading.next_offset();
        if let Some(asked) = args.offset.filter(|asked| *asked > next) {
            context.printer.say(&format!("offset {asked} is past the end of the output, which has {next} bytes"));
        }
        context.printer.say(&format!("next offset {next}"));
    }
    if reading.withheld() {
        context.printer.say(words::WITHHELD);
    }
    if let Some(note) = reading.note() {
        context.printer.say(note);
    }
    if let Some(problem) = reading.problem() {
        context.printer.say(&format!("records incomplete: {}", display_line(problem)));
    }
    Ok(exit::DONE)
}

async fn follow(args: &LogsArgs, command: &Command, reader: &mut Reader, context: &Context) -> Answer {
    let from = match args.tail {
        Some(lines) => command.tail_offset(lines).await?,
        None => args.offset.unwrap_or(0),
    };
    reader.starts_inside(from > 0 && args.tail.is_none());
    let wanted = args.stream.map(Stream::from);
    let mut follower = command.follow(from).await?;
    let failed = |error| Failure::System("cannot watch standard output".to_owned(), error);
    let mut output = Sink::new().map_err(failed)?;
    while let Some(piece) = next_or_closed(&mut follower, &mut output).await? {
        match (&piece, wanted) {
            (Piece::Bytes { stream: Stream::Merged, .. }, Some(_)) => return Err(merged("--stream")),
            (Piece::Bytes { stream, .. }, Some(wanted)) if *stream != wanted => {}
            _ => reader.take(piece)?,
        }
    }
    reader.finish(false)?;
    if let Some(problem) = follower.problem() {
        context.printer.say(&format!("records incomplete: {}", display_line(problem)));
    }
    Ok(exit::DONE)
}

/// The next piece; none at the end, or when nobody reads any more.
async fn next_or_closed(follower: &mut Follower, output: &mut Sink) -> Result<Option<Piece>, Failure> {
    let mut next = pin!(follower.next());
    let mut closed = pin!(output.progress());
    poll_fn(|task| match next.as_mut().poll(task) {
        Poll::Ready(piece) => Poll::Ready(piece.map_err(Failure::from)),
        Poll::Pending => closed.as_mut().poll(task).map(|_| Ok(None)),
    })
    .await
}

/// What needs the index of separate streams was asked of a command that has none.
fn merged(option: &str) -> Failure {
    Failure::Refused(format!(
        "{option} needs the index that only --streams separate keeps, and this command has merged streams"
    ))
}
