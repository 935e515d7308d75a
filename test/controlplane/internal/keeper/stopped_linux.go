package keeper

import (
	"fmt"
	"path/filepath"
	"time"
)

// stopTime is how long a process has to stop. One in the middle of a system call stops behind it.
const stopTime = 10 * time.Second

// awaitStopped returns when every thread of a process has stopped, the process has ended, or after stopTime.
func awaitStopped(pid int) {
	tick := time.NewTicker(time.Millisecond)
	defer tick.Stop()
	for end := time.Now().Add(stopTime); time.Now().Before(end); <-tick.C {
		threads, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/stat", pid))
		if err != nil || len(threads) == 0 || allStopped(threads) {
			return
		}
	}
}
