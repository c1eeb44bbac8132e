package proxy

import (
	"testing"
	"time"

	"streamproxy/internal/redistest"
)

// asked is a server that lets users in whose password is "right" and leaves the question
// about a user "slow" open until it is told to answer.
type asked struct {
	*fakeServer
	open map[*fakeConn]bool
}

func startAsked(t *testing.T) *asked {
	a := &asked{startFake(t), map[*fakeConn]bool{}}
	a.script(func(c *fakeConn, args []string) (string, bool) {
		switch {
		case args[0] != "AUTH":
			return "", false
		case a.open[c]:
			t.Error("a question on a connection on which one is under way")
		case args[1] == "slow":
			a.open[c] = true
			return "", true
		case args[2] == "right":
			return "+OK\r\n", true
		}
		return "-WRONGPASS\r\n", true
	})
	return a
}

// answer ends the questions that are open.
func (a *asked) answer() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.open {
		delete(a.open, c)
		c.Write([]byte("-WRONGPASS\r\n"))
	}
}

// answerOne ends one of them.
func (a *asked) answerOne() {
	a.mu.Lock()
	defer a.mu.Unlock()
	for c := range a.open {
		delete(a.open, c)
		c.Write([]byte("-WRONGPASS\r\n"))
		return
	}
}

// Questions do not wait for the answers to others', up to a number of them.
func TestProversAskBesideOneAnother(t *testing.T) {
	a := startAsked(t)
	p := startProxy(t, a.fakeServer, nil)
	var slow []*redistest.Client
	ask := func() {
		c := p.client()
		c.SendCommand("AUTH", "slow", "x")
		slow = append(slow, c)
	}
	for range maxProvers - 1 {
		ask()
	}
	a.await(t, "AUTH slow", maxProvers-1)
	expect(t, p.client(), "+OK\r\n", "AUTH", "alice", "right")
	for range 10 {
		ask()
	}
	a.await(t, "AUTH slow", maxProvers)
	gone := p.client()
	gone.SendCommand("AUTH", "gone", "x")
	until(t, "the last to wait", func() bool { return p.waitingForTurns() == 10 })
	gone.Close()
	until(t, "its end to be known", func() bool {
		for _, s := range p.sessions.all() {
			if s.left.Load() {
				return true
			}
		}
		return false
	})
	if n := a.count("AUTH slow"); n != maxProvers {
		t.Errorf("%d questions at a time", n)
	}
	for answered := false; !answered; answered = a.count("AUTH slow") == len(slow) {
		a.answer()
	}
	a.answer()
	for _, c := range slow {
		expectReply(t, c, "-WRONGPASS\r\n")
	}
	if a.count("AUTH gone") != 0 {
		t.Error("asked for a client that was not there any more")
	}
	until(t, "the provers to be closed", func() bool { return a.kinds("control") <= keptProvers+2 })
}

// waitingForTurns counts the sessions whose questions are not asked yet.
func (p *testProxy) waitingForTurns() (n int) {
	q := &p.identities.provers.turns
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, list := range q.waiting {
		n += len(list)
	}
	return n
}

// An application's own credentials go before guesses, though the proof is too old to do.
func TestRankOf(t *testing.T) {
	s := failing(&Proxy{identities: newIdentities()})
	ids := s.p.identities
	right, wrong := ids.user("alice", "right"), ids.user("alice", "wrong")
	if r := s.rankOf(right); r != rankFirst {
		t.Errorf("rank %d of what nobody knows", r)
	}
	ids.enter(right, "right")
	ids.users[right].proven = time.Now().Add(-2 * provenFor)
	if r := s.rankOf(right); r != rankKnown {
		t.Errorf("rank %d of what was right", r)
	}
	s.refuseCredentials(replyOK)
	if r := s.rankOf(wrong); r != rankRepeated {
		t.Errorf("rank %d of a guess", r)
	}
	ids.doubt(right)
	if r := s.rankOf(right); r != rankRepeated {
		t.Errorf("rank %d of what has been refused since", r)
	}
	ids.exit(right)
	if r := s.rankOf(right); r != rankRepeated {
		t.Errorf("rank %d of what is forgotten", r)
	}
}

// A question whose prover is lost, as when the connections of a user it has asked for are ended, is
// asked once more. Who asked is told nothing that is not so.
func TestProverLost(t *testing.T) {
	a := startAsked(t)
	p := startProxy(t, a.fakeServer, nil)
	lose := func() {
		a.mu.Lock()
		defer a.mu.Unlock()
		for lost := range a.open {
			delete(a.open, lost)
			lost.Close()
		}
	}
	c, unlucky := p.client(), p.client()
	c.SendCommand("AUTH", "slow", "x")
	a.await(t, "AUTH slow", 1)
	lose()
	a.await(t, "AUTH slow", 2)
	a.answer()
	expectReply(t, c, "-WRONGPASS\r\n")
	unlucky.SendCommand("AUTH", "slow", "x")
	a.await(t, "AUTH slow", 3)
	lose()
	a.await(t, "AUTH slow", 4)
	lose()
	expectEnd(t, unlucky)
	expect(t, p.client(), "+OK\r\n", "AUTH", "alice", "right")
	if n := a.count("AUTH slow"); n != 4 {
		t.Errorf("asked %d times, want 4", n)
	}
}
