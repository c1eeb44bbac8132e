package upstream

import (
	"errors"
	"fmt"
	"math"
	"net"
	"net/url"
	"strconv"
	"strings"

	"streamproxy/internal/certs"
)

const (
	defaultPort = 6379
	maxPort     = math.MaxUint16
	maxDB       = math.MaxInt32 // Redis reads SELECT's argument as a C int
)

// ErrNotYetSupported marks a URL that is understood but cannot be served by
// this version: Sentinel and Cluster.
var ErrNotYetSupported = errors.New("not yet supported")

// errUserinfo stands in for any message that could quote a piece of a password.
var errUserinfo = errors.New("user and password must be percent-encoded, and end with @ before the host")

// Target is a server and the identity with which to greet it. The zero value
// names nothing; use Parse.
type Target struct {
	// Network is "tcp" or "unix"; Addr is host:port or the socket's path. A host
	// name stays a name: it is resolved at each dial.
	Network, Addr string
	// User is the ACL user, empty for the default user.
	User string
	// Password is asked at each handshake, so that a rotated secret takes effect
	// with the next connection. Nil means there is none.
	Password func() (string, error)
	// DB is the database clients start in, 0 to 2147483647.
	DB int
	// TLS, when not nil, encrypts: it is asked at each handshake, so that a renewed
	// certificate takes effect with the next connection.
	TLS *certs.Source
}

// Parse reads redis://[user[:password]@]host[:port][/db], the same with rediss:// for
// TLS, or unix://[user[:password]@]/path[?db=n]. With rediss the server must show a
// certificate for its host that the system's authorities vouch for; set Target.TLS
// for anything else. User and password are percent-decoded,
// an IPv6 host stands in brackets, the port defaults to 6379. Schemes of a later
// version give an error that wraps ErrNotYetSupported. No error quotes a
// password, however malformed the URL.
func Parse(raw string) (Target, error) {
	scheme, _, ok := strings.Cut(raw, "://")
	if !ok {
		return Target{}, errors.New("upstream URL: no scheme, want redis://host:port, rediss://host:port or unix:///path")
	}
	switch strings.ToLower(scheme) {
	case "redis", "rediss", "unix":
	case "redis-sentinel", "redis-cluster":
		return Target{}, fmt.Errorf("upstream URL: scheme %q: %w", scheme, ErrNotYetSupported)
	default:
		return Target{}, fmt.Errorf("upstream URL: scheme %q, want redis, rediss or unix", scheme)
	}
	u, err := parseURL(raw)
	if err != nil {
		return Target{}, fmt.Errorf("upstream URL: %w", err)
	}
	var t Target
	if u.Scheme == "unix" {
		t, err = parseUnix(u)
	} else {
		t, err = parseTCP(u)
	}
	if err != nil {
		return Target{}, fmt.Errorf("upstream URL: %w", err)
	}
	if u.Scheme == "rediss" {
		t.TLS = certs.ForClient(certs.Client{})
	}
	t.setUserinfo(u.User)
	return t, nil
}

// parseURL is url.Parse with errors that are safe to print. net/url quotes what
// it could not read, which may be a part of the password; behind the last @
// there is none.
func parseURL(raw string) (*url.URL, error) {
	u, err := url.Parse(raw)
	if err == nil {
		if n := strings.Count(raw, "@"); u.Scheme != "unix" && (n > 1 || n == 1 && u.User == nil) {
			return nil, errUserinfo
		}
		if u.Fragment != "" {
			return nil, errors.New("a fragment (#...) has no meaning here")
		}
		return u, nil
	}
	if at := strings.LastIndexByte(raw, '@'); at >= 0 {
		scheme, _, _ := strings.Cut(raw, "://")
		if _, err = url.Parse(scheme + "://" + raw[at+1:]); err == nil {
			return nil, errUserinfo
		}
	}
	var ue *url.Error
	if errors.As(err, &ue) {
		err = ue.Err
	}
	if strings.HasPrefix(err.Error(), "invalid port") { // it may be a password without its @
		err = errors.New("the port is no number")
	}
	return nil, err
}

func parseTCP(u *url.URL) (Target, error) {
	if u.Hostname() == "" {
		return Target{}, errors.New("no host")
	}
	if strings.ContainsRune(u.Host, ',') {
		return Target{}, fmt.Errorf("a list of servers: %w, want one host", ErrNotYetSupported)
	}
	if u.RawQuery != "" {
		return Target{}, errors.New("a query (?...) has no meaning here")
	}
	port := defaultPort
	if s := u.Port(); s != "" {
		var err error
		if port, err = parseBounded("port", s, 1, maxPort); err != nil {
			return Target{}, err
		}
	}
	t := Target{Network: "tcp", Addr: net.JoinHostPort(u.Hostname(), strconv.Itoa(port))}
	if s := strings.TrimPrefix(u.Path, "/"); s != "" {
		var err error
		if t.DB, err = parseBounded("database", s, 0, maxDB); err != nil {
			return Target{}, err
		}
	}
	return t, nil
}

func parseUnix(u *url.URL) (Target, error) {
	if u.Host != "" {
		return Target{}, errors.New("unix: a socket path begins with a third slash, unix:///path")
	}
	if u.Path == "" || u.Path == "/" {
		return Target{}, errors.New("unix: no socket path")
	}
	query, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return Target{}, errQuery
	}
	t := Target{Network: "unix", Addr: u.Path}
	for name, values := range query {
		if name != "db" || len(values) != 1 {
			return Target{}, errQuery
		}
		if t.DB, err = parseBounded("database", values[0], 0, maxDB); err != nil {
			return Target{}, errQuery
		}
	}
	return t, nil
}

// errQuery does not say what is there: it may be a password.
var errQuery = fmt.Errorf("unix: a query can only be ?db=n, with a number from 0 to %d", maxDB)

// parseBounded reads a plain decimal number; the error names value and bound.
func parseBounded(what, s string, low, high int) (int, error) {
	n, err := strconv.ParseUint(s, 10, 31)
	if err != nil || int(n) < low || int(n) > high {
		return 0, fmt.Errorf("%s %q: want a number from %d to %d", what, s, low, high)
	}
	return int(n), nil
}

func (t *Target) setUserinfo(info *url.Userinfo) {
	if info == nil {
		return
	}
	t.User = info.Username()
	if password, ok := info.Password(); ok {
		t.Password = func() (string, error) { return password, nil }
	}
}

// String returns the target as a URL without its password, fit for logs. A user
// without a password is hidden too: redis-cli takes it for the password.
func (t Target) String() string {
	var u url.URL
	switch {
	case t.User != "" && t.Password == nil:
		u.User = url.User("xxxxx")
	case t.User != "":
		u.User = url.User(t.User)
	}
	db := strconv.Itoa(t.DB)
	if t.Network == "unix" {
		u.Scheme, u.Path = "unix", t.Addr
		if t.DB != 0 {
			u.RawQuery = "db=" + db
		}
		return u.String()
	}
	u.Scheme, u.Host = "redis", t.Addr
	if t.TLS != nil {
		u.Scheme = "rediss"
	}
	if t.DB != 0 {
		u.Path = "/" + db
	}
	return u.String()
}
