//go:build unix

package worker_test

import (
	"context"
	"strings"
	"syscall"
	"testing"
	"time"

	"operetta.dev/test/machine"
)

func TestAPackageIsNotSentForEverToAWorkerThatDoesNotRead(t *testing.T) {
	t.Parallel()
	pool := newPool(t, 1)
	if _, err := pool.Package(compile(t, "")).Evaluate(t.Context(), session("town", nil)); err != nil {
		t.Fatal(err)
	}
	machine.Eventually(t, "a worker that does nothing", func() bool { return len(pool.Idle()) == 1 })
	idle := pool.Idle()
	if err := syscall.Kill(idle[0], syscall.SIGSTOP); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = syscall.Kill(idle[0], syscall.SIGCONT) }) // or the pool would wait for it, if this fails
	large := pool.Package(compile(t, `_much: "`+strings.Repeat("x", 256<<10)+`"`))
	ctx, cancel := context.WithTimeout(t.Context(), 200*time.Millisecond)
	defer cancel()
	ended := make(chan error, 1)
	go func() {
		_, err := large.Evaluate(ctx, session("town", nil))
		ended <- err
	}()
	select {
	case err := <-ended:
		if err == nil {
			t.Error("a worker that is stopped has answered")
		}
	case <-time.After(machine.Patience):
		t.Error("it is still being sent")
	}
}
