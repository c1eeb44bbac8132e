//go:build streams

package streams

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"streamproxy/internal/redistest"
	"streamproxy/internal/resp"
)

// form is how a worker asks for entries that others have abandoned.
type form int

const (
	never   form = iota
	plain        // XAUTOCLAIM alone, before every read
	locked       // with a lock around it, after every read: taskiq-redis up to 1.2.2
	listing      // XPENDING, then XCLAIM of what it lists, now and then
	whole        // in a transaction with its lock, after reads that brought something: 1.2.3 and later
)

// worker reads a group's streams, asks for what is abandoned, and acks what it gets.
type worker struct {
	group, name string
	streams     []string
	form        form
	block       time.Duration // negative: no BLOCK
	count       int
	ledger      *ledger
	lock        string // its locks' names; taskiq-redis's if empty
	user        string // with its name for a password; nobody if empty

	c       *redistest.Client
	release string // the hash of the script that releases a lock
}

// releaseScript releases a lock. Its hash is the one of redis-py's, blanks included.
const releaseScript = `
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('del', KEYS[1])
        return 1
    `

// errLock is how a worker of the old form dies.
var errLock = errors.New("the lock is no longer owned")

// start runs the worker on a connection of its own until the test ends, or stop is called.
// An error that ends it earlier fails the test, unless it may be lost: then it connects again.
func (w worker) start(t testing.TB, addr string, mayBeLost bool) (stop func()) {
	t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	var done sync.WaitGroup
	done.Go(func() {
		for {
			err := w.live(ctx, addr)
			switch {
			case ctx.Err() != nil:
				return
			case !mayBeLost || errors.Is(err, errLock):
				t.Errorf("worker %s: %v", w.name, err)
				return
			}
			select {
			case <-ctx.Done():
			case <-time.After(20 * time.Millisecond):
			}
		}
	})
	stop = func() {
		cancel()
		done.Wait()
	}
	t.Cleanup(stop)
	return stop
}

// live is the worker's life on one connection.
func (w *worker) live(ctx context.Context, addr string) error {
	c, err := redistest.Dial(addr)
	if err != nil {
		return err
	}
	c.Timeout = 0
	w.c = c
	defer context.AfterFunc(ctx, func() { _ = c.Close() })()
	defer c.Close()
	if w.user != "" {
		if r, err := c.Do("AUTH", w.user, w.user); r != "+OK\r\n" {
			return fmt.Errorf("AUTH: %q, %w", r, err)
		}
	}
	sha, err := c.Do("SCRIPT", "LOAD", releaseScript)
	if err != nil || sha[0] != '$' {
		return fmt.Errorf("SCRIPT LOAD: %q, %w", sha, err)
	}
	w.release = strings.Fields(sha)[1]
	for {
		if err := w.turn(); err != nil {
			return err
		}
	}
}

// turn is one read and one pass over the streams.
func (w *worker) turn() error {
	if w.form == plain {
		if err := w.pass(); err != nil {
			return err
		}
	}
	raw, err := w.c.Do(readCommand(w.group, w.name, w.count, w.block, w.streams)...)
	if err != nil {
		return err
	}
	v, _, err := resp.Parse([]byte(raw))
	if err != nil || v.Kind == '-' {
		return fmt.Errorf("read: %q, %w", raw, err)
	}
	for _, s := range v.Elems {
		if err := w.take(text(s.Elems[0]), s.Elems[1]); err != nil {
			return err
		}
	}
	if w.form == locked || w.form == listing || w.form == whole && !v.Null {
		err = w.pass()
	}
	if v.Null && w.block < 0 { // a poll needs a pace
		<-time.After(5 * time.Millisecond)
	}
	return err
}

