/* The bench's load tool: one librdkafka producer or consumer, the same for every broker. Prints one line of JSON.
 *
 *   load create  ADDRESS TOPIC PARTITIONS
 *   load produce ADDRESS TOPIC COUNT SIZE KEYS RATE     KEYS 0: no key; RATE 0: as fast as it goes
 *   load consume ADDRESS TOPIC COUNT PARTITIONS PASSES  all of it, PASSES times; the clock starts with the second pass,
 *                                                       or, where there is one pass, with the first records
 *   load floor   COUNT SIZE RATE                        produce to librdkafka's mock broker, which keeps nothing: the tool's own share
 *
 * Producers: acks=all, idempotent, linger 5 ms, and 1 ms where a rate is given. Payloads do not compress and are
 * not copied. Latencies are from the call of produce to the delivery report.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include "rdkafka.h"

static void fail(const char *what, const char *why) {
    fprintf(stderr, "load: %s: %s\n", what, why);
    exit(1);
}

static int64_t now_ns(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000000000 + t.tv_nsec;
}

static void set(rd_kafka_conf_t *conf, const char *name, const char *value) {
    char why[512];
    if (rd_kafka_conf_set(conf, name, value, why, sizeof why) != RD_KAFKA_CONF_OK) fail(name, why);
}

static rd_kafka_t *client(rd_kafka_type_t type, rd_kafka_conf_t *conf, const char *address) {
    char why[512];
    if (address) set(conf, "bootstrap.servers", address);
    else set(conf, "test.mock.num.brokers", "1"), set(conf, "log_level", "3");
    set(conf, "broker.address.family", "v4");
    rd_kafka_t *rk = rd_kafka_new(type, conf, why, sizeof why);
    if (!rk) fail("client", why);
    return rk;
}

static int create(const char *address, const char *topic, int partitions) {
    char why[512];
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, rd_kafka_conf_new(), address);
    rd_kafka_NewTopic_t *wanted = rd_kafka_NewTopic_new(topic, partitions, 1, why, sizeof why);
    rd_kafka_queue_t *queue = rd_kafka_queue_new(rk);
    rd_kafka_CreateTopics(rk, &wanted, 1, NULL, queue);
    rd_kafka_event_t *event = rd_kafka_queue_poll(queue, 60000);
    if (!event) fail("create", "no answer");
    if (rd_kafka_event_error(event)) fail("create", rd_kafka_event_error_string(event));
    size_t count;
    const rd_kafka_topic_result_t **results =
        rd_kafka_CreateTopics_result_topics(rd_kafka_event_CreateTopics_result(event), &count);
    if (rd_kafka_topic_result_error(results[0])) fail("create", rd_kafka_topic_result_error_string(results[0]));
    return 0;
}

static int64_t acknowledged, failed, *latencies;

static void delivered(rd_kafka_t *rk, const rd_kafka_message_t *message, void *opaque) {
    if (message->err) {
        if (failed++ == 0) fprintf(stderr, "load: %s\n", rd_kafka_err2str(message->err));
    } else {
        if (latencies) latencies[acknowledged] = now_ns() - (int64_t)(intptr_t)message->_private;
        acknowledged++;
    }
}

static int ascending(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return x < y ? -1 : x > y;
}

static int produce(const char *address, const char *topic, int64_t count, int size, int keys, int rate) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "acks", "all");
    set(conf, "enable.idempotence", "true");
    set(conf, "linger.ms", rate ? "1" : "5");
    set(conf, "batch.size", "1000000");
    set(conf, "queue.buffering.max.messages", "500000");
    set(conf, "queue.buffering.max.kbytes", "524288");
    rd_kafka_conf_set_dr_msg_cb(conf, delivered);
    rd_kafka_t *rk = client(RD_KAFKA_PRODUCER, conf, address);
    rd_kafka_topic_t *rkt = rd_kafka_topic_new(rk, topic, NULL);
    char *payload = malloc(size);
    srand(7);
    for (int i = 0; i < size; i++) payload[i] = rand();
    /* Connection, metadata and the producer id (librdkafka may wait half a second before it asks for one) are had
     * before the clock starts: one record is acknowledged first. */
    if (rd_kafka_produce(rkt, RD_KAFKA_PARTITION_UA, 0, payload, size, NULL, 0, NULL)) fail("produce", "the first record");
    if (rd_kafka_flush(rk, 30000) || acknowledged != 1) fail("produce", "the first record is not acknowledged");
    acknowledged = 0;
    if (rate) latencies = malloc(count * sizeof *latencies);

    int64_t started = now_ns();
    for (int64_t i = 0; i < count; i++) {
        char key[16];
        size_t key_length = keys ? (size_t)snprintf(key, sizeof key, "key-%06d", (int)(i % keys)) : 0;
        if (rate) {
            int64_t due = started + i * 1000000000 / rate;
            while (now_ns() < due) rd_kafka_poll(rk, 0), nanosleep(&(struct timespec){0, 200000}, NULL);
        }
        void *opaque = (void *)(intptr_t)(rate ? now_ns() : 0);
        while (rd_kafka_produce(rkt, RD_KAFKA_PARTITION_UA, 0, payload, size, keys ? key : NULL, key_length, opaque)) {
            if (rd_kafka_last_error() != RD_KAFKA_RESP_ERR__QUEUE_FULL)
                fail("produce", rd_kafka_err2str(rd_kafka_last_error()));
            rd_kafka_poll(rk, 5);
        }
        if ((i & 255) == 0) rd_kafka_poll(rk, 0);
    }
    while (acknowledged + failed < count) rd_kafka_poll(rk, 50);
    double seconds = (now_ns() - started) / 1e9;
    printf("{\"records\":%" PRId64 ",\"failed\":%" PRId64 ",\"seconds\":%.6f", acknowledged, failed, seconds);
    if (latencies && acknowledged) {
        /* The first tenth warms both sides up. */
        int64_t skip = acknowledged / 10, n = acknowledged - skip, *kept = latencies + skip;
        qsort(kept, n, sizeof *kept, ascending);
        printf(",\"p50_us\":%.1f,\"p99_us\":%.1f,\"p999_us\":%.1f", kept[n / 2] / 1e3, kept[n * 99 / 100] / 1e3,
               kept[n * 999 / 1000] / 1e3);
    }
    printf("}\n");
    return failed ? 1 : 0;
}

