//go:build cases

package cases

import (
	"fmt"
	"os"
	"runtime"
	"testing"

	"streamproxy/proxy"
)

// living is what a proxy in this process keeps alive.
type living struct {
	clients, connections, goroutines, descriptors int
}

func livingIn(f *front) living {
	f.t.Helper()
	entries, err := os.ReadDir("/proc/self/fd")
	if err != nil {
		f.t.Fatal(err)
	}
	st := f.Stats()
	return living{
		clients: st.Clients, connections: st.Lanes + st.PrivateIdle + st.PrivateBusy + st.Control,
		goroutines: runtime.NumGoroutine(), descriptors: len(entries),
	}
}

// awaitSpares waits for the spare connections, which are dialled behind the first client: who
// counts what there is must not count them as what came later. There may be more for a while,
// which have been in use.
func awaitSpares(t *testing.T, f *front) {
	t.Helper()
	eventually(t, "the spares are there", func() bool { return f.Stats().PrivateIdle >= proxy.DefaultConfig().PrivateMinIdle })
}

// atRest is what is alive when the spares are there.
func atRest(t *testing.T, f *front) living {
	t.Helper()
	awaitSpares(t, f)
	return livingIn(f)
}

// returns waits until no more is alive than before, save a few of what comes and goes by itself: a
// spare connection under way, the control lane once it was needed.
func (l living) returns(t *testing.T, f *front) {
	t.Helper()
	const few = 8
	var now living
	defer func() { t.Logf("%+v before, %+v after", l, now) }()
	eventually(t, fmt.Sprintf("no more is alive than before, %+v", l), func() bool {
		now = livingIn(f)
		return now.clients <= l.clients && now.connections <= l.connections+few/2 &&
			now.goroutines <= l.goroutines+few && now.descriptors <= l.descriptors+few
	})
}
