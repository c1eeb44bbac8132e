package batcher

import "errors"

// What a failed command's owner is told. The difference decides whether sending
// the command again can execute it twice.
var (
	// ErrNotSent: the command's last byte was never accepted by a write call on a
	// connection that lived on, so the server cannot have executed it.
	ErrNotSent = errors.New("command not sent")
	// ErrUnknown: the whole command was accepted by a write call and its reply did
	// not arrive. It may have been executed.
	ErrUnknown = errors.New("outcome unknown")
)

// What Submit and its kin return when a connection takes no command.
var (
	// ErrRetired: the connection answers what it owes and takes nothing new.
	ErrRetired = errors.New("connection retired")
	// ErrDead: the connection is lost; what it owed has been or is being failed.
	ErrDead = errors.New("connection lost")
)

// errProtocol is the cause of death of a connection on which a reply arrived that
// does not parse or that nobody asked for.
var errProtocol = errors.New("protocol violation")

// errSilent is the cause of death of a connection that owed a reply too long.
var errSilent = errors.New("no reply in time")

// SafeToRetry reports whether the command that failed with err cannot have been
// executed.
func SafeToRetry(err error) bool { return errors.Is(err, ErrNotSent) }

// errClosed is the cause of death of a connection that was closed on purpose.
var errClosed = errors.New("closed")
