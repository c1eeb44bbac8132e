package streamlab

import "time"

// Side is one of the ways a worker is run.
type Side struct {
	Name  string
	proxy bool
	split bool
	scan  string // the command, once a stream, by which its first scan in the background is known
}

// Sides are the three that are compared.
var Sides = []Side{
	{Name: "direct"},
	{Name: "patched", split: true, scan: "xautoclaim"},
	{Name: "streamproxy", proxy: true, scan: "xinfo|groups"},
}

// Reference is a direct worker over one stream, beside the others of a row: what latency is when
// nothing stands in a message's way, on the same machine at the same time.
var Reference = Side{Name: "reference"}

// rig is a side that is set up: a stand, its publisher, its worker.
type rig struct {
	pair, side string
	streams    int
	scan       string
	stand      *stand
	worker     *worker
	publisher  *publisher
	warm       int // messages that are not counted
}

// openRig sets up one side over a number of streams. Close it also after an error.
func (l *Lab) openRig(pair string, side *Side, streams int, delay time.Duration) (*rig, error) {
	n := &rig{pair: pair, side: side.Name, streams: streams, scan: side.scan}
	proxies := 0
	if side.proxy {
		proxies = 1
	}
	var err error
	if n.stand, err = openStand(l.Binary, delay, proxies); err != nil {
		return n, err
	}
	if n.publisher, err = newPublisher(n.stand.link.Addr()); err != nil {
		return n, err
	}
	job := newJob(n.stand.urls[0], streams)
	job.Split = side.split
	n.worker, err = n.stand.start(l.Pythons[pair], &job)
	return n, err
}

func (n *rig) close() {
	if n.publisher != nil {
		n.publisher.close()
	}
	n.stand.close()
}

// closeAll closes rigs that were opened, some of which may be nil.
func closeAll(rigs []*rig) {
	for _, n := range rigs {
		if n != nil {
			n.close()
		}
	}
}
