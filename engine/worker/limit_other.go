//go:build !linux

package worker

import (
	"os/exec"
	"time"
)

// limitDataSegment does nothing, because there is no such limit here: the worker only watches itself.
func limitDataSegment(int64) error { return nil }

// lowerPriority does nothing: the priority of threads is Linux'.
func lowerPriority() {}

// processStart is when this process started.
var processStart = time.Now()

// ProcessorTime returns how long this process has run, as an upper bound of its processor time.
func ProcessorTime() time.Duration { return time.Since(processStart) }

// OwnProcessGroup does nothing: a worker starts no processes.
func OwnProcessGroup(*exec.Cmd) {}
