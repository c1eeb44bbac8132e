package certs

import (
	"bytes"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"os"
	"syscall"
)

// maxFile bounds what is read of a file, in bytes. A bundle of all public
// authorities has a quarter of a megabyte.
const maxFile = 4 << 20

// Files names PEM files. An empty name stands for nothing.
type Files struct {
	// CA has the authorities whose signature counts.
	CA string
	// Cert has our own certificate, first of all, and those that lead to its
	// authority; Key has its private key, not encrypted.
	Cert, Key string
}

// contents is what the files had when they were read.
type contents struct{ ca, cert, key []byte }

func (f Files) read() (contents, error) {
	var c contents
	var errs []error
	for _, file := range []struct {
		path string
		into *[]byte
	}{{f.CA, &c.ca}, {f.Cert, &c.cert}, {f.Key, &c.key}} {
		if file.path == "" {
			continue
		}
		var err error
		if *file.into, err = ReadFile(file.path, maxFile); err != nil {
			errs = append(errs, err)
		}
	}
	return c, errors.Join(errs...)
}

// ReadFile reads a file of at most limit bytes. It must be a regular one, or a link to
// one as Kubernetes makes them: whoever opens a FIFO waits for a writer, and a device
// may never end.
func ReadFile(path string, limit int64) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !info.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	b, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(b)) > limit {
		return nil, fmt.Errorf("%s: larger than %d bytes", path, limit)
	}
	return b, nil
}

func (c contents) equal(d contents) bool {
	return bytes.Equal(c.ca, d.ca) && bytes.Equal(c.cert, d.cert) && bytes.Equal(c.key, d.key)
}

// pool returns the authorities, nil where no file names any.
func (f Files) pool(c contents) (*x509.CertPool, error) {
	if f.CA == "" {
		return nil, nil
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(c.ca) {
		return nil, fmt.Errorf("%s: no certificate in PEM form in it", f.CA)
	}
	return pool, nil
}

// pair returns our own certificate with its key, none where no file names any. No
// error quotes the key.
func (f Files) pair(c contents) ([]tls.Certificate, error) {
	if f.Cert == "" && f.Key == "" {
		return nil, nil
	}
	if f.Cert == "" || f.Key == "" {
		return nil, errors.New("a certificate and its key are needed together")
	}
	if encrypted(c.key) {
		return nil, fmt.Errorf("%s: the key is encrypted, and nobody is here to ask for its passphrase", f.Key)
	}
	pair, err := tls.X509KeyPair(c.cert, c.key)
	if err != nil {
		return nil, fmt.Errorf("%s with %s: %w", f.Cert, f.Key, err)
	}
	return []tls.Certificate{pair}, nil
}

// encrypted recognises both spellings of a key behind a passphrase.
func encrypted(key []byte) bool {
	for {
		var block *pem.Block
		if block, key = pem.Decode(key); block == nil {
			return false
		}
		if block.Type == "ENCRYPTED PRIVATE KEY" || block.Headers["DEK-Info"] != "" {
			return true
		}
	}
}
