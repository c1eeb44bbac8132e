package upstream

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"strings"
)

// ErrTLS marks a connection that was refused by one side or the other before a
// byte of Redis's protocol was sent: no trust, no certificate, no common version.
var ErrTLS = errors.New("tls handshake with upstream")

// encrypt takes conn over, performs the handshake and verifies the server. After an
// error conn is closed.
func (d *Dialer) encrypt(ctx context.Context, conn net.Conn) (net.Conn, error) {
	config, err := d.Target.TLS.Config()
	if err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	if config.ServerName == "" {
		config = config.Clone()
		config.ServerName = hostOf(d.Target.Addr)
	}
	c := tls.Client(conn, config)
	if err := c.HandshakeContext(ctx); err != nil {
		_ = conn.Close()
		return nil, fmt.Errorf("%w: %w", ErrTLS, err)
	}
	return c, nil
}

// hostOf is the name that a certificate must have for addr. The zone of an address
// means something on this machine only.
func hostOf(addr string) string {
	host, _, err := net.SplitHostPort(addr)
	if err != nil {
		return addr
	}
	host, _, _ = strings.Cut(host, "%")
	return host
}
