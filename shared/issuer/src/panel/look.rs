//! The panel's name and accent colour, which a platform chooses for its customers.

use std::str::FromStr;

use base::{Environment, FromEnvironment};
use problem::name;

/// The longest name, in characters.
const MAX_NAME: usize = 40;
/// The minimum contrast between text and its background (WCAG 2.2, 1.4.3).
const LEAST_CONTRAST: f64 = 4.5;
/// The darkest background in light mode (`--sunken` in `panel/design.css`). In dark mode the panel lightens the colour.
const BACKGROUND: Colour = Colour([0xf0, 0xee, 0xea]);

/// The panel's look: `PANEL_NAME` and `PANEL_ACCENT_COLOR`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelLook {
    /// The name in the title and in the header.
    pub name: PanelName,
    /// The colour of buttons and links; `None` means the panel's default.
    pub accent: Option<AccentColour>,
}

/// The panel's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PanelName(String);

/// A colour that is readable as text on the panel's backgrounds, and as a background for white text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AccentColour(String);

/// Why a string is not an accent colour.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum AccentFault {
    /// The string is not written as a colour.
    #[error("not a colour such as `#0d5f57`")]
    NoColour,
    /// The colour is too light.
    #[error(
        "too light: its contrast with the panel's background is {0:.1} to 1, but must be at least 4.5 to 1. Choose a \
         darker colour"
    )]
    TooLight(f64),
}

impl Default for PanelName {
    fn default() -> Self {
        Self("Waypost".to_owned())
    }
}

impl PanelName {
    /// The name.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl AccentColour {
    /// The colour, as CSS writes it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl FromStr for PanelName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        name::checked(text, MAX_NAME).map(Self).map_err(|fault| format!("not a valid name for the panel: it {fault}"))
    }
}

impl FromStr for AccentColour {
    type Err = AccentFault;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let colour = Colour::parse(text).ok_or(AccentFault::NoColour)?;
        let contrast = colour.contrast(BACKGROUND);
        if contrast < LEAST_CONTRAST {
            Err(AccentFault::TooLight(contrast))
        } else {
            Ok(Self(text.to_ascii_lowercase()))
        }
    }
}

impl FromEnvironment for PanelLook {
    fn from_environment(environment: &mut Environment) -> Option<Self> {
        let name = environment.parsed("PANEL_NAME", PanelName::default());
        let accent = match environment.optional("PANEL_ACCENT_COLOR") {
            Some(text) => match text.parse() {
                Ok(accent) => Some(Some(accent)),
                Err(fault) => {
                    environment.fault("PANEL_ACCENT_COLOR", &text, &fault);
                    None
                }
            },
            None => Some(None),
        };
        Some(Self { name: name?, accent: accent? })
    }
}

/// A colour in sRGB.
#[derive(Debug, Clone, Copy)]
struct Colour([u8; 3]);

impl Colour {
    fn parse(text: &str) -> Option<Self> {
        let digits = text.strip_prefix('#').filter(|digits| digits.len() == 6)?;
        let is_hex = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
        let [_, red, green, blue] = is_hex.then(|| u32::from_str_radix(digits, 16).ok())??.to_be_bytes();
        Some(Self([red, green, blue]))
    }

    /// The contrast with another colour, from 1 to 21 (<https://www.w3.org/TR/WCAG22/#dfn-contrast-ratio>).
    fn contrast(self, other: Self) -> f64 {
        let one = self.luminance() + 0.05;
        let two = other.luminance() + 0.05;
        one.max(two) / one.min(two)
    }

    /// The relative luminance (<https://www.w3.org/TR/WCAG22/#dfn-relative-luminance>).
    fn luminance(self) -> f64 {
        let [red, green, blue] = self.0.map(|part| {
            let part = f64::from(part) / 255.0;
            if part <= 0.04045 { part / 12.92 } else { ((part + 0.055) / 1.055).powf(2.4) }
        });
        0.2126 * red + 0.7152 * green + 0.0722 * blue
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use base::environment::read_from;

    #[test]
    fn the_panel_has_its_name_and_colours_unless_the_deployment_chooses() {
        let plain = read_from::<PanelLook>(|_| None).expect("the defaults");
        assert_eq!((plain.name.as_str(), plain.accent), ("Waypost", None));
        let chosen = read_from::<PanelLook>(|name| match name {
            "PANEL_NAME" => Some("Hôtel & Co".into()),
            _ => Some("#7A1FA2".into()),
        });
        let chosen = chosen.expect("good values");
        assert_eq!(chosen.name.as_str(), "Hôtel & Co");
        assert_eq!(chosen.accent.map(|accent| accent.0), Some("#7a1fa2".to_owned()));
    }

    #[test]
    fn a_colour_without_contrast_is_refused_with_its_contrast() {
        assert!((Colour([0, 0, 0]).contrast(Colour([255, 255, 255])) - 21.0).abs() < 0.01);
        for good in ["#000000", "#0d5f57", "#0000ff", "#b00020"] {
            assert!(good.parse::<AccentColour>().is_ok(), "{good}");
        }
        for bad in ["#fff", "red", "0d5f57", "#0d5f5", "#0d5f577", "#0d5f5g", "#+d5f57", "rgb(0,0,0)"] {
            assert_eq!(bad.parse::<AccentColour>(), Err(AccentFault::NoColour), "{bad}");
        }
        let error = read_from::<PanelLook>(|name| (name == "PANEL_ACCENT_COLOR").then(|| "#ffd400".into()));
        let error = error.expect_err("a light colour");
        assert!(error.0[0].starts_with("PANEL_ACCENT_COLOR is `#ffd400`, which is too light: its contrast"), "{error}");
    }

    #[test]
    fn a_name_is_visible_and_short() {
        for bad in [&"x".repeat(41), "\u{200b}", " ", "a\nb"] {
            let error = bad.parse::<PanelName>().expect_err("refused");
            assert!(error.contains("1 to 40 characters"), "{error}");
        }
    }
}
