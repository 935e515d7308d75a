package e2e

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/controlplane"
	"operetta.dev/test/harness"
)

// forcedReconciles is the number of reconciles that D1 triggers.
const forcedReconciles = 100

func TestD1ForcedReconcilesAtRestCostNoRequest(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartOperator(harness.PackageDir("webapp"))
	s.Create(s.Webapp("shop", allFields()))
	s.ExpectReady("shop")
	s.WaitUntilIdle()
	versions, from, count, began := s.versions(), harness.MarkAudit(t), o.Reconciles("webapp.example.com"), time.Now()
	for range forcedReconciles {
		s.reconcileOnce("shop")
	}
	done := o.Reconciles("webapp.example.com") - count
	all := s.OperatorRequests(from)
	t.Logf("%d reconciles in %s; requests: %s", done, harness.Elapsed(began), all)
	if done < forcedReconciles {
		t.Errorf("there were %d reconciles, not %d", done, forcedReconciles)
	}
	if asked := all.Filter(func(e controlplane.AuditEvent) bool { return e.Verb != "watch" }); len(asked) > 0 {
		t.Errorf("the operator asked for something at rest: %s", asked)
	}
	if watches := all.WithVerbs("watch"); len(watches) > len(kinds)+1 {
		t.Errorf("%d watches were opened: %s", len(watches), watches)
	}
	for object, version := range s.versions() {
		if object != "WebApp shop" && versions[object] != version {
			t.Errorf("%s changed", object)
		}
	}
}

// versions returns the resourceVersion of each object of the test's WebApps, and of the WebApps
// themselves. For an autoscaler it returns the generation and metadata instead, because its controller
// writes its status at any time.
func (s *env) versions() map[string]string {
	s.T.Helper()
	out := map[string]string{}
	for _, kind := range append([]string{"WebApp"}, kinds...) {
		for _, u := range s.List(harness.APIVersions[kind], kind) {
			if kind == "WebApp" || len(u.GetOwnerReferences()) > 0 {
				out[kind+" "+u.GetName()] = version(&u)
			}
		}
	}
	return out
}

func version(u *unstructured.Unstructured) string {
	if u.GetKind() == "HorizontalPodAutoscaler" {
		return fmt.Sprint(u.GetUID(), u.GetGeneration(), u.GetLabels(), u.GetAnnotations(), len(u.GetOwnerReferences()), harness.Field(u, "spec"))
	}
	return u.GetResourceVersion()
}

// manyResources returns the number of custom resources at rest with which D2 restarts.
func manyResources() int {
	if harness.Long() {
		return 50
	}
	return 20
}

