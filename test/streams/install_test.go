//go:build streams

package streams

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
)

// cache is where libraries are kept between runs, from this folder.
const cache = "../../.cache/streams"

// installing lets one installation run at a time: they share caches of their own.
var installing sync.Mutex

// python makes a virtual environment with some requirements and returns the command that runs a
// script in it.
func python(script string, requirements ...string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		folder := absolute(t, filepath.Join(cache, strings.NewReplacer("[", "-", "]", "").Replace(strings.Join(requirements, "+"))))
		interpreter := filepath.Join(folder, "bin", "python")
		once(t, folder, strings.Join(requirements, "\n"), func() {
			must(t, "python3", "-m", "venv", "--clear", folder)
			must(t, interpreter, append([]string{"-m", "pip", "--quiet", "--disable-pip-version-check", "install"}, requirements...)...)
		})
		return []string{interpreter, filepath.Join("python", script)}
	}
}

// node installs package.json's dependencies and returns the command that runs a script beside them.
func node(script string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		folder := absolute(t, filepath.Join(cache, "node"))
		once(t, folder, read(t, "node/package.json"), func() {
			put(t, filepath.Join(folder, "package.json"), read(t, "node/package.json"))
			must(t, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
		})
		path := filepath.Join(folder, script)
		put(t, path, read(t, filepath.Join("node", script)))
		return []string{"node", path}
	}
}

// once runs install unless the folder was made from the same list of dependencies before.
func once(t *testing.T, folder, want string, install func()) {
	t.Helper()
	installing.Lock()
	defer installing.Unlock()
	stamp := filepath.Join(folder, "stamp")
	if have, err := os.ReadFile(stamp); err == nil && string(have) == want {
		return
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	install()
	put(t, stamp, want)
}

func must(t *testing.T, name string, args ...string) {
	t.Helper()
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, text)
	}
}

func put(t *testing.T, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
