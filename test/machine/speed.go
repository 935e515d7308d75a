package machine

import (
	"runtime"
	"slices"
	"strconv"
	"sync"
	"time"
)

// usualCalibration is the processor time of calibrate on the machine for which limits of processor time are written.
const usualCalibration = 20 * time.Millisecond

// slowness returns how many times as much processor time this machine needs as the one for which limits are written, and at
// least 1: of two machines of one kind, one may have half of the other's speed.
var slowness = sync.OnceValue(func() float64 {
	least := calibrate()
	for range 4 {
		least = min(least, calibrate())
	}
	return max(1, float64(least)/float64(usualCalibration))
})

// calibrate returns the processor time of a computation that makes, sorts and looks up texts, as evaluations do.
func calibrate() time.Duration {
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	began := threadTime()
	texts := make([]string, 60_000)
	index := map[string]int{}
	for i := range texts {
		texts[i] = strconv.Itoa(i * 7919 % 1_000_003)
		index[texts[i]] = i
	}
	slices.Sort(texts)
	for i, text := range texts {
		index[text] += i
	}
	return threadTime() - began
}
