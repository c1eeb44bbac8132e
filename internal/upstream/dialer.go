package upstream

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"time"
)

// Key is what distinguishes upstream connections: whoever shares one must
// agree in all of it.
type Key struct {
	// DB is the selected database.
	DB int
	// Proto is the protocol version, 2 or 3.
	Proto int
	// User is the proven user; the zero one is the target's own.
	User User
}

// User is an ACL user, as one of its passwords has proven it. A connection may carry only what comes
// from clients that have proven the password with which it was greeted: another password of the
// same user may be good no longer, or belong to a later user of that name.
type User struct {
	// Name is the user's, which may be empty too.
	Name string
	// Proof tells passwords of the user apart without showing them.
	Proof string
}

// Proven reports whether u is a user that has been proven, and not the target's own.
func (u User) Proven() bool { return u != User{} }

// Greeting is what the server said while a connection was greeted.
type Greeting struct {
	// Took is how long the dial and the handshake took.
	Took time.Duration
	// ID is the server's id of the connection, 0 where it would not tell.
	ID int64
	// Name is the name under which the server lists the connection, empty where it would
	// not take one.
	Name string
	// Hello is the raw reply to HELLO, nil for protocol 2.
	Hello []byte
	// Select is the raw reply to SELECT, nil for database 0.
	Select []byte
	// NotReady is the server's own words if it cannot serve yet (LOADING,
	// MASTERDOWN). The connection is greeted and usable.
	NotReady string
	// NoAuth: the server wants a password before it serves, and got none.
	NoAuth bool
}

// Keep-alive of all upstream connections: a dead path is found within about a
// minute even if a connection waits without end for a blocked read.
var keepAlive = net.KeepAliveConfig{Enable: true, Idle: 30 * time.Second, Interval: 10 * time.Second, Count: 3}

// Dialer dials and greets upstream connections. It is safe for concurrent use
// once its fields are set.
type Dialer struct {
	// Target is the server and its default identity.
	Target Target
	// Timeout bounds a dial together with its handshake; 0 leaves it to the context.
	Timeout time.Duration
	// UserTimeout bounds how long sent bytes may stay unacknowledged; 0 leaves it
	// to the kernel.
	UserTimeout time.Duration
	// Name gives the connection's name for a kind, see ConnName; nil sets none.
	Name func(kind string) string
	// PasswordOf gives the password of a key's user where that is not the
	// target's; nil refuses such keys.
	PasswordOf func(user User) (string, error)
	// Stranger gives the user as whom the control plane comes where the target has no credentials:
	// a default user whose password is known to PasswordOf, or the zero one. Nil is the latter.
	Stranger func() User
	// Gate, if set, is passed by every dial, and by those of the control plane.
	Gate *Gate
	// DialContext opens the socket; nil is net.Dialer, which resolves the name anew.
	DialContext func(ctx context.Context, network, addr string) (net.Conn, error)
}

// ConnName is the name under which connections of this proxy appear in CLIENT
// LIST: streamproxy:<host>:<kind>. What follows the host's name there, and tells one
// connection from others, is the caller's to add to it. Redis refuses names with spaces or bytes
// that do not print, so those become underscores.
func ConnName(host, kind string) string {
	clean := func(r rune) rune {
		if r < '!' || r > '~' {
			return '_'
		}
		return r
	}
	return strings.Map(clean, "streamproxy:"+host+":"+kind)
}

// Dial opens a connection for k and greets it in one round trip. Errors:
// *HandshakeError carries the server's refusal; Unavailable tells what is worth
// another attempt. No byte that follows the handshake has been read.
func (d *Dialer) Dial(ctx context.Context, k Key, kind string) (net.Conn, Greeting, error) {
	return d.DialFor(ctx, ForMany, k, kind)
}

