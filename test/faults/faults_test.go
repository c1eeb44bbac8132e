//go:build faults

package faults

import (
	"math/rand/v2"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"streamproxy/internal/netlab"
)

const (
	diskFull     = "disk full, writes denied"
	diskFullExit = "disk full, server exits"
)

// faults is everything that a run may do. Durations reach beyond --upstream-timeout (2s here) where
// the watchdog has something to say.
var faults = []fault{
	{name: "reset", inject: func(l *lab, r *rand.Rand) { l.link.Reset() }},
	{name: "cut", inject: func(l *lab, r *rand.Rand) { l.link.Cut() }},
	{name: "cut within a reply", inject: func(l *lab, r *rand.Rand) { l.cutAfter(r, netlab.ToClient) }},
	{name: "cut within a command", inject: func(l *lab, r *rand.Rand) { l.cutAfter(r, netlab.ToUpstream) }},
	{name: "stall of replies", inject: func(l *lab, r *rand.Rand) { l.stall(r, netlab.ToClient) }},
	{name: "stall of commands", inject: func(l *lab, r *rand.Rand) { l.stall(r, netlab.ToUpstream) }},
	{name: "delay", inject: delay},
	{name: "split", inject: split},
	{name: "half-close by the server", inject: func(l *lab, r *rand.Rand) { l.link.HalfClose(netlab.ToClient) }},
	{name: "half-close by the proxy", inject: func(l *lab, r *rand.Rand) { l.link.HalfClose(netlab.ToUpstream); l.pauseThen(r, l.link.Reset) }},
	{name: "replies vanish", inject: func(l *lab, r *rand.Rand) { l.vanish(r, netlab.ToClient) }},
	{name: "commands vanish", inject: func(l *lab, r *rand.Rand) { l.vanish(r, netlab.ToUpstream) }},
	{name: "replies corrupted", inject: corrupt},
	{name: "connects refused", inject: refuse},
	{name: "clients' link reset", inject: func(l *lab, r *rand.Rand) { l.front.Reset() }},
	{name: "clients' link cut within a command", inject: func(l *lab, r *rand.Rand) {
		l.front.CutAfter(netlab.ToUpstream, r.Int64N(20_000))
	}},
	{name: "clients' link cut within a reply", inject: func(l *lab, r *rand.Rand) {
		l.front.CutAfter(netlab.ToClient, r.Int64N(20_000))
	}},
	{name: "clients' link split", inject: func(l *lab, r *rand.Rand) {
		l.front.SplitEvery(1 + r.IntN(8))
		l.hold(r, 50*time.Millisecond, 500*time.Millisecond)
		l.front.SplitEvery(0)
	}},
	{name: "server stopped", inject: func(l *lab, r *rand.Rand) {
		l.server.Stop()
		l.hold(r, 20*time.Millisecond, 3*time.Second)
		l.server.Cont()
	}},
	{name: "proxy stopped", inject: func(l *lab, r *rand.Rand) {
		_ = l.proxy.cmd.Process.Signal(syscall.SIGSTOP)
		l.hold(r, 20*time.Millisecond, 2*time.Second)
		_ = l.proxy.cmd.Process.Signal(syscall.SIGCONT)
	}},
	{name: "proxy killed", restarts: true, inject: func(l *lab, r *rand.Rand) {
		defer l.excuse()()
		l.proxy.kill()
		l.restartProxy(r)
	}},
	{name: "proxy drained", restarts: true, inject: func(l *lab, r *rand.Rand) {
		defer l.excuse()()
		if code := l.proxy.terminate(); code != 0 && code != 3 {
			l.tally.violate("P8", "the proxy ended with exit code %d\n%s", code, l.proxy.log.String())
		}
		l.restartProxy(r)
	}},
	{name: "server killed, AOF", durable: true, inject: func(l *lab, r *rand.Rand) { l.killServer(r) }},
	{name: "server killed, data lost", volatile: true, inject: func(l *lab, r *rand.Rand) { l.killServer(r) }},
	{name: diskFullExit, durable: true, inject: fillDiskToTheEnd},
	{name: diskFull, durable: true, inject: fillDisk},
	{name: "out of memory", inject: outOfMemory},
	{name: "slow script", inject: func(l *lab, r *rand.Rand) {
		ms := between(r, 20*time.Millisecond, 1500*time.Millisecond).Milliseconds()
		l.server.Do("EVAL", `local function now() local t = redis.call('TIME') return t[1] * 1000 + t[2] / 1000 end
			local till = now() + ARGV[1]
			while now() < till do end`, "0", strconv.FormatInt(ms, 10))
	}},
	{name: "CLIENT KILL of all", inject: func(l *lab, r *rand.Rand) { l.server.Do("CLIENT", "KILL", "TYPE", "normal") }},
	{name: "CLIENT KILL of subscribers", inject: func(l *lab, r *rand.Rand) { l.server.Do("CLIENT", "KILL", "TYPE", "pubsub") }},
	{name: "CLIENT KILL of one", inject: killOne},
	{name: "CLIENT PAUSE of all", inject: func(l *lab, r *rand.Rand) { l.pauseServer(r, "ALL") }},
	{name: "CLIENT PAUSE of writes", inject: func(l *lab, r *rand.Rand) { l.pauseServer(r, "WRITE") }},
	{name: "server's maxclients", inject: maxClients},
	{name: "scripts flushed", inject: func(l *lab, r *rand.Rand) { l.server.Do("SCRIPT", "FLUSH") }},
	{name: "descriptors run out", inject: descriptors},
	{name: "packets lost", apart: true, inject: func(l *lab, r *rand.Rand) {
		l.space.lose(0.01 + 0.4*r.Float64())
		l.hold(r, 100*time.Millisecond, 3*time.Second)
		l.space.lose(0)
	}},
	{name: "every packet lost", apart: true, inject: func(l *lab, r *rand.Rand) {
		l.space.lose(1)
		l.hold(r, 10*time.Millisecond, 3*time.Second)
		l.space.lose(0)
	}},
	{name: "names not resolved", apart: true, inject: func(l *lab, r *rand.Rand) {
		l.space.mood.Store(fails + r.Int32N(numMoods-fails))
		l.link.Reset() // so that it has to ask
		l.hold(r, 10*time.Millisecond, 3*time.Second)
		l.space.mood.Store(answers)
	}},
}

