package e2e

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"operetta.dev/test/harness"
)

const readingBody = `
#Spec: region: string

inputs: {
	region: {apiVersion: "v1", kind: "ConfigMap", name: "region-\(cr.spec.region)"}
	tokens: {apiVersion: "v1", kind: "Secret", selector: token: cr.metadata.name}
}
components: web: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "web-\(cr.metadata.name)"
	data: region: inputs.region.object.data.name
}
components: tokens: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "tokens-\(cr.metadata.name)"
	data: {for name, secret in inputs.tokens.objects {(name): secret.data.value}}
}
`

func TestF3InputByNameIsAwaitedAndHoldsWhatRunsWhenItGoes(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "byname", readingBody)
	s.StartOperator(p.Dir)
	one := s.Create(p.Thing(s.Env, "one", map[string]any{"region": "north"}))
	two := s.Create(p.Thing(s.Env, "two", map[string]any{"region": "south"}))
	t.Log(s.ExpectNotReady(one, "WaitingForValue", "web: ", "inputs.region.object"))
	s.Create(s.ConfigMap("region-south", map[string]any{"name": "S1"}))
	began := time.Now()
	s.Create(s.ConfigMap("region-north", map[string]any{"name": "N1"}))
	s.ExpectResourceReady(one)
	t.Logf("ready %s after the input appeared", harness.Elapsed(began))
	s.ExpectResourceReady(two)
	s.ExpectData("web-one", "region", "N1")
	s.ExpectData("web-two", "region", "S1")

	// F3: the input is deleted, and the objects stay.
	before := s.Get("ConfigMap", "web-two").GetResourceVersion()
	s.Delete(s.Ref("ConfigMap", "region-south"))
	s.ExpectNotReady(two, "WaitingForValue", "web: ", "inputs.region.object")
	if s.Get("ConfigMap", "web-two").GetResourceVersion() != before {
		t.Error("the running object was changed as its input went")
	}
	for _, cr := range []*unstructured.Unstructured{one, two} {
		s.Delete(cr)
		s.ExpectFinished(cr)
	}
	s.expectNoneOwned("ConfigMap")
}

