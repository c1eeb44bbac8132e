package deploy

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"
)

// kustomization is what the tests read of one; whatever else stands there is a fault.
type kustomization struct {
	APIVersion string `yaml:"apiVersion"`
	Kind       string
	Resources  []string
	Components []string
	Patches    []struct {
		Path   string
		Target struct{ Kind string }
	}
	ConfigMapGenerator []struct {
		Name     string
		Literals []string
	} `yaml:"configMapGenerator"`
	Images []struct {
		Name   string
		NewTag string `yaml:"newTag"`
	}
}

func readKustomization(t *testing.T, folder string) (k kustomization) {
	t.Helper()
	decoder := yaml.NewDecoder(strings.NewReader(readFile(t, folder+"/kustomization.yaml")))
	decoder.KnownFields(true)
	if err := decoder.Decode(&k); err != nil {
		t.Fatal(err)
	}
	for _, path := range slices.Concat(k.Resources, k.Components) {
		if _, err := os.Stat(filepath.Join(root, folder, path)); err != nil {
			t.Errorf("%s: %v", folder, err)
		}
	}
	return k
}

// envSource is a variable whose value comes from a ConfigMap.
type envSource struct {
	Name      string
	ValueFrom struct {
		ConfigMapKeyRef struct{ Name, Key string } `yaml:"configMapKeyRef"`
	} `yaml:"valueFrom"`
}

// The component is the sidecar of the manifest that is shipped beside it, but for where it finds the
// server; and the example gives it that.
func TestKustomizeComponent(t *testing.T) {
	const component, example = "deploy/kustomize/component", "deploy/kustomize/example"
	c := readKustomization(t, component)
	if c.Kind != "Component" || len(c.Patches) != 1 || c.Patches[0].Target.Kind != "Deployment" {
		t.Fatalf("want a component that patches Deployments: %+v", c)
	}
	type whole struct {
		Spec struct {
			Template struct {
				Spec struct {
					TerminationGracePeriodSeconds int              `yaml:"terminationGracePeriodSeconds"`
					InitContainers                []map[string]any `yaml:"initContainers"`
				}
			}
		}
	}
	var patch, manifest whole
	for name, into := range map[string]*whole{component + "/" + c.Patches[0].Path: &patch, "deploy/kubernetes/sidecar.yaml": &manifest} {
		if err := yaml.Unmarshal([]byte(readFile(t, name)), into); err != nil {
			t.Fatal(err)
		}
	}
	got, want := patch.Spec.Template.Spec, manifest.Spec.Template.Spec
	if got.TerminationGracePeriodSeconds != want.TerminationGracePeriodSeconds || len(got.InitContainers) != 1 {
		t.Fatalf("the patch has %+v, the manifest %+v", got, want)
	}
	px, like := got.InitContainers[0], want.InitContainers[0]
	var env []envSource
	text, _ := yaml.Marshal(px["env"])
	if err := yaml.Unmarshal(text, &env); err != nil || len(env) != 1 || env[0].Name != "STREAMPROXY_UPSTREAM" {
		t.Fatalf("the server comes from %s, %v", text, err)
	}
	delete(px, "env")
	like["args"] = slices.DeleteFunc(like["args"].([]any), func(a any) bool { return strings.HasPrefix(a.(string), "--upstream=") })
	a, _ := yaml.Marshal(px)
	b, _ := yaml.Marshal(like)
	if string(a) != string(b) {
		t.Errorf("the component's sidecar differs from the manifest's:\n%s\n%s", a, b)
	}

	e, ref := readKustomization(t, example), env[0].ValueFrom.ConfigMapKeyRef
	if len(e.ConfigMapGenerator) != 1 || e.ConfigMapGenerator[0].Name != ref.Name || !strings.HasPrefix(e.ConfigMapGenerator[0].Literals[0], ref.Key+"=redis://") {
		t.Errorf("the example generates %+v, the component reads %+v", e.ConfigMapGenerator, ref)
	}
	image, _, _ := strings.Cut(px["image"].(string), ":")
	if !slices.Contains(e.Components, "../component") || e.Images[0].Name != image {
		t.Errorf("the example does not use the component: %+v", e)
	}
}

// Where kubectl is installed, it builds the example, and what comes out works like the manifest.
func TestKustomizeBuilds(t *testing.T) {
	kubectl, err := exec.LookPath("kubectl")
	if err != nil {
		t.Log("kubectl is not installed: the parts alone are tested, above")
		return
	}
	out, err := exec.Command(kubectl, "kustomize", root+"deploy/kustomize/example").Output()
	if err != nil {
		t.Fatal(err)
	}
	for doc := range strings.SplitSeq(string(out), "\n---\n") {
		if !strings.Contains(doc, "kind: Deployment") {
			continue
		}
		var d deployment
		if err := yaml.Unmarshal([]byte(doc), &d); err != nil {
			t.Fatal(err)
		}
		spec := d.Spec.Template.Spec
		if len(spec.InitContainers) != 1 || len(spec.Containers) != 1 {
			t.Fatalf("want one sidecar and one application:\n%s", doc)
		}
		loaded := checkSidecar(t, spec, spec.InitContainers[0], spec.Containers[0])
		if left := time.Duration(spec.TerminationGracePeriodSeconds)*time.Second - loaded.DrainTimeout; left < 30*time.Second {
			t.Errorf("the application has %v to stop", left)
		}
		if !strings.Contains(doc, "name: streamproxy-") { // a generated name has a hash behind it
			t.Errorf("the server's address is not that of the generated ConfigMap:\n%s", doc)
		}
		return
	}
	t.Errorf("no Deployment:\n%s", out)
}
