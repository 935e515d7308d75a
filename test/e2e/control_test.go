package e2e

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

const plainBody = `
#Spec: text: string | *"a"

components: web: objects: settings: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "web-\(cr.metadata.name)"
	data: text: cr.spec.text
}
`

// unpauseLimit is how soon after a pause the operator must repair a change that was made during it.
const unpauseLimit = 2 * time.Second

func TestPausedResourceIsLeftAloneUntilThePauseEnds(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "paused", plainBody)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{"text": "a"}))
	s.ExpectResourceReady(cr)
	harness.Fastest(t, unpauseLimit, "the repair after a pause of what was changed during it", func(try int) time.Duration {
		took := s.pauseAndDrift(p, cr, fmt.Sprintf("b%d", try))
		t.Logf("repaired %s after the pause", took)
		return took
	})

	// Deletion works during a pause.
	s.pause(cr)
	s.Delete(cr)
	s.ExpectFinished(cr, "ConfigMap")
}

// pause pauses a resource, and waits until its status says so.
func (s *env) pause(cr *unstructured.Unstructured) {
	s.T.Helper()
	s.Patch(cr, harness.Annotation("operetta.dev/paused", "true"))
	s.ExpectObject(cr, "to be paused", func(u *unstructured.Unstructured) error {
		if c := harness.Condition(u, "Paused"); c["status"] != "True" {
			return fmt.Errorf("its conditions are %v", harness.Field(u, "status", "conditions"))
		}
		return nil
	})
}

// pauseAndDrift changes an object and the spec during a pause, expects no write, and returns how long
// after the pause the operator takes to act.
func (s *env) pauseAndDrift(p *testPackage, cr *unstructured.Unstructured, text string) time.Duration {
	s.T.Helper()
	s.pause(cr)
	s.WaitUntilIdle()
	from, seen := harness.MarkAudit(s.T), s.Operator.Reconciles(p.Controller())
	s.Patch(s.Ref("ConfigMap", "web-shop"), map[string]any{"data": map[string]any{"text": "drifted"}})
	s.Patch(cr, harness.Spec(map[string]any{"text": text}))
	harness.Eventually(s.T, "a look at the paused resource", func() error {
		if n := s.Operator.Reconciles(p.Controller()); n == seen {
			return harness.ErrNotYet
		}
		return nil
	})
	s.WaitUntilIdle()
	objects := s.OperatorRequests(from).Mutating().OfResource("configmaps")
	if len(objects) > 0 || harness.Field(s.Get("ConfigMap", "web-shop"), "data", "text") != "drifted" {
		s.T.Errorf("during the pause there were writes: %s", objects)
	}
	began := time.Now()
	s.Patch(cr, harness.Annotation("operetta.dev/paused", nil))
	s.ExpectData("web-shop", "text", text)
	took := harness.Elapsed(began)
	u := s.ExpectResourceReady(cr)
	if c := harness.Condition(u, "Paused"); len(c) > 0 {
		s.T.Errorf("after the pause it says %v", c)
	}
	return took
}

func TestLogLevelOfOneResourceIsItsOwn(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "loud", plainBody)
	o := s.StartOperator(p.Dir, "--allow-annotations=log-level")
	loud, quiet := s.Create(p.Thing(s.Env, "loud", nil)), s.Create(p.Thing(s.Env, "quiet", nil))
	for _, cr := range []*unstructured.Unstructured{loud, quiet} {
		s.ExpectResourceReady(cr)
	}
	s.WaitUntilIdle()
	details := func(from int, name string) (out []string) {
		for line := range harness.Lines(o.Log.From(from), "msg=component") {
			if strings.Contains(line, s.Namespace+"/"+name) {
				out = append(out, line)
			}
		}
		return out
	}
	if got := append(details(0, "loud"), details(0, "quiet")...); len(got) > 0 {
		t.Errorf("nobody has asked for %q", got)
	}
	from := o.Log.Len()
	s.Patch(loud, harness.Annotation("operetta.dev/log-level", "debug"))
	o.ExpectLogAfter(from, "msg=component", s.Namespace+"/loud", "name=web", "state=Verified")
	if len(details(from, "loud")) == 0 {
		t.Error("its details are not found in the log")
	}
	before := o.Reconciles(p.Controller())
	s.Patch(quiet, harness.Annotation("example.com/poke", "now"))
	harness.Eventually(t, "a look at the other resource", func() error {
		if o.Reconciles(p.Controller()) == before {
			return harness.ErrNotYet
		}
		return nil
	})
	if got := details(from, "quiet"); len(got) > 0 {
		t.Errorf("another resource is loud as well: %q", got)
	}

	s.Patch(loud, harness.Annotation("operetta.dev/log-level", nil))
	s.WaitUntilIdle()
	from = o.Log.Len()
	s.Patch(loud, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("web-loud", "text", "b")
	s.WaitUntilIdle()
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
		"constant":          {"constant", plainBody + `requeueAfter: "1s"`, nil, false},
		"from the resource": {"asked", plainBody + `#Spec: every: string` + "\n" + `requeueAfter: cr.spec.every`, map[string]any{"every": "1s"}, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, row.pkg, row.body)
			o := s.StartOperator(p.Dir)
			cr := s.Create(p.Thing(s.Env, "shop", row.spec))
			s.ExpectResourceReady(cr)
			s.WaitUntilIdle()
			before, from, began := o.Reconciles(p.Controller()), harness.MarkAudit(t), time.Now()
			harness.Eventually(t, "five more reconciles", func() error {
				if n := o.Reconciles(p.Controller()) - before; n < 5 {
					return fmt.Errorf("there were %d", n)
				}
				return nil
			})
			t.Logf("5 reconciles in %s", harness.Elapsed(began))
			if took := time.Since(began); took < 3*time.Second {
				t.Errorf("they came within %s, and should be a second apart", took)
			}
			if asked := s.OperatorRequests(from).WithVerbs("get", "list", "patch", "update", "create"); len(asked) > 0 {
				t.Errorf("they cost requests: %s", asked)
			}
			if !row.stop {
				return
			}
			s.Patch(cr, harness.Spec(map[string]any{"every": "1h"}))
			s.ExpectResourceReady(cr)
			s.WaitUntilIdle()
			s.onlyReconciles(o, p, 0, func() {})
		})
	}
}
