//! The trace that Lambda gives to each invocation, in X-Ray's form.
//! <https://docs.aws.amazon.com/xray/latest/devguide/xray-concepts.html#xray-concepts-tracingheader>

use super::parent::{TraceId, number};

/// The trace of an invocation. Its digits are those of a trace of W3C, grouped otherwise.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LambdaTrace<'a> {
    /// As X-Ray writes it: `1-5759e988-bd862e3fe1be46a994272793`.
    pub id: &'a str,
    /// The same as W3C Trace Context writes it.
    pub trace: TraceId,
    /// Whether X-Ray records the trace.
    pub sampled: bool,
}

impl<'a> LambdaTrace<'a> {
    /// Reads `Root=1-5759e988-bd862e3fe1be46a994272793;Parent=53995c3f42cd8ad8;Sampled=1`, in any order; other members
    /// are Lambda's own. `None` without a root of this form.
    pub fn parse(header: &'a str) -> Option<Self> {
        let member = |name: &str| header.split(';').find_map(|member| member.trim().strip_prefix(name));
        let id = member("Root=")?;
        let (time, rest) = id.strip_prefix("1-")?.split_once('-')?;
        let trace = TraceId::new(number(time, 8)? << 96 | number(rest, 24)?)?;
        Some(Self { id, trace, sampled: member("Sampled=") == Some("1") })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_root_of_x_ray_is_a_trace_and_anything_else_is_none() {
        let whole = "Parent=53995c3f42cd8ad8;Sampled=1; Root=1-5759e988-bd862e3fe1be46a994272793;Lineage=a:0";
        let trace = LambdaTrace::parse(whole).expect("a root");
        assert_eq!((trace.id, trace.sampled), ("1-5759e988-bd862e3fe1be46a994272793", true));
        assert_eq!(trace.trace.to_string(), "5759e988bd862e3fe1be46a994272793");
        for bad in [
            "",
            "Sampled=1",
            "Root=",
            "Root=2-5759e988-bd862e3fe1be46a994272793",
            "Root=1-5759e988bd862e3fe1be46a994272793",
            "Root=1-5759e98-bd862e3fe1be46a9942727930",
            "Root=1-5759E988-bd862e3fe1be46a994272793",
            "Root=1-5759e988-bd862e3fe1be46a994272793-1",
            "Root=1-+759e988-bd862e3fe1be46a994272793",
            "Root=1-00000000-000000000000000000000000",
        ] {
            assert_eq!(LambdaTrace::parse(bad), None, "{bad}");
        }
    }
}
