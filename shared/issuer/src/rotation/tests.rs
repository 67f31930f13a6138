//! A rotation's steps, each done twice, and interrupted at every external call.

use std::sync::{Arc, Mutex};

use serde_json::Value;

use super::*;
use auth::{jws::JwsFault, keys::last_token_of_a_retired_key, signing::SigningAlgorithm};
use base::{Clock, testing::FixedClock};
use storage::{SecretError, TableError, secrets::versions::CURRENT};

const START: Time = Time::from_millis(1_795_167_900_123);
const LIFETIME: u32 = 3600;

/// The external call where the rotation stops.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Stop {
    /// Stops before this call.
    Before(usize),
    /// Stops after this call: it takes effect, but its response is lost.
    After(usize),
}

/// Secrets Manager and the table in memory.
#[derive(Default)]
struct Outside {
    versions: Vec<Version>,
    published: Published,
    calls: usize,
    stop: Option<Stop>,
    /// An action by another party, just before the call with this number.
    interruption: Option<(usize, Interruption)>,
}

type Interruption = Box<dyn FnOnce(&mut Outside) + Send>;

#[derive(Clone, Default)]
struct World(Arc<Mutex<Outside>>);

impl World {
    /// Makes a call, unless the rotation stops there.
    fn call<T>(&self, call: impl FnOnce(&mut Outside) -> T) -> Option<T> {
        let mut outside = self.0.lock().expect("no call panics");
        outside.calls += 1;
        if outside.interruption.as_ref().is_some_and(|(at, _)| *at == outside.calls) {
            let (_, interrupt) = outside.interruption.take().expect("it is there");
            interrupt(&mut outside);
        }
        if outside.stop == Some(Stop::Before(outside.calls)) {
            return None;
        }
        let answer = call(&mut outside);
        (outside.stop != Some(Stop::After(outside.calls))).then_some(answer)
    }

    fn look<T>(&self, look: impl FnOnce(&mut Outside) -> T) -> T {
        look(&mut self.0.lock().expect("no call panics"))
    }

    fn current(&self) -> SigningKeys {
        let current = self.look(|outside| outside.versions.iter().find(|version| version.is(CURRENT)).cloned());
        keys_of(&current.expect("there is always one")).expect("keys")
    }

    fn published(&self) -> Published {
        self.look(|outside| outside.published.clone())
    }
}

fn stopped() -> SecretError {
    SecretError::Unavailable { name: SECRET.to_owned(), reason: "stopped".to_owned() }
}

fn out_of_reach() -> TableError {
    TableError::code("calling the table", "stopped")
}

impl Versioned for World {
    fn is_called(&self, id: &str) -> bool {
        id == SECRET
    }

    async fn current(&self) -> Result<Version, SecretError> {
        let current = |outside: &mut Outside| outside.versions.iter().find(|version| version.is(CURRENT)).cloned();
        Ok(self.call(current).ok_or_else(stopped)?.expect("there is always one"))
    }

    async fn version(&self, id: &str) -> Result<Option<Version>, SecretError> {
        self.call(|outside| outside.versions.iter().find(|version| version.id == id).cloned()).ok_or_else(stopped)
    }

    async fn put(&self, id: &str, value: &Value, label: &str) -> Result<(), SecretError> {
        let version = Version { id: id.to_owned(), labels: vec![label.to_owned()], value: value.clone() };
        self.call(|outside| {
            assert!(outside.versions.iter().all(|version| version.id != id), "a version is made once");
            outside.versions.push(version);
        })
        .ok_or_else(stopped)
    }

    async fn make_current(&self, id: &str, in_place_of: &str) -> Result<(), SecretError> {
        let moved = self.call(|outside| {
            if !outside.versions.iter().any(|version| version.is(CURRENT) && version.id == in_place_of) {
                return false;
            }
            for version in &mut outside.versions {
                version.labels.retain(|label| label != CURRENT);
                if version.id == id {
                    version.labels.push(CURRENT.to_owned());
                }
            }
            true
        });
        moved.filter(|moved| *moved).map(drop).ok_or_else(stopped)
    }

    async fn pending(&self) -> Result<Option<Version>, SecretError> {
        self.call(|outside| outside.versions.iter().find(|version| version.is(PENDING)).cloned()).ok_or_else(stopped)
    }

    async fn take_label(&self, id: &str, label: &str) -> Result<(), SecretError> {
        let taken = self.call(|outside| {
            let version = outside.versions.iter_mut().find(|version| version.id == id).expect("it exists");
            version.labels.extract_if(.., |own| own == label).count()
        });
        // Secrets Manager does not remove a missing label.
        taken.filter(|taken| *taken == 1).map(drop).ok_or_else(stopped)
    }
}

