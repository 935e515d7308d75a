package e2e

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/yaml"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// fixture returns the folder of a package that was written for these tests. The packages are realistic
// operators; the files life_*_test.go test their whole life.
func fixture(name string) string { return filepath.Join(harness.Suite.Root, fixtures, name) }

// fixtures is the folder of these packages in the repository.
const fixtures = "test/e2e/packages"

// allFixtures returns the folders of all these packages.
func allFixtures() []string {
	var out []string
	for _, name := range []string{"queue", "postgres", "kafka", "kafkatopic", "team", "platform"} {
		out = append(out, fixture(name))
	}
	return out
}

// sample returns the sample resource of such a package in the test's namespace.
func (s *env) sample(name string) *unstructured.Unstructured {
	s.T.Helper()
	b, err := os.ReadFile(filepath.Join(fixture(name), "sample.yaml"))
	if err != nil {
		s.T.Fatal(err)
	}
	u := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(b, &u.Object); err != nil {
		s.T.Fatal(err)
	}
	u.SetNamespace(s.Namespace)
	return u
}

// A step is a change of a resource, and what is expected of it.
type step struct {
	name string
	do   func(s *env)
}

// live runs steps one after the other, and stops at the first that fails.
func (s *env) live(steps ...step) {
	s.T.Helper()
	for _, next := range steps {
		if !s.T.Run(next.name, func(t *testing.T) {
			here, operator := *s, *s.Operator
			here.T, operator.T, here.Operator = t, t, &operator
			next.do(&here)
		}) {
			return
		}
	}
}

// objectsOf returns the identities of the objects in a resource's inventory.
func (s *env) objectsOf(cr *unstructured.Unstructured) []*unstructured.Unstructured {
	s.T.Helper()
	got := s.ExpectObject(cr, "to exist", harness.Exists)
	var out []*unstructured.Unstructured
	groups, _ := harness.Field(got, "status", "inventory").([]any)
	for _, g := range groups {
		entries, _ := g.(map[string]any)["objects"].([]any)
		for _, e := range entries {
			at := e.(map[string]any)
			text := func(key string) string { value, _ := at[key].(string); return value }
			namespace := text("namespace")
			if scoped, _ := at["clusterScoped"].(bool); namespace == "" && !scoped {
				namespace = cr.GetNamespace()
			}
			out = append(out, harness.Object(text("apiVersion"), text("kind"), namespace, text("name")))
		}
	}
	if len(out) == 0 {
		s.T.Errorf("%s %s has no objects", cr.GetKind(), cr.GetName())
	}
	return out
}

// expectBudget calls a function that ends when resources are Ready. It expects that the operator has
// written each of their objects at most once, and each resource at most three times besides progress.
// It returns the requests.
func (s *env) expectBudget(act func(), crs ...*unstructured.Unstructured) harness.Requests {
	s.T.Helper()
	from, began := harness.MarkAudit(s.T), time.Now()
	act()
	took := harness.Elapsed(began)
	all := s.OperatorRequests(from)
	objects := 0
	for _, cr := range crs {
		objects += len(s.objectsOf(cr))
	}
	writes, reads := all.Writes(), all.WithVerbs("get", "list")
	s.T.Logf("%d objects, %s: %d writes (%s), %d Events; reads: %s", objects, took, len(writes), writes, len(all.Events()), reads)
	// The digest and the result of a Job are stored at once, because the Job may have a ttl.
	endings := 2 * len(writes.OfResource("jobs"))
	limit := objects + endings + len(crs)*(3+int(took/progressEvery))
	if len(writes) > limit {
		s.T.Errorf("%d writes of %d objects, not %d", len(writes), objects, limit)
	}
	// A deletion is confirmed by a live read.
	if gets := reads.WithVerbs("get"); len(gets) > objects && len(writes.WithVerbs("delete")) == 0 {
		s.T.Errorf("%d single reads for %d objects: %s", len(gets), objects, gets)
	}
	return all
}

// expectWritten expects the operator to have written objects of some resources, as in
// "statefulsets", each once, and no others but the custom resources.
func (s *env) expectWritten(all harness.Requests, resources ...string) {
	s.T.Helper()
	var got []string
	for _, e := range all.Writes() {
		if !strings.HasSuffix(e.Group, "example.com") {
			got = append(got, e.Resource)
		}
	}
	slices.Sort(got)
	slices.Sort(resources)
	if !slices.Equal(got, resources) {
		s.T.Errorf("written were %q, not %q", got, resources)
	}
}

