package proxy

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/tls"
	"encoding/binary"
	"encoding/hex"
	"strings"
	"testing"

	"streamproxy/internal/redistest"
)

// rawTLS is a client that has done its handshake, and then seals records of TLS 1.3 itself, any it
// likes.
type rawTLS struct {
	t      *testing.T
	conn   *tls.Conn
	secret []byte
	seq    uint64
	out    []byte // sealed and not sent yet
}

const (
	recordHandshake   = 22
	recordApplication = 23
)

// expand is HKDF-Expand-Label of RFC 8446 without a context.
func (c *rawTLS) expand(label string, size int) []byte {
	label = "tls13 " + label
	info := append([]byte{byte(size >> 8), byte(size), byte(len(label))}, label...)
	out, err := hkdf.Expand(sha256.New, c.secret, string(append(info, 0)), size)
	if err != nil {
		c.t.Fatal(err)
	}
	return out
}

// seal adds a record, with padding behind what it says.
func (c *rawTLS) seal(kind byte, text string, padding int) {
	block, err := aes.NewCipher(c.expand("key", 16))
	if err != nil {
		c.t.Fatal(err)
	}
	aead, err := cipher.NewGCM(block)
	if err != nil {
		c.t.Fatal(err)
	}
	nonce := c.expand("iv", 12)
	for i, b := range binary.BigEndian.AppendUint64(nil, c.seq) {
		nonce[4+i] ^= b
	}
	c.seq++
	plain := append(append([]byte(text), kind), make([]byte, padding)...)
	header := binary.BigEndian.AppendUint16([]byte{recordApplication, 3, 3}, uint16(len(plain)+aead.Overhead()))
	c.out = append(c.out, aead.Seal(header, nonce, plain, header)...)
}

// update adds a KeyUpdate, which wants one back or not.
func (c *rawTLS) update(back byte) {
	c.seal(recordHandshake, "\x18\x00\x00\x01"+string(back), 0)
	c.secret, c.seq = c.expand("traffic upd", sha256.Size), 0
}

func (c *rawTLS) flush() error {
	_, err := c.conn.NetConn().Write(c.out)
	c.out = nil
	return err
}

// raw connects a client of whose connection TLS has written nothing but the handshake.
func (s *secureProxy) raw() (*rawTLS, *redistest.Client) {
	s.t.Helper()
	var secrets bytes.Buffer
	config := s.identity(s.authority)
	config.MinVersion, config.KeyLogWriter = tls.VersionTLS13, &secrets
	nc, err := tls.Dial("tcp", s.addr, config)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = nc.NetConn().Close() })
	if suite := nc.ConnectionState().CipherSuite; suite != tls.TLS_AES_128_GCM_SHA256 {
		s.t.Skipf("a client that seals with %s is not made here", tls.CipherSuiteName(suite))
	}
	_, line, _ := strings.Cut(secrets.String(), "CLIENT_TRAFFIC_SECRET_0 ")
	secret, err := hex.DecodeString(strings.Fields(line)[1])
	if err != nil {
		s.t.Fatal(err)
	}
	c := redistest.NewClient(nc)
	c.Timeout = securePatience
	return &rawTLS{t: s.t, conn: nc, secret: secret}, c
}

// Who sends next to nothing but records that bring no data is cut off, whatever stands between them.
func TestFloodsOfRecordsWithoutDataEnd(t *testing.T) {
	for name, few := range map[string]func(c *rawTLS){
		"new keys":        func(c *rawTLS) { c.update(1) },
		"empty":           func(c *rawTLS) { c.seal(recordApplication, "", 0) },
		"empty and large": func(c *rawTLS) { c.seal(recordApplication, "", 10<<10) },
	} {
		t.Run(name, func(t *testing.T) {
			s := startSecure(t, nil)
			c, answers := s.raw()
			const sets, each = 2 * idleRecords / 14, 15
			for range sets {
				c.seal(recordApplication, redistest.Command("PING"), 0)
				for range each {
					few(c)
				}
			}
			_ = c.flush() // which may be cut off
			s.await("it is cut off", func() bool { return s.sessions.len() == 0 })
			if n := s.faults.Load(); n != 1 {
				t.Errorf("%d protocol errors are counted", n)
			}
			n := 0
			for {
				if got, err := answers.ReadReply(); err != nil || got != "+PONG\r\n" {
					break
				}
				n++
			}
			if n >= sets {
				t.Errorf("all %d commands were served", n)
			}
		})
	}
}

