//! What agents may read by an address of its own.

use auth::Scope;
use problem::Problem;
use serde::Serialize;

use crate::{caller::Caller, desk::Desk};

/// A resource in the list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Resource {
    /// Its address.
    pub uri: String,
    /// For programs.
    pub name: String,
    /// For people.
    pub title: String,
    /// For models.
    pub description: String,
    /// The media type of its content.
    pub mime_type: &'static str,
}

/// Resources of which there are too many to list.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ResourceTemplate {
    /// The form of their addresses (RFC 6570).
    pub uri_template: &'static str,
    /// For programs.
    pub name: &'static str,
    /// For people.
    pub title: &'static str,
    /// For models.
    pub description: &'static str,
    /// The media type of their content.
    pub mime_type: &'static str,
}

/// The content of a resource.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Contents {
    /// Its address, as it was asked for.
    pub uri: String,
    /// Its media type.
    pub mime_type: &'static str,
    /// The content.
    pub text: String,
}

/// The resources that the caller may read and that are few enough to list.
pub fn list(_desk: &Desk, _caller: &Caller) -> Vec<Resource> {
    Vec::new()
}

/// The templates.
pub fn templates() -> &'static [ResourceTemplate] {
    &[]
}

/// The scopes that the resource at this address needs beside `mcp.read`.
pub fn scopes(_uri: &str) -> &'static [Scope] {
    &[]
}

/// The content of the resource at this address; `None` where there is none.
///
/// # Errors
/// The Problem of the endpoint that shows the same.
pub async fn read(_desk: &Desk, _caller: &Caller, _uri: &str) -> Result<Option<Contents>, Problem> {
    Ok(None)
}
