package main

import (
	"math"
	"os"
	"strconv"
	"testing"
	"testing/fstest"
	"time"

	"streamproxy/internal/config"
	"streamproxy/internal/redistest"
)

func TestRoom(t *testing.T) {
	const group = "sys/fs/cgroup/"
	root := func(members string) fstest.MapFS {
		return fstest.MapFS{
			"proc/self/cgroup":     {Data: []byte("0::/\n")},
			group + "memory.max":   {Data: []byte("1000\n")},
			group + "cgroup.procs": {Data: []byte(members)},
		}
	}
	own := strconv.Itoa(os.Getpid()) + "\n"
	in := config.Machine{Memory: 1000}
	for _, tt := range []struct {
		name                string
		members             string
		m                   config.Machine
		asked               int64
		ceiling, soft, told int64
		usage               string
	}{
		{"a group of its own", own, in, math.MaxInt64, 900, 0, 900, group + "memory.current"},
		{"a group with others", own + "77\n", in, math.MaxInt64, 900, 0, 900, ""},
		{"GOMEMLIMIT", own, config.Machine{}, 500, 500, 0, 0, ""},
		{"GOMEMLIMIT in a group", own, in, 500, 500, 0, 0, group + "memory.current"},
		{"a large GOMEMLIMIT in a group", own, in, 5000, 900, 0, 0, group + "memory.current"},
		{"neither", own, config.Machine{}, math.MaxInt64, 0, 2*100 + 10*blockedClient, 0, ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			c := config.Default(config.Machine{})
			c.MemoryLimit.Value, c.MaxClients = 100, 10
			r := roomOf(root(tt.members), c, tt.m, tt.asked)
			if r.ceiling != tt.ceiling || r.soft != tt.soft || r.gauge.Limit != tt.told || r.gauge.Usage != tt.usage {
				t.Errorf("got %+v, %+v", r, *r.gauge)
			}
		})
	}
}

// More clients that block than there is memory for are refused; who is there is served, and when
// they have gone others are taken on. This holds by GOMEMLIMIT on machines without cgroups too.
func TestTooManyForTheMemory(t *testing.T) {
	t.Parallel()
	r := startProxyAs(t, nil, []string{"env", "GOMEMLIMIT=40MiB", "streamproxy"}, redistest.Start(t).URL(),
		"--memory-limit=16mb", "--drain-idle=1ms")
	first := r.client()
	served := func() {
		t.Helper()
		if got, err := first.Do("ECHO", "a"); err != nil || got != "$1\r\na\r\n" {
			t.Fatalf("%q, %v", got, err)
		}
	}
	served()
	const crowd, step = 4000, 50
	full := func() bool {
		c := r.client()
		defer func() { _ = c.Close() }()
		got, err := c.Do("ECHO", "a")
		return err != nil || got != "$1\r\na\r\n"
	}
	var all []*redistest.Client
	for !full() {
		if len(all) >= crowd {
			t.Fatalf("%d are taken on", len(all))
		}
		for range step {
			c := r.client()
			_ = c.Send(redistest.Command("BLPOP", "nokey", "0")) // who is refused does not hear of it here
			all = append(all, c)
		}
		served()
	}
	for _, c := range all {
		_ = c.Close()
	}
	for since := time.Now(); full(); {
		if time.Since(since) > patience {
			t.Fatal("nobody is taken on any more")
		}
		served()
	}
}
