//! A request's parameters, read strictly: any value that a real provider might refuse is refused.

use serde_json::Value;

use crate::Received;

/// The names and values, with no duplicate names.
pub(crate) struct Parameters(Vec<(String, String)>);

impl Parameters {
    /// The parameters in a query.
    pub(crate) fn of_query(received: &Received) -> Result<Self, String> {
        Self::pairs(received.path.split_once('?').map_or("", |(_, query)| query).as_bytes())
    }

    /// The parameters in a body that is sent as a form.
    pub(crate) fn of_form(received: &Received) -> Result<Self, String> {
        has_type(received, "application/x-www-form-urlencoded")?;
        Self::pairs(&received.body)
    }

    /// The parameters in a body that is sent as a JSON object of strings.
    pub(crate) fn of_json(received: &Received) -> Result<Self, String> {
        has_type(received, "application/json")?;
        let Ok(Value::Object(members)) = serde_json::from_slice(&received.body) else {
            return Err("the body is no JSON object".to_owned());
        };
        let pairs = members.into_iter().map(|(name, value)| match value {
            Value::String(value) => Ok((name, value)),
            _ => Err(format!("`{name}` is no text")),
        });
        Ok(Self(pairs.collect::<Result<_, _>>()?))
    }

    fn pairs(encoded: &[u8]) -> Result<Self, String> {
        let pairs: Vec<(String, String)> =
            form_urlencoded::parse(encoded).map(|(name, value)| (name.into_owned(), value.into_owned())).collect();
        let mut names: Vec<&str> = pairs.iter().map(|(name, _)| name.as_str()).collect();
        names.sort_unstable();
        match names.windows(2).find(|pair| pair[0] == pair[1]) {
            Some(pair) => Err(format!("`{}` comes twice", pair[0])),
            None => Ok(Self(pairs)),
        }
    }

    /// A value that is present and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0
            .iter()
            .find(|(given, _)| given == name)
            .map(|(_, value)| value.as_str())
            .filter(|value| !value.is_empty())
    }

    /// A value that must be present.
    pub(crate) fn need(&self, name: &str) -> Result<&str, String> {
        self.get(name).ok_or_else(|| format!("`{name}` is missing"))
    }

    /// All names with their values.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&str, &str)> {
        self.0.iter().map(|(name, value)| (name.as_str(), value.as_str()))
    }
}

fn has_type(received: &Received, media_type: &str) -> Result<(), String> {
    let given = received.header("content-type");
    if given.split(';').next().unwrap_or_default().trim().eq_ignore_ascii_case(media_type) {
        Ok(())
    } else {
        Err(format!("the content type is `{given}`, not {media_type}"))
    }
}
