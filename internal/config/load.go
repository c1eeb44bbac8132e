package config

import (
	"flag"
	"fmt"
	"slices"
	"strings"

	"streamproxy/internal/upstream"
)

// ErrHelp is returned by Load when the arguments ask for help.
var ErrHelp = flag.ErrHelp

// Loaded is a configuration and what the operator should know about it.
type Loaded struct {
	Config
	// Warnings are sentences for the log; none of them keeps the process from running.
	Warnings []string
	// Changed lists the flags that differ from their default, without secrets.
	Changed []Setting
}

// Setting is a flag and its value in the flag's own syntax, without secrets.
type Setting struct{ Name, Value string }

// Load reads flags from args and variables from environ (as os.Environ has them): a
// flag wins over a variable, a variable over the default; a variable that is empty or
// that a flag overrides is not looked at. own has the flags of the subcommand that
// calls, or is nil. The error is ErrHelp, or Faults with everything that is
// wrong.
func Load(args, environ []string, m Machine, own *flag.FlagSet) (*Loaded, error) {
	l := &loader{out: &Loaded{Config: Default(m)}, from: map[string]source{}}
	l.flags = flags(&l.out.Config)
	if err := l.parseArgs(args, own); err != nil {
		return nil, err
	}
	l.parseEnv(environ)
	l.validate()
	if err := l.faults.orNil(); err != nil {
		return nil, err
	}
	l.out.resolve(m)
	l.out.Warnings = append(l.out.Warnings, l.secretWarnings()...)
	l.out.Warnings = append(l.out.Warnings, l.out.tlsWarnings()...)
	l.out.Changed = changed(l.flags, m)
	return l.out, nil
}

// source is where a flag's value came from.
type source uint8

const (
	fromDefault source = iota
	fromArgs
	fromEnv
)

// loader is the state of one Load.
type loader struct {
	out    *Loaded
	flags  []Flag
	from   map[string]source
	unread []string // flags whose text could not be read
	faults Faults
}

// parseArgs splits the arguments into flags and values: --name value, --name=value,
// with one dash or two. The flag package is not asked to, because it stops at the
// first fault; it keeps the flags of the subcommand.
func (l *loader) parseArgs(args []string, own *flag.FlagSet) error {
	for len(args) > 0 {
		arg := args[0]
		args = args[1:]
		name, value, given := strings.Cut(flagName(arg), "=")
		f, known := l.find(name)
		switch {
		case name == "h" || name == "help":
			return ErrHelp
		case name == "":
			l.faults = append(l.faults, Fault{Name: "arguments", Value: HideUserinfo(arg), Problem: "is not a flag"})
			continue
		case !known && own != nil && own.Lookup(name) != nil:
			args = l.setOwn(own.Lookup(name), value, given, args)
			continue
		case !known:
			l.faults = append(l.faults, Fault{Name: "--" + name, Problem: "is not a flag of this command"})
			args = skipValue(given, args)
			continue
		}
		switch {
		case given:
		case f.Alone():
			value = "true"
		case len(args) == 0:
			l.miss("--"+name, f.Bound())
			return nil
		default:
			value, args = args[0], args[1:]
		}
		l.setArg(f, value)
	}
	return nil
}

// flagName strips the dashes; what is not a flag has no name.
func flagName(arg string) string {
	rest, ok := strings.CutPrefix(arg, "-")
	if !ok {
		return ""
	}
	return strings.TrimPrefix(rest, "-")
}

// skipValue drops what is probably the value of an unknown flag, lest it be reported
// once more.
func skipValue(given bool, args []string) []string {
	if !given && len(args) > 0 && !strings.HasPrefix(args[0], "-") {
		return args[1:]
	}
	return args
}

func (l *loader) find(name string) (Flag, bool) {
	i := slices.IndexFunc(l.flags, func(f Flag) bool { return f.Name == name })
	if i < 0 {
		return Flag{}, false
	}
	return l.flags[i], true
}

func (l *loader) miss(name, bound string) {
	l.faults = append(l.faults, Fault{Name: name, Problem: "needs a value", Bound: bound})
}

