package main

import (
	"context"
	"errors"
	"io"
	"os"
	"os/signal"
	"sync/atomic"
	"syscall"
)

// A process that writes to a pipe which nobody reads any more gets SIGPIPE, which ends it.
// Most subcommands leave it at that: they are tools like others before "| head". The proxy
// must outlive whoever reads its log, and the demo has things to tidy up first.

// surviveReaders makes writes to a pipe that nobody reads fail, and no more than that.
func surviveReaders() { signal.Ignore(syscall.SIGPIPE) }

// watchedOutput is standard output that knows whether it is still read.
type watchedOutput struct {
	to     io.Writer
	unread atomic.Bool
	enough context.CancelFunc
	caught chan os.Signal // that it is caught is enough, nobody receives
}

// readersOf returns an output, and a context that ends when nobody reads it any more.
func readersOf(ctx context.Context, to io.Writer) (*watchedOutput, context.Context) {
	w := &watchedOutput{to: to, caught: make(chan os.Signal, 1)}
	ctx, w.enough = context.WithCancel(ctx)
	signal.Notify(w.caught, syscall.SIGPIPE)
	return w, ctx
}

// Write implements io.Writer.
func (w *watchedOutput) Write(b []byte) (int, error) {
	n, err := w.to.Write(b)
	if errors.Is(err, syscall.EPIPE) {
		w.unread.Store(true)
		w.enough()
	}
	return n, err
}

// close ends the watch, and the process as the signal would have, had it come.
func (w *watchedOutput) close() {
	w.enough()
	signal.Stop(w.caught)
	if w.unread.Load() {
		_, _ = io.WriteString(w.to, "\n")
	}
}
