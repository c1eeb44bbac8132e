package config

import (
	"reflect"
	"testing"
	"time"
)

func TestParseSize(t *testing.T) {
	for _, tt := range []struct {
		text string
		want int64 // -1: an error
	}{
		{"0", 0}, {"64kb", 65536}, {"64KB", 65536}, {"64k", 64000}, {"1gb", 1 << 30}, {"2g", 2e9},
		{"10mb", 10 << 20}, {"10m", 10e6}, {"17b", 17}, {" 8kb ", 8192},
		{"9223372036854775807", 1<<63 - 1},
		{"", -1}, {"kb", -1}, {"-1", -1}, {"+1", -1}, {"1.5mb", -1}, {"64kib", -1}, {"6 4", -1},
		{"9223372036854775808", -1}, {"9007199254740992kb", -1},
	} {
		got, err := parseSize(tt.text)
		if (err != nil) != (tt.want < 0) || (err == nil && got != tt.want) {
			t.Errorf("parseSize(%q) = %d, %v; want %d", tt.text, got, err, tt.want)
		}
	}
}

func TestFormatSizeReadsBack(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "1", 1000: "1000", 1024: "1kb", 65536: "64kb", 1 << 20: "1mb", 3 << 29: "1536mb", 1 << 30: "1gb", 1<<63 - 1: "9223372036854775807"} {
		got := formatSize(n)
		if got != want {
			t.Errorf("formatSize(%d) = %q, want %q", n, got, want)
		}
		if back, err := parseSize(got); err != nil || back != n {
			t.Errorf("parseSize(%q) = %d, %v; want %d", got, back, err, n)
		}
	}
}

func TestFormatDurationReadsBack(t *testing.T) {
	for d, want := range map[time.Duration]string{
		0: "0", 200 * time.Microsecond: "200us", 1500 * time.Millisecond: "1.5s", 25 * time.Second: "25s",
		time.Minute: "1m", 90 * time.Second: "1m30s", time.Hour: "1h", 24 * time.Hour: "24h", 61 * time.Minute: "1h1m",
		time.Hour + time.Second: "1h0m1s", 10 * time.Minute: "10m", 20 * time.Hour: "20h",
	} {
		got := formatDuration(d)
		if got != want {
			t.Errorf("formatDuration(%v) = %q, want %q", d, got, want)
		}
		if back, err := parseDuration(got); err != nil || back != d {
			t.Errorf("parseDuration(%q) = %v, %v; want %v", got, back, err, d)
		}
	}
}

func TestParseList(t *testing.T) {
	for _, tt := range []struct {
		text string
		want []string
		ok   bool
	}{
		{"", nil, true}, {" ", nil, true}, {"a", []string{"a"}, true}, {"a, b", []string{"a", "b"}, true},
		{"a,,b", nil, false}, {"a,", nil, false}, {",", nil, false},
	} {
		got, err := comma.parse(tt.text)
		if (err == nil) != tt.ok || !reflect.DeepEqual(got, tt.want) {
			t.Errorf("comma.parse(%q) = %q, %v; want %q", tt.text, got, err, tt.want)
		}
	}
}
