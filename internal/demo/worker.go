package demo

import (
	"context"
	"crypto/rand"
	"fmt"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"streamproxy/internal/resp"
)

// What a worker asks for, as in the experiment of taskiq's issue 699.
const (
	workerStreams = 161
	workerBlock   = "5000"    // milliseconds
	workerCount   = "8"       // new entries a stream and read
	claimIdle     = "1800000" // milliseconds
	claimCount    = "5"       // abandoned entries a stream and pass
	lockTime      = "60000"   // milliseconds
)

// tripsPerStream is what asking for one stream's abandoned entries takes: is it
// locked, lock it, ask, unlock it.
const tripsPerStream = 4

// directPass is how long a worker does not read, at the demo's distance.
const directPass = workerStreams * tripsPerStream * RoundTrip

// unlockScript deletes a lock if it is the caller's.
const unlockScript = `if redis.call('GET', KEYS[1]) == ARGV[1] then return redis.call('DEL', KEYS[1]) end return 0`

// worker consumes streams as taskiq-redis does up to 1.2.2: before every read it goes
// through its streams, one by one, to see whether another worker has left something.
type worker struct {
	group   string
	streams []string
	ledger  *ledger
	reader  *talk
	acker   *talk
	unlock  string         // SHA1
	acks    chan [2]string // stream and id of what has been seen
}

// newWorker prepares a worker on two connections, and its streams.
func newWorker(reader, acker *talk, prefix string, l *ledger) (*worker, error) {
	w := &worker{group: prefix, ledger: l, reader: reader, acker: acker, acks: make(chan [2]string, 1024)}
	var create []byte
	for i := range workerStreams {
		w.streams = append(w.streams, fmt.Sprintf("%s:%d", prefix, i))
		create = resp.AppendCommand(create, "XGROUP", "CREATE", w.streams[i], w.group, "0", "MKSTREAM")
	}
	if _, err := reader.all(create, workerStreams); err != nil {
		return w, err
	}
	sha, err := reader.do("SCRIPT", "LOAD", unlockScript)
	w.unlock = string(sha.Text)
	return w, err
}

// remove deletes what newWorker and run have made.
func (w *worker) remove(t *talk) error {
	args := append([]string{"UNLINK"}, w.streams...)
	for _, s := range w.streams {
		args = append(args, w.lock(s))
	}
	_, err := t.do(args...)
	return err
}

func (w *worker) lock(stream string) string { return "autoclaim:" + w.group + ":" + stream }

// run works until ctx ends, and closes both connections.
func (w *worker) run(ctx context.Context) error {
	g, ctx := errgroup.WithContext(ctx)
	defer w.reader.within(ctx)()
	defer w.acker.within(ctx)()
	g.Go(func() error { return ended(ctx, w.work(ctx)) })
	g.Go(func() error { return ended(ctx, w.ack(ctx)) })
	return g.Wait()
}

func (w *worker) work(ctx context.Context) error {
	read := []string{"XREADGROUP", "GROUP", w.group, "w", "COUNT", workerCount, "BLOCK", workerBlock, "STREAMS"}
	read = append(read, w.streams...)
	for range w.streams {
		read = append(read, ">")
	}
	for ctx.Err() == nil {
		reply, err := w.reader.do(read...)
		if err != nil {
			return err
		}
		if err := w.take(ctx, reply); err != nil {
			return err
		}
		began := time.Now()
		if err := w.pass(ctx); err != nil {
			return err
		}
		w.ledger.passed(time.Since(began))
	}
	return nil
}

// take books every entry of a read and has it acked.
func (w *worker) take(ctx context.Context, reply resp.Value) error {
	for _, stream := range reply.Elems {
		if len(stream.Elems) != 2 {
			return fmt.Errorf("demo: a stream of %d parts", len(stream.Elems))
		}
		if err := w.entries(ctx, string(stream.Elems[0].Text), stream.Elems[1]); err != nil {
			return err
		}
	}
	return nil
}

// entries books a list of entries: an id and two fields each, see ledger.
func (w *worker) entries(ctx context.Context, stream string, list resp.Value) error {
	for _, e := range list.Elems {
		if len(e.Elems) != 2 || len(e.Elems[1].Elems) != 2 {
			return fmt.Errorf("demo: not an entry of ours in %s", stream)
		}
		number, err := strconv.Atoi(string(e.Elems[1].Elems[1].Text))
		if err != nil || !w.ledger.arrived(number) {
			return fmt.Errorf("demo: message %q was not sent, or came twice", e.Elems[1].Elems[1].Text)
		}
		select {
		case w.acks <- [2]string{stream, string(e.Elems[0].Text)}:
		case <-ctx.Done():
		}
	}
	return nil
}

// pass asks for what others have left, stream by stream.
func (w *worker) pass(ctx context.Context) error {
	for _, stream := range w.streams {
		key, token := w.lock(stream), rand.Text()
		held, err := w.reader.do("GET", key)
		if err != nil {
			return err
		}
		if !held.Null {
			continue // somebody else is at it
		}
		got, err := w.reader.do("SET", key, token, "NX", "PX", lockTime)
		if err != nil {
			return err
		}
		if got.Null {
			continue
		}
		left, err := w.reader.do("XAUTOCLAIM", stream, w.group, "w", claimIdle, "0-0", "COUNT", claimCount)
		if err != nil {
			return err
		}
		if len(left.Elems) < 2 {
			return fmt.Errorf("demo: XAUTOCLAIM answered in %d parts", len(left.Elems))
		}
		if err := w.entries(ctx, stream, left.Elems[1]); err != nil {
			return err
		}
		if _, err := w.reader.do("EVALSHA", w.unlock, "1", key, token); err != nil {
			return err
		}
	}
	return nil
}

// ack acknowledges what was seen, on a connection of its own as an application does.
func (w *worker) ack(ctx context.Context) error {
	for {
		select {
		case a := <-w.acks:
			if _, err := w.acker.do("XACK", a[0], w.group, a[1]); err != nil {
				return err
			}
		case <-ctx.Done():
			return nil
		}
	}
}
