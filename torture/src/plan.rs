//! What one round does, drawn from the seed before anything happens.

use crate::dice::Dice;
use crate::shapes::{OwnEnd, SHAPES, Shape};

/// Consumers that must each be told every end once: the one that commands are started for, one that only waits, one
/// that only looks into its inbox.
pub const CONSUMERS: [&str; 3] = ["model", "waiter", "human"];

/// One round before it is played.
#[derive(Debug)]
pub struct Plan {
    /// Whether the state directory is a small file system of its own, which can be filled.
    pub small_disk: bool,
    /// The commands.
    pub acts: Vec<Act>,
    /// What happens, with its time in milliseconds after the beginning, in order.
    pub deeds: Vec<(u64, Deed)>,
    /// How the session ends.
    pub ending: Ending,
}

/// One command and its callers.
#[derive(Debug)]
pub struct Act {
    /// Its label, which its evidence is named after.
    pub label: String,
    /// What it does.
    pub shape: &'static Shape,
    /// How it is started.
    pub mode: Mode,
    /// How many front ends start it; more than one ask to join.
    pub callers: usize,
    /// What its front end has too little of.
    pub starved: Option<Starved>,
    /// Whether it is left running for the end of the session.
    pub left: bool,
}

/// How a command is started.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// In the background.
    Background,
    /// In the foreground, with so many milliseconds of grace.
    Grace(u64),
    /// In the foreground, as long as it takes.
    Foreground,
}

/// What a front end has too little of, in the unit of the shell's `ulimit`. It is a soft limit: with a hard one, what that
/// call starts could not free itself, and all others of its session would have to be excused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Starved {
    /// Open files.
    Files(u64),
    /// Blocks of 512 bytes of a file.
    FileSize(u64),
    /// KiB of address space.
    Memory(u64),
    /// Processes of its user.
    Processes(u64),
}

/// Whom a kill or a pause hits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Victim {
    /// A front end.
    Front,
    /// The keeper of the session.
    Keeper,
    /// A supervisor, the spare included.
    Supervisor,
    /// The first process of a command.
    Leader,
}

impl Victim {
    /// What a tally calls it.
    pub fn name(self) -> &'static str {
        match self {
            Victim::Front => "front end",
            Victim::Keeper => "keeper",
            Victim::Supervisor => "supervisor",
            Victim::Leader => "leader",
        }
    }
}

/// One thing that happens in a round.
#[derive(Clone, Copy, Debug)]
pub enum Deed {
    /// A caller starts the command of this number.
    Start(usize),
    /// SIGKILL for one of those who are there; the number chooses.
    Kill(Victim, usize),
    /// SIGSTOP, and SIGCONT after so many milliseconds.
    Pause(Victim, usize, u64),
    /// `stop` for the command of this number.
    Stop(usize),
    /// `stop --all`.
    StopAll,
    /// `wait` on the command of this number.
    Wait(usize),
    /// `inbox --ack` for the consumer of this number.
    Inbox(usize),
    /// `send` for the command of this number.
    Send(usize),
    /// A fault of the machine, or of somebody who meddles.
    Fault(Fault),
}

/// Faults that are done to the world around.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Fault {
    /// Bytes that are no message, sent to a door.
    Garbage(usize),
    /// A door that somebody connects to, and goes.
    HangUp(usize),
    /// The keeper's door is unlinked.
    NoDoor,
    /// The last bytes of the trace are cut off.
    TornTrace(u64),
    /// The last bytes of the trace are overwritten.
    GarbledTrace(u64),
    /// What a writer that died leaves: half a file under a temporary name.
    Leftover,
    /// The state directory is read-only for so many milliseconds.
    ReadOnly(u64),
    /// The disk is full for so many milliseconds.
    FullDisk(u64),
    /// The clock of day jumps by so many seconds, and back after so many milliseconds.
    Clock(i64, u64),
}

impl Starved {
    /// What a tally calls it.
    pub fn name(self) -> &'static str {
        match self {
            Starved::Files(_) => "few files",
            Starved::FileSize(_) => "small files",
            Starved::Memory(_) => "little memory",
            Starved::Processes(_) => "few processes",
        }
    }

    /// The words of `ulimit`.
    pub fn option(self) -> String {
        match self {
            Starved::Files(count) => format!("n {count}"),
            Starved::FileSize(blocks) => format!("f {blocks}"),
            Starved::Memory(kib) => format!("v {kib}"),
            Starved::Processes(count) => format!("p {count}"),
        }
    }
}

impl Fault {
    /// What a tally calls it.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Garbage(_) => "garbage at a door",
            Fault::HangUp(_) => "a door left at once",
            Fault::NoDoor => "the keeper's door unlinked",
            Fault::TornTrace(_) => "a torn trace",
            Fault::GarbledTrace(_) => "a garbled trace",
            Fault::Leftover => "files of dead writers",
            Fault::ReadOnly(_) => "a read-only state directory",
            Fault::FullDisk(_) => "a full disk",
            Fault::Clock(..) => "a clock that jumps",
        }
    }
}

/// How the session of a round ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ending {
    /// `session end`.
    Called,
    /// Its anchor is killed.
    AnchorKilled,
}

/// How many milliseconds a storm lasts.
const STORM: u64 = 1_000;

