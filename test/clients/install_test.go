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

// python makes a virtual environment with one requirement and runs a script in it.
func python(script, requirement string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		folder := absolute(t, filepath.Join(cache, requirement))
		interpreter := filepath.Join(folder, "bin", "python")
		once(t, folder, []byte(requirement), func() {
			must(t, "python3", "-m", "venv", "--clear", folder)
			must(t, interpreter, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", requirement)
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
		once(t, folder, read(t, "node/package.json"), func() {
			copyFile(t, "node/package.json", filepath.Join(folder, "package.json"))
			must(t, "npm", "install", "--prefix", folder, "--no-audit", "--no-fund", "--ignore-scripts", "--silent")
		})
		for _, name := range []string{script, "check.mjs"} {
			copyFile(t, filepath.Join("node", name), filepath.Join(folder, name))
		}
		return []string{"node", filepath.Join(folder, script)}
	}
}

// java lets Maven fetch pom.xml's dependencies into .cache/m2, compiles the programs and runs one.
func java(class string) func(*testing.T) []string {
	return func(t *testing.T) []string {
		t.Helper()
		folder := absolute(t, filepath.Join(cache, "java"))
		paths := filepath.Join(folder, "classpath")
		repository := absolute(t, cache+"/../m2") // which the class path names: it is right for this place only
		once(t, folder, append(read(t, "java/pom.xml"), repository...), func() {
			must(t, "mvn", "--quiet", "--batch-mode", "--file", "java/pom.xml",
				"-Dmaven.repo.local="+repository, "-Dmdep.outputFile="+paths, "dependency:build-classpath")
		})
		sources, err := filepath.Glob("java/*.java")
		if err != nil || len(sources) == 0 {
			t.Fatalf("no Java programs: %v", err)
		}
		classes := filepath.Join(folder, "classes")
		classpath := classes + string(filepath.ListSeparator) + string(read(t, paths))
		text := []byte(classpath)
		for _, source := range sources {
			text = append(text, read(t, source)...)
		}
		once(t, classes, text, func() {
			must(t, "javac", append([]string{"-Xlint:all,-processing", "-d", classes, "-cp", classpath}, sources...)...)
		})
		return []string{"java", "-XX:+UseSerialGC", "-Xmx256m", "-cp", classpath, class}
	}
}

// script runs a script of a language whose client comes from Debian: test/install/apt.sh brings it.
func script(interpreter, path string) func(*testing.T) []string {
	return func(*testing.T) []string { return []string{interpreter, path} }
}

// once runs install unless the folder was made from the same list of dependencies before.
func once(t *testing.T, folder string, want []byte, install func()) {
	t.Helper()
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
	if err := os.WriteFile(to, read(t, from), 0o644); err != nil {
		t.Fatal(err)
	}
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func absolute(t *testing.T, path string) string {
	t.Helper()
	path, err := filepath.Abs(path)
	if err != nil {
		t.Fatal(err)
	}
	return path
}
