package streamlab

import (
	"bufio"
	"bytes"
	"context"
	_ "embed" // worker.py
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

//go:embed worker.py
var workerScript string

// Job is what a worker is told.
type Job struct {
	URL      string   `json:"url"`
	Streams  []string `json:"streams"`
	Group    string   `json:"group"`
	Consumer string   `json:"consumer"`
	Split    bool     `json:"split"` // the loop instead of the package's
	Ack      bool     `json:"ack"`
	Block    int64    `json:"block"` // milliseconds, like Idle
	Idle     int64    `json:"idle"`
}

// The experiment's parameters, where it does not vary them.
const (
	group     = "g"
	blockTime = 5000 * time.Millisecond
	// idleBlock is the package's default, for queues on which nothing happens for long.
	idleBlock = 2000 * time.Millisecond
	idleTime  = 1800 * time.Second
)

// newJob is the experiment's own job.
func newJob(url string, streams int) Job {
	return Job{
		URL: url, Streams: streamNames(streams), Group: group, Consumer: "c", Ack: true,
		Block: blockTime.Milliseconds(), Idle: idleTime.Milliseconds(),
	}
}

func streamNames(n int) []string {
	names := make([]string, n)
	for i := range names {
		names[i] = fmt.Sprintf("stream-%d", i)
	}
	return names
}

// now reads the monotonic clock that the workers print.
func now() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_MONOTONIC, &t) // it fails only for a bad pointer
	return time.Duration(t.Nano())
}

// arrival is a message that listen() has yielded.
type arrival struct {
	at      time.Duration
	payload string
}

// read is one XREADGROUP's return.
type read struct {
	at      time.Duration
	pass    time.Duration // since the one before had returned, until this one was sent
	entries int
}

// told is everything that a worker has told so far.
type told struct {
	listening time.Duration // 0: not yet
	arrivals  []arrival
	reads     []read
}

// note takes in one line.
func (t *told) note(line string) error {
	fields := strings.Fields(line)
	if len(fields) < 2 {
		return fmt.Errorf("worker said %q", line)
	}
	numbers := make([]int64, 0, 3)
	for _, f := range fields[1:] {
		if n, err := strconv.ParseInt(f, 10, 64); err == nil {
			numbers = append(numbers, n)
		}
	}
	switch {
	case fields[0] == "listening" && len(numbers) == 1:
		t.listening = time.Duration(numbers[0])
	case fields[0] == "read" && len(numbers) == 3:
		t.reads = append(t.reads, read{time.Duration(numbers[0]), time.Duration(numbers[1]), int(numbers[2])})
	case fields[0] == "got" && len(fields) == 3 && len(numbers) > 0:
		t.arrivals = append(t.arrivals, arrival{time.Duration(numbers[0]), fields[2]})
	default:
		return fmt.Errorf("worker said %q", line)
	}
	return nil
}

// worker is a running worker process.
type worker struct {
	cmd    *exec.Cmd
	errors bytes.Buffer // what it wrote to stderr; read it when ended is closed
	ended  chan struct{}

	mu      sync.Mutex
	told    told
	fault   error
	changed chan struct{} // replaced at each line
}

// startWorker starts a worker with a pair's interpreter.
func startWorker(python string, job *Job) (*worker, error) {
	text, err := json.Marshal(job)
	if err != nil {
		return nil, err
	}
	return startScript(python, "-c", workerScript, string(text))
}

func startScript(name string, args ...string) (*worker, error) {
	w := &worker{cmd: exec.Command(name, args...), ended: make(chan struct{}), changed: make(chan struct{})}
	w.cmd.Stderr = &w.errors
	// A benchmark that is killed must not leave workers behind.
	w.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	out, err := w.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := w.cmd.Start(); err != nil {
		return nil, err
	}
	go w.follow(out)
	return w, nil
}

// follow takes in what the worker prints until it ends. It ends with the process.
func (w *worker) follow(out io.Reader) {
	lines := bufio.NewScanner(out)
	for lines.Scan() {
		w.mu.Lock()
		if err := w.told.note(lines.Text()); err != nil && w.fault == nil {
			w.fault = err
		}
		close(w.changed)
		w.changed = make(chan struct{})
		w.mu.Unlock()
	}
	err := w.cmd.Wait()
	w.mu.Lock()
	if w.fault == nil {
		w.fault = fmt.Errorf("worker has ended (%v); it said:\n%s", err, lastBytes(w.errors.Bytes(), 2000))
	}
	close(w.changed)
	w.changed = make(chan struct{})
	w.mu.Unlock()
	close(w.ended)
}

func lastBytes(b []byte, n int) []byte { return b[max(0, len(b)-n):] }

// wait waits until what was told satisfies the function, which is called with the lock held. The
// error is the worker's, or the context's.
func (w *worker) wait(ctx context.Context, until func(*told) bool) error {
	for {
		w.mu.Lock()
		done, fault, changed := until(&w.told), w.fault, w.changed
		w.mu.Unlock()
		switch {
		case done:
			return nil
		case fault != nil:
			return fault
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// snapshot returns what was told until now.
func (w *worker) snapshot() told {
	w.mu.Lock()
	defer w.mu.Unlock()
	return told{
		listening: w.told.listening,
		arrivals:  append([]arrival(nil), w.told.arrivals...),
		reads:     append([]read(nil), w.told.reads...),
	}
}

// kill ends the process as kill -9 does, and waits for its end.
func (w *worker) kill() {
	_ = w.cmd.Process.Kill() // it may be gone already
	<-w.ended
}
