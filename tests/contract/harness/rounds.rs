//! Rounds of a test that a pause of the machine can spoil.

/// Plays rounds until one counts, and panics if none of so many does. A round returns whether it counts: one that a
/// pause has spoiled shows nothing, and a fault of the service panics in it.
pub async fn until_a_round_counts(rounds: usize, spoiled: &str, mut round: impl AsyncFnMut() -> bool) {
    for _ in 0..rounds {
        if round().await {
            return;
        }
    }
    panic!("in each of {rounds} rounds, {spoiled}");
}
