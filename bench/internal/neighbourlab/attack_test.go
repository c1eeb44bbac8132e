package neighbourlab

import (
	"bytes"
	"strings"
	"testing"
)

func TestAttacksAreWellFormed(t *testing.T) {
	names := map[string]bool{Quiet: true}
	for _, a := range Attacks() {
		if err := a.validate(); err != nil {
			t.Error(err)
		}
		if names[a.Name] || strings.ContainsAny(a.Name, ", |") || strings.ContainsAny(a.What+a.Promise, "|") {
			t.Errorf("%q: a name that another has, or that no list and no table can hold", a.Name)
		}
		names[a.Name] = true
		if a.Prepare != nil {
			if n, rest, err := count(a.Prepare(0, 0)); n == 0 || rest > 0 || err != nil {
				t.Errorf("%s: prepare has %d commands and %d bytes more, %v", a.Name, n, rest, err)
			}
		}
		for i := range a.Roles {
			commands(t, a.Name, &a.Roles[i])
		}
	}
}

// commands holds what a role sends against what it says of that.
func commands(t *testing.T, name string, r *Role) {
	t.Helper()
	for connection := range 3 {
		if r.Once != nil {
			n, rest, err := count(r.Once(connection, connection))
			if err != nil || (rest > 0) != r.CutOff || n == 0 && !r.CutOff {
				t.Errorf("%s: once %d commands and %d bytes more, %v; cut off: %v", name, n, rest, err, r.CutOff)
			}
		}
		if r.Repeat != nil {
			if n, rest, err := count(r.Repeat(connection, connection)); err != nil || n == 0 || rest > 0 {
				t.Errorf("%s: repeats %d commands and %d bytes more, %v", name, n, rest, err)
			}
		}
	}
}

// What no attacker reads stays in the server's memory: it must fit into that of a small machine.
func TestPayloadsAreBounded(t *testing.T) {
	for _, a := range Attacks() {
		total := 0
		for _, r := range a.Roles {
			if r.Once != nil && r.CutOff {
				total += r.Connections * len(r.Once(0, 0))
			}
			if r.Deaf && r.Repeat != nil {
				t.Errorf("%s: who does not read repeats without end", a.Name)
			}
		}
		if total > 200<<20 {
			t.Errorf("%s: %d MB are under way", a.Name, total>>20)
		}
	}
}

func TestEverNewNamesAreNew(t *testing.T) {
	for _, name := range []string{"scripts", "ever-new-streams", "ever-new-consumers"} {
		a, err := Find(name)
		if err != nil {
			t.Fatal(err)
		}
		if repeat := a.Roles[0].Repeat; bytes.Equal(repeat(0, 1), repeat(0, 2)) {
			t.Errorf("%s: the second turn sends what the first did", name)
		}
	}
	if _, err := Find("none of these"); err == nil {
		t.Error("an attack that there is not was found")
	}
}

func TestValidateNamesEveryFault(t *testing.T) {
	wrong := Attack{Name: "wrong", What: "x", Promise: "y", Roles: []Role{
		{Connections: 0}, {Connections: 1, Ends: Resets}, {Connections: 1, Await: true}, {Connections: 1, CutOff: true},
	}}
	err := wrong.validate()
	for _, want := range []string{"0 connections", "a connection that stays", "who waits for a reply", "what is cut off"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v does not say %q", err, want)
		}
	}
	if err := (&Attack{}).validate(); err == nil || !strings.Contains(err.Error(), "nobody attacks") {
		t.Errorf("an empty attack: %v", err)
	}
}
