//go:build clients

package clients

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
)

// cache is where libraries are kept between runs, from this folder.
const cache = "../../.cache/clients"

// python makes a virtual environment with requirements.txt and runs a script in it.
func python(script string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		folder := absolute(t, filepath.Join(cache, "python"))
		interpreter := filepath.Join(folder, "bin", "python")
		once(t, folder, "python/requirements.txt", func() {
			must(t, "python3", "-m", "venv", "--clear", folder)
			must(t, interpreter, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "-r", "python/requirements.txt")
		})
		return []string{interpreter, filepath.Join("python", script)}
	}
}

// node installs package.json's dependencies and runs a script beside them: Node looks for modules
// upwards from the script, so the scripts are copied there.
func node(script string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		folder := absolute(t, filepath.Join(cache, "node"))
		once(t, folder, "node/package.json", func() {
			copyFile(t, "node/package.json", filepath.Join(folder, "package.json"))
			must(t, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
		})
		for _, name := range []string{script, "check.mjs"} {
			copyFile(t, filepath.Join("node", name), filepath.Join(folder, name))
		}
		return []string{"node", filepath.Join(folder, script)}
	}
}

// once runs install unless the folder was made from the same list of dependencies before.
func once(t *testing.T, folder, list string, install func()) {
	t.Helper()
	want, err := os.ReadFile(list)
	if err != nil {
		t.Fatal(err)
	}
	stamp := filepath.Join(folder, "stamp")
	if have, err := os.ReadFile(stamp); err == nil && bytes.Equal(have, want) {
		return
	}
	if err := os.MkdirAll(folder, 0o755); err != nil {
		t.Fatal(err)
	}
	install()
	if err := os.WriteFile(stamp, want, 0o644); err != nil {
		t.Fatal(err)
	}
}

func must(t *testing.T, name string, args ...string) {
	t.Helper()
	if text, err := exec.Command(name, args...).CombinedOutput(); err != nil {
		t.Fatalf("%s %v: %v\n%s", name, args, err, text)
	}
}

func copyFile(t *testing.T, from, to string) {
	t.Helper()
	text, err := os.ReadFile(from)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(to, text, 0o644); err != nil {
		t.Fatal(err)
	}
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
