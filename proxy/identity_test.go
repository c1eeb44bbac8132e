package proxy

import (
	"testing"
	"testing/synctest"
	"time"
)

// A proof spares the prover for a minute from when it was given, however often it is used.
func TestProofsAreNotRenewedByUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := newIdentities()
		if ids.enterProven("alice", "a") {
			t.Fatal("nobody has proven anything")
		}
		ids.enter("alice", "a")
		for range 5 {
			<-time.After(provenFor / 6)
			if !ids.enterProven("alice", "a") {
				t.Fatal("a fresh proof does not count")
			}
			if ids.enterProven("alice", "b") || ids.enterProven("bob", "a") {
				t.Fatal("it counts for others")
			}
		}
		<-time.After(provenFor / 6)
		if ids.enterProven("alice", "a") {
			t.Error("use has renewed the proof")
		}
	})
}

// The password goes with the user's last session, and a refused dial takes the proof along.
func TestPasswordsGoWithTheLastSession(t *testing.T) {
	ids := newIdentities()
	ids.enter("alice", "a")
	if !ids.enterProven("alice", "a") {
		t.Fatal("a fresh proof does not count")
	}
	ids.enter("alice", "b") // changed meanwhile
	if got, err := ids.passwordOf("alice"); err != nil || got != "b" {
		t.Errorf("dials use %q, %v, want what was proven last", got, err)
	}
	ids.doubt("alice")
	ids.doubt("nobody")
	if ids.enterProven("alice", "b") {
		t.Error("a refused password counts as proven")
	}
	for n := range 3 {
		if _, err := ids.passwordOf("alice"); err != nil {
			t.Fatalf("after %d of 3 sessions have ended: %v", n, err)
		}
		ids.exit("alice")
	}
	if _, err := ids.passwordOf("alice"); err == nil {
		t.Error("the password is kept for nobody")
	}
}
