package certs

import (
	"crypto/tls"
	"errors"
	"fmt"
	"sync"
)

// Source makes the TLS configuration of one side from its files, and makes it anew
// when they have changed. It is safe for concurrent use once Failed is set.
//
// Each handshake reads the files and compares: that costs some ten microseconds
// beside the millisecond of the handshake itself, and unlike a comparison of times
// and sizes it cannot miss a change.
type Source struct {
	// Failed, when not nil, is told of files that cannot be used while what was read
	// before stays in force: once for each new reason.
	Failed func(error)

	files Files
	gate  Gate // nil: none; see Listening
	build func(contents) (*tls.Config, error)

	mu     sync.Mutex
	seen   contents    // what config was made from
	config *tls.Config // nil before the first success
	reason string      // of the last failure; empty after a success
}

// Client describes how to meet a server.
type Client struct {
	// Files has the authorities to trust instead of the system's, and the certificate
	// to show.
	Files
	// ServerName is the name that the server's certificate must have; empty is the
	// host that is dialled.
	ServerName string
	// Insecure accepts any certificate: whoever is on the way can read and change
	// everything, passwords too.
	Insecure bool
}

// ForClient returns the source of a client's configuration. A configuration with an
// empty ServerName must be given one before it is used, see Source.Config.
func ForClient(c Client) *Source {
	s := &Source{files: c.Files}
	s.build = func(read contents) (*tls.Config, error) {
		config := base()
		config.ServerName, config.InsecureSkipVerify = c.ServerName, c.Insecure
		// A connection that resumes another's session spares both sides the costly part of
		// the handshake. Changed files make a new configuration, and with it an empty cache.
		config.ClientSessionCache = tls.NewLRUClientSessionCache(0)
		var err error
		if config.RootCAs, err = c.pool(read); err != nil {
			return nil, err
		}
		config.Certificates, err = c.pair(read)
		return config, err
	}
	return s
}

// ForServer returns the source of a server's configuration. Where f names
// authorities, only clients with a certificate of theirs are let in.
func ForServer(f Files) *Source {
	s := &Source{files: f}
	s.build = func(read contents) (*tls.Config, error) {
		config := base()
		var err error
		if config.ClientCAs, err = f.pool(read); err != nil {
			return nil, err
		}
		if config.ClientCAs != nil {
			config.ClientAuth = tls.RequireAndVerifyClientCert
		}
		pair, err := f.pair(read)
		if len(pair) > 0 {
			config.GetCertificate = func(hello *tls.ClientHelloInfo) (*tls.Certificate, error) {
				return gated(s.gate, &pair[0], hello), nil
			}
		}
		return config, err
	}
	return s
}

// base is what both sides have in common. Records of full size from the start: the
// small ones with which a connection would begin tear a batch into many writes.
func base() *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS12, DynamicRecordSizingDisabled: true}
}

// Config returns the configuration in force, which must not be changed. It stays the
// same object while the files stay the same, so that a server can resume sessions. The
// error is that of the first attempt to read the files; later ones go to Failed.
func (s *Source) Config() (*tls.Config, error) {
	config, err, news := s.refresh()
	if config == nil {
		return nil, err
	}
	if news && s.Failed != nil {
		s.Failed(err)
	}
	return config, nil
}

// Reload reads the files now and reports what is wrong with them. What was read
// before then stays in force. Nothing is told to Failed.
func (s *Source) Reload() error {
	_, err, _ := s.refresh()
	return err
}

// refresh reads the files. news: err is not the one of the last time.
func (s *Source) refresh() (config *tls.Config, err error, news bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	read, err := s.files.read()
	if err == nil && s.config != nil && read.equal(s.seen) {
		s.reason = ""
		return s.config, nil, false
	}
	if err == nil {
		config, err = s.build(read)
	}
	if err == nil {
		s.config, s.seen, s.reason = config, read, ""
		return config, nil, false
	}
	err = fmt.Errorf("tls files: %w", err)
	news = err.Error() != s.reason
	s.reason = err.Error()
	return s.config, err, news
}

// maxServerName is how long the name may be by which a client calls a server: no name of a host is
// longer. It is kept as long as the connection.
const maxServerName = 255

var errServerName = errors.New("tls: the server's name is too long")

// Listening returns the configuration for a listener, whose handshakes pass gate; nil is
// none. It asks for the files at each handshake. It is called
// before the first of them.
func (s *Source) Listening(gate Gate) *tls.Config {
	s.gate = gate
	return &tls.Config{
		MinVersion: tls.VersionTLS12,
		GetConfigForClient: func(hello *tls.ClientHelloInfo) (*tls.Config, error) {
			if len(hello.ServerName) > maxServerName {
				return nil, errServerName
			}
			if gate != nil {
				if err := gate.Look(hello.Conn); err != nil {
					return nil, err
				}
			}
			return s.Config()
		},
	}
}
