package config

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// Machine is what the process may use of the computer it runs on.
type Machine struct {
	// CPUs is the number of processors, or the cgroup's quota where that is smaller
	// (it may be a fraction).
	CPUs float64
	// Memory is the cgroup's memory limit in bytes; 0 when there is none.
	Memory int64
}

// AutoThreads is the number of threads that run Go code when --threads is auto.
// A second thread costs a sidecar about a quarter more CPU per command, because
// threads wake each other; only a large machine has that to give. The benchmarks
// decide the step, which is why it is one function.
func AutoThreads(m Machine) int {
	if m.CPUs <= 4 {
		return 1
	}
	return 2
}

// AutoMemoryLimit is the limit in force when --memory-limit is auto: half of the
// cgroup's limit in bytes, or 0 (none) without one. The other half is for what clients
// cost beside their buffers.
func AutoMemoryLimit(m Machine) int64 {
	return m.Memory / 2
}

// MemoryFiles are where the cgroup tells of the memory that its limit is for, below the file
// system's root.
type MemoryFiles struct {
	// Usage holds the bytes in use, Stat what they are used for, Members the processes.
	Usage, Stat, Members string
}

// ReadMemoryFiles returns those of the cgroup whose limit is Machine.Memory; false where
// there is none.
func ReadMemoryFiles(root fs.FS) (files MemoryFiles, ok bool) {
	least := int64(math.MaxInt64)
	for _, g := range memberships(root) {
		for _, dir := range g.dirs() {
			if n := memoryLimit(root, dir, g.version); n > 0 && n < least {
				least, ok = n, true
				files = MemoryFiles{path.Join(dir, "memory.current"), path.Join(dir, "memory.stat"), path.Join(dir, "cgroup.procs")}
				if g.version == 1 {
					files.Usage = path.Join(dir, "memory.usage_in_bytes")
				}
			}
		}
	}
	return files, ok
}

// ReadMachine reads the cgroup limits of the calling process from root, the file
// system's root, and takes processors as the CPU count where no quota is smaller.
// Both cgroup versions are understood, and mixtures of them. A file that is missing
// or unreadable sets no limit: a wrong guess must not keep the proxy from starting.
func ReadMachine(root fs.FS, processors int) Machine {
	m := Machine{CPUs: float64(processors)}
	for _, g := range memberships(root) {
		for _, dir := range g.dirs() {
			if n := memoryLimit(root, dir, g.version); n > 0 && (m.Memory == 0 || n < m.Memory) {
				m.Memory = n
			}
			if q := cpuQuota(root, dir, g.version); q > 0 && q < m.CPUs {
				m.CPUs = q
			}
		}
	}
	return m
}

// membership is the process's place in one cgroup hierarchy.
type membership struct {
	version int
	mount   string // below the root of the file system
	path    string // of the group, below the mount; begins with a slash
}

// dirs lists the group's directory and its ancestors': each of them may limit. In a
// container whose mount shows its own group as the top, the path named by the kernel
// does not exist below the mount; the walk up still ends at the right directory.
func (g membership) dirs() []string {
	dirs := []string{g.mount}
	for p := path.Clean("/" + g.path); p != "/"; p = path.Dir(p) {
		dirs = append(dirs, g.mount+p)
	}
	return dirs
}

// memberships reads /proc/self/cgroup, whose lines are id:controllers:path. Version
// 2 has one line with no controllers. The mounts are where systemd and every
// container runtime put them.
func memberships(root fs.FS) []membership {
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return nil
	}
	var all []membership
	for line := range strings.Lines(string(text)) {
		f := strings.SplitN(strings.TrimSpace(line), ":", 3)
		switch {
		case len(f) != 3:
		case f[1] == "":
			all = append(all,
				membership{2, "sys/fs/cgroup", f[2]},
				membership{2, "sys/fs/cgroup/unified", f[2]})
		default:
			for c := range strings.SplitSeq(f[1], ",") {
				if c == "cpu" || c == "memory" {
					all = append(all,
						membership{1, "sys/fs/cgroup/" + f[1], f[2]},
						membership{1, "sys/fs/cgroup/" + c, f[2]})
				}
			}
		}
	}
	return all
}

// memoryLimit reads one directory's limit; 0 is none.
func memoryLimit(root fs.FS, dir string, version int) int64 {
	name := "memory.max"
	if version == 1 {
		name = "memory.limit_in_bytes"
	}
	n, err := strconv.ParseInt(firstField(root, dir, name), 10, 64)
	// Version 1 has no word for "unlimited": it shows the largest multiple of a page.
	if err != nil || n <= 0 || n > math.MaxInt64/2 {
		return 0
	}
	return n
}

// cpuQuota reads one directory's quota in processors; 0 is none.
func cpuQuota(root fs.FS, dir string, version int) float64 {
	var quota, period string
	if version == 2 {
		text, _ := fs.ReadFile(root, path.Join(dir, "cpu.max"))
		f := strings.Fields(string(text))
		if len(f) != 2 {
			return 0
		}
		quota, period = f[0], f[1]
	} else {
		quota = firstField(root, dir, "cpu.cfs_quota_us")
		period = firstField(root, dir, "cpu.cfs_period_us")
	}
	q, errQ := strconv.ParseFloat(quota, 64)
	p, errP := strconv.ParseFloat(period, 64)
	// The words for "no quota" are max (version 2) and -1 (version 1).
	if errQ != nil || errP != nil || q <= 0 || p <= 0 {
		return 0
	}
	return q / p
}

// firstField returns the first word of a file, or "" where there is none.
func firstField(root fs.FS, dir, name string) string {
	text, _ := fs.ReadFile(root, path.Join(dir, name))
	f := strings.Fields(string(text))
	if len(f) == 0 {
		return ""
	}
	return f[0]
}
