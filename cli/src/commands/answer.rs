//! Prints the response to a request.

use serde::de::DeserializeOwned;

use crate::{
    failure::Failure,
    output::Output,
    service::{Call, Service},
};

/// Sends a request and prints the response: as text for people, or as the service's exact JSON, since parsing could
/// change the digits of numbers.
pub async fn print_answer<T: DeserializeOwned>(
    service: &Service,
    call: Call<'_>,
    output: Output,
    for_people: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    print_text(service, &service.text(call).await?, output, for_people)
}

/// Prints a response's text, as [`print_answer`] does.
pub fn print_text<T: DeserializeOwned>(
    service: &Service,
    text: &str,
    output: Output,
    for_people: impl FnOnce(&T) -> String,
) -> Result<(), Failure> {
    if output.json {
        return Ok(output.raw(text.trim_end())?);
    }
    Ok(output.text(for_people(&service.read(text)?))?)
}
