package top

import (
	"strings"
	"testing"
	"time"
)

const quiet = `streamproxy_client_connections 200
streamproxy_client_commands_total{class="blocking"} 10
streamproxy_client_commands_total{class="shared"} 1000
streamproxy_client_commands_total{class="wait"} 7
streamproxy_client_received_bytes_total 0
streamproxy_client_command_duration_seconds_bucket{le="0.001"} 0
streamproxy_client_command_duration_seconds_bucket{le="+Inf"} 0
streamproxy_batch_commands_sum 1000
streamproxy_batch_commands_count 1000
streamproxy_batch_flushes_total{reason="delay"} 0
streamproxy_batch_flushes_total{reason="idle"} 1000
streamproxy_flush_delay_seconds 0.001
streamproxy_upstream_up 1
streamproxy_upstream_errors_total{reason="eof"} 1
streamproxy_upstream_connections{kind="lane"} 1
streamproxy_upstream_connections{kind="control"} 1
streamproxy_private_connections{state="busy"} 1
streamproxy_private_connections{state="idle"} 2
streamproxy_reclaim_rounds_total{result="led"} 12
streamproxy_reclaim_hot_streams 3
streamproxy_log_messages_total{level="error"} 0
`

const busy = `streamproxy_client_connections 201
streamproxy_upstream_inflight_commands 12
streamproxy_client_commands_total{class="blocking"} 14
streamproxy_client_commands_total{class="shared"} 25000
streamproxy_client_commands_total{class="wait"} 7
streamproxy_client_received_bytes_total 4194304
streamproxy_client_sent_bytes_total 3000
streamproxy_client_command_duration_seconds_bucket{le="0.001"} 100
streamproxy_client_command_duration_seconds_bucket{le="+Inf"} 100
streamproxy_client_command_duration_seconds_sum 0.05
streamproxy_client_command_duration_seconds_count 100
streamproxy_proxy_overhead_seconds_sum 0.002
streamproxy_proxy_overhead_seconds_count 100
streamproxy_batch_commands_sum 25000
streamproxy_batch_commands_count 5000
streamproxy_batch_flushes_total{reason="delay"} 3000
streamproxy_batch_flushes_total{reason="idle"} 2000
streamproxy_flush_delay_seconds 0.001
streamproxy_upstream_up 1
streamproxy_upstream_errors_total{reason="eof"} 3
streamproxy_upstream_connections{kind="lane"} 1
streamproxy_upstream_connections{kind="control"} 1
streamproxy_upstream_roundtrip_seconds_sum 2.8
streamproxy_upstream_roundtrip_seconds_count 100
streamproxy_private_connections{state="busy"} 1
streamproxy_private_connections{state="idle"} 2
streamproxy_buffered_bytes 2048
streamproxy_reclaim_rounds_total{result="led"} 12
streamproxy_reclaim_hot_streams 3
streamproxy_reclaim_local_answers_total{command="xautoclaim"} 322
streamproxy_log_messages_total{level="error"} 0
`

const wantBusy = `state     serving  up 1h0m0s  v1
clients   201 connected  12 in flight  2.0 MiB/s in  1.5 KiB/s out
commands  12.0k/s  blocking 2/s  shared 12.0k/s
times     mean 500 us  p50 500 us  p99 990 us  of it here 20 us
batches   2000/s  6 commands each  may wait 1.0 ms
flushes   delay 75 %  idle 25 %
upstream  1 shared  3 private, 1 busy  1 control  round trip 28.0 ms
buffers   2.0 KiB
reclaim   12 rounds led  0 leases  3 hot streams  0 held, 0 B  161/s local answers
errors    upstream eof 3 (+2)`

func readingOf(page string, seconds int, s *stats) reading {
	r := reading{at: time.Unix(int64(seconds), 0), stats: s}
	if page != "" {
		r.metrics = parseSeries([]byte(page))
	}
	return r
}

func TestView(t *testing.T) {
	s := stats{Version: "v1", UptimeSeconds: 3600, Clients: 201, InFlight: 12, Lanes: 1, PrivateIdle: 2, PrivateBusy: 1, Control: 1, BufferedBytes: 2048, UpstreamUp: true}
	rows := view(readingOf(quiet, 10, nil), readingOf(busy, 12, &s))
	if got := strings.Join(lines(rows, wide, false), "\n"); got != wantBusy {
		t.Errorf("got\n%s\nwant\n%s", got, wantBusy)
	}
	// What /stats.json adds is when the proxy began, and which it is.
	rows = view(readingOf(quiet, 10, nil), readingOf(busy, 12, nil))
	if got := strings.Join(lines(rows, wide, false), "\n"); got != strings.Replace(wantBusy, "  up 1h0m0s  v1", "", 1) {
		t.Errorf("without /stats.json:\n%s", got)
	}
}

func TestViewWithoutMetrics(t *testing.T) {
	before, now := stats{Commands: 100, UpstreamUp: true}, stats{Commands: 300, Clients: 3, UpstreamUp: true, NotReady: "LOADING"}
	got := strings.Join(lines(view(readingOf("", 10, &before), readingOf("", 12, &now)), wide, false), "\n")
	for _, want := range []string{"upstream is not ready: LOADING", "3 connected", "commands  100/s"} {
		if !strings.Contains(got, want) {
			t.Errorf("%q is missing:\n%s", want, got)
		}
	}
}

func TestStates(t *testing.T) {
	for want, s := range map[string]stats{
		"draining":                   {Draining: true},
		"upstream is not reachable":  {},
		"upstream is not ready: why": {UpstreamUp: true, NotReady: "why"},
		"serving":                    {UpstreamUp: true},
	} {
		if r := stateRow(s, reading{}); r.cells[0] != want {
			t.Errorf("%+v: %q", s, r.cells)
		}
	}
}

func TestFormats(t *testing.T) {
	for _, tt := range []struct{ got, want string }{
		{count(0), "0"}, {count(5.94), "5.9"}, {count(4883.4), "4883"}, {count(48830), "48.8k"}, {count(2.5e6), "2.50M"},
		{size(12), "12 B"}, {size(3 << 20), "3.0 MiB"}, {size(5 << 30), "5.00 GiB"},
		{span(0.0000004), "0 us"}, {span(0.02), "20.0 ms"}, {span(1.5), "1.50 s"}, {span(90061), "25h1m1s"},
	} {
		if tt.got != tt.want {
			t.Errorf("got %q, want %q", tt.got, tt.want)
		}
	}
}
