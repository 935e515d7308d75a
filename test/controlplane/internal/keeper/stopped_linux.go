package keeper

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"time"
)

// stopTime is how long a process has to stop. One in the middle of a system call stops behind it.
const stopTime = 10 * time.Second

// awaitStopped returns when every thread of a process has stopped, the process has ended, or after stopTime.
func awaitStopped(pid int) {
	for end := time.Now().Add(stopTime); time.Now().Before(end); time.Sleep(time.Millisecond) {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 || allStopped(threads) {
			return
		}
	}
}

// allStopped reports whether the states of threads in files of /proc are all those of a stopped or ended one.
func allStopped(threads []string) bool {
	for _, file := range threads {
		text, err := os.ReadFile(file)
		if err != nil {
			continue // it has ended
		}
		// The state is behind the name, which may have parentheses itself.
		_, state, found := bytes.Cut(text[max(0, bytes.LastIndexByte(text, ')')):], []byte(") "))
		if found && len(state) > 0 && !bytes.ContainsRune([]byte("TtZX"), rune(state[0])) {
			return false
		}
	}
	return true
}
