package config

import (
	"cmp"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
)

// A field is one setting of Config: where it is kept, its syntax and its bounds.
type field interface {
	// Set parses text into the setting. An error says what is wrong with the syntax.
	Set(text string) error
	// String writes the setting so that Set would read it back.
	String() string
	// check says what is wrong with the value: a sentence that begins with a verb.
	check() error
	// bound describes the values that check accepts, or is empty if any will do.
	bound() string
	// words lists these values where there are but a few.
	words() []string
}

// setting is the field of any type.
type setting[T any] struct {
	at     *T
	parse  func(string) (T, error)
	format func(T) string
	valid  func(T) error // nil: any value
	limits string
	few    []string // the values, where there are but a few
}

func (s *setting[T]) Set(text string) error {
	v, err := s.parse(text)
	if err != nil {
		return err
	}
	*s.at = v
	return nil
}

func (s *setting[T]) String() string { return s.format(*s.at) }
func (s *setting[T]) bound() string  { return s.limits }

func (s *setting[T]) words() []string { return s.few }

func (s *setting[T]) check() error {
	if s.valid == nil {
		return nil
	}
	return s.valid(*s.at)
}

// between makes the check and the description of an inclusive range.
func between[T cmp.Ordered](low, high T, format func(T) string) (func(T) error, string) {
	return func(v T) error {
		if v < low || v > high {
			return errOutOfBounds
		}
		return nil
	}, format(low) + " to " + format(high)
}

// zeroOr extends a range by 0, which switches the limit off.
func zeroOr[T cmp.Ordered](valid func(T) error, limits string) (func(T) error, string) {
	return func(v T) error {
		var off T
		if v == off {
			return nil
		}
		return valid(v)
	}, "0 or " + limits
}

// unlessAuto extends a range by the word auto.
func unlessAuto[T any](valid func(T) error, limits string) (func(Auto[T]) error, string) {
	return func(a Auto[T]) error {
		if a.Auto {
			return nil
		}
		return valid(a.Value)
	}, "auto, " + limits
}

func intField(at *int, low, high int) field {
	valid, limits := between(low, high, formatInt)
	return &setting[int]{at: at, parse: parseInt, format: formatInt, valid: valid, limits: limits}
}

func durationField(at *time.Duration, low, high time.Duration) field {
	valid, limits := between(low, high, formatDuration)
	return &setting[time.Duration]{at: at, parse: parseDuration, format: formatDuration, valid: valid, limits: limits}
}

func sizeField(at *int64, low, high int64) field {
	valid, limits := between(low, high, formatSize)
	return &setting[int64]{at: at, parse: parseSize, format: formatSize, valid: valid, limits: limits}
}

func textField(at *string, valid func(string) error) field {
	return &setting[string]{at: at, parse: parseText, format: formatText, valid: valid}
}

// boolField is true when its flag stands alone.
func boolField(at *bool) field {
	words := []string{"true", "false"}
	return &setting[bool]{at: at, parse: parseBool, format: strconv.FormatBool, limits: strings.Join(words, ", "), few: words}
}

func choiceField(at *string, choices ...string) field {
	valid := func(v string) error {
		if !slices.Contains(choices, v) {
			return errors.New("is not one of its values")
		}
		return nil
	}
	return &setting[string]{at: at, parse: parseText, format: formatText, valid: valid, limits: strings.Join(choices, ", "), few: choices}
}

// listField is a list separated by commas.
func listField(at *[]string, valid func(string) error) field {
	return separated(at, comma, valid)
}

// separated checks each item of a list on its own.
func separated(at *[]string, by separator, valid func(string) error) field {
	each := func(items []string) error {
		for _, item := range items {
			if err := valid(item); err != nil && len(items) > 1 {
				return fmt.Errorf("has an item %q that %w", item, err)
			} else if err != nil {
				return err
			}
		}
		return nil
	}
	return &setting[[]string]{at: at, parse: by.parse, format: by.format, valid: each}
}
