//go:build faults

package faults

import (
	"flag"
	"fmt"
	"os"
	"testing"
	"time"
)

var (
	seedFlag    = flag.Uint64("seed", 1, "the first run's seed, the same faults each time; 0: by the clock")
	runsFlag    = flag.Int("runs", 0, "how many runs TestLab makes; 0: the short form")
	timeFlag    = flag.Duration("time", 0, "how long a run of TestLab or TestSoak breaks things")
	clientsFlag = flag.Int("clients", 0, "clients of a run of TestLab or TestSoak")
	gapFlag     = flag.Duration("gap", 0, "time between two faults, on average")
	onlyFlag    = flag.String("only", "", "the faults to inject, separated by commas")
	recordFlag  = flag.String("record", "", "append what each run found to this file")
	raceFlag    = flag.Bool("proxyrace", false, "build the proxy with the race detector in the long form of TestLab")
)

// binaries is where programs are built.
var binaries string

func TestMain(m *testing.M) {
	os.Exit(run(m))
}

func run(m *testing.M) int {
	flag.Parse()
	folder, err := os.MkdirTemp("", "faultlab")
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		return 1
	}
	defer os.RemoveAll(folder)
	binaries = folder
	return m.Run()
}

// firstSeed is the seed asked for, or one of the clock's.
func firstSeed() uint64 {
	if *seedFlag != 0 {
		return *seedFlag
	}
	return uint64(time.Now().UnixMilli())
}

// or is a flag's value, or a default.
func or[T comparable](value, otherwise T) T {
	var none T
	if value == none {
		return otherwise
	}
	return value
}
