//! A history's plan: the actions of tenants, operators and endpoints, with their times. A seed determines a plan, and
//! shrinking removes parts of it.

pub mod apart;
mod feeds;
pub mod geo_ip;
pub mod ordered;
mod pauses;
mod replays;

use std::time::Duration;

use fastrand::Rng;

use crate::{
    draws::Draws,
    endpoints::{Mood, Slot},
    faults::{Chances, Fault},
    geo_ip::GeoIpAction,
    oauth, providers,
    readers::Reading,
};

/// The number of tenants.
pub const TENANTS: usize = 2;
/// The maximum number of webhooks per tenant.
const WEBHOOKS: usize = 3;
/// The maximum number of steps in a short history, not counting webhook registrations.
const SHORT: usize = 18;

/// The plan of a history.
#[derive(Debug, Clone)]
pub struct Plan {
    /// The seed for all choices.
    pub seed: u64,
    /// The history's subject.
    pub kind: PlanKind,
    /// The probabilities of faults.
    pub chances: Chances,
    /// The steps, in chronological order.
    pub steps: Vec<Step>,
    /// How many times faster the steps follow each other than in the seed's plan.
    pub speed: u32,
    /// The settings for order by subject; `None` in most histories.
    pub order: Option<Order>,
}

/// The subject of a history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PlanKind {
    /// Every kind of fault, for every tenant.
    Mixed,
    /// Trouble for a single tenant. Requests to this tenant's partitions are throttled with this probability, in parts
    /// per 10 000.
    Apart {
        /// The probability of throttling.
        throttles: u16,
    },
    /// Published geo-IP databases.
    GeoIp,
    /// Pull webhooks, with every kind of fault for every tenant.
    Feeds,
}

impl PlanKind {
    /// The subject's name in options.
    pub fn name(self) -> &'static str {
        match self {
            Self::Mixed => "mixed",
            Self::Apart { .. } => "apart",
            Self::GeoIp => "geo-ip",
            Self::Feeds => "feeds",
        }
    }
}

/// The settings for order by subject in a history.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The webhooks that are registered with order by subject.
    pub webhooks: Vec<Slot>,
    /// The number of different subjects in a tenant's events.
    pub subjects: usize,
}

/// One step of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Step {
    /// The step's number in the complete plan, which does not change when other steps are removed.
    pub number: usize,
    /// When the step happens, counted from the beginning of the history.
    pub at: Duration,
    /// The action.
    pub action: Action,
}

/// The step's action.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Action {
    /// A tenant registers a webhook for all types, or for one.
    Register(Slot, Option<Kind>),
    /// A tenant publishes an event over HTTP; with a key, it repeats the request until it is acknowledged.
    Publish(usize, Kind, Option<Key>),
    /// A service puts an event on the bus.
    PutOnBus(usize, Kind),
    /// A tenant enables or disables a webhook.
    Enable(Slot, bool),
    /// A tenant changes a webhook's address.
    Move(Slot),
    /// A tenant removes a webhook.
    Remove(Slot),
    /// A tenant replaces a signing secret.
    Rotate(Slot),
    /// A tenant sends a test event.
    Test(Slot),
    /// A tenant pauses a webhook for this long.
    Pause(Slot, Duration),
    /// A tenant ends a webhook's pause.
    Resume(Slot),
    /// A tenant resends one of its deliveries.
    Resend(usize, u8),
    /// A tenant cancels one of its latest deliveries.
    Cancel(usize, u8),
    /// A tenant erases the event of one of its latest deliveries.
    Erase(usize, u8),
    /// A tenant recovers the last few minutes' deliveries.
    Recover(Slot, u8),
    /// A tenant replays the last few minutes' events to a webhook.
    Replay(Slot, u8),
    /// An endpoint changes its reaction.
    React(Slot, Mood),
    /// A tenant's partitions in the table refuse all requests for this long.
    Throttle(usize, Duration),
    /// Secrets Manager does not respond for this long.
    LoseSecrets(Duration),
    /// DynamoDB removes expired items.
    Expire,
    /// A step about tokens.
    OAuth(oauth::Action),
    /// A step about payment providers.
    Providers(providers::Action),
    /// A step about geo-IP databases.
    GeoIp(GeoIpAction),
    /// A tenant registers a pull webhook, for all types or for one.
    RegisterPulled(Slot, Option<Kind>),
    /// A tenant turns a webhook into a pull webhook, or back into a push webhook.
    Pull(Slot, bool),
    /// A reader requests a feed's deliveries and reacts to them.
    Read(Slot, Reading),
    /// A tenant turns a webhook's order by subject on or off.
    Order(Slot, bool),
}