impl Plan {
    /// Draws a round. `mounts`: whether file systems can be mounted; what cannot be done is drawn all the same, so
    /// that a seed means the same everywhere.
    pub fn draw(dice: &mut Dice, mounts: bool) -> Plan {
        let weather = *dice.pick(&[
            Weather::Kills,
            Weather::Kills,
            Weather::Pauses,
            Weather::Hunger,
            Weather::Doors,
            Weather::Tears,
            Weather::ReadOnly,
            Weather::FullDisk,
            Weather::Clock,
            Weather::Calm,
        ]);
        let acts: Vec<Act> = (0..4 + dice.index(5)).map(|number| Act::draw(number, weather, dice)).collect();
        let mut deeds = Vec::new();
        for (number, act) in acts.iter().enumerate() {
            let at = dice.below(STORM / 2);
            for caller in 0..act.callers {
                let apart = if caller == 0 { 0 } else { dice.below(60) };
                deeds.push((at + apart, Deed::Start(number)));
            }
        }
        let births: Vec<u64> = deeds.iter().map(|(at, _)| *at).collect();
        for _ in 0..6 + dice.index(14) {
            // Most can be met around a start, front ends nearly always.
            let after_birth = dice.pick(&births) + dice.below(60);
            let any = 20 + dice.below(STORM);
            let deed = usual_deed(&acts, weather, dice);
            let early = matches!(deed, Deed::Kill(Victim::Front, _)) || dice.chance(50);
            deeds.push((if early { after_birth } else { any }, deed));
        }
        for _ in 0..weather.faults(dice) {
            deeds.push((20 + dice.below(STORM), weather.fault(dice)));
        }
        deeds.sort_by_key(|(at, _)| *at);
        let ending = if dice.chance(50) { Ending::Called } else { Ending::AnchorKilled };
        Plan { small_disk: weather == Weather::FullDisk && mounts, acts, deeds, ending }
    }
}

impl Act {
    fn draw(number: usize, weather: Weather, dice: &mut Dice) -> Act {
        let shape = dice.pick(SHAPES);
        let mode = match (shape.own_end, dice.below(10)) {
            (OwnEnd::OnceSent(_), _) | (_, 0..4) => Mode::Background,
            (OwnEnd::Never, _) | (_, 4..7) => Mode::Grace(*dice.pick(&[1, 20, 200])),
            _ => Mode::Foreground,
        };
        let joins = dice.chance(20) && !["--pty", "--stdin"].iter().any(|word| shape.options.contains(word));
        let callers = if joins { 2 + dice.index(2) } else { 1 };
        let starved = (weather == Weather::Hunger && dice.chance(60)).then(|| match dice.below(4) {
            0 => Starved::Files(3 + dice.below(20)),
            1 => Starved::FileSize(dice.below(9)),
            2 => Starved::Memory(6_000 + dice.below(40_000)),
            _ => Starved::Processes(dice.below(4)),
        });
        Act { label: format!("c{number}"), shape, mode, callers, starved, left: dice.chance(25) }
    }
}

/// What kind of trouble a round has, besides calls that meet each other.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Weather {
    Calm,
    Kills,
    Pauses,
    Hunger,
    Doors,
    Tears,
    ReadOnly,
    FullDisk,
    Clock,
}

impl Weather {
    /// Of a hundred usual deeds, how many are kills.
    fn kills(self) -> u64 {
        match self {
            Weather::Calm => 0,
            Weather::Kills => 60,
            Weather::Pauses | Weather::Doors | Weather::Tears | Weather::Clock => 25,
            Weather::Hunger | Weather::ReadOnly | Weather::FullDisk => 10,
        }
    }

    fn faults(self, dice: &mut Dice) -> usize {
        match self {
            Weather::Calm | Weather::Kills | Weather::Hunger => 0,
            Weather::Pauses | Weather::Doors | Weather::Tears => 1 + dice.index(4),
            Weather::ReadOnly | Weather::FullDisk | Weather::Clock => 1 + dice.index(2),
        }
    }

    fn fault(self, dice: &mut Dice) -> Deed {
        let nth = dice.index(64);
        match self {
            Weather::Doors => Deed::Fault(match dice.below(7) {
                0..3 => Fault::Garbage(nth),
                3..6 => Fault::HangUp(nth),
                _ => Fault::NoDoor,
            }),
            Weather::Tears => Deed::Fault(match dice.below(3) {
                0 => Fault::TornTrace(1 + dice.below(300)),
                1 => Fault::GarbledTrace(1 + dice.below(100)),
                _ => Fault::Leftover,
            }),
            Weather::ReadOnly => Deed::Fault(Fault::ReadOnly(50 + dice.below(250))),
            Weather::FullDisk => Deed::Fault(Fault::FullDisk(50 + dice.below(250))),
            Weather::Clock => {
                let hour = 3_600;
                let jump = *dice.pick(&[-24 * hour, -hour, -1, 1, hour, 24 * hour, 400 * 24 * hour]);
                Deed::Fault(Fault::Clock(jump, 20 + dice.below(400)))
            }
            Weather::Calm | Weather::Kills | Weather::Pauses | Weather::Hunger => {
                let victim = *dice.pick(&[Victim::Keeper, Victim::Supervisor, Victim::Supervisor, Victim::Front]);
                Deed::Pause(victim, nth, 20 + dice.below(400))
            }
        }
    }
}

fn usual_deed(acts: &[Act], weather: Weather, dice: &mut Dice) -> Deed {
    let nth = dice.index(64);
    if dice.chance(weather.kills()) {
        let victims =
            [Victim::Front, Victim::Front, Victim::Keeper, Victim::Supervisor, Victim::Supervisor, Victim::Leader];
        return Deed::Kill(*dice.pick(&victims), nth);
    }
    let act = dice.index(acts.len());
    match dice.below(20) {
        0..6 => Deed::Stop(act),
        6 => Deed::StopAll,
        7..12 => Deed::Wait(act),
        12..16 => Deed::Inbox(if dice.chance(50) { 0 } else { 2 }),
        _ => Deed::Send(acts.iter().position(|one| one.shape.name == "reader").unwrap_or(act)),
    }
}
