package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// chainLength is how many components the chain of these tests has.
const chainLength = 10

// chainLimit is how long such a chain may take. It takes a fifth of a second, and the shortest timer that could come between two
// components takes one.
const chainLimit = 900 * time.Millisecond

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
			var cr *unstructured.Unstructured
			harness.Fastest(t, chainLimit, "the creation of a chain", func(try int) time.Duration {
				name := fmt.Sprint("long", try)
				took := s.expectPassedOn(name, "first", "created", func() { cr = s.Create(p.Thing(s.Env, name, map[string]any{"text": "first"})) })
				s.ExpectResourceReady(cr)
				return took
			})
			harness.Fastest(t, chainLimit, "a change of a chain", func(try int) time.Duration {
				text := fmt.Sprint("text ", try)
				return s.expectPassedOn(cr.GetName(), text, "changed", func() { s.Patch(cr, harness.Spec(map[string]any{"text": text})) })
			})
		})
	}
}

// expectPassedOn has something done to the first object of a chain, expects that the last one has a text then, with one write
// for each object, and returns how long that took.
func (s *env) expectPassedOn(name, text, what string, do func()) time.Duration {
	s.T.Helper()
	from, began := harness.MarkAudit(s.T), time.Now()
	do()
	s.ExpectData(fmt.Sprintf("%s-%d", name, chainLength-1), "text", text)
	took := time.Since(began)
	s.WaitUntilIdle()
	asked := s.OperatorRequests(from)
	s.T.Logf("%s after %s: %s", what, took.Round(time.Millisecond), asked)
	if n := len(asked.OfResource("configmaps").WithVerbs("patch")); n != chainLength {
		s.T.Errorf("%d objects were %s with %d writes", chainLength, what, n)
	}
	return took
}
