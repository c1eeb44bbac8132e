package certs

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"testing"

	"streamproxy/internal/redistest"
)

// turnstile is a gate that counts, and refuses as it is told.
type turnstile struct {
	look, enter           error
	looked, entered, left int
}

func (g *turnstile) Look(net.Conn) error {
	g.looked++
	return g.look
}

func (g *turnstile) Enter(_ context.Context, client net.Conn) (leave func(), err error) {
	g.entered++
	if client == nil {
		return nil, errors.New("nobody")
	}
	return func() { g.left++ }, g.enter
}

// A handshake passes the gate twice: before anything is done for it, and before the key is used.
// A gate that refuses ends it there.
func TestHandshakesPassTheGate(t *testing.T) {
	refused := errors.New("refused")
	for _, tt := range []struct {
		name string
		gate turnstile
		want turnstile
	}{
		{"open", turnstile{}, turnstile{looked: 1, entered: 1, left: 1}},
		{"closed at the hello", turnstile{look: refused}, turnstile{looked: 1}},
		{"closed before the key", turnstile{enter: refused}, turnstile{looked: 1, entered: 1}},
	} {
		for _, version := range []uint16{tls.VersionTLS12, tls.VersionTLS13} {
			t.Run(tt.name+" "+tls.VersionName(version), func(t *testing.T) {
				f := files(t, redistest.NewAuthority(t), t.TempDir())
				f.CA = ""
				gate := tt.gate
				near, far := net.Pipe()
				defer near.Close()
				defer far.Close()
				go func() {
					_ = tls.Client(far, &tls.Config{InsecureSkipVerify: true, MaxVersion: version}).Handshake()
					_ = far.Close() // ends a server that still waits
				}()
				err := tls.Server(near, ForServer(f).Listening(&gate)).Handshake()
				if refuses := tt.gate.look != nil || tt.gate.enter != nil; (err != nil) != refuses {
					t.Errorf("the handshake ended with %v", err)
				}
				if gate.looked != tt.want.looked || gate.entered != tt.want.entered || gate.left != tt.want.left {
					t.Errorf("passed %+v, want %+v", gate, tt.want)
				}
			})
		}
	}
}