/// The types of events that tenants publish.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "each is a type of the catalogue")]
pub enum Kind {
    BookingCreated,
    BookingCancelled,
}

impl Kind {
    /// The type's name in the catalogue.
    pub fn name(self) -> &'static str {
        match self {
            Self::BookingCreated => "booking.created",
            Self::BookingCancelled => "booking.cancelled",
        }
    }

    fn draw(rng: &mut Rng) -> Self {
        if rng.u8(0..3) > 0 { Self::BookingCreated } else { Self::BookingCancelled }
    }
}

/// An idempotency key, identified by a number.
pub type Key = u8;

impl Plan {
    /// The plan for a seed.
    pub fn draw(seed: u64) -> Self {
        let draws = Draws::new(seed);
        match draws.about(&"kind of plan").u8(0..64) {
            0 => apart::draw(seed, draws),
            1..=3 => geo_ip::draw(seed, draws),
            4..=7 => feeds::draw(seed, draws).ordered(draws).paused(draws).replaying(draws),
            _ => Self::mixed(seed, draws, true).ordered(draws).paused(draws).replaying(draws),
        }
    }

    /// A plan with steps about webhooks and, if `with_others`, about the other parts as well.
    fn mixed(seed: u64, draws: Draws, with_others: bool) -> Self {
        let rng = &mut draws.about(&"plan");
        let chances = if rng.u8(0..10) == 0 { Chances::none() } else { Chances::draw(rng) };
        let mut steps = Vec::new();
        for tenant in 0..TENANTS {
            for webhook in 0..rng.usize(1..=WEBHOOKS) {
                let kind = rng.bool().then(|| Kind::draw(rng));
                steps.push((Duration::from_millis(rng.u64(0..2_000)), Action::Register((tenant, webhook), kind)));
            }
        }
        // Some histories are dense, and some last an hour.
        let length = Duration::from_secs_f64(30.0 + 3_600.0 * rng.f64().powi(3));
        let weights = Weights::draw(rng);
        // Short plans are frequent; long ones reach states that require many earlier steps.
        let count = 12 + (70.0 * rng.f64().powi(2)) as usize;
        for _ in 0..count {
            let at = Duration::from_secs(2) + length.mul_f64(rng.f64());
            steps.push((at, weights.action(rng)));
        }
        steps.sort_by_key(|(at, _)| *at);
        let numbered = |from: usize, steps: Vec<(Duration, Action)>| {
            let steps = steps.into_iter().enumerate();
            steps.map(move |(number, (at, action))| Step { number: from + number, at, action })
        };
        let of_tokens = oauth::plan(draws, length).into_iter().map(|(at, action)| (at, Action::OAuth(action)));
        let of_providers =
            providers::plan(draws, length).into_iter().map(|(at, action)| (at, Action::Providers(action)));
        let mut steps: Vec<_> = numbered(0, steps).collect();
        let mut others: Vec<_> =
            numbered(10_000, of_tokens.collect()).chain(numbered(20_000, of_providers.collect())).collect();
        others.retain(|_| with_others);
        // Most histories about other parts have only a few steps about webhooks, which would otherwise take up most of
        // the time.
        if !others.is_empty() && draws.about(&"few webhooks").u8(0..4) > 0 {
            steps.retain(|step| step.number % 8 == 0);
        }
        steps.extend(others);
        steps.sort_by_key(|step| step.at);
        let plan = Self { seed, kind: PlanKind::Mixed, chances, steps, speed: 1, order: None };
        if draws.about(&"short").u8(0..8) > 0 { plan.shortened(&mut draws.about(&"shortened")) } else { plan }
    }

    /// A plan with some of the steps, closer together and with more frequent faults. Most bugs need a few steps and one
    /// or two faults, and ten such histories take as long as a long one.
    fn shortened(mut self, rng: &mut Rng) -> Self {
        let registers = |step: &Step| matches!(step.action, Action::Register(..));
        let is_first = |step: &Step| matches!(step.action, Action::Register((_, webhook), _) if webhook == 0);
        let others = self.steps.iter().filter(|step| !registers(step)).count();
        let kept = rng.usize(SHORT / 2..=SHORT).min(others);
        let mut numbers: Vec<_> = self.steps.iter().filter(|step| !registers(step)).map(|step| step.number).collect();
        rng.shuffle(&mut numbers);
        numbers.truncate(kept);
        self.steps.retain(|step| is_first(step) || numbers.contains(&step.number));
        self.chances = self.chances.times(4);
        let times = rng.u32(1..=20);
        self.steps.iter_mut().for_each(|step| step.at /= times);
        if rng.bool() {
            self.add_changes(rng);
        }
        self
    }

