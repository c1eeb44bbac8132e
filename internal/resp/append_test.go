package resp

import "testing"

func TestAppendCommand(t *testing.T) {
	const want = "*3\r\n$3\r\nSET\r\n$1\r\nk\r\n$0\r\n\r\n"
	if got := AppendCommand(nil, "SET", "k", ""); string(got) != want {
		t.Errorf("AppendCommand: %q", got)
	}
	if got := AppendCommandBytes(nil, []byte("SET"), []byte("k"), nil); string(got) != want {
		t.Errorf("AppendCommandBytes: %q", got)
	}
}