func TestAChangedInputReconcilesExactlyWhoRefersToIt(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "exact", readingBody)
	s.StartOperator(p.Dir, "--log=json", "--allow-annotations=log-level")
	for _, name := range []string{"north", "south", "west"} {
		s.Create(s.ConfigMap("region-"+name, map[string]any{"name": name}))
	}
	crs := map[string]*unstructured.Unstructured{}
	for name, region := range map[string]string{"n1": "north", "n2": "north", "s1": "south", "s2": "south", "s3": "south", "w": "west"} {
		crs[name] = s.Create(withReconcileLog(p.Thing(s.Env, name, map[string]any{"region": region})))
	}
	for _, cr := range crs {
		s.ExpectResourceReady(cr)
	}
	s.WaitUntilIdle()
	region := func(name string) *unstructured.Unstructured { return s.Ref("ConfigMap", "region-"+name) }
	rename := func(name, to string) {
		s.Patch(region(name), map[string]any{"data": map[string]any{"name": to}})
	}

	s.expectReconciles(p, "it changes, and with it an object of each", reconcileCounts{"n1": wrote, "n2": wrote}, func() { rename("north", "N2") })
	s.ExpectData("web-n1", "region", "N2")
	s.ExpectData("web-n2", "region", "N2")
	s.expectReconciles(p, "its labels change, which a package may read as well", reconcileCounts{"s1": wroteNothing, "s2": wroteNothing, "s3": wroteNothing}, func() {
		s.Patch(region("south"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
	})
	s.expectReconciles(p, "nobody refers to it", reconcileCounts{}, func() { s.Create(s.ConfigMap("region-east", map[string]any{"name": "E1"})) })

	// The reference changes: the old input is no longer read, and the new one is.
	s.expectReconciles(p, "the reference changes", reconcileCounts{"n1": wrote}, func() { s.Patch(crs["n1"], harness.Spec(map[string]any{"region": "south"})) })
	s.ExpectData("web-n1", "region", "south")
	s.expectReconciles(p, "the old one changes", reconcileCounts{"n2": wrote}, func() { rename("north", "N3") })
	s.expectReconciles(p, "the new one changes", reconcileCounts{"n1": wrote, "s1": wrote, "s2": wrote, "s3": wrote}, func() { rename("south", "S2") })
	s.ExpectData("web-n1", "region", "S2")
	s.expectReconciles(p, "the last reference to it changes", reconcileCounts{"w": wrote}, func() { s.Patch(crs["w"], harness.Spec(map[string]any{"region": "east"})) })
	s.expectReconciles(p, "nobody refers to it any more", reconcileCounts{}, func() { rename("west", "W2") })

	// The name of an object is immutable, so another name is another object.
	s.expectReconciles(p, "it goes", reconcileCounts{"w": wroteNothing}, func() { s.Delete(region("east")) })
	s.expectReconciles(p, "one of its name comes", reconcileCounts{"w": wrote}, func() { s.Create(s.ConfigMap("region-east", map[string]any{"name": "E2"})) })
	s.ExpectData("web-w", "region", "E2")

	s.Delete(crs["n2"])
	for _, u := range []*unstructured.Unstructured{crs["n2"], s.Ref("ConfigMap", "web-n2"), s.Ref("ConfigMap", "tokens-n2")} {
		s.ExpectGone(u)
	}
	s.WaitUntilIdle()
	s.expectReconciles(p, "who referred to it is gone", reconcileCounts{}, func() { rename("north", "N4") })
}

// reconcileCounts are numbers of reconciles, by the names of the resources.
type reconcileCounts map[string]int

// A change reconciles a resource once. If that reconcile writes an object, the watch event of the object
// reconciles the resource once more.
const wroteNothing, wrote = 1, 2

// withReconcileLog makes the operator log each reconcile of a resource.
func withReconcileLog(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetAnnotations(map[string]string{"operetta.dev/log-level": "debug"})
	return u
}

// expectReconciles calls a function, and expects how often it causes each resource of a package that
// has withReconcileLog to be reconciled until the operator is idle.
func (s *env) expectReconciles(p *testPackage, reason string, want reconcileCounts, act func()) {
	s.T.Helper()
	from, before := s.Operator.Log.Len(), s.Operator.Reconciles(p.Controller())
	act()
	s.WaitUntilIdle()
	sum := 0
	for _, n := range want {
		sum += n
	}
	got := s.countReconciles(from)
	all := s.Operator.Reconciles(p.Controller()) - before
	if diff := cmp.Diff(want, got); diff != "" || all != sum {
		s.T.Errorf("%s: %d reconciles, not %d; by resource (-want +got):\n%s%s", reason, all, sum, diff, s.Operator.Log.From(from))
	}
}

// countReconciles counts the reconciles in the operator's JSON log after a position. The lines of one
// reconcile have the same ID.
func (s *env) countReconciles(from int) reconcileCounts {
	s.T.Helper()
	seen, out := map[string]bool{}, reconcileCounts{}
	for line := range strings.Lines(s.Operator.Log.From(from)) {
		var entry struct {
			Thing       struct{ Name string }
			ReconcileID string
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			s.T.Fatalf("%v in %q", err, line)
		}
		if entry.ReconcileID != "" && !seen[entry.ReconcileID] {
			seen[entry.ReconcileID] = true
			out[entry.Thing.Name]++
		}
	}
	return out
}

// onlyReconciles calls a function, and expects a number of reconciles because of it.
func (s *env) onlyReconciles(o *harness.Operator, p *testPackage, want int, act func()) {
	s.T.Helper()
	before := o.Reconciles(p.Controller())
	act()
	s.WaitUntilIdle()
	if got := o.Reconciles(p.Controller()) - before; got != want {
		s.T.Errorf("there were %d reconciles, not %d", got, want)
	}
}

// expectNoneOwned waits until no object of a kind has an owner label.
func (s *env) expectNoneOwned(kind string) {
	s.T.Helper()
	harness.Eventually(s.T, "no "+kind+" of the operator", func() error {
		for _, u := range s.List(harness.APIVersions[kind], kind) {
			if u.GetLabels()["operetta.dev/owner"] != "" {
				return fmt.Errorf("%s exists, deleted at %v", u.GetName(), u.GetDeletionTimestamp())
			}
		}
		return nil
	})
}

func TestSecretsBySelectorAreReadAsTheyComeAndGo(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	p := newTestPackage(t, "byselector", readingBody)
	s.StartOperator(p.Dir, "--log=json", "--allow-annotations=log-level")
	s.Create(s.ConfigMap("region-north", map[string]any{"name": "N"}))
	for _, name := range []string{"one", "two", "three"} {
		s.ExpectResourceReady(s.Create(withReconcileLog(p.Thing(s.Env, name, map[string]any{"region": "north"}))))
	}
	s.WaitUntilIdle()
	label := func(u *unstructured.Unstructured, whose any) {
		s.Patch(u, map[string]any{"metadata": map[string]any{"labels": map[string]any{"token": whose}}})
	}
	a := s.Ref("Secret", "a")
	a.Object["data"] = map[string]any{"value": base64.StdEncoding.EncodeToString([]byte("A1"))}
	s.expectReconciles(p, "nobody selects it", reconcileCounts{}, func() { s.Create(a) })
	s.expectReconciles(p, "a label makes it selected", reconcileCounts{"one": wrote}, func() { label(a, "one") })
	s.ExpectData("tokens-one", "a", "QTE=")
	s.expectReconciles(p, "it changes", reconcileCounts{"one": wrote}, func() { s.Patch(a, map[string]any{"data": map[string]any{"value": "QTI="}}) })
	s.ExpectData("tokens-one", "a", "QTI=")
	s.expectReconciles(p, "a label moves it from one resource to another", reconcileCounts{"one": wrote, "two": wrote}, func() { label(a, "two") })
	s.ExpectData("tokens-two", "a", "QTI=")
	s.expectNoData("tokens-one", "a")
	s.expectReconciles(p, "it is selected no more", reconcileCounts{"two": wrote}, func() { label(a, nil) })
	s.expectNoData("tokens-two", "a")
	b := s.Ref("Secret", "b")
	b.SetLabels(map[string]string{"token": "three"})
	b.Object["data"] = map[string]any{"value": "Qg=="}
	s.expectReconciles(p, "one that is selected comes", reconcileCounts{"three": wrote}, func() { s.Create(b) })
	s.expectReconciles(p, "it goes", reconcileCounts{"three": wrote}, func() { s.Delete(b) })
	s.expectNoData("tokens-three", "b")
}

// expectNoData waits until a ConfigMap has no value for a key.
func (s *env) expectNoData(name, key string) {
	s.T.Helper()
	s.ExpectObject(s.Ref("ConfigMap", name), "to have no "+key, func(u *unstructured.Unstructured) error {
		if got := harness.Field(u, "data", key); got != nil {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

const visitingBody = `
#Spec: place: string

inputs: {
	place: {apiVersion: "places.example.com/v1", kind: "Thing", name: cr.spec.place}
	open: {apiVersion: "places.example.com/v1", kind: "Thing", selector: open: "yes"}
}
components: web: objects: map: {
	apiVersion: "v1"
	kind:       "ConfigMap"
	metadata: name: "web-\(cr.metadata.name)"
	data: {
		place: inputs.place.object.spec.text
		open:  "\(len([for n, _ in inputs.open.objects {n}]))"
	}
}
`

func TestAWatchEndsOnTheAPIServerWhenNobodyRefersToItsInput(t *testing.T) {
	t.Parallel()
	s := newEnv(t)
	places := newTestPackage(t, "places", plainBody)
	if err := harness.InstallCRDs(t.Context(), places.Dir); err != nil {
		t.Fatal(err)
	}
	p := newTestPackage(t, "visiting", visitingBody)
	s.StartOperator(p.Dir)
	for _, name := range []string{"here", "there"} {
		s.Create(places.Thing(s.Env, name, map[string]any{"text": name}))
	}
	expect := func(reason string, want int) {
		t.Helper()
		harness.Eventually(t, fmt.Sprintf("%d watches: %s", want, reason), func() error {
			if n := s.watchesOf("places.example.com"); n != want {
				return fmt.Errorf("there are %d", n)
			}
			return nil
		})
	}
	expect("nobody refers to anything yet", 0)
	one := s.Create(p.Thing(s.Env, "one", map[string]any{"place": "here"}))
	s.ExpectResourceReady(one)
	expect("one by name and one by selector", 2)
	two := s.Create(p.Thing(s.Env, "two", map[string]any{"place": "there"}))
	s.ExpectResourceReady(two)
	expect("both select the same", 3)
	s.Patch(two, harness.Spec(map[string]any{"place": "here"}))
	s.ExpectData("web-two", "place", "here")
	expect("both refer to the same", 2)
	s.Delete(one)
	s.ExpectFinished(one)
	expect("one is left", 2)

	// Another version of the package has fewer inputs, and the next one none.
	swap := func(body string) {
		harness.WriteFile(t, filepath.Join(p.Dir, p.Name+".cue"), strings.ReplaceAll(harness.TestPackageHead, "NAME", p.Name)+body)
	}
	swap(strings.NewReplacer("\topen: {", "\t_open: {", "inputs.open.objects", "{}").Replace(visitingBody))
	expect("the package selects nothing", 1)
	swap(strings.NewReplacer("inputs:", "_inputs:", "inputs.place.object.spec.text", "cr.spec.place", "inputs.open.objects", "{}").Replace(visitingBody))
	expect("the package reads nothing", 0)
	swap(visitingBody)
	s.Patch(two, harness.Spec(map[string]any{"place": "there"}))
	s.ExpectData("web-two", "place", "there")
	expect("the package reads again", 2)
	s.Delete(two)
	s.ExpectFinished(two)
	expect("nobody is left", 0)
}

// watchesOf returns how many watches of a group's resources the API server serves.
func (s *env) watchesOf(group string) int {
	s.T.Helper()
	sum := 0
	for line := range harness.Lines(s.Kubectl("get", "--raw=/metrics"), "apiserver_longrunning_requests{") {
		if !harness.ContainsAll(line, []string{`group="` + group + `"`, `verb="WATCH"`}) || strings.Contains(line, `scope="cluster"`) {
			continue // what watches everything is the garbage collector, which begins within half a minute
		}
		n, err := strconv.Atoi(line[strings.LastIndex(line, " ")+1:])
		if err != nil {
			s.T.Fatalf("%v in %q", err, line)
		}
		sum += n
	}
	return sum
}
