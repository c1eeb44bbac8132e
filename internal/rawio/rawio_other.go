//go:build !linux

package rawio

import "syscall"

// Read reads from a non-blocking descriptor into b, which must not be empty.
func Read(fd int, b []byte) (int, error) { return syscall.Read(fd, b) }

// Write writes b, which must not be empty, to a non-blocking descriptor.
func Write(fd int, b []byte) (int, error) { return syscall.Write(fd, b) }