// pass asks for abandoned entries of every stream.
func (w *worker) pass() error {
	for i, s := range w.streams {
		ask := map[form]func(stream, lock, token string) (string, error){
			plain: w.plain, locked: w.locked, whole: w.whole, listing: w.listing,
		}[w.form]
		raw, err := ask(s, w.lockOf(s), w.name+"-"+strconv.Itoa(i))
		if err != nil {
			return err
		}
		if raw == "" {
			continue
		}
		v, _, err := resp.Parse([]byte(raw))
		if err != nil || len(v.Elems) < 2 {
			return fmt.Errorf("claim of %s: %q, %w", s, raw, err)
		}
		if err := w.take(s, v.Elems[1]); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) lockOf(stream string) string {
	if w.lock == "" {
		return "autoclaim:" + w.group + ":" + stream
	}
	return strings.NewReplacer("{group}", w.group, "{stream}", stream).Replace(w.lock)
}

func (w *worker) claimCommand(stream string) []string {
	return []string{"XAUTOCLAIM", stream, w.group, w.name, minIdleMillis, "0-0", "COUNT", strconv.Itoa(w.count)}
}

func (w *worker) plain(stream, _, _ string) (string, error) { return w.c.Do(w.claimCommand(stream)...) }

// listing asks what is idle, as some libraries do that claim by id. What it claims is shown as
// XAUTOCLAIM would show it.
func (w *worker) listing(stream, _, _ string) (string, error) {
	raw, err := w.c.Do("XPENDING", stream, w.group, "IDLE", minIdleMillis, "-", "+", strconv.Itoa(w.count))
	if err != nil {
		return "", err
	}
	list, _, err := resp.Parse([]byte(raw))
	if err != nil || list.Kind != '*' {
		return "", fmt.Errorf("XPENDING: %q, %w", raw, err)
	}
	args := []string{"XCLAIM", stream, w.group, w.name, minIdleMillis}
	for _, line := range list.Elems {
		args = append(args, text(line.Elems[0]))
	}
	if len(list.Elems) == 0 {
		return "", nil
	}
	raw, err = w.c.Do(args...)
	return "*2\r\n" + bulk("0-0") + raw, err
}

// locked leaves a stream alone whose lock somebody holds.
func (w *worker) locked(stream, lock, token string) (string, error) {
	held, err := w.c.Do("GET", lock)
	if err != nil || held != "$-1\r\n" {
		return "", err
	}
	for {
		got, err := w.c.Do("SET", lock, token, "NX", "PX", "60000")
		if err != nil {
			return "", err
		}
		if got == "+OK\r\n" {
			break
		}
		if got[0] == '-' {
			return "", fmt.Errorf("SET: %q", got)
		}
		<-time.After(100 * time.Millisecond) // as the library does
	}
	raw, err := w.plain(stream, "", "")
	if err != nil {
		return "", err
	}
	return raw, w.unlock(lock, token)
}

// unlock releases a lock; if the server does not know the script any more, it is told again.
func (w *worker) unlock(lock, token string) error {
	released, err := w.c.Do("EVALSHA", w.release, "1", lock, token)
	if strings.HasPrefix(released, "-NOSCRIPT") {
		released, err = w.c.Do("EVAL", releaseScript, "1", lock, token)
	}
	switch {
	case err != nil:
		return err
	case released == ":0\r\n":
		return errLock
	case released != ":1\r\n":
		return fmt.Errorf("release: %q", released)
	}
	return nil
}

// whole is answered by EXEC with the lock, the claim and the release.
func (w *worker) whole(stream, lock, token string) (string, error) {
	if _, err := w.c.Do("SCRIPT", "EXISTS", w.release); err != nil {
		return "", err
	}
	replies, err := pipeline(w.c, []string{"MULTI"}, []string{"SET", lock, token, "NX", "PX", "60000"},
		w.claimCommand(stream), []string{"EVALSHA", w.release, "1", lock, token}, []string{"EXEC"})
	if err != nil {
		return "", err
	}
	body, ok := strings.CutPrefix(replies[4], "*3\r\n+OK\r\n")
	if !ok || !strings.HasSuffix(body, ":1\r\n") {
		return "", fmt.Errorf("EXEC: %q", replies[4])
	}
	return body, nil
}

// take notes entries and acks them, in the same step as it looks at whose they are.
func (w *worker) take(stream string, list resp.Value) error {
	var commands [][]string
	for _, e := range list.Elems {
		id := text(e.Elems[0])
		commands = append(commands, []string{"XPENDING", stream, w.group, id, id, "1"}, []string{"XACK", stream, w.group, id})
	}
	if len(commands) == 0 {
		return nil
	}
	at := time.Now()
	replies, err := pipeline(w.c, commands...)
	for i, e := range list.Elems {
		a := arrival{worker: w.name, at: at}
		if err == nil {
			v, _, _ := resp.Parse([]byte(replies[2*i]))
			if len(v.Elems) == 1 {
				a.owner = text(v.Elems[0].Elems[1])
				a.count, _ = strconv.Atoi(text(v.Elems[0].Elems[3]))
			}
			a.acked = replies[2*i+1] == ":1\r\n"
		}
		w.ledger.note(entryKey(stream, text(e.Elems[0])), a)
	}
	return err
}

// readCommand reads what is new in all the streams. A count of 0 and a negative block are left out.
func readCommand(group, consumer string, count int, block time.Duration, streams []string) []string {
	args := []string{"XREADGROUP", "GROUP", group, consumer}
	if count > 0 {
		args = append(args, "COUNT", strconv.Itoa(count))
	}
	if block >= 0 {
		args = append(args, "BLOCK", strconv.FormatInt(block.Milliseconds(), 10))
	}
	args = append(append(args, "STREAMS"), streams...)
	for range streams {
		args = append(args, ">")
	}
	return args
}
