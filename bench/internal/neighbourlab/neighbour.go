package neighbourlab

import (
	"fmt"
	"sync"
	"time"
)

// What a neighbour has at the server.
const (
	valueKey, value    = "neighbour:value", "hello"
	txKey, listKey     = "neighbour:transaction", "neighbour:list"
	user, userPassword = "neighbour", "neighbour's secret"
)

// neighbour does one thing over and over and takes the time of it.
type neighbour struct {
	name  string
	every time.Duration
	trips int                 // round trips to the server that it takes
	fresh bool                // a new connection each time, whose making is part of it
	work  func(*client) error // nil: only sleeps, see Timer
}

// neighbours are those of every measurement.
var neighbours = []neighbour{
	{name: Get, every: 2 * time.Millisecond, trips: 1, work: readValue},
	{name: Transaction, every: 20 * time.Millisecond, trips: 4, work: func(c *client) error {
		for _, step := range [][]string{
			{"+OK", "WATCH", txKey}, {"+OK", "MULTI"}, {"+QUEUED", "SET", txKey, value}, {"*1\r\n+OK", "EXEC"},
		} {
			if err := c.ask(step[0], step[1:]...); err != nil {
				return err
			}
		}
		return nil
	}},
	{name: Pop, every: 20 * time.Millisecond, trips: 2, work: func(c *client) error {
		if err := c.ask(":", "RPUSH", listKey, value); err != nil {
			return err
		}
		return c.ask("*2", "BLPOP", listKey, "5")
	}},
	{name: Connect, every: 20 * time.Millisecond, trips: 2, fresh: true, work: func(c *client) error {
		if err := c.ask("+OK", "AUTH", user, userPassword); err != nil {
			return err
		}
		return readValue(c)
	}},
	{name: Timer, every: time.Millisecond},
}

// The neighbours' names. Timer asks for nothing and sleeps for a millisecond: what that takes longer
// is what the machine itself, with whatever else it does, has everybody wait.
const (
	Get         = "GET"
	Transaction = "transaction"
	Pop         = "pop"
	Connect     = "new connection"
	Timer       = "timer"
)

func readValue(c *client) error {
	return c.ask(fmt.Sprintf("$%d\r\n%s\r\n", len(value), value), "GET", valueKey)
}

// live works, rests and works again until the schedule ends. trip is a round trip to the server,
// for which the work's rhythm allows.
func (n *neighbour) live(addr string, trip time.Duration, s *schedule, t *tally) {
	var c *client
	interval := n.every + time.Duration(n.trips)*trip
	for !s.over() {
		if c == nil && !n.fresh && n.work != nil {
			c, _ = dial(addr) // what is wrong shows again below
		}
		began := s.now()
		err := n.turn(addr, &c)
		t.add(s, began, s.now(), interval, err)
		time.Sleep(n.every)
	}
	if c != nil {
		c.close()
	}
}

// turn works once. A connection on which something went wrong is not used again.
func (n *neighbour) turn(addr string, c **client) (err error) {
	if n.work == nil {
		time.Sleep(time.Millisecond)
		return nil
	}
	if *c == nil {
		if *c, err = dial(addr); err != nil {
			return err
		}
	}
	if err = n.work(*c); err != nil || n.fresh {
		(*c).close()
		*c = nil
	}
	return err
}

// attend runs the neighbours until the schedule ends and returns what they waited.
func attend(addr string, trip time.Duration, s *schedule) Heard {
	tallies := make([]*tally, len(neighbours))
	var all sync.WaitGroup
	for i := range neighbours {
		tallies[i] = newTally()
		all.Go(func() { neighbours[i].live(addr, trip, s, tallies[i]) })
	}
	all.Wait()
	heard := Heard{Under: map[string]Waits{}, After: map[string]Waits{}}
	for i := range neighbours {
		heard.Under[neighbours[i].name] = tallies[i].waits(under)
		heard.After[neighbours[i].name] = tallies[i].waits(afterwards)
	}
	return heard
}