// expectRefused changes a resource in a way that the API server rejects. It expects the reason in the
// response, and no request of the operator.
func (s *env) expectRefused(cr *unstructured.Unstructured, change map[string]any, parts ...string) {
	s.T.Helper()
	before, from := s.ExpectObject(cr, "to exist", harness.Exists), harness.MarkAudit(s.T)
	_, err := harness.Kubectl(s.T.Context(), "--namespace="+s.Namespace, "patch", resourceOf(cr), cr.GetName(), "--type=merge", "--patch="+string(harness.Encode(s.T, change)))
	if err == nil || !harness.ContainsAll(err.Error(), parts) {
		s.T.Errorf("the change was answered with %v, which has not %q", err, parts)
	}
	if after := s.ExpectObject(cr, "to exist", harness.Exists); after.GetGeneration() != before.GetGeneration() {
		s.T.Error("the resource was changed")
	}
	if asked := s.OperatorRequests(from).Mutating(); len(asked) > 0 {
		s.T.Errorf("the operator wrote: %s", asked)
	}
}

// resourceOf returns the argument by which kubectl finds the kind of an object.
func resourceOf(u *unstructured.Unstructured) string {
	kind := u.GroupVersionKind()
	return strings.ToLower(kind.Kind) + "." + kind.Version + "." + kind.Group
}

// expectUndone changes an object by hand, and expects the operator to revert the change in time, and
// not to write again.
func (s *env) expectUndone(u *unstructured.Unstructured, change map[string]any) {
	s.T.Helper()
	before := content(s.ExpectObject(u, "to exist", harness.Exists))
	began := time.Now()
	if changed := s.Patch(u, change); cmp.Equal(before, content(changed)) {
		s.T.Errorf("%s %s is not changed by %s", u.GetKind(), u.GetName(), harness.Encode(s.T, change))
	}
	took := harness.Within(s.T, repairLimit*harness.Tries, fmt.Sprintf("%s %s to be as before", u.GetKind(), u.GetName()), func() error {
		got, err := harness.GetOrNil(s.T.Context(), u)
		if err != nil || got == nil {
			return fmt.Errorf("reading it: %v, %w", got, err)
		}
		if diff := cmp.Diff(before, content(got)); diff != "" {
			return fmt.Errorf("(-before +after):\n%s", diff)
		}
		return nil
	})
	s.T.Logf("%s %s was as before %s after the change, looked at for %s", u.GetKind(), u.GetName(), took.Round(time.Millisecond), harness.Elapsed(began))
}

// content returns an object without the fields that the API server and controllers set.
func content(u *unstructured.Unstructured) map[string]any {
	out := maps.Clone(u.Object)
	delete(out, "status")
	annotations := maps.Clone(u.GetAnnotations())
	maps.DeleteFunc(annotations, func(key, _ string) bool { return strings.Contains(key, "kubernetes.io/") })
	out["metadata"] = map[string]any{"labels": u.GetLabels(), "annotations": annotations, "owners": u.GetOwnerReferences()}
	return out
}

// expectRestored deletes an object by hand, and expects the operator to create it again in time.
func (s *env) expectRestored(u *unstructured.Unstructured) {
	s.T.Helper()
	before := s.ExpectObject(u, "to exist", harness.Exists)
	s.Delete(u)
	took := harness.Within(s.T, repairLimit*harness.Tries, fmt.Sprintf("%s %s to return", u.GetKind(), u.GetName()), func() error {
		got, err := harness.GetOrNil(s.T.Context(), u)
		if err == nil && (got == nil || got.GetUID() == before.GetUID()) {
			err = harness.ErrNotYet
		}
		return err
	})
	s.T.Logf("%s %s was back after %s", u.GetKind(), u.GetName(), took.Round(time.Millisecond))
}

// expectNothingLeft deletes resources, and expects all their objects to be deleted except for those
// that are kept. It returns what the operator deleted, such as "services shop", in order.
func (s *env) expectNothingLeft(crs []*unstructured.Unstructured, kept ...*unstructured.Unstructured) []string {
	s.T.Helper()
	var objects []*unstructured.Unstructured
	for _, cr := range crs {
		objects = append(objects, s.objectsOf(cr)...)
	}
	from, began := harness.MarkAudit(s.T), time.Now()
	for _, cr := range crs {
		s.Delete(cr)
	}
	for _, cr := range crs {
		s.ExpectGone(cr)
	}
	s.T.Logf("%d resources with %d objects were gone after %s", len(crs), len(objects), harness.Elapsed(began))
	for _, u := range objects {
		if !slices.ContainsFunc(kept, func(k *unstructured.Unstructured) bool { return identity(k) == identity(u) }) {
			s.ExpectGone(u)
		}
	}
	for _, k := range kept {
		if got := s.ExpectObject(k, "to be kept", harness.Exists); got.GetDeletionTimestamp() != nil {
			s.T.Errorf("%s is being deleted", identity(k))
		}
	}
	var order []string
	for _, e := range s.OperatorRequests(from).WithVerbs("delete").Filter(func(e controlplane.AuditEvent) bool { return e.Code == 200 }) {
		order = append(order, e.Resource+" "+e.Name)
	}
	return order
}

