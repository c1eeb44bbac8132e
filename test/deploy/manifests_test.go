package deploy

import (
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// deployment is what the tests read of a manifest under deploy/kubernetes.
type deployment struct {
	Kind string
	Spec struct {
		Selector struct {
			MatchLabels map[string]string `yaml:"matchLabels"`
		}
		Template struct {
			Metadata struct{ Labels map[string]string }
			Spec     podSpec
		}
	}
}

func readDeployment(t *testing.T, name string) podSpec {
	t.Helper()
	var d deployment
	if err := yaml.Unmarshal([]byte(readFile(t, "deploy/kubernetes/"+name)), &d); err != nil {
		t.Fatal(err)
	}
	labels := d.Spec.Template.Metadata.Labels
	for k, v := range d.Spec.Selector.MatchLabels {
		if labels[k] != v {
			t.Errorf("%s: the selector wants %s=%s, the pod has %q", name, k, v, labels)
		}
	}
	if d.Kind != "Deployment" || len(d.Spec.Selector.MatchLabels) == 0 {
		t.Fatalf("%s is no deployment: %+v", name, d)
	}
	return d.Spec.Template.Spec
}

func TestNativeSidecar(t *testing.T) {
	spec := readDeployment(t, "sidecar.yaml")
	if len(spec.InitContainers) != 1 || len(spec.Containers) != 1 {
		t.Fatalf("want one sidecar and one application: %+v", spec)
	}
	sidecar := spec.InitContainers[0]
	if sidecar.RestartPolicy != "Always" {
		t.Error("an init container that does not always restart is no sidecar")
	}
	loaded := checkSidecar(t, spec, sidecar, spec.Containers[0])
	// The application stops first, within the same grace period.
	if left := time.Duration(spec.TerminationGracePeriodSeconds)*time.Second - loaded.DrainTimeout; left < 30*time.Second {
		t.Errorf("the application has %v to stop", left)
	}
}

// Beside the application both are told to stop at the same time: the proxy must not go
// before the application can have ended.
func TestPlainContainer(t *testing.T) {
	spec := readDeployment(t, "container.yaml")
	if len(spec.InitContainers) != 0 || len(spec.Containers) != 2 {
		t.Fatalf("want two containers: %+v", spec)
	}
	px := spec.Containers[0]
	if px.RestartPolicy != "" {
		t.Error("only native sidecars have a restart policy of their own")
	}
	if loaded := checkSidecar(t, spec, px, spec.Containers[1]); loaded.DrainMin < 15*time.Second {
		t.Errorf("the proxy may be gone after %v of silence", loaded.DrainMin)
	}
}
