package deploy

import (
	"encoding/json"
	"os"
	"os/exec"
	"path"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"streamproxy/internal/config"
)

// dockerfile is what the tests need to know of the Dockerfile: its last stage.
type dockerfile struct {
	from        []string
	user        string
	expose      []string
	entrypoint  []string
	health      []string
	grace       time.Duration // before a failed check counts
	buildScript string
}

func readDockerfile(t *testing.T) (d dockerfile) {
	t.Helper()
	for line := range strings.Lines(readFile(t, "Dockerfile")) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "FROM":
			d.from = append(d.from, rest)
			d.user, d.expose, d.entrypoint, d.health = "", nil, nil, nil
		case "RUN":
			d.buildScript += rest + "\n"
		case "USER":
			d.user = rest
		case "EXPOSE":
			d.expose = strings.Fields(rest)
		case "ENTRYPOINT":
			d.entrypoint = list(t, rest)
		case "HEALTHCHECK":
			options, command, _ := strings.Cut(rest, " CMD ")
			d.health = list(t, command)
			start := regexp.MustCompile(`--start-period=(\S+)`).FindStringSubmatch(options)
			if start == nil {
				t.Fatalf("no start period in %q", options)
			}
			var err error
			if d.grace, err = time.ParseDuration(start[1]); err != nil {
				t.Fatal(err)
			}
		}
	}
	return d
}

// list reads the form of a command that needs no shell.
func list(t *testing.T, text string) (words []string) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &words); err != nil {
		t.Fatalf("%s: want a JSON list, there is no shell in the image: %v", text, err)
	}
	return words
}

func readFile(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(root + name)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestDockerfile(t *testing.T) {
	d := readDockerfile(t)
	goVersion := regexp.MustCompile(`(?m)^go (\d+\.\d+)`).FindStringSubmatch(readFile(t, "go.mod"))
	if want := "golang:" + goVersion[1] + " AS build"; d.from[0] != want {
		t.Errorf("built in %q, want %q", d.from[0], want)
	}
	if !slices.Equal(d.entrypoint, []string{"/streamproxy"}) || !slices.Equal(d.health, []string{"/streamproxy", "healthcheck"}) {
		t.Errorf("entrypoint %q, health check %q", d.entrypoint, d.health)
	}
	if uid, _, _ := strings.Cut(d.user, ":"); !numeric(uid) || uid == "0" {
		t.Errorf("user %q: want a number that is not root's", d.user)
	}
	if !strings.Contains(d.buildScript, "CGO_ENABLED=0") {
		t.Error("an image from scratch has no C library")
	}
	defaults := config.Default(config.Machine{})
	for _, addr := range append(defaults.Listen, defaults.TelemetryListen) {
		if _, port, _ := strings.Cut(addr, ":"); !slices.Contains(d.expose, port) {
			t.Errorf("port %s is not exposed", port)
		}
	}
}

func numeric(s string) bool {
	_, err := strconv.ParseUint(s, 10, 32)
	return err == nil
}

// Everything that the command is built from must pass .dockerignore: the build happens
// where nobody sees it fail.
func TestDockerignoreLetsSourcesPass(t *testing.T) {
	var allowed []string
	for line := range strings.Lines(readFile(t, ".dockerignore")) {
		if entry, ok := strings.CutPrefix(strings.TrimSpace(line), "!"); ok {
			allowed = append(allowed, strings.TrimSuffix(entry, "/**"))
		}
	}
	for _, name := range []string{"go.mod", "go.sum"} {
		if !slices.Contains(allowed, name) {
			t.Errorf("%s is ignored", name)
		}
	}
	cmd := exec.Command("go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "streamproxy/cmd/streamproxy")
	text, err := cmd.Output()
	if err != nil {
		t.Fatalf("go list: %v", err)
	}
	own := 0
	for _, pkg := range strings.Fields(string(text)) {
		folder, ok := strings.CutPrefix(pkg, "streamproxy/")
		if !ok {
			continue
		}
		own++
		top, _, _ := strings.Cut(folder, "/")
		if !slices.Contains(allowed, top) {
			t.Errorf("%s is ignored", path.Clean(folder))
		}
	}
	if own < 5 {
		t.Errorf("the command consists of only %d packages", own)
	}
}
