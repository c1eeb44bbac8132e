package config

import (
	"errors"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"
)

// The units of sizes, as redis.conf has them: the b makes it a power of two. Longer
// suffixes stand first, because the first that fits is taken.
var sizeUnits = []struct {
	suffix string
	bytes  int64
}{
	{"gb", 1 << 30}, {"mb", 1 << 20}, {"kb", 1 << 10},
	{"g", 1e9}, {"m", 1e6}, {"k", 1e3},
	{"b", 1}, {"", 1},
}

var (
	errNotSize     = errors.New("is not a size such as 64kb, 64mb or 1gb")
	errNotInt      = errors.New("is not a whole number")
	errNotDuration = errors.New("is not a duration such as 200us, 5s or 1m")
)

// parseSize reads a number of bytes with an optional unit, without regard to case.
func parseSize(text string) (int64, error) {
	s := strings.ToLower(strings.TrimSpace(text))
	for _, u := range sizeUnits {
		digits, ok := strings.CutSuffix(s, u.suffix)
		if !ok {
			continue
		}
		n, err := strconv.ParseUint(digits, 10, 63)
		if err != nil || int64(n) > math.MaxInt64/u.bytes {
			return 0, errNotSize
		}
		return int64(n) * u.bytes, nil
	}
	return 0, errNotSize
}

// formatSize writes the largest unit that divides n, so that parseSize gives n back.
func formatSize(n int64) string {
	for _, u := range sizeUnits[:3] {
		if n > 0 && n%u.bytes == 0 {
			return strconv.FormatInt(n/u.bytes, 10) + u.suffix
		}
	}
	return strconv.FormatInt(n, 10)
}

func parseInt(text string) (int, error) {
	n, err := strconv.Atoi(text)
	if err != nil {
		return 0, errNotInt
	}
	return n, nil
}

func parseDuration(text string) (time.Duration, error) {
	d, err := time.ParseDuration(text)
	if err != nil {
		return 0, errNotDuration
	}
	return d, nil
}

// formatDuration writes a duration as a person would type it: 25s, 1m, 200us.
func formatDuration(d time.Duration) string {
	if d == 0 {
		return "0"
	}
	s := strings.Replace(d.String(), "µ", "u", 1)
	if strings.HasSuffix(s, "m0s") {
		s = strings.TrimSuffix(s, "0s")
	}
	if strings.HasSuffix(s, "h0m") {
		s = strings.TrimSuffix(s, "0m")
	}
	return s
}

// separator stands between the items of a list.
type separator string

const (
	comma separator = ","
	// semicolon is for items that may have commas themselves.
	semicolon separator = ";"
)

// parse reads a list; empty items are faults, an empty text is an empty list.
func (by separator) parse(text string) ([]string, error) {
	if strings.TrimSpace(text) == "" {
		return nil, nil
	}
	items := strings.Split(text, string(by))
	for i := range items {
		items[i] = strings.TrimSpace(items[i])
		if items[i] == "" {
			return nil, errors.New("has an empty item")
		}
	}
	return items, nil
}

func (by separator) format(items []string) string { return strings.Join(items, string(by)) }

// parseBool knows two words only: with more of them yes, on and 1 would be asked for
// next, and then which case they may have.
func parseBool(text string) (bool, error) {
	switch text {
	case "true":
		return true, nil
	case "false":
		return false, nil
	}
	return false, errors.New("is neither true nor false")
}

func parseText(text string) (string, error) { return text, nil }
func formatText(text string) string         { return text }

// automatic extends a syntax by the word auto.
func automatic[T any](parse func(string) (T, error)) func(string) (Auto[T], error) {
	return func(text string) (Auto[T], error) {
		if text == "auto" {
			return Auto[T]{Auto: true}, nil
		}
		v, err := parse(text)
		if err != nil {
			return Auto[T]{}, fmt.Errorf("is not auto and %w", err)
		}
		return Auto[T]{Value: v}, nil
	}
}

// formatAutomatic writes auto, or the value that was asked for.
func formatAutomatic[T any](format func(T) string) func(Auto[T]) string {
	return func(a Auto[T]) string {
		if a.Auto {
			return "auto"
		}
		return format(a.Value)
	}
}

func formatInt(n int) string { return strconv.Itoa(n) }
