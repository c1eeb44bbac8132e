//go:build !linux

package proxy

import "streamproxy/batcher"

// partings tells the readers of sessions that their clients have ended the connection,
// where an event of the poller has told of that together with the last bytes. Here the
// sweeper looks for such ends.
type partings struct{}

func newPartings(func(id int64) *session) (*partings, error) { return &partings{}, nil }

func (*partings) watch(*session) {}

func (*partings) run() {}

func (*partings) close() {}

// lookAround looks at each session's connection.
func (*partings) lookAround(r *registry) {
	for _, s := range r.all() {
		if rc := s.rawConn(); rc != nil && batcher.Ended(rc) {
			s.leaving()
		}
	}
}
