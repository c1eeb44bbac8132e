package resp

import (
	"strconv"
	"testing"
)

func TestNumber(t *testing.T) {
	for _, text := range []string{
		"", "0", "1", "-1", "10", "-10", "00", "01", "-0", "-01", "+1", "--1", "1-", "1x", " 1", "-",
		"9223372036854775807", "9223372036854775808", "-9223372036854775808", "-9223372036854775809",
		"9999999999999999999", "10000000000000000000", "18446744073709551617", "111111111111111111111111111111",
	} {
		var d number
		ok := true
		for i := 0; ok && i < len(text); i++ {
			ok = d.feed(text[i])
		}
		got, fits := d.value()
		want, err := strconv.ParseInt(text, 10, 64)
		if canonical := canonicalPrefix.MatchString(text); ok != canonical {
			t.Errorf("%q: taken %v, canonical %v", text, ok, canonical)
		} else if ok && (fits != (err == nil) || fits && got != want) {
			t.Errorf("%q: %d %v, want %d %v", text, got, fits, want, err)
		}
	}
}

func TestShortLength(t *testing.T) {
	for in, want := range map[string][2]int{
		"":                   {},
		"$":                  {},
		"$\r\n":              {},
		"$1":                 {},
		"$1\r":               {},
		"$1\r\n":             {1, 4},
		"$0\r\nrest":         {0, 4},
		"*123456789\r\n":     {123456789, 12},
		"*1234567890\r\n":    {},
		"$01\r\n":            {},
		"$-1\r\n":            {},
		"$1\n":               {},
		"$1\rx":              {},
		"$1x\r\n":            {},
		"$999999999\r\nrest": {999999999, 12},
	} {
		if n, h := shortLength([]byte(in)); [2]int{n, h} != want {
			t.Errorf("%q: %d %d, want %v", in, n, h, want)
		}
	}
}
