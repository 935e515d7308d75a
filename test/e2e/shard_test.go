package e2e

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// fleet is an operator of several processes, each with a user of its own, so that the audit log tells who writes.
type fleet struct {
	*env

	// args are what all of them are started with.
	args  []string
	users map[string]bool
}

// member starts the process of a shard. Extra arguments are packages and flags of its own.
func (f *fleet) member(name string, shard, of int, more ...string) *harness.Operator {
	f.T.Helper()
	own := f.As(name)
	f.users[own.User] = true
	return own.StartOperator(slices.Concat(f.args, more, []string{"--leader-elect", "--leader-elect-namespace", f.Namespace, "--shards", strconv.Itoa(of), "--shard", strconv.Itoa(shard)})...)
}

// writes returns the requests that have written the resources of the fleet or their objects.
func (f *fleet) writes(from controlplane.AuditMark) harness.Requests {
	f.T.Helper()
	return f.RequestsOf(from, slices.Collect(maps.Keys(f.users))...).Writes().Filter(func(e controlplane.AuditEvent) bool {
		return e.Resource == "things" || e.Resource == "configmaps"
	})
}

// expectOneWriter fails the test if two processes have written one resource, or its objects. It returns how many each has written.
func (f *fleet) expectOneWriter(from controlplane.AuditMark) map[string]int {
	f.T.Helper()
	by, count := map[string]string{}, map[string]int{}
	for _, e := range f.writes(from) {
		name := e.Name[strings.LastIndex(e.Name, "-")+1:]
		if other := by[name]; other != "" && other != e.User {
			f.T.Errorf("%s was written by %s and by %s", name, other, e.User)
		}
		by[name] = e.User
	}
	for _, user := range by {
		count[user]++
	}
	return count
}

// edit changes all resources, and waits until all have it.
func (f *fleet) edit(all []*unstructured.Unstructured, text string) {
	f.T.Helper()
	for _, cr := range all {
		f.Patch(cr, harness.Spec(map[string]any{"text": text}))
	}
	for _, cr := range all {
		f.ExpectData("web-"+cr.GetName(), "text", text)
	}
}

// having counts the resources whose object has a text.
func (f *fleet) having(all []*unstructured.Unstructured, text string) int {
	f.T.Helper()
	n := 0
	for _, cr := range all {
		if u := f.Get("ConfigMap", "web-"+cr.GetName()); harness.Field(u, "data", "text") == text {
			n++
		}
	}
	return n
}

func TestF39ShardsServeEachTheirOwnAndNeverTwoOneResource(t *testing.T) {
	t.Parallel()
	p := newTestPackage(t, "sharded", keptBody)
	f := &fleet{env: newEnv(t), args: []string{p.Dir}, users: map[string]bool{}}
	first, second := f.member("0of2", 0, 2), f.member("1of2", 1, 2)
	from := harness.MarkAudit(t)
	var all []*unstructured.Unstructured
	for i := range 20 {
		all = append(all, f.Create(p.Thing(f.Env, fmt.Sprintf("r%d", i), nil)))
	}
	for _, cr := range all {
		f.ExpectResourceReady(cr)
	}
	count := f.expectOneWriter(from)
	if len(count) != 2 {
		t.Errorf("the writers are %v", count)
	}
	t.Logf("of 20 resources: %v", count)

	// Three, one after the other: nothing is served by one of three until both of two have ended.
	from = harness.MarkAudit(t)
	third := f.member("2of3", 2, 3)
	third.ExpectLog("nothing is served until all processes of the other number of shards have ended")
	f.edit(all, "b")
	first.Stop()
	first = f.member("0of3", 0, 3)
	for _, cr := range all { // the shard that is left serves on, and nobody serves the other one
		f.Patch(cr, harness.Spec(map[string]any{"text": "c"}))
	}
	first.ExpectLog("nothing is served until all processes of the other number of shards have ended")
	left := count[f.AccountUser("1of2")]
	harness.Eventually(t, "the shard that is left to serve on", func() error {
		if n := f.having(all, "c"); n < left {
			return fmt.Errorf("%d have the change", n)
		}
		return nil
	})
	if n := f.having(all, "c"); n != left {
		t.Errorf("%d resources are served, and %d are of the shard that is left", n, left)
	}
	for _, e := range f.writes(from) {
		if strings.HasSuffix(e.User, "of3") {
			t.Errorf("%s has sent %s %s while one of two serves", e.User, e.Verb, e.RequestURI)
		}
	}
	f.expectOneWriter(from)
	second.Stop()
	changed := time.Now()
	second = f.member("1of3", 1, 3)
	for _, cr := range all {
		f.ExpectData("web-"+cr.GetName(), "text", "c")
	}
	t.Logf("all are served by three %s after the last one of two has ended", harness.Elapsed(changed))
	from = harness.MarkAudit(t)
	f.edit(all, "d")
	if count = f.expectOneWriter(from); len(count) != 3 {
		t.Errorf("the writers are %v", count)
	}
	t.Logf("of 20 resources: %v", count)

	// A leader dies, the others go on, and its own wait for the next process.
	from = harness.MarkAudit(t)
	second.Kill()
	for _, cr := range all {
		f.Patch(cr, harness.Spec(map[string]any{"text": "e"}))
	}
	served := func() int { return f.having(all, "e") }
	harness.Eventually(t, "the others to go on", func() error {
		if n := served(); n < 20-count[f.AccountUser("1of3")] {
			return fmt.Errorf("%d are served", n)
		}
		return nil
	})
	if n := served(); n != 20-count[f.AccountUser("1of3")] {
		t.Errorf("%d resources are served, and %d are of the shard that has died", n, count[f.AccountUser("1of3")])
	}
	f.member("1of3again", 1, 3)
	for _, cr := range all {
		f.ExpectData("web-"+cr.GetName(), "text", "e")
		f.Delete(cr)
	}
	for _, cr := range all {
		f.ExpectGone(cr)
	}
	f.expectOneWriter(from)
	for _, o := range []*harness.Operator{first, third} {
		if strings.Contains(o.Log.From(0), "another process serves this kind") {
			t.Error("a shard takes another one for a duplicate")
		}
	}
}
