package batcher

import (
	"runtime"
	"testing"
	"time"
)

// Yields that take long and bring nobody become rare, and are made again once one is worth it.
func TestYieldsInVainBecomeRare(t *testing.T) {
	const asked = 100_000
	var y yields
	made := 0
	for range asked {
		if y.due() {
			made++
			y.took(longYield, false)
		}
	}
	if made < asked/rarestYield || made > 2*asked/rarestYield {
		t.Errorf("%d of %d were made", made, asked)
	}
	for !y.due() {
	}
	y.took(longYield, true)
	for range 10 {
		if !y.due() {
			t.Fatal("none is made after one that was worth it")
		}
		y.took(longYield-1, false)
	}
}

// A client among many on a lane does not wait for others' turns before each of its commands.
func TestLongYieldsBecomeRareOnALane(t *testing.T) {
	const commands = 200
	made := 0
	yield = func() { made++; time.Sleep(longYield) }
	t.Cleanup(func() { yield = runtime.Gosched })
	c, p, _ := lane(t, 0, nil)
	p.send("+first\r\n")
	go p.echo()
	var seats [2]Seat
	for i := range seats {
		if !c.Join(&seats[i]) {
			t.Fatal("no seat")
		}
	}
	r := newRecorder()
	for i := range commands {
		if err := c.Submit(r, &seats[0], get("k"), 1); err != nil {
			t.Fatal(err)
		}
		r.wait(t, "the reply", func() bool { return r.ended == i+1 })
	}
	if made > 10 {
		t.Errorf("%d yields in vain before %d commands", made, commands)
	}
}
