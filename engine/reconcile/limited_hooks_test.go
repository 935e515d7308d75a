package reconcile_test

import "testing"

// A person who tries in vain to make a resource smaller, and then has it right, must not
// lose the hook that comes before its deletion.
func TestAResourceThatWasMendedRunsItsHooksBeforeDeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t, fanout+`hooks: beforeDelete: backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup"}
`)
	act(t, b.memory, map[string]any{"list": ones(3)})
	b.rest()
	p := &costly{Program: b.program, b: b}
	for i := range 6 {
		act(t, b.memory, map[string]any{"list": ones(600 + i)})
		b.stepsOf(2, p)
	}
	act(t, b.memory, map[string]any{"list": ones(2)})
	act(t, b.memory, deleted)
	b.stepsOf(3, p)
	if n := len(objects(t, b.memory, "Job")); n != 1 {
		t.Errorf("%d Jobs, want the backup; events are %v", n, b.events)
	}
}
