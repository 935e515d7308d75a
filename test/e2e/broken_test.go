package e2e

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// sayLimit is how soon each resource has to say that its package is broken.
const sayLimit = 10 * time.Second

// saysBroken returns nil when a resource says that its package is wrong and not served.
func saysBroken(u *unstructured.Unstructured, parts ...string) error {
	ready, stalled, broken := harness.Condition(u, "Ready"), harness.Condition(u, "Stalled"), harness.Condition(u, "PackageBroken")
	text, _ := ready["message"].(string)
	switch {
	case ready["status"] != "False" || ready["reason"] != "PackageBroken" || ready["observedGeneration"] != u.GetGeneration():
		return fmt.Errorf("Ready is %v", ready)
	case stalled["status"] != "True" || stalled["reason"] != "PackageBroken":
		return fmt.Errorf("Stalled is %v", stalled)
	case broken["status"] != "True" || broken["reason"] != "NotServed":
		return fmt.Errorf("PackageBroken is %v", broken)
	case harness.Field(u, "status", "observedGeneration") != u.GetGeneration():
		return fmt.Errorf("kstatus takes it for in progress: observed %v of %d", harness.Field(u, "status", "observedGeneration"), u.GetGeneration())
	case !harness.ContainsAll(text, parts):
		return fmt.Errorf("the message is %q, without %q", text, parts)
	}
	return nil
}

// notBroken returns nil when a resource is Ready and says nothing about its package.
func notBroken(u *unstructured.Unstructured) error {
	if c := harness.Condition(u, "PackageBroken"); len(c) > 0 {
		return fmt.Errorf("PackageBroken is %v", c)
	}
	return harness.Ready(u)
}

// statusWrites are the requests that write the status of resources of the package.
func (p *small) statusWrites(r harness.Requests) harness.Requests {
	return r.Mutating().Only(func(e controlplane.AuditEvent) bool { return e.Group == p.Name+".example.com" })
}

// things is how many resources the tests of broken packages have.
const things = 20

// abandonMany rolls several resources out and ends their operator.
func (s *site) abandonMany(p *small, args ...string) []*unstructured.Unstructured {
	s.T.Helper()
	o := s.Operate(append([]string{p.Dir}, args...)...)
	var all []*unstructured.Unstructured
	for i := range things {
		all = append(all, s.Create(p.Thing(s.Site, fmt.Sprintf("shop-%02d", i), map[string]any{})))
	}
	for _, cr := range all {
		s.ExpectAllReady(cr)
	}
	s.Settle()
	if strings.Contains(o.Log.From(0), servedTwice) {
		s.T.Error("an operator takes its own writes for those of another one")
	}
	o.Stop()
	return all
}

func TestPackageThatIsBrokenAfterARestartIsSaidByEachResourceOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "saidbroken", layered)
	all := s.abandonMany(p)
	before := s.ExpectThat(all[0], "to exist", harness.Exists)
	mend := p.spoil()
	s.Patch(all[0], harness.Spec(map[string]any{"text": "b"}))
	from, began := harness.Mark(t), time.Now()
	o := s.Operate(p.Dir)
	for _, cr := range all {
		s.ExpectThat(cr, "to say that its package is broken", func(u *unstructured.Unstructured) error { return saysBroken(u, "saidbroken.cue:2") })
	}
	if took := time.Since(began); took > sayLimit {
		t.Errorf("all of them said so after %s", took)
	}
	t.Logf("%d resources said so %s after the start", things, harness.Since(began))
	s.ExpectEvent("shop-00", "Failed", "saidbroken.cue:2")
	after := s.ExpectThat(all[0], "to exist", harness.Exists)
	for _, name := range []string{"inventory", "components", "componentsReady", "package"} {
		if fmt.Sprint(harness.Field(after, "status", name)) != fmt.Sprint(harness.Field(before, "status", name)) {
			t.Errorf("status.%s was %v and is %v", name, harness.Field(before, "status", name), harness.Field(after, "status", name))
		}
	}
	s.Settle()
	writes := s.OperatorRequests(from).Mutating()
	if n := len(p.statusWrites(writes)); n != things+1 { // one of them was asked about first
		t.Errorf("%d writes of %d resources", n, things)
	}
	if objects := writes.About("configmaps"); len(objects) > 0 {
		t.Errorf("objects were written: %s", objects)
	}

	// The same fault says nothing new, whoever says it.
	o.Stop()
	from = harness.Mark(t)
	o = s.Operate(p.Dir)
	o.ExpectLog("waiting for it to be repaired")
	s.Settle()
	if again := p.statusWrites(s.OperatorRequests(from)); len(again) > 0 {
		t.Errorf("a restart has written the same again: %s", again)
	}
	position := o.Log.Len()
	mend()
	o.ExpectLogAfter(position, "package loaded", "package=saidbroken")
	for _, cr := range all {
		s.ExpectThat(cr, "to be Ready", notBroken)
	}
	s.ExpectThat(s.Ref("Secret", "top-shop-00-b"), "to exist", harness.Exists)
}