// setOwn sets a flag of the subcommand and returns the arguments behind it.
func (l *loader) setOwn(f *flag.Flag, value string, given bool, args []string) []string {
	b, ok := f.Value.(interface{ IsBoolFlag() bool })
	switch {
	case given:
	case ok && b.IsBoolFlag():
		value = "true"
	case len(args) == 0:
		l.miss("--"+f.Name, "")
		return nil
	default:
		value, args = args[0], args[1:]
	}
	if err := f.Value.Set(value); err != nil {
		l.faults = append(l.faults, Fault{Name: "--" + f.Name, Value: value, Problem: "is no value of this flag", Err: err})
	}
	return args
}

// setArg sets f from an argument. A list grows with each time its flag is given.
func (l *loader) setArg(f Flag, text string) {
	if list, ok := f.field.(*setting[[]string]); ok && l.from[f.Name] == fromArgs && text != "" {
		text = list.format(append(slices.Clone(*list.at), text))
	}
	l.from[f.Name] = fromArgs
	l.set(f, text)
}

// parseEnv reads the variables of flags that no argument has set.
func (l *loader) parseEnv(environ []string) {
	byEnv := map[string]Flag{}
	for _, f := range l.flags {
		byEnv[f.Env()] = f
	}
	for _, entry := range slices.Sorted(slices.Values(environ)) {
		name, text, _ := strings.Cut(entry, "=")
		f, known := byEnv[name]
		switch {
		case !known && strings.HasPrefix(name, EnvPrefix) && !serviceLink(name):
			l.out.Warnings = append(l.out.Warnings, fmt.Sprintf("environment variable %s is not one of ours: a typing error?", name))
		case known && text != "" && l.from[f.Name] == fromDefault:
			l.from[f.Name] = fromEnv
			l.set(f, text)
		}
	}
}

// serviceLink recognises the variables that Kubernetes and Docker links set in every
// container beside a service called streamproxy.
func serviceLink(name string) bool {
	rest := strings.TrimPrefix(name, EnvPrefix)
	return rest == "PORT" || rest == "NAME" || strings.HasPrefix(rest, "PORT_") || strings.HasPrefix(rest, "SERVICE_") || strings.HasPrefix(rest, "ENV_")
}

// set parses text and notes a fault instead of returning it.
func (l *loader) set(f Flag, text string) {
	if err := f.field.Set(text); err != nil {
		l.unread = append(l.unread, f.Name)
		l.faults = append(l.faults, l.locate(newFault(f, text, err), f))
	}
}

// validate adds the faults of values that could be read, and orders all of them as
// the help has the flags.
func (l *loader) validate() {
	rank := map[string]int{}
	for i, f := range l.flags {
		rank["--"+f.Name] = i + 1
	}
	for _, fault := range l.out.faults(l.unread) {
		l.faults = append(l.faults, l.locate(fault, l.flags[rank[fault.Name]-1]))
	}
	slices.SortStableFunc(l.faults, func(a, b Fault) int {
		nameA, _, _ := strings.Cut(a.Name, " ")
		nameB, _, _ := strings.Cut(b.Name, " ")
		return rank[nameA] - rank[nameB]
	})
}

// locate adds the variable to the name of a fault whose value came from there.
func (l *loader) locate(fault Fault, f Flag) Fault {
	if l.from[f.Name] == fromEnv {
		fault.Name += " (from " + f.Env() + ")"
	}
	return fault
}

// secretWarnings warns of a password that others can read in the process list.
func (l *loader) secretWarnings() []string {
	t, err := upstream.Parse(l.out.Upstream)
	if err != nil || t.Password == nil {
		return nil
	}
	where := "the arguments, where every user of this machine can read it"
	if l.from["upstream"] == fromEnv {
		where = "the environment, which child processes and crash reports inherit"
	}
	return []string{"--upstream has a password in " + where + "; use --upstream-password-file"}
}

// changed compares with the defaults.
func changed(now []Flag, m Machine) []Setting {
	c := Default(m)
	var list []Setting
	for i, d := range flags(&c) {
		if now[i].field.String() != d.field.String() {
			list = append(list, Setting{now[i].Name, now[i].Text()})
		}
	}
	return list
}