// restartProxy starts the proxy again after a while.
func (l *lab) restartProxy(r *rand.Rand) {
	l.hold(r, time.Millisecond, 500*time.Millisecond)
	l.proxy.launch(l.t)
	l.proxy.awaitReady(l.t)
}

// hold lets a fault last.
func (l *lab) hold(r *rand.Rand, low, high time.Duration) { <-time.After(between(r, low, high)) }

// pauseThen lets a fault last for a moment and ends it.
func (l *lab) pauseThen(r *rand.Rand, end func()) {
	l.hold(r, 10*time.Millisecond, 500*time.Millisecond)
	end()
}

// cutAfter closes the connection that carries a byte which is still to come.
func (l *lab) cutAfter(r *rand.Rand, d netlab.Dir) {
	l.link.CutAfter(d, r.Int64N(1<<(6+r.IntN(12))))
	l.hold(r, 10*time.Millisecond, 100*time.Millisecond)
	l.link.CutAfter(d, -1)
}

func (l *lab) stall(r *rand.Rand, d netlab.Dir) {
	l.link.Stall(d)
	l.hold(r, 10*time.Millisecond, 3*time.Second)
	if r.IntN(2) == 0 {
		l.link.Reset()
	}
	l.link.Resume(d)
}

func delay(l *lab, r *rand.Rand) {
	l.link.SetDelay(between(r, 100*time.Microsecond, 40*time.Millisecond))
	l.hold(r, 100*time.Millisecond, time.Second)
	if r.IntN(2) == 0 {
		l.link.Cut() // with what is under way
	}
	l.link.SetDelay(0)
}

func split(l *lab, r *rand.Rand) {
	l.link.SplitEvery(1 + r.IntN(1<<r.IntN(7)))
	l.hold(r, 50*time.Millisecond, 500*time.Millisecond)
	l.link.SplitEvery(0)
}

// vanish drops what is sent, until the connections that have a hole in them are gone too: TCP
// never delivers a stream without its middle.
func (l *lab) vanish(r *rand.Rand, d netlab.Dir) {
	l.link.Drop(d, true)
	l.hold(r, 10*time.Millisecond, 3*time.Second)
	l.link.Reset()
	l.link.Drop(d, false)
}

// corrupt damages replies from some byte on, until the connections are gone: what is damaged must
// be recognisable, or nothing could notice.
func corrupt(l *lab, r *rand.Rand) {
	at := r.IntN(1000)
	l.link.Corrupt(netlab.ToClient, func(chunk []byte) {
		for i := min(at, len(chunk)/2); i < len(chunk); i++ {
			chunk[i] = garbage
		}
	})
	l.hold(r, time.Millisecond, 100*time.Millisecond)
	l.link.Reset()
	l.link.Corrupt(netlab.ToClient, nil)
}

func refuse(l *lab, r *rand.Rand) {
	if err := l.link.Refuse(); err != nil {
		l.t.Error(err)
	}
	l.link.Reset()
	l.hold(r, 10*time.Millisecond, 2*time.Second)
	if err := l.link.Admit(); err != nil {
		l.t.Error(err)
	}
}

// killServer kills the server and starts it again after a while.
func (l *lab) killServer(r *rand.Rand) {
	l.server.Kill()
	if !l.durable {
		l.losses.Add(1) // before anything can be written anew
	}
	l.hold(r, time.Millisecond, 2*time.Second)
	l.server.Restart()
	l.rewrite()
}

// rewrite lets the server write its file anew, so that it does not go on with one whose end it has
// repaired: after several full disks such a file was found unreadable in its middle.
func (l *lab) rewrite() {
	if !l.durable {
		return
	}
	idle := func() bool {
		return l.server.Info("persistence", "aof_rewrite_in_progress") == "0" &&
			l.server.Info("persistence", "aof_rewrite_scheduled") == "0"
	}
	poll(l.t, "no rewrite is under way", idle)
	l.server.Do("BGREWRITEAOF")
	poll(l.t, "the rewrite is over", idle)
}

