//! Writes databases in MaxMind's format, of any size and with any content. <https://maxmind.github.io/MaxMind-DB/>

use std::{collections::HashMap, net::IpAddr};

use ipnet::IpNet;
use serde_json::{Value, json};

const MARKER: &[u8] = b"\xab\xcd\xefMaxMind.com";
/// The zeros between the tree and the data.
const SEPARATOR: usize = 16;

/// A builder of a database.
#[derive(Debug, Clone)]
pub struct DatabaseBuilder {
    /// The type that the database declares.
    pub database_type: String,
    /// When the database was built, in seconds since the Unix epoch.
    pub build_epoch: u64,
    /// 4, or 6 for both.
    pub ip_version: u16,
    /// The number of bits in a record: 24, 28 or 32.
    pub record_size: u16,
    tree: Vec<[Record; 2]>,
    data: Vec<u8>,
    known: HashMap<Vec<u8>, u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Record {
    Nothing,
    Node(u32),
    Data(u32),
}

impl DatabaseBuilder {
    /// A database without any network.
    pub fn new(database_type: &str, build_epoch: u64) -> Self {
        Self {
            database_type: database_type.to_owned(),
            build_epoch,
            ip_version: 6,
            record_size: 28,
            tree: vec![[Record::Nothing; 2]],
            data: Vec::new(),
            known: HashMap::new(),
        }
    }

    /// Adds an entry for a network, in place of any other.
    ///
    /// # Panics
    /// If the string is not a network.
    #[must_use]
    pub fn with(mut self, network: &str, value: Value) -> Self {
        self.insert(network.parse().expect("a network such as 192.0.2.0/24"), &value);
        self
    }

    /// Adds `count` networks of 256 addresses each, starting at 1.0.0.0. Each entry has about 130 bytes.
    #[must_use]
    pub fn with_many(mut self, count: u32) -> Self {
        for number in 0..count {
            let [a, b, c, d] = (0x0100_0000_u32.wrapping_add(number << 8)).to_be_bytes();
            let network = IpNet::new(IpAddr::from([a, b, c, d]), 24).expect("a length of 24 is one");
            let country = ["AU", "DE", "GB", "US"][number as usize % 4];
            let about = json!({
                "country": {"iso_code": country},
                "city": {"geoname_id": number, "names": {"en": format!("The city with the number {number}")}},
                "location": {"latitude": f64::from(number % 180) - 90.5, "longitude": f64::from(number % 360) - 180.5},
            });
            self.insert(network, &about);
        }
        self
    }

    fn insert(&mut self, network: IpNet, value: &Value) {
        let mut encoded = Vec::new();
        encode(value, &mut encoded);
        let offset = *self.known.entry(encoded).or_insert_with_key(|encoded| {
            let offset = u32::try_from(self.data.len()).expect("less than 4 GB of data");
            self.data.extend_from_slice(encoded);
            offset
        });
        let (bits, length) = match (network, self.ip_version) {
            (IpNet::V4(network), 4) => (u128::from(network.network().to_bits()) << 96, network.prefix_len()),
            (IpNet::V4(network), _) => (network.network().to_bits().into(), network.prefix_len() + 96),
            (IpNet::V6(network), _) => (network.network().to_bits(), network.prefix_len()),
        };
        let mut node = 0;
        for depth in 0..length {
            let side = usize::from(bits >> (127 - depth) & 1 == 1);
            if depth + 1 == length {
                self.tree[node][side] = Record::Data(offset);
                break;
            }
            node = match self.tree[node][side] {
                Record::Node(next) => next as usize,
                // A network's entry applies to both halves.
                said => {
                    let next = self.tree.len();
                    self.tree.push([said; 2]);
                    self.tree[node][side] = Record::Node(u32::try_from(next).expect("less than 4 billion nodes"));
                    next
                }
            };
        }
    }

    /// The database file's content.
    pub fn build(&self) -> Vec<u8> {
        let nodes = self.tree.len();
        let mut file = Vec::with_capacity(nodes * usize::from(self.record_size) / 4 + self.data.len() + 1024);
        let number = |record: Record| match record {
            Record::Nothing => nodes as u64,
            Record::Node(node) => node.into(),
            Record::Data(offset) => (nodes + SEPARATOR) as u64 + u64::from(offset),
        };
        for [left, right] in &self.tree {
            let left = number(*left);
            let right = number(*right);
            assert!(left.max(right) >> self.record_size == 0, "records of {} bits are too small", self.record_size);
            let ([.., l3, l2, l1, l0], [.., r3, r2, r1, r0]) = (left.to_be_bytes(), right.to_be_bytes());
            match self.record_size {
                24 => file.extend_from_slice(&[l2, l1, l0, r2, r1, r0]),
                28 => file.extend_from_slice(&[l2, l1, l0, l3 << 4 | r3, r2, r1, r0]),
                _ => file.extend_from_slice(&[l3, l2, l1, l0, r3, r2, r1, r0]),
            }
        }
        file.extend_from_slice(&[0; SEPARATOR]);
        file.extend_from_slice(&self.data);
        file.extend_from_slice(MARKER);
        self.encode_metadata(&mut file);
        file
    }

