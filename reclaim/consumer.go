package reclaim

import (
	"container/list"
	"slices"
	"strconv"
	"strings"
	"time"
)

// consumerKey names a consumer. Its connections come and go, and a client may use
// another one for every command; what is known of it is kept by name.
type consumerKey struct {
	db          int
	user        User
	group, name string
}

// consumer is one name in a group that has a connection here, or had one lately.
type consumer struct {
	consumerKey
	live   int // sessions that have spoken in its name
	size   int // of all that is remembered of it, counted in memory
	memory *memory
	reads  map[string]*readSet
	// with are the same by stream, byUse all of them, the longest unused first.
	with  map[string][]*readSet
	byUse list.List
	// last is the read that succeeded last.
	last *readSet
	// held are batches claimed for it, by stream.
	held map[string]*batch
	// alone lists streams not to be claimed ahead of its asking, and until when.
	alone map[string]time.Time
	// cursors are what it was last told to go on from, by stream.
	cursors map[string]string
	// tried is the round of a profile in which a claim for its parked reads was made.
	tried map[*profile]uint64
}

// readSet is a set of streams that a consumer reads together.
type readSet struct {
	consumer *consumer
	key      string   // of the streams, see setKey
	streams  []string // in the order of the client's command
	used     time.Time
	proven   bool // a read of it has succeeded, or XAUTOCLAIM has
	parked   int
	id       Identity // of whoever used it last
	sweeps   map[*sweep]struct{}
	again    time.Time // joining sweeps is not tried before
	place    *list.Element
	size     int
}

const (
	// maxReadSets bounds what is remembered of one consumer.
	maxReadSets = 256
	// maxSessionConsumers bounds the names that one connection can speak in.
	maxSessionConsumers = 64
	// maxConsumers and maxProfiles bound what all clients together can make the
	// engine remember. Beyond, commands are forwarded.
	maxConsumers = 1 << 17
	maxProfiles  = 1 << 17
)

// setKey names a set of streams, whatever their order and number of mentions.
func setKey(streams []string) string {
	s := slices.Clone(streams)
	slices.Sort(s)
	return joined(slices.Compact(s))
}

// joined writes a list so that no other list is written alike, whatever bytes are in
// it.
func joined(list []string) string {
	var b strings.Builder
	for _, s := range list {
		b.WriteString(strconv.Itoa(len(s)))
		b.WriteByte(':')
		b.WriteString(s)
	}
	return b.String()
}

// consumer finds the consumer in whose name this session speaks and counts the
// session as one of its connections. It returns nil over the bounds. The lock is
// held.
func (s *Session) consumer(group, name string) *consumer {
	k := consumerKey{s.id.DB, s.id.User, group, name}
	for _, c := range s.consumers {
		if c.consumerKey == k {
			return c
		}
	}
	c := s.e.consumers[k]
	if s.left || len(s.consumers) >= maxSessionConsumers || c == nil && (len(s.e.consumers) >= maxConsumers || s.e.memory.full()) {
		return nil
	}
	if c == nil {
		c = &consumer{
			consumerKey: k,
			memory:      &s.e.memory,
			reads:       make(map[string]*readSet),
			with:        make(map[string][]*readSet),
			held:        make(map[string]*batch),
			alone:       make(map[string]time.Time),
			cursors:     make(map[string]string),
			tried:       make(map[*profile]uint64),
		}
		s.e.consumers[k] = c
		c.charge(consumerBytes + len(group) + len(name))
	}
	c.live++
	s.consumers = append(s.consumers, c)
	return c
}

// leaveConsumers takes the session off its consumers and returns what is held for
// those that have no other connection. The lock is held.
func (s *Session) leaveConsumers(now time.Time) (left []*batch) {
	for _, c := range s.consumers {
		if c.live--; c.live > 0 {
			continue
		}
		left = append(left, s.e.takeHeld(c)...)
		s.e.forgetConsumer(c, now)
	}
	s.consumers = nil
	return left
}

