//! The list of a cluster's nodes: `id=host:port` with commas between, or one a line in a file (`peers.file`), where `#`
//! begins a comment.
//!
//! Guarantees: every mistake of a text is reported, with its line, what is wrong and what to write; a list that is taken has
//! each id and each address once. Does not ask whether a host exists: names are looked up at each dial, since addresses move.

use std::collections::BTreeMap;
use std::fmt;
use std::net::{IpAddr, Ipv6Addr};

use floe_model::NodeId;

/// Most nodes of a list.
const NODES_MAX: usize = 1_000;
/// Longest DNS name (RFC 1035, 2.3.4, as text).
const NAME_BYTES_MAX: usize = 253;
/// Largest node id: Kafka's broker ids are i32.
const NODE_ID_MAX: u32 = i32::MAX as u32;

/// Where a node is reached.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Address {
    /// Name or IP address, without brackets.
    pub host: String,
    /// Its `peer.port`.
    pub port: u16,
}

/// Who belongs to the cluster, this node included.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct List(BTreeMap<NodeId, Address>);

/// One mistake in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, from 1.
    pub line: usize,
    /// What is wrong.
    pub problem: String,
    /// What to do.
    pub remedy: String,
}

/// How one list differs from another.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Difference {
    /// New nodes.
    pub added: Vec<NodeId>,
    /// Nodes at another address.
    pub moved: Vec<NodeId>,
    /// Nodes that are gone.
    pub removed: Vec<NodeId>,
}

impl List {
    /// Reads a list that names `me`.
    pub fn parse(text: &str, me: NodeId) -> Result<Self, Vec<Mistake>> {
        let mut reader = Reader::default();
        for (at, line) in text.lines().enumerate() {
            let line = line.split('#').next().unwrap_or_default();
            for word in line.split(',').map(str::trim).filter(|w| !w.is_empty()) {
                reader.word(at + 1, word);
            }
        }
        if reader.mistakes.is_empty() && !reader.nodes.contains_key(&me) {
            let problem = match reader.nodes.len() {
                0 => "no node is listed".to_owned(),
                _ => format!("this node ({me}) is not listed"),
            };
            let remedy = format!("list all nodes with this one: {me}=HOST:PORT");
            reader.mistake(1, problem, &remedy);
        }
        if reader.mistakes.is_empty() {
            Ok(Self(reader.nodes))
        } else {
            Err(reader.mistakes)
        }
    }

    /// Where a node is.
    pub fn get(&self, node: NodeId) -> Option<&Address> {
        self.0.get(&node)
    }

    /// All of them, by id.
    pub fn iter(&self) -> impl Iterator<Item = (NodeId, &Address)> {
        self.0.iter().map(|(node, address)| (*node, address))
    }

    /// How many.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether nobody is in it.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// What changes from this list to `next`.
    pub fn difference(&self, next: &Self) -> Difference {
        let mut difference = Difference::default();
        for (node, address) in next.iter() {
            match self.get(node) {
                None => difference.added.push(node),
                Some(before) if before != address => difference.moved.push(node),
                Some(_) => {}
            }
        }
        let gone = self.0.keys().filter(|node| next.get(**node).is_none());
        difference.removed = gone.copied().collect();
        difference
    }
}

impl FromIterator<(NodeId, Address)> for List {
    fn from_iter<I: IntoIterator<Item = (NodeId, Address)>>(nodes: I) -> Self {
        Self(nodes.into_iter().collect())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.host.contains(':') {
            write!(f, "[{}]:{}", self.host, self.port)
        } else {
            write!(f, "{}:{}", self.host, self.port)
        }
    }
}

impl fmt::Display for List {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, (node, address)) in self.iter().enumerate() {
            let comma = if at == 0 { "" } else { "," };
            write!(f, "{comma}{node}={address}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}; {}", self.line, self.problem, self.remedy)
    }
}

