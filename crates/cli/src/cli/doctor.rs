//! `outlast doctor`: what this machine gives, and what does not answer.

use clap::Args;
use outlast_core::names::display_line;

use super::Context;
use crate::exit::{self, Answer, Failure};
use crate::host::Surroundings;
use crate::view::{DoctorView, FindingView};

/// Shows what this kernel and machine give, and which keepers and supervisors do not answer
#[derive(Args)]
#[command(after_help = "\
Examples:
  outlast doctor
  outlast doctor --json")]
pub struct DoctorArgs {
    /// Print one JSON object, outlast.doctor/1
    #[arg(long)]
    json: bool,
}

/// Looks at everything.
pub async fn doctor(args: DoctorArgs, context: &Context) -> Answer {
    let report = context.runtime.doctor().await?;
    let mut findings: Vec<FindingView> = report
        .findings
        .iter()
        .map(|one| FindingView { name: one.name.clone(), ok: one.ok, detail: one.detail.clone() })
        .collect();
    let ignored = context.config.bounds.ignored.iter();
    findings.extend(ignored.map(|line| FindingView { name: "setting".to_owned(), ok: false, detail: line.clone() }));
    findings.push(host(context).await?);
    let view = DoctorView::of(&report.state_dir, report.executable.as_deref(), report.containment, findings);
    if args.json {
        context.printer.json(&view)?;
    } else {
        context.printer.print(text(&view))?;
    }
    Ok(exit::DONE)
}

/// Which agent host this process is under, and what that can do.
async fn host(context: &Context) -> Result<FindingView, Failure> {
    let around = Surroundings::find(&context.config, None)?;
    let session = match context.runtime.find_session_for(around.anchor).await {
        Ok(Some(session)) => format!("its session is {}", session.id()),
        Ok(None) => "it has no session yet".to_owned(),
        Err(error) => format!("its session cannot be looked for: {error}"),
    };
    let detail = match around.host {
        Some(host) => format!("{}, process {}; {session}; {}", host.name(), around.anchor, host.ability()),
        None => format!("none that says so; the MCP server would take process {} for it; {session}", around.anchor),
    };
    Ok(FindingView { name: "host".to_owned(), ok: true, detail })
}

fn text(view: &DoctorView) -> String {
    let wrong = view.findings.iter().filter(|one| !one.ok).count();
    let verdict = match wrong {
        0 => "nothing is wrong".to_owned(),
        1 => "1 thing is wrong".to_owned(),
        many => format!("{many} things are wrong"),
    };
    let mut text = format!("outlast {}: {verdict}\n\n", view.version);
    let executable = view.executable.as_deref().unwrap_or("none found");
    for (name, value) in
        [("state directory", view.state_dir.as_str()), ("executable", executable), ("containment", &view.containment)]
    {
        text.push_str(&format!("  {name:<18}{}\n", display_line(value)));
    }
    text.push('\n');
    let width = view.findings.iter().map(|one| one.name.len()).max().unwrap_or(0);
    for one in &view.findings {
        let mark = if one.ok { " " } else { "!" };
        text.push_str(&format!("{mark} {:<width$}  {}\n", display_line(&one.name), display_line(&one.detail)));
    }
    text
}
