package neighbourlab

import (
	"errors"
	"fmt"
	"time"
)

// Attack is something that clients do at others' expense, on purpose or by a fault.
type Attack struct {
	Name string
	// What says what they do, Promise what nobody else is to lose by it. Both are for the page.
	What, Promise string
	// Prepare is a pipeline that the server is sent directly before; nil: nothing.
	Prepare Payload
	// Roles are the attackers, who act together.
	Roles []Role
}

// Role is a number of connections that do the same.
type Role struct {
	Connections int
	// Once is sent when a connection begins, Repeat from then on; either may be nil.
	Once, Repeat Payload
	// CutOff says that what is sent ends within a command, which never comes to its end.
	CutOff bool
	// Await has a connection wait for some reply before it repeats; Pause is a rest before that.
	Await bool
	Pause time.Duration
	// Deaf connections do not read.
	Deaf bool
	// Lives is how long a connection is there before another takes its place; 0: to the end.
	Lives time.Duration
	Ends  Ending
}

// Ending is how a connection goes.
type Ending int

// The endings. Who stays is reset when the attack is over.
const (
	Stays Ending = iota
	Resets
	Finishes
)

// Find returns the attack of that name.
func Find(name string) (*Attack, error) {
	for _, a := range Attacks() {
		if a.Name == name {
			return &a, nil
		}
	}
	return nil, fmt.Errorf("attack %q: there is none of that name", name)
}

// Attacks are all that there are, in the order of the page.
func Attacks() []Attack {
	var all []Attack
	for _, some := range [][]Attack{largeReplies(), hardCommands(), privateConnections(), visits(), crowdsOfUsers(), streamWork()} {
		all = append(all, some...)
	}
	return all
}

// validate returns everything that is wrong with a declaration.
func (a *Attack) validate() error {
	var faults []error
	wrong := func(text string, args ...any) {
		faults = append(faults, fmt.Errorf(a.Name+": "+text, args...))
	}
	if a.Name == "" || a.What == "" || a.Promise == "" {
		wrong("it needs a name, what it is and a promise")
	}
	if len(a.Roles) == 0 {
		wrong("nobody attacks")
	}
	for i := range a.Roles {
		r := &a.Roles[i]
		if r.Connections < 1 {
			wrong("%d connections: at least 1", r.Connections)
		}
		if (r.Lives > 0) == (r.Ends == Stays) {
			wrong("a connection that stays has no end, and no other is without: lives %v, ends %d", r.Lives, r.Ends)
		}
		if r.Await && (r.Deaf || r.Repeat == nil) {
			wrong("who waits for a reply reads and repeats")
		}
		if r.CutOff && r.Once == nil {
			wrong("what is cut off is sent once")
		}
	}
	return errors.Join(faults...)
}
