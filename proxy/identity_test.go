package proxy

import (
	"testing"
	"testing/synctest"
	"time"

	"streamproxy/internal/upstream"
)

// A proof spares the prover for a while from when it was given, however often it is used.
func TestProofsAreNotRenewedByUse(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := newIdentities()
		alice := ids.user("alice", "a")
		if ids.enterProven(alice, false) {
			t.Fatal("nobody has proven anything")
		}
		ids.enter(alice, "a")
		for range 5 {
			<-time.After(provenFor / 6)
			if !ids.enterProven(alice, false) {
				t.Fatal("a fresh proof does not count")
			}
			if ids.enterProven(ids.user("alice", "b"), false) || ids.enterProven(ids.user("bob", "a"), false) {
				t.Fatal("it counts for others")
			}
		}
		<-time.After(provenFor / 6)
		if ids.enterProven(alice, false) {
			t.Error("use has renewed the proof")
		}
	})
}

// A name with its password proves nothing for the password alone, which the server refuses where it
// lets in who says a name with any; the other way round it does.
func TestFormsOfAuthAreProvenApart(t *testing.T) {
	ids := newIdentities()
	user := ids.user("default", "a")
	ids.enter(user, "a")
	if !ids.enterProven(user, false) || ids.enterProven(user, true) {
		t.Error("a proof with a name counts for one without")
	}
	ids.provenNameless(user)
	if !ids.enterProven(user, false) || !ids.enterProven(user, true) {
		t.Error("a proof without a name does not count")
	}
	ids.doubt(user)
	if ids.enterProven(user, false) || ids.enterProven(user, true) {
		t.Error("a refused password counts as proven")
	}
}

// A password goes with the last session that has proven it, and a refused dial takes the proof along.
// Two passwords of one name have nothing to do with one another.
func TestPasswordsGoWithTheLastSession(t *testing.T) {
	ids := newIdentities()
	before, after := ids.user("alice", "a"), ids.user("alice", "b")
	ids.enter(before, "a")
	if !ids.enterProven(before, false) {
		t.Fatal("a fresh proof does not count")
	}
	ids.enter(after, "b") // changed meanwhile
	ids.doubt(before)
	ids.doubt(ids.user("nobody", "a"))
	if ids.enterProven(before, false) {
		t.Error("a refused password counts as proven")
	}
	if !ids.enterProven(after, false) {
		t.Error("the refusal of one password has cost the other its proof")
	}
	for user, password := range map[upstream.User]string{before: "a", after: "b"} {
		for n := range 2 {
			if got, err := ids.passwordOf(user); err != nil || got != password {
				t.Fatalf("after %d of 2 sessions have ended: %q, %v, want what these have proven, %q", n, got, err, password)
			}
			ids.exit(user)
		}
		if _, err := ids.passwordOf(user); err == nil {
			t.Error("the password is kept for nobody")
		}
	}
}

// For itself the proxy takes the password of a name that was proven last, and not been refused since.
func TestNamedIsProvenLast(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ids := newIdentities()
		a, b := ids.user("default", "a"), ids.user("default", "b")
		want := func(user upstream.User) {
			t.Helper()
			if got := ids.named("default"); got != user {
				t.Errorf("got %q, want %q", got, user)
			}
		}
		want(upstream.User{})
		ids.enter(ids.user("else", "c"), "c")
		want(upstream.User{})
		ids.enter(a, "a")
		want(a)
		<-time.After(time.Millisecond)
		ids.enter(b, "b")
		want(b)
		ids.doubt(b)
		want(a)
		ids.exit(a)
		want(b)
		ids.exit(b)
		want(upstream.User{})
	})
}
