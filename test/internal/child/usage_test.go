package child_test

import (
	"os/exec"
	"runtime"
	"testing"
	"time"

	"operetta.dev/test/internal/child"
	"operetta.dev/test/machine"
)

func TestWhatChildrenUseCounts(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("it comes from /proc")
	}
	// The shell has a child that takes a core, and one that has ended after it did.
	p, err := child.Start(exec.Command("sh", "-c", "sh -c 'i=0; while [ $i -lt 20000 ]; do i=$((i+1)); done'; (while kill -0 $$; do :; done) & wait"))
	if err != nil {
		t.Fatal(err)
	}
	defer p.Kill()
	p.WatchMemory()
	machine.Eventually(t, "processor time and memory", func() bool { return p.CPU() >= 500*time.Millisecond && p.Memory() > 0 })
	if now, peak := p.Memory(), p.PeakMemory(); peak < now/2 || peak == 0 {
		t.Errorf("it had at most %d bytes, and has %d", peak, now)
	}
	p.Kill()
	<-p.Ended
	if p.PeakMemory() == 0 {
		t.Error("the peak is forgotten when it ends")
	}
	p.ForgetPeakMemory()
	if n := p.PeakMemory(); n != 0 {
		t.Errorf("%d bytes are remembered", n)
	}
}
