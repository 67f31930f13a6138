//! Links into the panel.

use serde_json::Value;

use super::Entity;

impl Entity {
    /// A new link into the panel.
    pub async fn new_panel_link(&self, properties: Value) -> Value {
        self.post("/panel/link").json(&properties).expect(201).await.json()
    }

    /// The address of a new link.
    pub async fn panel_link(&self, properties: Value) -> String {
        self.new_panel_link(properties).await["url"].as_str().expect("openapi.yaml says so").to_owned()
    }
}
