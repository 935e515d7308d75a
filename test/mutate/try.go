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

// A verdict says what became of a change.
type verdict string

const (
	noticed verdict = "noticed"
	passed  verdict = "PASSED"
	// invalid is a change that does not compile.
	invalid verdict = "invalid"
)

// patience bounds the tests of one package: a change may make a loop endless.
const patience = 4 * time.Minute

// try makes one change, and returns which package's tests noticed it.
func try(ctx context.Context, s site) (verdict, string) {
	folder, err := os.MkdirTemp("", "mutate-*")
	if err != nil {
		return invalid, err.Error()
	}
	defer func() { _ = os.RemoveAll(folder) }()
	overlay, err := write(s, folder)
	if err != nil {
		return invalid, err.Error()
	}
	if goTool(ctx, "build", "-overlay", overlay, "./engine/"+s.subject.name) != nil {
		return invalid, ""
	}
	for _, judge := range s.subject.judges {
		err := goTool(ctx, "test", "-overlay", overlay, "-count=1", "-failfast", "-vet=off", "-timeout", patience.String(), judge)
		if _, failed := errors.AsType[*exec.ExitError](err); failed && ctx.Err() == nil {
			return noticed, "by " + judge
		}
	}
	return passed, ""
}

// write makes the changed file, and returns the file that tells the compiler of it.
func write(s site, folder string) (string, error) {
	content, err := os.ReadFile(s.file)
	if err != nil {
		return "", err
	}
	original, err := filepath.Abs(s.file)
	if err != nil {
		return "", err
	}
	changed := filepath.Join(folder, "changed.go")
	text := string(content[:s.from]) + s.text + string(content[s.to:])
	if err := os.WriteFile(changed, []byte(text), 0o600); err != nil {
		return "", err
	}
	told, err := json.Marshal(map[string]any{"Replace": map[string]string{original: changed}})
	if err != nil {
		return "", err
	}
	overlay := filepath.Join(folder, "overlay.json")
	return overlay, os.WriteFile(overlay, told, 0o600)
}

// lowest is the priority of the runs: they take an hour, and should hold nothing up.
const lowest = 19

// goTool runs the go command, and errors if it fails.
func goTool(ctx context.Context, args ...string) error {
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	cmd.Cancel = func() error { return syscall.Kill(-cmd.Process.Pid, syscall.SIGKILL) }
	if err := cmd.Start(); err != nil {
		return err
	}
	if err := syscall.Setpriority(syscall.PRIO_PGRP, cmd.Process.Pid, lowest); err != nil {
		fmt.Fprintln(os.Stderr, "mutate: lowering the priority:", err)
	}
	return cmd.Wait()
}