impl Publication for World {
    async fn read(&self) -> Result<Published, TableError> {
        self.call(|outside| outside.published.clone()).ok_or_else(out_of_reach)
    }

    async fn change<C: Send>(&self, change: impl Fn(&mut Published) -> C + Send + Sync) -> Result<C, TableError> {
        self.call(|outside| change(&mut outside.published)).ok_or_else(out_of_reach)
    }
}

struct Deployment {
    world: World,
    clock: FixedClock,
    rotation: Rotation<World, World>,
}

impl Deployment {
    /// A deployment that was provisioned an hour ago.
    fn new(algorithm: SigningAlgorithm) -> Self {
        let world = World::default();
        let clock = FixedClock::at(START);
        let secret = SigningSecret::fresh(SigningAlgorithm::Es256);
        world.look(|outside| {
            let labels = vec![CURRENT.to_owned()];
            outside.versions.push(Version { id: "first".to_owned(), labels, value: secret.value() });
            let keys = secret.keys().expect("keys");
            let begun = START - Duration::from_secs(3600);
            outside.published.settle(&keys, LIFETIME, begun).expect("none is revoked");
        });
        let rotation = Rotation {
            secret: world.clone(),
            published: world.clone(),
            settings: SigningSettings { algorithm },
            lifetime: LIFETIME,
            environment: "test".to_owned(),
            clock: Arc::new(clock.clone()),
        };
        Self { world, clock, rotation }
    }

    async fn step(&self, step: Step, id: &str) -> Result<(), RotationError> {
        let event = RotationEvent { step, secret_id: SECRET.to_owned(), client_request_token: id.to_owned() };
        let outcome = self.rotation.step(event).await;
        // At any time, all verifiers know the key that signs.
        let current = self.world.current().current;
        let now = self.clock.now();
        let published = self.world.published();
        let published = published.get(current.kid(), now).expect("the signing key is published");
        assert!(published.published + LEAD <= now && published.until.is_none());
        outcome
    }

    async fn rotate(&self, id: &str) -> Result<(), RotationError> {
        for step in Step::ALL {
            self.step(step, id).await?;
        }
        Ok(())
    }

    /// Asserts the state after one rotation, regardless of interruptions.
    fn assert_rotated(&self, before: &SigningKeys, context: &str) {
        let after = self.world.current();
        let published = self.world.published();
        assert_eq!(after.current.kid(), before.next.kid(), "{context}");
        assert_ne!(after.next.kid(), before.current.kid(), "{context}");
        let ends: Vec<_> = published.keys.iter().map(|key| (key.key.kid(), key.until)).collect();
        let end = last_token_of_a_retired_key(LIFETIME, self.clock.now());
        let expected = [(before.current.kid(), Some(end)), (before.next.kid(), None), (after.next.kid(), None)];
        assert_eq!(ends, expected, "{context}");
        let pending = self.world.look(|outside| outside.versions.iter().any(|version| version.is(PENDING)));
        assert!(!pending, "a label that Secrets Manager would wait for: {context}");
    }
}

/// The operator's emergency command, all at once.
fn emergency(outside: &mut Outside, secret: &SigningSecret, now: Time) {
    let mut revoked = Vec::new();
    for version in &mut outside.versions {
        let keys = keys_of(version).expect("keys");
        revoked.extend([keys.current.kid().to_owned(), keys.next.kid().to_owned()]);
        version.labels.clear();
    }
    let id = "emergency".to_owned();
    let labels = vec![CURRENT.to_owned()];
    outside.versions.push(Version { id, labels, value: secret.value() });
    outside.published.revoke_others(&secret.keys().expect("keys"), &revoked, now).expect("the new ones are good");
}

#[tokio::test]
async fn a_rotation_lets_the_next_key_sign_and_publishes_the_one_after_it() {
    for algorithm in SigningAlgorithm::ALL {
        let deployment = Deployment::new(algorithm);
        let before = deployment.world.current();
        deployment.rotate("second").await.expect("rotated");
        deployment.assert_rotated(&before, "once");
        assert_eq!(deployment.world.current().next.algorithm(), algorithm);

        // A retired key is removed by the first rotation after its last token has expired.
        deployment.clock.set(last_token_of_a_retired_key(LIFETIME, START));
        let before = deployment.world.current();
        deployment.rotate("third").await.expect("rotated");
        deployment.assert_rotated(&before, "twice");
        assert_eq!(deployment.world.current().current.algorithm(), algorithm);
    }
}