func TestLastGoodVersionServesAfterARestart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "keptgood", layered)
	state := filepath.Join(t.TempDir(), "state")
	all := s.abandonMany(p, "--state-dir", state)
	digest, _ := harness.Field(s.ExpectThat(all[0], "to exist", harness.Exists), "status", "package", "digest").(string)
	mend := p.spoil()
	s.Patch(all[0], harness.Spec(map[string]any{"text": "b"}))
	from := harness.Mark(t)
	o := s.Operate(p.Dir, "--state-dir", state, "--health-probe-bind-address", harness.AnyPort)
	o.ExpectLog("last good version", "keptgood.cue:2")
	s.ExpectThat(s.Ref("Secret", "top-shop-00-b"), "to exist", harness.Exists)
	outdated := func(u *unstructured.Unstructured) error {
		c := harness.Condition(u, "PackageBroken")
		text, _ := c["message"].(string)
		if c["status"] != "True" || c["reason"] != "LastGoodVersion" || !harness.ContainsAll(text, []string{digest, "keptgood.cue:2"}) {
			return fmt.Errorf("PackageBroken is %v", c)
		}
		return harness.Ready(u)
	}
	for _, cr := range all {
		s.ExpectThat(cr, "to say which version serves it", outdated)
	}
	if code := o.Probe("readyz"); code == http.StatusOK {
		t.Error("it is ready although its package is wrong: the old operator would be ended")
	}
	s.Create(p.Thing(s.Site, "new", map[string]any{}))
	s.ExpectThat(p.Thing(s.Site, "new", nil), "to be served", outdated)
	s.Settle()
	t.Logf("writes: %s", s.OperatorRequests(from).Mutating())

	mend()
	for _, cr := range all {
		s.ExpectThat(cr, "to say nothing about its package", notBroken)
	}
	harness.Eventually(t, "the operator to be ready", func() error {
		if code := o.Probe("readyz"); code != http.StatusOK {
			return fmt.Errorf("readyz says %d", code)
		}
		return nil
	})
}

func TestKeptVersionThatMustNotServeDoesNot(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		reason, pkg string
		between     func(s *site, p *small, kept string)
		says        string
	}{
		"it was changed": {
			"what runs would not be what was served", "keptchanged",
			func(s *site, _ *small, kept string) {
				b, err := os.ReadFile(kept)
				if err != nil {
					s.T.Fatal(err)
				}
				harness.WriteFile(s.T, kept, strings.ReplaceAll(string(b), "base-", "basis-"))
			}, "digest",
		},
		"another was served since": {
			"it would take back what others have rolled out", "keptold",
			func(s *site, p *small, _ string) {
				b, err := os.ReadFile(p.file())
				if err != nil {
					s.T.Fatal(err)
				}
				harness.WriteFile(s.T, p.file(), strings.ReplaceAll(string(b), "base-", "basis-"))
				o := s.Operate(p.Dir) // without the folder
				s.ExpectThat(s.Ref("ConfigMap", "basis-shop"), "to exist", harness.Exists)
				s.ExpectAllReady(p.Thing(s.Site, "shop", nil))
				o.Stop()
			}, "another version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newSmall(t, c.pkg, layered)
			state := filepath.Join(t.TempDir(), "state")
			o := s.Operate(p.Dir, "--state-dir", state)
			cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
			s.ExpectAllReady(cr)
			o.Stop()
			kept, err := filepath.Glob(filepath.Join(state, "packages", "*.json"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept are %v, %v", kept, err)
			}
			c.between(s, p, kept[0])
			p.spoil()
			from := harness.Mark(t)
			o = s.Operate(p.Dir, "--state-dir", state)
			t.Log(o.ExpectLog("is not used", c.says))
			s.ExpectThat(cr, "to say that nothing serves it", func(u *unstructured.Unstructured) error { return saysBroken(u, c.pkg+".cue:2") })
			if objects := s.OperatorRequests(from).Mutating().About("configmaps"); len(objects) > 0 {
				t.Errorf("%s: %s", c.reason, objects)
			}
		})
	}
}

