package lab

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"

	"streamproxy/bench/internal/proc"
)

// startStreamproxy builds this repository's binary once and starts it. The options are its
// flags without dashes, separated by colons: "max-flush-delay=1ms:threads=2". Two are the lab's own:
// "unix" has callers connect over a socket, "rtt=28ms" puts a link of that round trip before the
// server.
func startStreamproxy(ctx context.Context, l *Lab, s *Side, options string) error {
	if err := l.build(ctx); err != nil {
		return err
	}
	var err error
	if s.Addr, err = proc.FreeAddr(); err != nil {
		return err
	}
	telemetry, err := proc.FreeAddr()
	if err != nil {
		return err
	}
	listen, server := s.Addr, l.RedisAddr
	s.Metrics = "http://" + telemetry + "/metrics"
	var flags []string
	for _, option := range splitOptions(options) {
		name, value, _ := strings.Cut(option, "=")
		switch name {
		case "unix":
			s.Addr = filepath.Join(l.folder, fmt.Sprintf("%d.sock", len(l.Sides)))
			listen = "unix://" + s.Addr
		case "rtt":
			if server, err = l.link(value); err != nil {
				return err
			}
		case "telemetry-listen":
			telemetry, s.Metrics = value, ""
		default:
			flags = append(flags, "--"+option)
		}
	}
	args := []string{"--listen", listen, "--upstream", "redis://" + server, "--telemetry-listen", telemetry}
	s.Version = version(ctx, l.binary, "version")
	return l.serve(s, l.binary, append(args, flags...)...)
}

// build makes sure that there is a binary.
func (l *Lab) build(ctx context.Context) (err error) {
	if l.binary == "" {
		l.binary, err = BuildStreamproxy(ctx, l.folder)
	}
	return err
}

func splitOptions(options string) []string {
	if options == "" {
		return nil
	}
	return strings.Split(options, ":")
}

// BuildStreamproxy compiles the proxy as a release would into the folder and returns its path.
func BuildStreamproxy(ctx context.Context, folder string) (string, error) {
	path := filepath.Join(folder, "streamproxy")
	cmd := exec.CommandContext(ctx, "go", "build", "-trimpath", "-o", path, "streamproxy/cmd/streamproxy")
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("go build: %w\n%s", err, text)
	}
	return path, nil
}

// Metrics is one reading of a Prometheus page: the value of every series, by its name with its
// labels as printed.
type Metrics map[string]float64

// Read fetches a side's metrics. A side without any has empty ones.
func (s *Side) Read(ctx context.Context) (Metrics, error) {
	if s.Metrics == "" {
		return Metrics{}, nil
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, s.Metrics, http.NoBody)
	if err != nil {
		return nil, err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s", s.Metrics, response.Status)
	}
	return parseMetrics(response.Body)
}

// parseMetrics reads the text format as far as it is needed here: lines of series and value.
func parseMetrics(in io.Reader) (Metrics, error) {
	m := Metrics{}
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		cut := strings.LastIndexByte(line, ' ')
		if cut < 0 {
			return nil, fmt.Errorf("metrics: no value in %q", line)
		}
		value, err := strconv.ParseFloat(line[cut+1:], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: %w", err)
		}
		m[line[:cut]] = value
	}
	return m, lines.Err()
}

// Since returns by how much each series has grown.
func (m Metrics) Since(earlier Metrics) Metrics {
	grown := Metrics{}
	for series, value := range m {
		grown[series] = value - earlier[series]
	}
	return grown
}
