package program

import "testing"

func TestADigestCostsFewAllocations(t *testing.T) {
	manifest := map[string]any{"kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": map[string]any{"b": "c"}}, "data": map[string]any{"x": "y", "z": "w"}}
	// encoding/json alone takes 21.
	if n := testing.AllocsPerRun(100, func() { _, _ = Digest("", manifest) }); n > 4 {
		t.Errorf("a digest takes %v allocations", n)
	}
}
