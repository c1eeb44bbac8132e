package deploy

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"streamproxy/internal/config"
)

// root is the module's root, from this folder.
const root = "../../"

// composeFile is what the tests read of docker-compose.yml. Whatever the file has
// beside it is a fault of the test, so that nothing new goes untested.
type composeFile struct {
	Services map[string]service
}

type service struct {
	Image       string
	Build       string
	Command     []string
	Environment map[string]string
	Ports       []string
	Profiles    []string
	Volumes     []string
	Healthcheck *struct {
		Test              []string
		Interval, Timeout duration
		Retries           int
	}
	DependsOn map[string]struct {
		Condition string
	} `yaml:"depends_on"`
	ReadOnly        bool     `yaml:"read_only"`
	CapDrop         []string `yaml:"cap_drop"`
	SecurityOpt     []string `yaml:"security_opt"`
	StopGracePeriod duration `yaml:"stop_grace_period"`
}

// duration is a time as compose files have it.
type duration time.Duration

func (d *duration) UnmarshalText(text []byte) error {
	parsed, err := time.ParseDuration(string(text))
	*d = duration(parsed)
	return err
}

func readCompose(t *testing.T) composeFile {
	t.Helper()
	f, err := os.Open(root + "docker-compose.yml")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	decoder := yaml.NewDecoder(f)
	decoder.KnownFields(true)
	var c composeFile
	if err := decoder.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

// environ is a service's environment as a process gets it.
func (s service) environ() (list []string) {
	for name, value := range s.Environment {
		list = append(list, name+"="+value)
	}
	slices.Sort(list)
	return list
}

func TestComposeNames(t *testing.T) {
	c := readCompose(t)
	for name, s := range c.Services {
		if (s.Image == "") == (s.Build == "") {
			t.Errorf("%s: want an image or something to build", name)
		}
		for on, d := range s.DependsOn {
			other, ok := c.Services[on]
			if !ok {
				t.Errorf("%s depends on %s, which does not exist", name, on)
			} else if d.Condition == "service_healthy" && other.Healthcheck == nil {
				t.Errorf("%s waits until %s is healthy, but nothing checks that", name, on)
			}
		}
	}
}

// What is published is published on the host's loopback alone, what is mounted is there, and
// cannot be written to.
func TestComposeIsKeptIn(t *testing.T) {
	for name, s := range readCompose(t).Services {
		for _, published := range s.Ports {
			if parts := strings.Split(published, ":"); len(parts) != 3 || parts[0] != "127.0.0.1" {
				t.Errorf("%s: port %s is not published on loopback only", name, published)
			}
		}
		for _, mounted := range s.Volumes {
			parts := strings.Split(mounted, ":")
			if len(parts) != 3 || parts[2] != "ro" {
				t.Errorf("%s: %s can be written to", name, mounted)
				continue
			}
			if _, err := os.Stat(root + parts[0]); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

// Prometheus scrapes the proxy where its telemetry is and finds its rules, Grafana asks that
// Prometheus and finds the dashboard: each file names the next as the service before it has it.
func TestComposeWatches(t *testing.T) {
	c := readCompose(t)
	px, prometheus, grafana := c.Services["streamproxy"], c.Services["prometheus"], c.Services["grafana"]
	var scrape struct {
		RuleFiles     []string `yaml:"rule_files"`
		ScrapeConfigs []struct {
			StaticConfigs []struct{ Targets []string } `yaml:"static_configs"`
		} `yaml:"scrape_configs"`
	}
	read := func(path string, into any) {
		t.Helper()
		if err := yaml.Unmarshal([]byte(readFile(t, path)), into); err != nil {
			t.Fatal(err)
		}
	}
	read("deploy/prometheus/prometheus.yml", &scrape)
	_, port, _ := strings.Cut(px.Environment["STREAMPROXY_TELEMETRY_LISTEN"], ":")
	if got := scrape.ScrapeConfigs[0].StaticConfigs[0].Targets; !slices.Equal(got, []string{"streamproxy:" + port}) {
		t.Errorf("Prometheus scrapes %q, the proxy is at port %s", got, port)
	}
	for _, want := range append(scrape.RuleFiles, "prometheus.yml") {
		if !slices.Contains(prometheus.Volumes, "./deploy/prometheus/"+want+":/etc/prometheus/"+want+":ro") {
			t.Errorf("%s is not where Prometheus looks for it: %q", want, prometheus.Volumes)
		}
	}

	var sources struct{ Datasources []struct{ Type, URL string } }
	read("deploy/grafana/provisioning/datasources/prometheus.yml", &sources)
	if s := sources.Datasources[0]; s.Type != "prometheus" || s.URL != "http://prometheus:9090" || len(prometheus.Ports) != 1 || !strings.HasSuffix(prometheus.Ports[0], ":9090") {
		t.Errorf("Grafana asks %+v, Prometheus is at %q", s, prometheus.Ports)
	}
	var shown struct {
		Providers []struct{ Options struct{ Path string } }
	}
	read("deploy/grafana/provisioning/dashboards/streamproxy.yml", &shown)
	for _, want := range []string{
		"./deploy/grafana/streamproxy.json:" + shown.Providers[0].Options.Path + "/streamproxy.json:ro",
		"./deploy/grafana/provisioning:/etc/grafana/provisioning:ro",
	} {
		if !slices.Contains(grafana.Volumes, want) {
			t.Errorf("want %s mounted, there is %q", want, grafana.Volumes)
		}
	}
}

// The proxy's settings are valid, lead to a service that it waits for, and listen at
// the ports that are published.
func TestComposeSettings(t *testing.T) {
	c := readCompose(t)
	s := c.Services["streamproxy"]
	loaded, err := config.Load(s.Command, s.environ(), config.Machine{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if len(loaded.Warnings) > 0 {
		t.Errorf("warnings: %q", loaded.Warnings)
	}
	target, err := loaded.Target()
	if err != nil {
		t.Fatal(err)
	}
	host, port, _ := strings.Cut(target.Addr, ":")
	if _, ok := s.DependsOn[host]; !ok || port != "6379" {
		t.Errorf("upstream %s is not a service that the proxy waits for, at Redis's port", target.Addr)
	}
	listening := append(slices.Clone(loaded.Listen), loaded.TelemetryListen)
	for _, published := range s.Ports {
		parts := strings.Split(published, ":")
		if len(parts) != 3 || parts[0] != "127.0.0.1" {
			t.Errorf("port %s is not published on loopback only", published)
			continue
		}
		if !slices.Contains(listening, "0.0.0.0:"+parts[2]) {
			t.Errorf("port %s is published, but the proxy listens at %q", published, listening)
		}
	}
	if len(s.Ports) != len(listening) {
		t.Errorf("%d ports are published of %d", len(s.Ports), len(listening))
	}
	if grace := time.Duration(s.StopGracePeriod); grace <= loaded.DrainTimeout {
		t.Errorf("stopped after %v, but a drain takes up to %v", grace, loaded.DrainTimeout)
	}
	if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) {
		t.Error("the proxy needs neither a writable disk nor capabilities")
	}
}
