package config

import (
	"cmp"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"

	"streamproxy/internal/upstream"
	"streamproxy/proxy"
)

// Validate reports every fault of c as Faults, or nil. It looks at the files that c
// names, because a secret that cannot be read is found now or by a client later.
func (c *Config) Validate() error { return c.faults(nil).orNil() }

// faults lists what is wrong. unread names the flags whose text could not be read: of
// them nothing more is said, nor of what they would have to agree with.
func (c *Config) faults(unread []string) Faults {
	var all Faults
	doubtful := slices.Clone(unread)
	for _, f := range flags(c) {
		if slices.Contains(unread, f.Name) {
			continue
		}
		if err := f.field.check(); err != nil {
			all = append(all, newFault(f, f.field.String(), err))
			doubtful = append(doubtful, f.Name)
		}
	}
	for _, r := range c.crossRules() {
		if r.broken && !slices.Contains(doubtful, r.flag) && !slices.Contains(doubtful, r.other) {
			all = append(all, Fault{Name: "--" + r.flag, Value: r.value, Problem: r.problem})
		}
	}
	return all
}

// newFault describes what is wrong with a value of f.
func newFault(f Flag, value string, err error) Fault {
	bound := f.Bound()
	return Fault{Name: "--" + f.Name, Value: f.show(value), Problem: err.Error(), Bound: bound, Err: err}
}

// crossRule is a rule that two flags have to keep together.
type crossRule struct {
	flag, other, value, problem string
	broken                      bool
}

func (c *Config) crossRules() []crossRule {
	t, err := upstream.Parse(c.Upstream)
	again := c.twice()
	together := proxy.CheckDeniedTogether(c.Deny)
	twoPasswords := err == nil && t.Password != nil && c.UpstreamPasswordFile != ""
	return append(c.tlsRules(), []crossRule{
		{"listen", "", "", "is empty, so that no client could connect", len(c.Listen) == 0},
		{"listen", "admin-listen", again, "is listened at twice", again != ""},
		notAbove("upstream-conns", "max-lanes", c.UpstreamConns, c.MaxLanes, formatInt),
		notAbove("private-min-idle", "private-max", c.PrivateMinIdle, c.PrivateMax, formatInt),
		notAbove("drain-min", "drain-timeout", c.DrainMin, c.DrainTimeout, formatDuration),
		{"deny", "", strings.Join(c.Deny, ","), fmt.Sprint(together), together != nil},
		{"upstream-password-file", "upstream", c.UpstreamPasswordFile,
			"is given together with a password in --upstream; keep one", twoPasswords},
	}...)
}

func notAbove[T cmp.Ordered](flag, other string, v, most T, format func(T) string) crossRule {
	return crossRule{flag, other, format(v), "exceeds --" + other + " " + format(most), v > most}
}

// Target is the server named by the upstream flags. Its password and certificates are
// read anew each time they are asked for. The error is that of upstream.Parse.
func (c *Config) Target() (upstream.Target, error) {
	t, err := upstream.Parse(c.Upstream)
	if err != nil {
		return t, err
	}
	if c.UpstreamUser != "" {
		t.User = c.UpstreamUser
	}
	if c.UpstreamPasswordFile != "" {
		t.Password = SecretFile(c.UpstreamPasswordFile)
	}
	if t.TLS != nil {
		t.TLS = c.upstreamTLS()
	}
	return t, nil
}

// RequirePass returns the function that reads the clients' password, nil for none.
func (c *Config) RequirePass() func() (string, error) {
	if c.RequirePassFile == "" {
		return nil
	}
	return SecretFile(c.RequirePassFile)
}

func checkUpstream(raw string) error {
	if _, err := upstream.Parse(raw); err != nil {
		return fmt.Errorf("is no usable URL: %w", err)
	}
	return nil
}

// maxSocketPath is the longest path of a unix socket, in bytes; one more ends it.
const maxSocketPath = len(syscall.RawSockaddrUnix{}.Path) - 1

// twice finds a place at which two addresses of clients, or one of them and
// administration, would listen; empty: none. Port 0 is another one each time.
func (c *Config) twice() string {
	seen := map[string]bool{}
	for _, spec := range append(slices.Clone(c.Listen), c.AdminListen) {
		place := strings.TrimPrefix(spec, TLSPrefix)
		if u, err := url.Parse(spec); err == nil && u.Scheme == "unix" {
			place = filepath.Clean(u.Path)
		} else if strings.HasSuffix(place, ":0") || spec == DefaultAdmin {
			continue
		}
		if seen[place] {
			return place
		}
		seen[place] = true
	}
	return ""
}

// checkListen checks the spelling of a client address; whether it can be bound is
// known when it is.
func checkListen(spec string) error {
	if rest, secure := strings.CutPrefix(spec, TLSPrefix); secure || !strings.Contains(spec, "://") {
		return checkHostPort(rest)
	}
	u, err := url.Parse(spec)
	if err != nil || u.Scheme != "unix" || u.Host != "" || len(u.Path) < 2 {
		return errors.New("is neither host:port, tls://host:port nor unix:///path?mode=0660")
	}
	if len(u.Path) > maxSocketPath {
		return fmt.Errorf("has a path of %d bytes; the system allows a socket's %d", len(u.Path), maxSocketPath)
	}
	for name, v := range u.Query() {
		if name != "mode" {
			return fmt.Errorf("has the unknown parameter %q", name)
		}
		if m, err := strconv.ParseUint(v[0], 8, 32); err != nil || m > 0o777 {
			return errors.New("has a mode that is not octal, 0 to 0777")
		}
	}
	return nil
}

func checkHostPort(spec string) error {
	_, port, err := net.SplitHostPort(spec)
	if err != nil {
		return errors.New("is not host:port")
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n > 65535 {
		return errors.New("has a port that is not 0 to 65535")
	}
	return nil
}

func checkTelemetry(addr string) error {
	if addr == TelemetryOff {
		return nil
	}
	return checkHostPort(addr)
}

// checkAdmin lets only this machine administer.
func checkAdmin(addr string) error {
	if addr == TelemetryOff {
		return nil
	}
	if strings.HasPrefix(addr, "unix:") {
		return checkListen(addr)
	}
	if err := checkHostPort(addr); err != nil {
		return err
	}
	host, _, err := net.SplitHostPort(addr)
	if ip := net.ParseIP(host); err == nil && host != "localhost" && (ip == nil || !ip.IsLoopback()) {
		return errors.New("must be on loopback or a unix socket: whoever reaches it may do anything")
	}
	return err
}
