package proxy

import "testing"

func TestClassNames(t *testing.T) {
	seen := map[string]bool{}
	for _, c := range Classes() {
		name := c.String()
		if name == "" || seen[name] {
			t.Errorf("class %d: name %q is empty or not its own", c, name)
		}
		seen[name] = true
	}
	if len(seen) != 11 {
		t.Errorf("%d classes, want 11", len(seen))
	}
	var zero Route
	if zero.Class != ClassUnknown {
		t.Errorf("a route nobody set is %s", zero.Class)
	}
}
