//! Panel links.

use serde_json::Value;

use super::Entity;

impl Entity {
    /// A new panel link, as the service returns it.
    pub async fn new_panel_link(&self, properties: Value) -> Value {
        self.post("/panel/link").json(&properties).expect(201).await.json()
    }

    /// The first page of valid links, newest first.
    pub async fn panel_links(&self) -> Vec<Value> {
        let page = self.get("/panel/link/list").expect(200).await.json();
        page["items"].as_array().expect("openapi.yaml says so").clone()
    }

    /// The URL of a new link.
    pub async fn panel_link(&self, properties: Value) -> String {
        self.new_panel_link(properties).await["url"].as_str().expect("openapi.yaml says so").to_owned()
    }
}
