package e2e

import (
	"fmt"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

// bystanderBody is a package that is unrelated to the one that is gone.
const bystanderBody = `
#Spec: text: string | *"a"

components: text: objects: configmap: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "bystander-\(cr.metadata.name)"
	data: text: cr.spec.text
}
`

// packageMissingText is part of the log message about resources of packages that are not loaded.
const packageMissingText = "whose package is not loaded here"

// createAndStopOperator creates a resource of a package, waits until it is Ready, and kills its
// operator.
func (s *env) createAndStopOperator(p *testPackage) *unstructured.Unstructured {
	s.T.Helper()
	o := s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	o.Stop()
	return cr
}

func TestG2DeletionNeedsNoOperatorThatEverHadThePackage(t *testing.T) {
	t.Parallel()
	t.Run("deleted before it starts", func(t *testing.T) {
		t.Parallel()
		s := newEnv(t)
		p := newTestPackage(t, "goneearly", layeredBody)
		cr := s.createAndStopOperator(p)
		from := harness.MarkAudit(t)
		s.Delete(cr)
		s.StartOperator(newTestPackage(t, "goneearlyby", bystanderBody).Dir)
		s.expectTornDown(cr, layeredKinds...)
		s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")
	})
	t.Run("deleted while it runs", func(t *testing.T) {
		t.Parallel()
		s := newEnv(t)
		p := newTestPackage(t, "gonelate", layeredBody)
		cr := s.createAndStopOperator(p)
		o := s.StartOperator(newTestPackage(t, "gonelateby", bystanderBody).Dir)
		o.ExpectLog(packageMissingText, p.Name)
		// Nothing but its deletion is looked at.
		s.Delete(s.Ref("Secret", "top-shop-a"))
		s.Patch(cr, harness.Spec(map[string]any{"text": "b"}))
		s.Create(p.Thing(s.Env, "new", map[string]any{}))
		from := harness.MarkAudit(t)
		s.WaitUntilIdle()
		if writes := s.OperatorRequests(from).Mutating(); len(writes) > 0 {
			t.Errorf("a resource without its package was reconciled: %s", writes)
		}
		s.Delete(cr)
		s.expectTornDown(cr, layeredKinds...)
		s.expectDeleted(from, "serviceaccounts", "configmaps")
	})
}

// breakSource makes the source of a package invalid, and returns a function that repairs it.
func (p *testPackage) breakSource() (mend func()) {
	p.T.Helper()
	body, err := os.ReadFile(p.file())
	if err != nil {
		p.T.Fatal(err)
	}
	harness.WriteFile(p.T, p.file(), "package "+p.Name+"\n components: {{{\n")
	return func() {
		p.T.Helper()
		harness.WriteFile(p.T, p.file(), string(body))
	}
}

func TestF2PackageThatIsBrokenAtTheStartHoldsNothingUpAndIsServedOnceItIsMended(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p, by := newTestPackage(t, "spoiled", layeredBody), newTestPackage(t, "spoiledby", bystanderBody)
	cr := s.createAndStopOperator(p)
	mend := p.breakSource()
	o := s.StartOperator(p.Dir, by.Dir, "--health-probe-bind-address", harness.AnyPort)
	t.Log(o.ExpectLog("waiting for it to be repaired", "spoiled.cue:2"))
	if code := o.Probe("readyz"); code == http.StatusOK {
		t.Error("it is ready although a package was never right: the old operator would be ended")
	}
	other := s.Create(by.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(other)
	from := harness.MarkAudit(t)
	s.Delete(cr)
	s.expectTornDown(cr, layeredKinds[1:]...)
	s.expectDeleted(from, "secrets", "serviceaccounts", "configmaps")

	position := o.Log.Len()
	mend()
	o.ExpectLogAfter(position, "package loaded", "package="+p.Name)
	again := p.Thing(s.Env, "again", map[string]any{})
	s.Create(again)
	s.ExpectResourceReady(again)
	harness.Eventually(t, "the operator to be ready", func() error {
		if code := o.Probe("readyz"); code != http.StatusOK {
			return fmt.Errorf("readyz says %d", code)
		}
		return nil
	})
	s.Patch(other, harness.Spec(map[string]any{"text": "b"}))
	s.ExpectData("bystander-shop", "text", "b")
}

func TestPackageThatIsMendedIsServedWithinTwoSeconds(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "mended", layeredBody)
	s.Serves(p.Dir)
	harness.Fastest(t, swapLimit, "to serve a package that was mended", func(int) time.Duration {
		mend := p.breakSource()
		o := s.StartOperator(p.Dir)
		o.ExpectLog("waiting for it to be repaired")
		began := time.Now()
		mend()
		o.ExpectLog("package loaded", "package=mended")
		took := harness.Elapsed(began)
		t.Logf("served %s after it was mended", took)
		o.Stop()
		return took
	})
}

func TestDeletionIsHeldWhileItsHooksNeedAPackageThatDoesNotRun(t *testing.T) {
	t.Parallel()
	held := func(s *env, p *testPackage, cr *unstructured.Unstructured, o *harness.Operator) {
		s.T.Helper()
		s.T.Log(s.ExpectNotReady(cr, "PackageMissing", "hooks.beforeDelete.backup", "package "+p.Name, "operetta.dev/skip-hooks"))
		s.ExpectEvent("shop", "DeletionHeld", "package "+p.Name)
		o.ExpectLog("DeletionHeld", p.Name)
		s.WaitUntilIdle()
		if u := s.Get("ConfigMap", "settings"); u.GetDeletionTimestamp() != nil {
			s.T.Error("an object went before its hook")
		}
	}
	t.Run("until a person skips them", func(t *testing.T) {
		t.Parallel()
		s := newEnv(t)
		p := newTestPackage(t, "heldskip", hookedBody)
		cr := s.createAndStopOperator(p)
		from := harness.MarkAudit(t)
		s.Delete(cr)
		o := s.StartOperator(newTestPackage(t, "heldskipby", bystanderBody).Dir, "--allow-annotations=skip-hooks")
		held(s, p, cr, o)
		s.Patch(cr, harness.Annotation("operetta.dev/skip-hooks", "true"))
		s.ExpectFinished(cr, "ConfigMap")
		s.expectJobsWritten(from, 0)
	})
	t.Run("until the package returns", func(t *testing.T) {
		t.Parallel()
		s := newEnv(t)
		p := newTestPackage(t, "heldback", hookedBody)
		cr := s.createAndStopOperator(p)
		mend := p.breakSource()
		from, before := harness.MarkAudit(t), s.ExpectObject(cr, "to exist", harness.Exists).GetResourceVersion()
		s.Delete(cr)
		o := s.StartOperator(p.Dir)
		held(s, p, cr, o)
		mend()
		s.ExpectFinished(cr, "ConfigMap")
		s.expectNoJobs()
		s.expectJobsWritten(from, 1)
		s.expectBackupFirst(before)
	})
}

func TestResourcesWithoutTheirPackageAreLeftToOthersIfTheOperatorSaysSo(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "leftalone", layeredBody)
	cr := s.createAndStopOperator(p)
	s.Delete(cr)
	s.StartOperator(newTestPackage(t, "leftaloneby", bystanderBody).Dir, "--package-missing", "leave")
	s.expectMinAge(cr, 15*time.Second)
	s.Get("Secret", "top-shop-a")
	s.StartOperator(p.Dir)
	s.expectTornDown(cr, layeredKinds...)
}

