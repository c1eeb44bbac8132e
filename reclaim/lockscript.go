package reclaim

import "bytes"

// lockScript is one of the three scripts by which clients handle a lock that they
// hold. Every lock of an application shares them: the key must be looked at too.
type lockScript uint8

const (
	noScript lockScript = iota
	scriptRelease
	scriptExtend
	scriptReacquire
)

// lockSHAs names the scripts as clients do.
var lockSHAs = [...]string{
	scriptRelease:   "c3f8721cbb97f72bc19e972846bd7aaf91901658",
	scriptExtend:    "a4e8783852e6b949f9ef3a97212805108459a890",
	scriptReacquire: "1cac51482acf5858da00f6d685d68f886cd6b6b2",
}

// scriptOf recognizes a script by its SHA1, in any case, as the server does.
func scriptOf(sha []byte) lockScript {
	for s := scriptRelease; int(s) < len(lockSHAs); s++ {
		if len(sha) == len(lockSHAs[s]) && bytes.EqualFold(sha, []byte(lockSHAs[s])) {
			return s
		}
	}
	return noScript
}

// releaseBody is what clients load under the SHA1 of scriptRelease. A script's
// name is the hash of its bytes, so there is one spelling only, blanks included.
const releaseBody = `
        local token = redis.call('get', KEYS[1])
        if not token or token ~= ARGV[1] then
            return 0
        end
        redis.call('del', KEYS[1])
        return 1
    `
