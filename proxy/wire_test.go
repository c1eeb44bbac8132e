package proxy

import (
	"crypto/tls"
	"strings"
	"testing"
)

// wordy makes a client's hello 60 KB long.
func wordy(config *tls.Config) *tls.Config {
	for range 240 {
		config.NextProtos = append(config.NextProtos, strings.Repeat("p", 250))
	}
	return config
}

// What TLS keeps of a long hello counts as long as its client is there, and so does what it keeps
// of a record that is not whole. An ordinary client costs nothing.
func TestLongHellosCount(t *testing.T) {
	s := startSecure(t, nil)
	s.expect(s.client(), "+PONG\r\n", "PING")
	s.await("nothing to count for an ordinary client", func() bool { return s.buffered.Load() == 0 })
	nc, err := tls.Dial("tcp", s.addr, wordy(s.identity(s.authority)))
	if err != nil {
		t.Fatal(err)
	}
	if n := s.buffered.Load(); n < 60<<10 {
		t.Errorf("%d bytes are counted for a hello of 60 KB", n)
	}
	_ = nc.Close()
	s.await("the count to come out right", func() bool { return s.buffered.Load() == 0 })

	part := s.client()
	s.expect(part, "+PONG\r\n", "PING")
	// The beginning of a record of 16 KB, written below the client's TLS.
	if _, err := part.Conn.(*tls.Conn).NetConn().Write(append([]byte{23, 3, 3, 0x40, 0}, make([]byte, 10<<10)...)); err != nil {
		t.Fatal(err)
	}
	s.await("the record to count", func() bool { return s.buffered.Load() >= 10<<10 })
	_ = part.Conn.(*tls.Conn).NetConn().Close()
	s.await("the count to come out right", func() bool { return s.buffered.Load() == 0 })
}

// Clients with long hellos are refused over the limit, and others are served.
func TestLongHellosStopAtTheMemoryLimit(t *testing.T) {
	s := startSecure(t, func(c *Config) { c.MemoryLimit = 1 << 20 })
	config := wordy(s.identity(s.authority))
	for range 40 {
		if nc, err := tls.Dial("tcp", s.addr, config); err == nil { // else it has been refused at once
			t.Cleanup(func() { _ = nc.Close() })
		}
	}
	s.await("some to be refused", func() bool {
		s.shed()
		return s.inBuffers() <= s.cfg.MemoryLimit && s.sessions.len() < 40
	})
	s.expect(s.client(), "+PONG\r\n", "PING")
}

// No server has a name of 256 bytes.
func TestLongServerNamesAreRefused(t *testing.T) {
	s := startSecure(t, nil)
	for size, ok := range map[int]bool{255: true, 256: false} {
		config := s.identity(s.authority)
		config.ServerName, config.InsecureSkipVerify = strings.Repeat("n", size), true
		nc, err := tls.Dial("tcp", s.addr, config)
		if (err == nil) != ok {
			t.Errorf("%d bytes: %v", size, err)
		}
		if err == nil {
			_ = nc.Close()
		}
	}
}