// What stands among data is the ordinary way of some library: new keys now and then, an empty record
// before each, records that are padded, many small ones at once, and large ones that come in pieces.
func TestRecordsWithoutDataAmongOthersAreServed(t *testing.T) {
	s := startSecure(t, nil)
	c, answers := s.raw()
	ping := redistest.Command("PING")
	large := redistest.Command("ECHO", strings.Repeat("x", 15<<10))
	for round := range 20 {
		want := 0
		say := func(text string, padding int) {
			c.seal(recordApplication, text, padding)
			want++
		}
		for range 2 * idleRecords / 20 {
			c.seal(recordApplication, "", 0)
			say(ping, 0)
			c.update(0)
			say(ping, 300)
			say(large, 0)
		}
		for range 3 * idleRecords {
			say(ping, 0)
		}
		for i := range ping {
			c.seal(recordApplication, ping[i:i+1], 0)
		}
		want++
		sent := make(chan error, 1)
		go func() { sent <- c.flush() }()
		for range want {
			if got, err := answers.ReadReply(); err != nil || got != "+PONG\r\n" && len(got) < 15<<10 {
				t.Fatalf("round %d: %.40q, %v; %d faults", round, got, err, s.faults.Load())
			}
		}
		if err := <-sent; err != nil {
			t.Fatal(err)
		}
	}
	if n := s.faults.Load(); n != 0 {
		t.Errorf("%d protocol errors are counted", n)
	}
}

// However the bytes of records come, each is counted when it ends.
func TestRecordsAreCountedAsTheyEnd(t *testing.T) {
	sizes := []int{1, 0, 300, 0, 0, 5, 16 << 10, 2}
	var all []byte
	ends := map[int]int{}
	for i, size := range sizes {
		all = binary.BigEndian.AppendUint16(append(all, recordApplication, 3, 3), uint16(size))
		all = append(all, make([]byte, size)...)
		ends[len(all)] = i + 1
	}
	for _, step := range []int{1, 2, 3, 4, 5, 6, 7, 100, 4096, len(all)} {
		var r recordCount
		n := 0
		for at := 0; at < len(all); at += step {
			end := min(at+step, len(all))
			n += r.add(all[at:end])
			want := 0
			for e, i := range ends {
				if e <= end {
					want = max(want, i)
				}
			}
			if n != want {
				t.Fatalf("steps of %d: %d records after %d bytes, want %d", step, n, end, want)
			}
		}
	}
}

// askedStream notes how much is asked of it, and gives records without anything in them.
type askedStream struct {
	stream
	asked []int
}

func (a *askedStream) Read(b []byte) (int, error) {
	a.asked = append(a.asked, len(b))
	return copy(b, bytes.Repeat([]byte{recordApplication, 3, 3, 0, 0}, 10)), nil
}

// Of who is ahead by more than a few records without data little is read at a time, and nothing
// once it is too many.
func TestLittleIsReadOfASuspect(t *testing.T) {
	from := &askedStream{}
	w := &wire{stream: from}
	b := make([]byte, 32<<10)
	for range idleRecords/10 + 1 {
		if _, err := w.Read(b); err != nil {
			t.Fatal(err)
		}
	}
	for i, n := range from.asked {
		if ok := n == len(b) && 10*i <= fewIdle || n == suspectRead && 10*i > fewIdle; !ok {
			t.Errorf("%d bytes were asked for when it was ahead by %d records", n, 10*i)
		}
	}
	if _, err := w.Read(b); err != errIdleRecords {
		t.Errorf("%v after %d records", err, 10*len(from.asked))
	}
}
