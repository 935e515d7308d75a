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
	"operetta.dev/test/machine"
)

// reportTimeout is how long each resource may take to report that its package is broken.
const reportTimeout = 10 * time.Second

// isReportedBroken returns nil if a resource reports that its package is broken and not served.
func isReportedBroken(u *unstructured.Unstructured, parts ...string) error {
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

// isNotReportedBroken returns nil if a resource is Ready and reports nothing about its package.
func isNotReportedBroken(u *unstructured.Unstructured) error {
	if c := harness.Condition(u, "PackageBroken"); len(c) > 0 {
		return fmt.Errorf("PackageBroken is %v", c)
	}
	return harness.Ready(u)
}

// statusWrites are the requests that write the status of resources of the package.
func (p *testPackage) statusWrites(r harness.Requests) harness.Requests {
	return r.Mutating().Filter(func(e controlplane.AuditEvent) bool { return e.Group == p.Name+".example.com" })
}

// thingCount is how many resources the tests of broken packages create.
const thingCount = 20

// createManyAndStopOperator creates several resources, waits until they are Ready, and kills their
// operator.
func (s *env) createManyAndStopOperator(p *testPackage, args ...string) []*unstructured.Unstructured {
	s.T.Helper()
	o := s.StartOperator(append([]string{p.Dir}, args...)...)
	var all []*unstructured.Unstructured
	for i := range thingCount {
		all = append(all, s.Create(p.Thing(s.Env, fmt.Sprintf("shop-%02d", i), map[string]any{})))
	}
	for _, cr := range all {
		s.ExpectResourceReady(cr)
	}
	s.WaitUntilIdle()
	if strings.Contains(o.Log.From(0), kindCollisionText) {
		s.T.Error("an operator takes its own writes for those of another one")
	}
	o.Stop()
	return all
}

func TestPackageThatIsBrokenAfterARestartIsSaidByEachResourceOnce(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "saidbroken", layeredBody)
	all := s.createManyAndStopOperator(p)
	before := s.ExpectObject(all[0], "to exist", harness.Exists)
	mend := p.breakSource()
	s.Patch(all[0], harness.Spec(map[string]any{"text": "b"}))
	from, began := harness.MarkAudit(t), time.Now()
	o := s.StartOperator(p.Dir)
	for _, cr := range all {
		s.ExpectObject(cr, "to say that its package is broken", func(u *unstructured.Unstructured) error { return isReportedBroken(u, "saidbroken.cue:2") })
	}
	harness.ExpectWithin(t, reportTimeout, "all of them to say so", time.Since(began))
	t.Logf("%d resources said so %s after the start", thingCount, harness.Elapsed(began))
	s.ExpectEvent("shop-00", "Failed", "saidbroken.cue:2")
	after := s.ExpectObject(all[0], "to exist", harness.Exists)
	for _, name := range []string{"inventory", "components", "componentsReady", "package"} {
		if fmt.Sprint(harness.Field(after, "status", name)) != fmt.Sprint(harness.Field(before, "status", name)) {
			t.Errorf("status.%s was %v and is %v", name, harness.Field(before, "status", name), harness.Field(after, "status", name))
		}
	}
	s.WaitUntilIdle()
	writes := s.OperatorRequests(from).Mutating()
	if n := len(p.statusWrites(writes)); n != thingCount+1 { // one of them was asked about first
		t.Errorf("%d writes of %d resources", n, thingCount)
	}
	if objects := writes.OfResource("configmaps"); len(objects) > 0 {
		t.Errorf("objects were written: %s", objects)
	}

	// The same fault is not written again, even by another operator.
	o.Stop()
	from = harness.MarkAudit(t)
	o = s.StartOperator(p.Dir)
	o.ExpectLog("waiting for it to be repaired")
	s.WaitUntilIdle()
	if again := p.statusWrites(s.OperatorRequests(from)); len(again) > 0 {
		t.Errorf("a restart has written the same again: %s", again)
	}
	position := o.Log.Len()
	mend()
	o.ExpectLogAfter(position, "package loaded", "package=saidbroken")
	for _, cr := range all {
		s.ExpectObject(cr, "to be Ready", isNotReportedBroken)
	}
	s.ExpectObject(s.Ref("Secret", "top-shop-00-b"), "to exist", harness.Exists)
}

