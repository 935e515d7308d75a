package e2e

import (
	"encoding/json"
	"fmt"
	"testing"
	"time"

	"operetta.dev/test/harness"
)

// childrenPackages render as many ConfigMaps as a resource asks for.
var childrenPackages = map[string]string{
	"one component":        `components: all: objects: {for a in cr.spec.tens for b in cr.spec.ones {"o-\(a)\(b)": _map & {metadata: name: "\(cr.metadata.name)-\(a)\(b)"}}}`,
	"a component for each": `components: {for a in cr.spec.tens for b in cr.spec.ones {"c-\(a)\(b)": objects: map: _map & {metadata: name: "\(cr.metadata.name)-\(a)\(b)"}}}`,
}

// TestManyChildrenCostTheSameEach creates resources with many objects.
func TestManyChildrenCostTheSameEach(t *testing.T) {
	t.Parallel()
	sizes := []int{20, 200}
	if harness.Long() {
		sizes = append(sizes, 1000)
	}
	for name, body := range childrenPackages {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, "children"+name[:1]+name[len(name)-1:], `#Spec: {tens: [...string], ones: [...string]} // a list has 256 items at most
limits: objects: 1000
_map: {apiVersion: "v1", kind: "ConfigMap", metadata: name: string, data: text: "x"}
`+body)
			o := s.StartOperator(p.Dir)
			s.WaitUntilIdle()
			for _, n := range sizes {
				spec := map[string]any{"tens": numbers(n / 10), "ones": numbers(10)}
				from, began, cpu := harness.MarkAudit(t), time.Now(), o.CPU()
				cr := s.Create(p.Thing(s.Env, fmt.Sprintf("n%d", n), spec))
				ready := s.ExpectResourceReady(cr)
				took := time.Since(began)
				status, err := json.Marshal(ready.Object["status"])
				if err != nil {
					t.Fatal(err)
				}
				asked := s.OperatorRequests(from)
				t.Logf("%d children: ready after %s, %s of CPU, status of %d bytes: %s", n, took.Round(time.Millisecond), o.CPU()-cpu, len(status), asked)
				if writes := len(asked.Writes()); writes > n+3+int(took/progressEvery) {
					t.Errorf("%d writes for %d children: %s", writes, n, asked)
				}
				s.WaitUntilIdle()
			}
		})
	}
}

// numbers returns the numbers below n as texts.
func numbers(n int) []any {
	out := make([]any, n)
	for i := range out {
		out[i] = fmt.Sprint(i)
	}
	return out
}
