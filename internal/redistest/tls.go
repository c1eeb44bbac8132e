package redistest

import (
	"net"
	"strconv"
	"testing"
)

// WithTLS makes the server listen with TLS too, at TLSAddr. It shows a certificate
// for 127.0.0.1 and localhost that authority a has signed, and wants one of a's from
// its clients.
func WithTLS(t testing.TB, a *Authority) Option {
	t.Helper()
	return WithTLSIdentity(t, a, a.Issue(t, "127.0.0.1", "localhost"))
}

// WithTLSIdentity is WithTLS with a certificate of one's own choice.
func WithTLSIdentity(t testing.TB, a *Authority, id Identity) Option {
	t.Helper()
	dir := t.TempDir()
	ca := a.Write(t, dir)
	cert, key := id.Write(t, dir)
	return func(s *settings) {
		s.secure = []string{
			"--tls-ca-cert-file", ca, "--tls-cert-file", cert, "--tls-key-file", key, "--tls-auth-clients", "yes",
		}
	}
}

// TLSAddr is the host:port at which the server speaks TLS.
func (s *Server) TLSAddr() string { return net.JoinHostPort("127.0.0.1", strconv.Itoa(s.tlsPort)) }

// pickTLSPort chooses another port for TLS, if the server has one at all.
func (s *Server) pickTLSPort() {
	if s.settings.secure != nil {
		s.tlsPort = FreePort(s.t)
	}
}

func (s *Server) tlsArgs() []string {
	if s.settings.secure == nil {
		return nil
	}
	return append([]string{"--tls-port", strconv.Itoa(s.tlsPort)}, s.settings.secure...)
}

// ClientFiles writes what a client of a's server needs: the authority, and a
// certificate for client.example with its key.
func ClientFiles(t testing.TB, a *Authority) (ca, cert, key string) {
	t.Helper()
	dir := t.TempDir()
	cert, key = a.Issue(t, "client.example").Write(t, dir)
	return a.Write(t, dir), cert, key
}
