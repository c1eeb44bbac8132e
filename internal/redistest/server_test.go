package redistest

import (
	"strconv"
	"strings"
	"testing"
	"time"
)

func TestServer(t *testing.T) {
	s := Start(t)
	for _, addr := range []string{s.Addr(), s.Socket()} {
		c, err := Dial(addr)
		if err != nil {
			t.Fatal(err)
		}
		if reply, err := c.Do("PING"); reply != "+PONG\r\n" || err != nil {
			t.Errorf("%s: %q, %v", addr, reply, err)
		}
		_ = c.Close()
	}
	if got := s.Info("server", "process_id"); got != strconv.Itoa(s.Pid()) {
		t.Errorf("process %s, want %d", got, s.Pid())
	}
	if got := s.Do("NOSUCH"); !strings.HasPrefix(got, "-ERR unknown command") {
		t.Errorf("raw error %q", got)
	}
}

func TestRestart(t *testing.T) {
	s := Start(t)
	addr, run := s.Addr(), s.Info("server", "run_id")
	s.Do("SET", "k", "v")
	s.Restart()
	if s.Addr() != addr || s.Info("server", "run_id") == run {
		t.Error("not another run at the same address")
	}
	if got := s.Do("GET", "k"); got != "$-1\r\n" {
		t.Errorf("something was kept: %q", got)
	}
	s.Kill()
	s.Kill()
	if _, err := Dial(addr); err == nil {
		t.Error("a killed server accepts")
	}
}

func TestStopAndCont(t *testing.T) {
	s := Start(t)
	c := s.Client()
	s.Stop()
	c.Timeout = 30 * time.Millisecond
	if reply, err := c.Do("PING"); err == nil {
		t.Errorf("a stopped server answered %q", reply)
	}
	s.Cont()
	c.Timeout = DefaultTimeout
	if reply, err := c.ReadReply(); reply != "+PONG\r\n" || err != nil {
		t.Errorf("after Cont: %q, %v", reply, err)
	}
}

func TestPasswordAndArgs(t *testing.T) {
	s := Start(t, WithPassword("p"), WithArgs("--databases", "3"))
	if got := s.URL(); got != "redis://:p@"+s.Addr() {
		t.Errorf("URL %s", got)
	}
	if got := s.Do("CONFIG", "GET", "databases"); got != "*2\r\n$9\r\ndatabases\r\n$1\r\n3\r\n" {
		t.Errorf("got %q", got)
	}
	if got, err := s.Client().Do("PING"); got != "+PONG\r\n" || err != nil {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestCPU(t *testing.T) {
	s := Start(t)
	before := s.CPU()
	s.Do("EVAL", "for i=1,20000000 do end", "0")
	if used := s.CPU() - before; used <= 0 || used > time.Minute {
		t.Errorf("a busy server used %v", used)
	}
}

// A missing server must fail the test, unless skipping is allowed.
func TestBinaryMissing(t *testing.T) {
	t.Setenv("REDIS_SERVER", "no-such-server")
	for _, allow := range []string{"", "1"} {
		t.Setenv("ALLOW_SKIP", allow)
		var r recorder
		done := make(chan struct{})
		go func() { // Fatalf and Skipf end the goroutine they are called on
			defer close(done)
			Binary(&r)
		}()
		<-done
		if (allow == "1") != r.skipped || (allow == "1") == r.failed {
			t.Errorf("ALLOW_SKIP=%q: failed %v, skipped %v", allow, r.failed, r.skipped)
		}
	}
}

// A missing server must not keep the test that wanted it from ending.
func TestStartMissing(t *testing.T) {
	t.Setenv("REDIS_SERVER", "no-such-server")
	s := &Server{t: new(recorder)}
	started := make(chan struct{})
	go func() { // Fatalf ends the goroutine it is called on
		defer close(started)
		s.start()
	}()
	<-started
	killed := make(chan struct{})
	go func() { // as the cleanup does; stays behind if this test fails
		defer close(killed)
		s.Kill()
	}()
	select {
	case <-killed:
	case <-time.After(5 * time.Second):
		t.Error("the clean-up of a test without a server hangs")
	}
}
