//! The node's addresses: every port is taken before any of them answers.
//!
//! Guarantees: a port of 0 becomes one port that is free on all addresses; every port in use is named with its setting.
//! Order: sockets are bound first, listen when the node is ready, and the Kafka port is the last to do so; until then a
//! caller is refused and never left waiting.

use std::io;
use std::net::{IpAddr, SocketAddr};

use tokio::net::{TcpListener, TcpSocket};

use crate::config::{Config, Place};
use crate::exit::{Code, Failure, Outcome};

/// Tries to find one free port on several addresses.
const TRIES: usize = 32;
/// Connections the kernel holds for a door until it accepts them.
pub(super) const BACKLOG: u32 = 4096;

/// What a port is for, in the order the ports begin to listen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Door {
    /// HTTP: discovery and status.
    Discovery,
    /// HTTP: producers.
    Produce,
    /// HTTP: consumers.
    Consume,
    /// HTTP: metrics.
    Metrics,
    /// The Kafka protocol.
    Kafka,
}

impl Door {
    /// All of them, in order.
    pub const ALL: [Self; 5] = [
        Self::Discovery,
        Self::Produce,
        Self::Consume,
        Self::Metrics,
        Self::Kafka,
    ];

    /// The setting of its port.
    pub fn setting(self) -> &'static str {
        match self {
            Self::Discovery => "http.discovery.port",
            Self::Produce => "http.produce.port",
            Self::Consume => "http.consume.port",
            Self::Metrics => "metrics.port",
            Self::Kafka => "kafka.port",
        }
    }

    /// Its name in the catalog's endpoints.
    pub fn endpoint(self) -> &'static str {
        match self {
            Self::Discovery => "http",
            Self::Produce => "produce",
            Self::Consume => "consume",
            Self::Metrics => "metrics",
            Self::Kafka => "kafka",
        }
    }

    fn port(self, config: &Config) -> u16 {
        match self {
            Self::Discovery => config.discovery_port,
            Self::Produce => config.produce_port,
            Self::Consume => config.consume_port,
            Self::Metrics => config.metrics_port,
            Self::Kafka => config.kafka_port,
        }
    }
}

/// One door's sockets, all on one port, not listening yet.
#[derive(Debug)]
pub struct Bound {
    /// Which door.
    pub door: Door,
    /// Its port.
    pub port: u16,
    sockets: Vec<TcpSocket>,
}

impl Bound {
    /// Begins to listen.
    pub fn listen(self) -> Outcome<Vec<TcpListener>> {
        let Self {
            door,
            port,
            sockets,
        } = self;
        let listening = sockets.into_iter().map(|socket| socket.listen(BACKLOG));
        listening
            .collect::<io::Result<_>>()
            .map_err(|error| unavailable(door, &port.to_string(), &error))
    }
}

/// Takes the ports of all doors.
///
/// An address that the machine lacks is left out if it stands there by default and another one works.
pub fn bind(config: &Config, addresses_from: &Place) -> Outcome<Vec<Bound>> {
    let mut addresses = config.listen_addresses.clone();
    if *addresses_from == Place::Default && addresses.iter().any(|address| has(*address)) {
        addresses.retain(|address| has(*address));
    }
    let (mut bound, mut failed) = (Vec::new(), Vec::new());
    for door in Door::ALL {
        match bind_door(door, door.port(config), &addresses) {
            Ok(one) => bound.push(one),
            Err(failure) => failed.push(failure),
        }
    }
    if failed.is_empty() {
        Ok(bound)
    } else {
        Err(all_unavailable(&failed))
    }
}

/// Whether the machine has this address.
fn has(address: IpAddr) -> bool {
    bind_socket(SocketAddr::new(address, 0)).is_ok()
}

/// A port that a door does not get.
type Refused = (Door, SocketAddr, io::Error);

fn bind_door(door: Door, port: u16, addresses: &[IpAddr]) -> Result<Bound, Refused> {
    let mut tries = if port == 0 { TRIES } else { 1 };
    loop {
        tries -= 1;
        match bind_together(port, addresses) {
            Ok((port, sockets)) => {
                return Ok(Bound {
                    door,
                    port,
                    sockets,
                });
            }
            Err((_, error)) if tries > 0 && error.kind() == io::ErrorKind::AddrInUse => {}
            Err((address, error)) => return Err((door, address, error)),
        }
    }
}

/// All addresses on one port; when it is 0, on the one that the first address got.
fn bind_together(
    mut port: u16,
    addresses: &[IpAddr],
) -> Result<(u16, Vec<TcpSocket>), (SocketAddr, io::Error)> {
    let mut sockets = Vec::with_capacity(addresses.len());
    for address in addresses {
        let wanted = SocketAddr::new(*address, port);
        let bound = bind_socket(wanted).and_then(|socket| Ok((socket.local_addr()?, socket)));
        let (local, socket) = bound.map_err(|error| (wanted, error))?;
        port = local.port();
        sockets.push(socket);
    }
    Ok((port, sockets))
}

