//go:build !linux

package main

import "os/exec"

// limitDataSegment does nothing, because there is no such limit here: the worker only watches itself.
func limitDataSegment(int64) error { return nil }

// ownProcessGroup does nothing: a worker starts no processes.
func ownProcessGroup(*exec.Cmd) {}
