package main

import (
	"errors"

	"streamproxy/internal/config"
	"streamproxy/internal/upstream"
)

// The exit codes, which supervisors and scripts rely on.
const (
	exitOK     = 0
	exitOther  = 1 // whatever has no code of its own
	exitConfig = 2 // the configuration is faulty; starting again will not help
	exitDrain  = 3 // the drain ended before every command was answered
)

// errUnanswered is the error of a run whose drain left commands unanswered.
var errUnanswered = errors.New("stopped before every command was answered")

// errConfig is the error of a configuration that no flag by itself shows to be faulty.
var errConfig = errors.New("configuration")

// exitCode is the only place where an error becomes a code.
func exitCode(err error) int {
	var faults config.Faults
	switch {
	case err == nil:
		return exitOK
	case errors.Is(err, errUnanswered):
		return exitDrain
	case errors.As(err, &faults), errors.Is(err, errConfig), errors.Is(err, upstream.ErrNotYetSupported):
		return exitConfig
	}
	return exitOther
}
