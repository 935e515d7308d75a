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

const reading = `
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
	s := newSite(t)
	p := newSmall(t, "byname", reading)
	s.Operate(p.Dir)
	one := s.Create(p.Thing(s.Site, "one", map[string]any{"region": "north"}))
	two := s.Create(p.Thing(s.Site, "two", map[string]any{"region": "south"}))
	t.Log(s.ExpectNotReady(one, "WaitingForValue", "web: ", "inputs.region.object"))
	s.Create(s.ConfigMap("region-south", map[string]any{"name": "S1"}))
	began := time.Now()
	s.Create(s.ConfigMap("region-north", map[string]any{"name": "N1"}))
	s.ExpectAllReady(one)
	t.Logf("ready %s after the input appeared", harness.Since(began))
	s.ExpectAllReady(two)
	s.ExpectData("web-one", "region", "N1")
	s.ExpectData("web-two", "region", "S1")

	// F3: it goes, and what runs stays.
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

func TestAChangedInputReconcilesExactlyWhoRefersToItOnceEach(t *testing.T) {
	t.Parallel()
	s := newSite(t)
	p := newSmall(t, "exact", reading)
	s.Operate(p.Dir, "--log=json", "--allow-annotations=log-level")
	for _, name := range []string{"north", "south", "west"} {
		s.Create(s.ConfigMap("region-"+name, map[string]any{"name": name}))
	}
	crs := map[string]*unstructured.Unstructured{}
	for name, region := range map[string]string{"n1": "north", "n2": "north", "s1": "south", "s2": "south", "s3": "south", "w": "west"} {
		crs[name] = s.Create(loud(p.Thing(s.Site, name, map[string]any{"region": region})))
	}
	for _, cr := range crs {
		s.ExpectAllReady(cr)
	}
	s.Settle()
	region := func(name string) *unstructured.Unstructured { return s.Ref("ConfigMap", "region-"+name) }
	rename := func(name, to string) {
		s.Patch(region(name), map[string]any{"data": map[string]any{"name": to}})
	}

	s.expectLooks(p, "it changes, and with it an object of each", looks{"n1": 1, "n2": 1}, func() { rename("north", "N2") })
	s.ExpectData("web-n1", "region", "N2")
	s.ExpectData("web-n2", "region", "N2")
	s.expectLooks(p, "its labels change, which a package may read as well", looks{"s1": 1, "s2": 1, "s3": 1}, func() {
		s.Patch(region("south"), map[string]any{"metadata": map[string]any{"labels": map[string]any{"a": "b"}}})
	})
	s.expectLooks(p, "nobody refers to it", looks{}, func() { s.Create(s.ConfigMap("region-east", map[string]any{"name": "E1"})) })

	// Another reference: the old one does not count any more, the new one does.
	s.expectLooks(p, "the reference changes", looks{"n1": 1}, func() { s.Patch(crs["n1"], harness.Spec(map[string]any{"region": "south"})) })
	s.ExpectData("web-n1", "region", "south")
	s.expectLooks(p, "the old one changes", looks{"n2": 1}, func() { rename("north", "N3") })
	s.expectLooks(p, "the new one changes", looks{"n1": 1, "s1": 1, "s2": 1, "s3": 1}, func() { rename("south", "S2") })
	s.ExpectData("web-n1", "region", "S2")
	s.expectLooks(p, "the last reference to it changes", looks{"w": 1}, func() { s.Patch(crs["w"], harness.Spec(map[string]any{"region": "east"})) })
	s.expectLooks(p, "nobody refers to it any more", looks{}, func() { rename("west", "W2") })

	// An object has one name for its life: another name is another object.
	s.expectLooks(p, "it goes", looks{"w": 1}, func() { s.Delete(region("east")) })
	s.expectLooks(p, "one of its name comes", looks{"w": 1}, func() { s.Create(s.ConfigMap("region-east", map[string]any{"name": "E2"})) })
	s.ExpectData("web-w", "region", "E2")

	s.Delete(crs["n2"])
	for _, u := range []*unstructured.Unstructured{crs["n2"], s.Ref("ConfigMap", "web-n2"), s.Ref("ConfigMap", "tokens-n2")} {
		s.ExpectGone(u)
	}
	s.Settle()
	s.expectLooks(p, "who referred to it is gone", looks{}, func() { rename("north", "N4") })
}

// looks say how often resources were reconciled, by their names.
type looks map[string]int

// loud makes the log say of a resource whenever it is reconciled.
func loud(u *unstructured.Unstructured) *unstructured.Unstructured {
	u.SetAnnotations(map[string]string{"operetta.dev/log-level": "debug"})
	return u
}

// expectLooks does something, and expects how often each loud resource of a package is
// reconciled for it until the operator is quiet.
func (s *site) expectLooks(p *small, reason string, want looks, act func()) {
	s.T.Helper()
	from, before := s.Operator.Log.Len(), s.Operator.Reconciles(p.Controller())
	act()
	s.Settle()
	sum := 0
	for _, n := range want {
		sum += n
	}
	got := s.looks(from)
	all := s.Operator.Reconciles(p.Controller()) - before
	if diff := cmp.Diff(want, got); diff != "" || all != sum {
		s.T.Errorf("%s: %d reconciles, not %d; by resource (-want +got):\n%s%s", reason, all, sum, diff, s.Operator.Log.From(from))
	}
}

// looks counts the reconciles in the operator's JSON log from a position on: what is
// logged in one of them has one ID.
func (s *site) looks(from int) looks {
	s.T.Helper()
	seen, out := map[string]bool{}, looks{}
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

// onlyReconciles does something and expects a number of reconciles of it.
func (s *site) onlyReconciles(o *harness.Operator, p *small, want int, act func()) {
	s.T.Helper()
	before := o.Reconciles(p.Controller())
	act()
	s.Settle()
	if got := o.Reconciles(p.Controller()) - before; got != want {
		s.T.Errorf("there were %d reconciles, not %d", got, want)
	}
}

// expectNoneOwned waits until no object of a kind has a mark of ownership.
func (s *site) expectNoneOwned(kind string) {
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
	s := newSite(t)
	p := newSmall(t, "byselector", reading)
	s.Operate(p.Dir, "--log=json", "--allow-annotations=log-level")
	s.Create(s.ConfigMap("region-north", map[string]any{"name": "N"}))
	for _, name := range []string{"one", "two", "three"} {
		s.ExpectAllReady(s.Create(loud(p.Thing(s.Site, name, map[string]any{"region": "north"}))))
	}
	s.Settle()
	label := func(u *unstructured.Unstructured, whose any) {
		s.Patch(u, map[string]any{"metadata": map[string]any{"labels": map[string]any{"token": whose}}})
	}
	a := s.Ref("Secret", "a")
	a.Object["data"] = map[string]any{"value": base64.StdEncoding.EncodeToString([]byte("A1"))}
	s.expectLooks(p, "nobody selects it", looks{}, func() { s.Create(a) })
	s.expectLooks(p, "a label makes it selected", looks{"one": 1}, func() { label(a, "one") })
	s.ExpectData("tokens-one", "a", "QTE=")
	s.expectLooks(p, "it changes", looks{"one": 1}, func() { s.Patch(a, map[string]any{"data": map[string]any{"value": "QTI="}}) })
	s.ExpectData("tokens-one", "a", "QTI=")
	s.expectLooks(p, "a label moves it from one resource to another", looks{"one": 1, "two": 1}, func() { label(a, "two") })
	s.ExpectData("tokens-two", "a", "QTI=")
	s.expectNoData("tokens-one", "a")
	s.expectLooks(p, "it is selected no more", looks{"two": 1}, func() { label(a, nil) })
	s.expectNoData("tokens-two", "a")
	b := s.Ref("Secret", "b")
	b.SetLabels(map[string]string{"token": "three"})
	b.Object["data"] = map[string]any{"value": "Qg=="}
	s.expectLooks(p, "one that is selected comes", looks{"three": 1}, func() { s.Create(b) })
	s.expectLooks(p, "it goes", looks{"three": 1}, func() { s.Delete(b) })
	s.expectNoData("tokens-three", "b")
}

// expectNoData waits until a ConfigMap says nothing under a key.
func (s *site) expectNoData(name, key string) {
	s.T.Helper()
	s.ExpectThat(s.Ref("ConfigMap", name), "to have no "+key, func(u *unstructured.Unstructured) error {
		if got := harness.Field(u, "data", key); got != nil {
			return fmt.Errorf("it has %v", got)
		}
		return nil
	})
}

const visiting = `
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
	s := newSite(t)
	places := newSmall(t, "places", plain)
	if err := harness.InstallCRDs(t.Context(), places.Dir); err != nil {
		t.Fatal(err)
	}
	p := newSmall(t, "visiting", visiting)
	s.Operate(p.Dir)
	for _, name := range []string{"here", "there"} {
		s.Create(places.Thing(s.Site, name, map[string]any{"text": name}))
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
	one := s.Create(p.Thing(s.Site, "one", map[string]any{"place": "here"}))
	s.ExpectAllReady(one)
	expect("one by name and one by selector", 2)
	two := s.Create(p.Thing(s.Site, "two", map[string]any{"place": "there"}))
	s.ExpectAllReady(two)
	expect("both select the same", 3)
	s.Patch(two, harness.Spec(map[string]any{"place": "here"}))
	s.ExpectData("web-two", "place", "here")
	expect("both refer to the same", 2)
	s.Delete(one)
	s.ExpectFinished(one)
	expect("one is left", 2)

	// Another version of the package reads less, and the next one nothing.
	swap := func(body string) {
		harness.WriteFile(t, filepath.Join(p.Dir, p.Name+".cue"), strings.ReplaceAll(harness.SmallHead, "NAME", p.Name)+body)
	}
	swap(strings.NewReplacer("\topen: {", "\t_open: {", "inputs.open.objects", "{}").Replace(visiting))
	expect("the package selects nothing", 1)
	swap(strings.NewReplacer("inputs:", "_inputs:", "inputs.place.object.spec.text", "cr.spec.place", "inputs.open.objects", "{}").Replace(visiting))
	expect("the package reads nothing", 0)
	swap(visiting)
	s.Patch(two, harness.Spec(map[string]any{"place": "there"}))
	s.ExpectData("web-two", "place", "there")
	expect("the package reads again", 2)
	s.Delete(two)
	s.ExpectFinished(two)
	expect("nobody is left", 0)
}

// watchesOf returns how many watches of a group's resources the API server serves.
func (s *site) watchesOf(group string) int {
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
