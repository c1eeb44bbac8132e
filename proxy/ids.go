package proxy

import "sync"

// firstID is where virtual client ids begin: above any id that a server reaches,
// and below 2^53, so that clients in JavaScript keep them exactly.
const firstID = 1 << 52

// registry lists the sessions by their virtual ids.
type registry struct {
	mu       sync.Mutex
	next     int64
	sessions map[int64]*session
}

// add gives s its id and lists it, unless there are already limit sessions.
func (r *registry) add(s *session, limit int) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.sessions) >= limit {
		return false
	}
	if r.sessions == nil {
		r.sessions = make(map[int64]*session)
	}
	s.id = firstID + r.next
	r.next++
	r.sessions[s.id] = s
	return true
}

func (r *registry) remove(s *session) {
	r.mu.Lock()
	delete(r.sessions, s.id)
	r.mu.Unlock()
}

// find returns the session with a virtual id, or nil.
func (r *registry) find(id int64) *session {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.sessions[id]
}

func (r *registry) len() int {
	r.mu.Lock()
	defer r.mu.Unlock()
	return len(r.sessions)
}

// all returns the sessions as they are now, in no order.
func (r *registry) all() []*session {
	r.mu.Lock()
	defer r.mu.Unlock()
	list := make([]*session, 0, len(r.sessions))
	for _, s := range r.sessions {
		list = append(list, s)
	}
	return list
}