func TestLastGoodVersionServesAfterARestart(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "keptgood", layeredBody)
	state := filepath.Join(t.TempDir(), "state")
	all := s.createManyAndStopOperator(p, "--state-dir", state)
	digest, _ := harness.Field(s.ExpectObject(all[0], "to exist", harness.Exists), "status", "package", "digest").(string)
	mend := p.breakSource()
	s.Patch(all[0], harness.Spec(map[string]any{"text": "b"}))
	from := harness.MarkAudit(t)
	o := s.StartOperator(p.Dir, "--state-dir", state, "--health-probe-bind-address", harness.AnyPort)
	o.ExpectLog("last good version", "keptgood.cue:2")
	s.ExpectObject(s.Ref("Secret", "top-shop-00-b"), "to exist", harness.Exists)
	outdated := func(u *unstructured.Unstructured) error {
		c := harness.Condition(u, "PackageBroken")
		text, _ := c["message"].(string)
		if c["status"] != "True" || c["reason"] != "LastGoodVersion" || !harness.ContainsAll(text, []string{digest, "keptgood.cue:2"}) {
			return fmt.Errorf("PackageBroken is %v", c)
		}
		return harness.Ready(u)
	}
	for _, cr := range all {
		s.ExpectObject(cr, "to say which version serves it", outdated)
	}
	if code := o.Probe("readyz"); code == http.StatusOK {
		t.Error("it is ready although its package is wrong: the old operator would be ended")
	}
	s.Create(p.Thing(s.Env, "new", map[string]any{}))
	s.ExpectObject(p.Thing(s.Env, "new", nil), "to be served", outdated)
	s.WaitUntilIdle()
	t.Logf("writes: %s", s.OperatorRequests(from).Mutating())

	mend()
	for _, cr := range all {
		s.ExpectObject(cr, "to say nothing about its package", isNotReportedBroken)
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
		between     func(s *env, p *testPackage, kept string)
		says        string
	}{
		"it was changed": {
			"what runs would not be what was served", "keptchanged",
			func(s *env, _ *testPackage, kept string) {
				b, err := os.ReadFile(kept)
				if err != nil {
					s.T.Fatal(err)
				}
				harness.WriteFile(s.T, kept, strings.ReplaceAll(string(b), "base-", "basis-"))
			}, "digest",
		},
		"another was served since": {
			"it would take back what others have rolled out", "keptold",
			func(s *env, p *testPackage, _ string) {
				b, err := os.ReadFile(p.file())
				if err != nil {
					s.T.Fatal(err)
				}
				harness.WriteFile(s.T, p.file(), strings.ReplaceAll(string(b), "base-", "basis-"))
				o := s.StartOperator(p.Dir) // without the folder
				s.ExpectObject(s.Ref("ConfigMap", "basis-shop"), "to exist", harness.Exists)
				s.ExpectResourceReady(p.Thing(s.Env, "shop", nil))
				o.Stop()
			}, "another version",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			p := newTestPackage(t, c.pkg, layeredBody)
			state := filepath.Join(t.TempDir(), "state")
			o := s.StartOperator(p.Dir, "--state-dir", state)
			cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
			s.ExpectResourceReady(cr)
			o.Stop()
			kept, err := filepath.Glob(filepath.Join(state, "packages", "*.json"))
			if err != nil || len(kept) != 1 {
				t.Fatalf("kept are %v, %v", kept, err)
			}
			c.between(s, p, kept[0])
			p.breakSource()
			from := harness.MarkAudit(t)
			o = s.StartOperator(p.Dir, "--state-dir", state)
			t.Log(o.ExpectLog("is not used", c.says))
			s.ExpectObject(cr, "to say that nothing serves it", func(u *unstructured.Unstructured) error { return isReportedBroken(u, c.pkg+".cue:2") })
			if objects := s.OperatorRequests(from).Mutating().OfResource("configmaps"); len(objects) > 0 {
				t.Errorf("%s: %s", c.reason, objects)
			}
		})
	}
}

