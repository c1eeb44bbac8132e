package config

import (
	"regexp"
	"strings"
	"testing"
)

// Every flag must be usable, explained and shown everywhere.
func TestTableIsComplete(t *testing.T) {
	c := Default(testMachine)
	var help, effective, markdown strings.Builder
	WriteHelp(&help, testMachine)
	c.WriteEffective(&effective)
	WriteMarkdown(&markdown)
	kebab := regexp.MustCompile(`^[a-z]+(-[a-z]+)*$`)
	seen := map[string]bool{}
	for _, f := range flags(&c) {
		if !kebab.MatchString(f.Name) || seen[f.Name] || f.Arg == "" || !strings.HasSuffix(f.Help, ".") {
			t.Errorf("--%s: name, placeholder or help is not as it should be", f.Name)
		}
		seen[f.Name] = true
		before := f.field.String()
		if err := f.field.Set(before); err != nil || f.field.String() != before {
			t.Errorf("--%s: its default %q does not read back: %q, %v", f.Name, before, f.field.String(), err)
		}
		for name, text := range map[string]string{"help": help.String(), "docs": markdown.String()} {
			if !strings.Contains(text, "--"+f.Name) || !strings.Contains(text, f.Env()) {
				t.Errorf("--%s is missing in %s", f.Name, name)
			}
		}
		if !strings.Contains(effective.String(), "--"+f.Name+"=") {
			t.Errorf("--%s is missing in the effective configuration", f.Name)
		}
	}
	for line := range strings.Lines(help.String()) {
		if len(line) > 100 {
			t.Errorf("help line too long: %s", line)
		}
	}
}

func TestDefaultIsValid(t *testing.T) {
	c := Default(testMachine)
	if err := c.Validate(); err != nil {
		t.Error(err)
	}
}

func TestEffectiveReadsBack(t *testing.T) {
	l, err := Load([]string{"--listen=:1", "--listen=:2", "--shared-commands=A,B", "--threads=7"}, nil, testMachine, nil)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	l.WriteEffective(&out)
	if !strings.Contains(out.String(), "--memory-limit=auto                      # 256mb here\n") {
		t.Errorf("the automatic value is not shown:\n%s", out.String())
	}
	var args []string
	for line := range strings.Lines(out.String()) {
		arg, _, _ := strings.Cut(strings.TrimSpace(line), " ")
		args = append(args, arg)
	}
	again, err := Load(args, nil, testMachine, nil)
	if err != nil {
		t.Fatal(err)
	}
	var twice strings.Builder
	again.WriteEffective(&twice)
	if twice.String() != out.String() {
		t.Errorf("got\n%swant\n%s", twice.String(), out.String())
	}
}
