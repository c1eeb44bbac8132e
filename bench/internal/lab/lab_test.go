package lab

import (
	"strings"
	"testing"

	"streamproxy/bench/internal/proc"
)

func TestLabStartsRedisAndNamesWhatIsMissing(t *testing.T) {
	l, err := Open(t.Context(), []string{"direct", "predixy"})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	if direct := l.Side("direct"); direct == nil || direct.Addr != l.RedisAddr || direct.Process != nil {
		t.Errorf("direct is %+v", direct)
	}
	_, err = proc.Find("predixy", peerFolder)
	installed := err == nil
	if missing := strings.Join(l.Missing, " "); (missing == "predixy") == installed {
		t.Errorf("missing %q, though installed is %v", missing, installed)
	}
	if !strings.Contains(l.RedisVersion, "v=") {
		t.Errorf("version %q", l.RedisVersion)
	}
}

func TestUnknownSide(t *testing.T) {
	_, err := Open(t.Context(), []string{"haproxy"})
	if err == nil || !strings.Contains(err.Error(), `"haproxy": no such kind`) {
		t.Errorf("error %v", err)
	}
}
