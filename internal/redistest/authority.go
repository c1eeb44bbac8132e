package redistest

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"testing"
	"time"
)

// The names of the files that Authority.Write and Identity.Write make.
const (
	CAFile   = "ca.pem"
	CertFile = "cert.pem"
	KeyFile  = "key.pem"
)

// Authority signs certificates for one test.
type Authority struct {
	// PEM is its own certificate.
	PEM []byte

	cert *x509.Certificate
	key  *ecdsa.PrivateKey
}

// Identity is a certificate and its key, both PEM.
type Identity struct{ Cert, Key []byte }

// NewAuthority makes an authority that nobody trusts yet.
func NewAuthority(t testing.TB) *Authority {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: "test authority"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	return &Authority{PEM: encode("CERTIFICATE", der), cert: cert, key: key}
}

// Issue signs a certificate for hosts, names or addresses, good for both sides of a
// connection and for an hour.
func (a *Authority) Issue(t testing.TB, hosts ...string) Identity {
	t.Helper()
	return a.issue(t, time.Now().Add(time.Hour), hosts)
}

// IssueExpired signs a certificate that expired a minute ago.
func (a *Authority) IssueExpired(t testing.TB, hosts ...string) Identity {
	t.Helper()
	return a.issue(t, time.Now().Add(-time.Minute), hosts)
}

func (a *Authority) issue(t testing.TB, until time.Time, hosts []string) Identity {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: serial(t), Subject: pkix.Name{CommonName: hosts[0]},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: until,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	for _, h := range hosts {
		if ip := net.ParseIP(h); ip != nil {
			template.IPAddresses = append(template.IPAddresses, ip)
		} else {
			template.DNSNames = append(template.DNSNames, h)
		}
	}
	key := newKey(t)
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		t.Fatal(err)
	}
	secret, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	return Identity{Cert: encode("CERTIFICATE", der), Key: encode("PRIVATE KEY", secret)}
}

// Write puts the authority's certificate into dir, in place of what is there, and
// returns its path.
func (a *Authority) Write(t testing.TB, dir string) string {
	t.Helper()
	return put(t, dir, CAFile, a.PEM)
}

// Write puts certificate and key into dir, in place of what is there, and returns
// their paths.
func (i Identity) Write(t testing.TB, dir string) (cert, key string) {
	t.Helper()
	return put(t, dir, CertFile, i.Cert), put(t, dir, KeyFile, i.Key)
}

func put(t testing.TB, dir, name string, b []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, b, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func newKey(t testing.TB) *ecdsa.PrivateKey {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return key
}

func serial(t testing.TB) *big.Int {
	t.Helper()
	n, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		t.Fatal(err)
	}
	return n
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}
