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
)

// sayLimit is how soon each resource has to say that its package is broken.
const sayLimit = 10 * time.Second

// saysBroken returns nil when a resource says that its package is wrong and not served.
func saysBroken(u *unstructured.Unstructured, parts ...string) error {
	ready, stalled, broken := condition(u, "Ready"), condition(u, "Stalled"), condition(u, "PackageBroken")
	text, _ := ready["message"].(string)
	switch {
	case ready["status"] != "False" || ready["reason"] != "PackageBroken" || ready["observedGeneration"] != u.GetGeneration():
		return fmt.Errorf("Ready is %v", ready)
	case stalled["status"] != "True" || stalled["reason"] != "PackageBroken":
		return fmt.Errorf("Stalled is %v", stalled)
	case broken["status"] != "True" || broken["reason"] != "NotServed":
		return fmt.Errorf("PackageBroken is %v", broken)
	case field(u, "status", "observedGeneration") != u.GetGeneration():
		return fmt.Errorf("kstatus takes it for in progress: observed %v of %d", field(u, "status", "observedGeneration"), u.GetGeneration())
	case !containsAll(text, parts):
		return fmt.Errorf("the message is %q, without %q", text, parts)
	}
	return nil
}

// notBroken returns nil when a resource is Ready and says nothing about its package.
func notBroken(u *unstructured.Unstructured) error {
	if c := condition(u, "PackageBroken"); len(c) > 0 {
		return fmt.Errorf("PackageBroken is %v", c)
	}
	return ready(u)
}

// statusWrites are the requests that write the status of resources of the package.
func (p *small) statusWrites(r requests) requests {
	return r.mutating().only(func(e controlplane.AuditEvent) bool { return e.Group == p.name+".example.com" })
}

// things is how many resources the tests of broken packages have.
const things = 20

// abandonMany rolls several resources out and ends their operator.
func (s *site) abandonMany(p *small, args ...string) []*unstructured.Unstructured {
	s.t.Helper()
	o := s.operate(append([]string{p.dir}, args...)...)
	var all []*unstructured.Unstructured
	for i := range things {
		all = append(all, s.create(p.thing(s, fmt.Sprintf("shop-%02d", i), map[string]any{})))
	}
	for _, cr := range all {
		s.expectAllReady(cr)
	}
	s.settle()
	if strings.Contains(o.log.from(0), servedTwice) {
		s.t.Error("an operator takes its own writes for those of another one")
	}
	o.stop()
	return all
}

func TestPackageThatIsBrokenAfterARestartIsSaidByEachResourceOnce(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "saidbroken", layered)
	all := s.abandonMany(p)
	before := s.expectThat(all[0], "to exist", exists)
	mend := p.spoil()
	s.patch(all[0], spec(map[string]any{"text": "b"}))
	from, began := mark(t), time.Now()
	o := s.operate(p.dir)
	for _, cr := range all {
		s.expectThat(cr, "to say that its package is broken", func(u *unstructured.Unstructured) error { return saysBroken(u, "saidbroken.cue:2") })
	}
	if took := time.Since(began); took > sayLimit {
		t.Errorf("all of them said so after %s", took)
	}
	t.Logf("%d resources said so %s after the start", things, since(began))
	s.expectEvent("shop-00", "Failed", "saidbroken.cue:2")
	after := s.expectThat(all[0], "to exist", exists)
	for _, name := range []string{"inventory", "components", "componentsReady", "package"} {
		if fmt.Sprint(field(after, "status", name)) != fmt.Sprint(field(before, "status", name)) {
			t.Errorf("status.%s was %v and is %v", name, field(before, "status", name), field(after, "status", name))
		}
	}
	s.settle()
	writes := s.operatorRequests(from).mutating()
	if n := len(p.statusWrites(writes)); n != things+1 { // one of them was asked about first
		t.Errorf("%d writes of %d resources", n, things)
	}
	if objects := writes.about("configmaps"); len(objects) > 0 {
		t.Errorf("objects were written: %s", objects)
	}

	// The same fault says nothing new, whoever says it.
	o.stop()
	from = mark(t)
	o = s.operate(p.dir)
	o.expectLog("waiting for it to be mended")
	s.settle()
	if again := p.statusWrites(s.operatorRequests(from)); len(again) > 0 {
		t.Errorf("a restart has written the same again: %s", again)
	}
	position := o.log.len()
	mend()
	o.expectLogAfter(position, "package loaded", "package=saidbroken")
	for _, cr := range all {
		s.expectThat(cr, "to be Ready", notBroken)
	}
	s.expectThat(s.ref("Secret", "top-shop-00-b"), "to exist", exists)
}