#[derive(Default)]
struct Reader {
    nodes: BTreeMap<NodeId, Address>,
    mistakes: Vec<Mistake>,
}

impl Reader {
    fn mistake(&mut self, line: usize, problem: String, remedy: &str) {
        self.mistakes.push(Mistake {
            line,
            problem,
            remedy: remedy.to_owned(),
        });
    }

    fn word(&mut self, line: usize, word: &str) {
        let (node, address) = match entry(word) {
            Ok(entry) => entry,
            Err((problem, remedy)) => return self.mistake(line, problem, remedy),
        };
        let same = self.nodes.iter().find(|(_, known)| **known == address);
        if let Some((other, _)) = same.filter(|(other, _)| **other != node) {
            let problem = format!("{address} is given for node {other} and node {node}");
            return self.mistake(line, problem, "give each node an address of its own");
        }
        if self.nodes.len() == NODES_MAX {
            let problem = format!("more than {NODES_MAX} nodes");
            return self.mistake(line, problem, "a cluster is smaller");
        }
        if self.nodes.insert(node, address).is_some() {
            let problem = format!("node {node} is given twice");
            self.mistake(line, problem, "give each node once");
        }
    }
}

type Wrong = (String, &'static str);

fn entry(word: &str) -> Result<(NodeId, Address), Wrong> {
    const FORM: &str = "write id=host:port, for instance 1=node-1.floe:9255";
    let parts = word.split_once('=');
    let parts = parts.and_then(|(id, address)| Some((id, address.rsplit_once(':')?)));
    let Some((id, (host, port))) = parts else {
        return Err((format!("'{word}' is not id=host:port"), FORM));
    };
    let id = id.trim();
    let Some(node) = number(id).filter(|id| *id <= NODE_ID_MAX) else {
        let problem = format!("'{id}' in '{word}' is not a node id");
        return Err((problem, "use 0 to 2147483647"));
    };
    let port = port.trim();
    let Some(port_number) = number(port).and_then(|port| u16::try_from(port).ok()) else {
        let problem = format!("'{port}' in '{word}' is not a port");
        return Err((problem, "use 1 to 65535"));
    };
    if port_number == 0 {
        let problem = format!("nobody can call port 0 in '{word}'");
        return Err((problem, "use 1 to 65535"));
    }
    let address = Address {
        host: checked_host(host.trim(), word)?,
        port: port_number,
    };
    Ok((NodeId(node), address))
}

/// Digits and nothing else.
fn number(text: &str) -> Option<u32> {
    let is_number = text.bytes().all(|byte| byte.is_ascii_digit());
    text.parse().ok().filter(|_| is_number)
}

fn checked_host(host: &str, word: &str) -> Result<String, Wrong> {
    let bare = host.strip_prefix('[').and_then(|h| h.strip_suffix(']'));
    let address = match bare {
        Some(inner) => inner.parse::<Ipv6Addr>().ok().map(IpAddr::from),
        None => host.parse().ok().filter(IpAddr::is_ipv4),
    };
    match address {
        Some(address) if address.is_unspecified() => Err((
            format!("nobody can call {address}, which means all addresses of a machine"),
            "write the name or the address by which the other nodes reach this one",
        )),
        Some(address) => Ok(address.to_string()),
        None if bare.is_none() && is_name(host) => Ok(host.to_ascii_lowercase()),
        None => Err((
            format!("'{host}' in '{word}' is not a host"),
            "use a name of letters, digits, hyphens and dots, an IPv4 address, or an IPv6 address in brackets",
        )),
    }
}

/// RFC 1123, 2.1; underscores, too, since container networks give such names. One of digits and dots is a broken address.
fn is_name(host: &str) -> bool {
    let is_label = |label: &str| {
        let is_known = |b: u8| b.is_ascii_alphanumeric() || b == b'-' || b == b'_';
        (1..=63).contains(&label.len())
            && label.bytes().all(is_known)
            && !label.starts_with('-')
            && !label.ends_with('-')
    };
    host.len() <= NAME_BYTES_MAX
        && host.split('.').all(is_label)
        && !host.bytes().all(|b| b.is_ascii_digit() || b == b'.')
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str) -> Result<List, String> {
        List::parse(text, NodeId(1)).map_err(|mistakes| {
            let lines: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
            lines.join("\n")
        })
    }

    #[test]
    fn a_list_in_one_line_and_a_file_of_lines_say_the_same() {
        let line = parse("1=node-1:9255, 2=10.0.0.2:9255,3=[::1]:9255").unwrap();
        let file = "# the cluster\n1 = node-1:9255\n\n2=10.0.0.2:9255 # rack b\n3=[0:0::1]:9255\n";
        assert_eq!(parse(file), Ok(line.clone()));
        assert_eq!(line.len(), 3);
        assert_eq!(
            line.to_string(),
            "1=node-1:9255,2=10.0.0.2:9255,3=[::1]:9255"
        );
        assert_eq!(parse(&line.to_string()), Ok(line));
    }

    #[test]
    fn every_mistake_is_reported_with_its_line_and_what_to_write() {
        for (text, words) in [
            (
                "",
                "line 1: no node is listed; list all nodes with this one: 1=HOST:PORT",
            ),
            ("2=a:1", "line 1: this node (1) is not listed"),
            (
                "1=a:1\nb:2",
                "line 2: 'b:2' is not id=host:port; write id=host:port",
            ),
            ("1=a", "line 1: '1=a' is not id=host:port"),
            (
                "x=a:1",
                "'x' in 'x=a:1' is not a node id; use 0 to 2147483647",
            ),
            ("+1=a:1", "is not a node id"),
            ("2147483648=a:1", "is not a node id"),
            ("1=a:0", "nobody can call port 0"),
            (
                "1=a:65536",
                "'65536' in '1=a:65536' is not a port; use 1 to 65535",
            ),
            ("1=a:", "'' in '1=a:' is not a port"),
            ("1=0.0.0.0:1", "nobody can call 0.0.0.0"),
            ("1=:1", "'' in '1=:1' is not a host"),
            ("1=1.2.3:1", "is not a host"),
            ("1=::1:1", "is not a host"),
            ("1=-a:1", "is not a host"),
            ("1=a:1,1=b:1", "node 1 is given twice; give each node once"),
            ("1=a:1\n2=A:1", "line 2: a:1 is given for node 1 and node 2"),
        ] {
            let refused = parse(text).unwrap_err();
            assert!(refused.contains(words), "{text}: {refused}");
        }
        let two = parse("a\n1=b:1\nc").unwrap_err();
        assert_eq!(two.lines().count(), 2, "{two}");
        assert!(
            two.starts_with("line 1: ") && two.contains("line 3: "),
            "{two}"
        );
    }

    #[test]
    fn the_largest_list_id_and_port_are_taken_and_one_past_each_refused() {
        assert!(parse("1=a:1,2147483647=a:65535").is_ok());
        let of = |count: usize| {
            let nodes = (1..=count).map(|id| format!("{id}=a{id}:1"));
            nodes.collect::<Vec<_>>().join("\n")
        };
        assert_eq!(parse(&of(NODES_MAX)).unwrap().len(), NODES_MAX);
        let refused = parse(&of(NODES_MAX + 1)).unwrap_err();
        assert_eq!(
            refused,
            "line 1001: more than 1000 nodes; a cluster is smaller"
        );
    }

    #[test]
    fn a_changed_list_says_who_came_moved_and_went() {
        let before = parse("1=a:1,2=b:1,3=c:1").unwrap();
        let after = parse("1=a:1,2=b:2,4=d:1").unwrap();
        let expected = Difference {
            added: vec![NodeId(4)],
            moved: vec![NodeId(2)],
            removed: vec![NodeId(3)],
        };
        assert_eq!(before.difference(&after), expected);
        assert_eq!(before.difference(&before), Difference::default());
    }
}
