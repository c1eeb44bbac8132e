package resp

import "testing"

func TestCommandLimits(t *testing.T) {
	small := Limits{MaxBulk: 5, MaxArgs: 2, MaxInline: 8}
	for _, c := range []struct {
		limits Limits
		in     string
		reason string
	}{
		{small, "*2\r\n$5\r\n12345\r\n", ""},
		{small, "*3\r\n", reasonCount},
		{small, "*1\r\n$6\r\n", reasonBulk},
		{small, "12345678\n", ""},
		{small, "123456789\n", reasonInline},
		{PreAuthLimits(), "*10\r\n", ""},
		{PreAuthLimits(), "*11\r\n", reasonPreAuthCount},
		{PreAuthLimits(), "*2147483648\r\n", reasonCount},
		{PreAuthLimits(), "*1\r\n$16384\r\n", ""},
		{PreAuthLimits(), "*1\r\n$16385\r\n", reasonPreAuthBulk},
		{PreAuthLimits(), "*1\r\n$536870913\r\n", reasonBulk},
		{PreAuthLimits(), "*1\r\n$-1\r\n", reasonBulk},
		{DefaultLimits(), "*1048576\r\n$536870912\r\n", ""},
		{DefaultLimits(), "*1048577\r\n", reasonCount},
	} {
		_, _, err := NewCommandScanner(c.limits).Scan([]byte(c.in))
		got := ""
		if err != nil {
			got = err.(*ProtocolError).Reason
		}
		if got != c.reason {
			t.Errorf("%+v %q: %q, want %q", c.limits, c.in, got, c.reason)
		}
	}
}

// A change of limits, as after AUTH, holds from the next header on.
func TestSetLimits(t *testing.T) {
	s := NewCommandScanner(PreAuthLimits())
	s.SetLimits(DefaultLimits())
	if _, _, err := s.Scan([]byte("*11\r\n")); err != nil {
		t.Fatal(err)
	}
}
