//! A run's plan: the template, the functions and the settings, read and checked before anything starts.

use auth::signing::SigningAlgorithm;
use base::{environment, logging::LogSettings};
use geo_ip::{StoreAddress, settings::FetchSettings};
use issuer::{
    oauth::guesses::GuessSettings,
    panel::{frame_ancestors::FrameAncestors, look::PanelLook},
    settings::{SigningSettings, TokenSettings},
};
use outbound::AddressRules;
use payments::panel::PanelSettings;
use webhooks::{
    deliveries::state::schedule::ScheduleSettings,
    events::{publish::UnmatchedEvents, share::ShareSettings, subject::SubjectMembers, validation::EventValidation},
    subscriptions::health::breaker::BreakerSettings,
};

use template::{Function, Template};

use crate::{
    Arguments,
    preflight::{self, Missing, Programs},
    settings::{Settings, SettingsError},
    test_overrides::TestOverrides,
};

/// A run's input.
pub struct Plan<'a> {
    /// The functions, their triggers, the table and the queues.
    pub template: Template,
    /// The functions that run.
    pub functions: Vec<Function>,
    /// The functions' programs.
    pub programs: Programs,
    /// The values for the template's parameters.
    pub settings: Settings,
    /// The algorithm for new token signing keys.
    pub signing_algorithm: SigningAlgorithm,
    /// How long tokens are valid, in seconds.
    pub token_lifetime: u32,
    /// The ports and programs that a test chooses.
    pub overrides: &'a TestOverrides,
}

/// Why a plan cannot be made.
#[derive(Debug, thiserror::Error)]
pub enum PlanError {
    #[error(transparent)]
    Missing(#[from] Missing),
    #[error("--only names the function `{0}`, which template.yaml does not declare")]
    NoFunction(String),
    #[error(transparent)]
    Settings(#[from] SettingsError),
    #[error(
        "GEO_IP_STORE names a bucket, but there is no S3 on one machine: set it to a folder, or leave it unset to \
             use the data folder"
    )]
    NoS3,
    #[error(transparent)]
    FunctionSettings(#[from] environment::SettingsError),
}

impl<'a> Plan<'a> {
    /// Reads the project's template, finds the programs and reads the settings.
    pub fn read(arguments: &'a Arguments) -> Result<Self, PlanError> {
        let overrides = &arguments.overrides;
        let template = preflight::template(&arguments.project)?;
        let functions = chosen(&template, overrides.only.as_deref())?;
        let programs = Programs::find(overrides.binaries.as_deref(), &functions)?;
        #[expect(clippy::disallowed_methods, reason = "the settings of a local run are its environment")]
        let settings = Settings::read(&template, |name| std::env::var(name).ok())?;
        if matches!(settings.geo_ip_store, Some(StoreAddress::S3 { .. })) && overrides.s3.is_none() {
            return Err(PlanError::NoS3);
        }
        // The functions read these settings themselves. Reading them here reports a fault before it makes a function
        // fail to start.
        type Issuing = (TokenSettings, SigningSettings, GuessSettings);
        type Sending = (AddressRules, ScheduleSettings, BreakerSettings, ShareSettings);
        type Panel = (FrameAncestors, PanelLook);
        type Rest = (LogSettings, FetchSettings, (SubjectMembers, UnmatchedEvents, EventValidation), Panel);
        let ((tokens, signing, _), _, _) = environment::read::<(Issuing, Sending, Rest)>()?;
        if settings.parameters.get("AdminPanelUrl").is_some_and(|address| !address.is_empty()) {
            environment::read::<PanelSettings>()?;
        }
        Ok(Self {
            template,
            functions,
            programs,
            settings,
            signing_algorithm: signing.algorithm,
            token_lifetime: tokens.lifetime,
            overrides,
        })
    }
}

/// The functions with these names, or all functions.
fn chosen(template: &Template, only: Option<&[String]>) -> Result<Vec<Function>, PlanError> {
    let Some(names) = only else { return Ok(template.functions().to_vec()) };
    let function = |name: &String| template.function(name).cloned().ok_or_else(|| PlanError::NoFunction(name.clone()));
    names.iter().map(function).collect()
}
