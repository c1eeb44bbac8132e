package reclaim

// ahead is a claim under way for streams that its consumer has not asked about yet. What
// clients do meanwhile to an entry by its name may reach the server behind the claim, and
// be answered before what was claimed is held: it would be handed out although its client
// knows that it was acked. So such a stream is not held, but goes back.
type ahead struct {
	wishes  []wish
	spoiled []bool // by wish
}

// setOut notes a claim that is about to be sent. The lock is held.
func (e *Engine) setOut(wishes []wish) *ahead {
	a := &ahead{wishes: wishes, spoiled: make([]bool, len(wishes))}
	e.aheads[a] = struct{}{}
	e.claiming.Store(int64(len(e.aheads)))
	return a
}

// arrive ends that, when what it brought is held or on its way back.
func (e *Engine) arrive(a *ahead) {
	e.mu.Lock()
	defer e.mu.Unlock()
	delete(e.aheads, a)
	e.claiming.Store(int64(len(e.aheads)))
}

// spoil lets nothing be held of the streams under way that a command concerns. The lock is
// held.
func (e *Engine) spoil(concerned func(targetKey) bool) {
	for a := range e.aheads {
		for i, w := range a.wishes {
			if concerned(w.p.target.targetKey) {
				a.spoiled[i] = true
			}
		}
	}
}

// untouched reports whether nothing is held, and nothing on its way to be.
func (e *Engine) untouched() bool { return e.holding.Load() == 0 && e.claiming.Load() == 0 }
