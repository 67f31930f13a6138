//! The two implementations, and the cases.

use std::{
    future::Future,
    pin::Pin,
    sync::atomic::{AtomicU32, Ordering},
};

use aws_config::{BehaviorVersion, Region, SdkConfig};
use aws_sdk_secretsmanager::config::{Credentials, SharedCredentialsProvider};

/// A case and, if it runs only against the stand-ins, the reason.
#[derive(Clone, Copy)]
pub struct Case {
    pub name: &'static str,
    pub run: fn(Side) -> Pin<Box<dyn Future<Output = ()> + Send>>,
    pub here_alone: Option<&'static str>,
}

/// `CASES`: the functions that run against both implementations, and those that run only against the stand-ins, with
/// reasons.
macro_rules! cases {
    ($($name:ident),* ; $($alone:ident: $why:literal,)*) => {
        pub const CASES: &[$crate::side::Case] = &[
            $($crate::side::Case {
                name: concat!(module_path!(), "::", stringify!($name)),
                run: |side| Box::pin($name(side)),
                here_alone: None,
            },)*
            $($crate::side::Case {
                name: concat!(module_path!(), "::", stringify!($alone)),
                run: |side| Box::pin($alone(side)),
                here_alone: Some($why),
            },)*
        ];
    };
}
pub(crate) use cases;

/// One of the two implementations.
#[derive(Clone)]
pub struct Side {
    config: SdkConfig,
}

impl Side {
    pub fn new(url: String) -> Self {
        let credentials = Credentials::new("test", "test", None, None, "conformance");
        let config = SdkConfig::builder()
            .behavior_version(BehaviorVersion::latest())
            .region(Region::from_static("us-east-1"))
            .credentials_provider(SharedCredentialsProvider::new(credentials))
            .endpoint_url(url)
            .build();
        Self { config }
    }

    pub fn secrets(&self) -> aws_sdk_secretsmanager::Client {
        aws_sdk_secretsmanager::Client::new(&self.config)
    }

    pub fn queues(&self) -> aws_sdk_sqs::Client {
        aws_sdk_sqs::Client::new(&self.config)
    }

    /// A name that no other case uses.
    pub fn unique(&self, name: &str) -> String {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        format!("{name}-{}", NEXT.fetch_add(1, Ordering::Relaxed))
    }
}
