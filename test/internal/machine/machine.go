// Package machine says how busy the machine is that the tests run on.
package machine

import (
	"fmt"
	"os"
	"runtime"
	"time"
)

// maxShare bounds by how much a limit grows: beyond it, a test fails however busy the machine is.
const maxShare = 10

// Limit returns a limit of some seconds that holds on an idle machine, multiplied by how many
// processes share each processor. Something that takes a second of processor time takes ten
// where nine other processes compute, and that is no fault of what is tested.
func Limit(idle time.Duration) time.Duration {
	text, err := os.ReadFile("/proc/loadavg")
	if err != nil {
		return idle // another system than Linux
	}
	return time.Duration(float64(idle) * share(string(text), runtime.NumCPU()))
}

// share returns how many processes share each of some processors, from 1 to maxShare, by the text of
// /proc/loadavg. The average of the last minute lags behind a load that has just begun, so
// the number of processes that can run now counts as well.
func share(loadavg string, processors int) float64 {
	var minute, five, fifteen float64
	var now int
	if _, err := fmt.Sscanf(loadavg, "%f %f %f %d/", &minute, &five, &fifteen, &now); err != nil {
		return 1
	}
	return min(max(1, minute/float64(processors), float64(now)/float64(processors)), maxShare)
}
