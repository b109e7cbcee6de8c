use super::*;

fn sources(file: &str, environment: &[(&str, &str)], sets: &[&str]) -> Sources {
    Sources {
        file: (!file.is_empty()).then(|| (PathBuf::from("floe.toml"), file.to_owned())),
        environment: environment
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect(),
        sets: sets.iter().map(ToString::to_string).collect(),
        data_dir: Some(PathBuf::from("/data")),
    }
}

fn mistakes(sources: &Sources) -> Vec<String> {
    let mistakes = load(sources).unwrap_err();
    mistakes.0.iter().map(ToString::to_string).collect()
}

#[test]
fn five_mistakes_give_five_messages_with_their_places() {
    let found = mistakes(&sources(
        "num.partition = 8\nkafka.port = \"9092\"\n\n[log]\nretention.hours = -5\n",
        &[("FLOE_MAX_CONNECTIONS", "many")],
        &["journal.bytes=1KiB"],
    ));
    assert_eq!(
        found,
        [
            "floe.toml:1:5: there is no setting 'num.partition'; did you mean 'num.partitions'?",
            "floe.toml:2:14: kafka.port: \"9092\" is not allowed; use a whole number from 0 to 65535 \
             (port, 0 lets the system choose)",
            "floe.toml:5:19: log.retention.hours: -5 is out of range; use a whole number from -1 to \
             876000 (hours)",
            "environment variable FLOE_MAX_CONNECTIONS: max.connections: \"many\" is not allowed; use \
             a whole number from 1 to 1000000 (connections)",
            "flag --set journal.bytes=1KiB: journal.bytes: 1024 is out of range; use bytes from 33 \
             MiB to 16 GiB, as a number or like \"64MiB\"",
        ]
    );
}

#[test]
fn a_flag_goes_before_a_variable_before_the_file_before_the_default() {
    let file = "num.partitions = 5\nkafka.port = 1\nlog.retention.hours = 1\n";
    let environment = [("FLOE_NUM_PARTITIONS", "6"), ("FLOE_KAFKA_PORT", "2")];
    let loaded = load(&sources(file, &environment, &["num.partitions=7"])).unwrap();
    assert_eq!(loaded.config.num_partitions, 7);
    assert_eq!(loaded.config.kafka_port, 2);
    assert_eq!(loaded.config.log_retention_hours, 1);
    assert_eq!(loaded.config.discovery_port, 9250);
    let row = value_of(&loaded.in_force, "kafka.port");
    assert_eq!(row.place, Place::Variable("FLOE_KAFKA_PORT".into()));
}

#[test]
fn unknown_variables_are_refused_but_not_those_of_a_kubernetes_service() {
    let links = [
        ("FLOE_SERVICE_HOST", "10.0.0.1"),
        ("FLOE_SERVICE_PORT_KAFKA", "9092"),
        ("FLOE_PORT", "tcp://10.0.0.1:9092"),
        ("FLOE_PORT_9092_TCP_ADDR", "10.0.0.1"),
        ("FLOE_SERVER", "http://127.0.0.1:9250"),
        ("HOME", "/root"),
    ];
    assert!(load(&sources("", &links, &[])).is_ok());
    assert_eq!(
        mistakes(&sources("", &[("FLOE_KAFKA_PORTS", "1")], &[])),
        [
            "environment variable FLOE_KAFKA_PORTS: there is no setting 'FLOE_KAFKA_PORTS'; did you \
             mean 'FLOE_KAFKA_PORT'?"
        ]
    );
}

#[test]
fn settings_that_contradict_each_other_are_refused() {
    assert_eq!(
        mistakes(&sources("", &[], &["kafka.port=9250"])),
        [
            "flag --set kafka.port=9250: kafka.port and http.discovery.port are both 9250; give each door \
             a port of its own"
        ]
    );
    assert_eq!(
        mistakes(&sources("", &[], &["group.max.session.timeout.ms=10"])),
        [
            "flag --set group.max.session.timeout.ms=10: group.min.session.timeout.ms (6000) is above \
             group.max.session.timeout.ms (10); lower the first or raise the second"
        ]
    );
    let zero = ["kafka.port=0", "http.produce.port=0"];
    assert!(load(&sources("", &[], &zero)).is_ok());
}

