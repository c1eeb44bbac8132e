package main

import (
	"context"
	"log/slog"
	"os"
	"os/signal"
	"sync"
	"syscall"
)

// signals turns SIGTERM and SIGINT into contexts. Its goroutine lives from
// watchSignals to end.
type signals struct {
	drain context.Context // ended by the first signal, or with the parent
	now   context.Context // ended by the second
	end   func()
}

// watchSignals starts to listen for signals.
func watchSignals(parent context.Context, log *slog.Logger) *signals {
	received := make(chan os.Signal, 2)
	signal.Notify(received, syscall.SIGTERM, os.Interrupt)
	drain, stopDrain := context.WithCancel(parent)
	now, stopNow := context.WithCancel(context.WithoutCancel(parent))
	done := make(chan struct{})
	var watching sync.WaitGroup
	watching.Go(func() {
		for _, stop := range []context.CancelFunc{stopDrain, stopNow} {
			select {
			case s := <-received:
				log.Info("received a signal", "signal", s.String())
				stop()
			case <-done:
				return
			}
		}
	})
	return &signals{drain: drain, now: now, end: func() {
		signal.Stop(received)
		close(done)
		watching.Wait()
		stopDrain()
		stopNow()
	}}
}
