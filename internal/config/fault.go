package config

import (
	"errors"
	"fmt"
	"strings"
)

// errOutOfBounds is the fault of a value whose bounds the report names anyway.
var errOutOfBounds = errors.New("is out of bounds")

// Fault is one thing wrong with the configuration.
type Fault struct {
	// Name is the flag, with the environment variable when the value came from there.
	Name string
	// Value is the faulty value, without secrets.
	Value string
	// Problem is a sentence that begins with a verb and has the value as its subject.
	Problem string
	// Bound describes what would be accepted; empty where Problem says it.
	Bound string
	// Err is the cause where a caller may want to look at it.
	Err error
}

// Error writes the fault as one line.
func (f Fault) Error() string {
	s := f.Name + ": " + f.Problem
	if f.Value != "" {
		s = fmt.Sprintf("%s: %q %s", f.Name, f.Value, f.Problem)
	}
	if f.Bound != "" {
		s += " (want " + f.Bound + ")"
	}
	return s
}

// Unwrap returns the cause.
func (f Fault) Unwrap() error { return f.Err }

// Faults is everything wrong with a configuration, in the order of the help.
type Faults []Fault

// Error writes one fault a line.
func (fs Faults) Error() string {
	if len(fs) == 1 {
		return "configuration: " + fs[0].Error()
	}
	var b strings.Builder
	fmt.Fprintf(&b, "configuration: %d faults", len(fs))
	for _, f := range fs {
		b.WriteString("\n  " + f.Error())
	}
	return b.String()
}

// Unwrap returns the faults, for errors.Is and errors.As.
func (fs Faults) Unwrap() []error {
	errs := make([]error, len(fs))
	for i, f := range fs {
		errs[i] = f
	}
	return errs
}

// orNil avoids an error that is not nil although it holds no fault.
func (fs Faults) orNil() error {
	if len(fs) == 0 {
		return nil
	}
	return fs
}
