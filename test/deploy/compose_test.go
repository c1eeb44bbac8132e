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