func TestProcessWithABrokenPackageLeavesResourcesToWhoeverServesThem(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p, same := newTestPackage(t, "twoprocesses", layeredBody), newTestPackage(t, "twoprocesses", layeredBody)
	first := s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	settled := s.ExpectResourceReady(cr)
	s.WaitUntilIdle()
	same.breakSource()
	second := s.StartOperator(same.Dir)
	second.ExpectLog("another process serves its kind", "twoprocesses")
	s.WaitUntilIdle()
	u := s.ExpectObject(cr, "to be Ready", isNotReportedBroken)
	for _, kind := range []string{"Ready", "Stalled"} {
		if was, is := harness.Condition(settled, kind), harness.Condition(u, kind); fmt.Sprint(was) != fmt.Sprint(is) {
			t.Errorf("%s was %v and is %v", kind, was, is)
		}
	}
	s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectObject(s.Ref("Secret", "top-shop-b"), "to exist", harness.Exists)
	s.ExpectObject(cr, "to be Ready", isNotReportedBroken)

	// Once the other operator is gone, nothing serves the resources, and their status reports it.
	first.Stop()
	s.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	s.ExpectObject(cr, "to say that nothing serves it", func(u *unstructured.Unstructured) error { return isReportedBroken(u, "twoprocesses.cue:2") })
}

func TestResourcesSayThatTheLastGoodVersionOfAnEditedPackageServesThem(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "editedbroken", layeredBody)
	o := s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	s.WaitUntilIdle()
	position, from := o.Log.Len(), harness.MarkAudit(t)
	mend := p.breakSource()
	s.ExpectObject(cr, "to say which version serves it", func(u *unstructured.Unstructured) error {
		if c := harness.Condition(u, "PackageBroken"); c["reason"] != "LastGoodVersion" {
			return fmt.Errorf("PackageBroken is %v", c)
		}
		return harness.Ready(u)
	})
	mend()
	line := o.ExpectLogAfter(position, "the same version keeps running", "package=editedbroken")
	s.ExpectObject(cr, "to be Ready", isNotReportedBroken)
	if log := o.Log.From(position); strings.Contains(log, "package replaced") {
		t.Errorf("the log says that a package was replaced by itself:\n%s", log)
	}
	t.Log(line)
	s.WaitUntilIdle()
	if writes := p.statusWrites(s.OperatorRequests(from)); len(writes) != 2 {
		t.Errorf("it is said once and taken back once, and written were %s", writes)
	}
}

// kindCollisionText is the log message of an operator that notices another one serving its kind.
const kindCollisionText = "another process serves this kind and shares no Lease"

// Two operators without a common Lease have different versions of a package. Each takes back what the other one writes, ever more seldom,
// and a resource says so. Once one of them ends, the other has its way.
func TestTwoOperatorsWithDifferentVersionsCostFewRequestsAndAreTold(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	versions := []*testPackage{newTestPackage(t, "twoversions", note("a")), newTestPackage(t, "twoversions", note("b"))}
	var running []*harness.Operator
	for _, p := range versions {
		running = append(running, s.StartOperator(p.Dir))
	}
	from := harness.MarkAudit(t)
	cr := s.Create(versions[0].Thing(s.Env, "shop", map[string]any{"text": "x"}))
	s.expectBoundedRequests(from, len(running))
	t.Log(s.ExpectEvent("shop", "ServedTwice", "--leader-elect"))
	for i, o := range running {
		if n := strings.Count(o.Log.From(0), kindCollisionText); n > 1 {
			t.Errorf("operator %d says it %d times", i, n)
		}
	}
	running[0].Stop()
	s.Patch(cr, harness.Spec(map[string]any{"text": "y"}))
	s.ExpectData("note-shop", "text", "y")
	s.ExpectData("note-shop", "version", "b")
	s.ExpectResourceReady(cr)
}

func TestTwoOperatorsOfOneKindWithoutALeaseAreTold(t *testing.T) {
	t.Parallel()
	machine.Thorough(t)
	s := newEnv(t)
	p := newTestPackage(t, "servedtwice", layeredBody)
	first, second := s.StartOperator(p.Dir), s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	told := func() bool {
		return strings.Contains(first.Log.From(0), kindCollisionText) || strings.Contains(second.Log.From(0), kindCollisionText)
	}
	for try := 0; !told(); try++ {
		if try > 40 {
			t.Fatal("neither has noticed the other")
		}
		text := fmt.Sprint("t", try)
		s.Patch(cr, harness.Spec(map[string]any{"text": text}))
		s.ExpectObject(s.Ref("Secret", "top-shop-"+text), "to exist", harness.Exists)
		s.ExpectResourceReady(cr)
		s.WaitUntilIdle()
	}
	t.Log(s.ExpectEvent("shop", "ServedTwice", "--leader-elect"))
	for _, o := range []*harness.Operator{first, second} {
		if n := strings.Count(o.Log.From(0), kindCollisionText); n > 1 {
			t.Errorf("it was said %d times", n)
		}
	}
}