#[test]
fn every_range_is_taken_at_both_ends_and_refused_one_past_them() {
    let mut ranges = 0;
    for setting in SETTINGS {
        let (kind::Kind::Number { min, max, .. } | kind::Kind::Bytes { min, max }) = setting.kind
        else {
            continue;
        };
        ranges += 1;
        for inside in [min, max] {
            let written = Written::Number(inside);
            let value = setting.kind.check(&written);
            assert_eq!(value, Ok(Value::Number(inside)), "{}", setting.name);
        }
        for outside in [min.checked_sub(1), max.checked_add(1)]
            .into_iter()
            .flatten()
        {
            let refusal = setting.kind.check(&Written::Number(outside)).unwrap_err();
            assert_eq!(refusal.problem, format!("{outside} is out of range"));
            assert_eq!(refusal.remedy, format!("use {}", setting.kind));
        }
    }
    assert!(ranges > 20, "{ranges}");
}

#[test]
fn advertised_listeners_are_one_text_or_an_array_and_refused_with_their_place() {
    let both = "PLAINTEXT://a.example:9092,HTTP_PRODUCE://b.example:80,HTTP_CONSUME://b.example:80";
    let array = "advertised.listeners = [\"PLAINTEXT://a.example:9092\", \"HTTP_PRODUCE://b.example:80\", \
                 \"HTTP_CONSUME://b.example:80\"]\n";
    let variable = [("FLOE_ADVERTISED_LISTENERS", both)];
    for given in [sources(array, &[], &[]), sources("", &variable, &[])] {
        let loaded = load(&given).unwrap();
        assert_eq!(loaded.config.advertised_listeners.to_string(), both);
    }
    let none = load(&sources("", &[], &[])).unwrap().config;
    assert_eq!(none.advertised_listeners, listeners::Advertised::default());
    assert_eq!(
        mistakes(&sources(
            "advertised.listeners = \"PLAINTEXT://0.0.0.0:9092\"\n",
            &[],
            &[]
        )),
        [
            "floe.toml:1:24: advertised.listeners: nobody can call 0.0.0.0, which means all addresses of a \
             machine; give the name or the address by which clients reach this node"
        ]
    );
    assert_eq!(
        mistakes(&sources("advertised.listeners = 1\n", &[], &[])),
        [
            "floe.toml:1:24: advertised.listeners: 1 is not allowed; use called, or NAME://HOST:PORT with \
             commas between; NAME is PLAINTEXT, HTTP_PRODUCE or HTTP_CONSUME"
        ]
    );
}

#[test]
fn a_set_without_a_value_is_refused() {
    assert_eq!(
        mistakes(&sources("", &[], &["num.partitions"])),
        ["flag --set num.partitions: 'num.partitions' gives no value; write --set key=value"]
    );
}

#[test]
#[cfg(target_os = "linux")]
fn developer_data_lies_in_the_users_data_directory() {
    let of = |pairs: &[(&str, &str)]| {
        let environment = pairs
            .iter()
            .map(|(name, text)| ((*name).to_owned(), (*text).to_owned()))
            .collect();
        user_data_directory(&environment)
    };
    assert_eq!(
        of(&[("HOME", "/home/a")]),
        Some(PathBuf::from("/home/a/.local/share/floe"))
    );
    assert_eq!(
        of(&[("HOME", "/home/a"), ("XDG_DATA_HOME", "/d")]),
        Some(PathBuf::from("/d/floe"))
    );
    assert_eq!(of(&[("HOME", "relative")]), None);
}

#[test]
fn a_decompressed_batch_may_take_a_part_of_the_memory_there_is() {
    let limit = |sets: &[&str]| {
        load(&sources("", &[], sets))
            .unwrap()
            .config
            .message_decompressed_max_bytes
    };
    assert_eq!(limit(&["memory.limit.bytes=128MiB"]), 8 << 20);
    assert_eq!(limit(&["memory.limit.bytes=4GiB"]), 64 << 20);
    let quarter = [
        "memory.limit.bytes=128MiB",
        "message.decompressed.max.bytes=32MiB",
    ];
    assert_eq!(limit(&quarter), 32 << 20);
    let above = [
        "memory.limit.bytes=128MiB",
        "message.decompressed.max.bytes=33554433",
    ];
    assert_eq!(
        mistakes(&sources("", &[], &above)),
        [
            "flag --set message.decompressed.max.bytes=33554433: message.decompressed.max.bytes (33554433) is above a \
             quarter of memory.limit.bytes (134217728); lower the first or raise the second"
        ]
    );
}
