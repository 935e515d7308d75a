package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"operetta.dev/test/harness"
)

// chainLength is how many components the chain of these tests has.
const chainLength = 10

// chainLinks are the ways in which a component can depend on the one before.
var chainLinks = map[string]struct {
	// link is what component NEXT says, given the PREVIOUS one.
	link string
}{
	"read":     {`components: NEXT: objects: map: data: text: live.PREVIOUS.map.data.text`},
	"require":  {"components: NEXT: requires: said: live.PREVIOUS.map.data.text == cr.spec.text\ncomponents: NEXT: objects: map: data: text: cr.spec.text"},
	"when":     {"components: NEXT: when: live.PREVIOUS.map.data.text != \"\"\ncomponents: NEXT: objects: map: data: text: cr.spec.text"},
	"input":    {"inputs: NEXT: {apiVersion: \"v1\", kind: \"ConfigMap\", name: live.PREVIOUS.map.metadata.name}\ncomponents: NEXT: objects: map: data: text: inputs.NEXT.object.data.text"},
	"declared": {"components: NEXT: dependsOn: PREVIOUS: {}\ncomponents: NEXT: objects: map: data: text: cr.spec.text"},
}

// chainPackage returns a package of components that each depend on the one before.
func chainPackage(link string) string {
	var b strings.Builder
	b.WriteString(`#Spec: text: string
live: _
inputs: _
components: [_]: objects: map: {apiVersion: "v1", kind: "ConfigMap", data: text: string}
components: link0: objects: map: data: text: cr.spec.text
`)
	for i := range chainLength {
		fmt.Fprintf(&b, "components: link%d: objects: map: metadata: name: \"\\(cr.metadata.name)-%d\"\n", i, i)
		if i > 0 {
			b.WriteString(strings.NewReplacer("NEXT", fmt.Sprint("link", i), "PREVIOUS", fmt.Sprint("link", i-1)).Replace(link) + "\n")
		}
	}
	return b.String()
}

// TestDepthCostsNoPause creates chains of ten components. However they depend on each other, the
// creation and a change take no timer, only the time of the API server's responses.
func TestDepthCostsNoPause(t *testing.T) {
	t.Parallel()
	for name, c := range chainLinks {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, "depth"+name, chainPackage(c.link))
			s.StartOperator(p.Dir)
			s.WaitUntilIdle()
			last := fmt.Sprintf("long-%d", chainLength-1)

			from, began := harness.MarkAudit(t), time.Now()
			cr := s.Create(p.Thing(s.Env, "long", map[string]any{"text": "first"}))
			s.ExpectData(last, "text", "first")
			t.Logf("created after %s", harness.Elapsed(began))
			s.ExpectResourceReady(cr)
			asked := s.OperatorRequests(from)
			t.Logf("requests: %s", asked)
			if n := len(asked.OfResource("configmaps").WithVerbs("patch")); n != chainLength {
				t.Errorf("%d objects were created with %d writes", chainLength, n)
			}

			from, began = harness.MarkAudit(t), time.Now()
			s.Patch(cr, harness.Spec(map[string]any{"text": "second"}))
			s.ExpectData(last, "text", "second")
			t.Logf("passed on after %s: %s", harness.Elapsed(began), s.OperatorRequests(from))
			s.WaitUntilIdle()
			if n := len(s.OperatorRequests(from).OfResource("configmaps").WithVerbs("patch")); n != chainLength {
				t.Errorf("%d objects were changed with %d writes", chainLength, n)
			}
		})
	}
}
