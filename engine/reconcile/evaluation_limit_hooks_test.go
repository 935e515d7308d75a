package reconcile_test

import (
	"strings"
	"testing"

	"operetta.dev/test/machine"
)

// A person who tries in vain to make a resource smaller, and then has it right, must not
// lose the hook that comes before its deletion.
func TestAResourceThatWasMendedRunsItsHooksBeforeDeletion(t *testing.T) {
	t.Parallel()
	b := newBench(t, fanout+`hooks: beforeDelete: backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup"}
`)
	act(t, b.memory, map[string]any{"list": ones(3)})
	b.rest()
	p := &costly{Program: b.program}
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

// An inventory without room in the status is no evaluation beyond a limit: the package can be
// evaluated, so its hooks run before deletion, also in a new process.
func TestAResourceWithTooLargeAnInventoryRunsItsHooksBeforeDeletion(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	b := newBench(t, `
import "strings"
limits: objects: 2000
components: one: objects: {for i, _ in *cr.spec.list | [] {"c\(i)": {apiVersion: "v1", kind: "ConfigMap", metadata: name: strings.Repeat("x", 200) + "-\(i)"}}}
hooks: beforeDelete: backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup"}
`)
	act(t, b.memory, map[string]any{"list": ones(3)})
	b.rest()
	act(t, b.memory, map[string]any{"list": ones(1900)})
	b.stepsOf(2, b.program)
	b.expect("its status has no room for that", "False StatusTooLarge", "524288 are the limit")
	b.restart()
	act(t, b.memory, deleted)
	b.stepsOf(3, b.program)
	if n := len(objects(t, b.memory, "Job")); n != 1 {
		t.Errorf("%d Jobs, want the backup; events are %v", n, b.events)
	}
}

// A deletion whose status has no room any more is a deletion all the same, for whoever looks at its phase.
func TestAResourceThatIsDeletedWithoutRoomForItsStatusSaysThatItIsBeingDeleted(t *testing.T) {
	t.Parallel()
	b := newBench(t, `import "strings"
`+fanout+`limits: bytes: 1_500_000
hooks: beforeDelete: backup: objects: job: {apiVersion: "batch/v1", kind: "Job", metadata: name: "backup"}
status: all: strings.Repeat("x", 20_000)
`)
	act(t, b.memory, map[string]any{"list": ones(3), "text": strings.Repeat("x", 1<<20)})
	b.rest()
	b.reconciler.Resources = &small{Cluster: b.reconciler.Resources, takes: 8000}
	act(t, b.memory, deleted)
	b.stepsOf(3, b.program)
	b.expect("the status with the hook does not fit", "False StatusTooLarge")
	if phase := b.status()["phase"]; phase != "Deleting" {
		t.Errorf("the phase is %v", phase)
	}
}