    fn encode_metadata(&self, file: &mut Vec<u8>) {
        control(7, 9, file);
        for (name, value) in [("binary_format_major_version", 2), ("binary_format_minor_version", 0)] {
            text(name, file);
            unsigned(5, value, file);
        }
        for (name, value) in [("ip_version", self.ip_version), ("record_size", self.record_size)] {
            text(name, file);
            unsigned(5, value.into(), file);
        }
        text("node_count", file);
        unsigned(6, self.tree.len() as u64, file);
        text("build_epoch", file);
        unsigned(9, self.build_epoch, file);
        text("database_type", file);
        text(&self.database_type, file);
        text("description", file);
        encode(&json!({"en": "Made for a test"}), file);
        text("languages", file);
        encode(&json!(["en"]), file);
    }
}

/// A value's type and size.
fn control(kind: u8, size: usize, to: &mut Vec<u8>) {
    let (in_control, more): (usize, &[u8]) = match size {
        0..29 => (size, &[]),
        29..285 => (29, &((size - 29) as u32).to_be_bytes()[3..]),
        285..65_821 => (30, &((size - 285) as u32).to_be_bytes()[2..]),
        _ => (31, &((size - 65_821) as u32).to_be_bytes()[1..]),
    };
    let first = if kind > 7 { 0 } else { kind << 5 };
    to.push(first | in_control as u8);
    if kind > 7 {
        to.push(kind - 7);
    }
    to.extend_from_slice(more);
}

fn text(text: &str, to: &mut Vec<u8>) {
    control(2, text.len(), to);
    to.extend_from_slice(text.as_bytes());
}

fn unsigned(kind: u8, value: u64, to: &mut Vec<u8>) {
    let bytes = value.to_be_bytes();
    let significant = &bytes[value.leading_zeros() as usize / 8..];
    control(kind, significant.len(), to);
    to.extend_from_slice(significant);
}

fn encode(value: &Value, to: &mut Vec<u8>) {
    match value {
        Value::Null => control(7, 0, to), // the format has no null, so write an empty map
        Value::Bool(value) => control(14, usize::from(*value), to),
        Value::String(value) => text(value, to),
        Value::Number(number) => match (number.as_u64(), number.as_i64(), number.as_f64()) {
            (Some(value), ..) => unsigned(if value >> 32 == 0 { 6 } else { 9 }, value, to),
            (None, Some(value), _) => {
                control(8, 4, to);
                to.extend_from_slice(&i32::try_from(value).unwrap_or(i32::MIN).to_be_bytes());
            }
            (.., value) => {
                control(3, 8, to);
                to.extend_from_slice(&value.unwrap_or_default().to_be_bytes());
            }
        },
        Value::Array(values) => {
            control(11, values.len(), to);
            values.iter().for_each(|value| encode(value, to));
        }
        Value::Object(members) => {
            control(7, members.len(), to);
            for (name, value) in members {
                text(name, to);
                encode(value, to);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use maxminddb::Reader;

    #[test]
    fn a_database_is_read_back_as_it_was_written() {
        let value = json!({
            "text": "é".repeat(200), "long": "x".repeat(70_000), "number": 7, "large": u64::MAX, "negative": -3,
            "fraction": 51.25, "yes": true, "no": false, "list": [1, "two", {"three": 3}],
        });
        let bytes = DatabaseBuilder::new("Any", 5)
            .with("10.0.0.0/8", json!({"is": "all"}))
            .with("10.1.2.0/23", value.clone())
            .with("2001:db8::/32", json!({"is": "six"}))
            .build();
        let reader = Reader::from_source(bytes).expect("a database");
        reader.verify().expect("whole");
        let look = |address: &str| {
            let found = reader.lookup(address.parse().expect("an address")).expect("looked up");
            (found.network().expect("a network").to_string(), found.decode::<Value>().expect("a value"))
        };
        assert_eq!(look("10.1.3.255"), ("10.1.2.0/23".to_owned(), Some(value)));
        assert_eq!(look("10.1.4.0").1, Some(json!({"is": "all"})));
        assert_eq!(look("2001:db8:1::1").1, Some(json!({"is": "six"})));
        assert_eq!(look("11.0.0.0").1, None);
    }

    #[test]
    fn a_database_can_be_made_large() {
        let bytes = DatabaseBuilder::new("Any", 5).with_many(2000).build();
        let reader = Reader::from_source(&bytes).expect("a database");
        reader.verify().expect("whole");
        assert!(bytes.len() > 200_000, "{}", bytes.len());
        assert!(reader.lookup("1.1.1.1".parse().expect("an address")).expect("looked up").has_data());
    }
}
