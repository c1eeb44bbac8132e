package certs

import (
	"context"
	"crypto"
	"crypto/tls"
	"io"
	"net"
)

// Gate stands before what a handshake costs a server: to say hello costs a client nothing,
// and it may have left since. An error ends the handshake.
type Gate interface {
	// Look is asked when the client has said hello.
	Look(client net.Conn) error
	// Enter is asked before the private key is used, and may keep the handshake waiting until
	// ctx ends, which is the handshake's. leave is called when the key has been used.
	Enter(ctx context.Context, client net.Conn) (leave func(), err error)
}

// gated is a certificate whose key is used behind gate, for one handshake.
func gated(gate Gate, pair *tls.Certificate, hello *tls.ClientHelloInfo) *tls.Certificate {
	key, ok := pair.PrivateKey.(crypto.Signer)
	if gate == nil || !ok {
		return pair
	}
	own := *pair
	own.PrivateKey = gatedKey{Signer: key, gate: gate, hello: hello}
	return &own
}

// gatedKey is a private key behind a gate.
type gatedKey struct {
	crypto.Signer
	gate  Gate
	hello *tls.ClientHelloInfo
}

// Sign implements crypto.Signer.
func (k gatedKey) Sign(rand io.Reader, digest []byte, opts crypto.SignerOpts) ([]byte, error) {
	leave, err := k.gate.Enter(k.hello.Context(), k.hello.Conn)
	if err != nil {
		return nil, err
	}
	defer leave()
	return k.Signer.Sign(rand, digest, opts)
}
