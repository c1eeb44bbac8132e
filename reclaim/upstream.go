package reclaim

import (
	"context"
	"errors"
)

// Identity says as whom commands run: a connection of this ACL user, in this
// database, in this version of the protocol.
type Identity struct {
	// User is the proven user; the zero one is the upstream URL's own.
	User User
	// DB is the selected database.
	DB int
	// Proto is the protocol version, 2 or 3.
	Proto int
}

// User is an ACL user, as one of its passwords has proven it. What is done as one is never for
// another: of two passwords of a name one may be good no longer, and so they are two users here.
type User struct {
	// Name is the user's.
	Name string
	// Proof tells passwords of the user apart.
	Proof string
}

// Upstream runs commands for reclaim. commands holds n complete commands; they are
// sent in one piece over one connection, and the n raw replies come back in order.
// Replies belong to the caller. An error means that not all replies came: it wraps
// ErrNotSent if none of the commands can have reached the server, else what they
// did is unknown. Methods are safe for concurrent use and end with ctx.
type Upstream interface {
	// Do runs commands as a client's identity. The commands never block and never
	// change their connection.
	Do(ctx context.Context, as Identity, commands []byte, n int) ([][]byte, error)
	// DoUpTo does the same, and keeps no more of each reply than its first most bytes. It sends
	// nothing for a client that has gone, see Wanted.
	DoUpTo(ctx context.Context, as Identity, commands []byte, n, most int) ([][]byte, error)
	// Control runs commands as the upstream URL's own user, in its database and in
	// version 2 or 3 of the protocol.
	Control(ctx context.Context, commands []byte, n int) ([][]byte, error)
}

// ErrNotSent is wrapped by an Upstream's errors when nothing has been executed.
var ErrNotSent = errors.New("reclaim: not sent")