#[tokio::test]
async fn each_step_is_idempotent() {
    let deployment = Deployment::new(SigningAlgorithm::Es256);
    let before = deployment.world.current();
    for step in Step::ALL {
        deployment.step(step, "second").await.expect("done");
        let once = deployment.world.look(|outside| format!("{:?} {:?}", outside.versions, outside.published));
        deployment.step(step, "second").await.expect("done again");
        let twice = deployment.world.look(|outside| format!("{:?} {:?}", outside.versions, outside.published));
        assert_eq!(once, twice, "{step:?}");
    }
    deployment.assert_rotated(&before, "each step twice");
    deployment.rotate("second").await.expect("all over again");
    deployment.assert_rotated(&before, "all over again");
}

#[tokio::test]
async fn repeating_the_steps_finishes_a_rotation_stopped_anywhere() {
    let whole = Deployment::new(SigningAlgorithm::Es256);
    whole.rotate("second").await.expect("rotated");
    let calls = whole.world.look(|outside| outside.calls);
    assert!(calls > 8);
    for call in 1..=calls {
        for stop in [Stop::Before(call), Stop::After(call)] {
            let deployment = Deployment::new(SigningAlgorithm::Es256);
            let before = deployment.world.current();
            deployment.world.look(|outside| outside.stop = Some(stop));
            deployment.rotate("second").await.expect_err("stopped");
            deployment.world.look(|outside| outside.stop = None);
            deployment.rotate("second").await.expect("finished");
            deployment.assert_rotated(&before, &format!("{stop:?}"));
        }
    }
}

#[tokio::test]
async fn the_next_rotation_cleans_up_after_an_abandoned_one() {
    let deployment = Deployment::new(SigningAlgorithm::Es256);
    let before = deployment.world.current();
    for step in &Step::ALL[..3] {
        deployment.step(*step, "given up").await.expect("done");
    }
    let orphan = keys_of(&deployment.world.look(|outside| outside.versions[1].clone())).expect("keys").next;
    deployment.rotate("second").await.expect("rotated");
    assert_eq!(deployment.world.current().current.kid(), before.next.kid());
    assert!(deployment.world.published().get(orphan.kid(), START).expect("for a while").until.is_some());

    // The last write of this rotation is lost, but the old key still gets its end.
    let deployment = Deployment::new(SigningAlgorithm::Es256);
    let before = deployment.world.current();
    for step in &Step::ALL[..3] {
        deployment.step(*step, "second").await.expect("done");
    }
    deployment.world.look(|outside| outside.stop = Some(Stop::After(outside.calls + 4)));
    deployment.step(Step::FinishSecret, "second").await.expect_err("stopped after the promotion");
    assert_eq!(deployment.world.current().current.kid(), before.next.kid());
    let end = |kid: &str| deployment.world.published().get(kid, START).expect("published").until;
    assert_eq!(end(before.current.kid()), None);
    deployment.world.look(|outside| outside.stop = None);
    deployment.clock.set(START + LEAD);
    deployment.rotate("third").await.expect("rotated");
    assert!(end(before.current.kid()).is_some());
}

#[tokio::test]
async fn a_recently_published_key_does_not_sign_yet() {
    let deployment = Deployment::new(SigningAlgorithm::Es256);
    deployment.rotate("second").await.expect("rotated");
    deployment.clock.set(START + LEAD - Duration::from_millis(1));
    let error = deployment.rotate("third").await.expect_err("too early");
    assert!(matches!(error, RotationError::TooYoung { ready, .. } if ready == START + LEAD), "{error}");
    deployment.clock.set(START + LEAD);
    deployment.rotate("third").await.expect("late enough");
}

#[tokio::test]
async fn a_key_that_is_no_longer_published_never_signs() {
    let deployment = Deployment::new(SigningAlgorithm::Es256);
    for step in &Step::ALL[..3] {
        deployment.step(*step, "second").await.expect("done");
    }
    let before = deployment.world.current();
    let now = deployment.clock.now();
    // After an emergency, no key remains that others may have.
    deployment.world.look(|outside| {
        outside.published.keys.retain(|known| known.key.kid() == before.current.kid());
        assert!(outside.published.get(before.next.kid(), now).is_none());
    });
    let error = deployment.step(Step::FinishSecret, "second").await.expect_err("refused");
    assert!(matches!(&error, RotationError::NotPublished(kid) if *kid == before.next.kid()), "{error}");
    assert_eq!(deployment.world.current().current.kid(), before.current.kid());
}

