package config

import (
	"testing"
	"testing/fstest"
)

// files makes a file system from path, text, path, text, ...
func files(pairs ...string) fstest.MapFS {
	m := fstest.MapFS{}
	for i := 0; i < len(pairs); i += 2 {
		m[pairs[i]] = &fstest.MapFile{Data: []byte(pairs[i+1])}
	}
	return m
}

func TestReadMachine(t *testing.T) {
	const cgroup = "proc/self/cgroup"
	for _, tt := range []struct {
		name string
		root fstest.MapFS
		want Machine
	}{
		{"no cgroup at all", files(), Machine{CPUs: 64}},
		{"v2 without limits", files(cgroup, "0::/\n",
			"sys/fs/cgroup/memory.max", "max\n", "sys/fs/cgroup/cpu.max", "max 100000\n"), Machine{CPUs: 64}},
		{"v2 in a container's own namespace", files(cgroup, "0::/\n",
			"sys/fs/cgroup/memory.max", "536870912\n", "sys/fs/cgroup/cpu.max", "100000 100000\n"), Machine{1, 512 << 20}},
		{"v2 half a processor", files(cgroup, "0::/\n",
			"sys/fs/cgroup/cpu.max", "50000 100000\n"), Machine{CPUs: 0.5}},
		{"v2 nested: every ancestor limits", files(cgroup, "0::/kubepods/pod1/c1\n",
			"sys/fs/cgroup/kubepods/pod1/c1/memory.max", "max\n",
			"sys/fs/cgroup/kubepods/pod1/memory.max", "1048576\n",
			"sys/fs/cgroup/kubepods/memory.max", "8388608\n",
			"sys/fs/cgroup/kubepods/pod1/c1/cpu.max", "300000 100000\n",
			"sys/fs/cgroup/kubepods/cpu.max", "800000 100000\n"), Machine{3, 1 << 20}},
		{"v2 outside of the namespace's root", files(cgroup, "0::/../../other\n",
			"sys/fs/cgroup/memory.max", "4096\n"), Machine{64, 4096}},
		{"v1 below the mount", files(cgroup, "5:memory:/docker/a\n4:cpu,cpuacct:/docker/a\n",
			"sys/fs/cgroup/memory/docker/a/memory.limit_in_bytes", "268435456\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_quota_us", "150000\n",
			"sys/fs/cgroup/cpu,cpuacct/docker/a/cpu.cfs_period_us", "100000\n"), Machine{1.5, 256 << 20}},
		{"v1 seen from inside a container", files(cgroup, "5:memory:/docker/a\n4:cpuacct,cpu:/docker/a\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "268435456\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "200000\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"), Machine{2, 256 << 20}},
		{"v1 without limits", files(cgroup, "5:memory:/\n4:cpu:/\n",
			"sys/fs/cgroup/memory/memory.limit_in_bytes", "9223372036854771712\n",
			"sys/fs/cgroup/cpu/cpu.cfs_quota_us", "-1\n",
			"sys/fs/cgroup/cpu/cpu.cfs_period_us", "100000\n"), Machine{CPUs: 64}},
		{"hybrid: memory v1, the rest v2", files(cgroup, "0::/a\n5:memory:/a\n1:name=systemd:/a\n",
			"sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n",
			"sys/fs/cgroup/unified/a/cpu.max", "400000 100000\n"), Machine{4, 1000}},
		{"a quota above the processors", files(cgroup, "0::/\n",
			"sys/fs/cgroup/cpu.max", "9900000 100000\n"), Machine{CPUs: 64}},
		{"rubbish", files(cgroup, "x\n0::/\n:::\n\n", "sys/fs/cgroup/memory.max", "\n",
			"sys/fs/cgroup/cpu.max", "1 0\n"), Machine{CPUs: 64}},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if got := ReadMachine(tt.root, 64); got != tt.want {
				t.Errorf("got %+v, want %+v", got, tt.want)
			}
		})
	}
}

func TestAutomaticValues(t *testing.T) {
	for _, tt := range []struct {
		m       Machine
		threads int
		memory  int64
	}{
		{Machine{CPUs: 0.25}, 1, 0},
		{Machine{CPUs: 4, Memory: 400}, 1, 200},
		{Machine{CPUs: 4.1, Memory: 512 << 20}, 2, 256 << 20},
		{Machine{CPUs: 64, Memory: 1<<63 - 1}, 2, (1<<63 - 1) / 2},
	} {
		if got := AutoThreads(tt.m); got != tt.threads {
			t.Errorf("AutoThreads(%+v) = %d, want %d", tt.m, got, tt.threads)
		}
		if got := AutoMemoryLimit(tt.m); got != tt.memory {
			t.Errorf("AutoMemoryLimit(%+v) = %d, want %d", tt.m, got, tt.memory)
		}
	}
}

// The files are those of the group that limits most.
func TestReadMemoryFiles(t *testing.T) {
	const cgroup = "proc/self/cgroup"
	v2 := files(cgroup, "0::/a/b\n",
		"sys/fs/cgroup/a/b/memory.max", "max\n", "sys/fs/cgroup/a/memory.max", "1000\n", "sys/fs/cgroup/memory.max", "2000\n")
	got, ok := ReadMemoryFiles(v2)
	const a = "sys/fs/cgroup/a/"
	if want := (MemoryFiles{a + "memory.current", a + "memory.stat", a + "cgroup.procs"}); !ok || got != want {
		t.Errorf("version 2: %+v, %v", got, ok)
	}
	v1 := files(cgroup, "5:memory:/a\n", "sys/fs/cgroup/memory/a/memory.limit_in_bytes", "1000\n")
	got, ok = ReadMemoryFiles(v1)
	const b = "sys/fs/cgroup/memory/a/"
	if want := (MemoryFiles{b + "memory.usage_in_bytes", b + "memory.stat", b + "cgroup.procs"}); !ok || got != want {
		t.Errorf("version 1: %+v, %v", got, ok)
	}
	if got, ok = ReadMemoryFiles(files()); ok {
		t.Errorf("nowhere: %+v", got)
	}
}