static int consume(const char *address, const char *topic, int64_t count, int partitions, int passes) {
    rd_kafka_conf_t *conf = rd_kafka_conf_new();
    set(conf, "group.id", "bench");
    set(conf, "enable.auto.commit", "false");
    /* A new pass does not wait behind the last one's long poll. */
    set(conf, "fetch.wait.max.ms", "10");
    set(conf, "fetch.message.max.bytes", "4194304");
    set(conf, "queued.max.messages.kbytes", "262144");
    set(conf, "queued.min.messages", "1000000");
    /* A consumer that checks what it reads, for every broker. */
    set(conf, "check.crcs", "true");
    rd_kafka_t *rk = client(RD_KAFKA_CONSUMER, conf, address);
    rd_kafka_poll_set_consumer(rk);
    rd_kafka_topic_partition_list_t *all = rd_kafka_topic_partition_list_new(partitions);
    for (int p = 0; p < partitions; p++) rd_kafka_topic_partition_list_add(all, topic, p)->offset = RD_KAFKA_OFFSET_BEGINNING;
    rd_kafka_queue_t *queue = rd_kafka_queue_get_consumer(rk);
    int64_t started = 0, last = now_ns(), got, bytes = 0;
    rd_kafka_message_t *batch[4096];
    for (int pass = 0; pass < passes; pass++) {
        if (rd_kafka_assign(rk, all)) fail("assign", "refused");
        if (pass == 1) started = now_ns(), bytes = 0;
        for (got = 0; got < count;) {
            ssize_t n = rd_kafka_consume_batch_queue(queue, 200, batch, 4096);
            for (ssize_t i = 0; i < n; i++) {
                if (!batch[i]->err) got++, bytes += (int64_t)batch[i]->len;
                rd_kafka_message_destroy(batch[i]);
            }
            if (n > 0) last = now_ns();
            if (n > 0 && !started) started = last, bytes = 0;
            if (now_ns() - last > 30000000000) fail("consume", "nothing came for 30 s");
        }
    }
    printf("{\"bytes\":%" PRId64 ",\"failed\":0,\"seconds\":%.6f}\n", bytes, (last - started) / 1e9);
    return 0;
}

int main(int argc, char **argv) {
    if (argc == 5 && !strcmp(argv[1], "create")) return create(argv[2], argv[3], atoi(argv[4]));
    if (argc == 8 && !strcmp(argv[1], "produce"))
        return produce(argv[2], argv[3], atoll(argv[4]), atoi(argv[5]), atoi(argv[6]), atoi(argv[7]));
    if (argc == 7 && !strcmp(argv[1], "consume"))
        return consume(argv[2], argv[3], atoll(argv[4]), atoi(argv[5]), atoi(argv[6]));
    if (argc == 5 && !strcmp(argv[1], "floor")) return produce(NULL, "floor", atoll(argv[2]), atoi(argv[3]), 0, atoi(argv[4]));
    fprintf(stderr, "usage: load create|produce|consume ...\n");
    return 2;
}
