package lab

import (
	"context"
	"fmt"
	"strings"

	"streamproxy/bench/internal/proc"
)

// starters start a side of each kind. They fill in the Side and return once it answers.
var starters = map[string]func(ctx context.Context, l *Lab, s *Side, options string) error{
	"direct":      startDirect,
	"nutcracker":  startNutcracker,
	"predixy":     startPredixy,
	"envoy":       startEnvoy,
	"streamproxy": startStreamproxy,
}

// startDirect is the server itself, or with the option "rtt=28ms" a link of that round trip to it.
func startDirect(_ context.Context, l *Lab, s *Side, options string) (err error) {
	s.Addr, s.Version = l.RedisAddr, l.RedisVersion
	if rtt, found := strings.CutPrefix(options, "rtt="); found {
		s.Addr, err = l.link(rtt)
	}
	return err
}

// Each peer runs with one thread and one connection to the server, and otherwise as its own
// documentation shows it: the configuration that a sidecar would get.

const nutcrackerConfig = `bench:
  listen: %s
  hash: fnv1a_64
  distribution: ketama
  redis: true
  preconnect: true
  backlog: 1024
  tcpkeepalive: true
  servers:
   - %s:1
`

func startNutcracker(ctx context.Context, l *Lab, s *Side, _ string) error {
	path, err := proc.Find("nutcracker", peerFolder, "/usr/sbin")
	if err != nil {
		return err
	}
	stats, err := proc.FreeAddr()
	if err != nil {
		return err
	}
	if s.Addr, err = proc.FreeAddr(); err != nil {
		return err
	}
	config, err := l.writeFile("nutcracker.yml", fmt.Sprintf(nutcrackerConfig, s.Addr, l.RedisAddr))
	if err != nil {
		return err
	}
	s.Version = version(ctx, path, "--version")
	host, port, _ := strings.Cut(stats, ":")
	return l.serve(s, path, "--conf-file="+config, "--stats-addr="+host, "--stats-port="+port)
}

const predixyConfig = `Name bench
Bind %s
WorkerThreads 1
MaxMemory 0
ClientTimeout 0
Authority {
    Auth {
        Mode write
    }
}
StandaloneServerPool {
    Databases 16
    Hash crc16
    Distribution modula
    RefreshMethod fixed
    Group bench {
        + %s
    }
}
`

func startPredixy(ctx context.Context, l *Lab, s *Side, _ string) error {
	path, err := proc.Find("predixy", peerFolder)
	if err != nil {
		return err
	}
	if s.Addr, err = proc.FreeAddr(); err != nil {
		return err
	}
	config, err := l.writeFile("predixy.conf", fmt.Sprintf(predixyConfig, s.Addr, l.RedisAddr))
	if err != nil {
		return err
	}
	s.Version = version(ctx, path, "--version")
	return l.serve(s, path, config)
}

const envoyConfig = `static_resources:
  listeners:
  - name: bench
    address: { socket_address: { address: %s, port_value: %s } }
    filter_chains:
    - filters:
      - name: envoy.filters.network.redis_proxy
        typed_config:
          "@type": type.googleapis.com/envoy.extensions.filters.network.redis_proxy.v3.RedisProxy
          stat_prefix: bench
          settings: { op_timeout: 5s }
          prefix_routes: { catch_all_route: { cluster: redis } }
  clusters:
  - name: redis
    connect_timeout: 1s
    type: STATIC
    load_assignment:
      cluster_name: redis
      endpoints:
      - lb_endpoints:
        - endpoint: { address: { socket_address: { address: %s, port_value: %s } } }
`

func startEnvoy(ctx context.Context, l *Lab, s *Side, _ string) error {
	path, err := proc.Find("envoy", peerFolder)
	if err != nil {
		return err
	}
	if s.Addr, err = proc.FreeAddr(); err != nil {
		return err
	}
	host, port, _ := strings.Cut(s.Addr, ":")
	redisHost, redisPort, _ := strings.Cut(l.RedisAddr, ":")
	config, err := l.writeFile("envoy.yaml", fmt.Sprintf(envoyConfig, host, port, redisHost, redisPort))
	if err != nil {
		return err
	}
	s.Version = version(ctx, path, "--version")
	return l.serve(s, path, "-c", config, "--concurrency", "1", "--disable-hot-restart", "--log-level", "error")
}
