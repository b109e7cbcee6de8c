import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import com.fasterxml.jackson.databind.node.ArrayNode;
import com.fasterxml.jackson.databind.node.ObjectNode;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.Optional;
import java.util.Properties;
import java.util.concurrent.Future;
import org.apache.kafka.clients.admin.Admin;
import org.apache.kafka.clients.admin.NewTopic;
import org.apache.kafka.clients.consumer.ConsumerRebalanceListener;
import org.apache.kafka.clients.consumer.ConsumerRecord;
import org.apache.kafka.clients.consumer.KafkaConsumer;
import org.apache.kafka.clients.producer.KafkaProducer;
import org.apache.kafka.clients.producer.ProducerRecord;
import org.apache.kafka.common.TopicPartition;
import org.apache.kafka.common.header.Header;
import org.apache.kafka.common.serialization.ByteArrayDeserializer;
import org.apache.kafka.common.serialization.ByteArraySerializer;

/** The contract's verbs with Kafka's own Java client. See ../README.md. */
public final class Client {
    private static final ObjectMapper JSON = new ObjectMapper();

    private static byte[] data(JsonNode text) {
        return text.isNull() ? null : text.asText().getBytes(StandardCharsets.UTF_8);
    }

    private static String text(byte[] data) {
        return data == null ? null : new String(data, StandardCharsets.UTF_8);
    }

    private static synchronized void say(JsonNode line) {
        System.out.println(line);
        System.out.flush();
    }

    private static void show(ConsumerRecord<byte[], byte[]> record) {
        ObjectNode line = JSON.createObjectNode();
        line.put("partition", record.partition());
        line.put("offset", record.offset());
        line.put("timestamp", record.timestamp());
        line.put("key", text(record.key()));
        line.put("value", text(record.value()));
        ArrayNode headers = line.putArray("headers");
        for (Header header : record.headers()) {
            headers.addArray().add(header.key()).add(text(header.value()));
        }
        say(line);
    }

    private static KafkaConsumer<byte[], byte[]> consumer(String address, Map<String, String> more) {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.putAll(more);
        return new KafkaConsumer<>(settings, new ByteArrayDeserializer(), new ByteArrayDeserializer());
    }

    private static void produce(String address, String topic, String codec) throws Exception {
        Properties settings = new Properties();
        settings.put("bootstrap.servers", address);
        settings.put("compression.type", codec);
        try (KafkaProducer<byte[], byte[]> producer =
                new KafkaProducer<>(settings, new ByteArraySerializer(), new ByteArraySerializer())) {
            List<Future<?>> pending = new ArrayList<>();
            BufferedReader lines = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
            for (String line = lines.readLine(); line != null; line = lines.readLine()) {
                JsonNode r = JSON.readTree(line);
                ProducerRecord<byte[], byte[]> record = new ProducerRecord<>(
                        topic, r.get("partition").asInt(), r.get("timestamp").asLong(), data(r.get("key")), data(r.get("value")));
                for (JsonNode header : r.get("headers")) {
                    record.headers().add(header.get(0).asText(), data(header.get(1)));
                }
                pending.add(producer.send(record));
            }
            for (Future<?> one : pending) {
                one.get();
            }
        }
    }

    private static void consume(String address, String topic, String partition, String from, String count) {
        TopicPartition place = new TopicPartition(topic, Integer.parseInt(partition));
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(address, Map.of("enable.auto.commit", "false"))) {
            consumer.assign(List.of(place));
            if (from.startsWith("time:")) {
                long moment = Long.parseLong(from.substring("time:".length()));
                consumer.seek(place, consumer.offsetsForTimes(Map.of(place, moment)).get(place).offset());
            } else {
                consumer.seekToBeginning(List.of(place));
            }
            int left = Integer.parseInt(count);
            long deadline = System.nanoTime() + Duration.ofSeconds(60).toNanos();
            while (left > 0) {
                if (System.nanoTime() > deadline) {
                    throw new IllegalStateException(left + " records did not come");
                }
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(200))) {
                    if (left-- > 0) {
                        show(record);
                    }
                }
            }
        }
    }

    private static void member(String address, String topic, String group) throws Exception {
        try (KafkaConsumer<byte[], byte[]> consumer = consumer(address, Map.of(
                "group.id", group,
                "auto.offset.reset", "earliest",
                "session.timeout.ms", "6000",
                "heartbeat.interval.ms", "500"))) {
            consumer.subscribe(List.of(topic), new ConsumerRebalanceListener() {
                @Override
                public void onPartitionsRevoked(Collection<TopicPartition> revoked) {}

                @Override
                public void onPartitionsAssigned(Collection<TopicPartition> assigned) {
                    // With a cooperative assignor this is what was added; the contract wants all that is held.
                    ObjectNode line = JSON.createObjectNode();
                    ArrayNode numbers = line.putArray("assigned");
                    consumer.assignment().stream().map(TopicPartition::partition).sorted().forEach(numbers::add);
                    say(line);
                }
            });
            while (System.in.available() == 0) {
                for (ConsumerRecord<byte[], byte[]> record : consumer.poll(Duration.ofMillis(100))) {
                    show(record);
                }
            }
        }
    }

    public static void main(String[] args) throws Exception {
        switch (args[0]) {
            case "create", "delete" -> {
                try (Admin admin = Admin.create(Map.of("bootstrap.servers", args[1]))) {
                    if (args[0].equals("create")) {
                        NewTopic topic = new NewTopic(args[2], Optional.of(Integer.parseInt(args[3])), Optional.empty());
                        admin.createTopics(List.of(topic)).all().get();
                    } else {
                        admin.deleteTopics(List.of(args[2])).all().get();
                    }
                }
            }
            case "produce" -> produce(args[1], args[2], args[3]);
            case "consume" -> consume(args[1], args[2], args[3], args[4], args[5]);
            case "member" -> member(args[1], args[2], args[3]);
            default -> throw new IllegalArgumentException(args[0]);
        }
    }

    private Client() {}
}
