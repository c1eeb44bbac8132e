package streamlab

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Pair is one version of taskiq-redis on one of redis-py.
type Pair struct {
	Taskiq string `json:"taskiq"` // taskiq-redis
	Redis  string `json:"redis"`  // redis-py
	Base   string `json:"base"`   // taskiq; 0.13 lacks what taskiq-redis 1.2.2 imports
}

// Pairs are the ones measured, by the names of --pairs. 1.2.4 asks for redis-py 8; beside 7, which
// speaks RESP2, it is what an application gets that pins redis-py itself.
var Pairs = map[string]Pair{
	"1.2.2+7": {"1.2.2", "7.4.1", "0.12.4"},
	"1.2.4+7": {"1.2.4", "7.4.1", "0.13.0"},
	"1.2.4+8": {"1.2.4", "8.1.0", "0.13.0"},
}

// PairNames lists the names of Pairs in the order of tables.
var PairNames = []string{"1.2.2+7", "1.2.4+7", "1.2.4+8"}

// Name is the pair as tables call it.
func (p Pair) Name() string {
	major, _, _ := strings.Cut(p.Redis, ".")
	return "taskiq-redis " + p.Taskiq + ", redis-py " + major
}

// Install makes the pair's virtual environment below the folder unless it is there, and returns
// its interpreter.
func (p Pair) Install(ctx context.Context, folder string) (python string, err error) {
	folder, err = filepath.Abs(filepath.Join(folder, "taskiq-redis-"+p.Taskiq+"-redis-"+p.Redis))
	if err != nil {
		return "", err
	}
	python, stamp := filepath.Join(folder, "bin", "python"), filepath.Join(folder, "complete")
	if _, err := os.Stat(stamp); err == nil {
		return python, nil
	}
	steps := [][]string{
		{"python3", "-m", "venv", "--clear", folder},
		{python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "redis==" + p.Redis, "taskiq==" + p.Base},
		// Without its dependencies, which are the line above: see Pairs.
		{python, "-m", "pip", "--quiet", "--disable-pip-version-check", "install", "--no-deps", "taskiq-redis==" + p.Taskiq},
	}
	for _, step := range steps {
		if text, err := exec.CommandContext(ctx, step[0], step[1:]...).CombinedOutput(); err != nil {
			return "", fmt.Errorf("%s: %w\n%s", strings.Join(step, " "), err, text)
		}
	}
	return python, os.WriteFile(stamp, nil, 0o644)
}
