package load

import (
	"bufio"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// server answers each of its clients with fn until the test is over.
func server(t *testing.T, fn func(net.Conn)) (addr string, accepted *atomic.Int64) {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { l.Close() })
	accepted = new(atomic.Int64)
	go func() {
		for {
			conn, err := l.Accept()
			if err != nil {
				return
			}
			accepted.Add(1)
			go func() {
				defer conn.Close()
				fn(conn)
			}()
		}
	}()
	return l.Addr().String(), accepted
}

// answerSets replies +OK to each SET of a value without line ends.
func answerSets(conn net.Conn) {
	r := bufio.NewReaderSize(conn, 64<<10)
	for {
		for range 7 { // the lines of a SET
			if _, err := r.ReadSlice('\n'); err != nil {
				return
			}
		}
		if _, err := conn.Write([]byte("+OK\r\n")); err != nil {
			return
		}
	}
}

func TestClosedLoop(t *testing.T) {
	addr, accepted := server(t, answerSets)
	edges := 0
	got, err := Run(t.Context(), Plan{
		Addr: addr, Callers: 3, Idle: 4, Pipeline: 5, Request: Set(Value(10)),
		Warmup: 10 * time.Millisecond, Duration: 100 * time.Millisecond,
		Edge: func(bool) { edges++ },
	})
	if err != nil {
		t.Fatal(err)
	}
	if got.Commands == 0 || got.Commands%5 != 0 || got.Latency.TotalCount() != got.Commands {
		t.Errorf("%d commands, %d latencies", got.Commands, got.Latency.TotalCount())
	}
	if got.Elapsed < 100*time.Millisecond || edges != 2 || accepted.Load() != 7 {
		t.Errorf("elapsed %v, %d edges, %d connections", got.Elapsed, edges, accepted.Load())
	}
}

// A machine that is busy with other things is behind the rate, or catches up with it: one of a few
// runs has to keep it.
func TestFixedRate(t *testing.T) {
	addr, _ := server(t, answerSets)
	var rates []float64
	for range 20 {
		got, err := Run(t.Context(), Plan{
			Addr: addr, Callers: 8, Pipeline: 1, Request: Set(Value(10)),
			Rate: 4000, Tick: time.Millisecond, Warmup: 20 * time.Millisecond, Duration: 500 * time.Millisecond,
		})
		if err != nil {
			t.Fatal(err)
		}
		rate := float64(got.Commands) / got.Elapsed.Seconds()
		if rate > 3000 && rate < 4400 {
			return
		}
		rates = append(rates, rate)
	}
	t.Errorf("%.0f commands per second instead of 4000", rates)
}

func TestLateCommandsCountFromWhenTheyWereDue(t *testing.T) {
	addr, _ := server(t, func(conn net.Conn) {
		buf := make([]byte, 4096)
		for {
			if _, err := conn.Read(buf); err != nil {
				return
			}
			<-time.After(20 * time.Millisecond)
			if _, err := conn.Write([]byte("+OK\r\n")); err != nil {
				return
			}
		}
	})
	got, err := Run(t.Context(), Plan{
		Addr: addr, Callers: 1, Pipeline: 1, Request: Set(Value(10)),
		Rate: 200, Duration: 300 * time.Millisecond,
	})
	if err != nil {
		t.Fatal(err)
	}
	// One caller answers 50 a second, so the backlog grows: the last waited far over 20 ms.
	if worst := time.Duration(got.Latency.Max()); worst < 60*time.Millisecond {
		t.Errorf("worst latency %v forgives the stall", worst)
	}
}

func TestLargeRequestsAreWrittenInParts(t *testing.T) {
	addr, _ := server(t, func(conn net.Conn) {
		const size = 4 << 20
		whole := int64(len(encode("SET", Key(0, 0), strings.Repeat("v", size))))
		for {
			if _, err := io.CopyN(io.Discard, conn, whole); err != nil {
				return
			}
			if _, err := conn.Write([]byte("+OK\r\n")); err != nil {
				return
			}
		}
	})
	got, err := Run(t.Context(), Plan{
		Addr: addr, Callers: 2, Pipeline: 1, Request: Set(Value(4 << 20)), Duration: 100 * time.Millisecond,
	})
	if err != nil || got.Commands == 0 {
		t.Errorf("%d commands, %v", got.Commands, err)
	}
}

func TestFaultsEndTheMeasurement(t *testing.T) {
	reply := func(text string) func(net.Conn) {
		return func(conn net.Conn) {
			buf := make([]byte, 4096)
			if _, err := conn.Read(buf); err != nil {
				return
			}
			_, _ = conn.Write([]byte(text))
			_, _ = conn.Read(buf)
		}
	}
	tests := []struct {
		name   string
		server func(net.Conn)
		want   string
	}{
		{"an error reply", reply("-ERR no\r\n"), `wrong reply "-ERR no\r\n" instead of "+OK\r\n"`},
		{"one reply too many", reply("+OK\r\n+OK\r\n"), "nobody waits for"},
		{"a closed connection", func(conn net.Conn) { _, _ = conn.Read(make([]byte, 100)) }, "unexpected EOF"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			addr, _ := server(t, tt.server)
			_, err := Run(t.Context(), Plan{Addr: addr, Callers: 1, Pipeline: 1, Request: Set(Value(10)), Duration: time.Second})
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q", err, tt.want)
			}
		})
	}
}

func TestRunEndsWithItsContext(t *testing.T) {
	addr, _ := server(t, answerSets)
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	_, err := Run(ctx, Plan{
		Addr: addr, Callers: 1, Pipeline: 1, Request: Set(Value(10)), Duration: time.Minute,
		Edge: func(bool) { cancel(enough) },
	})
	if !errors.Is(err, enough) {
		t.Errorf("error %v", err)
	}
}

func TestPlanFaultsAreReportedTogether(t *testing.T) {
	_, err := Run(t.Context(), Plan{Rate: -1})
	for _, want := range []string{"0 callers", "pipeline of 0", "no requests", "duration of 0s", "rate of -1"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v does not mention %q", err, want)
		}
	}
}
