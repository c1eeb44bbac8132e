package deploy

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"streamproxy/internal/config"
)

// pod is what the tests read of the manifest in the README.
type pod struct {
	Kind string
	Spec podSpec
}

type podSpec struct {
	TerminationGracePeriodSeconds int         `yaml:"terminationGracePeriodSeconds"`
	InitContainers                []container `yaml:"initContainers"`
	Containers                    []container
}

type container struct {
	Name, Image   string
	RestartPolicy string `yaml:"restartPolicy"`
	Args          []string
	Ports         []struct {
		Name          string
		ContainerPort int `yaml:"containerPort"`
	}
	StartupProbe  *probe `yaml:"startupProbe"`
	LivenessProbe *probe `yaml:"livenessProbe"`
	Env           []struct{ Name, Value string }
}

type probe struct {
	HTTPGet struct{ Path, Port string } `yaml:"httpGet"`
}

// block returns the README's code block of a language; there must be one.
func block(t *testing.T, language string) string {
	t.Helper()
	blocks := regexp.MustCompile("(?s)```"+language+"\n(.*?)```").FindAllStringSubmatch(readFile(t, "README.md"), -1)
	if len(blocks) != 1 {
		t.Fatalf("the README has %d blocks of %s, want one", len(blocks), language)
	}
	return blocks[0][1]
}

// The manifest is a native sidecar that works as it stands there.
func TestReadmeManifest(t *testing.T) {
	var p pod
	if err := yaml.Unmarshal([]byte(block(t, "yaml")), &p); err != nil {
		t.Fatal(err)
	}
	if p.Kind != "Pod" || len(p.Spec.InitContainers) != 1 || len(p.Spec.Containers) != 1 {
		t.Fatalf("want a pod of one sidecar and one application: %+v", p)
	}
	sidecar := p.Spec.InitContainers[0]
	if sidecar.RestartPolicy != "Always" {
		t.Error("an init container that does not always restart is no sidecar")
	}
	checkSidecar(t, p.Spec, sidecar, p.Spec.Containers[0])
}

// checkSidecar holds a proxy in a pod to what works: valid flags, probes that are
// served, a grace period longer than the drain, and an application that connects to
// where the proxy listens.
func checkSidecar(t *testing.T, spec podSpec, sidecar, app container) *config.Loaded {
	t.Helper()
	loaded, err := config.Load(sidecar.Args, nil, config.Machine{}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if grace := time.Duration(spec.TerminationGracePeriodSeconds) * time.Second; grace <= loaded.DrainTimeout {
		t.Errorf("killed after %v, but a drain takes up to %v", grace, loaded.DrainTimeout)
	}
	named := map[string]string{}
	for _, port := range sidecar.Ports {
		named[port.Name] = ":" + strconv.Itoa(port.ContainerPort)
	}
	for want, pr := range map[string]*probe{"/startupz": sidecar.StartupProbe, "/livez": sidecar.LivenessProbe} {
		if pr == nil {
			t.Errorf("nothing asks %s", want)
			continue
		}
		// The kubelet calls from outside of the pod, so not at loopback.
		if pr.HTTPGet.Path != want || named[pr.HTTPGet.Port] != loaded.TelemetryListen {
			t.Errorf("asked: %+v; want %s at %s", pr.HTTPGet, want, loaded.TelemetryListen)
		}
	}
	url := app.Env[0].Value
	if !slices.Contains(loaded.Listen, strings.TrimPrefix(url, "redis://")) {
		t.Errorf("the application connects to %s, the proxy listens at %q", url, loaded.Listen)
	}
	return loaded
}

// Commands that the README shows exist: targets of the Makefile and subcommands.
func TestReadmeCommands(t *testing.T) {
	makefile := readFile(t, "Makefile")
	shown := 0
	for line := range strings.Lines(block(t, "sh")) {
		command, _, _ := strings.Cut(line, "#")
		words := strings.Fields(command)
		switch {
		case len(words) > 1 && words[0] == "make":
			shown++
			for _, target := range words[1:] {
				if !strings.Contains(makefile, "\n"+target+": ") {
					t.Errorf("make has no target %s", target)
				}
			}
		case strings.HasPrefix(command, "go run ./cmd/streamproxy"):
			shown++
			if len(words) > 3 && !strings.HasPrefix(words[3], "-") && !strings.Contains(readFile(t, "cmd/streamproxy/run.go"), `{name: "`+words[3]+`", `) {
				t.Errorf("there is no subcommand %s", words[3])
			}
		}
	}
	if shown < 3 {
		t.Errorf("only %d commands were recognised", shown)
	}
}
