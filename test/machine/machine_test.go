package machine

import (
	"testing"
	"time"
)

func TestALimitGrowsWithTheProcessesThatShareAProcessor(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		loadavg string
		want    float64
		reason  string
	}{
		"idle":       {"0.10 0.20 0.30 1/400 123\n", 1, "a limit never shrinks"},
		"busy":       {"8.00 2.00 1.00 3/400 123\n", 4, "eight processes on two processors"},
		"just begun": {"0.50 0.20 0.10 6/400 123\n", 3, "the average lags behind"},
		"overloaded": {"900.0 900.0 900.0 900/4000 123\n", maxShare, "what hangs must fail at last"},
		"unreadable": {"what is this", 1, "the limit as it is"},
	} {
		if got := share(row.loadavg, 2); got != row.want {
			t.Errorf("%s: got %v, want %v: %s", name, got, row.want, row.reason)
		}
	}
	if got := Limit(time.Second); got < time.Second || got > maxShare*time.Second {
		t.Errorf("a limit of a second is %s", got)
	}
}
