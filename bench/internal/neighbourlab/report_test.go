package neighbourlab

import (
	"reflect"
	"strings"
	"testing"

	"streamproxy/bench/internal/result"
)

// measured is a run in which these attacks cost a GET 2 ms directly and 3, 4 and 5 ms proxied.
func measured(attacks ...string) *result.Report {
	run := &result.Report{Program: "neighbours"}
	for _, name := range attacks {
		c := result.Cell{Title: name}
		for i := range 3 {
			more := func(p99 float64) map[string]float64 {
				return map[string]float64{Quantity(Get, "p99"): p99, Quantity(Get, "max"): 20 * p99}
			}
			c.Add("direct", result.Sample{More: more(2)})
			proxied := more(float64(3 + i))
			proxied[Quantity(Pop, "errors")] = float64(i)
			proxied[ProxyCPU], proxied[Memory], proxied[Descriptors] = 50, 40, 30
			c.Add("streamproxy", result.Sample{More: proxied})
		}
		run.Cells = append(run.Cells, c)
	}
	return run
}

func titles(r *Report) string {
	var runs []string
	for _, run := range r.Runs {
		var cells []string
		for i := range run.Cells {
			cells = append(cells, run.Cells[i].Title)
		}
		runs = append(runs, strings.Join(cells, " "))
	}
	return strings.Join(runs, ", ")
}

func TestRunsAreAdded(t *testing.T) {
	r := &Report{}
	steps := []struct {
		add  *result.Report
		want string
	}{
		{measured(Quiet, "a", "b"), "none a b"},
		{measured(Quiet, "b"), "none a, none b"},
		{measured(Quiet, "a", "c"), "none b, none a c"},
		{measured(Quiet, "a", "b", "c"), "none a b c"},
	}
	for i, step := range steps {
		if r.Add(step.add); titles(r) != step.want {
			t.Errorf("step %d: %s, want %s", i, titles(r), step.want)
		}
	}
	far := measured(Quiet, "a")
	far.Cells[0].Trip, far.Cells[1].Trip = "28ms", "28ms"
	if r.Add(far); titles(r) != "none a b c, none a" {
		t.Errorf("over another distance: %s", titles(r))
	}
}

func TestSaveAndLoad(t *testing.T) {
	folder := t.TempDir() + "/results"
	r, err := Load(folder)
	if err != nil || len(r.Runs) != 0 {
		t.Fatalf("of nothing: %+v, %v", r, err)
	}
	r.Add(measured(Quiet, "a"))
	if _, err := r.Save(folder); err != nil {
		t.Fatal(err)
	}
	if got, err := Load(folder); err != nil || !reflect.DeepEqual(got, r) {
		t.Errorf("read back %+v, %v", got, err)
	}
}
