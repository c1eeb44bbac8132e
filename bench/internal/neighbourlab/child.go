package neighbourlab

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"time"
)

// Command is the word with which a program is to call Child.
const Command = "neighbours-child"

// What a child says, and what it is told.
const (
	saysReady   = "ready"
	saysCame    = "came" // attackers, of the first connection
	tellAttack  = "attack"
	tellRelieve = "relieve" // the attack is over
	tellEnd     = "end"
)

// Child is a process of a measurement: "neighbours ADDR TRIP" or "attackers NAME ADDR". It says when it
// is ready, does what the lines of in tell it, and writes what it found as one line of JSON.
func Child(ctx context.Context, args []string, in io.Reader, out io.Writer) error {
	told := bufio.NewScanner(in)
	switch {
	case len(args) == 3 && args[0] == "neighbours":
		trip, err := time.ParseDuration(args[2])
		if err != nil {
			return err
		}
		return neighboursChild(args[1], trip, told, out)
	case len(args) == 3 && args[0] == "attackers":
		return attackersChild(ctx, args[1], args[2], told, out)
	}
	return fmt.Errorf("%s %q: nothing to do", Command, args)
}

// neighboursChild attends until it is told the end, or whoever tells it has gone.
func neighboursChild(addr string, trip time.Duration, told *bufio.Scanner, out io.Writer) error {
	for i := range neighbours { // what does not work without an attack is no result of one
		var c *client
		if err := neighbours[i].turn(addr, &c); err != nil {
			return fmt.Errorf("%s: %w", neighbours[i].name, err)
		}
		if c != nil {
			c.close()
		}
	}
	s, heard := newSchedule(), make(chan Heard, 1)
	go func() { heard <- attend(addr, trip, s) }()
	if _, err := fmt.Fprintln(out, saysReady); err != nil {
		return err
	}
	for told.Scan() && told.Text() != tellEnd {
		switch told.Text() {
		case tellAttack:
			s.enter(under)
		case tellRelieve:
			s.enter(afterwards)
		}
	}
	s.enter(over)
	return json.NewEncoder(out).Encode(<-heard)
}

// attackersChild attacks from when it is told to until it is told the end, or is left alone.
func attackersChild(ctx context.Context, name, addr string, told *bufio.Scanner, out io.Writer) error {
	attack, err := Find(name)
	if err != nil {
		return err
	}
	for _, r := range attack.Roles { // what is large is built before the time runs
		for _, p := range []Payload{r.Once, r.Repeat} {
			if p != nil {
				p(0, 0)
			}
		}
	}
	if _, err := fmt.Fprintln(out, saysReady); err != nil {
		return err
	}
	if !told.Scan() || told.Text() != tellAttack {
		return nil
	}
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	force := make(chan Force, 1)
	a := newAttackers(addr)
	go func() { force <- a.run(ctx, attack) }()
	select {
	case <-a.came:
	case <-ctx.Done():
	}
	if _, err := fmt.Fprintln(out, saysCame); err != nil {
		return err
	}
	told.Scan() // the end, in either form
	stop()
	return json.NewEncoder(out).Encode(<-force)
}
