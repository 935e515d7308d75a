package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

const plain = `
#Spec: text: string | *"a"

components: web: objects: settings: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "web-\(cr.metadata.name)"
	data: text: cr.spec.text
}
`

// unpauseLimit is how long an operator may take to repair what was changed during a
// pause, once that is over.
const unpauseLimit = 2 * time.Second

func TestPausedResourceIsLeftAloneUntilThePauseEnds(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "paused", plain)
	s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{"text": "a"}))
	s.expectAllReady(cr)
	best := patience
	// A busy machine gets several tries at what is about seconds.
	for try := 0; best > unpauseLimit && try < tries; try++ {
		took := s.pauseAndDrift(p, cr, fmt.Sprintf("b%d", try))
		t.Logf("repaired %s after the pause", took)
		best = min(best, took)
	}
	if best > unpauseLimit {
		t.Errorf("what was changed during a pause was repaired %s after it, not within %s", best, unpauseLimit)
	}

	// Deletion works all the same.
	s.pause(cr)
	s.delete(cr)
	s.expectFinished(cr, "ConfigMap")
}

// pause pauses a resource, and waits until it says so.
func (s *site) pause(cr *unstructured.Unstructured) {
	s.t.Helper()
	s.patch(cr, annotation("operetta.dev/paused", "true"))
	s.expectThat(cr, "to be paused", func(u *unstructured.Unstructured) error {
		if c := condition(u, "Paused"); c["status"] != "True" {
			return fmt.Errorf("its conditions are %v", field(u, "status", "conditions"))
		}
		return nil
	})
}

// pauseAndDrift changes an object and the spec during a pause, in which nothing may be
// written, and returns how long after it that takes effect.
func (s *site) pauseAndDrift(p *small, cr *unstructured.Unstructured, text string) time.Duration {
	s.t.Helper()
	s.pause(cr)
	s.settle()
	from, seen := mark(s.t), s.operator.reconciles(p.controller())
	s.patch(s.ref("ConfigMap", "web-shop"), map[string]any{"data": map[string]any{"text": "drifted"}})
	s.patch(cr, spec(map[string]any{"text": text}))
	eventually(s.t, "a look at the paused resource", func() error {
		if n := s.operator.reconciles(p.controller()); n == seen {
			return errNotYet
		}
		return nil
	})
	s.settle()
	objects := s.operatorRequests(from).mutating().about("configmaps")
	if len(objects) > 0 || field(s.get("ConfigMap", "web-shop"), "data", "text") != "drifted" {
		s.t.Errorf("during the pause there were writes: %s", objects)
	}
	began := time.Now()
	s.patch(cr, annotation("operetta.dev/paused", nil))
	s.expectData("web-shop", "text", text)
	took := since(began)
	u := s.expectAllReady(cr)
	if c := condition(u, "Paused"); len(c) > 0 {
		s.t.Errorf("after the pause it says %v", c)
	}
	return took
}

func TestLogLevelOfOneResourceIsItsOwn(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "loud", plain)
	o := s.operate(p.dir)
	loud, quiet := s.create(p.thing(s, "loud", nil)), s.create(p.thing(s, "quiet", nil))
	for _, cr := range []*unstructured.Unstructured{loud, quiet} {
		s.expectAllReady(cr)
	}
	s.settle()
	details := func(from int, name string) (out []string) {
		for line := range lines(o.log.from(from), "msg=component") {
			if strings.Contains(line, s.namespace+"/"+name) {
				out = append(out, line)
			}
		}
		return out
	}
	if got := append(details(0, "loud"), details(0, "quiet")...); len(got) > 0 {
		t.Errorf("nobody has asked for %q", got)
	}
	from := o.log.len()
	s.patch(loud, annotation("operetta.dev/log-level", "debug"))
	o.expectLogAfter(from, "msg=component", s.namespace+"/loud", "name=web", "state=Verified")
	if len(details(from, "loud")) == 0 {
		t.Error("its details are not found in the log")
	}
	before := o.reconciles(p.controller())
	s.patch(quiet, annotation("example.com/poke", "now"))
	eventually(t, "a look at the other resource", func() error {
		if o.reconciles(p.controller()) == before {
			return errNotYet
		}
		return nil
	})
	if got := details(from, "quiet"); len(got) > 0 {
		t.Errorf("another resource is loud as well: %q", got)
	}

	s.patch(loud, annotation("operetta.dev/log-level", nil))
	s.settle()
	from = o.log.len()
	s.patch(loud, spec(map[string]any{"text": "b"}))
	s.expectData("web-loud", "text", "b")
	s.settle()
	if got := details(from, "loud"); len(got) > 0 {
		t.Errorf("without the annotation it says %q", got)
	}
}

func TestRequeueAfterBringsFurtherReconcilesWithoutAnEvent(t *testing.T) {
	t.Parallel()
	for name, row := range map[string]struct {
		pkg, body string
		spec      map[string]any
		stop      bool
	}{
		"constant":          {"constant", plain + `requeueAfter: "1s"`, nil, false},
		"from the resource": {"asked", plain + `#Spec: every: string` + "\n" + `requeueAfter: cr.spec.every`, map[string]any{"every": "1s"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newSmall(t, row.pkg, row.body)
			o := s.operate(p.dir)
			cr := s.create(p.thing(s, "shop", row.spec))
			s.expectAllReady(cr)
			s.settle()
			before, from, began := o.reconciles(p.controller()), mark(t), time.Now()
			eventually(t, "five more reconciles", func() error {
				if n := o.reconciles(p.controller()) - before; n < 5 {
					return fmt.Errorf("there were %d", n)
				}
				return nil
			})
			t.Logf("5 reconciles in %s", since(began))
			if took := time.Since(began); took < 3*time.Second {
				t.Errorf("they came within %s, and should be a second apart", took)
			}
			if asked := s.operatorRequests(from).verbs("get", "list", "patch", "update", "create"); len(asked) > 0 {
				t.Errorf("they cost requests: %s", asked)
			}
			if !row.stop {
				return
			}
			s.patch(cr, spec(map[string]any{"every": "1h"}))
			s.expectAllReady(cr)
			s.settle()
			s.onlyReconciles(o, p, 0, func() {})
		})
	}
}
