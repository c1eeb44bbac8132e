//go:build cases

package cases

import (
	"testing"

	"streamproxy/internal/redistest"
)

// shareLane makes clients known, so that they are on the lane of those who are.
func shareLane(t *testing.T, f *front, clients ...*client) {
	t.Helper()
	eventually(t, "the lane of who is known", func() bool {
		for _, c := range clients {
			c.gets(bulk("x"), "ECHO", "x")
		}
		return f.Stats().Lanes == 2
	})
	for _, c := range clients {
		c.gets(bulk("x"), "ECHO", "x")
	}
}

// meetOnLane is shareLane before a fake, for clients that shall be on one connection.
func meetOnLane(f *front, u *fake, clients ...*client) {
	u.t.Helper()
	meet := func() (one bool) {
		var first request
		for i, c := range clients {
			c.sends(redistest.Command("GET", "meet"))
			r := u.next("GET", "meet")
			if i == 0 {
				first = r
			}
			one = r.conn == first.conn
			if err := r.answer(bulk("met")); err != nil {
				u.t.Fatal(err)
			}
			c.replies(bulk("met"))
		}
		return one
	}
	eventually(u.t, "the lane of who is known", func() bool { meet(); return f.Stats().Lanes == 2 })
	eventually(u.t, "one lane", meet)
}