// reading finds or adds a set of streams; k is its setKey. It returns nil if there is no room for
// one. The lock is held.
func (c *consumer) reading(k string, streams []string, id Identity, now time.Time) *readSet {
	rs := c.reads[k]
	if rs == nil {
		if c.memory.full() {
			return nil
		}
		if len(c.reads) >= maxReadSets {
			c.dropOldest()
		}
		rs = &readSet{consumer: c, key: k, streams: slices.Clone(streams), sweeps: make(map[*sweep]struct{})}
		rs.size = setBytes + len(k) + sizeOf(streams, memberBytes)
		c.charge(rs.size)
		c.reads[k] = rs
		rs.place = c.byUse.PushBack(rs)
		for _, s := range streams {
			if list := c.with[s]; len(list) == 0 || list[len(list)-1] != rs { // it may be named twice
				c.with[s] = append(list, rs)
			}
		}
	}
	rs.use(id, now)
	return rs
}

// use notes that the set is read.
func (rs *readSet) use(id Identity, now time.Time) {
	rs.used, rs.id = now, id
	rs.consumer.byUse.MoveToBack(rs.place)
}

// readingOf finds the streams that are read together with one of them: those of
// the last successful read if it is among them, else any other's, else the stream
// alone. It returns nil if there is no room for that.
func (c *consumer) readingOf(stream string, id Identity, now time.Time) *readSet {
	var best *readSet
	for _, rs := range c.with[stream] {
		if !rs.proven {
			continue
		}
		if best == nil || rs == c.last || best != c.last && rs.used.After(best.used) {
			best = rs
		}
	}
	if best == nil {
		one := []string{stream}
		return c.reading(setKey(one), one, id, now)
	}
	best.use(id, now)
	return best
}

// touch notes that the consumer cares about a stream, and returns what it reads it
// together with, nil if there is no room to note it.
func (c *consumer) touch(stream string, id Identity, now time.Time) *readSet {
	if c.last != nil && slices.Contains(c.with[stream], c.last) {
		c.last.use(id, now)
		return c.last
	}
	return c.readingOf(stream, id, now)
}

func (c *consumer) dropOldest() {
	for at := c.byUse.Front(); at != nil; at = at.Next() {
		if rs := at.Value.(*readSet); rs.parked == 0 {
			c.drop(rs)
			return
		}
	}
}

func (c *consumer) drop(rs *readSet) {
	rs.unlink()
	delete(c.reads, rs.key)
	c.charge(-rs.size)
	c.byUse.Remove(rs.place)
	for _, s := range rs.streams {
		list := slices.DeleteFunc(c.with[s], func(other *readSet) bool { return other == rs })
		if c.with[s] = list; len(list) == 0 {
			delete(c.with, s)
		}
	}
}

// unlink takes a set out of the sweeps that were made for it.
func (rs *readSet) unlink() {
	for w := range rs.sweeps {
		delete(w.readers, rs)
	}
	clear(rs.sweeps)
	rs.proven = false
	if rs.consumer.last == rs {
		rs.consumer.last = nil
	}
}

// live reports whether somebody reads these streams now.
func (rs *readSet) live() bool { return rs.consumer.live > 0 }

// forgetConsumer drops a consumer that nobody speaks for, unless what it reads is
// still to be watched for its return: a client may close a connection after every
// command. The lock is held.
func (e *Engine) forgetConsumer(c *consumer, now time.Time) {
	if c.live > 0 || len(c.held) > 0 {
		return
	}
	for _, rs := range c.reads {
		for w := range rs.sweeps {
			if now.Sub(rs.used) < w.life(&e.cfg) {
				return
			}
		}
	}
	for _, rs := range c.reads {
		rs.unlink()
	}
	if e.consumers[c.consumerKey] == c {
		delete(e.consumers, c.consumerKey)
		c.discharge()
	}
}
