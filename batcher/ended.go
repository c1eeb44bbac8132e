package batcher

import "syscall"

// Ended reports whether the other end of a socket has closed and everything that it
// sent has been read. A poller that reports edges may have told of that together with
// the last bytes; a reader that stops at a short read then hears nothing more.
func Ended(rc syscall.RawConn) (ended bool) {
	err := rc.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch err {
		case nil:
			ended = n == 0
		case syscall.EAGAIN, syscall.EINTR:
		default: // reset
			ended = true
		}
	})
	return ended || err != nil
}
