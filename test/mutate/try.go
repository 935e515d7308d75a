package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"
)

// A verdict is the result of running the tests on a mutant.
type verdict string

const (
	killed   verdict = "killed"
	survived verdict = "SURVIVED"
	// invalid is the verdict on a mutant that does not compile.
	invalid verdict = "invalid"
)

// testTimeout limits the tests of one package: a mutant may loop forever.
const testTimeout = 4 * time.Minute

// try tests a mutant, and returns which package's tests killed it. It errors if it could not be tested.
func try(ctx context.Context, m mutant) (v verdict, by string, err error) {
	dir, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return "", "", err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	overlay, err := writeOverlay(m, dir)
	if err != nil {
		return "", "", err
	}
	if failed, err := goTool(ctx, "build", "-overlay", overlay, "./engine/"+m.target.name); failed || err != nil {
		return invalid, "", err
	}
	for _, pkg := range m.target.tests {
		if failed, err := goTest(ctx, overlay, pkg); failed || err != nil {
			return killed, "by " + pkg, err
		}
	}
	return survived, "", nil
}

// writeOverlay writes the changed file and an overlay file for the go command, whose name it returns.
func writeOverlay(m mutant, dir string) (string, error) {
	content, err := os.ReadFile(m.file)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(m.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(dir, "changed.go")
	if err := os.WriteFile(changed, m.apply(content), 0o600); err != nil {
		return "", err
	}
	replace, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(dir, "overlay.json")
	return overlay, os.WriteFile(overlay, replace, 0o600)
}

// goTest runs the tests of packages with an overlay, if it is not empty, and reports whether they fail.
func goTest(ctx context.Context, overlay string, packages ...string) (failed bool, err error) {
	return goTool(ctx, append([]string{"test", "-overlay", overlay, "-count=1", "-failfast", "-vet=off", "-timeout", testTimeout.String()}, packages...)...)
}

// lowestPriority is the priority of the tests, because a run takes an hour on a machine with other work.
const lowestPriority = 19

// goTool runs the go command and reports whether it fails. It errors if the command could not be run,
// or was interrupted.
func goTool(ctx context.Context, args ...string) (failed bool, err error) {
	cmd := exec.CommandContext(ctx, "go", args...)
	// The go command starts processes, which have to end with it.
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return false, err
	}
	if err := syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, lowestPriority); err != nil {
		fmt.Fprintln(os.Stderr, "mutate: lowering the priority:", err)
	}
	err = cmd.Wait()
	if ctx.Err() != nil {
		return false, ctx.Err()
	}
	if _, exited := errors.AsType[*exec.ExitError](err); exited {
		return true, nil
	}
	return false, err
}