#[tokio::test]
async fn an_emergency_during_a_rotation_leaves_only_its_keys() {
    // Once with each step done once, and once with each done twice: repeated steps take different paths.
    for times in [1, 2] {
        let steps = || Step::ALL.into_iter().flat_map(move |step| [step].repeat(times));
        let whole = Deployment::new(SigningAlgorithm::Es256);
        for step in steps() {
            whole.step(step, "second").await.expect("done");
        }
        for call in 1..=whole.world.look(|outside| outside.calls) {
            let deployment = Deployment::new(SigningAlgorithm::Es256);
            let secret = SigningSecret::fresh(SigningAlgorithm::Es256);
            let replacing = secret.clone();
            let interrupt = move |outside: &mut Outside| emergency(outside, &replacing, START - LEAD);
            deployment.world.look(|outside| outside.interruption = Some((call, Box::new(interrupt))));
            for step in steps() {
                // Whether the step is refused depends on the moment. Secrets Manager requests no step after a failed
                // one.
                drop(deployment.step(step, "second").await);
            }
            let keys = secret.keys().expect("keys");
            let now_signing = deployment.world.current();
            let published = deployment.world.published();
            for known in &published.keys {
                // The rotation may have begun after the emergency, in which case it continued from the new keys.
                let one_of_the_new = [keys.current.kid(), keys.next.kid(), now_signing.next.kid()];
                assert!(one_of_the_new.contains(&known.key.kid()), "{times} {call}");
            }
            let pending = deployment.world.look(|outside| outside.versions.iter().any(|version| version.is(PENDING)));
            assert!(!pending, "{times} {call}");
            deployment.clock.set(START + LEAD);
            let before = deployment.world.current();
            deployment.rotate("third").await.expect("rotated");
            assert_eq!(deployment.world.current().current.kid(), before.next.kid(), "{times} {call}");
        }
    }
}

#[tokio::test]
async fn a_label_left_behind_by_a_rotation_is_removed_from_any_version() {
    let deployment = Deployment::new(SigningAlgorithm::Es256);
    assert!(deployment.world.abandon_pending().await.expect("asked").is_none());
    deployment.world.look(|outside| outside.versions[0].labels.push(PENDING.to_owned()));
    let abandoned = deployment.world.abandon_pending().await.expect("taken away").expect("there was one");
    assert!(abandoned.is(CURRENT));
    deployment.world.look(|outside| assert_eq!(outside.versions[0].labels, [CURRENT]));

    deployment.step(Step::CreateSecret, "second").await.expect("done");
    assert_eq!(deployment.world.abandon_pending().await.expect("taken away").expect("there was one").id, "second");
    let error = deployment.step(Step::SetSecret, "second").await.expect_err("given up");
    assert!(matches!(error, RotationError::NotPending), "{error}");
}

#[tokio::test]
async fn keys_that_do_not_fit_the_published_ones_are_refused() {
    let deployment = Deployment::new(SigningAlgorithm::Es256);
    deployment.step(Step::CreateSecret, "second").await.expect("done");
    let error = deployment.step(Step::TestSecret, "second").await.expect_err("the new key is not published");
    assert!(matches!(error, RotationError::NotPublished(_)), "{error}");
    let next = deployment.world.current().next;
    let stranger = SigningKey::generate(SigningAlgorithm::Es256).public_key();
    let mut jwk = serde_json::to_value(&stranger).expect("a JWK");
    jwk["kid"] = next.kid().into();
    deployment.world.look(|outside| {
        let known = outside.published.keys.iter_mut().find(|known| known.key.kid() == next.kid());
        known.expect("published").key = serde_json::from_value(jwk).expect("a key");
    });
    deployment.step(Step::SetSecret, "second").await.expect("done");
    let error = deployment.step(Step::TestSecret, "second").await.expect_err("another key under its name");
    assert!(matches!(error, RotationError::Unverifiable { source: JwsFault::Signature, .. }), "{error}");
}

#[tokio::test]
async fn a_step_out_of_turn_or_for_another_secret_is_refused() {
    let deployment = Deployment::new(SigningAlgorithm::Es256);
    deployment.step(Step::TestSecret, "none").await.expect("the trial of a rotation that is only configured");
    for step in [Step::SetSecret, Step::FinishSecret] {
        let error = deployment.step(step, "none").await.expect_err("nothing was made");
        assert!(matches!(error, RotationError::NotPending), "{error}");
    }
    // An earlier version never comes back.
    deployment.rotate("second").await.expect("rotated");
    let error = deployment.step(Step::FinishSecret, "first").await.expect_err("it is over");
    assert!(matches!(error, RotationError::NotPending), "{error}");

    let event: RotationEvent = serde_json::from_value(serde_json::json!({
        "Step": "finishSecret", "SecretId": "another", "ClientRequestToken": "second", "RotationToken": "unknown to us",
    }))
    .expect("an event");
    assert!(matches!(deployment.rotation.step(event).await, Err(RotationError::Foreign)));
}
