package batcher

import (
	"testing"
)

// A push behind a reply in the same chunk is nobody's reply.
func TestPushBetweenReplies(t *testing.T) {
	const push = ">2\r\n$3\r\nfoo\r\n$3\r\nbar\r\n"
	stream := "+a\r\n" + push + push + "+b\r\n" + push
	for cut := 0; cut <= len(stream); cut++ {
		var pushes []string
		delivered := make(chan struct{}, 3)
		c, p := connect(t, Options{Pushed: func(frame []byte) {
			pushes = append(pushes, string(frame))
			delivered <- struct{}{}
		}})
		r := newRecorder()
		submit(t, c, r, "a", "b")
		p.take(2)
		p.send(stream[:cut])
		p.send(stream[cut:])
		r.expect(t, 2, "+a\r\n+b\r\n")
		for range 3 {
			select {
			case <-delivered:
			case <-c.Done():
				t.Fatalf("cut at %d: the connection died", cut)
			}
		}
		for _, f := range pushes {
			if f != push {
				t.Errorf("cut at %d: delivered %q", cut, f)
			}
		}
		c.Close()
	}
}

// A server that answers and closes at once may do both before the poller looks. The
// end must be noticed all the same, for somebody may be waiting for more.
func TestEndBehindAReply(t *testing.T) {
	for range 300 {
		c, p := connect(t, Options{})
		r := newRecorder()
		submit(t, c, r, "a", "b")
		p.take(2)
		p.send("+a\r\n")
		p.nc.Close()
		r.expect(t, 2, "+a\r\n?")
	}
}
