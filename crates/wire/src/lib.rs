//! Every byte layout another process can see: Kafka messages, record batches and their codecs. No I/O.