func TestProcessWithABrokenPackageLeavesResourcesToWhoeverServesThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, same := newSmall(t, "twoprocesses", layered), newSmall(t, "twoprocesses", layered)
	first := s.Operate(p.Dir)
	cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
	settled := s.ExpectAllReady(cr)
	s.Settle()
	same.spoil()
	second := s.Operate(same.Dir)
	second.ExpectLog("another process serves the kind", "twoprocesses")
	s.Settle()
	u := s.ExpectThat(cr, "to be Ready", notBroken)
	for _, kind := range []string{"Ready", "Stalled"} {
		if was, is := harness.Condition(settled, kind), harness.Condition(u, kind); fmt.Sprint(was) != fmt.Sprint(is) {
			t.Errorf("%s was %v and is %v", kind, was, is)
		}
	}
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectThat(s.Ref("Secret", "top-shop-b"), "to exist", harness.Exists)
	s.ExpectThat(cr, "to be Ready", notBroken)

	// Once that one is gone, nobody serves them, and that is said when it matters.
	first.Stop()
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectThat(cr, "to say that nothing serves it", func(u *unstructured.Unstructured) error { return saysBroken(u, "twoprocesses.cue:2") })
}

func TestResourcesSayThatTheLastGoodVersionOfAnEditedPackageServesThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "editedbroken", layered)
	o := s.Operate(p.Dir)
	cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
	s.ExpectAllReady(cr)
	s.Settle()
	position, from := o.Log.Len(), harness.Mark(t)
	mend := p.spoil()
	s.ExpectThat(cr, "to say which version serves it", func(u *unstructured.Unstructured) error {
		if c := harness.Condition(u, "PackageBroken"); c["reason"] != "LastGoodVersion" {
			return fmt.Errorf("PackageBroken is %v", c)
		}
		return harness.Ready(u)
	})
	mend()
	line := o.ExpectLogAfter(position, "the same version keeps running", "package=editedbroken")
	s.ExpectThat(cr, "to be Ready", notBroken)
	if log := o.Log.From(position); strings.Contains(log, "package replaced") {
		t.Errorf("the log says that a package was replaced by itself:\n%s", log)
	}
	t.Log(line)
	s.Settle()
	if writes := p.statusWrites(s.OperatorRequests(from)); len(writes) != 2 {
		t.Errorf("it is said once and taken back once, and written were %s", writes)
	}
}

// servedTwice is what an operator logs that sees another one serve its kind.
const servedTwice = "another process serves this kind and shares no Lease"

func TestTwoOperatorsOfOneKindWithoutALeaseAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "servedtwice", layered)
	first, second := s.Operate(p.Dir), s.Operate(p.Dir)
	cr := s.Create(p.Thing(s.Site, "shop", map[string]any{}))
	s.ExpectAllReady(cr)
	told := func() bool {
		return strings.Contains(first.Log.From(0), servedTwice) || strings.Contains(second.Log.From(0), servedTwice)
	}
	for try := 0; !told(); try++ {
		if try > 40 {
			t.Fatal("neither has noticed the other")
		}
		text := fmt.Sprint("t", try)
		s.Patch(cr, harness.Spec(map[string]any{"text": text}))
		s.ExpectThat(s.Ref("Secret", "top-shop-"+text), "to exist", harness.Exists)
		s.ExpectAllReady(cr)
		s.Settle()
	}
	t.Log(s.ExpectEvent("shop", "ServedTwice", "--leader-elect"))
	for _, o := range []*harness.Operator{first, second} {
		if n := strings.Count(o.Log.From(0), servedTwice); n > 1 {
			t.Errorf("it was said %d times", n)
		}
	}
}
