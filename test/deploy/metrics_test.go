package deploy

import (
	"bytes"
	"encoding/json"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"streamproxy/batcher"
	"streamproxy/internal/telemetry"
	"streamproxy/proxy"
)

// metric is what docs/metrics.md says of one.
type metric struct {
	kind   string
	labels map[string][]string // with their values, where these are known
}

// metricsOf reads the generated page, which is made from the registry's own table.
func metricsOf(t *testing.T) map[string]metric {
	t.Helper()
	var l telemetry.Labels
	for _, c := range proxy.Classes() {
		l.Classes = append(l.Classes, c.String())
	}
	for _, r := range batcher.FlushReasons() {
		l.FlushReasons = append(l.FlushReasons, r.String())
	}
	for _, limit := range proxy.Limits() {
		l.Limits = append(l.Limits, limit.String())
	}
	var page bytes.Buffer
	telemetry.WriteMarkdown(&page, l)
	all := map[string]metric{}
	row := regexp.MustCompile("(?m)^\\| `(streamproxy_[a-z_]+)` \\| (counter|gauge|histogram) \\| (.*?) \\| ")
	for _, m := range row.FindAllStringSubmatch(page.String(), -1) {
		labels := map[string][]string{"instance": nil}
		for part := range strings.SplitSeq(m[3], "; ") {
			names, values, _ := strings.Cut(part, ": ")
			for name := range strings.SplitSeq(names, ", ") {
				labels[strings.Trim(name, "`")] = strings.FieldsFunc(values, func(r rune) bool { return r == ',' || r == ' ' })
			}
		}
		all[m[1]] = metric{m[2], labels}
	}
	all["streamproxy_build_info"] = metric{"gauge", map[string][]string{"instance": nil, "version": nil, "revision": nil, "go_version": nil}}
	if len(all) < 30 {
		t.Fatalf("only %d metrics were found", len(all))
	}
	return all
}

var (
	used    = regexp.MustCompile(`(\w*\()?(streamproxy_[a-z_]+)(\{[^}]*\})?`)
	matcher = regexp.MustCompile(`(\w+)(?:=~|!=|!~|=)"([^"]*)"`)
	grouped = regexp.MustCompile(`by \(([^)]*)\)`)
)

// checkQuery expects an expression to ask for metrics and labels that exist, counters
// by their rate, histograms by what they are made of. It returns the metrics' names.
func checkQuery(t *testing.T, where, expr string, all map[string]metric) (names []string) {
	t.Helper()
	for _, pair := range []string{"()", "{}", "[]"} {
		if strings.Count(expr, pair[:1]) != strings.Count(expr, pair[1:]) {
			t.Errorf("%s: %s is not balanced in %s", where, pair, expr)
		}
	}
	labels := []string{"le"}
	for _, u := range used.FindAllStringSubmatch(expr, -1) {
		name, part := u[2], ""
		m, ok := all[name]
		for _, suffix := range []string{"_bucket", "_sum", "_count"} {
			if base, cut := strings.CutSuffix(name, suffix); cut && !ok {
				name, part = base, suffix
				m, ok = all[base]
			}
		}
		if !ok {
			t.Errorf("%s: there is no metric %s", where, u[2])
			continue
		}
		names = append(names, name)
		grows := m.kind != "gauge"
		if rated := u[1] == "rate(" || u[1] == "increase("; grows != rated || (m.kind == "histogram") != (part != "") {
			t.Errorf("%s: %s is a %s, asked for as %s%s", where, name, m.kind, u[1], u[2])
		}
		for _, l := range matcher.FindAllStringSubmatch(u[3], -1) {
			checkLabel(t, where, l[1], l[2], m)
		}
		for l := range m.labels {
			labels = append(labels, l)
		}
	}
	if len(names) == 0 {
		t.Errorf("%s asks for none of our metrics: %s", where, expr)
	}
	for _, by := range grouped.FindAllStringSubmatch(expr, -1) {
		for l := range strings.SplitSeq(by[1], ", ") {
			if !slices.Contains(labels, l) {
				t.Errorf("%s: none of its metrics has the label %s", where, l)
			}
		}
	}
	return names
}

