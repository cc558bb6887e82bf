//! A chart as a picture: SVG that is read on light and on dark pages.

use std::fmt::Write as _;

use super::data::{Chart, Line};
use crate::samples::number;

const WIDTH: f64 = 720.0;
/// Where figures are drawn.
const LEFT: f64 = 76.0;
const RIGHT: f64 = 692.0;
const TOP: f64 = 48.0;
const HEIGHT: f64 = 260.0;
/// Of a line of the legend.
const ROW: f64 = 20.0;
/// An axis that spans more than this is drawn by powers of ten.
const WIDE: f64 = 20.0;
/// The least part of a figure that an axis of powers shows: what is below, or nothing, stands on its foot.
const FOOT: f64 = 1e-3;

/// Shapes tell lines apart where colours do not.
const STYLE: &str = "<style>
text{font:13px system-ui,sans-serif;fill:#24292f}
.page{fill:#ffffff;stroke:#d0d7de}.grid{stroke:#d0d7de}.small{font-size:12px;fill:#57606a}.title{font-size:15px;font-weight:600}
.c0{stroke:#0969da}.c1{stroke:#bc4c00}.c2{stroke:#1a7f37}.c3{stroke:#8250df}.c4{stroke:#a40e6c}.c5{stroke:#57606a}
.mark,.curve,.span{fill:none;stroke-width:2}.mark{fill:#ffffff}.span{stroke-width:1}.bound{stroke-dasharray:6 4;stroke-width:1.5}
@media (prefers-color-scheme:dark){
text{fill:#e6edf3}.page{fill:#0d1117;stroke:#30363d}.grid{stroke:#30363d}.small{fill:#9198a1}.mark{fill:#0d1117}
.c0{stroke:#58a6ff}.c1{stroke:#f0883e}.c2{stroke:#3fb950}.c3{stroke:#bc8cff}.c4{stroke:#ff7bba}.c5{stroke:#9198a1}}
</style>
";

/// One axis: from where to where, and how a figure becomes a place.
struct Axis {
    powers: bool,
    from: f64,
    to: f64,
    low: f64,
    high: f64,
}

impl Axis {
    /// One on which all of these figures have a place between `low` and `high` of the picture.
    fn of(figures: &[f64], low: f64, high: f64) -> Axis {
        let most = figures.iter().copied().fold(0.0, f64::max);
        let least = figures.iter().copied().filter(|figure| *figure > 0.0).fold(most, f64::min).max(most * FOOT * FOOT);
        let powers = most > least * WIDE;
        let (from, to) = if powers {
            let from = 10_f64.powf(least.log10().floor());
            (from, 10_f64.powf(most.log10().ceil()).max(from * 10.0))
        } else {
            let step = step(most);
            (0.0, if most > 0.0 { (most / step).ceil() * step } else { 1.0 })
        };
        Axis { powers, from, to, low, high }
    }

    fn place(&self, figure: f64) -> f64 {
        let share = if self.powers {
            (figure.max(self.from) / self.from).log10() / (self.to / self.from).log10()
        } else {
            figure / self.to
        };
        self.low + share * (self.high - self.low)
    }

    /// The figures that are written beside it.
    fn ticks(&self) -> Vec<f64> {
        if !self.powers {
            let step = step(self.to);
            return (0_u32..).map(|at| f64::from(at) * step).take_while(|tick| *tick <= self.to * 1.001).collect();
        }
        let decades = (self.to / self.from).log10().round();
        let every = (decades / 8.0).ceil().max(1.0);
        let ticks = (0_u32..).map(|at| f64::from(at) * every).take_while(|decade| *decade <= decades);
        ticks.map(|decade| self.from * 10_f64.powf(decade)).collect()
    }
}

/// The distance between figures beside an axis that goes up to so much: 1, 2 or 5 of a power of ten.
fn step(most: f64) -> f64 {
    if most <= 0.0 {
        return 1.0;
    }
    let power = 10_f64.powf((most / 5.0).log10().floor());
    let steps = [1.0, 2.0, 5.0, 10.0].map(|step| step * power);
    steps.into_iter().find(|step| most / step <= 6.0).unwrap_or(power * 10.0)
}

/// The picture.
pub fn svg(chart: &Chart) -> String {
    let xs: Vec<f64> = chart.lines.iter().flat_map(|line| &line.points).map(|point| point.x).collect();
    let ys: Vec<f64> = chart
        .lines
        .iter()
        .flat_map(|line| {
            let bound = line.bound.map(|bound| bound.most);
            line.points.iter().flat_map(|point| [point.y, point.low, point.high]).chain(bound)
        })
        .collect();
    let x = Axis::of(&xs, LEFT, RIGHT);
    let y = Axis::of(&ys, TOP + HEIGHT, TOP);
    let bounds = chart.lines.iter().any(|line| line.bound.is_some());
    let rows = chart.lines.len() + usize::from(bounds);
    let below = TOP + HEIGHT + 58.0;
    let whole = below + rows as f64 * ROW + 4.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {whole}\" width=\"{WIDTH}\" height=\"{whole}\" \
         role=\"img\" aria-label=\"{}\">\n",
        escaped(&chart.title)
    );
    svg.push_str(STYLE);
    let inside = (WIDTH - 1.0, whole - 1.0);
    push(
        &mut svg,
        &format!("<rect class=\"page\" x=\".5\" y=\".5\" rx=\"6\" width=\"{}\" height=\"{}\"/>", inside.0, inside.1),
    );
    text(&mut svg, (16.0, 26.0), "title", "start", &format!("{}, {}", chart.title, chart.unit));
    axes(&mut svg, &x, &y);
    text(&mut svg, (f64::midpoint(LEFT, RIGHT), TOP + HEIGHT + 40.0), "", "middle", &chart.x);
    for (at, line) in chart.lines.iter().enumerate() {
        curve(&mut svg, &x, &y, at, line);
        let row = below + at as f64 * ROW;
        push(&mut svg, &format!("<path class=\"curve c{at}\" d=\"M{} {row}h28\"/>", LEFT - 40.0));
        push(&mut svg, &mark(at, LEFT - 26.0, row));
        text(&mut svg, (LEFT, row + 4.0), "", "start", &line.name);
    }
    if bounds {
        let row = below + chart.lines.len() as f64 * ROW;
        push(&mut svg, &format!("<path class=\"bound c5\" d=\"M{} {row}h28\"/>", LEFT - 40.0));
        text(&mut svg, (LEFT, row + 4.0), "", "start", "in the colour of a line: what it must not pass up to there");
    }
    svg + "</svg>\n"
}

fn axes(svg: &mut String, x: &Axis, y: &Axis) {
    for tick in y.ticks() {
        let at = y.place(tick);
        push(svg, &format!("<path class=\"grid\" d=\"M{LEFT} {at:.1}H{RIGHT}\"/>"));
        text(svg, (LEFT - 8.0, at + 4.0), "small", "end", &short(tick));
    }
    for tick in x.ticks() {
        let at = x.place(tick);
        push(svg, &format!("<path class=\"grid\" d=\"M{at:.1} {TOP}V{}\"/>", TOP + HEIGHT));
        text(svg, (at, TOP + HEIGHT + 18.0), "small", "middle", &short(tick));
    }
}

fn curve(svg: &mut String, x: &Axis, y: &Axis, at: usize, line: &Line) {
    let mut path = String::new();
    for point in &line.points {
        let (across, up) = (x.place(point.x), y.place(point.y));
        let pen = if path.is_empty() { 'M' } else { 'L' };
        write!(path, "{pen}{across:.1} {up:.1}").expect("a string takes everything");
        let (low, high) = (y.place(point.low), y.place(point.high));
        if low - high > 1.0 {
            push(svg, &format!("<path class=\"span c{at}\" d=\"M{across:.1} {low:.1}V{high:.1}\"/>"));
        }
    }
    push(svg, &format!("<path class=\"curve c{at}\" d=\"{path}\"/>"));
    for point in &line.points {
        push(svg, &mark(at, x.place(point.x), y.place(point.y)));
    }
    if let Some(bound) = line.bound {
        let (from, to, up) = (x.low, x.place(bound.at).min(x.high), y.place(bound.most));
        push(svg, &format!("<path class=\"bound c{at}\" d=\"M{from:.1} {up:.1}H{to:.1}v8\" fill=\"none\"/>"));
    }
}

/// What stands at each figure of a line.
fn mark(at: usize, x: f64, y: f64) -> String {
    let shape = match at {
        0 => "m-4 0a4 4 0 1 0 8 0a4 4 0 1 0 -8 0z",
        1 => "m-4 -4h8v8h-8z",
        2 => "m0 -5l5 9h-10z",
        3 => "m0 -6l6 6l-6 6l-6 -6z",
        4 => "m0 5l5 -9h-10z",
        _ => "m-5 0h10m-5 -5v10",
    };
    format!("<path class=\"mark c{at}\" d=\"M{x:.1} {y:.1}{shape}\"/>")
}

/// A figure beside an axis.
fn short(figure: f64) -> String {
    match figure {
        0.0 => "0".to_owned(),
        figure if figure >= 1e6 => format!("{}M", trimmed(figure / 1e6)),
        figure if figure >= 1e4 => format!("{}k", trimmed(figure / 1e3)),
        figure if figure < 0.09 => format!("{figure:.0e}"),
        figure => trimmed(figure),
    }
}

fn trimmed(figure: f64) -> String {
    let text = number(figure);
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

fn text(svg: &mut String, at: (f64, f64), class: &str, anchor: &str, words: &str) {
    push(
        svg,
        &format!(
            "<text class=\"{class}\" x=\"{:.1}\" y=\"{:.1}\" text-anchor=\"{anchor}\">{}</text>",
            at.0,
            at.1,
            escaped(words)
        ),
    );
}

/// Words without the marks of code, which mean nothing in a picture.
fn escaped(words: &str) -> String {
    words.replace('`', "").replace('&', "&amp;").replace('<', "&lt;").replace('"', "&quot;")
}

fn push(svg: &mut String, line: &str) {
    writeln!(svg, "{line}").expect("a string takes everything");
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_axis_of_powers_has_a_place_for_nothing() {
        let axis = Axis::of(&[0.0, 1.0, 1000.0], 300.0, 0.0);
        assert_eq!(axis.place(0.0).to_bits(), 300.0_f64.to_bits());
        assert_eq!(axis.place(1000.0).to_bits(), 0.0_f64.to_bits());
        assert_eq!(axis.ticks().len(), 4);
    }

    #[test]
    fn a_narrow_axis_begins_with_nothing() {
        let axis = Axis::of(&[7.0, 9.0], 300.0, 0.0);
        assert_eq!(axis.place(0.0).to_bits(), 300.0_f64.to_bits());
        assert_eq!(axis.ticks(), [0.0, 2.0, 4.0, 6.0, 8.0, 10.0]);
    }
}