func TestTwoOperatorsThatTearOneResourceDownLeaveNothing(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "tornbytwo", layeredBody)
	s.StartOperator(p.Dir)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	s.StartOperator(newTestPackage(t, "tornbytwoby", bystanderBody).Dir).ExpectLog(packageMissingText, p.Name)
	middle := s.Ref("ServiceAccount", "middle-shop")
	s.Patch(middle, map[string]any{"metadata": map[string]any{"finalizers": []any{"example.com/hold"}}})
	from := harness.MarkAudit(t)
	s.Delete(cr)
	// The operator without the package starts later, and finds what the other one has not deleted.
	s.expectMinAge(cr, 15*time.Second)
	s.WaitUntilIdle()
	t.Log(s.ExpectNotReady(cr, "Deleting", "middle-shop", "example.com/hold"))
	s.Patch(middle, map[string]any{"metadata": map[string]any{"finalizers": nil}})
	s.ExpectFinished(cr, layeredKinds...)
	var order []string
	for _, e := range s.OperatorRequests(from).WithVerbs("delete").Filter(isOfACoreKind) {
		order = append(order, e.Resource)
	}
	if got, want := slices.Compact(order), []string{"secrets", "serviceaccounts", "configmaps"}; !slices.Equal(got, want) {
		t.Errorf("deleted %q, wanted %q", got, want)
	}
}

// expectMinAge waits until a resource has been in deletion for some time.
func (s *env) expectMinAge(cr *unstructured.Unstructured, age time.Duration) {
	s.T.Helper()
	s.ExpectObject(cr, "to wait", func(u *unstructured.Unstructured) error {
		if now := time.Since(u.GetDeletionTimestamp().Time); now < age {
			return fmt.Errorf("it is deleted for %s", now)
		}
		return nil
	})
}

func TestJ1OperatorThatMayNotListDefinitionsSaysSoOnceAndServes(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "confined", layeredBody)
	s.RestrictOperator(append(p.RequiredRules(), harness.Rule("", harness.WriteVerbs, "configmaps", "secrets", "serviceaccounts"))...)
	o := s.StartRestrictedOperator(p.TestPackage)
	cr := s.Create(p.Thing(s.Env, "shop", map[string]any{}))
	s.ExpectResourceReady(cr)
	o.ExpectLog("level=INFO", "may not list CustomResourceDefinitions")
	s.WaitUntilIdle()
	if n := strings.Count(o.Log.From(0), "may not list CustomResourceDefinitions"); n != 1 {
		t.Errorf("it was said %d times", n)
	}
	s.Delete(cr)
	s.ExpectFinished(cr, layeredKinds...)
}
