// The contract's verbs with franz-go. See ../README.md.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kadm"
	"github.com/twmb/franz-go/pkg/kgo"
)

type record struct {
	Partition int32        `json:"partition"`
	Offset    int64        `json:"offset"`
	Timestamp int64        `json:"timestamp"`
	Key       *string      `json:"key"`
	Value     *string      `json:"value"`
	Headers   [][2]*string `json:"headers"`
}

var out sync.Mutex

func say(line any) {
	text, err := json.Marshal(line)
	check(err)
	out.Lock()
	defer out.Unlock()
	fmt.Println(string(text))
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

func text(data []byte) *string {
	if data == nil {
		return nil
	}
	text := string(data)
	return &text
}

func data(text *string) []byte {
	if text == nil {
		return nil
	}
	return append([]byte{}, *text...)
}

func shown(r *kgo.Record) record {
	headers := [][2]*string{}
	for _, h := range r.Headers {
		name := h.Key
		headers = append(headers, [2]*string{&name, text(h.Value)})
	}
	return record{r.Partition, r.Offset, r.Timestamp.UnixMilli(), text(r.Key), text(r.Value), headers}
}

func client(address string, options ...kgo.Opt) *kgo.Client {
	c, err := kgo.NewClient(append([]kgo.Opt{kgo.SeedBrokers(address)}, options...)...)
	check(err)
	return c
}

func produce(ctx context.Context, address, topic, codec string) {
	codecs := map[string]kgo.CompressionCodec{
		"none": kgo.NoCompression(), "gzip": kgo.GzipCompression(), "snappy": kgo.SnappyCompression(),
		"lz4": kgo.Lz4Compression(), "zstd": kgo.ZstdCompression(),
	}
	c := client(address, kgo.ProducerBatchCompression(codecs[codec]), kgo.RecordPartitioner(kgo.ManualPartitioner()))
	defer c.Close()
	lines := bufio.NewScanner(os.Stdin)
	for lines.Scan() {
		var r record
		check(json.Unmarshal(lines.Bytes(), &r))
		sent := &kgo.Record{Topic: topic, Partition: r.Partition, Timestamp: time.UnixMilli(r.Timestamp), Key: data(r.Key), Value: data(r.Value)}
		for _, h := range r.Headers {
			sent.Headers = append(sent.Headers, kgo.RecordHeader{Key: *h[0], Value: data(h[1])})
		}
		c.Produce(ctx, sent, func(_ *kgo.Record, err error) { check(err) })
	}
	check(c.Flush(ctx))
}

func consume(ctx context.Context, address, topic, partition, from, count string) {
	number, err := strconv.Atoi(partition)
	check(err)
	left, err := strconv.Atoi(count)
	check(err)
	start := kgo.NewOffset().AtStart()
	if moment, ok := strings.CutPrefix(from, "time:"); ok {
		ms, err := strconv.ParseInt(moment, 10, 64)
		check(err)
		start = kgo.NewOffset().AfterMilli(ms)
	}
	c := client(address, kgo.ConsumePartitions(map[string]map[int32]kgo.Offset{topic: {int32(number): start}}))
	defer c.Close()
	for left > 0 {
		fetches := c.PollRecords(ctx, left)
		check(fetches.Err())
		fetches.EachRecord(func(r *kgo.Record) { say(shown(r)); left-- })
	}
}

func member(ctx context.Context, address, topic, group string) {
	ctx, cancel := context.WithCancel(ctx)
	c := client(address, kgo.ConsumerGroup(group), kgo.ConsumeTopics(topic),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.SessionTimeout(6*time.Second), kgo.HeartbeatInterval(500*time.Millisecond),
		kgo.Balancers(kgo.RangeBalancer()),
		kgo.OnPartitionsAssigned(func(_ context.Context, _ *kgo.Client, assigned map[string][]int32) {
			partitions := append([]int32{}, assigned[topic]...)
			sort.Slice(partitions, func(i, j int) bool { return partitions[i] < partitions[j] })
			say(map[string][]int32{"assigned": partitions})
		}))
	go func() {
		bufio.NewReader(os.Stdin).ReadByte()
		cancel()
	}()
	for ctx.Err() == nil {
		c.PollFetches(ctx).EachRecord(func(r *kgo.Record) { say(shown(r)) })
	}
	check(c.CommitUncommittedOffsets(context.Background()))
	c.Close()
}

func main() {
	args := os.Args[2:]
	address, topic := args[0], args[1]
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	switch os.Args[1] {
	case "create":
		partitions, err := strconv.Atoi(args[2])
		check(err)
		_, err = kadm.NewClient(client(address)).CreateTopic(ctx, int32(partitions), -1, nil, topic)
		check(err)
	case "delete":
		answers, err := kadm.NewClient(client(address)).DeleteTopics(ctx, topic)
		check(err)
		check(answers.Error())
	case "produce":
		produce(ctx, address, topic, args[2])
	case "consume":
		consume(ctx, address, topic, args[2], args[3], args[4])
	case "member":
		member(ctx, address, topic, args[2])
	}
}
