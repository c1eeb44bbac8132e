// Package lab sets up what is compared: one redis-server, and beside it the sides, each a way of
// reaching that server: directly, through another proxy, through streamproxy with some flags. All
// of them stand ready for the whole run, so that they can be measured in turn; an idle one costs
// the others nothing.
package lab

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"streamproxy/bench/internal/proc"
	"streamproxy/internal/netlab"
)

// readyLimit is how long a side may take to answer its first command.
const readyLimit = 20 * time.Second

// Side is one way to the server.
type Side struct {
	Name    string        // as asked for, such as "nutcracker" or "streamproxy:max-flush-delay=0"
	Kind    string        // the part of Name before the first colon
	Version string        // what the program calls itself
	Command string        // its command line, without paths
	Addr    string        // where callers connect
	Process *proc.Process // nil for direct
	Metrics string        // URL of its metrics, "" if it has none
}

// Lab is a running set-up. Close ends everything it started.
type Lab struct {
	Redis        *proc.Process
	RedisAddr    string
	RedisVersion string
	Sides        []Side
	Missing      []string // peers that were asked for and are not installed

	binary string // of streamproxy; "" until it has been built
	folder string
	links  []*netlab.Link
}

// DefaultPeers are the proxies that streamproxy is compared with, if installed.
var DefaultPeers = []string{"nutcracker", "predixy", "envoy"}

// peerFolder holds peers that are not on PATH; test/install/peers.sh fills it.
const peerFolder = ".cache/peers"

// Open starts redis-server and the sides named. A peer that is not installed is left out and
// named in Missing; anything else that does not start is an error.
func Open(ctx context.Context, names []string) (*Lab, error) {
	return OpenBuilt(ctx, "", names)
}

// OpenBuilt is Open with a binary of streamproxy that has been built already: for who opens many.
func OpenBuilt(ctx context.Context, binary string, names []string) (*Lab, error) {
	folder, err := os.MkdirTemp("", "streamproxy-bench-")
	if err != nil {
		return nil, err
	}
	l := &Lab{binary: binary, folder: folder}
	if err := l.open(ctx, names); err != nil {
		l.Close()
		return nil, err
	}
	return l, nil
}

func (l *Lab) open(ctx context.Context, names []string) error {
	if err := l.startRedis(ctx); err != nil {
		return err
	}
	for _, name := range names {
		kind, options, _ := strings.Cut(name, ":")
		start, ok := starters[kind]
		if !ok {
			return fmt.Errorf("side %q: no such kind; there are direct, streamproxy and %s", name, strings.Join(DefaultPeers, ", "))
		}
		side := Side{Name: name, Kind: kind}
		err := start(ctx, l, &side, options)
		if errors.Is(err, exec.ErrNotFound) && kind != "streamproxy" {
			l.Missing = append(l.Missing, name)
			continue
		}
		if side.Process != nil {
			l.Sides = append(l.Sides, side) // so that Close stops it in any case
		}
		if err != nil {
			return fmt.Errorf("side %q: %w", name, err)
		}
		if side.Process == nil {
			l.Sides = append(l.Sides, side)
		}
	}
	return nil
}

// Close stops every process, the sides before their server.
func (l *Lab) Close() {
	for _, s := range l.Sides {
		if s.Process != nil {
			s.Process.Stop()
		}
	}
	for _, link := range l.links {
		_ = link.Close() // it only has to stop
	}
	if l.Redis != nil {
		l.Redis.Stop()
	}
	_ = os.RemoveAll(l.folder) // a leftover in the system's temporary folder harms nobody
}

// link opens a link to the server that takes rtt for a round trip, a duration as in "28ms".
func (l *Lab) link(rtt string) (addr string, err error) {
	d, err := time.ParseDuration(rtt)
	if err != nil {
		return "", err
	}
	link, err := netlab.Start(netlab.Options{Upstream: l.RedisAddr, Delay: d / 2})
	if err != nil {
		return "", err
	}
	l.links = append(l.links, link)
	return link.Addr(), nil
}

// Side returns the side of that name, or nil.
func (l *Lab) Side(name string) *Side {
	for i := range l.Sides {
		if l.Sides[i].Name == name {
			return &l.Sides[i]
		}
	}
	return nil
}

func (l *Lab) startRedis(ctx context.Context) error {
	path, err := proc.Find("redis-server")
	if err != nil {
		return err
	}
	if l.RedisAddr, err = proc.FreeAddr(); err != nil {
		return err
	}
	l.RedisVersion = version(ctx, path, "--version")
	_, port, _ := strings.Cut(l.RedisAddr, ":")
	l.Redis, err = proc.Start("redis-server", path, "--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no", "--maxclients", "20000", "--dir", l.folder)
	if err != nil {
		return err
	}
	return l.Redis.WaitReady(l.RedisAddr, readyLimit)
}

// serve starts a side's process, writes its command line down and waits for its first answer.
func (l *Lab) serve(s *Side, path string, args ...string) error {
	var err error
	if s.Process, err = proc.Start(s.Name, path, args...); err != nil {
		return err
	}
	line := append([]string{filepath.Base(path)}, args...)
	s.Command = strings.ReplaceAll(strings.Join(line, " "), l.folder+"/", "")
	return s.Process.WaitReady(s.Addr, readyLimit)
}

func (l *Lab) writeFile(name, text string) (string, error) {
	path := filepath.Join(l.folder, name)
	return path, os.WriteFile(path, []byte(text), 0o600)
}

// version returns the first line that a program prints about itself.
func version(ctx context.Context, path string, args ...string) string {
	text, err := exec.CommandContext(ctx, path, args...).CombinedOutput()
	if err != nil && len(text) == 0 {
		return "unknown"
	}
	for line := range strings.Lines(string(text)) {
		if line = strings.TrimSpace(line); line != "" {
			return strings.ReplaceAll(line, path, filepath.Base(path))
		}
	}
	return "unknown"
}