    /// Soon after each publish request, adds a change to a webhook or throttling, so that it often coincides with an
    /// attempt in progress.
    fn add_changes(&mut self, rng: &mut Rng) {
        let mut changes = Vec::new();
        for step in &self.steps {
            let (Action::Publish(tenant, ..) | Action::PutOnBus(tenant, _)) = step.action else { continue };
            let slot = (tenant, 0);
            let action = match rng.u8(0..7) {
                0 | 1 => Action::Enable(slot, false),
                2 => Action::Enable(slot, true),
                3 | 4 => Action::Move(slot),
                5 => Action::Remove(slot),
                _ => Action::Throttle(tenant, Duration::from_secs_f64(8.0 * rng.f64())),
            };
            let at = step.at + Duration::from_secs_f64(8.0 * rng.f64().powi(2));
            changes.push(Step { number: 30_000 + changes.len(), at, action });
        }
        self.steps.extend(changes);
        self.steps.sort_by_key(|step| step.at);
    }

    /// This plan with only these steps, by number.
    pub fn only(mut self, numbers: &[usize]) -> Self {
        self.steps.retain(|step| numbers.contains(&step.number));
        self
    }

    /// This plan with only these kinds of faults.
    pub fn with_faults(mut self, kinds: &[Fault]) -> Self {
        self.chances = self.chances.only(kinds);
        self
    }

    /// This plan with steps that follow each other this many times faster.
    pub fn faster(mut self, times: u32) -> Self {
        self.steps.iter_mut().for_each(|step| step.at /= times);
        self.speed *= times;
        self
    }

    /// The command that replays this plan.
    pub fn command(&self) -> String {
        let join = |parts: Vec<String>| if parts.is_empty() { "none".to_owned() } else { parts.join(",") };
        let steps = join(self.steps.iter().map(|step| step.number.to_string()).collect());
        let faults = join(self.chances.kinds().map(|kind| kind.name().to_owned()).collect());
        let speed = if self.speed == 1 { String::new() } else { format!(" SPEED={}", self.speed) };
        format!("make simulate SEED={} STEPS={steps} FAULTS={faults}{speed}", self.seed)
    }

    /// The time of the last step.
    pub fn length(&self) -> Duration {
        self.steps.last().map(|step| step.at).unwrap_or_default()
    }
}

/// The index of a random weight, chosen with a probability that is proportional to the weight.
pub fn choose(weights: &[u32], rng: &mut Rng) -> usize {
    let mut left = rng.u32(0..weights.iter().sum());
    let mut choice = 0;
    while left >= weights[choice] {
        left -= weights[choice];
        choice += 1;
    }
    choice
}

/// The steps in chronological order.
fn in_order(mut steps: Vec<(Duration, Action)>) -> Vec<Step> {
    steps.sort_by_key(|(at, _)| *at);
    let steps = steps.into_iter().enumerate();
    steps.map(|(number, (at, action))| Step { number, at, action }).collect()
}

/// The relative frequency of each action in a history.
struct Weights([u32; 14]);

impl Weights {
    fn draw(rng: &mut Rng) -> Self {
        // Publishing always occurs; every other action occurs only in some histories.
        let mut weights = [40, 10, 4, 2, 1, 3, 4, 3, 8, 6, 14, 3, 1, 2];
        for weight in &mut weights[1..] {
            *weight = if rng.u8(0..3) == 0 { 0 } else { *weight * rng.u32(1..4) };
        }
        Self(weights)
    }

    fn action(&self, rng: &mut Rng) -> Action {
        let choice = choose(&self.0, rng);
        let tenant = rng.usize(0..TENANTS);
        let slot = (tenant, rng.usize(0..WEBHOOKS));
        match choice {
            0 => Action::Publish(tenant, Kind::draw(rng), rng.bool().then(|| rng.u8(0..12))),
            1 => Action::PutOnBus(tenant, Kind::draw(rng)),
            2 => Action::Enable(slot, rng.u8(0..3) > 0),
            3 => Action::Move(slot),
            4 => Action::Remove(slot),
            5 => Action::Rotate(slot),
            6 => Action::Test(slot),
            7 => Action::Resume(slot),
            8 => Action::Resend(tenant, rng.u8(..)),
            9 => Action::Recover(slot, rng.u8(1..60)),
            10 => Action::React(slot, Mood::draw(rng)),
            11 => Action::Throttle(tenant, Duration::from_secs_f64(60.0 * rng.f64().powi(2))),
            12 => Action::LoseSecrets(Duration::from_secs_f64(120.0 * rng.f64().powi(2))),
            _ => Action::Expire,
        }
    }
}
