package watch

import (
	"fmt"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/engine/cluster"
	"operetta.dev/test/machine"
)

// endedJob is a Job that has ended, of about so many bytes.
func endedJob(name string, size int) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "batch/v1", "kind": "Job",
		"metadata": map[string]any{"name": name, "namespace": "default", "annotations": map[string]any{"text": strings.Repeat("x", size)}},
		"status":   map[string]any{"conditions": []any{map[string]any{"type": "Complete", "status": "True"}}},
	}}
}

func TestEndedObjectsAreRememberedUpToASize(t *testing.T) {
	t.Parallel()
	machine.Serial(t)
	e := newFinishedObjects()
	kept := func(names int, size int) (n int) {
		for i := range names {
			e.note(endedJob(fmt.Sprint(i), size))
		}
		for i := range names {
			if e.get(cluster.RefOf(endedJob(fmt.Sprint(i), 0))) != nil {
				n++
			}
		}
		return n
	}
	if n := kept(1000, 4<<10); n != 1000 {
		t.Errorf("of 1,000 Jobs of 4 KiB %d are remembered, and they are no more than a resource may have", n)
	}
	if n := kept(1000, 60<<10); n*60<<10 > finishedObjectsSize || n < 100 {
		t.Errorf("%d Jobs of 60 KiB are remembered", n)
	}
	if e.get(cluster.RefOf(endedJob("999", 0))) == nil {
		t.Error("the last one is forgotten")
	}
}
