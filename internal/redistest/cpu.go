package redistest

import (
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"
)

// tick is the unit of /proc/PID/stat. Linux reports USER_HZ there, which is 100
// on every architecture Go runs on.
const tick = 10 * time.Millisecond

// Positions in /proc/PID/stat, counted behind the parenthesised process name.
const (
	statUser   = 11
	statSystem = 12
)

// ProcessCPU returns the user and system time that a process, its threads
// included, has used so far.
func ProcessCPU(pid int) (time.Duration, error) {
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseCPU(string(stat))
}

// parseCPU looks behind the last parenthesis: the name may hold anything.
func parseCPU(stat string) (time.Duration, error) {
	fields := strings.Fields(stat[strings.LastIndexByte(stat, ')')+1:])
	var ticks time.Duration
	for _, i := range []int{statUser, statSystem} {
		if i >= len(fields) {
			return 0, fmt.Errorf("process statistics: only %d fields", len(fields))
		}
		n, err := strconv.ParseInt(fields[i], 10, 64)
		if err != nil {
			return 0, fmt.Errorf("process statistics: %w", err)
		}
		ticks += time.Duration(n)
	}
	return ticks * tick, nil
}
