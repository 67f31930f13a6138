//! Panel links that an operator creates on behalf of an application. Their sessions get the application's tokens.

use std::sync::Arc;

use auth::{AuthorizedEntity, EntityId};
use base::audit::{Action, Notes};
use base::{Clock, SystemClock, SystemRandom};
use issuer::{
    applications::Applications,
    panel::{
        PanelError,
        links::{CreatedLink, LinkMaker, LinkMaking},
        new_link::NewPanelLink,
    },
};
use storage::{IdempotencyStore, Table, TableError};

use crate::{
    Deployment, DeploymentError,
    deployment::{self, Location},
};

/// Creates a deployment's panel links.
pub struct OperatorsPanelLinks {
    table: Table,
    base_url: String,
}

/// A link to create.
#[derive(Debug)]
pub struct WantedLink {
    /// The managing entity that the panel shows.
    pub entity: EntityId,
    /// The application, by its client identifier.
    pub client_id: String,
    /// The link's other properties.
    pub properties: NewPanelLink,
}

/// Why no link was created.
#[derive(Debug, thiserror::Error)]
pub enum PanelLinkError {
    /// The deployment's address is unknown.
    #[error(transparent)]
    Deployment(#[from] DeploymentError),
    /// No application has this client identifier.
    #[error(
        "there is no application {0}; `waypost-admin application list ENTITY` lists a managing entity's \
        applications"
    )]
    NoApplication(String),
    /// The application may not act for the managing entity.
    #[error(
        "the application {client_id} may not act for {entity}; `waypost-admin application show {client_id}` lists its \
         entities"
    )]
    NotCovered {
        /// The application.
        client_id: String,
        /// The managing entity.
        entity: EntityId,
    },
    /// The application could not be read.
    #[error("the application could not be read")]
    Application(#[source] TableError),
    /// The link was not created.
    #[error(transparent)]
    Link(#[from] PanelError),
}

impl PanelLinkError {
    /// Whether the current state rules out the request, in which case nothing was changed and a retry would fail again.
    pub fn is_refusal(&self) -> bool {
        match self {
            Self::Deployment(error) => error.is_refusal(),
            Self::NoApplication(_) | Self::NotCovered { .. } | Self::Link(PanelError::ExceedsScopes(_)) => true,
            Self::Application(_) | Self::Link(_) => false,
        }
    }
}

impl OperatorsPanelLinks {
    /// Creates panel links below this address.
    pub fn new(table: Table, base_url: String) -> Self {
        Self { table, base_url }
    }

    /// Creates a deployment's panel links.
    pub fn of(deployment: &Deployment) -> Result<Self, DeploymentError> {
        let base_url = match &deployment.location {
            Location::Stack(stack) => stack.output("BaseUrl")?,
            Location::Folder(folder) => folder.value("BASE_URL")?,
        };
        Ok(Self::new(deployment.table.clone(), base_url.to_owned()))
    }

    /// Creates a link, and records it in the audit trail under this deployment name.
    pub async fn create_audited(&self, wanted: WantedLink, environment: &str) -> Result<CreatedLink, PanelLinkError> {
        let notes = Notes::default();
        let created = self.make(wanted, &notes).await?;
        deployment::audit(environment, Action::CreatePanelLink, &notes);
        Ok(created)
    }

    /// Creates a link, without a line in the audit trail.
    pub async fn create(&self, wanted: WantedLink) -> Result<CreatedLink, PanelLinkError> {
        self.make(wanted, &Notes::default()).await
    }

    async fn make(&self, wanted: WantedLink, notes: &Notes) -> Result<CreatedLink, PanelLinkError> {
        let WantedLink { entity, client_id, properties } = wanted;
        let found =
            Applications::new(self.table.clone()).find(&client_id).await.map_err(PanelLinkError::Application)?;
        let application = found.ok_or_else(|| PanelLinkError::NoApplication(client_id.clone()))?;
        if !application.entities.cover(entity.as_str()) {
            return Err(PanelLinkError::NotCovered { client_id, entity });
        }
        notes.client(&client_id);
        notes.entity(entity.as_str());
        let entity = AuthorizedEntity::by_operator(entity);
        let maker = LinkMaker::of_operator(&entity, &application);
        let answers = IdempotencyStore::new(self.table.clone());
        let making = LinkMaking::new(self.table.clone(), answers, Arc::new(SystemRandom), self.base_url.clone());
        Ok(making.create(&maker, properties, notes, SystemClock.now()).await?)
    }
}
