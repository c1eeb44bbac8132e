package reclaim

import "streamproxy/internal/resp"

// kind is what a command means to reclaim.
type kind uint8

const (
	kindNone kind = iota
	kindGet
	kindSet
	kindEvalSHA
	kindScript
	kindAdd    // XADD, which may delete older entries
	kindClaim  // XAUTOCLAIM
	kindRead   // XREADGROUP
	kindSettle // XACK, XDEL and their kin: what they name is not to be handed out any more
	kindMove   // XCLAIM, XNACK: somebody moves entries by name
	kindGroup  // XGROUP
	kindDrop   // DEL, FLUSHALL and others that end streams, or take them elsewhere
	kindList   // XPENDING, XTRIM and others that find what is pending
)

// Interesting reports whether a command can mean anything to a Session of e, before there
// is one. It takes no lock and allocates nothing: of most commands it looks at the length
// of the name, and of GET and SET whether the key may be that of a lock.
func (e *Engine) Interesting(cmd resp.Command) bool {
	switch kindOf(cmd.Arg(0)) {
	case kindNone:
		return false
	case kindGet, kindSet:
		return e.mayLock(cmd.Arg(1))
	case kindAdd:
		return Trims(cmd)
	default:
		return true
	}
}

// Moves reports whether a command of this name can mean anything to a Session as part
// of a transaction, and is no GET or SET, which most transactions consist of.
func Moves(name []byte) bool { return kindOf(name) > kindSet }

// Hides reports whether a command does something that cannot be told from its arguments.
// The scripts of a lock are known, and touch nothing but a string.
func Hides(cmd resp.Command) bool {
	name := cmd.Arg(0)
	switch len(name) {
	case 4:
		return fold(name, "eval")
	case 5:
		return fold(name, "fcall")
	case 7:
		return fold(name, "evalsha") && scriptOf(cmd.Arg(1)) == noScript
	}
	return false
}

// Meddles reports whether a command that no Session is shown may do something to what is
// held: act on pending entries, or look at them, or hide what it does. A command that is
// not there as a whole is judged by what there is.
func Meddles(cmd resp.Command) bool {
	switch k := kindOf(cmd.Arg(0)); {
	case k == kindRead:
		call, ok := parseGroupRead(cmd)
		return !ok || len(call.freshStreams()) != len(call.streams)
	case k == kindAdd:
		return Trims(cmd)
	case k >= kindClaim:
		return true
	}
	return Hides(cmd)
}

func kindOf(name []byte) kind {
	switch len(name) {
	case 3:
		switch {
		case fold(name, "get"):
			return kindGet
		case fold(name, "set"):
			return kindSet
		case fold(name, "del"):
			return kindDrop
		}
	case 4:
		switch {
		case fold(name, "xack"), fold(name, "xdel"):
			return kindSettle
		case fold(name, "xadd"):
			return kindAdd
		case fold(name, "move"), fold(name, "copy"):
			return kindDrop
		case fold(name, "dump"):
			return kindList
		}
	case 5:
		switch {
		case fold(name, "xnack"):
			return kindMove
		case fold(name, "xtrim"), fold(name, "xinfo"):
			return kindList
		}
	case 6:
		return kindOfSix(name)
	case 7:
		switch {
		case fold(name, "evalsha"):
			return kindEvalSHA
		case fold(name, "xackdel"):
			return kindSettle
		case fold(name, "flushdb"), fold(name, "migrate"):
			return kindDrop
		}
	case 8:
		switch {
		case fold(name, "flushall"), fold(name, "renamenx"):
			return kindDrop
		case fold(name, "xpending"):
			return kindList
		}
	case 10:
		switch {
		case fold(name, "xautoclaim"):
			return kindClaim
		case fold(name, "xreadgroup"):
			return kindRead
		}
	}
	return kindNone
}

func kindOfSix(name []byte) kind {
	switch {
	case fold(name, "xclaim"):
		return kindMove
	case fold(name, "xdelex"):
		return kindSettle
	case fold(name, "script"):
		return kindScript
	case fold(name, "xgroup"):
		return kindGroup
	case fold(name, "unlink"), fold(name, "rename"), fold(name, "swapdb"):
		return kindDrop
	}
	return kindNone
}
