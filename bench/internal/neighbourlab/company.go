package neighbourlab

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os/exec"
	"syscall"
)

// company is a child process.
type company struct {
	name   string
	cmd    *exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	errors bytes.Buffer
}

// start starts program as a child with these arguments and waits until it is ready. A polite one
// leaves the processor to all others.
func start(ctx context.Context, program string, polite bool, args ...string) (*company, error) {
	line := append([]string{program, Command}, args...)
	if polite {
		line = append([]string{"nice", "-n", "10"}, line...)
	}
	c := &company{name: args[0], cmd: exec.CommandContext(ctx, line[0], line[1:]...)}
	c.cmd.Stderr = &c.errors
	// A benchmark that is killed must not leave attackers behind.
	c.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	in, err := c.cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := c.cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	c.in, c.out = in, bufio.NewReader(out)
	if err := c.cmd.Start(); err != nil {
		return nil, fmt.Errorf("%s: %w", c.name, err)
	}
	if err := c.await(saysReady); err != nil {
		c.stop()
		return nil, fmt.Errorf("%w; %s", err, c.errors.String())
	}
	return c, nil
}

// await waits until the child says a line.
func (c *company) await(line string) error {
	if said, err := c.out.ReadString('\n'); err != nil || said != line+"\n" {
		return fmt.Errorf("%s said %q instead of %q", c.name, said, line)
	}
	return nil
}

// tell sends a line. That nobody hears it shows in the report.
func (c *company) tell(line string) { _, _ = fmt.Fprintln(c.in, line) }

// report reads what the child found, and waits until it has gone.
func (c *company) report(into any) error {
	text, err := c.out.ReadBytes('\n')
	if err == nil {
		err = json.Unmarshal(text, into)
	}
	ended := c.cmd.Wait()
	if err != nil {
		return fmt.Errorf("%s reported %.80q: %w (%v; %s)", c.name, text, err, ended, c.errors.String())
	}
	return nil
}

// stop ends the child, whatever it does. It does nothing once the report has been read.
func (c *company) stop() {
	if c.cmd.ProcessState == nil {
		_ = c.cmd.Process.Kill() // it may have gone
		_ = c.cmd.Wait()
	}
}
