package verify_test

import (
	"fmt"
	"testing"

	"operetta.dev/engine/program"
	"operetta.dev/engine/verify"
	"operetta.dev/test/inline"
)

// TestThePredicatesOfPackageHealthAgreeWithTheBuiltInCheck runs the cases of each kind
// through schemas/health as a package uses it. Where the two differ, the case says why.
func TestThePredicatesOfPackageHealthAgreeWithTheBuiltInCheck(t *testing.T) {
	t.Parallel()
	for _, k := range healthByKind(t) {
		if k.Predicate == "" {
			continue
		}
		p := judging(t, k.Predicate)
		for _, c := range k.Cases {
			t.Run(k.Title+"/"+c.Name, func(t *testing.T) {
				t.Parallel()
				built, written := verify.Object(k.Live(c), "ready").Health, judged(t, p, k.Live(c).Object)
				switch {
				case built == written && c.Differs != "":
					t.Errorf("both come to %s, and it is said that they differ: %s", built, c.Differs)
				case built != written && c.Differs == "":
					t.Errorf("%s: the built-in check comes to %s, %s to %s", c.Reason, built, k.Predicate, written)
				}
			})
		}
	}
}

// judging is a package that judges the object live.c.o.
func judging(t *testing.T, predicate string) *program.Program {
	t.Helper()
	text := fmt.Sprintf(`package judge

import (
	"operetta.dev/schemas/operator"
	"operetta.dev/schemas/health"
)

operator.#Controller
group: "example.com"
kind:  "Judge"
versions: v1: spec: {}
live: _
components: c: {
	objects: o: {apiVersion: "v1", kind: "ConfigMap", metadata: name: "o"}
	let judged = %s & {object: live.c.o}
	verify: judged.checks
	failed: ended: *judged.failed | false
}
`, predicate)
	return inline.Program(t, text)
}

// judged is what the package makes of an object.
func judged(t *testing.T, p *program.Program, live map[string]any) verify.Health {
	t.Helper()
	r, err := p.Evaluate(program.Session{
		CR:   map[string]any{"apiVersion": "example.com/v1", "kind": "Judge", "metadata": map[string]any{"name": "j", "namespace": "n"}},
		Live: map[string]map[string]map[string]any{"c": {"o": live}},
	})
	if err != nil || len(r.Invalid) > 0 || len(r.Components) != 1 || len(r.Components[0].Verify) == 0 {
		t.Fatalf("evaluating: %v, %v, %v", err, r.Invalid, r.Components)
	}
	for _, p := range append(r.Components[0].Verify, r.Components[0].Failed...) {
		if p.Verdict == program.Unknown {
			t.Errorf("%s is unknown of an object that exists: %s", p.Name, p.Explain())
		}
	}
	return verify.Predicates(r.Components[0].Verify, r.Components[0].Failed).Health
}
