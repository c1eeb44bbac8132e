package netlab

import (
	"net"
	"time"
)

// write delivers parcels when they are due until one of them ends the stream,
// or the pair ends.
func (p *pipe) write() {
	timer := time.NewTimer(time.Hour)
	defer timer.Stop()
	shut := false // nothing more reaches the receiver
	var batch []parcel
	for {
		due, ok := p.head()
		if !ok || !p.sleep(timer, due) || !p.link.faults.gates[p.dir].pass(p.pair.done) {
			return
		}
		batch = p.takeDue(batch[:0])
		if !shut {
			shut = !p.deliver(batch)
		}
		for i := range batch {
			freeChunk(batch[i].data)
			batch[i].data = nil
		}
		switch batch[len(batch)-1].end {
		case halfClosed:
			closeWrite(p.dst)
			shut = true
		case finished:
			closeWrite(p.dst)
			return
		case aborted:
			p.pair.end(true)
			return
		}
	}
}

// head waits for the next parcel and returns when it is due.
func (p *pipe) head() (time.Time, bool) {
	for {
		p.mu.Lock()
		if p.first < len(p.queue) {
			due := p.queue[p.first].due
			p.mu.Unlock()
			return due, true
		}
		p.mu.Unlock()
		select {
		case <-p.filled:
		case <-p.pair.done:
			return time.Time{}, false
		}
	}
}

// sleep waits until due; false means that the pair ended first.
func (p *pipe) sleep(timer *time.Timer, due time.Time) bool {
	d := time.Until(due)
	if d <= 0 {
		return true
	}
	timer.Reset(d)
	select {
	case <-timer.C:
		return true
	case <-p.pair.done:
		return false
	}
}

// takeDue removes the parcels that are due by now, at least one, up to and
// including the first that ends the stream.
func (p *pipe) takeDue(batch []parcel) []parcel {
	now := time.Now()
	p.mu.Lock()
	for _, c := range p.queue[p.first:] {
		if len(batch) > 0 && c.due.After(now) || len(batch) == maxBatch {
			break
		}
		batch = append(batch, c)
		p.queued -= len(c.data)
		if c.end != goesOn {
			break
		}
	}
	p.first += len(batch)
	if p.first > len(p.queue)/2 {
		n := copy(p.queue, p.queue[p.first:])
		clear(p.queue[n:])
		p.queue, p.first = p.queue[:n], 0
	}
	p.mu.Unlock()
	signal(p.taken)
	return batch
}

// deliver writes a batch; false means that the receiver takes no more. Then the
// opposite direction tells the sender, not we.
func (p *pipe) deliver(batch []parcel) bool {
	f := &p.link.faults
	if corrupt := f.corrupt[p.dir].Load(); corrupt != nil {
		for _, c := range batch {
			if len(c.data) > 0 {
				(*corrupt)(c.data)
			}
		}
	}
	if f.split.Load() > 0 || f.fuses[p.dir].armed.Load() {
		for _, c := range batch {
			if !p.deliverPieces(c.data) {
				return false
			}
		}
		return true
	}
	buffers := make(net.Buffers, 0, len(batch))
	size := 0
	for _, c := range batch {
		if len(c.data) > 0 {
			buffers = append(buffers, c.data)
			size += len(c.data)
		}
	}
	return p.counted(size, func() (int64, error) { return buffers.WriteTo(p.dst) })
}

// counted counts size bytes as delivered before they are, so that whoever has
// received them finds them counted, and takes back what write did not write.
func (p *pipe) counted(size int, write func() (int64, error)) bool {
	delivered := &p.link.delivered[p.dir]
	delivered.Add(int64(size))
	n, err := write()
	delivered.Add(n - int64(size))
	return err == nil
}

// deliverPieces writes data in pieces as SplitEvery and CutAfter ask.
func (p *pipe) deliverPieces(data []byte) bool {
	f := &p.link.faults
	for len(data) > 0 {
		n := len(data)
		if split := int(f.split.Load()); split > 0 {
			n = min(n, split)
		}
		n, blown := f.fuses[p.dir].burn(n)
		ok := p.counted(n, func() (int64, error) {
			written, err := p.dst.Write(data[:n])
			return int64(written), err
		})
		if blown {
			p.pair.cut()
		}
		if blown || !ok {
			return false
		}
		data = data[n:]
	}
	return true
}