func checkLabel(t *testing.T, where, label, want string, m metric) {
	t.Helper()
	values, ok := m.labels[label]
	if !ok {
		t.Errorf("%s: no label %s", where, label)
	}
	for v := range strings.SplitSeq(want, "|") {
		if len(values) > 0 && !slices.Contains(values, v) {
			t.Errorf("%s: %s is never %s", where, label, v)
		}
	}
}

// The checks themselves must see what is wrong.
func TestCheckQuerySeesFaults(t *testing.T) {
	all := metricsOf(t)
	for _, expr := range []string{
		`streamproxy_no_such_metric`,
		`streamproxy_upstream_errors_total > 5`,
		`rate(streamproxy_upstream_up[5m])`,
		`rate(streamproxy_batch_commands[5m])`,
		`increase(streamproxy_client_connections_total{result="refused"}[5m])`,
		`streamproxy_upstream_up{colour="red"}`,
		`sum by (colour) (streamproxy_upstream_up)`,
		`sum(streamproxy_upstream_up`,
		`up == 0`,
	} {
		probe := &testing.T{}
		checkQuery(probe, "probe", expr, all)
		if !probe.Failed() {
			t.Errorf("nothing wrong was found with %s", expr)
		}
	}
}

// Alert rules: in Prometheus's form, over metrics that exist, each with something to do.
func TestAlertRules(t *testing.T) {
	var file struct {
		Groups []struct {
			Name  string
			Rules []struct {
				Alert, Expr string
				For         duration
				Labels      struct{ Severity string }
				Annotations struct{ Summary, Description string }
			}
		}
	}
	decoder := yaml.NewDecoder(strings.NewReader(readFile(t, "deploy/prometheus/rules.yml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&file); err != nil {
		t.Fatal(err)
	}
	all := metricsOf(t)
	seen := map[string]bool{}
	for _, g := range file.Groups {
		for _, r := range g.Rules {
			if seen[r.Alert] || !strings.HasPrefix(r.Alert, "Streamproxy") {
				t.Errorf("%q is no name, or one that is taken", r.Alert)
			}
			seen[r.Alert] = true
			checkQuery(t, r.Alert, r.Expr, all)
			if !slices.Contains([]string{"critical", "warning", "info"}, r.Labels.Severity) {
				t.Errorf("%s: severity %q", r.Alert, r.Labels.Severity)
			}
			if r.Annotations.Summary == "" || r.Annotations.Description == "" {
				t.Errorf("%s does not say what it means", r.Alert)
			}
			if time.Duration(r.For) > time.Hour {
				t.Errorf("%s tells only after %v", r.Alert, time.Duration(r.For))
			}
		}
	}
	if len(seen) < 10 {
		t.Errorf("only %d rules were read", len(seen))
	}
}

// neverShown are metrics that the dashboard does without.
var neverShown = []string{"streamproxy_client_command_duration_seconds", "streamproxy_proxy_overhead_seconds"}

// The dashboard: valid JSON, every panel over metrics that exist, every metric on a
// panel, no two panels in one place.
func TestDashboard(t *testing.T) {
	var d struct {
		Title, UID string
		Panels     []struct {
			ID          int
			Type, Title string
			Description string
			GridPos     struct{ H, W, X, Y int }
			Targets     []struct{ RefID, Expr string }
		}
	}
	if err := json.Unmarshal([]byte(readFile(t, "deploy/grafana/streamproxy.json")), &d); err != nil {
		t.Fatal(err)
	}
	all := metricsOf(t)
	shown := map[string]bool{}
	ids, cells := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.Title == "" {
			t.Errorf("panel %d %q: no title, or an id that is taken", p.ID, p.Title)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := cells[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s and %s overlap, or lie outside", p.Title, other)
				}
				cells[[2]int{x, y}] = p.Title
			}
		}
		if p.Type != "row" && (len(p.Targets) == 0 || p.Description == "") {
			t.Errorf("%s shows nothing, or does not say what", p.Title)
		}
		for _, target := range p.Targets {
			for _, name := range checkQuery(t, p.Title, target.Expr, all) {
				shown[name] = true
			}
		}
	}
	for name := range all {
		if shown[name] == slices.Contains(neverShown, name) {
			t.Errorf("%s is on no panel, or is said to be on none", name)
		}
	}
}
