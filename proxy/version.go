package proxy

import (
	"strconv"
	"strings"
)

// version is the beginning of a server's own, of which no more has mattered yet.
type version struct{ major, minor int }

// versionOf reads it; false if that is not known.
func versionOf(text string) (v version, known bool) {
	major, rest, _ := strings.Cut(text, ".")
	minor, _, _ := strings.Cut(rest, ".")
	var err1, err2 error
	v.major, err1 = strconv.Atoi(major)
	v.minor, err2 = strconv.Atoi(minor)
	return v, err1 == nil && err2 == nil
}

func (v version) before(major, minor int) bool {
	return v.major < major || v.major == major && v.minor < minor
}