// DialFor is Dial with a place at the gate.
func (d *Dialer) DialFor(ctx context.Context, rank Rank, k Key, kind string) (net.Conn, Greeting, error) {
	if d.Gate == nil {
		return d.dial(ctx, k, kind)
	}
	if err := d.Gate.Enter(ctx, rank); err != nil {
		return nil, Greeting{}, err
	}
	start := time.Now()
	conn, g, err := d.dial(ctx, k, kind)
	v := verdict(err)
	took := time.Since(start)
	if errors.Is(err, context.DeadlineExceeded) && took < fairTime {
		v = Unclear // most of its time had passed at the gate
	}
	d.Gate.Leave(rank, v, took)
	return conn, g, err
}

// fairTime is how long a server must have had to answer before its silence counts.
const fairTime = 100 * time.Millisecond

func (d *Dialer) dial(ctx context.Context, k Key, kind string) (net.Conn, Greeting, error) {
	if d.Timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, d.Timeout)
		defer cancel()
	}
	start := time.Now()
	user, password, err := d.credentials(k.User)
	if err != nil {
		return nil, Greeting{}, &noPasswordError{err}
	}
	conn, err := d.open(ctx)
	if err != nil {
		return nil, Greeting{}, err
	}
	h := newHandshake(k, user, password, d.name(kind))
	g, err := h.run(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return nil, Greeting{}, err
	}
	g.Took = time.Since(start)
	return conn, g, nil
}

// openGated is open for who greets by itself: that the socket opens does not show yet that the
// server answers.
func (d *Dialer) openGated(ctx context.Context) (net.Conn, error) {
	if d.Gate == nil {
		return d.open(ctx)
	}
	if err := d.Gate.Enter(ctx, ForMany); err != nil {
		return nil, err
	}
	conn, err := d.open(ctx)
	v := Unclear
	if err != nil {
		v = verdict(err)
	}
	d.Gate.Leave(ForMany, v, 0)
	return conn, err
}

// open dials the socket, sets its options and, where the target asks for it, makes
// it a *tls.Conn.
func (d *Dialer) open(ctx context.Context) (net.Conn, error) {
	dial := d.DialContext
	if dial == nil {
		dial = (&net.Dialer{KeepAliveConfig: keepAlive}).DialContext
	}
	conn, err := dial(ctx, d.Target.Network, d.Target.Addr)
	if err != nil {
		return nil, fmt.Errorf("dial upstream: %w", err)
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		if err := d.tune(tcp); err != nil {
			_ = conn.Close()
			return nil, fmt.Errorf("dial upstream: %w", err)
		}
	}
	if d.Target.TLS != nil {
		return d.encrypt(ctx, conn)
	}
	return conn, nil
}

func (d *Dialer) tune(tcp *net.TCPConn) error {
	err := errors.Join(tcp.SetNoDelay(true), tcp.SetKeepAliveConfig(keepAlive))
	if d.UserTimeout > 0 {
		err = errors.Join(err, setUserTimeout(tcp, d.UserTimeout))
	}
	return err
}

// credentials asks for the secret of a user anew. A nil password sends no AUTH.
func (d *Dialer) credentials(as User) (string, *string, error) {
	var user, password string
	var err error
	switch {
	case as.Proven():
		if d.PasswordOf == nil {
			return "", nil, fmt.Errorf("upstream password of user %q is not known", as.Name)
		}
		user = as.Name
		password, err = d.PasswordOf(as)
	case d.Target.Password != nil:
		user = d.Target.User
		password, err = d.Target.Password()
	case d.Target.User != "":
		user = d.Target.User
	default:
		return "", nil, nil
	}
	if err != nil {
		return "", nil, fmt.Errorf("upstream password: %w", err)
	}
	return user, &password, nil
}

// ownCredentials are those of the control plane: the target's, or where it has none those of
// the default user, if they are known.
func (d *Dialer) ownCredentials() (string, *string, error) {
	user, password, err := d.credentials(User{})
	if err != nil || password != nil || d.Stranger == nil {
		return user, password, err
	}
	as := d.Stranger()
	if !as.Proven() {
		return "", nil, nil // nobody has proven it: what then is refused tells
	}
	if user, password, err = d.credentials(as); err != nil {
		return "", nil, nil // who had proven it has left since
	}
	return user, password, nil
}

func (d *Dialer) name(kind string) string {
	if d.Name == nil {
		return ""
	}
	return d.Name(kind)
}
