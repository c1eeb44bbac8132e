package streamlab

import (
	"os"
	"strings"
	"time"

	"streamproxy/bench/internal/proc"
	"streamproxy/internal/netlab"
)

// Delay is the one-way delay of the experiment's link.
const Delay = 14 * time.Millisecond

// readyLimit is how long a server may take to answer its first command.
const readyLimit = 20 * time.Second

// stand is a server, the link to it, and any number of proxies at the link's near end.
type stand struct {
	redis     *proc.Process
	redisAddr string
	link      *netlab.Link
	proxies   []*proc.Process
	urls      []string // where workers connect: the proxies', else the link's
	workers   []*worker
	direct    *client // asks the server without delay

	folder string
}

// openStand starts one. Close it also after an error.
func openStand(binary string, delay time.Duration, proxies int, flags ...string) (*stand, error) {
	s := &stand{}
	return s, s.open(binary, delay, proxies, flags)
}

func (s *stand) open(binary string, delay time.Duration, proxies int, flags []string) (err error) {
	if s.folder, err = os.MkdirTemp("", "streamproxy-bench-"); err != nil {
		return err
	}
	path, err := proc.Find("redis-server")
	if err != nil {
		return err
	}
	if s.redisAddr, err = proc.FreeAddr(); err != nil {
		return err
	}
	_, port, _ := strings.Cut(s.redisAddr, ":")
	if s.redis, err = proc.Start("redis-server", path, "--bind", "127.0.0.1", "--port", port,
		"--save", "", "--appendonly", "no", "--dir", s.folder); err != nil {
		return err
	}
	if err := s.redis.WaitReady(s.redisAddr, readyLimit); err != nil {
		return err
	}
	if s.direct, err = dial(s.redisAddr); err != nil {
		return err
	}
	if s.link, err = netlab.Start(netlab.Options{Upstream: s.redisAddr, Delay: delay}); err != nil {
		return err
	}
	for range proxies {
		if err := s.addProxy(binary, flags); err != nil {
			return err
		}
	}
	if proxies == 0 {
		s.urls = []string{"redis://" + s.link.Addr()}
	}
	return nil
}

func (s *stand) addProxy(binary string, flags []string) error {
	addr, err := proc.FreeAddr()
	if err != nil {
		return err
	}
	telemetry, err := proc.FreeAddr()
	if err != nil {
		return err
	}
	args := append([]string{"--listen", addr, "--upstream", "redis://" + s.link.Addr(), "--telemetry-listen", telemetry}, flags...)
	p, err := proc.Start("streamproxy", binary, args...)
	if err != nil {
		return err
	}
	s.proxies = append(s.proxies, p)
	s.urls = append(s.urls, "redis://"+addr)
	return p.WaitReady(addr, readyLimit)
}

// start starts a worker, which ends with the stand.
func (s *stand) start(python string, job *Job) (*worker, error) {
	w, err := startWorker(python, job)
	if err == nil {
		s.workers = append(s.workers, w)
	}
	return w, err
}

// close ends everything, the nearest end first.
func (s *stand) close() {
	for _, w := range s.workers {
		w.kill()
	}
	for _, p := range s.proxies {
		p.Kill() // what it would drain for has been killed
	}
	if s.link != nil {
		_ = s.link.Close() // it only has to stop
	}
	if s.direct != nil {
		s.direct.close()
	}
	if s.redis != nil {
		s.redis.Stop()
	}
	if s.folder != "" {
		_ = os.RemoveAll(s.folder) // a leftover in the system's temporary folder harms nobody
	}
}
