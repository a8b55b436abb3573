package main

import (
	"context"
	"errors"
	"os/exec"
	"runtime"
	"sync"
	"syscall"
	"time"
)

// How long a Python process may take to end after SIGTERM before it is killed.
const terminationGrace = 2 * time.Second

// children counts the running Python processes, so that the host can outwait them when it ends.
type children struct{ running sync.WaitGroup }

// prepare makes a command end quietly with its context: SIGTERM first, because Python answers SIGINT with a KeyboardInterrupt trace.
// A process group of its own keeps the engine's SIGINT to our group from reaching it.
func prepare(cmd *exec.Cmd) {
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true, Pdeathsig: syscall.SIGKILL}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGTERM) }
	cmd.WaitDelay = terminationGrace
}

// start starts a prepared command; the caller waits for it and then calls the returned function. Pdeathsig is bound to the thread that
// forks, so one thread is kept until then.
func (c *children) start(cmd *exec.Cmd) (func(), error) {
	begun, ended := make(chan error), make(chan struct{})
	c.running.Add(1)
	go func() {
		defer c.running.Done()
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		begun <- cmd.Start()
		<-ended
	}()
	return func() { close(ended) }, <-begun
}

// run starts a prepared command and waits for its end.
func (c *children) run(cmd *exec.Cmd) error {
	release, err := c.start(cmd)
	defer release()
	if err != nil {
		return err
	}
	return cmd.Wait()
}

// wait returns when every child has ended, or after the given time.
func (c *children) wait(limit time.Duration) {
	ended := make(chan struct{})
	go func() {
		c.running.Wait()
		close(ended)
	}()
	select {
	case <-ended:
	case <-time.After(limit):
	}
}

// exitCode is the status that a process ended with, and whether it ended by itself.
func exitCode(err error) (int, bool) {
	var exit *exec.ExitError
	if err == nil {
		return 0, true
	}
	if errors.As(err, &exit) && exit.Exited() {
		return exit.ExitCode(), true
	}
	return -1, false
}

// whicheverEnds is a context that ends with the request or with the host.
func whicheverEnds(request, host context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancel(request)
	release := context.AfterFunc(host, cancel)
	return ctx, func() {
		release()
		cancel()
	}
}