func TestD2RestartWithSettledResourcesOnlyListsAndWatches(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	o := s.StartOperator(harness.PackageDir("webapp"))
	began := time.Now()
	var all sync.WaitGroup
	for i := range manyResources() {
		all.Go(func() {
			spec := allFields()
			spec["autoscaling"] = map[string]any{"enabled": i%2 == 0}
			spec["replicas"] = int64(1)
			if err := harness.Suite.Admin.Create(t.Context(), s.Webapp(fmt.Sprintf("shop-%02d", i), spec)); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
	for i := range manyResources() {
		s.ExpectReady(fmt.Sprintf("shop-%02d", i))
	}
	t.Logf("%d resources ready after %s", manyResources(), harness.Elapsed(began))
	s.WaitUntilIdle()
	versions := s.versions()
	o.Stop()

	from, began := harness.MarkAudit(t), time.Now()
	o = s.StartOperator(harness.PackageDir("webapp"))
	harness.Eventually(t, "a reconcile of each resource", func() error {
		if n := o.Reconciles("webapp.example.com"); n < manyResources() {
			return fmt.Errorf("there were %d", n)
		}
		return nil
	})
	t.Logf("all reconciled %s after the restart", harness.Elapsed(began))
	s.WaitUntilIdle()
	s.expectOnlyListsAndWatches(from)
	after := s.versions()
	changed := 0
	for object, version := range versions {
		if after[object] != version {
			changed++
			t.Errorf("%s changed", object)
		}
	}
	t.Logf("%d of %d objects changed", changed, len(versions))
}

// expectOnlyListsAndWatches checks the requests of a start of the operator. It ignores discovery, which
// concerns no resource, and the installation of the CRDs of the package and of Patches: reads of what is
// there and whether it is served, as each is what would be applied. For kinds of packages that do not run
// here, it allows one list of CRDs, and one list of metadata for each kind, which would find resources
// that wait for their teardown. It ignores nothing else.
func (s *env) expectOnlyListsAndWatches(from controlplane.AuditMark) {
	s.T.Helper()
	all := s.OperatorRequests(from)
	crds := all.OfResource("customresourcedefinitions")
	rest := all.Filter(func(e controlplane.AuditEvent) bool { return e.Resource != "customresourcedefinitions" })
	s.T.Logf("CustomResourceDefinition: %s; everything else: %s", crds, rest)
	if other := rest.Filter(func(e controlplane.AuditEvent) bool { return e.Verb != "list" && e.Verb != "watch" }); len(other) > 0 {
		s.T.Errorf("the restart cost more than lists and watches: %s", other)
	}
	if len(crds.WithVerbs("list")) > 1 || len(crds.WithVerbs("get", "list")) != len(crds) {
		s.T.Errorf("the CustomResourceDefinition cost %s", crds)
	}
	once := map[string]bool{}
	for _, e := range rest.Filter(ofAnotherPackage) {
		if once[e.Group+e.Resource] || e.Verb != "list" {
			s.T.Errorf("%s of %s: a kind of another package costs more than one list", e.Verb, e.Group)
		}
		once[e.Group+e.Resource] = true
	}
	own := rest.Filter(func(e controlplane.AuditEvent) bool { return !ofAnotherPackage(e) })
	if lists := own.WithVerbs("list"); len(lists) > len(kinds)+3 {
		s.T.Errorf("%d lists, not one for each of %d kinds and the resource itself, and two of patches: %s", len(lists), len(kinds), lists)
	}
}

// ofAnotherPackage reports whether a request concerns the packages of other tests.
func ofAnotherPackage(e controlplane.AuditEvent) bool {
	return strings.HasSuffix(e.Group, ".example.com")
}

// progressEvery is the minimum interval between two writes of the progress of a resource.
const progressEvery = 3 * time.Second

func TestI7CreationCostsOneWritePerObjectAndThree(t *testing.T) {
	t.Parallel()
	one := allFields()
	one["autoscaling"] = map[string]any{"enabled": true, "minReplicas": int64(1)}
	for name, c := range map[string]struct {
		spec map[string]any
		// evaluations is how often CUE evaluates the package at most, as it sees something else: nothing
		// is there, then the Secret, then Deployment and Service, then each number of available replicas.
		evaluations int
	}{
		"the example": {map[string]any{"image": "nginx:1.25"}, 6}, // three replicas
		"everything":  {allFields(), 5},
		"everything without an autoscaler to wait for": {one, 4},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			o := s.StartOperator(harness.PackageDir("webapp"))
			from, began, cpu := harness.MarkAudit(t), time.Now(), o.CPU()
			s.Create(s.Webapp("shop", c.spec))
			s.ExpectReady("shop")
			took := harness.Elapsed(began)
			s.WaitUntilIdle()
			all := s.OperatorRequests(from)
			writes := all.Mutating()
			objects := 0
			for _, kind := range kinds {
				if u, err := s.Lookup(kind, "shop"); u != nil && err == nil {
					objects++
				}
			}
			t.Logf("%d objects, ready after %s: %d writes (%s), %d Events; reads: %s; %d reconciles, %s of CPU",
				objects, took, len(writes), writes, len(all.Events()), all.WithVerbs("get", "list"), o.Reconciles("webapp.example.com"), o.CPU()-cpu)
			by := func(what string) int { return o.Count("operetta_evaluations_total", "by", what) }
			t.Logf("%d evaluations by CUE, %d by a template, and %d answers of the memo", by("cue"), by("template"), by("memo"))
			if evaluated := by("cue"); evaluated > c.evaluations {
				t.Errorf("%d evaluations by CUE for a creation, more than %d", evaluated, c.evaluations)
			}
			// The status reports progress at intervals.
			progress := int(took / progressEvery)
			if len(writes) > objects+3+progress {
				t.Errorf("%d writes for %d objects, more than one each, three, and %d of progress", len(writes), objects, progress)
			}
		})
	}
}

// What CUE said of the first creation answers the others, whatever their values are; CUE only sees that their
// specifications are valid, where it is asked to.
func TestI7CreationsOfOneShapeAreEvaluatedByCUEOnce(t *testing.T) {
	t.Parallel()
	const (
		// shapes are those of a creation: nothing is there, then the Secret, then Deployment and Service, then
		// an available replica.
		shapes = 4
		others = 3
	)
	for name, c := range map[string]struct {
		flags []string
		each  int // evaluations by CUE for each creation after the first
	}{
		"templates answer what CUE has found valid": {nil, 1},
		"templates answer what has a template":      {[]string{"--templates=on"}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newEnv(t)
			o := s.StartOperator(append([]string{harness.PackageDir("webapp")}, c.flags...)...)
			by := func(what string) int { return o.Count("operetta_evaluations_total", "by", what) }
			create := func(i int) {
				name, spec := fmt.Sprint("shop-", i), allFields()
				spec["image"] = fmt.Sprint("nginx:1.", i)
				spec["autoscaling"] = map[string]any{"enabled": true, "minReplicas": int64(1)}
				s.Create(s.Webapp(name, spec))
				s.ExpectReady(name)
				s.WaitUntilIdle()
			}
			create(0)
			first := by("cue")
			for i := range others {
				create(1 + i)
			}
			t.Logf("%d evaluations by CUE for the first creation, %d for %d others, and %d by templates", first, by("cue")-first, others, by("template"))
			if first > shapes {
				t.Errorf("%d evaluations by CUE for a creation of %d shapes", first, shapes)
			}
			if more := by("cue") - first; more != c.each*others {
				t.Errorf("%d evaluations by CUE for %d creations whose shapes are known, not %d each", more, others, c.each)
			}
			if want := others * (shapes - c.each); by("template") < want {
				t.Errorf("%d evaluations by templates for %d creations of %d shapes, fewer than %d", by("template"), others, shapes, want)
			}
		})
	}
}
