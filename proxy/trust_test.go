package proxy

import (
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// A redirection, which a script can forge, is the client's to read: the proxy goes
// nowhere for it.
func TestRedirectionsLeadNowhere(t *testing.T) {
	elsewhere, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer elsewhere.Close()
	f := startFake(t)
	p := startProxy(t, f, nil)
	f.script(func(_ *fakeConn, args []string) (string, bool) {
		switch args[0] {
		case "GET", "BLPOP", "FOO":
			return "-" + args[1] + " 866 " + elsewhere.Addr().String() + "\r\n", true
		}
		return "", false
	})
	c := p.client()
	for _, word := range []string{"MOVED", "ASK"} {
		want := "-" + word + " 866 " + elsewhere.Addr().String() + "\r\n"
		expect(t, c, want, "GET", word)
		expect(t, c, want, "BLPOP", word, "1")
		expect(t, c, want, "FOO", word)
	}
	if err := elsewhere.(*net.TCPListener).SetDeadline(time.Now().Add(50 * time.Millisecond)); err != nil {
		t.Fatal(err)
	}
	if nc, err := elsewhere.Accept(); err == nil {
		t.Errorf("%v was dialled", nc.LocalAddr())
	}
}

func TestSameSecret(t *testing.T) {
	for _, tt := range []struct {
		a, b string
		want bool
	}{{"", "", true}, {"a", "a", true}, {"a", "b", false}, {"a", "ab", false}, {"", "a", false}} {
		if got := sameSecret(tt.a, tt.b); got != tt.want {
			t.Errorf("%q and %q: %v", tt.a, tt.b, got)
		}
	}
}

// There is one place where passwords are compared: nobody brings a second one with him.
func TestSecretsAreComparedInOnePlace(t *testing.T) {
	files, err := filepath.Glob("*.go")
	if err != nil || len(files) == 0 {
		t.Fatal(err)
	}
	n := 0
	for _, name := range files {
		text, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		n += strings.Count(string(text), "subtle.ConstantTimeCompare(")
		for _, careless := range []string{"password ==", "password !=", "== password", "!= password"} {
			if strings.Contains(string(text), careless) {
				t.Errorf("%s compares a password by %q", name, careless)
			}
		}
	}
	if n != 1 {
		t.Errorf("%d comparisons, want one", n)
	}
}
