package child

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"
)

// What a process and its own children use comes from /proc, so elsewhere than on Linux it is nothing.

// sampleEvery is how often the memory of a process is read that is watched. A worker lives longer than
// that.
const sampleEvery = 50 * time.Millisecond

// WatchMemory notes the highest memory until the process ends, for PeakMemory.
func (p *Process) WatchMemory() {
	go func() {
		for {
			select {
			case <-p.Ended:
				return
			case <-time.After(sampleEvery):
				p.notePeak()
			}
		}
	}()
}

// PeakMemory returns the highest memory of the process and its children together that WatchMemory has
// seen, in bytes.
func (p *Process) PeakMemory() int64 { return p.notePeak() }

// ForgetPeakMemory makes PeakMemory begin anew.
func (p *Process) ForgetPeakMemory() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peak = 0
}

func (p *Process) notePeak() int64 {
	now := p.Memory()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.peak = max(p.peak, now)
	return p.peak
}

// Memory returns the memory of the process and its children, in bytes, as a limit of a container counts
// it: if all run one binary, its pages in memory are the same ones.
func (p *Process) Memory() int64 {
	total, shared := int64(0), int64(0)
	own := commandOf(p.PID())
	for _, pid := range p.family() {
		if pid != p.PID() && commandOf(pid) == own {
			continue // until it executes its program, a child has the memory of its parent
		}
		text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid)) // it may have ended
		for line := range strings.Lines(string(text)) {
			name, value, _ := strings.Cut(line, ":")
			kib, _ := strconv.ParseInt(strings.TrimSuffix(strings.TrimSpace(value), " kB"), 10, 64)
			switch name {
			case "RssAnon", "RssShmem":
				total += kib << 10
			case "RssFile":
				shared = max(shared, kib<<10)
			}
		}
	}
	return total + shared
}

// commandOf returns the command line of a process, or "" if it has ended.
func commandOf(pid int) string {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/cmdline", pid))
	return string(text)
}

// CPU returns the processor time of the process and its children, those that have ended included.
func (p *Process) CPU() time.Duration {
	total := time.Duration(0)
	for _, pid := range p.family() {
		total += cpuOf(pid)
	}
	return total
}

// OwnCPU returns the processor time of the process without its children.
func (p *Process) OwnCPU() time.Duration { return ticksOf(p.PID(), 11, 13) }

// cpuOf returns the processor time of a process and of its children that have ended.
func cpuOf(pid int) time.Duration { return ticksOf(pid, 11, 15) }

// ticksOf returns the sum of some fields of the processor time of a process.
func ticksOf(pid, from, to int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0
	}
	// The name of the process, in parentheses, may contain spaces. The fields 12 to 15 after it are the
	// user and system time of the process and of its children, in hundredths of a second.
	_, rest, _ := strings.Cut(string(text), ") ")
	fields := strings.Fields(rest)
	if len(fields) < 15 {
		return 0
	}
	ticks := int64(0)
	for _, field := range fields[from:to] {
		n, _ := strconv.ParseInt(field, 10, 64)
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}

// family returns the process and its children.
func (p *Process) family() []int {
	out := []int{p.PID()}
	files, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", p.PID()))
	for _, file := range files {
		text, _ := os.ReadFile(file) // the thread may have ended
		for field := range strings.FieldsSeq(string(text)) {
			if pid, err := strconv.Atoi(field); err == nil {
				out = append(out, pid)
			}
		}
	}
	return out
}
