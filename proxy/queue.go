package proxy

// pieceSize is the capacity up to which a queue's buffer grows before the next one
// is begun. Growing further would copy what is there, and leave garbage of its size:
// a client that is slow to take a giant reply would cost a multiple of it.
const pieceSize = 128 << 10

// queue is bytes waiting to be written, in pooled buffers.
type queue struct {
	pieces []*buffer
	size   int
	room   int // bytes of memory that the pieces take
}

// add appends a copy of b.
func (q *queue) add(b []byte) {
	q.size += len(b)
	for len(b) > 0 {
		last := q.last()
		if last == nil || len(last.b) >= pieceSize {
			last = takeBuffer()
			q.room += cap(last.b)
			q.pieces = append(q.pieces, last)
		}
		n := min(len(b), pieceSize-len(last.b))
		q.room -= cap(last.b)
		last.b = append(last.b, b[:n]...)
		q.room += cap(last.b)
		b = b[n:]
	}
}

func (q *queue) last() *buffer {
	if len(q.pieces) == 0 {
		return nil
	}
	return q.pieces[len(q.pieces)-1]
}

// cut takes back the last n bytes; there must be as many.
func (q *queue) cut(n int) {
	q.size -= n
	for n > 0 {
		last := q.last()
		if len(last.b) > n {
			last.b = last.b[:len(last.b)-n]
			return
		}
		n -= len(last.b)
		q.room -= cap(last.b)
		last.release()
		q.pieces = q.pieces[:len(q.pieces)-1]
	}
}

// take removes the first piece, less what of it belongs to the last held bytes of
// the queue; nil if nothing is left of it. The caller releases it.
func (q *queue) take(held int) *buffer {
	if q.size <= held {
		return nil
	}
	first := q.pieces[0]
	q.room -= cap(first.b)
	keep := max(0, held-(q.size-len(first.b)))
	if keep > 0 {
		rest := takeBuffer()
		rest.b = append(rest.b, first.b[len(first.b)-keep:]...)
		first.b = first.b[:len(first.b)-keep]
		q.pieces[0] = rest
		q.room += cap(rest.b)
	} else {
		copy(q.pieces, q.pieces[1:])
		q.pieces[len(q.pieces)-1] = nil
		q.pieces = q.pieces[:len(q.pieces)-1]
	}
	q.size -= len(first.b)
	return first
}

// drop gives everything back to the pool.
func (q *queue) drop() {
	for _, p := range q.pieces {
		p.release()
	}
	*q = queue{}
}
