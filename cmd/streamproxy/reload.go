package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"streamproxy/internal/certs"
)

// certificates is what SIGHUP reads again. Handshakes notice a change by themselves;
// the signal is for whoever wants to know at once whether the new files are good.
type certificates struct {
	log               *slog.Logger
	upstream, clients *certs.Source // nil where there is no TLS
}

func (c certificates) each(f func(side string, s *certs.Source)) {
	if c.upstream != nil {
		f("upstream", c.upstream)
	}
	if c.clients != nil {
		f("clients", c.clients)
	}
}

// load reads the files for the first time, so that there is something to keep in
// force, and from then on logs what handshakes find wrong with them.
func (c certificates) load() error {
	var errs []error
	c.each(func(side string, s *certs.Source) {
		s.Failed = func(err error) { c.complain(side, err) }
		if err := s.Reload(); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", side, err))
		}
	})
	return errors.Join(errs...)
}

func (c certificates) complain(side string, err error) {
	c.log.Error("certificates cannot be used; the old ones stay in force", "side", side, "error", err)
}

// reload reads all files now. Connections that are open stay as they are.
func (c certificates) reload() {
	c.each(func(side string, s *certs.Source) {
		if err := s.Reload(); err != nil {
			c.complain(side, err)
			return
		}
		c.log.Info("certificates read again", "side", side)
	})
}

// followSignals reloads at each SIGHUP, which without TLS does nothing but must not
// end the process either. The function returned ends its goroutine.
func (c certificates) followSignals() (end func()) {
	received := make(chan os.Signal, 1)
	signal.Notify(received, syscall.SIGHUP)
	done := make(chan struct{})
	var following sync.WaitGroup
	following.Go(func() {
		for {
			select {
			case <-received:
				c.log.Info("received a signal", "signal", "hangup")
				c.reload()
			case <-done:
				return
			}
		}
	})
	return func() {
		signal.Stop(received)
		close(done)
		following.Wait()
	}
}