fn bind_socket(address: SocketAddr) -> io::Result<TcpSocket> {
    let socket = match address {
        SocketAddr::V4(_) => TcpSocket::new_v4()?,
        SocketAddr::V6(_) => TcpSocket::new_v6()?,
    };
    // A port whose last connections are still in TIME_WAIT is free; one that somebody listens on is not.
    socket.set_reuseaddr(cfg!(unix))?;
    socket.bind(address)?;
    Ok(socket)
}

/// Names all ports that are taken at once, since whoever runs a second node meets them all.
fn all_unavailable(refused: &[Refused]) -> Failure {
    let is_taken = |one: &&Refused| one.2.kind() == io::ErrorKind::AddrInUse;
    if let Some((door, address, error)) = refused.iter().find(|one| !is_taken(one)) {
        return unavailable(*door, &address.to_string(), error);
    }
    if let [(door, address, error)] = refused {
        return unavailable(*door, &address.to_string(), error);
    }
    let list = |one: fn(&Refused) -> String| refused.iter().map(one).collect::<Vec<_>>();
    let taken = list(|(door, address, _)| format!("{address} ({})", door.setting())).join(", ");
    let sets = list(|(door, _, _)| format!("--set {}=0", door.setting())).join(" ");
    Failure::new(
        Code::AddressUnavailable,
        format!(
            "these are in use by other programs: {taken}. To run beside them, with a --data-dir of its own, let the \
             system choose the ports: {sets}"
        ),
    )
}

fn unavailable(door: Door, address: &str, error: &io::Error) -> Failure {
    let setting = door.setting();
    let message = match error.kind() {
        io::ErrorKind::AddrInUse => format!(
            "{address} is in use by another program; stop that one, or choose another port: --set {setting}=PORT \
             (0 lets the system choose)"
        ),
        io::ErrorKind::PermissionDenied => format!(
            "{address} may not be used by this user; choose a port above 1023: --set {setting}=PORT"
        ),
        io::ErrorKind::AddrNotAvailable => format!(
            "{address} is not an address of this machine; choose others: --set listen.addresses=127.0.0.1"
        ),
        _ => format!("cannot listen on {address} ({setting}): {error}"),
    };
    Failure::new(Code::AddressUnavailable, message)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::{Sources, load};

    fn config(sets: &[&str]) -> Config {
        let sources = Sources {
            sets: sets.iter().map(ToString::to_string).collect(),
            data_dir: Some("/x".into()),
            ..Sources::default()
        };
        load(&sources).unwrap().config
    }

    const FREE: [&str; 5] = [
        "kafka.port=0",
        "http.discovery.port=0",
        "http.produce.port=0",
        "http.consume.port=0",
        "metrics.port=0",
    ];

    #[tokio::test]
    async fn port_zero_is_one_free_port_on_every_address() {
        let bound = bind(&config(&FREE), &Place::Default).unwrap();
        let mut ports: Vec<u16> = bound.iter().map(|bound| bound.port).collect();
        assert!(ports.iter().all(|port| *port != 0));
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 5);
        for bound in bound {
            let port = bound.port;
            for listener in bound.listen().unwrap() {
                assert_eq!(listener.local_addr().unwrap().port(), port);
            }
        }
    }

    #[tokio::test]
    async fn a_port_in_use_is_refused_with_its_setting() {
        let taken = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = taken.local_addr().unwrap().port();
        let mut sets = FREE.to_vec();
        let set = format!("metrics.port={port}");
        sets[4] = &set;
        let failure = bind(&config(&sets), &Place::Default).unwrap_err();
        assert_eq!(failure.code, Code::AddressUnavailable);
        assert!(failure.message.contains("metrics.port"), "{failure}");
        assert!(failure.message.contains(&port.to_string()), "{failure}");
    }

    #[tokio::test]
    async fn all_ports_in_use_are_told_at_once() {
        let first = bind(&config(&FREE), &Place::Default).unwrap();
        let mut sets = Vec::new();
        for one in &first {
            sets.push(format!("{}={}", one.door.setting(), one.port));
        }
        let _listening: Vec<_> = first.into_iter().map(Bound::listen).collect();
        let sets: Vec<&str> = sets.iter().map(String::as_str).collect();
        let failure = bind(&config(&sets), &Place::Default).unwrap_err();
        assert_eq!(failure.code, Code::AddressUnavailable);
        for (set, door) in sets.iter().zip(Door::ALL) {
            let port = set.rsplit('=').next().unwrap();
            let free = format!("--set {}=0", door.setting());
            assert!(failure.message.contains(&format!(":{port} ")), "{failure}");
            assert!(failure.message.contains(&free), "{failure}");
        }
    }

    #[tokio::test]
    async fn nobody_is_answered_before_the_door_listens() {
        let bound = bind(&config(&FREE), &Place::Default).unwrap();
        let address = ("127.0.0.1", bound[4].port);
        let refused = tokio::net::TcpStream::connect(address).await.unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}
