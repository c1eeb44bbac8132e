package reclaim

import (
	"hash/maphash"
	"maps"
	"slices"
	"sync/atomic"
)

// indexShards is how many pieces an index has: a change costs a copy of one, about thirty
// entries where as much is known as may be.
const indexShards = 1 << 12

var indexSeed = maphash.MakeSeed()

// index is a map that every command looks into and few change. Reading takes no lock and
// allocates nothing, so that a GET that has nothing to do with it costs one look-up. A
// change replaces one shard; who changes it holds the engine's lock. A shard is never
// changed once it is there, nor is a list. The zero value is empty.
type index[V comparable] struct {
	n      atomic.Int64 // keys
	shards [indexShards]atomic.Pointer[map[string][]V]
}

// empty reports whether there is no key at all.
func (x *index[V]) empty() bool { return x.n.Load() == 0 }

// of lists what stands under a key.
func (x *index[V]) of(key []byte) []V {
	if x.empty() {
		return nil
	}
	shard := x.shards[maphash.Bytes(indexSeed, key)%indexShards].Load()
	if shard == nil {
		return nil
	}
	return (*shard)[string(key)]
}

// has reports whether anything does.
func (x *index[V]) has(key []byte) bool { return len(x.of(key)) > 0 }

// add puts v under a key, where it may stand more than once.
func (x *index[V]) add(key string, v V) {
	x.change(key, func(list []V) []V { return append(slices.Clip(list), v) })
}

// remove takes v from under a key, once.
func (x *index[V]) remove(key string, v V) {
	x.change(key, func(list []V) []V {
		i := slices.Index(list, v)
		if i < 0 {
			return list
		}
		return slices.Concat(list[:i], list[i+1:])
	})
}

func (x *index[V]) change(key string, f func([]V) []V) {
	at := &x.shards[maphash.String(indexSeed, key)%indexShards]
	shard := make(map[string][]V)
	if old := at.Load(); old != nil {
		shard = maps.Clone(*old)
	}
	before := len(shard)
	if list := f(shard[key]); len(list) > 0 {
		shard[key] = list
	} else {
		delete(shard, key)
	}
	at.Store(&shard)
	x.n.Add(int64(len(shard) - before))
}
