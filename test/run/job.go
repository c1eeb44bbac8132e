package main

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"time"
)

// job is what the stages share: where they print, what they were asked, what they counted.
type job struct {
	out      io.Writer
	quick    bool
	fuzzTime string // as go test -fuzztime takes it
	tally    tally  // of the stage under way
}

// exec runs a command with its output on the job's and no standard input.
func (j *job) exec(ctx context.Context, name string, args ...string) error {
	return j.execEnv(ctx, nil, name, args...)
}

func (j *job) execEnv(ctx context.Context, env []string, name string, args ...string) error {
	cmd := command(ctx, env, name, args...)
	cmd.Stdout, cmd.Stderr = j.out, j.out
	if err := cmd.Run(); err != nil {
		return fmt.Errorf("%s %s: %w", name, strings.Join(args, " "), err)
	}
	return nil
}

// output runs a command and returns what it wrote to standard output.
func (j *job) output(ctx context.Context, name string, args ...string) (string, error) {
	cmd := command(ctx, nil, name, args...)
	cmd.Stderr = j.out
	text, err := cmd.Output()
	return strings.TrimSpace(string(text)), err
}

// goTest runs `go test -json` with the arguments, prints what failed and adds up the tests.
func (j *job) goTest(ctx context.Context, args ...string) error {
	cmd := command(ctx, serverPaths(), "go", append([]string{"test", "-json"}, args...)...)
	cmd.Stderr = j.out
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		return err
	}
	if err := cmd.Start(); err != nil {
		return err
	}
	counted, countErr := count(stdout, j.out)
	j.tally.add(counted)
	if err := cmd.Wait(); err != nil {
		return fmt.Errorf("go test %s: %w", strings.Join(args, " "), err)
	}
	return countErr
}

// command prepares a child in its own process group, so that an interrupted run takes the
// servers down that a test had started.
func command(ctx context.Context, env []string, name string, args ...string) *exec.Cmd {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Env = append(os.Environ(), env...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = 10 * time.Second
	return cmd
}

// serverPaths returns the environment that names the unpacked servers of the matrix.
func serverPaths() []string {
	file, err := os.Open(".cache/servers/env")
	if err != nil {
		return nil // the quick run did not unpack any
	}
	defer file.Close()
	var env []string
	for lines := bufio.NewScanner(file); lines.Scan(); {
		env = append(env, lines.Text())
	}
	return env
}
