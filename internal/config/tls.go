package config

import (
	"errors"
	"fmt"
	"strings"

	"streamproxy/internal/certs"
	"streamproxy/internal/upstream"
)

// TLSPrefix begins the addresses in Config.Listen at which clients speak TLS.
const TLSPrefix = "tls://"

func tlsFlags(c *Config) Group {
	return Group{"TLS", []Flag{
		{Name: "upstream-ca-file", Arg: "PATH", field: textField(&c.UpstreamCAFile, checkCAFile),
			Help: "PEM file of the authorities to trust with rediss://, instead of the system's. This and the other files here are read again at each handshake and on SIGHUP."},
		{Name: "upstream-cert-file", Arg: "PATH", field: textField(&c.UpstreamCertFile, nil),
			Help: "PEM file of the certificate to show to the server, with those that lead to its authority."},
		{Name: "upstream-key-file", Arg: "PATH", field: textField(&c.UpstreamKeyFile, nil),
			Help: "PEM file of that certificate's key, not encrypted."},
		{Name: "upstream-server-name", Arg: "NAME", field: textField(&c.UpstreamServerName, checkServerName),
			Help: "Name that the server's certificate must have, instead of the URL's host."},
		{Name: "upstream-insecure", Arg: "BOOL", field: boolField(&c.UpstreamInsecure),
			Help: "Accept any certificate of the server: whoever is on the way can read and change everything, passwords too."},
		{Name: "tls-cert-file", Arg: "PATH", field: textField(&c.TLSCertFile, nil),
			Help: "PEM file of the certificate to show to clients of tls:// addresses."},
		{Name: "tls-key-file", Arg: "PATH", field: textField(&c.TLSKeyFile, nil),
			Help: "PEM file of that certificate's key, not encrypted."},
		{Name: "tls-client-ca-file", Arg: "PATH", field: textField(&c.TLSClientCAFile, checkCAFile),
			Help: "PEM file of the authorities of which every client of a tls:// address must have a certificate; without it clients need none."},
	}}
}

// tlsRules holds together what belongs together, and refuses what would have no
// effect: a certificate that nobody shows is most likely meant to be shown.
func (c *Config) tlsRules() []crossRule {
	t, err := upstream.Parse(c.Upstream)
	plain := err == nil && t.TLS == nil
	open := !c.listensTLS()
	return []crossRule{
		noEffect("upstream-ca-file", c.UpstreamCAFile, "upstream", "rediss:// in --upstream", plain),
		noEffect("upstream-cert-file", c.UpstreamCertFile, "upstream", "rediss:// in --upstream", plain),
		noEffect("upstream-key-file", c.UpstreamKeyFile, "upstream", "rediss:// in --upstream", plain),
		noEffect("upstream-server-name", c.UpstreamServerName, "upstream", "rediss:// in --upstream", plain),
		{"upstream-insecure", "upstream", "", "has no effect without rediss:// in --upstream", c.UpstreamInsecure && plain},
		{"upstream-ca-file", "", c.UpstreamCAFile, "is given together with --upstream-insecure, which trusts everybody; keep one", c.UpstreamCAFile != "" && c.UpstreamInsecure},
		needs("upstream-cert-file", c.UpstreamCertFile, "upstream-key-file", c.UpstreamKeyFile),
		needs("upstream-key-file", c.UpstreamKeyFile, "upstream-cert-file", c.UpstreamCertFile),
		usable("upstream-cert-file", c.UpstreamCertFile, c.UpstreamKeyFile),
		{"listen", "", comma.format(c.Listen), "has a tls:// address, for which --tls-cert-file and --tls-key-file are needed", !open && c.TLSCertFile == "" && c.TLSKeyFile == ""},
		noEffect("tls-cert-file", c.TLSCertFile, "listen", "a tls:// address in --listen", open),
		noEffect("tls-key-file", c.TLSKeyFile, "listen", "a tls:// address in --listen", open),
		noEffect("tls-client-ca-file", c.TLSClientCAFile, "listen", "a tls:// address in --listen", open),
		needs("tls-cert-file", c.TLSCertFile, "tls-key-file", c.TLSKeyFile),
		needs("tls-key-file", c.TLSKeyFile, "tls-cert-file", c.TLSCertFile),
		usable("tls-cert-file", c.TLSCertFile, c.TLSKeyFile),
	}
}

func (c *Config) listensTLS() bool {
	for _, spec := range c.Listen {
		if strings.HasPrefix(spec, TLSPrefix) {
			return true
		}
	}
	return false
}

func noEffect(flag, value, other, without string, broken bool) crossRule {
	return crossRule{flag, other, value, "has no effect without " + without, value != "" && broken}
}

func needs(flag, value, other, otherValue string) crossRule {
	return crossRule{flag, other, value, "needs --" + other, value != "" && otherValue == ""}
}

// usable reads a certificate and its key, if both are given.
func usable(flag, cert, key string) crossRule {
	r := crossRule{flag: flag, value: cert}
	if cert == "" || key == "" {
		return r
	}
	if err := certs.ForServer(certs.Files{Cert: cert, Key: key}).Reload(); err != nil {
		r.broken, r.problem = true, "cannot be used: "+err.Error()
	}
	return r
}

func checkCAFile(path string) error {
	if err := certs.ForServer(certs.Files{CA: path}).Reload(); err != nil {
		return fmt.Errorf("cannot be used: %w", err)
	}
	return nil
}

// checkServerName refuses what can be no name, such as a URL or a host with its port
// (an IPv6 address has colons too, but more than one).
func checkServerName(name string) error {
	if strings.ContainsAny(name, "/@[] \t") || strings.Count(name, ":") == 1 {
		return errors.New("is no host name or address")
	}
	return nil
}

// tlsWarnings warns of a connection that looks safe and is not.
func (c *Config) tlsWarnings() []string {
	if !c.UpstreamInsecure {
		return nil
	}
	return []string{"--upstream-insecure accepts any certificate of the server: whoever is on the way can read and change everything, passwords too; use --upstream-ca-file"}
}

func (c *Config) upstreamTLS() *certs.Source {
	return certs.ForClient(certs.Client{
		Files:      certs.Files{CA: c.UpstreamCAFile, Cert: c.UpstreamCertFile, Key: c.UpstreamKeyFile},
		ServerName: c.UpstreamServerName,
		Insecure:   c.UpstreamInsecure,
	})
}

// ClientTLS returns the source of what tls:// addresses show and demand, nil where no
// address is one.
func (c *Config) ClientTLS() *certs.Source {
	if !c.listensTLS() {
		return nil
	}
	return certs.ForServer(certs.Files{CA: c.TLSClientCAFile, Cert: c.TLSCertFile, Key: c.TLSKeyFile})
}
