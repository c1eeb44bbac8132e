package telemetry

import (
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus/testutil"
)

var update = flag.Bool("update", false, "rewrite the golden files")

var (
	testBuild  = Build{"v1.2.3", "abc", "go1"}
	testLabels = Labels{Classes: []string{"shared", "blocking"}, FlushReasons: []string{"idle", "full"}, Limits: []string{"memory", "idle"}}
)

func newTestMetrics(s *Snapshot) *Metrics {
	m := New(testBuild, testLabels)
	m.Observe(func() Snapshot { return *s })
	return m
}

// Names, types and labels are what dashboards and alerts are built on: a change here
// breaks them and has to be wanted.
func TestNamesAreFrozen(t *testing.T) {
	families, err := newTestMetrics(&Snapshot{}).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	var lines []string
	for _, f := range families {
		if !strings.HasPrefix(f.GetName(), prefix) {
			continue
		}
		var labels []string
		for _, p := range f.GetMetric()[0].GetLabel() {
			labels = append(labels, p.GetName())
		}
		lines = append(lines, fmt.Sprintf("%s %s {%s}", f.GetName(), strings.ToLower(f.GetType().String()), strings.Join(labels, ",")))
	}
	got := strings.Join(lines, "\n") + "\n"
	const golden = "testdata/names.golden"
	if *update {
		if err := os.WriteFile(golden, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(golden)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("the metrics changed (-update if that is meant)\ngot\n%swant\n%s", got, want)
	}
	if len(lines) != len(table) {
		t.Errorf("%d metrics exported, %d in the table", len(lines), len(table))
	}
}

// A page that leaves out what a label may be tells a reader half of what to ask for.
func TestPageNamesTheValuesOfEveryLabel(t *testing.T) {
	var page strings.Builder
	WriteMarkdown(&page, testLabels)
	for line := range strings.Lines(page.String()) {
		if strings.Contains(line, "`:  |") {
			t.Errorf("a label without values: %s", line)
		}
	}
}

func TestLint(t *testing.T) {
	problems, err := testutil.GatherAndLint(newTestMetrics(&Snapshot{}).registry)
	if err != nil {
		t.Fatal(err)
	}
	for _, p := range problems {
		t.Errorf("%s: %s", p.Metric, p.Text)
	}
}

func TestTableMatchesCollectors(t *testing.T) {
	families, err := newTestMetrics(&Snapshot{}).registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		name, ours := strings.CutPrefix(f.GetName(), prefix)
		if ours && lookup(name).kind.String() != strings.ToLower(f.GetType().String()) {
			t.Errorf("%s: the table says %s", name, lookup(name).kind)
		}
	}
	for _, m := range table {
		if !slices.IsSorted(m.buckets) || (m.kind == histogram) != (len(m.buckets) > 0) {
			t.Errorf("%s: buckets %v", m.name, m.buckets)
		}
	}
}

func TestEventsAreCounted(t *testing.T) {
	m := newTestMetrics(&Snapshot{
		Clients: 3, InFlight: 4, Lanes: 1, PrivateIdle: 2, PrivateBusy: 5, Control: 1,
		BufferedBytes: 1000, UpstreamUp: true, Draining: true,
	})
	m.Accepted("ok")
	m.Accepted("a word of a later version")
	m.Commands(1, 7)
	m.Received(10)
	m.Sent(20)
	m.Served(time.Millisecond, 3*time.Microsecond)
	m.ProtocolError()
	m.Limited(1)
	m.PrivateWait(2 * time.Millisecond)
	m.Flushed(1, 16, 900, 40*time.Microsecond)
	m.RoundTrip(200 * time.Microsecond)
	m.DelayChosen(10 * time.Microsecond)
	m.Failed("eof")
	m.Reconnected()
	m.PushDropped()
	for series, want := range map[string]float64{
		`client_connections_total{result="ok"}`:                        1,
		`client_connections_total{result="other"}`:                     1,
		`client_connections_total{result="error"}`:                     0,
		`client_commands_total{class="shared"}`:                        0,
		`client_commands_total{class="blocking"}`:                      7,
		`client_received_bytes_total`:                                  10,
		`client_sent_bytes_total`:                                      20,
		`client_command_duration_seconds_count`:                        1,
		`client_command_duration_seconds_sum`:                          0.001,
		`proxy_overhead_seconds_bucket{le="5e-06"}`:                    1,
		`proxy_overhead_seconds_bucket{le="1e-06"}`:                    0,
		`client_protocol_errors_total`:                                 1,
		`client_limits_total{limit="idle"}`:                            1,
		`private_wait_seconds_count`:                                   1,
		`batch_flushes_total{reason="full"}`:                           1,
		`batch_commands_bucket{le="16"}`:                               1,
		`batch_bytes_sum`:                                              900,
		`batch_wait_seconds_count`:                                     1,
		`upstream_roundtrip_seconds_count`:                             1,
		`flush_delay_seconds`:                                          1e-05,
		`upstream_errors_total{reason="eof"}`:                          1,
		`upstream_reconnects_total`:                                    1,
		`upstream_pushes_dropped_total`:                                1,
		`draining`:                                                     1,
		`upstream_up`:                                                  1,
		`client_connections`:                                           3,
		`upstream_inflight_commands`:                                   4,
		`upstream_connections{kind="lane"}`:                            1,
		`upstream_connections{kind="private"}`:                         7,
		`upstream_connections{kind="control"}`:                         1,
		`private_connections{state="busy"}`:                            5,
		`private_connections{state="idle"}`:                            2,
		`buffered_bytes`:                                               1000,
		`build_info{go_version="go1",revision="abc",version="v1.2.3"}`: 1,
	} {
		if got, ok := scrape(t, m)[prefix+series]; !ok || got != want {
			t.Errorf("%s = %v (present: %v), want %v", series, got, ok, want)
		}
	}
}

// At a million commands a second these calls happen some ten thousand times; none of
// them may leave work to the garbage collector.
func TestEventsDoNotAllocate(t *testing.T) {
	m := newTestMetrics(&Snapshot{})
	if n := testing.AllocsPerRun(100, func() { events(m) }); n != 0 {
		t.Errorf("%v allocations per round of events", n)
	}
}

// events is what one batch of commands causes.
func events(m *Metrics) {
	m.Received(1000)
	m.Commands(0, 16)
	m.Flushed(0, 16, 1000, time.Microsecond)
	m.Served(time.Millisecond, time.Microsecond)
	m.Sent(1000)
}

func BenchmarkEventsOfABatch(b *testing.B) {
	m := newTestMetrics(&Snapshot{})
	b.ReportAllocs()
	for b.Loop() {
		events(m)
	}
}
