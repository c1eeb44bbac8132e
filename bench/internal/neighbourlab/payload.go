package neighbourlab

import (
	"bytes"
	"strconv"
	"strings"
	"sync"

	"streamproxy/internal/resp"
)

// Payload is what a connection sends: connection numbers those of its role, turn counts what the
// whole role has sent, so that names can be made that nobody has used before.
type Payload func(connection, turn int) []byte

// same is a payload that is alike for everybody. It is built when it is first sent: some are
// megabytes, and most attacks of a list are not run.
func same(build func() []byte) Payload {
	built := sync.OnceValue(build)
	return func(int, int) []byte { return built() }
}

// lines is a pipeline of commands without blanks in their arguments, one a line.
func lines(texts ...string) Payload {
	return same(func() []byte { return encode(texts...) })
}

// many is such a pipeline, n times over.
func many(n int, texts ...string) Payload {
	return same(func() []byte { return bytes.Repeat(encode(texts...), n) })
}

// after is a pipeline behind another.
func after(first, second Payload) Payload {
	return func(connection, turn int) []byte {
		return append(bytes.Clone(first(connection, turn)), second(connection, turn)...)
	}
}

// encode is a pipeline of commands, one a line.
func encode(texts ...string) []byte {
	var b []byte
	for _, text := range texts {
		b = resp.AppendCommand(b, strings.Fields(text)...)
	}
	return b
}

// set writes a value of n bytes.
func set(key string, n int) []byte {
	return resp.AppendCommand(nil, "SET", key, strings.Repeat("x", n))
}

// wide is a command with n arguments.
func wide(name string, n int, argument func(i int) string) []byte {
	args := make([]string, 1, n+1)
	args[0] = name
	for i := range n {
		args = append(args, argument(i))
	}
	return resp.AppendCommand(nil, args...)
}

// numbered is a name with a number behind it.
func numbered(name string, n int) string { return name + strconv.Itoa(n) }