func TestLastGoodVersionServesAfterARestart(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "keptgood", layered)
	state := filepath.Join(t.TempDir(), "state")
	all := s.abandonMany(p, "--state-dir", state)
	digest, _ := field(s.expectThat(all[0], "to exist", exists), "status", "package", "digest").(string)
	mend := p.spoil()
	s.patch(all[0], spec(map[string]any{"text": "b"}))
	from := mark(t)
	o := s.operate(p.dir, "--state-dir", state, "--health-address", anyPort)
	o.expectLog("last good version", "keptgood.cue:2")
	s.expectThat(s.ref("Secret", "top-shop-00-b"), "to exist", exists)
	outdated := func(u *unstructured.Unstructured) error {
		c := condition(u, "PackageBroken")
		text, _ := c["message"].(string)
		if c["status"] != "True" || c["reason"] != "LastGoodVersion" || !containsAll(text, []string{digest, "keptgood.cue:2"}) {
			return fmt.Errorf("PackageBroken is %v", c)
		}
		return ready(u)
	}
	for _, cr := range all {
		s.expectThat(cr, "to say which version serves it", outdated)
	}
	if code := o.ready(); code == http.StatusOK {
		t.Error("it is ready although its package is wrong: the old operator would be ended")
	}
	s.create(p.thing(s, "new", map[string]any{}))
	s.expectThat(p.thing(s, "new", nil), "to be served", outdated)
	s.settle()
	t.Logf("writes: %s", s.operatorRequests(from).mutating())

	mend()
	for _, cr := range all {
		s.expectThat(cr, "to say nothing about its package", notBroken)
	}
	eventually(t, "the operator to be ready", func() error {
		if code := o.ready(); code != http.StatusOK {
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
					s.t.Fatal(err)
				}
				writeFile(s.t, kept, strings.ReplaceAll(string(b), "base-", "basis-"))
			}, "digest",
		},
		"another was served since": {
			"it would take back what others have rolled out", "keptold",
			func(s *site, p *small, _ string) {
				b, err := os.ReadFile(p.file())
				if err != nil {
					s.t.Fatal(err)
				}
				writeFile(s.t, p.file(), strings.ReplaceAll(string(b), "base-", "basis-"))
				o := s.operate(p.dir) // without the folder
				s.expectThat(s.ref("ConfigMap", "basis-shop"), "to exist", exists)
				s.expectAllReady(p.thing(s, "shop", nil))
				o.stop()
			}, "another version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newSite(t)
			p := newSmall(t, c.pkg, layered)
			state := filepath.Join(t.TempDir(), "state")
			o := s.operate(p.dir, "--state-dir", state)
			cr := s.create(p.thing(s, "shop", map[string]any{}))
			s.expectAllReady(cr)
			o.stop()
			kept, err := filepath.Glob(filepath.Join(state, "packages", "*.json"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept are %v, %v", kept, err)
			}
			c.between(s, p, kept[0])
			p.spoil()
			from := mark(t)
			o = s.operate(p.dir, "--state-dir", state)
			t.Log(o.expectLog("is not used", c.says))
			s.expectThat(cr, "to say that nothing serves it", func(u *unstructured.Unstructured) error { return saysBroken(u, c.pkg+".cue:2") })
			if objects := s.operatorRequests(from).mutating().about("configmaps"); len(objects) > 0 {
				t.Errorf("%s: %s", c.reason, objects)
			}
		})
	}
}

func TestProcessWithABrokenPackageLeavesResourcesToWhoeverServesThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p, same := newSmall(t, "twoprocesses", layered), newSmall(t, "twoprocesses", layered)
	first := s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	settled := s.expectAllReady(cr)
	s.settle()
	same.spoil()
	second := s.operate(same.dir)
	second.expectLog("another process serves the kind", "twoprocesses")
	s.settle()
	u := s.expectThat(cr, "to be Ready", notBroken)
	for _, kind := range []string{"Ready", "Stalled"} {
		if was, is := condition(settled, kind), condition(u, kind); fmt.Sprint(was) != fmt.Sprint(is) {
			t.Errorf("%s was %v and is %v", kind, was, is)
		}
	}
	s.patch(cr, spec(map[string]any{"text": "b"}))
	s.expectThat(s.ref("Secret", "top-shop-b"), "to exist", exists)
	s.expectThat(cr, "to be Ready", notBroken)

	// Once that one is gone, nobody serves them, and that is said when it matters.
	first.stop()
	s.patch(cr, spec(map[string]any{"text": "c"}))
	s.expectThat(cr, "to say that nothing serves it", func(u *unstructured.Unstructured) error { return saysBroken(u, "twoprocesses.cue:2") })
}

func TestResourcesSayThatTheLastGoodVersionOfAnEditedPackageServesThem(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "editedbroken", layered)
	o := s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	s.expectAllReady(cr)
	s.settle()
	position, from := o.log.len(), mark(t)
	mend := p.spoil()
	s.expectThat(cr, "to say which version serves it", func(u *unstructured.Unstructured) error {
		if c := condition(u, "PackageBroken"); c["reason"] != "LastGoodVersion" {
			return fmt.Errorf("PackageBroken is %v", c)
		}
		return ready(u)
	})
	mend()
	line := o.expectLogAfter(position, "the same version keeps running", "package=editedbroken")
	s.expectThat(cr, "to be Ready", notBroken)
	if log := o.log.from(position); strings.Contains(log, "package replaced") {
		t.Errorf("the log says that a package was replaced by itself:\n%s", log)
	}
	t.Log(line)
	s.settle()
	if writes := p.statusWrites(s.operatorRequests(from)); len(writes) != 2 {
		t.Errorf("it is said once and taken back once, and written were %s", writes)
	}
}

// servedTwice is what an operator logs that sees another one serve its kind.
const servedTwice = "another process serves this kind and shares no Lease"

func TestTwoOperatorsOfOneKindWithoutALeaseAreTold(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "servedtwice", layered)
	first, second := s.operate(p.dir), s.operate(p.dir)
	cr := s.create(p.thing(s, "shop", map[string]any{}))
	s.expectAllReady(cr)
	told := func() bool {
		return strings.Contains(first.log.from(0), servedTwice) || strings.Contains(second.log.from(0), servedTwice)
	}
	for try := 0; !told(); try++ {
		if try > 40 {
			t.Fatal("neither has noticed the other")
		}
		text := fmt.Sprint("t", try)
		s.patch(cr, spec(map[string]any{"text": text}))
		s.expectThat(s.ref("Secret", "top-shop-"+text), "to exist", exists)
		s.expectAllReady(cr)
		s.settle()
	}
	t.Log(s.expectEvent("shop", "ServedTwice", "--leader-elect"))
	for _, o := range []*operator{first, second} {
		if n := strings.Count(o.log.from(0), servedTwice); n > 1 {
			t.Errorf("it was said %d times", n)
		}
	}
}
