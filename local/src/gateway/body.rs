//! Reading a request's body within limits on its size and on the time to receive it.

use std::time::Duration;

use axum::body::Body;
use http::{HeaderMap, header::EXPECT};
use http_body_util::BodyExt;
use hyper::body::Body as _;
use tokio::time;

use super::refusal::{self, Refusal};

/// The largest body that API Gateway accepts.
const MAX_BODY: usize = 10 * 1024 * 1024;

/// The limits on reading the rest of a refused body: a client whose connection is reset while it is sending may never
/// see the response.
const MAX_DISCARDED: usize = 64 * 1024 * 1024;
const DISCARDING: Duration = Duration::from_secs(5);

/// The timeouts for receiving a body.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// The timeout between one part and the next.
    pub pause: Duration,
    /// The timeout for the whole body.
    pub whole: Duration,
}

/// The gateway's limits.
pub const TIMEOUTS: Timeouts = Timeouts { pause: Duration::from_secs(5), whole: Duration::from_secs(30) };

/// Reads the whole body. If the announced length is too large, the body is refused without being read.
pub async fn read(headers: &HeaderMap, mut body: Body, timeouts: Timeouts) -> Result<Vec<u8>, Refusal> {
    let announced = body.size_hint().lower();
    let refusal = if announced > MAX_BODY as u64 {
        refusal::of_large_body(MAX_BODY)
    } else {
        let mut whole = Vec::new();
        match time::timeout(timeouts.whole, collect(&mut body, &mut whole, timeouts.pause)).await {
            Ok(Ok(())) => return Ok(whole),
            Ok(Err(refusal)) => refusal,
            Err(_) => refusal::of_slow_body(),
        }
    };
    leave(headers, body);
    Err(refusal)
}

/// Discards the rest of a refused request's body.
pub fn leave(headers: &HeaderMap, body: Body) {
    // A client that sent `Expect: 100-continue` gets the refusal instead, so it sends no body.
    let asks_first = headers.get(EXPECT).is_some_and(|value| value.as_bytes().eq_ignore_ascii_case(b"100-continue"));
    if !asks_first && !body.is_end_stream() {
        tokio::spawn(time::timeout(DISCARDING, discard(body)));
    }
}

async fn collect(body: &mut Body, whole: &mut Vec<u8>, pause: Duration) -> Result<(), Refusal> {
    loop {
        let frame = time::timeout(pause, body.frame()).await.map_err(|_| refusal::of_slow_body())?;
        let Some(frame) = frame else { return Ok(()) };
        let Ok(data) = frame.map_err(refusal::broken_off)?.into_data() else { continue };
        if whole.len() + data.len() > MAX_BODY {
            return Err(refusal::of_large_body(MAX_BODY));
        }
        whole.extend_from_slice(&data);
    }
}

async fn discard(mut body: Body) {
    let mut discarded = 0;
    while let Some(Ok(frame)) = body.frame().await {
        discarded += frame.data_ref().map_or(0, |data| data.len());
        if discarded > MAX_DISCARDED {
            return;
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::body::Bytes;
    use futures::{StreamExt, stream};

    use super::*;

    const SHORT: Duration = Duration::from_millis(20);
    const LONG: Duration = Duration::from_secs(60);

    /// Reads a body made of these parts, each sent after a pause. Returns the body's length, or the refusal's status.
    async fn read_parts(parts: usize, size: usize, pause: Duration, timeouts: Timeouts) -> Result<usize, u16> {
        let part = Bytes::from(vec![b'x'; size]);
        let parts = stream::iter(std::iter::repeat_n(part, parts)).then(move |part| async move {
            if !pause.is_zero() {
                time::sleep(pause).await;
            }
            Ok::<_, std::io::Error>(part)
        });
        let read = read(&HeaderMap::new(), Body::from_stream(parts), timeouts).await;
        read.map(|whole| whole.len()).map_err(|refusal| refusal.into_response("", "").status().as_u16())
    }

    #[tokio::test]
    async fn a_body_is_read_up_to_the_limit() {
        let patient = Timeouts { pause: LONG, whole: LONG };
        assert_eq!(read_parts(0, 0, Duration::ZERO, patient).await, Ok(0));
        assert_eq!(read_parts(10, MAX_BODY / 10, Duration::ZERO, patient).await, Ok(MAX_BODY));
        assert_eq!(read_parts(10, MAX_BODY / 10 + 1, Duration::ZERO, patient).await, Err(413));
        assert_eq!(read_parts(usize::MAX, 0x10_0000, Duration::ZERO, patient).await, Err(413), "without end");
    }

    #[tokio::test]
    async fn a_body_that_arrives_too_slowly_is_refused() {
        assert_eq!(read_parts(2, 1, LONG, Timeouts { pause: SHORT, whole: LONG }).await, Err(408));
        assert_eq!(read_parts(usize::MAX, 1, SHORT / 10, Timeouts { pause: LONG, whole: SHORT }).await, Err(408));
    }
}