// smallDisk mounts a file system of bounded size, where that is allowed; else the server gets an
// ordinary folder, which is not filled.
func smallDisk(t testing.TB) (path string, small bool) {
	t.Helper()
	path, err := os.MkdirTemp("", "disk")
	if err != nil {
		t.Fatal(err)
	}
	small = unix.Mount("tmpfs", path, "tmpfs", 0, "size="+strconv.Itoa(diskSize)) == nil
	t.Cleanup(func() {
		if small {
			_ = unix.Unmount(path, unix.MNT_DETACH)
		}
		_ = os.RemoveAll(path)
	})
	return path, small
}

// diskSize is enough for what a run writes, with the server rewriting its file.
const diskSize = 1 << 30

// ballast fills the disk; the returned func makes room again.
func (l *lab) ballast() func() {
	path := filepath.Join(l.disk, "ballast")
	f, err := os.Create(path)
	if err != nil {
		l.t.Fatal(err)
	}
	defer f.Close()
	filled := int64(0)
	for size := int64(diskSize); size >= 4096; size /= 2 {
		for unix.Fallocate(int(f.Fd()), 0, filled, size) == nil {
			filled += size
		}
	}
	return func() { _ = os.Remove(path) }
}

// fillDisk lets the server find its disk full while it may answer before it has written.
func fillDisk(l *lab, r *rand.Rand) {
	l.server.Do("CONFIG", "SET", "appendfsync", "everysec")
	free := l.ballast()
	l.hold(r, 100*time.Millisecond, 2*time.Second)
	free()
	// It tries again once a second; what it owes its disk must be there before it can be killed.
	poll(l.t, "the server writes again", func() bool {
		return l.server.Info("persistence", "aof_last_write_status") == "ok" && l.server.Info("persistence", "aof_buffer_length") == "0"
	})
	l.server.Do("CONFIG", "SET", "appendfsync", "always")
	l.rewrite()
}

// fillDiskToTheEnd lets the server find its disk full when it has to write before it answers: it
// ends itself.
func fillDiskToTheEnd(l *lab, r *rand.Rand) {
	free := l.ballast()
	l.hold(r, 100*time.Millisecond, time.Second)
	free()
	l.killServer(r)
}

func outOfMemory(l *lab, r *rand.Rand) {
	l.server.Do("CONFIG", "SET", "maxmemory", "1")
	l.hold(r, 10*time.Millisecond, time.Second)
	l.server.Do("CONFIG", "SET", "maxmemory", "0")
}

func killOne(l *lab, r *rand.Rand) {
	lines := strings.Split(l.server.Do("CLIENT", "LIST"), "\n")
	for range 20 {
		_, id, _ := strings.Cut(lines[r.IntN(len(lines))], "id=")
		if id, _, ok := strings.Cut(id, " "); ok {
			l.server.Do("CLIENT", "KILL", "ID", id)
			return
		}
	}
}

func (l *lab) pauseServer(r *rand.Rand, what string) {
	d := between(r, 20*time.Millisecond, 1500*time.Millisecond)
	l.server.Do("CLIENT", "PAUSE", strconv.FormatInt(d.Milliseconds(), 10), what)
	<-time.After(d)
}

// maxClients lets the server refuse every new connection but the lab's own, of which it has one.
func maxClients(l *lab, r *rand.Rand) {
	c := l.server.Client()
	defer c.Close()
	for _, args := range [][]string{{"CONFIG", "SET", "maxclients", "1"}, {"CLIENT", "KILL", "TYPE", "normal", "SKIPME", "yes"}} {
		if reply, err := c.Do(args...); err != nil || reply[0] == '-' {
			l.t.Fatalf("%q: %q, %v", args, reply, err)
		}
	}
	l.hold(r, 10*time.Millisecond, 1500*time.Millisecond)
	if reply, err := c.Do("CONFIG", "SET", "maxclients", "10000"); err != nil || reply != "+OK\r\n" {
		l.t.Fatalf("maxclients: %q, %v", reply, err)
	}
}

// descriptors lets the proxy's next few opens fail, and all behind them.
func descriptors(l *lab, r *rand.Rand) {
	n, err := l.proxy.descriptors()
	if err != nil {
		l.t.Error(err)
		return
	}
	pid := l.proxy.cmd.Process.Pid
	var old unix.Rlimit
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &old); err != nil {
		l.t.Fatal(err)
	}
	defer l.excuse()()
	limit := unix.Rlimit{Cur: uint64(max(n-r.IntN(10), 10)), Max: old.Max}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &limit, nil); err != nil {
		l.t.Fatal(err)
	}
	l.link.Reset() // so that it has to dial
	l.hold(r, 50*time.Millisecond, time.Second)
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &old, nil); err != nil {
		l.t.Fatal(err)
	}
}
