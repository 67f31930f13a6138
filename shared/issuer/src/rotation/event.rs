//! The event with which Secrets Manager, or the operator, asks for a step of a rotation.

use serde::Deserialize;

/// A request for one step.
#[derive(Debug, Clone, Deserialize)]
#[serde(rename_all = "PascalCase")]
pub struct RotationEvent {
    /// The step.
    pub step: Step,
    /// The secret's name or ARN.
    pub secret_id: String,
    /// The name of the version that the rotation makes.
    pub client_request_token: String,
}

/// A step of the rotation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Step {
    /// Makes the new version.
    CreateSecret,
    /// Publishes its new key.
    SetSecret,
    /// Tries its keys.
    TestSecret,
    /// Makes it the current one.
    FinishSecret,
}

impl Step {
    /// All steps, in their order.
    pub const ALL: [Self; 4] = [Self::CreateSecret, Self::SetSecret, Self::TestSecret, Self::FinishSecret];

    /// The step's name in an event.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::CreateSecret => "createSecret",
            Self::SetSecret => "setSecret",
            Self::TestSecret => "testSecret",
            Self::FinishSecret => "finishSecret",
        }
    }
}