// identity returns kind and name of an object for a message.
func identity(u *unstructured.Unstructured) string {
	return fmt.Sprintf("%s %s/%s", u.GroupVersionKind(), u.GetNamespace(), u.GetName())
}

// expectBefore expects some events to have happened, in their order.
func (s *env) expectBefore(happened []string, wanted ...string) {
	s.T.Helper()
	last := -1
	for _, what := range wanted {
		at := slices.Index(happened, what)
		if at <= last {
			s.T.Errorf("%q is in the wrong place, or not at all; wanted the order %q, got %q", what, wanted, happened)
			return
		}
		last = at
	}
}

// The limits of expectFewRequests: how long it watches, and how many requests and Events it allows. Events
// are recorded behind what they are about: on a busy machine, those of the rollout before come then.
const (
	refusedFor = 10 * time.Second
	few        = 4
	fewEvents  = 8
)

// expectFewRequests expects that an operator whose write was rejected permanently sends almost no
// requests besides watches for some time.
func (s *env) expectFewRequests() {
	s.T.Helper()
	from, began := harness.MarkAudit(s.T), time.Now()
	harness.Eventually(s.T, "the end of the watch", func() error {
		if time.Since(began) < refusedFor {
			return harness.ErrNotYet
		}
		return nil
	})
	asked := s.OperatorRequests(from).WithoutListsAndWatches()
	s.T.Logf("within %s after the refusal: %s", harness.Elapsed(began), asked)
	if events := asked.Events(); len(asked)-len(events) > few || len(events) > fewEvents {
		s.T.Errorf("within %s the operator asked %d times, more than %d and %d Events: %s", harness.Elapsed(began), len(asked), few, fewEvents, asked)
	}
}

// killDuring starts an operator, calls a function, and kills the operator at its nth write. Another
// operator takes over.
func (s *env) killDuring(nth int, act func(), packages ...string) {
	s.T.Helper()
	direct := s.Kubeconfig
	between := s.behindProxy()
	between.injectFault(s.StartOperator(packages...), fault{nth, killed})
	act()
	between.waitForFault()
	s.T.Logf("killed at write %d: %s", nth, strings.Join(between.counted(), ", "))
	s.Kubeconfig = direct
	s.StartOperator(packages...)
}

// expectSurvived creates a resource of a fixture, and deletes it once the resources are Ready that it
// consists of. The operator is killed at the nth write of the creation and of the deletion. It expects
// that each object was created once, and that only objects that are kept are left.
func (s *env) expectSurvived(cr *unstructured.Unstructured, created, deleted int, kept []*unstructured.Unstructured, packages ...string) {
	s.T.Helper()
	from := harness.MarkAudit(s.T)
	s.killDuring(created, func() { s.Create(cr.DeepCopy()) }, packages...)
	s.ExpectResourceReady(cr)
	objects := s.objectsOf(cr)
	for _, u := range objects {
		s.ExpectObject(u, "to exist", harness.Exists)
	}
	s.Operator.Kill()
	s.killDuring(deleted, func() { s.Delete(cr) }, packages...)
	s.ExpectGone(cr)
	for _, u := range objects {
		if !slices.ContainsFunc(kept, func(k *unstructured.Unstructured) bool { return identity(k) == identity(u) }) {
			s.ExpectGone(u)
		}
	}
	for _, k := range kept {
		s.ExpectObject(k, "to be kept", harness.Exists)
	}
	times := map[string]int{}
	for _, e := range s.OperatorRequests(from).Writes() {
		if e.Code == 201 {
			times[e.Resource+" "+e.Namespace+"/"+e.Name]++
		}
	}
	maps.DeleteFunc(times, func(_ string, n int) bool { return n == 1 })
	if len(times) > 0 {
		s.T.Errorf("created more than once: %v", times)
	}
}
