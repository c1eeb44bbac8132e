package resp

import "testing"

// What a client sent must not break the line of the error that quotes it.
func TestReasonExpected(t *testing.T) {
	for c, want := range map[byte]string{
		'x':  "expected '$', got 'x'",
		'\r': "expected '$', got ' '",
		'\n': "expected '$', got ' '",
		0:    "expected '$', got ' '",
		0xff: "expected '$', got '\xff'",
	} {
		if got := reasonExpected(c); got != want {
			t.Errorf("%q: %q", c, got)
		}
	}
	if got := (&ProtocolError{Reason: reasonBulk}).Error(); got != "Protocol error: invalid bulk length" {
		t.Error(got)
	}
}
